"""What Kohen and Sheffet print: sizes by hand, their own bounds, and their loop line by line."""

import itertools
import math

import numpy as np
import pytest
from cases import each_case
from scipy import optimize, stats
from whole_runs import Tiny, compiled, law, projected

from hdp_fast import accounting, learners, local
from hdp_fast.budget import Budget
from hdp_fast.exceptions import InsufficientSamples, ParameterError
from hdp_fast.reference import linear, weights
from hdp_fast.transfer import (
    SubsampleTestReweigh,
    chi2_gaussians,
    paper_descent,
    paper_records,
    paper_rounds,
    paper_steps,
    plan_rounds,
    renyi_gaussians,
)

GOAL = {"alpha": 0.08, "beta": 1e-6, "epsilon": 0.5, "delta": 1e-4, "chi2": 0.35}
SHAPE = {"diameter": 1.0, "lipschitz": 0.1, "columns": 9}


def test_paper_records_are_those_of_algorithm_1_by_hand():
    n = 800 * 1.35 * math.log(20) / 0.05**2
    n *= 13 * math.log(400 * 13 / 0.05**3) + math.log(8 / 0.05)
    assert paper_records(alpha=0.05, beta=0.05, chi2=0.35, dimension=13) == math.ceil(n)
    # As in the proof: the union bound of Cortes et al. and that on the sum of the weights hold.
    d, alpha, beta = 13, 0.05, 0.05
    small = 4 * math.exp(
        d * math.log(2 * math.e * n / d) - n * alpha**2 / (200 * 1.35 * math.log(1 / alpha))
    )
    assert small <= beta / 2
    assert n >= 150 * 1.35 * math.log(4 / beta) / alpha**2


def test_paper_rounds_by_hand_and_by_the_regret_of_the_proof():
    alpha, ratio = 0.05, 1.35
    private = paper_rounds(alpha=alpha, chi2=0.35)
    assert private == math.ceil(128 * math.log2(8 * ratio / alpha) / alpha**2)
    half = paper_rounds(alpha=alpha, chi2=0.35, largest_loss=0.5)
    assert half == math.ceil(32 * math.log2(8 * ratio / alpha) / alpha**2)
    free = paper_rounds(alpha=alpha, chi2=0.35, private=False)
    assert free == math.ceil(32 * math.log2(8 * ratio / alpha**2) / alpha**2)
    # 3 alpha T / 8 <= alpha T / 8 + 8 KL / alpha fails after as many rounds as are printed.
    kl = math.log2(8 * ratio / alpha)
    assert 3 * alpha * free / 8 > alpha * free / 8 + 8 * kl / alpha
    assert 3 * alpha * private / 8 >= alpha * private / 8 + 32 * kl / alpha


@pytest.mark.parametrize("deviation", [0.0, 0.2, 1.0])
def test_paper_steps_lack_a_factor_of_four_in_their_second_term(deviation):
    alpha, beta, D, L, d = 0.1, 1e-4, 2.0, 1.0, 5

    def bound(R):
        noisy = 3 * D * math.sqrt(L**2 + d * deviation**2) / (2 * math.sqrt(R))
        return noisy + L * D * math.sqrt(8 * math.log(2 / beta) / R)

    printed, corrected = paper_steps(
        alpha=alpha, beta=beta, diameter=D, lipschitz=L, columns=d, deviation=deviation
    )
    first, second = 9 * D**2 * (L**2 + d * deviation**2), 8 * D**2 * L**2 * math.log(2 / beta)
    assert printed == math.ceil(max(first, second) / alpha**2)
    assert 1.1 * alpha < bound(printed) <= 1.5 * alpha
    assert bound(corrected) <= alpha


def test_paper_steps_of_strongly_convex_losses():
    alpha, beta, D, L, d, curved = 0.1, 0.1, 0.1, 1.0, 5, 0.5
    printed, corrected = paper_steps(
        alpha=alpha, beta=beta, diameter=D, lipschitz=L, columns=d, deviation=1.0,
        strong_convexity=curved,
    )  # fmt: skip
    X = (L**2 + d) / (curved * alpha)
    assert printed == math.ceil(4 * X * math.log(X))
    for R in (printed, corrected):
        assert X * (1 + math.log(R)) / 2 / R <= alpha / 2 / alpha + 1e-9
    assert X * (1 + math.log(corrected - 2)) > corrected - 2


def test_paper_descent_keeps_all_conditions_of_algorithm_4():
    made = paper_descent(**GOAL, **SHAPE)
    kappa, T, R, n = made.kappa, made.rounds, made.steps, made.n
    assert kappa == pytest.approx(0.08 / (8 * 1.35))
    assert paper_rounds(alpha=0.08, chi2=0.35, largest_loss=0.1) == T
    square = max(20, (16 / 0.5 * math.log(1e4) + 8) / math.log(kappa * n))
    assert made.noise_multiplier**2 == pytest.approx(square)
    steps = paper_steps(
        alpha=0.08, beta=1e-6, deviation=0.1 * math.sqrt(square), **SHAPE
    )  # fmt: skip
    assert steps.printed == R
    x = 52 * R * T / (8 * kappa**2 * 0.5)
    assert n - 2 <= math.sqrt(x * math.log(x)) <= n
    # Theorem A.3 for a draw, composed, is what the paper's formula says.
    rho, omega = accounting.tcdp_of_draw(2 / square, 1 / (kappa * n))
    assert (made.rho, made.omega) == pytest.approx((rho * R * T, omega))
    printed = 26 * R * T * math.log(kappa * n) / (8 * kappa**2 * n**2)
    printed += 8 * math.log(1e4) / (square * math.log(kappa * n) - 8)
    assert made.epsilon == pytest.approx(printed)
    assert accounting.tcdp_epsilon(made.rho, made.omega, 1e-4) < printed <= 0.5
    # The package's own accountant: the printed noise is more than enough.
    step = accounting.Subsampled(
        accounting.GaussianMechanism(2 / made.noise_multiplier), draws=1, rate=1 / (kappa * n)
    )
    assert accounting.epsilon([(step, R * T)], 1e-4) < 0.1


def test_paper_descent_is_refused_where_the_printed_answers_are_not_private():
    with pytest.raises(ParameterError, match=r"diameter \* lipschitz = 2 leave \[0, 1\]"):
        paper_descent(**GOAL, diameter=2.0, lipschitz=1.0, columns=9)
    # What the noise for losses in [0, 1] is worth for losses in [0, 2]: far more than delta.
    mu = 2 * 0.5 / math.sqrt(2 * math.log(2 / 1e-4))
    assert accounting.gaussian_delta(mu, 0.5) > 10 * 1e-4


def test_the_printed_noise_and_rounds_of_figure_3():
    # Appendix D: n = 324,700,000 with 50 million steps, epsilon = .5, delta = 1e-4, alpha = .08,
    # diameter .006, Lipschitz constant .1, and kappa = alpha / (4 (chi2 + 1)).
    n, steps, ratio = 324_700_000, 50_000_000, 1.35
    kappa = 0.08 / (4 * ratio)
    assert (16 / 0.5 * math.log(1e4) + 8) / math.log(kappa * n) < 20
    goal = {"alpha": 0.08, "beta": 1e-6, "epsilon": 0.5, "delta": 1e-4, "chi2": 0.35}
    shape = {"diameter": 0.006, "lipschitz": 0.1, "columns": 9}
    large = paper_descent(**goal, diameter=1.0, lipschitz=0.1, columns=9, steps=steps)
    assert large.noise_multiplier == pytest.approx(math.sqrt(20))
    # n = sqrt(X ln X) for X = 52 R T / (8 kappa**2 epsilon): a thousand rounds.
    x = optimize.brentq(lambda x: x * math.log(x) - n**2, 1e10, 1e20)
    assert x * 8 * kappa**2 * 0.5 / 52 / steps == pytest.approx(1000, rel=2e-3)
    # What Algorithm 4 prints for losses up to .0006 is one round: each hypothesis meets alpha.
    printed = paper_descent(**goal, **shape, steps=steps)
    assert printed.rounds == 1
    assert 0.006 * 0.1 < 0.08


def test_divergences_of_the_papers_gaussians():
    # Section 5 and Appendix D: chi2 + 1 is above 3e15 and 39.1, and 1.35 for the private run.
    for sigma, k, source, least in ((0.02, 10, 1, 3e15), (0.4, 6, 1, 39.1), (0.07, 2, 0.1, 1.35)):
        pair = np.zeros(k), np.full(k, sigma**2), np.zeros(k), np.full(k, source**2)
        chi2 = chi2_gaussians(*pair)
        assert least < chi2 + 1 < 1.1 * least
        assert renyi_gaussians(*pair, 2) == pytest.approx(math.log1p(chi2))
        # The largest weight, the paper's D with an infinity sign.
        assert renyi_gaussians(*pair, math.inf) == pytest.approx(k * math.log(source / sigma))


# The loop of the paper, line by line --------------------------------------------------------------

TINY = Tiny(3, 2 / 3, 0.3, 1.0, rounds=3)


def accept_law(tiny, records, answers, threshold):
    """The law of (hypothesis, round) by products of probabilities, without any loop of draws."""
    found = {}
    for path, chance in law(tiny, records).items():
        stop = next((t for t, h in enumerate(path) if answers[h] <= threshold), None)
        key = (None, tiny.rounds) if stop is None else (path[stop], stop + 1)
        found[key] = found.get(key, 0) + chance
    return found


@pytest.mark.parametrize("threshold", [0.2, 0.4, 0.9])
def test_run_printed_has_the_law_of_algorithm_2(threshold):
    records, tiny = ((0, 1), (1, 0), (1, 1)), TINY
    wrong, answers = tiny.wrong(records), (0.3, 0.7)
    exact, found = accept_law(tiny, records, answers, threshold), {}
    # Every way in which the learner can choose in three rounds, with its probability.
    for choices in itertools.product(range(len(wrong)), repeat=tiny.rounds):
        chance, turn = 1.0, iter(choices)

        def learn(mu, turn=turn):
            nonlocal chance
            chosen = next(turn)
            weighed = np.exp(-tiny.epsilon / 2 * wrong)
            chance *= float((weighed / weighed.sum(axis=0) @ mu)[chosen])
            return chosen

        made = weights.run_printed(
            learn, lambda h: wrong[h], lambda h: answers[h], 3,
            eta=tiny.eta, kappa=tiny.kappa, rounds=3, threshold=threshold,
        )  # fmt: skip
        unused = len(list(turn))
        found[made] = found.get(made, 0) + chance / len(wrong) ** unused
    assert found == pytest.approx(exact, abs=1e-12)


def test_run_printed_moves_the_weights_as_the_compiled_run_does():
    records, seen = ((0, 1), (1, 0), (1, 1)), []
    tiny = TINY
    wrong, path = tiny.wrong(records), (0, 1, 0)
    turn = iter(path)

    def learn(mu):
        seen.append(mu)
        return next(turn)

    weights.run_printed(
        learn, lambda h: wrong[h], lambda h: 1.0, 3,
        eta=tiny.eta, kappa=tiny.kappa, rounds=3, threshold=0.5,
    )  # fmt: skip
    for t, mu in enumerate(seen):
        assert mu == pytest.approx(projected(tiny, records, path[:t]), abs=1e-12)
        assert mu == pytest.approx(compiled(tiny, records, path[:t]), abs=2.0**-11)


def test_run_printed_without_projection_is_algorithm_1_and_scales_losses_as_algorithm_4():
    losses, seen = np.array([[0.0, 0.25, 0.5]]), []
    call = {"eta": 0.01, "rounds": 3, "threshold": 0.2}

    def learn(mu):
        seen.append(mu)
        return 0

    assert weights.run_printed(learn, lambda h: losses[h], lambda h: 0.3, 3, **call) == (None, 3)
    w = np.exp(-0.01 * 2 * (1 - losses[0]))
    assert seen[2] == pytest.approx(w / w.sum(), rel=1e-12)
    seen.clear()
    weights.run_printed(learn, lambda h: losses[h], lambda h: 0.3, 3, largest=0.5, **call)
    w = np.exp(-0.01 / 0.5 * 2 * (0.5 - losses[0]))
    assert seen[2] == pytest.approx(w / w.sum(), rel=1e-12)
    assert weights.run_printed(learn, lambda h: losses[h], lambda h: 0.2, 3, **call) == (0, 1)


def test_printed_steps_have_the_law_of_algorithm_3():
    # One weight in [-1, 1], one record (1, 1) of the hinge loss: the gradient is -1 below a score
    # of 1. The mean of h1 = 0 and h2 is half of a normal number that is cut at the ends.
    rng, noise, runs = np.random.default_rng(3), 2.0, 4000
    call = {"loss": "hinge", "batch_size": 1, "radius": 1.0, "norm_bound": 1.0, "clip_norm": 1.0}
    X, labels, indices = np.ones((1, 1)), np.ones(1), np.zeros(2, np.int64)
    found = np.array([
        linear.learn(X, labels, indices, noise_multiplier=noise, rng=rng, printed=True, **call)[0]
        for _ in range(runs)
    ])  # fmt: skip
    step = 2 / noise  # D / (sigma sqrt(1))
    for point in (-0.5, -0.3, 0.0, 0.2, 0.49):
        exact = stats.norm.cdf(2 * point, step, step * noise)
        exact = 1.0 if point >= 0.5 else exact
        assert abs((found <= point).mean() - exact) < 5 * math.sqrt(0.25 / runs)
    assert set(np.sign(found[np.abs(found) == 0.5])) == {-1, 1}
    # Half of the printed step would be seen.
    assert abs((found <= 0.0).mean() - stats.norm.cdf(0, step / 2, step * noise / 2)) < 0.02
    assert abs((found <= -0.3).mean() - stats.norm.cdf(-0.6, step / 2, step * noise / 2)) > 0.05


def test_printed_steps_of_strongly_convex_losses_are_too_long():
    call = {"loss": "squared", "batch_size": 1, "radius": 2.0, "norm_bound": 1.0, "clip_norm": 9.0}
    X, labels, indices = np.ones((1, 1)), np.ones(1), np.zeros(2, np.int64)
    curved = {"strong_convexity": 1.0, **call}
    # The gradient at 0 is -1: one step of 1 / lambda ends at the optimum, one of D / lambda at 4,
    # which is cut to 2.
    assert linear.learn(X, labels, indices, **curved)[0] == pytest.approx(0.5)
    assert linear.learn(X, labels, indices, printed=True, **curved)[0] == pytest.approx(1.0)


# Algorithms 1 and 2 in the class ------------------------------------------------------------------


class Three(learners.ExponentialLearner):
    """The exponential mechanism, which asks for three records whatever it is to learn."""

    paper_sample_size = property()

    def sample_size(self, alpha, beta, epsilon=1.0):
        return 3


LEARNER = Three(learners.Conjunctions(3, 2), epsilon=1.0)
PRINTED = {
    "alpha": 0.12, "beta": 0.12, "chi2": 0.0, "epsilon": 2.0, "delta": 1e-5, "variant": "paper",
    "rounds": 20,
}  # fmt: skip
QUIET = pytest.mark.filterwarnings("ignore::hdp_fast.exceptions.UtilityWarning")


def draw_records(n, m):
    """Records and agents, of whose labels one conjunction alone gets less than 0.36 wrong."""
    rng = np.random.default_rng(4)
    X, T = (rng.integers(0, 2, (size, 3), dtype=np.uint8) for size in (n, m))
    return X, X[:, 0] & X[:, 1], T, T[:, 0] ^ (rng.random(m) < 0.3)


@QUIET
@pytest.mark.parametrize("seed", [1, 4])
def test_printed_run_of_the_class_is_algorithm_2_line_by_line(seed):
    X, y, T, labels = draw_records(1500, 16_000)
    agents, budget = local.Agents(T, labels, epsilon=8.0, delta=1e-5), Budget(2.0, 1e-5)
    model = SubsampleTestReweigh(LEARNER, **PRINTED)
    model.fit(X, y, agents, random_state=seed, budget=budget)
    result, plan = model.result_, model.plan_
    # As many agents as are printed, in every round that was run, and nobody else.
    T_, alpha = paper_rounds(alpha=0.12, chi2=0.0), 0.12
    N0 = math.ceil(4 * math.log(2e5) * math.log(8 * T_ / 0.12) / (8 * alpha) ** 2)
    assert len(agents) - agents.remaining == result.agents_asked == N0 * result.rounds
    assert result.constants is None
    # The loop of the paper on the same hypotheses and answers.
    answers = [test.value for test in result.estimates]
    hypotheses = [LEARNER.restore(each) for each in model.hand_over().hypotheses]
    if result.stopped == "accepted":
        hypotheses.append(LEARNER.restore(result.hypothesis))
    turn, seen = iter(range(len(hypotheses))), []

    def learn(mu):
        seen.append(mu)
        return next(turn)

    accepted, last = weights.run_printed(
        learn, lambda h: (hypotheses[h].predict(X) != y) * 1.0, lambda h: answers[h], 1500,
        eta=alpha / 8, kappa=alpha / 8, rounds=20, threshold=3 * alpha,
    )  # fmt: skip
    assert (last, accepted is None) == (result.rounds, result.stopped == "rounds")
    assert accepted is None or hypotheses[accepted].hypothesis == result.hypothesis
    assert last > 3
    # The weights after the updates that the loop made, before its last draw or after it.
    if accepted is not None:
        assert model._weights.probabilities() == pytest.approx(seen[-1], rel=2.0**-11)
    # What is charged is what the printed rounds spend: here nearly all of what was asked for.
    rate = 1 / (alpha / 8 * (1 - 2.0**-12) * 1500)
    one = accounting.Subsampled(accounting.BoundedRange(1.0), draws=3, rate=rate)
    spent = accounting.epsilon([(one, 20)], 1e-5)
    assert model.record_.epsilon == pytest.approx(spent)
    assert budget.spent[0] == model.record_.epsilon < plan.epsilon == 2.0
    assert (result.agents_record.epsilon, result.agents_record.delta) == (8.0, 1e-5)


@QUIET
def test_algorithm_1_takes_any_number_of_records_that_nothing_protects():
    goal = {**PRINTED, "epsilon": math.inf, "delta": None}
    plans = [plan_rounds(LEARNER, **goal, n=n) for n in (None, 77)]
    assert [(plan.n, plan.N, plan.draws) for plan in plans] == [(1, 0, 3), (77, 0, 3)]


@QUIET
def test_printed_run_by_errors_asks_for_errors_whatever_losses_there_are(monkeypatch):
    X, y, T, labels = draw_records(1500, 16_000)
    kind, runs = type(LEARNER.learn(X, y)), []
    for _ in range(2):
        agents = local.Agents(T, labels, epsilon=8.0, delta=1e-5)
        model = SubsampleTestReweigh(LEARNER, **PRINTED, weigh_by="errors")
        runs.append(model.fit(X, y, agents, random_state=1).result_)
        monkeypatch.setattr(kind, "losses", lambda self, X, y: np.ones(len(X)), raising=False)
    assert runs[0].estimates == runs[1].estimates


@QUIET
def test_printed_run_has_the_sizes_that_are_printed_and_a_promise_only_where_they_are_enough():
    settings = {**PRINTED, "rounds": None, "agents_epsilon": 2.0}
    learner = learners.ExponentialLearner(learners.Conjunctions(3, 2), epsilon=1.0)
    plan = plan_rounds(learner, **settings)
    rounds, kappa = math.ceil(128 * math.log2(8 / 0.12) / 0.12**2), 0.12 / 8
    N0 = math.ceil(4 * math.log(2e5) * math.log(8 * rounds / 0.12) / (2 * 0.12) ** 2)
    m = learner.paper_sample_size(0.12, 0.12 / rounds, 1.0).printed
    assert (plan.rounds, plan.kappa, plan.eta) == (rounds, kappa, 0.12 / 8)
    assert (plan.draws, plan.learner_epsilon, plan.schedule) == (m, 1.0, "every")
    assert (plan.agents_per_test, plan.N) == (N0, N0 * rounds)
    printed = math.ceil(m * math.sqrt(288 * rounds * math.log(2e5)) / (2 * kappa))
    assert plan.paper.n == printed > 20 * plan.n
    # The printed promise of 4 alpha, with the answers of agents, the draws and all the rounds.
    assert plan.error == pytest.approx(4 * 0.12)
    assert plan_rounds(learner, **{**settings, "agents_epsilon": 8.5}).error is None
    assert plan_rounds(learner, **{**settings, "rounds": 20}).error is None


@QUIET
def test_printed_run_with_fewer_records_than_are_private_is_refused():
    X, y, T, labels = draw_records(1500, 16_000)
    agents = local.Agents(T, labels, epsilon=8.0, delta=1e-5)
    model = SubsampleTestReweigh(LEARNER, **PRINTED)
    least = model.plan(1500, agents_epsilon=8.0).n
    with pytest.raises(InsufficientSamples, match=f"needs {least:,}"):
        model.fit(X[: least - 1], y[: least - 1], agents)
    assert agents.remaining == 16_000
    # The number is tight: with 1 in 1,000 fewer, the rounds spend more than was asked for.
    rate = 1 / (0.12 / 8 * (1 - 2.0**-12) * 0.998 * least)
    one = accounting.Subsampled(accounting.BoundedRange(1.0), draws=3, rate=rate)
    assert accounting.epsilon([(one, 20)], 1e-5) > 2.0


REFUSED = {
    "alpha": ({"alpha": 0.2}, "alpha = 0.2"),
    "beta": ({"beta": 0.2}, "beta = 0.2"),
    "chi2": ({"chi2": None}, "chi2 = None"),
    "kappa": ({"kappa": 0.1}, "kappa = 0.1"),
    "eta": ({"eta": 0.1}, "eta = 0.1"),
    "schedule": ({"schedule": "final"}, "schedule = 'final'"),
    "output": ({"output": "majority"}, "output = 'majority'"),
    "rounds": ({"rounds": 60_000}, "rounds = 60000"),
    "variant": ({"variant": "printed"}, "variant = 'printed'"),
    "boostable": ({"assume": "boostable", "error": 0.1}, "variant = 'paper'"),
    "agents": ({}, "delta = 0"),
}


@each_case("change, message", REFUSED.values(), ids=REFUSED)
def test_printed_run_refuses_by_name_what_is_not_printed(change, message):
    X, y, T, labels = draw_records(1500, 16_000)
    agents = local.Agents(T, labels, epsilon=8.0, delta=0.0 if not change else 1e-5)
    model = SubsampleTestReweigh(LEARNER, **{**PRINTED, **change})
    budget = Budget(2.0, 1e-5)
    with pytest.raises(ParameterError, match=message):
        model.fit(X, y, None if "assume" in change else agents, budget=budget)
    assert agents.remaining == 16_000
    assert budget.spent[0] == 0


def test_printed_run_refuses_by_name_agents_whom_it_does_not_protect():
    X, y, T, labels = draw_records(1500, 100)
    model = SubsampleTestReweigh(LEARNER, **PRINTED)
    # The printed noise breaks its promise there, as in the errata.
    with pytest.raises(ParameterError, match="printed noise has a delta of"):
        model.fit(X, y, local.Agents(T, labels, epsilon=9.6, delta=1e-5))
    remote = local.RemoteAgents(pytest.fail, epsilon=1.0, count=100)
    with pytest.raises(ParameterError, match=r"Gaussian answers, which only local\.Agents send"):
        model.fit(X, y, remote)
    settings = {**PRINTED, "agents_epsilon": 1.0, "response_rate": 0.5}
    with pytest.raises(ParameterError, match=r"response_rate = 0\.5"):
        plan_rounds(LEARNER, **settings)


@QUIET
def test_printed_run_of_sgd_is_algorithm_4_with_shares_of_the_largest_loss(monkeypatch):
    rng, n, alpha = np.random.default_rng(5), 3000, 0.12
    X, T = rng.uniform(-0.7, 0.7, (n, 2)), rng.uniform(-0.7, 0.7, (4000, 2))
    learner = learners.PrivateSGD(loss="hinge", radius=1.0, margin=2.0, steps=8, epsilon=1.0)
    hypotheses, learn_weighted = [], learners.PrivateSGD.learn_weighted

    def keep(self, *arguments, **options):
        hypotheses.append((self, learn_weighted(self, *arguments, **options)))
        return hypotheses[-1][1]

    monkeypatch.setattr(learners.PrivateSGD, "learn_weighted", keep)
    agents = local.Agents(T, T[:, 0] < 0, epsilon=7.0, delta=1e-5)
    model = SubsampleTestReweigh(learner, **{**PRINTED, "epsilon": 0.9, "rounds": 3})
    y = X[:, 0] > 0
    result = model.fit(X, y, agents, random_state=2).result_
    assert (result.rounds, result.agents_asked) == (3, 4000 - agents.remaining)
    # The printed noise, single draws, and the privacy of both together.
    kappa = alpha / 8
    square = max(20, (16 * math.log(1e5) / 0.9 + 8) / math.log(kappa * n))
    assert square > 21
    for used, _ in hypotheses:
        assert (used.noise_multiplier, used.counts) == (pytest.approx(math.sqrt(square)), (8, 1))
    rate = 1 / (kappa * (1 - 2.0**-12) * n)
    step = accounting.Subsampled(accounting.GaussianMechanism(2 / square**0.5), draws=1, rate=rate)
    spent = accounting.epsilon([(step, 24)], 1e-5)
    assert model.record_.epsilon == pytest.approx(spent)
    assert spent < 0.9
    # The loop of the paper on the same hypotheses and answers, with D L = 1.
    seen, answers = [], [test.value for test in result.estimates]
    assert min(answers) > 3 * alpha

    def learn(mu):
        seen.append(mu)
        return len(seen) - 1

    accepted, last = weights.run_printed(
        learn, lambda h: hypotheses[h][1].losses(X, y), lambda h: [*answers, 0][h], n,
        eta=alpha / 8, kappa=kappa, rounds=4, threshold=3 * alpha,
    )  # fmt: skip
    assert (accepted, last, result.stopped) == (3, 4, "rounds")
    assert np.ptp(seen[3] * n) > 1e-3
    assert model._weights.probabilities() == pytest.approx(seen[3], rel=2.0**-11)


REFUSED_STEPS = {
    "steps": ({"steps": None}, {}, "learner.steps = None"),
    "batch": ({"batch_size": 2}, {}, "learner.batch_size = 2"),
    "epsilon": ({}, {"epsilon": 1.5}, "epsilon = 1.5"),
    "delta": ({}, {"delta": 0.3}, "delta = 0.3"),
    "no privacy": ({}, {"epsilon": math.inf, "delta": None}, "learner = "),
}


@each_case("learner, change, message", REFUSED_STEPS.values(), ids=REFUSED_STEPS)
def test_printed_run_of_sgd_refuses_by_name_what_algorithm_4_does_not_state(
    learner, change, message
):
    sgd = learners.PrivateSGD(**{"loss": "hinge", "steps": 2, "epsilon": 1.0, **learner})
    settings = {**PRINTED, "epsilon": 0.9, "agents_epsilon": 1.0, **change}
    with pytest.raises(ParameterError, match=message):
        plan_rounds(sgd, **settings)


@QUIET
def test_printed_run_without_privacy_is_algorithm_1_with_tau_alpha():
    X, y, T, labels = draw_records(60, 4)
    settings = {**PRINTED, "epsilon": math.inf, "delta": None}
    asked = []

    class Oracle:
        def query(self, question, tau):
            asked.append(tau)
            return 0.36001 if len(asked) < 3 else 0.36

    model = SubsampleTestReweigh(LEARNER, **settings).fit(X, y, Oracle(), random_state=1)
    # 2 alpha + tau = 0.36 is accepted, a little more is not.
    assert (model.result_.rounds, asked, model.record_) == (3, [0.12] * 3, None)
    plan = SubsampleTestReweigh(LEARNER, **{**settings, "rounds": "auto"}).plan(60)
    assert plan.rounds == math.ceil(32 * math.log2(8 / 0.12**2) / 0.12**2)
    assert (plan.kappa, plan.eta, plan.draws, plan.N) == (None, 0.12 / 8, 3, 0)
    with pytest.raises(ParameterError, match="asks an SQ oracle"):
        SubsampleTestReweigh(LEARNER, **settings).fit(X, y, local.Agents(T, labels, epsilon=1.0))


class Share:
    """A hypothesis whose loss on everybody is the same."""

    hypothesis = None
    losses = staticmethod(lambda X, y: np.full(len(y), 0.25))
    predict = staticmethod(lambda X: np.zeros(len(X), np.uint8))


def test_agents_send_the_reports_of_the_randomizer_that_they_agree_to_and_of_no_other():
    _, _, T, labels = draw_records(1, 5000)
    agents = local.Agents(T, labels, epsilon=2.0, delta=1e-5)
    printed = local.GaussianRandomizer.printed(2.0, 1e-5, (0, 1))
    found = agents.test(Share(), 4000, randomizer=printed, random_state=7)
    assert (found == printed.sample(np.full(4000, 0.25), random_state=7)).all()
    # The printed variance, to within five standard deviations.
    log2_steps = round(math.log2(printed._linear_map[1]))
    contributions = found / 2**log2_steps
    variance = 2 * math.log(2 / 1e-5) / 2.0**2
    assert contributions.var() == pytest.approx(variance, rel=5 * math.sqrt(2 / 4000))
    assert abs(contributions.mean() - 0.25) < 5 * math.sqrt(variance / 4000)
    for other, message in (
        (local.GaussianRandomizer.printed(2.5, 1e-5, (0, 1)), "epsilon = 2"),
        (local.GaussianRandomizer.printed(2.0, 1e-4, (0, 1)), "delta = 1e-05"),
        (local.GaussianRandomizer.printed(2.0, 1e-5, (0, 2)), r"bounds must be \(0, 1\)"),
        (local.BinaryResponse(1.0, bounds=(0, 1)), "must be a GaussianRandomizer"),
    ):
        with pytest.raises(ParameterError, match=message):
            agents.test(Share(), 10, randomizer=other)
    assert agents.remaining == 1000
    assert set(agents.test(Share(), 1000)) <= {0, 1}


@pytest.mark.parametrize("alpha", [5e-324, 1e-200, 1e-10])
def test_numbers_beyond_all_floats_are_too_many(alpha):
    shape = {"diameter": 2.0, "lipschitz": 1.0}
    for count in (
        lambda: paper_records(alpha=alpha, beta=0.05, chi2=0.35, dimension=13),
        lambda: paper_rounds(alpha=alpha, chi2=0.35),
        lambda: paper_rounds(alpha=alpha, chi2=0.35, private=False),
        lambda: paper_steps(alpha=alpha, beta=0.05, **shape, deviation=4.5, columns=5),
    ):
        with pytest.raises(ParameterError, match=r"alpha = .* more than 2\*\*62"):
            count()
    gaussian = local.GaussianRandomizer.printed(1.0, 1e-6, (0, 1))
    with pytest.raises(ParameterError, match=r"alpha = .* need more than"):
        gaussian.paper_agents_needed(alpha=alpha, beta=0.05)
