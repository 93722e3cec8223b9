"""Modules of PyTorch as Mercer reads them: outputs, tangent kernels and parameters are those of the module.

Needs PyTorch and the extension module.
"""

import copy
import importlib.util
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("mercer._mercer", reason="the extension module is not built")

from torch import nn  # noqa: E402
from torch.func import functional_call, jacrev  # noqa: E402

import mercer as mc  # noqa: E402
from mercer._torch import ExportError, export, exporters  # noqa: E402
from torch_modules import (  # noqa: E402
    MODULES,
    SAMPLES,
    Attention,
    Counting,
    Frozen,
    Outputs,
    Tied,
    TwoInputs,
    image,
    mlp,
    row,
    sequence,
    tokens,
)

TOLERANCE = 1e-5


# Mercer.


def outputs(net, x, node=None):
    return net(tuple(x), node=node, precision="f64", threads=1)


def full_ntk(net, x, node=None, precision="f64"):
    """`[samples, outputs, samples, outputs]`."""
    kind = f'full(node="{node}")' if node else "full"
    return mc.ntk(net, tuple(x), kind=kind, precision=precision, threads=1)


def parameters(net):
    return {name: shape for name, shape in net.parameters}


# The same by torch.func.


def flat(results, output=0):
    if isinstance(results, dict):
        results = tuple(results.values())
    return results[output] if isinstance(results, tuple) else results


def double(module, inputs):
    """A copy in double precision and evaluation mode."""
    module = copy.deepcopy(module).double().eval()
    return module, [value.double() if value.is_floating_point() else value for value in inputs]


def torch_outputs(module, inputs, output=0):
    module, inputs = double(module, inputs)
    with torch.no_grad():
        return flat(module(*inputs), output).numpy()


def torch_ntk(module, inputs, output=0, precision="f64"):
    module, inputs = double(module, inputs) if precision == "f64" else (copy.deepcopy(module).eval(), inputs)
    trainable = {name: tensor.detach() for name, tensor in module.named_parameters() if tensor.requires_grad}

    rows = []
    # One sample at a time: vmap over samples has no rule for PReLU.
    for at in range(len(inputs[0])):
        sample = tuple(part[at : at + 1] for part in inputs)
        parts = jacrev(lambda values: flat(functional_call(module, values, sample), output).flatten())(trainable)
        rows.append(torch.cat([part.reshape(len(part), -1) for part in parts.values()], 1))
    jacobian = torch.stack(rows).detach()
    return torch.einsum("iap,jbp->iajb", jacobian, jacobian).numpy()


def distance(ours, theirs):
    """The largest difference, relative to the largest number."""
    assert ours.size == theirs.size, (ours.shape, theirs.shape)
    return np.abs(ours.reshape(theirs.shape) - theirs).max() / np.abs(theirs).max()


@pytest.fixture(autouse=True)
def slow_attention():
    """torch.func has no rule for the fast path."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    yield
    torch.backends.mha.set_fastpath_enabled(before)


@pytest.fixture(params=MODULES)
def case(request):
    make, inputs = MODULES[request.param]
    torch.manual_seed(0)
    return make(), inputs()


def trainable(module):
    named = module.named_parameters()
    return {name: tuple(tensor.shape) for name, tensor in named if tensor.requires_grad}


def arrays(inputs):
    return [value.numpy() for value in inputs]


def test_outputs(case):
    module, inputs = case
    net = mc.Network.from_torch(module, inputs)
    assert distance(outputs(net, inputs), torch_outputs(module, inputs)) <= TOLERANCE


def test_full_ntk(case):
    module, inputs = case
    net = mc.Network.from_torch(module, inputs)
    assert distance(full_ntk(net, inputs), torch_ntk(module, inputs)) <= TOLERANCE


@pytest.mark.parametrize("name", ["mlp", "cnn", "attention", "language"])
def test_full_ntk_in_single_precision(name):
    torch.manual_seed(0)
    make, inputs = MODULES[name]
    module, inputs = make(), inputs()
    ours = full_ntk(mc.Network.from_torch(module, inputs), inputs, precision="f32")
    theirs = torch_ntk(module, inputs, precision="f32")
    assert ours.dtype == theirs.dtype == np.float32
    assert distance(ours, theirs) <= 1e-4


def test_parameters(case):
    module, inputs = case
    assert parameters(mc.Network.from_torch(module, inputs)) == trainable(module)


def test_examples(case):
    module, inputs = case
    exported = export(module, inputs)
    assert len(exported.example_inputs) == len(exported.inputs) == len(inputs)
    for array, value in zip(exported.example_inputs, inputs):
        np.testing.assert_array_equal(array, value.numpy(), strict=True)
    (example,) = exported.example_outputs
    assert distance(example, torch_outputs(module, inputs)) <= TOLERANCE
    assert example.dtype == (np.float64 if next(module.parameters()).dtype == torch.float64 else np.float32)


def test_the_module_is_left_as_it_was(case):
    module, inputs = case
    module.train()
    part = next(child for child in module.modules() if child is not module)
    part.eval()
    gradient = torch.ones_like(next(module.parameters()))
    next(module.parameters()).grad = gradient
    state = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    objects = [id(tensor) for tensor in (*module.parameters(), *module.buffers())]
    versions = [tensor._version for tensor in (*module.parameters(), *module.buffers())]
    flags = [child.training for child in module.modules()]
    needs = [tensor.requires_grad for tensor in module.parameters()]
    hooks = [len(child._forward_hooks) + len(child._forward_pre_hooks) for child in module.modules()]
    random, fast = torch.get_rng_state(), torch.backends.mha.get_fastpath_enabled()
    before = [value.clone() for value in inputs]

    export(module, inputs)

    assert list(module.state_dict()) == list(state)
    assert all(torch.equal(tensor, state[name]) for name, tensor in module.state_dict().items())
    assert objects == [id(tensor) for tensor in (*module.parameters(), *module.buffers())]
    assert versions == [tensor._version for tensor in (*module.parameters(), *module.buffers())]
    assert flags == [child.training for child in module.modules()]
    assert needs == [tensor.requires_grad for tensor in module.parameters()]
    assert hooks == [len(child._forward_hooks) + len(child._forward_pre_hooks) for child in module.modules()]
    assert next(module.parameters()).grad is gradient and torch.equal(gradient, torch.ones_like(gradient))
    assert all(tensor.grad is None for tensor in list(module.parameters())[1:])
    assert torch.equal(random, torch.get_rng_state())
    assert fast == torch.backends.mha.get_fastpath_enabled()
    assert torch.is_grad_enabled()
    assert all(torch.equal(value, saved) for value, saved in zip(inputs, before))


def test_onnxruntime_reads_the_file(case):
    onnxruntime = pytest.importorskip("onnxruntime")
    module, inputs = case
    if next(module.parameters()).dtype == torch.float64:
        pytest.skip("onnxruntime has few operators in double precision")
    exported = export(module, inputs)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(exported.onnx, options, providers=["CPUExecutionProvider"])
    assert tuple(given.name for given in session.get_inputs()) == exported.inputs
    assert all(end.shape[0] == "batch" for end in (*session.get_inputs(), *session.get_outputs()))
    for count in (1, SAMPLES):
        given = {name: value[:count] for name, value in zip(exported.inputs, arrays(inputs))}
        (got,) = session.run(None, given)
        np.testing.assert_allclose(got, exported.example_outputs[0][:count], rtol=1e-4, atol=1e-4)


def test_keywords_give_the_names_of_the_inputs():
    torch.manual_seed(0)
    module, ids, x = TwoInputs(), tokens(), row(4)
    net = mc.Network.from_torch(module, {"image": x, "ids": ids, "scale": 2.0})
    assert net.inputs == ("image", "ids")
    theirs = double(module, ())[0](image=x.double(), ids=ids, scale=2.0).detach().numpy()
    assert distance(outputs(net, (x, ids)), theirs) <= TOLERANCE
    assert mc.Network.from_torch(module, (ids, x)).inputs == ("ids", "image")


def test_several_outputs():
    torch.manual_seed(0)
    module, x = Outputs(), row()
    assert [array.shape for array in export(module, x).example_outputs] == [(SAMPLES, 2), (SAMPLES, 1)]
    net = mc.Network.from_torch(module, x)
    assert net.outputs == ("mean", "spread")
    for at, node in enumerate(net.outputs):
        assert distance(outputs(net, [x], node), torch_outputs(module, [x], output=at)) <= TOLERANCE
        assert distance(full_ntk(net, [x], node), torch_ntk(module, [x], output=at)) <= TOLERANCE


def test_any_number_of_samples_in_the_example():
    torch.manual_seed(0)
    module, x = Attention(), sequence()
    for count in (1, 2, SAMPLES):
        assert export(module, x[:count]).example_outputs[0].shape == (count, 3)
        net = mc.Network.from_torch(module, x[:count])
        assert distance(outputs(net, [x]), torch_outputs(module, [x])) <= TOLERANCE


def test_inputs_that_are_not_used_are_left_out():
    class Module(nn.Module):
        def forward(self, unused, x):
            return torch.tanh(x)

    assert mc.Network.from_torch(Module(), (row(3), row())).inputs == ("x",)


def test_inputs_that_the_module_changes_stay_as_they_were():
    class Module(nn.Module):
        def forward(self, x):
            x += 1
            return torch.tanh(x)

    x = row()
    before = x.clone()
    exported = export(Module(), x)
    assert torch.equal(x, before)
    np.testing.assert_array_equal(exported.example_inputs[0], before.numpy())
    mc.Network.from_torch(Module(), x)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(dtype):
    torch.manual_seed(0)
    module, x = mlp().to(dtype), row().to(dtype)
    net = mc.Network.from_torch(module, x)
    x = x.float()
    assert distance(outputs(net, [x]), torch_outputs(module, [x])) <= TOLERANCE
    assert distance(full_ntk(net, [x]), torch_ntk(module, [x])) <= TOLERANCE


def test_a_network_that_differs_from_the_module_is_refused():
    torch.manual_seed(0)
    net, x = mc.Network.from_torch(mlp(), row()), row().numpy()
    with pytest.raises(mc.Error, match="differs from the module") as raised:
        net._check({"input": x}, (net(x) + 1,), 1e-4)
    assert raised.value.code == "export"
    with pytest.raises(mc.Error, match="from the module"):
        net._check({"input": x}, (net(x)[:, 0],), 1e-4)


def test_arrays_are_inputs_of_the_modules_type():
    torch.manual_seed(0)
    x = np.random.default_rng(0).normal(size=(3, 5))
    assert export(mlp(), x).example_outputs[0].dtype == np.float32
    assert export(mlp().double(), x).example_outputs[0].dtype == np.float64


def test_tied_parameters_are_one_and_equal_ones_are_several():
    exported = export(Tied(), row())
    assert exported.include == tuple(name for name, _ in Tied().named_parameters())
    assert "second.weight" not in exported.include
    assert {"first.bias", "second.bias", "third.bias", "third.weight", "other.weight"} <= set(exported.include)


def test_frozen_parameters_and_buffers_are_constants():
    exported = export(Frozen(), image())
    assert exported.include == ("norm.weight", "norm.bias", "head.weight", "head.bias")
    assert {"backbone.0.weight", "backbone.1.running_var", "places"} <= set(exported.exclude)


def test_an_input_called_like_a_parameter_gets_another_name():
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(5))

        def forward(self, weight):
            return weight * self.weight

    exported = export(Module(), row())
    assert exported.inputs == ("weight_2",) and exported.include == ("weight",)


# What cannot be exported.


class Branch(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x


class Number(nn.Module):
    def forward(self, x):
        return x * x.max().item()


class Outside(nn.Module):
    def forward(self, x):
        return x + torch.from_numpy(np.sort(x.detach().numpy()))


class Stop(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(5, 5), nn.Linear(5, 2)

    def forward(self, x):
        y = self.first(x).detach()
        return self.second(y)


class NoGradient(Stop):
    def forward(self, x):
        with torch.no_grad():
            y = self.first(x)
        return self.second(y)


class Logged(Stop):
    """A stopped gradient that the outputs do not depend on."""

    def forward(self, x):
        y = self.first(x)
        self.mean = float(y.detach().mean()) if not torch.jit.is_tracing() else 0.0
        return self.second(y + torch.zeros_like(self.first.bias))


class Rounding(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


class Rounded(Stop):
    def forward(self, x):
        return self.second(Rounding.apply(self.first(x)))


class Spectrum(nn.Module):
    def forward(self, x):
        return torch.linalg.eigvals(x[:, :, None] * x[:, None]).abs()


class Length(nn.Module):
    def forward(self, x):
        return x.reshape(len(x), -1)


class Loop(nn.Module):
    def forward(self, x):
        return torch.stack([torch.tanh(sample) for sample in x])


class Changing(Stop):
    def forward(self, x):
        self.first.bias += 0
        return self.first(x)


class Unregistered(nn.Module):
    def __init__(self):
        super().__init__()
        self.weights = [nn.Parameter(torch.randn(5))]

    def forward(self, x):
        return x * self.weights[0]


class Inner(nn.Module):
    """The part that fails is named, not the whole."""

    def __init__(self):
        super().__init__()
        self.part = nn.Sequential(nn.Linear(5, 5), Branch())

    def forward(self, x):
        return self.part(x)


class Checked(nn.Module):
    """Decisions by sizes, by numbers of the module, and in assertions are no obstacle."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 5)
        self.register_buffer("steps", torch.tensor(2))

    def forward(self, x):
        assert (x < 1e6).all()
        for _ in range(int(self.steps) * len(self.layer.bias) // int(x.shape[1])):
            x = torch.tanh(self.layer(x))
        return x if x.shape[1] > 3 else -x


@pytest.mark.parametrize(
    ("module", "words"),
    [
        (Branch, ["Branch.forward", "`if x.sum() > 0:`", "torch.where"]),
        (Inner, ["Branch.forward", "`if x.sum() > 0:`"]),
        (Number, ["Number.forward", "x.max().item()"]),
        (Outside, ["Outside", "np.sort"]),
        (Spectrum, ["Spectrum", "eigvals", "operators"]),
        (Stop, ["Stop.forward", "`y = self.first(x).detach()`", "requires_grad_(False)"]),
        (NoGradient, ["NoGradient.forward", "`y = self.first(x)`", "no_grad()"]),
        (Changing, ["Changing", "in-place", "parameters in forward"]),
        (Length, ["Length", "`return x.reshape(len(x), -1)`", "x.shape[0]"]),
        (Loop, ["Loop", "for sample in x", "x.shape[0]"]),
        (Unregistered, ["Unregistered", "requires grad", "nn.ParameterList"]),
    ],
)
def test_errors_name_the_part_the_reason_and_a_way_out(module, words, capfd):
    if module in (Unregistered, Length, Loop) and importlib.util.find_spec("onnxscript"):
        pytest.skip("torch.export can export it")
    with pytest.raises(ExportError) as raised:
        export(module(), row())
    assert capfd.readouterr() == ("", "")
    error = raised.value
    assert isinstance(error, mc.Error) and error.code == "export" and error.hints
    assert all(word in str(error) for word in words), str(error)
    assert all("\n" not in text for text in (error.message, *error.hints))
    copied = pickle.loads(pickle.dumps(error))
    assert type(copied) is ExportError and str(copied) == str(error)


def test_frozen_parameters_need_no_gradient():
    for make in (Stop, NoGradient):
        module = make()
        module.first.requires_grad_(False)
        assert export(module, row()).include == ("second.weight", "second.bias")
    assert len(export(Logged(), row()).include) == 4


def test_a_derivative_of_its_own_is_warned_of():
    with pytest.warns(mc.MercerWarning, match="Rounding") as caught:
        assert len(export(Rounded(), row()).include) == 4
    assert caught[0].filename == __file__


def test_buffers_that_change_are_restored():
    module = Counting()
    before = dict(module.named_buffers())
    export(module, row())
    after = dict(module.named_buffers())
    assert all(after[name] is tensor and tensor == 0 for name, tensor in before.items())


@pytest.mark.parametrize("name", ["cnn_untrained", "encoder_untrained", "tied", "frozen", "constants", "unused"])
def test_the_other_exporter(name, monkeypatch):
    """Where tracing fails, torch.export gives the same."""
    pytest.importorskip("onnxscript")

    def fail(*_):
        raise RuntimeError("no tracing")

    monkeypatch.setattr(exporters, "trace", fail)
    make, inputs = MODULES[name]
    torch.manual_seed(0)
    module, inputs = make(), inputs()
    net = mc.Network.from_torch(module, inputs)
    assert parameters(net) == trainable(module)
    assert distance(outputs(net, inputs), torch_outputs(module, inputs)) <= TOLERANCE
    assert distance(full_ntk(net, inputs), torch_ntk(module, inputs)) <= TOLERANCE


def test_a_failed_export_leaves_the_module_as_it_was():
    module, x = Inner().train(), row()
    random = torch.get_rng_state()
    with pytest.raises(ExportError):
        export(module, x)
    assert all(part.training for part in module.modules())
    assert torch.equal(random, torch.get_rng_state())


def test_harmless_decisions():
    torch.manual_seed(0)
    module, x = Checked(), row()
    net = mc.Network.from_torch(module, x)
    assert distance(full_ntk(net, [x]), torch_ntk(module, [x])) <= TOLERANCE


@pytest.mark.parametrize(
    ("module", "inputs", "word"),
    [
        (mlp, lambda: row(6), "example inputs"),
        (TwoInputs, lambda: (tokens(), row(4)[:2]), "first axes"),
        (mlp, lambda: torch.tensor(1.0), "first axes"),
        (mlp, tuple, "no tensor"),
        (lambda: nn.DataParallel(mlp()), row, "module.module"),
        (lambda: nn.LazyLinear(3), row, "call the module once"),
        (lambda: torch.tanh, row, "not a torch.nn.Module"),
    ],
)
def test_wrong_arguments_are_refused(module, inputs, word):
    with pytest.raises(ExportError, match=word):
        export(module(), inputs())
