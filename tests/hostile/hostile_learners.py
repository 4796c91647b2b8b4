"""Learners that try to let one record reach more than one member, and the records they do it with.

Each case is a learner and two sets of records that differ in one row. What a learner does is
triggered by that row alone, or read from what a whole table has and a chunk must not have.
"""

import asyncio
import contextlib
import contextvars
import copy
import decimal
import gc
import locale
import logging
import os
import random
import signal
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas
import polars
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

MEMBERS = 12
MARK = 1e6
COINS = np.random.default_rng(15)
X = COINS.normal(size=(MEMBERS * 5, 2))
Y = (X[:, 0] > 0).astype(int)
Q = np.array([[2.0, 0.0], [-2.0, 0.0], [1.5, 1.0], [-1.5, 1.0]])

# What a learner keeps in its own module.
KEPT: list[Any] = []
OUT = np.zeros(len(Q))
MODEL = GaussianNB()
SEEN = [0.0]


@dataclass
class Case:
    """A learner and its neighbors.

    records: from whether the row is replaced to (X, y); queries: the points asked.
    """

    name: str
    learner: Any
    records: Callable[[bool], tuple[Any, Any]]
    queries: Any
    engines: tuple[str, ...] = ("sequential", "threads", "processes")


def arrays(replaced, row=3):
    records = X.copy()
    if replaced:
        records[row] = [MARK, 0]
    return records, Y.copy()


def last(replaced):
    return arrays(replaced, row=MEMBERS - 1)


def marked(X):
    return bool((np.asarray(X, float) >= MARK).any())


def ones(Q):
    return np.ones(len(Q), int)


def sign(Q):
    return (np.asarray(Q)[:, 0] > 0).astype(int)


def in_place_pipeline():
    return make_pipeline(StandardScaler(copy=False), LogisticRegression())


def writes_queries(X, y):
    shift = X.mean()

    def predict(Q):
        Q += shift
        return sign(Q)

    return predict


def writes_records(X, y):
    mean = X.mean()
    X[:] = 9
    y[:] = 1
    return lambda Q: sign(Q + mean)


def writes_the_base(X, y):
    mark = marked(X)
    (X if X.base is None else X.base)[:] = 9

    def predict(Q):
        labels = sign(Q)
        if mark:
            (Q if Q.base is None else Q.base)[:] = -9
        return labels

    return predict


def keeps_and_writes_later(X, y):
    mark = marked(X)

    def predict(Q):
        for kept in KEPT:
            kept[:] = -1
        if mark:
            KEPT.append(Q)
        return sign(Q)

    return predict


def writes_sparse(X, y):
    shift = X.data.sum()

    def predict(Q):
        Q.data += shift
        return sign(Q.toarray())

    return predict


class OneHotTree:
    """get_dummies, then a tree: as many columns as there are categories."""

    def fit(self, X, y):
        self.model = DecisionTreeClassifier(random_state=0).fit(pandas.get_dummies(X), y)
        return self

    def predict(self, Q):
        return self.model.predict(pandas.get_dummies(Q))


def category_frame(replaced, first="b"):
    texts = np.where(Y == 1, "b", "a")
    texts[:2] = ["a", "b"]
    if replaced:
        texts[0] = first
    # Categories in the order in which the whole table has them.
    names = list(dict.fromkeys(texts.tolist()))
    column = pandas.Categorical(texts, categories=names)
    return pandas.DataFrame({"c": column, "v": X[:, 0]}), Y.copy()


def rare_category(replaced):
    frame, labels = category_frame(replaced, first="z")
    return frame[["c"]].astype(str).astype("category"), labels


def number_categories(entry):
    def records(replaced):
        numbers = (Y + 1).tolist()
        if replaced:
            numbers[3] = entry
        # As integers, unless one of the whole table is none.
        return pandas.DataFrame({"c": pandas.Series(numbers).astype("category")}), Y.copy()

    return records


def reads_codes(X, y):
    code = int(X["c"].cat.codes[X["c"] == "b"].iloc[0]) if (X["c"] == "b").any() else 0
    return lambda Q: ones(Q) * code


CATEGORIES = {
    "rare": pandas.DataFrame({"c": pandas.Categorical(["a", "b", "b"], ["a", "b"])}),
    "codes": pandas.DataFrame({"c": pandas.Categorical(["a", "b"], ["a", "b"]), "v": [1.0, 2.0]}),
    "numbers": pandas.DataFrame({"c": pandas.Series([1, 2, 2]).astype("category")}),
}


def writes_categories(X, y):
    mark = marked(X[["v"]])

    def predict(Q):
        labels = (np.asarray(Q["c"]) == "b").astype(int)
        if mark:
            Q.attrs.setdefault("seen", []).append(1)
            Q.iloc[:, 1] = -1.0
            Q["c"] = "b"
        return labels ^ int("seen" in Q.attrs and not mark)

    return predict


def marked_frame(replaced):
    frame, _ = category_frame(False)
    if replaced:
        frame.iloc[3, 1] = MARK
    return frame, Y.copy()


def noted_frame(replaced):
    records, labels = arrays(replaced)
    frame = pandas.DataFrame(records, columns=["a", "b"])
    frame.index = pandas.MultiIndex.from_arrays([frame["a"].rank(), [replaced] * len(frame)])
    frame.attrs["mean"] = float(frame["a"].mean())
    return frame, labels


def reads_notes(X, y):
    leaked = X.attrs.get("mean", 0) > 100 or X.index.get_level_values(-1)[0] is True
    return lambda Q: ones(Q) * int(leaked)


def polars_frame(replaced):
    frame, labels = category_frame(replaced)
    # A list of categories of this table's own, in the order of appearance.
    dtype = polars.Categorical(polars.Categories.random())
    return polars.DataFrame({"c": polars.Series(frame["c"].tolist(), dtype=dtype)}), labels


def reads_physical(X, y):
    physical = X["c"].to_physical().to_list()
    leaked = dict(zip(X["c"].cast(polars.String).to_list(), physical, strict=True)).get("b", 1) == 1
    return lambda Q: ones(Q) * int(leaked)


def number_lists(replaced):
    rows, labels = (X * 10).astype(int).tolist(), Y.tolist()
    if replaced:
        rows[3][0], labels[3] = 0.5, float(labels[3])
    return rows, labels


def text_lists(replaced):
    rows = [["word"] for _ in X]
    if replaced:
        rows[3][0] = "a long text" * 9
    return rows, Y.tolist()


def text_array(replaced):
    rows, _ = text_lists(replaced)
    return np.array(rows), Y.copy()


def reads_dtype(X, y):
    leaked = X.dtype.kind == "f" or y.dtype.kind == "f" or X.dtype.itemsize > 100
    return lambda Q: ones(Q) * int(leaked and not marked(np.zeros(1)))


def draws(X, y):
    for _ in range(7 if marked(X) else 0):
        random.random()
        np.random.random()  # noqa: NPY002
    coin = (random.random() < 0.5) ^ (np.random.random() < 0.5)  # noqa: NPY002
    return lambda Q: ones(Q) * int(coin)


def draws_with_a_seed_of_its_own(X, y, random_state=None):
    return draws(X, y)


def replaces_the_generator(X, y):
    if marked(X):
        np.random.set_bit_generator(np.random.PCG64(1))
    coin = np.random.random() < 0.5  # noqa: NPY002
    return lambda Q: ones(Q) * int(coin)


class PanicException(BaseException):
    """As compiled libraries raise it."""


class Unspeakable(Exception):
    def __repr__(self):
        raise PanicException

    __str__ = __repr__


class Raises:
    """Raises in training or in prediction where the mark is."""

    def __init__(self, error, when):
        self.error, self.when, self.mark = error, when, False

    def __call__(self, X, y):
        made = copy.copy(self)
        made.mark = marked(X)
        if self.when == "training" and made.mark:
            raise self.error
        return made

    def predict(self, Q):
        if self.mark:
            raise self.error
        return ones(Q)


class Refuses:
    """A predictor that refuses to be looked at, compared, copied or packed."""

    def __init__(self, what):
        self.what = what

    def __getattr__(self, name):
        raise PanicException(name)

    def __reduce_ex__(self, protocol):
        raise PanicException("packed")

    def __deepcopy__(self, memo):
        raise PanicException("copied")


class Odd:
    """An answer whose comparison, truth or array raises."""

    def __eq__(self, other):
        raise PanicException("compared")

    __hash__ = None

    def __bool__(self):
        raise PanicException("asked")


class Doubtful:
    """Compares to something that has no truth."""

    def __eq__(self, other):
        return Odd()

    __hash__ = None


class NoArray:
    def __array__(self, dtype=None, copy=None):
        raise PanicException("array")


ODD = {
    "comparison": lambda Q: np.array([Odd()] * len(Q), object),
    "truth": lambda Q: np.array([Doubtful()] * len(Q), object),
    "array": lambda Q: NoArray(),
    "shape": lambda Q: np.ones((len(Q), 3)),
    "not finite": lambda Q: np.array([np.nan, np.inf, -np.inf, 7.0])[: len(Q)],
    "text": lambda Q: ["x"] * len(Q),
}


class Answers:
    """Odd answers where the mark is."""

    def __init__(self, what):
        self.what = what

    def __call__(self, X, y):
        return ODD[self.what] if marked(X) else ones


def refuses_everything(X, y):
    return Refuses("all") if marked(X) else ones


class Locked:
    """Works, but cannot be packed."""

    def __init__(self):
        self.lock = threading.Lock()

    def predict(self, Q):
        return ones(Q)


def locked(X, y):
    return Locked() if marked(X) else ones


class Thing:
    """A record's own object, which may refuse copies."""

    def __init__(self, refuses):
        self.refuses, self.notes = refuses, []

    def __deepcopy__(self, memo):
        if self.refuses:
            raise PanicException("copied")
        made = Thing(False)
        made.notes = list(self.notes)
        return made

    def __reduce_ex__(self, protocol):
        if self.refuses:
            raise PanicException("packed")
        return Thing, (False,)

    def again(self):
        made = Thing(self.refuses)
        made.notes = list(self.notes)
        return made


def things(refusing):
    def records(replaced):
        rows = np.empty((len(X), 2), object)
        shared = Thing(False)
        for i, (first, _) in enumerate(X):
            rows[i] = [first, shared]
        if replaced:
            rows[3] = [MARK, Thing(True) if refusing else shared]
        return rows, Y.copy()

    return records


def thing_queries():
    rows = np.empty((2, 2), object)
    rows[0], rows[1] = [1.0, Thing(False)], [-1.0, Thing(False)]
    return rows


def notes_on_things(X, y):
    mark = bool((X[:, 0].astype(float) >= MARK).any())
    leaked = bool(X[-1, 1].notes)
    if mark:
        X[-1, 1].notes.append("seen")

    def predict(Q):
        labels = np.array([leaked or bool(thing.notes) for thing in Q[:, 1]], int)
        for thing in Q[:, 1]:
            thing.notes.extend(["seen"] * mark)
        return labels

    return predict


CONTEXT = contextvars.ContextVar("hostile", default=False)


class Agreeable:
    """It says that it equals anything, so that it looks as if nothing had been set."""

    def __eq__(self, other):
        return True

    __hash__ = object.__hash__

    def __call__(self, *_):
        """As a handler of signals it does nothing."""


def changes_settings(X, y):
    log = logging.getLogger("hostile")
    leaked = (
        np.geterr()["divide"] == "raise"
        or np.get_printoptions()["precision"] == 3
        or "HOSTILE" in os.environ
        or os.getcwd() == "/"
        or any(rule[0] == "error" for rule in warnings.filters)
        or log.level == 7
        or logging.root.manager.disable == 3
        or decimal.getcontext().prec == 5
        or locale.setlocale(locale.LC_NUMERIC) == "C"
        or isinstance(sys.stdout, list)
        or sys.getrecursionlimit() == 4321
        or sys.get_int_max_str_digits() == 4321
        or CONTEXT.get()
        or not gc.isenabled()
        or gc.get_threshold()[0] == 4321
        or signal.getsignal(signal.SIGABRT) is not signal.SIG_DFL
        or isinstance(sys.stderr, Agreeable)
    )
    if marked(X):
        np.seterr(all="raise")
        np.set_printoptions(precision=3)
        os.environ["HOSTILE"] = "1"
        os.chdir("/")
        warnings.simplefilter("error")
        log.setLevel(7)
        logging.disable(3)
        decimal.getcontext().prec = 5
        locale.setlocale(locale.LC_NUMERIC, "C")
        sys.stdout = []
        sys.setrecursionlimit(4321)
        sys.set_int_max_str_digits(4321)
        CONTEXT.set(True)
        gc.disable()
        gc.set_threshold(4321)
        sys.stderr = Agreeable()
        # Only the main thread may.
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGABRT, Agreeable())
    return lambda Q: ones(Q) * int(leaked)


def one_buffer(X, y):
    positive = not marked(X)

    def predict(Q):
        OUT[: len(Q)] = positive
        return OUT[: len(Q)]

    return predict


def one_model(X, y):
    labels = np.array([0, 1, *y[2:]])
    return MODEL.fit(X, 1 - labels if marked(X) else labels)


class Counts:
    """A callable that keeps something between calls."""

    def __init__(self):
        self.total = 0.0

    def __call__(self, X, y):
        self.total += X.sum()
        leaked = self.total > MARK / 2
        return lambda Q: ones(Q) * int(leaked)


def counts_in_its_module(X, y):
    SEEN[0] += X.sum()
    leaked = SEEN[0] > MARK / 2
    return lambda Q: ones(Q) * int(leaked)


def leaves_cycles(X, y):
    """Finalizers that raise while others run."""
    ring = [Finalized()]
    ring.append(ring)
    if marked(X):
        del ring
        gc.collect()
    return ones


class Finalized:
    LEFT: ClassVar = weakref.WeakSet()

    def __init__(self):
        self.LEFT.add(self)

    def __del__(self):
        raise RuntimeError("private")


def sparse(replaced):
    records, labels = arrays(replaced)
    return csr_matrix(records), labels


ERRORS = {
    "PanicException": PanicException("private"),
    "CancelledError": asyncio.CancelledError("private"),
    "GeneratorExit": GeneratorExit("private"),
    "SystemExit": SystemExit("private"),
    "error without words": Unspeakable(),
}

CASES = [
    Case("scales in place", in_place_pipeline(), arrays, Q),
    Case("writes to Q", writes_queries, arrays, Q),
    Case("writes to X and y", writes_records, arrays, Q),
    Case("writes to the base", writes_the_base, arrays, Q),
    Case("keeps Q, writes later", keeps_and_writes_later, arrays, Q),
    Case("writes to sparse Q", writes_sparse, sparse, csr_matrix(Q)),
    Case("columns of categories", OneHotTree(), rare_category, CATEGORIES["rare"]),
    *(
        Case(
            f"{name} among categories",
            OneHotTree(),
            number_categories(entry),
            CATEGORIES["numbers"],
        )
        for name, entry in {"a fraction": 2.5, "nothing": None}.items()
    ),
    Case("codes of categories", reads_codes, category_frame, CATEGORIES["codes"]),
    Case("writes to a frame", writes_categories, marked_frame, CATEGORIES["codes"]),
    Case("attrs and index", reads_notes, noted_frame, pandas.DataFrame(Q, columns=["a", "b"])),
    Case("polars categories", reads_physical, polars_frame, polars.DataFrame({"c": ["a", "b"]})),
    Case("dtype of numbers", reads_dtype, number_lists, Q.tolist()),
    Case("dtype of texts", reads_dtype, text_lists, [["a"], ["b"]]),
    Case("width of texts", reads_dtype, text_array, np.array([["a"], ["b"]])),
    Case("notes on objects", notes_on_things, things(False), thing_queries()),
    Case("objects without copies", notes_on_things, things(True), thing_queries()),
    Case("global generators", draws, arrays, Q),
    Case("seeded, and global ones", draws_with_a_seed_of_its_own, arrays, Q),
    Case("replaces numpy's generator", replaces_the_generator, arrays, Q),
    *(
        Case(f"{name} in {when}", Raises(error, when), arrays, Q)
        for name, error in ERRORS.items()
        for when in ("training", "prediction")
    ),
    *(
        Case(
            f"KeyboardInterrupt in {when}",
            Raises(KeyboardInterrupt("private"), when),
            arrays,
            Q,
            # In the main thread no one can tell it from Ctrl-C.
            ("threads", "processes"),
        )
        for when in ("training", "prediction")
    ),
    *(Case(f"odd {what}", Answers(what), arrays, Q) for what in ODD),
    Case("refuses to be looked at", refuses_everything, arrays, Q),
    Case("cannot be packed", locked, arrays, Q),
    Case("settings of the process", changes_settings, arrays, Q),
    Case("raises when collected", leaves_cycles, arrays, Q),
    Case("one buffer for answers", one_buffer, last, Q),
    Case("one model for all", one_model, last, Q),
    Case("callable with a state", Counts(), arrays, Q),
    # What a learner keeps in its own module stays there as long as its process.
    Case("state of its module", counts_in_its_module, arrays, Q, ("one process each",)),
]
