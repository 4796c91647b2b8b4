"""Predictions and scores of described hypotheses, and maps from scores to probabilities."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from .. import _core
from .._core import Features
from .._support.numbers import finite_rows, floats, returned_numbers
from .._support.types import Bits, Floats
from .._support.validate import MOST, bounded_positive, from_json, refuse
from ..exceptions import ParameterError, ShapeError
from .descriptions import (
    Description,
    evaluate_at_least,
    list_literals,
    list_parity,
    pack_features,
    parse,
)
from .feature_maps import FeatureMap
from .linear_model import LinearModel, SoftmaxModel, core_arguments, validate_rows
from .statistics_model import StatisticsModel
from .stored_classes import Halfspaces


def predict_labels(description: Description, X: Any) -> Bits:
    """Predicts the labels of records, shape (m, d), by a description that was parsed.

    Raises:
        ShapeError: The records do not have the features of the hypothesis.
        ParameterError: An entry is none that the hypothesis takes.
    """
    predict = _PREDICTIONS[description["kind"]]
    return predict(description, X)


def _conjunction(description: Description, X: Any) -> Bits:
    features = _features(description, X)
    lists = list_literals([description["features"]], [description["values"]], features.shape[1])
    values = lists.predict(0, features)
    return values ^ np.uint8(description["complement"])


def _parity(description: Description, X: Any) -> Bits:
    features = _features(description, X)
    values = list_parity(description["features"], features.shape[1]).predict(0, features)
    return values ^ np.uint8(description["complement"])


def _at_least(description: Description, X: Any) -> Bits:
    return evaluate_at_least(description, _features(description, X))


def _halfspace(description: Description, X: Any) -> Bits:
    return Halfspaces(np.array([description["weights"]]), np.array([description["bias"]])).predict(
        0, X
    )


def _softmax(description: Description, X: Any) -> Any:
    """The class of the largest score, for rows that are not shrunk: that is the same class."""
    weights, rows = np.array(description["weights"]), finite_rows(X)
    if rows.shape[1] != weights.shape[1]:
        rule = f"the hypothesis has {weights.shape[1]:,} weights for each class"
        raise ShapeError(f"X has {rows.shape[1]:,} columns, but {rule}")
    # No row overflows where its largest entry is 1.
    largest = np.abs(rows).max(axis=1, keepdims=True)
    return (rows / np.where(largest > 0, largest, 1) @ weights.T).argmax(axis=1)


def _additive(description: Description, X: Any) -> Bits:
    return (_additive_score(description)(X) >= 0).astype(np.uint8)


def _vote(description: Description, X: Any) -> Bits:
    voters = description["hypotheses"]
    if all(voter["kind"] not in ("halfspace", "linear", "additive") for voter in voters):
        X = pack_features(X)
    votes = predict_labels(voters[0], X).astype(np.int64)
    for voter in voters[1:]:
        votes += predict_labels(voter, X)
    return (2 * votes > len(voters)).astype(np.uint8)


def _features(description: Description, X: Any) -> Features:
    """Pack the records, which must have all features of the hypothesis."""
    features = pack_features(X)
    largest = max(description["features"], default=-1)
    if largest >= features.shape[1]:
        rule = f"the hypothesis asks feature {largest}"
        raise ShapeError(f"X has shape {features.shape}, but {rule}")
    return features


_PREDICTIONS: dict[str, Callable[[Description, Any], Bits]] = {
    "conjunction": _conjunction,
    "parity": _parity,
    "at_least": _at_least,
    "halfspace": _halfspace,
    "linear": _halfspace,
    "additive": _additive,
    "softmax": _softmax,
    "vote": _vote,
}


# Records of shape (m, d) in, scores of shape (m,) out.
Score = Callable[[Any], Floats]
Predictor = Callable[[Any], Bits]

# A probability counts as no nearer to 0 and 1 than this.
_LEAST_PROBABILITY = 2.0**-40
_LINEAR = {"kind", "weights", "bias", "norm_bound"}
_STATISTICS = {"kind", "features", "weights"}


def score_of(model: Any) -> Score:
    """Makes the function that scores records as a model of two classes does.

    A score grows with the probability of the label 1, and is a log-odds where the model has one.
    For LinearModel it is the model's own score, a log-odds for the logistic loss. For SoftmaxModel
    and StatisticsModel of two classes it is the difference of their scores; the estimates of a
    StatisticsModel with a linear link are scaled so that they equal log-odds to first order about
    probability 1/2. For k votes out of n it is `log((k + 1/2) / (n - k + 1/2))`, and a single
    hypothesis counts as a vote of one. For any other model it is the log-odds of column 1 of
    `predict_proba`, where a probability counts as at least `2**-40` and at most `1 - 2**-40`, or
    else its `decision_function`. The score of a transfer.CalibratedModel is its own log-odds.

    Args:
        model: A model of this package for two classes; a result with a description `hypothesis`, or
            such a description or its JSON; any object with a method predict_proba, of two columns,
            or decision_function; or a function that returns scores itself.

    Returns:
        A function of records X of shape (m, d) that returns a float64 array of shape (m,). It
        raises what the model raises about records that do not fit, and ShapeError where the model
        does not return one score for each record.

    Raises:
        ParameterError: The model is none of these, or has more or fewer classes than two.

    Cost:
        A pass of the model over X.

    Examples:
        >>> from hdp_fast.learners import score_of
        >>> score = score_of({"kind": "halfspace", "weights": [1.0, -2.0], "bias": 0.5})
        >>> score([[1.0, 0.5], [0.0, 1.0]]).tolist()
        [0.5, -1.5]
        >>> vote = {"kind": "parity", "features": [0], "complement": False}
        >>> score_of({"kind": "vote", "hypotheses": [vote] * 3})([[1], [0]]).round(2).tolist()
        [1.95, -1.95]
    """
    rule = "it must have predict_proba, decision_function or a description, or be a function"
    if isinstance(model, type):
        raise ParameterError(f"model is the class {model.__name__}, but {rule}: pass an instance")
    if isinstance(model, StatisticsModel):
        # Its description holds the whole feature map as text.
        return _statistics_score(model.features, _difference(model))
    description = describe_score(model)
    if description is not None:
        names = getattr(model, "feature_names_in_", None)
        return _SCORES[description["kind"]](description, names)
    if callable(getattr(model, "predict_proba", None)):
        return partial(_log_odds, model)
    if callable(getattr(model, "decision_function", None)):
        return partial(_call, "model.decision_function(X)", model.decision_function)
    if callable(model):
        return partial(_call, "model(X)", model)
    raise ParameterError(f"model is {type(model).__name__}, but {rule}")


def describe_score(model: Any) -> Description | None:
    """Describe the score of a model as a dict that JSON can carry; None where there is none.

    A description of scores says more than one of predictions: how records are shrunk, and what the
    feature map is. `score_of` reads both.

    Raises:
        ParameterError: The model has more or fewer classes than two, or is a description that
            breaks its rules.
    """
    if isinstance(model, str | Mapping):
        return _parse(model)
    if isinstance(model, LinearModel):
        return _linear_form(model.weights, 0.0, model.loss.norm_bound)
    if isinstance(model, SoftmaxModel):
        _require_two(model, model.classes)
        difference = model.weights[:, 1] - model.weights[:, 0]
        return _linear_form(difference, 0.0, model.loss.norm_bound)
    if isinstance(model, StatisticsModel):
        return _describe_statistics(model)
    hypothesis = getattr(model, "hypothesis", None)
    if not isinstance(hypothesis, Mapping):
        return None
    # Where there are probabilities, they say more than a description of predictions.
    if hasattr(model, "predict_proba") and hypothesis.get("kind") != "calibrated":
        return None
    return _parse(hypothesis)


@dataclass(frozen=True, eq=False)
class ScoredModel:
    """A model with its score and its description, each made once for many questions."""

    model: Any
    score: Score
    # Whether it takes records of so many floats, as far as a question has found out.
    takes_floats: dict[int, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Any) -> ScoredModel:
        """Reads a model as score_of does; one that was read before as it is.

        Raises:
            ParameterError: It has no score for two classes.
        """
        return model if isinstance(model, cls) else cls(model, score_of(model))

    @cached_property
    def description(self) -> Description | None:
        """The description of the score; None where there is none."""
        return describe_score(self.model)


def describe_calibrated(model: Any, knots: Floats, shifts: Floats) -> Description | None:
    """Describe the score of a model plus a shift; None where that model has no description.

    Raises:
        ParameterError: The model has more or fewer classes than two.
    """
    described = describe_score(model)
    if described is None:
        return None
    lists = {"knots": knots.tolist(), "shifts": shifts.tolist()}
    return {"kind": "calibrated", "model": described, **lists}


def shift_scores(scores: Floats, knots: Floats, shifts: Floats) -> Floats:
    """Scores plus the shift of a map."""
    shifted: Floats = scores + shift_at(scores, knots, shifts)
    return shifted


def shift_at(scores: Floats, knots: Floats, shifts: Floats) -> Floats:
    """The shift of a map: linear between the knots, constant beyond them, 0 without any."""
    if not len(knots):
        return np.zeros_like(scores)
    shift: Floats = np.interp(scores, knots, shifts)
    return shift


def save_loss(scores: Floats, shifts: Floats, labels: Floats | float) -> Floats:
    """How much log loss, log(1 + exp(s)) - y s, shifts of scores save, however large these are."""
    moved = scores + shifts
    rises = np.where(scores > 0, np.maximum(shifts, -scores), np.maximum(moved, 0.0))
    rises += np.log1p(np.exp(-np.abs(moved))) - np.log1p(np.exp(-np.abs(scores)))
    saved: Floats = labels * shifts - rises
    return saved


def to_log_odds(shares: Floats) -> Floats:
    """Log-odds of probabilities, which count as no nearer to 0 and 1 than the least one."""
    shares = shares.clip(_LEAST_PROBABILITY, 1 - _LEAST_PROBABILITY)
    odds: Floats = np.log(shares / (1 - shares))
    return odds


def _require_two(model: Any, classes: int) -> None:
    if classes != 2:
        raise ParameterError(f"model has {classes} classes, but a score needs two: {model!r}")


def _linear_form(weights: Floats, bias: float, norm_bound: float | None) -> Description:
    return {
        "kind": "linear",
        "weights": weights.tolist(),
        "bias": bias,
        "norm_bound": norm_bound,
    }


def _describe_statistics(model: StatisticsModel) -> Description | None:
    weights = _difference(model).tolist()
    if model.features.function is not None:
        return None
    return {
        "kind": "statistics",
        "features": json.loads(model.features.to_json()),
        "weights": weights,
    }


def _difference(model: StatisticsModel) -> Floats:
    """What the features are multiplied with: differences of log-odds, or of probabilities."""
    if model.classes is None:
        refuse("model", model, "it predicts targets, but a score needs two classes")
    _require_two(model, len(model.classes))
    difference: Floats = model.coefficients[:, 1] - model.coefficients[:, 0]
    return difference if model.link == "logistic" else 2 * difference


# Descriptions ------------------------------------------------------------------------------------


def _parse(description: Mapping[str, Any] | str) -> Description:
    if isinstance(description, str):
        return from_json("model", description, "a description of a model", _parse_mapping)
    return _parse_mapping(description)


def _parse_mapping(description: Any) -> Description:
    if not isinstance(description, Mapping):
        rule = "it must be a description of a hypothesis, a dict or its JSON"
        raise ParameterError(f"model is {type(description).__name__}, but {rule}")
    if description.get("kind") == "statistics":
        return _parse_statistics(description)
    norm_bound = description.get("norm_bound")
    is_linear = description.keys() == _LINEAR
    rest = {key: part for key, part in description.items() if key != "norm_bound" or not is_linear}
    checked = parse(rest)
    if checked["kind"] == "softmax":
        weights = np.array(checked["weights"])
        _require_two(checked["kind"], len(weights))
        return _linear_form(weights[1] - weights[0], 0.0, None)
    if checked["kind"] == "calibrated":
        return {**checked, "model": _parse_mapping(checked["model"])}
    if checked["kind"] in ("linear", "halfspace"):
        bound = None if norm_bound is None else bounded_positive("norm_bound", norm_bound)
        return _linear_form(np.array(checked["weights"]), checked["bias"], bound)
    return checked


def _parse_statistics(description: Mapping[str, Any]) -> Description:
    if description.keys() != _STATISTICS:
        refuse("model", description, "its keys must be kind, features and weights")
    features = FeatureMap.from_json(json.dumps(description["features"]))
    weights = parse({"kind": "linear", "weights": description["weights"], "bias": 0})["weights"]
    if len(weights) != features.columns:
        rule = f"the feature map has {features.columns:,} features"
        raise ParameterError(f"model has {len(weights):,} weights, but {rule}")
    return {**description, "weights": weights}


# Scores ------------------------------------------------------------------------------------------


def _linear_score(description: Description, names: Any = None) -> Score:
    weights, norm_bound = np.array(description["weights"]), description["norm_bound"]
    shrink = MOST if norm_bound is None else norm_bound

    def score(X: Any) -> Floats:
        """A row's score depends on that row alone, to the last bit, unlike in a BLAS product."""
        rows = validate_rows(X, names)
        if rows.entries.shape[1] != len(weights):
            rule = f"the model has {len(weights):,} weights"
            raise ShapeError(f"X has {rows.entries.shape[1]:,} columns, but {rule}")
        records = core_arguments(rows, np.zeros(len(rows)))
        scores: Floats = _core.linear_scores(records, shrink, weights) + description["bias"]
        return scores

    return score


def _additive_score(description: Description, names: Any = None) -> Score:
    """A bias, and for each feature the weights of all cuts that are at most its value."""
    cuts = [np.array(some, np.float64) for some in description["cuts"]]
    values = [np.cumsum([0.0, *some]) for some in description["weights"]]

    def score(X: Any) -> Floats:
        """A row's score depends on that row alone, to the last bit."""
        rows = finite_rows(X)
        if rows.shape[1] != len(cuts):
            rule = f"the additive model reads {len(cuts):,}, those that schema.floats makes"
            raise ShapeError(f"X has {rows.shape[1]:,} columns, but {rule}")
        scores = np.full(len(rows), float(description["bias"]))
        for column, (places, steps) in enumerate(zip(cuts, values, strict=True)):
            if len(places):
                scores += steps[np.searchsorted(places, rows[:, column], side="right")]
        return scores

    return score


def _statistics_score(features: FeatureMap, weights: Floats) -> Score:
    score = _linear_score(_linear_form(weights, 0.0, None))
    return lambda X: score(features(X))


def _described_statistics(description: Description, names: Any = None) -> Score:
    features = FeatureMap.from_json(json.dumps(description["features"]))
    return _statistics_score(features, np.array(description["weights"]))


def _vote_score(description: Description, names: Any = None) -> Score:
    voters = description["hypotheses"] if description["kind"] == "vote" else [description]
    counts = Counter(json.dumps(voter) for voter in voters)
    different = [(times, json.loads(text)) for text, times in counts.items()]

    def score(X: Any) -> Floats:
        records = with_bits(X)
        votes: Any = sum(
            times * predict_labels(voter, records).astype(np.int64) for times, voter in different
        )
        odds: Floats = np.log((votes + 0.5) / (len(voters) - votes + 0.5))
        return odds

    return score


def _calibrated_score(description: Description, names: Any = None) -> Score:
    inner = description["model"]
    score = _SCORES[inner["kind"]](inner, names)
    knots, shifts = (np.array(description[name], float) for name in ("knots", "shifts"))
    return lambda X: shift_scores(score(X), knots, shifts)


def with_bits(X: Any) -> Any:
    """Floats that are all 0 and 1 as bits, which is what hypotheses of bits take."""
    if isinstance(X, np.ndarray) and X.dtype.kind == "f" and ((X == 0) | (X == 1)).all():
        return X.astype(np.uint8)
    return X


_SCORES: dict[str, Callable[[Description, Any], Score]] = {
    "linear": _linear_score,
    "additive": _additive_score,
    "statistics": _described_statistics,
    "vote": _vote_score,
    "conjunction": _vote_score,
    "parity": _vote_score,
    "at_least": _vote_score,
    "calibrated": _calibrated_score,
}


def _log_odds(model: Any, X: Any) -> Floats:
    probabilities = np.asarray(model.predict_proba(X))
    if probabilities.ndim != 2 or probabilities.shape[1] != 2:
        rule = "it must have two columns, since a score needs two classes"
        raise ShapeError(f"model.predict_proba(X) has shape {probabilities.shape}, but {rule}")
    shares = _call("model.predict_proba(X)", lambda _: probabilities[:, 1], X)
    return to_log_odds(shares)


def _call(name: str, function: Callable[[Any], Any], X: Any) -> Floats:
    return floats(returned_numbers(name, function(X), len(X)))


# Labels ------------------------------------------------------------------------------------------


def predictor(hypothesis: Description | str) -> Predictor:
    """Makes a function that predicts as the described hypothesis does, without its class.

    An agent that receives a released hypothesis needs this function alone.

    Args:
        hypothesis: A description that Hypotheses.hypothesis, LinearModel.hypothesis,
            SoftmaxModel.hypothesis or PrivateModel.hypothesis returned, or
            {"kind": "vote", "hypotheses": [...]} of several
            such descriptions, as a dict or as JSON. A vote is 1 where more than half of its
            hypotheses are. What transfer.CalibratedModel.hypothesis returned is 1 where its score
            is at least 0.

    Returns:
        A function of records X of shape (m, d), bits or, for halfspaces and linear models, real
        numbers. It returns a uint8 array of shape (m,), for softmax models an int64 array of
        classes, and raises ShapeError or ParameterError for
        records that do not fit the hypothesis.

    Raises:
        ParameterError: The argument is no description of a hypothesis.

    Cost:
        Linear in the description; the function passes over X once for each hypothesis.

    Examples:
        >>> from hdp_fast.learners import predictor
        >>> predict = predictor('{"kind": "halfspace", "weights": [1.0, -2.0], "bias": 0.5}')
        >>> predict([[1.0, 0.5], [0.0, 1.0]])
        array([1, 0], dtype=uint8)
    """
    description = parse(hypothesis)
    if description["kind"] != "calibrated":
        return partial(predict_labels, description)
    score = score_of(description)
    return lambda X: np.asarray(score(X) >= 0, np.uint8)
