"""Public features of records and points, made of a public pool alone: what each column becomes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.numbers import floats
from .._support.types import Floats
from .._support.validate import array
from ..data.frames import make_table
from ..data.schema import Schema
from ..data.table import Table
from ..exceptions import ParameterError, ShapeError
from ..learners import FeatureMap, suggest_features

# Square of the constant that gradients get beside a row of norm 1, if its columns span none.
_CONSTANT = 0.1
# A column that varies less than this, relative to its largest value in the pool, is a constant.
_LEAST_SPREAD = 1e-9
_LARGEST = 1e30
# A pool in whose span a constant lies up to this share has a constant.
_CLOSE = 1e-6


@dataclass(frozen=True, eq=False)
class PublicFeatures:
    """What records become before they are summed, from public facts alone.

    Attributes:
        schema: Schema of tables; None where columns are numbers already.
        fill: Number that stands for an entry that is not finite, for each column, shape (d,).
        features: The FeatureMap of the release.
        plain: A FeatureMap whose directions are not evened out, for gradients.
    """

    schema: Schema | None
    fill: Floats
    features: FeatureMap
    plain: FeatureMap

    def rows(self, name: str, records: Any) -> Floats:
        """The records as finite numbers of shape (m, d), none of which raises anything.

        Raises:
            ShapeError: There are other columns than the pool's.
            ParameterError: A column holds no numbers.
        """
        values = to_numbers(name, records, self.schema)
        if values.shape[1] != len(self.fill):
            rule = f"public has {len(self.fill)}"
            raise ShapeError(f"{name} has {values.shape[1]} columns, but {rule}")
        return fill_rows(values, self.fill)


@dataclass(frozen=True, eq=False)
class Release:
    """The public facts of a release that features are suggested for.

    Attributes:
        n: Number of private records.
        classes: The label set.
        epsilon: Privacy parameter of the release.
        delta: Privacy parameter of the release.
    """

    n: int
    classes: NDArray[Any]
    epsilon: float
    delta: float


def make_features(
    public: Any, schema: Schema | None, features: FeatureMap | None, release: Release
) -> PublicFeatures:
    """The features that a public pool makes; a FeatureMap of the caller stays as it is.

    Raises:
        ShapeError: The pool has no rows, or not the columns of the map.
        ParameterError: The pool has a column without numbers, or no direction in which it varies.
    """
    values = to_numbers("public", public, schema)
    fill = _means(values)
    pool = fill_rows(values, fill)
    if features is not None:
        if features.columns_in not in (None, len(fill)):
            rule = f"features takes {features.columns_in}"
            raise ShapeError(f"public has {len(fill)} columns, but {rule}")
        return PublicFeatures(schema, fill, features, features)
    origin, factor = np.zeros(len(fill)), np.ones(len(fill))
    if schema is None and hasattr(public, "columns"):
        # Columns of a data frame have units of their own.
        origin, factor = fill, _inverse_deviations(pool)
    rows = (pool - origin) * factor
    if not (np.ptp(rows, axis=0) > 0).any():
        raise ParameterError("public has columns that are constant, but one at least must vary")
    suggested = suggest_features(
        rows,
        n=release.n,
        classes=release.classes,
        epsilon=release.epsilon,
        delta=release.delta,
    )
    made = [
        dataclasses.replace(one, origin=origin, factor=factor)
        for one in (suggested, _with_constant(rows))
    ]
    return PublicFeatures(schema, fill, *made)


def varies(pool: Any) -> bool:
    """Whether some column of a pool of numbers, an array or a data frame, is no constant."""
    values = to_numbers("pool", pool, None)
    if not hasattr(pool, "columns"):
        return bool((values != values[0]).any())
    return bool(_inverse_deviations(fill_rows(values, _means(values))).any())


def to_numbers(name: str, records: Any, schema: Schema | None) -> Floats:
    """The entries of an array, a data frame or a table as float64, shape (m, d).

    Raises:
        ShapeError: There are not two dimensions, or no rows.
        ParameterError: A column holds no numbers, or a table comes without a schema.
    """
    if schema is not None:
        return schema.floats(make_table(name, records, schema))
    if isinstance(records, Table):
        raise ParameterError(f"{name} is a Table, but without a schema it must be numbers")
    # Frames of pandas and polars have dtypes, tables of pyarrow have not.
    if hasattr(records, "dtypes") or hasattr(records, "tocsr"):
        values = _frame_numbers(name, records)
    else:
        values = array(name, records)
    if values.ndim != 2 or not values.size:
        rule = "it must have two dimensions and at least one entry"
        raise ShapeError(f"{name} has shape {values.shape}, but {rule}")
    if values.dtype.kind not in "biuf":
        rule = "it must hold numbers: pass a schema, which says what becomes of texts"
        raise ParameterError(f"{name} holds something else, but {rule}")
    numbers: Floats = floats(values)
    return numbers


def fill_rows(values: Floats, fill: Floats) -> Floats:
    """The rows with public numbers in place of entries that are not finite, or beyond 1e30."""
    good = np.isfinite(values) & (np.abs(values) <= _LARGEST)
    filled: Floats = np.where(good, values, fill)
    return filled


def _means(values: Floats) -> Floats:
    good = np.isfinite(values) & (np.abs(values) <= _LARGEST)
    counts = np.maximum(good.sum(axis=0), 1)
    means: Floats = np.where(good, values, 0.0).sum(axis=0) / counts
    return means


def _frame_numbers(name: str, records: Any) -> NDArray[Any]:
    """The entries of a data frame or a sparse matrix, if its dtypes are those of numbers."""
    if hasattr(records, "tocsr"):
        dense: NDArray[Any] = records.toarray()
        return dense
    from .public_facts import kind_of

    for column, dtype in zip(records.columns, list(records.dtypes), strict=True):
        if kind_of(dtype) != "number":
            rule = "it must hold numbers: pass a schema, which says what becomes of texts"
            raise ParameterError(f"column {column!r} of {name} has dtype {dtype}, but {rule}")
    if "pandas" in type(records).__module__:
        entries: NDArray[Any] = records.to_numpy(dtype=np.float64, na_value=np.nan)
        return entries
    return np.asarray(records.to_numpy(), np.float64)


def _inverse_deviations(pool: Floats) -> Floats:
    deviations = pool.std(axis=0)
    varies = deviations > _LEAST_SPREAD * np.abs(pool).max(axis=0)
    factors: Floats = np.divide(1.0, deviations, out=np.zeros(pool.shape[1]), where=varies)
    return factors


def _with_constant(rows: Floats) -> FeatureMap:
    """Rows of norm 1 for most of the pool, with a constant where their columns have none."""
    if _spans_constant(rows):
        return FeatureMap.whitening(rows, power=0.0)
    constant = float(np.sqrt((rows**2).sum(axis=1).mean() * _CONSTANT))
    longer = np.column_stack([rows, np.full(len(rows), constant)])
    outer = FeatureMap.whitening(longer, power=0.0)
    assert outer.matrix is not None
    return FeatureMap(
        origin=np.zeros(rows.shape[1]),
        factor=np.ones(rows.shape[1]),
        matrix=outer.matrix[:-1],
        offset=constant * outer.matrix[-1],
    )


def _spans_constant(rows: Floats) -> bool:
    """Whether some combination of the columns is 1 in every row, up to a small share."""
    second = rows.T @ rows / len(rows)
    means = rows.mean(axis=0)
    solved = np.linalg.lstsq(second, means, rcond=1e-10)[0]
    return bool(1 - means @ solved <= _CLOSE)
