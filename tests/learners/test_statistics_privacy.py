"""The price of sufficient statistics, by grids and by all tiny data sets; a private module's
test."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case

from hdp_fast import accounting
from hdp_fast.exceptions import ParameterError
from hdp_fast.learners import FeatureMap
from hdp_fast.learners.statistics_features import feature_sums
from hdp_fast.learners.statistics_noise import (
    MOST_RECORDS,
    Released,
    calibrate_statistics,
    joint_mu_squared,
    noise_mu_squared,
    statistics_epsilon,
)

KINDS = [
    (classes, nonnegative, adds)
    for classes in (2, 3, 10, 100, None)
    for nonnegative in (False, True)
    for adds in (False, True)
]


def label_parts(classes):
    """The label's part of a record, for two labels that differ and for all extreme targets."""
    if classes is None:
        return [np.array([1.0]), np.array([-1.0]), np.array([0.0]), np.array([0.3])]
    return [np.eye(classes)[label] - 1 / classes for label in (0, 1)]


def grid_price(released, A, B):
    """The largest squared distance over pairs of records, by norms, an angle and labels."""
    parts, largest = label_parts(released.classes), 0.0
    norms = (0.0, 0.3, 0.8, 1.0)
    if released.adds:
        return max(A * float(part @ part) * r**2 + B * r**4 for part in parts for r in norms)
    low = 0.0 if released.nonnegative_products else -1.0
    cosines = np.linspace(low, 1, 401 if low else 201)
    for (r, s), a, b in itertools.product(itertools.product(norms, repeat=2), parts, parts):
        t, u, v = cosines * r * s, r * r, s * s
        second = B * (u * u + v * v - 2 * t * t)
        first = A * (u * (a @ a) + v * (b @ b) - 2 * t * (a @ b))
        largest = max(largest, float((first + second).max()))
    return largest


@each_case(("classes", "nonnegative", "adds"), KINDS)
def test_the_price_is_the_worst_pair_of_records(classes, nonnegative, adds):
    released = Released(classes, True, nonnegative, adds)
    for ratio in (1e-4, 0.03, 0.5, 1.0, 3.0, 100.0, 1e4):
        A, B = Fraction(1), Fraction(ratio)
        price = float(joint_mu_squared(released, A, B))
        worst = grid_price(released, 1.0, ratio)
        assert worst <= price * (1 + 1e-12)
        assert worst >= price * (1 - 1e-3)


@each_case(("classes", "nonnegative", "adds"), KINDS)
def test_without_second_moments_the_price_is_the_known_sensitivity(classes, nonnegative, adds):
    price = joint_mu_squared(Released(classes, False, nonnegative, adds), Fraction(1), Fraction(0))
    k = 1 if classes is None else 1 - Fraction(1, classes)
    if adds:
        assert price == k
    elif nonnegative and classes is not None:
        assert price == 2
    else:
        assert price == 4 * k


def closed_form(released, A, B):
    """What a reader writes down: two cases for each relation."""
    K = released.classes
    k = 1 if K is None else 1 - Fraction(1, K)
    if released.adds:
        return k * A + B
    if released.nonnegative_products and K is not None:
        return 2 * k * A + 2 * B + A**2 / (2 * K**2 * B) if A <= 2 * K * B else 2 * A
    return 2 * B * (1 + k * A / (2 * B)) ** 2 if k * A <= 2 * B else 4 * k * A


@each_case(("classes", "nonnegative", "adds"), KINDS)
def test_the_price_is_the_closed_form(classes, nonnegative, adds):
    released = Released(classes, True, nonnegative, adds)
    for power in range(-20, 21):
        A, B = Fraction(1), Fraction(3, 2) ** power
        assert joint_mu_squared(released, A, B) == closed_form(released, A, B)


def integer_rows(bits, columns, nonnegative):
    """All integer rows of norm at most 2**bits, without a negative entry where that is promised."""
    side = range(0 if nonnegative else -(1 << bits), (1 << bits) + 1)
    rows = itertools.product(side, repeat=columns)
    return [np.array(row) for row in rows if sum(x * x for x in row) <= 4**bits]


def exact_price(noise, classes, nonnegative, adds, second=True):
    """The largest squared mu over all pairs of records, from the integers that are released."""
    records = [
        (row, row[:, None] * (classes * np.eye(classes, dtype=int)[label] - 1))
        for row in integer_rows(noise.bits, 2, nonnegative)
        for label in range(classes)
    ]
    empty = (np.zeros(2, int), np.zeros((2, classes), int))
    largest = Fraction(0)
    for first, other in itertools.product(records, [empty] if adds else records):
        sums = int(((first[1] - other[1]) ** 2).sum())
        total = Fraction(sums) / noise.sums**2
        if second:
            moved = np.outer(first[0], first[0]) - np.outer(other[0], other[0])
            total += Fraction(int((np.diag(moved) ** 2).sum())) / noise.diagonal**2
            total += Fraction(int((np.triu(moved, 1) ** 2).sum())) / noise.above**2
        if adds:
            total += 1 / noise.records**2
        largest = max(largest, total)
    return largest


def tiny_noise(released, ratio):
    noise = calibrate_statistics(released, epsilon=1.0, delta=1e-6, ratio=ratio, n=100)
    # The same noise on the coarse grid of all integer rows.
    unit = Fraction(4, 1 << noise.bits)
    second = None if noise.diagonal is None else noise.diagonal * unit**2
    above = None if noise.above is None else noise.above * unit**2
    return noise._replace(bits=2, sums=noise.sums * unit, diagonal=second, above=above)


@pytest.mark.thorough(cases=8)
@pytest.mark.parametrize("ratio", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("adds", [False, True])
@pytest.mark.parametrize(("classes", "nonnegative"), [(2, False), (3, False), (2, True), (3, True)])
def test_all_tiny_data_sets_keep_the_price(classes, nonnegative, adds, ratio):
    released = Released(classes, True, nonnegative, adds)
    noise = tiny_noise(released, ratio)
    worst, price = exact_price(noise, classes, nonnegative, adds), accounting.gaussian_mu(1.0, 1e-6)
    assert math.sqrt(worst) <= price
    # Few angles exist among integers: the worst one is missed by little.
    assert math.sqrt(worst) >= price * (0.9 if not adds else 0.999)


TWINS = {
    "half the sensitivity": lambda noise: noise._replace(sums=noise.sums / 2),
    "the diagonal's noise divided by sqrt(2), too": lambda noise: noise._replace(
        diagonal=noise.above
    ),
    "half the deviation above the diagonal": lambda noise: noise._replace(above=noise.diagonal / 2),
    "only one of two labels counted": lambda noise: noise._replace(
        sums=noise.sums * Fraction(7, 10), diagonal=noise.diagonal * Fraction(7, 10)
    ),
}


@pytest.mark.thorough(cases=2)
@pytest.mark.parametrize("twin", TWINS)
def test_wrong_constants_are_caught(twin):
    """With noise on the moments large or small, whichever the constant is about."""
    released = Released(2, True, False, False)
    broken = [
        exact_price(TWINS[twin](tiny_noise(released, ratio)), 2, False, False)
        for ratio in (0.3, 3.0)
    ]
    assert math.sqrt(max(broken)) > 1.01 * accounting.gaussian_mu(1.0, 1e-6)


def test_features_of_both_signs_break_the_price_of_nonnegative_ones():
    noise = tiny_noise(Released(3, True, True, False), 3.0)
    assert math.sqrt(exact_price(noise, 3, False, False)) > 1.1 * accounting.gaussian_mu(1.0, 1e-6)


def test_adding_both_prices_is_never_less_and_up_to_a_seventh_more():
    gains = []
    for classes, nonnegative in [(2, False), (10, False), (2, True), (10, True)]:
        both = Released(classes, True, nonnegative, False)
        for ratio in np.logspace(-2, 2, 41):
            A, B = Fraction(1), Fraction(float(ratio))
            apart = joint_mu_squared(both, A, Fraction(0)) + 2 * B
            gains.append(math.sqrt(apart / joint_mu_squared(both, A, B)))
    assert min(gains) >= 1
    assert 1.1 < max(gains) < 1.16


@each_case("second", [False, True])
@each_case(("classes", "nonnegative", "adds"), KINDS)
@each_case("epsilon", [0.1, 1.0, 8.0])
def test_the_calibrated_noise_has_the_promised_epsilon(classes, nonnegative, adds, second, epsilon):
    released = Released(classes, second, nonnegative, adds)
    noise = calibrate_statistics(
        released, epsilon=epsilon, delta=1e-6, ratio=1.5, n=None if adds else 1_000
    )
    stated = statistics_epsilon(released, noise, 1e-6)
    assert epsilon * (1 - 1e-3) <= stated <= epsilon
    assert all(part is None or part.denominator <= 1_024 for part in noise[1:])
    assert noise.bits >= 8
    if second:
        assert abs(2 * (noise.above / noise.diagonal) ** 2 - 1) < 1e-4
    if adds:
        assert noise.records > 0


def test_sums_and_noise_fit_into_64_bits():
    for n, epsilon, second, classes in itertools.product(
        (1, 10**6, MOST_RECORDS), (0.01, 1.0), (False, True), (2, 4_096, None)
    ):
        released = Released(classes, second, False, False)
        noise = calibrate_statistics(released, epsilon=epsilon, delta=1e-6, ratio=1.0, n=n)
        scale = classes or 1 << noise.bits
        assert n * 2**noise.bits * scale + 64 * noise.sums < 2**63
        assert n * 4**noise.bits <= 2**62
        assert noise.sums < 2**50
        if second:
            assert n * 4**noise.bits + 64 * noise.diagonal < 2**63
            assert noise.diagonal < 2**50


def test_an_epsilon_beyond_all_noise_is_refused():
    with pytest.raises(ParameterError, match="epsilon"):
        calibrate_statistics(
            Released(2, False, False, False), epsilon=1e-12, delta=1e-12, ratio=1.0, n=10
        )


def test_the_noise_above_and_below_the_worst_is_not_what_its_norm_suggests():
    """Rounding deviations up only ever lowers the price."""
    released = Released(3, True, False, False)
    noise = calibrate_statistics(released, epsilon=1.0, delta=1e-6, ratio=1.0, n=100)
    more = noise._replace(diagonal=noise.diagonal * 2)
    assert noise_mu_squared(released, more) <= noise_mu_squared(released, noise)


@pytest.mark.parametrize("bits", [2, 3, 6, 20])
def test_the_integers_of_a_map_with_a_constant_have_no_negative_product(bits):
    """That of opposite long rows would be negative if the constant alone were cut."""
    features = FeatureMap.identity(2, constant=True)
    angles = np.linspace(0, 2 * np.pi, 181)
    rows = 5 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert features.nonnegative_products
    parts = feature_sums(features, rows, np.arange(181), 181, bits=bits, second=False).by_class
    assert (parts @ parts.T).min() >= 0
    assert (parts**2).sum(axis=1).max() <= 4**bits
