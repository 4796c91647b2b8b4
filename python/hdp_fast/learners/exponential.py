"""The generic private learner: it chooses a hypothesis of few errors from a finite class."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._core import Features
from .._support.feature_names import FeatureNames, names_of
from .._support.notes import keep_result
from .._support.parameters import Checked, Parameters, Rules, store
from .._support.random_state import check_random_state, make_key
from .._support.types import RandomState
from .._support.validate import (
    array,
    curator_relation,
    flag,
    integers,
    one_of,
    positive,
    probability,
)
from ..accounting.mechanisms import BoundedRange, Neighbors, Pure, relation
from ..budget.account import Budget, spend
from ..data.chunks import Chunks, fold_all, settle_owners
from ..data.persons import read_persons
from ..data.states import State, describe_settings, part_names, require_shapes
from ..exceptions import ParameterError, ShapeError
from ..noise import selection_rate
from ..record import PrivacyRecord, rng_of
from .descriptions import Description
from .hypotheses import Hypotheses, HypothesisResult, check_class
from .stored_classes import sauer_bound

Selection = Literal["exponential", "permute_and_flip"]

_JOB = "learners.ExponentialLearner"
# Sample sizes are rounded up from this much more than the formula, whose floats may fall short.
_SLACK = 1 + 1e-12


@dataclass(frozen=True, eq=False)
class ExponentialResult(HypothesisResult):
    """What ExponentialLearner releases: a hypothesis, and what protects the records.

    Attributes:
        index: Index of the chosen hypothesis in its class.
        hypothesis: Its description, a dict that JSON can carry.
        record: What protects the records.
        feature_names_in_: Names of the columns of the frame that it was learned from; None where
            that had no names.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.learners import Conjunctions, ExponentialLearner
        >>> X = np.arange(1000)[:, None] >> np.arange(3) & 1
        >>> y = X[:, 0] & X[:, 2]  # all other conjunctions err at least 250 times
        >>> result = ExponentialLearner(Conjunctions(3, 2), epsilon=1.0).learn(X, y)
        >>> result.words, result.record.epsilon
        ('x0 and x2', 1.0)
        >>> result.predict([[1, 0, 1], [1, 1, 0]])
        array([1, 0], dtype=uint8)
    """

    record: PrivacyRecord


class PaperSampleSize(NamedTuple):
    """The numbers of records that the paper's theorem asks for, as printed and as corrected.

    Attributes:
        printed: 6 ln(|H| / beta) max(1 / (epsilon alpha), 1 / `alpha**2`), rounded up.
        printed_valid: Whether epsilon >= 2 alpha. Then the union bound of the paper's proof stays
            below beta with `printed` records if |H| >= 11 beta. Below 2 alpha it may exceed beta:
            for epsilon <= alpha it reaches beta + 2 beta `(beta / |H|)**(1/3)`, which is 1.74 beta
            for |H| = 2 and beta = 0.1. The failure probability itself is at most beta under
            "replace_one" and "add_remove", since sample_size never asks for more than `printed`.
        corrected: max(6 ln(2 |H| / beta) / (epsilon alpha), 9 ln(4 |H| / beta) / (2 `alpha**2`)),
            rounded up. The union bound stays below beta for every epsilon.

    Examples:
        >>> from hdp_fast.learners import ExponentialLearner, Stumps
        >>> learner = ExponentialLearner(Stumps(4), epsilon=1.0)
        >>> learner.paper_sample_size(alpha=0.1, beta=0.1)
        PaperSampleSize(printed=2764, printed_valid=True, corrected=2697)
        >>> learner.sample_size(alpha=0.1, beta=0.1)  # by a sharper bound
        896
    """

    printed: int
    printed_valid: bool
    corrected: int


@dataclass(frozen=True, eq=False)
class ExponentialLearner(Checked, Parameters):
    """Private choice of a hypothesis of few errors from a finite class.

    The learner counts the errors of every hypothesis on the records and draws one with a
    probability that falls exponentially with its errors.

    Attributes:
        hypotheses: One of the classes of this module, with at least one hypothesis.
        epsilon: Privacy parameter, finite and above 0.
        mechanism: "exponential" for the exponential mechanism, or "permute_and_flip". For a single
            release the errors of permute-and-flip are never larger in the mean.
        neighbors: "replace_one" where neighboring data sets differ in the content of one record, or
            "add_remove" where one of them has a record more.

    Raises:
        ParameterError: hypotheses is no class of this module or is empty, or another parameter is
            out of range.

    Guarantee:
        learn is pure epsilon-DP for the chosen neighbor relation, with exact random draws. The
        exponential mechanism also has epsilon-bounded range; permute-and-flip has not. A record
        changes each error count by at most 1, and under "add_remove" it changes all of them in the
        same direction, so that the rate is epsilon / 2 under "replace_one" and epsilon under
        "add_remove".

    Source:
        Kasiviswanathan et al. 2011, Theorem 3.4.

    Examples:
        >>> from hdp_fast.learners import Conjunctions, ExponentialLearner
        >>> learner = ExponentialLearner(Conjunctions(64, 2), epsilon=1.0)
        >>> n = learner.sample_size(alpha=0.05, beta=0.05)
        >>> print(f"{n:,} records are enough for {len(learner.hypotheses):,} hypotheses")
        9,594 records are enough for 8,193 hypotheses
        >>> learner.sample_size(alpha=0.05, beta=0.05, agnostic=False)  # if one of them never errs
        605
    """

    hypotheses: Hypotheses
    _: dataclasses.KW_ONLY
    epsilon: float
    mechanism: Selection = "exponential"
    neighbors: Neighbors = Neighbors.REPLACE_ONE

    RULES: ClassVar[Rules] = {
        "hypotheses": check_class,
        "epsilon": positive,
        "mechanism": partial(one_of, allowed=("exponential", "permute_and_flip")),
        "neighbors": curator_relation,
    }

    def __post_init__(self) -> None:
        """Validate the parameters."""
        super().__post_init__()
        if not len(self.hypotheses):
            raise ParameterError("hypotheses are none, but there must be one to choose")
        store(self, neighbors=relation(self.neighbors))

    @property
    def numerics(self) -> Literal["exact"]:
        """Always "exact": errors are counted and coins compared in integers."""
        return "exact"

    @property
    def privacy(self) -> BoundedRange | Pure:
        """The mechanism as accounting takes it."""
        kind = BoundedRange if self.mechanism == "exponential" else Pure
        return kind(self.epsilon, neighbors=self.neighbors)

    def with_epsilon(self, epsilon: float) -> ExponentialLearner:
        """Returns the same learner with another privacy parameter.

        Args:
            epsilon: Privacy parameter, finite and above 0.

        Returns:
            A new ExponentialLearner.

        Raises:
            ParameterError: epsilon is out of range.
        """
        return dataclasses.replace(self, epsilon=epsilon)

    def fold(self, X: Any, y: ArrayLike, *, part: str | None = None) -> State:
        """Counts the errors of every hypothesis on some of the records, for learn.

        Args:
            X: Records, as learn takes them.
            y: Their labels, as learn takes them.
            part: A public name of this part of the records, by which a part that is added twice is
                refused; None gives it none.

        Returns:
            The private state of these records: a count for each hypothesis.

        Raises:
            ShapeError: As in learn.
            ParameterError: As in learn.

        Cost:
            That of the errors method of the class.
        """
        errors = np.asarray(self.hypotheses.errors(X, y), np.int64)
        rows = len(array("y", y))
        return State(_JOB, self._settings, rows, {"errors": errors}, part_names(part))

    @property
    def _settings(self) -> dict[str, str]:
        return describe_settings(hypotheses=self.hypotheses)

    @keep_result
    def learn(
        self,
        X: Any,
        y: ArrayLike | None = None,
        *,
        ids: ArrayLike | None = None,
        rows_per_person: int = 1,
        random_state: RandomState = None,
        budget: Budget | None = None,
    ) -> ExponentialResult:
        """Chooses a hypothesis by its errors on the records.

        Args:
            X: The records, shape (m, d), as the errors method of the class takes them; or
                data.Chunks of them with their labels; or the State that fold made of them.
            y: The labels, 0/1 of shape (m,). None beside Chunks or a State.
            ids: Whose row it is, shape (m,), as data.bound_rows takes them: the guarantee is then
                for people, who may have several rows. None protects each row. Chunks name a column
                of ids themselves.
            rows_per_person: The most rows of a person that are used, the others being left out;
                public.
            random_state: None draws from the operating system. An int or a Generator makes a
                reproducible stream for tests, which protects no one.
            budget: The budget that epsilon is charged to before anything is drawn; None charges
                nothing.

        Returns:
            The chosen hypothesis, with the record of what protects the data.

        Raises:
            ShapeError: X does not have d columns, or y does not have m entries.
            ParameterError: An entry of X or y lies outside its domain, or random_state or budget is
                of another kind.
            BudgetExceeded: The budget has less than epsilon left.
            MemoryError: The error counts, or the random order of permute-and-flip, do not fit into
                memory.

        Guarantee:
            Pure epsilon-DP for the learner's neighbor relation, with exact random draws, for each
            row or with ids for each person, who changes an error count by at most rows_per_person.
            The running time is not protected. ShapeError, ParameterError and BudgetExceeded are
            raised before any coin is drawn or budget spent.

        Cost:
            That of the errors method of the class, and in expectation at most one coin for each
            hypothesis.

        Source:
            Kasiviswanathan et al. 2011, Theorem 3.4; McSherry and Talwar 2007; McKenna and Sheldon
            2020.
        """
        check_random_state(random_state)
        if isinstance(X, Chunks | State):
            X, persons = settle_owners(X, ids, rows_per_person)
            state = fold_all(self.fold, X, y)
            state.require(_JOB, self._settings, "a state must be made by this learner")
            require_shapes(state, {"errors": (len(self.hypotheses),)})
            record = persons.state(self._record(random_state))
            return self._choose(state, record, persons.rows, budget, random_state)
        if y is None:
            raise ParameterError("y = None, but arrays of records must come with their labels")
        persons = read_persons(ids, rows_per_person, array("y", y).size)
        record = persons.state(self._record(random_state))
        names = names_of(X)
        if not persons.keeps_all:
            X, y = self.hypotheses.prepare(X), array("y", y)
            if len(X) != len(y):
                raise ShapeError(f"y has shape {y.shape}, but X has {len(X)} records")
            X, y = persons.select(X), persons.select(y)
        state = self.fold(X, y)
        return self._choose(state, record, persons.rows, budget, random_state, names)

    def _choose(
        self,
        state: State,
        record: PrivacyRecord,
        rows: int,
        budget: Budget | None,
        random_state: RandomState,
        names: FeatureNames = None,
    ) -> ExponentialResult:
        """Draw a hypothesis by the errors in a state, where a person has so many rows at most."""
        monotonic = self.neighbors == Neighbors.ADD_REMOVE
        rate = selection_rate(self.epsilon, rows, monotonic).as_integer_ratio()
        method = "exponential_mechanism" if self.mechanism == "exponential" else self.mechanism
        with spend(budget, record):
            index = _core.select(method, -state.sums["errors"], rate, make_key(random_state))
        hypothesis = self.hypotheses.hypothesis(index)
        return ExponentialResult(
            index, hypothesis, self.hypotheses, record, feature_names_in_=names
        )

    @keep_result
    def learn_indices(
        self,
        X: Any,
        y: NDArray[np.uint8],
        indices: NDArray[np.int64],
        *,
        random_state: RandomState = None,
    ) -> ExponentialResult:
        """Chooses a hypothesis by its errors on some of the records, with repetition.

        Args:
            X: All n records, as prepare returned them.
            y: Their labels, uint8 of shape (n,).
            indices: The records to learn from, int64 of shape (m,), each from 0 to n - 1.
            random_state: None draws from the operating system. An int or a Generator makes a
                reproducible stream for tests, which protects no one.

        Returns:
            The chosen hypothesis, with the record of what protects the drawn records.

        Raises:
            ShapeError: y does not have n entries, or indices is no vector of at least one entry.
            ParameterError: indices has an entry that is no integer from 0 to n - 1, or y one other
                than 0 and 1.
            MemoryError: The drawn records or the error counts do not fit into memory.

        Guarantee:
            Pure epsilon-DP for each entry of indices, with exact random draws. A record that occurs
            k times is protected with k epsilon. The running time is not protected.

        Cost:
            That of learn on m records, and a random read for every index.
        """
        draws = integers("indices", indices, np.int64)
        if not hasattr(X, "__len__") or getattr(X, "ndim", 1) == 0:
            rule = "it must be what prepare returned"
            raise ParameterError(f"X is of type {type(X).__name__}, but {rule}")
        labels, size = array("y", y), len(X)
        if labels.shape != (size,):
            raise ShapeError(f"y has shape {labels.shape}, but X has {size} records")
        if not 0 <= draws.min() <= draws.max() < size:
            raise ParameterError(f"indices has entries out of range, but X has {size} records")
        drawn = X._take(draws) if isinstance(X, Features) else X[draws]
        return self.learn(drawn, labels[draws], random_state=random_state)

    def restore(self, hypothesis: Description | str) -> HypothesisResult:
        """Restores the hypothesis that learn chose from the description that it released.

        Args:
            hypothesis: Description of a hypothesis of the class, a dict or its JSON.

        Returns:
            The hypothesis, ready to predict.

        Raises:
            ParameterError: The class has no such hypothesis.

        Cost:
            That of the index method of the class.
        """
        index = self.hypotheses.index(hypothesis)
        return HypothesisResult(index, self.hypotheses.hypothesis(index), self.hypotheses)

    def prepare(self, X: Any) -> Any:
        """Converts the records to the form that learn and predict read fastest.

        Args:
            X: The records, shape (m, d), as the errors method of the class takes them.

        Returns:
            Features for classes over bits, a float64 array of shape (m, d) for Halfspaces.

        Raises:
            ShapeError: X does not have d columns.
            ParameterError: An entry of X lies outside its domain.

        Cost:
            A pass over X.
        """
        return self.hypotheses.prepare(X)

    def sample_size(
        self,
        alpha: float,
        beta: float,
        epsilon: float | None = None,
        *,
        agnostic: bool = True,
        opt: float = 0.0,
    ) -> int:
        """Computes how many records are enough for an excess error of at most alpha.

        Args:
            alpha: Excess error over the best hypothesis of the class, in (0, 1).
            beta: Failure probability, in (0, 1).
            epsilon: Privacy parameter, above 0. None takes the learner's own.
            agnostic: True if nothing is known about the error of the best hypothesis. False if that
                error is at most `opt`.
            opt: Bound on the error of the best hypothesis, in [0, 1). 0 means that some hypothesis
                never errs. It is used only if agnostic is False.

        Returns:
            The number of records; 0 for a class of one hypothesis.

        Raises:
            ParameterError: A parameter is out of range, or `2**62` records are not enough.

        Guarantee:
            learn with that many records, drawn independently from any distribution, chooses a
            hypothesis that errs with probability at most the least possible in the class plus
            alpha, except with probability beta over records and random draws.

        Source:
            ln((|H| - 1) / beta) over the largest -ln E e^(-t Z), 0 < t <= epsilon / 2 (epsilon
            under "add_remove"), for Z the worst difference of two losses. This is a sharper form of
            Kasiviswanathan et al. 2011, Theorem 3.4.
        """
        epsilon = self.epsilon if epsilon is None else positive("epsilon", epsilon)
        rate = _error_exponent(alpha, epsilon, self.neighbors, agnostic, opt)
        return _records_needed(len(self.hypotheses), rate, beta)

    def paper_sample_size(
        self, alpha: float, beta: float, epsilon: float | None = None
    ) -> PaperSampleSize:
        """Computes how many records the paper's theorem asks for, as printed and as corrected.

        Args:
            alpha: Excess error over the best hypothesis of the class, in (0, 1).
            beta: Failure probability, in (0, 1).
            epsilon: Privacy parameter, above 0. None takes the learner's own.

        Returns:
            Both numbers of records, and whether the printed one is valid.

        Raises:
            ParameterError: A parameter is out of range, or `2**62` records are not enough.

        Guarantee:
            That of sample_size, for `corrected` records, under "replace_one".

        Source:
            Kasiviswanathan et al. 2011, Theorem 3.4.
        """
        alpha, beta = probability("alpha", alpha), probability("beta", beta)
        epsilon = self.epsilon if epsilon is None else positive("epsilon", epsilon)
        size = len(self.hypotheses)
        needs = [
            (6 * math.log(size / beta), min(epsilon * alpha, alpha**2)),
            (6 * math.log(2 * size / beta), epsilon * alpha),
            (9 * math.log(4 * size / beta), 2 * alpha**2),
        ]
        printed, *corrected = (_round_up("alpha and epsilon", *need) for need in needs)
        return PaperSampleSize(printed, epsilon >= 2 * alpha, max(corrected))

    def _record(self, random_state: RandomState) -> PrivacyRecord:
        return PrivacyRecord(
            mechanism=f"learners.ExponentialLearner, mechanism={self.mechanism}",
            source="Kasiviswanathan et al., What Can We Learn Privately?, Theorem 3.4",
            neighbors=self.neighbors.value,
            epsilon=self.epsilon,
            noise="coins of probability exp(-rate (errors - least errors))",
            numerics=self.numerics,
            rng=rng_of(random_state),
        )


def _round_up(names: str, numerator: float, denominator: float) -> int:
    size = _SLACK * numerator / denominator if denominator > 0 else math.inf
    if size >= 1 << 62:
        raise ParameterError(f"{names} are so small that 2**62 records are not enough")
    return math.ceil(size)


def vc_sample_size(
    vc: int,
    domain: int,
    *,
    alpha: float,
    beta: float,
    epsilon: float,
    agnostic: bool = True,
    opt: float = 0.0,
    neighbors: Neighbors = Neighbors.REPLACE_ONE,
) -> int:
    """Computes how many records are enough for any class of a VC dimension on a finite domain.

    On a domain of few points a class of many hypotheses, such as the half-lines below, has few
    labelings. The learner then chooses among Labelings of the class.

    Args:
        vc: VC dimension of the class, from 0 to 1,000.
        domain: Number of points in the domain, at least 1.
        alpha: Excess error over the best hypothesis of the class, in (0, 1).
        beta: Failure probability, in (0, 1).
        epsilon: Privacy parameter, above 0.
        agnostic: True if nothing is known about the error of the best hypothesis. False if that
            error is at most `opt`.
        opt: Bound on the error of the best hypothesis, in [0, 1). It is used only if agnostic is
            False.
        neighbors: "replace_one" or "add_remove", the relation of the learner.

    Returns:
        The number of records.

    Raises:
        ParameterError: A parameter is out of range, or `2**62` records are not enough.

    Guarantee:
        ExponentialLearner over Labelings of the class, on that many records drawn independently
        from the domain, chooses a hypothesis that errs with probability at most the least possible
        in the class plus alpha, except with probability beta.

    Source:
        Kasiviswanathan et al. 2011, Corollary 3.6, with the number of labelings itself in place of
        its order of magnitude, and the exponent of ExponentialLearner.sample_size.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import learners
        >>> domain = np.arange(100.0)[:, None]
        >>> lines = learners.Halfspaces(np.ones((1_000, 1)), -np.linspace(0, 100, 1_000))
        >>> len(learners.Labelings(domain, lines)), learners.sauer_bound(100, 1)
        (101, 101)
        >>> learners.vc_sample_size(1, 100, alpha=0.1, beta=0.05, epsilon=1.0)
        1513
    """
    epsilon, neighbors = positive("epsilon", epsilon), _validate_neighbors(neighbors)
    rate = _error_exponent(alpha, epsilon, neighbors, agnostic, opt)
    return _records_needed(sauer_bound(domain, vc), rate, beta)


def _validate_neighbors(neighbors: Neighbors) -> Neighbors:
    return relation(curator_relation("neighbors", neighbors))


def _error_exponent(
    alpha: float, epsilon: float, neighbors: Neighbors, agnostic: bool, opt: float
) -> float:
    """Return the rate at which the chance of a hypothesis worse by alpha falls with each record."""
    alpha, opt = probability("alpha", alpha), probability("opt", opt, zero=True)
    flag("agnostic", agnostic)
    largest = epsilon if neighbors == Neighbors.ADD_REMOVE else epsilon / 2
    # The means of the two losses sum to at most 1, which bounds the smaller one.
    bound = (1 - alpha) / 2
    low = bound if agnostic else min(opt, bound)
    if low == 0:
        return -math.log1p(alpha * math.expm1(-largest))
    t = min(largest, math.log1p(alpha / low) / 2)
    return -math.log1p(4 * low * math.sinh(t / 2) ** 2 + alpha * math.expm1(-t))


def _records_needed(hypotheses: int, rate: float, beta: float) -> int:
    """Return the number of records at which the failure probability is beta."""
    failure = probability("beta", beta)
    if hypotheses == 1:
        return 0
    return _round_up("alpha and epsilon", math.log(hypotheses - 1) - math.log(failure), rate)
