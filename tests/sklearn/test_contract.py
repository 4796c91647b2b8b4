"""The contract of scikit-learn, by its own checks: without noise, and with it."""

import math

import numpy as np
import pytest

pytest.importorskip("sklearn", minversion="1.6")

from sklearn.utils.estimator_checks import parametrize_with_checks

from hdp_fast.sklearn import PrivateClassifier, PrivateRegressor

pytestmark = pytest.mark.filterwarnings("ignore")
INFINITE = [PrivateClassifier(epsilon=math.inf), PrivateRegressor(epsilon=math.inf)]


@parametrize_with_checks(INFINITE)
def test_every_check_passes_without_noise(estimator, check):
    check(estimator)


class Declared:
    """Takes the classes of the checks' labels for public, for the test alone."""

    def fit(self, X, y, *, budget=None):
        declared = self.declare(np.asarray(y))
        kept = {name: getattr(self, name) for name in declared}
        try:
            return self.set_params(**declared)._fit(X, y, budget)
        finally:
            self.set_params(**kept)

    def __sklearn_tags__(self):
        """A good score is impossible: noise at epsilon 1 hides what some dozen records tell."""
        tags = super().__sklearn_tags__()
        for part in (tags.classifier_tags, tags.regressor_tags):
            if part is not None:
                part.poor_score = True
        return tags


class DeclaredClassifier(Declared, PrivateClassifier):
    def declare(self, y):
        plain = y.ndim and y.dtype.kind in "iubOUf" and len(np.unique(y.astype(str))) < 9
        return {"classes": np.unique(y) if plain else [0, 1]}

    def _fit(self, X, y, budget):
        return PrivateClassifier.fit(self, X, y, budget=budget)


class DeclaredRegressor(Declared, PrivateRegressor):
    def declare(self, y):
        return {"target_bounds": (-500.0, 500.0)}

    def _fit(self, X, y, budget):
        return PrivateRegressor.fit(self, X, y, budget=budget)


PRIVATE = [
    make(epsilon=1.0, bounds=(-20.0, 20.0)) for make in (DeclaredClassifier, DeclaredRegressor)
]


@parametrize_with_checks(PRIVATE)
def test_every_check_but_good_scores_passes_with_noise(estimator, check):
    check(estimator)
