"""What devices read of a calibrated model: its description predicts and scores as it does."""

import dataclasses
import functools
import json
import math

import numpy as np
import pytest

from hdp_fast import learners, local, transfer
from hdp_fast.exceptions import ParameterError
from hdp_fast.learners.scores import describe_score
from hdp_fast.transfer.run import AlwaysOne

RNG = np.random.default_rng(5)
X = RNG.normal(0, 1.5, (300, 3))
BITS = RNG.integers(0, 2, (300, 3), dtype=np.uint8)
Y = RNG.integers(0, 2, 300, dtype=np.uint8)
MAPS = {
    "as it was": ([], []),
    "line": ([-2.0, 2.0], [0.7, -1.9]),
    "knots": ([-1.0, -0.5, 0.0, 0.6], [0.4, 0.1, -0.3, -0.35]),
    "constant": ([0.0], [40.0]),
}
HALFSPACE = {"kind": "halfspace", "weights": [1.0, -2.0, 0.0], "bias": 0.25}
STUMP = {"kind": "conjunction", "features": [1], "values": [1], "complement": False}


def linear(loss="logistic", **more):
    learner = learners.PrivateSGD(
        loss=loss, steps=50, batch_size=20, epsilon=math.inf, norm_bound=1.0, **more
    )
    return learner.learn(X, X[:, 0] > 0.3)


def statistics():
    maker = learners.SufficientStatistics(
        learners.FeatureMap.scaling([(-5, 5)] * 3), classes=[0, 1]
    )
    return maker.release(X, X[:, 0] > 0, epsilon=20.0, delta=1e-6).solve(pool=X)


@functools.cache
def result():
    """A result whose model and map the tests replace."""
    agents = local.Agents(np.repeat(X, 20, axis=0), np.repeat(X[:, 0] > 1, 20), epsilon=8.0)
    return transfer.calibrate(HALFSPACE, agents, random_state=1)


def calibrated(model, knots, shifts):
    changed = {"model": model, "knots": np.array(knots), "shifts": np.array(shifts)}
    return dataclasses.replace(result(), **changed)


MODELS = {
    "shrunk": linear,
    "softmax": lambda: linear(loss="softmax", classes=2),
    "statistics": statistics,
    "halfspace": lambda: HALFSPACE,
    "calibrated": lambda: calibrated(linear(), *MAPS["line"]),
    "bits": lambda: learners.ExponentialLearner(learners.Stumps(3), epsilon=9.0).learn(
        BITS, BITS[:, 1]
    ),
    "vote": lambda: {"kind": "vote", "hypotheses": [STUMP, STUMP, {**STUMP, "features": [2]}]},
}


@pytest.fixture(params=MODELS)
def model(request):
    made = MODELS[request.param]()
    return made, BITS if request.param in ("bits", "vote") else X


@pytest.mark.thorough(cases=10)
@pytest.mark.parametrize("name", MAPS)
@pytest.mark.filterwarnings("ignore")
def test_a_device_predicts_and_scores_as_the_calibrated_model(model, name):
    inner, records = model
    made = calibrated(inner, *MAPS[name])
    text = json.dumps(made.hypothesis)
    labels = made.predict(records)
    assert (learners.predictor(text)(records) == labels).all()
    assert (learners.score_of(text)(records) == made.scores(records)).all()
    assert describe_score(made) == describe_score(text) == made.hypothesis
    mistakes = (labels != Y).astype(float)
    # A device has one record, as a list of numbers.
    rows = zip(records.tolist(), Y.tolist(), strict=True)
    assert [local.true_answers(text, [row], [y])[0] for row, y in rows] == mistakes.tolist()
    limit = float(np.quantile(made.scores(records), 0.4))
    for query, answers in (
        (local.Query.wrong(made), mistakes),
        (local.Query.score_above(made, limit), made.scores(records) > limit),
        (local.Query.worse(made, inner), None),
    ):
        told = local.true_answers(query.to_json(), records, Y)
        assert (told == (query(records, Y) if answers is None else answers)).all()


@pytest.mark.filterwarnings("ignore")
def test_a_calibration_by_itself_has_a_description():
    made = result()
    assert made.hypothesis["kind"] == "calibrated"
    assert (learners.predictor(made.hypothesis)(X) == made.predict(X)).all()
    agents = local.Agents(np.repeat(X, 20, axis=0), np.repeat(X[:, 0] > 1, 20), epsilon=8.0)
    again = transfer.calibrate(made, agents, random_state=2)
    assert again.hypothesis["model"] == made.hypothesis
    assert (learners.score_of(json.dumps(again.hypothesis))(X) == again.scores(X)).all()


def test_columns_of_a_frame_are_put_in_order():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abc"))
    model = learners.PrivateSGD(loss="logistic", steps=20, epsilon=math.inf).learn(frame, Y)
    made = calibrated(model, *MAPS["line"])
    turned = learners.score_of(made)(frame[["c", "a", "b"]])
    assert (turned == made.scores(frame)).all()


def nobody(text, count):
    raise AssertionError("somebody was asked")


@pytest.mark.parametrize(
    "ask",
    [
        lambda model, agents: agents.test(model, 90),
        lambda model, agents: transfer.certify(model, agents),
        lambda model, agents: transfer.certify(HALFSPACE, agents, other=model),
        lambda model, agents: transfer.survey({"wrong": local.Query.wrong(model)}, agents),
        lambda model, agents: transfer.calibrate(model, agents),
    ],
    ids=["test", "certify", "compare", "survey", "calibrate"],
)
@pytest.mark.filterwarnings("ignore")
def test_a_model_without_a_description_is_refused_before_anybody_is_asked(ask):
    made = calibrated(lambda X: X[:, 0], *MAPS["line"])
    assert made.hypothesis is None
    agents = local.RemoteAgents(nobody, epsilon=1.0, count=100)
    with pytest.raises(ParameterError, match="description"):
        ask(made, agents)
    assert agents.remaining == 100


@pytest.mark.parametrize(
    "change",
    [
        {"knots": [1.0, 0.0]},
        {"knots": [0.0, 0.0]},
        {"knots": [0.0]},
        {"shifts": [math.nan, 0.0]},
        {"shifts": 3},
        {"model": "halfspace"},
        {"model": {"kind": "unknown"}},
        {"model": {"kind": "softmax", "weights": [[0.0], [1.0], [2.0]]}},
        {"model": {"kind": "linear", "weights": [1.0], "bias": 0.0, "norm_bound": -1.0}},
        {"more": 1},
    ],
)
def test_what_describes_no_calibration_is_refused(change):
    whole = {"kind": "calibrated", "model": HALFSPACE, "knots": [0.0, 1.0], "shifts": [1.0, 2.0]}
    learners.predictor(whole)
    for read in (learners.predictor, learners.score_of):
        with pytest.raises(ParameterError):
            read(whole | change)


def test_calibrations_of_calibrations_end_somewhere():
    described = HALFSPACE
    for depth in range(400):
        described = {"kind": "calibrated", "model": described, "knots": [], "shifts": []}
        if depth == 8:
            assert learners.predictor(described)(X).tolist() == (
                learners.predictor(HALFSPACE)(X).tolist()
            )
    for read in (learners.predictor, learners.score_of):
        with pytest.raises(ParameterError, match="deep"):
            read(described)


def test_a_vote_has_no_calibrated_members():
    made = {"kind": "calibrated", "model": HALFSPACE, "knots": [], "shifts": []}
    with pytest.raises(ParameterError, match="vote"):
        learners.predictor({"kind": "vote", "hypotheses": [made]})


@pytest.mark.filterwarnings("ignore")
def test_the_constant_beside_it_is_described_alike(model):
    inner, records = model
    constant = AlwaysOne(calibrated(inner, *MAPS["knots"]))
    assert learners.predictor(json.dumps(constant.hypothesis))(records).all()
