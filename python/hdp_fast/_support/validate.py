"""Checks of arguments that never reach the compiled module."""

from __future__ import annotations

import difflib
import json
import math
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy import ma
from numpy.typing import ArrayLike, NDArray

from ..exceptions import HdpFastError, ParameterError, ShapeError
from .containers import Entries, refuse_type, refuse_wide, to_entries

T = TypeVar("T")
LEAST, MOST = 1e-30, 1e30

# The number of floats that are compared with 0 and 1 at a time.
_PART = 1 << 20


def shorten(value: object) -> str:
    """A public value as an error shows it, cut if it is long.

    Arrays and tables are shown by their shape alone, and what holds some by its type. They appear
    here only where an argument may not be one, and they may be private.
    """
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple) and shape:
        return f"{type(value).__name__} of shape {shape}"
    if _holds_arrays(value, 3):
        return f"{type(value).__name__} of arrays"
    try:
        text = repr(value)
    except ValueError:  # an int of more digits than Python prints
        text = f"{type(value).__name__} of thousands of digits"
    return text if len(text) <= 80 else f"{text[:80]}..."


def _holds_arrays(value: object, levels: int) -> bool:
    """Whether an array stands in lists, tuples or dicts, so many levels deep."""
    items = list(value.values()) if isinstance(value, dict) else value
    return isinstance(items, list | tuple) and any(
        (isinstance(shape := getattr(item, "shape", None), tuple) and shape != ())
        or (levels > 1 and _holds_arrays(item, levels - 1))
        for item in items
    )


def refuse(name: str, value: object, rule: str) -> NoReturn:
    """Raises the one error of an argument: its name, its value, and the rule that it breaks."""
    raise ParameterError(f"{name} = {shorten(value)}, but {rule}") from None


def guess(word: str, known: Iterable[str]) -> str:
    """A question that names the public word most like the one passed; empty if none is like it."""
    folded = {text.casefold(): text for text in known}
    near = difflib.get_close_matches(word.casefold(), folded, 1)
    return f": did you mean {folded[near[0]]!r}?" if near else ""


def one_of(name: str, value: T, allowed: Iterable[str]) -> T:
    """The value, which must be one of some words.

    Raises: ParameterError otherwise.
    """
    words = list(allowed)
    if not isinstance(value, str) or value not in words:
        refuse(name, value, f"it must be one of {', '.join(words)}")
    return value


def from_json(name: str, text: str, writer: str, make: Callable[[Any], T]) -> T:
    """What `make` makes of the content of a JSON text.

    An error shows nothing of the text: the file that somebody named by mistake may be a private
    one. Errors of this package that `make` raises are passed on.

    Raises:
        ParameterError: The text is no JSON, or `make` fails on it.
    """
    kind = "no JSON"
    try:
        content = json.loads(text)
        kind = "other JSON"
        return make(content)
    except HdpFastError:
        raise
    except Exception:
        raise ParameterError(f"{name} is {kind}, but it must be what {writer} wrote") from None


def take_form(noun: str, fields: dict[str, Any], form: Mapping[str, Any]) -> None:
    """Takes the format and version of a text out of its fields.

    Raises: ParameterError unless they are those of `form`, KeyError where there are none.
    """
    if {name: fields.pop(name) for name in form} != form:
        rule = f"{noun} must have format and version {list(form.values())}"
        raise ParameterError(f"{rule}: use the hdp_fast that wrote it")


def is_bool(value: object) -> bool:
    """Whether the value is True or False, which Python and numpy take for the numbers 1 and 0."""
    return isinstance(value, bool | np.bool_)


def flag(name: str, value: Any) -> bool:
    """The value as a bool.

    Raises: ParameterError unless it is one.
    """
    if not is_bool(value):
        refuse(name, value, "it must be True or False")
    return bool(value)


def curator_relation(name: str, value: T) -> T:
    """The value, which must name the relation of a guarantee that a curator gives.

    Raises: ParameterError unless it is replace_one or add_remove.
    """
    return one_of(name, value, ("replace_one", "add_remove"))


def number(name: str, value: Any) -> float:
    """The value as a float, NaN included.

    Raises: ParameterError unless it is a real number. A bool is none: it is the answer to another
    question, in the wrong place.
    """
    # float() takes these two with a warning: it drops the imaginary part of numpy's complex
    # numbers, and makes a masked entry NaN.
    is_complex = getattr(getattr(value, "dtype", None), "kind", "") == "c"
    if is_complex or is_bool(value) or isinstance(value, ma.MaskedArray):
        refuse(name, value, "it must be a real number")
    try:
        return math.nan if isinstance(value, str | bytes) else float(value)
    except (TypeError, ValueError, OverflowError):
        refuse(name, value, "it must be a real number")


def positive(name: str, value: Any) -> float:
    """The value as a finite float above 0.

    Raises: ParameterError otherwise.
    """
    real = value if type(value) is float else number(name, value)
    if not 0 < real < math.inf:
        refuse(name, value, "it must be finite and above 0")
    return real


def positive_or_infinite(name: str, value: Any) -> float:
    """The value as a float above 0; an infinite epsilon protects no one.

    Raises: ParameterError otherwise.
    """
    return math.inf if number(name, value) == math.inf else positive(name, value)


def finite_nonnegative(name: str, value: Any) -> float:
    """The value as a finite float of at least 0.

    Raises: ParameterError otherwise.
    """
    real = value if type(value) is float else number(name, value)
    if not 0 <= real < math.inf:
        refuse(name, value, "it must be finite and at least 0")
    return real


def bounded_positive(name: str, value: Any, most: float = MOST) -> float:
    """The value as a float that can be multiplied and squared within the range of floats.

    Raises: ParameterError unless it lies in [1e-30, most].
    """
    real = value if type(value) is float else number(name, value)
    if not LEAST <= real <= most:
        refuse(name, value, f"it must lie in [{LEAST}, {most:g}]")
    return real


def nonnegative(name: str, value: Any) -> float:
    """The value as 0.0, or as `bounded_positive` returns it.

    Raises: ParameterError otherwise.
    """
    real = value if type(value) is float else number(name, value)
    if real != 0 and not LEAST <= real <= MOST:
        rule = f"it must be 0 or lie in [{LEAST}, {MOST:g}]"
        refuse(name, value, rule)
    return real


def probability(name: str, value: Any, *, zero: bool = False) -> float:
    """The value as a float strictly between 0 and 1, or 0 where that is allowed.

    Raises: ParameterError otherwise.
    """
    real = value if type(value) is float else number(name, value)
    if 0 < real < 1 or (zero and real == 0):
        return real
    rule = "lie in [0, 1)" if zero else "lie strictly between 0 and 1"
    refuse(name, value, f"it must {rule}")


def unit_interval(name: str, value: Any) -> float:
    """The value as a float in [0, 1].

    Raises: ParameterError otherwise.
    """
    return bounded(name, value, 0, 1)


def bounded(name: str, value: Any, low: float, high: float) -> float:
    """The value as a float from low to high.

    Raises: ParameterError otherwise.
    """
    real = value if type(value) is float else number(name, value)
    if not low <= real <= high:
        refuse(name, value, f"it must lie in [{low:g}, {high:,g}]")
    return real


def nonnegative_int(name: str, value: Any) -> int:
    """The value as an int in [0, `2**63`).

    Raises: ParameterError otherwise.
    """
    integer = value if type(value) is int else _to_int(value)
    if not 0 <= integer < 1 << 63:
        rule = "an integer of at least 0" if integer < 0 else "an integer below 2**63"
        refuse(name, value, f"it must be {rule}")
    return integer


def _to_int(value: Any) -> int:
    """An integer of any type as an int, and -1 for what is none."""
    try:
        return -1 if is_bool(value) else operator.index(value)
    except TypeError:
        return -1


def probability_or_one(name: str, value: Any) -> float:
    """The value as a float in (0, 1].

    Raises: ParameterError otherwise.
    """
    real = value if type(value) is float else number(name, value)
    if not 0 < real <= 1:
        refuse(name, value, "it must lie in (0, 1]")
    return real


def positive_int(name: str, value: Any, most: int) -> int:
    """The value as an int from 1 to `most`.

    Raises: ParameterError otherwise.
    """
    integer = nonnegative_int(name, value)
    if not 1 <= integer <= most:
        refuse(name, value, f"it must be an integer from 1 to {most}")
    return integer


def finite_number(name: str, value: Any) -> float:
    """The value as a finite float.

    Raises: ParameterError otherwise.
    """
    real = value if type(value) is float else number(name, value)
    if not math.isfinite(real):
        refuse(name, value, "it must be a finite number")
    return real


def interval(low: Any, high: Any) -> tuple[float, float]:
    """Both ends as finite floats.

    Raises: ParameterError unless low is below high, and their difference finite.
    """
    low, high = finite_number("low", low), finite_number("high", high)
    if not low < high or not math.isfinite(high - low):
        rule = "low must be below high, their difference finite"
        raise ParameterError(f"low = {low:g} and high = {high:g}, but {rule}")
    return low, high


def ordered_pair(name: str, value: Any) -> tuple[float, float]:
    """A list of two numbers as an interval.

    Raises the errors of `interval`, with the name.
    """
    numbers = sequence(name, value)
    if len(numbers) != 2:
        refuse(name, value, "it must be two numbers")
    try:
        return interval(*numbers)
    except ParameterError as error:
        raise ParameterError(f"{name}: {error}") from None


def sequence(name: str, value: Any) -> Sequence[Any]:
    """The value, which must be a list or another sequence, but no text.

    Raises: ParameterError otherwise.
    """
    if isinstance(value, str) or not isinstance(value, Sequence):
        refuse(name, value, "it must be a list")
    return value


def distinct_texts(name: str, value: Any) -> tuple[str, ...]:
    """The texts without spaces around them; there must be at least one.

    Raises: ParameterError for an entry that is no text, and for one that comes twice.
    """
    texts = tuple(sequence(name, value))
    if not texts or len(set(map(str, texts))) < len(texts):
        refuse(name, value, "it must list values, each once")
    if not all(isinstance(text, str) for text in texts):
        refuse(name, value, "it must list texts")
    return tuple(text.strip() for text in texts)


def instance(name: str, value: object, kind: type[T], what: str) -> T:
    """The value, which must be of a class; `what` says so in words.

    Raises: ParameterError otherwise.
    """
    if not isinstance(value, kind):
        refuse(name, value, f"it must be {what}")
    return value


def function(name: str, value: Any) -> Callable[..., Any]:
    """The value, which must be callable.

    Raises: ParameterError otherwise.
    """
    if not callable(value):
        refuse(name, value, "it must be callable")
    made: Callable[..., Any] = value
    return made


def file_path(name: str, value: Any) -> Path:
    """The value as a path.

    Raises: ParameterError unless it is a text or a path.
    """
    if not isinstance(value, str | os.PathLike) or isinstance(os.fspath(value), bytes):
        refuse(name, value, "it must be the path of a file")
    try:
        is_name = b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        is_name = False
    if not is_name:
        refuse(name, ascii(value), "it must be the path of a file, in letters that the system has")
    return Path(value)


def list_texts(name: str, value: Any) -> list[str]:
    """The value as a list of texts, of which an error shows none: they may be private.

    Raises: ParameterError unless it is a container of nothing but texts.
    """
    is_listed = isinstance(value, Iterable) and not isinstance(value, str)
    listed = list(value) if is_listed else []
    if not is_listed or not all(isinstance(text, str) for text in listed):
        raise ParameterError(f"{name} holds something else, but it must be a list of texts")
    return listed


def array(name: str, value: ArrayLike) -> NDArray[Any]:
    """The entries of a container as an array, as `containers.to_array` reads them.

    Raises:
        ShapeError: Rows differ in length.
        ParameterError: The value is no container, or one of those that are refused by name; or it
            has dtype longdouble.
    """
    return entries_of(name, value).fill()


def entries_of(name: str, value: ArrayLike) -> Entries:
    """The entries and which of them are missing, as `containers.to_entries` reads them.

    Raises the errors of `array`.
    """
    entries = to_entries(name, value)
    kind = entries.values.dtype
    if not entries.values.ndim and kind.kind == "O" and not issubclass(type(value), np.ndarray):
        refuse_type(name, value)
    refuse_wide(name, kind)
    return entries


def whole_array(name: str, value: ArrayLike) -> NDArray[Any]:
    """The entries as `array` reads them, but integers and bool always in a dtype of their own.

    Raises a ParameterError where one of these is missing, and the errors of `array`.
    """
    entries = entries_of(name, value)
    if entries.missing is not None and entries.missing.any():
        raise ParameterError(f"{name} holds something else, but no entry may be missing")
    return entries.values


def read_only(values: NDArray[Any]) -> NDArray[Any]:
    """The array itself, made read-only."""
    values.flags.writeable = False
    return values


def are_numbers(values: NDArray[Any]) -> bool:
    """Whether an array holds real numbers by its type, or is empty and can be read as such."""
    kind = values.dtype.kind
    return kind in "buif" or (not values.size and kind not in "cV")


def numbers(name: str, value: ArrayLike) -> NDArray[Any]:
    """The value as an array of real numbers, of whatever dtype they are.

    Raises:
        ShapeError: Rows differ in length.
        ParameterError: The array is masked or has another dtype.
    """
    values = array(name, value)
    if not are_numbers(values):
        # A column of a data frame becomes objects where entries are missing.
        missing = ", none of them missing" if values.dtype.kind == "O" else ""
        rule = f"it must hold real numbers{missing}"
        raise ParameterError(f"{name} has dtype {values.dtype}, but {rule}")
    return values


def bits(name: str, value: ArrayLike) -> NDArray[np.uint8]:
    """The value as a vector of 0 and 1.

    Raises: ShapeError unless it has one dimension, ParameterError for anything but 0 and 1.
    """
    values = bit_entries(name, value)
    if values.ndim != 1:
        raise ShapeError(f"{name} has shape {values.shape}, but it must have one dimension")
    # No temporary arrays: this is asked of a million labels before a descent reads some of them.
    if values.size and not 0 <= values.min() <= values.max() <= 1:
        raise _not_bits(name)
    made = values.astype(np.uint8)
    # What another thread has changed since counts as the nearest bit.
    return np.minimum(made, 1, out=made)


def bit_entries(name: str, value: ArrayLike) -> NDArray[Any]:
    """The value as an array of bool or integers, whose entries may still be other than 0 and 1.

    Floats become uint8 if all of them are exactly 0 or 1. An empty array becomes uint8, too, and so
    does a number alone, whose shape the caller refuses.

    Raises:
        ShapeError: Rows differ in length.
        ParameterError: The value is no container, has another dtype, or holds other floats.
    """
    entries = entries_of(name, value)
    if entries.missing is not None and entries.missing.any():
        raise _not_bits(name)
    values = entries.values
    if not values.size or not values.ndim:
        return np.zeros(values.shape, np.uint8)
    if values.dtype.kind == "f":
        return _round_none(name, values)
    if values.dtype.kind not in "bui":
        rule = "it must be bool, an integer type, or floats that are exactly 0 and 1"
        raise ParameterError(f"{name} has dtype {values.dtype}, but {rule}")
    return values


def _round_none(name: str, values: NDArray[Any]) -> NDArray[np.uint8]:
    """Floats as bits, some rows at a time."""
    made = np.empty_like(values, np.uint8)
    rows = max(1, _PART * len(values) // values.size)
    for start in range(0, len(values), rows):
        part = values[start : start + rows]
        ones = part == 1
        if not (ones | (part == 0)).all():
            raise _not_bits(name)
        made[start : start + rows] = ones
    return made


def _not_bits(name: str) -> ParameterError:
    return ParameterError(f"{name} holds something else, but every entry must be 0 or 1")


def fractions(name: str, value: ArrayLike, length: int) -> NDArray[np.float64]:
    """The value as a vector of that many numbers in [0, 1].

    Raises: ShapeError for another shape, ParameterError for anything but such numbers.
    """
    values = array(name, value)
    if values.shape != (length,):
        raise ShapeError(f"{name} has shape {values.shape}, but it must be ({length},)")
    if values.dtype.kind not in "buif" or not ((values >= 0) & (values <= 1)).all():
        raise ParameterError(f"{name} holds something else, but every entry must lie in [0, 1]")
    return values.astype(np.float64)


def integer_vector(name: str, value: ArrayLike) -> NDArray[Any]:
    """The value as a vector of any integer type with at least one entry, which is not copied.

    Raises: ShapeError unless it is a vector with an entry. ParameterError for a dtype that is not
    integer.
    """
    values = whole_array(name, value)
    if values.ndim != 1 or not values.size:
        rule = "it must have one dimension and at least one entry"
        raise ShapeError(f"{name} has shape {values.shape}, but {rule}")
    if values.dtype.kind not in "bui":
        raise ParameterError(f"{name} has dtype {values.dtype}, but it must be an integer type")
    return values


def integers(name: str, value: ArrayLike, dtype: type[np.int64] | type[np.uint64]) -> NDArray[Any]:
    """A copy of the value as a vector of this dtype with at least one entry.

    It is a copy since no one else may change it while the interpreter is released.

    Raises: ShapeError unless it is a vector with an entry. ParameterError for a dtype that is not
    integer and for entries out of range.
    """
    values = integer_vector(name, value)
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    if not least <= int(values.min()) <= int(values.max()) <= most:
        rule = f"each must lie in [{least}, {most}]"
        raise ParameterError(f"{name} has entries out of range, but {rule}")
    return np.array(values, dtype)
