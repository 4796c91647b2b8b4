"""The descent on all records: what one record adds to a sum, in integers, and where it leads."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from descent_reference import (
    count_margins,
    groups_of,
    margins_of,
    residuals_of,
    scores_of,
    subtract_labels,
    sum_of,
)

from hdp_fast.exceptions import HdpFastError
from hdp_fast.learners import noisy_descent
from hdp_fast.learners.margin_scale import Offsets
from hdp_fast.learners.noisy_descent import (
    DescentNoise,
    DescentPlan,
    Grid,
    IntegerRows,
    calibrate_descent,
    cut_rows,
    cut_targets,
    descend,
    find_sigma,
    plan_descent,
    plan_target_descent,
    shrink_by_noise,
)

RNG = np.random.default_rng
# Few digits, so that cuts are coarse: 2**14 for rows is fixed.
COARSE = Grid(bits=4, length=2**16 + 1, sigma=Fraction(1))
FINE = Grid(bits=16, length=2**28 + 1, sigma=Fraction(1))
LINE = np.array([-70.0, -3.0, -0.5, -1e-9, 0.0, 0.3, 1.0, 1e-4, 64.0, 1e9])


def take(rows, codes, classes=2, grid=COARSE):
    codes = np.array(codes).astype(np.int16)
    return IntegerRows(cut_rows(np.array(rows, float)), codes, classes, grid)


def every_record(classes):
    rows = [(*pair, end) for pair in itertools.product(LINE, LINE) for end in (1.0, -1.0)]
    labels = range(classes) if classes > 1 else (-(2**14), -1, 0, 9_000, 2**14)
    return [(row, label) for row in rows for label in labels]


def parts_of(classes, weights, grid=COARSE, broken=None):
    """What each tiny record adds to a sum."""
    parts = []
    for row, code in every_record(classes):
        one = take([row], [code], classes, grid)
        if broken is not None:
            # Before anyone reads them.
            one.__dict__["limits"] = broken(one.limits)
        parts.append(one.add_gradients(weights).ravel())
    return np.array(parts)


def square_distances(parts):
    """The squared distances of all pairs, exact: entries are below 2**31."""
    products = parts.astype(object) @ parts.astype(object).T
    squares = products.diagonal()
    return squares[:, None] + squares - 2 * products


@pytest.mark.parametrize("classes", [1, 2, 3])
@pytest.mark.parametrize("size", [0.0, 0.3, 5.0, 300.0])
def test_no_two_records_are_farther_apart_than_twice_the_length(classes, size):
    """Over all pairs of records of a grid, in integers; whatever the weights are."""
    weights = size * RNG(1).normal(size=(3, 1 if classes <= 2 else classes))
    parts = parts_of(classes, weights)
    largest = square_distances(parts).max()
    assert largest <= (2 * COARSE.length) ** 2
    lengths = (parts.astype(object) ** 2).sum(axis=1)
    assert lengths.max() <= COARSE.length**2
    if not size and classes <= 2:
        # It is attained, but for what is cut.
        assert largest > (2 * COARSE.length * 0.99) ** 2


@pytest.mark.parametrize("classes", [1, 2, 3])
def test_a_record_that_is_not_shrunk_is_seen(classes):
    weights = np.zeros((3, 1 if classes <= 2 else classes))
    for broken in (lambda limits: np.full_like(limits, 1e9), lambda limits: limits * 1.05):
        parts = parts_of(classes, weights, FINE, broken)
        assert square_distances(parts).max() > (2 * FINE.length) ** 2
    sound = parts_of(classes, weights, FINE)
    assert (2 * FINE.length * 0.98) ** 2 < square_distances(sound).max() <= (2 * FINE.length) ** 2


@pytest.mark.parametrize("classes", [2, 4])
def test_cuts_lengthen_no_gradient(classes):
    """Each integer part is at most the real one, shrunk, on the same side of 0."""
    rows = RNG(2).normal(size=(200, 5)) * RNG(3).lognormal(size=(200, 1))
    codes, weights = RNG(4).integers(0, classes, 200), RNG(5).normal(size=(5, classes))
    weights = weights[:, :1] if classes == 2 else weights
    for row, code in zip(rows, codes, strict=True):
        one = take([row], [code], classes)
        integers, part = one.entries[0].astype(np.int64), one.add_gradients(weights)
        assert (np.abs(integers) <= np.abs(row) * 2**14).all()
        scores = (integers @ weights)[None] * 2.0**-14
        rest = subtract_labels(scores, np.array([code]))[0] * 2.0**COARSE.bits
        real = np.outer(integers, rest)
        shrunk = real * min(1, COARSE.length / max(np.linalg.norm(real), 1))
        # But for scores in single precision.
        slack = np.abs(integers)[:, None] * 1e-4
        assert (np.abs(part) <= np.abs(shrunk) + slack).all()
        assert (part * shrunk >= 0).all()
        # No more than a digit of each residual is lost.
        assert (np.abs(part - shrunk) <= 1.001 * np.abs(integers)[:, None] + 1).all()


def problem(n, d, classes, seed=6):
    """Records, some of which are shrunk and some cut, and weights."""
    rng = RNG(seed)
    rows = rng.normal(size=(n, d)) * rng.lognormal(size=(n, 1)) / np.sqrt(d)
    grid = Grid(bits=12, length=2**25 + 3, sigma=Fraction(1))
    labels = rng.integers(0, classes, n) if classes > 1 else rng.integers(-(2**14), 2**14, n)
    records = take(rows, labels, classes, grid)
    return records, 3 * rng.normal(size=(d, 1 if classes <= 2 else classes))


@pytest.mark.parametrize("arm", ["portable", "avx2", "gfni256", "gfni"])
@pytest.mark.parametrize("classes", [1, 2, 3, 5])
def test_sums_are_those_of_integers_on_every_arm(arm, classes, monkeypatch):
    """At all awkward widths and numbers of rows: edges of vectors, of blocks and of parts."""
    monkeypatch.setenv("HDP_FAST_ISA", arm)
    sizes = [(n, 5) for n in (1, 2, 7, 8, 9, 1_023, 1_024, 1_025, 2_100)]
    for n, d in [*sizes, *((200, d) for d in (1, 2, 7, 8, 9, 15, 16, 17, 64, 65, 200))]:
        records, weights = problem(n, d, classes)
        assert records.add_gradients(weights).tolist() == sum_of(records, weights).tolist()
        if classes == 1:
            continue
        edges = np.sort(RNG(d).normal(size=16)) * 3
        margins = margins_of(scores_of(records.entries, weights), records.codes)
        offsets = Offsets.by_shares(RNG(n + d).dirichlet(np.ones(classes)))
        groups = groups_of(offsets, records.codes)
        counts = records.count_margins(weights, edges, offsets.second)
        assert counts.tolist() == count_margins([(margins, groups)], edges).tolist()
        assert counts.sum() == n * (classes - 1)


@pytest.mark.parametrize("classes", [1, 2, 4])
def test_threads_change_no_bit_of_a_descent(classes, monkeypatch):
    n, d = 70_000, 9
    records, _ = problem(n, d, classes)
    plan = DescentPlan(steps=5, rate=2.0, clip_norm=0.4, growth=1.0)
    drawn = RNG(9).integers(-(2**30), 2**30, (5, d, records.columns))
    paths = []
    for arm, threads in itertools.product(["portable", "avx2", "gfni256", "gfni"], ["1", "2", "3"]):
        monkeypatch.setenv("HDP_FAST_ISA", arm)
        monkeypatch.setenv("HDP_FAST_NUM_THREADS", threads)
        path = descend(records, plan, drawn)
        paths.append((path.weights.tobytes(), path.along, path.deviation))
    assert len(set(paths)) == 1


def test_sums_do_not_depend_on_the_order_of_records():
    records, weights = problem(5_000, 7, 2)
    order = RNG(9).permutation(5_000)
    again = IntegerRows(records.entries[order], records.codes[order], 2, records.grid)
    assert again.add_gradients(weights).tolist() == records.add_gradients(weights).tolist()


@pytest.mark.parametrize("classes", [1, 2, 3])
def test_every_record_of_a_sum_is_as_short_as_it_must_be(classes):
    """|z|**2 |r|**2 in integers of Python, with limits that most records are shrunk to."""
    for size in (0.0, 1.0, 1e3, 1e30, np.inf):
        records, weights = problem(3_000, 6, classes)
        records = IntegerRows(records.entries, records.codes, classes, FINE._replace(bits=20))
        with np.errstate(all="ignore"):
            weights = np.nan_to_num(weights * size, nan=0.0, posinf=np.inf, neginf=-np.inf)
        longest = 0
        for place in range(0, 3_000, 7):
            one = IntegerRows(
                records.entries[[place]], records.codes[[place]], classes, records.grid
            )
            part = one.add_gradients(weights).astype(object)
            longest = max(longest, (part**2).sum())
        assert longest <= FINE.length**2
        if size < 1e30:
            assert longest > (0.999 * FINE.length) ** 2
            residuals = residuals_of(records, weights).astype(object)
            squares = (records.entries.astype(object) ** 2).sum(axis=1)
            assert (squares * (residuals**2).sum(axis=1)).max() <= FINE.length**2


def test_arguments_that_would_break_the_proof_are_refused():
    records, weights = problem(10, 3, 3)
    for broken in (
        {"grid": records.grid._replace(length=2**53 // 10 + 1)},
        {"grid": records.grid._replace(bits=31)},
        {"grid": records.grid._replace(length=0)},
        {"codes": np.full(10, 3, np.int16)},
        {"codes": np.full(10, -1, np.int16)},
        {"codes": records.codes[:9]},
        {"classes": 0},
        {"classes": 1025},
    ):
        fields = {name: getattr(records, name) for name in ("entries", "codes", "classes", "grid")}
        with pytest.raises(HdpFastError):
            IntegerRows(**(fields | broken)).add_gradients(weights)
    with pytest.raises(HdpFastError):
        records.add_gradients(weights[:2])
    with pytest.raises(HdpFastError):
        records.descend(DescentPlan(4, 1.0, 1.0, 1.0), np.zeros((1, 3, 3), np.int64))


@pytest.mark.parametrize("classes", [1, 2, 3])
def test_without_noise_it_is_gradient_descent_with_momentum(classes):
    n, d, width = 400, 4, 1 if classes <= 2 else classes
    rows, codes = RNG(10).normal(size=(n, d)) / 2, RNG(11).integers(0, classes, n)
    if classes == 1:
        codes = cut_targets(rows @ [0.3, -0.2, 0.0, 0.1] + 0.1 * RNG(12).normal(size=n))
    plan = DescentPlan(steps=30, rate=2.0 if classes > 1 else 0.5, clip_norm=0.4, growth=1.0)
    grid = calibrate_descent(plan, n, Fraction(1))
    drawn = np.zeros((plan.steps, d, width), np.int64)
    path = descend(take(rows, codes, classes, grid), plan, drawn)
    weights, speed, models, along = np.zeros((d, width)), np.zeros((d, width)), [], []
    norms = np.linalg.norm(rows, axis=1)
    for _ in range(plan.steps):
        scores = rows @ weights
        if classes == 1:
            rest = scores - codes[:, None] / 2**14
        elif classes == 2:
            rest = 1 / (1 + np.exp(-scores)) - codes[:, None]
        else:
            rest = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
            rest = rest - np.eye(classes)[codes]
        lengths = np.linalg.norm(rest, axis=1) * norms
        gradient = rows.T @ (rest * np.minimum(1, plan.clip_norm / lengths)[:, None]) / n
        along.append((gradient * weights).sum())
        speed = 0.85 * speed + gradient
        weights = weights - plan.rate * speed
        models.append(weights)
    np.testing.assert_allclose(path.weights, np.mean(models[15:], axis=0), atol=2e-3)
    assert path.along == pytest.approx(np.mean(along[15:]), abs=1e-3)


@pytest.mark.parametrize("n", [1, 300, 10**6, 10**9])
@pytest.mark.parametrize("square", [Fraction(1, 10**6), Fraction(3, 7), Fraction(900)])
def test_the_steps_together_have_the_mu_that_is_stated(n, square):
    plan = plan_descent(50.0, 2)
    grid = calibrate_descent(plan, n, square)
    spent = plan.steps * (2 * grid.length) ** 2 / grid.sigma**2
    assert spent <= square
    # The noise is not larger than that asks for, but for its grid.
    less = grid.sigma - Fraction(2, 1024)
    assert plan.steps * (2 * grid.length) ** 2 / less**2 > square
    assert grid.length <= plan.clip_norm * 2 ** (14 + grid.bits)
    assert n * grid.length < 2**53
    assert grid.sigma < 2**50


def test_sigma_is_the_least_of_its_grid():
    for squared, square in itertools.product([1, 2, 6, 10**9], [Fraction(1, 3), Fraction(2), 1]):
        sigma = find_sigma(squared, Fraction(square))
        assert squared / sigma**2 <= square < squared / (sigma - Fraction(1, 1024)) ** 2


def test_no_noise_that_is_drawn_is_enough_for_next_to_nothing():
    assert calibrate_descent(plan_descent(1e-9, 2), 300, Fraction(1, 10**20)) is None
    assert calibrate_descent(plan_descent(1e-9, 2), 300, Fraction(1, 10**700)) is None


def test_the_deviation_along_the_path_is_that_of_its_noise():
    """Labels of chance: what is left along the last models is noise, as large as is stated."""
    n, d, plan = 50, 20, DescentPlan(12, 10.0, 0.25, 1.0)
    grid = calibrate_descent(plan, n, Fraction(1, 100))
    rows = np.zeros((n, d))
    ratios = []
    for seed in range(400):
        drawn = np.rint(RNG(seed).normal(size=(12, d, 1)) * float(grid.sigma)).astype(np.int64)
        path = descend(take(rows, np.zeros(n, int), grid=grid), plan, drawn)
        ratios.append(path.along / path.deviation)
    # Models differ in length from their mean, by which the deviation is stated.
    assert abs(np.mean(ratios)) < 0.3
    assert 0.6 < np.std(ratios) < 1.7


@pytest.mark.parametrize("classes", [1, 2, 5])
def test_values_at_the_ends_warn_of_nothing(classes):
    rows = np.array([[1e308, -1e308, 1.0], [5e-324, 0.0, 1.0], [64.0, 64.0, 64.0]])
    weights = np.full((3, 1 if classes <= 2 else classes), 1e6)
    weights[:, -1] = -1e6
    with np.errstate(all="ignore"):
        total = take(rows, [0, 1, 1], classes).add_gradients(weights)
    assert (np.abs(total) <= 3 * COARSE.length).all()


def test_plans_follow_public_numbers():
    few, many, most = (plan_descent(clear, 2) for clear in (1.0, 800.0, 1e9))
    assert (few.steps, few.clip_norm, few.rate) == (8, 0.25, 10.0)
    assert (many.steps, many.clip_norm) == (113, 0.5)
    assert (most.steps, most.clip_norm, most.growth) == (120, 2.0, 8.0)
    assert (few.averaged, DescentPlan(9, 1.0, 1.0, 1.0).averaged) == (4, 5)
    assert plan_descent(1.0, 10)[1:3] == (20.0, 0.35)
    assert noisy_descent.plan_descent(1.0, 3)[1:3] == (10.0, 0.25)


def test_plans_of_targets_follow_public_numbers_and_their_released_spread():
    few, many, most = (plan_target_descent(clear, 0.2) for clear in (1.0, 35 * 4.0, 1e9))
    assert (few.steps, few.clip_norm, few.rate, few.growth) == (8, 0.25 * 0.2, 1.5, 1.0)
    assert (many.steps, many.clip_norm, many.growth) == (47, 0.1, 2.0)
    assert (most.steps, most.clip_norm, most.growth) == (120, 0.4, 8.0)


def test_targets_are_cut_to_the_integers_of_rows():
    cut = cut_targets(np.array([-7.0, -1.0, -0.4 / 2**14, 0.6 / 2**14, 0.5, 1.0, 2.0]))
    assert cut.tolist() == [-(2**14), -(2**14), 0, 1, 2**13, 2**14, 2**14]


def test_targets_have_no_margins():
    records, weights = problem(10, 3, 1)
    with pytest.raises(HdpFastError, match="targets have no margins"):
        records.count_margins(weights, np.arange(3.0), np.zeros((1, 1), bool))


def known_noise(plan, entry):
    return DescentNoise(plan, entry, 1.0, 0.0, np.zeros(1), np.zeros(1))


def test_weights_of_noise_are_shrunk_to_about_nothing_and_clear_ones_are_kept():
    plan, d = plan_target_descent(50.0, 0.3), 200
    squares = np.full(d, 1 / d)
    known = known_noise(plan, 1e-3)
    variances = known.weight_variances(0.3 * squares)
    noise = np.sqrt(variances) * RNG(1).normal(size=d)
    chance = shrink_by_noise(noise, squares, known)
    assert chance.factor < 0.2
    clear = shrink_by_noise(30 * np.sqrt(variances), squares, known)
    assert clear.factor == pytest.approx(1 - 1 / 900)
    seen = squares @ (30 * np.sqrt(variances)) ** 2
    assert clear.explained == pytest.approx(clear.factor**2 * seen)
    assert clear.left == pytest.approx(clear.factor * squares @ variances)
    assert shrink_by_noise(np.zeros(d), squares, known) == (0.0, 0.0, 0.0)


def test_the_noise_of_a_targets_weights_is_at_most_what_clipped_records_leave():
    """Where no record is clipped the variances are exact; clipped ones pull less."""
    n, d, plan = 400, 3, DescentPlan(30, 1.5, 40.0, 1.0)
    rows = np.linalg.qr(RNG(1).normal(size=(n, d)))[0] * np.sqrt(n / d)
    grid = calibrate_descent(plan, n, Fraction(10_000))
    records = take(rows, cut_targets(0.2 * rows @ np.ones(d)), 1, grid)
    found = []
    for seed in range(300):
        drawn = np.rint(RNG(seed).normal(size=(30, d, 1)) * float(grid.sigma)).astype(np.int64)
        found.append(descend(records, plan, drawn).weights[:, 0])
    known = known_noise(plan, float(grid.sigma) * grid.unit / n)
    stated = np.sqrt(known.weight_variances(np.full(d, 1 / d)))
    np.testing.assert_allclose(np.std(found, axis=0), stated, rtol=0.2)
