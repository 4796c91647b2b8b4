"""Public maps from records to features of norm at most 1, computed row by row."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._support.containers import to_array
from .._support.json_text import JsonObject
from .._support.numbers import finite_rows, floats, freeze, real_rows, silence
from .._support.parameters import store
from .._support.types import Floats
from .._support.validate import (
    LEAST,
    MOST,
    are_numbers,
    array,
    bounded_positive,
    nonnegative_int,
    numbers,
    positive_int,
    probability,
    refuse,
    take_form,
    unit_interval,
)
from ..data.rows import Rows
from ..data.schema import Schema
from ..exceptions import ParameterError, ShapeError

Function = Callable[[NDArray[Any]], ArrayLike]

# The unit in which features are returned is 2**-26.
FINEST_BITS = 26
_FORMAT = {"format": "hdp_fast.feature_map", "version": 1}
_ARRAYS = ("bounds", "origin", "factor", "matrix", "offset")
# A direction in which the pool hardly varies is stretched no more than one with this share of the
# largest second moment.
_LEAST_SHARE = 1e-6


@dataclass(frozen=True, eq=False, kw_only=True)
class FeatureMap(JsonObject):
    """A public map phi from records to features of norm at most 1.

    A record x becomes z = (clip(x, low, high) - origin) * factor, column by column. A matrix A and
    an offset b make A z + b of it, and with `waves` these are angles in turns that become their
    cosines and sines. A result that is longer than 1 is shrunk to norm 1. With `constant`, it is
    multiplied by sqrt(1/2), and sqrt(1/2) follows as the last feature.

    What becomes of a record depends on that record alone, to the last bit: not on the other records
    of a batch, nor on threads, instruction set, memory layout, or whether the numbers come as
    float32 or float64. The features are then cut towards zero to integer multiples of `2**-bits`,
    and their norm is checked in integers. A record whose features are not finite, or overflow,
    counts as 0, silently.

    A map must be made of public facts only: bounds that people know, or a public pool. Usually it
    comes from one of the constructors below.

    Attributes:
        origin: What becomes 0, shape (d,).
        factor: What the differences from the origin are multiplied with, at least 0, shape (d,).
        bounds: Lowest and highest value of each column, shape (d, 2), to which records are
            clipped; -inf and inf stand for none. None clips nothing.
        matrix: The transpose of A, shape (d, k); None multiplies with nothing.
        offset: b, shape (k,). None adds 0.
        waves: Whether the outputs are angles, of which one turn is 1.
        constant: Whether a constant feature follows.
        function: A caller's function that makes the columns of a record; None takes those of X.
        columns_in: Number of columns of X. None takes d, or any number for a function.

    Raises:
        ShapeError: The shapes do not fit together.
        ParameterError: A number lies outside its domain; those of origin, factor, matrix and offset
            must lie in [-1e30, 1e30].

    Examples:
        >>> from hdp_fast.learners import FeatureMap
        >>> features = FeatureMap.scaling([(0, 100), (-1, 1)])  # ages, and a score
        >>> features.columns, features.nonnegative_products
        (3, True)
        >>> features([[50, 0.5], [200, 0.5]]).round(3).tolist()
        [[0.25, 0.375, 0.707], [0.5, 0.375, 0.707]]
    """

    origin: Floats
    factor: Floats
    bounds: Floats | None = None
    matrix: Floats | None = None
    offset: Floats | None = None
    waves: bool = False
    constant: bool = False
    function: Function | None = None
    columns_in: int | None = None

    def __post_init__(self) -> None:
        """Validate the numbers and their shapes, and keep read-only copies."""
        origin = _public_numbers("origin", self.origin, (None,))
        d = len(origin)
        factor = _public_numbers("factor", self.factor, (d,))
        if (factor < 0).any():
            raise ParameterError("factor has an entry below 0, but all must be at least 0")
        matrix = offset = bounds = None
        if self.bounds is not None:
            bounds = _valid_bounds(self.bounds, d)
        if self.matrix is not None:
            matrix = _public_numbers("matrix", self.matrix, (d, None))
            k = matrix.shape[1]
            offset = np.zeros(k) if self.offset is None else self.offset
            offset = _public_numbers("offset", offset, (k,))
        elif self.offset is not None:
            raise ParameterError("offset = an array, but without a matrix it must be None")
        if self.function is not None and not callable(self.function):
            refuse("function", self.function, "it must be callable")
        columns_in = self.columns_in
        if columns_in is not None:
            columns_in = positive_int("columns_in", columns_in, 1 << 31)
        elif self.function is None:
            columns_in = d
        if self.function is None and columns_in != d:
            refuse("columns_in", columns_in, f"it must be the length {d} of origin")
        store(
            self,
            origin=origin,
            factor=factor,
            bounds=bounds,
            matrix=matrix,
            offset=offset,
            waves=bool(self.waves),
            constant=bool(self.constant),
            columns_in=columns_in,
        )

    # Constructors --------------------------------------------------------------------------------

    @classmethod
    def identity(
        cls, columns: int, *, norm_bound: float = 1.0, constant: bool = False
    ) -> FeatureMap:
        """Makes the map that divides records by a norm that they rarely exceed.

        Args:
            columns: Number of columns d of the records.
            norm_bound: Norm that becomes 1, in [1e-30, 1e30]; longer records are shrunk to it.
            constant: Whether a constant feature follows.

        Returns:
            The map, with d or d + 1 features.

        Raises:
            ParameterError: An argument is out of range.

        Examples:
            >>> from hdp_fast.learners import FeatureMap
            >>> FeatureMap.identity(2, norm_bound=10)([[3, 4], [30, 40]]).round(3).tolist()
            [[0.3, 0.4], [0.6, 0.8]]
        """
        d = positive_int("columns", columns, 1 << 31)
        factor = np.full(d, 1 / bounded_positive("norm_bound", norm_bound))
        return cls(origin=np.zeros(d), factor=factor, constant=constant)

    @classmethod
    def scaling(
        cls,
        bounds: ArrayLike | Schema,
        *,
        norm_bound: float | None = None,
        constant: bool = True,
    ) -> FeatureMap:
        """Makes the map that scales each column from its public bounds to [0, 1].

        No two rows have a negative inner product, with a constant and without.

        Args:
            bounds: Lowest and highest value of each column, shape (d, 2). Values beyond are
                clipped, infinite ones too, and a missing one (NaN) counts as the lowest. A Schema
                stands for the columns of its `floats`: numbers in [0, 1], and a column of 0 and 1
                for each value of a category.
            norm_bound: Norm of the scaled row that becomes 1, in [1e-30, 1e30]; longer rows are
                shrunk to it. None takes the largest norm that a row can have: the square root of d,
                or of the number of columns that the schema reads.
            constant: Whether a constant feature follows.

        Returns:
            The map, with d or d + 1 features.

        Raises:
            ShapeError: bounds does not have shape (d, 2).
            ParameterError: A bound is not finite, low is not below high, or norm_bound is out of
                range.

        Examples:
            >>> from hdp_fast.data import Category, Label, Number, Schema
            >>> from hdp_fast.learners import FeatureMap
            >>> columns = {"sex": Category(("female", "male")), "age": Number(0, 100)}
            >>> schema = Schema(Label("income", above=50), columns)
            >>> FeatureMap.scaling(schema, constant=False)([[1, 0, 0.5]]).round(3).tolist()
            [[0.707, 0.0, 0.354]]
        """
        if isinstance(bounds, Schema):
            d = len(bounds.float_names)
            limits = np.tile([0.0, 1.0], (d, 1))
            largest = math.sqrt(Rows(bounds).sources)
        else:
            limits = _valid_bounds(bounds, None)
            if not np.isfinite(limits).all() or not (limits[:, 0] < limits[:, 1]).all():
                raise ParameterError(
                    "bounds hold something else, but all must be finite, low below high"
                )
            largest = math.sqrt(len(limits))
        norm = largest if norm_bound is None else bounded_positive("norm_bound", norm_bound)
        low, high = limits.T
        # Bounds too close or too far apart make a factor that is refused, whatever numpy is set to.
        with np.errstate(all="ignore"):
            factor = 1 / ((high - low) * norm)
        return cls(origin=low, factor=factor, bounds=limits, constant=constant)

    @classmethod
    def whitening(
        cls,
        pool: ArrayLike,
        *,
        power: float = 0.5,
        components: int | None = None,
        quantile: float = 0.9,
        constant: bool = False,
        after: FeatureMap | None = None,
    ) -> FeatureMap:
        """Makes the linear map that evens out the second moments of a public pool.

        Let S be the mean of x x^T over the pool. The map is `S**(-power / 2)`, divided by the norm
        that a share `quantile` of the pool does not exceed; longer rows are shrunk to norm 1.
        Directions with a second moment below 1e-6 of the largest are stretched as if they had that.

        Args:
            pool: Public records, finite, shape (m, d). They must not depend on private ones.
            power: 0 leaves directions as they are, 1 makes all second moments equal; in [0, 1].
            components: Number k of directions with the largest second moments that are kept, in
                coordinates along them. None keeps all d columns.
            quantile: Share of the pool whose norm is at most 1 afterwards, in (0, 1).
            constant: Whether a constant feature follows.
            after: A map without waves and function that comes first, such as `scaling`. Its bounds
                hold, but rows are not shrunk between the two maps.

        Returns:
            The map, with d or k features, and a constant.

        Raises:
            ShapeError: pool does not have two dimensions and an entry, or `after` has another
                number of columns.
            ParameterError: An entry of pool is not finite, all are 0, or a parameter is out of
                range.

        Cost:
            O(m d^2 + d^3).

        Examples:
            >>> import numpy as np
            >>> from hdp_fast.learners import FeatureMap
            >>> pool = np.random.default_rng(0).normal(size=(500, 2)) * [10, 1]
            >>> features = FeatureMap.whitening(pool, power=1)(pool)
            >>> bool(np.isclose(*(features**2).mean(0), rtol=0.1))
            True
        """
        unit_interval("power", power)
        first, rows = _prepare_pool(cls, pool, after)
        directions, moments = _principal_directions(rows, components)
        matrix = directions * np.maximum(moments, moments[0] * _LEAST_SHARE) ** (-power / 2)
        if components is None:
            matrix = matrix @ directions.T
        share = probability("quantile", quantile)
        return first._followed_by(matrix, rows, np.zeros(matrix.shape[1]), share, constant)

    @classmethod
    def pca(
        cls,
        pool: ArrayLike,
        components: int,
        *,
        quantile: float = 0.9,
        constant: bool = True,
        after: FeatureMap | None = None,
    ) -> FeatureMap:
        """Makes the map to the principal components of a public pool, centered at its mean.

        Args:
            pool: Public records, finite, shape (m, d). They must not depend on private ones.
            components: Number of components, from 1 to d.
            quantile: Share of the pool whose norm is at most 1 afterwards, in (0, 1); longer rows
                are shrunk to norm 1.
            constant: Whether a constant feature follows, as an intercept.
            after: A map without waves and function that comes first, such as `scaling`. Its bounds
                hold, but rows are not shrunk between the two maps.

        Returns:
            The map.

        Raises:
            ShapeError: pool does not have two dimensions and an entry, or `after` has another
                number of columns.
            ParameterError: An entry of pool is not finite, all rows are the same, or a parameter is
                out of range.

        Cost:
            O(m d^2 + d^3).

        Examples:
            >>> import numpy as np
            >>> from hdp_fast.learners import FeatureMap
            >>> pool = np.random.default_rng(0).normal(size=(500, 9)) + 100
            >>> FeatureMap.pca(pool, 3)(pool).shape
            (500, 4)
        """
        first, rows = _prepare_pool(cls, pool, after)
        mean = rows.mean(axis=0)
        matrix, _ = _principal_directions(rows - mean, components)
        share = probability("quantile", quantile)
        return first._followed_by(matrix, rows, -mean @ matrix, share, constant)

    @classmethod
    def random_fourier(
        cls,
        columns_in: int,
        columns: int,
        *,
        scale: float,
        seed: int,
        constant: bool = False,
        after: FeatureMap | None = None,
    ) -> FeatureMap:
        """Makes random Fourier features, whose inner products are about those of a Gaussian kernel.

        For k / 2 random frequencies w they are the cosines and then the sines of <w, x>, divided by
        the square root of k / 2. Their norm is 1. The inner product of two rows is about exp(-|x -
        x'|^2 / (2 scale^2)).

        Args:
            columns_in: Number of columns d of the records.
            columns: Number k of features without the constant, even.
            scale: Distance of records at which the kernel is exp(-1/2), in [1e-30, 1e30].
            seed: A public number from which the frequencies are drawn.
            constant: Whether a constant feature follows.
            after: A map without waves and function that comes first. Its bounds hold, and
                `scale` is a distance of what it makes of records, before they are shrunk.

        Returns:
            The map.

        Raises:
            ShapeError: `after` takes another number of columns.
            ParameterError: An argument is out of range.

        Source:
            Rahimi and Recht 2007, with cosines and sines in pairs as in Sutherland and Schneider
            2015.

        Examples:
            >>> import numpy as np
            >>> from hdp_fast.learners import FeatureMap
            >>> features = FeatureMap.random_fourier(2, 4000, scale=1.0, seed=0)
            >>> a, b = features([[0, 0], [0, 1]])
            >>> bool(abs(a @ b - np.exp(-0.5)) < 0.1)
            True
        """
        d = positive_int("columns_in", columns_in, 1 << 31)
        k = positive_int("columns", columns, 1 << 31)
        if k % 2:
            refuse("columns", columns, "it must be even: cosines and sines")
        width = bounded_positive("scale", scale)
        first = _linear(cls.identity(d) if after is None else after, d)
        inputs = len(first.origin) if first.matrix is None else first.matrix.shape[1]
        frequencies = np.random.default_rng(nonnegative_int("seed", seed)).standard_normal(
            (inputs, k // 2)
        )
        return first._with_matrix(
            frequencies / (2 * math.pi * width), np.zeros(k // 2), waves=True, constant=constant
        )

    @classmethod
    def from_callable(
        cls,
        function: Function,
        columns: int,
        *,
        columns_in: int | None = None,
        norm_bound: float = 1.0,
        constant: bool = False,
    ) -> FeatureMap:
        """Makes a map of a caller's function, which is called for each record alone.

        The function must not keep anything between calls: what becomes of a record must depend on
        that record alone. It gets a read-only copy of one row. A row for which it raises (anything
        but KeyboardInterrupt), or returns another number of values or something that is not finite,
        counts as 0, silently; nothing that it prints or warns is shown.

        Args:
            function: Called with an array of shape (1, d) of the dtype of X; float64 where X is a
                frame whose integers or bool may be missing, whether one is or not. It returns an
                array of shape (1, columns) or (columns,).
            columns: Number of features that the function returns.
            columns_in: Number of columns that X must have; None for any.
            norm_bound: Norm that becomes 1, in [1e-30, 1e30]; longer results are shrunk to it.
            constant: Whether a constant feature follows.

        Returns:
            The map, which cannot be written to JSON or arrays.

        Raises:
            ParameterError: An argument is out of range, or function is not callable.

        Cost:
            A call of Python for each record, one after the other: a million take seconds even where
            the function does nothing.

        Examples:
            >>> import numpy as np
            >>> from hdp_fast.learners import FeatureMap
            >>> features = FeatureMap.from_callable(lambda row: np.sqrt(row), 2, norm_bound=2)
            >>> features(np.array([[1.0, 1.0], [-1.0, 4.0]])).tolist()
            [[0.5, 0.5], [0.0, 0.0]]
        """
        if not callable(function):
            refuse("function", function, "it must be callable")
        plain = cls.identity(columns, norm_bound=norm_bound, constant=constant)
        return dataclasses.replace(plain, function=function, columns_in=columns_in)

    # Facts ---------------------------------------------------------------------------------------

    @property
    def columns(self) -> int:
        """The number of features, a constant included."""
        outputs = len(self.origin) if self.matrix is None else self.matrix.shape[1]
        return outputs * (2 if self.waves else 1) + self.constant

    @property
    def nonnegative_products(self) -> bool:
        """Whether no two records can have features with a negative inner product.

        This is a public fact of the map, and holds for the integers that are summed. With a
        constant, all other features of a row together have at most the norm of the constant c, so
        that the inner product is at least c^2 - c * c = 0 by Cauchy and Schwarz; a row that counts
        as 0 has inner products 0. Without one, features that are all at least 0 have no negative
        inner product: columns whose lowest value is at least the origin, multiplied by nothing or
        by a matrix and an offset of which no entry is below 0. (Rounding and cutting keep signs.)
        """
        if self.constant:
            return True
        if self.waves or self.bounds is None or (self.bounds[:, 0] < self.origin).any():
            return False
        return all(part is None or bool((part >= 0).all()) for part in (self.matrix, self.offset))

    def __call__(self, X: Any) -> Floats:
        """Computes the features of records as a release sees them.

        Args:
            X: Real numbers of shape (m, d), which must be finite unless the map has bounds of all
                columns; for a map of a function, what the function takes.

        Returns:
            A float64 array of shape (m, columns), in multiples of `2**-26`, cut towards zero. No
            row has a norm above 1.

        Raises:
            ShapeError: X does not have two dimensions, an entry and d columns.
            ParameterError: An entry of X is no real number, or not finite where a column has no
                bounds.

        Cost:
            A pass over X, and its product with the matrix.
        """
        rows = self.read_rows(X)
        features = np.empty((len(rows), self.columns))
        flat = features.reshape(-1)
        _core.write_features(rows.reshape(-1), rows.shape[1], self.core, FINEST_BITS, flat)
        return features

    def read_rows(self, X: Any, name: str = "X") -> NDArray[Any]:
        """Reads records and, for a map of a function, calls it for each record.

        Args:
            X: Real numbers of shape (m, d); for a map of a function, any array of two dimensions.
            name: What errors call the array.

        Returns:
            The records, or what the function made of them, as a C-contiguous array of float32 or
            float64. The compiled module tests whether they are finite, while it reads them.

        Raises:
            ShapeError: X does not have two dimensions, an entry and d columns.
            ParameterError: X does not hold real numbers.
        """
        rows = real_rows(X, name) if self.function is None else array(name, X)
        if rows.ndim != 2 or not rows.size:
            rule = "it must have two dimensions and at least one entry"
            raise ShapeError(f"{name} has shape {rows.shape}, but {rule}")
        if self.columns_in is not None and rows.shape[1] != self.columns_in:
            rule = f"the features are made of {self.columns_in}"
            raise ShapeError(f"{name} has {rows.shape[1]} columns, but {rule}")
        if self.function is None:
            return np.require(rows, None, "C")
        return _call_each(self.function, rows, len(self.origin))

    @property
    def core(self) -> _core._FeatureMap:
        """The map as an argument of the compiled module."""
        d = len(self.origin)
        bounds = np.tile([-math.inf, math.inf], (d, 1)) if self.bounds is None else self.bounds
        matrix = None
        if self.matrix is not None and self.offset is not None:
            matrix = (_align(self.matrix).reshape(-1), _align(self.offset))
        return {
            "low": _align(bounds[:, 0]),
            "high": _align(bounds[:, 1]),
            "origin": _align(self.origin),
            "factor": _align(self.factor),
            "matrix": matrix,
            "waves": self.waves,
            "constant": self.constant,
            "finite": self.function is None and not np.isfinite(bounds).all(),
        }

    def __eq__(self, other: object) -> bool:
        """Whether the other map computes the same features of every record."""
        if not isinstance(other, FeatureMap):
            return NotImplemented
        if self.function is not other.function or self.columns_in != other.columns_in:
            return False
        mine, others = self._parts(), other._parts()
        same = (np.array_equal(mine[name], others[name]) for name in mine if name in others)
        return mine.keys() == others.keys() and all(same)

    def __hash__(self) -> int:
        """A number that equal maps share."""
        return hash((self.columns, self.columns_in, self.waves, self.factor.tobytes()))

    def __repr__(self) -> str:
        """Names what the map does, without its numbers."""
        inputs = "any number of" if self.columns_in is None else self.columns_in
        kind = " by a function" if self.function is not None else ""
        tail = ", the last constant" if self.constant else ""
        return f"FeatureMap({inputs} columns to {self.columns} features{kind}{tail})"

    # Storage -------------------------------------------------------------------------------------

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Writes the map as arrays, for `numpy.savez` and without pickle.

        Returns:
            The arrays by name.

        Raises:
            ParameterError: The map is one of a function.

        Examples:
            >>> import numpy as np
            >>> from hdp_fast.learners import FeatureMap
            >>> features = FeatureMap.scaling([(0, 1)])
            >>> np.savez("features.npz", **features.to_arrays())
            >>> FeatureMap.from_arrays(np.load("features.npz")) == features
            True
        """
        self._refuse_function()
        return self._parts()

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> FeatureMap:
        """Reads the map that to_arrays wrote.

        Args:
            arrays: The arrays by name; others are ignored.

        Returns:
            The map.

        Raises:
            ParameterError: An array is missing, or is not what to_arrays wrote.
        """
        rule = "they must be what FeatureMap.to_arrays wrote"
        if not isinstance(arrays, Mapping):
            refuse("arrays", arrays, rule)
        if any(name not in arrays for name in ("origin", "factor", "flags")):
            raise ParameterError(f"arrays = {sorted(map(str, arrays))}, but {rule}")
        flags = np.asarray(arrays["flags"])
        if flags.shape != (2,) or flags.dtype.kind not in "bui":
            raise ParameterError(f"arrays hold flags of shape {flags.shape}, but {rule}")
        waves, constant = flags.astype(bool).tolist()
        parts: dict[str, Any] = {
            name: np.asarray(arrays[name]) for name in _ARRAYS if name in arrays
        }
        return cls(**parts, waves=waves, constant=constant)

    def _parts(self) -> dict[str, NDArray[Any]]:
        parts = {name: getattr(self, name) for name in _ARRAYS}
        arrays = {name: part for name, part in parts.items() if part is not None}
        return arrays | {"flags": np.array([self.waves, self.constant], np.uint8)}

    def _to_fields(self) -> Mapping[str, Any]:
        self._refuse_function()
        fields = {name: getattr(self, name) for name in _ARRAYS}
        if self.bounds is not None:
            limits = self.bounds.tolist()
            fields["bounds"] = [[x if math.isfinite(x) else None for x in pair] for pair in limits]
        return {**_FORMAT, **fields, "waves": self.waves, "constant": self.constant}

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Self:
        take_form("a feature map", fields, _FORMAT)
        if fields["bounds"] is not None:
            ends = (-math.inf, math.inf)
            fields["bounds"] = [
                [end if x is None else x for x, end in zip(pair, ends, strict=True)]
                for pair in fields["bounds"]
            ]
        return cls(**fields)

    def _refuse_function(self) -> None:
        if self.function is not None:
            rule = "a map of a function cannot be written: keep its code instead"
            refuse("function", self.function, rule)

    # Composition ---------------------------------------------------------------------------------

    def _transform(self, rows: Floats) -> Floats:
        """The outputs of the linear part for public records, without shrinking."""
        if self.bounds is not None:
            rows = rows.clip(*self.bounds.T)
        scaled = (rows - self.origin) * self.factor
        if self.matrix is None or self.offset is None:
            return scaled
        return scaled @ self.matrix + self.offset

    def _with_matrix(
        self, matrix: Floats, offset: Floats, *, waves: bool = False, constant: bool
    ) -> FeatureMap:
        """A map that does this one and then another linear one."""
        if self.matrix is not None and self.offset is not None:
            matrix, offset = self.matrix @ matrix, self.offset @ matrix + offset
        return dataclasses.replace(
            self, matrix=matrix, offset=offset, waves=waves, constant=bool(constant)
        )

    def _followed_by(
        self, matrix: Floats, rows: Floats, offset: Floats, share: float, constant: bool
    ) -> FeatureMap:
        """The same, where the second is divided by a quantile of the norms of rows."""
        norms = np.linalg.norm(rows @ matrix + offset, axis=1)
        norm = float(np.quantile(norms, share)) or float(norms.max())
        if not LEAST <= norm <= MOST:
            raise ParameterError(f"pool has norms of {norm:g}, but they must lie in [1e-30, 1e30]")
        return self._with_matrix(matrix / norm, offset / norm, constant=constant)


def _call_each(function: Function, rows: NDArray[Any], columns: int) -> Floats:
    """What the function makes of each row alone; a row of NaN where it fails."""
    values = np.full((len(rows), columns), np.nan)
    with silence():
        for value, row in zip(values, rows, strict=True):
            try:
                result = to_array("features", function(freeze(row[None].copy())))
                is_whole = are_numbers(result) and result.size == columns
                value[:] = floats(result).reshape(columns) if is_whole else np.nan
            except KeyboardInterrupt:
                raise
            except BaseException:
                value[:] = np.nan
    return values


def _align(values: Floats) -> Floats:
    """The array as the compiled module reads it: what another process sent may lie anywhere."""
    return np.require(values, requirements=["C", "A"])


def _public_numbers(name: str, value: ArrayLike, shape: tuple[int | None, ...]) -> Floats:
    """A read-only copy of an array of this shape, None standing for any length above 0."""
    values = np.array(floats(numbers(name, value)))
    fits = values.ndim == len(shape) and all(
        (size is None and length > 0) or size == length
        for size, length in zip(shape, values.shape, strict=True)
    )
    if not fits:
        text = ", ".join("any" if size is None else str(size) for size in shape)
        raise ShapeError(f"{name} has shape {values.shape}, but it must be ({text})")
    if not (np.abs(values) <= MOST).all():
        raise ParameterError(f"{name} has an entry beyond {MOST:g}, but all must lie within")
    values.flags.writeable = False
    return values


def _valid_bounds(bounds: ArrayLike, columns: int | None) -> Floats:
    limits = np.array(floats(numbers("bounds", bounds)))
    if limits.ndim != 2 or limits.shape[1] != 2 or columns not in (None, len(limits)):
        wanted = "d" if columns is None else columns
        raise ShapeError(f"bounds have shape {limits.shape}, but it must be ({wanted}, 2)")
    if not len(limits) or not (limits[:, 0] <= limits[:, 1]).all():
        raise ParameterError("bounds hold something else, but no low may be above its high")
    limits.flags.writeable = False
    return limits


def _linear(features: FeatureMap, columns: int) -> FeatureMap:
    """The map, which must be linear within its bounds, without its constant."""
    if not isinstance(features, FeatureMap) or features.waves or features.function is not None:
        refuse("after", features, "it must be a FeatureMap without waves and function")
    if features.columns_in != columns:
        rule = f"the records have {columns}"
        raise ShapeError(f"after takes {features.columns_in} columns, but {rule}")
    return dataclasses.replace(features, constant=False)


def _prepare_pool(
    kind: type[FeatureMap], pool: ArrayLike, after: FeatureMap | None
) -> tuple[FeatureMap, Floats]:
    """The first map, and what it makes of the public pool."""
    rows = floats(finite_rows(pool, "pool"))
    first = _linear(kind.identity(rows.shape[1]) if after is None else after, rows.shape[1])
    return first, first._transform(rows)


def _principal_directions(rows: Floats, components: int | None) -> tuple[Floats, Floats]:
    """The directions with the largest second moments, as columns, and these."""
    d = rows.shape[1]
    count = d if components is None else positive_int("components", components, d)
    with np.errstate(all="ignore"):
        products = rows.T @ rows / len(rows)
    if not np.isfinite(products).all():
        raise ParameterError("pool has entries beyond 1e150, but their squares must be finite")
    moments, directions = np.linalg.eigh(products)
    if not moments[-1] > 0:
        raise ParameterError("pool has no direction in which it varies, but it must have one")
    # The sign of a direction is arbitrary: its largest entry becomes positive.
    largest = directions[np.abs(directions).argmax(axis=0), np.arange(d)]
    order = np.argsort(-moments)[:count]
    return (directions * np.sign(largest))[:, order], moments[order]
