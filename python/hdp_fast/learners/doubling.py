"""A private learner that takes few records where a concise hypothesis is enough."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import noise
from .._core import Features
from .._support.feature_names import names_of
from .._support.json_text import JsonText
from .._support.notes import keep_result
from .._support.parameters import Checked, Parameters, Rules, store
from .._support.random_state import make_stream
from .._support.types import RandomState
from .._support.validate import bits, positive, probability, refuse, shorten
from ..accounting.mechanisms import Pure
from ..budget.account import Budget, spend
from ..data.persons import read_persons
from ..exceptions import InsufficientSamples, ParameterError, ShapeError
from ..record import PrivacyRecord, rng_of
from .exponential import ExponentialLearner
from .hypotheses import Hypotheses, HypothesisResult

_MOST = 1 << 62
# Rates at which Chernoff's bound is evaluated, as shares of epsilon; the best of them counts.
_SHARES = 1 / (1 + np.geomspace(1e-4, 1e4, 801))
# Beyond this rate no bound improves, and exponentials overflow.
_LARGEST_RATE = 50.0
# Errors at which a hypothesis should pass the test, as shares of alpha; the cheapest counts.
_AIMS = (1 / 8, 1 / 4, 3 / 8, 1 / 2, 5 / 8)
_SOURCE = "Kasiviswanathan et al., What Can We Learn Privately?, Section 3.1 (compression version)"


class DoublingRound(NamedTuple):
    """One round of DoublingLearner, which is fixed before any record is read.

    Attributes:
        place: Index of the round's class among the learner's classes.
        learn: Number of records that choose a hypothesis.
        test: Number of records that test it.
        threshold: The hypothesis is accepted if its noisy number of errors on the test records is
            at most this.

    Examples:
        >>> from hdp_fast.learners import Conjunctions, DoublingLearner
        >>> classes = [Conjunctions(100, size) for size in (0, 1, 2, 3)]
        >>> learner = DoublingLearner(classes, alpha=0.1, beta=0.05, epsilon=0.5)
        >>> learner.rounds[1]
        DoublingRound(place=2, learn=2014, test=1021, threshold=66)
    """

    place: int
    learn: int
    test: int
    threshold: int


@dataclass(frozen=True, eq=False)
class DoublingResult(JsonText):
    """What DoublingLearner releases.

    Attributes:
        learned: The hypothesis, ready to predict; None if no round's test accepted one.
        place: Index of its class among the learner's classes; None without a hypothesis.
        records: Number of records that were used: those of all rounds up to the one that accepted.
        record: What protects the records.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.learners import Conjunctions, DoublingLearner
        >>> classes = [Conjunctions(3, 0), Conjunctions(3, 1)]
        >>> learner = DoublingLearner(classes, alpha=0.1, beta=1e-9, epsilon=2.0)
        >>> X = np.arange(learner.most_records)[:, None] >> np.arange(3) & 1
        >>> result = learner.learn(X, X[:, 1])
        >>> result.learned.words, result.place, result.record.epsilon
        ('x1', 1, 2.0)
    """

    learned: HypothesisResult | None
    place: int | None
    records: int
    record: PrivacyRecord

    @property
    def released(self) -> bool:
        """Whether there is a hypothesis; that there is none is an outcome, not an error."""
        return self.learned is not None


@dataclass(frozen=True, eq=False)
class DoublingLearner(Checked, Parameters):
    """Private choice from ever larger classes, on fresh records each, until a private test accepts.

    Round k = 0, 1, ... may take up to n `2**k` records, where n is the number that the first class
    needs. The round's class is the largest that this number suffices for; a round with the class of
    the round before is left out. Permute-and-flip chooses a hypothesis on the first part of the
    round's records. The errors of that hypothesis on the rest, plus discrete Laplace noise, decide
    whether it is accepted.

    The tests take many records. In the example below the first round uses 413 records, and 3,448
    are used if the second one accepts; ExponentialLearner over the largest class, which needs no
    test, takes 764. The learner therefore saves records only where the largest class is far larger
    than the concise ones and a concise one is likely to be enough.

    Attributes:
        classes: A sequence of classes of hypotheses over the same records, each contained in the
            next.
        alpha: Largest allowed error, in (0, 1).
        beta: Failure probability, in (0, 1).
        epsilon: Privacy parameter, finite and above 0.
        rounds: The planned rounds, a tuple of DoublingRound. It is computed.

    Raises:
        ParameterError: A parameter is out of range, classes is no sequence of nonempty classes
            whose sizes do not decrease, or `2**62` records are not enough.
        ShapeError: The classes differ in their number of features.

    Guarantee:
        learn is pure epsilon-DP under "replace_one", on every data set. The position of a record
        alone determines its round; the record takes part in either the choice or the test of that
        round, and each of these is epsilon-DP whatever the rounds before released. A hypothesis
        released from independent records errs by more than alpha with probability at most beta / 3.
        Suppose some hypothesis of a class never errs, each class contains those before it, and
        there are enough records. Then with probability at least 1 - beta a hypothesis that errs by
        at most alpha is released, in the first round whose class is that one or larger. By then
        fewer than four times the records of a round of that class itself are used.

    Cost:
        Planning takes milliseconds for each class.

    Source:
        Kasiviswanathan et al. 2011, Section 3.1, whose details are omitted there.

    Examples:
        >>> from hdp_fast.learners import Conjunctions, DoublingLearner
        >>> classes = [Conjunctions(100, size) for size in (0, 1, 2, 3)]
        >>> learner = DoublingLearner(classes, alpha=0.1, beta=0.05, epsilon=0.5)
        >>> [(planned.place, planned.learn, planned.test) for planned in learner.rounds]
        [(0, 1, 412), (2, 2014, 1021), (3, 1947, 1744)]
        >>> learner.most_records
        7139
    """

    classes: Sequence[Hypotheses]
    _: dataclasses.KW_ONLY
    alpha: float
    beta: float
    epsilon: float
    rounds: tuple[DoublingRound, ...] = dataclasses.field(init=False)

    RULES: ClassVar[Rules] = {"epsilon": positive, "alpha": probability, "beta": probability}

    def __post_init__(self) -> None:
        """Validate the parameters and plan the rounds."""
        super().__post_init__()
        store(self, classes=_validate_classes(self.classes))
        store(self, rounds=tuple(_plan_rounds(self)))

    @property
    def privacy(self) -> Pure:
        """The mechanism as accounting takes it."""
        return Pure(self.epsilon)

    @property
    def most_records(self) -> int:
        """Number of records that all rounds take together."""
        return sum(map(_records_of, self.rounds))

    @keep_result
    def learn(
        self,
        X: Any,
        y: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        rows_per_person: int = 1,
        random_state: RandomState = None,
        budget: Budget | None = None,
    ) -> DoublingResult:
        """Chooses and tests a hypothesis, round by round, until a test accepts.

        Args:
            X: The records, shape (n, d), as the errors methods of the classes take them, in an
                order that does not depend on their content. n must be at least the number that the
                first round takes. Rounds for which the records do not suffice are left out;
                most_records suffices for all.
            y: The labels, 0/1 of shape (n,).
            ids: Whose row it is, shape (n,), as data.bound_rows takes them: the guarantee is then
                for people, who may have several rows. None protects each row.
            rows_per_person: The most rows of a person that are used, the others being left out;
                public.
            random_state: None draws from the operating system. An int or a Generator makes a
                reproducible stream for tests, which protects no one.
            budget: The budget that epsilon is charged to, once, before anything is drawn; None
                charges nothing.

        Returns:
            The accepted hypothesis, or none, with the record of what protects the data.

        Raises:
            InsufficientSamples: n is smaller than the first round needs.
            ShapeError: X does not have d columns, or y does not have n entries.
            ParameterError: An entry of X or y lies outside its domain, or random_state or budget is
                of another kind.
            BudgetExceeded: The budget has less than epsilon left.
            MemoryError: The error counts of a class do not fit into memory.

        Guarantee:
            Pure epsilon-DP under "replace_one", for each row, or with ids for whatever a person's
            rows hold; the rounds are then planned with epsilon / rows_per_person. That the records
            led to no hypothesis is a release
            as well: the result then has none, and no error is raised. The running time is not
            protected; it shows how many rounds there were, as the result does. All errors but
            MemoryError are raised before any coin is drawn or budget spent.

        Cost:
            For each round that runs, that of the errors method of its class on the round's records.
        """
        rng = make_stream(random_state)
        records, labels = self._prepare(X, y)
        persons = read_persons(ids, rows_per_person, len(labels))
        records, labels = persons.select(records), persons.select(labels)
        learner = self
        if persons.rows > 1:
            learner = dataclasses.replace(self, epsilon=persons.share(self.epsilon).epsilon)
        rounds = learner._rounds_for(len(labels))
        record = persons.state(self._record(random_state))
        with spend(budget, record):
            result = learner._run(rounds, records, labels, rng, record)
        if result.learned is None:
            return result
        learned = dataclasses.replace(result.learned, feature_names_in_=names_of(X))
        return dataclasses.replace(result, learned=learned)

    def _prepare(self, X: Any, y: ArrayLike) -> tuple[Any, NDArray[np.uint8]]:
        """Convert the records to the form that every class takes."""
        labels, records = bits("y", y), self.classes[0].prepare(X)
        if labels.shape != (len(records),):
            raise ShapeError(f"y has shape {labels.shape}, but X has {len(records)} records")
        # This refuses records that another class does not take.
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
            error_noise = noise.discrete_laplace(
                1 / noise.exact_epsilon(self.epsilon), random_state=rng
            )
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
    """Yield every round that has a larger class than the one before."""
    learners = [
        ExponentialLearner(hypotheses, epsilon=learner.epsilon) for hypotheses in learner.classes
    ]
    limit, share, last = 0, learner.beta, -1
    while last < len(learners) - 1:
        # Round k may fail with probability beta / 2**(k + 1): a third of it for a bad choice, a
        # third for accepting wrongly, and a third for rejecting wrongly.
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
    """Return the round of a class whose aim takes the fewest records."""
    sizes = [learner.sample_size(aim, share, agnostic=False) for aim, _, _ in tests]
    rounds = [
        DoublingRound(place, max(1, learn), test, threshold)
        for learn, (_, test, threshold) in zip(sizes, tests, strict=True)
    ]
    return min(rounds, key=_records_of)


def _records_of(planned: DoublingRound) -> int:
    return planned.learn + planned.test


def _plan_test(alpha: float, aim: float, share: float, epsilon: float) -> tuple[int, int]:
    """Return records and threshold of a test that separates an error of `aim` from one of alpha.

    With B ~ Bin(t, e) errors, noise L and any rate 0 < s < epsilon, Markov's inequality gives

        Pr[B + L <= T] <= exp(s T) (1 - alpha (1 - exp(-s)))**t M(s)          for e >= alpha
        Pr[B + L > T] <= exp(-s (T + 1)) (1 + aim (exp(s) - 1))**t M(s)       for e <= aim

    where M(s) = E exp(s L) = `(1 - q)**2` / ((1 - q exp(s)) (1 - q exp(-s))) with q =
    exp(-epsilon). T is the largest threshold for which the first bound is at most `share`.
    Bisection finds the t for which the second one is as well.
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
