"""How likely any one record is in a draw, uniform or by dense weights."""

from __future__ import annotations

from .._support.validate import positive_int, probability_or_one

# Kappa-dense weights are drawn from with kappa_eff = kappa (1 - 2**-12); the rest is for rounding.
WINDOW, SLACK = 1 - 2.0**-12, 1 + 1e-12


def density(kappa: float | None) -> float:
    """The density that draws by kappa-dense weights keep; 1 for None, which means uniform draws."""
    return 1.0 if kappa is None else probability_or_one("kappa", kappa) * WINDOW


def rate_of(n: int, kappa: float | None) -> float:
    """The largest probability of any of n records in a draw, rounded up."""
    exact = 1 / (density(kappa) * positive_int("n", n, 1 << 53))
    return min(exact * SLACK, 1.0)
