"""Machines on kernels against scikit-learn, measures against SciPy and scikit-learn.

Needs the folder that the tests of mercer-learn write, named in MERCER_MACHINES.
"""

import os
import pathlib

import numpy as np
import pytest

FOLDER = os.environ.get("MERCER_MACHINES")
pytestmark = pytest.mark.skipif(not FOLDER, reason="MERCER_MACHINES names no folder of machines")


class Fixture:
    def __getattr__(self, name):
        return np.load(pathlib.Path(FOLDER) / f"{name}.npy")


@pytest.fixture(scope="module")
def ours():
    return Fixture()


def test_kernel_ridge(ours):
    from sklearn.kernel_ridge import KernelRidge

    theirs = KernelRidge(alpha=0.3, kernel="rbf", gamma=0.5 / 1.3**2).fit(ours.x, ours.targets).predict(ours.z)
    np.testing.assert_allclose(ours.ridge, theirs, rtol=0, atol=1e-10)
    np.testing.assert_allclose(ours.ridge_iterative, theirs, rtol=0, atol=1e-9)
    linear = KernelRidge(alpha=0.3, kernel="linear").fit(ours.x, ours.targets).predict(ours.z)
    np.testing.assert_allclose(ours.ridge_features, linear, rtol=0, atol=1e-10)


def test_gaussian_process(ours):
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    kernel = RBF(1.3, "fixed")
    likelihood = 0.0
    for column in range(2):
        process = GaussianProcessRegressor(kernel, alpha=0.05, optimizer=None).fit(ours.x, ours.targets[:, column])
        mean, deviation = process.predict(ours.z, return_std=True)
        np.testing.assert_allclose(ours.process_means[:, column], mean, rtol=0, atol=1e-9)
        np.testing.assert_allclose(ours.process_variances, deviation**2, rtol=0, atol=1e-9)
        likelihood += process.log_marginal_likelihood_value_
    np.testing.assert_allclose(ours.process_likelihood[0], likelihood, rtol=1e-10)
    free = ConstantKernel(1.0, (1e-6, 1e6)) * RBF(1.0, (1e-6, 1e6)) + WhiteKernel(0.1, (1e-8, 1e3))
    best = GaussianProcessRegressor(free, alpha=0.0, n_restarts_optimizer=3, random_state=0).fit(
        ours.x, ours.tuned_targets[:, 0]
    )
    # Two optimisers: ours may be better, but not worse by more than their tolerance.
    assert ours.tuned_likelihood[0] > best.log_marginal_likelihood_value_ - 1e-3


def test_gaussian_process_classifier(ours):
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF

    theirs = GaussianProcessClassifier(RBF(1.3, "fixed"), optimizer=None).fit(ours.x, ours.two)
    # They replace the sigmoid by five error functions, to about three digits; ours is a quadrature.
    np.testing.assert_allclose(ours.process_classes, theirs.predict_proba(ours.z), rtol=0, atol=3e-3)
    likelihood = theirs.base_estimator_.log_marginal_likelihood_value_
    np.testing.assert_allclose(ours.process_classes_likelihood[0], likelihood, rtol=1e-5)


def test_multinomial_logistic(ours):
    from sklearn.linear_model import LogisticRegression

    def theirs(train, test, **settings):
        model = LogisticRegression(C=0.5, tol=1e-10, max_iter=20000, **settings).fit(train, ours.many)
        return model.predict_proba(test)

    # Both stop at gradients of about 1e-9; the penalty keeps the curvature above one.
    np.testing.assert_allclose(ours.glm, theirs(ours.gram, ours.cross), rtol=0, atol=1e-5)
    np.testing.assert_allclose(ours.probe, theirs(ours.x, ours.z), rtol=0, atol=1e-5)
    balanced = theirs(ours.x, ours.z, class_weight="balanced")
    np.testing.assert_allclose(ours.probe_balanced, balanced, rtol=0, atol=1e-5)


def test_binary_logistic(ours):
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=2.0, fit_intercept=False, tol=1e-10, max_iter=10000).fit(ours.x, ours.two)
    np.testing.assert_allclose(ours.logistic, model.predict_proba(ours.z), rtol=0, atol=1e-6)


def test_support_vectors(ours):
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import SVC

    many = OneVsRestClassifier(SVC(C=1.5, kernel="precomputed", tol=1e-6)).fit(ours.gram, ours.many)
    np.testing.assert_allclose(ours.svm, many.decision_function(ours.cross), rtol=0, atol=1e-4)
    two = SVC(C=1.5, kernel="precomputed", tol=1e-6).fit(ours.gram, ours.two)
    np.testing.assert_allclose(ours.svm_two[:, 1], two.decision_function(ours.cross), rtol=0, atol=1e-4)
    linear = OneVsRestClassifier(SVC(C=1.5, kernel="linear", tol=1e-6)).fit(ours.x, ours.many)
    np.testing.assert_allclose(ours.svm_features, linear.decision_function(ours.z), rtol=0, atol=1e-4)


def test_neighbours_and_centres(ours):
    from sklearn.neighbors import KNeighborsClassifier, NearestCentroid

    theirs = KNeighborsClassifier(7).fit(ours.x, ours.many)
    np.testing.assert_allclose(ours.neighbours, theirs.predict_proba(ours.z), rtol=0, atol=1e-12)
    # An RBF kernel falls with the distance, so its neighbours are the same.
    np.testing.assert_array_equal(ours.neighbours_gram, theirs.predict(ours.z))
    np.testing.assert_array_equal(ours.centres, NearestCentroid().fit(ours.x, ours.many).predict(ours.z))


def test_measures(ours):
    from scipy.stats import kendalltau
    from sklearn.metrics import average_precision_score, r2_score, roc_auc_score

    a, b = ours.ranks_a, ours.ranks_b
    theirs = [
        kendalltau(a, b).statistic,
        roc_auc_score(a > 120, b),
        average_precision_score(a > 120, b),
        r2_score(a, b),
    ]
    np.testing.assert_allclose(ours.measures, theirs, rtol=0, atol=1e-12)
