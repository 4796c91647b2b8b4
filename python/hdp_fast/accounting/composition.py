"""What several mechanisms on the same data reveal together."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Literal

from .. import _core
from .._support.validate import finite_nonnegative, number, positive, probability, refuse, shorten
from ..exceptions import ParameterError
from .mechanisms import Description, Mechanism, Subsampled, count, describe

Accountant = Literal["pld", "rdp"]
Terms = tuple[tuple[Description, int], ...]
Mechanisms = Mechanism | Sequence[Mechanism | tuple[Mechanism, int]]

_MOST_EQUAL = 10**8


def delta(mechanisms: Mechanisms, epsilon: float, *, accountant: Accountant = "pld") -> float:
    """The delta of mechanisms run on the same data, each chosen with all earlier results in view.

    mechanisms: one, or a sequence of mechanisms and (mechanism, count) pairs, all under the same
    neighbor relation. epsilon: at least 0. accountant: "pld", or "rdp", which is looser: for
    subsampled pure learners it can take up to twice the epsilon, and warns.

    Guarantee: the composition is (epsilon, delta)-DP under the mechanisms' neighbor relation;
        discretization, truncation, rounding and the transforms' error are added to delta (for the
        transforms by the bound of the textbook algorithm with slack, which the crate is not
        proved to meet).
    Raises: ParameterError.
    Cost: 1 to 100 ms a distinct mechanism, whatever the counts; with thousands of expected changes
        of draws, more.
    Source: connect-the-dots of Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022; exponential
        tilting; Kohen and Sheffet 2022, Claim 4.1, sharpened by advanced joint convexity (Balle,
        Barthe and Gaboardi 2018); for "rdp" Canonne, Kamath and Steinke 2020, Proposition 12.
    """
    terms = list_terms(mechanisms, accountant)
    return compute_delta(terms, finite_nonnegative("epsilon", epsilon), accountant)


def epsilon(mechanisms: Mechanisms, delta: float, *, accountant: Accountant = "pld") -> float:
    """The least epsilon, at least 0, that delta() shows for a composition at the given delta.

    mechanisms, accountant: as for delta(). delta: strictly between 0 and 1. Returns infinity where
    no epsilon is enough, since some mechanisms fail with a probability above delta.

    Guarantee: as for delta(), which has shown it: delta(mechanisms, result) is at most delta.
    Raises: ParameterError.
    Cost: about two calls of delta().
    Source: as delta().
    """
    terms = list_terms(mechanisms, accountant)
    return _compute_epsilon(terms, probability("delta", delta), accountant)


def basic_composition(guarantees: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """The sum of (epsilon, delta) guarantees on the same data, chosen adaptively; rounded up.

    guarantees: pairs of epsilon >= 0 and delta in [0, 1].

    Guarantee: all of them together are (epsilon, delta)-DP with the pair returned.
    Raises: ParameterError.
    Cost: linear.
    Source: Dwork, Kenthapadi, McSherry, Mironov and Naor 2006.
    """
    pairs = [_check_pair(guarantee) for guarantee in guarantees]
    return _add_up(first for first, _ in pairs), min(_add_up(second for _, second in pairs), 1.0)


def optimal_composition(
    epsilon: float,
    delta: float,
    rounds: int,
    *,
    target_delta: float | None = None,
    target_epsilon: float | None = None,
) -> float:
    """The best that can be said of `rounds` mechanisms, each (epsilon, delta)-DP and no more known.

    epsilon: above 0; delta: in [0, 1); rounds: 1 to 10**8. Given target_delta, returns the epsilon
    of the whole, infinity if there is none; given target_epsilon, its delta.

    Guarantee: the composition is differentially private with target and result; the bound is
        attained, whatever the target, not only on the paper's grid.
    Raises: ParameterError unless exactly one target is given.
    Cost: O(sqrt(rounds)).
    Source: Kairouz, Oh and Viswanath 2017, Theorem 3.3.
    """
    times = count("rounds", rounds)
    if times > _MOST_EQUAL:
        refuse("rounds", rounds, "it must be an integer from 1 to 10**8")
    guarantee = positive("epsilon", epsilon), probability("delta", delta, zero=True)
    if target_delta is not None and target_epsilon is None:
        return _core.optimal_epsilon(*guarantee, times, probability("target_delta", target_delta))
    if target_epsilon is not None and target_delta is None:
        return _core.optimal_delta(
            *guarantee, times, finite_nonnegative("target_epsilon", target_epsilon)
        )
    targets = (
        f"target_delta = {shorten(target_delta)} and target_epsilon = {shorten(target_epsilon)}"
    )
    raise ParameterError(f"{targets}, but exactly one of them must be given")


# A fit asks again what its plan has asked, and a plan what the one before has.
@functools.lru_cache(maxsize=1024)
def compute_delta(terms: Terms, epsilon: float, accountant: Accountant) -> float:
    """What delta() returns, computed once.

    Raises: nothing.
    """
    return _core.composed_delta([*terms], epsilon, accountant)


@functools.lru_cache(maxsize=1024)
def _compute_epsilon(terms: Terms, delta: float, accountant: Accountant) -> float:
    return _core.composed_epsilon([*terms], delta, accountant)


def list_terms(mechanisms: Mechanisms, accountant: str) -> Terms:
    """Distinct mechanisms with their counts, all under one neighbor relation."""
    listed = [mechanisms] if isinstance(mechanisms, Mechanism) else mechanisms
    if not isinstance(listed, Sequence) or isinstance(listed, str | bytes):
        refuse("mechanisms", mechanisms, "it must be a mechanism or a sequence")
    rounds: dict[Mechanism, int] = {}
    for item in listed:
        mechanism, times = item if isinstance(item, tuple) and len(item) == 2 else (item, 1)
        if not isinstance(mechanism, Mechanism):
            rule = "each must be a mechanism or a pair of a mechanism and a count"
            raise ParameterError(f"mechanisms holds {shorten(item)}, but {rule}")
        rounds[mechanism] = rounds.get(mechanism, 0) + count("rounds", times)
    relations = sorted({str(mechanism.neighbors) for mechanism in rounds})
    if len(relations) > 1:
        rule = "all must be under the same relation; replace_one() converts from add_remove"
        raise ParameterError(f"mechanisms are under {', '.join(relations)}, but {rule}")
    if accountant == "rdp" and any(isinstance(mechanism, Subsampled) for mechanism in rounds):
        text = 'the accountant "rdp" can take up to twice the epsilon of "pld" when subsampling'
        warnings.warn(text, UserWarning, stacklevel=3)
    return tuple((describe(mechanism), times) for mechanism, times in rounds.items())


def _add_up(values: Iterable[float]) -> float:
    """The exact sum, rounded up."""
    return round_up(sum(map(Fraction, values), Fraction(0)))


def round_up(exact: Fraction) -> float:
    """The least float that is not below."""
    try:
        nearest = float(exact)
    except OverflowError:
        return math.inf
    return nearest if nearest >= exact else math.nextafter(nearest, math.inf)


def _check_pair(guarantee: tuple[float, float]) -> tuple[float, float]:
    try:
        first, second = guarantee
    except (TypeError, ValueError):
        rule = "each must be a pair of epsilon and delta"
        raise ParameterError(f"guarantees holds {shorten(guarantee)}, but {rule}") from None
    failing = number("delta", second)
    if not 0 <= failing <= 1:
        refuse("delta", second, "it must lie in [0, 1]")
    return finite_nonnegative("epsilon", first), failing
