"""What a wheel must do in an environment with NumPy alone; prints one line."""

import numpy as np

import mercer as mc

points = np.random.default_rng(0).normal(size=(50, 2))
net = mc.Network.from_arch({"mlp": {"inputs": [2], "widths": [8], "outputs": 2}})
gram = mc.ntk(net, points)
assert gram.shape == (50, 50) and np.allclose(gram, gram.T)
fitted = mc.fit.ridge(kernel="rbf()", data=points, labels=points[:, 0], penalty=1e-6)
found = mc.predict(from_=fitted, data=points).predictions
assert np.max(np.abs(found[:, 0] - points[:, 0])) < 1e-2
assert mc.eigen.nystrom(kernel="rbf()", data=points, landmarks=20, components=3).values[0] > 0
try:
    mc.kernel("rbf(lengthscle=2)", points)
except mc.Error as error:
    assert error.code
print("passed")
