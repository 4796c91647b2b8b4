"""Randomized response, and means of true answers from the randomized ones."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._support.binomial import MOST_BETA, clopper_pearson, tail_of_equal_coins
from .._support.notes import keep_result
from .._support.random_state import check_random_state, make_key
from .._support.types import Bits, RandomState
from .._support.validate import (
    array,
    bits,
    nonnegative_int,
    positive_int,
    probability,
    probability_or_one,
    refuse,
)
from ..accounting.calibration import least_people
from ..budget.account import Budget, spend
from ..exceptions import ParameterError, ShapeError
from ..record import PrivacyRecord, rng_of
from .randomizers.aggregates import Estimate
from .randomizers.base import MOST_AGENTS, TOO_MANY, Randomizer, largest_change, validate_epsilon
from .randomizers.bounded import BinaryResponse

_SOURCE = (
    "Warner 1965; Kohen and Sheffet 2022, Section 2 (binary randomized response for their Gaussian)"
)


@keep_result
def randomized_response(
    bits: ArrayLike,
    *,
    epsilon: float,
    random_state: RandomState = None,
    budget: Budget | None = None,
) -> Bits:
    """Reports each bit as it is, or flipped: binary randomized response.

    A bit is kept with probability `exp(epsilon) / (1 + exp(epsilon))`. A float in [0, 1] is first
    rounded to 1 with exactly itself as the probability, and to 0 otherwise, so that `estimate_mean`
    estimates the mean of the floats.

    Args:
        bits: Array of shape (n,), of 0 and 1 or of floats in [0, 1].
        epsilon: Privacy parameter of each entry, above 0 and finite. Above 60 the law stays that of
            60.
        random_state: None draws from the operating system; an int or a Generator makes a
            reproducible stream for tests, which protects no one.
        budget: Budget of the relation "replace_one", charged epsilon once. This is right only if no
            two entries come from the same record. None charges nothing.

    Returns:
        A uint8 array of shape (n,), of 0 and 1.

    Raises:
        ShapeError: bits does not have one dimension.
        ParameterError: An entry of bits lies outside [0, 1], its dtype is not one of real numbers,
            or another argument is out of range. Nothing has been spent or drawn then.
        BudgetExceeded: The budget has less than epsilon left. Nothing has been spent or drawn then.

    Guarantee:
        Each entry is pure epsilon-differentially private, whatever the other entries are. The coins
        are exact, and the probability of keeping a bit is rounded towards 1/2. An error for a wrong
        entry is not private.

    Cost:
        O(n). A bit takes little more than a byte of the random stream, a float two bytes.

    Source:
        Warner 1965. Kohen and Sheffet 2022, Section 2, add Gaussian noise instead, which has the
        larger variance for a small delta.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import local
        >>> from hdp_fast.budget import Budget
        >>> smokes = np.repeat([1, 0], [30_000, 70_000])  # one person's true answer each
        >>> budget = Budget(1.0)
        >>> answers = local.randomized_response(smokes, epsilon=1.0, budget=budget)
        >>> estimate = local.estimate_mean(answers, beta=1e-10, epsilon=1.0)
        >>> estimate.low <= 0.3 <= estimate.high, budget.remaining.epsilon
        (True, 0.0)
    """
    # A number beyond float64 is refused, and numpy must not warn of it.
    with np.errstate(all="ignore"):
        entries = array("bits", bits)
        if budget is None:
            return _core.randomized_response(entries, epsilon, make_key(random_state))
        record = record_of("local.randomized_response", epsilon, random_state)
        # What the call below refuses must be refused before anything is spent.
        check_random_state(random_state)
        entries = np.array(entries)  # another thread may change those of the caller
        _core.check_bits(entries)
        with spend(budget, record):
            return _core.randomized_response(entries, epsilon, make_key(random_state))


def record_of(mechanism: str, epsilon: float, random_state: RandomState) -> PrivacyRecord:
    """Returns the record of agents who each answer by binary randomized response."""
    return PrivacyRecord(
        mechanism=mechanism,
        source=_SOURCE,
        neighbors="local",
        epsilon=epsilon,
        noise="binary randomized response",
        rng=rng_of(random_state),
    )


def advantage(epsilon: float) -> float:
    """Returns Pr[truth] - Pr[lie] of randomized response, tanh(epsilon / 2).

    The probabilities are those that are drawn with, after their rounding.

    Raises:
        ParameterError: epsilon is not above 0, or so small that the advantage is rounded to 0.
    """
    difference = (2 * _core.truth_probability(epsilon) - (1 << 64)) / (1 << 64)
    if difference == 0:
        raise ParameterError(
            f"epsilon = {epsilon}, but so small an epsilon leaves nothing but noise"
        )
    return difference


def debias(shares: Any, edge: float) -> Any:
    """The means of true answers, without bias, from the shares of ones among randomized ones.

    A randomized answer is 1 with probability (1 - edge) / 2 + edge times the mean, where edge is
    Pr[truth] - Pr[lie]. The results may lie outside [0, 1].

    shares: a number or an array.
    """
    return (shares - (1 - edge) / 2) / edge


def agents_needed(
    *,
    alpha: float,
    beta: float,
    epsilon: float,
    response_rate: float = 1.0,
    shuffled: float | None = None,
) -> int:
    """Computes how many agents estimate a mean in [0, 1] to within alpha, by randomized response.

    With a response rate below 1 it is the number of agents to ask, about the number of answers
    needed divided by the rate. The promise then includes the chance of who answers, if each agent
    answers with at least this probability, independently of the others and of its own answer.

    Behind a shuffler fewer people are enough, since each may answer with a larger epsilon than all
    answers together have: `accounting.largest_local_epsilon(N, epsilon=..., delta=...,
    categories=2)` is that of an answer. The shuffler must wait until N honest answers to the
    question have arrived.

    Args:
        alpha: Largest error that is allowed, in (0, 1).
        beta: Probability with which the error may be larger, in (0, 1).
        epsilon: Privacy parameter of each agent's answer, above 0; of the shuffled answers, where
            they are shuffled.
        response_rate: Public share of those asked who will answer, in (0, 1].
        shuffled: Delta of the shuffled answers, strictly between 0 and 1. None: no one mixes them.

    Returns:
        The number of agents N.

    Raises:
        ParameterError: A parameter is out of range, epsilon is so small that its answers are
            nothing but noise, 1e18 or more agents would be needed, or answers are shuffled and not
            everybody answers: what counts then is how many are mixed.

    Source:
        Hoeffding's inequality for the randomized answers,
        `N = ln(2 / beta) / (2 (alpha tanh(epsilon / 2))**2)`. At epsilon = 1, beta = 0.01 and delta
        = 1e-6 this is a 28th of the number in Kohen and Sheffet 2022, Section 2. With a response
        rate r the exponent `c = 2 (alpha tanh(epsilon / 2))**2` of one answer becomes
        `-ln(1 - r (1 - exp(-c)))`, since each agent contributes it with probability r only.

    Examples:
        >>> from hdp_fast import local
        >>> local.agents_needed(alpha=0.05, beta=0.05, epsilon=1.0)
        3455
        >>> local.agents_needed(alpha=0.05, beta=0.05, epsilon=0.1)
        295603
        >>> local.agents_needed(alpha=0.05, beta=0.05, epsilon=1.0, response_rate=0.7)
        4937
        >>> local.agents_needed(alpha=0.05, beta=0.05, epsilon=1.0, shuffled=1e-6)
        855
    """
    failure, width = probability("beta", beta), probability("alpha", alpha)
    most = agents_for_width(
        width,
        failure,
        epsilon,
        response_rate=probability_or_one("response_rate", response_rate),
        wanted=f"alpha = {alpha}",
    )
    if shuffled is None:
        return most
    failing = probability("shuffled", shuffled)
    require_all("response_rate", response_rate)

    def enough(people: int) -> float:
        log_odds = math.log(2) - math.log(failure)
        return epsilon_of(math.sqrt(log_odds / (2 * people)) / width)

    return least_people(enough, most=most, epsilon=epsilon, delta=failing)


def epsilon_of(edge: float) -> float:
    """The least epsilon of randomized response with this `advantage`; infinite where none has it.

    It is rounded up.
    """
    return 2 * math.atanh(edge) * (1 + 1e-9) if edge < 1 else math.inf


def require_all(name: str, response_rate: float) -> None:
    """Refuses to count on silence where answers are shuffled.

    Raises:
        ParameterError: Not everybody answers.
    """
    if response_rate < 1:
        rule = "it must be 1 where answers are shuffled: count those that are mixed"
        refuse(name, response_rate, rule)


def agents_for_width(
    width: float,
    failure: float,
    epsilon: float,
    *,
    times: int = 1,
    response_rate: float = 1.0,
    wanted: str,
) -> int:
    """Computes how many agents estimate a mean to within `width`.

    The error may be larger with probability failure / times.

    Raises:
        ParameterError: There cannot be so many agents. The error names `wanted`.
    """
    per_agent = 2 * (width * advantage(epsilon)) ** 2
    if response_rate < 1:
        per_agent = -math.log1p(response_rate * math.expm1(-per_agent))
    log_odds = math.log(2 * times) - math.log(failure)
    if log_odds >= per_agent * MOST_AGENTS:
        raise ParameterError(f"{wanted} and epsilon = {epsilon} {TOO_MANY}")
    return math.ceil(log_odds / per_agent)


def estimate_mean(answers: ArrayLike, *, beta: float, epsilon: float) -> Estimate:
    """Estimates the mean of the agents' true answers from their randomized ones.

    The estimate inverts randomized response, is unbiased, and is then clipped to [0, 1]. The
    interval uses no normal approximation. Where some agents do not answer, pass the answers that
    arrived: the interval is as wide as their number says. The estimate is then one for those who
    answer. It holds for all who were asked only if answers are missing at random: whether an agent
    answers must not depend on its true answer.

    Args:
        answers: Array of 0 and 1 of shape (N,), N >= 1, as `Agents.ask` or `randomized_response`
            returned them.
        beta: Probability, in (0, 1), with which the interval may miss the mean of the population
            that the agents are an independent sample of.
        epsilon: The one that each answer was randomized with.

    Returns:
        The estimate and its interval, in [0, 1].

    Raises:
        ParameterError: An answer is neither 0 nor 1, answers is not of an integer dtype, beta is
            out of range, or epsilon is not above 0 or too small for any estimate.
        ShapeError: answers does not have one dimension, or is empty.

    Guarantee:
        This is post-processing and costs no privacy. The interval holds for every N and every
        population.

    Cost:
        O(N).

    Source:
        Hoeffding's inequality for the randomized answers.

    Examples:
        >>> from hdp_fast import local
        >>> answers = [1] * 4200 + [0] * 5800  # of 10,000 agents, randomized with epsilon = 1
        >>> estimate = local.estimate_mean(answers, beta=0.05, epsilon=1.0)
        >>> [round(end, 3) for end in (estimate.low, estimate.value, estimate.high)]
        [0.297, 0.327, 0.356]
    """
    failure, edge = probability("beta", beta), advantage(epsilon)
    reports = bits("answers", answers)
    if reports.size == 0:
        raise ShapeError(f"answers has shape {reports.shape}, but it must be (N,) with N >= 1")
    mean = debias(float(reports.mean()), edge)
    half = half_width(reports.size, failure, epsilon)
    return Estimate(*(min(max(end, 0.0), 1.0) for end in (mean, mean - half, mean + half)))


def largest_distortion(randomizer: Randomizer[Any] | float, *, reports: int, liars: int) -> float:
    """Computes how far liars can move an estimate, whoever they are and whatever they know.

    A liar is whoever sends a report that its own value was not randomized to: somebody else's
    program, a broken device, one person with several invitations. The number is exact: some liars
    move the estimate so far, and none further. One liar counts as much as `1 / tanh(epsilon / 2)`
    honest people who go from one end of the range to the other, for randomized response: the better
    a report hides its person, the further it moves what all others have told. No test tells liars
    from honest people of another value.

    Args:
        randomizer: The randomizer of the reports, or the epsilon of randomized response.
        reports: Number of reports that count, at least 1.
        liars: Number of them that may be anything, at most all.

    Returns:
        The largest change of the estimate before it is clipped to its bounds: in the units of the
        values for a mean, of each single frequency for frequencies. As far from it may both the
        mean of the honest people and that of all lie, noise left aside; `MeanAggregate.estimate`
        and `FrequencyAggregate.interval` take `liars` and bound both.

    Raises:
        ParameterError: An argument breaks its rule.

    Source:
        Cheu, Smith and Ullman 2021; Cao, Jia and Gong 2021.

    Examples:
        >>> from hdp_fast import local
        >>> for epsilon in (0.5, 1.0, 4.0):  # ten liars among a thousand
        ...     print(round(local.largest_distortion(epsilon, reports=1000, liars=10), 4))
        0.0408
        0.0216
        0.0104
    """
    if not isinstance(randomizer, Randomizer):
        epsilon = validate_epsilon("randomizer", randomizer)
        randomizer = BinaryResponse(epsilon, (0.0, 1.0))
    count = positive_int("reports", reports, int(MOST_AGENTS))
    lying = nonnegative_int("liars", liars)
    if lying > count:
        refuse("liars", liars, f"it must be at most reports = {count:,}")
    return lying / count * largest_change(randomizer)


def half_width(answers: int, failure: float, epsilon: float) -> float:
    """Computes the half width of the interval of a mean, before it is clipped to [0, 1]."""
    return math.sqrt((math.log(2) - math.log(failure)) / (2 * answers)) / advantage(epsilon)


# Beyond so many answers the exact number is not searched for, but bounded.
_MOST_EXACT, _MOST_CHECKED = 10**6, 10**10


def estimate_exactly(ones: int, answers: int, *, beta: float, epsilon: float) -> Estimate:
    """Estimates the mean of true answers in [0, 1] from the number of ones among randomized ones.

    Randomized answers are independent coins, whose probabilities of a 1 have the mean
    `(1 - P) + (2 P - 1) m` for the mean m of the true answers and the probability P of the truth.
    Clopper and Pearson's interval for it becomes one for m, the mean of a population that the
    agents are drawn from as well as that of these very agents, whose coins are unequal. For beta up
    to 1/2 it lies within the interval of `estimate_mean`.

    Args:
        ones: Number of ones, from 0 to answers.
        answers: Number of answers, at least 1.
        beta: Probability with which the interval may miss the mean, in (0, 1); half of it on each
            side.
        epsilon: The one that each answer was randomized with.

    Returns:
        The estimate and its interval, clipped to [0, 1].

    Raises:
        ParameterError: epsilon is not above 0, or too small for any estimate.
    """
    edge = advantage(epsilon)
    low, high = clopper_pearson(ones, answers, beta)
    ends = (debias(end, edge) for end in (ones / answers, low, high))
    value, low, high = (min(max(end, 0.0), 1.0) for end in ends)
    return Estimate(value, low, high)


def bound_all(
    ones: int, answers: int, asked: int, *, beta: float, epsilon: float, liars: int = 0
) -> tuple[float, float]:
    """Bounds the mean of the true answers of all who were asked, whoever did not answer or lies.

    Had everybody answered, the number of ones would lie between that of the ones that arrived and
    that plus the missing answers. The ends of the intervals of both hold the mean, whatever silence
    depends on: the record, the true answer, or the very bit that was to be sent. Had nobody lied,
    it would lie further out by the number of liars, whatever these know of all other answers.

    Args:
        ones: Number of ones, from 0 to answers.
        answers: Number of answers, from 0 to asked.
        asked: Number of agents who were asked, at least 1.
        beta: Probability with which the interval may miss, in (0, 1); half of it on each side.
        epsilon: The one that each answer was randomized with.
        liars: The most answers that may be anything, at least 0.

    Returns:
        The ends, clipped to [0, 1]; those of estimate_exactly where everybody has answered and
        nobody lies.
    """
    edge = advantage(epsilon)
    low, _ = clopper_pearson(max(ones - liars, 0), asked, beta)
    _, high = clopper_pearson(min(ones + asked - answers + liars, asked), asked, beta)
    least, most = (min(max(debias(end, edge), 0.0), 1.0) for end in (low, high))
    return least, most


def tell_doubts(silence: str | None, liars: int) -> str:
    """What an interval without assumptions allows for, in words; empty for nothing.

    silence: words on those who did not answer; None if everybody did.
    """
    lying = f"if up to {liars:,} lie" if liars else None
    return " and ".join(filter(None, [silence, lying]))


def answers_for_width(width: float, *, beta: float, epsilon: float, wanted: str) -> int:
    """Counts the answers whose exact interval has this half width, whatever they are.

    The interval is widest where half of the answers are 1. Up to a million the number is the least
    one, and beyond it at most three thousandths larger than for normal answers, or Hoeffding's
    where that is smaller.

    Raises:
        ParameterError: There cannot be so many answers. The error names `wanted`.
    """
    most = agents_for_width(width, min(beta, MOST_BETA), epsilon, wanted=wanted)
    deviations = -NormalDist().inv_cdf(tail_of_equal_coins(beta))
    about = (deviations / (2 * width * advantage(epsilon))) ** 2

    def is_enough(answers: int) -> bool:
        low, high = clopper_pearson(answers // 2, answers, beta)
        return (high - low) / 2 <= width * advantage(epsilon)

    if about > _MOST_EXACT:
        larger = math.ceil(1.003 * about)
        return larger if larger < min(most, _MOST_CHECKED) and is_enough(larger) else most
    few = 0
    while most - few > 1:
        middle = (few + most) // 2
        few, most = (few, middle) if is_enough(middle) else (middle, most)
    return most
