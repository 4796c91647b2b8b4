"""What a fold leaves of private records: exact integers, which add up in any order, anywhere."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Self, TypeVar

import numpy as np

from .._support.types import Integers
from .._support.validate import instance, refuse
from ..exceptions import ParameterError
from ..gf2 import RowSpace

T = TypeVar("T")

_FORMAT, _VERSION = "hdp_fast.state", 1
_NOTICE = "PRIVATE: exact sums of records, without noise. Keep it as safe as the records."
_MOST_HEADER, _MOST_PARTS = 1 << 26, 1 << 20
# Longer settings are compared by their digests.
_LONGEST_SETTING = 80
_FEW = 8
# Tallies are merged in a vector of all places where it is no longer than so many times theirs.
_DENSE = 4
# Fewer entries of tallies than this wait for others before they are merged: 8 MB.
_FEWEST = 1 << 20
# A vector of so many places is taken for a sum of tallies even where few of them are: 64 MB.
_SHORT = 1 << 23
_DIGEST = 32


class Tally:
    """Integers at some places of a long vector that is 0 elsewhere.

    Those of parts of the records add up in any order, and never list more than all places.

    Attributes:
        places: The places in increasing order.
        values: The integer at each of them.
    """

    def __init__(self, places: Integers, values: Integers | None = None) -> None:
        """Take places in increasing order with their values; or without, places of records.

        Each record counts 1 at its place. They may come in any order, and are sorted once somebody
        asks for what is at which place: a sum of many tallies does not.
        """
        self._entries = (places, values)

    @property
    def places(self) -> Integers:
        """The places in increasing order."""
        return self._sort()[0]

    @property
    def values(self) -> Integers:
        """The integer at each of them."""
        return self._sort()[1]

    @property
    def listed(self) -> int:
        """How many entries it has in memory, of which several may be at one place."""
        return len(self._entries[0])

    @property
    def end(self) -> int:
        """The place behind all of its own."""
        places, values = self._entries
        if not len(places):
            return 0
        return int(places.max() if values is None else places[-1]) + 1

    def __iter__(self) -> Iterator[Integers]:
        """The places, and the values."""
        return iter(self._sort())

    def __reduce__(self) -> Any:
        """Leaves the order of records behind, which is no sum."""
        return Tally, self._sort()

    @classmethod
    def join(cls, tallies: Sequence[Tally], lengths: Sequence[int]) -> Self:
        """The tally of vectors of these lengths that stand one after the other."""
        starts = [0, *itertools.accumulate(lengths[:-1])]
        if any(tally._entries[1] is not None for tally in tallies):
            places = [tally.places + start for tally, start in zip(tallies, starts, strict=True)]
            return cls(np.concatenate(places), np.concatenate([tally.values for tally in tallies]))
        joined, place = np.empty(sum(tally.listed for tally in tallies), np.int64), 0
        for tally, start in zip(tallies, starts, strict=True):
            np.add(tally._entries[0], start, out=joined[place : place + tally.listed])
            place += tally.listed
        return cls(joined)

    def add_to(self, total: Integers) -> None:
        """Adds it to a vector that has all of its places."""
        places, values = self._entries
        if values is None:
            np.add.at(total, places, 1)
        else:
            total[places] += values

    def merge(self, *others: Tally) -> Tally:
        """Those of the records of all parts."""
        tallies = [self, *others]
        end = max(tally.end for tally in tallies)
        if end <= _DENSE * sum(tally.listed for tally in tallies):
            return _merge_dense(tallies, end)
        both = np.concatenate([tally.places for tally in tallies])
        places, of_each = np.unique(both, return_inverse=True)
        values = np.zeros(len(places), np.int64)
        np.add.at(values, of_each, np.concatenate([tally.values for tally in tallies]))
        return Tally(places, values)

    def _sort(self) -> tuple[Integers, Integers]:
        places, values = self._entries
        if values is None:
            places, values = np.unique(places, return_counts=True)
            self._entries = places, values
        return places, values


def _merge_dense(tallies: Sequence[Tally], end: int) -> Tally:
    """The same by a vector of all places: no sorting, and less memory where few are empty."""
    total, taken = np.zeros(end, np.int64), np.zeros(end, bool)
    for tally in tallies:
        tally.add_to(total)
        taken[tally._entries[0]] = True
    places = np.flatnonzero(taken)
    return Tally(places, total[places])


class _TallySum:
    """Tallies that are added up one after the other, in a vector once there are enough of them."""

    def __init__(self) -> None:
        self._waiting: list[Tally] = []
        self._seen, self._most = 0, _FEWEST
        self._total: Integers | None = None

    def add(self, tally: Tally) -> None:
        """Adds a tally."""
        if self._total is None:
            self._waiting.append(tally)
            self._seen += tally.listed
            self._gather()
            return
        if tally.end > len(self._total):
            # With room to spare, so that places that increase do not make a copy each time.
            longer = np.zeros(max(tally.end, len(self._total) * 5 // 4), np.int64)
            longer[: len(self._total)] = self._total
            self._total = longer
        tally.add_to(self._total)

    def sum(self) -> Tally:
        """The sum of all of them."""
        if self._total is None:
            first, *others = self._waiting
            return first.merge(*others) if others else first
        places = np.flatnonzero(self._total != 0)
        return Tally(places, self._total[places])

    def _gather(self) -> None:
        listed = sum(tally.listed for tally in self._waiting)
        end = max(tally.end for tally in self._waiting)
        # To make the vector takes as long as a pass over all entries that were added.
        dense = listed if end > _SHORT else self._seen
        if len(self._waiting) > 1 and end <= _DENSE * dense:
            self._total = np.zeros(end, np.int64)
            for tally in self._waiting:
                tally.add_to(self._total)
            self._waiting.clear()
        elif listed > self._most and len(self._waiting) > 1:
            self._waiting = [self.sum()]
            self._most = max(2 * self._waiting[0].listed, _FEWEST)


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """The exact integers of some private records, for one job.

    Jobs, such as learners.SufficientStatistics, make states by `fold` and use them up by `release`.
    States of parts of the records add up by `+`, in any order and any tree, to the bits of the
    state of all of them. Sums wrap around at `2**64`, so that no value of a record raises.

    A state is private: no noise is in it. Who has it and all records but one knows that one. Its
    text shows no number of it, and its bytes say in their first line what they are.

    Attributes:
        job: What made it, such as "learners.SufficientStatistics".
        settings: The job's public settings, as texts. Functions that no module has by name are
            compared by their code, which another version of Python may write otherwise.
        rows: The number of its records, which is as private as the sums where neighbors differ in
            it.
        sums: Arrays of int64 by name.
        tallies: Integers of long vectors by name, of which few are not 0.
        parts: The names of the parts that it holds, of those that were folded with a name.
        spaces: Spans of equations over GF(2) by name, which join where sums are added.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.data import State
        >>> from hdp_fast.learners import FeatureMap, SufficientStatistics
        >>> job = SufficientStatistics(FeatureMap.identity(1), classes=[0, 1])
        >>> states = [job.fold([[0.5]] * 10, [0, 1] * 5, part=f"day {day}") for day in (1, 2)]
        >>> states[0] + State.from_bytes(states[1].to_bytes())
        <State of learners.SufficientStatistics: private sums of 2 named parts, without noise>
    """

    job: str
    settings: Mapping[str, str]
    rows: int
    sums: Mapping[str, Integers]
    parts: frozenset[str] = field(default_factory=frozenset)
    tallies: Mapping[str, Tally] = field(default_factory=dict)
    spaces: Mapping[str, RowSpace] = field(default_factory=dict)

    def __add__(self, other: State) -> State:
        """The state of the records of both.

        Raises: ParameterError where the other is of another job or other settings, and names them,
        or where both hold a part of one name.
        """
        if not isinstance(other, State):
            return NotImplemented
        joined = self._join(other)
        tallies = {name: self.tallies[name].merge(other.tallies[name]) for name in self.tallies}
        return replace(joined, tallies=tallies)

    def _join(self, other: State) -> State:
        """The state of the records of both, but with the tallies of this one."""
        self.require(other.job, other.settings, "states must be of one job to add up")
        twice = sorted(self.parts & other.parts)
        if twice:
            raise ParameterError(f"the part {twice[0]!r} is in both states, and must count once")
        shapes = {name: values.shape for name, values in self.sums.items()}
        require_shapes(other, shapes, self.tallies, _widths_of(self))
        sums = {name: self.sums[name] + other.sums[name] for name in self.sums}
        spaces = {name: self.spaces[name] + other.spaces[name] for name in self.spaces}
        parts, rows = self.parts | other.parts, self.rows + other.rows
        return replace(self, rows=rows, sums=sums, parts=parts, spaces=spaces)

    def __radd__(self, other: Any) -> State:
        """The state itself after 0, so that `sum` adds states."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __repr__(self) -> str:
        """What it is of; no number of it."""
        many = f"{len(self.parts):,} named part{'s' * (len(self.parts) != 1)}"
        what = f"private sums of {many if self.parts else 'records'}, without noise"
        return f"<State of {self.job}: {what}>"

    def named(self, part: str) -> State:
        """The same state, of a part with this name.

        Args:
            part: The public name of the part, such as its path.

        Returns:
            The state.

        Raises:
            ParameterError: part is no text.
        """
        return replace(self, parts=self.parts | part_names(part))

    def require(self, job: str, settings: Mapping[str, str], rule: str) -> None:
        """Checks that the state is of this job with these settings.

        Args:
            job: The job's name.
            settings: Its settings, as describe_settings makes them.
            rule: What the error says of a difference.

        Raises:
            ParameterError: It is of another one; the text names the first setting that differs.
        """
        if self.job != job:
            raise ParameterError(f"the state is of {self.job} and not of {job}, but {rule}")
        for name in {**self.settings, **settings}:
            ours, theirs = self.settings.get(name), settings.get(name)
            if ours != theirs:
                raise ParameterError(f"{name} = {ours} in a state, and {theirs} here, but {rule}")

    def to_bytes(self) -> bytes:
        """Writes the state, for another process or machine: as private as the records.

        Returns:
            A line that says what it is, one of public settings as JSON, the integers in the order
            of little-endian machines, and the SHA-256 digest of all that. The length does not
            depend on the number of records, but for that of its digits; where quantiles are
            counted, it grows with the points of the grid that records have, and where equations are
            joined, with their rank.
        """
        spaces = {name: space.to_bytes() for name, space in self.spaces.items()}
        header = {
            "format": _FORMAT,
            "version": _VERSION,
            "job": self.job,
            "settings": dict(self.settings),
            "rows": self.rows,
            "parts": sorted(self.parts),
            "sums": {name: list(values.shape) for name, values in self.sums.items()},
            "tallies": {name: len(tally.places) for name, tally in self.tallies.items()},
            "spaces": {name: len(content) for name, content in spaces.items()},
        }
        lines = f"{_NOTICE}\n{json.dumps(header)}\n".encode()
        arrays = [*self.sums.values(), *(part for tally in self.tallies.values() for part in tally)]
        body = b"".join(values.astype("<i8").tobytes() for values in arrays)
        body += b"".join(spaces.values())
        return lines + body + hashlib.sha256(lines + body).digest()

    @classmethod
    def from_bytes(cls, content: bytes) -> Self:
        """Reads what to_bytes wrote.

        Args:
            content: The bytes.

        Returns:
            The state.

        Raises:
            ParameterError: The bytes are no whole state of this version. The text shows nothing of
                them.
        """
        try:
            return cls._read(bytes(content))
        except ParameterError:
            raise
        except Exception:
            raise _malformed() from None

    @classmethod
    def _read(cls, content: bytes) -> Self:
        written, digest = content[:-_DIGEST], content[-_DIGEST:]
        if hashlib.sha256(written).digest() != digest:
            raise _malformed()
        _, line, body = written.split(b"\n", 2)
        header = json.loads(line) if len(line) < _MOST_HEADER else {}
        if header["format"] != _FORMAT:
            raise _malformed()
        version = header["version"]
        if type(version) is not int:
            raise _malformed()
        if version != _VERSION:
            refuse("version", version, f"states of version {_VERSION} are read")
        _check_header(header)
        place = 0

        def take(dtype: str, *shape: int) -> Any:
            nonlocal place
            kind = np.dtype(dtype)
            start, place = place, place + kind.itemsize * int(np.prod(shape, dtype=object))
            return np.frombuffer(body[start:place], kind).reshape(shape)

        def integers(*shape: int) -> Integers:
            taken: Integers = take("<i8", *shape).astype(np.int64)
            return taken

        sums = {name: integers(*shape) for name, shape in header["sums"].items()}
        tallies = {
            name: Tally(integers(many), integers(many)) for name, many in header["tallies"].items()
        }
        spaces = {
            name: _read_space(take("u1", length).tobytes())
            for name, length in header["spaces"].items()
        }
        if place != len(body) or not all(map(_is_ordered, tallies.values())):
            raise _malformed()
        settings, parts = header["settings"], frozenset(header["parts"])
        return cls(header["job"], settings, header["rows"], sums, parts, tallies, spaces)


def _read_space(content: bytes) -> RowSpace:
    try:
        return RowSpace.from_bytes(content)
    except ParameterError:
        raise _malformed() from None


def _widths_of(state: State) -> dict[str, int]:
    """The number of unknowns of each space."""
    return {name: space.unknowns for name, space in state.spaces.items()}


class Total:
    """The sum of states that come one after the other, which is that of `+` in less time.

    Examples:
        >>> import numpy as np
        >>> from hdp_fast.data.states import Total
        >>> from hdp_fast.statistics import Job
        >>> job, total = Job("mean", low=0, high=1), Total()
        >>> for part in (np.zeros(600), np.ones(400)):
        ...     total.add(job.fold(part))
        >>> total.sum().rows
        1000
    """

    def __init__(self) -> None:
        """Begin without a state."""
        self._state: State | None = None
        self._tallies: dict[str, _TallySum] = {}

    def add(self, state: State) -> None:
        """Adds a state.

        Args:
            state: It stays as it is.

        Raises:
            ParameterError: As `+` raises it.
        """
        if self._state is None:
            self._state, self._tallies = state, {name: _TallySum() for name in state.tallies}
        else:
            self._state = self._state._join(state)
        for name, tally in state.tallies.items():
            self._tallies[name].add(tally)

    def sum(self) -> State | None:
        """Returns the state of all records.

        Returns:
            The state; None where none was added.
        """
        if self._state is None:
            return None
        tallies = {name: tallies.sum() for name, tallies in self._tallies.items()}
        return replace(self._state, tallies=tallies)


def _check_header(header: Mapping[str, Any]) -> None:
    """Refuses entries that to_bytes writes otherwise."""
    settings, parts, sums = header["settings"], header["parts"], header["sums"]
    texts = [header["job"], *settings, *settings.values(), *parts]
    shapes, spaces = itertools.chain(*sums.values()), header["spaces"].values()
    counts = [header["rows"], *header["tallies"].values(), *spaces, *shapes]
    fits = isinstance(parts, list) and all(isinstance(text, str) for text in texts)
    if not (fits and all(type(count) is int and count >= 0 for count in counts)):
        raise _malformed()


def _is_ordered(tally: Tally) -> bool:
    return bool((np.diff(tally.places, prepend=-1) > 0).all())


def require_shapes(
    state: State,
    sums: Mapping[str, tuple[int, ...]],
    tallies: Iterable[str] = (),
    spaces: Mapping[str, int] | None = None,
) -> None:
    """Refuses a state that no fold of its job made: with other sums, or of other shapes."""
    shapes = {name: values.shape for name, values in state.sums.items()}
    made = shapes, {*state.tallies}, _widths_of(state)
    if made != (dict(sums), {*tallies}, dict(spaces or {})):
        rule = "it must be what fold made"
        raise ParameterError(f"the state has sums of other shapes than its job's, but {rule}")


def _malformed() -> ParameterError:
    return ParameterError("content is no whole state, but it must be what State.to_bytes wrote")


def describe_settings(**settings: Any) -> dict[str, str]:
    """Public settings as texts that are equal where they are: long ones are their digests."""
    return {name: _describe(value) for name, value in settings.items()}


def _describe(value: Any) -> str:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [field.name for field in dataclasses.fields(value) if field.init]
        inner = {name: _describe(getattr(value, name)) for name in fields}
        text = f"{type(value).__name__} {inner}"
    elif isinstance(value, np.ndarray):
        content = np.ascontiguousarray(value.astype(str) if value.dtype.hasobject else value)
        kept = str(content.tolist()) if content.size < _FEW else _digest(content.tobytes())
        text = f"{content.dtype} {content.shape} {kept}"
    elif callable(value):
        text = _describe_function(value, set())
    else:
        text = repr(value)
    return text if len(text) <= _LONGEST_SETTING else _digest(text.encode())


def _describe_function(value: Any, seen: set[int]) -> str:
    """A function by its name; with what it holds and does where its name does not tell.

    seen: what is being described, for functions may hold themselves.
    """
    if isinstance(value, partial):
        return f"partial {_describe_held([value.func, value.args, value.keywords], seen)}"
    if isinstance(value, MethodType):
        return f"{value.__func__.__qualname__} of {_describe_held(value.__self__, seen)}"
    name = getattr(value, "__qualname__", getattr(value, "__name__", ""))
    module = getattr(value, "__module__", None)
    if not name:
        return f"{_name_type(value)} {_describe_held(getattr(value, '__dict__', None), seen)}"
    text = f"{module}.{name}"
    if not isinstance(value, FunctionType) or (module != "__main__" and _is_named(value)):
        return text
    cells = inspect.getclosurevars(value).nonlocals
    held = [value.__code__, value.__defaults__, value.__kwdefaults__, cells]
    return f"{text} {_digest(_describe_held(held, seen).encode())}"


def _is_named(function: FunctionType) -> bool:
    """Whether the module has it under its name."""
    named: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        named = getattr(named, name, None)
    return named is function


def _describe_held(value: Any, seen: set[int]) -> str:
    """What a function holds, alike in every process."""
    if id(value) in seen:
        return "itself"
    seen = {*seen, id(value)}
    if isinstance(value, CodeType):
        parts = value.co_code, value.co_consts, value.co_names, value.co_varnames
        return f"code {_describe_held(parts, seen)}"
    if isinstance(value, dict):
        return str({str(name): _describe_held(entry, seen) for name, entry in value.items()})
    if isinstance(value, list | tuple):
        return str([_describe_held(entry, seen) for entry in value])
    if isinstance(value, set | frozenset):
        return str(sorted(_describe_held(entry, seen) for entry in value))
    if isinstance(value, ModuleType | type):
        return value.__name__
    if callable(value) and not dataclasses.is_dataclass(value):
        return _describe_function(value, seen)
    # The text of other objects has their place in memory.
    if getattr(type(value), "__repr__", None) is getattr(object, "__repr__", None):
        return f"{_name_type(value)} {_describe_held(getattr(value, '__dict__', None), seen)}"
    return _describe(value)


def _name_type(value: Any) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _digest(content: bytes) -> str:
    return f"sha256 {hashlib.sha256(content).hexdigest()[:32]}"


def part_names(part: str | None) -> frozenset[str]:
    """The names that a state of this part has."""
    if part is None:
        return frozenset()
    return frozenset([instance("part", part, str, "a text, the public name of the part")])


def bundle(job: str, states: Sequence[State], rows: int) -> State:
    """One state of several jobs on the same records, which `unbundle` takes apart again."""
    settings: dict[str, str] = {}
    sums: dict[str, Integers] = {}
    tallies: dict[str, Tally] = {}
    spaces: dict[str, RowSpace] = {}
    for place, state in enumerate(states):
        settings |= {f"{place}.{name}": text for name, text in state.settings.items()}
        settings[f"{place}."] = state.job
        sums |= {f"{place}.{name}": values for name, values in state.sums.items()}
        tallies |= {f"{place}.{name}": tally for name, tally in state.tallies.items()}
        spaces |= {f"{place}.{name}": space for name, space in state.spaces.items()}
    return State(job, settings, rows, sums, frozenset(), tallies, spaces)


def unbundle(state: State) -> list[State]:
    """The states that `bundle` put together, each of all records."""

    def of(place: int, named: Mapping[str, T]) -> dict[str, T]:
        start = f"{place}."
        return {name.removeprefix(start): value for name, value in named.items()
                if name.startswith(start)}  # fmt: skip

    many = sum(name.endswith(".") for name in state.settings)
    states = []
    for place in range(many):
        settings = of(place, state.settings)
        job = settings.pop("")
        states.append(
            State(
                job,
                settings,
                state.rows,
                of(place, state.sums),
                state.parts,
                of(place, state.tallies),
                of(place, state.spaces),
            )
        )
    return states
