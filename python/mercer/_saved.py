"""What a job saved, as bytes."""

from __future__ import annotations

import os
from dataclasses import dataclass

from mercer import _mercer
from mercer._outcome import Outcome

#: Folders that a result holds beside itself.
_INSIDE = ("surrogate",)


@dataclass(frozen=True)
class Saved:
    """A machine, functions, a posterior or an explanation in memory: the folder that a job wrote, as bytes.

    ``predict(from_=saved)`` and ``explain(from_=saved)`` take it like a folder on disk. It can be pickled, and the same
    job gives the same bytes.
    """

    #: The folder, and the folders inside it by their names.
    folders: tuple[tuple[str, bytes], ...]

    @classmethod
    def of(cls, result: Outcome | str | os.PathLike[str]) -> Saved:
        """The content of a result's folder, without the files that are for people and other programs."""
        path = os.fspath(result)
        inside = [(name, os.path.join(path, name)) for name in _INSIDE]
        found = [("", path), *((name, folder) for name, folder in inside if os.path.isdir(folder))]
        return cls(tuple((name, bytes(_mercer.pack(folder))) for name, folder in found))

    def named(self, name: str) -> list[tuple[str, bytes]]:
        """The folders under a name, as a call takes them."""
        return [(f"{name}/{inside}" if inside else name, content) for inside, content in self.folders]
