"""One entry that several local randomizers are applied to, simulated by statistical queries."""

from __future__ import annotations

import itertools
import math

from ..._support.types import RandomState
from ..._support.validate import positive_int, probability
from ...exceptions import ParameterError
from .local_protocol import (
    MOST_CANDIDATES,
    MOST_EPSILON,
    LikelihoodRatio,
    TransparentRandomizer,
    Values,
    check_simulation,
    draw_candidates,
    make_streams,
    read_epsilon,
    tolerance_of,
)
from .oracles import SQOracle, check_oracle


class SimulatedEntry:
    """One entry that several local randomizers are applied to, simulated by statistical queries.

    oracle: answers queries about the entry's distribution. beta: statistical distance allowed in
        all, in (0, 1).
    applications: how many randomizers the whole algorithm applies, to this entry and to others, t,
    at least 1. random_state: None draws from the operating system, an int or a Generator makes it
    reproducible.

    Attributes:
        reports: those of the randomizers so far.
        epsilon: the sum of the epsilons of these randomizers.
        queries: how many were asked.
        iterations: how many candidates were looked at for each report.

    Guarantee: where every answer lies within its tau, chosen by an adversary who knows what came
        before, the joint law of all `applications` reports, each randomizer chosen in the light of
        earlier reports, differs by at most beta from that of the randomizers applied to entries
        drawn independently (proved; but for 2**-53 in each probability). The reports are as private
        as the oracle's answers.
    Raises: ParameterError.
    Cost: none until a randomizer is applied.
    Source: Kasiviswanathan et al. 2011, Claim 5.10.
    """

    def __init__(
        self,
        oracle: SQOracle,
        *,
        beta: float,
        applications: int = 1,
        random_state: RandomState = None,
    ):
        times = positive_int("applications", applications, MOST_CANDIDATES)
        self._share = probability("beta", beta) / times
        self._applications = times
        check_oracle(oracle)
        self._oracle = oracle
        self._rng, self._randomizer_state = make_streams(random_state)
        self._history, self._mean_ratio = LikelihoodRatio(), 1.0
        self.reports, self.iterations = tuple[int, ...](), tuple[int, ...]()
        self.queries = 0

    @property
    def epsilon(self) -> float:
        """The sum of the epsilons of the randomizers so far."""
        return self._history.epsilon

    def apply(
        self, randomizer: TransparentRandomizer, values: Values, *, reference: float = 0
    ) -> int:
        """Draw one more randomizer's report about the entry.

        randomizer, values, reference: as simulate_local takes them, others each time if need be.

        Candidates are drawn as there. A query asks for the mean, over the distribution, of how much
        likelier all reports with this one are on a record than on the reference inputs: its answer
        over that for the reports before, which accepting the last one told, estimates how much
        likelier the candidate is given these. It is accepted with this probability over (1 + 3
        phi) exp(epsilon_k), epsilon_k that of the randomizer; (1 + phi) for the first, where
        nothing is divided by. Here phi = (exp(2 epsilon) - 1) tau, epsilon the sum so far. An error
        in the divisor changes how often a candidate is accepted and not which, so that phi = min(
        1/3, 1.8 beta / t) is small enough here, too.

        Guarantee: as the class.
        Raises: ParameterError, before the oracle is asked, also when `applications` reports have
            been made; what oracle, randomizer and values raise: the entry is as it was then.
        Cost: on average at most (1 + 3 phi) (1 + phi) / (1 - phi) exp(epsilon_k) candidates and
            queries, one for each different candidate.
        Source: Kasiviswanathan et al. 2011, Claim 5.10.
        """
        self._check_remaining(read_epsilon(randomizer))
        check_simulation(values, self._oracle, reference)
        known: dict[int, tuple[LikelihoodRatio, float]] = {}
        for iteration in itertools.count(1):
            w = int(draw_candidates(randomizer, reference, 1, self._randomizer_state)[0])
            if w not in known:
                known[w] = self._estimate(randomizer, values, reference, w)
            history, mean_ratio = known[w]
            if self._rng.random() < self._acceptance_probability(randomizer, mean_ratio):
                self._history, self._mean_ratio = history, mean_ratio
                self.iterations = (*self.iterations, iteration)
                break
        self.reports = (*self.reports, w)
        return w

    def _estimate(
        self, randomizer: TransparentRandomizer, values: Values, reference: float, w: int
    ) -> tuple[LikelihoodRatio, float]:
        """The likelihood ratio of the reports with one more, and its mean by the oracle."""
        longer = self._history.extend(randomizer, values, reference, w)
        tau, _ = tolerance_of(longer.epsilon, self._share)
        answer = float(self._oracle.query(longer.query, tau))
        self.queries += 1
        return longer, longer.mean(answer)

    def _acceptance_probability(
        self, randomizer: TransparentRandomizer, mean_ratio: float
    ) -> float:
        """The probability of accepting a candidate."""
        _, phi = tolerance_of(self.epsilon + randomizer.epsilon, self._share)
        slack = 1 + 3 * phi if self.reports else 1 + phi
        return mean_ratio / self._mean_ratio * math.exp(-randomizer.epsilon) / slack

    def _check_remaining(self, epsilon: float) -> None:
        if self.epsilon + epsilon > MOST_EPSILON:
            rule = f"all of one entry must be at most {MOST_EPSILON} together"
            raise ParameterError(f"randomizer.epsilon = {epsilon}, but {rule}")
        if len(self.reports) == self._applications:
            rule = "as many reports have been made"
            raise ParameterError(f"applications = {self._applications:,}, but {rule}")
