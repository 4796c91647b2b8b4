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

    Each randomizer may be chosen in the light of earlier reports.

    Args:
        oracle: Answers queries about the distribution of the entry.
        beta: Statistical distance allowed for the whole algorithm, in (0, 1).
        applications: Number t of randomizers that the whole algorithm applies, to this entry and to
            others, at least 1.
        random_state: None draws from the operating system. An int or a numpy Generator makes the
            simulation reproducible.

    Attributes:
        reports: Reports of the randomizers so far, a tuple of integers.
        queries: Number of queries that were asked.
        iterations: Number of candidates looked at for each report, a tuple of integers.

    Raises:
        ParameterError: oracle has no method query, or a parameter is out of range.

    Guarantee:
        Suppose that every answer lies within its tau, and that an adversary chooses it who knows
        what came before. Then the joint law of all `applications` reports differs by at most beta,
        in total variation, from that of the randomizers applied to entries drawn independently
        (proved, except for `2**-53` in each probability).

        The reports are as private as the oracle's answers.

    Source:
        Kasiviswanathan et al. 2011, Claim 5.10.

    Examples:
        >>> from hdp_fast import local
        >>> oracle = local.ExactOracle([[20], [30], [50]], [0, 0, 1])
        >>> entry = local.SimulatedEntry(oracle, beta=0.1, applications=2)
        >>> age = entry.apply(local.BinaryResponse(1.0, (0, 100)), lambda X, y: X[:, 0])
        >>> label = entry.apply(local.KaryResponse(2, 0.5), lambda X, y: y)
        >>> entry.reports == (age, label), entry.epsilon
        (True, 1.5)
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
        """The sum of the epsilons of the randomizers that have been applied."""
        return self._history.epsilon

    def apply(
        self, randomizer: TransparentRandomizer, values: Values, *, reference: float = 0
    ) -> int:
        """Draws the report of one more randomizer about the entry.

        Candidates are drawn from the randomizer on the reference input, as in simulate_local. For
        each different candidate, a query asks for the mean, over the distribution, of how many
        times as likely the reports so far together with this one are on a record as on the
        reference inputs. Its answer is divided by the answer for the reports so far, which is known
        since the last report was accepted. The quotient estimates how many times as likely the
        candidate is, given the earlier reports.

        The candidate is accepted with this quotient divided by `(1 + 3 phi) exp(epsilon_k)` as the
        probability, where epsilon_k belongs to the randomizer. For the first report, where nothing
        is divided by, the factor is 1 + phi. Here `phi = (exp(2 epsilon) - 1) tau`, and epsilon is
        the sum with this randomizer included. An error in the divisor changes how often a candidate
        is accepted, and not which one. Therefore `phi = min(1/3, 1.8 beta / t)` is small enough
        here, too.

        Args:
            randomizer: A TransparentRandomizer with delta = 0. It may be another one each time.
            values: Called by the oracle's queries with features of shape (m, d) and labels of shape
                (m,). It returns the input of each record to the randomizer, shape (m,).
            reference: Any one input of the randomizer, a finite number.

        Returns:
            The report, an int.

        Raises:
            ParameterError: An argument breaks its rule, the sum of all epsilons would exceed 16, or
                `applications` reports have been made. The oracle is not asked.
            Exception: What oracle, randomizer and values themselves raise. The entry stays as it
                was.

        Guarantee:
            The joint law of all reports differs by at most beta from that of the randomizers, under
            the conditions that the class states. The reports are as private as the oracle's
            answers.

        Cost:
            On average at most `(1 + 3 phi) (1 + phi) / (1 - phi) exp(epsilon_k)` candidates, and a
            query for each different one.

        Source:
            Kasiviswanathan et al. 2011, Claim 5.10.
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
