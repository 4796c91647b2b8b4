"""The contract of scikit-learn for a classifier on private labels: without noise, and with it."""

import math

import pytest
from declared import DeclaredClasses

pytest.importorskip("sklearn", minversion="1.6")

from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from hdp_fast.sklearn import PrivateStudentClassifier

pytestmark = pytest.mark.filterwarnings("ignore")


@parametrize_with_checks([PrivateStudentClassifier(GaussianNB(), epsilon=math.inf, test_seed=1)])
def test_every_check_passes_without_noise(estimator, check):
    check(estimator)


class Declared(DeclaredClasses, PrivateStudentClassifier):
    """Takes the rows of the checks for public, too."""

    def declare(self, X, y):
        return {**super().declare(X, y), "pool": X}


@parametrize_with_checks(
    [Declared(GaussianNB(), epsilon=1.0, method="votes", members=3, queries=9, test_seed=1)]
)
def test_every_check_but_good_scores_passes_with_noise(estimator, check):
    check(estimator)
