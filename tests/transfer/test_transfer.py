"""Subsample-Test-Reweigh as a user sees it: outcomes, schedules, errors, what is charged."""

import dataclasses
import inspect
import json
import math
import pickle
import warnings

import numpy as np
import pytest

from hdp_fast import (
    AgentsExhausted,
    Budget,
    BudgetExceeded,
    CheckpointError,
    HdpFastError,
    InsufficientSamples,
    ParameterError,
    ShapeError,
    UtilityWarning,
    accounting,
    noise,
)
from hdp_fast.learners import Conjunctions, ExponentialLearner, PrivateSGD, Stumps, predictor
from hdp_fast.local import Agents, EmpiricalOracle, RemoteAgents, randomized_response
from hdp_fast.plotting import transfer as draw
from hdp_fast.transfer import SubsampleTestReweigh, plan_rounds

D = 8
LEARNER = ExponentialLearner(Conjunctions(D, 2), epsilon=1.0)
FREE = {"alpha": 0.05, "kappa": 0.1, "eta": 0.5, "rounds": 20}
PRIVATE = {**FREE, "epsilon": 1.0, "delta": 1e-6}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="random_state makes")
        yield


def true(X):
    return X[:, 1] & X[:, 2]


def source(n=20_000, seed=0):
    """Feature 1 is nearly always set here, so that feature 2 alone looks right."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, D), dtype=np.uint8)
    X[:, 1] |= rng.random(n) < 0.94
    return X, true(X)


def target(n=300_000, seed=1, epsilon=2.0, kind=Agents):
    X = np.random.default_rng(seed).integers(0, 2, (n, D), dtype=np.uint8)
    return kind(X, true(X), epsilon=epsilon)


X, Y = source()


def error(result, seed=2):
    fresh = np.random.default_rng(seed).integers(0, 2, (50_000, D), dtype=np.uint8)
    return float((result.predict(fresh) != true(fresh)).mean())


def fitted(agents=None, learner=LEARNER, random_state=5, **given):
    model = SubsampleTestReweigh(learner, **{**PRIVATE, **given})
    return model.fit(X, Y, agents or target(), random_state=random_state)


@pytest.mark.parametrize("schedule", ["every", "geometric", "final"])
@pytest.mark.parametrize("output", ["tested", "smallest", "majority"])
def test_a_biased_source_teaches_what_holds_on_the_target(schedule, output):
    agents = target()
    result = fitted(agents, schedule=schedule, output=output).result_
    assert error(result) < 0.1
    assert result.tested.low - 0.01 <= error(result) <= result.tested.high + 0.01
    tests = {"every": 20, "geometric": 5, "final": 0}[schedule]
    last = 1 if output == "majority" else 0 if schedule == "every" else 5
    assert result.plan.tests == tests + last
    assert len(agents) - agents.remaining == result.agents_asked <= result.plan.N
    assert abs(result.constants.zero - 0.25) < 0.1
    assert result.beats_constants
    if output == "tested" and schedule != "final":
        assert result.stopped == "accepted"
        assert result.rounds < 20
    else:
        assert (result.stopped, result.rounds) == ("rounds", 20)
    if output == "majority":
        assert result.hypothesis["kind"] == "vote"
        assert result.tested.round is None


def test_the_source_alone_is_misleading():
    """Without this the test above would show nothing."""
    decoy = LEARNER.learn(X, Y, random_state=0)
    small = ExponentialLearner(Stumps(D), epsilon=1.0).learn(X, Y, random_state=0)
    assert small.hypothesis["features"] == [2]
    assert decoy.hypothesis["features"] in ([1, 2], [2])
    fresh = np.random.default_rng(3).integers(0, 2, (50_000, D), dtype=np.uint8)
    assert (small.predict(fresh) != true(fresh)).mean() > 0.2


def test_result_says_what_was_promised_and_what_measured():
    model = fitted(schedule="every")
    assert not model.plan_.promised
    assert "no promise" in repr(model.result_)
    assert "accepted" in repr(model)
    assert "not fitted" in repr(SubsampleTestReweigh(LEARNER, **PRIVATE))
    assert model.record_ == model.result_.record
    assert (model.record_.epsilon, model.record_.delta) == (1.0, 1e-6)
    assert model.record_.neighbors == "replace_one"
    assert model.record_.numerics == "exact"
    assert model.result_.agents_record.epsilon == 2.0


def test_a_clone_has_the_parameters_and_no_result():
    from sklearn.base import clone
    from sklearn.linear_model import LogisticRegression

    model = fitted(schedule="every")
    copy = clone(model)
    assert not hasattr(copy, "result_")
    names = set(model.get_params(deep=False))
    assert names == set(inspect.signature(SubsampleTestReweigh).parameters)
    assert {name: copy.get_params()[name] for name in PRIVATE} == PRIVATE
    assert copy.learner.get_params()["epsilon"] == LEARNER.epsilon
    assert copy.set_params(rounds=7, opt=0.1) is copy
    assert (copy.rounds, copy.opt, model.rounds) == (7, 0.1, 20)
    with pytest.raises(ParameterError, match="SubsampleTestReweigh has no 'result_'"):
        copy.set_params(rounds=8, result_=None)
    assert copy.rounds == 7
    classifier = LogisticRegression(C=3.0)
    nested = clone(SubsampleTestReweigh(classifier, alpha=0.1, epsilon=math.inf))
    assert nested.learner is not classifier
    assert nested.learner.C == 3.0


def test_numerics_are_exact_only_where_the_learner_says_so():
    class Other(ExponentialLearner):
        numerics = "idealized"

    other = Other(Stumps(D), epsilon=1.0)
    assert fitted(learner=other, rounds=2).record_.numerics == "idealized"


def test_private_runs_show_no_weights():
    model = fitted()
    assert model.result_.weights is None
    kept = pickle.loads(pickle.dumps(model))
    assert not [name for name in kept.__dict__ if name.startswith("_")]
    assert kept.result_.hypothesis == model.result_.hypothesis
    open_run = SubsampleTestReweigh(LEARNER, epsilon=math.inf, draws=2000, **FREE)
    weights = open_run.fit(X, Y, target()).result_.weights
    assert weights.shape == Y.shape
    assert abs(weights.sum() - 1) < 1e-9
    assert weights.max() <= 1 / (0.1 * (1 - 2**-12) * len(Y)) * (1 + 1e-9)


def test_a_seeded_run_is_reproducible():
    first, second, other = (fitted(random_state=seed, output="smallest") for seed in (7, 7, 8))
    assert first.result_.estimates == second.result_.estimates != other.result_.estimates
    rng = np.random.default_rng(3)
    assert fitted(random_state=rng).result_.estimates != fitted(random_state=rng).result_.estimates


class TestPlain:
    """Algorithm 1, whose learner is anything."""

    def run(self, learner, agents=None, **given):
        model = SubsampleTestReweigh(learner, epsilon=math.inf, **{**FREE, **given})
        return model.fit(X, Y, agents or target(), random_state=1)

    def test_classifier_of_scikit_learn(self):
        from sklearn.tree import DecisionTreeClassifier

        classifier = DecisionTreeClassifier(max_depth=2)
        result = self.run(classifier).result_
        assert error(result) < 0.1
        assert result.hypothesis is None
        assert result.record is None
        assert result.agents_record.epsilon == 2.0
        assert not hasattr(classifier, "tree_"), "the caller's own must stay unfitted"
        again = self.run(classifier).result_
        assert result.estimates == again.estimates

    def test_a_learner_that_works_in_place_changes_nobodys_records(self):
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        records, labels = X.astype(float), Y.copy()
        people = np.random.default_rng(7).integers(0, 2, (40_000, D)).astype(float)
        kept, results = (records.copy(), labels.copy(), people.copy()), []
        for copies in (True, False):
            learner = make_pipeline(StandardScaler(copy=copies), LogisticRegression())
            model = SubsampleTestReweigh(learner, epsilon=math.inf, **{**FREE, "rounds": 3})
            agents = Agents(people, true(people.astype(int)), epsilon=8.0)
            results.append(model.fit(records, labels, agents, random_state=1).result_)
            results[-1].predict(people)
        for was, now in zip(kept, (records, labels, people), strict=True):
            assert np.array_equal(was, now)
        assert np.array_equal(results[0].weights, results[1].weights)
        assert results[0].estimates == results[1].estimates

    @pytest.mark.parametrize("where", ["learn_indices", "losses"])
    @pytest.mark.parametrize("name", ["X", "y"])
    def test_whole_arrays_go_to_a_learner_that_cannot_write_to_them(self, where, name):
        class Writes:
            hypothesis = None

            def learn_indices(self, X, y, indices, random_state):
                return self.losses(X, y) if where == "learn_indices" else self

            def losses(self, X, y):
                {"X": X, "y": y}[name][:] = 0

        records, labels = X.copy(), Y.copy()
        goal = {**FREE, "schedule": "final", "weigh_by": "losses"}
        model = SubsampleTestReweigh(Writes(), epsilon=math.inf, draws=100, **goal)
        oracle = EmpiricalOracle(records[:9], labels[:9])
        with pytest.raises(ValueError, match="read-only"):
            model.fit(records, labels, oracle)
        assert np.array_equal(records, X)
        assert np.array_equal(labels, Y)

    @pytest.mark.parametrize("dtype", ["datetime64[D]", object, "U3"])
    def test_records_of_any_dtype_are_told_apart(self, dtype):
        dates = np.array(["2020-01-01"] * 40)[:, None] if dtype != "U3" else np.full((40, 1), "a")
        records, labels = dates.astype(dtype), np.arange(40) % 2
        agents = Agents(np.zeros((99_999, 1)), np.zeros(99_999, np.uint8), epsilon=8.0)

        def constant(X, y):
            return lambda X: np.zeros(len(X), np.uint8)

        goal = {**FREE, "rounds": 1, "alpha": 0.1}
        first = SubsampleTestReweigh(constant, epsilon=math.inf, **goal).fit(
            records, labels, agents
        )
        again = SubsampleTestReweigh(constant, epsilon=math.inf, **goal)
        again.fit(records.copy(), labels, agents, start=first)
        changed = records.copy()
        changed[3] = np.array(["2020-01-02" if dtype != "U3" else "b"]).astype(dtype)
        with pytest.raises(ParameterError, match="start was fitted to other records"):
            again.fit(changed, labels, agents, start=first)

    def test_functions(self):
        def constant(X, y):
            return lambda X: np.full(len(X), int(y.mean() > 0.5), np.uint8)

        assert error(self.run(constant, rounds=3, output="majority").result_) < 0.8

    def test_statistical_queries_instead_of_agents(self):
        holdout = np.random.default_rng(9).integers(0, 2, (20_000, D), dtype=np.uint8)
        oracle = EmpiricalOracle(holdout, true(holdout))
        result = self.run(LEARNER, oracle, draws=2000, schedule="every").result_
        assert error(result) < 0.1
        assert result.agents_record is None
        assert result.plan.N == 0
        assert all(each.agents == 0 for each in result.estimates)

    def test_labels_of_one_class(self):
        from sklearn.linear_model import LogisticRegression

        model = SubsampleTestReweigh(LogisticRegression(), epsilon=math.inf, **FREE)
        model.fit(X, np.ones(len(X), np.uint8), target())
        assert model.result_.predict(X).all()

    def test_without_density_no_projection(self):
        stumps = ExponentialLearner(Stumps(D), epsilon=1.0)
        result = self.run(stumps, kappa=None, draws=500, output="majority").result_
        assert result.plan.kappa is None
        assert result.weights.max() > 2 * np.median(result.weights)

    def test_draws_default_to_those_of_the_paper(self):
        result = self.run(lambda X, y: lambda X: np.zeros(len(X), np.uint8)).result_
        assert result.plan.draws == int(np.ceil((D + np.log(20 / 0.05)) / 0.05))


class Lying(ExponentialLearner):
    """Claims the curve of another mechanism."""

    @property
    def privacy(self):
        from hdp_fast.accounting import BoundedRange

        return BoundedRange(self.epsilon)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"alpha": 0}, "alpha = 0"),
        ({"beta": 2}, "beta = 2"),
        ({"epsilon": None}, "epsilon = None"),
        ({"epsilon": -1}, "epsilon = -1"),
        ({"delta": None}, "delta = None"),
        ({"delta": 0}, "delta = 0"),
        ({"kappa": None}, "kappa = None"),
        ({"kappa": 0}, "kappa = 0"),
        ({"kappa": 1e-5}, "kappa n must be at least 1"),
        ({"eta": 0}, "eta = 0"),
        ({"eta": 5}, "eta = 5"),
        ({"eta": "ours"}, "eta = 'ours'"),
        ({"rounds": None}, "rounds = None"),
        ({"rounds": 0}, "rounds = 0"),
        ({"rounds": 2.5}, "rounds = 2.5"),
        ({"chi2": -1}, "chi2 = -1"),
        ({"chi2": np.inf}, "chi2 = inf"),
        ({"schedule": "never"}, "schedule = 'never'"),
        ({"output": "best"}, "output = 'best'"),
        ({"opt": 1}, "opt = 1"),
        ({"draws": 7}, "draws = 7"),
        ({"epsilon": np.inf}, "epsilon = inf, but only a private run can be charged"),
        ({"learner": "svm"}, "learner = 'svm'"),
        ({"learner": len}, "learner = <built-in"),
        ({"learner": Lying(Stumps(D), epsilon=1.0, mechanism="permute_and_flip")}, "bounded range"),
        (
            {"learner": ExponentialLearner(Stumps(D), neighbors="add_remove", epsilon=1.0)},
            "add_remove",
        ),
        ({"learner": ExponentialLearner(Stumps(D + 1), epsilon=1.0)}, "X has shape"),
    ],
    ids=str,
)
def test_what_is_refused_spends_nothing(change, words):
    agents, budget = target(), Budget(2, 1e-5)
    model = SubsampleTestReweigh(**{"learner": LEARNER, **PRIVATE, **change})
    with pytest.raises((ParameterError, ShapeError)) as caught:
        model.fit(X, Y, agents, budget=budget)
    assert words in str(caught.value)
    assert agents.remaining == len(agents)
    assert budget.spent.epsilon == 0


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ((X[:10], Y), ShapeError),
        ((X, Y[:, None]), ShapeError),
        ((X[0], Y), ShapeError),
        ((X[:0], Y[:0]), ShapeError),
        ((X, Y + 1), ParameterError),
        ((X + 1, Y), ParameterError),
    ],
)
def test_data_of_another_shape_or_domain(data, kind):
    agents, budget = target(), Budget(2, 1e-5)
    with pytest.raises(kind):
        SubsampleTestReweigh(LEARNER, **PRIVATE).fit(*data, agents, budget=budget)
    assert (agents.remaining, budget.spent.epsilon) == (len(agents), 0)


@pytest.mark.parametrize("agents", [None, X, "agents", EmpiricalOracle(X, Y)])
def test_private_runs_need_agents(agents):
    with pytest.raises(ParameterError, match="agents"):
        SubsampleTestReweigh(LEARNER, **PRIVATE).fit(X, Y, agents)


def test_agents_of_another_width():
    other = Agents(np.zeros((10, D + 1), np.uint8), np.zeros(10, np.uint8), epsilon=1)
    with pytest.raises(ShapeError, match="agents have 9 features"):
        SubsampleTestReweigh(LEARNER, **PRIVATE).fit(X, Y, other)


def test_a_promise_needs_its_records():
    model = SubsampleTestReweigh(LEARNER, alpha=0.1, chi2=0.35, epsilon=1.0, delta=1e-6)
    with pytest.raises(InsufficientSamples, match="needs"):
        model.fit(X, Y, target())
    assert model.plan(len(X), agents_epsilon=1.0).promised


def test_permute_and_flip_is_charged_by_its_own_curve():
    flip = ExponentialLearner(Conjunctions(D, 2), mechanism="permute_and_flip", epsilon=1.0)
    plain = SubsampleTestReweigh(LEARNER, **PRIVATE).plan(len(X), agents_epsilon=1.0)
    pure = SubsampleTestReweigh(flip, **PRIVATE).plan(len(X), agents_epsilon=1.0)
    spent = {p.draws * p.learner_epsilon for p in (plain, pure)}
    assert pure.draws * pure.learner_epsilon < plain.draws * plain.learner_epsilon, spent


class TestBudget:
    def test_is_charged_once_for_all_planned_rounds(self):
        budget = Budget(2, 1e-5)
        model = SubsampleTestReweigh(LEARNER, **PRIVATE, schedule="every")
        result = model.fit(X, Y, target(), budget=budget).result_
        assert result.rounds < result.plan.rounds
        assert (budget.spent.epsilon, budget.spent.delta) == (1.0, 1e-6)
        assert [entry.state for entry in budget.records] == ["committed"]

    def test_refusal_leaves_everything(self, tmp_path):
        agents, budget = target(), Budget(0.5, 1e-5)
        path = str(tmp_path / "run")
        model = SubsampleTestReweigh(LEARNER, **PRIVATE, checkpoint=path)
        with pytest.raises(BudgetExceeded):
            model.fit(X, Y, agents, budget=budget)
        assert agents.remaining == len(agents)
        richer = Budget(1, 1e-5)
        model.fit(X, Y, agents, budget=richer)
        assert richer.spent.epsilon == 1

    def test_nothing_to_charge_without_privacy(self):
        model = SubsampleTestReweigh(LEARNER, epsilon=math.inf, draws=100, **FREE)
        with pytest.raises(ParameterError, match="budget"):
            model.fit(X, Y, target(), budget=Budget(1))


class Leaving(Agents):
    """All go away after three tests."""

    tests = 3

    def test(self, learned, count, *, random_state=None):
        answers = super().test(learned, count, random_state=random_state)
        self.tests -= 1
        if not self.tests:
            self.pass_over(self.remaining)
        return answers


class Silent(Agents):
    """No one opens the door."""

    def test(self, learned, count, *, random_state=None):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("schedule", "advice"), [("geometric", "schedule = 'final'"), ("final", "a larger alpha")]
)
def test_what_is_advised_to_too_few_agents_is_not_what_they_have(schedule, advice):
    model = SubsampleTestReweigh(LEARNER, **{**PRIVATE, "schedule": schedule})
    with pytest.raises(AgentsExhausted, match=advice):
        model.fit(X, Y, target(2))


def test_too_few_agents_are_refused_before_anything_is_charged(tmp_path):
    """The tests that a plan needs are known, and so are the agents who are left."""
    budget, path = Budget(1, 1e-6), tmp_path / "run"
    model = SubsampleTestReweigh(LEARNER, **PRIVATE, checkpoint=str(path))
    needed = model.plan(len(X), agents_epsilon=2.0).N
    few = target(needed - 1)
    with pytest.raises(
        AgentsExhausted, match=f"{needed - 1:,} left, but the plan needs {needed:,}"
    ):
        model.fit(X, Y, few, budget=budget)
    assert few.remaining == needed - 1
    assert budget.spent == (0, 0)
    assert not path.exists()
    with pytest.raises(ParameterError, match="none was stopped"):
        model.resume(X, Y, target())
    model.fit(X, Y, target(needed), budget=budget)


class TestResume:
    def test_more_agents_finish_what_some_began(self):
        whole = fitted(random_state=4, output="smallest", schedule="every").result_
        budget, agents = Budget(1, 1e-6), target(kind=Leaving)
        each = whole.plan.agents_per_test
        model = SubsampleTestReweigh(LEARNER, **PRIVATE, output="smallest", schedule="every")
        with pytest.raises(AgentsExhausted, match="resume"):
            model.fit(X, Y, agents, budget=budget, random_state=4)
        assert agents.remaining == 0
        more = target()
        model.resume(X, Y, more)
        assert budget.spent.epsilon == 1
        assert model.result_.rounds == 20
        assert len(more) - more.remaining == 17 * each + whole.plan.agents_for_constants
        assert len(model.result_.estimates) == 20
        with pytest.raises(ParameterError, match="resume"):
            model.resume(X, Y, more)

    def test_hypotheses_are_those_of_the_uninterrupted_run(self):
        given = {"output": "majority", "schedule": "final"}
        whole = fitted(random_state=4, **given).result_
        model = SubsampleTestReweigh(LEARNER, **PRIVATE, **given)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y, target(kind=Silent), random_state=4)
        model.resume(X, Y, target())
        assert model.result_.hypothesis == whole.hypothesis
        assert model.result_.estimates == whole.estimates

    def test_other_records_are_refused(self):
        model = SubsampleTestReweigh(LEARNER, **PRIVATE)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y, target(kind=Silent))
        changed = X.copy()
        changed[17, 3] ^= 1
        with pytest.raises(CheckpointError):
            model.resume(changed, Y, target())
        model.resume(X, Y, target())

    def test_after_an_interruption_anywhere(self):
        class Stubborn:
            """Answers twice, then once more not."""

            def __init__(self):
                self.asked = 0

            def __call__(self, text, k):
                self.asked += 1
                if self.asked == 3:
                    raise KeyboardInterrupt
                true_bits = (np.arange(k) % 5 == 0).astype(np.uint8)
                return randomized_response(true_bits, epsilon=2.0)

        agents = RemoteAgents(Stubborn(), epsilon=2.0, count=1_000_000)
        model = SubsampleTestReweigh(LEARNER, **PRIVATE, schedule="every", output="smallest")
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y, agents)
        model.resume(X, Y, agents)
        # The third test was asked once in vain: those agents are spent.
        asked = 21 * model.plan_.agents_per_test + model.plan_.agents_for_constants
        assert len(agents) - agents.remaining == asked


class TestWarmStart:
    def test_a_second_task_begins_where_the_first_ended(self):
        first = fitted(schedule="final", output="majority")
        again = fitted(schedule="final", output="majority").fit(X, Y, target(), start=first)
        assert again.record_ is not None
        plain = {
            "epsilon": math.inf,
            "draws": 500,
            **FREE,
            "schedule": "final",
            "output": "majority",
        }
        stumps = ExponentialLearner(Stumps(D), epsilon=1.0)
        one = SubsampleTestReweigh(stumps, **plain).fit(X, Y, target(), random_state=1)
        cold = SubsampleTestReweigh(stumps, **{**plain, "rounds": 1})
        warm = SubsampleTestReweigh(stumps, **{**plain, "rounds": 1})
        cold.fit(X, Y, target(), random_state=2)
        warm.fit(X, Y, target(), random_state=2, start=one)
        before, after = one.result_.weights, warm.result_.weights
        assert np.corrcoef(before, after)[0, 1] > 0.9
        assert np.abs(before - cold.result_.weights).sum() > np.abs(before - after).sum()
        again_from_one = SubsampleTestReweigh(stumps, **{**plain, "rounds": 1})
        again_from_one.fit(X, Y, target(), random_state=2, start=one)
        assert np.array_equal(again_from_one.result_.weights, after), "the start has changed"

    @pytest.mark.parametrize("changed", ["X", "y"])
    def test_a_start_belongs_to_its_records(self, changed):
        first, budget = fitted(), Budget(5, 1e-3)
        records, labels = X.copy(), Y.copy()
        (records[17] if changed == "X" else labels)[3] ^= 1
        model = SubsampleTestReweigh(LEARNER, **PRIVATE)
        with pytest.raises(ParameterError, match="start was fitted to other records"):
            model.fit(records, labels, target(), start=first, budget=budget)
        assert budget.spent == (0, 0)
        assert not hasattr(model, "result_")
        model.fit(X.copy(), Y.tolist(), target(), start=first, budget=budget)

    def test_what_cannot_be_a_start(self, tmp_path):
        model = SubsampleTestReweigh(LEARNER, **PRIVATE)
        with pytest.raises(ParameterError, match="start"):
            model.fit(X, Y, target(), start=SubsampleTestReweigh(LEARNER, **PRIVATE))
        small = SubsampleTestReweigh(LEARNER, **PRIVATE).fit(X[:15_000], Y[:15_000], target())
        with pytest.raises(ShapeError, match="15,000"):
            model.fit(X, Y, target(), start=small)
        unprotected = SubsampleTestReweigh(LEARNER, epsilon=math.inf, draws=50, **FREE)
        unprotected.fit(X, Y, target())
        with pytest.raises(ParameterError, match="only go on from a private one"):
            model.fit(X, Y, target(), start=unprotected)
        model.checkpoint = str(tmp_path / "run")
        with pytest.raises(ParameterError, match="start"):
            model.fit(X, Y, target(), start=fitted())


def test_remote_agents_hear_only_hypotheses():
    heard = []
    rng = np.random.default_rng(0)

    def ask(text, k):
        heard.append(text)
        people = rng.integers(0, 2, (k, D), dtype=np.uint8)
        wrong = predictor(text)(people) ^ true(people)
        return randomized_response(wrong, epsilon=2.0)

    agents = RemoteAgents(ask, epsilon=2.0, count=500_000)
    result = fitted(agents, schedule="every").result_
    assert error(result) < 0.1
    assert json.loads(heard[-2]) == result.hypothesis
    # The last ones asked say how often 1 is wrong.
    assert json.loads(heard[-1])["features"] == []
    assert abs(result.constants.one - 0.75) < 0.1
    vote = fitted(RemoteAgents(ask, epsilon=2.0, count=500_000), output="majority").result_
    assert json.loads(heard[-2]) == vote.hypothesis


def test_layouts_and_dtypes_do_not_matter():
    expected = fitted().result_.estimates
    for same in (X.astype(bool), X.astype(np.int64), np.asfortranarray(X), X.tolist()):
        model = SubsampleTestReweigh(LEARNER, **PRIVATE)
        assert model.fit(same, Y.tolist(), target(), random_state=5).result_.estimates == expected


def test_progress_is_a_bar(capfd):
    pytest.importorskip("tqdm")
    model = SubsampleTestReweigh(LEARNER, **PRIVATE, output="majority")
    model.fit(X, Y, target(), progress=True)
    assert "/20" in capfd.readouterr().err


def test_the_plot_shows_the_loss_along_the_run():
    pytest.importorskip("matplotlib")
    figure = draw(fitted(output="smallest", schedule="every").result_)
    assert figure.axes[0].get_xlabel() == "round"
    with pytest.raises(ParameterError, match="result"):
        draw("result")


def test_all_errors_are_of_one_family():
    for kind in (AgentsExhausted, BudgetExceeded, CheckpointError, InsufficientSamples):
        assert issubclass(kind, HdpFastError)


# Losses of the hypotheses' own -------------------------------------------------------------------


class Half:
    """Always loses a quarter on records with feature 0, nothing on others."""

    hypothesis = None

    def predict(self, X):
        return np.zeros(len(X), np.uint8)

    def losses(self, X, y):
        return X[:, 0] / 4


@pytest.mark.parametrize("oracle", [True, False], ids=["oracle", "agents"])
def test_weights_follow_errors_or_own_losses_and_agents_are_asked_for_losses(oracle):
    given = {"alpha": 0.05, "eta": 0.5, "rounds": 4, "schedule": "final", "output": "smallest"}
    fresh, labels = source(1_000_000 if not oracle else 1_000, 3)
    for weigh_by, losses in (("losses", X[:, 0] / 4), ("errors", Y)):
        model = SubsampleTestReweigh(
            lambda X, y: Half(), epsilon=math.inf, draws=10, weigh_by=weigh_by, **given
        )
        agents = EmpiricalOracle(fresh, labels) if oracle else Agents(fresh, labels, epsilon=1000.0)
        result = model.fit(X, Y, agents, random_state=1).result_
        weights = np.exp(-0.5 * 4 * (1 - losses))
        assert np.allclose(result.weights, weights / weights.sum(), rtol=1e-6)
        assert result.plan.weigh_by == weigh_by
        tested = result.tested
        assert tested.low <= fresh[:, 0].mean() / 4 <= tested.high
        assert abs(tested.value - 0.125) < 0.04


def test_errors_are_the_default_and_other_words_are_refused():
    goal = {"alpha": 0.1, "epsilon": math.inf, "rounds": 3, "draws": 5}
    assert SubsampleTestReweigh(lambda X, y: Half(), **goal).weigh_by == "errors"
    with pytest.raises(ParameterError, match="weigh_by = 'loss'"):
        plan_rounds(lambda X, y: Half(), **goal, n=100, weigh_by="loss")


# Learners with steps of their own -----------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Walk:
    """Noisy coordinate counts on draws of its own: composed as stochastic gradients are."""

    steps: int = 5
    batch_size: int = 40
    noise: float | None = None
    share: float = 1.0

    @property
    def step(self):
        return accounting.ZCDP(2 / (self.share * self.noise) ** 2)

    def calibrate(self, *, epsilon, delta, n, kappa, rounds):
        rate = 1 / (kappa * (1 - 2.0**-12) * n) * (1 + 1e-12)

        def family(noise):
            return accounting.Subsampled(
                accounting.ZCDP(2 / noise**2), draws=self.batch_size, rate=rate
            )

        found = accounting.smallest_noise(
            family, epsilon=epsilon, delta=delta, rounds=rounds * self.steps
        )
        return dataclasses.replace(self, noise=found)

    def learn_weighted(self, X, y, weights, *, random_state=None):
        total = np.zeros(D)
        for step in range(self.steps):
            coins = None if random_state is None else random_state + step
            drawn = weights.draw(self.batch_size, random_state=coins)
            total += (X[drawn] == y[drawn, None]).sum(axis=0)
        if self.noise is not None:
            total += noise.discrete_gaussian(self.noise, D, random_state=random_state)
        return Feature(int(total.argmax()))


class Feature:
    """One feature, as its own prediction."""

    def __init__(self, i):
        self.i, self.hypothesis = i, {"kind": "feature", "index": i}

    def predict(self, X):
        return X[:, self.i]

    def losses(self, X, y):
        return np.where(X[:, self.i] == y, 0.25, 0.75)


def test_steps_are_accounted_at_the_rate_of_the_weights():
    model = SubsampleTestReweigh(Walk(), **PRIVATE).fit(X, Y, target(), random_state=1)
    found = model.plan_
    assert (found.draws, found.learner_epsilon, found.promised) == (200, None, False)
    goal = {"epsilon": 1.0, "delta": 1e-6, "n": len(X), "kappa": found.kappa}
    own = Walk().calibrate(**goal, rounds=20)
    rate = 1 / (found.kappa * (1 - 2.0**-12) * len(X))
    each = accounting.Subsampled(own.step, draws=40, rate=rate)
    assert 0.999e-6 < accounting.delta([(each, 5 * 20)], 1.0) <= 1e-6
    assert model.result_.tested.value > 0.2
    assert model.record_.epsilon == 1.0


def test_too_little_noise_is_found_out_before_anything_is_drawn():
    class Cheat(Walk):
        def learn_weighted(self, X, y, weights, *, random_state=None):
            pytest.fail("a round was run")

    budget = Budget(2.0, 1e-5)
    model = SubsampleTestReweigh(Cheat(share=0.99), **PRIVATE)
    with pytest.raises(ParameterError, match="delta = 1e-06, but 20 rounds need"):
        model.fit(X, Y, target(), budget=budget)
    assert budget.spent == (0, 0)


def test_steps_that_are_not_private_draw_from_the_weights_too():
    model = SubsampleTestReweigh(Walk(), **FREE, epsilon=math.inf)
    result = model.fit(X, Y, target(), random_state=2).result_
    assert result.plan.draws == 200
    assert result.record is None
    assert result.hypothesis["kind"] == "feature"


# Constants ----------------------------------------------------------------------------------------


def lazy(X, y):
    """Learns that no one has the label, which is true of most."""
    return lambda X: np.zeros(len(X), np.uint8)


def unlabeled(share=0.2, n=100_000):
    """Agents of whom a share have the label, whatever their features."""
    rng = np.random.default_rng(3)
    features = rng.integers(0, 2, (n, D), dtype=np.uint8)
    return Agents(features, (rng.random(n) < share).astype(np.uint8), epsilon=2.0)


def test_a_constant_is_never_accepted():
    """Its error is far below 3 alpha, and it says nothing about anybody."""
    goal = {"alpha": 0.1, "eta": 0.5, "rounds": 4, "draws": 10}
    model = SubsampleTestReweigh(lazy, epsilon=math.inf, **goal)
    with pytest.warns(
        UtilityWarning, match=r"error 0\.\d+ .* is not (surely )?better than a const"
    ):
        result = model.fit(X, Y, unlabeled(), random_state=1).result_
    assert (result.stopped, result.rounds) == ("threshold", 1)
    assert result.beats_constants is False
    assert "better than a constant" in result.utility
    assert result.comparison in ("not better", "not surely better")
    assert "threshold" in repr(result)
    assert abs(result.constants.zero - 0.2) < 0.1
    assert result.constants.one == 1 - result.constants.zero
    assert result.constants.low <= 0.2 <= result.constants.high
    assert result.constants.better == result.constants.zero
    # No other test has asked the agents that were planned for it.
    assert result.constants.agents == result.plan.agents_per_test > result.plan.agents_for_constants


def test_constants_cost_the_agents_that_the_plan_says():
    agents = target()
    result = fitted(agents, schedule="every", output="smallest").result_
    assert result.constants.agents == result.plan.agents_for_constants
    assert len(agents) - agents.remaining == result.agents_asked == result.plan.N
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        assert fitted(schedule="every").result_.stopped == "accepted"


def test_the_loss_of_a_linear_model_is_compared_with_that_of_weights_0():
    learner = PrivateSGD(loss="logistic", steps=20, radius=1.0, norm_bound=3.0, epsilon=math.inf)
    goal = {**FREE, "rounds": 2, "epsilon": math.inf}
    result = SubsampleTestReweigh(learner, **goal).fit(X, Y, target(), random_state=1).result_
    assert result.constants.agents == 0
    assert result.constants.better == pytest.approx(math.log(2) / math.log(1 + math.exp(3)))


@pytest.mark.parametrize(("answer", "ends"), [(0.97, (0.87, 1.0)), (0.04, (0.0, 0.14))])
def test_estimates_of_an_oracle_lie_in_intervals_of_errors(answer, ends):
    class Oracle:
        def query(self, question, tau):
            return answer

    goal = {"alpha": 0.1, "rounds": 1, "draws": 9, "schedule": "final", "output": "smallest"}
    model = SubsampleTestReweigh(lambda X, y: Half(), epsilon=math.inf, **goal)
    tested = model.fit(X, Y, Oracle()).result_.tested
    assert (tested.low, tested.high) == pytest.approx(ends)
    assert (tested.value, tested.agents) == (answer, 0)


def test_nothing_is_known_of_constants_where_nobody_can_be_asked():
    goal = {**FREE, "epsilon": math.inf, "draws": 2_000}
    oracle = SubsampleTestReweigh(LEARNER, **goal).fit(X, Y, EmpiricalOracle(X, Y)).result_
    assert (oracle.constants, oracle.beats_constants) == (None, None)
    assert "constants unknown" in repr(oracle)

    def ask(text, k):
        assert json.loads(text)["kind"] == "feature"
        return randomized_response(np.zeros(k, np.uint8), epsilon=2.0)

    remote = RemoteAgents(ask, epsilon=2.0, count=300_000)
    other = SubsampleTestReweigh(lambda X, y: Indicator(), **goal)
    assert other.fit(X, Y, remote).result_.constants is None


class Indicator:
    """A hypothesis that only its owner's agents can read."""

    hypothesis = {"kind": "feature", "index": 1}  # noqa: RUF012

    def predict(self, X):
        return X[:, 1]


def test_a_large_delta_is_said_to_be_one():
    with pytest.warns(UtilityWarning, match=r"delta = 0\.001 is above 1 / n"):
        fitted(delta=1e-3, rounds=2)


# Results as others read them ----------------------------------------------------------------------


def test_a_result_is_json_and_a_fitted_run_predicts():
    model = fitted(output="smallest")
    result, content = model.result_, json.loads(model.result_.to_json())
    assert (model.predict(X[:50]) == result.predict(X[:50])).all()
    assert content["hypothesis"] == result.hypothesis
    assert content["tested"]["value"] == result.tested.value
    assert len(content["estimates"]) == len(result.estimates)
    assert content["constants"]["zero"] == result.constants.zero
    assert content["record"] == json.loads(result.record.to_json())
    assert content["agents_record"]["epsilon"] == 2.0
    assert (content["stopped"], content["utility"]) == (result.stopped, result.utility)
    assert content["plan"]["rounds"] == 20
    free = SubsampleTestReweigh(LEARNER, epsilon=math.inf, draws=500, **FREE)
    with pytest.raises(HdpFastError, match="has not learned yet: call fit first"):
        free.predict(X)
    content = json.loads(free.fit(X, Y, target()).result_.to_json())
    assert (content["plan"]["epsilon"], content["record"]) == (None, None)
    assert "weights" not in content
