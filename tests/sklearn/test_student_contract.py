"""The contract of scikit-learn for a classifier on private labels: without noise, and with it."""

import math

import numpy as np
import pytest

pytest.importorskip("sklearn", minversion="1.6")

from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from hdp_fast.sklearn import PrivateStudentClassifier

pytestmark = pytest.mark.filterwarnings("ignore")


@parametrize_with_checks([PrivateStudentClassifier(GaussianNB(), epsilon=math.inf)])
def test_every_check_passes_without_noise(estimator, check):
    check(estimator)


class Declared(PrivateStudentClassifier):
    """Takes the classes and the rows of the checks for public, for the test alone."""

    def fit(self, X, y, *, budget=None):
        names = np.asarray(y)
        plain = (
            names.ndim and names.dtype.kind in "iubOUf" and len(np.unique(names.astype(str))) < 9
        )
        declared = {"classes": np.unique(names) if plain else [0, 1], "pool": X}
        kept = {name: getattr(self, name) for name in declared}
        try:
            return super(Declared, self.set_params(**declared)).fit(X, y, budget=budget)
        finally:
            self.set_params(**kept)

    def __sklearn_tags__(self):
        """A good score is impossible: noise at epsilon 1 hides what some dozen records tell."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


@parametrize_with_checks(
    [Declared(GaussianNB(), epsilon=1.0, method="votes", members=3, queries=9)]
)
def test_every_check_but_good_scores_passes_with_noise(estimator, check):
    check(estimator)
