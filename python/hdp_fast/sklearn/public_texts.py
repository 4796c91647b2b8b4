"""Errors of scikit-learn, and of estimators of a caller, that show nothing of a private record."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from ..exceptions import HdpFastError, ParameterError, ShapeError, UtilityWarning

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
        r"Sparse data was passed[\w ]*, but dense data is required\.[\w\s.,'()]*",
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
_COMPLEX, _LACK = "Complex data not supported", re.compile(r"Input (contains|\w+ contains) ")
_ENTRY = re.compile(r"float\(\) argument must be|must be real number, not ")


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
    if text.startswith(_COMPLEX):
        return ParameterError(f"{_COMPLEX}: {name} must hold real numbers")
    if _LACK.match(text):
        return ParameterError(f"{name} has an infinite entry or NaN, but all must be finite")
    if _ENTRY.match(text):
        # scikit-learn's contract asks for this kind of error, and for these words.
        rule = "an entry's argument must be a string or a real number"
        return TypeError(f"{name} has an entry that is no number: {rule}")
    if "could not convert" in text:
        return ParameterError(f"{name} has an entry that is no number, but all must be")
    return None
