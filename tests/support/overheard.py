"""Whatever anybody could read after a call but its result, and marks that none of it may hold.

A mark stands for a private value. Bad inputs hold it, and it is looked for in the message of an
error, its arguments and notes, in all errors that led to it, whether or not a traceback shows them,
and in warnings and logs.
"""

import decimal
import logging
import traceback
import warnings

import numpy as np

WORD, REAL, WHOLE = "SECRETCELL", 7777.125, -31337
MARKS = (WORD, "7777", "31337")


class Speaking:
    """An entry whose every use says what it holds."""

    def _refuse(self, *_):
        raise ValueError(f"it is {WORD}")

    __float__ = __int__ = __index__ = __bool__ = __eq__ = __lt__ = __str__ = _refuse
    __hash__ = None

    def __repr__(self):
        return WORD


class Unreadable:
    """No array, and what it says instead is private."""

    def __array__(self, *arguments, **options):
        raise ValueError(f"it is {WORD}")


def filled(like, value, dtype):
    return np.full(np.shape(like), value, dtype)


def with_one(like, value, dtype):
    """The values with a private one that its neighbors do not explain."""
    made = np.array(like, dtype)
    made.flat[made.size // 2] = value
    return made


def objects(like, make):
    made = np.empty(np.shape(like), object)
    for place in range(made.size):
        made.flat[place] = make()
    return made


# What somebody may have taken for the records.
SHAPES = {
    "wholes": lambda like: filled(like, WHOLE, np.int64),
    "a whole": lambda like: with_one(like, WHOLE, np.int64),
    "small wholes": lambda like: filled(like, 31337, np.uint16),
    "reals": lambda like: filled(like, REAL, np.float64),
    "a real": lambda like: with_one(like, REAL, np.float64),
    "single reals": lambda like: filled(like, REAL, np.float32),
    "words": lambda like: filled(like, WORD, "U10"),
    "a word": lambda like: with_one(like, WORD, object),
    "bytes": lambda like: filled(like, WORD.encode(), "S10"),
    "decimals": lambda like: objects(like, lambda: decimal.Decimal(str(REAL))),
    "speaking": lambda like: objects(like, Speaking),
    "complex": lambda like: filled(like, REAL * 1j, np.complex128),
    "dates": lambda like: filled(like, 31337, "M8[s]"),
    "pairs": lambda like: filled(like, REAL, [("a", float), ("b", float)]),
    "masked": lambda like: np.ma.array(filled(like, REAL, float), mask=False),
    "a list": lambda like: filled(like, REAL, float).tolist(),
    "a list of words": lambda like: filled(like, WORD, "U10").tolist(),
    "a ragged list": lambda like: [[REAL], [REAL, WORD], WORD],
    "another shape": lambda like: np.full((3, 2, 2), REAL),
    "a vector": lambda like: np.full(7, WHOLE),
    "a number": lambda like: REAL,
    "a whole number": lambda like: WHOLE,
    "one word": lambda like: WORD,
    "some bytes": lambda like: WORD.encode(),
    "a dict": lambda like: {WORD: [REAL]},
    "a set": lambda like: {WORD, REAL},
    "an object": lambda like: Speaking(),
    "an unreadable array": lambda like: Unreadable(),
    "a generator": lambda like: (value for value in (REAL, WORD)),
}


def marked(text):
    return [mark for mark in MARKS if mark in text]


def texts_of(error):
    """What an error holds, and all errors that led to it, also where no traceback shows them."""
    texts, left, seen = traceback.format_exception(error), [error], set()
    while left:
        one = left.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        texts += [str(one), repr(one.args), *map(str, getattr(one, "__notes__", ()))]
        left += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    return texts


def listen(caplog, function, *arguments, **named):
    """The texts that a call leaves behind: of its error, of warnings and of logs."""
    texts = []
    logging.captureWarnings(False)
    caplog.clear()
    with warnings.catch_warnings(record=True) as warned, caplog.at_level(logging.DEBUG):
        warnings.simplefilter("always")
        try:
            function(*arguments, **named)
        except Exception as error:
            texts += texts_of(error)
    texts += [str(warning.message) for warning in warned]
    texts += [record.getMessage() for record in caplog.records]
    return "\n".join(texts)
