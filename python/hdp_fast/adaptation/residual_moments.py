"""The moments of residuals around the public optimum: their release, and what it says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._support.json_text import JsonText
from .._support.notes import note, note_large_delta
from .._support.types import Floats
from ..budget.account import spend
from ..data.states import State
from ..learners.feature_maps import FeatureMap
from ..learners.released_statistics import ReleasedStatistics
from ..learners.statistics_noise import LEVEL, MOST_BITS, chi_square_quantile, least_records
from ..learners.sufficient_statistics import (
    PrivateSums,
    SufficientStatistics,
    add_noise,
    calibrate,
    deviations_of,
    fold_settled,
)
from ..record import PrivacyRecord, gaussian_law, rng_of
from .privacy import Privacy
from .source_optimum import residuals


class ResidualSettings(NamedTuple):
    """How residuals are released.

    Attributes:
        clip: They are clipped to [-clip, clip].
        ratio: Deviation of the noise on the diagonal of the sum of z z' over that on the sum of
            z r / clip.
        privacy: What is promised, and to whom.
    """

    clip: float
    ratio: float
    privacy: Privacy


_SOURCE = (
    "Gaussian mechanism with the curve of Balle and Wang 2018; released moments as in Wang 2018"
)


# Folds records, as the function that is passed makes a state of rows and their labels.
Fold = Callable[[Callable[[Any, Any], State]], State]


def release_residuals(
    features: FeatureMap,
    coef: Floats,
    fold: Fold,
    n: int,
    settings: ResidualSettings,
    intercept: float = 0.0,
) -> ReleasedStatistics:
    """Release the sums of z r and of z z' over n private records, with noise.

    z are the features of a row, of norm at most 1, and r = y - intercept - <coef, x> the residuals.

    Raises: ParameterError, BudgetExceeded.
    """
    drawn, record, privacy = None, None, settings.privacy
    description = SufficientStatistics(
        features, label_bound=settings.clip, second_moments=True, ratio=settings.ratio
    )
    goal = privacy.goal
    if privacy.protects:
        share = goal.persons.gaussian_share(goal.epsilon, privacy.delta)
        drawn = calibrate(description, n, *share)
        deviations = deviations_of(description, drawn)
        record = _make_record(deviations, features, privacy)
        note_large_delta(privacy.delta, n)
        _note_before(n, deviations[0], features.columns, goal.epsilon)
    bits = MOST_BITS if drawn is None else drawn.bits
    residuals_of = partial(residuals, coef=coef, intercept=intercept)
    task = partial(_fold_residuals, description=description, residuals_of=residuals_of, bits=bits)
    state = fold(task)
    sums = PrivateSums(state.sums["sums"], state.sums["moments"])
    with nullcontext() if record is None else spend(goal.budget, record):
        return add_noise(description, sums, n, bits, drawn, record, goal.random_state)


def _fold_residuals(
    X: NDArray[Any],
    y: Floats,
    *,
    description: SufficientStatistics,
    residuals_of: Callable[[Any, Floats], Floats],
    bits: int,
) -> State:
    clip = description.label_bound
    assert clip is not None
    # Clipped before they are divided, so that none overflows.
    targets = residuals_of(X, y).clip(-clip, clip) / clip
    return fold_settled(description, X, targets, bits)


def _make_record(
    deviations: tuple[float, float, float], features: FeatureMap, privacy: Privacy
) -> PrivacyRecord:
    sums, diagonal, _ = deviations
    goal = privacy.goal
    record = PrivacyRecord(
        mechanism=f"adaptation.MomentAdaptation, {features.columns} directions",
        source=_SOURCE,
        neighbors=goal.neighbors,
        epsilon=goal.epsilon,
        delta=privacy.delta,
        noise=f"rounded normal on integers, deviations {sums:.6g} on the residual sums, "
        f"{diagonal:.6g} on the diagonal of the second moments",
        rng=rng_of(goal.random_state),
        **gaussian_law(goal.epsilon, privacy.delta),
    )
    return goal.persons.state(record)


def _note_before(n: int, deviation: float, columns: int, epsilon: float) -> None:
    """Warn where no residuals could add up to more than the noise hides."""
    least = least_records(1.0, deviation, columns)
    if n < least:
        rule = f"the noise hides what fewer than {math.ceil(least):,} residuals can add up to"
        advice = "more records, fewer directions or a larger epsilon would help"
        note(f"n = {n:,} target records, but at epsilon = {epsilon:g} {rule}: {advice}")


def signal_of(statistics: ReleasedStatistics) -> float:
    """Return the squared norm of the released residual sums over that of their noise."""
    deviation = statistics.sums_deviation
    if not deviation:
        return math.inf
    sums = statistics.cross_moments / deviation
    return float((sums**2).mean())


def note_signal(signal: float, columns: int) -> None:
    """Warn where the released residual sums look like noise alone."""
    if signal * columns <= chi_square_quantile(columns, 1 - LEVEL):
        rule = f"as {1 - LEVEL:.0%} of sums without any signal have at most"
        advice = "more target records, fewer directions or a larger epsilon would help"
        note(
            f"signal_ = {signal:.2g} is the square of the released residual sums over that of "
            f"their noise, {rule}: the target is not seen to differ from the source, whose own "
            f"optimum source_coef_ is about as good; {advice}"
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentResult(JsonText):
    """What one release of residual moments says of the target; safe to publish.

    Attributes:
        coef: The adapted coefficients, float64 of shape (d,).
        source_coef: The public optimum, float64 of shape (d,), around which residuals were taken.
        source_penalty: Penalty of the public optimum, as a share of the largest second moment of
            the source.
        clip: Magnitude to which the residuals were clipped.
        signal: Squared norm of the released residual sums over that of their noise; about 1 where
            they hold nothing but noise.
        trust: Part of the source's slopes, in [0, 1], that the target is near: the mean over all, a
            half and none of them, by the released numbers; 0.875 without any release.
        record: The PrivacyRecord of the target; None without privacy.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.adaptation import MomentAdaptation
        >>> X = np.linspace(-1, 1, 2_000)[:, None]
        >>> y_source, y_target = 0.1 * X[:, 0], 0.8 * X[:, 0]
        >>> model = MomentAdaptation(epsilon=4, clip=1).fit(X, y_source, X[::4], y_target[::4])
        >>> model.result_.source_coef.round(3), model.result_.signal > 100
        (array([0.1]), True)
    """

    coef: Floats
    source_coef: Floats
    source_penalty: float
    clip: float
    signal: float
    trust: float
    record: PrivacyRecord | None


# Prior deviations of a prediction's change, in residuals of the source: clipped ones say little of
# larger changes.
_SCALES = 10.0 ** np.arange(-3, 0.01, 0.25)
# Exponents of the second moment with which the prior variance of a direction goes.
_POWERS = (0.0, 0.5, 1.0)
# Prior deviations of a change of the intercept, in residuals of the source.
_SHIFTS = (0.0, 0.1, 0.3, 1.0, 3.0)
# Densities of both deviations fall off from such ones on, by these powers, so that noise alone
# moves little.
_USUAL, _SCALE_POWER, _SHIFT_POWER = 0.1, 0.7, 0.5


class MomentProblem(NamedTuple):
    """Released numbers and public facts, in the k coordinates of the release.

    Attributes:
        sums: The released sum of z r, float64 (k,).
        moments: The released sum of z z', float64 (k, k), symmetric.
        size: Number n of target records.
        sums_deviation: Deviation of the noise on `sums`.
        moments_deviation: Deviation of the noise on the diagonal of `moments`; above it is
            sqrt(2) times less.
        source_moments: Mean of z z' over the source, float64 (k, k).
        shape: Second moments of the directions, over the largest, float64 (k,).
        variance: Expected square of a clipped residual.
        centers: Changes of the coefficients that the target may be near, float64 (centers, k).
        priors: Probability of each before the release, float64 (centers,).
        constants: What the sums of products of the last coordinate with the constants that follow
            are, if these are constants of the target.
        intercept: What 1 of the last coordinate adds to a prediction; None without an intercept.
    """

    sums: Floats
    moments: Floats
    size: int
    sums_deviation: float
    moments_deviation: float
    source_moments: Floats
    shape: Floats
    variance: float
    centers: Floats
    priors: Floats
    constants: Floats
    intercept: float | None


class ChangePosterior(NamedTuple):
    """The mean change of the coefficients, and the probabilities of the centers."""

    change: Floats
    centers: Floats


def average_posterior(problem: MomentProblem) -> ChangePosterior:
    """Average the posterior means of all priors, weighed by their evidence.

    Given the target's second moments H and a change b of the coefficients, the released sums g are
    H b, the noise, and what residuals add: a variance of v H. A prior takes b as normal around a
    center, with a variance that goes with t**2 and a power of the direction's second moment. Its
    evidence is the density of g. H is estimated first, and both the noise that stays in it and what
    was left out of it count as noise on g. Everything is computed from released numbers and public
    facts.
    """
    moments, left = denoise(problem)
    changes, logs, owners = [], [], []
    for owner, center in enumerate(problem.centers):
        for change, log in _posteriors(problem, moments, left, center):
            changes.append(change)
            logs.append(log + math.log(problem.priors[owner]))
            owners.append(owner)
    weights = np.exp(np.array(logs) - max(logs))
    weights /= weights.sum()
    shares: Floats = np.bincount(owners, weights, len(problem.centers)).astype(np.float64)
    return ChangePosterior(weights @ np.array(changes), shares)


# How likely the last of several constants is the intercept, before the release.
_LAST = 0.95


def weigh_constants(statistics: ReleasedStatistics, expected: Floats) -> Floats:
    """Return how likely each of several constants of the source is one in the target, too.

    expected: the sums of products with the number, if they all are.

    The last of k coordinates is a number, and behind it are the constants. Where one of these is
    none in the target, its sum of products with the number is anywhere between what is expected
    and its negative.
    """
    moments = statistics.second_moments
    assert moments is not None
    k = len(moments) - len(expected)
    apart, most = expected - moments[k - 1, k:], 2 * float(expected.max())
    deviation = max(statistics.moments_deviation / math.sqrt(2), 1e-6 * most)
    prior = np.full(len(apart), (1 - _LAST) / (len(apart) - 1))
    prior[-1] = _LAST
    anywhere = np.array([_log_spread(float(x), most, deviation) for x in apart])
    logs = np.log(prior) - np.square(apart / deviation) / 2 - anywhere
    weights = np.exp(logs - logs.max())
    shares: Floats = weights / weights.sum()
    return shares


def _log_spread(x: float, most: float, deviation: float) -> float:
    """Log density, times the deviation and sqrt(2 pi), of noise on a number from [0, most]."""
    low, high = -x / deviation, (most - x) / deviation
    inside = (math.erfc(-high / math.sqrt(2)) - math.erfc(-low / math.sqrt(2))) / 2
    return math.log(max(inside, 1e-300) * math.sqrt(2 * math.pi) * deviation / most)


# The part of the square of what was left out of the target's moments that counts as noise. All of
# it would if it were independent of the change, and costs where many directions differ.
_LEFT_OUT = 0.5


def denoise(problem: MomentProblem) -> tuple[Floats, float]:
    """Estimate the target's sum of z z', and the deviation of what is wrong in it.

    Its distance from what the source has loses, in each of its directions, the norm that noise of
    this deviation has as a symmetric matrix, about s sqrt(2 k): what is below counts as noise, so
    that the source's moments stay where the release does not contradict them. What the target's
    moments differ by and is below shows in the square of what was left out, beyond that of noise,
    and counts as noise of the estimate, too. Without noise the released sum is returned.
    """
    if not problem.moments_deviation:
        return problem.moments, 0.0
    expected, part = _expect_moments(problem)
    inner = slice(None) if problem.intercept is None else slice(-1)
    values, vectors = np.linalg.eigh((problem.moments - expected)[inner, inner])
    edge = problem.moments_deviation * math.sqrt(2 * len(values))
    kept = np.sign(values) * np.maximum(np.abs(values) - edge, 0.0)
    expected[inner, inner] += (vectors * kept) @ vectors.T
    left = (float((kept != 0).sum()) + part) / len(expected)
    values, vectors = np.linalg.eigh(expected)
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T
    apart = (problem.moments - positive)[inner, inner]
    k = len(apart)
    # Entries above the diagonal have half of its variance, and stand for two.
    excess = float(np.square(apart).sum()) - problem.moments_deviation**2 * k * (k + 1) / 2
    square = left * problem.moments_deviation**2
    return positive, math.sqrt(square + 2 * _LEFT_OUT * max(excess, 0.0) / max(k, 1) ** 2)


def _expect_moments(problem: MomentProblem) -> tuple[Floats, float]:
    """The sum of z z' of the source's moments around the target's means, and how much noise it has.

    The released products with the intercept's coordinate, a number, are the target's means. Their
    distance from the source's is shrunk by what noise adds to its square (James and Stein 1961).
    """
    expected = problem.size * problem.source_moments
    if problem.intercept is None:
        return expected, 0.0
    before, square = expected[-1, :-1].copy(), float(expected[-1, -1])
    # Rows of the target that are longer than the source's are shrunk, and their constant with them.
    seen = float(problem.moments[-1, -1]) + 2 * problem.moments_deviation
    square = expected[-1, -1] = min(square, max(seen, 1e-3 * square))
    apart = problem.moments[-1, :-1] - before
    noise = len(apart) * problem.moments_deviation**2 / 2
    part = max(1 - noise / max(float(apart @ apart), 1e-300), 0.0)
    after = before + part * apart
    expected[:-1, :-1] += (np.outer(after, after) - np.outer(before, before)) / square
    expected[-1, :-1] = expected[:-1, -1] = after
    return expected, part


def _log_prior(scale: float, shift: float) -> float:
    """Log probability of the prior with these deviations, up to a constant."""
    falls = _SCALE_POWER * math.log1p(scale / _USUAL)
    return -falls - _SHIFT_POWER * math.log1p(shift / (2 * _USUAL))


def _posteriors(
    problem: MomentProblem, moments: Floats, left: float, center: Floats
) -> Iterator[tuple[Floats, float]]:
    """Yield the posterior mean and the log evidence of every prior around a center."""
    sums = problem.sums - moments @ center
    noise = problem.sums_deviation**2 + left**2 / 2 * float(center @ center)
    base = problem.variance * moments
    base.flat[:: len(base) + 1] += max(noise, 1e-12 * float(np.trace(base)), 1e-300)
    scale = 1 / np.sqrt(np.maximum(np.diag(problem.source_moments), 1e-300))
    shifts = (0.0,) if problem.intercept is None else _SHIFTS
    for power, shift in product(_POWERS, shifts):
        widths = problem.shape ** (power / 2) * scale
        widths[problem.shape == 0] = 0.0
        for t in _SCALES:
            deviations = t * widths
            if problem.intercept is not None:
                deviations[-1] = shift * problem.intercept
            deviations *= math.sqrt(problem.variance)
            inflated = base.copy()
            inflated.flat[:: len(base) + 1] += left**2 / 2 * float(deviations @ deviations)
            whitened = np.linalg.cholesky(inflated)
            part = np.linalg.solve(whitened, moments * deviations)
            target = np.linalg.solve(whitened, sums)
            inner = np.eye(len(deviations)) + part.T @ part
            mean = np.linalg.solve(inner, part.T @ target)
            # The density of the sums, whose variance is that of base and of the prior together.
            fit = target @ target - (part.T @ target) @ mean
            volume = np.linalg.slogdet(inner)[1] / 2 + np.log(np.diag(whitened)).sum()
            log = float(-fit / 2 - volume) + _log_prior(t, shift)
            yield center + deviations * mean, log
