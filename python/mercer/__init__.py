"""A workbench for neural kernels.

``Network`` opens a trained network, ``kernel`` and ``ntk`` compute kernels of arrays, ``gram`` matrices larger than
memory, ``eigen`` eigenfunctions, ``fit`` machines, ``predict`` predictions and ``uncertainty`` posteriors. Keywords are
named like the flags of the command ``mercer``, and its help is their documentation: ``help(mercer.fit.ridge)``.

Nothing is imported before it is used, so the command starts without NumPy.
"""

from __future__ import annotations

import importlib
from typing import Any

#: The modules of the names that are not commands.
_HOMES = {
    "Error": "_errors",
    "Gram": "_gram",
    "Kernel": "_kernels",
    "MercerWarning": "_errors",
    "Network": "_network",
    "Outcome": "_outcome",
    "Saved": "_saved",
    "features": "_gram",
    "gram": "_gram",
    "kernel": "_kernels",
    "ntk": "_kernels",
    **dict.fromkeys(
        (
            "SVC",
            "Eigenfunctions",
            "GaussianProcessClassifier",
            "GaussianProcessRegressor",
            "KernelGLM",
            "KernelRidge",
            "LaplaceClassifier",
            "LaplaceRegressor",
            "NeuralEF",
            "Nystrom",
            "RandomFourier",
            "Surrogate",
            "TangentClassifier",
            "TangentRegressor",
        ),
        "estimators",
    ),
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from mercer import _mercer

        return _mercer.VERSION
    if name in _HOMES:
        found = getattr(importlib.import_module(f"mercer.{_HOMES[name]}"), name)
    elif name.startswith("_"):
        raise AttributeError(f"module 'mercer' has no attribute {name!r}")
    else:
        from mercer import _jobs

        jobs = _jobs.public()
        if name not in jobs:
            raise AttributeError(f"module 'mercer' has no attribute {name!r}")
        members = jobs[name]
        found = _jobs.function((name,)) if members is None else _jobs.group(name, members)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    from mercer import _jobs

    return sorted([*_HOMES, *_jobs.public(), "__version__"])
