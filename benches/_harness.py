"""Races: one piece of work done by hdp_fast, numpy, peers and the bare machine, in turns.

A bench is a function `bench_NAME(race, ...)`. It names the routes of one group and runs them: ours,
the fastest numpy that a competent user would write, peers, and limits. Routes take turns, so that a
change of the machine's speed hits all of them alike, and their medians are compared in one run.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

THREADS = "HDP_FAST_NUM_THREADS"
# A shorter call is repeated in its turn, after one that wakes caches and cores.
SHORT = 5e-3
MOST_CALLS, FEWEST_ROUNDS, MOST_ROUNDS = 200, 3, 25
# A longer call is not repeated.
LONG = 2.0

Action = Callable[[], object]
# What times a route: with --cpu the processor time of this process, which other work changes less.
CLOCK: list[Callable[[], float]] = [time.perf_counter]


@dataclass
class Route:
    """One way to do the work of a group.

    Attributes:
        role: ours, numpy, peer or limit.
        name: what tells it from the others.
        action: what is timed.
        threads: how many threads it may use; BLAS has as many.
        share: a route that does less than the whole work is charged so many times its time.
        is_clock: whether the action returns the seconds that it has measured.
        figures: numbers that are shown beside its time.
        times: seconds of a call, one a round.
        calls: calls of a turn.
    """

    role: str
    name: str
    action: Callable[[], Any]
    threads: int = 1
    share: float = 1.0
    is_clock: bool = False
    figures: dict[str, Any] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)
    calls: int = 1

    def time_calls(self, calls: int) -> float:
        """The seconds of a call, measured on so many."""
        start, inside = CLOCK[0](), 0.0
        for _ in range(calls):
            # Results are dropped at once: if they were kept, each would lie in memory that is new.
            result = self.action()
            inside += result if self.is_clock else 0.0
            del result
        outside = CLOCK[0]() - start
        return (inside if self.is_clock else outside) / calls

    def prepare(self) -> None:
        """Runs it once, and decides how many calls make a turn."""
        with threads_of(self.threads):
            start = time.perf_counter()
            first = self.time_calls(1)
            # The clock of a route may leave out most of what a call takes.
            outside = max(time.perf_counter() - start, 1e-7)
        if first > LONG:
            self.times.append(first)
        else:
            self.calls = max(1, min(MOST_CALLS, int(SHORT / outside)))

    def take_turn(self) -> None:
        """Times one turn."""
        with threads_of(self.threads):
            if self.calls > 1:
                self.action()
            self.times.append(self.time_calls(self.calls))

    def wants_turn(self, budget: float) -> bool:
        """Whether it has time left for another turn, or has had too few."""
        if self.times and self.times[0] > LONG:
            return False
        used = sum(self.times) * self.calls
        enough = len(self.times) >= FEWEST_ROUNDS and used * (1 + 1 / len(self.times)) > budget
        return len(self.times) < MOST_ROUNDS and not enough

    @property
    def seconds(self) -> float:
        """The median time that the whole work takes."""
        return statistics.median(self.times) * self.share


class Race:
    """The routes of one group; a fixture of every bench.

    Attributes:
        group: its name, "weights.project" for `bench_project` in bench_weights.py.
        params: what the group was run on.
        seconds: time for the turns of all routes.
    """

    def __init__(
        self,
        group: str,
        params: dict[str, Any],
        *,
        seconds: float,
        scale: Callable[[int], int],
        once: bool,
    ):
        self.group, self.params = group, params
        self.routes: list[Route] = []
        self.work, self.unit = 1.0, "call"
        self.seconds = 0.0 if once else seconds
        self._scale, self._once = scale, once

    def scaled(self, name: str, usual: int) -> int:
        """The size of a parameter, smaller with --small and --tiny; results keep it by its name."""
        self.params[name] = self._scale(usual)
        return self.params[name]

    def ours(self, action: Action, name: str = "", *, threads: Sequence[int] = (1, 2),
             is_clock: bool = False, **figures: Any) -> None:  # fmt: skip
        """Adds a route of this package for each number of threads."""
        for count in threads:
            text = f"{name}, " if name else ""
            label = f"{text}{count} thread{'s'[: count - 1]}"
            route = Route("ours", label, action, count, 1.0, is_clock, figures)
            self.routes.append(route)

    def numpy(
        self,
        name: str,
        action: Action,
        *,
        threads: Sequence[int] = (1,),
        share: float = 1.0,
        is_clock: bool = False,
    ) -> None:
        """Adds a route of numpy, whose linear algebra may use so many threads."""
        for count in threads:
            label = name if len(threads) == 1 else f"{name}, {count} thread{'s'[: count - 1]}"
            self.routes.append(Route("numpy", label, action, count, share, is_clock))

    def peer(self, name: str, action: Callable[[], Any], *, threads: int = 1, share: float = 1.0,
             is_clock: bool = False, **figures: Any) -> None:  # fmt: skip
        """Adds a route of another library."""
        route = Route("peer", name, action, threads, share, is_clock, figures)
        self.routes.append(route)

    def limit(
        self, name: str, limit: Action | float, *, threads: int = 1, share: float = 1.0
    ) -> None:
        """Adds what the machine needs at least: an action that is timed, or seconds."""
        route = Route("limit", name, limit if callable(limit) else float, threads, share)
        if not callable(limit):
            route.times = [limit, limit, limit]
            route.calls = 0
        self.routes.append(route)

    def run(self, work: float = 1, unit: str = "call") -> None:
        """Times all routes in turns; `work` units are done by a call."""
        self.work, self.unit = float(work), unit
        if CLOCK[0] is time.process_time:
            # The processor time of two threads says nothing about how long they take.
            self.routes = [route for route in self.routes if route.threads == 1]
        timed = [route for route in self.routes if route.calls]
        if self._once:
            for route in timed:
                with threads_of(route.threads):
                    route.action()
            return
        for route in timed:
            route.prepare()
        budget = self.seconds / max(1, len(timed))
        while wanting := [route for route in timed if route.wants_turn(budget)]:
            for route in wanting:
                route.take_turn()

    def restart(self) -> None:
        """Forgets the times, for a second measurement."""
        for route in self.routes:
            if route.calls:
                route.times, route.calls = [], 1
        self.run(self.work, self.unit)


@cache
def controller() -> ThreadpoolController:
    """The libraries of linear algebra that this process has loaded."""
    return ThreadpoolController()


@contextmanager
def threads_of(count: int) -> Iterator[None]:
    """Sets the threads of this package and of BLAS; the environment is as before afterwards."""
    before = os.environ.get(THREADS)
    os.environ[THREADS] = str(count)
    try:
        with controller().limit(limits=count):
            yield
    finally:
        if before is None:
            del os.environ[THREADS]
        else:
            os.environ[THREADS] = before


def forget_plans() -> None:
    """Empties the caches of plans in the package, so that a search is timed and not its memory."""
    for clear in caches():
        clear()


@cache
def caches() -> tuple[Callable[[], None], ...]:
    """What empties the caches of the package."""
    modules = [module for name, module in sys.modules.items() if name.startswith("hdp_fast")]
    found = {id(value): value for module in modules for value in vars(module).values()}
    return tuple(each.cache_clear for each in found.values() if hasattr(each, "cache_clear"))


def available_bytes() -> float:
    """Memory that may be taken; infinite where the system doesn't say."""
    table = Path("/proc/meminfo")
    if not table.exists():
        return float("inf")
    lines = dict(line.split(":", 1) for line in table.read_text().splitlines())
    return float(lines["MemAvailable"].split()[0]) * 1024


def require_memory(needed: float) -> None:
    """Skips a bench where there is too little memory for it, and touches it all before the turns.

    A virtual machine is given memory when it is first touched, which can take twenty times as long
    as later.
    """
    free = available_bytes()
    if needed > free:
        pytest.skip(f"needs {needed / 1e9:.1f} GB of memory, {free / 1e9:.1f} GB are free")
    np.ones(int(needed) // 8)


def run_file(path: str) -> None:
    """Runs the benches of one file, with the options of the command line."""
    # In a process of its own, since this one has imported numpy already.
    sys.exit(subprocess.call([sys.executable, "-m", "pytest", path, *sys.argv[1:]]))
