"""Features that are suggested from public facts: how many, and what they are worth."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_digits

from hdp_fast.exceptions import ParameterError, ShapeError
from hdp_fast.learners import SufficientStatistics, suggest_features

POOL = np.random.default_rng(0).normal(size=(400, 30)) * np.linspace(1, 3, 30)
GOAL = {"n": 1_000, "classes": range(5), "epsilon": 1.0, "delta": 1e-6}


def suggest(pool=POOL, **changed):
    return suggest_features(pool, **GOAL | changed)


def test_more_records_and_epsilon_keep_more_directions():
    by_records = [suggest(n=n).columns for n in (10, 1_000, 2_000, 10**6)]
    by_epsilon = [suggest(epsilon=epsilon).columns for epsilon in (0.01, 1.0, 2.0, math.inf)]
    for columns in (by_records, by_epsilon):
        assert columns == sorted(columns)
        assert columns[0] == 5 + 1
        assert columns[-1] == 30 + 1


def test_there_is_always_an_intercept():
    assert suggest().constant
    assert suggest(classes=["a", "b"]).constant
    with_constant = np.hstack([POOL, np.full((400, 1), 0.3)])
    assert not suggest(with_constant, classes=["a", "b"], n=10**6).constant
    assert suggest(with_constant, n=10**6).columns == 30 + 1  # the constant column says nothing


def test_most_rows_have_norm_1():
    for classes in (range(2), range(5)):
        norms = np.linalg.norm(suggest(classes=classes)(POOL), axis=1)
        assert np.quantile(norms, 0.15) > 0.999
        assert norms.max() <= 1


def test_digits_are_classified_without_a_choice():
    images, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(digits))
    private, public, new = np.split(order, [1_100, 1_600])
    pool = images[public]
    right = []
    for seed in range(5):
        features = suggest_features(pool, n=1_100, classes=range(10), epsilon=1.0, delta=1e-6)
        statistics = SufficientStatistics(features, classes=range(10)).release(
            images[private], digits[private], epsilon=1.0, delta=1e-6, random_state=seed
        )
        model = statistics.solve(pool=pool)
        right.append((model.predict(images[new]) == digits[new]).mean())
    assert np.mean(right) > 0.75


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("n", {"n": 0}),
        ("classes", {"classes": [1]}),
        ("epsilon", {"epsilon": -1.0}),
        ("delta", {"delta": 1.0}),
        ("infinite", {"pool": POOL * math.inf}),
        ("pool", {"pool": np.ones((5, 2))}),
    ],
)
def test_bad_input_is_refused(name, changed):
    with np.errstate(all="ignore"), pytest.raises(ParameterError, match=name):
        suggest(**changed)


def test_a_vector_is_no_pool():
    with pytest.raises(ShapeError):
        suggest(POOL[0])
