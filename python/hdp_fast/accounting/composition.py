"""What several mechanisms on the same data reveal together."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Literal

from .. import _core
from .._support.validate import (
    finite_nonnegative,
    number,
    one_of,
    positive,
    probability,
    refuse,
    shorten,
)
from ..exceptions import ParameterError
from .mechanisms import Description, Mechanism, SampledSum, Subsampled, count, describe

Accountant = Literal["pld", "rdp"]
Terms = tuple[tuple[Description, int], ...]
Mechanisms = Mechanism | Sequence[Mechanism | tuple[Mechanism, int]]

_MOST_EQUAL = 10**8


def delta(mechanisms: Mechanisms, epsilon: float, *, accountant: Accountant = "pld") -> float:
    """Computes the delta of a composition at a given epsilon.

    The mechanisms run on the same data. What each of them computes may depend on the results of
    earlier ones; the list of their guarantees is fixed beforehand.

    Args:
        mechanisms: One mechanism, or a sequence of mechanisms and of pairs (mechanism, count), all
            under the same neighbor relation.
        epsilon: Finite and at least 0.
        accountant: "pld" composes the distributions of the privacy loss. "rdp" composes bounds on
            their moments (Renyi divergences), which is looser. For `Subsampled` mechanisms it can
            show up to twice the epsilon of "pld", and it warns of that.

    Returns:
        The delta, in (0, 1], rounded up.

    Raises:
        ParameterError: An argument lies outside its range, there is no mechanism, or the mechanisms
            are under different neighbor relations.

    Guarantee:
        The composition is (epsilon, delta)-DP under the neighbor relation of the mechanisms. Errors
        of discretization, truncation, rounding and of the Fourier transforms are added to delta.
        The bound on the transforms is that of the textbook algorithm, with slack; it is not proved
        that the library in use meets it.

    Cost:
        1 to 100 ms for each distinct mechanism, whatever its count. It takes longer where thousands
        of draws are expected to change.

    Source:
        Doroshenko, Ghazi, Kamath, Kumar and Manurangsi 2022 (connecting the dots), with exponential
        tilting. For draws with replacement Kohen and Sheffet 2022, Claim 4.1, sharpened by the
        advanced joint convexity of Balle, Barthe and Gaboardi 2018. For "rdp" Canonne, Kamath and
        Steinke 2020, Proposition 12.

    Examples:
        >>> from hdp_fast.accounting import GaussianMechanism, Pure, delta
        >>> round(delta([(Pure(0.1), 50), GaussianMechanism(0.5)], epsilon=2.0), 4)
        0.0076
    """
    terms = list_terms(mechanisms, accountant)
    return compute_delta(terms, finite_nonnegative("epsilon", epsilon), accountant)


def epsilon(mechanisms: Mechanisms, delta: float, *, accountant: Accountant = "pld") -> float:
    """Computes the least epsilon of a composition at a given delta.

    It is the inverse of `delta` and describes the same composition.

    Args:
        mechanisms: One mechanism, or a sequence of mechanisms and of pairs (mechanism, count), all
            under the same neighbor relation.
        delta: Strictly between 0 and 1.
        accountant: "pld" or "rdp", as for `delta`.

    Returns:
        The epsilon, at least 0 and rounded up. It is infinite where no epsilon is enough, since the
            mechanisms fail with a probability above `delta`.

    Raises:
        ParameterError: An argument lies outside its range, there is no mechanism, or the mechanisms
            are under different neighbor relations.

    Guarantee:
        The composition is (epsilon, delta)-DP, as for `delta`. For a delta of 1e-40 or more
        `delta(mechanisms, result)`, by the same accountant, is at most the delta asked for. Below,
        it may say more than that: it cuts the tails of subsamples, and adds what they may hold.

    Cost:
        About two calls of `delta`.

    Source:
        As for the function `delta`.

    Examples:
        >>> from hdp_fast.accounting import DiscreteLaplace, epsilon
        >>> round(epsilon([(DiscreteLaplace(0.1, 1), 100)], delta=1e-6), 2)
        4.77
    """
    terms = list_terms(mechanisms, accountant)
    return _compute_epsilon(terms, probability("delta", delta), accountant)


def basic_composition(guarantees: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """Adds up (epsilon, delta) guarantees of mechanisms on the same data, chosen adaptively.

    Args:
        guarantees: Pairs of an epsilon, finite and at least 0, and a delta in [0, 1].

    Returns:
        The sum of the epsilons and the sum of the deltas, at most 1. Both are exact and then
            rounded up.

    Raises:
        ParameterError: An item is no such pair.

    Guarantee:
        The mechanisms are together (epsilon, delta)-DP with the returned pair.

    Source:
        Dwork, Kenthapadi, McSherry, Mironov and Naor 2006.

    Examples:
        >>> from hdp_fast.accounting import basic_composition
        >>> basic_composition([(0.25, 0.0), (0.25, 0.0), (0.5, 1e-6)])
        (1.0, 1e-06)
    """
    if not isinstance(guarantees, Iterable):
        refuse("guarantees", guarantees, "it must list pairs of an epsilon and a delta")
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
    """Computes the best bound for mechanisms known to be (epsilon, delta)-DP and nothing more.

    Exactly one target is passed; the other number of the pair is returned.

    Args:
        epsilon: Of each mechanism, finite and above 0.
        delta: Of each mechanism, in [0, 1).
        rounds: How many mechanisms there are, from 1 to `10**8`.
        target_delta: Delta of the composition, strictly between 0 and 1. Its epsilon is returned.
        target_epsilon: Epsilon of the composition, finite and at least 0. Its delta is returned.

    Returns:
        The epsilon or the delta of the composition. The epsilon is infinite where none is enough.

    Raises:
        ParameterError: An argument lies outside its range, or not exactly one target is passed.

    Guarantee:
        The composition is differentially private with the target and the result. Some mechanisms
        attain the bound, at every target and not only on the paper's grid of epsilons.

    Cost:
        O(sqrt(rounds)).

    Source:
        Kairouz, Oh and Viswanath 2017, Theorem 3.3.

    Examples:
        >>> from hdp_fast.accounting import optimal_composition
        >>> round(optimal_composition(0.1, 0, rounds=100, target_delta=1e-6), 2)  # their sum is 10
        4.77
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
    """The value of delta(), computed once."""
    return _core.composed_delta([*terms], epsilon, accountant)


@functools.lru_cache(maxsize=1024)
def _compute_epsilon(terms: Terms, delta: float, accountant: Accountant) -> float:
    return _core.composed_epsilon([*terms], delta, accountant)


def list_terms(mechanisms: Mechanisms, accountant: str) -> Terms:
    """Distinct mechanisms with their counts, all under one neighbor relation."""
    one_of("accountant", accountant, ("pld", "rdp"))
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
    if accountant == "rdp" and any(
        isinstance(mechanism, Subsampled | SampledSum) for mechanism in rounds
    ):
        text = 'the accountant "rdp" can take up to twice the epsilon of "pld" when subsampling'
        warnings.warn(text, UserWarning, stacklevel=3)
    return tuple((describe(mechanism), times) for mechanism, times in rounds.items())


def _add_up(values: Iterable[float]) -> float:
    """The exact sum, rounded up."""
    return round_up(sum(map(Fraction, values), Fraction(0)))


def round_up(exact: Fraction) -> float:
    """The least float that is not below an exact number."""
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
