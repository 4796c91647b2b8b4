"""What all that asks agents does alike with real ones: who is left, and the same answers."""

import json
import math

import numpy as np
import pytest

from hdp_fast import learners, local, transfer
from hdp_fast.exceptions import AgentsExhausted, ParameterError
from hdp_fast.local import Agents, Query, RemoteAgents

LINE = {"kind": "halfspace", "weights": [1.0, 0.0], "bias": 0.0}
CALLS = {
    "shifts": lambda pool, k: transfer.shifted_columns([0.5, 0.5], pool, count=k),
    "certify": lambda pool, k: transfer.certify(LINE, pool, count=k),
    "compare": lambda pool, k: transfer.certify(LINE, pool, other=AWRY, count=k),
    "survey": lambda pool, k: transfer.survey({"y": Query.label(), "x": HALF}, pool, count=k),
}
AWRY = {**LINE, "bias": 5.0}
HALF = Query.between(0, low=0.5)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_nobody_is_asked_where_too_few_are_left(name):
    """Some were asked before the last question found no one: spent, and nothing to show for it."""
    asked = []

    def ask(text, count):
        asked.append(count)
        return [1] * count

    agents = RemoteAgents(ask, epsilon=1.0, count=1000)
    agents.pass_over(600)
    with pytest.raises(AgentsExhausted, match="but 400 agents are left"):
        CALLS[name](agents, 500)
    assert (asked, agents.remaining) == ([], 400)
    CALLS[name](agents, 400)
    assert (sum(asked), agents.remaining) == (400, 0)


# The same answers ---------------------------------------------------------------------------------

RNG = np.random.default_rng(1)
PEOPLE = 6000
X = RNG.normal(0, 1.2, (PEOPLE, 3))
BITS = RNG.integers(0, 2, (PEOPLE, 3))
Y = (RNG.random(PEOPLE) < 1 / (1 + np.exp(1 - X[:, 0]))).astype(int)
Y_OF_BITS = (RNG.random(PEOPLE) < np.where(BITS[:, 1], 0.7, 0.1)).astype(int)
# The panel that models are learned from says yes more often, so that there is much to calibrate.
Y_OF_PANEL = (RNG.random(PEOPLE) < 1 / (1 + np.exp(-1 - X[:, 0]))).astype(int)
STUMP = {"kind": "conjunction", "features": [1], "values": [1], "complement": False}


def linear(**options):
    options = {"loss": "logistic", "norm_bound": 1.0, "epsilon": math.inf} | options
    return learners.PrivateSGD(steps=50, batch_size=20, **options).learn(
        X, Y_OF_PANEL, random_state=1
    )


def released():
    scaled = learners.FeatureMap.scaling([(-5, 5)] * 3)
    statistics = learners.SufficientStatistics(scaled, classes=[0, 1])
    private = statistics.release(X, Y_OF_PANEL, epsilon=20.0, delta=1e-6, random_state=1)
    return private.solve(pool=X)


def stump():
    learner = learners.ExponentialLearner(learners.Stumps(3), epsilon=9.0)
    return learner.learn(BITS.astype(np.uint8), Y_OF_BITS, random_state=1)


MODELS = {
    "LinearModel": linear,
    "SoftmaxModel": lambda: linear(loss="softmax", classes=2),
    "StatisticsModel": released,
    "description": lambda: {"kind": "halfspace", "weights": [1.0, -0.2, 0.0], "bias": -0.3},
    "hypothesis": stump,
    "vote": lambda: {"kind": "vote", "hypotheses": [STUMP, STUMP, {**STUMP, "features": [0]}]},
}


class Devices(RemoteAgents):
    """People who answer from the JSON of a question, with the coins of simulated agents."""

    def __init__(self, X, y, seed):
        self.X, self.y, self.coins, self.next = X, y, np.random.default_rng(seed), 0
        super().__init__(self.answer, epsilon=4.0, count=len(y))

    def answer(self, text, count):
        part = slice(self.next, self.next + count)
        self.next += count
        content = json.loads(text)
        queries = content["queries"] if content["kind"] == "stage" else [content]
        ends = np.cumsum([0, *content.get("shares", [count])]) + part.start
        # Question after question, as simulated agents are asked.
        return np.concatenate([
            2 * j + self.respond(query, slice(*ends[j : j + 2])) for j, query in enumerate(queries)
        ])  # fmt: skip

    def respond(self, query, part):
        answers = local.true_answers(query, self.X[part], self.y[part])
        bits = local.randomized_response(answers, epsilon=4.0, random_state=self.coins)
        return bits.astype(int)


def both(name, call, seed):
    """What a call returns with simulated agents and with devices."""
    records = (BITS, Y_OF_BITS) if name in ("hypothesis", "vote") else (X, Y)
    simulated, devices = Agents(*records, epsilon=4.0), Devices(*records, seed)
    results = [call(pool, np.random.default_rng(seed)) for pool in (simulated, devices)]
    assert simulated.remaining == devices.remaining
    return results


@pytest.mark.parametrize("method", ["logistic", "isotonic"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.filterwarnings("ignore")
def test_a_calibrated_model_goes_on_with_devices_as_with_simulated_agents(name, method, in_turn):
    model = MODELS[name]()
    first, second = both(
        name, lambda pool, rng: transfer.calibrate(model, pool, method=method, random_state=rng), 7
    )
    assert first.hypothesis == second.hypothesis
    assert first.knots.size

    def chain(pool, rng):
        certificate = transfer.certify(first, pool, count=1500, random_state=rng)
        compared = transfer.certify(first, pool, other=model, count=1000, random_state=rng)
        shifts = transfer.shifted_columns([0.5] * 3, pool, count=900, random_state=rng)
        return [
            (certificate.value, certificate.low, certificate.high, certificate.constants),
            (compared.value, compared.low, compared.high),
            shifts.columns,
        ]

    simulated, devices = both(name, chain, 8)
    assert simulated == devices
    # A survey asks simulated agents in a random order: everybody is asked without noise instead.
    questions = {"wrong": Query.wrong(first), "both": Query.label() & Query.score_above(first, 0.0)}
    for key, query in questions.items():
        rows = both(name, lambda pool, rng, asked={key: query}: transfer.survey(asked, pool), 9)
        truth = query(*((BITS, Y_OF_BITS) if name in ("hypothesis", "vote") else (X, Y))).mean()
        assert all(result[key].low <= truth <= result[key].high for result in rows)


@pytest.mark.parametrize("name", ["LinearModel", "StatisticsModel", "hypothesis"])
@pytest.mark.filterwarnings("ignore")
def test_a_run_tests_calibrated_models_on_devices(name):
    """A learner whose models come out of a calibration, as of a public score."""
    model = MODELS[name]()
    records = (BITS, Y_OF_BITS) if name == "hypothesis" else (X, Y)
    calibrated = transfer.calibrate(model, Agents(*records, epsilon=8.0), random_state=3)

    def fit(pool):
        goal = {"alpha": 0.1, "beta": 0.1, "epsilon": math.inf, "rounds": 2, "draws": 50}
        run = transfer.SubsampleTestReweigh(lambda X, y: calibrated, **goal)
        return run.fit(records[0][:200], records[1][:200], pool, random_state=5).result_

    for pool in (Agents(*records, epsilon=4.0), Devices(*records, 5)):
        result = fit(pool)
        assert result.hypothesis == calibrated.hypothesis
        truth = (calibrated.predict(records[0]) != records[1]).mean()
        assert result.tested.low <= truth <= result.tested.high
        assert result.constants.low <= min(records[1].mean(), 1 - records[1].mean())


class Scored:
    """A model of other code."""

    def predict_proba(self, X):
        return np.column_stack([1 - X[:, 0], X[:, 0]])

    def predict(self, X):
        return X[:, 0] > 0


@pytest.mark.parametrize("name", ["function", "other code", "estimator", "feature map"])
@pytest.mark.filterwarnings("ignore")
def test_models_without_a_description_are_refused_and_the_error_says_what_helps(name):
    if name == "estimator":
        pytest.importorskip("sklearn")
        from hdp_fast.sklearn import PrivateClassifier

        options = {"epsilon": 4.0, "delta": 1e-6, "bounds": [(-5, 5)] * 3, "classes": [0, 1]}
        model = PrivateClassifier(**options, test_seed=1).fit(X, Y)
    elif name == "feature map":
        features = learners.FeatureMap.from_callable(lambda rows: rows / 9, 3)
        statistics = learners.SufficientStatistics(features, classes=[0, 1])
        model = statistics.release(X, Y, epsilon=20.0, delta=1e-6, random_state=1).solve(pool=X)
    else:
        model = Scored() if name == "other code" else lambda X: X[:, 0]
    calibrated = transfer.calibrate(model, Agents(X, Y, epsilon=4.0), random_state=1)
    agents = RemoteAgents(pytest.fail, epsilon=4.0, count=600)
    calls = [lambda m: transfer.calibrate(m, agents)]
    if name != "function":
        calls.append(lambda m: transfer.certify(m, agents))
    for one in (model, calibrated):
        for call in calls:
            with pytest.raises(ParameterError, match=r"description.*(linear|LinearModel)"):
                call(one)
    assert agents.remaining == 600
