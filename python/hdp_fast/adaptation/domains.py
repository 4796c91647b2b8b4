"""The records of a domain, in one array or in parts, and how they are folded."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._support.feature_names import FeatureNames, check_names, find_order, names_of
from .._support.types import Floats
from .._support.validate import array
from ..data.chunks import Chunks, refuse_unlabeled, settle_owners
from ..data.frames import read_labels_as_numbers
from ..data.persons import Persons, read_persons
from ..data.states import State
from ..data.table import Table
from ..exceptions import HdpFastError, ParameterError, ShapeError
from ..learners.linear_model import validate_labels, validate_rows
from .baselines.reweighting import Loss

Owners = tuple[ArrayLike | None, int]
_NOBODY: Owners = (None, 1)
# Makes a state of rows and labels; of rows alone where labels are not read.
Task = Callable[..., State]


class DomainRecords(NamedTuple):
    """Validated records: float X (n, d), and float64 y (n,), -1 or 1 for the logistic loss."""

    X: NDArray[Any]
    y: Floats


class Domain(NamedTuple):
    """The records of a domain that are used.

    Attributes:
        name: "source" or "target", for errors.
        names: The names of the features, if they have any.
        columns: The number of features.
        n: The number of records.
        persons: Who owns them.
        records: The validated records, or Chunks of records that are validated where they are read.
        read: Validates a block of Chunks.
    """

    name: str
    names: FeatureNames
    columns: int
    n: int
    persons: Persons
    records: DomainRecords | Chunks
    read: Callable[..., DomainRecords]

    def fold(self, task: Task) -> State:
        """Return the state of all records, as the task makes it of some rows and their labels.

        Raises: ShapeError where parts have changed since they were counted; what reading raises.
        """
        if not isinstance(self.records, Chunks):
            return task(*self.records)
        state = self.records.fold(partial(_fold_block, read=self.read, task=task))
        if state.rows != self.n:
            counts = f"{state.rows:,} rows where it had {self.n:,}"
            raise ShapeError(f"X_{self.name} has {counts}: parts changed")
        return state

    def blocks(self, size: int) -> Iterator[DomainRecords]:
        """Yield public records in their order, float64 and `size` at a time, however parts are cut.

        Raises: What reading raises.
        """
        if not isinstance(self.records, Chunks):
            X, y = self.records
            for start in range(0, self.n, size):
                rows = np.ascontiguousarray(X[start : start + size], np.float64)
                yield DomainRecords(rows, y[start : start + size])
            return
        room, filled = DomainRecords(np.empty((size, self.columns)), np.empty(size)), 0
        for block in self.records.read_in_order():
            X, y = self.read(*block)
            start = 0
            while start < len(y):
                some = min(size - filled, len(y) - start)
                room.X[filled : filled + some] = X[start : start + some]
                room.y[filled : filled + some] = y[start : start + some]
                start, filled = start + some, filled + some
                if filled == size:
                    yield room
                    filled = 0
        if filled:
            yield DomainRecords(room.X[:filled], room.y[:filled])


def open_domain(
    name: str,
    X: Any,
    y: Any,
    loss: Loss | None,
    *,
    owners: Owners | None = None,
    names: FeatureNames = None,
) -> Domain:
    """Return the records of a domain, in one array or in parts.

    loss: what the labels are for; None where they are not read. owners: ids and the most rows of a
    person; None where rows alone are protected, so that Chunks with ids are refused. names: those
    of the features, in whose order they are put; None leaves them as they are.

    Raises: ShapeError, ParameterError; what reading parts raises.
    """
    if isinstance(X, Chunks):
        return _open_parts(name, X, y, loss, owners, names)
    own = names or names_of(X)
    X = check_names(names, X, f"X_{name}")
    if loss is None:
        rows, _, persons = bound_records(X, None, *(owners or _NOBODY))
        entries = validate_features(name, rows)
        records = DomainRecords(entries, np.zeros(len(entries)))
    else:
        if y is None:
            rule = "arrays of records must come with their labels"
            raise ParameterError(f"y_{name} = None, but {rule}")
        X, y, persons = bound_records(X, y, *(owners or _NOBODY))
        records = validate_domain(name, X, y, loss)
    read = partial(_read_block, name=name, loss=loss, names=None, order=None)
    n, columns = records.X.shape
    return Domain(name, own, columns, n, persons, records, read)


def _open_parts(
    name: str, chunks: Chunks, y: Any, loss: Loss | None, owners: Owners | None, names: FeatureNames
) -> Domain:
    if y is not None and loss is not None:
        raise ParameterError(f"y_{name} was passed beside Chunks, which hold the labels")
    persons = Persons()
    if owners is not None:
        chunks, persons = settle_owners(chunks, *owners)
    head, own = chunks.first()[0], chunks.columns()
    order = None
    if names is not None and own is not None:
        # Blocks that have lost their names are put in order by what the parts are called.
        order = find_order(names, own, f"X_{name}")
    named = names if names_of(head) is not None else None
    # Of its shape alone: no entry of a record that is left out may raise.
    columns = validate_features(
        name, np.zeros((1, *np.shape(array("X", _to_array(head)))[1:]))
    ).shape[1]
    read = partial(_read_block, name=name, loss=loss, names=named, order=None if named else order)
    n = chunks.count()
    if not n:
        raise ShapeError(f"X_{name} has no row, but there must be one at least")
    return Domain(name, names or own, columns, n, persons, chunks, read)


def _read_block(
    X: Any,
    y: Any = None,
    *,
    name: str,
    loss: Loss | None,
    names: FeatureNames,
    order: list[int] | None,
) -> DomainRecords:
    X = _to_array(check_names(names, X, f"X_{name}"))
    if order is not None:
        X = array("X", X)[:, order]
    if loss is None:
        rows = validate_features(name, X)
        return DomainRecords(rows, np.zeros(len(rows)))
    if y is None:
        refuse_unlabeled()
    return validate_domain(name, X, read_labels_as_numbers(y), loss)


def _to_array(X: Any) -> Any:
    """The numbers of a table; another container as it is."""
    if not isinstance(X, Table):
        return X
    return np.stack([X.column(name).row_numbers() for name in X.columns], axis=1)


def _fold_block(X: Any, y: Any = None, *, read: Callable[..., DomainRecords], task: Task) -> State:
    return task(*read(X, y))


def refuse_parts(why: str, **records: Any) -> None:
    """Refuse Chunks where a method needs all rows.

    why: the reason, for the error.

    Raises: ParameterError.
    """
    for name, value in records.items():
        if isinstance(value, Chunks):
            rule = f"{why}: read them into one array, or a public sample of them"
            raise ParameterError(f"{name} = {value!r}, but {rule}")


def bound_records(
    X: Any, y: Any, ids: ArrayLike | None, rows_per_person: int
) -> tuple[Any, Any, Persons]:
    """The private records that are used, and who owns them.

    Raises: ShapeError unless there is an id for each of n records; ParameterError as read_persons.
    """
    if ids is None:
        return X, y, read_persons(None, rows_per_person, 0)
    shape = np.shape(array("X", X))
    n = shape[0] if shape else 1
    if y is not None and np.shape(array("y", y)) != shape[:1]:
        raise ShapeError(f"the private labels are not as many as their {n:,} records")
    persons = read_persons(ids, rows_per_person, n)
    return persons.select(X), None if y is None else persons.select(y), persons


def validate_domain(name: str, X: ArrayLike, y: ArrayLike, loss: Loss) -> DomainRecords:
    """Validate the records of a domain; errors name the domain.

    Raises: ShapeError, ParameterError.
    """
    rows = validate_features(name, X)
    with _naming(name):
        labels = validate_labels(y, len(rows), None if loss == "logistic" else math.inf)
    return DomainRecords(rows, labels.astype(np.float64, copy=False))


def align_source(
    X_source: Any, X_target: Any, feature_map: object = None
) -> tuple[Any, FeatureNames]:
    """Return the source's records with their columns in the target's order, and the names of these.

    Two frames must have the same names, in any order, unless a feature map makes other features.

    Raises: ParameterError.
    """
    names = names_of(X_target)
    if feature_map is not None:
        return X_source, names
    return check_names(names, X_source, "X_source"), names or names_of(X_source)


def validate_features(name: str, X: ArrayLike) -> NDArray[Any]:
    """Validate the features of a domain, float (n, d); errors name the domain.

    Raises: ShapeError, ParameterError.
    """
    with _naming(name):
        return validate_rows(X).entries


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Put the domain's name in front of errors."""
    try:
        yield
    except HdpFastError as error:
        raise type(error)(f"{name}: {error}") from None


def check_columns(name: str, rows: NDArray[Any], d: int) -> None:
    """Refuse records that do not have d features.

    Raises: ShapeError.
    """
    if rows.shape[1] != d:
        raise ShapeError(f"{name} has {rows.shape[1]} columns, but there must be {d}")
