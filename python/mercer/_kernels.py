"""Kernels as functions of arrays."""

from __future__ import annotations

from typing import Literal

import numpy as np

from mercer import _mercer
from mercer._arrays import AnyArray
from mercer._network import Network, Samples, is_double, named_arrays
from mercer._resources import Progress, resources


class Kernel:
    """A kernel of the kernel language, as a function of arrays.

    Parameters
    ----------
    kernel : str
        The kernel, such as ``"normalised(trace)"`` or ``"0.5*ck + rbf(lengthscale=2)"``; ``mercer help kernel`` lists
        all of them.
    net : Network, optional
        The network, unless the kernel needs none.

    Examples
    --------
    >>> import mercer as mc
    >>> rbf = mc.Kernel("rbf(lengthscale=2)")
    >>> rbf([[0.0], [2.0]]).round(3).tolist()
    [[1.0, 0.607], [0.607, 1.0]]
    """

    def __init__(self, kernel: str, net: Network | None = None) -> None:
        self._net = net
        self._core = _mercer.Kernel(kernel, None if net is None else net._core)

    @property
    def net(self) -> Network | None:
        """The network."""
        return self._net

    def __str__(self) -> str:
        return str(self._core.text)

    def __repr__(self) -> str:
        return f"Kernel({self._core.text!r}{'' if self._net is None else f', {self._net!r}'})"

    def __reduce__(self) -> tuple[type[Kernel], tuple[str, Network | None]]:
        return type(self), (self._core.text, self._net)

    def __call__(
        self,
        x: Samples,
        y: Samples | None = None,
        *,
        precision: Literal["f32", "f64"] | None = None,
        memory: int | str | None = None,
        threads: int | None = None,
        progress: bool | Progress | None = None,
    ) -> AnyArray:
        """The kernel between samples.

        Parameters
        ----------
        x, y : array-like, tuple or dict
            Samples; without ``y``, those of ``x`` with themselves.
        precision : {"f32", "f64"}, optional
            The precision; by default that of the samples.
        memory : int or str, optional
            Memory limit in bytes, or as ``"4GiB"``.
        threads : int, optional
            Number of threads; this does not change the results.
        progress : bool or callable, optional
            Whether to show progress.

        Returns
        -------
        numpy.ndarray
            ``[x, y]``; for a kernel with a matrix per pair of samples, such as ``full``, ``[x, outputs, y, outputs]``.
        """
        names = self._net.inputs if self._net is not None else ()
        rows = named_arrays(x, names, "x")
        columns = None if y is None else named_arrays(y, names, "y")
        double = is_double((array for _, array in rows), precision)
        with resources(memory, threads, progress) as use:
            return np.asarray(self._core.gram(rows, columns, double, use))

    def features(
        self,
        x: Samples,
        *,
        precision: Literal["f32", "f64"] | None = None,
        memory: int | str | None = None,
        threads: int | None = None,
        progress: bool | Progress | None = None,
    ) -> AnyArray:
        """The features of samples, for a kernel that has finitely many (``ck``, ``embedding``, sketches)."""
        rows = named_arrays(x, self._net.inputs if self._net is not None else (), "x")
        double = is_double((array for _, array in rows), precision)
        with resources(memory, threads, progress) as use:
            return np.asarray(self._core.features(rows, double, use))


def kernel(
    kernel: str,
    x: Samples,
    y: Samples | None = None,
    *,
    net: Network | None = None,
    precision: Literal["f32", "f64"] | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    progress: bool | Progress | None = None,
) -> AnyArray:
    """The kernel between samples, in memory; see :class:`Kernel` for the arguments.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.kernel("linear", [[1.0, 2.0]], [[3.0, 4.0]])
    array([[11.]])
    """
    return Kernel(kernel, net)(x, y, precision=precision, memory=memory, threads=threads, progress=progress)


def ntk(
    net: Network,
    x: Samples,
    y: Samples | None = None,
    *,
    kind: str = "trace",
    precision: Literal["f32", "f64"] | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    progress: bool | Progress | None = None,
) -> AnyArray:
    """The empirical neural tangent kernel of a network between samples.

    Parameters
    ----------
    net : Network
        The network.
    x, y : array-like, tuple or dict
        Samples; without ``y``, those of ``x`` with themselves.
    kind : str, optional
        ``"trace"``, ``"pseudo"``, ``"full"``, ``"logit(3)"``, or any kernel of the kernel language.
    precision, memory, threads, progress
        As for :class:`Kernel`.

    Examples
    --------
    >>> import mercer as mc
    >>> import numpy as np
    >>> net = mc.Network.from_arch({"mlp": {"inputs": [2], "widths": [8], "outputs": 3}})
    >>> mc.ntk(net, np.ones((4, 2)), kind="full").shape
    (4, 3, 4, 3)
    """
    return Kernel(kind, net)(x, y, precision=precision, memory=memory, threads=threads, progress=progress)
