"""What is taken from scikit-learn, and its errors, none of which may show a private record."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from inspect import currentframe
from traceback import walk_stack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.containers import blank_missing, to_readable
from .._support.lazy import name_package
from .._support.notes import note
from ..data.records import take_rows
from ..data.table import Table
from ..exceptions import HdpFastError, ParameterError, ShapeError, UtilityWarning

try:
    from sklearn import get_config, metrics
    from sklearn.base import (
        BaseEstimator,
        ClassifierMixin,
        MetaEstimatorMixin,
        OneToOneFeatureMixin,
        RegressorMixin,
        TransformerMixin,
        clone,
        is_regressor,
    )
    from sklearn.dummy import DummyClassifier
    from sklearn.metrics import check_scoring
    from sklearn.model_selection import ParameterGrid
    from sklearn.utils import check_array as read_array
    from sklearn.utils import check_consistent_length as compare_lengths
    from sklearn.utils import column_or_1d as read_vector
    from sklearn.utils import get_tags
    from sklearn.utils import indexable as make_indexable
    from sklearn.utils.metaestimators import available_if
    from sklearn.utils.multiclass import check_classification_targets as read_kind
    from sklearn.utils.validation import check_is_fitted, has_fit_parameter
    from sklearn.utils.validation import validate_data as read_arrays
except ImportError as error:
    raise name_package(error, "sklearn", "hdp_fast.sklearn", "sklearn") from error

__all__ = [
    "BaseEstimator",
    "ClassifierMixin",
    "DummyClassifier",
    "MetaEstimatorMixin",
    "OneToOneFeatureMixin",
    "ParameterGrid",
    "RegressorMixin",
    "TransformerMixin",
    "accuracy_score",
    "available_if",
    "check_array",
    "check_classification_targets",
    "check_consistent_length",
    "check_is_fitted",
    "check_scoring",
    "clone",
    "column_or_1d",
    "get_config",
    "get_tags",
    "has_fit_parameter",
    "indexable",
    "is_called_by",
    "is_regressor",
    "r2_score",
    "select_rows",
    "shield",
    "shield_code",
    "takes_missing",
    "usual_classifier",
    "validate_data",
]
# What goes through as it is.
_OURS = (HdpFastError, UtilityWarning, MemoryError)
# What scikit-learn says of shapes, names of columns and kinds of labels: public facts. All other
# texts may hold an entry, and none of them goes through.
_SHAPE = r"\([\d, ]*\)"
_PUBLIC = [
    re.compile(pattern)
    for pattern in (
        r"Found array with dim \d+[.,] \w+ (expected|dim) <= 2( is required)?( by \w+)?\.",
        rf"Found array with \d+ (sample|feature)\(s\) \(shape={_SHAPE}\) while a minimum of \d+ is"
        r" required( by \w+)?\.",
        r"Found input variables with inconsistent numbers of samples: \[[\d, ]+\]",
        r"X has \d+ features?, but \w+ is expecting \d+ features? as input\.?",
        r"(This )?\w+( estimator)? requires y to be passed, but the target y is None\.?",
        r"The feature names should match those that were passed during fit\.[\s\S]*",
        r"Feature names are only supported if all input features have string names[\s\S]*",
        r"X does not have valid feature names, but \w+ was fitted with feature names",
        rf"y should be a 1d array, got an array of shape {_SHAPE} instead\.?",
        r"Unknown label type: [\w-]+\.( Maybe you are trying to fit a classifier, which expects"
        r" discrete classes on a regression target with continuous values\.)?",
        r"A column-vector y was passed when a 1d array was expected\.[\w\s.,()]*",
        r"This \w+ instance is not fitted yet\. Call 'fit' with appropriate arguments before using"
        r" this estimator\.",
        r"Classification metrics can't handle a mix of [\w-]+ and [\w-]+ targets",
    )
]
# Texts that begin so go on with entries, and are said in our own words.
_SHAPES = re.compile(r"Expected 2D array, got (1D|scalar) array instead|Expected a 2-dimensional")
_SPARSE = "Sparse data was passed"
_CATEGORIES = "a public schema makes numbers of categories (schema=, or SchemaTransformer)"
_ENTRY = re.compile(r"float\(\) argument must be|must be real number, not ")


def usual_classifier() -> object:
    """What members and students are where nothing else is asked for."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1_000))


def validate_data(
    estimator: Any, X: Any, *labels: Any, allow_missing: bool = False, **options: Any
) -> Any:
    """What scikit-learn's function makes of records, and labels if there are any.

    Containers that scikit-learn does not know become a table or an array first.

    allow_missing: whether numbers may be missing, which are NaN then, or infinite.

    Raises: ParameterError for lazy frames, masked arrays and what cannot be read; and the errors of
    scikit-learn that show nothing but public facts.
    """
    records, read = to_readable("X", X), [to_readable("y", y) for y in labels]
    if allow_missing:
        records, options = blank_missing(records), {**options, "ensure_all_finite": False}
    return shield("X", read_arrays, estimator, records, *read, **options)


def check_array(name: str, X: Any, **options: Any) -> Any:
    """Records that are not those of fit, as an array; errors as `validate_data`."""
    return shield(name, read_array, to_readable(name, X), input_name=name, **options)


def column_or_1d(y: Any, **options: Any) -> Any:
    """Labels as a vector; errors as `validate_data`."""
    return shield("y", read_vector, to_readable("y", y), **options)


def check_classification_targets(y: Any) -> None:
    """Refuse labels that are numbers with fractions; errors as `validate_data`."""
    shield("y", read_kind, y)


def check_consistent_length(*arrays: Any) -> None:
    """Refuse containers of different lengths; errors as `validate_data`."""
    shield("y", compare_lengths, *arrays)


def indexable(X: Any, *labels: Any) -> Any:
    """Records and labels that have places, of one length; errors as `validate_data`."""
    return shield("X", make_indexable, X, *labels)


def accuracy_score(labels: Any, predictions: Any, weights: Any) -> float:
    """The share of right predictions; errors as `validate_data`."""
    return float(shield("y", metrics.accuracy_score, labels, predictions, sample_weight=weights))


def r2_score(targets: Any, predictions: Any, weights: Any) -> float:
    """The coefficient of determination; errors as `validate_data`."""
    return float(shield("y", metrics.r2_score, targets, predictions, sample_weight=weights))


def takes_missing(estimator: Any) -> bool:
    """Whether an estimator says that it takes missing values."""
    known = hasattr(estimator, "__sklearn_tags__")
    return known and bool(get_tags(estimator).input_tags.allow_nan)


def select_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """The rows in these places, in their order, of any container that has places."""
    if isinstance(X, Table):
        return X.select(rows)
    if not hasattr(X, "shape"):
        return [X[row] for row in rows]
    # Brackets of pyarrow take columns.
    return X.take(rows) if hasattr(X, "column_names") else take_rows(X, rows)


_COMPLEX, _LACK = "Complex data not supported", re.compile(r"Input (contains|\w+ contains) ")


def shield(name: str, call: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
    """What scikit-learn returns; its errors go through by a list of public texts alone.

    No error keeps another one that led to it.

    name: what an error calls the argument that is read.

    Raises: ParameterError or ShapeError in place of other texts, TypeError for an entry of a kind
    that is no number.
    """
    fault: Exception
    try:
        # The sum of huge values, by which infinite ones are looked for, must not warn.
        with np.errstate(invalid="ignore"):
            return call(*arguments, **options)
    except _OURS as error:
        fault = error
    except Exception as error:
        rule = "can't be read, but it must hold numbers, in a row for each record"
        fault = _reword(name, error) or ParameterError(f"{name} {rule}")
    raise _alone(fault)


def shield_code(name: str, call: Callable[..., Any], /, *arguments: Any) -> Any:
    """What an estimator of the caller returns; of its errors as little is shown as by `shield`."""
    fault: Exception
    try:
        return call(*arguments)
    except _OURS as error:
        fault = error
    except Exception as error:
        rule = "and what it says may hold private values: try it on records that are public"
        text = f"{name} fails on the records with {type(error).__name__}, {rule}"
        fault = _reword("X", error) or ParameterError(text)
    raise _alone(fault)


def _alone(fault: Exception) -> Exception:
    """The error without those that led to it."""
    fault.__cause__ = fault.__context__ = None
    return fault


def _reword(name: str, error: Exception) -> Exception | None:
    """What may be said in place of an error; None if its text is on no list."""
    if isinstance(error, OverflowError):
        return ParameterError(f"{name} has a number beyond all floats, but it must be one")
    text = error.args[0] if error.args and type(error.args[0]) is str else ""
    if any(pattern.fullmatch(text) for pattern in _PUBLIC):
        known = type(error).__module__ in ("builtins", "sklearn.exceptions")
        return type(error)(text) if known else ValueError(text)
    if _SHAPES.match(text):
        rule = "it must have two dimensions. Reshape your data"
        return ShapeError(
            f"{name} has one dimension or none, but {rule}: {name}.reshape(-1, 1) is a column, and"
            f" {name}.reshape(1, -1) a record"
        )
    if text.startswith(_SPARSE):
        rule = f"it must be dense, as {name}.toarray() makes it"
        return TypeError(f"{name} is sparse, but {rule}: {_CATEGORIES}")
    if text.startswith(_COMPLEX):
        return ParameterError(f"{_COMPLEX}: {name} must hold real numbers")
    if _LACK.match(text):
        return ParameterError(f"{name} has an infinite entry or NaN, but all must be finite")
    if _ENTRY.match(text):
        # scikit-learn's contract asks for this kind of error, and for these words.
        rule = "an entry's argument must be a string or a real number"
        return TypeError(f"{name} has an entry that is no number: {rule}")
    if "could not convert" in text:
        rule = "" if name == "y" else f": {_CATEGORIES}"
        return ParameterError(f"{name} has an entry that is no number, but all must be{rule}")
    return None


_PIPELINES = "sklearn.pipeline"
# They pass on what they are told; a frozen one was fitted before.
_LEARN_NOTHING = ("BoundsScaler", "SchemaTransformer", "FrozenEstimator")


def note_learned_steps() -> None:
    """Warn of steps that a pipeline has just fitted on the rows that are private here.

    Only pipelines of scikit-learn that call the fit are seen, in this thread. By their types and
    parameters, which are public.
    """
    names = list(dict.fromkeys(_find_learned_steps()))
    if names:
        note(
            f"the pipeline fitted {', '.join(names)} on the rows that this estimator protects: what"
            " such a step learned is in the pipeline and in no record of privacy; BoundsScaler and"
            " SchemaTransformer prepare columns by public facts alone"
        )


def _find_learned_steps() -> Iterator[str]:
    for frame, _ in walk_stack(currentframe()):
        if frame.f_globals.get("__name__") == _PIPELINES:
            pipeline = frame.f_locals.get("self")
            for _, step in getattr(pipeline, "steps", [])[:-1]:
                yield from _name_learned(step)


def _name_learned(step: Any) -> Iterator[str]:
    """The names of the classes in a step that learn in fit."""
    name = type(step).__name__
    if step is None or isinstance(step, str) or name in _LEARN_NOTHING:
        return
    parts = getattr(step, "transformers", None) or getattr(step, "transformer_list", None)
    if parts is None:
        parts = getattr(step, "steps", None)
    if isinstance(parts, list):
        for part in parts:
            yield from _name_learned(part[1])
    elif get_tags(step).requires_fit and not _is_told(step):
        yield name


def _is_told(step: Any) -> bool:
    """Whether an encoder was told its categories, or an imputer its constant."""
    if not isinstance(getattr(step, "categories", "auto"), str):
        return True
    is_constant = getattr(step, "strategy", None) == "constant"
    return is_constant and getattr(step, "keep_empty_features", False) is True


def is_called_by(module: str) -> bool:
    """Whether a function of the module of this name is among those that led to this call."""
    frame = currentframe()
    while frame is not None and frame.f_globals.get("__name__") != module:
        frame = frame.f_back
    return frame is not None
