"""Kernel machines: ``mercer fit`` as estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin

from mercer._arrays import AnyArray
from mercer._network import Network
from mercer.estimators._base import Classes, Numbers


class _Variances(Numbers):
    """A regression that says how sure it is."""

    def _predicted(self, X: Any, return_std: bool, noise: bool) -> AnyArray | tuple[AnyArray, AnyArray]:
        outcome = self._ask(self._samples(X))
        mean = self._shaped(np.array(outcome.arrays["predictions"], dtype=np.float64))
        if not return_std:
            return mean
        name = next((name for name in outcome.arrays if "variance" in name), None)
        if name is None:
            raise ValueError("rows of a Gram matrix do not say κ(x, x), which standard deviations need")
        variances = np.array(outcome.arrays[name], dtype=np.float64)
        if noise:
            variances = variances + float(outcome.to_dict()["noise"])
        return mean, self._shaped(np.sqrt(np.maximum(variances, 0.0)))


class KernelRidge(RegressorMixin, Numbers):
    """Kernel ridge regression.

    Parameters
    ----------
    kernel : str, default="rbf()"
        A kernel of the kernel language, or ``"precomputed"``.
    penalty : float or sequence of float, default=1.0
        The penalty; of several, the best by leave-one-out.
    centred : bool, default=False
        Whether to subtract the mean of the targets before the fit.
    net : Network or path, optional
        The network, for kernels of a network.
    threads : int, optional
        Number of threads; this does not change the results.

    Attributes
    ----------
    penalty_ : float
        The penalty that was used.
    """

    def __init__(
        self,
        kernel: str = "rbf()",
        *,
        penalty: Any = 1.0,
        centred: bool = False,
        net: Network | str | None = None,
        threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.penalty = penalty
        self.centred = centred
        self.net = net
        self.threads = threads

    def fit(self, X: Any, y: Any) -> KernelRidge:
        """Fit the machine on samples and their numbers."""
        x, targets = self._targets(X, y)
        settings = {"labels": targets, "penalty": self.penalty, "centred": self.centred}
        outcome = self._keep(("fit", "ridge"), {**self._kernel_keywords(x), **settings})
        self.penalty_ = float(outcome.penalty)
        return self

    def predict(self, X: Any) -> AnyArray:
        """The numbers of samples."""
        return self._shaped(self._values(self._samples(X)))


class GaussianProcessRegressor(RegressorMixin, _Variances):
    """Gaussian process regression.

    Parameters
    ----------
    kernel : str, default="rbf()"
        A kernel of the kernel language, or ``"precomputed"``.
    noise_variance : float, default=0.1
        Variance of the observation noise.
    tune : bool, default=False
        Whether to tune the kernel's parameters and the noise by marginal likelihood.
    centred : bool, default=False
        Whether to subtract the mean of the targets before the fit.
    net : Network or path, optional
        The network, for kernels of a network.
    threads : int, optional
        Number of threads; this does not change the results.

    Attributes
    ----------
    noise_variance_ : float
        The variance of the noise, after tuning.
    kernel_ : str
        The kernel, after tuning.
    log_marginal_likelihood_ : float
        The logarithm of the marginal likelihood.
    """

    def __init__(
        self,
        kernel: str = "rbf()",
        *,
        noise_variance: float = 0.1,
        tune: bool = False,
        centred: bool = False,
        net: Network | str | None = None,
        threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.noise_variance = noise_variance
        self.tune = tune
        self.centred = centred
        self.net = net
        self.threads = threads

    def fit(self, X: Any, y: Any) -> GaussianProcessRegressor:
        """Fit the process on samples and their numbers."""
        x, targets = self._targets(X, y)
        settings = {"labels": targets, "noise_variance": self.noise_variance, "tune": self.tune, "centred": self.centred}
        found = self._keep(("fit", "process"), {**self._kernel_keywords(x), **settings}).to_dict()
        self.noise_variance_ = float(found["noise_variance"])
        self.kernel_ = str(found.get("kernel", self.kernel))
        self.log_marginal_likelihood_ = float(found["log_marginal_likelihood"])
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The means of samples; with ``return_std``, also the standard deviations of the process, without noise."""
        return self._predicted(X, return_std, noise=False)


class _Probabilities(Classes):
    """A classifier with probabilities."""

    def predict_proba(self, X: Any) -> AnyArray:
        """The probabilities of the classes, a column for each."""
        return self._values(self._samples(X), probabilities=True)

    def predict(self, X: Any) -> AnyArray:
        """The classes of samples."""
        codes = np.argmax(self.predict_proba(X), axis=1)
        found: AnyArray = self.classes_[codes]
        return found


class GaussianProcessClassifier(ClassifierMixin, _Probabilities):
    """Gaussian process classification by Laplace's approximation.

    Parameters
    ----------
    kernel : str, default="4*rbf()"
        A kernel of the kernel language, or ``"precomputed"``.
    net : Network or path, optional
        The network, for kernels of a network.
    threads : int, optional
        Number of threads; this does not change the results.

    Attributes
    ----------
    classes_ : array
        The classes.
    log_marginal_likelihood_ : float
        The logarithm of the approximate marginal likelihood.
    """

    def __init__(
        self, kernel: str = "4*rbf()", *, net: Network | str | None = None, threads: int | None = None
    ) -> None:
        self.kernel = kernel
        self.net = net
        self.threads = threads

    def fit(self, X: Any, y: Any) -> GaussianProcessClassifier:
        """Fit the process on samples and their classes."""
        x, codes = self._labelled(X, y)
        outcome = self._keep(("fit", "process-classifier"), {**self._kernel_keywords(x), "labels": codes})
        self.log_marginal_likelihood_ = float(outcome.log_marginal_likelihood)
        return self


class KernelGLM(ClassifierMixin, _Probabilities):
    """Multinomial logistic regression on the rows of a kernel.

    Parameters
    ----------
    kernel : str, default="rbf()"
        A kernel of the kernel language, or ``"precomputed"``.
    penalty : float or sequence of float, default=1.0
        The penalty, 1/C; of several, the best by cross-validation.
    folds : int, default=5
        The folds of cross-validation.
    balanced : bool, default=False
        Whether to weight the samples so that every class counts the same.
    net : Network or path, optional
        The network, for kernels of a network.
    threads : int, optional
        Number of threads; this does not change the results.

    Attributes
    ----------
    classes_ : array
        The classes.
    penalty_ : float
        The penalty that was used.
    """

    def __init__(
        self,
        kernel: str = "rbf()",
        *,
        penalty: Any = 1.0,
        folds: int = 5,
        balanced: bool = False,
        net: Network | str | None = None,
        threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.penalty = penalty
        self.folds = folds
        self.balanced = balanced
        self.net = net
        self.threads = threads

    def fit(self, X: Any, y: Any) -> KernelGLM:
        """Fit the machine on samples and their classes."""
        x, codes = self._labelled(X, y)
        settings = {"labels": codes, "penalty": self.penalty, "folds": self.folds, "balanced": self.balanced}
        outcome = self._keep(("fit", "glm"), {**self._kernel_keywords(x), **settings})
        self.penalty_ = float(outcome.penalty)
        return self

    def decision_function(self, X: Any) -> AnyArray:
        """The scores of the classes; of two classes, the logarithm of their odds."""
        return self._scores(X)


class SVC(ClassifierMixin, Classes):
    """Support vector machines, one class against the others.

    Parameters
    ----------
    kernel : str, default="rbf()"
        A kernel of the kernel language, or ``"precomputed"``.
    cost : float or sequence of float, default=1.0
        The cost C of a sample on the wrong side of the margin; of several, the best by cross-validation.
    folds : int, default=5
        The folds of cross-validation.
    net : Network or path, optional
        The network, for kernels of a network.
    threads : int, optional
        Number of threads; this does not change the results.

    Attributes
    ----------
    classes_ : array
        The classes.
    cost_ : float
        The cost that was used.
    n_support_ : int
        How many training samples the machine depends on.
    """

    def __init__(
        self,
        kernel: str = "rbf()",
        *,
        cost: Any = 1.0,
        folds: int = 5,
        net: Network | str | None = None,
        threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.cost = cost
        self.folds = folds
        self.net = net
        self.threads = threads

    def fit(self, X: Any, y: Any) -> SVC:
        """Fit the machine on samples and their classes."""
        x, codes = self._labelled(X, y)
        settings = {"labels": codes, "cost": self.cost, "folds": self.folds}
        outcome = self._keep(("fit", "svm"), {**self._kernel_keywords(x), **settings})
        self.cost_, self.n_support_ = float(outcome.cost), int(outcome.support_vectors)
        return self

    def decision_function(self, X: Any) -> AnyArray:
        """The margins of the classes; of two classes, that of the second."""
        # Two classes have one machine, whose margins are those of the second class and of the first with the other sign.
        scores = self._scores(X)
        return scores / 2 if scores.ndim == 1 else scores

    def predict(self, X: Any) -> AnyArray:
        """The classes of samples."""
        return self._decided(self._scores(X))
