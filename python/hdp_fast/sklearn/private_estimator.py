"""What private estimators share: a seed under a name of its own, charges, a linear release."""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import partial
from inspect import currentframe, signature
from traceback import walk_stack
from typing import Any, ClassVar, Self
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from .._support.feature_names import names_of
from .._support.notes import note
from .._support.random_state import check_random_state
from .._support.types import Floats
from .._support.validate import (
    instance,
    number,
    numbers,
    one_of,
    positive_or_infinite,
    probability,
)
from ..budget import account
from ..budget.account import Budget
from ..data import Chunks, Label, Number, Schema, Table
from ..data.chunks import settle_owners
from ..data.frames import find_integers, make_table
from ..data.goal import Goal
from ..data.persons import Persons, read_persons
from ..data.rows import Bounds, PlainRows, Rows, blocks_of
from ..exceptions import BudgetExceeded, ParameterError, ShapeError
from ..learners.additive_columns import make_shape
from ..learners.centered_learner import make_private_model
from ..learners.centered_linear import CenteredModel, LinearTask, refuse_steps, release_linear
from ..learners.centered_rows import PartedRows
from ..learners.weight_noise import score_weights
from ..record import PrivacyRecord
from .coefficients import LinearPart, to_frame
from .toolkit import (
    BaseEstimator,
    check_is_fitted,
    column_or_1d,
    is_called_by,
    note_learned_steps,
    validate_data,
)

_SCHEMA = "a data.Schema, which Schema.from_json makes of a file's text, or None"
# The module of SelectFromModel, RFE and RFECV that reads coefficients.
SELECTORS = "sklearn.feature_selection._base"
_SEARCHES = "sklearn.model_selection."
# It lets estimators refuse a charge on purpose, and no fit is missing then.
_REHEARSAL = f"{__package__}.search_fits", "rehearse_fit"
# What was warned of: budgets that were too small, and classes whose score is no release.
_noted: WeakSet[Budget] = WeakSet()
_noted_scores: set[str] = set()


class SeededEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator that takes a seed for tests as `test_seed`.

    scikit-learn's ensembles set every parameter whose name is or ends with random_state, of all
    their members: a seed of 31 bits would replace the system's entropy, and be saved beside the
    model.
    """

    test_seed: Any

    def __init_subclass__(cls, **options: Any) -> None:
        """Have the signature of __init__: before Python 3.11.4 a subclass has that of __new__."""
        super().__init_subclass__(**options)
        own = signature(cls.__init__)
        parameters = list(own.parameters.values())[1:]
        cls.__signature__ = own.replace(parameters=parameters)

    def __new__(cls, *_: Any, **parameters: Any) -> Self:
        """Refuse a seed under the usual name, before Python calls it unexpected."""
        _refuse_usual_name(parameters)
        made: Self = super().__new__(cls)
        return made

    def set_params(self, **params: Any) -> Self:
        """Changes parameters, as scikit-learn has it.

        Args:
            params: New values by name. The name of a parameter of a parameter is like
                estimator__bounds.

        Returns:
            The estimator itself.

        Raises:
            ParameterError: A seed comes as random_state.
            ValueError: There is no such parameter.
        """
        _refuse_usual_name(params)
        changed: Self = super().set_params(**params)
        return changed

    def __sklearn_tags__(self) -> Any:
        """The tags of scikit-learn: without a seed no two fits are alike."""
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.test_seed is None
        return tags

    def _check_seed(self) -> None:
        check_random_state(self.test_seed, "test_seed")


def _refuse_usual_name(parameters: dict[str, Any]) -> None:
    if "random_state" in parameters:
        raise ParameterError(
            "random_state is there, but a private estimator takes a seed for tests as test_seed:"
            " ensembles of scikit-learn set every random_state, and a saved one would hold the seed"
            " that takes the noise off"
        )


class MissingFit:
    """A context that warns of a fit that its budget was too small for, if a search has called.

    With error_score = nan a search of scikit-learn swallows the exception and goes on. So a warning
    comes with the first such exception of a budget.
    """

    def __init__(self, budget: Budget | None, epsilon: float, delta: float):
        """Keep what the fit is to be charged to, and what it spends."""
        self._budget = budget
        self._spent = f"epsilon = {epsilon:g} and delta = {delta:g}"

    def __enter__(self) -> None:
        """Nothing is to be done before the fit."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Warn, and let the exception through."""
        missing = kind is not None and issubclass(kind, BudgetExceeded)
        if missing and self._budget is not None and self._budget not in _noted and _is_searched():
            _noted.add(self._budget)
            note(
                "a fit was not made and its score is missing: the budget has less left than"
                f" {self._spent}; later ones may be missing too, and error_score='raise' stops the"
                " search instead"
            )


def spend(budget: Budget | None, record: PrivacyRecord) -> AbstractContextManager[object]:
    """Reserve what a fit spends, or do nothing where there is no budget; warn of a missing fit.

    Raises the errors of `budget.spend`.
    """
    with MissingFit(budget, record.epsilon, record.delta):
        return account.spend(budget, record)


def _is_searched() -> bool:
    """Whether a search or cross-validation of scikit-learn is what called, and no rehearsal."""
    for frame, _ in walk_stack(currentframe()):
        name = frame.f_globals.get("__name__", "")
        if (name, frame.f_code.co_name) == _REHEARSAL:
            return False
        if name.startswith(_SEARCHES):
            return True
    return False


class PrivateLinearEstimator(SeededEstimator):
    """A linear model of centered rows, whose means are released with a part of the budget."""

    epsilon: float | None
    delta: float
    bounds: Any
    schema: Any
    method: str
    _methods: ClassVar[tuple[str, ...]]

    def __sklearn_tags__(self) -> Any:
        """The tags of scikit-learn: missing numbers count as what is public."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self.bounds is not None or self.schema is not None
        return tags

    def _fit(self, X: Any, y: Any, owners: tuple[Any, int], budget: Budget | None) -> Self:
        """Learns from records, or from records in parts, whose rows or owners are protected."""
        prepared: Any
        if isinstance(X, Chunks):
            prepared, persons = self._prepare_parts(X, y, owners)
        else:
            prepared = self._prepare(X, y)
            persons = read_persons(*owners, len(prepared[2]))
        unit, rows, labels, epsilon = prepared
        self._release(unit, rows, labels, epsilon, budget, persons)
        return self

    @abstractmethod
    def _prepare(self, X: Any, y: Any) -> tuple[Rows, Floats | PlainRows, NDArray[Any], float]:
        """Validate settings and records: the map to rows, rows, labels, and epsilon."""

    @abstractmethod
    def _prepare_parts(
        self, chunks: Chunks, y: Any, owners: tuple[Any, int]
    ) -> tuple[tuple[Rows, PartedRows, None, float], Persons]:
        """As _prepare, of records in parts, and who owns them."""

    @property
    @abstractmethod
    def _task(self) -> LinearTask:
        """What is learned."""

    def _check_privacy(self) -> float:
        self._check_seed()
        epsilon = check_privacy(self)
        one_of("method", self.method, self._methods)
        if self.bounds is not None and self.schema is not None:
            rule = "only one of them may be given: the schema has bounds"
            raise ParameterError(f"bounds = {self.bounds!r} and schema = a Schema, but {rule}")
        return epsilon

    def _read_training(self, X: Any, y: Any, numeric: bool) -> tuple[Rows, Floats | PlainRows, Any]:
        """The map to rows in [0, 1], the rows, and the labels as a vector."""
        if self.schema is not None:
            instance("schema", self.schema, Schema, _SCHEMA)
            if hasattr(X, "shape") and names_of(X) is None:
                rule = "with a schema it must be a Table or a data frame with named columns"
                raise ParameterError(
                    f"X is a {type(X).__name__}, but {rule}: ensembles that make arrays of frames"
                    " take what SchemaTransformer makes, and their members bounds = (0, 1)"
                )
            table = make_table("X", X, self.schema)
            unit = Rows.of_table(self.schema, table)
            rows, labels = unit(table), column_or_1d(y, warn=True)
            if len(labels) != len(rows):
                raise ParameterError(f"y has {len(labels):,} entries, but X has {len(rows):,} rows")
            if numeric:
                labels = read_targets(labels)
            self._keep_names(X)
            return unit, rows, labels
        # With y_numeric an error of scikit-learn would show an entry of y.
        bounded = self.bounds is not None
        records, labels = validate_data(self, X, y, dtype=np.float64, allow_missing=bounded)
        if numeric:
            labels = read_targets(labels)
        integers = find_integers(X)
        if self.bounds is None:
            unit = Rows.spanned_by(records, integers)
        else:
            unit = Rows.within(self.bounds, records.shape[1], integers)
        return unit, PlainRows(unit, records), labels

    def _open_parts(
        self,
        chunks: Chunks,
        y: Any,
        owners: tuple[Any, int],
        read_labels: Callable[[Any], NDArray[Any]],
    ) -> tuple[Rows, PartedRows, Persons]:
        """The map to rows in [0, 1], the rows of records in parts, and who owns them.

        Passes over the parts read whose rows they are, where they say so, and check all that is
        used.

        read_labels: makes labels of the vector of a block.
        """
        if y is not None:
            raise ParameterError("y was passed beside Chunks, but Chunks hold the labels")
        refuse_steps(self.method)
        chunks.require_passes()
        unit, read = self._read_parts(chunks)
        chunks, persons = settle_owners(chunks, *owners)
        read_block = partial(_read_block, read, read_labels)
        return unit, PartedRows.open(unit, chunks.with_tables(), read_block), persons

    def _read_parts(self, chunks: Chunks) -> tuple[Rows, Callable[[Any], Any]]:
        """The map to rows in [0, 1] of records in parts, and what reads a block for it."""
        head, *labels = chunks.with_tables().first()
        if not labels:
            rule = "Chunks(..., label=) names their column"
            raise ParameterError(
                f"X has parts without labels, but each record must have one: {rule}"
            )
        if self.schema is not None:
            instance("schema", self.schema, Schema, _SCHEMA)
            table = make_table("X", head, self.schema)
            self._keep_names(head)
            return Rows.of_table(self.schema, table), partial(make_table, "X", schema=self.schema)
        if self.bounds is None:
            raise ParameterError("bounds = None, but of records in parts they must be given")
        if isinstance(head, Table):
            self._keep_names(head)
        else:
            validate_data(self, head, dtype=np.float64, allow_missing=True)
        unit = Rows.within(self.bounds, self.n_features_in_, find_integers(head))
        return unit, partial(_take_numbers, self.n_features_in_)

    def _keep_names(self, X: Any) -> None:
        names = names_of(X)
        if names is None:
            names = tuple(X.columns)
        self.n_features_in_ = len(names)
        self.feature_names_in_ = np.array(names, object)

    def _release(
        self,
        unit: Rows,
        rows: Floats | PlainRows | PartedRows,
        labels: NDArray[Any] | None,
        epsilon: float,
        budget: Budget | None,
        persons: Persons,
    ) -> None:
        """Charge the budget, release the means, and learn."""
        if epsilon < math.inf:
            note_learned_steps()
        with MissingFit(budget, epsilon, self.delta):
            goal = Goal(
                epsilon, self.delta, budget=budget, random_state=self.test_seed, persons=persons
            )
            released = release_linear(
                unit,
                rows,
                labels,
                self._task,
                goal,
                name=f"sklearn.{type(self).__name__}",
                method=self.method,
            )
        self.method_, self.record_ = released.method, released.record
        self.rows_, self.model_, self.noise_ = released.rows, released.model, released.noise
        self.n_samples_fit_ = persons.count_rows(len(rows))

    # What the model says --------------------------------------------------------------------------

    @property
    def coef_(self) -> Floats:
        """What one more of a feature adds to each score, in the units of the table.

        Shape (1, d) for two classes, (K, d) for more, (d,) for a target, with the d features of
        get_feature_names_out. Where records are so many that squares of numbers are learned, it is
        the linear part of the scores: squares, less what is linear in their numbers, are further
        features of summary. Rows that the model shrinks have smaller scores.

        Raises:
            AttributeError: A selector of scikit-learn reads it of an additive model, which has bits
                instead of columns: it reads feature_importances_ then.
        """
        if self._selects_columns("coef_"):
            raise AttributeError("of an additive model, selectors read feature_importances_")
        part = self._linear_part()
        coefficients: Floats = self._by_score(part.coefficients[:, : part.plain])
        return coefficients

    @property
    def intercept_(self) -> Any:
        """The linear part of scores where all features are 0: shape (1,) or (K,), or a number."""
        return self._by_score(self._linear_part().intercepts)

    @property
    def feature_importances_(self) -> Floats:
        """Shares of the features in what they add to the scores, squares included; shape (d,).

        By weight times the spread of its column, which follows from released means. They do not
        depend on the units of columns, which coef_ does. Selectors of scikit-learn get those of the
        columns of X from an additive model: by the spread of their shapes.
        """
        columns = self._selects_columns("feature_importances_")
        sizes = self._column_sizes() if columns else self._linear_part().sizes
        return sizes / max(float(sizes.sum()), math.ulp(0.0))

    def _selects_columns(self, name: str) -> bool:
        """Whether a selector asks for columns of X, of which an additive model makes bits.

        Selectors of scikit-learn take entries by their places, and say nothing of others. Columns
        of a frame must not be chosen by what are features of a schema.
        """
        plain = [f"x{place}" for place in range(self.n_features_in_)]
        names = list(getattr(self, "feature_names_in_", plain))
        if self._name_features() == names or not is_called_by(SELECTORS):
            return False
        columns = names if self.schema is None else self.schema.reads
        if self.method_ == "additive" and columns == names:
            return True
        rule = "a selector chooses columns of X: put SchemaTransformer before it"
        raise ParameterError(f"{name} has an entry for each feature of the schema, but {rule}")

    def _column_sizes(self) -> Floats:
        """The root mean square of what each column of X adds to the scores of an additive model."""
        rows: Rows = self.rows_
        assert rows.center is not None
        weights, place, sizes = score_weights(self.model_)[:-1, 0], 0, []
        parts: list[tuple[Any, int]] = rows.parts
        if isinstance(rows.source, Bounds):
            ends = zip(rows.source.low, rows.source.high, rows.source.cuts or (), strict=True)
            parts = [(Number(low, high, cuts), len(cuts)) for low, high, cuts in ends]
        for kind, width in parts:
            some = slice(place, place + width)
            shape = make_shape(kind, weights[some], rows.center[some])
            sizes.append(math.sqrt(shape.shares @ shape.effects**2))
            place += width
        return np.array(sizes)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names the features of coef_: columns, and categories of columns as column=category.

        Args:
            input_features: Not used; scikit-learn passes it.

        Returns:
            An array of d names.

        Raises:
            ValueError: fit has not been called (a NotFittedError).
        """
        check_is_fitted(self)
        return np.array(self._name_features(), object)

    def summary(self, *, as_frame: bool = True) -> Any:
        """Lists all coefficients in the units of the table, with intervals of confidence .95.

        `noise_low` and `noise_high` are ends of an interval for what the same fit would have had
        without the noise on its weights, with the released means and scales; it follows from
        released numbers and public facts, to first order. With "sgd" it holds where other columns
        explain no more than 97 % of a column, and so it does for a target with "descent", where the
        shrinkage is that of this fit. With "evidence" the same fit has the same penalties
        and first slopes, and those of the intercept are not known. `population_low` and
        `population_high` are those of an interval for the coefficient of the population that the
        records are a sample of, which least squares without a penalty have on its rows as they are
        centered and shrunk here, and on targets as they are clipped. It holds noise and sampling,
        as if residuals varied alike everywhere, and is there for two classes with "statistics", and
        with "evidence", where second moments stand out of their noise. It is around that fit, and
        not around the coefficient, which is shrunk. Intervals that are not known are NaN. Each
        interval alone covers with probability .95.

        Args:
            as_frame: Whether to return a pandas DataFrame. False needs no pandas.

        Returns:
            A row for each feature, for each square of a number (less what is linear in the number)
            and for the intercept, named "(intercept)"; for more than two classes as many for each
            class. Or the same columns by name, as lists: feature, class where there are more than
            two, coefficient, noise_low, noise_high, population_low, population_high.

        Raises:
            ValueError: fit has not been called (a NotFittedError).
            ImportError: A frame is asked for and pandas is not installed.
        """
        part = self._linear_part()
        many = len(part.coefficients) > 1
        columns = part.summarize(self.classes_.tolist() if many else [])
        return to_frame(columns) if as_frame else columns

    def _linear_part(self) -> LinearPart:
        check_is_fitted(self)
        released = CenteredModel(self.rows_, self.model_, self.method_, self.record_, self.noise_)
        middle, unit = self._target_scale
        return LinearPart(released, self._name_features(), unit, middle)

    def _name_features(self) -> list[str]:
        rows: Rows = self.rows_
        if rows.schema is not None:
            return rows.names
        names = getattr(self, "feature_names_in_", None)
        return rows.names if names is None else rows.name_columns([str(name) for name in names])

    def _by_score(self, values: Floats) -> Any:
        """Values of all scores as scikit-learn has them."""
        return values

    @property
    def _target_scale(self) -> tuple[float, float]:
        """What is added to scores, after they are multiplied with the second number."""
        return 0.0, 1.0

    def to_json(self, *, label: str | None = None) -> str:
        """Writes the released model as JSON, in the one format of this package.

        learners.PrivateModel.from_json reads it, without scikit-learn, and `hdp-fast predict` on
        the command line. Columns without names are called x0, x1, ..., and classes are texts.

        Args:
            label: Name of the column that is predicted. None takes that of the schema's label, or
                "label".

        Returns:
            The text. It holds what was released, and the parameters that are public.

        Raises:
            ParameterError: label is the name of a feature, or the labels differ in their type alone
                and not as texts.
            ValueError: fit has not been called (a NotFittedError).
        """
        check_is_fitted(self)
        schema, classes = self._describe(label)
        rows = dataclasses.replace(self.rows_, source=schema)
        released = CenteredModel(rows, self.model_, self.method_, self.record_, self.noise_)
        return make_private_model(released, classes, self.n_samples_fit_).to_json()

    @abstractmethod
    def _describe_label(self, column: str) -> tuple[Label, tuple[str, ...] | None]:
        """What is predicted, and the classes as texts, if there are any."""

    def _describe(self, label: str | None) -> tuple[Schema, tuple[str, ...] | None]:
        """The public schema of what the model reads, and the classes."""
        source: Schema | Bounds = self.rows_.source
        named = source.label if isinstance(source, Schema) else None
        usual = "label" if named is None else named.column
        rule, classes = self._describe_label(usual if label is None else label)
        if isinstance(source, Schema):
            return Schema(rule, source.columns), classes
        width = len(source.low)
        names = getattr(self, "feature_names_in_", [f"x{place}" for place in range(width)])
        pairs = zip(source.low.tolist(), source.high.tolist(), strict=True)
        cuts: Any = source.cuts
        if cuts is None:
            cuts = [(1.0,) if bit else () for bit in ~self.rows_.is_number]
        columns = {
            str(name): Number(*pair, some)
            for name, pair, some in zip(names, pairs, cuts, strict=True)
        }
        return Schema(rule, columns), classes

    def _predict_blocks(self, X: Any, predict: Callable[[Floats], Floats]) -> Floats:
        """What a function makes of the centered rows of records, a block of records at a time."""
        check_is_fitted(self)
        centered: Rows = self.rows_
        if centered.schema is not None:
            return np.concatenate([predict(rows) for rows in centered.blocks(X)])
        bounded = self.bounds is not None
        X = validate_data(self, X, dtype=np.float64, allow_missing=bounded, reset=False)
        return np.concatenate([predict(centered(X[block])) for block in blocks_of(len(X))])


def _read_block(
    read: Callable[[Any], Any], read_labels: Callable[[Any], NDArray[Any]], X: Any, y: Any
) -> tuple[Any, NDArray[Any]]:
    """What the map to rows takes of a block, and its labels."""
    return read(X), read_labels(column_or_1d(y))


def _take_numbers(columns: int, block: Any) -> Floats:
    """The columns of a block as an array of numbers, of which there are so many."""
    if isinstance(block, Table):
        block = np.stack([column.row_numbers() for column in block.columns.values()], axis=1)
    records = np.asarray(numbers("X", block), np.float64)
    if records.ndim != 2 or records.shape[1] != columns:
        raise ShapeError(
            f"X has a part of shape {records.shape}, but the first has {columns} columns"
        )
    return records


def read_targets(targets: Any) -> Floats:
    """The targets as floats; the error shows none of them."""
    floats = None
    with suppress(Exception):
        floats = np.asarray(targets, np.float64)
    if floats is None:
        raise ParameterError("y has an entry that is no number, but all must be")
    if not np.isfinite(floats).all():
        raise ParameterError("y has an entry that is not finite, but all must be")
    return floats


# What must be given with a finite epsilon, where an estimator has a parameter of this name.
_NEEDED = {
    "epsilon": "a number above 0 (math.inf protects no one)",
    "delta": "a number above 0, far below 1 / n",
    "bounds": "(low, high) of all columns, or one such pair for each, unless there is a schema",
    "target_bounds": "(low, high) of y",
    "pool": "public rows without labels, with the columns of X",
    "classes": "all labels that there can be",
}


def find_missing(estimator: Any) -> dict[str, str]:
    """What was not given and must be with a finite epsilon: by its name, what it must be.

    Raises: ParameterError for an epsilon that is no number.
    """
    missing = {}
    for name, rule in _NEEDED.items():
        if getattr(estimator, name, 0) is None:
            missing[name] = rule
    if getattr(estimator, "schema", None) is not None:
        missing.pop("bounds", None)
    if missing and "epsilon" not in missing and hasattr(estimator, "epsilon"):
        missing = {} if number("epsilon", estimator.epsilon) == math.inf else missing
    return missing


def refuse_missing(missing: dict[str, str]) -> None:
    """Refuse everything that is missing by one error.

    Raises: ParameterError if anything is.
    """
    if missing:
        faults = ", ".join(f"{name} = None" for name in missing)
        rules = "; ".join(f"{name} = {rule}" for name, rule in missing.items())
        wanted = "it must be given" if len(missing) == 1 else "all of them must be given"
        if not any(name.endswith("epsilon") for name in missing):
            rules = f"{rules} (epsilon = math.inf takes it from the data and protects no one)"
        raise ParameterError(f"{faults}, but {wanted}: {rules}")


def check_privacy(estimator: Any) -> float:
    """Validate what every private estimator has, and return epsilon."""
    refuse_missing(find_missing(estimator))
    probability("delta", estimator.delta)
    return positive_or_infinite("epsilon", estimator.epsilon)


def note_score(estimator: Any) -> None:
    """Warn once for each class that a score is no private release."""
    name = type(estimator).__name__
    if getattr(estimator, "epsilon", None) != math.inf and name not in _noted_scores:
        _noted_scores.add(name)
        note(
            "score is an unprotected release wherever its records are private, as the folds of a"
            " search or a cross-validation are: publish and choose by scores of public records"
            " alone, or choose with PrivateSearchCV"
        )
