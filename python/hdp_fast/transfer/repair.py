"""Calibrates a released model and certifies it before and after, each agent asked once."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._support.types import RandomState
from ..local.pool import AgentPool
from .calibration import calibrate
from .calibration_result import CalibratedModel, Method
from .certificate import Certificate, certify


class Repair(NamedTuple):
    """What agents tell of a model: its calibration, and its errors "before" it and "after" it."""

    calibrated: CalibratedModel
    certificates: dict[str, Certificate]


def repair(
    model: Any,
    agents: AgentPool,
    *,
    count: int,
    certify_count: int = 0,
    method: Method = "logistic",
    beta: float = 0.05,
    random_state: RandomState = None,
) -> Repair:
    """Lets the next agents calibrate a model, and others certify it, if any.

    Where the calibration changes nothing, the model is certified once, by all who certify. After an
    interruption the same call takes up the answers of real agents.

    model: as calibrate takes it, and as certify does where agents certify.
    """
    with agents.keep_answers():
        calibrated = calibrate(
            model, agents, method=method, beta=beta, count=count, random_state=random_state
        )
        if not certify_count:
            return Repair(calibrated, {})
        models = {"before": model}
        if calibrated.outcome == "calibrated":
            models["after"] = calibrated
        each = certify_count // len(models)
        certificates = {
            name: certify(one, agents, count=each, beta=beta, random_state=random_state)
            for name, one in models.items()
        }
    return Repair(calibrated, certificates)
