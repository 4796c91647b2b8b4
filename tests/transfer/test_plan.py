"""Parameters of Subsample-Test-Reweigh: the paper's formulas, the accountant, quadrature."""

import dataclasses
import functools
import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from cases import each_case
from scipy import integrate, stats

from hdp_fast import accounting, local
from hdp_fast.accounting import BoundedRange, Pure, Subsampled
from hdp_fast.exceptions import ParameterError, ShapeError
from hdp_fast.learners import Conjunctions, ExponentialLearner, PrivateSGD, Stumps
from hdp_fast.transfer import (
    SubsampleTestReweigh,
    chi2_finite,
    chi2_gaussians,
    f_divergence,
    plan_rounds,
    plan_source,
    renyi_finite,
    renyi_gaussians,
)
from hdp_fast.transfer.learner import compute_sample_size
from hdp_fast.weights import DenseWeights

LEARNER = ExponentialLearner(Stumps(3), epsilon=1.0)
PROMISED = {"alpha": 0.3, "epsilon": 1.0, "delta": 1e-6, "agents_epsilon": 1.0, "chi2": 0.2}
PROMISED |= {"output": "smallest"}
FREE = {
    "alpha": 0.1, "epsilon": 1.0, "delta": 1e-6, "agents_epsilon": 1.0,
    "kappa": 0.1, "eta": 0.5, "rounds": 20, "n": 5000,
}  # fmt: skip


@functools.cache
def promised(**change):
    return plan_rounds(LEARNER, **{**PROMISED, **change})


def spent(found, n, base=BoundedRange):
    """Delta of all planned rounds on n records."""
    rate = 1 / (found.kappa * (1 - 2.0**-12) * n)
    one = Subsampled(base(found.learner_epsilon), draws=found.draws, rate=rate)
    return accounting.delta([(one, found.rounds)], found.epsilon)


DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.skipif(not DOCS.exists(), reason="needs docs/")
def test_the_sizes_on_the_pages_are_those_of_today():
    learner = ExponentialLearner(Conjunctions(64, 2), epsilon=1.0)
    sizes = (DOCS / "reproduction" / "transfer.md").read_text(encoding="utf-8")
    beside = (DOCS / "theory" / "plans.md").read_text(encoding="utf-8")
    shown = {0.05: ("every", "geometric", "final"), 0.1: ("geometric",)}
    for alpha, chi2 in itertools.product((0.05, 0.1), (0.35, 2)):
        for schedule in shown[alpha] if chi2 < 1 else ("geometric",):
            found = plan_rounds(
                learner, alpha=alpha, chi2=chi2, epsilon=1.0, delta=1e-6, agents_epsilon=1.0,
                beta=0.05, schedule=schedule,
            )  # fmt: skip
            row = f"| {found.n:,} | {found.N:,} | {found.rounds:,} |"
            assert row in sizes, (alpha, chi2, schedule, row)
        paper = found.paper
        assert f"| {paper.n:,} | {paper.N:,} | {paper.rounds:,} |" in sizes
    for error, chi2, reweighed in [
        (0.3, 0.35, 0.05),
        (0.3, 2, 0.05),
        (0.6, 0.35, 0.1),
        (0.05, 0.35, None),
    ]:
        found = plan_source(learner, error=error, chi2=chi2, epsilon=1.0)
        row = f"| **{found.n:,}**, 0 | {found.source_error:.4f} |".replace(" 0.", " .")
        if reweighed:
            plan = plan_rounds(
                learner, alpha=reweighed, chi2=chi2, epsilon=1.0, delta=1e-6, agents_epsilon=1.0,
                beta=0.05, schedule="geometric",
            )  # fmt: skip
            row = f"| {plan.n:,}, {plan.N:,} {row}"
        assert row in beside, row


@pytest.mark.parametrize(
    ("given", "learner"),
    [
        (PROMISED, LEARNER),
        (
            {**PROMISED, "alpha": 0.1, "epsilon": 0.5},
            ExponentialLearner(Conjunctions(20, 2), epsilon=1.0),
        ),
        ({**PROMISED, "opt": 0.1}, LEARNER),
        (PROMISED, ExponentialLearner(Stumps(3), mechanism="permute_and_flip", epsilon=1.0)),
    ],
)
def test_the_records_of_a_promise_are_enough_and_half_of_them_are_not(given, learner):
    found, base = plan_rounds(learner, **given), type(learner.privacy)
    assert spent(found, found.n, base) <= found.delta
    assert spent(found, 0.95 * found.n, base) > found.delta
    assert spent(found, found.n // 2, base) > 10 * found.delta


@pytest.mark.parametrize("n", [500, 5000, 500_000])
def test_the_draws_for_given_records_are_private_and_hardly_more_would_be(n):
    found = plan_rounds(LEARNER, **{**FREE, "n": n})
    assert spent(found, n) <= found.delta
    more = dataclasses.replace(found, draws=found.draws + 1 + found.draws // 1000)
    assert spent(more, n) > found.delta
    assert not found.promised
    assert found.paper is None


def test_the_learners_epsilon_is_worth_its_search():
    found = promised()
    one = accounting.largest_rate(
        BoundedRange(1.0),
        draws=LEARNER.sample_size(0.3, 0.05 / found.rounds, 1.0, agnostic=False),
        rounds=found.rounds,
        epsilon=1.0,
        delta=1e-6,
    )
    assert found.n < 0.8 / (found.kappa * one), "1 inside is the paper's"


@pytest.mark.parametrize("alpha", [0.05, 0.1])
@pytest.mark.parametrize("chi2", [0.35, 2.0])
def test_the_papers_figures_by_hand(alpha, chi2):
    # Kohen and Sheffet 2022, Algorithm 2, with Theorem 3.4 of Kasiviswanathan et al. for the
    # learner.
    learner, beta, epsilon, delta = (
        ExponentialLearner(Conjunctions(20, 2), epsilon=1.0),
        0.05,
        1.0,
        1e-6,
    )
    paper = plan_rounds(
        learner, alpha=alpha, epsilon=epsilon, delta=delta, agents_epsilon=1.0, chi2=chi2,
        n=2000, rounds=3, kappa=0.1,
    ).paper  # fmt: skip
    kappa = alpha / (8 * (chi2 + 1))
    rounds = math.ceil(128 * math.log2(8 * (chi2 + 1) / alpha) / alpha**2)
    draws = math.ceil(6 * math.log(len(learner.hypotheses) * rounds / beta) / alpha**2)
    each = math.ceil(4 * math.log(2 / delta) * math.log(8 * rounds / beta) / alpha**2)
    n = draws * math.sqrt(288 * rounds * math.log(2 / delta)) / (epsilon * kappa)
    assert (paper.kappa, paper.eta) == pytest.approx((kappa, alpha / 8))
    assert (paper.rounds, paper.draws) == (rounds, draws)
    assert (paper.agents_per_test, paper.N) == (each, each * rounds)
    assert paper.n == math.ceil(n)


def test_rounds_and_density_by_hand():
    found = promised()
    assert found.kappa == pytest.approx(0.3 / (8 * 1.2))
    assert found.eta == pytest.approx(0.45)
    assert found.rounds == math.ceil(32 * math.log(8 * 1.2 / 0.3) / (9 * 0.09))
    same = promised(alpha=0.5, eta="paper")
    assert (same.eta, same.rounds) == (0.5 / 8, same.paper.rounds)
    # What the weights must stand for needs records of its own, whatever privacy needs.
    few = promised(epsilon=50.0, delta=0.5)
    lemma = 1.2 / 0.09 * max(150 * math.log(4 / 0.05), 32 * math.log(2 * 8 / 0.05))
    assert few.n == math.ceil(lemma)


@pytest.mark.parametrize("output", ["tested", "smallest", "majority"])
@pytest.mark.parametrize("schedule", ["every", "geometric", "final"])
def test_agents_of_every_schedule(schedule, output):
    rounds, beta, alpha = 20, 0.01, 0.1
    last = 1 if output == "majority" else 0 if schedule == "every" else 7  # 2**-7 <= 0.01
    tests = {"every": 20, "geometric": 5, "final": 0}[schedule] + last
    found = plan_rounds(
        LEARNER, alpha=alpha, beta=beta, agents_epsilon=1.0, kappa=0.1, eta=0.5, rounds=rounds,
        schedule=schedule, output=output, epsilon=math.inf,
    )  # fmt: skip
    each = local.agents_needed(alpha=alpha, beta=beta / tests, epsilon=1.0)
    assert (found.tests, found.agents_per_test, found.N) == (
        tests,
        each,
        tests * each + found.agents_for_constants,
    )
    few = local.agents_needed(alpha=2 * alpha, beta=beta, epsilon=1.0)
    assert found.agents_for_constants == few
    assert found.final_tests == last
    along = {"every": range(1, 21), "geometric": (1, 2, 4, 8, 16), "final": ()}[schedule]
    assert found.tested_rounds == tuple(along)
    # Hoeffding's inequality for answers whose mean moves by tanh(1 / 2) at most.
    assert each == math.ceil(math.log(2 * tests / beta) / (2 * (alpha * math.tanh(0.5)) ** 2))


def test_only_the_planned_parameters_promise_an_error():
    assert promised().error == pytest.approx(6 * 0.3)
    assert promised(schedule="every").error == pytest.approx(4 * 0.3)
    assert promised(output="majority").error == pytest.approx(4 * 0.3)
    for change in ({"kappa": 0.1, "rounds": 7}, {"eta": 0.1, "rounds": 7}, {"kappa": 0.1}):
        found = promised(n=3000, **change)
        assert (found.promised, found.error) == (False, None)
    assert not promised(opt=0.1).promised


def test_a_run_that_stops_at_once_is_charged_for_all_rounds():
    bits = np.random.default_rng(0).integers(0, 2, (2000, 3), dtype=np.uint8)
    records = {}
    for name, labels in {"at once": bits[:, 0], "never": 1 - bits[:, 0]}.items():
        agents = local.Agents(np.tile(bits, (40, 1)), np.tile(labels, 40), epsilon=3.0)
        given = {**FREE, "alpha": 0.08, "rounds": 6}
        del given["agents_epsilon"], given["n"]
        model = SubsampleTestReweigh(LEARNER, **given, schedule="every", output="tested")
        model.fit(bits, bits[:, 0], agents)
        records[name] = (model.result_.rounds, model.record_)
    (early, one), (late, other) = records.values()
    assert early < late == 6
    assert (one.epsilon, one.delta) == (other.epsilon, other.delta) == (1.0, 1e-6)


class Lying(ExponentialLearner):
    """Claims the curve of the exponential mechanism."""

    @property
    def privacy(self):
        return BoundedRange(self.epsilon)


class Unknown(ExponentialLearner):
    privacy = "pure"


@each_case(
    ("change", "words"),
    [
        ({"alpha": 1}, "alpha = 1"),
        ({"alpha": "x"}, "alpha = 'x'"),
        ({"beta": 0}, "beta = 0"),
        ({"epsilon": None}, "epsilon = None"),
        ({"epsilon": math.nan}, "epsilon = nan"),
        ({"delta": 1}, "delta = 1"),
        ({"agents_epsilon": 0}, "epsilon = 0"),
        ({"agents_epsilon": math.nan}, "agents_epsilon = nan"),
        ({"chi2": math.nan}, "chi2 = nan"),
        ({"chi2": "x"}, "chi2 = 'x'"),
        ({"kappa": 1.5}, "kappa = 1.5"),
        ({"kappa": math.nan}, "kappa = nan"),
        ({"kappa": None}, "kappa = None"),
        ({"eta": -1}, "eta = -1"),
        ({"eta": "x"}, "eta = 'x'"),
        ({"rounds": None}, "rounds = None"),
        ({"rounds": 2**40}, "rounds = "),
        ({"rounds": 12_000}, "rounds = 12000"),
        ({"n": None}, "n = None"),
        ({"n": 0}, "n = 0"),
        ({"n": 2.5}, "n = 2.5"),
        ({"schedule": None}, "schedule = None"),
        ({"output": 1}, "output = 1"),
        ({"opt": -0.1}, "opt = -0.1"),
        ({"alpha": 0.167}, "alpha = 0.167 and opt = 0, but a test accepts"),
        ({"opt": 0.2}, "alpha = 0.1 and opt = 0.2, but a test accepts an error of 3 alpha + opt"),
        ({"draws": 3}, "draws = 3"),
        ({"epsilon": math.inf}, "delta = 1e-06, but epsilon = inf protects no record"),
        ({"learner": None}, "learner = None"),
        ({"learner": Unknown(Stumps(3), epsilon=1.0)}, "learner.privacy = 'pure'"),
        ({"learner": Lying(Stumps(3), epsilon=1.0, mechanism="permute_and_flip")}, "bounded range"),
        (
            {"learner": ExponentialLearner(Stumps(3), neighbors="add_remove", epsilon=1.0)},
            "add_remove",
        ),
    ],
    ids=str,
)
def test_bad_parameters_name_themselves(change, words):
    with pytest.raises(ParameterError) as caught:
        plan_rounds(**{"learner": LEARNER, **FREE, **change})
    assert words in str(caught.value)


def test_permute_and_flip_is_planned_as_pure():
    flip = ExponentialLearner(Stumps(3), mechanism="permute_and_flip", epsilon=1.0)
    assert isinstance(flip.privacy, Pure)
    assert plan_rounds(flip, **PROMISED).n > 1.2 * promised().n


class TestDivergences:
    def test_finite_ones(self):
        p, q = [0.5, 0.25, 0.25, 0.0], [0.25, 0.25, 0.25, 0.25]
        assert chi2_finite(p, q) == pytest.approx(0.25 / 0.25 + 2 * 0.25 - 1)
        assert chi2_finite(q, q) == 0
        assert chi2_finite(q, p) == math.inf
        assert chi2_finite([1, 0], [1, 0]) == 0

    @pytest.mark.parametrize(
        ("m", "s", "a", "b"), [(0, 1, 0, 1), (1, 1, 0, 1), (0.5, 0.8, -0.2, 1.3), (0, 1.2, 0.3, 1)]
    )
    def test_gaussians_by_quadrature(self, m, s, a, b):
        def density(x):
            return stats.norm.pdf(x, m, s) ** 2 / stats.norm.pdf(x, a, b)

        wanted = integrate.quad(density, -25, 25, points=[m, a], limit=200)[0] - 1
        found = chi2_gaussians([m], [s**2], [a], [b**2])
        assert found == pytest.approx(wanted, rel=1e-7, abs=1e-9)
        assert chi2_gaussians([m], [[s**2]], [a], [[b**2]]) == pytest.approx(found, abs=1e-12)

    def test_gaussians_of_two_dimensions_by_quadrature(self):
        means, spreads = [[0.3, -0.2], [0, 0]], [[[0.9, 0.2], [0.2, 0.7]], [[1.1, -0.1], [-0.1, 1]]]
        target, source = (
            stats.multivariate_normal(*each) for each in zip(means, spreads, strict=True)
        )
        x = np.stack(np.meshgrid(*[np.linspace(-9, 9, 601)] * 2), -1)
        wanted = (target.pdf(x) ** 2 / source.pdf(x)).sum() * (18 / 600) ** 2 - 1
        found = chi2_gaussians(means[0], spreads[0], means[1], spreads[1])
        assert found == pytest.approx(wanted, rel=1e-6)

    def test_renyi_of_finite_laws_by_definition(self):
        p, q = np.array([0.5, 0.25, 0.25, 0.0]), np.array([0.2, 0.3, 0.25, 0.25])
        w = p / q
        for order in (1.001, 2, 4, 30):
            wanted = math.log(q @ w**order) / (order - 1)
            assert renyi_finite(p, q, order) == pytest.approx(wanted, rel=1e-9)
        assert renyi_finite(p, q, 1) == pytest.approx(stats.entropy(p, q))
        assert renyi_finite(p, q, math.inf) == pytest.approx(math.log(w.max()))
        assert renyi_finite(p, q, 2) == pytest.approx(math.log1p(chi2_finite(p, q)))
        # E[w**4], which the paper's open problem presumes to be bounded.
        assert math.exp(3 * renyi_finite(p, q, 4)) == pytest.approx(q @ w**4)
        assert renyi_finite(p, q, 1e6) == pytest.approx(math.log(w.max()), rel=1e-4)
        assert renyi_finite(q, p, 2) == renyi_finite(q, p, 1) == math.inf
        assert renyi_finite(p, p, 3) == renyi_finite(p, p, math.inf) == 0

    def test_f_divergences_are_those_that_the_paper_names(self):
        p, q = np.array([0.5, 0.25, 0.25]), np.array([0.2, 0.3, 0.5])
        assert f_divergence(p, q, lambda w: abs(w - 1) / 2) == pytest.approx(abs(p - q).sum() / 2)
        assert f_divergence(p, q, lambda w: w * np.log(w)) == pytest.approx(renyi_finite(p, q, 1))
        assert f_divergence(p, q, lambda w: w**2 - 1) == pytest.approx(chi2_finite(p, q))
        # Of laws that are close, f''(1) / 2 times chi2.
        near = q + 1e-4 * np.array([1, -2, 1])
        kl = f_divergence(near, q, lambda w: w * np.log(w))
        assert kl == pytest.approx(chi2_finite(near, q) / 2, rel=1e-3)

    @pytest.mark.parametrize(
        ("m", "s", "a", "b"), [(0, 1, 0, 1), (1, 1, 0, 1), (0.5, 0.8, -0.2, 1.3), (0, 1.2, 0.3, 1)]
    )
    def test_renyi_of_gaussians_by_quadrature(self, m, s, a, b):
        given = [m], [s**2], [a], [b**2]
        for order in (1.5, 2.5):
            if 1 + order * (b**2 / s**2 - 1) <= 0:
                assert renyi_gaussians(*given, order) == math.inf
                continue

            def density(x, order=order):
                return math.exp(
                    order * stats.norm.logpdf(x, m, s) - (order - 1) * stats.norm.logpdf(x, a, b)
                )

            moment = integrate.quad(density, -25, 25, points=[m, a], limit=200)[0]
            wanted = math.log(moment) / (order - 1)
            assert renyi_gaussians(*given, order) == pytest.approx(wanted, rel=1e-6, abs=1e-8)

        def loss(x):
            return stats.norm.logpdf(x, m, s) - stats.norm.logpdf(x, a, b)

        wanted = integrate.quad(lambda x: stats.norm.pdf(x, m, s) * loss(x), -25, 25, points=[m])[0]
        assert renyi_gaussians(*given, 1) == pytest.approx(wanted, rel=1e-6, abs=1e-8)
        found = renyi_gaussians(*given, math.inf)
        if s < b:
            assert found == pytest.approx(loss(np.linspace(-20, 20, 400_001)).max(), abs=1e-7)
        else:
            assert found == (0 if (m, s) == (a, b) else math.inf)

    def test_renyi_of_gaussians_does_not_depend_on_coordinates(self):
        rng = np.random.default_rng(2)
        A = rng.standard_normal((4, 4))
        T, S = np.diag([0.5, 1.0, 0.2, 0.9]), np.diag([1.0, 1.0, 0.4, 1.1])
        t, z = np.array([0.3, 0.0, 0.1, -0.2]), np.zeros(4)
        for order in (1, 1.7, 2, math.inf):
            plain = renyi_gaussians(t, T, z, S, order)
            turned = renyi_gaussians(A @ t, A @ T @ A.T, z, A @ S @ A.T, order)
            assert turned == pytest.approx(plain, rel=1e-8)
            assert plain < math.inf

    @pytest.mark.parametrize(
        ("call", "match"),
        [
            (lambda: renyi_finite([0.5, 0.5], [0.5, 0.5], 0.9), "order = 0.9"),
            (lambda: renyi_gaussians([0], [1], [0], [1], math.nan), "order = nan"),
            (lambda: f_divergence([1, 0], [1, 0], 3), "f = 3"),
            (lambda: f_divergence([0.5, 0.5], [1, 0], np.abs), "source has 0"),
            (lambda: f_divergence([0.5, 0.5], [0.5, 0.5], lambda w: w[:1]), "f returned"),
            (lambda: f_divergence([0.5, 0.5], [0.5, 0.5], lambda w: w / 0), "f\\(target"),
        ],
    )
    @pytest.mark.filterwarnings("ignore:divide by zero")
    def test_what_has_no_divergence(self, call, match):
        with pytest.raises((ParameterError, ShapeError), match=match):
            call()

    def test_gaussians_whose_tails_are_too_heavy(self):
        assert chi2_gaussians([0], [2], [0], [1]) == math.inf
        assert chi2_gaussians([0], [1.999], [0], [1]) < math.inf
        assert chi2_gaussians([1000], [1], [0], [1]) == math.inf, "beyond the floats"
        for far in (1e160, 1e308):
            assert chi2_gaussians([far, 0], [1, 1], [-far, 1], [1, 1]) == math.inf

    @pytest.mark.parametrize(
        ("target", "source"),
        [([0.5, 0.4], [0.5, 0.5]), ([1.5, -0.5], [0.5, 0.5]), ([0.5, math.nan], [0.5, 0.5]),
         ([0.5, 0.5], [0.2, 0.2]), (["a"], [1]), ([1], [1, 0]), ([], []), ([[1]], [[1]]),
         ([1e308, 1e308], [0.5, 0.5])],
    )  # fmt: skip
    def test_what_are_no_laws(self, target, source):
        with pytest.raises((ParameterError, ShapeError), match=r"target|source"):
            chi2_finite(target, source)

    @pytest.mark.parametrize(
        "given",
        [([0], [0], [0], [1]), ([0], [1], [0], [-1]), ([0], [1, 1], [0], [1]),
         ([0, 0], [1, 1], [0], [1]), ([math.nan], [1], [0], [1]), ([0, 0], [[1, 2], [0, 1]], [0, 0],
         [1, 1]), ([0, 0], [[1, 2], [2, 1]], [0, 0], [1, 1]), ([0], ["a"], [0], [1]),
         ([0], np.ones(300_000), [0], [1]),
         (np.zeros(300_000), np.ones(300_000), [0], [1]),
         (np.zeros(300_000), np.ones(300_000), np.zeros(300_000), [1])],
    )  # fmt: skip
    def test_what_are_no_gaussians(self, given):
        with pytest.raises((ParameterError, ShapeError), match=r"target|source|means"):
            chi2_gaussians(*given)


class TestPromise:
    """The corollary of docs/theory/dense_weights.md against the worst learner of its premise."""

    # A law of target and source over six cells; a hypothesis errs on a set of cells.
    SOURCE = np.array([0.3, 0.3, 0.2, 0.1, 0.07, 0.03])
    TARGET = np.array([0.1, 0.1, 0.2, 0.2, 0.26, 0.14])
    SETS = np.array(list(itertools.product((0, 1), repeat=6)))
    ALPHA = 0.2

    def errors(self, eta, rounds):
        """Target errors of a learner that always errs by alpha where it hurts the target most."""
        chi2 = chi2_finite(self.TARGET, self.SOURCE)
        kappa = self.ALPHA / (8 * (1 + chi2))
        cells = np.random.default_rng(4).choice(6, 60_000, p=self.SOURCE)
        weights, found = DenseWeights(len(cells), kappa, eta), []
        for _ in range(rounds):
            mu = np.bincount(cells, weights.probabilities(), minlength=6)
            allowed = self.SETS[self.SETS @ mu <= self.ALPHA]
            worst = allowed[np.argmax(allowed @ self.TARGET)]
            found.append(worst @ self.TARGET)
            weights.update(worst[cells].astype(np.uint8))
        return np.array(found)

    def test_the_mean_iterate_of_the_worst_learner(self):
        chi2 = chi2_finite(self.TARGET, self.SOURCE)
        found = plan_rounds(LEARNER, **{**PROMISED, "alpha": self.ALPHA, "chi2": chi2})
        assert found.n >= 60_000 >= 0.05 * found.n
        errors = self.errors(found.eta, found.rounds)
        assert errors[0] > 2 * self.ALPHA, "the source alone would not do"
        assert errors.mean() <= 2 * self.ALPHA
        assert self.errors(found.eta / 1000, found.rounds).mean() > 2 * self.ALPHA

    def test_a_whole_private_run_at_the_plans_own_numbers(self):
        given = {key: PROMISED[key] for key in ("alpha", "epsilon", "delta", "chi2", "output")}
        model = SubsampleTestReweigh(LEARNER, **given)
        found = model.plan(1, agents_epsilon=1.0)
        rng = np.random.default_rng(5)
        X = (rng.random((found.n, 3)) < [0.7, 0.5, 0.5]).astype(np.uint8)
        Z = rng.integers(0, 2, (found.N, 3), dtype=np.uint8)
        model.fit(X, X[:, 0], local.Agents(Z, Z[:, 0], epsilon=1.0))
        assert model.plan_ == found
        assert (model.result_.predict(Z) != Z[:, 0]).mean() <= 4 * found.alpha
        assert model.result_.tested.value <= 3 * found.alpha


# Learners with steps of their own -----------------------------------------------------------------


@dataclasses.dataclass
class Steps:
    """The face of private gradient descent, with nothing behind it."""

    steps: int = 100
    batch_size: int = 1000

    step = None
    learn_weighted = None
    calibrate = None


def test_the_plan_of_a_learner_with_steps():
    given = {**FREE, "n": 20_000}
    found = plan_rounds(Steps(), **given)
    assert (found.draws, found.learner_epsilon, found.n) == (100_000, None, 20_000)
    assert not found.promised
    assert found.paper is None
    with_chi2 = plan_rounds(Steps(), **{**PROMISED, "n": 10**6})
    assert with_chi2.kappa == pytest.approx(0.3 / (8 * 1.2))
    assert not with_chi2.promised
    free = plan_rounds(Steps(), alpha=0.1, epsilon=math.inf, kappa=0.1, eta=0.5, rounds=20)
    assert free.draws == 100_000


def test_the_printed_records_of_algorithm_4():
    """X = 52 R T / (8 kappa**2 epsilon) and n = sqrt(X ln X): the paper's 324.7 million."""
    alpha, chi2 = 0.08, 0.35
    given = {"epsilon": 0.5, "delta": 1e-4, "agents_epsilon": 0.5, "alpha": alpha, "chi2": chi2}
    paper = plan_rounds(Steps(50_000_000, 1), **given, n=10**6, schedule="final").paper
    assert paper.kappa == pytest.approx(alpha / (8 * (1 + chi2)))
    X = 52 * 5e7 * paper.rounds / (8 * paper.kappa**2 * 0.5)
    assert paper.n == pytest.approx(math.sqrt(X * math.log(X)), rel=1e-9)
    # The experiments doubled kappa; their n is that of 999.3 rounds.
    scale = math.sqrt(999.3 / paper.rounds) / 2
    assert math.sqrt(X * scale**2 * math.log(X * scale**2)) == pytest.approx(324.7e6, rel=1e-3)
    assert paper.draws == 50_000_000


def test_records_follow_from_the_noise_of_a_learner_with_steps():
    learner = PrivateSGD(
        loss="hinge", steps=100, batch_size=1000, noise_multiplier=37.05, delta=1e-4
    )
    given = {"epsilon": 0.5, "delta": 1e-4, "kappa": 0.0148, "rounds": 20, "alpha": 0.08}
    found = plan_rounds(learner, **given)
    assert found.n == pytest.approx(10**6, rel=2e-3)
    own = learner.calibrate(epsilon=0.5, n=found.n, kappa=0.0148, rounds=20)
    assert own.noise_multiplier == pytest.approx(37.05, rel=1e-4)


@pytest.mark.parametrize(
    ("learner", "change", "match"),
    [
        (Steps(), {"n": None}, "n = None.*steps"),
        (Steps(), {"n": None, "chi2": 0.2}, "n = None.*steps"),
        (Steps(steps=0), {}, "learner.steps = 0"),
        (Steps(batch_size=1.5), {}, "learner.batch_size"),
        (type("Half", (), {"learn_weighted": None})(), {}, "step, calibrate"),
    ],
)
def test_learners_with_steps_that_cannot_be_planned(learner, change, match):
    with pytest.raises(ParameterError, match=match):
        plan_rounds(learner, **{**FREE, **change})


@dataclasses.dataclass
class PerError:
    """How many records one error more takes; it has no hash."""

    records: float

    def __call__(self, alpha, beta, epsilon):
        return self.records / alpha


def test_sample_size_may_be_any_callable():
    learner = dataclasses.make_dataclass("Learner", ["sample_size"])(PerError(10.0))
    assert compute_sample_size(learner, 0.1, 0.05) == 100


@pytest.mark.parametrize("n", [(1 << 32) - 1, 1 << 32])
def test_plan_rounds_takes_the_records_that_dense_weights_take(n):
    """As many as their indices have place for: `DenseWeights` is asked about the larger one."""
    goal = {"kappa": 2.0**-20, "eta": 0.5, "rounds": 3, "alpha": 0.1, "epsilon": 1.0, "delta": 1e-9}
    learner = PrivateSGD(loss="logistic", steps=20, batch_size=50, epsilon=1.0)
    if n < 1 << 32:
        assert plan_rounds(learner, n=n, agents_epsilon=1.0, **goal).n == n
        return
    for refuse in (
        lambda: plan_rounds(learner, n=n, agents_epsilon=1.0, **goal),
        lambda: DenseWeights(n, goal["kappa"], goal["eta"]),
    ):
        with pytest.raises(ParameterError, match=r"and n below 2"):
            refuse()
