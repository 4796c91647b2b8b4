"""Errors of the two constant hypotheses on the target, with which every estimate is compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import local
from .._support.types import Bits
from ..learners.linear_model import LinearModel
from ..local.pool import Hypothesis

_OF_BITS = ("conjunction", "parity", "at_least")


@dataclass(frozen=True)
class Constants:
    """Estimated errors of the two hypotheses that predict the same label for everybody.

    An estimate of a hypothesis says little without them. For a linear model of labels 0 and 1,
    which is tested by its losses, both are the loss of weights 0, which is the same for everybody
    and needs no agents.

    Attributes:
        zero: Error of always 0, in [0, 1]: the share of ones.
        one: Error of always 1, in [0, 1]: the share of zeros.
        low: Lower end of an interval that holds the smaller of the two errors, except with
            probability beta.
        high: Upper end of that interval.
        agents: Number of agents who answered.

    Examples:
        >>> import math, numpy as np
        >>> from hdp_fast import learners, local, transfer
        >>> S, T = np.random.default_rng(0).integers(0, 2, (2, 20_000, 4), dtype=np.uint8)
        >>> agents = local.Agents(T, T[:, 1] & T[:, 2], epsilon=2.0)
        >>> learner = learners.ExponentialLearner(learners.Conjunctions(4, 2), epsilon=1.0)
        >>> goal = {"alpha": 0.1, "epsilon": math.inf, "rounds": 8, "draws": 2000}
        >>> model = transfer.SubsampleTestReweigh(learner, **goal).fit(S, S[:, 1] & S[:, 2], agents)
        >>> bool(abs(model.result_.constants.better - 0.25) < 0.2)  # a quarter of the labels is 1
        True
    """

    zero: float
    one: float
    low: float
    high: float
    agents: int

    @property
    def better(self) -> float:
        """The smaller of the two errors."""
        return min(self.zero, self.one)


def read_constants(estimate: local.Estimate, agents: int) -> Constants:
    """Both errors, from the estimate of the error of always 1."""
    one, low, high = estimate
    ends = (low, high) if one <= 1 - one else (1 - high, 1 - low)
    return Constants(1 - one, one, *ends, agents)


def constant_loss(hypothesis: Any) -> Constants | None:
    """The loss of a linear model of weights 0; None where it depends on the records."""
    if not isinstance(hypothesis, LinearModel) or hypothesis.loss.label_bound is not None:
        return None
    d = len(hypothesis.weights)
    model = LinearModel(np.zeros(d), hypothesis.loss)
    loss = float(model.losses(np.zeros((1, d)), [0])[0])
    return Constants(loss, loss, loss, loss, 0)


class AlwaysOne:
    """The hypothesis that predicts 1, described as a hypothesis of the kind of another one.

    Attributes:
        hypothesis: The description; None if there is none that agents who know the other kind could
            read.
    """

    def __init__(self, other: Hypothesis):
        self.hypothesis = _describe_like(other.hypothesis)

    def predict(self, X: Any, /) -> Bits:
        """Predicts 1 for each record."""
        return np.ones(len(X), np.uint8)


def _describe_like(description: dict[str, Any] | None) -> dict[str, Any] | None:
    kind = None if description is None else description.get("kind")
    if description is not None and kind == "calibrated":
        like = _describe_like(description["model"])
        return None if like is None else {**description, "model": like, "knots": [], "shifts": []}
    if description is not None and kind == "statistics":
        return {**description, "weights": [0.0] * len(description["weights"])}
    if description is None or kind not in (*_OF_BITS, "halfspace", "linear", "vote"):
        return None
    if kind == "vote":
        return _describe_like(description["hypotheses"][0])
    if kind in _OF_BITS:
        return {"kind": "conjunction", "features": [], "values": [], "complement": False}
    return {**description, "weights": [0.0] * len(description["weights"]), "bias": 0.0}
