"""Means of columns, released once, of a public table or known in public; intervals for means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from statistics import NormalDist
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import noise
from .._support.binomial import clopper_pearson
from .._support.feature_names import FeatureNames, names_of
from .._support.json_text import JsonObject
from .._support.notes import keep_result, note_large_delta
from .._support.random_state import check_random_state, make_stream
from .._support.types import Floats, Integers, RandomState
from .._support.validate import (
    distinct_texts,
    flag,
    number,
    numbers,
    positive,
    probability,
    read_only,
    refuse,
)
from ..accounting.discrete_gaussian import MOST_BITS, calibrate_means
from ..budget.account import Budget, spend
from ..data.chunks import Chunks, settle_owners
from ..data.frames import take_columns
from ..data.persons import read_persons
from ..data.rows import Bounds, Rows, check_bounds
from ..data.schema import Schema
from ..data.states import State, describe_settings
from ..data.table import Table
from ..exceptions import ParameterError, ShapeError
from ..gf2 import BitMatrix
from ..local.estimation import advantage, debias
from ..record import PrivacyRecord, gaussian_law, rng_of
from ..statistics.bounded_columns import add_up
from ..statistics.release_noise import note_noise

_SOURCE = "Gaussian mechanism with the curve of Balle and Wang 2018"
_JOB = "transfer.release_means"
_MOST_RECORDS = 1 << 31
_SHAPE = f"it must be (n, d) with an entry and at most {_MOST_RECORDS:,} rows"
# The probability of failure is smaller by this factor, which makes up for rounding.
_MARGIN = 1 - 1e-6
_STEPS = 50


@dataclass(frozen=True, eq=False)
class ColumnMeans(JsonObject):
    """The mean of every column of some records, scaled by public bounds to [0, 1].

    `release_means` makes it of records; for means that are public knowledge, `ColumnMeans.public`
    does.

    Attributes:
        means: The d means in [0, 1], float64 and read-only; noisy ones are clipped.
        low: Public lower bounds of the columns, float64 of shape (d,): a value there counts as 0.
        high: Public upper bounds, each above `low`: a value there counts as 1.
        names: Names of the columns.
        n: The public number of records; None for means of a whole population.
        deviation: Standard deviation of the noise on each mean; 0 where nothing is protected.
        grid: Largest error of a mean by the rounding of values to a grid.
        record: What protects the records; None where nothing does.

    Examples:
        >>> from hdp_fast import transfer
        >>> means = transfer.ColumnMeans.public([0.5, 41.0], low=[0, 18], high=[1, 90],
        ...     names=["female", "age"])
        >>> means.means.round(2), means.half_width(beta=0.05)
        (array([0.5 , 0.32]), 0.0)
    """

    means: Floats
    low: Floats
    high: Floats
    names: tuple[str, ...]
    n: int | None = None
    deviation: float = 0.0
    grid: float = 0.0
    record: PrivacyRecord | None = None

    @classmethod
    def public(
        cls,
        means: ArrayLike,
        *,
        low: ArrayLike = 0.0,
        high: ArrayLike = 1.0,
        names: Sequence[str] | None = None,
    ) -> Self:
        """Takes means that everybody knows, as from a census, and that belong to no one's records.

        Args:
            means: The means of d columns in their own units, shape (d,), each within its bounds.
            low: Lower bounds of the columns, a number or shape (d,).
            high: Upper bounds, a number or shape (d,), each above `low`.
            names: Names of the columns, all different; None calls them x0, x1, ...

        Returns:
            The means, without noise and taken as those of a whole population.

        Raises:
            ShapeError: means has not one dimension and an entry, or bounds have another shape.
            ParameterError: A bound is not finite, a mean lies outside its bounds, or names are no
                d different texts.
        """
        values = np.asarray(numbers("means", means), np.float64)
        if values.ndim != 1 or not values.size:
            raise ShapeError(f"means has shape {values.shape}, but it must be (d,) with d >= 1")
        bounds = check_bounds(low, high, len(values))
        if not ((bounds.low <= values) & (values <= bounds.high)).all():
            raise ParameterError("means has an entry out of its bounds, but each must be within")
        labels = _check_names(names, None, len(values))
        return cls(read_only(bounds.scale(values)), bounds.low, bounds.high, labels)

    def half_width(self, beta: float) -> float:
        """Computes how far any of the means may be from that of the records, but for beta.

        Args:
            beta: Probability, in (0, 1), with which some mean may be farther away.

        Returns:
            The half width for all d means at once, in units of the bounds; 0 without noise.

        Raises:
            ParameterError: beta is out of range.
        """
        failure = probability("beta", beta)
        if self.deviation == 0:
            return self.grid
        quantile = -NormalDist().inv_cdf(failure / (2 * len(self.means)))
        return quantile * self.deviation + self.grid

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Self:
        arrays = {name: read_only(np.array(fields[name], np.float64)) for name in _ARRAYS}
        if len({len(values) for values in (*arrays.values(), fields["names"])}) != 1:
            raise ValueError("columns differ in number")
        record = fields["record"]
        named = {"record": None if record is None else PrivacyRecord(**record)}
        return cls(**{**fields, **arrays, "names": tuple(fields["names"]), **named})

    def __repr__(self) -> str:
        if self.record is not None:
            price = f"epsilon={self.record.epsilon:g}, delta={self.record.delta:g}"
            how = f"{price}: noise of deviation {self.deviation:.3g} on each mean in [0, 1]"
        else:
            how = "not protected" if self.n is not None else "public knowledge"
        records = "" if self.n is None else f" of {self.n:,} records"
        return f"ColumnMeans({len(self.means)} columns{records}, {how})"


_ARRAYS = ("means", "low", "high")


@keep_result
def release_means(
    records: Any,
    *,
    epsilon: float,
    delta: float | None = None,
    schema: Schema | None = None,
    bits: bool = False,
    low: ArrayLike = 0.0,
    high: ArrayLike = 1.0,
    names: Sequence[str] | None = None,
    ids: ArrayLike | None = None,
    rows_per_person: int = 1,
    budget: Budget | None = None,
    random_state: RandomState = None,
) -> ColumnMeans:
    """Releases the means of all columns of private records once, with Gaussian noise.

    Every value is clipped to public bounds and scaled to [0, 1]. With a schema, the columns are its
    float features, or its bits. The bits of a category then cost no more than one number does,
    times the root of 2, however many they are.

    Args:
        records: An array or frame of shape (n, d), or with a schema a `data.Table`; or data.Chunks
            of these, whose labels are left out. n is public and at most `2**31`. NaN counts as the
            lower bound.
        epsilon: Privacy parameter, above 0; math.inf adds no noise and protects no one.
        delta: Privacy parameter, strictly between 0 and 1; only with epsilon = math.inf it may be
            None.
        schema: Public schema of the table; None for arrays and frames.
        bits: Whether the columns are the schema's bits, with one for each cut of a number, and not
            its float features. Only with a schema.
        low: Public lower bounds of the columns, a number or shape (d,); not with a schema.
        high: Public upper bounds, a number or shape (d,), each above `low`; not with a schema.
        names: Names of the columns; None takes those of the frame or the schema, or x0, x1, ...
        ids: Whose row it is, shape (n,), as data.bound_rows takes them: the guarantee is then for
            people, who may have several rows. None protects each row. Chunks name a column of ids
            themselves.
        rows_per_person: The most rows of a person that are used, the others being left out; public.
        budget: Budget of the relation "replace_one", or with ids "replace_person", charged before
            anything is drawn; None charges nothing.
        random_state: None draws from the operating system. An int or a Generator makes a
            reproducible stream for tests, which protects no one.

    Returns:
        The means, which may be published.

    Raises:
        ShapeError: records has not two dimensions and an entry, or bounds have another shape.
        ParameterError: records has no dtype of numbers, a bound is not finite, a schema comes with
            bounds or without a table, or another argument is out of range.
        BudgetExceeded: The budget has less than epsilon or delta left.
        Exception: What the functions of Chunks raise; nothing is spent then.

    Guarantee:
        (epsilon, delta)-DP under "replace_one", or with ids for whatever a person's rows hold, who
        has rows_per_person times the mu of a row. It is exact: values are integers up to `2**k`,
        sums of them are exact, and to each sum an exact normal deviate is added, rounded to an
        integer. Replacing a record moves the sums by at most `2**k` times the root of d, or with a
        schema of the number of its numbers (or of their cuts, for bits) plus twice that of its
        categories. No value of a record causes an error.

    Cost:
        A pass over the records; over Chunks a second one before, which counts them.

    Source:
        Dwork et al. 2006 for noisy sums; Balle and Wang 2018 for the noise.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast import transfer
        >>> panel = np.tile([[1, 0, 34.0], [1, 1, 52.0]], (5_000, 1))
        >>> means = transfer.release_means(panel, epsilon=1.0, delta=1e-6, high=[1, 1, 100])
        >>> bool(np.abs(means.means - [1, 0.5, 0.43]).max() < 0.01), means.record.epsilon
        (True, 1.0)
    """
    check_random_state(random_state)
    reading = _Reading(schema, bits, low, high, names)
    if isinstance(records, Chunks):
        records, persons = settle_owners(records, ids, rows_per_person)
        columns, n = reading.read(records.first()[0]).columns, _check_many(records.count())
    else:
        rows, columns = reading.read(records, part=False)
        persons = read_persons(ids, rows_per_person, len(rows))
        rows = persons.select(rows)
        n = len(rows)

    def add(digits: int) -> Integers:
        if not isinstance(records, Chunks):
            return _add_up(rows, columns, digits)
        return records.fold(partial(reading.fold, digits=digits)).sums["sums"]

    if number("epsilon", epsilon) == math.inf:
        if budget is not None:
            refuse("epsilon", epsilon, "only a private release can be charged to a budget")
        if delta is not None:
            probability("delta", delta)
        return _make(add(MOST_BITS), n, MOST_BITS, columns)
    if delta is None:
        raise ParameterError("delta must be given: only epsilon = math.inf needs none")
    share = persons.gaussian_share(positive("epsilon", epsilon), probability("delta", delta))
    digits, sigma = calibrate_means(columns.price, n=n, epsilon=share.epsilon, delta=share.delta)
    deviation = float(sigma) / (2.0**digits * n)
    row_record = PrivacyRecord(
        mechanism=f"transfer.release_means, {len(columns.names)} columns",
        source=_SOURCE,
        neighbors="replace_one",
        epsilon=epsilon,
        delta=delta,
        noise=f"rounded normal on integers, deviation {deviation:.6g} on each mean",
        rng=rng_of(random_state),
        **gaussian_law(epsilon, delta),
    )
    record = persons.state(row_record)
    note_large_delta(delta, n)
    if NormalDist().inv_cdf(0.975) * deviation >= 0.5:
        note_noise("release_means", n, epsilon)
    sums = add(digits)
    with spend(budget, record):
        drawn = noise.rounded_gaussian(sigma, sums.shape, random_state=make_stream(random_state))
    return _make(sums + drawn, n, digits, columns, deviation, record)


class _Columns(NamedTuple):
    """What is known in public of the columns of rows.

    Attributes:
        bounds: Their bounds.
        names: Their names.
        price: The squared distance of two rows at most.
    """

    bounds: Bounds
    names: tuple[str, ...]
    price: int


class _Read(NamedTuple):
    """Rows, and what is known of their columns."""

    rows: NDArray[Any]
    columns: _Columns


@dataclass(frozen=True, eq=False)
class _Reading:
    """How records are read: the public arguments of a release."""

    schema: Schema | None
    bits: bool
    low: ArrayLike
    high: ArrayLike
    names: Any

    def __post_init__(self) -> None:
        if flag("bits", self.bits) and self.schema is None:
            refuse("bits", self.bits, "it must be False without a schema")

    def read(self, records: Any, *, part: bool = True) -> _Read:
        """The rows of records; a part may be a frame where a schema needs a table, and be empty."""
        if self.schema is None:
            rows, kept = _read_numbers(records)
            price = rows.shape[-1] if rows.ndim else 0
        else:
            table = take_columns("a part", records, self.schema.reads) if part else records
            rows, price, kept = _read_table(table, self.schema, self.bits, self.low, self.high)
        if rows.ndim != 2 or not (rows.shape[1] if part else rows.size):
            raise ShapeError(f"records has shape {rows.shape}, but {_SHAPE}")
        width = rows.shape[1]
        bounds = check_bounds(self.low, self.high, width)
        if not part:
            _check_many(len(rows))
        return _Read(rows, _Columns(bounds, _check_names(self.names, kept, width), price))

    def fold(self, records: Any, labels: Any = None, *, digits: int) -> State:
        """The state of a part: the sums of its columns on a grid of so many digits.

        labels: not read; those of a part that has some.
        """
        rows, columns = self.read(records)
        settings = describe_settings(
            low=columns.bounds.low,
            high=columns.bounds.high,
            names=columns.names,
            schema=self.schema,
            bits=self.bits,
            digits=digits,
        )
        return State(_JOB, settings, len(rows), {"sums": _add_up(rows, columns, digits)})


def _add_up(rows: NDArray[Any], columns: _Columns, digits: int) -> Integers:
    return add_up(rows, lambda part: columns.bounds.round(part, 1 << digits))


def _check_many(n: int) -> int:
    if not 1 <= n <= _MOST_RECORDS:
        raise ShapeError(f"records has {n:,} rows, but {_SHAPE}")
    return n


def _read_numbers(records: Any) -> tuple[NDArray[Any], FeatureNames]:
    """The rows of an array, a frame or a table without a schema, and the names of the columns."""
    if isinstance(records, BitMatrix):
        return records.to_dense(), None
    if isinstance(records, Table | Mapping):
        table = take_columns("records", records, None)
        columns = [column.row_numbers() for column in table.columns.values()]
        rows = np.stack(columns, axis=1) if columns else np.empty((table.rows, 0))
        return rows, tuple(table.columns)
    return numbers("records", records), names_of(records)


def _read_table(
    records: Any, schema: Schema, bits: bool, low: Any, high: Any
) -> tuple[NDArray[Any], int, FeatureNames]:
    if not isinstance(schema, Schema):
        refuse("schema", schema, "it must be a data.Schema or None")
    if not isinstance(records, Table):
        refuse("records", records, "with a schema it must be a data.Table")
    for name, bound, usual in (("low", low, 0.0), ("high", high, 1.0)):
        if np.ndim(bound) or bound != usual:
            refuse(name, bound, "the schema has the bounds")
    plain = Rows(schema, bits)
    return plain.plain(records), plain.squared_distance(), tuple(plain.names)


def _check_names(names: Any, kept: FeatureNames, width: int) -> tuple[str, ...]:
    if names is None:
        return kept or tuple(f"x{place}" for place in range(width))
    texts = distinct_texts("names", names)
    if len(texts) != width:
        raise ParameterError(f"names has {len(texts)} entries, but there are {width} columns")
    return texts


def _make(
    sums: Integers,
    n: int,
    bits: int,
    columns: _Columns,
    deviation: float = 0.0,
    record: PrivacyRecord | None = None,
) -> ColumnMeans:
    means = (sums / (2.0**bits * n)).clip(0.0, 1.0)
    # Values are rounded to half a step of the grid, and the noise to half an integer.
    grid = 2.0 ** -(bits + 1) + (0.5 / (2.0**bits * n) if record else 0.0)
    low, high, names = columns.bounds.low, columns.bounds.high, columns.names
    return ColumnMeans(read_only(means), low, high, names, n, deviation, grid, record)


def read_means(
    rows: Rows, *, n: int, grid: tuple[int, Fraction], record: PrivacyRecord
) -> ColumnMeans:
    """What rows of n records are centered by, released on a grid of so many bits.

    Values were rounded down to the grid, and sums of them have noise of that deviation.
    """
    assert rows.center is not None
    d, (bits, sigma) = len(rows.center), grid
    low, high = read_only(np.zeros(d)), read_only(np.ones(d))
    # The noise is rounded, too.
    step, deviation = 2.0**-bits * (1 + 0.5 / n), float(sigma) / (2.0**bits * n)
    means, names = read_only(rows.center.copy()), tuple(rows.names)
    return ColumnMeans(means, low, high, names, n, deviation, step, record)


def answer_intervals(
    ones: Integers, answers: Integers, failure: float, epsilon: float
) -> tuple[Floats, Floats]:
    """Intervals for means in [0, 1], from the number of ones among so many randomized answers.

    An answer is 1 with probability (1 - t)/2 + t times the mean, where t = tanh(epsilon/2). The
    interval of Clopper and Pearson for this probability, solved for the mean, misses the mean with
    a probability of at most `failure`, half of it on each side. It is never wider than Hoeffding's.

    ones, answers: arrays of one shape; without an answer the interval is [0, 1].

    Source: Clopper and Pearson 1934.
    """
    edge = advantage(epsilon)
    pairs = np.stack([ones, answers], axis=-1).reshape(-1, 2)
    distinct, places = np.unique(pairs, axis=0, return_inverse=True)
    ends = np.array([_interval(some, count, failure) for some, count in distinct.tolist()])
    low, high = ends[places.reshape(ones.shape)].transpose(-1, *range(ones.ndim))
    return _solve(low, edge), _solve(high, edge)


def _interval(ones: int, answers: int, failure: float) -> tuple[float, float]:
    return clopper_pearson(ones, answers, failure) if answers else (0.0, 1.0)


def estimate_means(ones: Integers, answers: Integers, epsilon: float) -> Floats:
    """The unbiased estimates of the same means, clipped to [0, 1]; NaN without an answer."""
    shares = np.where(answers > 0, ones / np.maximum(answers, 1), math.nan)
    return _solve(shares, advantage(epsilon))


def _solve(shares: Floats, edge: float) -> Floats:
    means: Floats = np.clip(debias(shares, edge), 0.0, 1.0)
    return means


def upper_means(shares: Floats, n: int, failure: float) -> Floats:
    """Upper bounds for the means of a population in [0, 1], from those of n of its records.

    The bound is the largest mean m with n KL(share, m) <= ln(1/failure), where KL is the divergence
    of two coins. It misses the mean with a probability of at most `failure`, whatever the law of
    the records in [0, 1]. Pass one minus the shares for one minus lower bounds.

    Source: Hoeffding 1963, Theorem 1.
    """
    most = -math.log(failure * _MARGIN) / n
    low, high = shares, np.ones_like(shares)
    for _ in range(_STEPS):
        middle = (low + high) / 2
        near = _divergence(shares, middle) <= most
        low, high = np.where(near, middle, low), np.where(near, high, middle)
    return high


def _divergence(p: Floats, q: Floats) -> NDArray[np.float64]:
    """KL of a coin with p from one with q, which is infinite where q is 1 and p is not."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ones = np.where(p > 0, p * np.log(p / q), 0.0)
        zeros = np.where(p < 1, (1 - p) * np.log((1 - p) / (1 - q)), 0.0)
    total: Floats = ones + zeros
    return np.where(p >= q, 0.0, total)
