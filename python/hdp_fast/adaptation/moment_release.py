"""The one release of private residual moments, in a single Gaussian budget."""

from __future__ import annotations

import math
from contextlib import nullcontext
from typing import Any

from numpy.typing import NDArray

from .._support.notes import note, note_large_delta
from .._support.types import Floats, RandomState
from ..budget.account import Budget, spend
from ..learners.feature_maps import FeatureMap
from ..learners.released_statistics import ReleasedStatistics
from ..learners.statistics_checks import LEVEL, chi_square_quantile, least_records
from ..learners.statistics_privacy import MOST_BITS
from ..learners.sufficient_statistics import (
    SufficientStatistics,
    add_noise,
    add_up,
    calibrate,
    deviations_of,
)
from ..record import PrivacyRecord, gaussian_law, rng_of
from .privacy import Privacy

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
    n, drawn, record = len(residuals), None, None
    description = SufficientStatistics(features, label_bound=clip, second_moments=True, ratio=ratio)
    if privacy.protects:
        share = privacy.persons.gaussian_share(privacy.epsilon, privacy.delta)
        drawn = calibrate(description, n, *share)
        deviations = deviations_of(description, drawn)
        record = _make_record(deviations, features, privacy, random_state)
        note_large_delta(privacy.delta, n)
        _note_before(n, deviations[0], features.columns, privacy.epsilon)
    # Clipped before they are divided, so that none overflows.
    targets = residuals.clip(-clip, clip) / clip
    sums = add_up(description, rows, targets, MOST_BITS if drawn is None else drawn.bits)
    with nullcontext() if record is None else spend(budget, record):
        return add_noise(description, sums, n, drawn, record, random_state)


def _make_record(
    deviations: tuple[float, float, float],
    features: FeatureMap,
    privacy: Privacy,
    random_state: RandomState,
) -> PrivacyRecord:
    sums, diagonal, _ = deviations
    record = PrivacyRecord(
        mechanism=f"adaptation.MomentAdaptation, {features.columns} directions",
        source=_SOURCE,
        neighbors="replace_one",
        epsilon=privacy.epsilon,
        delta=privacy.delta,
        noise=f"rounded normal on integers, deviations {sums:.6g} on the residual sums, "
        f"{diagonal:.6g} on the diagonal of the second moments",
        rng=rng_of(random_state),
        **gaussian_law(privacy.epsilon, privacy.delta),
    )
    return privacy.persons.state(record)


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
