"""What all estimators share: checks of the input, calls of jobs, and the state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer._arrays import AnyArray
from mercer._jobs import call
from mercer._outcome import Outcome
from mercer._saved import Saved

#: Types of numbers that are taken as they are.
FLOATS = [np.float64, np.float32]

#: The kernel that stands for a Gram matrix in the place of samples.
PRECOMPUTED = "precomputed"


class JobEstimator(BaseEstimator):
    """An estimator whose state is what a job saved.

    Attributes
    ----------
    state_ : Saved
        The saved folder as bytes.
    n_features_in_ : int
        The number of features seen in ``fit``.
    feature_names_in_ : array of str
        Their names, if the samples had names.
    """

    state_: Saved
    threads: int | None

    def _keep(self, command: tuple[str, ...], keywords: Mapping[str, Any]) -> Outcome:
        """Run a job and keep what it saved."""
        outcome = call(command, {**keywords, "threads": self.threads, "progress": False})
        self.state_ = Saved.of(outcome)
        return outcome

    def _ask(self, x: AnyArray, state: Saved | None = None, **keywords: Any) -> Outcome:
        """Predict from the state."""
        settings = {"from_": state or self.state_, "data": x, "threads": self.threads, "progress": False}
        return call(("predict",), {**settings, **keywords})

    def _values(self, x: AnyArray, state: Saved | None = None, **keywords: Any) -> AnyArray:
        return np.array(self._ask(x, state, **keywords).arrays["predictions"], dtype=np.float64)

    def _samples(self, X: Any) -> AnyArray:
        """New samples, checked."""
        check_is_fitted(self)
        found: AnyArray = self._checked(X, reset=False)
        return found

    def _checked(self, X: Any, **settings: Any) -> Any:
        """Samples, and labels if there are any."""
        keywords = {"dtype": FLOATS, "allow_nd": getattr(self, "net", None) is not None, **settings}
        return validate_data(self, X, **keywords)

    def _seed(self) -> int:
        state = getattr(self, "random_state", None)
        if isinstance(state, (int, np.integer)):
            return int(state)
        return int(check_random_state(state).randint(np.iinfo(np.int32).max))

    def _kernel_keywords(self, x: AnyArray) -> dict[str, Any]:
        """The kernel and the samples of a machine or of functions."""
        kernel, net = getattr(self, "kernel"), getattr(self, "net", None)
        if kernel == PRECOMPUTED:
            if x.shape[0] != x.shape[1]:
                raise ValueError(
                    f"with kernel='precomputed', X is the Gram matrix of the training samples and must be square; "
                    f"this one is {x.shape[0]} by {x.shape[1]}"
                )
            return {"gram": x}
        return {"kernel": kernel, "net": net, "data": x}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = getattr(self, "kernel", None) == PRECOMPUTED
        tags.input_tags.three_d_array = getattr(self, "net", None) is not None
        return tags


class Classes(JobEstimator):
    """A classifier's labels and predictions."""

    classes_: AnyArray

    def _labelled(self, X: Any, y: Any) -> tuple[AnyArray, AnyArray]:
        """Samples, and their labels as numbers from 0."""
        x, labels = self._checked(X, y=y)
        check_classification_targets(labels)
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of at least two classes, but the labels contain one class: "
                f"{self.classes_[0]!r}"
            )
        return x, codes.astype(np.int64)

    def _scores(self, X: Any) -> AnyArray:
        """A column per class; of two classes the score of the second against the first."""
        return self._in_shape(self._values(self._samples(X)))

    def _in_shape(self, values: AnyArray) -> AnyArray:
        """Scores as scikit-learn has them: one column for two classes."""
        found: AnyArray = values[:, 1] - values[:, 0] if len(self.classes_) == 2 else values
        return found

    def _decided(self, scores: AnyArray) -> AnyArray:
        codes = (scores > 0).astype(np.int64) if scores.ndim == 1 else np.argmax(scores, axis=1)
        found: AnyArray = self.classes_[codes]
        return found


class Numbers(JobEstimator):
    """A regression's targets and predictions."""

    _flat: bool

    def _targets(self, X: Any, y: Any, **settings: Any) -> tuple[AnyArray, AnyArray]:
        """Samples and targets, a column per target."""
        x, targets = self._checked(X, y=y, y_numeric=True, multi_output=True, **settings)
        self._flat = targets.ndim == 1
        targets = np.asarray(targets, dtype=np.float64)
        return x, targets.reshape(len(targets), -1)

    def _shaped(self, values: AnyArray) -> AnyArray:
        """One number per sample if the targets were."""
        return values.ravel() if self._flat else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags
