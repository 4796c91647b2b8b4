"""Covariance matrices: sensitivity in exact integers, coverage, bad input."""

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from cases import each_case

from hdp_fast import Budget, statistics
from hdp_fast.data.goal import check_goal
from hdp_fast.data.rows import check_bounds
from hdp_fast.exceptions import ParameterError, ShapeError, UtilityWarning
from hdp_fast.statistics import covariances
from hdp_fast.statistics.bounded_columns import Groups
from hdp_fast.statistics.moment_sums import settle_columns
from hdp_fast.statistics.release_noise import Noise

RELATIONS = ["replace_one", "add_remove"]
BOUNDS = {"low": -1.0, "high": 1.0}
ROWS = list(itertools.product([-1.0, -0.5, 0.25, 1.0, 9.0, math.nan], repeat=2))


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("width", [1, 2])
def test_no_neighbors_differ_by_more(monkeypatch, relation, width):
    """And the sensitivity of one column is reached: half of it would be too small."""
    caught = []
    real = covariances.release

    def release(sums, sensitivity, *arguments, **options):
        caught[:] = [sums, sensitivity]
        return real(sums, sensitivity, *arguments, **options)

    monkeypatch.setattr(covariances, "release", release)

    def sums_of(*rows):
        table = np.array(rows)[:, :width]
        statistics.covariance(table, epsilon=1.0, neighbors=relation, random_state=0, **BOUNDS)
        return [int(part) for part in caught[0].ravel()]

    alone = {row: sums_of(row) for row in ROWS}
    kept = ROWS[0]
    gaps = []
    for row, sums in alone.items():
        if relation == "replace_one":
            gaps += [[a - b for a, b in zip(sums, other, strict=True)] for other in alone.values()]
        else:
            both = sums_of(kept, row)
            gaps.append([a - b for a, b in zip(both, alone[kept], strict=True)])
    assumed = caught[1]
    absolute = max(sum(map(abs, gap)) for gap in gaps)
    squared = max(sum(step**2 for step in gap) for gap in gaps)
    assert assumed.absolute / 2 < absolute <= assumed.absolute
    assert assumed.squared / 2 < squared <= assumed.squared
    if width == 1:
        assert squared == assumed.squared


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("width", [1, 2, 4])
def test_groups_cost_what_a_record_moves(monkeypatch, relation, width):
    """Over all records at the ends and the middle of the bounds, in two groups or none."""
    caught = []
    real = covariances.release

    def release(sums, sensitivity, *arguments, **options):
        caught[:] = [sums, sensitivity]
        return real(sums, sensitivity, *arguments, **options)

    monkeypatch.setattr(covariances, "release", release)

    def sums_of(rows, keys):
        options = {"by": np.array(keys), "groups": ["a", "b"], "random_state": 0, **BOUNDS}
        statistics.covariance(np.array(rows), epsilon=1.0, neighbors=relation, **options)
        return caught[0].ravel().astype(object)

    values = [-1.0, 0.0, 1.0] if width < 4 else [-1.0, 1.0]
    rows = list(itertools.product(itertools.product(values, repeat=width), "abc"))
    kept = ([1.0] * width, "a")
    alone = [sums_of([kept[0], row], [kept[1], key]) for row, key in rows]
    if relation == "replace_one":
        gaps = [one - other for one in alone for other in alone]
    else:
        gaps = [one - sums_of([kept[0]], [kept[1]]) for one in alone]
    assumed = caught[1]
    absolute, squared = max(np.abs(gap).sum() for gap in gaps), max((g**2).sum() for g in gaps)
    assert assumed.absolute * 0.9 <= absolute <= assumed.absolute
    assert assumed.squared * 0.7 <= squared <= assumed.squared


def test_matrices_of_groups_are_those_of_their_records():
    rows = np.random.default_rng(0).uniform(-1, 1, (6_000, 2))
    keys = np.array(["a", "b", "c"])[np.arange(6_000) % 3]
    rows[keys == "b", 1] = rows[keys == "b", 0]
    released = statistics.covariance(
        rows, by=keys, groups=["a", "b", "d"], epsilon=1e5, random_state=0, **BOUNDS
    )
    assert list(released) == ["a", "b", "d"]
    for key in ("a", "b"):
        truth = np.cov(rows[keys == key], rowvar=False, bias=True)
        assert np.abs(released[key].value - truth).max() < 1e-3
        assert (released[key].low <= truth).all()
        assert (truth <= released[key].high).all()


@pytest.mark.parametrize("delta", [None, 1e-5])
@pytest.mark.parametrize("relation", RELATIONS)
def test_intervals_cover(relation, delta):
    rows = np.random.default_rng(0).uniform(-1.2, 1.2, (3_000, 3))
    rows[:, 1] += rows[:, 0]
    truth = np.cov(rows.clip(-1, 1), rowvar=False, bias=True)
    coins, covered = np.random.default_rng(1), []
    for _ in range(60):
        released = statistics.covariance(
            rows, epsilon=3.0, delta=delta, neighbors=relation, confidence=0.8,
            random_state=coins, **BOUNDS,
        )  # fmt: skip
        covered.append((released.low <= truth) & (truth <= released.high))
        assert (released.value == released.value.T).all()
    assert np.mean(covered) > 0.78
    exact = statistics.covariance(rows, epsilon=1e6, neighbors=relation, random_state=0, **BOUNDS)
    assert np.abs(exact.value - truth).max() < 1e-3


def test_an_interval_holds_where_all_noise_points_one_way():
    """The noise of both means multiplies: the square of its half width counts."""
    total, beta, mean = (1 << 15) ** 2, 0.05, 0.5
    drawn = Noise("laplace", Fraction(total, 20))
    half = drawn.half_width(beta / 3) / total
    assert 0.1 < half < 0.5
    sums = np.array([int(mean * total), total // 3])
    value, error = covariances._estimate(sums, 1, 1, (drawn, beta))
    farthest = (
        sums[1] / total + half - (mean - half) ** 2,
        sums[1] / total - half - (mean + half) ** 2,
    )
    worst = max(abs(truth - value[0, 0]) for truth in farthest)
    assert worst <= error[0, 0] <= worst + 4 / (1 << 15)


@pytest.mark.parametrize("relation", RELATIONS)
def test_private_values_show_in_no_error_warning_or_shape(relation):
    worst = np.array([[math.nan, math.inf], [-math.inf, 1e308], [0.0, -1e308]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UtilityWarning)
        released = statistics.covariance(worst, epsilon=1.0, neighbors=relation, **BOUNDS)
    assert released.value.shape == (2, 2)
    assert np.isfinite(released.value).all()
    nobody = np.zeros((0, 2))
    if relation == "add_remove":
        options = {"epsilon": 1.0, "neighbors": relation}
        assert statistics.covariance(nobody, **options, **BOUNDS).value.shape == (2, 2)
    else:
        with pytest.raises(ShapeError, match="no record"):
            statistics.covariance(nobody, epsilon=1.0, **BOUNDS)


BAD = {
    "epsilon": [0, math.nan, math.inf, "1", 1e-12],
    "delta": [0, 1, "x"],
    "neighbors": ["local", None],
    "confidence": [0, 1],
    "low": [math.nan, 1.0, -1e31, "0", [0, 0, 0]],
    "high": [math.inf, -1.0, None],
    "random_state": [-1],
    "values": [[["a"]], 3, [[1j]], np.zeros((2, 1_001))],
    "budget": [1],
}


@each_case(
    ("argument", "value"), [(name, value) for name, values in BAD.items() for value in values]
)
def test_bad_input_is_refused_before_anything_is_spent(argument, value):
    budget = Budget(5.0)
    settings = {"epsilon": 1.0, "budget": budget, **BOUNDS, argument: value}
    values = settings.pop("values", [[0.0, 1.0], [1.0, 0.0]])
    with pytest.raises((ParameterError, ShapeError)) as error:
        statistics.covariance(values, **settings)
    assert argument in str(error.value)
    assert budget.spent.epsilon == 0


@each_case("relation", ["replace_one", "add_remove"])
@each_case("grouped", [False, True])
def test_products_of_parts_add_up_and_their_release_is_that_of_all(grouped, relation):
    rng = np.random.default_rng(6)
    rows, n = rng.normal(size=(200, 3)), 200
    groups = Groups((0, 1), rng.integers(0, 2, n)) if grouped else None
    names, keys = ("x0", "x1", "x2"), groups.keys if groups else None
    public = settle_columns(names, check_bounds(-1, 2, 3), keys, relation, n)
    total = 0
    for part in (slice(150, 200), slice(0, 150)):
        members = groups and Groups(groups.keys, groups.codes[part])
        total = total + covariances.add_products(rows[part], public, members)
    assert (total == covariances.add_products(rows, public, groups)).all()
    goal = check_goal(1.0, None, relation, None, 3, 0.95)
    by = {"by": groups.codes, "groups": [0, 1]} if groups else {}
    whole = statistics.covariance(
        rows, low=-1, high=2, epsilon=1.0, neighbors=relation, random_state=3, **by
    )
    assert repr(covariances.release_products(total, public, goal)) == repr(whole)
