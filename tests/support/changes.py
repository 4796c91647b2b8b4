"""Strategies of hypothesis for arguments: values like one that a call accepts, and unlike it.

An array becomes one of any dtype, layout, shape and container; a number one of any type, odd ones
among them; a text that is JSON, bytes and files become damaged ones. Some are valid, and most not.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import json
import math
import random
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.strategies import SearchStrategy

# Not the folder where the tests run: a call that writes there is found by what it leaves.
set_hypothesis_home_dir(Path(tempfile.gettempdir()) / "hdp_fast_hypothesis")

DTYPES = (
    *("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g", "c8", "c16"),
    *("O", "U3", "S3", "M8[D]", "m8[s]", ">f8", ">i4", ">U2", "V3"),
)
# Sizes that are small, and those that nothing has: what is between would only take long.
WHOLE = (0, 1, 2, 3, 7, 64, -1, -(2**31), 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**30)
REAL = (0.5, 1.0, -0.0, 1e-12, 5e-324, -1e-300, 1e308, math.inf, -math.inf, math.nan, 0.1 + 0.2)
TEXTS = (
    "",
    " ",
    "x",
    "0",
    "1e999",
    "nan",
    "\0",
    "a\nb",
    "é\u0301",
    "\ud800",
    "\u202e",
    "x" * 5_000,
)
ODD = (
    *(None, True, b"", b"\xff", ..., object(), object, (), [], {}, set(), range(3), 1j),
    *(datetime.date(2026, 1, 31), decimal.Decimal("0.5"), fractions.Fraction(1, 3)),
    *(np.float16(0.5), np.int8(-1), np.uint64(2**64 - 1), np.float64("nan"), np.bool_(True)),
    *(np.str_("x"), np.datetime64("NaT"), np.array(2), np.array([]), np.ma.masked, abs, print),
)


def drawn(value: Any, count: int, number: int) -> Iterator[tuple[str, Any]]:
    """Some values for an argument that has this one: how they are told, and themselves."""
    kept: list[Any] = []

    @seed(number)
    @settings(
        max_examples=count + 1,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(like(value))
    def collect(made: Any) -> None:
        kept.append(made)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collect()
    # The first that hypothesis makes is the simplest, and the same for all.
    return ((tell(made), made) for made in kept[1:])


def tell(value: Any) -> str:
    """A value in a line, by what matters of it."""
    kind = type(value).__name__
    if isinstance(value, np.ndarray):
        flags = value.flags
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else value.strides
        locked = "" if flags.writeable else ", read-only"
        return f"{kind} {value.dtype} {value.shape} {layout}{locked} {_short(value.ravel()[:4])}"
    return f"{kind} {_short(value)}"


def _short(value: Any) -> str:
    return " ".join(ascii(value).split())[:120]


def like(value: Any) -> SearchStrategy[Any]:
    """Values for an argument that accepts this one."""
    odd = st.sampled_from(ODD)
    return st.one_of(_alike(value), _alike(value), _alike(value), odd)


def _alike(value: Any) -> SearchStrategy[Any]:
    if isinstance(value, bool | np.bool_ | type(None)):
        return st.one_of(numbers(), texts())
    if isinstance(value, int | float | np.number):
        return numbers()
    if isinstance(value, np.ndarray):
        return arrays(value)
    if isinstance(value, bytes | bytearray):
        return dice().map(lambda die: damaged(bytes(value), die))
    if isinstance(value, Path) or (isinstance(value, str) and is_file(value)):
        return paths(Path(value))
    if isinstance(value, str):
        return st.one_of(texts(), dice().map(lambda die: damaged_text(value, die)))
    if isinstance(value, Mapping):
        return mappings(dict(value))
    if isinstance(value, list | tuple) and value:
        return sequences(value)
    if hasattr(value, "columns") and hasattr(value, "shape"):
        return arrays(np.asarray(value))
    return st.one_of(numbers(), texts(), st.sampled_from(ODD))


def numbers() -> SearchStrategy[Any]:
    """Numbers and what looks like one."""
    kinds: list[Callable[[Any], Any]] = [np.float32, np.float64, np.longdouble, str, np.array]
    real = st.one_of(st.sampled_from(REAL), st.floats(width=16))
    typed = st.tuples(real, st.sampled_from(kinds)).map(lambda pair: pair[1](pair[0]))
    return st.one_of(st.sampled_from(WHOLE), st.integers(-3, 70), real, typed)


def texts() -> SearchStrategy[str]:
    """Any text, short or odd."""
    return st.one_of(st.sampled_from(TEXTS), st.text(max_size=20))


def dice() -> SearchStrategy[random.Random]:
    """What decides the details that hypothesis does not."""
    return st.integers(0, 2**32 - 1).map(random.Random)


@st.composite
def arrays(draw: Callable[..., Any], base: Any) -> Any:
    """An array like another, of any dtype, shape, content and layout, or what holds one."""
    base = np.asarray(base)
    dtype = np.dtype(draw(st.one_of(st.just(base.dtype.str), st.sampled_from(DTYPES))))
    shape = draw(shapes(base.shape))
    content = draw(st.sampled_from(("kept", "kept", "odd", "one odd")))
    values = np.resize(base.astype(object), shape)
    if content != "kept" and values.size:
        some = st.sampled_from((*REAL, *WHOLE, *TEXTS[:6], None))
        # A flat index reaches every entry whatever the shape is.
        places = range(values.size) if content == "odd" else [draw(st.integers(0, values.size - 1))]
        odd = [draw(some) for _ in range(3)]
        for place in places:
            values.flat[place] = odd[place % 3]
    made = _cast(values, dtype)
    return draw(st.sampled_from(LAYOUTS))(made)


def _cast(values: Any, dtype: Any) -> Any:
    with np.errstate(all="ignore"):
        try:
            return values.astype(dtype)
        except (TypeError, ValueError, OverflowError):
            return np.zeros(values.shape, dtype)


def shapes(shape: tuple[int, ...]) -> SearchStrategy[tuple[int, ...]]:
    """The same shape mostly; one more or less in an axis, an axis more or less, none."""
    known = [shape] * 6 + [(), (0,), (*shape, 1), (1, *shape), shape[1:], (0, *shape[1:])]
    for axis, size in enumerate(shape):
        known += [(*shape[:axis], new, *shape[axis + 1 :]) for new in (size + 1, max(size - 1, 0))]
    return st.sampled_from(known)


def _strided(made: Any) -> Any:
    return np.repeat(made, 2, axis=-1)[..., ::2] if made.ndim else made


def _locked(made: Any) -> Any:
    made.setflags(write=False)
    return made


def _unaligned(made: Any) -> Any:
    if made.dtype.hasobject or not made.size:
        return made
    room = np.zeros(made.nbytes + 1, np.uint8)
    copy = room[1:].view(made.dtype).reshape(made.shape)
    copy[...] = made
    return copy


def _framed(library: str) -> Callable[[Any], Any]:
    def frame(made: Any) -> Any:
        import importlib

        frames = importlib.import_module(library)
        columns = {f"c{j}": column for j, column in enumerate(made.T)} if made.ndim == 2 else None
        try:
            return frames.DataFrame(columns) if columns else frames.Series(made)
        except Exception:
            # No frame holds this dtype or shape.
            return made

    return frame


LAYOUTS: tuple[Callable[[Any], Any], ...] = (
    *(np.asarray, np.ascontiguousarray, np.asfortranarray, _strided, _locked, _unaligned),
    *(lambda made: made[::-1] if made.ndim else made, lambda made: made.tolist()),
    *(lambda made: np.broadcast_to(made[:1], made.shape) if made.ndim and len(made) else made,),
    *(np.ma.masked_array, _framed("pandas"), _framed("polars"), lambda made: list(made.flat)[:99]),
)


@st.composite
def sequences(draw: Callable[..., Any], base: Any) -> Any:
    """A list or tuple like another: an entry changed, gone or doubled."""
    items, place = list(base), draw(st.integers(0, len(base) - 1))
    change = draw(st.sampled_from(("entry", "entry", "gone", "twice", "array", "kind")))
    if change == "entry":
        items[place] = draw(like(items[place]))
    elif change == "gone":
        del items[place]
    elif change == "twice":
        items.append(items[place])
    elif change == "array":
        return draw(arrays(np.array(base, object)))
    kinds = (type(base), list, tuple, iter) if change == "kind" else (list, tuple)
    return draw(st.sampled_from(kinds))(items) if type(base) in (list, tuple) else items


@st.composite
def mappings(draw: Callable[..., Any], base: dict[Any, Any]) -> Any:
    """A mapping like another: a value changed, a key gone or more."""
    items = dict(base)
    change = draw(st.sampled_from(("value", "value", "gone", "more")))
    if items and change != "more":
        key = draw(st.sampled_from(list(items)))
        items |= {key: draw(like(items[key]))}
        if change == "gone":
            del items[key]
    else:
        items[draw(st.sampled_from((*TEXTS, 1, None)))] = draw(like(next(iter(items.values()), 1)))
    return items


# Texts and files ---------------------------------------------------------------------------------


def is_file(text: str) -> bool:
    """Whether a text names a file that is there."""
    try:
        return 0 < len(text) < 300 and Path(text).is_file()
    except (OSError, ValueError):
        return False


def paths(path: Path) -> SearchStrategy[Any]:
    """A damaged copy of a file, and what is no file."""
    none = ["", ".", "/", "/dev/null", "no/such/file", "\0", "x" * 300, b"x", path.parent]
    if not path.is_file():
        return st.sampled_from([*none, path])
    return st.one_of(st.sampled_from(none), dice().map(lambda die: damaged_file(path, die)))


def damaged_file(path: Path, die: random.Random) -> str:
    """A damaged copy of a file, in a folder of its own."""
    copy = Path(tempfile.mkdtemp()) / path.name
    if path.stat().st_size > 1 << 20:
        return str(shutil.copy(path, copy))
    copy.write_bytes(damaged(path.read_bytes(), die))
    return str(copy)


def damaged(content: bytes, die: random.Random) -> bytes:
    """Some bytes changed, lost, doubled or put in."""
    made = bytearray(content)
    for _ in range(die.choice((1, 1, 2, 5))):
        start = die.randrange(len(made) + 1)
        end = min(len(made), start + die.choice((1, 1, 4, 40)))
        part = bytes(made[start:end])
        changed = bytes([part[0] ^ 1 << die.randrange(8)]) + part[1:] if part else b"\0"
        made[start:end] = die.choice((changed, b"", part + part, die.randbytes(len(part)), b"-1"))
    return bytes(made)


def damaged_text(text: str, die: random.Random) -> str:
    """JSON with another value in it, and any other text with other letters."""
    try:
        content = json.loads(text)
    except ValueError:
        return damaged(text.encode("utf-8", "replace"), die).decode("utf-8", "replace")

    def changed(value: Any) -> Any:
        if die.random() < 0.2:
            return die.choice([*WHOLE, *REAL, *TEXTS[:6], None, True, [], {}, [[1]], {"a": 1}])
        if isinstance(value, dict):
            return {key: changed(one) for key, one in value.items() if die.random() > 0.05}
        return [changed(one) for one in value] if isinstance(value, list) else value

    return json.dumps(changed(content))
