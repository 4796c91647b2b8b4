"""What a public pool makes: features of records and points, and a test of their populations.

Where the populations differ, noisy gradients learn from the records alone.
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.json_text import JsonText
from .._support.numbers import floats
from .._support.types import Floats, RandomState
from .._support.validate import array
from ..data.frames import make_table
from ..data.schema import Schema
from ..data.states import State
from ..data.table import Table
from ..exceptions import ParameterError, ShapeError, UtilityWarning
from ..learners import FeatureMap, PrivateSGD, SufficientStatistics, suggest_features
from ..learners.moment_equation import softmax, to_halves
from ..learners.statistics_noise import chi_square_quantile
from .public_facts import kind_of

# Square of the constant that gradients get beside a row of norm 1, if its columns span none.
_CONSTANT = 0.1
# A column that varies less than this, relative to its largest value in the pool, is a constant.
_LEAST_SPREAD = 1e-9
_LARGEST = 1e30
# A pool in whose span a constant lies up to this share has a constant.
_CLOSE = 1e-6
# A difference of mean features that does no harm to labels, as a share of the largest norm.
TOLERANCE = 0.05
# Probability of rejecting a pool that is of the same population.
LEVEL = 0.01


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


@dataclass(frozen=True, kw_only=True)
class PopulationTest(JsonText):
    """The result of a private comparison of the records' mean features with those of a pool.

    Attributes:
        distance: Euclidean distance of the pool's mean features from the noisy mean of the records,
            whose features have norm at most 1.
        most: The largest distance at which the pool counts as one of the same population. Noise and
            chance exceed it with probability at most 0.01 where the population is the same.
        epsilon: Privacy parameter that the comparison cost.
        delta: Privacy parameter that the comparison cost.

    Examples:
        >>> from hdp_fast.labels import PopulationTest
        >>> PopulationTest(distance=0.23, most=0.11, epsilon=0.1, delta=1e-7).passed
        False
    """

    distance: float
    most: float
    epsilon: float
    delta: float

    @property
    def passed(self) -> bool:
        """Whether the pool may be one of the same population."""
        return self.distance <= self.most


def compare_populations(
    features: FeatureMap,
    state: State,
    pool: Floats,
    *,
    epsilon: float,
    delta: float,
    random_state: RandomState,
) -> PopulationTest:
    """Release the noisy sum of the records' features, and compare its mean with the pool's.

    state: the records', of mean_description.

    It is a release of learners.SufficientStatistics whose target is 1 for every record, and has its
    guarantee: (epsilon, delta)-DP when one record is replaced. The rest is post-processing.
    """
    description = mean_description(features)
    with warnings.catch_warnings():
        # A sum within its noise says nothing against a pool.
        warnings.simplefilter("ignore", UtilityWarning)
        released = description.release(
            state, epsilon=epsilon, delta=delta, random_state=random_state
        )
    rows = features(pool)
    difference = released.cross_moments[:, 0] / released.n - rows.mean(axis=0)
    most = largest_distance(
        released.n, len(rows), features.columns, released.sums_deviation / released.n
    )
    return PopulationTest(
        distance=float(np.linalg.norm(difference)), most=most, epsilon=epsilon, delta=delta
    )


def mean_description(features: FeatureMap) -> SufficientStatistics:
    """The release of the sum of all records' features, which are those of targets 1."""
    return SufficientStatistics(features, label_bound=1.0)


def largest_distance(n: int, points: int, columns: int, deviation: float) -> float:
    """Bound the distance of the noisy mean of n rows from that of the pool, for one population.

    The difference of two means of rows of norm at most 1 has a norm of root mean square at most
    sqrt(1/n + 1/points). A row moves the norm by at most 2 / n or 2 / points, so that McDiarmid's
    inequality bounds what it exceeds its mean by. The noise, of this deviation in each of the
    columns, has a norm below its quantile. Each of the two fails with half the level.
    """
    scale = math.sqrt(1 / n + 1 / points)
    sampling = scale * (1 + math.sqrt(2 * math.log(2 / LEVEL)))
    noise = deviation * math.sqrt(chi_square_quantile(columns, 1 - LEVEL / 2))
    return TOLERANCE + sampling + noise


@dataclass(frozen=True, eq=False)
class DescentModel:
    """A linear model of public features that noisy gradients learned.

    Attributes:
        features: The public feature map.
        classes: The K classes in order, shape (K,).
        coefficients: float64 of shape (d, K).
    """

    features: FeatureMap
    classes: NDArray[Any]
    coefficients: Floats

    def predict_proba(self, X: Any) -> Floats:
        """Computes the posterior probability of every class.

        Args:
            X: Records as the feature map takes them, m of them.

        Returns:
            A float64 array of shape (m, K), whose rows add up to 1.
        """
        return softmax(self.features(X) @ self.coefficients)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicts the class of the largest probability, ties to the first.

        Args:
            X: Records as the feature map takes them, m of them.

        Returns:
            An array of shape (m,) of classes.
        """
        labels: NDArray[Any] = self.classes[self.predict_proba(X).argmax(axis=1)]
        return labels


def make_learner(classes: int, epsilon: float, delta: float) -> PrivateSGD:
    """The learner for so many classes, all of whose settings are chosen by public rules."""
    if classes == 2:
        return PrivateSGD(loss="logistic", epsilon=epsilon, delta=delta)
    return PrivateSGD(loss="softmax", classes=classes, epsilon=epsilon, delta=delta)


def descend(
    features: FeatureMap,
    rows: Floats,
    codes: NDArray[np.intp],
    classes: NDArray[Any],
    learner: PrivateSGD,
    random_state: np.random.Generator | None,
) -> DescentModel:
    """Learn by noisy gradients from records alone; the guarantee is that of the learner."""
    model = learner.learn(features(rows), codes, random_state=random_state)
    weights = np.asarray(model.weights, np.float64)
    if len(classes) == 2:
        weights = to_halves(weights)
    return DescentModel(features, classes, weights)
