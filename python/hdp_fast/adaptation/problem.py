"""What both problems of adaptation have in common: two domains, and passes over them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import _core
from .._support.numbers import finite_vector, freeze, silence
from .._support.parameters import Checked, Rules
from .._support.types import Floats
from .._support.validate import array, instance, refuse
from ..data.column_kinds import require_label
from ..data.rows import Predictor, Rows
from ..data.schema import Schema
from ..exceptions import ShapeError
from .bounds import least_alpha
from .discrepancies.exact import LABEL_BOUND, Private, discrepancy
from .discrepancies.moments import (
    RecordBounds,
    Sample,
    keeps_bounds,
    project_sample,
    refuse_beyond,
    validate_samples,
)
from .discrepancies.private import release_discrepancy
from .privacy import DescentNoise, Grid, Rng, add_noise, choose_grid

SourceMap = Callable[[Any], Any]
Data = tuple[ArrayLike, ArrayLike, ArrayLike, ArrayLike]
Result = TypeVar("Result")


class ProblemBounds(NamedTuple):
    """Bounds of predictors, rows and labels.

    Attributes:
        radius: Radius of the ball that holds w.
        norm_bound: Bound on the norm of x.
        label: Bound on |y|.
    """

    radius: float
    norm_bound: float
    label: float = LABEL_BOUND

    @property
    def residual(self) -> float:
        """The largest |w . x - y|."""
        return self.radius * self.norm_bound + self.label

    @property
    def record_bounds(self) -> RecordBounds:
        """The bounds of rows and labels alone."""
        return RecordBounds(self.norm_bound, self.label)


class ScaledRecords(NamedTuple):
    """Records of one domain, within their bounds.

    Attributes:
        X: float32 or float64 (n, d), C-contiguous, multiples of `unit`; integers where the noise is
            exact.
        y: float64 (n,).
        unit: The number that an entry of 1 stands for.
        loss: The loss, by its name in the compiled module.
    """

    X: NDArray[Any]
    y: Floats
    unit: float
    loss: str = "squared"

    @property
    def core_arguments(self) -> tuple[NDArray[Any], int, Floats]:
        """The records as the compiled module takes them."""
        return self.X.reshape(-1), self.X.shape[1], self.y


def as_float_rows(sample: Sample, bounds: RecordBounds, *, shared: bool = False) -> ScaledRecords:
    """Return the records of a sample, projected into their bounds, as floats.

    shared: whether rows that keep their bounds are read where they are. Private ones are not: a
    caller's array may change between two steps.
    """
    if shared and sample.X.flags.c_contiguous and keeps_bounds(sample, bounds):
        return ScaledRecords(sample.X, sample.y, 1.0)
    return ScaledRecords(*project_sample(sample, bounds), 1.0)


def round_to_grid(sample: Sample, bounds: RecordBounds, grid: Grid) -> ScaledRecords:
    """Return the records of a private sample, projected into their bounds and rounded to integers.

    That their norms are at most grid.rows is checked in integers. A row that exceeds it because of
    rounding errors counts as zero.
    """
    entries = np.require(sample.X, None, ["C", "A"]).reshape(-1)
    columns, units = sample.X.shape[1], float(grid.rows)
    X, scale = _core.adaptation_integers(entries, columns, bounds.norm, units, None)
    y = sample.y.clip(-bounds.label, bounds.label)
    return ScaledRecords(X.reshape(sample.X.shape), y, 1 / scale)


def apply_feature_map(
    feature_map: SourceMap | None,
    X_source: ArrayLike,
    X_target: ArrayLike,
    protected: Private | None,
) -> Any:
    """Return the source's records in the target's space.

    protected: the domain whose records are protected. If it is the source, its records are passed
    to the map one at a time, and nothing that the map raises or prints for them is shown. A record
    for which it returns no row, or no finite numbers, counts as zero there. A record of zeros is
    tried first, so that a map that is wrong for all records raises an error.

    Raises: ParameterError unless the map can be called, ShapeError unless it keeps the number of
    records; whatever the map raises for public records, and for zeros.
    """
    if feature_map is None:
        return X_source
    if not callable(feature_map):
        refuse("feature_map", feature_map, "it must be callable, or None")
    rows, others = array("X_source", X_source), array("X_target", X_target)
    if not rows.ndim or others.ndim != 2:
        shapes = f"X_source has shape {rows.shape} and X_target {others.shape}"
        raise ShapeError(f"{shapes}, but they must hold rows")
    if protected != "source":
        return _map_rows(feature_map, freeze(rows), None)
    columns = others.shape[1]
    if rows.dtype.kind in "buif":
        _map_rows(feature_map, np.zeros_like(rows, shape=(1, *rows.shape[1:])), columns)
    mapped = np.zeros((len(rows), columns))
    with silence():
        for i in range(len(rows)):
            mapped[i] = _map_private_row(feature_map, rows[i : i + 1].copy(), columns)
    return mapped


def _map_rows(feature_map: SourceMap, rows: NDArray[Any], columns: int | None) -> NDArray[Any]:
    mapped = np.asarray(feature_map(rows))
    fits = mapped.ndim == 2 and len(mapped) == len(rows)
    if not fits or columns not in (None, mapped.shape[1]):
        rule = f"it must make a row of each of the {len(rows)} records"
        rule += "" if columns is None else f", of {columns} columns as X_target has"
        raise ShapeError(f"feature_map made shape {mapped.shape}, but {rule}")
    return mapped


def _map_private_row(feature_map: SourceMap, row: NDArray[Any], columns: int) -> Floats:
    """Return the mapped row: finite numbers, whatever the map does."""
    mapped = call_silently(lambda: _map_rows(feature_map, row, columns)[0].astype(np.float64))
    if mapped is None:
        return np.zeros(columns)
    return np.where(np.isfinite(mapped), mapped, 0.0)


def call_silently(function: Callable[[], Result]) -> Result | None:
    """Return what a caller's code returns for private records, or None where it fails.

    Its errors, warnings, prints and logs are not shown, and floating-point errors do not count as
    failures.
    """
    with silence():
        try:
            return function()
        except KeyboardInterrupt:
            raise
        except BaseException:
            return None


class SampleWeighting(NamedTuple):
    """The weights of a domain's records: q = cap min(1, sqrt(kappa_1 / h)), h = loss + offset.

    Attributes:
        cap: Largest weight of a record, above 0.
        kappa_1: Penalty above 0; a record with a larger h has less than the largest weight.
        offset: At least 0: the discrepancy for the source, 0 for the target.
    """

    cap: float
    kappa_1: float
    offset: float

    def gradient_bound(self, residual: float) -> float:
        """Return a bound on q times the slope of the loss, for residuals up to this one."""
        return 2 * self.cap * min(math.sqrt(self.kappa_1), residual)


class AdaptationProblem(NamedTuple):
    """Two domains whose records have been validated.

    Attributes:
        source: Records of the source.
        target: Records of the target.
        bounds: Bounds of records and predictors.
        private: The domain that gets noise, if there is any.
    """

    source: Sample
    target: Sample
    bounds: ProblemBounds
    private: Private

    @classmethod
    def validate(
        cls, data: Data, bounds: ProblemBounds, private: Private, protected: Private | None
    ) -> AdaptationProblem:
        """Validate the records; those that are not protected must keep their bounds.

        Raises: ShapeError, ParameterError.
        """
        domains = validate_samples(*data)
        for sample in domains:
            if sample.name != protected:
                refuse_beyond(sample, bounds.record_bounds)
        return cls(*domains, bounds, private)

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of source and target records."""
        return len(self.source.y), len(self.target.y)

    @property
    def columns(self) -> int:
        """The number of features."""
        return int(self.source.X.shape[1])

    @property
    def private_sample(self) -> Sample:
        """The records that get noise."""
        return self.source if self.private == "source" else self.target

    @property
    def public_sample(self) -> Sample:
        """The records of the other domain."""
        return self.target if self.private == "source" else self.source

    def released_discrepancy(self, noise: DescentNoise, delta: float, rng: Rng) -> float:
        """Release the discrepancy with noise."""
        return release_discrepancy(
            *self._data(),
            radius=self.bounds.radius,
            norm_bound=self.bounds.norm_bound,
            mu=noise.discrepancy,
            delta=delta,
            private=self.private,
            random_state=rng,
        ).value

    def exact_discrepancy(self) -> float:
        """Compute the discrepancy without noise."""
        exact = discrepancy(
            *self._data(),
            radius=self.bounds.radius,
            norm_bound=self.bounds.norm_bound,
            private=self.private,
        )
        return max(exact.value, 0.0)

    def sample_weightings(
        self, alpha: float, kappa_1: float, discrepancy: float
    ) -> tuple[SampleWeighting, SampleWeighting]:
        """Return the weightings of the public and of the private records."""
        source = SampleWeighting(alpha / self.sizes[0], kappa_1, discrepancy)
        target = SampleWeighting((1 - alpha) / self.sizes[1], kappa_1, 0.0)
        return (target, source) if self.private == "source" else (source, target)

    def choose_alpha(self, alpha: float | None, discrepancy: float) -> float:
        """Return the share of the source that was asked for, or that the discrepancy suggests."""
        if alpha is not None:
            return alpha
        return least_alpha(discrepancy, self.sizes, (self.bounds.radius, self.bounds.norm_bound))

    def _data(self) -> Data:
        return self.source.X, self.source.y, self.target.X, self.target.y


class Rounding(NamedTuple):
    """Integers in place of q times slope, for exact sums.

    Attributes:
        grid: Bounds on the integers.
        scale: The integer that stands for 1, before rounding.
    """

    grid: Grid
    scale: float

    @classmethod
    def finest(cls, grid: Grid, gradient_bound: float, classes: int = 1) -> Rounding:
        """Return the finest rounding that keeps vectors of this norm within the bound."""
        return cls(grid, (grid.coefficients - math.sqrt(classes) / 2 - 0.5) / gradient_bound)

    @property
    def core_arguments(self) -> tuple[float, float, float]:
        """The rounding as the compiled module takes it."""
        return self.scale, float(self.grid.coefficients), float(self.grid.rows)


class PassResult(NamedTuple):
    """The result of a pass over the records of a domain.

    Attributes:
        objective: Sum of `q h + kappa_1 cap**2 / q` at the best q; sum of q loss at fixed q.
        gradient: Gradient of the sum in w, float64, of w's shape; integers where there is rounding.
        losses: float64 (n,) for fixed q, without offset; otherwise None.
    """

    objective: float
    gradient: Floats
    losses: Floats | None


def evaluate(
    records: ScaledRecords,
    w: Floats,
    weights: SampleWeighting | Floats,
    rounding: Rounding | None = None,
) -> PassResult:
    """Return objective and gradient, at fixed weights or at those that are best for w."""
    integers = None if rounding is None else rounding.core_arguments
    model = w * records.unit
    arguments = records.core_arguments, records.loss, model, weights, integers, None
    result = PassResult(*_core.adaptation_pass(*arguments))
    return result if integers else result._replace(gradient=result.gradient * records.unit)


class NoisyGradient(NamedTuple):
    """Records of the private domain, and the noise of their gradients.

    Attributes:
        records: Integers on the grid, or floats without a grid.
        norm: The largest norm of a row.
        grid: The grid of exact noise, or None.
        noise: The noise, or None.
        rng: A stream for tests, or None.
        classes: Number of scores, and thus of slopes, of the loss.
    """

    records: ScaledRecords
    norm: float
    grid: Grid | None
    noise: DescentNoise | None
    rng: Rng = None
    classes: int = 1

    @classmethod
    def from_sample(
        cls, sample: Sample, bounds: RecordBounds, noise: DescentNoise | None
    ) -> NoisyGradient:
        """Return the records of a sample, on as fine a grid as exact noise allows.

        Raises: ParameterError where that is too coarse.
        """
        if noise is None or not noise.exact:
            rows = as_float_rows(sample, bounds, shared=noise is None)
            return cls(rows, bounds.norm, None, noise)
        grid = choose_grid(noise, len(sample.y))
        records = round_to_grid(sample, bounds, grid)
        return cls(records, grid.rows * records.unit, grid, noise)

    def deviation(self, gradient_bound: float) -> float:
        """Return the deviation of the noise on a coordinate of a gradient.

        gradient_bound: bound on the weight times the slope of the loss of any record.
        """
        if self.noise is None:
            return 0.0
        rounding = self._rounding(gradient_bound)
        largest = gradient_bound
        if rounding is not None:
            largest = rounding.grid.coefficients / rounding.scale
        return self.noise.multiple * 2 * largest * self.norm

    def evaluate(
        self, w: Floats, weights: SampleWeighting | Floats, gradient_bound: float
    ) -> PassResult:
        """Return a pass whose gradient has noise; objective and losses have none."""
        rounding = self._rounding(gradient_bound)
        result = evaluate(self.records, w, weights, rounding)
        if self.noise is None:
            return result
        if rounding is None:
            sensitivity = 2 * gradient_bound * self.norm
            gradient = add_noise(result.gradient, sensitivity, self.noise, self.rng)
        else:
            sums = add_noise(result.gradient, rounding.grid.sensitivity, self.noise, self.rng)
            gradient = sums * (self.records.unit / rounding.scale)
        return result._replace(gradient=gradient)

    def _rounding(self, gradient_bound: float) -> Rounding | None:
        return (
            None if self.grid is None else Rounding.finest(self.grid, gradient_bound, self.classes)
        )


@dataclass(frozen=True)
class ScaledFeatures(Checked):
    """A public map from the rows of a table to records of norm at most 1, as adaptation takes them.

    Numbers go from the schema's bounds to [-1, 1], and a category becomes bits, of which at most
    one is 1. With a constant at the end, all are divided by one public length, the root of the
    number of columns with the constant.

    Attributes:
        schema: Public data.Schema of the table.

    Raises:
        ParameterError: schema is no data.Schema.

    Examples:
        >>> from hdp_fast.adaptation import ScaledFeatures
        >>> from hdp_fast.data import Category, Label, Number, Schema
        >>> columns = {"age": Number(0, 100), "sex": Category(("female", "male"))}
        >>> features = ScaledFeatures(Schema(Label("income", bounds=(0, 10)), columns))
        >>> features.rows({"age": [100], "sex": ["male"]}).round(3).tolist()
        [[0.577, 0.0, 0.577, 0.577]]
        >>> features.predictor([0.5, 0.0, 0.0, 0.0]).coefficients["age"].__round__(4)
        0.0289
    """

    schema: Schema

    RULES: ClassVar[Rules] = {"schema": partial(instance, kind=Schema, what="a data.Schema")}

    def rows(self, table: Any) -> Floats:
        """Makes the records of a table.

        Args:
            table: A data.Table or a data frame, as data.read_frame takes it, of m rows with every
                column of the schema. Numbers beyond their bounds are clipped.

        Returns:
            A float64 array of shape (m, d), each row of norm at most 1, with the constant last.

        Raises:
            ParameterError: A column is missing. No value in a column raises anything.
        """
        return self._rows.scale(self._rows.plain(table)) / self._length

    def labels(self, scores: ArrayLike) -> list[float] | list[int]:
        """Converts scores to labels of the table.

        Args:
            scores: Scores of m records by a model that has learned from labels in [-1, 1], as
                `schema.float_labels` makes them, shape (m,).

        Returns:
            A list of m numbers in the units of the label, or of 0 and 1 where the label is a rule.

        Raises:
            ShapeError: scores has not one dimension.
            ParameterError: An entry is no finite number.
        """
        scores = finite_vector("scores", scores)
        if require_label(self.schema.label).bounds is None:
            return [int(score >= 0) for score in scores]
        middle, half = self._units()
        return [float(middle + half * score) for score in scores]

    def predictor(self, coef: ArrayLike) -> Predictor:
        """Converts the coefficients of a model to the units of the table.

        Args:
            coef: The d coefficients of records as `rows` makes them.

        Returns:
            A named tuple of an intercept and coefficients, by the schema's float_names: what one
            more of a number, or a category, adds to the label.

        Raises:
            ShapeError: coef has not shape (d,).
            ParameterError: An entry is no finite number.
        """
        values, d = finite_vector("coef", coef), len(self._rows.names) + 1
        if len(values) != d:
            raise ShapeError(f"coef has {len(values):,} entries, but the records have {d:,}")
        middle, half = self._units()
        intercept, coefficients = self._rows.to_units(half * values / self._length)
        return Predictor(middle + intercept, coefficients)

    @property
    def _rows(self) -> Rows:
        """The records before they are divided: numbers in [-1, 1], bits, and the constant."""
        numbers = Rows(self.schema).is_number.astype(np.float64)
        return Rows(self.schema, center=numbers / 2, factor=1 + numbers)

    @property
    def _length(self) -> float:
        return math.sqrt(1 + self._rows.sources)

    def _units(self) -> tuple[float, float]:
        """The label of a score of 0, and how much a score of 1 adds to it."""
        low, high = require_label(self.schema.label).bounds or (-1.0, 1.0)
        return low / 2 + high / 2, high / 2 - low / 2
