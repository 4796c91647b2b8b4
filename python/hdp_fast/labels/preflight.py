"""Trials of a learner before anything is paid for, on public or made-up rows alone.

A member that fails votes for the smallest label in silence, since what happens to it is private.
What happens to the same learner on public rows with made-up labels is not private, and is shown.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._support.notes import note
from .._support.turns import Turn
from .._support.validate import refuse
from ..data import records
from ..exceptions import ParameterError
from .members import Chunk, Member, run_tasks, score, train, vote
from .public_facts import Facts, compare, facts_of, kind_of

Texts = tuple[str, str] | None
_TRIALS = 3
# With fewer public points than these, members are tried on made-up rows.
_FEWEST_POINTS = 4
# Number of records of a member in a trial, where the true number is private.
_USUAL_SIZE = 256
_LONGEST_FAULT = 300
# Entries of made-up columns of texts: words, or numbers that a learner may convert.
_TEXTS = (("alpha beta", "gamma delta"), ("0", "1"))
_OFF = "preflight=False leaves this trial out"


def make_rows(like: Any, size: int, texts: Texts) -> Any:
    """Make rows of numbers from 0 to 1 (0 or 1 in columns of integers) and of texts.

    Args:
        like: What check_features returned.
        size: Number of rows.
        texts: Two texts for columns of texts and of categories, so that no entry is read. None
            takes the entries of `like`, which must be public.

    Returns:
        The rows; None for dtypes whose entries cannot be made up.
    """
    rng = np.random.default_rng(2)
    facts = facts_of(like)
    if hasattr(like, "tocsr"):
        return _make_sparse(like, size, rng)
    if facts.container == "an array" or isinstance(like, np.ndarray):
        return _make_array(like, size, texts, rng)
    if not hasattr(like, "columns"):
        return _make_column(like, like.dtype, size, texts, rng)
    columns = [like.iloc[:, i] for i in range(like.shape[1])] if hasattr(like, "iloc") else like
    made = [_make_column(column, column.dtype, size, texts, rng) for column in columns]
    if not made or any(column is None for column in made):
        return None
    return _join_columns(like, made)


def plainer_rows(rows: Any) -> tuple[str, Any] | None:
    """Turn rows into a plain array of two dimensions.

    Returns:
        What the user should do, in words, and the array. None if the rows are such an array
        already, or hold anything but numbers.
    """
    if hasattr(rows, "tocsr"):
        return "take X.toarray() and Q.toarray(), or another learner", rows.toarray()
    if len(rows.shape) != 1 or kind_of(rows.dtype) != "number":
        return None
    values = np.asarray(rows)
    return "give each record a row, as X.reshape(-1, 1) does, and each point", values[:, None]


def _make_sparse(like: Any, size: int, rng: np.random.Generator) -> Any:
    if kind_of(like.dtype) != "number":
        return None
    sparse = sys.modules["scipy.sparse"]
    kind = sparse.csr_matrix if sparse.isspmatrix(like) else sparse.csr_array
    return kind(rng.integers(0, 2, (size, *like.shape[1:])).astype(like.dtype))


def _make_array(like: NDArray[Any], size: int, texts: Texts, rng: np.random.Generator) -> Any:
    shape = (size, *like.shape[1:])
    if like.dtype.kind == "O":
        # The objects of an array may be of any type.
        return None if texts else records.take_rows(like, np.resize(np.arange(len(like)), size))
    if kind_of(like.dtype) != "number":
        return None
    return _make_numbers(shape, like.dtype.kind, rng).astype(like.dtype)


def _make_numbers(shape: tuple[int, ...], kind: str, rng: np.random.Generator) -> NDArray[Any]:
    return rng.random(shape) if kind == "f" else rng.integers(0, 2, shape)


def _make_column(column: Any, dtype: Any, size: int, texts: Texts, rng: np.random.Generator) -> Any:
    """Make a column of a data frame, of pandas or polars."""
    kind = kind_of(dtype)
    if kind == "number":
        return _make_number_column(column, dtype, size, rng)
    if kind not in ("text", "any"):
        return None
    if texts is None:
        rows = rng.permutation(np.resize(np.arange(len(column)), size))
        return records.take_rows(column, rows)
    values = [texts[code] for code in rng.integers(0, 2, size)]
    if hasattr(column, "iloc"):
        return _make_text_column(dtype, values)
    polars = sys.modules["polars"]
    return polars.Series(column.name, values, dtype=polars.String)


def _make_number_column(column: Any, dtype: Any, size: int, rng: np.random.Generator) -> Any:
    if hasattr(column, "iloc"):
        floats = "float" in str(dtype).lower() or "double" in str(dtype)
        values = _make_numbers((size,), "f" if floats else "i", rng)
        return sys.modules["pandas"].Series(values).astype(dtype)
    values = _make_numbers((size,), "f" if dtype.is_float() else "i", rng)
    return sys.modules["polars"].Series(column.name, values).cast(dtype)


def _make_text_column(dtype: Any, values: list[str]) -> Any:
    pandas = sys.modules["pandas"]
    if not isinstance(dtype, pandas.CategoricalDtype):
        return pandas.Series(values, dtype=dtype)
    if kind_of(dtype.categories.dtype) == "number":
        # Which categories occur is private, so that the values are made up, too.
        return pandas.Series(np.array([len(text) % 2 for text in values], float)).astype("category")
    return pandas.Series(values, dtype=object).astype("category")


def _join_columns(like: Any, columns: list[Any]) -> Any:
    if not hasattr(like, "iloc"):
        return sys.modules["polars"].DataFrame(columns)
    pandas = sys.modules["pandas"]
    made = pandas.concat([column.reset_index(drop=True) for column in columns], axis=1)
    made.columns = like.columns
    return made


@dataclass
class Preflight:
    """What is public about members, and the trials that were made with it.

    Attributes:
        learner: The learner of the caller. None for a labeler that was loaded, whose points are
            compared with X alone.
        classes: The labels that members vote for; empty where they score.
        targets: Different labels that stand for those of the records in a trial.
        facts: Facts of X; None before fit.
        size: Number of records of each member; None if it is private.
    """

    learner: Any
    classes: NDArray[Any]
    targets: NDArray[Any]
    facts: Facts | None
    size: int | None
    _trained: list[Member] = field(default_factory=list)

    def check(self, Q: Any) -> None:
        """Compare points with X, and ask members that were trained on points for all of them.

        Raises:
            ParameterError: They are of another kind than X, or most members fail.
        """
        if self.facts is not None:
            compare(self.facts, facts_of(Q), "Q")
        if self.learner is None or not records.count_rows(Q):
            return
        if self._trained and not any(self._ask(self._trained, Q)):
            return
        self._trained = self._try_on(Q)

    def check_container(self, X: Any) -> None:
        """Train the learner on made-up rows of X's container, dtypes and columns. No entry is read.

        Raises:
            ParameterError: It fails, and works on the same rows in a plain array.
        """
        size = self._size()
        first = ""
        for texts in _TEXTS:
            rows = make_rows(X, size, texts)
            if rows is None:
                return
            fault = self._try_made_up(rows)
            if not fault:
                break
            if plainer := plainer_rows(rows):
                advice, plain = plainer
                if not self._try_made_up(plain):
                    rule = f"it fails on {facts_of(rows).container}, as X is one ({fault})"
                    refuse("learner", self.learner, f"{rule}: {advice}; {_OFF}")
            first = first or fault
        else:
            rule = "which may be no fault of it; if members fail like that, all answers are one"
            note(f"learner fails on made-up rows like those of X ({first}), {rule} label")
            return
        if first:
            note(
                f"learner fails on texts that are no numbers ({first}), but X has a column of texts"
            )

    def _try_made_up(self, rows: Any) -> str:
        (fault,) = self._ask(self._train([rows]), rows)
        return fault

    def _size(self) -> int:
        return max(self.size or _USUAL_SIZE, 2 * len(self.targets), _FEWEST_POINTS)

    def _try_on(self, Q: Any) -> list[Member]:
        """Train members on points and ask them.

        Raises:
            ParameterError: Most of them fail.
        """
        size, rng = self._size(), np.random.default_rng(0)
        q = records.count_rows(Q)
        members = self._train(_samples(Q, size, rng))
        faults = self._ask(members, Q)
        if _most_fail(faults):
            fault = next(filter(None, faults))
            trained = [member for member in members if not member.fault]
            made = make_rows(Q, size, None) if not trained and q >= _FEWEST_POINTS else None
            if made is None or any(self._ask(self._train([made]), Q)):
                self._refuse(fault)
            note(f"learner could not be trained on public points with made-up labels ({fault})")
        elif _FEWEST_POINTS <= q < 2 * size:
            self._try_on_thirds(Q, size, rng)
        return members

    def _try_on_thirds(self, Q: Any, size: int, rng: np.random.Generator) -> None:
        """Note if members fail at what stands in few rows of Q, and so perhaps in no record."""
        thirds = np.array_split(rng.permutation(records.count_rows(Q)), 3)
        samples = [records.take_rows(Q, rng.choice(rows, size)) for rows in thirds]
        faults = self._ask(self._train(samples), Q)
        if _most_fail(faults):
            fault = next(filter(None, faults))
            rule = "members that have not seen all values of Q fail at all of it"
            note(f"{rule} ({fault}): let the learner ignore what it does not know")

    def _refuse(self, fault: str) -> None:
        cause = f"trained on some of them with made-up labels it fails ({fault})"
        rule = "members that fail vote for one label everywhere"
        if not len(self.classes):
            rule = "members that fail score 0 everywhere"
        raise ParameterError(f"learner is of no use for these points: {cause}, and {rule}; {_OFF}")

    def _train(self, samples: list[Any]) -> list[Member]:
        rng = np.random.default_rng(1)
        chunks = [
            Chunk(rows, rng.permutation(np.resize(self.targets, records.count_rows(rows))))
            for rows in samples
        ]
        turns = (Turn(seed, os.getpid()) for seed in range(len(chunks)))
        tasks = ((chunk, self.learner, turn) for chunk, turn in zip(chunks, turns, strict=True))
        return run_tasks(train, tasks, _nothing)

    def _ask(self, members: list[Member], Q: Any) -> list[str]:
        """What goes wrong with each member; an empty text where most predictions are labels."""
        task, more = (vote, [self.classes]) if len(self.classes) else (score, [])
        turn = Turn(len(members), os.getpid())
        results = run_tasks(task, ((member, Q, *more, turn) for member in members), _nothing)
        return [self._describe(fault, records.count_rows(Q)) for _, fault in results]

    def _describe(self, fault: str, size: int) -> str:
        outside = fault.removesuffix(" predictions are no label")
        if outside == fault:
            text = " ".join(fault.replace("\\n", " ").split())
            return text if len(text) <= _LONGEST_FAULT else text[: _LONGEST_FAULT - 3] + "..."
        few = 2 * int(outside) <= size
        labels = ", ".join(map(repr, self.classes[:5].tolist()))
        return "" if few else f"{outside} of {size} predictions are none of classes, {labels}"


def _samples(Q: Any, size: int, rng: np.random.Generator) -> list[Any]:
    """Rows for the members of a trial: a few of Q for each, all of Q, or made-up ones."""
    q = records.count_rows(Q)
    if q < _FEWEST_POINTS:
        made = make_rows(Q, size, None)
        rows = np.resize(np.arange(q), size)
        return [records.take_rows(Q, rows) if made is None else made]
    if size <= q // 2:
        return [records.take_rows(Q, rng.permutation(q)[:size]) for _ in range(_TRIALS)]
    rows = np.concatenate([rng.permutation(q), rng.integers(q, size=max(0, size - q))])
    return [records.take_rows(Q, rng.permutation(rows))]


def _most_fail(faults: list[str]) -> bool:
    return 2 * sum(map(bool, faults)) > len(faults)


def _nothing() -> None:
    """Stands for a bar that does not move."""
