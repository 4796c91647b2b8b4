"""Tests of the private modules adaptation.discrepancies.private and exact: sums, grid and ball."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from hdp_fast import Budget
from hdp_fast.adaptation import discrepancy, release_discrepancy
from hdp_fast.adaptation.discrepancies.exact import maximize_magnitude, validate_problem
from hdp_fast.adaptation.discrepancies.moments import (
    RecordBounds,
    Sample,
    choose_units,
    fold_moments,
    restrict_ball,
    unit_of,
)
from hdp_fast.adaptation.discrepancies.private import (
    _choose_grid,
    _compare_losses,
    _open_domains,
    _round_to_grid,
)
from hdp_fast.data import Chunks
from hdp_fast.exceptions import ParameterError, ShapeError


def sample(rng, n, d, shift=0.0):
    """Rows of norm at most 1 and labels in [-1, 1] that partly follow them."""
    X = rng.normal(size=(n, d)) + shift
    X /= np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
    return X, np.clip(X[:, 0] + 0.3 * rng.normal(size=n), -1, 1)


def problem(seed, m=40, n=30, d=2):
    rng = np.random.default_rng(seed)
    return *sample(rng, m, d), *sample(rng, n, d, 0.3)


def disc(radius, center=(0.0, 0.0), angles=4000, rings=60):
    """Points of a disc, its edge in particular."""
    turns = np.linspace(0, 2 * math.pi, angles, endpoint=False)
    edge = radius * np.column_stack([np.cos(turns), np.sin(turns)])
    inner = [edge[::20] * r for r in np.linspace(0, 1, rings)]
    return np.concatenate([edge, *inner]) + np.array(center)


def released(data, **options):
    return release_discrepancy(*data, **({"radius": 2, "norm_bound": 1} | options))


BOUNDS = RecordBounds(1.0, 1.0)


def compute(data, radius, private="target", around=None, local=None):
    """The value before noise with its certified gap, and the grid."""
    domains = _open_domains(*data)
    ball, _ = restrict_ball(domains[0].columns, radius, around, local)
    difference = _compare_losses(domains, BOUNDS, ball, private)
    grid = _choose_grid(domains, BOUNDS, ball, private)
    return maximize_magnitude(difference, "exact"), grid


# Release ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("private", ["target", "source"])
@pytest.mark.parametrize(("around", "local"), [(None, None), ([0.5, 0.5], 0.5), ([1.5, 0], 2.5)])
def test_one_record_moves_the_value_by_at_most_the_sensitivity(private, around, local):
    rng = np.random.default_rng(11)
    largest = 0.0
    for seed in range(60):
        Xs, ys, Xt, yt = data = problem(seed, 5, 6)
        X, y = (Xt.copy(), yt.copy()) if private == "target" else (Xs.copy(), ys.copy())
        X[2], y[2] = rng.normal(size=2) * 10 ** rng.uniform(-1, 2), rng.choice([-9, -1, 0, 1])
        pair = data, (Xs, ys, X, y) if private == "target" else (X, y, Xt, yt)
        (one, grid), (two, same) = (compute(each, 2.0, private, around, local) for each in pair)
        assert grid == same
        moved = abs(one.value - two.value)
        assert moved <= float(grid.step * 1024 - 2 * grid.gap) + one.gap + two.gap
        steps = [_round_to_grid(each.value, grid) for each in (one, two)]
        assert abs(steps[0] - steps[1]) <= 1024
        largest = max(largest, abs(steps[0] - steps[1]))
    assert largest > 100


def test_the_sensitivity_is_attained():
    """At w = 1 the source has no loss, and target records have the largest or none."""
    Xs, ys = np.ones((3, 1)), np.ones(3)
    values = []
    for k in (3, 4):
        yt = np.array([-1.0] * k + [1.0] * (6 - k))
        data = Xs, ys, np.ones((6, 1)), yt
        value, grid = compute(data, 1.0)
        values.append(value.value)
    assert values[1] - values[0] == pytest.approx(4 / 6, rel=1e-5)
    assert _round_to_grid(values[1], grid) - _round_to_grid(values[0], grid) in (1023, 1024)


# Every record that a tiny sample may hold: beyond the bounds, at them, ties and zeros.
RECORDS = [*itertools.product((-1.0, 0.0, 0.3, 1e9), (-1.0, 0.2, 7.0))]


def exact_parabola(records, units):
    """The mean loss a w**2 + b w + c of integers, in fractions that round nothing."""
    rows, labels = (np.array(column) for column in zip(*records, strict=True))
    sample = Sample("target", rows[:, None], labels)
    sums = fold_moments("a job", sample, BOUNDS, units, labels=True).sums["moments"]
    unit, n = Fraction(unit_of(BOUNDS, units, 1)), len(records)
    a, b, c = (Fraction(int(sums[place])) / n for place in ((0, 0), (0, 1), (1, 1)))
    return a * unit**2, -2 * b * unit / units, c / units**2


def exact_supremum(one, other, low, high):
    """The largest |difference| of two parabolas between two fractions."""
    a, b, c = (x - y for x, y in zip(one, other, strict=True))
    places = [low, high]
    if a and low <= -b / (2 * a) <= high:
        places.append(-b / (2 * a))
    return max(abs(a * w * w + b * w + c) for w in places)


@pytest.mark.parametrize(("radius", "around", "local"), [(1.0, None, None), (2.0, [0.5], 0.75)])
@pytest.mark.parametrize("n", [1, 2])
def test_of_all_tiny_samples_and_neighbors_none_moves_more_than_stated(n, radius, around, local):
    """The other sample has records at the bounds; suprema are exact fractions."""
    others = [(1.0, 1.0), (-0.5, 0.25), (1.0, -1.0)]
    center, reach = (0.0, radius) if around is None else (around[0], local)
    low, high = Fraction(center) - Fraction(reach), Fraction(center) + Fraction(reach)
    public = exact_parabola(others, choose_units(3))
    suprema, steps, all_samples = {}, {}, [*itertools.product(RECORDS, repeat=n)]
    X, y = (np.array(column) for column in zip(*others, strict=True))
    for records in all_samples:
        rows, labels = (np.array(column) for column in zip(*records, strict=True))
        value, grid = compute(
            (X[:, None], y, rows[:, None], labels), radius, "target", around, local
        )
        suprema[records] = exact_supremum(
            exact_parabola(records, choose_units(n)), public, low, high
        )
        assert abs(Fraction(value.value) - suprema[records]) <= grid.gap
        steps[records] = _round_to_grid(value.value, grid)
    sensitivity, largest = grid.step * 1024 - 2 * grid.gap, 0
    for records in all_samples:
        for place, record in itertools.product(range(n), RECORDS):
            other = (*records[:place], record, *records[place + 1 :])
            assert abs(suprema[records] - suprema[other]) <= sensitivity
            assert abs(steps[records] - steps[other]) <= 1024
            largest = max(largest, abs(steps[records] - steps[other]))
    assert largest > 500


def test_sums_are_those_of_integers_without_bounds():
    """Records at their bounds, so many that sums are as large as they get; nothing wraps."""
    n = 5_000
    units, rows = choose_units(n), np.tile([[1e300, -1e300], [3.0, 4.0], [0, 0]], (n // 3 + 1, 1))
    labels = np.tile([1e30, -1e30, 0.1], n // 3 + 1)
    sample = Sample("target", rows[:n], labels[:n])
    sums = fold_moments("a job", sample, BOUNDS, units, labels=True).sums["moments"]
    scale = 1 / unit_of(BOUNDS, units, 2)
    # The norm of the first row overflows: it counts as zeros, and its label counts.
    row = [round(0.6 * scale), round(0.8 * scale), -units]
    label = [0, 0, round(0.1 * units)]
    each = [[0, 0, units], row, label]
    counts = [-(-(n - place) // 3) for place in range(3)]
    want = sum(k * np.outer(np.array(v, object), v) for k, v in zip(counts, each, strict=True))
    assert (sums == want).all()
    assert int(want[-1, -1]) > 2**53
    assert choose_units(2**31) ** 2 * 2**31 < 2**62


# Parts --------------------------------------------------------------------------------------------


def parts_of(X, y, cuts=(0, 0, 3, 17, 30)):
    return [(X[low:high], y[low:high]) for low, high in itertools.pairwise(cuts)]


@pytest.mark.parametrize("private", ["target", "source"])
@pytest.mark.parametrize("noise", [{"epsilon": 0.7}, {"mu": 0.7}])
def test_parts_have_the_bits_of_one_array(tmp_path, private, noise):
    pd = pytest.importorskip("pandas")
    Xs, ys, Xt, yt = data = problem(5)
    options = {"private": private, "random_state": 1, **noise}
    whole = released(data, **options).to_json()
    target = Chunks(parts_of(Xt, yt)[::-1])
    source = Chunks(parts_of(Xs, ys, (0, 11, 40)))
    assert released((Xs, ys, target), **options).to_json() == whole
    assert released((source, None, Xt, yt), **options).to_json() == whole
    # Files whose columns stand in another order than the target's.
    for name, X, y in (("b", Xs[:, ::-1], ys), ("a", Xt, yt)):
        frame = pd.DataFrame(X, columns=["q", "p"] if name == "b" else ["p", "q"]).assign(y=y)
        for place, part in enumerate((frame[:9], frame[9:])):
            part.to_csv(tmp_path / f"{name}{place}.csv", index=False)
    source, target = (Chunks(f"{tmp_path}/{name}*.csv", label="y") for name in "ba")
    assert released((source, None, target), **options).to_json() == whole


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"y_target": np.zeros(30)}, ParameterError, "y_target was passed beside Chunks"),
        ({"X_target": np.zeros((3, 2))}, ParameterError, "y_target = None"),
        ({"X_target": Chunks([np.zeros((3, 2))])}, ParameterError, "the parts have no labels"),
        ({"X_target": Chunks([(np.zeros((3, 1)), [0, 0, 0])])}, ShapeError, "1 feature"),
        ({"X_source": Chunks([(np.ones((3, 2)), [0, 0, 0])])}, ParameterError, "a longer row"),
        ({"X_target": Chunks([(np.ones((0, 2)), [])])}, ShapeError, "X_target has no row"),
        ({"X_source": Chunks([(np.ones((0, 2)), [])])}, ShapeError, "X_source has no row"),
        ({"X_target": Chunks([(np.full((3, 2), np.nan), [0, 0, 0])])}, ParameterError, "target: X"),
    ],
)
def test_bad_parts_are_refused_before_anything_is_spent(change, error, text):
    Xs, ys, Xt, yt = problem(5)
    records = {"X_source": Xs, "y_source": ys, "X_target": Chunks([(Xt, yt)]), "y_target": None}
    records |= change
    if "X_source" in change:
        records["y_source"] = None
    budget = Budget(1.0)
    with pytest.raises(error, match=text):
        release_discrepancy(*records.values(), radius=2, norm_bound=1, epsilon=1.0, budget=budget)
    assert budget.spent.epsilon == 0


def test_people_in_parts_are_refused():
    pd = pytest.importorskip("pandas")
    Xs, ys, Xt, yt = problem(5)
    frame = pd.DataFrame(Xt).rename(columns=str).assign(y=yt, who=np.arange(30) // 2)
    people = Chunks([frame], label="y", ids="who")
    for data in ((Xs, ys, people), (people, None, Xt, yt)):
        with pytest.raises(ParameterError, match="protects rows and not people"):
            released(data, epsilon=1.0)


@pytest.mark.parametrize(("n", "d"), [(1, 1), (50, 2), (5000, 8), (300, 64)])
def test_the_public_gap_covers_the_certified_one(n, d):
    rng = np.random.default_rng(0)
    corner = np.eye(d)[rng.integers(d, size=n)], np.sign(rng.normal(size=n))
    along = np.tile(np.ones(d) / math.sqrt(d), (n, 1)), np.ones(n)
    kinds = [sample(rng, n, d), sample(rng, n, d, 1.0), corner, along]
    for source, target in itertools.product(kinds, repeat=2):
        for radius in (0.01, 50.0):
            value, grid = compute((*source, *target), radius)
            assert value.gap <= grid.gap
            assert grid.gap <= 1e-8 * grid.loss_bound


@pytest.mark.parametrize(("noise", "steps"), [({"epsilon": 1e6}, 0), ({"mu": 1e6}, 0)])
def test_with_hardly_any_noise_the_value_is_the_discrepancy(noise, steps):
    data = problem(3)
    _, grid = compute(data, 2.0)
    off = abs(released(data, **noise).value - discrepancy(*data, radius=2).value)
    # Rounding records to integers moves the value by a few millionths.
    assert off <= float(grid.step) * (steps + 0.5) + 1e-5


@pytest.mark.parametrize("local", [0.3, 1.0, 1.9, 2.5, 5.0])
def test_the_ball_around_an_intersection_holds_it(local):
    data, center = problem(0), np.array([1.2, 1.3])
    points = disc(2.0)
    inside = points[np.linalg.norm(points - center, axis=1) <= local]
    ball = validate_problem(data, 2.0, 1.0, "target", center, local).ball
    assert (np.linalg.norm(inside - ball.center, axis=1) <= ball.radius + 1e-12).all()
    assert ball.radius <= min(2.0, local) + 1e-12
