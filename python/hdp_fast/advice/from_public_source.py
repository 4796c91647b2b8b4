"""Candidates that begin with a public source: itself, adapted, or calibrated by agents."""

from __future__ import annotations

import math

from . import signals
from .from_agents import write_errors
from .from_records import explain_descent, write_descent
from .methods import (
    Method,
    first_reason,
    lack_agents,
    lack_records,
    write_agents,
    write_learner,
    write_number,
    write_privacy,
)
from .sizes import Sizes


def _lack_public_source(sizes: Sizes) -> str | None:
    return "the class is finite" if sizes.learner == "finite" else None


def _explain_public_source(sizes: Sizes) -> str:
    return f"{sizes.pool:,} public records for {sizes.d:,} columns; costs no privacy, keeps a shift"


def _call_public_source(sizes: Sizes) -> str:
    return f"{write_learner(sizes, 'epsilon=math.inf')}.learn(source_X, source_y)"


def _lack_adaptation(sizes: Sizes) -> str | None:
    two = None if sizes.classes == 2 else "adaptation learns numbers or two classes"
    return first_reason(lack_records(sizes), two)


def _explain_adaptation(sizes: Sizes) -> str:
    k = min(sizes.d, signals.DIRECTIONS)
    if sizes.epsilon == math.inf:
        return f"residuals of the public model in {k} directions, without noise"
    signal = write_number(sizes.n * sizes.mu / (2 * math.sqrt(k)))
    text = f"residuals of the public model in {k} directions, n mu / (2 sqrt({k})) = {signal}"
    return f"{text} times the gap; nothing to mend if there is none"


def _call_adaptation(sizes: Sizes) -> str:
    return (
        f'adaptation.MomentAdaptation({write_privacy(sizes)}, task="classification")'
        ".fit(source_X, source_y, X, y)"
    )


def _explain_calibrated_source(sizes: Sizes) -> str:
    return f"agents mend slope and intercept, standard error {write_errors(sizes)}"


def _call_calibrated_source(sizes: Sizes) -> str:
    return f"transfer.calibrate({_call_public_source(sizes)}, {write_agents(sizes)})"


def _lack_calibrated_source(sizes: Sizes) -> str | None:
    few = signals.lack_calibrating_agents(sizes)
    return first_reason(lack_agents(sizes), few, _lack_public_source(sizes))


PUBLIC_SOURCE = Method(
    "public source",
    _lack_public_source,
    signals.lose_source,
    _explain_public_source,
    _call_public_source,
)
ADAPTATION = Method(
    "adapt", _lack_adaptation, signals.lose_adapted, _explain_adaptation, _call_adaptation
)
TARGET_ALONE = Method(
    "DP-SGD", lack_records, signals.lose_target_alone, explain_descent, write_descent
)
CALIBRATED_SOURCE = Method(
    "calibrate",
    _lack_calibrated_source,
    signals.lose_calibrated_source,
    _explain_calibrated_source,
    _call_calibrated_source,
)
