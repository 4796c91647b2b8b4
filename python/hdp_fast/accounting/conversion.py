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
    Neighbors,
    Pure,
    Shuffled,
    Subsampled,
    describe,
)

_LARGEST_EXPONENT = 700.0


def pure_epsilon(mechanism: Mechanism) -> float:
    """Computes the epsilon of a single run of a mechanism at delta = 0.

    For m draws at rate q it is m ln(1 + q (e^epsilon - 1)), where epsilon is that of the base. For
    a handful of rounds the sum of these, or their `optimal_composition`, can lie below what the
    accountants show. The accountants' curve is the better one at every smaller epsilon.

    Args:
        mechanism: Any mechanism.

    Returns:
        The epsilon, rounded up. It is infinite for mechanisms that are not pure.

    Raises:
        ParameterError: The argument is no mechanism.

    Guarantee:
        The mechanism is pure epsilon-DP under its neighbor relation.

    Source:
        Kohen and Sheffet 2022, Claim 4.1, whose bound fails above epsilon = 2.92; this one is tight
        at every epsilon (docs/theory/joint_convexity.md, all draws that change at once).

    Examples:
        >>> from hdp_fast.accounting import GaussianMechanism, Pure, Subsampled, pure_epsilon
        >>> round(pure_epsilon(Subsampled(Pure(1.0), draws=100, rate=1e-4)), 4)
        0.0172
        >>> pure_epsilon(GaussianMechanism(1.0))
        inf
    """
    _, _, draws, rate = describe(mechanism)
    if isinstance(mechanism, Shuffled):
        return mechanism.local_epsilon
    base = mechanism.base if isinstance(mechanism, Subsampled) else mechanism
    if not isinstance(base, Pure | BoundedRange | LaplaceMechanism | DiscreteLaplace):
        return math.inf
    if rate == 1 or base.epsilon > _LARGEST_EXPONENT:
        return round_up(draws * Fraction(base.epsilon))
    growth = math.nextafter(rate * math.expm1(base.epsilon), math.inf)
    return math.nextafter(draws * math.log1p(growth) * (1 + 1e-14), math.inf)


def attack_advantage(epsilon: float, delta: float = 0.0) -> float:
    """Computes the largest advantage of an attacker who sees one (epsilon, delta)-DP release.

    The attacker knows everything but which of two neighbors the data are, such as whether a person
    is in them, and says "it is this one". The advantage is the true positive rate of the attack
    minus its false positive rate: 0 for guessing, 1 for certainty. It is at most the total
    variation distance of the two laws, which is the delta of the release at epsilon 0.

    Args:
        epsilon: Finite and at least 0.
        delta: In [0, 1).

    Returns:
        The advantage (e^epsilon - 1 + 2 delta) / (e^epsilon + 1), in [0, 1] and rounded up; for
        delta 0 it is tanh(epsilon / 2). Where more than epsilon and delta is known, the curve tells
        more: `gaussian_delta(mu, 0.0)` for Gaussian noise, which is 2 Phi(mu / 2) - 1, and
        `delta(mechanisms, 0.0)` for a composition.

    Raises:
        ParameterError: An argument lies outside its range.

    Guarantee:
        No attack on a release with this epsilon and delta does better, whatever the attacker
        computes. Randomized response that shows its input with probability delta attains it.

    Source:
        Yeom, Giacomelli, Fredrikson and Jha 2018 for the advantage; Kairouz, Oh and Viswanath 2015,
        Theorem 2.1, for the region of error rates from which the formula follows.

    Examples:
        >>> from hdp_fast.accounting import attack_advantage, gaussian_delta
        >>> round(attack_advantage(1.0), 3), round(attack_advantage(1.0, delta=1e-6), 3)
        (0.462, 0.462)
        >>> round(gaussian_delta(0.25, epsilon=0.0), 3)  # epsilon = 1 at a delta of 3e-6
        0.099
    """
    epsilon, delta = finite_nonnegative("epsilon", epsilon), probability("delta", delta, zero=True)
    fade = math.exp(-epsilon)
    # All terms are positive, so that the roundings of seven operations add up to less than 2e-15.
    bound = (2 * delta * fade - math.expm1(-epsilon)) / (1 + fade)
    return min(1.0, bound * (1 + 2e-15))


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Computes the delta of mu-Gaussian differential privacy at epsilon.

    Args:
        mu: Sensitivity / standard deviation, finite and above 0. For k rounds pass mu * sqrt(k).
        epsilon: Finite and at least 0.

    Returns:
        The delta, rounded up.

    Raises:
        ParameterError: An argument lies outside its range.

    Guarantee:
        Continuous Gaussian noise is (epsilon, delta)-DP with the result, for the relation of the
        sensitivity. No smaller delta holds, up to rounding.

    Source:
        Balle and Wang 2018, Theorem 8.

    Examples:
        >>> from hdp_fast.accounting import gaussian_delta
        >>> round(gaussian_delta(0.5, epsilon=1.0), 4)
        0.0068
    """
    return _core.gaussian_delta(GaussianMechanism(mu).mu, finite_nonnegative("epsilon", epsilon))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Computes the least epsilon >= 0 at which mu-Gaussian differential privacy has this delta.

    Args:
        mu: Sensitivity / standard deviation, finite and above 0. For k rounds pass mu * sqrt(k).
        delta: Strictly between 0 and 1.

    Returns:
        The epsilon, rounded up.

    Raises:
        ParameterError: An argument lies outside its range.

    Guarantee:
        Continuous Gaussian noise is (epsilon, delta)-DP with the result, for the relation of the
        sensitivity. No smaller epsilon holds, up to rounding.

    Source:
        Balle and Wang 2018, Theorem 8.

    Examples:
        >>> from hdp_fast.accounting import gaussian_epsilon
        >>> round(gaussian_epsilon(0.5, delta=1e-6), 2)
        2.25
    """
    return _core.gaussian_epsilon(GaussianMechanism(mu).mu, probability("delta", delta))


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Computes the largest mu whose Gaussian differential privacy implies (epsilon, delta).

    Gaussian noise of standard deviation sensitivity / mu is the analytic Gaussian mechanism.

    Args:
        epsilon: Finite and at least 0.
        delta: Strictly between 0 and 1.

    Returns:
        The mu, rounded down.

    Raises:
        ParameterError: An argument lies outside its range.

    Guarantee:
        Continuous Gaussian noise of standard deviation sensitivity / mu is (epsilon, delta)-DP, for
        the relation of the sensitivity. No larger mu is, up to rounding.

    Source:
        Balle and Wang 2018, Algorithm 1.

    Examples:
        >>> from hdp_fast.accounting import gaussian_mu
        >>> round(1 / gaussian_mu(epsilon=1.0, delta=1e-6), 3)  # noise for sensitivity 1
        4.225
    """
    return _core.gaussian_mu(finite_nonnegative("epsilon", epsilon), probability("delta", delta))


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Computes the epsilon that rho-zero-concentrated differential privacy implies at delta.

    Args:
        rho: Finite and above 0; sums of rho over rounds are allowed.
        delta: Strictly between 0 and 1.

    Returns:
        The epsilon, rounded up.

    Raises:
        ParameterError: An argument lies outside its range.

    Guarantee:
        What is rho-zCDP is (epsilon, delta)-DP with the result, under the same neighbor relation.

    Source:
        Canonne, Kamath and Steinke 2020, Proposition 12.

    Examples:
        >>> from hdp_fast.accounting import zcdp_epsilon
        >>> sigma = 10  # discrete Gaussian noise on a count, once
        >>> round(zcdp_epsilon(1 / (2 * sigma**2), delta=1e-6), 3)
        0.43
    """
    return composed_epsilon(ZCDP(rho), delta, accountant="rdp")


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Computes the largest rho for which rho-zCDP implies (epsilon, delta)-DP.

    rho-zCDP is zero-concentrated differential privacy.

    Args:
        epsilon: Finite and above 0.
        delta: Strictly between 0 and 1.

    Returns:
        A rho that is small enough, below the largest one by a factor of at most 1 + 1e-5.

    Raises:
        ParameterError: An argument lies outside its range, or no rho above 1e-15 is small enough.

    Guarantee:
        What is rho-zCDP with the result is (epsilon, delta)-DP, under the same neighbor relation.

    Source:
        Canonne, Kamath and Steinke 2020, Proposition 12.

    Examples:
        >>> from hdp_fast.accounting import zcdp_rho
        >>> round(zcdp_rho(epsilon=1.0, delta=1e-6), 4)
        0.0244
    """
    wanted, failing = positive("epsilon", epsilon), probability("delta", delta)
    return find_largest(wanted, lambda rho: zcdp_epsilon(rho, failing) <= wanted)


def renyi_divergence(mechanism: Mechanism, order: float) -> float:
    """Bounds the Renyi divergence of a mechanism between neighbors.

    The bound is infinite for `Approximate` with a delta above 1e-50, and where a single run has
    losses above 1200 with such a probability.

    Args:
        mechanism: Any mechanism.
        order: Finite and above 1.

    Returns:
        The bound, rounded up.

    Raises:
        ParameterError: The mechanism is none, or the order lies outside its range.

    Guarantee:
        The mechanism is (order, result)-RDP under its neighbor relation, apart from events of a
        probability below 1e-50. For `GaussianMechanism` and `ZCDP` that are not subsampled nothing
        is left out.

    Cost:
        Milliseconds.

    Source:
        Mironov 2017. The divergence is that of the discretized loss of `delta`, or a closed form
        for `GaussianMechanism` and `ZCDP`.

    Examples:
        >>> from hdp_fast.accounting import GaussianMechanism, Pure, renyi_divergence
        >>> round(renyi_divergence(GaussianMechanism(1.0), order=2), 6)
        1.0
        >>> round(renyi_divergence(Pure(1.0), order=8), 3)
        0.955
    """
    return _core.renyi_divergence(describe(mechanism), number("order", order))


def renyi_epsilon(orders: Sequence[float], divergences: Sequence[float], delta: float) -> float:
    """Computes the least epsilon that any of several Renyi divergences implies at delta.

    Args:
        orders: Orders, finite and above 1, at least one.
        divergences: A bound on the divergence of each order, at least 0.
        delta: Strictly between 0 and 1.

    Returns:
        The epsilon, at least 0 and rounded up.

    Raises:
        ParameterError: A number lies outside its range, or the lists are empty or of different
            lengths.

    Guarantee:
        A mechanism with these divergences is (epsilon, delta)-DP with the result, under the same
        neighbor relation.

    Source:
        Canonne, Kamath and Steinke 2020, Proposition 12.

    Examples:
        >>> from hdp_fast.accounting import renyi_epsilon
        >>> orders = [2, 4, 8, 16, 32, 64]
        >>> round(renyi_epsilon(orders, [0.01 * order for order in orders], delta=1e-6), 3)
        0.622
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
    """Converts a guarantee for adding or removing a record into one for replacing a record.

    A replacement is a removal and an addition. Epsilon, mu and sensitivity double, rho quadruples,
    and (epsilon, delta) becomes (2 epsilon, (1 + e^epsilon) delta).

    Args:
        mechanism: A mechanism under "add_remove".

    Returns:
        The same kind of mechanism, under "replace_one".

    Raises:
        ParameterError: The mechanism is under another relation, delta would be 1 or more, or the
            sensitivity of `DiscreteLaplace` would exceed 4096.

    Guarantee:
        Group privacy for two records.

    Source:
        Dwork and Roth 2014, Theorem 2.2.

    Examples:
        >>> from hdp_fast.accounting import Pure, replace_one
        >>> replace_one(Pure(0.5, neighbors="add_remove"))
        Pure(epsilon=1.0, neighbors='replace_one')
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
