"""A store of Gram matrices is a Zarr v3 group that other readers open.

Needs the folder that the tests of mercer-kernel write, named in MERCER_STORES.
"""

import os
import pathlib
import shutil

import numpy as np
import pytest
import zarr

FOLDER = os.environ.get("MERCER_STORES")
ARRAYS = sorted(pathlib.Path(FOLDER).glob("*.npy")) if FOLDER else []

pytestmark = pytest.mark.skipif(not FOLDER, reason="MERCER_STORES names no folder of stores")

# The formulas of the fixture, as full matrices.
ROWS = np.arange(11)[:, None]
EXPECTED = {
    "symmetric": np.sin(ROWS) * np.sin(ROWS.T),
    "rectangular": np.sin(31 * ROWS + np.arange(7)),
    "matrix-valued": np.outer(np.sin(np.arange(33)), np.sin(np.arange(33))).reshape(11, 3, 11, 3),
    "features": np.sin(31 * ROWS + np.arange(5)),
}
AXES = {
    "symmetric": ("row", "column"),
    "rectangular": ("row", "column"),
    "matrix-valued": ("row", "row_output", "column", "column_output"),
    "features": ("row", "feature"),
}


@pytest.fixture(params=ARRAYS, ids=lambda path: path.stem)
def npy(request):
    return request.param


def test_there_are_stores():
    assert {path.stem for path in ARRAYS} == set(EXPECTED)


def test_zarr_reads_the_matrix(npy):
    group = zarr.open_group(npy.with_suffix(".zarr"), mode="r")
    assert list(group.array_keys()) == ["kernel"]
    array = group["kernel"]
    expected = EXPECTED[npy.stem]
    assert array.shape == expected.shape
    assert array.metadata.dimension_names == AXES[npy.stem]
    # Sines of two libraries: a few units in the last place of the type.
    np.testing.assert_allclose(array[...], expected, rtol=0, atol=4 * np.finfo(array.dtype).eps)
    exported = np.load(npy)
    assert exported.dtype == array.dtype
    np.testing.assert_array_equal(array[...], exported)


def test_the_manifest_is_an_attribute(npy):
    group = zarr.open_group(npy.with_suffix(".zarr"), mode="r")
    assert group.attrs["mercer"]["version"] == 1
    manifest = group.attrs["mercer"]["manifest"]
    assert manifest["facts"]["kernel"] == npy.stem
    assert manifest["layout"]["rows"] == 11


def test_what_is_missing_is_nan(npy):
    found = zarr.open_group(npy.with_name(npy.stem + "-partial.zarr"), mode="r")["kernel"][...]
    whole = np.load(npy)
    # Tiles are 4 samples wide, and features are not cut.
    last = {"symmetric": np.s_[8:, 8:], "rectangular": np.s_[8:, 4:], "matrix-valued": np.s_[8:, :, 8:], "features": np.s_[8:]}
    whole[last[npy.stem]] = np.nan
    np.testing.assert_array_equal(found, whole)


def test_zarr_finds_a_flipped_byte(npy, tmp_path):
    copy = tmp_path / "copy.zarr"
    shutil.copytree(npy.with_suffix(".zarr"), copy)
    chunk = next(path for path in sorted((copy / "kernel" / "c").rglob("*")) if path.is_file())
    data = bytearray(chunk.read_bytes())
    data[5] ^= 1
    chunk.write_bytes(data)
    with pytest.raises(ValueError, match="[Cc]hecksum"):
        zarr.open_group(copy, mode="r")["kernel"][...]
