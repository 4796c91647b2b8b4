"""What the two constant hypotheses err on the target: no estimate says much without them."""

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

    For a linear model of labels 0 and 1 tested by its losses, both are the loss of weights 0, which
    is the same for everybody and needs no agents.

    Attributes:
        zero: error of always 0, in [0, 1]: the share of ones.
        one: error of always 1.
        low: lower end of an interval that holds the better one's, but for beta.
        high: its upper end.
        agents: how many were asked.
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
    """Both errors, from the estimate of that of always 1."""
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
    """The hypothesis that predicts 1, described in the words of another one.

    Attributes:
        hypothesis: None if no agent who knows the other one's kind could read it.
    """

    def __init__(self, other: Hypothesis):
        self.hypothesis = _describe_like(other.hypothesis)

    def predict(self, X: Any, /) -> Bits:
        """Ones (m,)."""
        return np.ones(len(X), np.uint8)


def _describe_like(description: dict[str, Any] | None) -> dict[str, Any] | None:
    kind = None if description is None else description.get("kind")
    if description is None or kind not in (*_OF_BITS, "halfspace", "linear", "vote"):
        return None
    if kind == "vote":
        return _describe_like(description["hypotheses"][0])
    if kind in _OF_BITS:
        return {"kind": "conjunction", "features": [], "values": [], "complement": False}
    return {**description, "weights": [0.0] * len(description["weights"]), "bias": 0.0}
