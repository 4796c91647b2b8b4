"""The algorithms of Bassily, Cortes, Mao and Mohri 2024 as printed, with numpy alone.

Noise is Gaussian in floats, and what a run keeps is stated beside what it promises: Algorithm 2
keeps less from an epsilon of about 9 on, Algorithm 1 from about 17 on, at a delta of 0.01.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Records = tuple[Floats, Floats]
# (w, X, y) -> losses (k,) and gradients (k, d)
Loss = Callable[[Floats, Floats, Floats], tuple[Floats, Floats]]

# The largest sum of squared ratios of change to sensitivity over both gradients of a record, for
# the squared loss and for any other one.
SQUARED, GENERAL = 1.28616, 2.0


class Guarantee(NamedTuple):
    """What a run keeps when one private record is replaced.

    Attributes:
        epsilon: The epsilon that it promises.
        delta: The delta that it keeps at this epsilon.
        promised: The delta that it promises.
    """

    epsilon: float
    delta: float
    promised: float


class Sizes(NamedTuple):
    """The numbers that the printed formulas are made of.

    Attributes:
        m: Number of public records.
        n: Number of private records.
        d: Number of columns.
        alpha: Share of the source.
        radius: Bound Lambda on the norm of w.
        lipschitz: Lipschitz bound G of the loss.
        largest: Bound B on the loss.
        penalties: The weights kappa_1, kappa_2 and kappa_inf of problem (6), or lambda_1, lambda_2
            and lambda_inf of problem (7).
    """

    m: int
    n: int
    d: int
    alpha: float
    radius: float
    lipschitz: float
    largest: float
    penalties: tuple[float, float, float]

    @property
    def caps(self) -> Floats:
        """The largest weights of all records, those of the public ones first."""
        return np.repeat([self.alpha / self.m, (1 - self.alpha) / self.n], [self.m, self.n])

    @property
    def larger(self) -> float:
        """The largest loss with its penalties, B with a bar."""
        return self.largest + sum(self.penalties)


def squared_sizes(
    public: Records,
    private: Records,
    *,
    alpha: float,
    radius: float,
    norm_bound: float,
    penalties: tuple[float, float, float],
) -> Sizes:
    """The sizes of problem (6), where the loss is squared and labels lie in [-1, 1]."""
    residual = radius * norm_bound + 1
    shapes = len(public[1]), len(private[1]), public[0].shape[1]
    return Sizes(*shapes, alpha, radius, 2 * norm_bound * residual, residual**2, penalties)


class Run(NamedTuple):
    """What a run returns: predictor, inverse weights of all records, and what it keeps."""

    w: Floats
    u: Floats
    guarantee: Guarantee | None


def squared_loss(w: Floats, X: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The squared losses of records, and their gradients."""
    residuals = X @ w - y
    return residuals**2, 2 * residuals[:, None] * X


def release_discrepancy(
    discrepancy: float, sizes: Sizes, epsilon: float, rng: np.random.Generator
) -> float:
    """The discrepancy of Section 4 with noise, which is (epsilon / 2)-private."""
    noisy = discrepancy + rng.laplace(0, 2 * sizes.largest / (epsilon * sizes.n))
    return float(np.clip(noisy, 0, sizes.largest))


def noise_of(sizes: Sizes, steps: int, epsilon: float, delta: float) -> tuple[float, float]:
    """The deviations sigma_1 and sigma_2 of steps 2 and 3."""
    share = (1 - sizes.alpha) / sizes.n
    multiple = 2 * math.sqrt(steps * math.log(3 / delta)) / epsilon
    return 2 * share * sizes.lipschitz * multiple, share**2 * sizes.largest * multiple


def guarantee_of(epsilon: float, delta: float, joint: float) -> Guarantee:
    """What the printed noise keeps: all steps are one Gaussian mechanism.

    joint: SQUARED for the squared loss, GENERAL for any other one.
    """
    mu = epsilon * math.sqrt(joint / math.log(3 / delta)) / 2
    tails = (
        math.erfc(z / math.sqrt(2)) / 2 for z in (epsilon / mu - mu / 2, epsilon / mu + mu / 2)
    )
    near, far = tails
    # exp(epsilon) may be beyond all floats where the tail is below them.
    lost = math.exp(epsilon + math.log(far)) if far > 0 else 0.0
    return Guarantee(epsilon, max(near - lost, 0.0), delta)


def convex_gradient(
    w: Floats, u: Floats, losses: Floats, gradients: Floats, offsets: Floats, sizes: Sizes
) -> tuple[Floats, Floats]:
    """The gradients of the objective F of problem (6) in w and in u.

    offsets: what is added to each loss, the discrepancy for public records and 0 for private ones.
    Where several u are the least, the subgradient of kappa_inf is shared by them.
    """
    kappa_1, kappa_2, kappa_inf = sizes.penalties
    slopes = kappa_1 * sizes.caps**2 - (losses + offsets) / u**2
    slopes -= kappa_2 / (u**3 * np.linalg.norm(1 / u))
    least = u == u.min()
    slopes -= kappa_inf * least / (least.sum() * u**2)
    return gradients.T @ (1 / u), slopes


def general_gradient(
    u: Floats, losses: Floats, gradients: Floats, offsets: Floats, sizes: Sizes, mu: float
) -> tuple[Floats, Floats]:
    """The gradients of the objective J of problem (7) in w and in u."""
    lambda_1, lambda_2, lambda_inf = sizes.penalties
    slopes = (lambda_1 - losses - offsets) / u**2
    slopes -= lambda_2 / (u**3 * np.linalg.norm(1 / u))
    softmax = np.exp(mu / u - (mu / u).max())
    slopes -= lambda_inf * softmax / (softmax.sum() * u**2)
    return gradients.T @ (1 / u), slopes


def _join(public: Records, private: Records, discrepancy: float) -> tuple[Floats, Floats, Floats]:
    X, y = np.concatenate([public[0], private[0]]), np.concatenate([public[1], private[1]])
    return X, y, np.repeat([discrepancy, 0.0], [len(public[1]), len(private[1])])


def _project(w: Floats, radius: float) -> Floats:
    return w * (radius / max(radius, float(np.linalg.norm(w))))


def adapt_convex(
    public: Records,
    private: Records,
    sizes: Sizes,
    *,
    steps: int,
    discrepancy: float,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
) -> Run:
    """Algorithm 1, from w = 0 and the largest weights; with epsilon = inf without noise."""
    X, y, offsets = _join(public, private, discrepancy)
    private_ones, m, n = np.arange(len(y)) >= sizes.m, sizes.m, sizes.n
    alpha, larger = sizes.alpha, sizes.larger
    sigma_1, sigma_2 = noise_of(sizes, steps, epsilon, delta)
    length = sizes.radius / math.sqrt(steps * (sizes.lipschitz**2 + sizes.d * sigma_1**2))
    of_public = m**1.5 / (math.sqrt(steps) * alpha**2 * (sizes.largest + larger))
    squares = (1 - alpha) ** 4 * larger**2 + n**4 * sigma_2**2
    lengths = np.where(private_ones, n**1.5 / math.sqrt(steps * squares), of_public)
    w, u = np.zeros(sizes.d), 1 / sizes.caps
    sums = np.zeros_like(w), np.zeros_like(u)
    for _ in range(steps):
        slope, slopes = convex_gradient(w, u, *squared_loss(w, X, y), offsets, sizes)
        slopes = slopes + private_ones * rng.normal(0, sigma_2, len(u))
        w = _project(w - length * (slope + rng.normal(0, sigma_1, sizes.d)), sizes.radius)
        u = np.maximum(u - lengths * slopes, 1 / sizes.caps)
        sums[0][:] += w
        sums[1][:] += u
    known = None if epsilon == math.inf else guarantee_of(epsilon, delta, SQUARED)
    return Run(sums[0] / steps, sums[1] / steps, known)


def adapt_general(
    public: Records,
    private: Records,
    sizes: Sizes,
    *,
    loss: Loss,
    smoothness: float,
    mu: float,
    steps: int,
    discrepancy: float,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
) -> Run:
    """Algorithm 2, from w = 0 and the largest weights, with steps of 1 / smoothness_of."""
    X, y, offsets = _join(public, private, discrepancy)
    private_ones = np.arange(len(y)) >= sizes.m
    sigma_1, sigma_2 = noise_of(sizes, steps, epsilon, delta)
    eta = 1 / smoothness_of(sizes, smoothness, mu)
    w, u = np.zeros(sizes.d), 1 / sizes.caps
    for _ in range(int(rng.integers(1, steps + 1))):
        slope, slopes = general_gradient(u, *loss(w, X, y), offsets, sizes, mu)
        slopes = slopes + private_ones * rng.normal(0, sigma_2, len(u))
        w = _project(w - eta * (slope + rng.normal(0, sigma_1, sizes.d)), sizes.radius)
        u = np.maximum(u - eta * slopes, 1 / sizes.caps)
    known = None if epsilon == math.inf else guarantee_of(epsilon, delta, GENERAL)
    return Run(w, u, known)


def convex_steps(sizes: Sizes, epsilon: float, delta: float) -> int:
    """The number T of steps that Theorems 4.2 and 4.3 ask for, rounded up."""
    log = math.log(1 / delta)
    ratio = (sizes.larger * epsilon / sizes.largest) ** 2 / log
    return math.ceil(
        max(
            1,
            (sizes.n * epsilon / (1 - sizes.alpha)) ** 2 / (sizes.d * log),
            ratio,
            ratio * (sizes.n / sizes.m) ** 3,
        )
    )


def convex_error(
    sizes: Sizes, steps: int, epsilon: float, delta: float, moves: tuple[float, float] = (0, 0)
) -> float:
    """The bound of Theorem 4.2 on the expected error of the objective, as Appendix C.2 has it.

    moves: squared distances of the first public and private u from the best ones.
    """
    alpha, log = sizes.alpha, math.log(2 / delta) / epsilon**2
    steep = 1 / steps + 32 * (1 - alpha) ** 2 * sizes.d * log / sizes.n**2
    spread = sizes.larger**2 / steps + 8 * sizes.largest**2 * log
    of_w = sizes.radius * sizes.lipschitz * math.sqrt(steep)
    of_private = (1 - alpha) ** 2 * (moves[1] + 1) * math.sqrt(spread) / sizes.n**1.5
    of_public = alpha**2 * (moves[0] + 1) * (sizes.largest + sizes.larger) / sizes.m**1.5
    error: float = of_w + of_private / 2 + of_public / 2 / math.sqrt(steps)
    return error


def records_for_the_optimal_rate(sizes: Sizes, moves: tuple[float, float] = (0, 0)) -> int:
    """The number n of private records from which Theorem 4.3 holds, rounded up."""
    ratio = sizes.largest * max(1, sum(moves)) / (sizes.lipschitz * sizes.radius)
    return math.ceil(ratio**2 / sizes.d)


def smoothness_of(sizes: Sizes, smoothness: float, mu: float) -> float:
    """The smoothness of J, beta with a bar: Lemma 5.1, by the constants of Appendix D.1.

    smoothness: of the loss.
    """
    _, lambda_2, lambda_inf = sizes.penalties
    total = (
        smoothness
        + 2 * lambda_inf * mu * (sizes.alpha * (1 - sizes.alpha)) ** 2 / (sizes.m * sizes.n) ** 1.5
    )
    for share, size, other, loss in (
        (sizes.alpha, sizes.m, sizes.n, 2 * sizes.largest),
        (1 - sizes.alpha, sizes.n, sizes.m, sizes.largest),
    ):
        bound = abs(loss - sizes.penalties[0]) + lambda_2 * math.sqrt(other) + lambda_inf
        total += lambda_2 * share**3 / size**2 + 2 * share**3 * bound / size**2.5
        total += lambda_inf * mu * share**4 * (size**-3.0 + size**-3.5)
        total += sizes.lipschitz * share**2 / size**1.5
    return float(total)


def range_of(sizes: Sizes) -> float:
    """The bound M on J of Appendix D.3."""
    lambda_1, lambda_2, lambda_inf = sizes.penalties
    alpha, m, n = sizes.alpha, sizes.m, sizes.n
    spread = alpha / math.sqrt(m) + (1 - alpha) / math.sqrt(n)
    return 2 * sizes.largest + lambda_1 + lambda_2 * spread + lambda_inf * float(sizes.caps.max())


def general_steps(sizes: Sizes, smoothness: float, mu: float, epsilon: float, delta: float) -> int:
    """The number T of steps of Theorem 5.2, by Appendix D.3, rounded up."""
    curved = smoothness_of(sizes, smoothness, mu) * range_of(sizes)
    rest, n = 1 - sizes.alpha, sizes.n
    noise = 40 * sizes.lipschitz**2 * sizes.d * n + (rest * sizes.largest) ** 2
    steps: float = math.sqrt(curved / noise / math.log(2 / delta)) * epsilon * n**1.5 / rest
    return max(1, math.ceil(steps))


def general_error(
    sizes: Sizes, smoothness: float, mu: float, epsilon: float, delta: float
) -> float:
    """The bound of Theorem 5.2 on the expected squared norm of the gradient mapping, by D.3."""
    curved = smoothness_of(sizes, smoothness, mu) * range_of(sizes)
    rest, n = 1 - sizes.alpha, sizes.n
    noise = 2 * math.sqrt(10 * sizes.d) * sizes.lipschitz / n + rest * sizes.largest / n**1.5
    error: float = 16 * rest * math.sqrt(curved * math.log(2 / delta)) * noise / epsilon
    return error
