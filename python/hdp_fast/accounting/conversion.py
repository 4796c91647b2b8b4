"""What a guarantee of one kind implies in the terms of another."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from .. import _core
from .._support.validate import finite_nonnegative, number, positive, probability, refuse
from ..exceptions import ParameterError
from .calibration import find_largest
from .composition import epsilon as composed_epsilon
from .composition import round_up
from .mechanisms import (
    ZCDP,
    Approximate,
    BoundedRange,
    DiscreteLaplace,
    GaussianMechanism,
    LaplaceMechanism,
    Mechanism,
    Pure,
    Subsampled,
    describe,
)
from .neighbors import Neighbors

_LARGEST_EXPONENT = 700.0


def pure_epsilon(mechanism: Mechanism) -> float:
    """The epsilon of a single run at delta = 0; infinity where there is none.

    mechanism: any. On m draws at rate q it is m ln(1 + q (e^epsilon - 1)) for a base with epsilon.
    For a handful of rounds the sum of these, or their optimal_composition, can be below what the
    accountants show, whose curve is the better one at every smaller epsilon.

    Guarantee: the mechanism is pure epsilon-DP.
    Raises: ParameterError.
    Cost: constant.
    Source: Kohen and Sheffet 2022, Claim 4.1, with the tight constant (all changed draws at once).
    """
    _, _, _, draws, rate = describe(mechanism)
    base = mechanism.base if isinstance(mechanism, Subsampled) else mechanism
    if not isinstance(base, Pure | BoundedRange | LaplaceMechanism | DiscreteLaplace):
        return math.inf
    if rate == 1 or base.epsilon > _LARGEST_EXPONENT:
        return round_up(draws * Fraction(base.epsilon))
    growth = math.nextafter(rate * math.expm1(base.epsilon), math.inf)
    return math.nextafter(draws * math.log1p(growth) * (1 + 1e-14), math.inf)


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The delta of mu-Gaussian differential privacy at epsilon.

    mu: sensitivity / standard deviation, above 0; k rounds have mu * sqrt(k). epsilon: at least 0.

    Guarantee: Gaussian noise is (epsilon, delta)-DP; exact up to rounding.
    Raises: ParameterError.
    Cost: constant.
    Source: Balle and Wang 2018, Theorem 8.
    """
    return _core.gaussian_delta(GaussianMechanism(mu).mu, finite_nonnegative("epsilon", epsilon))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The least epsilon >= 0 at which mu-Gaussian differential privacy has this delta.

    mu: above 0; delta: strictly between 0 and 1.

    Guarantee: as gaussian_delta.
    Raises: ParameterError.
    Cost: constant.
    Source: Balle and Wang 2018, Theorem 8.
    """
    return _core.gaussian_epsilon(GaussianMechanism(mu).mu, probability("delta", delta))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """The largest mu whose Gaussian differential privacy implies (epsilon, delta): the inverse.

    epsilon: at least 0; delta: strictly between 0 and 1. Gaussian noise of standard deviation
    sensitivity / mu is the analytic Gaussian mechanism.

    Guarantee: as gaussian_delta.
    Raises: ParameterError.
    Cost: constant.
    Source: Balle and Wang 2018, Algorithm 1.
    """
    return _core.gaussian_mu(finite_nonnegative("epsilon", epsilon), probability("delta", delta))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """The epsilon that rho-zCDP implies at delta.

    rho: above 0; delta: strictly between 0 and 1.

    Guarantee: (epsilon, delta)-DP under the relation of the zCDP.
    Raises: ParameterError.
    Cost: constant.
    Source: Canonne, Kamath and Steinke 2020, Proposition 12.
    """
    return composed_epsilon(ZCDP(rho), delta, accountant="rdp")


def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest rho, within 1e-5 of itself, for which rho-zCDP implies (epsilon, delta).

    epsilon: above 0; delta: strictly between 0 and 1.

    Guarantee: as zcdp_epsilon.
    Raises: ParameterError.
    Cost: constant.
    Source: Canonne, Kamath and Steinke 2020, Proposition 12.
    """
    wanted, failing = positive("epsilon", epsilon), probability("delta", delta)
    return find_largest(wanted, lambda rho: zcdp_epsilon(rho, failing) <= wanted)


def renyi_divergence(mechanism: Mechanism, order: float) -> float:
    """A bound on the Renyi divergence of a mechanism between neighbors.

    mechanism: any; order: above 1, finite. Infinite for Approximate and for what is above the
    order that makes it so; of Subsampled and Gaussian noise on a subsample, events of probability
    below 1e-50 are left out.

    Guarantee: the mechanism is (order, result)-RDP, but for those events.
    Raises: ParameterError.
    Cost: milliseconds.
    Source: Mironov 2017; connect-the-dots as in delta(), closed forms for Gaussian and ZCDP.
    """
    return _core.renyi_divergence(describe(mechanism), number("order", order))


def renyi_epsilon(orders: Sequence[float], divergences: Sequence[float], delta: float) -> float:
    """The least epsilon that any of several Renyi divergences implies at delta.

    orders: above 1; divergences: at least 0, one an order; delta: strictly between 0 and 1.

    Guarantee: (epsilon, delta)-DP if one of the divergences holds.
    Raises: ParameterError.
    Cost: linear.
    Source: Canonne, Kamath and Steinke 2020, Proposition 12.
    """
    failing = probability("delta", delta)
    first, second = _list_numbers("orders", orders), _list_numbers("divergences", divergences)
    if len(first) != len(second) or not first:
        lengths = f"orders has length {len(first)} and divergences {len(second)}"
        raise ParameterError(f"{lengths}, but they must be equal and at least 1")
    pairs = list(zip(first, second, strict=True))
    for order, divergence in pairs:
        if not 1 < order < math.inf:
            raise ParameterError(f"orders holds {order}, but each must be finite and above 1")
        if not divergence >= 0:
            raise ParameterError(f"divergences holds {divergence}, but each must be at least 0")
    return min(_core.renyi_epsilon(*pair, failing) for pair in pairs)


def replace_one(mechanism: Mechanism) -> Mechanism:
    """The guarantee for replacing a record that one for adding or removing implies: twice epsilon.

    mechanism: under add_remove. Returns the same kind under replace_one: a replacement is a removal
    and an addition, so that epsilon and mu double, rho quadruples, and (epsilon, delta) becomes
    (2 epsilon, (1 + e^epsilon) delta).

    Guarantee: that of the mechanism returned.
    Raises: ParameterError for another relation, or when delta would be 1 or more.
    Cost: constant.
    Source: group privacy; Dwork and Roth 2014, Theorem 2.2.
    """
    if not isinstance(mechanism, Mechanism) or mechanism.neighbors is not Neighbors.ADD_REMOVE:
        refuse("mechanism", mechanism, "it must be one under add_remove")
    twice: dict[str, Any] = {
        name: factor * getattr(mechanism, name)
        for name, factor in {"epsilon": 2, "mu": 2, "rho": 4, "sensitivity": 2}.items()
        if hasattr(mechanism, name)
    }
    if isinstance(mechanism, Approximate):
        # e^epsilon alone may exceed all floats; the exponent rounds relative to its parts.
        log_delta = math.log(mechanism.delta)
        exponent = mechanism.epsilon + log_delta
        grown = math.exp(exponent) if exponent < 0 else 1.0
        margin = 1e-15 * (4 + mechanism.epsilon - log_delta)
        twice["delta"] = (mechanism.delta + grown) * (1 + margin)
    return dataclasses.replace(mechanism, neighbors=Neighbors.REPLACE_ONE, **twice)


def _list_numbers(name: str, values: Any) -> list[float]:
    try:
        listed = list(values)
    except (TypeError, NotImplementedError):  # the latter from a memoryview of a foreign format
        refuse(name, values, "it must be a sequence of real numbers")
    return [number(name, value) for value in listed]
