"""A calibration map from counts of randomized answers: the likelihood, its largest posterior."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .._support.types import Floats
from ..local.estimation import debias

# Cells of an interval between two thresholds, and what is believed of the scores' distribution: a
# mixture of logistic ones, as shares and scales, and the logs of its masses deviate from that, more
# alike where fewer thresholds lie between.
_CELLS = 3
_BELIEFS = ((0.9, 2.0), (0.1, 8.0))
_DEVIATION, _SMOOTHNESS, _ROUGHNESS = 1.5, 2.0, 0.7
_STEPS, _REST = 60, 1e-7
_STARTS = (0.0, -2.0, 2.0)


@dataclass(frozen=True)
class Counts:
    """The randomized answers to questions: how many came, and how many of them are 1.

    A question is 1[score > threshold], or y and 1[score > threshold]; the threshold -inf asks for y
    alone.

    Attributes:
        thresholds: Float array of shape (q,).
        labeled: Bool array of shape (q,), true where the label is part of the question.
        sizes: Int array of shape (q,), the number of answers.
        ones: Int array of shape (q,), the number of answers 1.
    """

    thresholds: Floats
    labeled: NDArray[np.bool_]
    sizes: NDArray[np.int64]
    ones: NDArray[np.int64]

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            np.concatenate([self.thresholds, other.thresholds]),
            np.concatenate([self.labeled, other.labeled]),
            np.concatenate([self.sizes, other.sizes]),
            np.concatenate([self.ones, other.ones]),
        )

    def select(self, chosen: NDArray[np.bool_]) -> Counts:
        """Some of the questions."""
        return Counts(
            self.thresholds[chosen], self.labeled[chosen], self.sizes[chosen], self.ones[chosen]
        )

    def __len__(self) -> int:
        return len(self.thresholds)

    def debias(self, edge: float) -> tuple[Floats, Floats]:
        """Estimate the mean of the true answers to each question, without bias, and its deviation.

        The deviation is the largest that any true mean allows; it is infinite without answers.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            means = debias(self.ones / self.sizes, edge)
            deviations = 0.5 / (edge * np.sqrt(self.sizes))
        return np.where(self.sizes > 0, means, 0.5), deviations


def log_likelihood(counts: Counts, means: Floats, edge: float) -> Floats:
    """Compute ln Pr[ones] for independent answers, but for the binomial coefficients.

    The means have shape (..., q), and the result shape (...).

    An answer to a question of mean mu is 1 with probability (1 - edge) / 2 + edge mu, where edge is
    the randomizer's Pr[truth] - Pr[lie].
    """
    shown = (1 - edge) / 2 + edge * np.clip(means, 0.0, 1.0)
    shown = np.clip(shown, 1e-300, 1 - 2.0**-53)
    terms = counts.ones * np.log(shown) + (counts.sizes - counts.ones) * np.log1p(-shown)
    result: Floats = terms.sum(axis=-1)
    return result


@dataclass(frozen=True)
class Axis:
    """The score axis in cells, and what is believed of the scores before the answers.

    The cells divide the intervals between the thresholds, and there is one beyond each end.

    Attributes:
        middles: Middle of each cell, float array of shape (m,); the end cells are at the ends.
        edges: The bounds of the cells, increasing, shape (m - 1,). Thresholds are among them.
        base: Log of each cell's mass before any answer, shape (m,).
        waves: The deviations of the logs that one unit of each parameter makes, shape (m, w).
    """

    middles: Floats
    edges: Floats
    base: Floats
    waves: Floats

    @classmethod
    def between(cls, thresholds: Floats) -> Axis:
        """Cut the intervals between the thresholds into cells.

        Scores are believed to be those of log-odds, a few of them anywhere.
        """
        places = np.arange(len(thresholds) * _CELLS - _CELLS + 1) / _CELLS
        edges = np.interp(places, np.arange(len(thresholds)), thresholds)
        below = np.zeros(len(edges) + 2)
        below[1:-1] = sum(share * sigmoid(edges / scale) for share, scale in _BELIEFS)
        below[-1] = 1.0
        middles = np.concatenate([edges[:1], (edges[1:] + edges[:-1]) / 2, edges[-1:]])
        places = np.concatenate([places[:1] - 0.5 / _CELLS, places + 0.5 / _CELLS])
        kernel = np.exp(-0.5 * ((places[:, None] - places) / _SMOOTHNESS) ** 2)
        covariance = _DEVIATION**2 * kernel + _ROUGHNESS**2 * np.eye(len(places))
        waves = np.asarray(np.linalg.cholesky(covariance), np.float64)
        return cls(middles, edges, np.log(np.maximum(np.diff(below), 1e-9)), waves)

    def above(self, thresholds: Floats) -> Floats:
        """1 where a cell lies above a threshold, which is a bound of cells, else 0; (q, m)."""
        lower = np.concatenate([[-math.inf], self.edges])
        return (lower >= thresholds[:, None]).astype(np.float64)

    def masses(self, parameters: Floats) -> Floats:
        """The mass of each cell, shape (m,)."""
        logs = self.base + self.waves @ parameters
        powers = np.exp(logs - logs.max())
        masses: Floats = powers / powers.sum()
        return masses


@dataclass(frozen=True)
class Prior:
    """What is believed of the log-odds `basis(s) @ coefficients`, normal and independent.

    Attributes:
        center: Means of the coefficients, shape (k,).
        deviations: Their standard deviations, shape (k,), above 0.
        knots: Scores at which the map may bend; the first two coefficients are slope and intercept,
            each further one is added at its knot, and linearly less up to the next ones.
    """

    center: Floats
    deviations: Floats
    knots: Floats = field(default_factory=lambda: np.zeros(0))

    def basis(self, scores: Floats) -> Floats:
        """The columns that the coefficients multiply, shape (m, k)."""
        columns = [scores, np.ones_like(scores)]
        for place in range(len(self.knots)):
            hat = np.zeros(len(self.knots))
            hat[place] = 1.0
            columns.append(np.interp(scores, self.knots, hat))
        return np.stack(columns, axis=1)


@dataclass(frozen=True)
class Fit:
    """The largest posterior, and its curvature.

    Attributes:
        axis: The cells of the score axis.
        prior: The prior of the coefficients.
        waves: Parameters of the masses, shape (w,).
        coefficients: Coefficients of the log-odds, shape (k,).
        covariance: Inverse of expected information and prior precision, of all w + k parameters.
        posterior: The posterior itself.
        excess: How much the covariance is inflated, since the answers misfit; at least 1.
    """

    axis: Axis
    prior: Prior
    waves: Floats
    coefficients: Floats
    covariance: Floats
    posterior: Posterior
    excess: float

    @property
    def deviations(self) -> Floats:
        """Standard deviations of the coefficients, shape (k,)."""
        tail: Floats = np.sqrt(np.diag(self.covariance)[len(self.waves) :])
        return tail

    @property
    def masses(self) -> Floats:
        """Estimated mass of each cell."""
        return self.axis.masses(self.waves)

    def log_odds(self, scores: Floats) -> Floats:
        """The map before it is made monotone or shrunk."""
        odds: Floats = self.prior.basis(scores) @ self.coefficients
        return odds


class Posterior:
    """The posterior of the masses and coefficients, its gradient and expected information."""

    def __init__(self, counts: Counts, edge: float, axis: Axis, prior: Prior):
        self.counts, self.edge, self.axis, self.prior = counts, edge, axis, prior
        self.above = axis.above(counts.thresholds)
        self.basis = prior.basis(axis.middles)
        self.waves = axis.waves.shape[1]
        self.center = np.concatenate([np.zeros(self.waves), prior.center])
        self.precision = np.concatenate([np.ones(self.waves), 1 / prior.deviations**2])

    def means(self, state: Floats) -> tuple[Floats, Floats]:
        """Means of the true answers, shape (q,), and how each changes, shape (q, w + k)."""
        masses = self.axis.masses(state[: self.waves])
        rates = sigmoid(self.basis @ state[self.waves :])
        labeled = self.counts.labeled[:, None]
        shares = self.above * np.where(labeled, rates, 1.0)
        means = shares @ masses
        by_mass = (masses * (shares - means[:, None])) @ self.axis.waves
        slopes = np.where(labeled, self.above, 0.0) * (masses * rates * (1 - rates))
        return means, np.concatenate([by_mass, slopes @ self.basis], axis=1)

    def value(self, state: Floats) -> float:
        """The log of the posterior, up to a constant."""
        masses = self.axis.masses(state[: self.waves])
        rates = sigmoid(self.basis @ state[self.waves :])
        shares = self.above * np.where(self.counts.labeled[:, None], rates, 1.0)
        distance = float((self.precision * (state - self.center) ** 2).sum())
        return float(log_likelihood(self.counts, shares @ masses, self.edge)) - distance / 2

    def curvature(self, state: Floats) -> tuple[Floats, Floats]:
        """Gradient, and expected information plus prior precision."""
        means, jacobian = self.means(state)
        shown = (1 - self.edge) / 2 + self.edge * means
        spread = np.maximum(shown * (1 - shown), 1e-12)
        surplus = self.counts.ones - self.counts.sizes * shown
        gradient = jacobian.T @ (self.edge * surplus / spread)
        gradient -= self.precision * (state - self.center)
        weights = self.counts.sizes * self.edge**2 / spread
        return gradient, (jacobian.T * weights) @ jacobian + np.diag(self.precision)

    def excess(self, state: Floats) -> float:
        """How much further the answers lie from the fit than their coins explain, at least 1.

        Two standard deviations of the mean misfit count as chance.
        """
        shown = (1 - self.edge) / 2 + self.edge * self.means(state)[0]
        sizes = np.maximum(self.counts.sizes, 1)
        misfits = (self.counts.ones - sizes * shown) ** 2 / np.maximum(
            sizes * shown * (1 - shown), 1e-12
        )
        chance = 1 + 2 * math.sqrt(2 / len(self.counts))
        return max(1.0, float(np.mean(misfits)) / chance)

    def climb(self, state: Floats) -> tuple[float, Floats]:
        """Fisher scoring with damping from one start, until steps gain next to nothing."""
        value, damping = self.value(state), 1e-3
        for _ in range(_STEPS):
            gradient, information = self.curvature(state)
            scaled = information + damping * np.diag(np.diag(information))
            step = np.linalg.solve(scaled, gradient)
            reached = self.value(state + step)
            if reached >= value:
                state, gain, value = state + step, reached - value, reached
                damping = max(damping / 8, 1e-9)
                if gain < _REST * (1 + abs(value)):
                    break
            else:
                damping *= 16
                if damping > 1e12:
                    break
        return value, state


def fit_map(counts: Counts, edge: float, axis: Axis, prior: Prior) -> Fit:
    """Find the map of largest posterior for the answers, from several starts.

    Args:
        counts: The answers.
        edge: Pr[truth] - Pr[lie] of the answers' randomizer.
        axis: The score axis.
        prior: What is believed of the map.
    """
    posterior = Posterior(counts, edge, axis, prior)
    best = -math.inf, posterior.center
    for shift in _STARTS:
        start = posterior.center.copy()
        start[posterior.waves + 1] += shift * min(1.0, prior.deviations[1])
        value, state = posterior.climb(start)
        # Starts that end at the same place are no reason to leave it.
        if value > best[0] + 1e-6:
            best = value, state
    state = best[1]
    _, information = posterior.curvature(state)
    excess = posterior.excess(state)
    covariance = _invert(information) * excess
    split = posterior.waves
    return Fit(axis, prior, state[:split], state[split:], covariance, posterior, excess)


def find_deviations(posterior: Posterior, masses: Floats) -> Floats:
    """Standard deviations of the coefficients, where masses and the center of the prior hold."""
    logs = np.log(np.maximum(masses, 1e-12)) - posterior.axis.base
    waves = np.linalg.solve(posterior.axis.waves, logs)
    state = np.concatenate([waves, posterior.prior.center])
    covariance = _invert(posterior.curvature(state)[1])
    deviations: Floats = np.sqrt(np.diag(covariance)[posterior.waves :])
    return deviations


def _invert(matrix: Floats) -> Floats:
    return np.asarray(np.linalg.inv(matrix), np.float64)


def compare(fit: Fit, odds: Floats, other: Floats) -> tuple[float, float]:
    """The mean log loss of `odds` less that of `other` on the target, and the deviation of it.

    Both are given on the cells.
    The difference is linear in the masses and in the masses of label 1, so that its deviation is
    that of the fit, to first order.
    """
    masses, rates = fit.masses, sigmoid(fit.log_odds(fit.axis.middles))
    losses = softplus(odds) - softplus(other) - rates * (odds - other)
    value = float(masses @ losses)
    by_mass = (masses * (losses - value)) @ fit.axis.waves
    by_rate = -(masses * rates * (1 - rates) * (odds - other)) @ fit.prior.basis(fit.axis.middles)
    gradient = np.concatenate([by_mass, by_rate])
    return value, math.sqrt(max(float(gradient @ fit.covariance @ gradient), 0.0))


def make_monotone(values: Floats, weights: Floats) -> Floats:
    """The nearest values that never fall, in weighted squares: pool adjacent violators."""
    blocks: list[list[float]] = []
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        blocks.append([value, weight, 1])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            last, before = blocks.pop(), blocks[-1]
            total = last[1] + before[1]
            before[0] = (last[0] * last[1] + before[0] * before[1]) / total
            before[1], before[2] = total, before[2] + last[2]
    return np.repeat([block[0] for block in blocks], [int(block[2]) for block in blocks])


def softplus(values: Floats) -> Floats:
    """ln(1 + exp(v)), without overflow."""
    result: Floats = np.logaddexp(0.0, values)
    return result


def sigmoid(values: Floats) -> Floats:
    """1 / (1 + exp(-v)), without overflow."""
    result: Floats = 0.5 * (1 + np.tanh(values / 2))
    return result
