"""Audits of every mechanism on its worst neighbors, and of a broken variant of each.

No lower bound may exceed what is promised (false alarm 1e-6 a mechanism); the bound of the broken
variant, which has less noise or a coin less than it should, must. Random bits come from the
operating system.
"""

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

import lengths
import numpy as np
import pytest
from audits import Audit
from frequencies import FALSE_ALARM
from parity_settings import Setting, base
from scipy.optimize import brentq
from whole_runs import Planned, Tiny, fitted

from hdp_fast import _core, accounting, gf2, local, noise, parity
from hdp_fast.adaptation import (
    ConvexAdaptation,
    NonConvexAdaptation,
    PrivateDiscrepancyMinimization,
    release_discrepancy,
)
from hdp_fast.audit import lower_bound
from hdp_fast.data.states import Tally
from hdp_fast.learners import (
    DoublingLearner,
    DoublingRound,
    ExponentialLearner,
    Parities,
    PrivateSGD,
)
from hdp_fast.learners.centered_classes import _release_shares
from hdp_fast.learners.noisy_descent import DescentPlan, Grid, IntegerRows, cut_rows, descend
from hdp_fast.reference.noise import gaussian_masses
from hdp_fast.statistics.cuts import Recursion
from hdp_fast.transfer import plan_rounds
from hdp_fast.weights import DenseWeights

pytestmark = pytest.mark.usefixtures("one_thread", "verified_once")


def response(epsilon):
    return lambda bits: local.randomized_response(bits, epsilon=epsilon)


def learner(setting):
    plan = setting.plan(1)

    def learn(records):
        result = parity.learn(*records, epsilon=setting.epsilon, plan=plan)
        return None if result.mask is None else int(result.mask[0])

    return learn


def is_mask(answer):
    """Whether the answer is the hypothesis of the one feature."""
    return answer == 1


def without_stop_coin(setting):
    """The base learner as it would be if a sample that fits were always answered."""
    rate = setting.rate()

    def learn(records):
        X, y = records
        kept = noise.bernoulli(rate, len(y)).astype(bool)
        found = gf2.solve(X[kept], y[kept]).sample()
        return None if found is None else int(found[0])

    return learn


EITHER = Parities([[1]], affine=True)
# One round: a record chooses between a feature and its negation, another tests it.
DOUBLING = DoublingLearner([EITHER], alpha=0.5, beta=0.5, epsilon=1.0)
object.__setattr__(DOUBLING, "rounds", (DoublingRound(0, learn=1, test=1, threshold=0),))


def doubling(records):
    result = DOUBLING.learn(*records)
    return result.learned.index if result.released else None


def judged_by_what_chose_it(records):
    """As DOUBLING, if the record that is tested on chose as well."""
    X, y = (part[1:] for part in records)
    chooser = ExponentialLearner(EITHER, epsilon=1.0, mechanism="permute_and_flip")
    learned = chooser.learn(X, y)
    wrong = int((learned.predict(X) != y).sum()) + noise.discrete_laplace(1)
    return learned.index if wrong <= 0 else None


def records(*pairs):
    """Records of one feature and a label."""
    X = np.array([[x] for x, _ in pairs], np.uint8).reshape(-1, 1)
    return X, np.array([y for _, y in pairs], np.uint8)


def scaled(setting, factor):
    return learner(replace(setting, epsilon=factor * setting.epsilon))


class Stock:
    """An integer plus one noise value each time, taken from arrays as those who draw many do."""

    def __init__(self, draw):
        self._draw = draw
        self._left = []

    def __call__(self, value):
        if not self._left:
            self._left = self._draw(1 << 16).tolist()
        return value + self._left.pop()


def plus(sampler, scale):
    return lambda value: value + sampler(scale)


def stocked(sampler, scale):
    return Stock(partial(sampler, scale))


def reports(randomizer):
    """One report about a value each time, taken from arrays as those who simulate many do."""
    left = {}

    def report(value):
        if not left.get(value):
            left[value] = randomizer.sample(np.full(1 << 16, value)).tolist()
        return left[value].pop()

    return report


def gaussian_epsilon(sigma, delta):
    """The epsilon that discrete Gaussian noise has at delta where neighbors differ by 1."""
    masses = {x: float(p) for x, p in gaussian_masses(sigma, 40).items()}

    def excess(epsilon):
        losses = (p - math.exp(epsilon) * masses.get(x + 1, 0) for x, p in masses.items())
        return sum(max(0, loss) for loss in losses) - delta

    return float(brentq(excess, 0, 20))


def choice(select, epsilon):
    return lambda scores: select(scores, epsilon=epsilon)


class Lazily:
    """A mechanism that is made when it is first called."""

    def __init__(self, make):
        self._make, self._made = make, None

    def __call__(self, data):
        self._made = self._made or self._make()
        return self._made(data)


def whole_run(tiny):
    return Lazily(lambda: fitted(tiny))


# A record of which every gradient is the longest and no other has a part in its direction; the
# neighbor has the other label, hence the opposite gradient.
CANARY = np.eye(2)
DENSITY, STEP = 0.75, 1.0


def canary_labels(label):
    return np.array([label, 1], np.uint8)


def descent(learner):
    """The released model's part in the canary's direction."""
    rows, weights = learner.prepare(CANARY), DenseWeights(2, DENSITY, STEP)

    def learn(label):
        return float(learner.learn_weighted(rows, canary_labels(label), weights).weights[0])

    return learn


def descent_epsilon(learner, rounds=1):
    rate = DenseWeights(2, DENSITY, STEP).rate
    return accounting.epsilon(learner.composition(rate, rounds=rounds), learner.delta)


class WithItsOwnNoise(Planned):
    """A run whose noise is what the learner has, not what a search finds for the plan."""

    def _make_private(self, plan, records, weights, start):
        return self.learner


def whole_descent(learner, rounds):
    """The same of the models of all rounds, their sum by the noise."""

    def make():
        some = plan_rounds(
            learner, alpha=0.1, epsilon=1.0, delta=0.1, agents_epsilon=1.0, kappa=DENSITY,
            eta=STEP, rounds=rounds, n=1000, schedule="final", output="majority",
        )  # fmt: skip
        epsilon = descent_epsilon(learner, rounds)
        given = replace(
            some, n=2, N=1, agents_per_test=1, epsilon=epsilon, delta=1.001 * learner.delta
        )
        return WithItsOwnNoise(learner, given)

    return Lazily(lambda: partial(models_of, make()))


def curator(epsilon):
    """Two queries about one record, each of which nearly tells its label."""

    def answer(label):
        oracle = local.CuratorOracle([[0]], [label], epsilon=epsilon, queries=2, beta=0.1)
        return tuple(oracle.query(lambda X, y: y, 1.0) >= 1 for _ in range(2))

    return answer


def models_of(run, label):
    agents = local.Agents(CANARY[:1], [1], epsilon=1.0)
    run.fit(CANARY, canary_labels(label), agents)
    models = run.result_.hypothesis["hypotheses"]
    return sum(each["weights"][0] for each in models) / run.learner.noise_multiplier


def released_discrepancy(**noise):
    """Its value without noise is the number of target labels that the source contradicts."""
    bounds = {"radius": 1.0, "norm_bound": 1.0, "private": "target"}

    def release(labels):
        source, target = np.ones((2, 1)), np.ones((len(labels), 1))
        return release_discrepancy(source, [1, 1], target, labels, **bounds, **noise).value

    return release


# Targets of one row whose second moments differ most, and how to tell these apart.
AXES = [[1.0, 0.0]], [[0.0, 1.0]]
DIAGONALS = [[0.5**0.5, 0.5**0.5]], [[0.5**0.5, -(0.5**0.5)]]


def along_axes(moment):
    return float(moment[0, 0] - moment[1, 1])


def off_diagonal(moment):
    return float(moment[0, 1])


def moment(told, epsilon, **settings):
    """A part of the released matrix of a target; weights and model are not searched for."""
    model = PrivateDiscrepancyMinimization(epsilon=epsilon, delta=0.01, tolerance=1.0, **settings)
    return lambda target: told(model.fit(np.eye(2), [0, 0], target).moment_)


def adapted(kind, epsilon, **settings):
    """The coefficient after a step from 0 against the longest gradient of a single record."""
    model = kind(epsilon=epsilon, delta=0.01, alpha=0.5, steps=1, **settings)
    source, target = np.ones((2, 1)), np.ones((1, 1))
    return lambda label: float(model.fit(source, [1, -1], target, [label]).coef_[0])


convex = partial(adapted, ConvexAdaptation, radius=100.0, kappa_1=0.25)
printed = partial(adapted, ConvexAdaptation, radius=1e-3, variant="paper")
# Ten times what a gradient may be.
called = partial(
    adapted, NonConvexAdaptation, loss=lambda w, X, y: (np.zeros(len(y)), 10 * y[:, None] * X),
    start=[0.0], loss_bounds=(1, 1, 0.25), discrepancy=0.0, radius=100.0,
)  # fmt: skip
# Where there is a third of the noise that epsilon = 2 needs.
LESS = accounting.gaussian_epsilon(3 * accounting.gaussian_mu(2.0, 0.01), 0.01)
ONE = base(1.0)
REMOVED = base(1.0, "add_remove")
LOOP = Setting("loop", 1.0, g=0.04)
LOOP_REMOVED = Setting("loop", 1.0, "add_remove", g=0.04)
PAPER = Setting("paper", 0.5, c=0.5, k=1, test_size=0)
TRANSFER = Tiny(2, kappa=1.0, eta=1.0, epsilon=2.0)
# Where steps shrink what was learned, the model is nearly the mean of all noisy sums.
SGD = PrivateSGD(
    loss="hinge", steps=8, batch_size=2, radius=0.9, l2=100.0, noise_multiplier=8.0, delta=0.01
)
IDEALIZED = replace(SGD, numerics="idealized")
SHORT = replace(SGD, steps=4)
# One label that contradicts all others makes their opposite likelier, and answers rarer: the ratio
# tends to exp(epsilon) with the number of the others, but so does the opposite's probability to 0.
MANY, FEWER = ((1, 0),) * 4, ((1, 0),) * 3


def full_batch(steps, sigma, most=1.0, classes=2):
    """How far a descent on one record goes along it; `most` lengthens what it may add.

    A class 0 or 1, or, of one class, a target of -1 or 1.
    """
    plan = DescentPlan(steps, rate=1e-6, clip_norm=1.0, growth=1.0)
    grid = Grid(bits=10, length=2**22, sigma=Fraction(sigma))

    def run(label):
        code = label if classes == 2 else (2 * label - 1) * 2**14
        entries, codes = cut_rows(np.array([[4.0]])), np.array([code], np.int16)
        records = IntegerRows(entries, codes, classes, grid)
        if most != 1:
            records.__dict__["limits"] = records.limits * most
        drawn = noise.rounded_gaussian(grid.sigma, (steps, 1, 1))
        return float(descend(records, plan, drawn).weights[0, 0])

    return run


def additive_steps(wider=1):
    """The value of a bin of one record, whose residual is at either limit in four rounds.

    With four steps of a distance of 2 limit, this noise is that of one Gaussian mechanism of mu 1.
    """
    limit = 1 << 14
    sigma = Fraction(2 * 2 * limit)
    gain, rates = np.array([0.125]), 1 / (np.arange(4) + 1.0)

    def run(label):
        labels = np.array([(2 * label - 1) << 30])
        drawn = noise.rounded_gaussian(sigma, 4)
        rounds = rates, drawn, np.zeros(1), gain
        records = np.zeros(1, np.uint8), [1], labels
        residuals = False, 0, -limit * wider, limit * wider
        return float(_core.fit_additive(records, residuals, rounds)[0])

    return run


def count_of_class(sigma):
    """The share of the second of two classes that the noisy count of two records tells of."""
    counts = {label: np.bincount([label, 0], minlength=2) for label in (0, 1)}
    return lambda label: float(_release_shares(counts[label], 2, Fraction(sigma), None)[1])


def quartiles(epsilon):
    """Three cuts of few records at three points, without a number of them."""
    plan = Recursion.plan(
        [Fraction(place, 4) for place in (1, 2, 3)], Fraction(epsilon),
        one_way=True, fixed=False, n=None,
    )  # fmt: skip

    def draw(records):
        tally = Tally(*np.unique(np.array(records, np.int64), return_counts=True))
        return tuple(plan.draw(tally, 2, None).tolist())

    return draw


AUDITS = [
    Audit(
        "quantiles by recursion", 1.0, quartiles(1), [1, 2, 2], [0, 1, 2, 2],
        quartiles(16), "the rates of epsilon 16", 0.0, runs=4_000, fewer=2,
    ),
    Audit(
        "randomized response", 1.0, response(1.0), [1], [0],
        response(2.0), "half the noise", 0.85,
    ),
    Audit(
        "curator's oracle, two queries", 1.0, curator(1.0), 1, 0,
        curator(2.0), "half the noise", 0.55, runs=10_000, event=all, fewer=2,
    ),
    Audit(
        "parity, batches: hypothesis", 1.0, learner(ONE), records((1, 1)), records((1, 0)),
        scaled(ONE, 2), "half the noise", 0.8,
    ),
    Audit(
        "parity, batches: bottom", 1.0, learner(ONE), records((0, 1)), records((0, 0)),
        without_stop_coin(ONE), "no stop coin", 0.8,
    ),
    Audit(
        "parity, batches: record removed", 1.0, learner(REMOVED), records((1, 0)), records(),
        scaled(REMOVED, 2), "half the noise", 0.75,
    ),
    Audit(
        "parity, batches: record added", 1.0, learner(REMOVED), records((0, 1)), records(),
        without_stop_coin(REMOVED), "no stop coin", 0.85,
    ),
    Audit(
        "parity, batches: relation", 1.0, learner(ONE), records((1, 1)), records((1, 0)),
        learner(REMOVED), "calibrated for add_remove", 0.8,
    ),
    Audit(
        "parity, loop", 1.0, learner(LOOP), records(*MANY, (1, 1)), records(*MANY, (1, 0)),
        scaled(LOOP, 2), "half the noise", 0.65, runs=40_000, event=is_mask,
    ),
    Audit(
        "parity, loop: record removed", 1.0, learner(LOOP_REMOVED), records(*FEWER, (1, 1)),
        records(*FEWER), scaled(LOOP_REMOVED, 2), "half the noise", 0.6, runs=80_000,
    ),
    Audit(
        "discrete Laplace, one draw", 1.0, plus(noise.discrete_laplace, 1), 0, 1,
        plus(noise.discrete_laplace, Fraction(1, 2)), "half the noise", 0.75,
    ),
    Audit(
        "discrete Laplace, many draws", 1.0, stocked(noise.discrete_laplace, 1), 0, 1,
        stocked(noise.discrete_laplace, Fraction(1, 2)), "half the noise", 0.75,
    ),
    Audit(
        "discrete Laplace, sensitivity 300", 1.0, stocked(noise.discrete_laplace, 300), 0, 300,
        stocked(noise.discrete_laplace, 150), "half the noise", 0.75,
    ),
    Audit(
        "discrete Gaussian, one draw", gaussian_epsilon(Fraction(1), 0.01),
        plus(noise.discrete_gaussian, 1), 0, 1,
        plus(noise.discrete_gaussian, Fraction(1, 2)), "half the noise", 0.5, delta=0.01,
    ),
    Audit(
        "discrete Gaussian, many draws", gaussian_epsilon(Fraction(1), 0.01),
        stocked(noise.discrete_gaussian, 1), 0, 1,
        stocked(noise.discrete_gaussian, Fraction(1, 2)), "half the noise", 0.5, delta=0.01,
    ),
    *[
        # The record's gradient is 2**22 or -2**22, and the weights hardly move in a step.
        Audit(
            f"descent on all records: {name}", accounting.gaussian_epsilon(1.0, 0.01),
            full_batch(steps, math.isqrt(steps * 4**23) + 1, classes=classes), 1, 0, twin, broken,
            tight, delta=0.01, runs=10_000,
        )
        for name, steps, classes, twin, broken, tight in [
            ("one step", 1, 2, full_batch(1, 2**21), "a quarter of the noise", 0.3),
            ("its clip", 1, 2, full_batch(1, 2**23, 4.0), "gradients four times as long", 0.3),
            ("four steps", 4, 2, full_batch(4, 2**22), "a quarter of the noise", 0.2),
            ("a target, its clip", 1, 1, full_batch(1, 2**23, 4.0, 1),
             "gradients four times as long", 0.3),
            ("a target, four steps", 4, 1, full_batch(4, 2**22, classes=1),
             "a quarter of the noise", 0.2),
        ]
    ],
    Audit(
        "steps of an additive model", accounting.gaussian_epsilon(1.0, 0.01), additive_steps(),
        1, 0, additive_steps(wider=3), "limits that are exceeded", 0.3, delta=0.01,
        runs=10_000,
    ),
    Audit(
        "count of a class", accounting.gaussian_epsilon(1.0, 0.01), count_of_class(1), 1, 0,
        count_of_class(Fraction(1, 4)), "a quarter of the noise", 0.3, delta=0.01, runs=10_000,
    ),
    *[
        Audit(
            f"local {kind.__name__}", 1.0, reports(kind(epsilon=1.0, **more)), 0, 1,
            reports(kind(epsilon=2.0, **more)), "half the noise", tight,
            delta=more.get("delta", 0.0), runs=80_000 if "delta" in more else 40_000,
        )
        for kind, tight, more in [
            (local.BinaryResponse, 0.85, {"bounds": (0, 1)}),
            (local.LaplaceRandomizer, 0.75, {"bounds": (0, 1)}),
            (local.GaussianRandomizer, 0.55, {"delta": 0.01, "bounds": (0, 1)}),
            (local.Piecewise, 0.8, {"bounds": (0, 1)}),
            (local.KaryResponse, 0.75, {"k": 3}),
            (local.SubsetSelection, 0.75, {"k": 8}),
            (local.ProjectiveGeometryResponse, 0.75, {"k": 7}),
        ]
    ],
    Audit(
        "permute-and-flip", 1.0, choice(noise.permute_and_flip, 1.0), [2, 0], [1, 1],
        choice(noise.permute_and_flip, 2.0), "half the noise", 0.75, fewer=2,
    ),
    Audit(
        "permute-and-flip: relation", 1.0, choice(noise.permute_and_flip, 1.0), [2, 0], [1, 1],
        lambda scores: noise.permute_and_flip(scores, epsilon=1.0, monotonic=True),
        "taken for monotonic", 0.75, fewer=2,
    ),
    Audit(
        "exponential mechanism", 1.0, choice(noise.exponential_mechanism, 1.0), [3, 1], [4, 0],
        choice(noise.exponential_mechanism, 2.0), "half the noise", 0.5, runs=20_000, event=bool,
    ),
    # By enumeration the true epsilon is 1.16 here.
    Audit(
        "transfer: whole private run", TRANSFER.promised_epsilon(0.02), whole_run(TRANSFER),
        ((0, 0), (0, 1)), ((0, 1), (0, 1)),
        whole_run(replace(TRANSFER, epsilon=16.0)), "a learner of eight times the epsilon",
        0.1, delta=0.02, runs=5_000, fewer=2,
    ),
    # Of two draws a step the accountant allows for the worst of all zCDP mechanisms, and for a last
    # step that the mean of the models leaves out.
    Audit(
        "SGD, exact", descent_epsilon(SGD), descent(SGD), 1, 0,
        descent(replace(SGD, noise_multiplier=1.0)), "an eighth of the noise", 0.09, delta=0.01,
        fewer=2,
    ),
    Audit(
        "SGD, idealized", descent_epsilon(IDEALIZED), descent(IDEALIZED), 1, 0,
        descent(replace(IDEALIZED, noise_multiplier=2.0)), "a quarter of the noise", 0.14,
        delta=0.01, fewer=2,
    ),
    Audit(
        "transfer: whole run of SGD", descent_epsilon(SHORT, 2), whole_descent(SHORT, 2), 1, 0,
        whole_descent(replace(SHORT, noise_multiplier=0.5), 2), "a sixteenth of the noise", 0.02,
        delta=0.01, runs=5_000, event=lambda part: part > 0.005, fewer=2,
    ),
    Audit(
        "discrepancy", 1.0, released_discrepancy(epsilon=1.0), [-1, 1, 1, 1], [-1, -1, 1, 1],
        released_discrepancy(epsilon=2.0), "half the noise", 0.5, runs=5_000,
        event=lambda value: value <= 1, fewer=2,
    ),
    Audit(
        "discrepancy, Gaussian", accounting.gaussian_epsilon(1.0, 0.01),
        released_discrepancy(mu=1.0, delta=0.01), [-1, 1, 1, 1], [-1, -1, 1, 1],
        released_discrepancy(mu=4.0, delta=0.01), "a quarter of the noise", 0.2, delta=0.01,
        runs=5_000, event=lambda value: value <= 1.3, fewer=2,
    ),
    # A part of the budget is for the discrepancy, which is told, too.
    Audit(
        "convex adaptation, exact", 1.0, convex(1.0), 1, -1,
        convex(20.0), "noise for twenty times epsilon", 0.0, delta=0.01, runs=3_000,
        event=lambda value: value > 0, fewer=3,
    ),
    Audit(
        "convex adaptation, idealized", 1.0, convex(1.0, numerics="idealized"), 1, -1,
        convex(20.0, numerics="idealized"), "noise for twenty times epsilon", 0.0, delta=0.01,
        runs=3_000, event=lambda value: value > 0, fewer=3,
    ),
    # Half of the budget is for u, and the losses of both neighbors are the same.
    Audit(
        "convex adaptation, paper", 1.0, printed(1.0), 1, -1,
        printed(30.0), "noise for thirty times epsilon", 0.0,
        delta=0.01, runs=3_000, event=lambda value: value > 0, fewer=3,
    ),
    Audit(
        "non-convex adaptation", 1.0, called(1.0), -1, 1,
        called(20.0), "noise for twenty times epsilon", 0.0,
        delta=0.01, runs=3_000, event=lambda value: value > 0.5, fewer=5,
    ),
    Audit(
        "private DM, exact: diagonal", 2.0, moment(along_axes, 2.0), *AXES,
        moment(along_axes, LESS), "a third of the noise", 0.2, delta=0.01, runs=6_000,
        event=lambda value: value > 1.3, fewer=2,
    ),
    Audit(
        "private DM, exact: off it", 2.0, moment(off_diagonal, 2.0), *DIAGONALS,
        moment(off_diagonal, LESS), "a third of the noise", 0.2, delta=0.01, runs=6_000,
        event=lambda value: value > 0.65, fewer=2,
    ),
    Audit(
        "private DM, idealized", 2.0, moment(off_diagonal, 2.0, numerics="idealized"), *DIAGONALS,
        moment(off_diagonal, LESS, numerics="idealized"), "a third of the noise", 0.2,
        delta=0.01, runs=6_000, event=lambda value: value > 0.65, fewer=2,
    ),
    Audit(
        "doubling learner", 1.0, doubling, records((1, 1), (1, 1)), records((1, 1), (1, 0)),
        judged_by_what_chose_it, "tested on what chose it", 0.7, runs=20_000, fewer=2,
    ),
    # The paper's true epsilon is about half of what it promises.
    Audit(
        "parity, paper", 0.5, learner(PAPER), records((1, 1)), records((1, 0)),
        learner(replace(ONE, epsilon=2.0, c=0.5)), "the sampling rate of epsilon 2", 0.05, fewer=2,
    ),
]  # fmt: skip


# Each has a shorter sibling of the same mechanism, or an audit in its own room.
LEFT = {
    "SGD, idealized",
    "convex adaptation, idealized",
    "curator's oracle, two queries",
    "doubling learner",
    "non-convex adaptation",
    "parity, batches: bottom",
    "parity, batches: record added",
    "parity, batches: record removed",
    "parity, batches: relation",
    "parity, loop: record removed",
    "private DM, idealized",
    "transfer: whole run of SGD",
}


@pytest.mark.parametrize("audit", lengths.leaving(LEFT, {audit.name: audit for audit in AUDITS}))
def test_no_bound_exceeds_its_promise_and_the_broken_twin_is_caught(audit, audit_table):
    audit.check(audit_table)


def test_a_mechanism_that_spends_a_fifth_more_is_caught():
    pair = records((1, 1)), records((1, 0))
    spent = lower_bound(
        learner(base(1.2)), *pair, event=is_mask, runs=100_000,
        confidence=1 - FALSE_ALARM, threads=1,
    )  # fmt: skip
    assert 1 < spent <= 1.2
