"""Results as JSON: what a pipeline keeps of each."""

import json
import math

import numpy as np
import pytest

from hdp_fast import labels, learners, local, statistics, transfer
from hdp_fast._support.json_text import JsonText
from hdp_fast.data import Number, Schema

X = np.random.default_rng(0).integers(0, 2, (2_000, 3), dtype=np.uint8)
SCHEMA = Schema(None, {"a": Number(0, 1, (0.5,))})
CLASS = learners.Conjunctions(3, 1)
ANSWERS = {"is_bottom": np.array([False, True]), "unstable_left": 3, "queries_left": 8}


def learn_doubling():
    rounds = [learners.Conjunctions(3, size) for size in (1, 2)]
    return learners.DoublingLearner(rounds, alpha=0.2, beta=0.1, epsilon=4.0).learn(X, X[:, 0])


def learn_linear():
    sgd = learners.PrivateSGD(loss="logistic", steps=2, batch_size=2, epsilon=math.inf)
    return sgd.learn(X.astype(float), X[:, 0])


def learn_softmax():
    sgd = learners.PrivateSGD(loss="softmax", classes=2, epsilon=math.inf)
    return sgd.learn(X.astype(float), X[:, 0])


def people():
    return local.Agents(X.astype(float), X[:, 0], epsilon=2.0)


def suggest():
    def learner(X, y):
        return lambda Q: np.asarray(Q)[:, 0].astype(int)

    return labels.suggest(
        learner, X[:60].astype(float), X[:60, 0].astype(int),
        n=500, epsilon=1.0, delta=1e-6, queries=10, classes=[0, 1],
    )  # fmt: skip


def release(**settings):
    description = learners.SufficientStatistics(
        learners.FeatureMap.identity(3, norm_bound=2.0), classes=[0, 1], **settings
    )
    return description.release(X.astype(float), X[:, 0], epsilon=1.0, delta=1e-6, random_state=0)


def calibrate():
    agents = local.Agents(X[:600], X[:600, 1], epsilon=4.0)
    return transfer.calibrate(lambda X: X[:, 0] - 0.5, agents, random_state=0)


MAKERS = {
    "calibration": calibrate,
    "plan of a calibration": lambda: transfer.plan_calibration(9_000, epsilon=1.0),
    "labels": lambda: labels.LabelResult(labels=np.array(["a", "-"]), record=None, **ANSWERS),
    "scores": lambda: labels.ScoreResult(scores=np.array([0.5, 0.0]), record=None, **ANSWERS),
    "suggestion": suggest,
    "exponential": lambda: learners.ExponentialLearner(CLASS, epsilon=9.0).learn(X, X[:, 0]),
    "doubling": learn_doubling,
    "separator": lambda: learners.LinearSeparator().learn(X.astype(float), X[:, 0]),
    "linear": learn_linear,
    "softmax": learn_softmax,
    "plan of descent": lambda: learn_softmax().plan,
    "statistics": release,
    "certificate": lambda: transfer.certify(learn_linear(), people(), random_state=0),
    "survey": lambda: transfer.survey({"y": local.Query.label()}, people(), random_state=0),
    "comparison": lambda: labels.PopulationTest(distance=0.2, most=0.1, epsilon=0.1, delta=1e-7),
    "method": lambda: labels.MethodChoice(method="votes", reason="as asked", signal=0.5),
    "mean": lambda: statistics.mean(X[:, 0], low=0, high=1, epsilon=1.0),
    "covariance": lambda: statistics.covariance(X, low=0, high=1, epsilon=1.0),
    "histogram": lambda: statistics.histogram(X[:, 0], categories=[0, 1], epsilon=1.0),
    "quantiles": lambda: statistics.quantiles(X[:, 0], [0.5], low=0, high=1, epsilon=1.0),
    "distribution": lambda: statistics.distribution(X[:, 0], low=0, high=1, epsilon=1.0),
    "tables": lambda: statistics.tables({"a": X[:, 0]}, SCHEMA, epsilon=1.0),
    "top categories": lambda: statistics.top_k(X[:, 0], 1, categories=[0, 1], epsilon=1.0),
    "model of statistics": lambda: release(second_moments=True).solve(),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_result_is_json_with_its_public_attributes(name):
    result = MAKERS[name]()
    fields = json.loads(result.to_json(), parse_constant=pytest.fail)
    assert fields
    assert not any(field.startswith("_") for field in fields)
    record = getattr(result, "record", None)
    if record is not None:
        assert fields["record"]["epsilon"] == record.epsilon


def test_a_hypothesis_is_read_again():
    result = MAKERS["exponential"]()
    predict = learners.predictor(json.dumps(json.loads(result.to_json())["hypothesis"]))
    assert (predict(X) == result.predict(X)).all()


def test_every_result_has_json():
    rooms = (labels, learners, transfer)
    kinds = [getattr(room, name) for room in rooms for name in room.__all__]
    results = [
        kind for kind in kinds if isinstance(kind, type) and kind.__name__.endswith("Result")
    ]
    without = {kind for kind in results if not hasattr(kind, "to_json")}
    # A round is part of a TransferResult, and written with it.
    assert without <= {transfer.RoundResult}
    assert any(issubclass(kind, JsonText) for kind in results)
