"""Scores of models of two classes, and their descriptions."""

import json
import math

import numpy as np
import pytest

from hdp_fast import learners
from hdp_fast.exceptions import ParameterError, ShapeError
from hdp_fast.learners import FeatureMap, SufficientStatistics, score_of
from hdp_fast.learners.scores import describe_score

RNG = np.random.default_rng(3)
X = RNG.normal(size=(200, 3)) * [1, 2, 0.5]
Y = (X @ [1.0, -0.5, 0.2] + RNG.normal(size=200) > 0).astype(int)


def log_odds(probabilities):
    return np.log(probabilities[:, 1] / probabilities[:, 0])


def linear(loss, **more):
    learner = learners.PrivateSGD(
        loss=loss, steps=300, batch_size=20, epsilon=math.inf, norm_bound=1.5, **more
    )
    return learner.learn(X, Y)


def statistics(link):
    features = FeatureMap.scaling([(-5, 5)] * 3)
    maker = SufficientStatistics(features, classes=[0, 1], second_moments=link == "linear")
    released = maker.release(X, Y, epsilon=20.0, delta=1e-6)
    return released.solve(pool=X) if link == "logistic" else released.solve()


def test_models_of_this_package_have_log_odds():
    model = linear("logistic")
    assert (score_of(model)(X) == model.scores(X)).all()
    model = linear("softmax", classes=2)
    assert np.allclose(score_of(model)(X), log_odds(model.predict_proba(X)), atol=1e-9)
    model = statistics("logistic")
    assert np.allclose(score_of(model)(X), log_odds(model.predict_proba(X)), atol=1e-9)


def test_a_linear_link_has_log_odds_to_first_order():
    model = statistics("linear")
    assert model.link == "linear"
    scores, share = score_of(model)(X), model.scores(X)[:, 1] + 0.5
    middle = np.abs(share - 0.5) < 0.05
    assert middle.any()
    assert np.allclose(scores[middle], np.log(share / (1 - share))[middle], rtol=0.01)


@pytest.mark.parametrize(
    "make",
    [
        lambda: linear("logistic"),
        lambda: linear("softmax", classes=2),
        lambda: statistics("logistic"),
        lambda: statistics("linear"),
    ],
    ids=["logistic", "softmax", "statistics", "moments"],
)
def test_a_description_of_scores_gives_the_same_scores(make):
    """Shrinking is in it: the scores of long records would differ otherwise."""
    model = make()
    text = json.dumps(describe_score(model))
    assert (score_of(text)(X * 5) == score_of(model)(X * 5)).all()
    assert describe_score(text) == describe_score(model) == json.loads(text)
    batch = score_of(model)(X)
    assert [score_of(model)(row[None])[0] for row in X] == batch.tolist()


def test_columns_of_a_frame_are_put_in_order():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abc"))
    model = learners.PrivateSGD(loss="logistic", steps=50, epsilon=math.inf).learn(frame, Y)
    assert (score_of(model)(frame[["c", "a", "b"]]) == score_of(model)(frame)).all()


def test_votes_are_smoothed_log_odds():
    bits = np.array([[0, 0], [1, 0], [1, 1]])
    stumps = [learners.Stumps(2).hypothesis(i) for i in range(len(learners.Stumps(2)))]
    first = {"kind": "conjunction", "features": [0], "values": [1], "complement": False}
    second = first | {"features": [1]}
    vote = {"kind": "vote", "hypotheses": [first, first, second]}
    expected = [math.log((k + 0.5) / (3 - k + 0.5)) for k in (0, 2, 3)]
    assert np.allclose(score_of(vote)(bits), expected)
    assert (score_of(first)(bits) > 0).tolist() == [False, True, True]
    assert (score_of(vote)(bits.astype(float)) == score_of(vote)(bits)).all()
    assert all(np.isfinite(score_of(stump)(bits)).all() for stump in stumps)


def test_softmax_and_halfspaces_as_descriptions():
    softmax = {"kind": "softmax", "weights": [[0.0, 1.0], [2.0, 0.0]]}
    assert score_of(softmax)([[1.0, 1.0], [0.0, 3.0]]).tolist() == [1.0, -3.0]
    halfspace = {"kind": "halfspace", "weights": [2.0, -1.0], "bias": 0.25}
    assert score_of(json.dumps(halfspace))([[1.0, 1.0]]).tolist() == [1.25]


class Probabilities:
    def predict_proba(self, X):
        share = np.asarray(X)[:, 0]
        return np.stack([1 - share, share], axis=1)


class Decision:
    def decision_function(self, X):
        return np.asarray(X)[:, 0] * 2


def test_models_of_others():
    scores = score_of(Probabilities())(np.array([[0.5], [0.0], [1.0], [0.75]]))
    assert np.isfinite(scores).all()
    assert scores[[0, 3]] == pytest.approx([0, math.log(3)])
    assert scores[1] == -scores[2] == pytest.approx(-40 * math.log(2), rel=1e-9)
    assert score_of(Decision())([[3.0]]).tolist() == [6.0]
    assert score_of(lambda X: np.asarray(X)[:, 0])([[3.0]]).tolist() == [3.0]
    for model in (Probabilities(), Decision(), len):
        assert describe_score(model) is None


def test_a_statistics_model_of_a_function_has_scores_and_no_description():
    features = FeatureMap.from_callable(np.tanh, 3, constant=True)
    release = SufficientStatistics(features, classes=[0, 1]).release(X, Y, epsilon=9.0, delta=1e-6)
    model = release.solve(pool=X)
    assert describe_score(model) is None
    assert np.allclose(score_of(model)(X), log_odds(model.predict_proba(X)), atol=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        object(),
        None,
        3,
        dict,
        "no JSON",
        "[]",
        {"kind": "unknown"},
        {"kind": "linear", "weights": [1.0], "bias": 0.0, "norm_bound": -1.0},
        {"kind": "softmax", "weights": [[0.0], [1.0], [2.0]]},
        {"kind": "statistics", "features": {}, "weights": [1.0]},
        {"kind": "statistics", "weights": [1.0]},
        {"kind": "additive", "cuts": [], "weights": [], "bias": 0.0},
        {"kind": "additive", "cuts": [[1.0, 0.0]], "weights": [[1.0, 2.0]], "bias": 0.0},
        {"kind": "additive", "cuts": [[1.0], []], "weights": [[1.0]], "bias": 0.0},
        {"kind": "additive", "cuts": [[1.0]], "weights": [[1.0, 2.0]], "bias": 0.0},
        {"kind": "additive", "cuts": [[math.nan]], "weights": [[1.0]], "bias": 0.0},
        {"kind": "additive", "cuts": [1.0], "weights": [[1.0]], "bias": 0.0},
    ],
)
def test_what_has_no_score_is_refused(model):
    with pytest.raises(ParameterError):
        score_of(model)


def test_models_of_three_classes_are_refused():
    learner = learners.PrivateSGD(loss="softmax", classes=3, steps=5, epsilon=math.inf)
    with pytest.raises(ParameterError, match="3 classes"):
        score_of(learner.learn(X, Y))


def test_shapes_are_refused():
    with pytest.raises(ShapeError):
        score_of({"kind": "linear", "weights": [1.0], "bias": 0.0})([[1.0, 2.0]])
    with pytest.raises(ShapeError):
        score_of(lambda X: np.zeros(3))([[1.0]])
    three = type("Three", (), {"predict_proba": lambda self, X: np.full((len(X), 3), 1 / 3)})
    with pytest.raises(ShapeError, match="two columns"):
        score_of(three())([[1.0]])
