"""Why a module cannot be exported."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mercer._errors import Error

_LONGEST_REASON = 300


class ExportError(Error):
    """A module that cannot be exported. The message says which part of it and why, and the hint what to do."""

    def __init__(self, message: str, code: str = "export", hints: Sequence[str] = ()) -> None:
        super().__init__(message, code, hints)


def class_of(thing: object) -> str:
    """The name of the class."""
    return type(thing).__name__


def reason(error: BaseException) -> str:
    """PyTorch's own reason, in one line."""
    operator = ""
    # The exporter by torch.export wraps the reason several times, and names the operator on the way.
    while type(error).__module__.startswith("torch.onnx._internal.exporter") and error.__cause__ is not None:
        if found := re.search(r"target=torch\.ops\.([\w.]+)", str(error)):
            operator = f" (operator {found[1]})"
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = re.sub(r"\x1b\[[0-9;]*m", "", lines[0]) if lines else class_of(error)
    text = text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"
    return text.rstrip(".:") + operator
