"""Estimators with a network inside.

``net`` is a trained network, or none. Without one, an MLP for the data is built and trained first, the same for the same
``random_state``; ``net_`` is the network that was used. ``epochs=0`` leaves it at its random weights. Kernels of the limit
of infinite width (``kernel="ntk-limit"``) need the description of the MLP alone, so nothing is trained for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.metaestimators import available_if

from mercer._arrays import AnyArray
from mercer._jobs import call
from mercer._network import Network
from mercer._outcome import Outcome
from mercer._saved import Saved
from mercer.estimators._base import Classes, JobEstimator, Numbers
from mercer.estimators._machines import _Probabilities, _Variances

#: Kernels of a description, whose weights do not matter.
_LIMITS = ("ntk-limit", "nngp", "ntk-mc")


class _WithNetwork(JobEstimator):
    """An estimator with a network, which it makes if none is given."""

    net: Network | str | None
    widths: Sequence[int]
    epochs: int
    learning_rate: float
    net_: Network

    def _description(self, x: AnyArray, outputs: int) -> dict[str, Any]:
        return {"mlp": {"inputs": [x.shape[1]], "widths": list(self.widths), "outputs": outputs}}

    def _network(self, x: AnyArray, labels: AnyArray, outputs: int, loss: str) -> Network:
        """The network that was given, or one that is trained on the data."""
        if self.net is not None:
            return self.net if isinstance(self.net, Network) else Network(self.net)
        seed = self._seed()
        network = Network.from_arch(self._description(x, outputs), seed)
        if self.epochs == 0:
            return network
        settings: dict[str, Any] = {"epochs": self.epochs, "learning_rate": self.learning_rate, "seed": seed, "loss": loss}
        trained, _ = network.train(x, labels, threads=self.threads, progress=False, **settings)
        return trained

    def _of_kernel(self, x: AnyArray, labels: AnyArray, outputs: int, loss: str) -> dict[str, Any]:
        """The kernel of a network, or of the description of one."""
        kernel = str(getattr(self, "kernel"))
        self.__dict__.pop("net_", None)
        if self.net is None and any(name in kernel for name in _LIMITS):
            return {"kernel": kernel, "data": x, "arch": self._description(x, outputs), "seed": self._seed()}
        self.net_ = self._network(x, labels, outputs, loss)
        return {"kernel": kernel, "data": x, "net": self.net_}


class TangentClassifier(ClassifierMixin, _Probabilities, _WithNetwork):
    """Multinomial logistic regression on the tangent kernel of a network.

    Parameters
    ----------
    net : Network or path, optional
        A trained network. Without one, an MLP is built for the data and trained on it.
    kernel : str, default="normalised(trace)"
        A kernel of the network in the kernel language. Without a network, ``"ntk-limit"`` is the kernel of the MLP at
        infinite width.
    penalty : float or sequence of float, default=0.01
        The penalty, 1/C; of several, the best by cross-validation.
    widths : sequence of int, default=(64,)
        The hidden layers of the MLP.
    epochs : int, default=50
        How long the MLP is trained.
    learning_rate : float, default=0.01
        The learning rate of its training.
    random_state : int or RandomState, default=0
        The seed of its weights and of its training.
    threads : int, optional
        Number of threads; this does not change the results.

    Attributes
    ----------
    classes_ : array
        The classes.
    net_ : Network
        The network whose kernel is used; absent for kernels of infinite width.
    """

    def __init__(
        self,
        net: Network | str | None = None,
        *,
        kernel: str = "normalised(trace)",
        penalty: Any = 0.01,
        widths: Sequence[int] = (64,),
        epochs: int = 50,
        learning_rate: float = 0.01,
        random_state: Any = 0,
        threads: int | None = None,
    ) -> None:
        self.net = net
        self.kernel = kernel
        self.penalty = penalty
        self.widths = widths
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.threads = threads

    def fit(self, X: Any, y: Any) -> TangentClassifier:
        """Fit the machine, after training the MLP if there is no network."""
        x, codes = self._labelled(X, y)
        kernel = self._of_kernel(x, codes, len(self.classes_), "cross-entropy")
        self._keep(("fit", "glm"), {**kernel, "labels": codes, "penalty": self.penalty})
        return self

    def decision_function(self, X: Any) -> AnyArray:
        """The scores of the classes; of two classes, the logarithm of their odds."""
        return self._scores(X)


class TangentRegressor(RegressorMixin, Numbers, _WithNetwork):
    """Ridge regression on the tangent kernel of a network.

    Parameters
    ----------
    net : Network or path, optional
        A trained network. Without one, an MLP is built for the data and trained on it.
    kernel : str, default="normalised(trace)"
        A kernel of the network in the kernel language. Without a network, ``"ntk-limit"`` is the kernel of the MLP at
        infinite width.
    penalty : float or sequence of float, default=0.1
        The penalty; of several, the best by leave-one-out.
    widths : sequence of int, default=(64,)
        The hidden layers of the MLP.
    epochs : int, default=50
        How long the MLP is trained.
    learning_rate : float, default=0.01
        The learning rate of its training.
    random_state : int or RandomState, default=0
        The seed of its weights and of its training.
    threads : int, optional
        Number of threads; this does not change the results.

    Attributes
    ----------
    net_ : Network
        The network whose kernel is used; absent for kernels of infinite width.
    """

    def __init__(
        self,
        net: Network | str | None = None,
        *,
        kernel: str = "normalised(trace)",
        penalty: Any = 0.1,
        widths: Sequence[int] = (64,),
        epochs: int = 50,
        learning_rate: float = 0.01,
        random_state: Any = 0,
        threads: int | None = None,
    ) -> None:
        self.net = net
        self.kernel = kernel
        self.penalty = penalty
        self.widths = widths
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.threads = threads

    def fit(self, X: Any, y: Any) -> TangentRegressor:
        """Fit the machine, after training the MLP if there is no network."""
        x, targets = self._targets(X, y)
        kernel = self._of_kernel(x, _standard(targets)[0], targets.shape[1], "squared")
        self._keep(("fit", "ridge"), {**kernel, "labels": targets, "penalty": self.penalty, "centred": True})
        return self

    def predict(self, X: Any) -> AnyArray:
        """The numbers of samples."""
        return self._shaped(self._values(self._samples(X)))


class LaplaceClassifier(ClassifierMixin, _Probabilities, _WithNetwork):
    """A network with probabilities from a linearised Laplace approximation.

    Parameters
    ----------
    net : Network or path, optional
        A trained network. Without one, an MLP is built for the data and trained on it.
    method : str, default="last-layer-full"
        The posterior: ``"full"``, ``"diag"``, ``"kron"``, ``"last-layer-full"``, ``"last-layer-kron"``,
        ``"last-layer-diag"``, ``"eigen"``, ``"sketch"``, ``"auto"``.
    prior : str, optional
        A prior precision, ``"evidence"`` or ``"validation"``.
    widths : sequence of int, default=(64,)
        The hidden layers of the MLP.
    epochs : int, default=50
        How long the MLP is trained.
    learning_rate : float, default=0.01
        The learning rate of its training.
    random_state : int or RandomState, default=0
        The seed of its weights and of its training.
    threads : int, optional
        Number of threads; this does not change the results.

    Attributes
    ----------
    classes_ : array
        The classes.
    net_ : Network
        The network.
    """

    def __init__(
        self,
        net: Network | str | None = None,
        *,
        method: str = "last-layer-full",
        prior: str | None = None,
        widths: Sequence[int] = (64,),
        epochs: int = 50,
        learning_rate: float = 0.01,
        random_state: Any = 0,
        threads: int | None = None,
    ) -> None:
        self.net = net
        self.method = method
        self.prior = prior
        self.widths = widths
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.threads = threads

    def fit(self, X: Any, y: Any) -> LaplaceClassifier:
        """Fit the posterior, after training the MLP if there is no network."""
        x, codes = self._labelled(X, y)
        self.net_ = self._network(x, codes, len(self.classes_), "cross-entropy")
        settings = {"method": self.method, "prior": self.prior, "seed": self._seed()}
        self._keep(("uncertainty",), {"net": self.net_, "data": x, "labels": codes, "test": x[:1], **settings})
        return self


class LaplaceRegressor(RegressorMixin, _Variances, _WithNetwork):
    """A network with standard deviations from a linearised Laplace approximation.

    A network that is given must predict the targets as they are. The MLP learns targets of mean zero and variance one, and
    its predictions are put back on their scale.

    Parameters
    ----------
    net : Network or path, optional
        A trained network. Without one, an MLP is built for the data and trained on it.
    method : str, default="last-layer-full"
        The posterior: ``"full"``, ``"diag"``, ``"kron"``, ``"last-layer-full"``, ``"last-layer-kron"``,
        ``"last-layer-diag"``, ``"eigen"``, ``"sketch"``, ``"auto"``.
    prior : str, optional
        A prior precision, ``"evidence"`` or ``"validation"``.
    widths : sequence of int, default=(64,)
        The hidden layers of the MLP.
    epochs : int, default=50
        How long the MLP is trained.
    learning_rate : float, default=0.01
        The learning rate of its training.
    random_state : int or RandomState, default=0
        The seed of its weights and of its training.
    threads : int, optional
        Number of threads; this does not change the results.

    Attributes
    ----------
    net_ : Network
        The network.
    """

    def __init__(
        self,
        net: Network | str | None = None,
        *,
        method: str = "last-layer-full",
        prior: str | None = None,
        widths: Sequence[int] = (64,),
        epochs: int = 50,
        learning_rate: float = 0.01,
        random_state: Any = 0,
        threads: int | None = None,
    ) -> None:
        self.net = net
        self.method = method
        self.prior = prior
        self.widths = widths
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.threads = threads

    def fit(self, X: Any, y: Any) -> LaplaceRegressor:
        """Fit the posterior, after training the MLP if there is no network."""
        x, targets = self._targets(X, y)
        self._mean, self._scale = np.zeros(targets.shape[1]), np.ones(targets.shape[1])
        if self.net is None:
            targets, self._mean, self._scale = _standard(targets)
        self.net_ = self._network(x, targets, targets.shape[1], "squared")
        settings = {"method": self.method, "prior": self.prior, "seed": self._seed()}
        self._keep(("uncertainty",), {"net": self.net_, "data": x, "labels": targets, "test": x[:1], **settings})
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """The means of samples; with ``return_std``, also their standard deviations, with the noise of the targets."""
        found = self._predicted(X, return_std, noise=True)
        scale: Any = self._scale[0] if self._flat else self._scale
        mean: Any = self._mean[0] if self._flat else self._mean
        if isinstance(found, tuple):
            return found[0] * scale + mean, found[1] * scale
        return found * scale + mean


def _has_probabilities(surrogate: Any) -> bool:
    """Ridge regression has scores alone."""
    return bool(surrogate.machine != "ridge")


class Surrogate(ClassifierMixin, _Probabilities, _WithNetwork):
    """A kernel machine that stands in for a network, so that its scores are sums over training samples.

    Parameters
    ----------
    net : Network or path, optional
        The trained network that is explained. Without one, an MLP is built for the data and trained on it.
    kernel : str, default="normalised(trace)"
        A kernel of the network in the kernel language.
    machine : {"glm", "ridge"}, default="glm"
        The machine.
    to : {"labels", "network"}, default="labels"
        What the machine is fitted to: the labels, or the network's outputs.
    penalty : float or sequence of float, default=0.01
        The penalty; of several, the best by cross-validation.
    widths : sequence of int, default=(64,)
        The hidden layers of the MLP.
    epochs : int, default=50
        How long the MLP is trained.
    learning_rate : float, default=0.01
        The learning rate of its training.
    random_state : int or RandomState, default=0
        The seed of its weights and of its training.
    threads : int, optional
        Number of threads; this does not change the results.

    Attributes
    ----------
    classes_ : array
        The classes.
    net_ : Network
        The network that is explained.
    """

    def __init__(
        self,
        net: Network | str | None = None,
        *,
        kernel: str = "normalised(trace)",
        machine: str = "glm",
        to: str = "labels",
        penalty: Any = 0.01,
        widths: Sequence[int] = (64,),
        epochs: int = 50,
        learning_rate: float = 0.01,
        random_state: Any = 0,
        threads: int | None = None,
    ) -> None:
        self.net = net
        self.kernel = kernel
        self.machine = machine
        self.to = to
        self.penalty = penalty
        self.widths = widths
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.threads = threads

    def fit(self, X: Any, y: Any) -> Surrogate:
        """Fit the surrogate, after training the MLP if there is no network."""
        x, codes = self._labelled(X, y)
        self.net_ = self._network(x, codes, len(self.classes_), "cross-entropy")
        settings = {"kernel": self.kernel, "machine": self.machine, "to": self.to, "penalty": self.penalty}
        data = {"net": self.net_, "data": x, "labels": codes, "test": x[:1], "seed": self._seed()}
        self._keep(("explain",), {**data, **settings})
        return self

    def _machine(self) -> Saved:
        """The kernel machine alone, which predicts."""
        return Saved(tuple(("", content) for name, content in self.state_.folders if name == "surrogate"))

    def predict(self, X: Any) -> AnyArray:
        """The classes of samples."""
        scores = self._values(self._samples(X), self._machine())
        return self._decided(scores)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> AnyArray:
        """The probabilities of the classes, a column for each; ridge regression has none."""
        x = self._samples(X)
        return self._values(x, self._machine(), probabilities=True)

    def decision_function(self, X: Any) -> AnyArray:
        """The scores of the classes; of two classes, the logarithm of their odds."""
        x = self._samples(X)
        return self._in_shape(self._values(x, self._machine()))

    def explain(self, X: Any, y: Any = None, **settings: Any) -> Outcome:
        """What the predictions of samples are based on, and how faithful the surrogate is to the network.

        Parameters
        ----------
        X, y : array-like
            Samples, and their classes if they are known.
        **settings
            Keywords of :func:`mercer.explain`, such as ``rows``, ``all``, ``top`` and ``out``.

        Returns
        -------
        Outcome
            ``attribution`` (with ``rows`` or ``all``), ``scores``, ``surrogates`` and more.
        """
        x = self._samples(X)
        labels = None
        if y is not None:
            known = np.isin(y, self.classes_)
            if not known.all():
                raise ValueError(f"y has the class {np.asarray(y)[~known][0]!r}, which was not seen in fit")
            labels = np.searchsorted(self.classes_, y).astype(np.int64)
        keywords = {"from_": self.state_, "test": x, "test_labels": labels, "threads": self.threads, "progress": False}
        return call(("explain",), {**keywords, **settings})


def _standard(targets: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Targets with mean zero and about variance one, and what brings them back: a mean and a scale for each."""
    mean, scale = targets.mean(axis=0), targets.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    if (targets == mean).all():
        mean = mean - 0.5 * scale
    found = (targets - mean) / scale
    # Whole numbers would be read as classes.
    if (found == np.round(found)).all():
        found, scale = found / np.sqrt(2.0), scale * np.sqrt(2.0)
    return found, mean, scale
