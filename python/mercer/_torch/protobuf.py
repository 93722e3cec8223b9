"""The wire format of protobuf: a message is a list of numbered fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

#: Fields are views of the file, so that large tensors are not copied.
Bytes = bytes | memoryview


class Field(NamedTuple):
    """A field of a message: its number, how it is stored, and its value."""

    number: int
    wire: int
    value: int | Bytes

    @property
    def data(self) -> Bytes:
        if isinstance(self.value, int):
            raise ValueError(f"field {self.number} holds no bytes")
        return self.value

    @property
    def text(self) -> str:
        return str(self.data, "utf-8")

    @property
    def integers(self) -> list[int]:
        """A repeated integer, packed or not."""
        if isinstance(self.value, int):
            return [self.value]
        values, at = [], 0
        while at < len(self.value):
            value, at = _read_varint(self.value, at)
            values.append(value)
        return values


def parse(message: Bytes) -> list[Field]:
    """The fields of a message."""
    fields = []
    at = 0
    while at < len(message):
        key, at = _read_varint(message, at)
        number, wire = key >> 3, key & 7
        if wire == VARINT:
            value, at = _read_varint(message, at)
            fields.append(Field(number, wire, value))
            continue
        if wire == BYTES:
            length, at = _read_varint(message, at)
        elif wire in (FIXED32, FIXED64):
            length = 4 if wire == FIXED32 else 8
        else:
            raise ValueError(f"unknown wire type {wire}")
        if at + length > len(message):
            raise ValueError("a field is longer than its message")
        fields.append(Field(number, wire, message[at : at + length]))
        at += length
    return fields


def build(fields: Iterable[Field]) -> bytes:
    """The message of some fields."""
    parts: list[Bytes] = []
    for field in fields:
        parts.append(_varint(field.number << 3 | field.wire))
        if isinstance(field.value, int):
            parts.append(_varint(field.value))
            continue
        if field.wire == BYTES:
            parts.append(_varint(len(field.value)))
        parts.append(field.value)
    return b"".join(parts)


def edit(fields: Iterable[Field], numbers: tuple[int, ...], change: Callable[[Bytes], bytes]) -> list[Field]:
    """The fields, of which those with some numbers are changed."""
    return [field._replace(value=change(field.data)) if field.number in numbers else field for field in fields]


def texts(fields: Iterable[Field], number: int) -> list[str]:
    """A repeated text."""
    return [field.text for field in fields if field.number == number]


def text(message: Bytes, number: int) -> str:
    """A text of a message, such as its name."""
    return next(iter(texts(parse(message), number)), "")


def _read_varint(message: Bytes, at: int) -> tuple[int, int]:
    """An integer, and where it ends."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)
