"""Estimators of scikit-learn.

They run the same jobs as the functions of the package and keep the result in memory: ``state_`` is the folder that the
job would have written, as bytes. So they can be cloned, pickled and used in ``Pipeline``, ``GridSearchCV`` and
``cross_val_score``, and ``mercer predict`` gives the same numbers.
"""

from __future__ import annotations

from mercer._errors import Error

try:
    import sklearn
except ImportError as _error:
    raise Error("the estimators need scikit-learn", "missing-package", ["pip install 'scikit-learn>=1.6'"]) from _error

# `validate_data` and tags as data classes came with 1.6.
if tuple(int(part) for part in sklearn.__version__.split(".")[:2]) < (1, 6):
    raise Error(
        f"the estimators need scikit-learn 1.6 or later, this is {sklearn.__version__}",
        "missing-package",
        ["pip install --upgrade scikit-learn"],
    )

from mercer.estimators._machines import (
    SVC,
    GaussianProcessClassifier,
    GaussianProcessRegressor,
    KernelGLM,
    KernelRidge,
)
from mercer.estimators._networks import (
    LaplaceClassifier,
    LaplaceRegressor,
    Surrogate,
    TangentClassifier,
    TangentRegressor,
)
from mercer.estimators._transformers import Eigenfunctions, NeuralEF, Nystrom, RandomFourier

__all__ = [
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
]
