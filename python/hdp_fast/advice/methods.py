"""What a candidate is: when it can run, what it is expected to lose, why, and how it is called."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .._support.validate import refuse
from .sizes import Population, Sizes, World, list_populations, list_worlds

Setting = tuple[Any, ...]
# The quantiles of losses over all worlds that a forecast reaches from and to; those of estimates
# follow laws that are exact, and reach from the least to the largest.
_RANGE, _WHOLE_RANGE = (0.06, 0.94), (0.0, 1.0)


@dataclass(frozen=True)
class Name:
    """Data that only the caller has, such as the private records X."""

    text: str

    def __repr__(self) -> str:
        """Its name."""
        return self.text

    def take(self, value: Any) -> Any:
        """What it stands for where the caller's data are this value."""
        return value


@dataclass(frozen=True)
class FirstRows(Name):
    """The first so many rows of them."""

    rows: int

    def __repr__(self) -> str:
        """As it is written in Python."""
        return f"{self.text}[:{self.rows}]"

    def take(self, value: Any) -> Any:
        """These rows of the value."""
        return value[: self.rows]


@dataclass(frozen=True)
class Entry(Name):
    """One of their entries."""

    place: int

    def __repr__(self) -> str:
        """As it is written in Python."""
        return f"{self.text}[{self.place}]"

    def take(self, value: Any) -> Any:
        """The entry of the value at the place."""
        return value[self.place]


class Call:
    """A call of a public name, which is shown as Python and can be made: one of another's methods.

    Args:
        path: The name below hdp_fast, or the name of a method.
        arguments: What is passed: values, Names of data, Calls.
        settings: What is passed by keyword.
    """

    def __init__(self, path: str, *arguments: Any, **settings: Any) -> None:
        self._path, self._arguments, self._settings = path, arguments, settings
        self._on: Call | None = None

    def then(self, method: str, *arguments: Any) -> Call:
        """The call of a method of what this one returns."""
        call = Call(method, *arguments)
        call._on = self
        return call

    def __repr__(self) -> str:
        """As it is written in Python."""
        words = [_write(one) for one in self._arguments]
        words += [f"{name}={_write(value)}" for name, value in self._settings.items()]
        before = "" if self._on is None else f"{self._on!r}."
        return f"{before}{self._path}({', '.join(words)})"

    def run(self, data: Mapping[str, Any]) -> Any:
        """What it returns with these data for its Names, all of which must be there."""
        for name in self._list_names():
            if name not in data:
                refuse("data", sorted(data), f"they must have {name}, which the call needs")
        return self._make(data)

    def _list_names(self) -> Iterator[str]:
        if self._on is not None:
            yield from self._on._list_names()
        for value in (*self._arguments, *self._settings.values()):
            if isinstance(value, Call):
                yield from value._list_names()
            elif isinstance(value, Name):
                yield value.text

    def _make(self, data: Mapping[str, Any]) -> Any:
        if self._on is None:
            module, _, name = self._path.rpartition(".")
            callee = getattr(importlib.import_module(f"hdp_fast.{module}"), name)
        else:
            callee = getattr(self._on._make(data), self._path)
        settings = {name: _fill(value, data) for name, value in self._settings.items()}
        return callee(*(_fill(one, data) for one in self._arguments), **settings)


class Average(Call):
    """A weighted sum of what calls return, or of a part of it.

    Args:
        terms: Weights, calls, and the name of the attribute of what each returns; None takes the
            result itself.
    """

    def __init__(self, *terms: tuple[float, Call, str | None]) -> None:
        super().__init__("sum", *(call for _, call, _ in terms))
        self._terms = terms

    def __repr__(self) -> str:
        """As it is written in Python."""
        texts = (
            f"{weight!r} * {call!r}" + (f".{part}" if part else "")
            for weight, call, part in self._terms
        )
        return " + ".join(texts)

    def _make(self, data: Mapping[str, Any]) -> Any:
        values = (
            weight * (getattr(call._make(data), part) if part else call._make(data))
            for weight, call, part in self._terms
        )
        return sum(values)


def _write(value: Any) -> str:
    if isinstance(value, range):
        return f"range({value.stop})"
    if isinstance(value, str):
        return f'"{value}"'
    return "math.inf" if value == math.inf else repr(value)


def _fill(value: Any, data: Mapping[str, Any]) -> Any:
    if isinstance(value, Call):
        return value._make(data)
    return value.take(data[value.text]) if isinstance(value, Name) else value


@dataclass(frozen=True)
class Outlook:
    """What a method is expected to lose.

    Attributes:
        low: The least share of what can be learned.
        mean: The mean share.
        high: The largest share.
    """

    low: float
    mean: float
    high: float


def _no_command(sizes: Sizes, *setting: Any) -> str | None:
    return None


def _no_settings(sizes: Sizes) -> Iterable[Setting]:
    return [()]


@dataclass(frozen=True)
class Method:
    """A candidate.

    Attributes:
        name: Its name.
        lack: Says why it cannot run at these sizes; None where it can.
        lose: The share that it loses at these sizes in a world.
        explain: The formula in words, with its numbers.
        make_call: The call that runs it; None where nothing is to run.
        settings: Numbers from which it chooses by the mean: the last arguments of `lose`,
            `explain`, `make_call` and `write_command`.
        write_command: The command that runs it on files; None where there is none.
    """

    name: str
    lack: Callable[[Sizes], str | None]
    lose: Callable[..., float]
    explain: Callable[..., str]
    make_call: Callable[..., Call | None]
    settings: Callable[[Sizes], Iterable[Setting]] = _no_settings
    write_command: Callable[..., str | None] = _no_command

    def forecast(self, sizes: Sizes) -> tuple[Outlook, Setting]:
        """What it loses over all worlds with its best setting, and this setting."""
        worlds = list_populations(sizes) if sizes.is_estimate else list_worlds(sizes)
        outlooks = [(self._average(sizes, worlds, one), one) for one in self.settings(sizes)]
        return min(outlooks, key=lambda pair: pair[0].mean)

    def _average(
        self, sizes: Sizes, worlds: tuple[World | Population, ...], setting: Setting
    ) -> Outlook:
        shares = sorted(max(0.0, self.lose(sizes, world, *setting)) for world in worlds)
        parts = _WHOLE_RANGE if sizes.is_estimate else _RANGE
        low, high = (_interpolate(shares, part) for part in parts)
        return Outlook(low, math.fsum(shares) / len(shares), high)


def _interpolate(values: list[float], part: float) -> float:
    """The quantile of sorted values, between two of which it is interpolated."""
    place, rest = divmod(part * (len(values) - 1), 1)
    low, high = values[int(place)], values[min(int(place) + 1, len(values) - 1)]
    return low + rest * (high - low)


def write_number(value: float) -> str:
    """A number with two or three digits, as people write it."""
    if value == math.inf:
        return "no limit"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def privacy_of(sizes: Sizes) -> dict[str, float]:
    """The privacy parameters of the records in a call."""
    if sizes.epsilon == math.inf:
        return {"epsilon": math.inf}
    return {"epsilon": sizes.epsilon, "delta": sizes.delta}


def model_of(
    sizes: Sizes, privacy: Mapping[str, float] | None = None, records: str = "X, y"
) -> Call:
    """The call that learns a linear model of records whose columns lie within public bounds."""
    settings: dict[str, Any] = dict(privacy_of(sizes) if privacy is None else privacy)
    settings["bounds"] = Name("bounds")
    names = map(Name, records.split(", "))
    if sizes.predicts_number:
        settings["target_bounds"] = Name("target_bounds")
        return Call("sklearn.PrivateRegressor", **settings).then("fit", *names)
    settings["classes"] = range(sizes.classes)
    return Call("sklearn.PrivateClassifier", **settings).then("fit", *names)


def write_flags(sizes: Sizes) -> str:
    """The schema and the privacy parameters of the records in a command."""
    flags = f"--schema schema.json --epsilon {sizes.epsilon!r}"
    return flags if sizes.epsilon == math.inf else f"{flags} --delta {sizes.delta!r}"


def agents_of(sizes: Sizes) -> Call:
    """The agents in a call."""
    names = Name("agents_X"), Name("agents_y")
    return Call("local.Agents", *names, epsilon=sizes.agents_epsilon)


def lack_records(sizes: Sizes) -> str | None:
    """Why no linear model of private records can be learned."""
    if sizes.learner == "finite":
        return "the class is finite"
    return None if sizes.n else "there are no private records"


def lack_agents(sizes: Sizes) -> str | None:
    """Why no one can be asked."""
    if not sizes.agents:
        return "there are no agents"
    if sizes.predicts_number:
        return "agents answer about two classes"
    return None if sizes.classes == 2 else "agents answer about two classes"


def first_reason(*reasons: str | None) -> str | None:
    """The first reason that there is."""
    return next((reason for reason in reasons if reason), None)
