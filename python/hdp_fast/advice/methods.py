"""What a candidate is: when it can run, what it is expected to lose, why, and its call."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .sizes import Sizes, World, list_worlds

Setting = tuple[Any, ...]


@dataclass(frozen=True)
class Outlook:
    """What a method is expected to lose of what can be learned: least, mean and most."""

    low: float
    mean: float
    high: float


def _no_command(sizes: Sizes) -> str | None:
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
        write_call: A line of Python that runs it.
        settings: Numbers from which it chooses by the mean: the last arguments of `lose`,
            `explain` and `write_call`.
        write_command: The command that runs it on files; None where there is none.
    """

    name: str
    lack: Callable[[Sizes], str | None]
    lose: Callable[..., float]
    explain: Callable[..., str]
    write_call: Callable[..., str]
    settings: Callable[[Sizes], Iterable[Setting]] = _no_settings
    write_command: Callable[[Sizes], str | None] = _no_command

    def forecast(self, sizes: Sizes) -> tuple[Outlook, Setting]:
        """What it loses over all worlds with its best setting, and this setting."""
        worlds = list_worlds(sizes)
        outlooks = [(self._average(sizes, worlds, one), one) for one in self.settings(sizes)]
        return min(outlooks, key=lambda pair: pair[0].mean)

    def _average(self, sizes: Sizes, worlds: tuple[World, ...], setting: Setting) -> Outlook:
        losses = (self.lose(sizes, world, *setting) for world in worlds)
        shares = [min(1.0, max(0.0, loss)) for loss in losses]
        return Outlook(min(shares), math.fsum(shares) / len(shares), max(shares))


def write_number(value: float) -> str:
    """A number with two or three digits, as people write it."""
    if value == math.inf:
        return "no limit"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def write_privacy(sizes: Sizes) -> str:
    """The privacy parameters of the records in a call."""
    if sizes.epsilon == math.inf:
        return "epsilon=math.inf"
    return f"epsilon={sizes.epsilon!r}, delta={sizes.delta!r}"


def write_model(sizes: Sizes, privacy: str | None = None, records: str = "X, y") -> str:
    """The call that learns a linear model of records whose columns lie within public bounds."""
    settings = write_privacy(sizes) if privacy is None else privacy
    settings = f"{settings}, bounds=bounds, classes=range({sizes.classes})"
    return f"sklearn.PrivateClassifier({settings}).fit({records})"


def write_flags(sizes: Sizes) -> str:
    """The schema and the privacy parameters of the records in a command."""
    flags = f"--schema schema.json --epsilon {sizes.epsilon!r}"
    return flags if sizes.epsilon == math.inf else f"{flags} --delta {sizes.delta!r}"


def write_agents(sizes: Sizes) -> str:
    """The agents in a call."""
    return f"local.Agents(agents_X, agents_y, epsilon={sizes.agents_epsilon!r})"


def lack_records(sizes: Sizes) -> str | None:
    """Why no linear model of private records can be learned."""
    if sizes.learner == "finite":
        return "the class is finite"
    return None if sizes.n else "there are no private records"


def lack_agents(sizes: Sizes) -> str | None:
    """Why no one can be asked."""
    if not sizes.agents:
        return "there are no agents"
    return None if sizes.classes == 2 else "agents answer about two classes"


def first_reason(*reasons: str | None) -> str | None:
    """The first reason that there is."""
    return next((reason for reason in reasons if reason), None)
