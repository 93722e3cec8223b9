"""Functions that `mercer eigen` learnt are networks that other tools run, and its spectra are NumPy's.

Needs the binary, named in MERCER_BINARY.
"""

import json
import os
import subprocess

import numpy as np
import onnxruntime
import pytest

BINARY = os.environ.get("MERCER_BINARY")

pytestmark = pytest.mark.skipif(not BINARY, reason="MERCER_BINARY names no binary")

RUN = ["--iterations", "60", "--batch", "64", "-q"]
CNN = """
[cnn]
inputs = [1, 6, 6]
outputs = 1
activation = "tanh"
layers = [{ conv = { channels = 4, kernel = 3 } }, { average-pool = { size = 2 } }, { dense = { width = 12 } }]
"""
RESNET = """
[resnet]
depth = 8
outputs = 1
inputs = [1, 6, 6]
width = 4
"""


def eigen(folder, *arguments):
    subprocess.run([BINARY, "eigen", *arguments, "-o", "out"], cwd=folder, check=True)
    return folder / "out"


@pytest.fixture
def data(tmp_path):
    random = np.random.default_rng(0)
    for name, rows in (("x", 80), ("new", 11)):
        np.save(tmp_path / f"{name}.npy", random.uniform(-1, 1, (rows, 2)))
        np.save(tmp_path / f"{name}_images.npy", random.uniform(0, 1, (rows, 1, 6, 6)).astype(np.float32))
    np.save(tmp_path / "pairs.npy", np.load(tmp_path / "x.npy") + random.normal(0, 0.1, (80, 2)))
    (tmp_path / "cnn.toml").write_text(CNN)
    (tmp_path / "resnet.toml").write_text(RESNET)
    return tmp_path


KERNEL = ["--kernel", "rbf()"]
VECTORS = ["--data", "x.npy", "--test", "new.npy"]
IMAGES = ["--data", "x_images.npy", "--test", "new_images.npy"]
CASES = {
    "neuralef": ["neuralef", *KERNEL, *VECTORS],
    "shared": ["shared", *KERNEL, *VECTORS],
    "spin": ["spin", *KERNEL, *VECTORS],
    "contrastive": ["contrastive", *VECTORS, "--pairs", "pairs.npy"],
    "augmented": ["contrastive", *IMAGES],
    "cnn": ["neuralef", *KERNEL, *IMAGES, "--functions", "cnn.toml"],
    "resnet": ["neuralef", *KERNEL, *IMAGES, "--functions", "resnet.toml"],
}


@pytest.mark.parametrize("name", CASES)
def test_onnxruntime_computes_the_functions(name, data):
    out = eigen(data, *CASES[name], "-k", "3", *RUN)
    run = onnxruntime.InferenceSession(str(out / "psi.onnx"), providers=["CPUExecutionProvider"])
    x = np.load(data / CASES[name][CASES[name].index("--test") + 1]).astype(np.float32)
    (got,) = run.run(None, {run.get_inputs()[0].name: x})
    psi = np.load(out / "psi.npy")
    assert got.shape == psi.shape and psi.shape[1] >= 1
    # The network holds single precision, whose rounding of the functions that are combined is amplified by the combination.
    parts = json.loads((out / "folder.json").read_text())["objects"]
    weights = np.abs(np.load(out / "objects" / parts["weights"]["digest"])).sum(axis=0).max()
    np.testing.assert_allclose(got, psi, rtol=1e-4, atol=1e-5 * max(1.0, weights))
    # One sample alone is the same sample.
    (one,) = run.run(None, {run.get_inputs()[0].name: x[:1]})
    np.testing.assert_allclose(one, got[:1], rtol=1e-4, atol=1e-5 * max(1.0, weights))


@pytest.mark.parametrize("method", ["exact", "lanczos", "randomised"])
def test_numpy_finds_the_same_spectrum(method, data):
    out = eigen(data, method, *KERNEL, *VECTORS, "-k", "4", "-q")
    x, new = np.load(data / "x.npy"), np.load(data / "new.npy")

    def gram(a, b):
        return np.exp(-((a[:, None] - b[None]) ** 2).sum(-1) / 2)

    values, vectors = np.linalg.eigh(gram(x, x))
    values, vectors = values[::-1][:4], vectors[:, ::-1][:, :4]
    np.testing.assert_allclose(np.load(out / "values.npy"), values / len(x), rtol=1e-6)
    # Nyström's formula, EF (8): ψ(x) = (1/(N μ)) Σ κ(x, x_n) ψ(x_n).
    expected = gram(new, x) @ vectors * np.sqrt(len(x)) / values
    psi = np.load(out / "psi.npy")
    psi *= np.sign((psi * expected).sum(axis=0))
    np.testing.assert_allclose(psi, expected, rtol=1e-4, atol=1e-4)
