"""The estimators: scikit-learn's own checks, values beside scikit-learn's estimators, pipelines, pickles, bad input."""

import collections
import io
import pickle
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

pytest.importorskip("mercer._mercer", reason="the extension module is not built")
sklearn = pytest.importorskip("sklearn")

from sklearn import datasets, gaussian_process, kernel_approximation, kernel_ridge, svm  # noqa: E402
from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.multiclass import OneVsRestClassifier  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

import mercer as mc  # noqa: E402

# Small networks and few steps: the checks are about behaviour.
SHORT = {"widths": (16,), "epochs": 60, "learning_rate": 0.05}
ESTIMATORS = [
    mc.KernelRidge(),
    mc.GaussianProcessRegressor(),
    mc.GaussianProcessClassifier(),
    mc.KernelGLM(),
    mc.SVC(),
    mc.TangentClassifier(**SHORT),
    mc.TangentRegressor(**SHORT),
    mc.Nystrom(n_components=5),
    mc.RandomFourier(n_components=6),
    mc.NeuralEF(n_components=2, iterations=20),
    mc.Eigenfunctions(n_components=3),
    mc.LaplaceClassifier(**SHORT),
    mc.LaplaceRegressor(**SHORT),
    mc.Surrogate(**SHORT),
]

#: How many checks scikit-learn 1.9.1 has for each of them. A check that is skipped does not count.
CHECKS = {
    "KernelRidge": 52,
    "GaussianProcessRegressor": 52,
    "GaussianProcessClassifier": 52,
    "KernelGLM": 54,
    "SVC": 54,
    "TangentClassifier": 54,
    "TangentRegressor": 52,
    "Nystrom": 46,
    "RandomFourier": 46,
    "NeuralEF": 46,
    "Eigenfunctions": 46,
    "LaplaceClassifier": 54,
    "LaplaceRegressor": 52,
    "Surrogate": 54,
}

#: The checks that fail, and why. A check that passes although it is listed is an error.
DRAWS = "probabilities of three or more classes are means over draws, and the draws of a sample depend on its place"
EXPECTED: dict[str, dict[str, str]] = {
    "GaussianProcessClassifier": dict.fromkeys(
        ["check_methods_subset_invariance", "check_methods_sample_order_invariance"], DRAWS
    ),
}

ran = collections.Counter()


@parametrize_with_checks(
    ESTIMATORS, expected_failed_checks=lambda estimator: EXPECTED.get(type(estimator).__name__, {}), xfail_strict=True
)
def test_scikit_learn_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mc.MercerWarning)
        check(estimator)
    ran[type(estimator).__name__] += 1


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_the_number_of_checks(estimator, request):
    """Runs after the checks: scikit-learn's suite has not ended early, and every estimator had at least forty."""
    name = type(estimator).__name__
    if request.config.option.keyword or name not in ran:
        pytest.skip("only some of the checks ran")
    assert ran[name] == CHECKS[name] >= 40


# ---- values


def standardised(load):
    x, y = load(return_X_y=True)
    return StandardScaler().fit_transform(x), y


SETS = {
    "diabetes": lambda: standardised(datasets.load_diabetes),
    "wine": lambda: standardised(datasets.load_wine),
    "breast cancer": lambda: standardised(datasets.load_breast_cancer),
}


def halves(name):
    """Training and test samples, numbers, and classes."""
    x, y = SETS[name]()
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order], y[order]
    classes = (y > np.median(y)).astype(int) if name == "diabetes" else y
    middle = len(x) // 2
    return x[:middle], x[middle:], y[:middle].astype(float), classes[:middle]


LENGTH = 4.0
GAMMA = 1 / (2 * LENGTH**2)
KERNEL = f"rbf(lengthscale={LENGTH})"


@pytest.mark.parametrize("name", SETS)
def test_ridge_beside_scikit_learn(name):
    train, test, y, _ = halves(name)
    ours = mc.KernelRidge(KERNEL, penalty=0.3).fit(train, y)
    theirs = kernel_ridge.KernelRidge(alpha=0.3, kernel="rbf", gamma=GAMMA).fit(train, y)
    np.testing.assert_allclose(ours.predict(test), theirs.predict(test), rtol=1e-9, atol=1e-9 * np.abs(y).max())


@pytest.mark.parametrize("name", SETS)
def test_processes_beside_scikit_learn(name):
    train, test, y, _ = halves(name)
    ours = mc.GaussianProcessRegressor(f"2*{KERNEL}", noise_variance=0.1).fit(train, y)
    kernel = gaussian_process.kernels.ConstantKernel(2.0) * gaussian_process.kernels.RBF(LENGTH)
    theirs = gaussian_process.GaussianProcessRegressor(kernel, alpha=0.1, optimizer=None).fit(train, y)
    (mean, deviation), (their_mean, their_deviation) = ours.predict(test, True), theirs.predict(test, True)
    np.testing.assert_allclose(mean, their_mean, rtol=1e-9, atol=1e-9 * np.abs(y).max())
    np.testing.assert_allclose(deviation, their_deviation, rtol=1e-7)
    assert ours.log_marginal_likelihood_ == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-9)


@pytest.mark.parametrize("name", SETS)
def test_nystrom_beside_scikit_learn(name):
    """Nyström's extension to new samples from the same landmarks: all training samples."""
    train, test, _, _ = halves(name)
    ours = mc.Nystrom(KERNEL, n_components=len(train), landmark_choice="all").fit(train).transform(test)
    theirs = kernel_approximation.Nystroem(gamma=GAMMA, n_components=len(train), random_state=0).fit(train)
    theirs = theirs.transform(test)
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=1e-6)


@pytest.mark.parametrize("name", SETS)
def test_support_vectors_beside_scikit_learn(name):
    train, test, _, classes = halves(name)
    ours = mc.SVC(KERNEL, cost=2.0).fit(train, classes)
    theirs = svm.SVC(C=2.0, gamma=GAMMA, tol=1e-8)
    theirs = (theirs if len(set(classes)) == 2 else OneVsRestClassifier(theirs)).fit(train, classes)
    np.testing.assert_allclose(ours.decision_function(test), theirs.decision_function(test), atol=2e-3)
    assert (ours.predict(test) == theirs.predict(test)).all()


def test_the_functions_of_the_package_give_the_same_numbers():
    train, test, y, classes = halves("wine")
    machine = mc.fit.glm(kernel=KERNEL, data=train, labels=classes, penalty=0.1)
    expected = mc.predict(from_=machine, data=test, probabilities=True).predictions
    found = mc.KernelGLM(KERNEL, penalty=0.1).fit(train, classes).predict_proba(test)
    assert found.tobytes() == np.asarray(expected).tobytes()
    functions = mc.eigen.exact(kernel=KERNEL, data=train, components=4)
    expected = mc.predict(from_=functions, data=test).predictions
    assert np.array_equal(mc.Eigenfunctions(KERNEL, 4).fit_transform(train), mc.Eigenfunctions(KERNEL, 4).fit(train).transform(train))
    assert np.array_equal(mc.Eigenfunctions(KERNEL, 4).fit(train).transform(test), expected)


def test_features_approximate_the_kernel():
    x, _ = SETS["wine"]()
    exact = mc.kernel(KERNEL, x)

    def error(transformer):
        features = transformer.fit_transform(x)
        return np.abs(features @ features.T - exact).mean()

    theirs = error(kernel_approximation.Nystroem(gamma=GAMMA, n_components=60, random_state=0))
    assert error(mc.Nystrom(KERNEL, 60)) < 1.5 * theirs
    assert error(mc.Nystrom(KERNEL, 60, landmark_choice="rpcholesky")) < 1.5 * theirs
    assert error(mc.RandomFourier(KERNEL, 2000)) < 0.03
    assert error(mc.RandomFourier(KERNEL, 2000, orthogonal=True)) < error(mc.RandomFourier(KERNEL, 200)) < 0.1


# ---- scikit-learn's tools


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_pickles_hold_the_state_and_nothing_else(estimator):
    joblib = pytest.importorskip("joblib")
    train, test, y, classes = halves("wine")
    predicts = hasattr(estimator, "predict")
    targets = y if sklearn.base.is_regressor(estimator) else classes
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mc.MercerWarning)
        fitted = clone(estimator).fit(train, targets)
        again = clone(estimator).fit(train, targets)
    assert fitted.state_ == again.state_, "the same fit has the same bytes"
    expected = fitted.predict(test) if predicts else fitted.transform(test)
    dumped = io.BytesIO()
    joblib.dump(fitted, dumped)
    dumped.seek(0)
    for restored in (pickle.loads(pickle.dumps(fitted)), joblib.load(dumped)):
        assert np.array_equal(restored.predict(test) if predicts else restored.transform(test), expected)


def test_a_pickle_needs_no_files_of_the_process_that_wrote_it(tmp_path):
    train, test, _, classes = halves("wine")
    fitted = mc.TangentClassifier(**SHORT).fit(train, classes)
    with open(tmp_path / "fitted.pickle", "wb") as file:
        pickle.dump((fitted, test), file)
    code = f"""
import pickle, numpy as np
fitted, test = pickle.load(open({str(tmp_path / "fitted.pickle")!r}, "rb"))
np.save({str(tmp_path / "found.npy")!r}, fitted.predict_proba(test))
"""
    expected = fitted.predict_proba(test)
    del fitted
    subprocess.run([sys.executable, "-c", code], check=True)
    assert np.array_equal(np.load(tmp_path / "found.npy"), expected)


def test_pipelines_grids_and_cross_validation():
    x, y = datasets.load_iris(return_X_y=True)
    grid = GridSearchCV(
        make_pipeline(StandardScaler(), mc.SVC()),
        {"svc__kernel": ["rbf(lengthscale=0.1)", "rbf(lengthscale=2)"], "svc__cost": [0.1, 10.0]},
        cv=3,
    ).fit(x, y)
    assert grid.best_params_["svc__kernel"] == "rbf(lengthscale=2)" and grid.best_score_ > 0.93
    probe = make_pipeline(StandardScaler(), mc.Nystrom("rbf(lengthscale=2)", 30), mc.KernelGLM("linear", penalty=0.1))
    assert cross_val_score(probe, x, y, cv=3).mean() > 0.9
    parallel = cross_val_score(mc.KernelRidge("rbf(lengthscale=2)", threads=1), x, y, cv=3, n_jobs=2)
    assert np.array_equal(parallel, cross_val_score(mc.KernelRidge("rbf(lengthscale=2)"), x, y, cv=3))


def test_precomputed_kernels_and_their_folds():
    train, test, y, classes = halves("wine")
    gram, cross = mc.kernel(KERNEL, train), mc.kernel(KERNEL, test, train)
    ours = mc.SVC("precomputed").fit(gram, classes)
    np.testing.assert_allclose(ours.decision_function(cross), mc.SVC(KERNEL).fit(train, classes).decision_function(test), atol=1e-8)
    scores = cross_val_score(mc.KernelRidge("precomputed"), gram, y, cv=3)
    np.testing.assert_allclose(scores, cross_val_score(mc.KernelRidge(KERNEL), train, y, cv=3), rtol=1e-8)
    with pytest.raises(ValueError, match="square"):
        mc.KernelRidge("precomputed").fit(cross[:, :-1], np.zeros(len(cross)))


def test_names_and_frames():
    pandas = pytest.importorskip("pandas")
    frame = datasets.load_iris(as_frame=True).data
    functions = mc.Eigenfunctions("rbf()", 3).set_output(transform="pandas").fit(frame)
    found = functions.transform(frame)
    assert isinstance(found, pandas.DataFrame) and list(found.columns) == [f"eigenfunctions{index}" for index in range(3)]
    assert list(functions.feature_names_in_) == list(frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        functions.transform(frame.rename(columns={frame.columns[0]: "other"}))


def test_classes_keep_their_names():
    x, y = datasets.load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    for estimator in (mc.SVC(), mc.KernelGLM(), mc.GaussianProcessClassifier(), mc.Surrogate(**SHORT)):
        fitted = estimator.fit(x, names)
        assert list(fitted.classes_) == sorted(set(names)) and fitted.score(x, names) > 0.9


# ---- networks


def test_a_network_of_the_user():
    train, test, y, classes = halves("wine")
    description = {"mlp": {"inputs": [train.shape[1]], "widths": [16], "outputs": 3}}
    net, _ = mc.Network.from_arch(description, seed=1).train(train, classes, epochs=60, learning_rate=0.05)
    fitted = mc.TangentClassifier(net, kernel="trace").fit(train, classes)
    machine = mc.fit.glm(kernel="trace", net=net, data=train, labels=classes, penalty=0.01)
    expected = mc.predict(from_=machine, data=test, probabilities=True).predictions
    assert np.array_equal(fitted.predict_proba(test), expected)
    posterior = mc.LaplaceClassifier(net).fit(train, classes)
    expected = mc.uncertainty(net=net, data=train, labels=classes, test=test, method="last-layer-full", seed=0).probabilities
    np.testing.assert_allclose(posterior.predict_proba(test), expected, rtol=1e-6, atol=1e-9)
    assert mc.SVC("trace", net=net).fit(train, classes).score(train, classes) > 0.95


def test_the_limit_of_infinite_width_needs_no_training():
    train, test, y, classes = halves("wine")
    fitted = mc.TangentClassifier(kernel="ntk-limit", widths=(64, 64)).fit(train, classes)
    assert not hasattr(fitted, "net_") and fitted.score(train, classes) > 0.95
    numbers = mc.TangentRegressor(kernel="ntk-limit").fit(train, y)
    assert numbers.score(train, y) > 0.9


def test_a_surrogate_explains():
    train, test, _, classes = halves("wine")
    fitted = mc.Surrogate(**SHORT).fit(train, classes)
    why = fitted.explain(test, rows=[0, 3])
    assert why.attribution.shape == (2, len(train), 3)
    scores = fitted.decision_function(test)
    np.testing.assert_allclose(np.asarray(why.attribution).sum(axis=1), np.asarray(why.scores)[[0, 3]], atol=1e-9)
    np.testing.assert_allclose(scores, why.scores, atol=1e-5)


def test_standard_deviations():
    train, test, y, _ = halves("diabetes")
    for estimator in (mc.LaplaceRegressor(**SHORT), mc.GaussianProcessRegressor(KERNEL, centred=True, noise_variance=0.5)):
        mean, deviation = estimator.fit(train, y).predict(test, return_std=True)
        assert mean.shape == deviation.shape == (len(test),) and (deviation > 0).all()
        assert np.array_equal(mean, estimator.predict(test))


# ---- bad input


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_bad_input(estimator):
    x, y = datasets.load_iris(return_X_y=True)
    x, y = x[::5], y[::5]
    holes = x.copy()
    holes[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        clone(estimator).fit(holes, y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mc.MercerWarning)
        fitted = clone(estimator).fit(x, y)
    use = fitted.predict if hasattr(fitted, "predict") else fitted.transform
    with pytest.raises(ValueError, match="features"):
        use(np.column_stack([x, x[:, 0]]))
    with pytest.raises(ValueError, match="NaN"):
        use(holes)
    with pytest.raises(ValueError, match="sample"):
        use(x[:0])
    if sklearn.base.is_classifier(estimator):
        with pytest.raises(ValueError, match="one class"):
            clone(estimator).fit(x, np.zeros(len(x)))
        with pytest.raises(ValueError, match="class"):
            clone(estimator).fit(x[:1], y[:1])


def test_settings_that_do_not_exist():
    x, y = datasets.load_iris(return_X_y=True)
    with pytest.raises(mc.Error, match="did you mean"):
        mc.SVC("rfb()").fit(x, y)
    with pytest.raises(mc.Error, match="net"):
        mc.SVC("trace").fit(x, y)
    with pytest.raises(mc.Error, match="cost"):
        mc.SVC(cost=-1.0).fit(x, y)


def test_without_scikit_learn_the_error_says_what_to_install():
    code = """
import sys
sys.modules["sklearn"] = None
import mercer as mc
try:
    mc.SVC
except mc.Error as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "need scikit-learn" in done.stdout and "pip install" in done.stdout, done.stderr
