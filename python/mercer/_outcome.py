"""Outcomes: what a job found, what it wrote, and how long it took."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mercer._errors import Error

if TYPE_CHECKING:
    from mercer._arrays import AnyArray


class Outcome:
    """The outcome of a job.

    Findings are attributes: ``outcome.training_accuracy``. Arrays that the job wrote are attributes, too, under their
    names: ``outcome.psi_data``. ``dir(outcome)`` lists both.

    Attributes
    ----------
    path : str
        The file or folder with the results. A temporary one is removed with the outcome; :meth:`save` keeps it.
    """

    path: str | None

    def __init__(self, name: str, content: dict[str, Any], place: Place) -> None:
        self._name = name
        self._content = content
        self._place = place
        self.path = place.path

    @property
    def notes(self) -> list[str]:
        """Notes for the user."""
        return list(self._content.get("notes", []))

    @property
    def measurements(self) -> dict[str, Any]:
        """Time and memory."""
        return dict(self._content.get("measurements", {}))

    @property
    def arrays(self) -> Mapping[str, AnyArray]:
        """The arrays that were written, by name; each is read when it is asked for."""
        return _Arrays(self._files(".npy"), self._place)

    @property
    def figures(self) -> dict[str, str]:
        """The figures that were drawn, as SVG, by name."""
        found = {}
        for name, path in self._files(".svg").items():
            with open(path, encoding="utf-8") as file:
                found[name] = file.read()
        return found

    def _files(self, ending: str) -> dict[str, str]:
        """Names, without ending, and paths of the files of one kind."""
        paths = [artefact["path"] for artefact in self._content.get("artefacts", [])]
        if self.path is not None and os.path.isdir(self.path):
            paths += [os.path.join(self.path, name) for name in sorted(os.listdir(self.path))]
        elif self.path is not None:
            paths.append(self.path)
        found = [path for path in dict.fromkeys(paths) if path.endswith(ending) and os.path.isfile(path)]
        return {os.path.basename(path)[: -len(ending)].replace(".", "_").replace("-", "_"): path for path in found}

    def to_dict(self) -> dict[str, Any]:
        """Everything but the arrays, as plain data."""
        import copy

        return copy.deepcopy(self._content)

    def to_frame(self) -> Any:
        """The findings as a pandas data frame.

        A row per entry if a finding is a table (the epochs of training, the rows of a comparison), otherwise one row.
        """
        try:
            import pandas as pd  # type: ignore[import-untyped, unused-ignore]
        except ImportError as error:
            raise Error("a data frame needs pandas", "missing-package", ["pip install pandas"]) from error
        findings = {key: value for key, value in self._content.items() if key not in ("artefacts", "measurements", "notes")}
        for value in findings.values():
            if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
                return pd.json_normalize(value)
        return pd.json_normalize([findings])

    def save(self, path: str | os.PathLike[str]) -> str:
        """Copy the results to a path that must not exist, and return it."""
        target = os.fspath(path)
        if self.path is None:
            raise Error(f"{self._name} wrote no result")
        if os.path.lexists(target):
            raise Error(f"{target}: this exists already", "exists")
        if os.path.isdir(self.path):
            shutil.copytree(self.path, target)
        else:
            shutil.copy2(self.path, target)
        return target

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name in self._content:
            return self._content[name]
        arrays = self.arrays
        if name in arrays:
            return arrays[name]
        known = ", ".join(sorted(key for key in self if not key.startswith("_")))
        raise AttributeError(f"the outcome of {self._name} has no {name}; it has {known}")

    def __iter__(self) -> Iterator[str]:
        yield from self._content
        yield from (name for name in self.arrays if name not in self._content)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self})

    def __fspath__(self) -> str:
        if self.path is None:
            raise Error(f"{self._name} wrote no result")
        return self.path

    def __repr__(self) -> str:
        lines = [f"Outcome of {self._name}:"]
        for key, value in self._content.items():
            if isinstance(value, (str, int, float)) and value is not None:
                lines.append(f"  {key} = {value!r}")
        arrays = self.arrays
        lines += [f"  {name}: array {tuple(arrays[name].shape)}" for name in arrays]
        return "\n".join(lines)

    def _repr_svg_(self) -> str | None:
        """The first figure, for notebooks."""
        return next(iter(self.figures.values()), None)


class _Arrays(Mapping[str, "AnyArray"]):
    """Arrays in files, read when they are asked for."""

    def __init__(self, files: dict[str, str], place: Place) -> None:
        self._files = files
        # A temporary folder lives as long as somebody may read from it.
        self._place = place

    def __getitem__(self, name: str) -> AnyArray:
        import numpy as np

        loaded: AnyArray = np.load(self._files[name], mmap_mode="c", allow_pickle=False)
        return loaded

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


class Place:
    """Where results go: a path of the user, a temporary folder, or nowhere."""

    def __init__(self, path: str | None, temporary: tempfile.TemporaryDirectory[str] | None = None) -> None:
        self.path = path
        self._temporary = temporary

    @classmethod
    def new(cls, path: object, name: str) -> Place:
        """The user's path, or ``name`` in a temporary folder that lives as long as the place."""
        if path is not None:
            return cls(os.fspath(path))  # type: ignore[call-overload]
        temporary = tempfile.TemporaryDirectory(prefix="mercer-", ignore_cleanup_errors=True)
        return cls(os.path.join(temporary.name, name), temporary)
