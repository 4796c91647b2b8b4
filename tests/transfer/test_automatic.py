"""Settings that no one chose: the rules by hand, all agents used, and runs without any settings."""

import dataclasses
import itertools
import json
import math
import warnings

import numpy as np
import pytest
from cases import each_case

from hdp_fast import accounting, local
from hdp_fast.exceptions import AgentsExhausted, ParameterError, UtilityWarning
from hdp_fast.learners import Conjunctions, ExponentialLearner, PrivateSGD, Stumps
from hdp_fast.transfer import SubsampleTestReweigh, plan_rounds

LEARNER = ExponentialLearner(Conjunctions(64, 2), epsilon=1.0)
PRIVATE = {"epsilon": 1.0, "delta": 1e-6}
GOAL = {**PRIVATE, "agents_epsilon": 1.0, "n": 5_000, "N": 24_000}
NAMES = ("alpha", "kappa", "eta", "rounds", "schedule", "output")


def two_rules(rng, n, minority):
    """64 bits; x0 XOR x1 says whose rule holds, and is hidden in every single column."""
    X = (rng.random((n, 64)) < 0.6).astype(np.uint8)
    group = rng.random(n) < minority
    X[:, 0] = rng.random(n) < 0.5
    X[:, 1] = X[:, 0] ^ group
    rule = np.where(group, X[:, 10] & X[:, 17], X[:, 3] & X[:, 4])
    return X, rule.astype(np.uint8)


def test_the_rules_by_hand():
    made = plan_rounds(LEARNER, **GOAL)
    assert made.chosen == NAMES
    assert (made.schedule, made.output, made.eta) == ("every", "smallest", 1.0)
    mu = accounting.gaussian_mu(1.0, 1e-6)
    densities = {
        rounds: math.sqrt(math.log(8193) * math.sqrt(rounds) / (mu * 5_000))
        for rounds in (made.rounds, made.rounds - 1)
    }
    assert made.kappa == pytest.approx(densities[made.rounds])
    # The fewest rounds that lift a part of share kappa, and learn from it.
    assert made.rounds >= 3 + math.log(1 / made.kappa)
    assert made.rounds - 1 < 3 + math.log(1 / densities[made.rounds - 1])
    # What the accountant allows is near what the rule presumes.
    assert made.added_error == pytest.approx(made.kappa, rel=0.3)
    assert made.added_error == pytest.approx(
        2 * math.log(8193) / (made.draws * made.learner_epsilon)
    )
    flip = ExponentialLearner(Conjunctions(64, 2), mechanism="permute_and_flip", epsilon=1.0)
    assert plan_rounds(flip, **GOAL).kappa > 1.3 * made.kappa


@each_case("rate", [1.0, 0.6])
@each_case("N", [500, 3_000, 24_000])
@each_case(
    ("schedule", "output"),
    [("every", "smallest"), ("geometric", "smallest"), ("final", "majority")],
)
def test_all_agents_are_used_in_tests_as_narrow_as_they_allow(N, rate, schedule, output):
    goal = {"epsilon": math.inf, "agents_epsilon": 1.0, "response_rate": rate, "n": 5_000}
    made = plan_rounds(LEARNER, **goal, N=N, schedule=schedule, output=output, rounds=7)
    assert made.N == N == made.tests * made.agents_per_test + made.agents_for_constants
    fixed = dataclasses.asdict(made)
    same = {name: fixed[name] for name in NAMES}
    enough = plan_rounds(LEARNER, **goal, **same)
    assert N - made.tests <= enough.N <= N
    narrower = plan_rounds(LEARNER, **goal, **{**same, "alpha": made.alpha * 0.99})
    assert narrower.N > N


def test_more_records_allow_a_smaller_density_and_less_noise():
    plans = [plan_rounds(LEARNER, **{**GOAL, "n": n}) for n in (2_500, 10_000, 100_000)]
    for less, more in itertools.pairwise(plans):
        assert more.kappa < less.kappa
        assert more.added_error < less.added_error
        assert more.rounds >= less.rounds


def test_the_text_says_what_was_chosen():
    made = plan_rounds(LEARNER, **GOAL)
    assert repr(made).startswith("Plan(n=5,000, N=24,000, epsilon=1, 6 rounds, kappa=0.137, eta=1,")
    assert repr(made).endswith("automatic: alpha, kappa, eta, rounds, schedule, output)")
    assert json.loads(made.to_json())["rounds"] == 6
    free = plan_rounds(LEARNER, alpha=0.1, epsilon=math.inf, rounds=4)
    assert "no projection" in repr(free)
    assert json.loads(free.to_json())["epsilon"] == "inf"


def test_what_is_passed_is_kept():
    made = plan_rounds(LEARNER, **GOAL, kappa=0.25, rounds=4)
    assert (made.kappa, made.rounds, made.eta) == (0.25, 4, 1.0)
    assert made.chosen == ("alpha", "eta", "schedule", "output")
    long = plan_rounds(LEARNER, **GOAL, rounds=30)
    assert (long.rounds, long.schedule, long.tests) == (30, "final", 5)
    exact = plan_rounds(LEARNER, **GOAL, alpha=0.2)
    assert exact.alpha == 0.2
    assert exact.N < 24_000
    assert "alpha" not in exact.chosen


def test_nothing_is_automatic_where_the_numbers_are_given_or_follow_from_chi2():
    given = {"alpha": 0.1, **PRIVATE, "agents_epsilon": 1.0, "n": 5_000}
    made = plan_rounds(LEARNER, **given, kappa=0.2, rounds=4)
    assert made.chosen == ()
    assert (made.schedule, made.output) == ("geometric", "tested")
    assert made.eta == pytest.approx(0.15)
    derived = plan_rounds(ExponentialLearner(Stumps(3), epsilon=1.0), **given, chi2=0.2)
    assert derived.chosen == ()
    assert derived.kappa == pytest.approx(0.1 / (8 * 1.2))
    # A run that is not private has no projection, as before.
    free = plan_rounds(LEARNER, alpha=0.1, epsilon=math.inf, rounds=4)
    assert (free.kappa, free.chosen) == (None, ())


def test_learners_without_a_finite_class():
    sgd = PrivateSGD(loss="logistic", steps=20, batch_size=50, epsilon=1.0)
    made = plan_rounds(sgd, **GOAL)
    assert (made.kappa, made.rounds, made.added_error) == (0.2, 5, None)
    assert plan_rounds(None, epsilon=math.inf, draws=1).kappa == 0.1


class TestRuns:
    def test_two_rules_without_any_settings(self):
        errors = []
        for seed in range(1, 4):
            rng = np.random.default_rng(seed)
            panel, people = two_rules(rng, 5_000, 0.2), two_rules(rng, 24_000, 0.95)
            agents = local.Agents(*people, epsilon=1.0)
            run = SubsampleTestReweigh(LEARNER, **PRIVATE).fit(*panel, agents, random_state=seed)
            assert agents.remaining == 0
            assert run.result_.plan.chosen == NAMES
            assert run.result_.agents_asked == 24_000
            later, labels = two_rules(rng, 20_000, 0.95)
            errors.append((run.predict(later) != labels).mean())
        assert np.mean(errors) <= 0.03
        fields = json.loads(run.result_.to_json())
        assert fields["plan"]["chosen"] == list(NAMES)

    def test_no_records_no_projection_and_scikit_learn_alike(self):
        X, y = two_rules(np.random.default_rng(0), 2_000, 0.3)

        def learner(X, y):
            return lambda Z: np.asarray(Z)[:, 3]

        agents = local.Agents(X, y, epsilon=4.0)
        run = SubsampleTestReweigh(learner, epsilon=math.inf).fit(X, y, agents)
        assert (run.plan_.kappa, run.plan_.N) == (0.1, 2_000)

    def test_it_goes_on_from_a_checkpoint_with_the_agents_that_are_left(self, tmp_path):
        X, y = two_rules(np.random.default_rng(0), 3_000, 0.3)
        path = str(tmp_path / "run.db")
        agents = local.Agents(X, y, epsilon=4.0)
        first = SubsampleTestReweigh(LEARNER, **PRIVATE, checkpoint=path).fit(X, y, agents)
        assert agents.remaining == 0
        again = SubsampleTestReweigh(LEARNER, **PRIVATE, checkpoint=path).fit(X, y, agents)
        assert again.plan_ == first.plan_
        assert again.result_.hypothesis == first.result_.hypothesis

    def test_agents_whom_others_have_asked_are_not_counted(self):
        X, y = two_rules(np.random.default_rng(0), 3_000, 0.3)
        agents = local.Agents(X, y, epsilon=4.0)
        agents.ask(lambda X, y: y, 1_000)
        run = SubsampleTestReweigh(LEARNER, **PRIVATE).fit(X, y, agents)
        assert run.plan_.N == 2_000


class TestNotes:
    def test_too_few_records(self):
        with pytest.warns(UtilityWarning, match=r"n = 500 .*privacy may add 0\.4"):
            plan_rounds(LEARNER, **{**GOAL, "n": 500})

    def test_too_few_agents(self):
        with pytest.warns(UtilityWarning, match=r"N = 300, but tests tell errors to within"):
            plan_rounds(LEARNER, **{**GOAL, "N": 300})

    def test_it_is_said_before_anything_is_asked(self):
        X, y = two_rules(np.random.default_rng(0), 500, 0.3)
        agents = local.Agents(X, y, epsilon=1.0)
        run = SubsampleTestReweigh(LEARNER, **PRIVATE)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UtilityWarning)
            with pytest.raises(UtilityWarning, match="n = 500"):
                run.fit(X, y, agents)
        assert agents.remaining == 500

    def test_the_search_does_not_end_where_nothing_is_promised_yet(self):
        made = plan_rounds(LEARNER, **{**GOAL, "n": 2_000}, kappa=0.1, rounds=4)
        assert made.draws * made.learner_epsilon > 40


@each_case(
    ("change", "words"),
    [
        ({"n": None}, "n = None"),
        ({"n": 0}, "n = 0"),
        ({"N": 3}, "N = 3, but 6 tests need"),
        ({"N": -1}, "N = -1"),
        ({"N": 1.5}, "N = 1.5"),
        ({"kappa": None}, "kappa = None"),
        ({"kappa": 2}, "kappa = 2"),
        ({"kappa": "x"}, "kappa = 'x'"),
        ({"kappa": np.ones(2)}, "kappa = "),
        ({"rounds": 0}, "rounds = 0"),
        ({"rounds": -3}, "rounds = -3"),
        ({"rounds": None}, "rounds = None"),
        ({"eta": "x"}, "eta = 'x'"),
        ({"eta": None, "rounds": "Auto"}, "rounds = 'Auto'"),
        ({"alpha": "x"}, "alpha = 'x'"),
        ({"schedule": "x"}, "schedule = 'x'"),
        ({"output": None}, "output = None"),
        ({"agents_epsilon": 0}, "agents_epsilon = 0"),
        ({"response_rate": 0}, "response_rate = 0"),
        ({"delta": None}, "delta = None"),
        ({"learner": None}, "learner = None"),
        ({"output": "tested", "N": 500}, "3 alpha + opt"),
    ],
    ids=str,
)
def test_bad_settings_name_themselves(change, words):
    with pytest.raises(ParameterError) as caught:
        plan_rounds(**{"learner": LEARNER, **GOAL, **change})
    assert words in str(caught.value)


def test_too_few_agents_for_a_given_width():
    X, y = two_rules(np.random.default_rng(0), 3_000, 0.3)
    with pytest.raises(AgentsExhausted, match="the plan needs"):
        SubsampleTestReweigh(LEARNER, **PRIVATE, alpha=0.02).fit(
            X, y, local.Agents(X, y, epsilon=1.0)
        )


def test_agents_are_not_left_out_of_a_plan_in_silence():
    model = SubsampleTestReweigh(LEARNER, epsilon=1.0, delta=1e-6)
    with pytest.raises(ParameterError, match="agents_epsilon = None, but what N agents tell"):
        model.plan(500, N=1_000)
    assert model.plan(500, N=1_000, agents_epsilon=1.0).N == 1_000
