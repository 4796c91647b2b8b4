"""The one release of private residual moments, in a single Gaussian budget."""

from __future__ import annotations

import math
from typing import Any

from numpy.typing import NDArray

from .._support.notes import note, note_large_delta
from .._support.types import Floats, RandomState
from ..budget.account import Budget, spend
from ..learners.feature_maps import FeatureMap
from ..learners.feature_sums import target_sums
from ..learners.hypotheses import read_only
from ..learners.released_statistics import ReleasedStatistics
from ..learners.statistics_checks import LEVEL, chi_square_quantile
from ..learners.statistics_privacy import (
    MOST_BITS,
    Released,
    StatisticsNoise,
    calibrate_statistics,
)
from ..learners.sufficient_statistics import draw_noise, draw_symmetric
from ..record import PrivacyRecord, rng_of
from .privacy import Privacy, make_stream

# Targets in [-1, 1] whose products with features, and products of features, are released.
_RELEASED = Released(None, second_moments=True, nonnegative_products=False, adds=False)
_SOURCE = (
    "Gaussian mechanism with the curve of Balle and Wang 2018; released moments as in Wang 2018"
)


def release_residuals(
    features: FeatureMap,
    records: tuple[NDArray[Any], Floats],
    clip: float,
    ratio: float,
    privacy: Privacy,
    random_state: RandomState,
    budget: Budget | None,
) -> ReleasedStatistics:
    """Release the sums of z r and of z z' over private records, with noise.

    z are the features of a row, of norm at most 1. records: rows, and residuals r, which are
    clipped to [-clip, clip]. ratio: deviation of the noise on the diagonal of the sum of z z' over
    that on the sum of z r / clip.

    Raises: ParameterError, BudgetExceeded.
    """
    rows, residuals = records
    n, noise, record, bits = len(residuals), None, None, MOST_BITS
    if privacy.protects:
        noise = calibrate_statistics(
            _RELEASED, epsilon=privacy.epsilon, delta=privacy.delta, ratio=ratio, n=n
        )
        record, bits = _make_record(noise, features, privacy, random_state), noise.bits
        note_large_delta(privacy.delta, n)
        _note_before(n, _deviations(noise)[0], features.columns, privacy.epsilon)
    # Clipped before they are divided, so that none overflows.
    targets = residuals.clip(-clip, clip) / clip
    cross, moments = target_sums(features, rows, targets, bits=bits, second=True)
    assert moments is not None
    deviations = (0.0, 0.0)
    if noise is not None and noise.diagonal is not None and record is not None:
        with spend(budget, record):
            stream, deviations = make_stream(random_state), _deviations(noise)
            cross = cross + draw_noise(noise.sums, cross.shape, stream)
            moments = moments + draw_symmetric(noise, len(moments), stream)
    return ReleasedStatistics(
        features=features,
        classes=None,
        label_bound=clip,
        neighbors="replace_one",
        n=n,
        bits=bits,
        sums=read_only(cross[:, None]),
        moments=read_only(moments),
        sums_deviation=deviations[0],
        moments_deviation=deviations[1],
        count_deviation=0.0,
        record=record,
    )


def _deviations(noise: StatisticsNoise) -> tuple[float, float]:
    """Return the deviations on the sum of z r / clip, and on the diagonal of that of z z'."""
    assert noise.diagonal is not None
    unit = 4.0**noise.bits
    return float(noise.sums) / unit, float(noise.diagonal) / unit


def _make_record(
    noise: StatisticsNoise, features: FeatureMap, privacy: Privacy, random_state: RandomState
) -> PrivacyRecord:
    sums, diagonal = _deviations(noise)
    return PrivacyRecord(
        mechanism=f"adaptation.MomentAdaptation, {features.columns} directions",
        source=_SOURCE,
        neighbors="replace_one",
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        noise=f"rounded normal on integers, deviations {sums:.6g} on the residual sums, "
        f"{diagonal:.6g} on the diagonal of the second moments",
        rng=rng_of(random_state),
    )


def _note_before(n: int, deviation: float, columns: int, epsilon: float) -> None:
    """Warn where no residuals could add up to more than the noise hides."""
    least = deviation * math.sqrt(3 * math.sqrt(2 * columns))
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
