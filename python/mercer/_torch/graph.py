"""The graph of an ONNX file: as much of its messages as is needed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mercer._torch.protobuf import BYTES, VARINT, Bytes, Field, build, edit, parse, text, texts

if TYPE_CHECKING:
    import torch

#: ONNX's numbers for the types of parameters.
ELEMENTS = {"torch.float32": 1, "torch.float16": 10, "torch.float64": 11, "torch.bfloat16": 16}

_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_INITIALISER, _GRAPH_INPUT, _GRAPH_OUTPUT = 1, 5, 11, 12
_NODE_INPUT, _NODE_OUTPUT, _NODE_OP, _NODE_ATTRIBUTE = 1, 2, 4, 5
_ATTRIBUTE_TENSOR, _ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS = 5, 6, 11
_TENSOR_DIMS, _TENSOR_TYPE, _TENSOR_FLOATS, _TENSOR_NAME, _TENSOR_RAW, _TENSOR_DOUBLES = 1, 2, 4, 8, 9, 10
_VALUE_NAME = 1


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor of the file."""

    name: str
    shape: tuple[int, ...]
    element: int
    raw: bytes

    @classmethod
    def of(cls, name: str, parameter: torch.Tensor) -> Tensor:
        """A parameter as it should be in the file."""
        import torch

        numbers = parameter.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()
        return cls(name, tuple(parameter.shape), ELEMENTS[str(parameter.dtype)], numbers.tobytes())

    @classmethod
    def read(cls, message: Bytes) -> Tensor:
        name, element = "", 0
        shape: list[int] = []
        numbers: list[Bytes] = []
        for field in parse(message):
            if field.number == _TENSOR_DIMS:
                shape.extend(field.integers)
            elif field.number == _TENSOR_TYPE and isinstance(field.value, int):
                element = field.value
            elif field.number == _TENSOR_NAME:
                name = field.text
            elif field.number in (_TENSOR_RAW, _TENSOR_FLOATS, _TENSOR_DOUBLES):
                # Packed numbers are stored as raw ones are.
                numbers.append(field.data)
        return cls(name, tuple(shape), element, b"".join(numbers))

    def write(self) -> bytes:
        fields = [Field(_TENSOR_DIMS, VARINT, size) for size in self.shape]
        fields.append(Field(_TENSOR_TYPE, VARINT, self.element))
        fields.append(Field(_TENSOR_NAME, BYTES, self.name.encode()))
        fields.append(Field(_TENSOR_RAW, BYTES, self.raw))
        return build(fields)

    @property
    def is_float(self) -> bool:
        return self.element in ELEMENTS.values()


class Graph:
    """The file of a model, of which the main graph can be edited."""

    def __init__(self, file: bytes) -> None:
        self._model = parse(memoryview(file))
        (graph,) = (field.data for field in self._model if field.number == _MODEL_GRAPH)
        self._fields = parse(graph)
        tensors = (Tensor.read(message) for message in self._messages(_GRAPH_INITIALISER))
        self.initialisers = {tensor.name: tensor for tensor in tensors}

    def _messages(self, number: int) -> list[Bytes]:
        return [field.data for field in self._fields if field.number == number]

    @property
    def nodes(self) -> list[Bytes]:
        """The nodes as they are stored."""
        return self._messages(_GRAPH_NODE)

    def add(self, tensor: Tensor) -> None:
        """Add an initialiser."""
        self._fields.append(Field(_GRAPH_INITIALISER, BYTES, tensor.write()))
        self.initialisers[tensor.name] = tensor

    def settle(self, aliases: Mapping[str, str]) -> None:
        """Use one name for each tensor, and remove initialisers from the inputs and copies of them from the nodes."""
        for name in [name for name in self.initialisers if name in aliases]:
            tensor = self.initialisers.pop(name)
            if aliases[name] not in self.initialisers:
                self.add(dataclasses.replace(tensor, name=aliases[name]))
        outputs = {text(message, _VALUE_NAME) for message in self._messages(_GRAPH_OUTPUT)}
        originals = dict(aliases)

        def is_needed(field: Field) -> bool:
            if field.number == _GRAPH_INITIALISER:
                return text(field.data, _TENSOR_NAME) not in aliases
            if field.number == _GRAPH_INPUT:
                return text(field.data, _VALUE_NAME) not in self.initialisers
            if field.number != _GRAPH_NODE or text(field.data, _NODE_OP) != "Identity":
                return True
            source, result = (text(field.data, number) for number in (_NODE_INPUT, _NODE_OUTPUT))
            source = originals.get(source, source)
            if result in outputs or source not in self.initialisers:
                return True
            originals[result] = source
            return False

        self._fields = [field for field in self._fields if is_needed(field)]
        if originals:
            self._fields = _renamed(self._fields, originals)

    def floats(self) -> list[str]:
        """The names of the floating-point tensors: initialisers, and constants of more than one number."""
        names = [tensor.name for tensor in self.initialisers.values() if tensor.is_float]
        for node in map(parse, self.nodes):
            if texts(node, _NODE_OP) == ["Constant"]:
                attributes = (field for at in node if at.number == _NODE_ATTRIBUTE for field in parse(at.data))
                values = (Tensor.read(field.data) for field in attributes if field.number == _ATTRIBUTE_TENSOR)
                if any(value.is_float and math.prod(value.shape) > 1 for value in values):
                    names += texts(node, _NODE_OUTPUT)
        return names

    def to_bytes(self) -> bytes:
        return build(edit(self._model, (_MODEL_GRAPH,), lambda _: build(self._fields)))


def _renamed(graph: list[Field], names: Mapping[str, str]) -> list[Field]:
    """The fields of a graph whose nodes, and the graphs inside of them, take other values."""

    def in_input(message: Bytes) -> bytes:
        name = str(message, "utf-8")
        return names.get(name, name).encode()

    def in_attribute(message: Bytes) -> bytes:
        inner = (_ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS)
        return build(edit(parse(message), inner, lambda data: build(_renamed(parse(data), names))))

    def in_node(message: Bytes) -> bytes:
        return build(edit(edit(parse(message), (_NODE_INPUT,), in_input), (_NODE_ATTRIBUTE,), in_attribute))

    return edit(graph, (_GRAPH_NODE,), in_node)
