"""Scores labels as cleanlab does: how likely each is to be wrong, from features and labels alone.

    cleanlab_scores.py FEATURES.npy LABELS.npy SEED OUT.npy: OUT has two rows of scores, the larger the more suspicious

The probabilities are out of fold (five folds), of a logistic regression on standardised features. The first row is one minus
the self-confidence; in the second, labels that `find_label_issues` reports come before all others.
"""

import sys

import cleanlab
import numpy as np
import sklearn
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def main():
    features, labels, seed, out = sys.argv[1:]
    features, labels, seed = np.load(features), np.load(labels), int(seed)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    probabilities = cross_val_predict(model, features, labels, cv=folds, method="predict_proba")
    suspicion = 1 - get_label_quality_scores(labels, probabilities, method="self_confidence")
    issues = find_label_issues(labels, probabilities, n_jobs=1)
    np.save(out, np.stack([suspicion, suspicion + issues]))
    print(f"cleanlab {cleanlab.__version__}, scikit-learn {sklearn.__version__}")


if __name__ == "__main__":
    main()
