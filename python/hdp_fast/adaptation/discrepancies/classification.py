"""Lower bounds on the discrepancy for losses whose supremum cannot be computed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..._support.json_text import JsonText
from ..._support.notes import keep_result
from ..._support.types import Floats
from ..._support.validate import LEAST, bits, bounded_positive, one_of, positive_int, read_only
from .moments import WIDE, Ball, Sample, moments, refuse_beyond, validate_samples

ClassificationLoss = Literal["logistic", "zero_one"]

# Width of the sigmoid that stands for the zero-one loss, in units of the mean magnitude of scores.
_TEMPERATURE = 0.1


@dataclass(frozen=True, eq=False)
class DiscrepancyLowerBound(JsonText):
    """The difference of mean losses at some weights; at other weights it may be larger.

    Attributes:
        lower_bound: `sign * (mean target loss - mean source loss)` at w. It may be negative after
            very few steps from a single start, and says nothing then.
        w: The weights, float64 of shape (d,), read-only.
        sign: 1 where the target's loss was made the larger one, -1 where the source's was.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.adaptation import classification_discrepancy
        >>> X, y = np.array([[1.0], [-1.0]]), np.array([1, 0])
        >>> bound = classification_discrepancy(X, y, X, 1 - y, radius=2)
        >>> print(f"{bound.lower_bound:.3f} at |w| = {abs(bound.w[0]):.3f}")
        2.000 at |w| = 2.000
    """

    lower_bound: float
    w: Floats
    sign: int


class _Loss(NamedTuple):
    """A loss of scores and labels -1 and 1, and the slope in the score that the ascent uses."""

    loss: Callable[[Floats, Floats], Floats]
    slope: Callable[[Floats, Floats], Floats]


@keep_result
def classification_discrepancy(
    X_source: ArrayLike,
    y_source: ArrayLike,
    X_target: ArrayLike,
    y_target: ArrayLike,
    *,
    radius: float,
    loss: ClassificationLoss = "logistic",
    starts: int = 4,
    steps: int = 100,
) -> DiscrepancyLowerBound:
    """Computes a lower bound on the discrepancy of two samples under a loss of classifiers.

    The discrepancy is the supremum of |mean target loss - mean source loss| over |w| <= radius. It
    is not concave in w, and no method finds it with certainty. Projected ascent from several
    starts, for both signs of the difference, finds weights; the bound is the difference at the best
    of these. It must not be released with the sensitivity of the supremum: one record can send the
    ascent elsewhere and change the bound by more.

    Args:
        X_source: Records of the source, finite real numbers of shape (m, d) and norm at most 1e30,
            m and d at least 1.
        y_source: Labels of the source, shape (m,), bool or integers 0 and 1, which stand for -1 and
            1.
        X_target: Records of the target, finite real numbers of shape (n, d) and norm at most 1e30,
            n at least 1.
        y_target: Labels of the target, shape (n,), bool or integers 0 and 1.
        radius: Bound on the norm of the weights, in [1e-30, 1e30].
        loss: "logistic", ln(1 + exp(-y w . x)); or "zero_one", the error of predicting 1 where w .
            x >= 0. The ascent on "zero_one" follows a sigmoid, and the bound is the zero-one loss
            itself.
        starts: Number of directions to start from, 1 to 1000: those in which the squared loss
            differs most. There are at most 2 d of these. The direction of steepest ascent at 0 is
            always added.
        steps: Number of steps of each ascent, from 1 to `10**6`; step t has length radius /
            sqrt(t).

    Returns:
        The bound and the weights that attain it.

    Raises:
        ShapeError: An array has another shape than described.
        ParameterError: An entry is no finite real number, a label is neither 0 nor 1, a parameter
            is out of range, or the frames of both samples have different columns.

    Cost:
        4 (starts + 1) steps passes over the rows, one pass of `O((m + n) d**2)`, and `O(d**3)`; a
        copy of X unless it is float64.

    Source:
        Bassily, Cortes, Mao and Mohri 2024, (1); ascent with steps radius / sqrt(t).

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.adaptation import classification_discrepancy
        >>> X = np.linspace(-1, 1, 200)[:, None]
        >>> y_source, y_target = (X[:, 0] > 0).astype(int), (X[:, 0] > 0.5).astype(int)
        >>> bound = classification_discrepancy(X, y_source, X, y_target, radius=1, loss="zero_one")
        >>> print(f"{bound.lower_bound:.2f} at w = {bound.w.round(3)}, sign {bound.sign}")
        0.25 at w = [1.], sign 1
    """
    one_of("loss", loss, _LOSSES)
    largest, rounds = bounded_positive("radius", radius), positive_int("steps", steps, 10**6)
    wanted = positive_int("starts", starts, 1000)
    labels = [2.0 * bits(f"y_{name}", y) - 1 for name, y in _name_labels(y_source, y_target)]
    source, target = validate_samples(X_source, labels[0], X_target, labels[1])
    for sample in (source, target):
        refuse_beyond(sample, WIDE)
    ascent = _Ascent(_FloatSample.of(target), _FloatSample.of(source), _LOSSES[loss], largest)
    directions = [ascent.gradient_at_zero(), *_starts(source, target, wanted)]
    bounds = [ascent.best(start, sign, rounds) for sign in (1, -1) for start in directions]
    return max(bounds, key=lambda bound: bound.lower_bound)


class _FloatSample(NamedTuple):
    """A sample whose rows are multiplied as float64."""

    X: Floats
    y: Floats

    @classmethod
    def of(cls, sample: Sample) -> _FloatSample:
        return cls(sample.X.astype(np.float64, copy=False), sample.y)


@dataclass(frozen=True, eq=False)
class _Ascent:
    """Projected ascent on the difference of the mean losses of two samples, in a ball."""

    target: _FloatSample
    source: _FloatSample
    loss: _Loss
    radius: float

    def best(self, start: Floats, sign: int, steps: int) -> DiscrepancyLowerBound:
        """Return the weights of largest difference on the path of the ascent from a direction."""
        best = np.zeros_like(start)
        highest, w = -math.inf, self._step(best, sign * start, 1.0)
        for step in range(1, steps + 1):
            scores = self.target.X @ w, self.source.X @ w
            height = sign * self._difference(*scores)
            if height > highest:
                best, highest = w, height
            w = self._step(w, sign * self._gradient(*scores), 1 / np.sqrt(step))
        return DiscrepancyLowerBound(highest, read_only(best), sign)

    def gradient_at_zero(self) -> Floats:
        """Return the gradient at 0."""
        return self._gradient(np.zeros(len(self.target.y)), np.zeros(len(self.source.y)))

    def _difference(self, target: Floats, source: Floats) -> float:
        loss = self.loss.loss
        return float(loss(target, self.target.y).mean() - loss(source, self.source.y).mean())

    def _gradient(self, target: Floats, source: Floats) -> Floats:
        slopes = self.loss.slope(target, self.target.y), self.loss.slope(source, self.source.y)
        ascent: Floats = slopes[0] @ self.target.X / len(target)
        return ascent - slopes[1] @ self.source.X / len(source)

    def _step(self, w: Floats, direction: Floats, share: float) -> Floats:
        """Move by this share of the radius along the direction, and back into the ball."""
        length = float(np.linalg.norm(direction))
        end = w + direction * (share * self.radius / length) if length > 0 else w.copy()
        norm = float(np.linalg.norm(end))
        return end * (self.radius / norm) if norm > self.radius else end


def _name_labels(y_source: ArrayLike, y_target: ArrayLike) -> tuple[tuple[str, ArrayLike], ...]:
    return ("source", y_source), ("target", y_target)


def _starts(source: Sample, target: Sample, wanted: int) -> list[Floats]:
    """Return eigenvectors of the difference of squared losses, both ways, the largest first."""
    unit = Ball(np.zeros(source.X.shape[1]), 1.0)
    H = moments(target, WIDE, unit).matrix - moments(source, WIDE, unit).matrix
    values, vectors = np.linalg.eigh(H[:-1, :-1])
    order = np.argsort(-np.abs(values))[: (wanted + 1) // 2]
    return [sign * vectors[:, i] for i in order for sign in (1, -1)][:wanted]


def _sigmoid(x: Floats) -> Floats:
    probability: Floats = (1 + np.tanh(x / 2)) / 2
    return probability


def _logistic(scores: Floats, y: Floats) -> Floats:
    losses: Floats = np.logaddexp(0, -y * scores)
    return losses


def _logistic_slope(scores: Floats, y: Floats) -> Floats:
    return -y * _sigmoid(-y * scores)


def _zero_one(scores: Floats, y: Floats) -> Floats:
    wrong: Floats = ((scores >= 0) != (y > 0)).astype(np.float64)
    return wrong


def _zero_one_slope(scores: Floats, y: Floats) -> Floats:
    """Return the slope of a sigmoid.

    Its temperature follows the scores, so that |w| does not matter.
    """
    temperature = max(_TEMPERATURE * float(np.abs(scores).mean()), LEAST)
    likely = _sigmoid(scores / temperature)
    slopes: Floats = -y * likely * (1 - likely)
    return slopes


_LOSSES = {
    "logistic": _Loss(_logistic, _logistic_slope),
    "zero_one": _Loss(_zero_one, _zero_one_slope),
}
