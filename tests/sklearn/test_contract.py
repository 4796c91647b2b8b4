"""The contract of scikit-learn, by its own checks: without noise, and with it."""

import math

import pytest
from declared import DeclaredClasses, DeclaredTargets

pytest.importorskip("sklearn", minversion="1.6")

from sklearn.utils.estimator_checks import parametrize_with_checks

from hdp_fast.sklearn import PrivateClassifier, PrivateRegressor

pytestmark = pytest.mark.filterwarnings("ignore")
# The checks compare two fits.
OPEN = {"epsilon": math.inf, "test_seed": 1}
INFINITE = [PrivateClassifier(**OPEN), PrivateRegressor(**OPEN)]


@parametrize_with_checks(INFINITE)
def test_every_check_passes_without_noise(estimator, check):
    check(estimator)


class DeclaredClassifier(DeclaredClasses, PrivateClassifier):
    pass


class DeclaredRegressor(DeclaredTargets, PrivateRegressor):
    pass


PRIVATE = [
    make(epsilon=1.0, bounds=(-20.0, 20.0), test_seed=1)
    for make in (DeclaredClassifier, DeclaredRegressor)
]


@parametrize_with_checks(PRIVATE)
def test_every_check_but_good_scores_passes_with_noise(estimator, check):
    check(estimator)
