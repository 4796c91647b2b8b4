"""Finite classes of hypotheses: they count errors, predict, and describe hypotheses by index."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.feature_names import FeatureNames, check_names
from .._support.json_text import JsonText
from .._support.types import Bits
from .._support.validate import nonnegative_int, refuse
from ..data.hypothesis_words import Features, describe
from .descriptions import Description, parse

Errors = NDArray[np.int64]


class Hypotheses(ABC):
    """A finite class of hypotheses, each of which maps a record to 0 or 1.

    The hypotheses have the indices 0, 1, ..., len() - 1. Iterating over a class yields their
    descriptions one at a time. This is the abstract base of all classes of this module.

    Attributes:
        d: Number of features of a record.

    Examples:
        >>> from hdp_fast.learners import Stumps
        >>> stumps = Stumps(2)  # always 1, x0, not x0, x1, not x1, always 0
        >>> len(stumps)
        6
        >>> stumps.errors([[0, 1], [1, 1], [1, 0]], [0, 1, 1])
        array([1, 0, 3, 2, 1, 2])
        >>> stumps.hypothesis(1)
        {'kind': 'conjunction', 'features': [0], 'values': [1], 'complement': False}
    """

    d: int
    _kind: ClassVar[str]

    @abstractmethod
    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Description]:
        return (self.hypothesis(i) for i in range(len(self)))

    def errors(self, X: Any, y: ArrayLike, *, threads: int | None = None) -> Errors:
        """Counts the records that each hypothesis gets wrong.

        The counts are exact, and they are not private.

        Args:
            X: The records, shape (m, d): 0/1, a BitMatrix or Features for classes over bits, finite
                real numbers for Halfspaces.
            y: The labels, 0/1 of shape (m,).
            threads: Number of threads, from 1 to 1024. None takes the default of hdp_fast.gf2.rank.

        Returns:
            An int64 array of shape (len(self),).

        Raises:
            ShapeError: X does not have d columns, or y does not have m entries.
            ParameterError: An entry of X or y lies outside its domain, or threads is out of range.
            MemoryError: The counts do not fit into memory.

        Cost:
            Conjunctions, Stumps and SparseHalfspaces take m / 64 word operations for each set of
            features, whatever the signs and thresholds. ConjunctionList and Parities take m / 64
            for each literal, Halfspaces m d operations for each hypothesis. Memory is some dozen
            bytes for each hypothesis and thread.
        """
        return self._errors(X, y, threads)

    def predict(self, i: int, X: Any) -> Bits:
        """Predicts with hypothesis i on every record.

        Args:
            i: Index of the hypothesis, from 0 to len(self) - 1.
            X: The records, shape (m, d), as errors takes them.

        Returns:
            A uint8 array of shape (m,) of 0 and 1.

        Raises:
            ShapeError: X does not have d columns.
            ParameterError: i is out of range, or an entry of X lies outside its domain.

        Cost:
            A pass over X.
        """
        return self._predict(self._index(i), X)

    def hypothesis(self, i: int) -> Description:
        """Describes hypothesis i as a dict that JSON can carry.

        The value of "kind" says how the other entries are read. A "conjunction" is 1 where all
        "features" have their "values". A "parity" is the sum of its "features" over GF(2). Both are
        negated if "complement" is true. An "at_least" is 1 where at least "threshold" of the
        "features" have their "values". A "halfspace" is 1 where the inner product of "weights" and
        the record, plus "bias", is at least 0. Other kinds are those of `learners.predictor`.

        Args:
            i: Index of the hypothesis, from 0 to len(self) - 1.

        Returns:
            The description, a dict of plain Python values.

        Raises:
            ParameterError: i is out of range.
        """
        return self._hypothesis(self._index(i))

    def index(self, hypothesis: Description | str) -> int:
        """Finds the index of a described hypothesis: the inverse of hypothesis().

        Args:
            hypothesis: A description as hypothesis() returns it, as a dict or as JSON.

        Returns:
            The smallest index whose hypothesis has this description.

        Raises:
            ParameterError: The argument is no description, or the class does not contain the
                hypothesis.

        Cost:
            Linear in the description; for stored hypotheses a pass over all of them.
        """
        description = parse(hypothesis)
        i = self._place(description) if description["kind"] == self._kind else None
        if i is None or i >= len(self) or self._hypothesis(i) != description:
            refuse("hypothesis", hypothesis, "the class has none such")
        return i

    def prepare(self, X: Any) -> Any:
        """Converts the records to the form that errors and predict read fastest.

        Args:
            X: The records, shape (m, d), as errors takes them.

        Returns:
            Features for classes over bits, a float64 array of shape (m, d) for Halfspaces.

        Raises:
            ShapeError: X does not have d columns.
            ParameterError: An entry of X lies outside its domain.

        Cost:
            A pass over X.
        """
        return self._prepare(X)

    @abstractmethod
    def _place(self, description: Description) -> int | None:
        """Return the first index that this description, of the class's kind, can have."""

    @abstractmethod
    def _prepare(self, X: Any) -> Any: ...

    @abstractmethod
    def _errors(self, X: Any, y: ArrayLike, threads: int | None) -> Errors: ...

    @abstractmethod
    def _predict(self, i: int, X: Any) -> Bits: ...

    @abstractmethod
    def _hypothesis(self, i: int) -> Description: ...

    def _index(self, i: int) -> int:
        index = nonnegative_int("i", i)
        if index >= len(self):
            refuse("i", i, f"there are {len(self):,} hypotheses")
        return index


@dataclass(frozen=True, eq=False)
class HypothesisResult(JsonText):
    """A hypothesis of a class, ready to predict.

    Attributes:
        index: Index of the hypothesis in its class.
        hypothesis: Its description, a dict that JSON can carry.
        feature_names_in_: Names of the columns of the frame that it was learned from; None where
            that had no names. If a frame to predict on has the same columns in another order, they
            are reordered.

    Examples:
        >>> from hdp_fast.learners import Conjunctions, ExponentialLearner
        >>> learner = ExponentialLearner(Conjunctions(2, 2), epsilon=1.0)
        >>> released = {"kind": "conjunction", "features": [0, 1], "values": [1, 0]}
        >>> result = learner.restore({**released, "complement": False})
        >>> result.words
        'x0 and not x1'
        >>> result.predict([[1, 0], [1, 1]])
        array([1, 0], dtype=uint8)
    """

    index: int
    hypothesis: Description
    _hypotheses: Hypotheses = field(repr=False)
    feature_names_in_: FeatureNames = field(default=None, repr=False, kw_only=True)

    @property
    def words(self) -> str:
        """The hypothesis in words, such as "tall and not rich"; nameless features are x0, x1."""
        names = self.feature_names_in_ or [f"x{place}" for place in range(self._hypotheses.d)]
        return describe(self.hypothesis, Features.unrelated(names))

    def predict(self, X: Any) -> Bits:
        """Predicts with the hypothesis on other records.

        Args:
            X: The records, shape (m, d), as the errors method of the class takes them, or a frame
                with the columns in feature_names_in_.

        Returns:
            A uint8 array of shape (m,) of 0 and 1.

        Raises:
            ShapeError: X does not have d columns.
            ParameterError: An entry of X lies outside its domain, or a column of a frame is
                missing, unknown or repeated.

        Cost:
            A pass over X.
        """
        return self._hypotheses.predict(self.index, check_names(self.feature_names_in_, X))


def check_class(name: str, value: object) -> Hypotheses:
    """The value, which must be a class of hypotheses.

    Raises:
        ParameterError: The value is not an instance of Hypotheses.
    """
    if not isinstance(value, Hypotheses):
        refuse(name, value, "it must be a class of hypotheses of hdp_fast.learners")
    return value
