"""Finite classes of hypotheses: errors of all at once, predictions and descriptions by index."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.feature_names import FeatureNames, check_names
from .._support.numbers import floats
from .._support.types import Bits, Floats
from .._support.validate import nonnegative_int, numbers, refuse
from ..data.hypothesis_words import Features, describe
from ..exceptions import ParameterError, ShapeError
from .descriptions import Description, parse

Errors = NDArray[np.int64]


class Hypotheses(ABC):
    """A finite class of hypotheses 0, 1, ..., len() - 1, each from records to {0, 1}.

    Iterating gives the descriptions, one at a time. This is the abstract base of the classes below.

    Attributes:
        d: number of features of a record.
    """

    d: int
    _kind: ClassVar[str]

    @abstractmethod
    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Description]:
        return (self.hypothesis(i) for i in range(len(self)))

    def errors(self, X: Any, y: ArrayLike, *, threads: int | None = None) -> Errors:
        """How many records each hypothesis gets wrong.

        X: the records, m rows of what the class takes; y: their labels, 0/1 (m,). threads: as
        hdp_fast.gf2.rank. Returns int64 (len(self),). Not private.

        Raises: ShapeError, ParameterError, MemoryError.
        Cost: Conjunctions, Stumps and SparseHalfspaces m / 64 word operations for each set of
            features, whatever the signs and thresholds; lists and Parities m / 64 for each
            literal; Halfspaces m d operations each. Some dozen bytes a hypothesis and thread.
        Source: none.
        """
        return self._errors(X, y, threads)

    def predict(self, i: int, X: Any) -> Bits:
        """The predictions of hypothesis i on every record.

        i: from 0 to len(self) - 1; X: as errors. Returns uint8 (m,).

        Raises: ShapeError, ParameterError.
        Cost: a pass over X.
        Source: none.
        """
        return self._predict(self._index(i), X)

    def hypothesis(self, i: int) -> Description:
        """The description of hypothesis i, a dict that JSON can carry.

        i: from 0 to len(self) - 1. "kind": "conjunction" is 1 where all "features" have their
        "values", "parity" the sum of its "features" over GF(2), both reversed if "complement";
        "at_least" is 1 where at least "threshold" of the "features" have their "values";
        "halfspace" is 1 where "weights" times the record plus "bias" is at least 0.

        Raises: ParameterError.
        Cost: that of the description.
        Source: none.
        """
        return self._hypothesis(self._index(i))

    def index(self, hypothesis: Description | str) -> int:
        """The index of the hypothesis that a description means: the inverse of hypothesis().

        hypothesis: as hypothesis() describes it, or that as JSON. Returns the first such i.

        Raises: ParameterError for one that is not in the class.
        Cost: that of the description, for stored hypotheses a pass over them.
        Source: none.
        """
        description = parse(hypothesis)
        i = self._place(description) if description["kind"] == self._kind else None
        if i is None or i >= len(self) or self._hypothesis(i) != description:
            refuse("hypothesis", hypothesis, "the class has none such")
        return i

    def prepare(self, X: Any) -> Any:
        """The records in the form that errors and predict read fastest.

        X: as errors. Returns Features for classes over bits, float64 (m, d) for Halfspaces.

        Raises: ShapeError, ParameterError.
        Cost: a pass over X.
        Source: none.
        """
        return self._prepare(X)

    @abstractmethod
    def _place(self, description: Description) -> int | None:
        """The only index, or the first, that can have this description, of the class's kind."""

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
class HypothesisResult:
    """A hypothesis of a class, ready to predict.

    Attributes:
        index: of the hypothesis in its class.
        hypothesis: its description, a dict that JSON can carry.
        feature_names_in_: names of the columns of the frame that it was learned from, else None; a
            frame with the same in another order is put in theirs.
    """

    index: int
    hypothesis: Description
    _hypotheses: Hypotheses = field(repr=False)
    feature_names_in_: FeatureNames = field(default=None, repr=False, kw_only=True)

    @property
    def words(self) -> str:
        """The hypothesis in words, as "tall and not rich"; of nameless features x0, x1, ..."""
        names = self.feature_names_in_ or [f"x{place}" for place in range(self._hypotheses.d)]
        return describe(self.hypothesis, Features.unrelated(names))

    def predict(self, X: Any) -> Bits:
        """The predictions of the hypothesis on other records.

        X: records as the class takes them. Returns uint8 (m,).

        Raises: ShapeError, ParameterError.
        Cost: a pass over X.
        Source: none.
        """
        return self._hypotheses.predict(self.index, check_names(self.feature_names_in_, X))


def check_class(name: str, value: object) -> None:
    """Refuse what is no class of hypotheses.

    Raises: ParameterError.
    """
    if not isinstance(value, Hypotheses):
        refuse(name, value, "it must be a class of hypotheses of hdp_fast.learners")


def store(instance: object, **values: Any) -> None:
    """Set fields of a frozen instance, once they are validated."""
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """The array itself, made read-only."""
    values.flags.writeable = False
    return values


def first(matches: NDArray[np.bool_]) -> int | None:
    """The first place that is true, or None."""
    return int(matches.argmax()) if matches.any() else None


def reals(name: str, value: ArrayLike, dimensions: int) -> Floats:
    """The value as an array of finite numbers, without a copy where it is float64."""
    values = numbers(name, value)
    if values.ndim != dimensions:
        rule = f"it must have {dimensions} dimension(s)"
        raise ShapeError(f"{name} has shape {values.shape}, but {rule}")
    entries = floats(values)
    if not np.isfinite(entries).all():
        raise ParameterError(f"{name} has an infinite entry or NaN, but all must be finite")
    return entries
