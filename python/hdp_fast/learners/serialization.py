"""Predictions of a hypothesis from its description alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from .._support.types import Bits
from .descriptions import Description, parse
from .predictions import predict_labels
from .scores import score_of

Predictor = Callable[[Any], Bits]


def predictor(hypothesis: Description | str) -> Predictor:
    """Makes a function that predicts as the described hypothesis does, without its class.

    An agent that receives a released hypothesis needs this function alone.

    Args:
        hypothesis: A description that Hypotheses.hypothesis, LinearModel.hypothesis or
            SoftmaxModel.hypothesis returned, or {"kind": "vote", "hypotheses": [...]} of several
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
