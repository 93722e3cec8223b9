"""Writes ``__init__.pyi`` from the commands' flags: ``python -m mercer._stubs FILE``."""

from __future__ import annotations

import sys

from mercer._jobs import SHARED, Command, commands, public
from mercer._types import stub

_HEAD = '''\
"""The types of the package. This file is generated: ``cargo xtask stubs``."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from mercer._errors import Error as Error, MercerWarning as MercerWarning
from mercer._gram import Gram as Gram, features as features, gram as gram
from mercer._kernels import Kernel as Kernel, kernel as kernel, ntk as ntk
from mercer._network import Network as Network
from mercer._outcome import Outcome as Outcome
from mercer._resources import Progress
from mercer._saved import Saved as Saved
from mercer.estimators import (
    SVC as SVC,
    Eigenfunctions as Eigenfunctions,
    GaussianProcessClassifier as GaussianProcessClassifier,
    GaussianProcessRegressor as GaussianProcessRegressor,
    KernelGLM as KernelGLM,
    KernelRidge as KernelRidge,
    LaplaceClassifier as LaplaceClassifier,
    LaplaceRegressor as LaplaceRegressor,
    NeuralEF as NeuralEF,
    Nystrom as Nystrom,
    RandomFourier as RandomFourier,
    Surrogate as Surrogate,
    TangentClassifier as TangentClassifier,
    TangentRegressor as TangentRegressor,
)

# Arrays of NumPy, DLPack, Zarr, Dask, pandas, polars and Arrow, or nested lists.
_ArrayLike = Any
# One array, or one per input of a network: a mapping by name, or a tuple.
_Samples = Any

__version__: str
'''


def _keywords(command: Command, indent: str) -> list[str]:
    lines = [f"{indent}*,"]
    for name, flag in command.keywords.items():
        if flag.required and name != "out":
            lines.append(f"{indent}{name}: {stub(flag)},")
    for name, flag in command.keywords.items():
        if not flag.required or name == "out":
            lines.append(f"{indent}{name}: {stub(flag)} | None = None,")
    lines.append(f"{indent}memory: int | str | None = None,")
    lines.append(f"{indent}threads: int | None = None,")
    lines.append(f"{indent}progress: bool | Progress | None = None,")
    if command.path in SHARED:
        lines.append(f"{indent}client: Any = None,")
    return lines


def _function(command: Command, name: str, indent: str, first: list[str]) -> list[str]:
    arguments = [f"{indent}    {each}" for each in first] + _keywords(command, indent + "    ")
    return [f"{indent}def {name}(", *arguments, f"{indent}) -> Outcome:", f'{indent}    """{command.about}."""']


def text() -> str:
    """The stub."""
    lines = [_HEAD]
    for name, members in public().items():
        if members is None:
            lines += _function(commands()[(name,)], name, "", []) + [""]
            continue
        listed = ", ".join(f'"{member}"' for member in members)
        group = f"_{name.title()}"
        lines += [f"class {group}:", f"    def __call__(self, name: Literal[{listed}], /, **keywords: Any) -> Outcome: ..."]
        for member in members:
            lines += _function(commands()[(name, member)], member.replace("-", "_"), "    ", ["self,"])
        lines += ["", f"{name}: {group}", ""]
    return "\n".join(lines).rstrip() + "\n"


def main(path: str) -> None:
    """Write the stub to a file."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(text())


if __name__ == "__main__":
    main(sys.argv[1])
