"""What Mercer exports is what other tools read.

Needs the folder that the tests of mercer-net write, named in MERCER_EXPORTS.
"""

import os
import pathlib

import numpy as np
import onnxruntime
import pytest
from safetensors.numpy import load_file

FOLDER = os.environ.get("MERCER_EXPORTS")
MODELS = sorted(path.parent for path in pathlib.Path(FOLDER).glob("*/model.onnx")) if FOLDER else []

pytestmark = pytest.mark.skipif(not FOLDER, reason="MERCER_EXPORTS names no folder of exported networks")


@pytest.fixture(params=MODELS, ids=lambda folder: folder.name)
def model(request):
    return request.param


def session(model):
    return onnxruntime.InferenceSession(str(model / "model.onnx"), providers=["CPUExecutionProvider"])


def test_there_are_models():
    assert len(MODELS) >= 5


def test_onnxruntime_computes_the_same(model):
    inputs, outputs = np.load(model / "inputs.npy"), np.load(model / "outputs.npy")
    run = session(model)
    name = run.get_inputs()[0].name
    assert run.get_inputs()[0].shape[0] == "batch"
    assert run.get_outputs()[0].shape[0] == "batch"
    for count in (len(inputs), 1):
        (got,) = run.run(None, {name: inputs[:count]})
        assert got.shape == outputs[:count].shape
        np.testing.assert_allclose(got, outputs[:count], rtol=1e-5, atol=1e-5)


def test_safetensors_hold_the_weights_of_the_model(model):
    weights = load_file(model / "model.safetensors")
    assert all(array.dtype == np.float32 and np.isfinite(array).all() for array in weights.values())
    data = (model / "model.onnx").read_bytes()
    for name, array in weights.items():
        # Initialisers are raw little-endian numbers under the same name.
        assert name.encode() in data, name
        assert array.astype("<f4").tobytes() in data, name


def test_torch_reads_the_weights(model):
    torch = pytest.importorskip("torch")
    load = pytest.importorskip("safetensors.torch").load_file
    weights = load(model / "model.safetensors")
    for name, array in load_file(model / "model.safetensors").items():
        assert weights[name].dtype == torch.float32
        np.testing.assert_array_equal(weights[name].numpy(), array)


def test_torch_computes_the_same_from_the_weights():
    torch = pytest.importorskip("torch")
    load = pytest.importorskip("safetensors.torch").load_file
    folder = pathlib.Path(FOLDER) / "mlp-gelu"
    weights = load(folder / "model.safetensors")
    x = torch.from_numpy(np.load(folder / "inputs.npy"))
    for layer in ("layer1", "layer2"):
        x = torch.nn.functional.gelu(x @ weights[f"{layer}.weight"].T + weights[f"{layer}.bias"])
    x = x @ weights["output.weight"].T + weights["output.bias"]
    np.testing.assert_allclose(x.numpy(), np.load(folder / "outputs.npy"), rtol=1e-5, atol=1e-5)
