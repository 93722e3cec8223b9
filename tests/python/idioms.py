"""Small networks whose parameters are easily miscounted, as both of PyTorch's exporters write them.

    python idioms.py OUT [TEXT]

takes the networks whose name contains TEXT, and writes OUT/NAME.EXPORTER.onnx and OUT/NAME.npz: four inputs `x`, and in
float64 on the float32 weights PyTorch's `outputs`, `n_params` and `ntk`, the full tangent kernel over the module's
parameters by torch.func. Exporters compute with weights where they can: batch normalisation goes into the layer before
it, a weight norm into the weight. Such a file has the parameters of another module, the twin: `n_params_folded`,
`ntk_folded`, and `folded_EXPORTER` is 1. Debugging notes (stack traces) are removed from the files; those of the calls
and of the module's state stay.

The exporters are `dynamo` (opset 20), `dynamo21`, `dynamo23`, `legacy` (opset 17), and without folding `dynamo-kept`
(optimize=False) and `legacy-kept` (TrainingMode.PRESERVE, do_constant_folding=False).
"""

import contextlib
import copy
import io
import pathlib
import sys
import warnings

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from torch.func import functional_call, jacrev
from torch.nn.utils import parametrize
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from torch.nn.utils.parametrizations import weight_norm

SAMPLES = 4
DYNAMO = ("dynamo", "dynamo21", "dynamo23", "dynamo-kept")
LEGACY = ("legacy", "legacy-kept")
FOLDING = ("dynamo", "dynamo21", "dynamo23", "legacy")
KEPT_NOTES = ("pkg.torch.onnx.fx_node", "pkg.torch.export.ExportedProgram.graph_signature")


def settle(model):
    """Weights and statistics away from their first values."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
        for name, buffer in model.named_buffers():
            if name.endswith("running_mean"):
                buffer.uniform_(-0.3, 0.3)
            if name.endswith("running_var"):
                buffer.uniform_(0.5, 1.5)
    return model


def group_norm():
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, bias=False),
        nn.GroupNorm(2, 6),
        nn.ReLU(),
        nn.Conv2d(6, 4, 1),
        nn.GroupNorm(4, 4, affine=False),
        nn.GroupNorm(1, 4),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(36, 3),
    )


def instance_norm():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.InstanceNorm2d(4, affine=True),
        nn.Tanh(),
        nn.Conv2d(4, 4, 1),
        nn.InstanceNorm2d(4),
        nn.Tanh(),
        nn.Conv2d(4, 2, 1),
        nn.InstanceNorm2d(2, affine=True),
        nn.Flatten(),
        nn.Linear(18, 2),
    )


def batch_norm():
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, bias=False),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.Conv2d(6, 4, 1),
        nn.BatchNorm2d(4),
        nn.Tanh(),
        nn.BatchNorm2d(4),
        nn.Flatten(),
        nn.Linear(36, 3),
    )


def batch_norm_dense():
    """Normalisations that tracing keeps and the new exporter folds."""
    return nn.Sequential(
        nn.Flatten(),
        nn.Linear(75, 4),
        nn.BatchNorm1d(4),
        nn.Tanh(),
        nn.Linear(4, 2),
    )


def fused(model):
    layers = list(copy.deepcopy(model).eval())
    for at in range(len(layers) - 1, 0, -1):
        before, norm = layers[at - 1], layers[at]
        if isinstance(norm, nn.BatchNorm2d) and isinstance(before, nn.Conv2d):
            layers[at - 1 : at + 1] = [fuse_conv_bn_eval(before, norm)]
        elif isinstance(norm, nn.BatchNorm1d) and isinstance(before, nn.Linear):
            layers[at - 1 : at + 1] = [fuse_linear_bn_eval(before, norm)]
    return nn.Sequential(*layers)


def normed_weights():
    return nn.Sequential(
        weight_norm(nn.Conv2d(3, 4, 3)),
        nn.Tanh(),
        nn.Flatten(),
        weight_norm(nn.Linear(36, 5)),
        nn.Tanh(),
        nn.Linear(5, 2),
    )


def plain_weights(model):
    layers = []
    for layer in model:
        if parametrize.is_parametrized(layer):
            plain = nn.Conv2d(3, 4, 3) if isinstance(layer, nn.Conv2d) else nn.Linear(36, 5)
            plain.load_state_dict({"weight": layer.weight.detach(), "bias": layer.bias.detach()})
            layer = plain
        layers.append(layer)
    return nn.Sequential(*layers)


class Encoder(nn.Module):
    """Two layers of a transformer, which are no copies of each other."""

    def __init__(self, clones):
        super().__init__()
        layers = [nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, dropout=0.0, activation="gelu") for _ in "ab"]
        if clones:
            layers[1].load_state_dict(layers[0].state_dict())
        self.layers = nn.ModuleList(layers)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 3)
        nn.init.zeros_(self.head.bias)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))


class Tied(nn.Module):
    """A weight, a normalisation and a slope that are used twice, beside some of their own with the same numbers."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(5, 5, bias=False), nn.Linear(5, 5)
        self.second.weight = self.first.weight
        self.norm, self.other = nn.LayerNorm(5), nn.LayerNorm(5)
        self.slope, self.slope_2 = nn.PReLU(), nn.PReLU()
        self.last = nn.Linear(5, 2)
        nn.init.zeros_(self.second.bias)

    def forward(self, x):
        x = self.slope(self.norm(self.first(x)))
        x = self.slope(self.norm(self.second(x)))
        return self.last(self.slope_2(self.other(x)))


class Scalars(nn.Module):
    """Parameters of one number and of equal numbers."""

    def __init__(self):
        super().__init__()
        self.residual = nn.Parameter(torch.tensor(0.7))
        self.temperature = nn.Parameter(torch.tensor([1.5]))
        self.layer_scale = nn.Parameter(1e-2 * torch.ones(6))
        self.power = nn.Parameter(torch.tensor([2.0]))
        self.wide, self.norm = nn.Linear(6, 6), nn.LayerNorm(6, bias=False)
        self.rms = nn.Parameter(torch.ones(6))
        self.slope = nn.PReLU(num_parameters=1)
        self.narrow, self.last = nn.Linear(6, 1), nn.Linear(1, 3)

    def forward(self, x):
        x = x + self.residual * self.slope(self.wide(x))
        x = x + self.layer_scale * torch.tanh(self.norm(x))
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.rms
        x = x.abs().clamp(min=1e-3).pow(self.power) / 2.0
        return self.last(torch.tanh(self.narrow(x))) / self.temperature


class Buffers(nn.Module):
    """Numbers that are no parameters, some of them equal to parameters. A traced file does not tell buffers apart."""

    def __init__(self):
        super().__init__()
        self.register_buffer("places", torch.randn(6))
        self.register_buffer("two", torch.tensor(2.0))
        self.factor = nn.Parameter(torch.tensor(2.0))
        self.norm, self.plain = nn.LayerNorm(6), nn.LayerNorm(6, elementwise_affine=False)
        self.last = nn.Linear(6, 2)

    def forward(self, x):
        x = self.plain(torch.tanh(self.norm(x + self.places) * self.factor))
        return self.last(x.pow(2) * self.two + 1.0)


class ScaledBias(nn.Module):
    """The parametrisation of neural tangent kernels with an output of one number: its bias carries a factor."""

    def __init__(self, factor=0.3):
        super().__init__()
        self.first = nn.Linear(5, 7)
        self.weight, self.bias = nn.Parameter(torch.randn(7, 1)), nn.Parameter(torch.randn(1))
        self.factor = factor

    def forward(self, x):
        bias = self.bias if self.factor is None else self.factor * self.bias
        return torch.tanh(self.first(x)) @ self.weight * 0.4 + bias


def unscaled_bias(model):
    model = copy.deepcopy(model)
    model.factor, model.bias.data = None, 0.3 * model.bias.data
    return model


class FusedGelu(nn.Module):
    """What onnxruntime makes of a product, a bias and a GELU; written by hand below."""

    def __init__(self, fast):
        super().__init__()
        self.first, self.second, self.fast = nn.Linear(5, 6), nn.Linear(6, 2), fast

    def forward(self, x):
        hidden = nn.functional.gelu(self.first(x), approximate="tanh" if self.fast else "none")
        return self.second(hidden)

    def write(self, path):
        def tensor(name, values):
            return numpy_helper.from_array(values.detach().numpy().astype(np.float32), name)

        op = "FastGelu" if self.fast else "BiasGelu"
        nodes = [
            helper.make_node("MatMul", ["x", "first.weight"], ["product"]),
            helper.make_node(op, ["product", "first.bias"], ["hidden"], domain="com.microsoft"),
            helper.make_node("Gemm", ["hidden", "second.weight", "second.bias"], ["y"], transB=1),
        ]
        tensors = [
            tensor("first.weight", self.first.weight.T.contiguous()),
            tensor("first.bias", self.first.bias),
            tensor("second.weight", self.second.weight),
            tensor("second.bias", self.second.bias),
        ]
        ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", s]) for n, s in (("x", 5), ("y", 2))]
        graph = helper.make_graph(nodes, "gelu", ends[:1], ends[1:], tensors)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
        onnx.save(helper.make_model(graph, producer_name="by-hand", opset_imports=opsets, ir_version=8), path)


IMAGE, ROW, WIDE, TOKENS = (3, 5, 5), (5,), (6,), (3, 8)

# Name: (module, shape of a sample, exporters, twin of the files in which weights were computed with, those exporters).
IDIOMS = {
    "group_norm": (lambda: settle(group_norm()), IMAGE, DYNAMO + LEGACY, None, ()),
    "group_norm_untrained": (group_norm, IMAGE, DYNAMO + LEGACY, None, ()),
    "instance_norm": (lambda: settle(instance_norm()), IMAGE, DYNAMO + LEGACY, None, ()),
    "instance_norm_untrained": (instance_norm, IMAGE, DYNAMO + LEGACY, None, ()),
    "batch_norm": (lambda: settle(batch_norm()), IMAGE, DYNAMO + LEGACY, fused, FOLDING),
    "batch_norm_untrained": (batch_norm, IMAGE, ("dynamo-kept", "legacy-kept"), None, ()),
    "batch_norm_dense": (
        lambda: settle(batch_norm_dense()),
        IMAGE,
        DYNAMO + LEGACY,
        fused,
        ("dynamo", "dynamo21", "dynamo23"),
    ),
    "transformer": (lambda: settle(Encoder(False)), TOKENS, DYNAMO + LEGACY, None, ()),
    "transformer_untrained": (lambda: Encoder(False), TOKENS, DYNAMO + LEGACY, None, ()),
    "transformer_clones": (lambda: Encoder(True), TOKENS, DYNAMO, None, ()),
    "tied": (lambda: settle(Tied()), ROW, DYNAMO + LEGACY, None, ()),
    "tied_untrained": (Tied, ROW, DYNAMO + LEGACY, None, ()),
    "weight_norm": (
        lambda: settle(normed_weights()),
        IMAGE,
        DYNAMO + LEGACY,
        plain_weights,
        FOLDING,
    ),
    "scalars": (lambda: settle(Scalars()), WIDE, DYNAMO + LEGACY, None, ()),
    "scalars_untrained": (Scalars, WIDE, DYNAMO + LEGACY, None, ()),
    "buffers": (Buffers, WIDE, DYNAMO, None, ()),
    "scaled_bias": (ScaledBias, ROW, DYNAMO + LEGACY, unscaled_bias, FOLDING),
    "fast_gelu": (lambda: FusedGelu(True), ROW, ("hand",), None, ()),
    "bias_gelu": (lambda: FusedGelu(False), ROW, ("hand",), None, ()),
}


def tangent_kernel(model, x):
    """Over all parameters, `[samples, outputs, samples, outputs]`."""
    parameters = {name: parameter.detach() for name, parameter in model.named_parameters()}

    def outputs(values, sample):
        return functional_call(model, values, (sample,)).flatten()

    rows = []
    for at in range(len(x)):
        jacobian = jacrev(outputs)(parameters, x[at : at + 1])
        rows.append(torch.cat([part.reshape(len(part), -1) for part in jacobian.values()], 1))
    jacobian = torch.stack(rows).detach()
    return torch.einsum("iap,jbp->iajb", jacobian, jacobian).numpy()


def bare(model):
    """Without debugging notes."""
    model = copy.deepcopy(model)
    for holder in [model, model.graph, *model.graph.node, *model.graph.initializer, *model.graph.value_info]:
        del holder.metadata_props[:]
    return model


def trimmed(model):
    """With the notes of calls and state alone."""
    notes = [
        [(entry.key, entry.value) for entry in holder.metadata_props if entry.key in KEPT_NOTES]
        for holder in [model.graph, *model.graph.node]
    ]
    model = bare(model)
    for holder, entries in zip([model.graph, *model.graph.node], notes):
        for key, value in entries:
            holder.metadata_props.add(key=key, value=value)
    return model


def export(model, x, path, exporter):
    if exporter == "hand":
        model.write(path)
        return
    options = {"input_names": ["x"], "output_names": ["y"], "verbose": False}
    if exporter.startswith("dynamo"):
        options |= {"dynamo": True, "dynamic_shapes": ({0: torch.export.Dim("batch")},), "external_data": False}
        options["opset_version"] = {"dynamo21": 21, "dynamo23": 23}.get(exporter, 20)
        options["optimize"] = exporter != "dynamo-kept"
    else:
        options |= {"dynamo": False, "dynamic_axes": {"x": {0: "batch"}}, "opset_version": 17}
        if exporter == "legacy-kept":
            options |= {"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False}
    with contextlib.redirect_stdout(io.StringIO()):
        torch.onnx.export(model, (x[:2].clone(),), path, **options)
    onnx.save(trimmed(onnx.load(path)), path)


def write(out, only=""):
    torch.backends.mha.set_fastpath_enabled(False)
    for name, (make, shape, exporters, twin, folding) in IDIOMS.items():
        if only not in name:
            continue
        torch.manual_seed(0)
        model, x = make().eval(), torch.randn(SAMPLES, *shape)
        for exporter in exporters:
            path = out / f"{name}.{exporter}.onnx"
            if not path.exists():
                export(model, x, str(path), exporter)
        arrays = {f"folded_{exporter}": int(exporter in folding) for exporter in exporters}
        twins = {"": model} | ({"_folded": twin(model)} if twin else {})
        for suffix, module in twins.items():
            module = copy.deepcopy(module).double()
            arrays |= {"x": x.numpy(), "outputs": module(x.double()).detach().numpy()}
            arrays[f"n_params{suffix}"] = sum(p.numel() for p in module.parameters())
            arrays[f"ntk{suffix}"] = tangent_kernel(module, x.double())
        np.savez(out / f"{name}.npz", **arrays)


def main():
    warnings.filterwarnings("ignore")
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    write(out, sys.argv[2] if len(sys.argv) > 2 else "")


if __name__ == "__main__":
    main()
