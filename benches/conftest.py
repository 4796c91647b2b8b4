"""Options and fixtures of the benches, and what is printed, stored and compared after a run."""

from __future__ import annotations

import time
from collections import defaultdict
from functools import cached_property
from pathlib import Path
from typing import Any

import _blas  # noqa: F401
import _results as results
import pytest
from _harness import CLOCK, Race
from _machine import Limits, kind_of, processor_of
from _tables import print_table, table_of

FOLDER = Path(__file__).parent / "results"
TINY = 1_000
# More groups that a comparison has not run are counted, not named.
MOST_NAMED = 10
HOW_TO_STORE = "`make bench-store` makes them, in some fifteen minutes on a quiet machine"


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of a run."""
    group = parser.getgroup("benches of hdp_fast")
    for flag, text in (
        ("--tiny", "sizes at which times mean nothing: to see that every bench runs"),
        ("--small", "a tenth of the usual sizes"),
        ("--largest", "also what takes minutes or much memory"),
        ("--cpu", "processor time of one thread, on a busy machine; a kind of results of its own"),
        ("--store", "put the results where those of this kind of processor are stored"),
        ("--check", "compare with the stored ones, and fail where something got slower"),
    ):
        group.addoption(flag, action="store_true", help=text)
    group.addoption("--seconds", type=float, default=1.0, help="time for the turns of a group")
    group.addoption("--results", type=Path, default=FOLDER, help="folder of stored results")
    group.addoption("--json", type=Path, help="write the results of this run to a file")


class Run:
    """What a run has measured, and the machine that it runs on."""

    def __init__(self, config: pytest.Config):
        self.config = config
        self.limits = Limits()
        self.entries: list[results.Entry] = []
        self.tables: list[tuple[str, list[list[str]]]] = []
        self.words: dict[str, list[str]] = {}
        self.once = config.getoption("tiny") or config.getoption("benchmark_disable")
        self.cpu = config.getoption("cpu")

    def is_whole(self) -> bool:
        """Whether all benches of its files run, on their usual sizes."""
        chosen = self.config.getoption("keyword") or self.config.getoption("small")
        return not chosen and not any("::" in name for name in self.config.args)

    @cached_property
    def processor(self) -> dict[str, Any]:
        """The processor, as pytest-benchmark sees it."""
        hook = self.config.hook.pytest_benchmark_generate_machine_info
        processor = processor_of(hook(config=self.config))
        return processor | {"name": f"{processor['name']}, CPU time"} if self.cpu else processor

    def path(self) -> Path:
        """Where results of this kind of processor are stored."""
        return Path(self.config.getoption("results")) / f"{kind_of(self.processor)}.json"

    def stored(self) -> results.Results | None:
        """The results of this kind of processor, if there are some."""
        return results.read(self.path())


RUN = pytest.StashKey[Run]()
STORED = pytest.StashKey[results.Results]()


def pytest_configure(config: pytest.Config) -> None:
    """Refuses at once to compare with nothing, or to store what means nothing."""
    # What is run here is run for its time. In pytest.ini this would import numpy before _blas.
    config.addinivalue_line("filterwarnings", "ignore::hdp_fast.exceptions.UtilityWarning")
    run = config.stash[RUN] = Run(config)
    CLOCK[0] = time.process_time if run.cpu else time.perf_counter
    if (config.getoption("check") or config.getoption("store")) and run.once:
        raise pytest.UsageError("times of --tiny and --benchmark-disable are not for comparison")
    if config.getoption("check"):
        stored = run.stored()
        if stored is None:
            name = run.path().name
            raise pytest.UsageError(f"no stored results of this kind, {name}: {HOW_TO_STORE}")
        config.stash[STORED] = stored


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The sizes of a bench, by the options."""
    option = metafunc.config.getoption
    for mark in metafunc.definition.iter_markers("sizes"):
        name, usual = mark.args
        sizes = [*usual, *(mark.kwargs.get("largest", ()) if option("largest") else ())]
        if option("small"):
            sizes = sorted({size for size in sizes if size <= max(usual) // 10} or {min(usual)})
        if option("tiny"):
            sizes = [mark.kwargs.get("tiny", TINY)]
        metafunc.parametrize(name, sizes)


@pytest.fixture(scope="session")
def run(request: pytest.FixtureRequest) -> Run:
    """What this run has measured so far."""
    return request.config.stash[RUN]


@pytest.fixture(scope="session")
def tiny(request: pytest.FixtureRequest) -> bool:
    """Whether the run only shows that every bench runs."""
    return bool(request.config.getoption("tiny"))


@pytest.fixture(scope="session")
def limits(run: Run) -> Limits:
    """What the machine can do at most, measured in this run, once."""
    return run.limits


@pytest.fixture
def table(run: Run) -> Any:
    """What adds a table of numbers that are computed, not timed: title, and rows with header."""
    return lambda title, rows: run.tables.append((title, rows))


@pytest.fixture
def largest(request: pytest.FixtureRequest) -> None:
    """A bench that runs only with --largest."""
    if not request.config.getoption("largest"):
        pytest.skip("only with --largest")


@pytest.fixture
def race(request: pytest.FixtureRequest, run: Run, benchmark: Any) -> Any:
    """The routes of a group, and after the bench has run them, their results."""
    module = Path(request.node.path).stem.removeprefix("bench_")
    group = f"{module}.{request.function.__name__.removeprefix('bench_')}"
    params = getattr(getattr(request.node, "callspec", None), "params", {})
    option = request.config.getoption

    def scale(usual: int) -> int:
        return min(usual, TINY) if option("tiny") else usual // 10 if option("small") else usual

    contest = Race(group, dict(params), seconds=option("seconds"), scale=scale, once=run.once)
    # The fixture warns where it was not used; its clock would time one route after the other.
    benchmark._mode = "race"
    yield contest
    if contest.routes and not run.once:
        keep(contest, run, benchmark)


def keep(contest: Race, run: Run, benchmark: Any) -> None:
    """Keeps the results, after a second measurement of what seems to have become slower."""
    stored = run.config.stash.get(STORED, None)
    entry = results.entry_of(contest)
    if stored and results.compare(stored, [entry])["slower"]:
        contest.restart()
        again = results.entry_of(contest)
        entry = again if not results.compare(stored, [again])["slower"] else entry
    run.entries.append(entry)
    for route in contest.routes:
        # A row of pytest-benchmark's own tables and files, one for each route.
        benchmark.name, benchmark.group = f"{route.role}: {route.name}", results.key_of(entry)
        benchmark.extra_info = {"role": route.role, "threads": route.threads, "share": route.share}
        stats = benchmark._make_stats(1)
        for seconds in route.times:
            stats.update(seconds)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Compares and writes the results."""
    run = session.config.stash[RUN]
    stored = session.config.stash.get(STORED, None)
    if stored:
        run.words = results.compare(stored, run.entries)
        if run.words["slower"] and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        if not {*map(results.key_of, run.entries)} & {*map(results.key_of, stored["groups"])}:
            run.words["nothing was compared"] = ["the stored results have other groups or sizes"]
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED
    target, store = session.config.getoption("json"), session.config.getoption("store")
    if run.entries and (target or store):
        now = results.collect(run.entries, run.processor, run.limits.summary())
        if target:
            results.write(target, now)
        if store:
            results.write(run.path(), results.merge(run.stored(), now, whole=run.is_whole()))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The tables of the run."""
    run, say = config.stash[RUN], terminalreporter.write_line
    for title, rows in run.tables:
        say(f"\n{title}\n{print_table(rows)}")
    if run.entries:
        processor = run.processor
        say(f"\n{processor['name']}, {processor['cores']} cores. Times are medians of turns;")
        say("x numpy, x peer: how many times as long as the row the fastest of them takes;")
        say("of limit: which share the limit has of the time of the row")
    groups = defaultdict(list)
    for entry in run.entries:
        groups[entry["group"]].append(entry)
    for group, entries in groups.items():
        say(f"\n{group}\n{print_table(table_of(entries))}")
    for kind, lines in run.words.items():
        if kind == "not run" and len(lines) > MOST_NAMED:
            say(f"\nnot run: {len(lines)} groups or routes")
        elif lines:
            say(f"\n{kind}:\n" + "\n".join(f"  {line}" for line in lines))
    if run.words and not run.words["slower"] and "nothing was compared" not in run.words:
        say("\nnothing got slower by more than a quarter")
    if run.entries and config.getoption("store"):
        say(f"\nstored in {run.path().name}")
