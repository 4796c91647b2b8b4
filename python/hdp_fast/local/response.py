"""Binary randomized response, the mechanism of every agent, and its advantage over guessing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._support.notes import keep_result
from .._support.random_state import check_random_state, make_key
from .._support.types import Bits, RandomState
from .._support.validate import array
from ..budget.account import Budget, spend
from ..exceptions import ParameterError
from ..record import PrivacyRecord, rng_of

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
            reproducible stream for tests, which protects nobody.
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
