"""The same tasks with Mercer and with scikit-learn, and with other libraries where they are installed: seconds.

    python benches/beside.py [sklearn] [torch]

Every time is the best of three. The calls are those of docs/for-users-of.md.
"""

import sys
import time

import numpy as np


def best(work, repeats=3):
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def beside_sklearn():
    from sklearn import datasets, gaussian_process, kernel_approximation, kernel_ridge, svm
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.preprocessing import StandardScaler

    import mercer as mc

    length = 4.0
    gamma, kernel = 1 / (2 * length**2), f"rbf(lengthscale={length})"
    print("| data | task | Mercer s | scikit-learn s |\n|---|---|---:|---:|")
    for name, load in (("diabetes", datasets.load_diabetes), ("breast cancer", datasets.load_breast_cancer), ("digits", datasets.load_digits)):
        x, y = load(return_X_y=True)
        x, numbers = StandardScaler().fit_transform(x), y.astype(float)
        classes = (y > np.median(y)).astype(int) if name == "diabetes" else y
        constant = gaussian_process.kernels.ConstantKernel(2.0, "fixed") * gaussian_process.kernels.RBF(length, "fixed")
        tasks = {
            "kernel ridge": (
                lambda: mc.KernelRidge(kernel, penalty=0.3).fit(x, numbers).predict(x),
                lambda: kernel_ridge.KernelRidge(alpha=0.3, kernel="rbf", gamma=gamma).fit(x, numbers).predict(x),
            ),
            "Gaussian process": (
                lambda: mc.GaussianProcessRegressor(f"2*{kernel}").fit(x, numbers).predict(x, True),
                lambda: gaussian_process.GaussianProcessRegressor(constant, alpha=0.1).fit(x, numbers).predict(x, True),
            ),
            "Nyström, 100": (
                lambda: mc.Nystrom(kernel, 100).fit_transform(x),
                lambda: kernel_approximation.Nystroem(gamma=gamma, n_components=100).fit_transform(x),
            ),
            "support vectors": (
                lambda: mc.SVC(kernel).fit(x, classes).predict(x),
                lambda: OneVsRestClassifier(svm.SVC(gamma=gamma)).fit(x, classes).predict(x),
            ),
        }
        for task, (ours, theirs) in tasks.items():
            print(f"| {name}, {len(x)} samples | {task} | {best(ours):.3f} | {best(theirs):.3f} |", flush=True)


def beside_torch():
    """The tangent kernel, a posterior and attributions of one MLP on 600 digits."""
    import torch
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    x, y = (x / 16).astype("f4"), y
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    inputs, targets = torch.from_numpy(x[:600]), torch.from_numpy(y[:600])
    for _ in range(100):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()
        optimiser.step()
    new = torch.from_numpy(x[600:900])
    try:
        import mercer as mc
    except ImportError:
        mc = None
    if mc is not None:
        net = mc.Network.from_torch(model, inputs[:2])
        print(f"Mercer, tangent kernel: {best(lambda: mc.ntk(net, x[:600])):.3f} s")
        job = {"net": net, "data": x[:600], "labels": y[:600], "progress": False}
        posterior = lambda: mc.uncertainty(**job, test=x[600:900], method="kron")  # noqa: E731
        print(f"Mercer, posterior (kron): {best(posterior):.3f} s")
        why = lambda: mc.explain(**job, test=x[600:900], kernel="trace(sketch=sjlt:1024, total=true)", machine="ridge", penalty=1.0, all=True)  # noqa: E731
        print(f"Mercer, attribution: {best(why):.3f} s")
    try:
        from laplace import Laplace
        from torch.utils.data import DataLoader, TensorDataset

        loader = DataLoader(TensorDataset(inputs, targets), batch_size=600)

        def posterior():
            found = Laplace(model, "classification", subset_of_weights="all", hessian_structure="kron")
            found.fit(loader)
            found.optimize_prior_precision(method="marglik")
            return found(new, link_approx="probit")

        print(f"laplace-torch, posterior (kron): {best(posterior):.3f} s")
    except ImportError:
        pass
    try:
        import tempfile

        from trak import TRAKer

        def attribution():
            with tempfile.TemporaryDirectory() as folder:
                traker = TRAKer(model=model, task="image_classification", train_set_size=600, proj_dim=1024, save_dir=folder, device="cpu", use_half_precision=False, logging_level=40)
                traker.load_checkpoint(model.state_dict(), model_id=0)
                traker.featurize(batch=(inputs, targets), num_samples=600)
                traker.finalize_features()
                traker.start_scoring_checkpoint(exp_name="new", checkpoint=model.state_dict(), model_id=0, num_targets=300)
                traker.score(batch=(new, torch.from_numpy(y[600:900])), num_samples=300)
                return traker.finalize_scores(exp_name="new")

        print(f"TRAK, attribution: {best(attribution):.3f} s")
    except ImportError:
        pass


if __name__ == "__main__":
    wanted = sys.argv[1:] or ["sklearn", "torch"]
    if "sklearn" in wanted:
        beside_sklearn()
    if "torch" in wanted:
        beside_torch()
