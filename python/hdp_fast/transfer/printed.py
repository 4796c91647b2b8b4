"""The sizes, steps and noise that Kohen and Sheffet print, as functions of public numbers.

They are here to be compared with: `plan_rounds` needs fewer records, rounds and agents. Where a
printed number is too small for what it promises, the corrected one stands beside it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec, TypeVar

from .._support.validate import (
    finite_nonnegative,
    flag,
    nonnegative,
    nonnegative_int,
    positive,
    positive_int,
    probability,
    refuse,
)
from ..exceptions import ParameterError
from ..learners.noisy_steps import NoisySteps
from .learner import composes
from .plans import RunGoal, is_auto, validate_rounds, validate_tests

P = ParamSpec("P")
T = TypeVar("T")

# Above which no number of records is counted.
_MOST = 1 << 62
# Noise that Algorithm 4 adds at least, in squares of the Lipschitz constant.
LEAST_SQUARE = 20.0


class PaperSteps(NamedTuple):
    """The number of steps R of Algorithm 3, as printed and as its own bound needs.

    Attributes:
        printed: max(9 `D**2 G**2` / `alpha**2`, 8 `D**2 L**2` ln(2 / beta) / `alpha**2`), where
            `G**2` = `L**2` + d `sigma**2`; with a strong convexity lambda the first of the two is
            4 X ln X for X = `G**2` / (lambda alpha).
        corrected: The least R for which both terms of the paper's bound are at most alpha / 2 each.
            The printed second term is a quarter of what that needs.

    Examples:
        >>> from hdp_fast import transfer
        >>> sizes = {"alpha": 0.1, "beta": 0.05, "diameter": 2.0, "lipschitz": 1.0}
        >>> transfer.paper_steps(**sizes, deviation=0.0, columns=5)
        PaperSteps(printed=11805, corrected=47218)
    """

    printed: int
    corrected: int


class PaperDescent(NamedTuple):
    """What Algorithm 4 prints: Subsample-Test-Reweigh with private gradient steps.

    Attributes:
        n: Records of the curator.
        rounds: Largest number of rounds T.
        steps: Steps R of a round, each on one draw.
        kappa: Density of the weights.
        noise_multiplier: sigma / L, the deviation of the noise in Lipschitz constants.
        rho: With omega, the truncated concentrated privacy of the whole run.
        omega: The largest order for which it holds.
        epsilon: What the paper makes of rho and omega, at most the epsilon that was asked for.
            `accounting.tcdp_epsilon(rho, omega, delta)` is less.

    Examples:
        >>> from hdp_fast import accounting, transfer
        >>> made = transfer.paper_descent(
        ...     alpha=0.08, beta=1e-6, epsilon=0.5, delta=1e-4, chi2=0.35,
        ...     diameter=1.0, lipschitz=0.1, columns=9,
        ... )
        >>> made.rounds, made.steps, f"{made.n:,}", round(made.noise_multiplier, 2)
        (1416, 3606, '5,801,493', 5.33)
        >>> epsilon = accounting.tcdp_epsilon(made.rho, made.omega, 1e-4)
        >>> round(made.epsilon, 2), round(epsilon, 2)
        (0.35, 0.22)
    """

    n: int
    rounds: int
    steps: int
    kappa: float
    noise_multiplier: float
    rho: float
    omega: float
    epsilon: float


def _within_floats(count: Callable[P, T]) -> Callable[P, T]:
    """Refuses numbers that leave the range of floats on the way, as `_whole` refuses the result."""

    @functools.wraps(count)
    def counted(*arguments: P.args, **options: P.kwargs) -> T:
        try:
            return count(*arguments, **options)
        except (OverflowError, ZeroDivisionError):
            raise _too_much(options["alpha"]) from None

    return counted


@_within_floats
def paper_records(*, alpha: float, beta: float, chi2: float, dimension: int) -> int:
    """Computes the number of records that Algorithm 1 prints, that of Lemma 3.2.

    Args:
        alpha: Excess error, in (0, 1/8).
        beta: Failure probability, in (0, 1/8).
        chi2: Bound on the chi-squared divergence of target from source, at least 0.
        dimension: Pseudo-dimension d of the class, at least 1; for a finite class log2 of its size.

    Returns:
        800 (chi2 + 1) ln(1 / alpha) / `alpha**2` (d ln(400 d / `alpha**3`) + ln(8 / beta)), rounded
        up.

    Raises:
        ParameterError: An argument lies outside its range, or `2**62` records are not enough.

    Guarantee:
        Of utility only: some distribution over so many records, as close to uniform as the lemma
        says, stands for the target, except with probability beta.

    Source:
        Kohen and Sheffet 2022, Algorithm 1 and Lemma 3.2. For a finite class `plan_rounds` asks for
        less.

    Examples:
        >>> from hdp_fast import transfer
        >>> f"{transfer.paper_records(alpha=0.05, beta=0.05, chi2=0.35, dimension=13):,}"
        '301,722,345'
    """
    width, failure = _small("alpha", alpha), _small("beta", beta)
    ratio, d = 1 + finite_nonnegative("chi2", chi2), positive_int("dimension", dimension, _MOST)
    each = d * math.log(400 * d / width**3) + math.log(8 / failure)
    return _whole(800 * ratio * math.log(1 / width) / width**2 * each, alpha)


@_within_floats
def paper_rounds(
    *, alpha: float, chi2: float, private: bool = True, largest_loss: float = 1.0
) -> int:
    """Computes the largest number of rounds T that Algorithms 1, 2 and 4 print.

    Args:
        alpha: Excess error, in (0, 1).
        chi2: Bound on the chi-squared divergence of target from source, at least 0.
        private: True for Algorithms 2 and 4, False for Algorithm 1.
        largest_loss: The bound D L on the losses of Algorithm 4; 1 for Algorithms 1 and 2.

    Returns:
        128 `(D L)**2` log2(8 (chi2 + 1) / alpha) / `alpha**2`, for Algorithm 1
        32 log2(8 (chi2 + 1) / `alpha**2`) / `alpha**2`, rounded up.

    Raises:
        ParameterError: An argument lies outside its range, or there are more than `2**62` rounds.

    Source:
        Kohen and Sheffet 2022, Algorithms 1, 2 and 4. The proof for Algorithm 1 has alpha in place
        of `alpha**2` in the logarithm, which is less.

    Examples:
        >>> from hdp_fast import transfer
        >>> transfer.paper_rounds(alpha=0.05, chi2=0.35)
        397051
        >>> transfer.paper_rounds(alpha=0.05, chi2=0.35, private=False)
        154584
    """
    width, ratio = probability("alpha", alpha), 1 + finite_nonnegative("chi2", chi2)
    largest = positive("largest_loss", largest_loss)
    if flag("private", private):
        rounds = 128 * largest**2 * math.log2(8 * ratio / width)
    else:
        rounds = 32 * math.log2(8 * ratio / width**2)
    return _whole(rounds / width**2, alpha)


@_within_floats
def paper_steps(
    *,
    alpha: float,
    beta: float,
    diameter: float,
    lipschitz: float,
    deviation: float,
    columns: int,
    strong_convexity: float = 0.0,
) -> PaperSteps:
    """Computes the number of steps R that Algorithm 3 prints, and what its bound needs.

    Args:
        alpha: Excess loss, above 0.
        beta: Failure probability, in (0, 1).
        diameter: Diameter D of the hypotheses, above 0.
        lipschitz: Lipschitz constant L of the loss, above 0.
        deviation: Standard deviation sigma of the noise on each coordinate of a gradient, at least
            0.
        columns: Number d of weights, at least 1.
        strong_convexity: lambda where the loss is lambda-strongly convex; 0 for convex losses.

    Returns:
        Both numbers of steps.

    Raises:
        ParameterError: An argument lies outside its range, or `2**62` steps are not enough.

    Guarantee:
        Of utility only: after `corrected` steps of the length D / (G sqrt(r)), or
        1 / (lambda r), the paper's bound on the excess loss is at most alpha, except with
        probability beta. The printed steps D / (sigma sqrt(r)) and D / (lambda r) have no such
        bound.

    Source:
        Kohen and Sheffet 2022, Algorithm 3 and Theorem A.1.

    Examples:
        >>> from hdp_fast import transfer
        >>> sizes = {"alpha": 0.1, "beta": 0.05, "diameter": 2.0, "lipschitz": 1.0}
        >>> transfer.paper_steps(**sizes, deviation=4.5, columns=5)
        PaperSteps(printed=368100, corrected=368100)
    """
    width, failure = positive("alpha", alpha), probability("beta", beta)
    D, L = positive("diameter", diameter), positive("lipschitz", lipschitz)
    sigma, d = finite_nonnegative("deviation", deviation), positive_int("columns", columns, _MOST)
    curved = nonnegative("strong_convexity", strong_convexity)
    square = L**2 + d * sigma**2
    spread = (D * L / width) ** 2 * math.log(2 / failure)
    if not curved:
        first = 9 * (D / width) ** 2 * square
        least = first
    else:
        X = square / (curved * width)
        first, least = 4 * X * math.log(X), _solve(X)
    return PaperSteps(
        max(1, _whole(max(first, 8 * spread), alpha)), _whole(max(least, 32 * spread), alpha)
    )


@_within_floats
def paper_descent(
    *,
    alpha: float,
    beta: float,
    epsilon: float,
    delta: float,
    chi2: float,
    diameter: float,
    lipschitz: float,
    columns: int,
    strong_convexity: float = 0.0,
    steps: int | None = None,
) -> PaperDescent:
    """Computes records, rounds, steps and noise that Algorithm 4 prints.

    The printed noise depends on n, the steps on the noise, and n on the steps: the result is the
    least n for which all three hold.

    Args:
        alpha: Excess error, in (0, 1/8).
        beta: Failure probability, in (0, 1/8).
        epsilon: Privacy parameter of the curator's records, in (0, 1).
        delta: Privacy parameter of the curator's records, in (0, 1/4).
        chi2: Bound on the chi-squared divergence of target from source, at least 0.
        diameter: Diameter D of the hypotheses, above 0.
        lipschitz: Lipschitz constant L of the loss, above 0. D L bounds the losses and must be at
            most 1: the printed answers of agents are private for losses in [0, 1] alone.
        columns: Number of weights, at least 1.
        strong_convexity: lambda where the loss is lambda-strongly convex; 0 for convex losses.
        steps: Steps of a round, in place of the printed R; None takes that.

    Returns:
        The parameters, and the privacy that the paper shows for them.

    Raises:
        ParameterError: An argument lies outside its range, or `2**62` records are not enough.

    Guarantee:
        A run with these parameters is (rho, omega)-tCDP for each record of the curator, under
        "replace_one", and so (epsilon, delta)-DP.

    Source:
        Kohen and Sheffet 2022, Algorithm 4, Theorems A.3 and A.4.

    Examples:
        >>> from hdp_fast import transfer
        >>> goal = {"alpha": 0.08, "beta": 1e-6, "epsilon": 0.5, "delta": 1e-4, "chi2": 0.35}
        >>> shape = {"diameter": 1.0, "lipschitz": 0.1, "columns": 9}
        >>> f"{transfer.paper_descent(**goal, **shape, steps=50_000_000).n:,}"
        '791,621,368'
    """
    width, failure = _small("alpha", alpha), _small("beta", beta)
    D, L = positive("diameter", diameter), positive("lipschitz", lipschitz)
    if not D * L <= 1:
        rule = f"losses up to diameter * lipschitz = {D * L:g} leave [0, 1], for which alone"
        raise ParameterError(f"diameter = {diameter}, but {rule} the printed answers are private")
    wanted, failing = _below("epsilon", epsilon, 1.0), _below("delta", delta, 0.25)
    rounds = paper_rounds(alpha=width, chi2=chi2, largest_loss=D * L)
    kappa = width / (8 * (1 + chi2))
    given = nonnegative_int("steps", steps) if steps is not None else None
    if given == 0:
        refuse("steps", steps, "there must be at least 1")

    def settle(n: int) -> tuple[float, int, float]:
        """The noise and steps for n records, and the records that these need."""
        square = count_square(kappa * n, wanted, failing)
        made = given
        if made is None:
            made = paper_steps(
                alpha=width, beta=failure, diameter=D, lipschitz=L, columns=columns,
                deviation=L * math.sqrt(square), strong_convexity=strong_convexity,
            ).printed  # fmt: skip
        product = 52 * made * rounds / (8 * kappa**2 * wanted)
        return square, made, math.sqrt(product * math.log(product))

    # The need falls as n grows: the logarithm in the noise does.
    low, high = math.ceil(4 / kappa), _MOST
    if settle(high)[2] > high:
        raise ParameterError(f"alpha = {alpha}, but it needs more than 2**62 records")
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if settle(middle)[2] <= middle else (middle + 1, high)
    square, made, _ = settle(high)
    rho = 26 * made * rounds / (square * (kappa * high) ** 2)
    omega = square * math.log(kappa * high) / 8
    shown = rho * omega + math.log(1 / failing) / (omega - 1)
    return PaperDescent(high, rounds, made, kappa, math.sqrt(square), rho, omega, shown)


def count_square(mass: float, epsilon: float, delta: float) -> float:
    """(sigma / L)**2 as Algorithm 4 prints it, for kappa n = mass."""
    return max(LEAST_SQUARE, (16 * math.log(1 / delta) / epsilon + 8) / math.log(mass))


def settle_printed(goal: RunGoal) -> RunGoal:
    """The goal with the settings that Algorithm 2 prints, or Algorithm 1 for epsilon = inf.

    The rounds may be fewer. Algorithm 1 is that of an SQ oracle with tau = alpha.

    Raises:
        ParameterError: Another setting was passed, or a parameter is outside what the paper states.
    """
    for name in ("kappa", "eta", "schedule", "output", "draws"):
        value = getattr(goal, name)
        if not (value is None or is_auto(value) or (name == "eta" and value == "paper")):
            refuse(name, value, "variant = 'paper' takes what is printed: leave it out")
    chi2 = goal.chi2
    if chi2 is None:
        refuse("chi2", None, "what is printed with variant = 'paper' follows from it")
    alpha, private = _small("alpha", goal.alpha), goal.is_private
    _small("beta", goal.beta)
    if composes(goal.learner):
        goal = _settle_descent(goal)
    printed = paper_rounds(alpha=alpha, chi2=chi2, private=private)
    left = goal.rounds is None or is_auto(goal.rounds)
    rounds = printed if left else validate_rounds(goal.rounds)
    if rounds > printed:
        refuse("rounds", rounds, f"variant = 'paper' has at most the printed {printed:,}")
    kappa = alpha / (8 * (1 + chi2)) if private else None
    settled = goal._replace(alpha=alpha, eta=alpha / 8, rounds=rounds, kappa=kappa)
    return validate_tests(settled._replace(schedule="every", output="tested"))


def _settle_descent(goal: RunGoal) -> RunGoal:
    """The goal of Algorithm 4, with the least noise that it prints; losses are shares of L D."""
    learner = goal.learner
    if not goal.is_private:
        refuse("learner", learner, "Algorithm 1 takes one that learns from drawn records")
    if not isinstance(learner, NoisySteps):
        refuse("learner", learner, "Algorithm 4 takes a PrivateSGD")
    if learner.steps is None:
        refuse("learner.steps", None, "transfer.paper_steps prints it, from the columns")
    if learner.batch_size != 1:
        refuse("learner.batch_size", learner.batch_size, "Algorithm 4 draws single records")
    _below("epsilon", goal.epsilon, 1.0)
    _below("delta", goal.delta, 0.25)
    least = math.sqrt(LEAST_SQUARE)
    learner = dataclasses.replace(learner, epsilon=None, noise_multiplier=least)
    return goal._replace(learner=learner, weigh_by="losses")


def _solve(X: float) -> float:
    """The least R of at least 1 with X (1 + ln R) <= R."""
    R = max(X, 1.0)
    for _ in range(200):
        R = max(X * (1 + math.log(R)), 1.0)
    return R


def _small(name: str, value: Any) -> float:
    """A number in (0, 1/8), for which alone the paper's algorithms are stated."""
    return _below(name, value, 0.125)


def _below(name: str, value: Any, most: float) -> float:
    checked = probability(name, value)
    if not checked < most:
        refuse(name, value, f"the paper states its algorithm below {most:g} only")
    return checked


def _whole(value: float, alpha: float) -> int:
    if not value < _MOST:
        raise _too_much(alpha)
    return math.ceil(value)


def _too_much(alpha: Any) -> ParameterError:
    return ParameterError(f"alpha = {alpha}, but more than 2**62 would be needed")
