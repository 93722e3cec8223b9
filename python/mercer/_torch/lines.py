"""Lines of code, for messages."""

from __future__ import annotations

import linecache
import sys
from typing import Any, NamedTuple

from mercer._torch.errors import class_of


class Line(NamedTuple):
    """A line of a file."""

    file: str
    number: int

    @property
    def text(self) -> str:
        return linecache.getline(self.file, self.number).strip()


def caller(*packages: str) -> tuple[Line, str]:
    """The line that called the caller of this function, and the method of a module that it is part of.

    Calls through some packages, given as prefixes of their names, are left out.
    """
    frame: Any = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(packages):
        frame = frame.f_back
    return Line(frame.f_code.co_filename, frame.f_lineno), _method(frame)


def _method(frame: Any) -> str:
    """The method of a module that a frame is part of."""
    import torch

    while frame is not None:
        own = frame.f_locals.get("self")
        if isinstance(own, torch.nn.Module) and frame.f_globals.get("__name__") != "torch.nn.modules.module":
            return f"{class_of(own)}.{frame.f_code.co_name}"
        frame = frame.f_back
    return "the module"
