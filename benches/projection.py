"""What it costs to project the gradients of a ResNet-20: TRAK's features and ours, in processor seconds per image.

    python benches/projection.py WEIGHTS.safetensors IMAGES.npy LABELS.npy MODEL.onnx MERCER [IMAGES] [FEATURES]

Needs torch, traker, safetensors and numpy. Both run on one thread. TRAK projects one gradient per image, that of its
model output function; ours are those of all ten outputs, summed by `total=true`.
"""

import resource
import subprocess
import sys
import tempfile
import time

import numpy as np
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional as F

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class Block(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.stride, self.more = stride, width - inputs

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.more or self.stride > 1:
            x = F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.more // 2, self.more // 2))
        return F.relu(x + y)


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        stages = [(16, 16, 1), (16, 32, 2), (32, 64, 2)]
        for at, (inputs, width, stride) in enumerate(stages, 1):
            blocks = [Block(inputs, width, stride)] + [Block(width, width, 1) for _ in range(2)]
            setattr(self, f"layer{at}", nn.Sequential(*blocks))
        self.linear = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.linear(x.mean((2, 3)))


def processor_seconds(who):
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def theirs(weights, x, y, features):
    from trak import TRAKer

    model = ResNet20()
    state = load_file(weights)
    model.load_state_dict({name.removeprefix("module."): value for name, value in state.items()}, strict=False)
    model.eval()
    right = (model(x[:200]).argmax(1) == y[:200]).double().mean().item()
    with tempfile.TemporaryDirectory() as folder:
        settings = {"save_dir": folder, "device": "cpu", "use_half_precision": False, "logging_level": 40}
        traker = TRAKer(model=model, task="image_classification", train_set_size=len(x), proj_dim=features, **settings)
        traker.load_checkpoint(model.state_dict(), model_id=0)
        start, before = time.perf_counter(), processor_seconds(resource.RUSAGE_SELF)
        for at in range(0, len(x), 32):
            batch = (x[at : at + 32], y[at : at + 32])
            traker.featurize(batch=batch, num_samples=len(batch[0]))
        return right, processor_seconds(resource.RUSAGE_SELF) - before, time.perf_counter() - start


def ours(mercer, net, images, features):
    kernel = f"trace(sketch=sjlt:{features}, total=true)"
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/x.npy", images)
        line = [mercer, "kernel", "--net", net, "--data", f"{folder}/x.npy", "--layout", "nhwc", "--scale", "1/255", "--kernel", kernel]
        line += ["--mean", ",".join(map(str, MEAN)), "--std", ",".join(map(str, STD)), "--as-features", "--threads", "1", "-q"]
        start, before = time.perf_counter(), processor_seconds(resource.RUSAGE_CHILDREN)
        subprocess.run([*line, "-o", f"{folder}/features.npy"], check=True)
        return processor_seconds(resource.RUSAGE_CHILDREN) - before, time.perf_counter() - start


def main(weights, images, labels, net, mercer, count=256, features=4096):
    torch.set_num_threads(1)
    count, features = int(count), int(features)
    images, y = np.load(images, mmap_mode="r")[:count], torch.from_numpy(np.array(np.load(labels)[:count], dtype="int64"))
    x = (np.asarray(images, dtype="f4") / 255 - np.array(MEAN, "f4")) / np.array(STD, "f4")
    x = torch.from_numpy(np.ascontiguousarray(x.transpose(0, 3, 1, 2)))
    own, wall = ours(mercer, net, np.asarray(images), features)
    print(f"Mercer: {1e3 * own / count:.1f} ms of a processor per image ({wall:.1f} s for {count}, {features} features)", flush=True)
    right, own, wall = theirs(weights, x, y, features)
    print(f"TRAK: {1e3 * own / count:.1f} ms of a processor per image ({wall:.1f} s for {count}; the network is right on {right:.0%})")


if __name__ == "__main__":
    main(*sys.argv[1:])
