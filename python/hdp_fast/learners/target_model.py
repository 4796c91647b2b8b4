"""A released regression on centered rows: slopes around a mean, clipped between two ends."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .._support.types import Floats
from ..record import PrivacyRecord

# Slopes that explained a smaller share of what noise leaves open were measured to be of no use.
_LEAST_EXPLAINED = 1 / 8
_LEAST_SIGNAL, _LARGEST_SIGNAL = 1e-9, 1e9


@dataclass(frozen=True)
class TargetLaw:
    """How scores become targets, in units in which the bounds of the target are -1 and 1.

    Attributes:
        mean: What is predicted where all slopes add up to 0.
        low: The least prediction.
        high: The largest prediction.
        constant: What stands at the end of rows, where others have a 1.
    """

    mean: float
    low: float
    high: float
    constant: float = 0.0

    def predict(self, rows: Floats, weights: Floats, norm_bound: float) -> Floats:
        """Predict the targets of centered rows, which are shrunk to the norm bound."""
        rows = rows.copy()
        rows[:, -1] = self.constant
        lengths = np.maximum(np.linalg.norm(rows, axis=1), norm_bound)
        scores: Floats = self.mean + (rows @ weights) * (norm_bound / lengths)
        return scores.clip(self.low, self.high)


@dataclass(frozen=True, eq=False)
class TargetModel:
    """What a regression releases of a target that is scaled to [-1, 1].

    Attributes:
        weights: The weights of a centered row, float64 of shape (d,), that of the constant last;
            read-only.
        norm_bound: Norm to which rows are shrunk.
        law: How scores become targets.
        explained: The mean square of what slopes add to the mean, by released moments.
        left: The mean square of what noise leaves open in that.
        record: What protects the records; None without noise.
    """

    weights: Floats
    norm_bound: float
    law: TargetLaw
    explained: float
    left: float
    record: PrivacyRecord | None = None

    @property
    def signal(self) -> float:
        """The root of what slopes explain over an eighth of what noise leaves open, above 0.

        At 1 or below models were measured to be no better than a constant.
        """
        if not self.explained:
            return _LEAST_SIGNAL
        ratio = self.explained / max(_LEAST_EXPLAINED * self.left, self.explained * 1e-18)
        return min(max(math.sqrt(ratio), _LEAST_SIGNAL), _LARGEST_SIGNAL)

    def scores(self, rows: Floats) -> Floats:
        """Compute the predicted targets of centered rows, shape (m, d), within [-1, 1]."""
        return self.law.predict(rows, self.weights, self.norm_bound)
