"""The contract of scikit-learn for estimators of adaptation, by its own checks.

The checks call fit without domains, and so with one population. A subclass that takes every second
row for one of the target shows them two.
"""

import math

import lengths
import numpy as np
import pytest
from declared import DeclaredClasses, DeclaredTargets

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


class DeclaredClassifier(DeclaredClasses, TwoDomainClassifier):
    pass


class DeclaredRegressor(DeclaredTargets, TwoDomainRegressor):
    pass


# The checks compare two fits.
OPEN = {"epsilon": math.inf, "test_seed": 1}
INFINITE = [AdaptationClassifier(**OPEN), AdaptationRegressor(**OPEN)]
PUBLIC = {"epsilon": 1.0, "bounds": (-20.0, 20.0), "test_seed": 1}
PRIVATE = [DeclaredClassifier(**PUBLIC), DeclaredRegressor(**PUBLIC)]
if lengths.PAPERS:
    two_domains = (TwoDomainClassifier, TwoDomainRegressor)
    INFINITE += [make(**OPEN) for make in two_domains]
    INFINITE += [make(**OPEN, private="source") for make in two_domains]
    PRIVATE += [
        make(**PUBLIC, private="source") for make in (DeclaredClassifier, DeclaredRegressor)
    ]


@parametrize_with_checks(INFINITE)
def test_every_check_passes_without_noise(estimator, check):
    check(estimator)


@parametrize_with_checks(PRIVATE)
def test_every_check_but_good_scores_passes_with_noise(estimator, check):
    check(estimator)
