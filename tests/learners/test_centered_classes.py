"""Classes of centered rows: one Gaussian budget for means, counts, descent and margins."""

import itertools
import json
import math
import os
import subprocess
import sys
import types
import warnings
from fractions import Fraction

import numpy as np
import pytest
from descent_reference import count_margins, groups_of, margins_of

from hdp_fast import Budget, accounting
from hdp_fast.data import Category, Label, Number, Schema, read_frame
from hdp_fast.data.goal import Goal
from hdp_fast.data.rows import Rows
from hdp_fast.exceptions import ParameterError, ShapeError, UtilityWarning
from hdp_fast.learners import centered_classes
from hdp_fast.learners.centered_classes import release_classes
from hdp_fast.learners.centered_rows import bound_norm, center, center_evenly
from hdp_fast.learners.margin_scale import (
    Offsets,
    estimate_scale,
    estimate_shares,
    guess_scale,
    margin_edges,
    weigh_base,
)
from hdp_fast.learners.noisy_descent import IntegerRows

RNG = np.random.default_rng
D = 3
UNIT = Rows.within((0, 1), D)


def problem(n, classes=2, seed=0):
    rows = RNG(seed).random((n, D))
    scores = 4 * (rows - 0.5) @ RNG(1).normal(size=(D, classes))
    scores += RNG(seed + 1).gumbel(size=scores.shape)
    return rows, scores.argmax(axis=1)


def release(n=2_000, epsilon=1.0, classes=2, delta=1e-6, **changed):
    rows, codes = problem(n, classes)
    goal = Goal(epsilon, delta, **{"random_state": 0} | changed)
    return release_classes(UNIT, rows, codes, classes, goal, name="here")


def loss_of(released, classes=2, seed=5):
    rows, codes = problem(4_000, classes, seed)
    scores = released.model.scores(released.rows(rows))
    if classes == 2:
        return np.logaddexp(0, np.where(codes == 1, -scores, scores)).mean()
    return (np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(codes)), codes]).mean()


@pytest.fixture
def drawn(monkeypatch):
    """The deviations that are asked of the noise, the shapes, and the integers of the descent."""
    asked, grids = [], []
    draw, calibrate = centered_classes.noise.rounded_gaussian, centered_classes.calibrate_descent

    def spy(sigma, shape, *, random_state):
        asked.append((sigma, shape))
        return draw(sigma, shape, random_state=random_state)

    def keep(*arguments):
        grids.append(calibrate(*arguments))
        return grids[-1]

    monkeypatch.setattr(centered_classes.noise, "rounded_gaussian", spy)
    monkeypatch.setattr(centered_classes, "calibrate_descent", keep)
    return asked, grids


def spent_of(asked, grids, n, classes=2):
    """The square of mu of all that was drawn: means if there are any, classes, steps, margins."""
    *means, counts, steps, margins = asked
    total = Fraction(2 * (classes - 1) ** 2) / margins[0] ** 2
    total += Fraction(1 if classes == 2 else 2) / counts[0] ** 2
    total += steps[1][0] * (2 * grids[0].length) ** 2 / steps[0] ** 2
    for sigma, shape in means:
        bits = min(20, 61 - n.bit_length())
        powers = shape[0] // D
        total += Fraction(UNIT.squared_distance(powers) << (2 * bits)) / sigma**2
    return total, len(means)


@pytest.mark.parametrize(
    ("n", "epsilon", "classes", "means", "squares"),
    [
        (300, 0.5, 2, False, False),
        (300, 0.5, 4, False, False),
        (2_000, 1.0, 2, True, False),
        (2_000, 1.0, 3, True, False),
        (20_000, 1.0, 2, True, True),
    ],
)
def test_all_that_is_drawn_has_the_mu_of_the_record(n, epsilon, classes, means, squares, drawn):
    released = release(n, epsilon, classes)
    spent, parts = spent_of(*drawn, n, classes)
    mu = accounting.gaussian_mu(epsilon, 1e-6)
    assert released.record.mu == mu
    assert Fraction(mu) ** 2 * Fraction(999, 1000) < spent <= Fraction(mu) ** 2
    assert (parts == 1, released.rows.squares is not None) == (means, squares)
    assert ("means" in released.record.mechanism) == means
    assert (released.record.epsilon, released.record.law) == (epsilon, "gaussian")


@pytest.mark.parametrize("rows", [1, 3])
def test_all_rows_of_a_person_have_the_mu_of_the_record(rows, drawn):
    """That of each row times their number."""
    ids = np.arange(6_000) // rows
    goal = Goal(1.0, 1e-6, random_state=0).of_people(ids, rows, 6_000)
    data = problem(6_000)
    released = release_classes(UNIT, *data, 2, goal, name="here")
    spent, _ = spent_of(*drawn, 6_000)
    mu = Fraction(accounting.gaussian_mu(1.0, 1e-6))
    assert mu**2 * Fraction(99, 100) < spent * rows**2 <= mu**2 * (1 + Fraction(1, 10**9))
    assert released.record.neighbors == "replace_person"


def test_few_records_are_centered_evenly_without_a_look():
    np.testing.assert_array_equal(release(200).rows.center, [0.5] * D)
    assert (release(2_000).rows.center != 0.5).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_noise_costs_less_and_less_and_none_is_the_best(classes):
    """A constant has a loss of log K; with many records it is that of the exact model."""
    losses = [
        np.mean([loss_of(release(1_000, epsilon, classes, random_state=seed), classes)
                 for seed in range(5)])
        for epsilon in (0.3, 1.0, 8.0, math.inf)
    ]  # fmt: skip
    # Without noise there is the error of a sample.
    assert losses[0] > losses[1] > losses[2] > losses[3] - 0.01
    assert losses[0] < math.log(classes) - 0.1
    assert losses[2] < losses[3] + 0.03


@pytest.mark.parametrize("classes", [2, 3])
def test_without_noise_the_gradient_of_loss_and_ridge_is_nothing(classes):
    n = 900
    rows, codes = problem(n, classes)
    made = release(n, math.inf, classes, delta=None)
    assert made.record is None
    z = made.rows(rows)
    bound = made.model.loss.norm_bound
    z = z * np.minimum(1, bound / np.linalg.norm(z, axis=1))[:, None]
    scores = made.model.scores(made.rows(rows))
    if classes == 2:
        rest = 1 / (1 + np.exp(-scores)) - codes
    else:
        rest = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True) - np.eye(classes)[codes]
    gradient = z.T @ rest / n
    # The ridge of a normal prior of deviation 1 or so, which pulls each weight.
    assert np.abs(gradient).max() < 5 * np.abs(made.model.weights).max() / n
    assert loss_of(made, classes) < loss_of(release(n, 4.0, classes), classes) + 0.01


def test_the_budget_is_charged_once_and_whole_before_anything_is_drawn(drawn):
    budget = Budget(2.0, 1e-5)
    release(budget=budget)
    assert (budget.spent.epsilon, budget.spent.delta) == (1.0, 1e-6)
    assert len(budget.records) == 1
    drawn[0].clear()
    with pytest.raises(ParameterError):
        release(epsilon=1e-14, delta=1e-14, budget=budget)
    with pytest.raises(ParameterError):
        release(epsilon=math.inf, budget=budget)
    assert drawn[0] == []
    assert budget.spent.epsilon == 1.0


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_no_rows_are_refused(epsilon):
    with pytest.raises(ShapeError, match="there are no rows"):
        release(0, epsilon)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1e3, 1e9])
def test_every_epsilon_for_which_there_is_noise_has_a_model(epsilon, drawn):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        released = release(300, epsilon)
    assert np.isfinite(released.model.weights).all()
    spent, _ = spent_of(*drawn, 300)
    assert spent <= Fraction(released.record.mu) ** 2


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("n", [1, 2, 500, 3_000])
def test_no_value_raises_or_warns_whatever_numpy_is_set_to(n, classes):
    """Rows that are all alike, at the ends, and of one class alone."""
    ends = [np.zeros((n, D)), np.ones((n, D)), np.full((n, D), 5e-324)]
    ends.append((np.arange(n * D).reshape(n, D) % 2).astype(float))
    for rows, code in itertools.product(ends, [0, classes - 1]):
        with np.errstate(all="raise"), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", UtilityWarning)
            # Said once in a process, of the seed.
            warnings.filterwarnings("ignore", "random_state makes")
            goal = Goal(8.0, 1e-6, random_state=0)
            codes = np.full(n, code)
            made = release_classes(UNIT, rows, codes, classes, goal, name="here")
        assert np.isfinite(made.model.weights).all()


def test_a_plan_whose_noise_hides_all_gradients_is_said_to_be_none():
    with pytest.warns(UtilityWarning, match="n = 20 .* hides what fewer than [0-9]+ records"):
        release(20, 0.1)
    budget = Budget(9.0, 1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        with pytest.raises(UtilityWarning):
            release(20, 0.1, budget=budget)
    assert budget.spent.epsilon == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        release(2_000)


_SCRIPT = """
import numpy as np
from hdp_fast.data.goal import Goal
from hdp_fast.data.rows import Rows
from hdp_fast.learners.centered_classes import release_classes
rows = np.random.default_rng(0).random((6000, 40))
codes = (rows[:, :20].sum(axis=1) > rows[:, 20:].sum(axis=1)).astype(int)
for classes in (2, 3):
    made = release_classes(Rows.within((0, 1), 40), rows, codes, classes,
                           Goal(4.0, 1e-6, random_state=3), name="here")
    print(made.model.weights.tobytes().hex())
"""


def test_threads_change_no_bit():
    """Sums and scores are exact, in whatever order a library adds them."""
    outcomes = set()
    for threads in ("1", "2", "4"):
        names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "HDP_FAST_NUM_THREADS")
        environment = os.environ | dict.fromkeys(names, threads)
        ran = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _SCRIPT],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        outcomes.add(ran.stdout)
    assert len(outcomes) == 1
    assert len(outcomes.pop()) > 1_000


def test_no_row_is_longer_than_its_bound():
    schema = Schema(
        Label("rich", positive=("yes",)),
        {"age": Number(0, 10), "place": Category(("town", "sea")), "size": Number(0, 1)},
    )
    unit = Rows(schema)
    grid = [0, 1, 4, 10]
    records = {
        "age": [a for a in grid for _ in range(8)],
        "place": ["town", "sea"] * 16,
        "size": [b / 10 for _ in grid for b in grid for _ in range(2)],
    }
    plain = unit(read_frame(records))
    skewed = np.vstack([plain, np.tile(plain[:1], (500, 1))])
    for centered in (
        center_evenly(unit),
        *(center(unit, skewed, squares=squares, epsilon=math.inf, delta=0.5, random_state=None)
          for squares in (False, True)),
    ):  # fmt: skip
        longest = np.linalg.norm(centered.scale(plain), axis=1).max()
        assert longest <= bound_norm(centered) < 10 * longest


# The scale ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_margins_are_the_log_odds_of_the_true_class_against_each_other(classes):
    scores = RNG(2).normal(size=(50, 1 if classes == 2 else classes)) * 4
    codes = RNG(3).integers(0, classes, 50)
    whole = np.column_stack([np.zeros(50), scores[:, 0]]) if classes == 2 else scores
    shares = np.exp(whole) / np.exp(whole).sum(axis=1, keepdims=True)
    for row, code, margins in zip(shares, codes, margins_of(scores, codes), strict=True):
        others = np.log(row[code] / np.delete(row, code))
        np.testing.assert_allclose(margins, others, rtol=1e-6)


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_a_record_that_is_replaced_moves_all_its_margins(classes):
    """So that the distance of neighbors is the root of 2 times their number, and no less."""
    edges = margin_edges(2.0, 9, 100.0)
    ends = [-math.inf, *edges, 0.05, 5e-324, -5e-324, math.inf]
    pairs, shares = classes - 1, np.arange(1, classes + 1) / (classes * (classes + 1) / 2)
    offsets = Offsets.by_shares(shares)
    counts = np.array([
        count_margins([(np.array([record]), groups_of(offsets, np.array([code])))], edges).ravel()
        for record in itertools.combinations_with_replacement(ends, pairs)
        for code in range(classes)
    ])  # fmt: skip
    assert (counts.sum(axis=1) == pairs).all()
    counts = np.unique(counts, axis=0)
    distances = (counts**2).sum(axis=1)[:, None] + (counts**2).sum(axis=1) - 2 * counts @ counts.T
    assert distances.max() == 2 * pairs**2
    assert counts.any(axis=0).all()


@pytest.mark.parametrize("classes", [2, 3])
def test_a_record_that_is_replaced_moves_what_is_counted_of_classes(classes, monkeypatch):
    """By 1 where the second of two is counted, and by the root of 2 where all are."""
    monkeypatch.setattr(centered_classes, "estimate_shares", lambda seen, *_: seen)
    none = types.SimpleNamespace(rounded_gaussian=lambda _, size, **__: np.zeros(size, np.int64))
    monkeypatch.setattr(centered_classes, "noise", none)
    tables = itertools.product(range(classes), repeat=3)

    def count(codes):
        numbers = np.array(codes, np.int16)
        return IntegerRows(np.zeros((3, 1), np.int16), numbers, classes, None).count_classes()

    seen = {
        codes: centered_classes._release_shares(count(codes), len(codes), Fraction(1), None)
        for codes in tables
    }
    released = [1] if classes == 2 else range(classes)
    farthest = max(
        ((seen[one] - seen[other])[released] ** 2).sum()
        for one, other in itertools.product(seen, seen)
        if sum(a != b for a, b in zip(one, other, strict=True)) == 1
    )
    assert farthest == (1 if classes == 2 else 2)
    for codes, counts in seen.items():
        np.testing.assert_array_equal(counts, np.bincount(codes, minlength=classes))


@pytest.mark.parametrize("shares", [(0.5, 0.5), (0.1, 0.9), (0.2, 0.3, 0.5), (0.001, 0.999)])
def test_shares_are_those_of_counts_that_are_clear(shares):
    n = 1_000_000
    found = estimate_shares(np.array(shares) * n, 1.0, n)
    assert found.sum() == pytest.approx(1)
    np.testing.assert_allclose(found, shares, rtol=0.1)


def test_counts_that_noise_hides_leave_classes_equally_frequent():
    for classes in (2, 3, 10):
        counts = RNG(classes).normal(size=classes) * 1_000
        found = estimate_shares(counts, 1_000.0, 300)
        assert np.abs(found - 1 / classes).max() < 0.5 / classes
        assert (found > 0).all()


def test_posterior_shares_lose_less_than_counts_and_than_equal_shares():
    """Over tables half of which have equal classes, on average, as their prior says."""
    n, sigma, lost = 300, 40.0, np.zeros(3)
    for seed in range(2_000):
        stream = RNG(seed)
        truth = 0.5 if stream.random() < 0.5 else stream.random()
        second = stream.binomial(n, truth) + np.rint(stream.normal() * sigma)
        found = estimate_shares(np.array([n - second, second]), sigma, n)[1]
        for place, share in enumerate([found, np.clip(second / n, 0.02, 0.98), 0.5]):
            lost[place] -= truth * math.log(share) + (1 - truth) * math.log1p(-share)
    assert lost[0] < lost[1:].min()


@pytest.mark.parametrize("classes", [2, 4])
def test_offsets_are_the_log_odds_of_shares(classes):
    shares = np.array([0.1, 0.4, 0.2, 0.3])[:classes]
    shares = shares / shares.sum()
    offsets, logs = Offsets.by_shares(shares), np.log(shares)
    codes = np.arange(classes)
    groups = groups_of(offsets, codes)
    margins = margins_of(np.tile(logs, (classes, 1)) if classes > 2 else
                         np.full((2, 1), logs[1] - logs[0]), codes)  # fmt: skip
    np.testing.assert_array_equal(groups == 1, margins < 0)
    if classes == 2:
        np.testing.assert_allclose(offsets.means[groups.ravel()], margins.ravel())
    assert offsets.means[0] > 0 > offsets.means[1]
    assert (Offsets.by_shares(np.full(classes, 1 / classes)).means == 0).all()


def counts_of(margins, edges, groups=None):
    groups = np.zeros(margins.shape, np.int64) if groups is None else groups
    return count_margins([(margins, groups)], edges).astype(float)


@pytest.mark.parametrize("classes", [3, 6])
def test_the_scale_of_many_classes_is_that_of_their_softmax(classes):
    """Classes that overlap, whose log-odds against all others do not scale with the scores."""
    n = 100_000
    truth = RNG(6).normal(size=(n, classes))
    codes = (truth + RNG(7).gumbel(size=truth.shape)).argmax(axis=1)
    edges = margin_edges(8.0, 9, 100.0)
    for factor in (0.5, 2.0):
        counts = counts_of(margins_of(truth / factor, codes), edges) / (classes - 1)
        found = estimate_scale(counts, edges, np.zeros(2), 1.0, n, 0.0)[0]
        assert found == pytest.approx(factor, rel=0.1)


@pytest.mark.parametrize("factor", [0.25, 1.0, 2.0])
def test_a_model_that_is_too_sure_is_made_less_so(factor):
    n, none = 200_000, np.zeros(2)
    truth = RNG(4).normal(size=n) * 1.5
    margins = np.where(RNG(5).random(n) < 1 / (1 + np.exp(-truth)), truth, -truth) / factor
    edges = margin_edges(5 / factor, 9, 100.0)
    counts = counts_of(margins[:, None], edges)
    scale, spread = estimate_scale(counts, edges, none, 10.0, n, math.log(factor) + 0.5)
    assert scale == pytest.approx(factor, rel=0.2)
    assert 0 < spread < 0.2
    # Where noise hides the counts, the prior is left.
    hidden = estimate_scale(counts, edges, none, 1e9, n, -1.0)
    assert hidden[0] == pytest.approx(math.exp(-1), rel=0.02)


@pytest.mark.parametrize("share", [0.1, 0.7])
def test_a_weak_model_is_shrunk_to_base_rates(share):
    """The log-odds are the base rate and a share of a model whose scores are mostly noise."""
    n, factor = 400_000, 0.12
    logs = math.log(share / (1 - share))
    scores = RNG(8).normal(size=n) * 3
    truth = factor * scores + weigh_base(factor) * logs
    codes = (RNG(9).random(n) < 1 / (1 + np.exp(-truth))).astype(np.int64)
    edges, offsets = margin_edges(8.0, 9, 100.0), Offsets.by_shares(np.array([1 - share, share]))
    margins = margins_of(scores[:, None], codes)
    counts = counts_of(margins, edges, groups_of(offsets, codes))
    found, _ = estimate_scale(counts, edges, offsets.means, 1.0, n, math.log(0.2))
    assert found == pytest.approx(factor, rel=0.25)


def test_base_rates_give_way_to_a_model_that_has_its_own():
    assert (weigh_base(0.0), weigh_base(0.35), weigh_base(1.0)) == (1.0, 0.0, 0.0)
    assert 0 < weigh_base(0.3) < weigh_base(0.1) < 1


def test_counts_of_noise_alone_give_a_scale_in_the_range():
    edges = margin_edges(1.0, 9, 100.0)
    shape, offsets = (2, len(edges) - 1), np.array([2.0, -2.0])
    for seed in range(100):
        counts = np.rint(RNG(seed).normal(size=shape) * 100)
        scale, _ = estimate_scale(counts, edges, offsets, 100.0, 10, -0.5)
        assert math.exp(-5) <= scale <= math.exp(1.3)
    assert np.isfinite(estimate_scale(np.zeros(shape), edges, offsets, 1.0, 1, -0.5)).all()


def test_the_prior_of_the_scale_falls_with_noise_and_with_a_path_that_is_too_long():
    usual = guess_scale(100.0, 1.0, (9, 1), 0.0, 0.01)
    assert (
        guess_scale(5.0, 1.0, (9, 1), 0.0, 0.01)
        < usual
        < guess_scale(100.0, 2.0, (9, 1), 0.0, 0.01)
    )
    assert guess_scale(100.0, 1.0, (9, 1), 0.1, 0.01) < usual
    # A path that is noise alone says nothing.
    assert guess_scale(100.0, 1.0, (9, 1), 0.1, 1e6) == pytest.approx(
        guess_scale(100.0, 1.0, (9, 1), 0.0, 1e6)
    )


def test_a_model_states_its_plan_and_what_it_can_be_restored_from():
    made = release(2_000, 1.0)
    plan = made.model.plan
    assert (plan.n, plan.batch_size, plan.weights) == (2_000, 2_000, D + 1)
    mu = accounting.gaussian_mu(1.0, 1e-6)
    share = 2 * math.sqrt(D + 1) / (2_000 * mu * math.sqrt(0.95 * 0.95))
    assert plan.noise == pytest.approx(share, rel=1e-3)
    assert json.loads(made.model.to_json())["plan"]["steps"] == plan.steps
