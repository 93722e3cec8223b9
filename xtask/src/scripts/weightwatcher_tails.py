"""Tails of the spectra of all weights of an ONNX file, by WeightWatcher and by powerlaw.

    weightwatcher_tails.py NETWORK.onnx OUT.json

OUT holds, for every tensor with two axes or more, the fit of WeightWatcher to the matrix with a row per output, its fit to the
tensor as it is (a convolution is then a set of matrices, one per position of its kernel, whose spectra are pooled), and that of
powerlaw with its defaults to the squared singular values of the first.
"""

import json
import logging
import sys
import warnings
from contextlib import redirect_stdout

import numpy as np
import onnx
import powerlaw
import weightwatcher
from onnx import helper, numpy_helper


def number(value):
    return float(value) if np.isfinite(value) else None


def watch(tensors):
    initializers = [numpy_helper.from_array(tensor, name) for name, tensor in tensors.items()]
    model = helper.make_model(helper.make_graph([], "weights", [], [], initializers))
    details = weightwatcher.WeightWatcher(model=model, log_level=logging.ERROR).analyze(plot=False)
    keys = {"alpha": "alpha", "x_min": "xmin", "distance": "D", "n_tail": "num_pl_spikes", "n": "num_evals"}
    rows = {row["name"]: row for _, row in details.iterrows()}
    return {name: {key: number(row[theirs]) for key, theirs in keys.items()} for name, row in rows.items()}


def power_law(matrix):
    squares = np.linalg.svd(matrix.astype(np.float64), compute_uv=False) ** 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = powerlaw.Fit(squares, verbose=False)
    return {"alpha": number(fit.power_law.alpha), "x_min": number(fit.xmin), "distance": number(fit.power_law.D)}


def main():
    network, out = sys.argv[1:]
    initializers = onnx.load(network).graph.initializer
    tensors = {each.name: numpy_helper.to_array(each) for each in initializers if len(each.dims) > 1}
    matrices = {name: np.ascontiguousarray(tensor.reshape(len(tensor), -1)) for name, tensor in tensors.items()}
    # It prints a line per small fit.
    with redirect_stdout(sys.stderr):
        same, pooled = watch(matrices), watch(tensors)
        found = {
            name: {"same": same.get(name), "pooled": pooled.get(name), "powerlaw": power_law(matrix)}
            for name, matrix in matrices.items()
        }
    with open(out, "w") as file:
        json.dump(found, file)
    print(f"WeightWatcher {weightwatcher.__version__}, powerlaw {powerlaw.__version__}")


if __name__ == "__main__":
    main()
