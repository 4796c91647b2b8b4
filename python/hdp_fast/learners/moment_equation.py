"""Linear models from noisy moments: the logistic moment equation, and least squares."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .._support.types import Floats

# Above this number of coefficients the Hessian is not formed, but taken for a Kronecker product.
MOST_EXACT = 1_024
_STEPS, _PRODUCTS, _HALVINGS = 100, 400, 40
# The penalty is searched from this share of the largest one on, beginning with the second one.
_LEAST_SHARE, _FIRST_SHARE = 1e-5, 0.08
_CLOSE, _SOLUTIONS = 0.02, 20
_ROUGH, _FINE = 1e-3, 1e-8


class Solution(NamedTuple):
    """A solution, and how far it may be from the exact one.

    Attributes:
        weights: The coefficients, shape (d, K).
        error: Bound on the Euclidean distance of `weights` from the exact solution, relative to
            their norm. It follows from the gradient, since the objective is strongly convex.
    """

    weights: Floats
    error: float


@dataclass(frozen=True)
class LogisticMoments:
    """The equation that multinomial logistic regression solves, with features from a public pool.

    The solution minimizes, over W of shape (d, K),

        mean over the pool of logsumexp(W^T phi) - <W, moments> + penalty * `|W|**2` / 2.

    Attributes:
        pool: Features of the pool, shape (m, d).
        moments: What the mean of phi p^T must be, shape (d, K).
    """

    pool: Floats
    moments: Floats

    @cached_property
    def spectrum(self) -> tuple[Floats, Floats]:
        """Eigenvalues and eigenvectors of the pool's second moments."""
        values, vectors = np.linalg.eigh(self.pool.T @ self.pool / len(self.pool))
        return np.maximum(values, 0.0), vectors

    def solve(
        self, penalty: float, start: Floats | None = None, tolerance: float = _FINE
    ) -> Solution:
        """Solve by Newton's method, each step by preconditioned conjugate gradients."""
        weights = np.zeros_like(self.moments) if start is None else start
        value, probabilities = self._evaluate(weights, penalty)
        error = math.inf
        for _ in range(_STEPS):
            gradient = self._gradient(weights, probabilities, penalty)
            size = float(np.linalg.norm(gradient))
            # |W - W*| <= |gradient| / penalty by strong convexity.
            error = size / penalty / max(float(np.linalg.norm(weights)), 1e-300)
            if error <= tolerance or not size:
                break
            accuracy = min(0.1, math.sqrt(error))
            step = self._newton_step(gradient, probabilities, penalty, accuracy)
            slope = float((gradient * step).sum())
            length, moved = 1.0, None
            for _ in range(_HALVINGS):
                moved = weights - length * step
                new_value, new_probabilities = self._evaluate(moved, penalty)
                if new_value <= value - 1e-4 * length * slope:
                    break
                length /= 2
            else:
                break  # The value cannot be told from its neighbors any more.
            weights, value, probabilities = moved, new_value, new_probabilities
        return Solution(weights, error if size else 0.0)

    def hessian_product(self, probabilities: Floats, penalty: float) -> Callable[[Floats], Floats]:
        """Return the function that multiplies (d, K) with the Hessian."""

        def multiply(direction: Floats) -> Floats:
            scores = probabilities * (self.pool @ direction)
            scores -= probabilities * scores.sum(axis=1, keepdims=True)
            product: Floats = self.pool.T @ scores / len(self.pool) + penalty * direction
            return product

        return multiply

    def probabilities(self, weights: Floats) -> Floats:
        """Compute the model's probabilities on the pool, shape (m, K)."""
        return softmax(self.pool @ weights)

    def _evaluate(self, weights: Floats, penalty: float) -> tuple[float, Floats]:
        scores = self.pool @ weights
        largest = scores.max(axis=1, keepdims=True)
        powers = np.exp(scores - largest)
        sums = powers.sum(axis=1, keepdims=True)
        mean = float((largest + np.log(sums)).mean())
        square = float((weights**2).sum())
        value = mean - float((weights * self.moments).sum()) + penalty * square / 2
        return value, powers / sums

    def _gradient(self, weights: Floats, probabilities: Floats, penalty: float) -> Floats:
        gradient: Floats = (
            self.pool.T @ probabilities / len(self.pool) - self.moments + penalty * weights
        )
        return gradient

    def _newton_step(
        self, gradient: Floats, probabilities: Floats, penalty: float, accuracy: float
    ) -> Floats:
        multiply = self.hessian_product(probabilities, penalty)
        precondition = self._preconditioner(probabilities, penalty)
        step, residual = np.zeros_like(gradient), gradient.copy()
        scaled = precondition(residual)
        direction, product = scaled, float((residual * scaled).sum())
        enough = accuracy**2 * product
        for _ in range(_PRODUCTS):
            image = multiply(direction)
            length = product / float((direction * image).sum())
            step = step + length * direction
            residual = residual - length * image
            scaled = precondition(residual)
            last, product = product, float((residual * scaled).sum())
            if product <= enough:
                break
            direction = scaled + product / last * direction
        return step

    def _preconditioner(self, probabilities: Floats, penalty: float) -> Callable[[Floats], Floats]:
        """Return the inverse of a Kronecker product that is close to the Hessian."""
        values, vectors = self.spectrum
        levels, mixtures = np.linalg.eigh(class_covariance(probabilities))
        inverse = 1 / (np.outer(values, np.maximum(levels, 0.0)) + penalty)

        def apply(block: Floats) -> Floats:
            applied: Floats = vectors @ ((vectors.T @ block @ mixtures) * inverse) @ mixtures.T
            return applied

        return apply


@dataclass(frozen=True)
class LinearMoments:
    """The normal equation of least squares: (second + penalty I) W = moments.

    Attributes:
        second: Second moments of the features, positive semidefinite, shape (d, d).
        moments: Mean of phi times the label's part, shape (d, K).
    """

    second: Floats
    moments: Floats

    @cached_property
    def spectrum(self) -> tuple[Floats, Floats]:
        """Eigenvalues, negative ones cut to 0, and eigenvectors of the second moments."""
        values, vectors = np.linalg.eigh(self.second)
        return np.maximum(values, 0.0), vectors

    def solve(
        self, penalty: float, start: Floats | None = None, tolerance: float = _FINE
    ) -> Solution:
        """Solve in the eigenvectors of the second moments."""
        values, vectors = self.spectrum
        weights = vectors @ ((vectors.T @ self.moments) / (values + penalty)[:, None])
        return Solution(weights, 1e-12)


def choose_penalty(equation: LogisticMoments, noise: float, largest: float) -> tuple[float, Floats]:
    """Choose the penalty by the discrepancy principle.

    A penalty makes the model's moments differ from the released ones by penalty * |W|, which
    increases with it (Morozov 1966). The difference is made as large as the noise is expected to
    be: what is left unexplained is noise.

    Args:
        equation: The equation to solve.
        noise: Expected norm of the noise in the moments.
        largest: Largest penalty, which is reached where the signal is within the noise.

    Returns:
        The penalty, to 5 percent, and a rough solution that belongs to it.
    """
    low, high = math.log(largest * _LEAST_SHARE), math.log(largest)
    point, weights, last = math.log(largest * _FIRST_SHARE), None, None
    for _ in range(_SOLUTIONS):
        weights = equation.solve(math.exp(point), weights, _ROUGH).weights
        residual = math.exp(point) * float(np.linalg.norm(weights))
        excess = math.log(max(residual, 1e-300) / noise)
        low, high = (low, point) if excess > 0 else (point, high)
        width = high - low
        if abs(excess) < _CLOSE or width < _CLOSE:
            break
        following = (low + high) / 2
        if last is not None and last[1] != excess:
            secant = point - excess * (point - last[0]) / (excess - last[1])
            if low + 0.05 * width < secant < high - 0.05 * width:
                following = secant
        last, point = (point, excess), following
    assert weights is not None  # at least one solution
    return math.exp(point), weights


def choose_ridge(values: Floats, squares: Floats, noise: float, records: float) -> float:
    """Choose the penalty of least squares by the evidence of the noisy moments.

    Row j of the moments, in the eigenvectors of the second moments, is Gaussian of variance
    `a s**2 + noise**2 + b s / records` in each column for eigenvalue s: a is the variance of the
    coefficients, b that of what they leave unexplained. Both are those of the largest evidence.
    The penalty then minimizes the expected error of the scores.

    Args:
        values: Eigenvalues, shape (d,).
        squares: Mean square of each row of the moments, shape (d,).
        noise: Standard deviation of the noise on an entry of the moments.
        records: Number of records whose sampling makes the moments vary.
    """
    values = np.maximum(values, 1e-12)
    spreads, rests = np.logspace(-6, 6, 49)[:, None, None], np.logspace(-4, 0, 13)[None, :, None]
    parts = noise**2 + rests * values / records
    variances = spreads * values**2 + parts
    evidence = -(np.log(variances) + squares / variances).sum(axis=2)
    best, rest = np.unravel_index(int(evidence.argmax()), evidence.shape)
    spread, part = float(spreads[best, 0, 0]), parts[0, rest]
    penalties = np.logspace(-8, 2, 201)[:, None] * values.max()
    errors = ((penalties**2 * spread + part) * values / (values + penalties) ** 2).sum(axis=1)
    return float(penalties[int(errors.argmin()), 0])


def softmax(scores: Floats) -> Floats:
    """Compute probabilities from scores, row by row."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities: Floats = powers / powers.sum(axis=1, keepdims=True)
    return probabilities


def to_halves(log_odds: Floats) -> Floats:
    """Scores of two classes, or their weights, from those of the second against the first.

    The softmax of two opposite halves is the logistic function.
    """
    return np.column_stack([-log_odds / 2, log_odds / 2])


def class_covariance(probabilities: Floats) -> Floats:
    """Compute the mean over rows of diag(p) - p p^T."""
    second = probabilities.T @ probabilities / len(probabilities)
    covariance: Floats = np.diag(probabilities.mean(axis=0)) - second
    return covariance


def logistic_covariances(
    equation: LogisticMoments, weights: Floats, penalty: float, deviation: float, drift: Floats
) -> Floats:
    """Compute the covariance that noise in the moments makes in each column of the solution.

    To first order a change of the moments moves the solution by the inverse Hessian times it. With
    more than MOST_EXACT coefficients the Hessian is taken for the Kronecker product of the pool's
    second moments and the mean covariance of the classes.

    Args:
        equation: The equation that was solved.
        weights: Its solution, shape (d, K).
        penalty: Its penalty.
        deviation: Standard deviation of the noise on every entry, before rows are centered.
        drift: One more standard deviation, in this direction, shape (d, K).

    Returns:
        An array of shape (K, d, d).
    """
    probabilities = equation.probabilities(weights)
    if weights.size <= MOST_EXACT:
        return _exact_covariances(equation, probabilities, penalty, deviation, drift)
    values, vectors = equation.spectrum
    levels, mixtures = np.linalg.eigh(class_covariance(probabilities))
    inverse = 1 / (np.outer(values, np.maximum(levels, 0.0)) + penalty)
    moved = vectors @ ((vectors.T @ drift @ mixtures) * inverse) @ mixtures.T
    # Centered noise has no part along the vector of ones, which the covariance sends to 0.
    centered = mixtures - mixtures.mean(axis=0)
    shares = deviation**2 * inverse**2 @ (centered**2).T
    parts = [(vectors * share) @ vectors.T for share in shares.T]
    return np.stack([part + np.outer(u, u) for part, u in zip(parts, moved.T, strict=True)])


def _exact_covariances(
    equation: LogisticMoments,
    probabilities: Floats,
    penalty: float,
    deviation: float,
    drift: Floats,
) -> Floats:
    pool, (d, classes) = equation.pool, drift.shape
    hessian = np.zeros((classes, d, classes, d))
    for row in range(classes):
        for column in range(row, classes):
            weights = -probabilities[:, row] * probabilities[:, column]
            if row == column:
                weights = weights + probabilities[:, row]
            block = (pool * weights[:, None]).T @ pool / len(pool)
            hessian[row, :, column, :] = hessian[column, :, row, :] = block
    size = classes * d
    inverse = np.linalg.inv(hessian.reshape(size, size) + penalty * np.eye(size))
    rows = inverse.reshape(classes, d, classes, d)
    centered = (rows - rows.mean(axis=2, keepdims=True)).reshape(classes, d, size)
    moved = (inverse @ drift.T.reshape(-1)).reshape(classes, d)
    return np.stack(
        [
            deviation**2 * part @ part.T + np.outer(u, u)
            for part, u in zip(centered, moved, strict=True)
        ]
    )


def linear_covariances(
    equation: LinearMoments, weights: Floats, penalty: float, deviation: float, second: float
) -> Floats:
    """Compute the covariance that noise makes in each column of the least squares solution.

    Args:
        equation: The equation that was solved.
        weights: Its solution, shape (d, K).
        penalty: Its penalty.
        deviation: Standard deviation of the noise on every entry of the moments, as it stands.
        second: The same for the diagonal of the second moments, a half of whose variance is on
            every entry above it; 0 where they come from a pool.

    Returns:
        An array of shape (K, d, d).
    """
    values, vectors = equation.spectrum
    inverse = (vectors / (values + penalty)) @ vectors.T
    covariances = []
    for column in weights.T:
        # The noise N of the second moments adds N w: E[N w w^T N] is this.
        around = second**2 / 2 * (float(column @ column) * np.eye(len(column)))
        around += second**2 / 2 * np.outer(column, column)
        around += deviation**2 * np.eye(len(column))
        covariances.append(inverse @ around @ inverse)
    return np.stack(covariances)
