"""Embeddings of the sentence transformer at other token lengths, with padding, by onnxruntime."""

import pathlib
import sys

import numpy as np
import onnxruntime

session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
random = np.random.default_rng(0)
for length in (7, 48):
    ids = random.integers(1000, 20000, (5, length))
    mask = np.ones((5, length), np.int64)
    for row, kept in enumerate((length, length - 1, length // 2, 3, 1)):
        mask[row, kept:] = 0
    ids[mask == 0] = 0
    (embeddings,) = session.run(None, {"input_ids": ids, "attention_mask": mask})[:1]
    path = pathlib.Path(sys.argv[2]) / f"minilm_{length}.npz"
    np.savez(path, input_ids=ids, attention_mask=mask, outputs=embeddings.astype(np.float64))
