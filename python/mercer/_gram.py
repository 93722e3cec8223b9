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


class Gram:
    """A Gram matrix in a store on disk, which ``zarr`` and ``dask.array`` can open, too.

    Parameters
    ----------
    path : path-like
        The store.
    """

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

    def numpy(self, part: str = "kernel") -> AnyArray:
        """A matrix of the store as an array in memory."""
        import numpy as np

        return np.asarray(self.zarr()[part][...])

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
    outcome = call(("kernel",), {"kernel": kernel, "data": data, "out": out, **settings})
    path = os.fspath(outcome)
    if os.path.isdir(path):
        return Gram(path)
    arrays = outcome.arrays
    found = {name: array for name, array in arrays.items()}
    return next(iter(found.values())) if len(found) == 1 else found
