"""Several rows of one person: a fixed number of them is kept, and their price is shared out."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import methodcaller
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core import Features
from .._support.containers import MISSING_KINDS, Entries, to_frame
from .._support.types import Integers
from .._support.validate import (
    array,
    entries_of,
    nonnegative_int,
    number,
    positive,
    positive_int,
    refuse,
)
from ..exceptions import ParameterError, ShapeError
from ..gf2 import BitMatrix, pack_rows
from ..record import PrivacyRecord
from .columns import Column, NumberColumn
from .table import Table

# Rows and persons are numbers below 2**31, a pair of which is one integer.
_MOST_ROWS, _HALF = 1 << 31, 32
_LOW = (1 << _HALF) - 1
# The relation of persons that follows from each relation of rows.
_OF_PERSONS = {"replace_one": "replace_person", "add_remove": "add_remove_person"}
# Far more than the rounding of a delta.
_STRETCH = 1 - 1e-9
# The hash of the one person who has all rows without an id.
_NOBODY = zlib.crc32(b"nan")
_encode = methodcaller("encode", "utf-8", "surrogatepass")

Words = NDArray[np.uint64]


def bound_rows(ids: ArrayLike, rows: int = 1, *, key: int = 0) -> NDArray[np.bool_]:
    """Chooses at most so many rows of every person, by a hash.

    The rows of one person are those with one id. Which of them are kept depends on the id, the key
    and the number of that person's rows, and not on what other rows hold or to whom they belong. A
    change of one person's rows therefore changes at most `rows` of the rows that are kept, and
    leaves those of all others as they are. Where a person has more rows than are kept, each of them
    has about the same chance.

    Args:
        ids: Whose row it is, for each of n rows: integers, real numbers or texts, shape (n,), or a
            column of a frame. Entries of a list and of dtype object are compared as texts. Rows
            without an id (NaN, None, NA) count as those of one person; a text such as "None" is an
            id. The dtype is public, and integers of nullable columns are compared exactly.
        rows: The most rows to keep of a person, at least 1; public.
        key: A public integer of at least 0. Another key keeps other rows. It needs no secrecy, but
            must not be chosen by a look at the records.

    Returns:
        For each row whether it is kept, a bool array of shape (n,).

    Raises:
        ShapeError: ids is no vector.
        ParameterError: ids has another dtype, or an argument is out of range.

    Guarantee:
        Nothing is released. For every key, what is (epsilon, delta)-DP for each row of the kept
        ones is (`rows` epsilon, `part`)-DP for each person, where `part` is delta
        (exp(`rows` epsilon) - 1) / (exp(epsilon) - 1). Under "add_remove" that is for all rows of a
        person together, added or removed. Under "replace_one" it is for whatever a person's rows
        hold, while ids and the number of rows of each person are public. No value of an id causes
        an error.

    Cost:
        Sorting the ids, or a lookup for each object.

    Source:
        Group privacy: Dwork and Roth 2014, Theorem 2.2; Vadhan 2017, Lemma 2.2.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.data import bound_rows
        >>> visits = np.array(["ann", "bob", "ann", "ann", "eve"])
        >>> kept = bound_rows(visits, rows=2)
        >>> sorted(visits[kept].tolist())
        ['ann', 'ann', 'bob', 'eve']
    """
    most, salt = positive_int("rows", rows, _MOST_ROWS), nonnegative_int("key", key)
    persons, hashes = _number_persons(read_ids(ids))
    return _choose(persons, hashes, most, salt)


def read_ids(ids: ArrayLike, kinds: str = "iufSUO") -> Entries:
    """Whose row it is, for each row; entries of a list are objects, each of its own kind.

    Raises: ShapeError unless it is a vector, ParameterError unless its dtype is one of these kinds.
    """
    entries = entries_of("ids", ids)
    if entries.values.ndim != 1:
        raise ShapeError(f"ids has {entries.values.ndim} dimensions, but it must have one")
    if isinstance(ids, list | tuple):
        # One entry decides what numpy makes of a list, such as floats of integers.
        values = np.empty(len(ids), object)
        values[:] = [_whole(name) for name in ids]
        return Entries(values)
    if entries.values.dtype.kind not in kinds:
        numbers = "integers, real numbers" if "f" in kinds else "integers"
        rule = f"it must hold {numbers} or texts"
        raise ParameterError(f"ids has dtype {entries.values.dtype}, but {rule}")
    return entries


def _whole(name: Any) -> Any:
    """A whole float as the integer that it is."""
    return int(name) if isinstance(name, float) and name.is_integer() else name


def _number_persons(ids: Entries) -> tuple[Integers, Words]:
    """The number of each row's person, and a hash of each person's id."""
    if ids.missing is None or not ids.missing.any():
        return _number_values(ids.values)
    present, hashes = _number_values(ids.values[~ids.missing])
    persons = np.full(len(ids.values), len(hashes), np.int64)
    persons[~ids.missing] = present
    return persons, np.append(hashes, np.uint64(_NOBODY))


def _number_values(ids: NDArray[Any]) -> tuple[Integers, Words]:
    if ids.dtype.kind in "iuf":
        if ids.dtype.kind == "f":
            with np.errstate(all="ignore"):
                ids = ids.astype(np.float64) + 0.0
        else:
            ids = ids.astype(np.int64 if ids.dtype.kind == "i" else np.uint64)
            least, most = (int(ids.min()), int(ids.max())) if ids.size else (0, 0)
            if most - least < 4 * len(ids):  # Numbers that are close together need no sorting.
                names = np.arange(most - least + 1, dtype=np.uint64) + np.uint64(least % (1 << 64))
                return (ids - ids.dtype.type(least)).astype(np.int64), names
        names, persons = np.unique(ids, return_inverse=True)
        return persons.astype(np.int64), _hash_numbers(names)
    grouped = None if ids.dtype.kind == "O" else _group_texts(ids)
    if grouped is not None:
        persons, different = grouped[0], grouped[1].tolist()
    else:
        texts = write_texts(ids.tolist()) if ids.dtype.kind == "O" else ids.tolist()
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        persons = np.fromiter(map(places.__getitem__, texts), np.int64, len(texts))
        different = list(places)
    return persons, np.fromiter(map(_hash_text, different), np.uint64, len(different))


def _hash_text(text: str | bytes | None) -> int:
    if text is None:
        return _NOBODY
    return zlib.crc32(text if isinstance(text, bytes) else _encode(text))


def _group_texts(ids: NDArray[Any]) -> tuple[Integers, NDArray[Any]] | None:
    """The number of each text's group and the texts of the groups; None if two hashes collide."""
    size = ids.dtype.itemsize
    if not ids.size or not size:
        return None
    letters = np.uint32 if ids.dtype.kind == "U" else np.uint8
    words = np.zeros(len(ids), np.uint64)
    columns: NDArray[Any] = np.ascontiguousarray(ids).view(letters).reshape(len(ids), -1).T
    for column in columns:
        words ^= column
        words *= np.uint64(0x9E3779B97F4A7C15)
        words ^= words >> np.uint64(32)
    order = np.argsort(words)
    words, texts = words[order], ids[order]
    is_first = np.ones(len(ids), bool)
    is_first[1:] = words[1:] != words[:-1]
    if (texts[1:] != texts[:-1])[~is_first[1:]].any():
        return None
    persons = np.empty(len(ids), np.int64)
    persons[order] = np.cumsum(is_first) - 1
    return persons, texts[is_first]


def _hash_numbers(names: NDArray[Any]) -> Words:
    """Words that are the same for the same integer, whatever its type."""
    if names.dtype.kind != "f":
        return names.astype(np.uint64)
    # One NaN stands for all of them.
    words = np.where(np.isnan(names), np.nan, names).view(np.uint64)
    is_whole = (np.rint(names) == names) & (np.abs(names) < 2.0**63)
    words[is_whole] = names[is_whole].astype(np.int64).astype(np.uint64)
    return words


def write_texts(values: list[Any]) -> list[str | None]:
    """What each value is as a text, None for a missing one; none causes an error.

    A text is never missing, whatever it says.
    """
    return [value if type(value) is str else _write_any(value) for value in values]


def _write_any(value: Any) -> str | None:
    if value is None or type(value).__name__ in MISSING_KINDS or _differs_from_itself(value):
        return None
    try:
        return str(value)
    except Exception:  # Such as that of an integer of thousands of digits.
        return type(value).__name__


def _differs_from_itself(value: Any) -> bool:
    """Whether it is NaN, or a time that is none."""
    try:
        return bool(value != value)
    except Exception:
        return False


def _choose(persons: Integers, hashes: Words, most: int, key: int) -> NDArray[np.bool_]:
    """Whether each row is among the `most` rows of its person with the least priorities."""
    keep: NDArray[np.bool_] = np.bincount(persons, minlength=1)[persons] <= most
    crowded = np.flatnonzero(~keep)
    if not crowded.size:
        return keep
    # Rows by person, and in their order: a person's number above that of the row.
    ordered = np.sort(persons[crowded] << _HALF | crowded)
    owners = ordered >> _HALF
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    # The place of each row among those of its person, which no other person's rows change.
    place = np.arange(len(owners)) - np.repeat(starts, np.diff(starts, append=len(owners)))
    salted = _scatter(hashes ^ _scatter(np.array(key, np.uint64)))[owners]
    # No two rows of one person have the same priority.
    best = np.argsort(owners << _HALF | _shuffle(place, salted))[place < most]
    keep[ordered[best] & _LOW] = True
    return keep


def _scatter(words: Words) -> Words:
    """A bijection of 64-bit words that looks random: the steps of SplitMix64."""
    with np.errstate(over="ignore"):
        words = words + np.uint64(0x9E3779B97F4A7C15)
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    scattered: Words = words ^ (words >> np.uint64(31))
    return scattered


def _shuffle(places: Integers, keys: Words) -> Integers:
    """Numbers below 2**32 that look random; for one key a bijection of places below 2**32.

    It is two rounds of the last steps of MurmurHash3, each with half of the key.
    """
    words = places.astype(np.uint32)
    for half in (keys, keys >> np.uint64(_HALF)):
        words ^= half.astype(np.uint32)
        for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
            words ^= words >> np.uint32(shift)
            words *= np.uint32(factor)
        words ^= words >> np.uint32(16)
    return words.astype(np.int64)


class Share(NamedTuple):
    """What each row of a person may cost."""

    epsilon: float
    delta: float


@dataclass(frozen=True, eq=False)
class Persons:
    """Who owns the rows of one call.

    Attributes:
        keep: Which rows are used; None where no one said who owns them, and a row is the unit.
        rows: The most rows of one person among them.
        owners: Whose rows those are that are used, as numbers of these persons.
    """

    keep: NDArray[np.bool_] | None = None
    rows: int = 1
    owners: NDArray[Any] | None = None

    @property
    def options(self) -> dict[str, Any]:
        """The arguments by which a learner is told who owns the rows that are used."""
        return {} if self.keep is None else {"ids": self.owners, "rows_per_person": self.rows}

    @property
    def keeps_all(self) -> bool:
        """Whether every row is used."""
        return self.keep is None or bool(self.keep.all())

    def count_rows(self, n: int) -> int:
        """How many rows there are, used or not; n where a row is the unit."""
        return n if self.keep is None else len(self.keep)

    def select(self, values: Any) -> Any:
        """The rows that are used, of an array, a frame or a table."""
        if self.keep is None or self.keeps_all:
            return values
        if isinstance(values, BitMatrix):
            packed, columns = pack_rows(values)
            return BitMatrix.from_packed(packed[self.keep], columns)
        if isinstance(values, Features):
            return values._take(np.flatnonzero(self.keep))
        if isinstance(values, Table):
            return values.select(self.keep)
        values = to_frame("values", values)
        if isinstance(values, list | tuple) or not hasattr(type(values), "__getitem__"):
            return array("values", values)[self.keep]
        # Frames of polars and pyarrow are filtered; pandas means something else by that.
        if hasattr(values, "filter") and not hasattr(values, "loc"):
            return values.filter(self.keep)
        return values[self.keep]

    def share(self, epsilon: float, delta: float = 0.0) -> Share:
        """What any mechanism may cost each row, if a person is to cost (epsilon, delta)."""
        return share_of_row(epsilon, delta, self.rows)

    def gaussian_share(self, epsilon: float, delta: float) -> Share:
        """What noise by the curve of the Gaussian mechanism may cost each row, likewise."""
        return gaussian_share_of_row(epsilon, delta, self.rows)

    def count_groups(self, n: int) -> int:
        """How many records, each drawn alone, protect as well as the n rows of these persons.

        A draw that hits each of n rows alike hits those of one person with a probability of at most
        rows / n.
        """
        return max(n // self.rows, 1)

    def state(self, record: PrivacyRecord) -> PrivacyRecord:
        """The record of a release whose epsilon and delta are those of a person."""
        if self.keep is None:
            return record
        plural = "s" * (self.rows > 1)
        return dataclasses.replace(
            record,
            mechanism=f"{record.mechanism}, at most {self.rows} row{plural} a person",
            neighbors=_OF_PERSONS[record.neighbors],  # type: ignore[arg-type]
        )


def read_persons(ids: ArrayLike | None, rows_per_person: int, n: int) -> Persons:
    """Who owns each of n rows.

    Raises:
        ShapeError: ids has another shape than (n,).
        ParameterError: ids has no dtype of ids, rows_per_person is no integer of at least 1, or it
            comes without ids.
    """
    most = check_rows(rows_per_person)
    if ids is None:
        if most > 1:
            refuse("rows_per_person", most, "ids must say whose row each one is")
        return Persons()
    read = read_ids(ids)
    if read.values.shape != (n,):
        shape = f"ids has shape {read.values.shape}"
        raise ShapeError(f"{shape}, but it must be ({n},), as there are rows")
    return _bound(read, most)


def _bound(ids: Entries, most: int) -> Persons:
    owners, hashes = _number_persons(ids)
    keep = _choose(owners, hashes, most, 0)
    return Persons(keep, most, owners[keep])


class PartOwners(NamedTuple):
    """Whose rows the rows of a part are.

    Attributes:
        columns: The columns of ids of its blocks.
        digest: A digest of the ids in their order.
    """

    columns: list[Column]
    digest: bytes

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(column.rows for column in self.columns)


def read_owners(columns: Iterable[Column]) -> PartOwners:
    """Whose rows those of a part are, of the columns of ids of its blocks."""
    kept, digest = [], hashlib.sha256()
    for column in columns:
        kept.append(column)
        digest.update(mark_ids(column))
    return PartOwners(kept, digest.digest())


def mark_ids(column: Column) -> bytes:
    """Eight bytes for each row of a column of ids, by which two readings are compared."""
    if isinstance(column, NumberColumn):
        words = column.values.astype(np.float64 if column.values.dtype.kind == "f" else np.int64)
        if column.missing is not None:
            words[column.missing] = _NOBODY
    else:
        hashes = [zlib.crc32(_encode(text)) for text in column.texts]
        words = np.array(hashes, np.int64)[column.codes]
    return bytes(words.tobytes())


def bound_parts(parts: Sequence[PartOwners], most: int) -> tuple[Persons, list[NDArray[np.bool_]]]:
    """Who owns the rows of all parts, and which of each part are used.

    The choice is that of bound_rows for one array of all ids.
    """
    columns = [column for part in parts for column in part.columns if column.rows]
    # That there are no persons must not show where their number is private.
    nobody = Entries(np.zeros(0, str), np.zeros(0, bool))
    persons = _bound(_join_ids(columns) if columns else nobody, most)
    assert persons.keep is not None
    ends = np.cumsum([part.rows for part in parts])
    return persons, np.split(persons.keep, ends[:-1])


def _join_ids(columns: list[Column]) -> Entries:
    """The ids of several columns, all of them numbers or all of them texts."""
    numbers = [column for column in columns if isinstance(column, NumberColumn)]
    if not numbers:
        texts = np.concatenate([np.array(part.texts, str)[part.codes] for part in columns])
        return Entries(texts, texts == "")
    if len(numbers) < len(columns):
        rule = "all must hold numbers, or all texts"
        raise ParameterError(f"ids are numbers in some parts and texts in others, but {rule}")
    values = np.concatenate([column.values for column in numbers])
    missing = [
        np.zeros(column.rows, bool) if column.missing is None else column.missing
        for column in numbers
    ]
    plain = values.astype(np.int64) if values.dtype == bool else values
    return Entries(plain, np.concatenate(missing))


def check_rows(rows_per_person: int) -> int:
    """The number as an int; ParameterError unless it is at least 1."""
    return positive_int("rows_per_person", rows_per_person, _MOST_ROWS)


def share_of_row(epsilon: float, delta: float, rows: int) -> Share:
    """The (epsilon, delta) for each row whose group privacy for `rows` rows is no more than asked.

    Group privacy of k rows is (k epsilon, delta (e^(k epsilon) - 1) / (e^epsilon - 1)).
    """
    if rows == 1 or number("epsilon", epsilon) == math.inf:
        return Share(epsilon, delta)
    row_epsilon = _divide(epsilon, rows)
    # (e^a - 1) / (e^(k a) - 1), which does not overflow.
    part = math.exp(row_epsilon - epsilon) * math.expm1(-row_epsilon) / math.expm1(-epsilon)
    return _check(Share(row_epsilon, delta * part * _STRETCH), delta, rows)


def gaussian_share_of_row(epsilon: float, delta: float, rows: int) -> Share:
    """The same for noise calibrated by the curve of the Gaussian mechanism.

    That noise has a mu, which `rows` rows multiply by their number. Where (epsilon, delta) lies on
    the curve of mu, the share is the point at epsilon / rows on the curve of mu / rows.
    """
    if rows == 1 or number("epsilon", epsilon) == math.inf:
        return Share(epsilon, delta)

    from .. import accounting  # Whoever reads a table alone does not wait for it.

    row_epsilon = _divide(epsilon, rows)
    mu = accounting.gaussian_mu(epsilon, delta) / rows * _STRETCH
    return _check(
        Share(row_epsilon, accounting.gaussian_delta(mu, row_epsilon) * _STRETCH),
        delta,
        rows,
    )


def _check(share: Share, delta: float, rows: int) -> Share:
    if delta and not share.delta:
        refuse("delta", delta, f"it is too small for {rows:,} rows of a person")
    return share


def _divide(epsilon: float, rows: int) -> float:
    """Epsilon / rows, rounded down, also as the shortest decimals that budgets and noise read."""
    epsilon = positive("epsilon", epsilon)
    row_epsilon = epsilon / rows
    for read in (Fraction, lambda number: Fraction(repr(number))):
        while read(row_epsilon) * rows > read(epsilon):
            row_epsilon = math.nextafter(row_epsilon, 0.0)
    if not row_epsilon:
        refuse("epsilon", epsilon, f"it is too small for {rows:,} rows of a person")
    return row_epsilon
