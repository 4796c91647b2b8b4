"""The generic private learner: a finite class, and a hypothesis of few errors chosen from it."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._core import Features
from .._support.feature_names import names_of
from .._support.parameters import Parameters
from .._support.random_state import check_random_state, make_key
from .._support.types import RandomState
from .._support.validate import array, integers, one_of, positive, probability, refuse
from ..accounting.mechanisms import BoundedRange, Pure
from ..accounting.neighbors import Neighbors, relation
from ..budget.account import Budget, spend
from ..exceptions import ParameterError, ShapeError
from ..noise import selection_rate
from ..record import PrivacyRecord, rng_of
from .descriptions import Description, flag
from .hypotheses import Hypotheses, HypothesisResult, check_class, store
from .labelings import sauer_bound

Selection = Literal["exponential", "permute_and_flip"]

# A sample size is rounded up from a little more than its formula, whose floats may fall short.
_SLACK = 1 + 1e-12


@dataclass(frozen=True, eq=False)
class ExponentialResult(HypothesisResult):
    """What ExponentialLearner releases: a hypothesis, and what protects the records.

    Attributes:
        index: of the chosen hypothesis in its class.
        hypothesis: its description, a dict that JSON can carry.
        record: what protects the records.
        feature_names_in_: as HypothesisResult.
    """

    record: PrivacyRecord


class PaperSampleSize(NamedTuple):
    """The records that the paper's theorem asks for, as printed and as corrected.

    Attributes:
        printed: 6 ln(|H| / beta) max(1 / (epsilon alpha), 1 / alpha**2).
        printed_valid: whether the failure probability is then proved to be at most beta: for
            epsilon >= 2 alpha; below, it may be up to 1.74 beta.
        corrected: max(6 ln(2 |H| / beta) / (epsilon alpha), 9 ln(4 |H| / beta) / (2 alpha**2)).
    """

    printed: int
    printed_valid: bool
    corrected: int


@dataclass(frozen=True, eq=False)
class ExponentialLearner(Parameters):
    """Private choice of a hypothesis of few errors from a finite class.

        >>> from hdp_fast.learners import Conjunctions, ExponentialLearner
        >>> learner = ExponentialLearner(Conjunctions(64, 2), epsilon=1.0)
        >>> n = learner.sample_size(alpha=0.05, beta=0.05)
        >>> print(f"{n:,} records are enough for {len(learner.hypotheses):,} hypotheses")
        9,594 records are enough for 8,193 hypotheses
        >>> learner.sample_size(alpha=0.05, beta=0.05, agnostic=False)  # if one of them never errs
        605

    Guarantee: learn is pure epsilon-DP for the given neighbor relation, exact coins; the
        exponential mechanism has epsilon-bounded range as well, permute-and-flip has not.
        (A record changes each error count by at most 1; under "add_remove" none the other way.)

    Attributes:
        hypotheses: one of the classes of this module.
        epsilon: privacy parameter, above 0.
        mechanism: "exponential", or "permute_and_flip", which is never worse on its own.
        neighbors: "replace_one" or "add_remove" of a record.

    Raises: ParameterError.
    Cost: none until learn.
    Source: Kasiviswanathan et al. 2011, Theorem 3.4.
    """

    hypotheses: Hypotheses
    _: dataclasses.KW_ONLY
    epsilon: float
    mechanism: Selection = "exponential"
    neighbors: Neighbors = Neighbors.REPLACE_ONE

    def __post_init__(self) -> None:
        """Validate the parameters."""
        check_class("hypotheses", self.hypotheses)
        if not len(self.hypotheses):
            raise ParameterError("hypotheses are none, but there must be one to choose")
        one_of("mechanism", self.mechanism, ("exponential", "permute_and_flip"))
        neighbors = _validate_neighbors(self.neighbors)
        store(self, epsilon=positive("epsilon", self.epsilon), neighbors=neighbors)

    @property
    def numerics(self) -> Literal["exact"]:
        """Errors are counted, and coins compared, in integers."""
        return "exact"

    @property
    def privacy(self) -> BoundedRange | Pure:
        """The mechanism as accounting takes it."""
        kind = BoundedRange if self.mechanism == "exponential" else Pure
        return kind(self.epsilon, neighbors=self.neighbors)

    def with_epsilon(self, epsilon: float) -> ExponentialLearner:
        """The same learner with another privacy parameter.

        epsilon: above 0.

        Raises: ParameterError.
        Cost: constant.
        Source: none.
        """
        return dataclasses.replace(self, epsilon=epsilon)

    def learn(
        self,
        X: Any,
        y: ArrayLike,
        *,
        random_state: RandomState = None,
        budget: Budget | None = None,
    ) -> ExponentialResult:
        """Choose a hypothesis by its errors on the records.

        X, y: as errors of the class. random_state: None draws from the operating system; an int or
        a Generator makes a reproducible test stream that protects nobody who knows it. budget:
        charged epsilon, before anything is drawn.

        Guarantee: as the class; the running time is not protected.
        Raises: ShapeError, ParameterError, MemoryError, BudgetExceeded; all of them before any coin
            is drawn or budget spent.
        Cost: errors of the class, and at most about a coin for each hypothesis.
        Source: Kasiviswanathan et al. 2011, Theorem 3.4; McSherry and Talwar 2007; McKenna and
            Sheldon 2020.
        """
        check_random_state(random_state)
        record = self._record(random_state)
        scores = -self.hypotheses.errors(X, y)
        monotonic = self.neighbors == Neighbors.ADD_REMOVE
        rate = selection_rate(self.epsilon, 1, monotonic).as_integer_ratio()
        method = "exponential_mechanism" if self.mechanism == "exponential" else self.mechanism
        with spend(budget, record):
            index = _core.select(method, scores, rate, make_key(random_state))
        hypothesis = self.hypotheses.hypothesis(index)
        names = names_of(X)
        return ExponentialResult(
            index, hypothesis, self.hypotheses, record, feature_names_in_=names
        )

    def learn_indices(
        self,
        X: Any,
        y: NDArray[np.uint8],
        indices: NDArray[np.int64],
        *,
        random_state: RandomState = None,
    ) -> ExponentialResult:
        """Choose a hypothesis by its errors on some of the records, with repetition.

        X: as prepare returned it; y: uint8 (n,); indices: int64 (m,), from 0 to n - 1;
        random_state: as learn.

        Guarantee: as learn for each draw; a record that occurs k times has k times epsilon.
        Raises: as learn.
        Cost: as learn, and a random read for every index.
        Source: as learn.
        """
        draws = integers("indices", indices, np.int64)
        labels, size = array("y", y), len(X)
        if labels.shape != (size,):
            raise ShapeError(f"y has shape {labels.shape}, but X has {size} records")
        if not 0 <= draws.min() <= draws.max() < size:
            raise ParameterError(f"indices has entries out of range, but X has {size} records")
        drawn = X._take(draws) if isinstance(X, Features) else X[draws]
        return self.learn(drawn, labels[draws], random_state=random_state)

    def restore(self, hypothesis: Description | str) -> HypothesisResult:
        """The hypothesis that learn chose, from the description that it released.

        hypothesis: of a hypothesis of the class, a dict or its JSON.

        Raises: ParameterError for one that the class has not.
        Cost: index of the class.
        Source: none.
        """
        index = self.hypotheses.index(hypothesis)
        return HypothesisResult(index, self.hypotheses.hypothesis(index), self.hypotheses)

    def prepare(self, X: Any) -> Any:
        """The records in the form that learn and predict read fastest.

        X: as errors of the class. Returns Features for classes over bits, float64 (m, d) for
        Halfspaces.

        Raises: ShapeError, ParameterError.
        Cost: a pass over X.
        Source: none.
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
        """Records that are enough for an error of at most alpha above the least one of the class.

        alpha: excess error, in (0, 1); beta: failure probability, in (0, 1). epsilon: None means
        the learner's own. agnostic: whether nothing is known about the least error; else it is at
        most opt, in [0, 1), 0 if some hypothesis is always right.

        Guarantee: learn with so many records, drawn independently from any distribution, chooses a
            hypothesis that errs with probability at most the least possible plus alpha, except
            with probability beta over records and coins.
        Raises: ParameterError.
        Cost: constant.
        Source: ln((|H| - 1) / beta) over the largest -ln E e^(-t Z), 0 < t <= epsilon / 2 (epsilon
            under "add_remove"), for Z the worst difference of two losses: a sharper form of
            Kasiviswanathan et al. 2011, Theorem 3.4.
        """
        epsilon = self.epsilon if epsilon is None else positive("epsilon", epsilon)
        rate = _error_exponent(alpha, epsilon, self.neighbors, agnostic, opt)
        return _records_needed(len(self.hypotheses), rate, beta)

    def paper_sample_size(
        self, alpha: float, beta: float, epsilon: float | None = None
    ) -> PaperSampleSize:
        """The records that the paper asks for, as printed and as corrected.

        alpha, beta, epsilon: as sample_size.

        Guarantee: that of sample_size, for `corrected` records, under "replace_one".
        Raises: ParameterError.
        Cost: constant.
        Source: Kasiviswanathan et al. 2011, Theorem 3.4.
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
    """Records that are enough for any class of a VC dimension on a finite domain.

    On a domain of few points the many half-lines there are come down to few labelings:

        >>> import numpy as np
        >>> from hdp_fast import learners
        >>> domain = np.arange(100.0)[:, None]
        >>> lines = learners.Halfspaces(np.ones((5_000, 1)), -np.linspace(0, 100, 5_000))
        >>> learner = learners.ExponentialLearner(learners.Labelings(domain, lines), epsilon=1.0)
        >>> len(learner.hypotheses), learners.sauer_bound(100, 1)
        (101, 101)
        >>> learners.vc_sample_size(1, 100, alpha=0.1, beta=0.05, epsilon=1.0)
        1513

    vc: VC dimension, at least 0; domain: number of points, at least 1; the others as
    ExponentialLearner and its sample_size take them.

    Guarantee: ExponentialLearner over Labelings of the class chooses from so many records,
        independent and from the domain, as its sample_size says.
    Raises: ParameterError.
    Cost: that of sauer_bound.
    Source: Kasiviswanathan et al. 2011, Corollary 3.6, with the number of labelings itself in place
        of its order and the exponent of sample_size.
    """
    epsilon, neighbors = positive("epsilon", epsilon), _validate_neighbors(neighbors)
    rate = _error_exponent(alpha, epsilon, neighbors, agnostic, opt)
    return _records_needed(sauer_bound(domain, vc), rate, beta)


def _validate_neighbors(neighbors: Neighbors) -> Neighbors:
    neighbors = relation(neighbors)
    if neighbors == Neighbors.LOCAL:
        refuse("neighbors", str(neighbors), "it must be one of replace_one, add_remove")
    return neighbors


def _error_exponent(
    alpha: float, epsilon: float, neighbors: Neighbors, agnostic: bool, opt: float
) -> float:
    """The rate at which the probability of a hypothesis worse by alpha falls with each record."""
    alpha, opt = probability("alpha", alpha), probability("opt", opt, zero=True)
    flag("agnostic", agnostic)
    largest = epsilon if neighbors == Neighbors.ADD_REMOVE else epsilon / 2
    # The two losses sum to at most 1, which bounds the smaller one.
    bound = (1 - alpha) / 2
    low = bound if agnostic else min(opt, bound)
    if low == 0:
        return -math.log1p(alpha * math.expm1(-largest))
    t = min(largest, math.log1p(alpha / low) / 2)
    return -math.log1p(4 * low * math.sinh(t / 2) ** 2 + alpha * math.expm1(-t))


def _records_needed(hypotheses: int, rate: float, beta: float) -> int:
    """Records with which another hypothesis than the best is chosen with probability beta."""
    failure = probability("beta", beta)
    if hypotheses == 1:
        return 0
    return _round_up("alpha and epsilon", math.log(hypotheses - 1) - math.log(failure), rate)
