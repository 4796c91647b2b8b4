"""Writes the table behind the sliders of docs/start/sliders.md, by the package's own formulas.

python docs/tools/tabulate_sliders.py takes half a minute; tests/docs/test_sliders.py computes parts
of it again.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np

from hdp_fast import accounting, local, transfer
from hdp_fast.exceptions import UtilityWarning

TABLE = Path(__file__).parents[1] / "start" / "sliders_table.js"
EPSILONS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
PEOPLE = (*(k * 10**power for power in (2, 3, 4, 5) for k in (1, 2, 3, 5)), 10**6)
BASE_RATES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
BETA = 0.05


def truth(epsilon: float) -> float:
    """The probability with which a report of one bit is the answer."""
    return float(np.exp(local.BinaryResponse(epsilon, bounds=(0, 1)).log_probability(1, 1.0)))


def interval(people: int, epsilon: float, base_rate: float) -> list[float]:
    """The exact interval of a share, where as many say yes as are expected to."""
    keep = truth(epsilon)
    yes = round(people * (base_rate * keep + (1 - base_rate) * (1 - keep)))
    reports = (np.arange(people) < yes).astype(np.uint8)
    estimate = local.BinaryResponse(epsilon, bounds=(0, 1)).aggregate(reports).estimate(beta=BETA)
    return [round(estimate.low, 4), round(estimate.high, 4)]


def certified(people: int, epsilon: float) -> float | None:
    """The half width to which people certify a model's error; None if the interval says nothing."""
    low, high = 0.0, 1.0
    for _ in range(12):
        middle = (low + high) / 2
        enough = transfer.agents_to_certify(middle, epsilon=epsilon, beta=BETA) <= people
        low, high = (low, middle) if enough else (middle, high)
    return None if high == 1.0 else round(high, 4)


def intercept(people: int, epsilon: float, base_rate: float) -> float:
    """The least standard error of a calibrated model's intercept."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        plan = transfer.plan_calibration(people, epsilon=epsilon, base_rate=base_rate)
    return float(f"{plan.standard_error:.3g}")


def make() -> dict[str, object]:
    """The whole table; entries of nested lists follow epsilons, then people, then base rates."""
    return {
        "epsilons": EPSILONS,
        "people": PEOPLE,
        "base_rates": BASE_RATES,
        "truth": [round(truth(epsilon), 6) for epsilon in EPSILONS],
        "advantage": [round(accounting.attack_advantage(epsilon), 4) for epsilon in EPSILONS],
        "certified": [[certified(people, epsilon) for people in PEOPLE] for epsilon in EPSILONS],
        "interval": [
            [[interval(people, epsilon, rate) for rate in BASE_RATES] for people in PEOPLE]
            for epsilon in EPSILONS
        ],
        "intercept": [
            [[intercept(people, epsilon, rate) for rate in BASE_RATES] for people in PEOPLE]
            for epsilon in EPSILONS
        ],
    }


if __name__ == "__main__":
    text = json.dumps(make(), separators=(",", ":"))
    TABLE.write_text(f"const PLANS = {text};\n", encoding="utf-8")
