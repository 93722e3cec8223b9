"""Makes classic.json: values and gradients of classic kernels by scikit-learn, angles by mpmath.

python tests/golden/classic/make.py  (numpy 2, scikit-learn 1.x, mpmath)
"""

import json
import pathlib

import mpmath
import numpy as np
from sklearn.gaussian_process.kernels import (
    ConstantKernel as C,
    ExpSineSquared,
    Matern,
    RBF,
    RationalQuadratic,
)
from sklearn.metrics import pairwise

rng = np.random.default_rng(0)
small = rng.standard_normal((7, 3))
small[4] = small[1]  # a duplicate
small[5] = 0  # no direction
small[6] = -2 * small[1]  # opposite
near = small + 1e-9 * rng.standard_normal(small.shape)  # where products cancel
wide = rng.standard_normal((6, 40)) + 3  # long enough for matrix products
wide[3] = wide[0]
wide[4] = wide[1] + 1e-7 * rng.standard_normal(40)
line = np.sort(rng.uniform(-3, 3, (8, 1)), axis=0)
data = {"small": small, "near": near, "wide": wide, "line": line}
for key in data:  # every number exact in its text
    data[key] = np.array(json.loads(json.dumps(data[key].tolist())))
weights = {key: rng.standard_normal((len(x), len(x))) for key, x in data.items()}


def arc(order):
    def value(x, y):
        mpmath.mp.dps = 40
        x, y = [mpmath.mpf(float(v)) for v in x], [mpmath.mpf(float(v)) for v in y]
        dot = lambda a, b: mpmath.fsum(u * v for u, v in zip(a, b))
        a, b = mpmath.sqrt(dot(x, x)), mpmath.sqrt(dot(y, y))
        if a == 0 or b == 0:
            t = mpmath.pi / 2
        else:
            t = mpmath.acos(max(-1, min(1, dot(x, y) / (a * b))))
        j = [
            mpmath.pi - t,
            mpmath.sin(t) + (mpmath.pi - t) * mpmath.cos(t),
            3 * mpmath.sin(t) * mpmath.cos(t) + (mpmath.pi - t) * (1 + 2 * mpmath.cos(t) ** 2),
        ][order]
        return float((a * b) ** order * j / mpmath.pi)

    return lambda X, Y: np.array([[value(x, y) for y in Y] for x in X])


cases = []


def case(text, function, left, right=None):
    x, y = data[left], data[right or left]
    cases.append({"kernel": text, "x": left, "y": right or left, "values": function(x, y).tolist()})


def process(text, kernel, left, right=None, order=None):
    """A kernel of a Gaussian process: the derivatives by the logarithms of its parameters, too."""
    case(text, kernel, left, right)
    if right is None:
        _, derivatives = kernel(data[left], eval_gradient=True)
        gradient = np.einsum("ij,ijk->k", weights[left], derivatives)
        order = order or range(len(gradient))
        cases[-1]["gradient"] = [float(gradient[k]) for k in order]


for pair in [("small",), ("small", "near"), ("wide",)]:
    case("linear()", pairwise.linear_kernel, *pair)
    cubic = lambda X, Y: pairwise.polynomial_kernel(X, Y, degree=3, gamma=0.3, coef0=0.7)
    case("polynomial(degree=3, scale=0.3, bias=0.7)", cubic, *pair)
    case("laplacian(lengthscale=2.5)", lambda X, Y: pairwise.laplacian_kernel(X, Y, gamma=1 / 2.5), *pair)
    case("cosine()", pairwise.cosine_similarity, *pair)
    for order in range(3):
        case(f"arccosine(order={order})", arc(order), *pair)
    process("rbf(lengthscale=1.7)", RBF(1.7), *pair)
    for name, nu in [("matern12", 0.5), ("matern32", 1.5), ("matern52", 2.5)]:
        process(f"{name}(lengthscale=1.3)", Matern(1.3, nu=nu), *pair)
    process("rational_quadratic(lengthscale=1.4, alpha=0.6)", RationalQuadratic(1.4, 0.6), *pair, order=[1, 0])

scales = [0.5, 1.5, 2.5]
process(f"rbf(lengthscale={scales})", RBF(scales), "small")
for name, nu in [("matern12", 0.5), ("matern32", 1.5), ("matern52", 2.5)]:
    process(f"{name}(lengthscale={scales})", Matern(scales, nu=nu), "small")
process("periodic(lengthscale=0.8, period=1.9)", ExpSineSquared(0.8, 1.9), "line")
process("2*rbf(lengthscale=3) + 0.5*matern32(lengthscale=4)", C(2) * RBF(3) + C(0.5) * Matern(4, nu=1.5), "wide")
process("(0.5 + rbf(lengthscale=2))*periodic(lengthscale=1, period=3)", (C(0.5) + RBF(2)) * ExpSineSquared(1, 3), "line")
process("1.5*rbf(lengthscale=1)*rbf(lengthscale=2)", C(1.5) * RBF(1) * RBF(2), "small")

result = {
    "data": {key: x.tolist() for key, x in data.items()},
    "weights": {key: w.tolist() for key, w in weights.items()},
    "cases": cases,
}
pathlib.Path(__file__).with_name("classic.json").write_text(json.dumps(result) + "\n")
