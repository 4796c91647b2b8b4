"""The majority vote without agents: its bound against adversaries, in fractions, and on runs."""

import itertools
import json
import math

import numpy as np
import pytest
from scipy import stats

from hdp_fast import local, plotting, transfer
from hdp_fast.exceptions import InsufficientSamples, ParameterError
from hdp_fast.learners import ExponentialLearner, PrivateSGD, Stumps
from hdp_fast.transfer import SubsampleTestReweigh
from hdp_fast.transfer.boosted import count_for_votes, count_rounds
from hdp_fast.transfer.run import Vote
from hdp_fast.weights import DenseWeights

LEARNER = ExponentialLearner(Stumps(6), epsilon=1.0)
GOAL = {"error": 0.4, "chi2": 0.2, "epsilon": 8.0, "delta": 1e-6, "opt": 1 / 3}
RUN = {"assume": "boostable", **GOAL}


def vote_of_adversary(n, kappa, allowed, rounds, greedy):
    """The share of records on which the vote errs, of an adversary that errs on so much a round.

    It wants the vote to err on a set of kappa n records, and errs on as many of them as it may,
    those first on which it has erred least (greedy), or in turn.
    """
    size = math.ceil(kappa * n)
    eta = math.sqrt(8 * math.log(1 / kappa) / rounds)
    weights, counts = DenseWeights(n, kappa, eta), np.zeros(n, int)
    for number in range(rounds):
        mu = weights.probabilities()
        order = np.argsort(counts[:size], kind="stable") if greedy else np.arange(size)
        if not greedy:
            order = np.roll(order, -(number * size) // 7)
        others = size + np.argsort(mu[size:], kind="stable")
        order = np.concatenate([order, others])
        wrong = np.zeros(n, np.uint8)
        wrong[order[np.cumsum(mu[order]) <= allowed]] = 1
        counts += wrong
        weights.update(wrong)
    return (2 * counts >= rounds).mean()


@pytest.mark.parametrize("greedy", [True, False])
@pytest.mark.parametrize(("kappa", "allowed"), [(0.1, 0.25), (0.05, 0.4), (0.3, 0.1), (0.02, 0.3)])
def test_no_adversary_makes_the_vote_err_on_kappa_n_records(kappa, allowed, greedy):
    rounds = count_rounds(kappa, allowed)
    assert vote_of_adversary(2000, kappa, allowed, rounds, greedy) < kappa


def test_with_a_quarter_of_the_rounds_one_does():
    for kappa, allowed in ((0.02, 0.4), (0.02, 0.3)):
        rounds = count_rounds(kappa, allowed) // 4
        assert vote_of_adversary(2000, kappa, allowed, rounds, greedy=True) >= kappa


def test_rounds_by_hand():
    # ln(1 / .08) / (2 (.5 - .15)^2) = 10.3
    assert count_rounds(0.08, 0.15) == 11
    for kappa, error in itertools.product((0.01, 0.1, 0.4), (0.0, 0.2, 0.45)):
        rounds = count_rounds(kappa, error)
        eta = math.sqrt(8 * math.log(1 / kappa) / rounds)
        regret = math.log(1 / kappa) / eta + eta * rounds / 8
        assert rounds * error + regret < rounds / 2
        assert eta <= 4
        fewer = rounds - 2
        assert (
            fewer < 1 or fewer * error + math.sqrt(fewer * math.log(1 / kappa) / 2) > 0.499 * fewer
        )


class Column:
    """The hypothesis that a column is 1."""

    def __init__(self, column, named):
        self.column, self.hypothesis = column, {"column": column} if named else None

    def predict(self, X):
        return X[:, self.column]


@pytest.mark.parametrize("named", [True, False])
def test_a_vote_is_what_more_than_half_of_its_hypotheses_say(named):
    X = np.array(list(itertools.product([0, 1], repeat=4)))
    for columns in ([0], [0, 1], [0, 1, 2], [0, 0, 1], [0, 0, 0, 1, 2], [0, 0, 1, 2], [0, 1, 2, 3]):
        made = Vote([Column(column, named) for column in columns])
        assert made.predict(X).tolist() == [int(sum(row[columns]) > len(columns) / 2) for row in X]
        assert (made.hypothesis is None) == (not named)


def test_a_vote_is_a_multiset_and_no_vote_is_better_on_the_records_only():
    for size, rounds in ((3, 1), (4, 3), (6, 5)):
        votes = len(list(itertools.combinations_with_replacement(range(size), rounds)))
        n = count_for_votes(size, rounds, 0.05, 0.1, 0.05)
        exact = votes * stats.binom.cdf(math.floor(0.05 * n), n, 0.1)
        assert exact <= 0.05 / 2
        assert votes * stats.binom.cdf(math.floor(0.05 * (n // 2)), n // 2, 0.1) > 0.05 / 2


def people(rng, n, share):
    """Six bits, the first three 1 with this probability, and the majority of these three."""
    X = (rng.random((n, 6)) < [share] * 3 + [0.5] * 3).astype(np.uint8)
    return X, (X[:, :3].sum(axis=1) >= 2).astype(np.uint8)


def test_a_run_keeps_the_promise_where_no_hypothesis_does():
    """However three bits are weighted, one of them differs from their majority on a third or
    less."""
    model = SubsampleTestReweigh(LEARNER, **RUN)
    plan = model.plan(1)
    assert plan == transfer.plan_boosted(LEARNER, **GOAL)
    rng = np.random.default_rng(0)
    X, y = people(rng, plan.n, 0.5)
    Z, labels = people(rng, 20_000, 0.4)
    assert plan.chi2 >= (0.6**2 / 0.5 + 0.4**2 / 0.5) ** 3 - 1
    for seed in range(3):
        result = model.fit(X, y, random_state=seed).result_
        wrong = result.predict(X) != y
        assert wrong.mean() < plan.kappa < plan.source_error
        assert (result.predict(Z) != labels).mean() <= plan.error
    assert LEARNER.hypotheses.errors(X, y).min() > 0.2 * plan.n
    assert (result.tested, result.estimates, result.constants) == (None, (), None)
    assert (result.agents_record, result.agents_asked) == (None, 0)
    assert result.hypothesis["kind"] == "vote"
    assert result.utility == "promised at most 0.4"
    assert (result.record.epsilon, result.record.delta) == (8.0, 1e-6)
    assert "error unknown, promised at most 0.4" in repr(result)
    fields = json.loads(result.to_json())
    assert fields["tested"] is None
    assert fields["plan"]["schedule"] == "never"
    with pytest.raises(ParameterError, match="untested"):
        plotting.transfer(result)
    with pytest.raises(InsufficientSamples, match="the plan needs"):
        model.fit(X[:100], y[:100])


def test_a_vote_of_any_rounds_needs_no_agents():
    X, y = people(np.random.default_rng(1), 3000, 0.5)
    goal = {"alpha": 0.1, "epsilon": 4.0, "delta": 1e-6, "kappa": 0.2, "eta": 1.0, "rounds": 15}
    model = SubsampleTestReweigh(LEARNER, **goal, output="majority", schedule="never")
    result = model.fit(X, y, random_state=0).result_
    assert result.utility == "not tested, no promise"
    assert (result.predict(X) != y).mean() < 0.2
    assert (model.plan_.tests, model.plan_.N) == (0, 0)
    free = {**goal, "epsilon": math.inf, "delta": None}
    open_run = SubsampleTestReweigh(LEARNER, **free, output="majority", schedule="never")
    assert (open_run.fit(X, y, random_state=0).predict(X) != y).mean() < 0.05


def test_a_run_without_agents_goes_on_from_its_checkpoint(tmp_path):
    X, y = people(np.random.default_rng(1), 3000, 0.5)
    goal = {"alpha": 0.1, "epsilon": 4.0, "delta": 1e-6, "kappa": 0.2, "eta": 1.0, "rounds": 6}
    goal |= {"output": "majority", "schedule": "never", "checkpoint": str(tmp_path / "run.db")}
    first = SubsampleTestReweigh(LEARNER, **goal).fit(X, y).result_
    again = SubsampleTestReweigh(LEARNER, **goal).fit(X, y).result_
    assert first.hypothesis == again.hypothesis
    assert first.record == again.record


def test_plan_boosted_counts_more_records_for_a_class_that_errs_more():
    few, some = (
        transfer.plan_boosted(LEARNER, **{**GOAL, "epsilon": 1.0, "opt": opt}) for opt in (0, 0.4)
    )
    assert few.n < some.n / 10
    assert few.alpha < some.alpha < 0.5
    assert (few.rounds, some.opt) < (some.rounds, 0.5)


@pytest.mark.parametrize("opt", [0.5, 0.7])
def test_plan_boosted_refuses_a_class_that_is_not_boostable(opt):
    """Refused as such, and not because no candidate of a run is left."""
    with pytest.raises(ParameterError, match=f"opt = {opt}, but a class is boostable if it is"):
        transfer.plan_boosted(LEARNER, **{**GOAL, "opt": opt})
    with pytest.raises(ParameterError, match=f"opt = {opt}, but a class is boostable if it is"):
        SubsampleTestReweigh(LEARNER, **{**RUN, "opt": opt}).plan(3000)


def test_the_text_says_what_is_promised():
    plan = transfer.plan_boosted(LEARNER, **GOAL)
    assert "error at most 0.4 on the target" in repr(plan)
    assert "however the source is reweighed" in repr(plan)
    assert (plan.N, plan.failure, plan.promised) == (0, 0.05, True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"opt": 0.5}, "opt = 0.5"),
        ({"opt": 0.4999}, "opt = 0.4999"),
        ({"error": None}, "error = None"),
        ({"chi2": None}, "chi2 = None"),
        ({"delta": None}, "delta = None"),
        ({"epsilon": math.inf}, "epsilon = inf"),
        ({"alpha": 0.1}, "alpha = 0.1"),
        ({"kappa": 0.1}, "kappa = 0.1"),
        ({"assume": "realizable"}, "assume = 'realizable'"),
        ({"assume": "nothing"}, "assume = 'nothing'"),
        ({"learner": PrivateSGD(loss="logistic", epsilon=1.0)}, "learner = "),
    ],
    ids=str,
)
def test_bad_parameters_name_themselves(change, words):
    X, y = people(np.random.default_rng(1), 30, 0.5)
    with pytest.raises(ParameterError) as caught:
        SubsampleTestReweigh(**{"learner": LEARNER, **RUN, **change}).fit(X, y)
    assert words in str(caught.value)
    with pytest.raises(ParameterError, match=r"error = 0\.4"):
        SubsampleTestReweigh(LEARNER, **{**RUN, "assume": None}).plan(30)


def test_agents_go_with_tests_and_only_with_tests():
    X, y = people(np.random.default_rng(1), 300, 0.5)
    agents = local.Agents(X, y, epsilon=1.0)
    goal = {"alpha": 0.1, "epsilon": 1.0, "delta": 1e-6, "kappa": 0.2, "rounds": 2}
    with pytest.raises(ParameterError, match="agents = None"):
        SubsampleTestReweigh(LEARNER, **goal).fit(X, y)
    with pytest.raises(ParameterError, match=r"output = 'tested' with schedule = 'never'"):
        SubsampleTestReweigh(LEARNER, **goal, output="tested", schedule="never").fit(X, y)
    vote = SubsampleTestReweigh(LEARNER, **goal, output="majority").fit(X, y)
    assert vote.plan_.schedule == "never"
    with pytest.raises(ParameterError, match="with assume = 'boostable' no one is asked"):
        SubsampleTestReweigh(LEARNER, **RUN).fit(X, y, agents)
