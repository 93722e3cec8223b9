"""Arrays of other libraries as NumPy arrays, without a copy where their layout allows."""

from __future__ import annotations

import os
import tempfile
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from mercer._errors import Error

AnyArray = NDArray[Any]

#: Arrays that are read in blocks are read in blocks of about this many bytes.
BLOCK = 64 << 20


class _Blockwise(Protocol):
    """An array that is read in parts, such as those of Zarr and Dask."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    def __getitem__(self, rows: slice) -> Any: ...


def as_array(value: object, name: str) -> AnyArray:
    """Return an array of real numbers, row-major or column-major.

    Parameters
    ----------
    value : array-like
        A NumPy array, an object with ``__dlpack__`` (PyTorch, JAX, CuPy on the CPU), a Zarr or Dask array, a column or
        table of pandas, polars or Arrow, or a nested list.
    name : str
        How error messages call it.

    Returns
    -------
    numpy.ndarray
        The same memory if its layout is row-major or column-major, otherwise a row-major copy.
    """
    array = _numpy(value, name)
    if array.dtype.kind not in "biuf":
        raise Error(f"{name}: an array of {_kind(array)} is not an array of real numbers", "element-type", _advice(array))
    if array.dtype.itemsize > 8:
        raise Error(f"{name}: numbers of type {array.dtype} are too long", "element-type", ["x.astype('float64')"])
    if array.ndim == 0:
        raise Error(f"{name}: this is a single number; the first axis must count samples", "shape")
    if array.flags.c_contiguous or array.flags.f_contiguous:
        return array
    return np.ascontiguousarray(array)


def as_labels(value: object, name: str) -> tuple[AnyArray, list[str] | None]:
    """Return labels as numbers, and the names of the classes if the labels are texts.

    Classes are numbered in the alphabetical order of their names.
    """
    array = _numpy(value, name)
    if array.dtype.kind not in "OUST":
        return as_array(array, name), None
    values = array.ravel().tolist()
    wrong = next((value for value in values if not isinstance(value, str)), None)
    if wrong is not None:
        message = f"{name}: labels must be numbers or texts, but one is {wrong!r}"
        raise Error(message, "element-type", ["drop the samples without a label"] if wrong != wrong or wrong is None else ())
    names, codes = np.unique(np.asarray(values, dtype=np.str_), return_inverse=True)
    return codes.astype(np.int64).reshape(array.shape), [str(name) for name in names]


def _numpy(value: object, name: str) -> AnyArray:
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, (str, bytes, os.PathLike)):
        raise Error(f"{name}: {value!r} is not an array")
    if _is_blockwise(value):
        return _spooled(cast(_Blockwise, value), name)
    if type(value).__module__.partition(".")[0] == "pyarrow":
        # Arrow's own conversions refuse to copy, which texts and chunks need.
        return np.asarray(value)
    if hasattr(value, "detach"):
        # A tensor of PyTorch that records gradients has no DLPack capsule.
        value = value.detach()
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(cast(Any, value))
        except (BufferError, RuntimeError, TypeError) as error:
            device = getattr(value, "device", None)
            if device is not None and "cpu" not in str(device).lower():
                raise Error(f"{name}: the array is on {device}", "device", ["move it to the CPU first: x.cpu()"]) from error
    if hasattr(value, "to_numpy"):
        return np.asarray(value.to_numpy())
    try:
        return np.asarray(value)
    except ValueError as error:
        raise Error(f"{name}: this is not an array: {error}", "shape") from error


def _is_blockwise(value: object) -> bool:
    """Whether this is an array in chunks that may be larger than memory."""
    return all(hasattr(value, part) for part in ("chunks", "shape", "dtype", "__getitem__")) and not isinstance(
        value, np.ndarray
    )


def _spooled(value: _Blockwise, name: str) -> AnyArray:
    """Copy an array in chunks to a temporary file, block by block, and map the file."""
    if not value.shape:
        raise Error(f"{name}: this is a single number; the first axis must count samples", "shape")
    if 0 in value.shape:
        return np.zeros(value.shape, value.dtype)
    row = int(np.prod(value.shape[1:], dtype=np.int64)) * value.dtype.itemsize
    step = max(1, BLOCK // max(1, row))
    handle, path = tempfile.mkstemp(prefix="mercer-", suffix=".npy")
    os.close(handle)
    try:
        mapped = np.lib.format.open_memmap(path, mode="w+", dtype=value.dtype, shape=tuple(value.shape))
        for start in range(0, value.shape[0], step):
            mapped[start : start + step] = np.asarray(value[start : start + step])
    finally:
        # The map keeps the content until the array is released.
        os.unlink(path)
    return mapped


def _kind(array: AnyArray) -> str:
    names = {"O": "objects", "U": "texts", "S": "bytes", "c": "complex numbers", "M": "dates", "m": "durations", "V": "records"}
    return names.get(array.dtype.kind, str(array.dtype))


def _advice(array: AnyArray) -> list[str]:
    if array.dtype.kind == "O":
        return ["numpy.asarray(x, dtype='float64') says which element is not a number"]
    if array.dtype.kind == "c":
        return ["pass the real and imaginary parts as two features"]
    return []
