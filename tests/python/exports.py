"""Exports well-known architectures with both of PyTorch's exporters, small and with random weights; with the new one
also at opset 23, where attention is one operator.

    python exports.py OUT [TEXT]

takes the networks whose name contains TEXT, and writes OUT/NAME.EXPORTER.onnx and OUT/NAME.npz: the inputs of three
samples, PyTorch's outputs in float64 (`outputs`) and `n_params`; for transformers also OUT/NAME.short.npz with fewer
tokens. Parameters are counted as PyTorch does; with BatchNorm folded into the convolution before it, as the legacy
exporter does in evaluation mode, `n_params_folded` counts the weights that are left. What cannot be exported leaves
OUT/NAME.EXPORTER.txt with the reason. The small networks of idioms.py, with their tangent kernels, go to OUT/idioms.
"""

import pathlib
import sys
import traceback
import warnings

import idioms
import numpy as np
import torch
import torchvision
import transformers
from torch import nn

SAMPLES, TOKENS = 3, 11


def folded(model, example):
    """Parameters with every BatchNorm that follows a convolution folded into it, which then has a bias."""
    count = sum(p.numel() for p in model.parameters())
    results, hooks = [], []

    def after_conv(module, _, output):
        results.append((output, module))

    def before_norm(module, inputs):
        nonlocal count
        for output, conv in results:
            if output is inputs[0]:
                # Scale and shift become the bias, or go into the one that is there.
                count -= module.num_features * (1 if conv.bias is None else 2)

    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            hooks.append(module.register_forward_hook(after_conv))
        if isinstance(module, nn.BatchNorm2d):
            hooks.append(module.register_forward_pre_hook(before_norm))
    with torch.no_grad():
        model(*example)
    for hook in hooks:
        hook.remove()
    return count


class First(nn.Module):
    """A transformer as a function of tensors with one output."""

    def __init__(self, model, pick):
        super().__init__()
        self.model, self.pick = model, pick

    def forward(self, *inputs):
        names = ("pixel_values",) if inputs[0].is_floating_point() else ("input_ids", "attention_mask")
        return self.pick(self.model(**dict(zip(names, inputs)), return_dict=True))


def image(size=64):
    return (torch.randn(SAMPLES, 3, size, size),), ["x"], [{0: "batch"}]


def text(vocabulary):
    ids = torch.randint(1, vocabulary, (SAMPLES, TOKENS))
    mask = torch.ones_like(ids)
    mask[1, 7:] = 0
    axes = {0: "batch", 1: "tokens"}
    return (ids, mask), ["input_ids", "attention_mask"], [axes, axes]


def vision(name):
    return lambda: (getattr(torchvision.models, name)(weights=None, num_classes=7), *image())


def vgg(name):
    """With a small classifier; at its own image size, because the legacy exporter has no adaptive pool to a larger one."""

    def make():
        model = getattr(torchvision.models, name)(weights=None, num_classes=7)
        model.classifier[0] = nn.Linear(model.classifier[0].in_features, 32)
        model.classifier[3] = nn.Linear(32, 32)
        model.classifier[6] = nn.Linear(32, 7)
        return model, *image(224)

    return make


def bert():
    config = transformers.BertConfig(
        vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37
    )
    model = transformers.BertModel(config, add_pooling_layer=False)
    return First(model, lambda out: out.last_hidden_state), *text(99)


def gpt2():
    config = transformers.GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64, use_cache=False)
    return First(transformers.GPT2LMHeadModel(config), lambda out: out.logits), *text(99)


def vit():
    config = transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=37, image_size=32, patch_size=8
    )
    model = transformers.ViTModel(config, add_pooling_layer=False)
    return First(model, lambda out: out.last_hidden_state), *image(32)


def encoder():
    """PyTorch's own attention, whose legacy export has the number of tokens of the example written into it."""
    layer = nn.TransformerEncoderLayer(32, 4, 48, batch_first=True, activation="gelu", dropout=0.0)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    return model, (torch.randn(SAMPLES, TOKENS, 32),), ["x"], [{0: "batch", 1: "tokens"}]


MODELS = {
    "resnet18": vision("resnet18"),
    "vgg11": vgg("vgg11"),
    "vgg11_bn": vgg("vgg11_bn"),
    "mobilenet_v2": vision("mobilenet_v2"),
    "densenet121": vision("densenet121"),
    "vit_torchvision": lambda: (
        torchvision.models.VisionTransformer(
            image_size=64, patch_size=16, num_layers=2, num_heads=4, hidden_dim=32, mlp_dim=48, num_classes=7
        ),
        *image(),
    ),
    "bert": bert,
    "gpt2": gpt2,
    "vit": vit,
    "encoder": encoder,
}


def settle(model):
    """Weights and statistics away from their first values: exporters store equal tensors once."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.03 * torch.randn_like(parameter))
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.2, 0.2)
            nn.init.uniform_(module.running_var, 0.6, 1.4)


def export(model, example, names, axes, path, dynamo, opset):
    # The example has two samples: a size of one would be taken for a constant.
    example = tuple(tensor[:2].clone() for tensor in example)
    if dynamo:
        dims = {}
        shapes = tuple(
            {axis: dims.setdefault(name, torch.export.Dim(name)) for axis, name in per.items()} for per in axes
        )
        if isinstance(model, First):
            shapes = (shapes,)
        torch.onnx.export(
            model,
            example,
            path,
            input_names=names,
            dynamic_shapes=shapes,
            dynamo=True,
            verbose=False,
            opset_version=opset,
        )
    else:
        torch.onnx.export(
            model, example, path, input_names=names, dynamic_axes=dict(zip(names, axes)), dynamo=False, opset_version=opset
        )


def save(model, inputs, names, counts, path):
    with torch.no_grad():
        outputs = model(*(t.double() if t.is_floating_point() else t for t in inputs)).numpy()
    arrays = {name: tensor.numpy() for name, tensor in zip(names, inputs)}
    np.savez(path, outputs=outputs, n_params=counts[0], n_params_folded=counts[1], **arrays)


def main():
    warnings.filterwarnings("ignore")
    out = pathlib.Path(sys.argv[1])
    (out / "idioms").mkdir(parents=True, exist_ok=True)
    only = sys.argv[2] if len(sys.argv) > 2 else ""
    idioms.write(out / "idioms", only)
    for name, make in MODELS.items():
        if only not in name:
            continue
        torch.manual_seed(0)
        model, example, names, axes = make()
        model.eval()
        settle(model)
        for exporter, opset in (("dynamo", 20), ("dynamo23", 23), ("legacy", 17)):
            path = out / f"{name}.{exporter}.onnx"
            if path.exists():
                continue
            if (name, exporter) == ("encoder", "legacy"):
                axes = [{0: "batch"}]
            try:
                export(model, example, names, axes, str(path), exporter != "legacy", opset)
            except Exception:
                path.with_suffix(".txt").write_text(traceback.format_exc())
                print(f"{name}: the {exporter} exporter failed; see {path.with_suffix('.txt').name}")
        counts = sum(p.numel() for p in model.parameters()), folded(model, example)
        model.double()
        save(model, example, names, counts, out / f"{name}.npz")
        if names != ["x"] or name == "encoder":
            save(model, [tensor[:, :5] for tensor in example], names, counts, out / f"{name}.short.npz")


if __name__ == "__main__":
    main()
