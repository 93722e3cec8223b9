"""PyTorch's side of the benchmarks: reads the name of a case, answers with the seconds of one repetition, and those of
the package mercer for the same kernel where it is installed.

One thread. A repetition of a step is a forward pass, a cross-entropy loss and a backward pass, gradients set to None before.
Tangent kernels are written as one would by hand where a network is a plain MLP (products of activations and deltas), and by
`torch.func` (per-sample gradients, one output at a time) where it has convolutions.
"""

import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

try:
    import mercer
except ImportError:
    mercer = None

torch.set_num_threads(1)
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.first = nn.Conv2d(channels, out, 3, stride, 1)
        self.second = nn.Conv2d(out, out, 3, 1, 1)
        self.pad = 0 if stride == 1 else out // 4
        self.stride = stride

    def forward(self, x):
        y = self.second(F.relu(self.first(x)))
        if self.pad:
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, self.pad, self.pad))
        return F.relu(x + y)


class ResNet20(nn.Module):
    """The CIFAR ResNet-20 with its batch normalisations folded into the convolutions."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, 1, 1)
        blocks, channels = [], 16
        for out, stride in ((16, 1), (32, 2), (64, 2)):
            for index in range(3):
                blocks.append(Block(channels, out, stride if index == 0 else 1))
                channels = out
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.blocks(F.relu(self.stem(x))).mean((2, 3)))


def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 49, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


CASES = {
    "step_mlp_784-512-512-10_b256": (mlp, (256, 784), False),
    "step_cnn_conv5x32-conv5x64_28x28_b128": (cnn, (128, 1, 28, 28), False),
    "step_conv3x3_64-64_32x32_b32": (lambda: nn.Conv2d(64, 64, 3, padding=1), (32, 64, 32, 32), True),
    "step_resnet20_32x32_b32": (ResNet20, (32, 3, 32, 32), False),
}
READY = {}
PACKAGE = {}


def small_cnn():
    return nn.Sequential(
        nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(512, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip


def by_gradients(module, x, trace):
    parameters = dict(module.named_parameters())

    def output(parameters, x, weights):
        return (torch.func.functional_call(module, parameters, x[None]) * weights).sum()

    gram = 0
    for weights in torch.eye(10) if trace else torch.ones(1, 10):
        gradients = torch.func.vmap(torch.func.grad(output), (None, 0, None))(parameters, x, weights)
        for gradient in gradients.values():
            gradient = gradient.reshape(len(x), -1)
            gram = gram + gradient @ gradient.T
    return gram


@torch.no_grad()
def by_factors(module, x, kind):
    first, second, last = module[0], module[2], module[4]
    h1 = first(x)
    a1 = F.relu(h1)
    h2 = second(a1)
    a2 = F.relu(h2)
    slope1, slope2 = (h1 > 0).float(), (h2 > 0).float()
    lefts = [x @ x.T + 1, a1 @ a1.T + 1, a2 @ a2.T + 1]
    n = len(x)
    if kind == "pseudo":
        d3 = torch.ones(n, 10)
        d2 = (d3 @ last.weight) * slope2
        d1 = (d2 @ second.weight) * slope1
        return sum(left * (d @ d.T) for left, d in zip(lefts, (d1, d2, d3)))
    d2 = last.weight[None] * slope2[:, None]
    d1 = (d2 @ second.weight) * slope1[:, None]
    if kind == "trace":
        d1, d2 = d1.reshape(n, -1), d2.reshape(n, -1)
        return lefts[0] * (d1 @ d1.T) + lefts[1] * (d2 @ d2.T) + 10 * lefts[2]
    d1, d2 = d1.reshape(10 * n, -1), d2.reshape(10 * n, -1)
    lefts = [left.repeat_interleave(10, 0).repeat_interleave(10, 1) for left in lefts]
    return lefts[0] * (d1 @ d1.T) + lefts[1] * (d2 @ d2.T) + lefts[2] * torch.eye(10).repeat(n, n)


KERNELS = {
    "ntk_full_mlp_784-512-512-10_n100": (mlp, (100, 784), lambda m, x: by_factors(m, x, "full")),
    "ntk_trace_mlp_784-512-512-10_n500": (mlp, (500, 784), lambda m, x: by_factors(m, x, "trace")),
    "ntk_pseudo_mlp_784-512-512-10_n1000": (mlp, (1000, 784), lambda m, x: by_factors(m, x, "pseudo")),
    "ntk_trace_cnn_conv5x16-conv5x32_28x28_n200": (small_cnn, (200, 1, 28, 28), lambda m, x: by_gradients(m, x, True)),
    "ntk_pseudo_cnn_conv5x16-conv5x32_28x28_n500": (small_cnn, (500, 1, 28, 28), lambda m, x: by_gradients(m, x, False)),
    "ntk_trace_resnet20_32x32_n16": (ResNet20, (16, 3, 32, 32), lambda m, x: by_gradients(m, x, True)),
    "ntk_pseudo_resnet20_32x32_n64": (ResNet20, (64, 3, 32, 32), lambda m, x: by_gradients(m, x, False)),
}


def kernel_seconds(name):
    make, shape, kernel = KERNELS[name]
    if name not in READY:
        READY[name] = (make(), torch.randn(shape))
        kernel(*READY[name])
    start = time.perf_counter()
    kernel(*READY[name])
    return time.perf_counter() - start


def seconds(name):
    if name in KERNELS:
        return kernel_seconds(name)
    if name not in CASES:
        return None
    if name not in READY:
        make, shape, wants_input = CASES[name]
        READY[name] = (make(), torch.randn(shape, requires_grad=wants_input), torch.randint(0, 10, (shape[0],)))
    module, x, labels = READY[name]

    def once():
        module.zero_grad(set_to_none=True)
        x.grad = None
        y = module(x)
        loss = F.cross_entropy(y, labels) if y.dim() == 2 else y.sum()
        loss.backward()

    once()
    start = time.perf_counter()
    once()
    repeats = max(1, min(100, int(0.1 / (time.perf_counter() - start))))
    start = time.perf_counter()
    for _ in range(repeats):
        once()
    return (time.perf_counter() - start) / repeats


def package_seconds(name):
    """The same kernel of the same module, from the package mercer if it is installed; one thread."""
    if mercer is None or name not in KERNELS:
        return None
    if name not in PACKAGE:
        module, x = READY[name]
        kernel = mercer.Kernel(name.split("_")[1], mercer.Network.from_torch(module, x[:2]))
        PACKAGE[name] = (kernel, x.numpy())
        kernel(x.numpy(), threads=1)
    kernel, x = PACKAGE[name]
    start = time.perf_counter()
    kernel(x, threads=1)
    return time.perf_counter() - start


for line in sys.stdin:
    case = line.strip()
    answers = (seconds(case), package_seconds(case))
    print(*("none" if answer is None else repr(answer) for answer in answers), flush=True)
