"""Eigenfunctions and features: ``mercer eigen`` as transformers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from mercer._arrays import AnyArray
from mercer._network import Network
from mercer.estimators._base import JobEstimator


class _Functions(ClassNamePrefixFeaturesOutMixin, TransformerMixin, JobEstimator):
    """Functions of samples.

    Attributes
    ----------
    eigenvalues_ : array
        The eigenvalues of the kernel's operator, one per function.
    """

    #: Whether functions are multiplied by the roots of their eigenvalues: their inner products are then the kernel.
    _scaled = False

    n_components: int
    eigenvalues_: AnyArray

    def _learn(self, method: str, X: Any, **settings: Any) -> Any:
        x = self._checked(X)
        components = min(self.n_components, self._most(len(x)))
        outcome = self._keep(
            ("eigen", method),
            {**self._kernel_keywords(x), "components": components, "seed": self._seed(), **settings},
        )
        self.eigenvalues_ = np.asarray(outcome.to_dict()["values"], dtype=np.float64)
        return self

    def _most(self, n_samples: int) -> int:
        """The largest number of functions."""
        return n_samples

    @property
    def _n_features_out(self) -> int:
        return len(self.eigenvalues_)

    def transform(self, X: Any) -> AnyArray:
        """The functions of samples, a column for each."""
        values = self._values(self._samples(X))
        return values * np.sqrt(self.eigenvalues_) if self._scaled else values


class Eigenfunctions(_Functions):
    """The leading eigenfunctions of a kernel, with mean square one on the training samples.

    Parameters
    ----------
    kernel : str, default="rbf()"
        A kernel of the kernel language.
    n_components : int, default=10
        How many functions, at most. There are fewer if the kernel's rank on the samples is lower.
    method : {"exact", "lanczos", "randomised"}, default="exact"
        How the kernel matrix is decomposed.
    net : Network or path, optional
        The network, for kernels of a network.
    random_state : int or RandomState, default=0
        The seed of randomised methods.
    threads : int, optional
        Number of threads; this does not change the results.

    Attributes
    ----------
    eigenvalues_ : array
        The eigenvalues of the kernel's operator, one per function.
    """

    def __init__(
        self,
        kernel: str = "rbf()",
        n_components: int = 10,
        *,
        method: str = "exact",
        net: Network | str | None = None,
        random_state: Any = 0,
        threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.method = method
        self.net = net
        self.random_state = random_state
        self.threads = threads

    def fit(self, X: Any, y: Any = None) -> Eigenfunctions:
        """Find the functions."""
        self._learn(self.method, X)
        return self


class Nystrom(_Functions):
    """Features whose inner products approximate a kernel, from landmarks (Nyström's method).

    Parameters
    ----------
    kernel : str, default="rbf()"
        A kernel of the kernel language.
    n_components : int, default=100
        How many features, at most.
    landmarks : int, optional
        The number of landmarks; by default as many as features.
    landmark_choice : {"uniform", "k-means++", "rpcholesky", "all"}, default="uniform"
        How landmarks are chosen among the samples.
    net : Network or path, optional
        The network, for kernels of a network.
    random_state : int or RandomState, default=0
        The seed of the choice.
    threads : int, optional
        Number of threads; this does not change the results.

    Attributes
    ----------
    eigenvalues_ : array
        The eigenvalues of the approximate kernel's operator, one per feature.
    """

    _scaled = True

    def __init__(
        self,
        kernel: str = "rbf()",
        n_components: int = 100,
        *,
        landmarks: int | None = None,
        landmark_choice: str = "uniform",
        net: Network | str | None = None,
        random_state: Any = 0,
        threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.landmarks = landmarks
        self.landmark_choice = landmark_choice
        self.net = net
        self.random_state = random_state
        self.threads = threads

    def fit(self, X: Any, y: Any = None) -> Nystrom:
        """Choose the landmarks."""
        wanted = None
        if self.landmark_choice != "all":
            wanted = min(self.landmarks or self.n_components, len(self._checked(X)))
        self._learn("nystrom", X, landmarks=wanted, landmark_choice=self.landmark_choice, precision="f64")
        return self


class RandomFourier(_Functions):
    """Random features whose inner products approximate a kernel of differences (rbf, Laplacian, Matérn).

    Parameters
    ----------
    kernel : str, default="rbf()"
        A kernel of the kernel language.
    n_components : int, default=100
        How many features: a cosine and a sine for every random frequency. They are rotated to the principal directions
        on the training samples, so there are at most as many as samples.
    orthogonal : bool, default=False
        Whether frequencies are orthogonal to each other, which lowers the error.
    random_state : int or RandomState, default=0
        The seed of the frequencies.
    threads : int, optional
        Number of threads; this does not change the results.

    Attributes
    ----------
    eigenvalues_ : array
        The eigenvalues of the approximate kernel's operator, one per feature.
    """

    _scaled = True

    def __init__(
        self,
        kernel: str = "rbf()",
        n_components: int = 100,
        *,
        orthogonal: bool = False,
        random_state: Any = 0,
        threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.orthogonal = orthogonal
        self.random_state = random_state
        self.threads = threads

    def fit(self, X: Any, y: Any = None) -> RandomFourier:
        """Draw the frequencies."""
        features = self.n_components + self.n_components % 2
        self._learn("rff", X, frequencies=features, orthogonal=self.orthogonal, precision="f64")
        return self


class NeuralEF(_Functions):
    """Eigenfunctions of a kernel that small networks learn, with mean square one on the training samples.

    Parameters
    ----------
    kernel : str, default="rbf()"
        A kernel of the kernel language.
    n_components : int, default=3
        How many functions, at most.
    iterations : int, default=2000
        Steps of training.
    batch : int, optional
        Samples per step.
    learning_rate : float, optional
        The learning rate.
    net : Network or path, optional
        The network, for kernels of a network.
    random_state : int or RandomState, default=0
        The seed of the weights and the batches.
    threads : int, optional
        Number of threads; this does not change the results.

    Attributes
    ----------
    eigenvalues_ : array
        The eigenvalues of the kernel's operator, one per function.
    """

    def __init__(
        self,
        kernel: str = "rbf()",
        n_components: int = 3,
        *,
        iterations: int = 2000,
        batch: int | None = None,
        learning_rate: float | None = None,
        net: Network | str | None = None,
        random_state: Any = 0,
        threads: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.iterations = iterations
        self.batch = batch
        self.learning_rate = learning_rate
        self.net = net
        self.random_state = random_state
        self.threads = threads

    def fit(self, X: Any, y: Any = None) -> NeuralEF:
        """Learn the functions."""
        settings = {"iterations": self.iterations, "batch": self.batch, "learning_rate": self.learning_rate}
        self._learn("neuralef", X, precision="f64", **settings)
        return self
