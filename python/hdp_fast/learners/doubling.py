"""A private learner that takes few records where a concise hypothesis will do."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import noise
from .._core import Features
from .._support.feature_names import names_of
from .._support.parameters import Parameters
from .._support.random_state import make_stream
from .._support.types import RandomState
from .._support.validate import bits, positive, probability, refuse, shorten
from ..accounting.mechanisms import Pure
from ..budget.account import Budget, spend
from ..exceptions import InsufficientSamples, ParameterError, ShapeError
from ..record import PrivacyRecord, rng_of
from .exponential import ExponentialLearner
from .hypotheses import Hypotheses, HypothesisResult, store

_MOST = 1 << 62
# Chernoff's bound holds at each of these rates, as shares of epsilon; the best of them serves.
_SHARES = 1 / (1 + np.geomspace(1e-4, 1e4, 801))
# Beyond this rate no bound improves, and exponentials overflow.
_LARGEST_RATE = 50.0
# A hypothesis that passes the test surely errs by such a share of alpha; the best of them serves.
_AIMS = (1 / 8, 1 / 4, 3 / 8, 1 / 2, 5 / 8)
_SOURCE = "Kasiviswanathan et al., What Can We Learn Privately?, Section 3.1 (compression version)"


class DoublingRound(NamedTuple):
    """One round of DoublingLearner, fixed before any record is read.

    Attributes:
        place: of the round's class among the classes.
        learn: records that choose a hypothesis.
        test: records that test it.
        threshold: noisy errors at most with which it is accepted.
    """

    place: int
    learn: int
    test: int
    threshold: int


@dataclass(frozen=True, eq=False)
class DoublingResult:
    """What DoublingLearner releases.

    Attributes:
        learned: the hypothesis, ready to predict; None if no round's test accepted one.
        place: of its class among the classes; None without a hypothesis.
        records: how many were used: those of the rounds up to the one that accepted.
        record: what protects them.
    """

    learned: HypothesisResult | None
    place: int | None
    records: int
    record: PrivacyRecord

    @property
    def released(self) -> bool:
        """Whether there is a hypothesis. No release is part of the mechanism, not an error."""
        return self.learned is not None


@dataclass(frozen=True, eq=False)
class DoublingLearner(Parameters):
    """Private choice from ever larger classes, each on fresh records, until a private test accepts.

    Round k = 0, 1, ... may take up to n 2**k records, with the n that the first class needs. Its
    class is the largest that this number serves; if the round before had the same, it is left out.
    Permute-and-flip chooses a hypothesis on the first part of the round's records, and the errors
    on the others, plus discrete Laplace noise, say whether it is accepted.

        >>> from hdp_fast.learners import Conjunctions, DoublingLearner
        >>> classes = [Conjunctions(100, size) for size in (0, 1, 2, 3)]
        >>> learner = DoublingLearner(classes, alpha=0.1, beta=0.05, epsilon=0.5)
        >>> [(each.place, each.learn, each.test) for each in learner.rounds]
        [(0, 1, 412), (2, 2014, 1021), (3, 1947, 1744)]

    The tests cost about as much as choosing from a class of some thousand hypotheses, so that all
    this saves records only where the largest class is far larger than the concise ones: else
    ExponentialLearner over the largest, which needs no test, takes fewer.

    Guarantee: learn is pure epsilon-DP when one record is replaced, on every data set: which round
        a record belongs to depends on its position alone, it counts in either the choice or the
        test of that round, and each of these is epsilon-DP whatever the rounds before released.
        A hypothesis released from independent records errs by more than alpha with probability at
        most beta / 3. If some hypothesis of a class never errs, and each class holds those before
        it, then with probability at least 1 - beta one that errs by at most alpha is released, in
        the first round whose class is that one or larger, if there are records for it: by then they
        are less than four times those of a round of that class itself.

    Attributes:
        classes: of hypotheses over the same records, each contained in the next.
        alpha: error allowed, in (0, 1).
        beta: failure probability, in (0, 1).
        epsilon: privacy parameter, above 0.

    Raises: ParameterError, ShapeError.
    Cost: none until learn, but for the plan: milliseconds a class.
    Source: Kasiviswanathan et al. 2011, Section 3.1, whose details are omitted there.
    """

    classes: Sequence[Hypotheses]
    _: dataclasses.KW_ONLY
    alpha: float
    beta: float
    epsilon: float
    rounds: tuple[DoublingRound, ...] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        """Validate the parameters and plan the rounds."""
        store(
            self, classes=_validate_classes(self.classes), epsilon=positive("epsilon", self.epsilon)
        )
        store(self, alpha=probability("alpha", self.alpha), beta=probability("beta", self.beta))
        store(self, rounds=tuple(_plan_rounds(self)))

    @property
    def privacy(self) -> Pure:
        """The mechanism as accounting takes it."""
        return Pure(self.epsilon)

    @property
    def most_records(self) -> int:
        """Records that all rounds take together."""
        return sum(map(_records_of, self.rounds))

    def learn(
        self,
        X: Any,
        y: ArrayLike,
        *,
        random_state: RandomState = None,
        budget: Budget | None = None,
    ) -> DoublingResult:
        """Choose and test, round by round.

        X, y: as errors of the classes, in an order that tells nothing; n >= the records of the
        first round, and most_records or more for all of them: rounds beyond n are left out.
        random_state: as of ExponentialLearner.learn. budget: charged epsilon once.

        Guarantee: as the class. That the records did not lead to a hypothesis is a release as well:
            the result then has none, and no error says so. The running time is not protected: it
            shows how many rounds there were, as the result does.
        Raises: InsufficientSamples when n is too small for the first round; ShapeError,
            ParameterError, BudgetExceeded; all of them before any coin is drawn or budget spent.
        Cost: errors of each class that a round uses, on that round's records.
        Source: as the class.
        """
        rng = make_stream(random_state)
        records, labels = self._prepare(X, y)
        rounds = self._rounds_for(len(labels))
        record = self._record(random_state)
        with spend(budget, record):
            result = self._run(rounds, records, labels, rng, record)
        if result.learned is None:
            return result
        learned = dataclasses.replace(result.learned, feature_names_in_=names_of(X))
        return dataclasses.replace(result, learned=learned)

    def _prepare(self, X: Any, y: ArrayLike) -> tuple[Any, NDArray[np.uint8]]:
        """The records as every class takes them."""
        labels, records = bits("y", y), self.classes[0].prepare(X)
        if labels.shape != (len(records),):
            raise ShapeError(f"y has shape {labels.shape}, but X has {len(records)} records")
        # Refuses records that another class does not take.
        for hypotheses in self.classes[1:]:
            hypotheses.prepare(_slice(records, 0, min(1, len(records))))
        return records, labels

    def _rounds_for(self, n: int) -> list[DoublingRound]:
        used = list(itertools.accumulate(map(_records_of, self.rounds)))
        if used[0] > n:
            rule = f"the first round takes {used[0]:,}"
            raise InsufficientSamples(f"X has {n:,} records, but {rule}")
        return [step for step, total in zip(self.rounds, used, strict=True) if total <= n]

    def _run(
        self,
        rounds: Sequence[DoublingRound],
        records: Any,
        labels: NDArray[np.uint8],
        rng: np.random.Generator | None,
        record: PrivacyRecord,
    ) -> DoublingResult:
        used = 0
        for place, learn, test, threshold in rounds:
            start, middle, used = used, used + learn, used + learn + test
            learner = ExponentialLearner(
                self.classes[place], epsilon=self.epsilon, mechanism="permute_and_flip"
            )
            learned = learner.learn(
                _slice(records, start, middle), labels[start:middle], random_state=rng
            )
            wrong = learned.predict(_slice(records, middle, used)) != labels[middle:used]
            error_noise = noise.discrete_laplace(1 / Fraction(self.epsilon), random_state=rng)
            if int(wrong.sum()) + int(error_noise) <= threshold:
                chosen = HypothesisResult(learned.index, learned.hypothesis, self.classes[place])
                return DoublingResult(chosen, place, used, record)
        return DoublingResult(None, None, used, record)

    def _record(self, random_state: RandomState) -> PrivacyRecord:
        return PrivacyRecord(
            mechanism="learners.DoublingLearner",
            source=_SOURCE,
            neighbors="replace_one",
            epsilon=self.epsilon,
            noise="permute-and-flip, and discrete Laplace on the errors of each test",
            rng=rng_of(random_state),
        )


def _validate_classes(classes: Any) -> tuple[Hypotheses, ...]:
    if not isinstance(classes, Sequence) or not classes:
        refuse("classes", classes, "it must be a sequence of classes of hypotheses")
    for hypotheses in classes:
        if not isinstance(hypotheses, Hypotheses) or not len(hypotheses):
            rule = "each must be a class of hypotheses of hdp_fast.learners that has one"
            raise ParameterError(f"classes hold {shorten(hypotheses)}, but {rule}")
    sizes = [len(hypotheses) for hypotheses in classes]
    if sizes != sorted(sizes):
        raise ParameterError(
            f"classes have the sizes {sizes}, but each must contain the one before"
        )
    features = [hypotheses.d for hypotheses in classes]
    if len(set(features)) > 1:
        raise ShapeError(f"classes have {features} features, but all must have the same")
    return tuple(classes)


def _plan_rounds(learner: DoublingLearner) -> Iterator[DoublingRound]:
    """Every round that has a larger class than the one before."""
    learners = [
        ExponentialLearner(hypotheses, epsilon=learner.epsilon) for hypotheses in learner.classes
    ]
    limit, share, last = 0, learner.beta, -1
    while last < len(learners) - 1:
        # Round k has beta / 2**(k + 1): a third each for a bad choice, and for either wrong test.
        share /= 2
        tests = [
            (aim, *_plan_test(learner.alpha, aim, share / 3, learner.epsilon))
            for aim in (learner.alpha * factor for factor in _AIMS)
        ]
        rounds = [
            _cheapest_round(place, choice, tests, share / 3)
            for place, choice in enumerate(learners)
        ]
        limit = limit or _records_of(rounds[0])
        largest = [candidate for candidate in rounds if _records_of(candidate) <= limit][-1]
        if largest.place > last:
            yield largest
        limit, last = 2 * limit, largest.place


def _cheapest_round(
    place: int, learner: ExponentialLearner, tests: list[tuple[float, int, int]], share: float
) -> DoublingRound:
    """The round of a class with the aim that takes the fewest records."""
    sizes = [learner.sample_size(aim, share, agnostic=False) for aim, _, _ in tests]
    rounds = [
        DoublingRound(place, max(1, learn), test, threshold)
        for learn, (_, test, threshold) in zip(sizes, tests, strict=True)
    ]
    return min(rounds, key=_records_of)


def _records_of(planned: DoublingRound) -> int:
    return planned.learn + planned.test


def _plan_test(alpha: float, aim: float, share: float, epsilon: float) -> tuple[int, int]:
    """Records and threshold of a test that tells an error of `aim` from one of alpha.

    With B ~ Bin(t, e) errors, noise L and any rate 0 < s < epsilon, Markov's inequality says

        Pr[B + L <= T] <= exp(s T) (1 - alpha (1 - exp(-s)))**t M(s)          for e >= alpha
        Pr[B + L > T] <= exp(-s (T + 1)) (1 + aim (exp(s) - 1))**t M(s)       for e <= aim

    where M(s) = E exp(s L) = (1 - q)**2 / ((1 - q exp(s)) (1 - q exp(-s))) with q = exp(-epsilon).
    T is the largest for which the first is at most `share`, t found by bisection so that the second
    is as well.
    """
    s = _SHARES * min(epsilon, _LARGEST_RATE)
    moment = (
        2 * math.log(-math.expm1(-epsilon))
        - np.log(-np.expm1(s - epsilon))
        - np.log(-np.expm1(-s - epsilon))
    )
    wrong_accept = np.log1p(alpha * np.expm1(-s))
    wrong_reject = np.log1p(aim * np.expm1(s))

    def threshold(t: int) -> int:
        return math.floor(float(np.max((math.log(share) - t * wrong_accept - moment) / s)))

    def enough(t: int) -> bool:
        bound = np.min(t * wrong_reject + moment - s * (threshold(t) + 1))
        return threshold(t) >= 0 and float(bound) <= math.log(share)

    high = 1
    while not enough(high):
        high *= 2
        if high > _MOST:
            raise ParameterError("alpha and epsilon are so small that 2**62 records are not enough")
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high, threshold(high)


def _slice(records: Any, start: int, stop: int) -> Any:
    if isinstance(records, Features):
        return records._take(np.arange(start, stop))
    return records[start:stop]
