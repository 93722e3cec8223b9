"""Modules of PyTorch that exercise what exporters and importers do, with inputs for each."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.parametrizations import weight_norm

SAMPLES = 4


def settle(module):
    """Statistics and constant parameters away from their first values."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        for name, buffer in module.named_buffers():
            if name.endswith("running_mean"):
                buffer.uniform_(-0.3, 0.3)
            if name.endswith("running_var"):
                buffer.uniform_(0.5, 1.5)
    return module


def image(channels=3, size=6):
    return torch.randn(SAMPLES, channels, size, size)


def tokens(length=5, words=11):
    return torch.randint(0, words, (SAMPLES, length))


def mlp():
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))


def cnn():
    return nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1, bias=False),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 4, 2),
        nn.BatchNorm2d(4),
        nn.Tanh(),
        nn.Dropout2d(0.3),
        nn.Flatten(),
        nn.Linear(16, 4),
        nn.BatchNorm1d(4),
        nn.ReLU(),
        nn.Linear(4, 3),
    )


def group_norm():
    return nn.Sequential(
        nn.Conv2d(3, 6, 3),
        nn.GroupNorm(2, 6),
        nn.ReLU(),
        nn.Conv2d(6, 4, 1),
        nn.GroupNorm(4, 4, affine=False),
        nn.GroupNorm(1, 4),
        nn.Flatten(),
        nn.Linear(64, 3),
    )


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.after = nn.LayerNorm(8), nn.LayerNorm(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        y = self.before(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return self.head(self.after(x).mean(1))


class Language(nn.Module):
    """A causal language model whose embedding is its output layer, too."""

    def __init__(self, tied=True, words=11):
        super().__init__()
        self.words, self.places = nn.Embedding(words, 8), nn.Parameter(torch.randn(5, 8))
        self.query, self.key, self.value = (nn.Linear(8, 8, bias=False) for _ in range(3))
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, words, bias=False)
        self.drop = nn.Dropout(0.1)
        self.head.weight = self.words.weight if tied else nn.Parameter(self.words.weight.detach().clone())

    def forward(self, ids):
        x = self.drop(self.words(ids) + self.drop(self.places))
        x = x + F.scaled_dot_product_attention(self.query(x), self.key(x), self.value(x), is_causal=True)
        return self.head(self.norm(x))


def encoder():
    layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
    return nn.TransformerEncoder(layer, 2)


class Residual(nn.Module):
    class Block(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.conv1, self.norm1 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)
            self.conv2, self.norm2 = nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width)

        def forward(self, x):
            y = F.relu(self.norm1(self.conv1(x)), inplace=True)
            y = self.norm2(self.conv2(y))
            y += x
            return F.relu(y)

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 4, 3, stride=2, padding=1)
        self.layer1 = nn.Sequential(self.Block(4), self.Block(4))
        self.head = nn.Linear(4, 3)

    def forward(self, x):
        return self.head(self.layer1(self.stem(x)).mean((2, 3)))


def grouped():
    return nn.Sequential(
        nn.Conv2d(4, 8, 3, groups=4, padding=1),
        nn.ReLU6(),
        nn.Conv2d(8, 8, 3, groups=8, stride=2, bias=False),
        nn.BatchNorm2d(8),
        nn.Hardswish(),
        nn.Conv2d(8, 6, 1, groups=2),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(6, 2),
    )


class Smooth(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(5, 6), nn.Linear(6, 6), nn.Linear(6, 3)
        self.slope = nn.PReLU(6)

    def forward(self, x):
        x = F.gelu(self.a(x)) + F.gelu(self.a(x), approximate="tanh")
        x = F.silu(self.b(x)) * torch.sigmoid(self.b(x)) + F.elu(x) + F.softplus(x) + F.mish(x)
        return self.c(self.slope(F.leaky_relu(x)))


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.image, self.head = nn.Embedding(11, 6), nn.Linear(4, 6), nn.Linear(6, 2)

    def forward(self, ids, image, scale=1.0):
        return self.head(torch.tanh(self.words(ids).mean(1) * scale + self.image(image)))


class Outputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.mean, self.spread = nn.Linear(5, 6), nn.Linear(6, 2), nn.Linear(6, 1)

    def forward(self, x):
        x = torch.tanh(self.body(x))
        return {"mean": self.mean(x), "spread": F.softplus(self.spread(x))}


class Frozen(nn.Module):
    """A frozen backbone, whose position embedding goes through dropout."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 6))
        self.places, self.drop = nn.Parameter(torch.randn(6)), nn.Dropout(0.2)
        for parameter in self.parameters():
            parameter.requires_grad_(False)
        self.norm, self.head = nn.LayerNorm(6), nn.Linear(6, 3)

    def forward(self, x):
        return self.head(torch.tanh(self.norm(self.backbone(x) + self.drop(self.places))))


class Constants(nn.Module):
    """Buffers and numbers that look like weights, and single numbers that are parameters."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mixing", torch.randn(5, 5))
        self.register_buffer("shift", torch.randn(5), persistent=False)
        self.gain, self.power = nn.Parameter(torch.tensor(0.7)), nn.Parameter(torch.tensor([2.0]))
        self.low = nn.Parameter(torch.tensor(0.1))
        self.hidden = [torch.randn(5)]
        self.head = nn.Linear(5, 2)

    def forward(self, x):
        x = x @ self.mixing + self.shift + self.hidden[0]
        x = x @ torch.arange(25, dtype=x.dtype).reshape(5, 5).div(25)
        x = torch.exp(self.low) * x + torch.maximum(x, self.low)
        return self.head(self.gain * x.abs().clamp(min=0.05).pow(self.power))


class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.spare = nn.Linear(5, 2), nn.Linear(7, 2)

    def forward(self, x):
        return self.used(x)


class Tied(nn.Module):
    """Layers that are tied, and layers that are merely equal."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = (nn.Linear(5, 5) for _ in range(3))
        self.third.load_state_dict(self.first.state_dict())
        self.second.weight = self.first.weight
        self.norm, self.other = nn.LayerNorm(5), nn.LayerNorm(5)
        for layer in (self.first, self.second, self.third):
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        x = torch.tanh(self.norm(self.first(x)))
        x = torch.tanh(self.norm(self.second(x)))
        return self.other(self.third(x))


class Shared(nn.Module):
    """Parameters of one storage that are not one object."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(5, 5), nn.Linear(5, 5)
        self.second.weight = nn.Parameter(self.first.weight.data)

    def forward(self, weight):
        return self.second(torch.tanh(self.first(weight)))


class Padded(nn.Module):
    """Padding has no gradient, but a row of numbers."""

    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(4, 6, padding_idx=1), nn.Linear(6, 2)
        nn.init.normal_(self.words.weight)

    def forward(self, ids):
        return self.head(torch.tanh(self.words(input=ids)).sum(1))


class Counting(nn.Module):
    """Its buffers change in every call."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("new", torch.zeros(()))
        self.layer = nn.Linear(5, 2)

    def forward(self, x):
        self.calls += 1
        self.new = self.calls + 1
        return self.layer(x)


def rms_norm():
    return nn.Sequential(nn.Linear(5, 6), nn.RMSNorm(6, eps=1e-3), nn.GELU(), nn.RMSNorm(6, eps=1e-3), nn.Linear(6, 2))


def normed_weights():
    return nn.Sequential(weight_norm(nn.Linear(5, 6)), nn.Tanh(), nn.Linear(6, 2))


def row(width=5):
    return torch.randn(SAMPLES, width)


def sequence():
    return torch.randn(SAMPLES, 5, 8)


# Name: (module, inputs).
MODULES = {
    "mlp": (mlp, lambda: (row(),)),
    "cnn": (lambda: settle(cnn()), lambda: (image(),)),
    "cnn_untrained": (cnn, lambda: (image(),)),
    "group_norm": (group_norm, lambda: (image(),)),
    "attention": (Attention, lambda: (sequence(),)),
    "language": (Language, lambda: (tokens(),)),
    "language_untied": (lambda: Language(tied=False), lambda: (tokens(),)),
    "encoder_untrained": (encoder, lambda: (sequence(),)),
    "encoder": (lambda: settle(encoder()), lambda: (sequence(),)),
    "residual": (lambda: settle(Residual()), lambda: (image(),)),
    "grouped": (lambda: settle(grouped()), lambda: (image(4),)),
    "smooth": (Smooth, lambda: (row(),)),
    "two_inputs": (TwoInputs, lambda: (tokens(), row(4))),
    "double": (lambda: settle(cnn()).double(), lambda: (image().double(),)),
    "double_language": (lambda: Language().double(), lambda: (tokens(),)),
    "frozen": (lambda: settle(Frozen()), lambda: (image(),)),
    "constants": (Constants, lambda: (row(),)),
    "unused": (Unused, lambda: (row(),)),
    "tied": (Tied, lambda: (row(),)),
    "shared_storage": (Shared, lambda: (row(),)),
    "padded": (Padded, lambda: (tokens(words=4),)),
    "rms_norm": (rms_norm, lambda: (row(),)),
    "weight_norm": (normed_weights, lambda: (row(),)),
}
