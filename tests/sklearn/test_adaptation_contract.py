"""The contract of scikit-learn for estimators of adaptation, by its own checks.

The checks call fit without domains, and so with one population. A subclass that takes every second
row for one of the target shows them two.
"""

import math

import lengths
import numpy as np
import pytest

pytest.importorskip("sklearn", minversion="1.6")

from sklearn.utils.estimator_checks import parametrize_with_checks

from hdp_fast.sklearn import AdaptationClassifier, AdaptationRegressor

pytestmark = pytest.mark.filterwarnings("ignore")


class TwoDomains:
    """Takes every second row of the checks for one of the target."""

    def fit(self, X, y, sample_domain=None):
        rows = 0 if y is None else len(np.asarray(y))
        return super().fit(X, y, -(np.arange(rows) % 2) if rows > 1 else None)

    def score(self, X, y, sample_weight=None):
        return super().score(X, y, -1, sample_weight)


class TwoDomainClassifier(TwoDomains, AdaptationClassifier):
    pass


class TwoDomainRegressor(TwoDomains, AdaptationRegressor):
    pass


class Declared:
    """Takes the classes of the checks' labels for public, for the test alone."""

    def fit(self, X, y, sample_domain=None):
        name, public = self.declare(np.asarray(y))
        kept = getattr(self, name)
        try:
            return super(Declared, self.set_params(**{name: public})).fit(X, y, sample_domain)
        finally:
            self.set_params(**{name: kept})

    def __sklearn_tags__(self):
        """A good score is impossible: noise at epsilon 1 hides what some dozen records tell."""
        tags = super().__sklearn_tags__()
        for part in (tags.classifier_tags, tags.regressor_tags):
            if part is not None:
                part.poor_score = True
        return tags


class DeclaredClassifier(Declared, TwoDomainClassifier):
    def declare(self, y):
        plain = y.ndim and y.dtype.kind in "iubOUf" and len(np.unique(y.astype(str))) < 9
        return "classes", np.unique(y) if plain else [0, 1]


class DeclaredRegressor(Declared, TwoDomainRegressor):
    def declare(self, y):
        return "target_bounds", (-500.0, 500.0)


INFINITE = [AdaptationClassifier(epsilon=math.inf), AdaptationRegressor(epsilon=math.inf)]
PUBLIC = {"epsilon": 1.0, "bounds": (-20.0, 20.0)}
PRIVATE = [DeclaredClassifier(**PUBLIC), DeclaredRegressor(**PUBLIC)]
if lengths.PAPERS:
    two_domains = (TwoDomainClassifier, TwoDomainRegressor)
    INFINITE += [make(epsilon=math.inf) for make in two_domains]
    INFINITE += [make(epsilon=math.inf, private="source") for make in two_domains]
    PRIVATE += [
        make(**PUBLIC, private="source") for make in (DeclaredClassifier, DeclaredRegressor)
    ]


@parametrize_with_checks(INFINITE)
def test_every_check_passes_without_noise(estimator, check):
    check(estimator)


@parametrize_with_checks(PRIVATE)
def test_every_check_but_good_scores_passes_with_noise(estimator, check):
    check(estimator)
