"""One text for one rule in both languages: the private `_core` and `_support.validate` compared."""

import math
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from hdp_fast import _core
from hdp_fast._support import validate
from hdp_fast.exceptions import ParameterError

OF_NO_KIND = [
    True,
    np.True_,
    None,
    1j,
    np.complex128(1),
    np.ma.masked,
    [1],
    (1, 2),
    {},
    object,
    "x" * 78,
    "x" * 79,
]
ARRAYS = [np.zeros(3), np.zeros((2, 0)), np.ma.zeros(3), np.array("x")]
TEXTS = ["1", "", b"1", "\N{GREEK SMALL LETTER EPSILON}" * 100, "it's"]
NUMBERS = [
    *(0, -1, -1.0, -0.0, math.nan, math.inf, -math.inf, np.float32(-1.5), np.int8(-1)),
    *(Fraction(-1, 3), Decimal("-1.50"), 10**400, -(10**100), np.array(-1.0)),
]
# Of more digits than Python prints.
HUGE = 10 ** (sys.get_int_max_str_digits() + 1)
WRONG = [*OF_NO_KIND, *ARRAYS, *TEXTS, *NUMBERS, HUGE]
NO_COUNTS = [*OF_NO_KIND, *ARRAYS, *TEXTS, -1, 1.0, 2**63, 2**64, 2**100, np.int64(-2), HUGE, -HUGE]
WEIGHTS = _core.DenseWeights(2, 1.0, 1.0)


def said(check, *arguments):
    with pytest.raises(ParameterError) as error:
        check(*arguments)
    return str(error.value)


def test_an_epsilon_is_refused_in_the_same_words():
    for value in WRONG:
        words = said(validate.positive, "epsilon", value)
        assert said(_core.truth_probability, value) == words
        assert len(words) < 200


def test_a_count_is_refused_in_the_same_words():
    for value in NO_COUNTS:
        words = said(validate.nonnegative_int, "m", value)
        assert said(WEIGHTS.draw, value, None) == words


def test_a_word_is_refused_in_the_same_words():
    scores, methods = np.zeros(2, np.int64), ["permute_and_flip", "exponential_mechanism"]
    for value in [*OF_NO_KIND, *ARRAYS, *TEXTS, 0, "Permute_and_flip"]:
        words = said(validate.one_of, "method", value, methods)
        assert said(_core.select, value, scores, (1, 1), None) == words


def mechanism(kind, parameter, draws=1, rate=1.0):
    return (kind, (parameter,), draws, rate)


GAUSSIAN = [(mechanism("gaussian", 1.0), 1)]
RECORDS = (np.ones(2), 1, np.ones(2))
PLAN = {
    **{"loss": "logistic", "shape": 1.0, "classes": 1, "steps": 1, "batch_size": 1, "radius": 1.0},
    **{"bounds": None, "last": False, "start": None, "norm_bound": 1.0, "clip_norm": 1.0},
    **{"l1": 0.0, "l2": 0.0, "strong_convexity": 0.0, "sampling": "fixed", "numerics": "none"},
    "noise_multiplier": (0, 1),
}


def descend(name, value):
    _core.sgd_learn(RECORDS, None, {**PLAN, name: value}, b"k" * 32)


# Who refuses in Rust, and the rule in Python; the core has lost how Python wrote the number.
PAIRS = {
    "mu": (lambda: _core.check_mechanism(mechanism("gaussian", -1.0)), validate.positive, -1.0),
    "rho": (
        lambda: _core.check_mechanism(mechanism("zcdp", math.nan)),
        validate.positive,
        math.nan,
    ),
    "epsilon": (
        lambda: _core.composed_delta(GAUSSIAN, -1.0, "pld"),
        validate.finite_nonnegative,
        -1.0,
    ),
    "chi2": (
        lambda: _core.plan_parity_uniform_target(9, -1.0, 0.1, 1.0, "loop", "replace_one"),
        validate.finite_nonnegative,
        -1.0,
    ),
    "delta": (lambda: _core.composed_epsilon(GAUSSIAN, 2.0, "pld"), validate.probability, 2.0),
    "kappa": (lambda: _core.check_weights(9, 0.0, 1.0, 1), validate.probability_or_one, 0.0),
    "rate": (
        lambda: _core.check_mechanism(mechanism("pure", 1.0, rate=2.0)),
        validate.probability_or_one,
        2.0,
    ),
    "draws": (
        lambda: _core.check_mechanism(mechanism("pure", 1.0, draws=2**54)),
        lambda name, value: validate.positive_int(name, value, 2**53),
        2**54,
    ),
    "rounds": (
        lambda: _core.composed_epsilon([(mechanism("pure", 1.0), 0)], 0.1, "pld"),
        lambda name, value: validate.positive_int(name, value, 2**53),
        0,
    ),
    "threads": (
        lambda: _core.rank([[1]], threads=5_000),
        lambda name, value: validate.positive_int(name, value, 1_024),
        5_000,
    ),
    "norm_bound": (lambda: descend("norm_bound", 0.0), validate.bounded_positive, 0.0),
    "l2": (lambda: descend("l2", 1e31), validate.nonnegative, 1e31),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_rule_has_the_same_words(name):
    call, check, value = PAIRS[name]
    refused, (_, _, rule) = said(call), said(check, name, value).partition(", but ")
    assert rule
    assert refused.startswith(f"{name} = ")
    assert refused.endswith(f", but {rule}")


def test_a_plan_that_is_run_is_not_refused():
    descend("l2", 1e-3)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ((9, 1.0, 5.0, 1), "eta = 5, but it must lie in (0, 4]"),
        ((9, 0.1, 1.0, 1), "kappa = 0.1 with n = 9, but kappa n must be at least 1"),
        ((2**31, 1.0, 1.0, 1), "kappa n**2 at most 2**49"),
        ((9, 1.0, 4.0, 1_400), "rounds = 1400, but rounds * eta = 5600 must stay below 5,600"),
    ],
)
def test_weights_are_checked_before_there_are_records(settings, words):
    assert words in said(_core.check_weights, *settings)


@pytest.mark.parametrize("eta", [4.0, 1.0, 0.013])
def test_checked_weights_take_as_many_rounds_as_were_checked(eta):
    rounds = math.ceil(5_600 / eta) - 1
    _core.check_weights(2, 0.5, eta, rounds)
    assert _core.DenseWeights(2, 0.5, eta).room >= rounds
