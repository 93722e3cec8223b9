"""Gram matrices in memory, in files and in stores."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from mercer import _mercer
from mercer._errors import Error
from mercer._jobs import call
from mercer._resources import resources

if TYPE_CHECKING:
    from mercer._arrays import AnyArray
    from mercer._cluster import Shared


class Gram:
    """A Gram matrix, or features, in a store on disk, which ``zarr`` and ``dask.array`` can open, too.

    Parameters
    ----------
    path : path-like
        The store.
    """

    #: What the workers of a cluster did, if they filled the store.
    shared: Shared | None = None

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        with resources(None, None, False) as use:
            self._info: dict[str, Any] = json.loads(_mercer.call(["info", self.path], [], use))

    def info(self) -> dict[str, Any]:
        """All that ``mercer info`` says of the store."""
        return dict(self._info)

    def __fspath__(self) -> str:
        return self.path

    def zarr(self) -> Any:
        """The store, opened by the package ``zarr``."""
        try:
            import zarr
        except ImportError as error:
            raise Error("reading a store needs zarr", "missing-package", ["pip install 'zarr>=3'"]) from error
        return zarr.open_group(self.path, mode="r")

    def _part(self, part: str | None) -> Any:
        """A matrix of the store: by default the kernel, or the features."""
        group = self.zarr()
        return group[part or next(name for name in ("kernel", "features") if name in group)]

    def numpy(self, part: str | None = None) -> AnyArray:
        """A matrix of the store as an array in memory; by default the kernel, or the features."""
        import numpy as np

        return np.asarray(self._part(part)[...])

    def dask(self, part: str | None = None) -> Any:
        """A matrix of the store as an array of Dask, a chunk per tile; nothing is read yet."""
        try:
            import dask.array
        except ImportError as error:
            raise Error("this needs dask", "missing-package", ["pip install 'dask[array]' 'zarr>=3'"]) from error
        own = self._part(part)
        return dask.array.from_array(own, chunks=own.chunks)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        array = self.numpy()
        return array if dtype is None else array.astype(dtype)

    def __repr__(self) -> str:
        return f"Gram({self.path!r})"


def gram(
    kernel: str | None = None,
    data: Any = None,
    *,
    out: str | os.PathLike[str] | None = None,
    client: Any = None,
    **settings: Any,
) -> Any:
    """The Gram matrix of samples: in memory, in a file, or in a store that may be larger than memory.

    Parameters
    ----------
    kernel : str
        A kernel of the kernel language.
    data : array-like, mapping or path
        The samples.
    out : path-like, optional
        A ``.npy`` file, or a ``.zarr`` store. An interrupted store goes on with ``resume=True``.
    client : distributed.Client, optional
        A Dask cluster whose workers fill the store. It must be on a file system that all workers see.
    **settings
        The flags of ``mercer kernel``: ``net``, ``against``, ``precision``, ``by_layer``, ``as_features``, ``resume``,
        ``force``, ``memory``, ``threads``, ``progress`` and others.

    Returns
    -------
    numpy.ndarray or Gram
        The matrix; of a file, its map.

    Examples
    --------
    >>> import mercer as mc
    >>> mc.gram("rbf(lengthscale=2)", [[0.0], [2.0]]).shape
    (2, 2)
    """
    if client is not None:
        return _on_cluster(client, {"kernel": kernel, "data": data, **settings}, out)
    if out is None and settings.keys() <= {"net", "against", "precision", "memory", "threads", "progress"}:
        from mercer._kernels import Kernel
        from mercer._network import Network

        net = settings.pop("net", None)
        held = [data, settings.get("against")]
        if (net is None or isinstance(net, Network)) and not any(isinstance(x, (str, os.PathLike)) for x in held):
            if kernel is None:
                raise Error("gram needs a kernel, such as trace or 'rbf(lengthscale=1)'", "missing-keyword")
            return Kernel(kernel, net)(data, settings.pop("against", None), **settings)
        settings["net"] = net
    return _stored({"kernel": kernel, "data": data, "out": out, **settings})


def features(
    kernel: str,
    data: Any,
    *,
    out: str | os.PathLike[str] | None = None,
    client: Any = None,
    **settings: Any,
) -> Any:
    """The features of samples, for a kernel that has finitely many (``ck``, ``embedding``, sketches).

    Parameters
    ----------
    kernel : str
        A kernel of the kernel language.
    data : array-like, mapping or path
        The samples.
    out : path-like, optional
        A ``.npy`` file, or a ``.zarr`` store. An interrupted store goes on with ``resume=True``.
    client : distributed.Client, optional
        A Dask cluster whose workers fill the store. It must be on a file system that all workers see.
    **settings
        The flags of ``mercer kernel``: ``net``, ``precision``, ``resume``, ``force``, ``memory``, ``threads`` and others.

    Returns
    -------
    numpy.ndarray or Gram
        A row per sample; of a file, its map.

    Examples
    --------
    >>> import mercer as mc
    >>> import numpy as np
    >>> net = mc.Network.from_arch({"mlp": {"inputs": [2], "widths": [8], "outputs": 3}})
    >>> mc.features("ck", np.ones((4, 2)), net=net).shape
    (4, 9)
    """
    keywords = {"kernel": kernel, "data": data, "as_features": True, **settings}
    return _on_cluster(client, keywords, out) if client is not None else _stored({**keywords, "out": out})


def _on_cluster(client: Any, keywords: dict[str, Any], out: str | os.PathLike[str] | None) -> Gram:
    """A store that the workers of a cluster fill."""
    from mercer._cluster import fill_store

    if out is None:
        hints = ["out='gram.zarr', on a file system that all workers see"]
        raise Error("a cluster needs out: the workers share a store", "missing-keyword", hints)
    shared = fill_store(client, keywords, out)
    filled = Gram(out)
    filled.shared = shared
    return filled


def _stored(keywords: dict[str, Any]) -> Any:
    """The result of ``mercer kernel`` as an array or a store."""
    outcome = call(("kernel",), keywords)
    path = os.fspath(outcome)
    if os.path.isdir(path):
        return Gram(path)
    arrays = outcome.arrays
    found = dict(arrays.items())
    return next(iter(found.values())) if len(found) == 1 else found
