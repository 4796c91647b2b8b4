"""Every public function, constructor and method with bad values for each of its arguments.

The base of each is the first call of it that an example of a docstring makes, or one of `uses.py`.
There one argument after the other is replaced; in a child of the process where a call uses
something up, such as agents, so that the next one does not meet what it left behind.

    python tests/support/walk.py [PATH ...] [--seconds SECONDS --seed SEED]

prints what is wrong, call by call, and the time that each took. With seconds, values are drawn by
the strategies of `changes.py` until the time is over: `make fuzz` does so.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import doctest
import enum
import faulthandler
import functools
import gc
import inspect
import itertools
import math
import os
import pickle
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import changes
import uses
from docstrings import Documented, public_objects

from hdp_fast import budget, labels, local
from hdp_fast._support.uncopyable import Uncopyable
from hdp_fast.exceptions import HdpFastError

# Values that are wrong nearly everywhere.
VALUES = {"None": None, "a number": 2.5, "a text": "x", "a list": [1, "y"], "an object": object()}
# A call that is still running after so many seconds is called endless.
_LONGEST = 20
# After so long a child waits in C, where no signal reaches it, and is ended.
_STUCK = 60


@dataclass
class Outcome:
    """What became of the calls of one callable.

    Attributes:
        path: its public name.
        calls: how many were made.
        wrong: a line for each that ended in neither a result nor one error of the package.
        unnamed: a line for each whose error does not name the argument.
        seconds: what all of them took.
    """

    path: str
    calls: int = 0
    wrong: list[str] = field(default_factory=list)
    unnamed: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def faults(self) -> list[str]:
        """All that did not go well."""
        return self.wrong + self.unnamed


@functools.cache
def callables() -> dict[str, Documented]:
    """All public functions, classes that are made by people, and methods, by their paths."""
    found: dict[str, Documented] = {}
    for thing in public_objects():
        if not thing.is_property:
            # A method of a base comes after the one that replaces it.
            found.setdefault(thing.path, thing)
    return found


@dataclass(frozen=True)
class Choice:
    """Which values an argument gets.

    Attributes:
        values: those that take turns.
        most: how many of them each argument gets.
        drawn: how many are drawn besides, like the one that it has.
        seed: what they are drawn by.
    """

    values: dict[str, Any]
    most: int
    drawn: int = 0
    seed: int = 0

    def of(self, place: int, name: str, value: Any) -> Iterator[tuple[str, Any]]:
        """The values of an argument, each by how it is told."""
        turns = itertools.cycle(self.values.items())
        yield from itertools.islice(turns, place, place + self.most)
        if self.drawn:
            number = zlib.crc32(f"{self.seed} {place} {name}".encode())
            yield from changes.drawn(value, self.drawn, number)


class Walk:
    """Runs examples, and stops at the first call of each public callable that they make."""

    def __init__(
        self,
        values: dict[str, Any],
        paths: list[str] | None = None,
        most: int | None = None,
        *,
        drawn: int = 0,
        seed: int = 0,
    ):
        self.outcomes: dict[str, Outcome] = {}
        self._choice = Choice(values, len(values) if most is None else most, drawn, seed)
        self._wanted = {
            path: thing
            for path, thing in callables().items()
            if not paths or any(path.startswith(f"hdp_fast.{one}") for one in paths)
        }
        self._codes: dict[Any, list[Documented]] = {}
        for thing in self._wanted.values():
            for code in _codes_of(thing):
                self._codes.setdefault(code, []).append(thing)

    def run(self, until: float = math.inf) -> dict[str, Outcome]:
        """Makes all base calls, and bad ones beside them; no further ones after this time."""
        self._until = until
        programs = [(f"example of {path}", thing.text) for path, thing in self._wanted.items()]
        with _quiet():
            for name, text in programs:
                self._watch(lambda name=name, text=text: _run_example(name, text))
            for name, make in uses.BASES.items():
                self._stop_at(f"hdp_fast.{name}", make)
        return self.outcomes

    def _stop_at(self, path: str, make: Callable[[], uses.Base]) -> None:
        if path.partition(",")[0] in self._wanted:
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
                self._try(path, *make())

    def _try(self, path: str, function: Any, arguments: dict[str, Any]) -> None:
        if time.monotonic() > self._until:
            return
        outcome = _try_all(path, function, arguments, self._choice)
        if outcome.path:
            self.outcomes[path] = outcome

    def _watch(self, program: Callable[[], object]) -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            sys.setprofile(self._stop)
            try:
                program()
            finally:
                sys.setprofile(None)

    def _stop(self, frame: Any, event: str, argument: Any) -> None:
        if event != "call" or frame.f_code not in self._codes:
            return
        if not _is_base(_caller_of(frame)):
            return
        base = _base_of(frame, self._codes[frame.f_code])
        if base is not None and base[0] not in self.outcomes and base[0] not in _ONCE:
            self._try(*base)


def _caller_of(frame: Any) -> str:
    """The file that a call stands in, behind decorators."""
    caller = frame.f_back
    while any(one in caller.f_code.co_filename for one in ("hdp_fast/_support", "contextlib")):
        caller = caller.f_back
    return caller.f_code.co_filename


def _is_base(file: str) -> bool:
    return file.startswith("<doctest")


def _is_callers(file: str) -> bool:
    return _is_base(file) or Path(file).name == Path(uses.__file__).name


def _codes_of(thing: Documented) -> Iterator[Any]:
    value = thing.value
    if inspect.isclass(value):
        for name in ("__init__", "__new__"):
            code = getattr(getattr(value, name), "__code__", None)
            if code is not None:
                yield code
    else:
        code = getattr(inspect.unwrap(value), "__code__", None)
        if code is not None:
            yield code


def _base_of(frame: Any, things: list[Documented]) -> tuple[str, Any, dict[str, Any]] | None:
    """The path of what is called, what to call again, and the arguments by name."""
    code = frame.f_code
    count = code.co_argcount + code.co_kwonlyargcount
    arguments = {name: frame.f_locals[name] for name in code.co_varnames[:count]}
    if inspect.CO_VARKEYWORDS & code.co_flags:
        index = count + bool(inspect.CO_VARARGS & code.co_flags)
        arguments |= frame.f_locals[code.co_varnames[index]]
    for thing in things:
        name = thing.path.rpartition(".")[2]
        if inspect.isclass(thing.value):
            first = next(iter(arguments.values()), None)
            made = first if inspect.isclass(first) else type(first)
            if made is not thing.value:
                continue
            rest = dict(list(arguments.items())[1:])
            return thing.path, thing.value, rest
        if thing.owner is None:
            return thing.path, thing.value, arguments
        first = next(iter(arguments.values()), None)
        owner = first if inspect.isclass(first) else type(first)
        if name in vars(owner) or issubclass(owner, thing.owner):
            static = isinstance(inspect.getattr_static(thing.owner, name), staticmethod)
            rest = arguments if static else dict(list(arguments.items())[1:])
            return thing.path, getattr(thing.owner if static else first, name), rest
    return None


def _try_all(path: str, function: Any, arguments: dict[str, Any], choice: Choice) -> Outcome:
    outcome, start = Outcome(path), time.perf_counter()
    apart = _in_a_child if _holds_state(function, arguments) else _at_once
    if apart(lambda: _try(path, function, arguments, "", "as they are"), path).faults():
        # An example of an error: another one will show a call that ends well.
        return Outcome("")
    arguments = _with_budget(function, arguments)
    for place, name in enumerate(arguments):
        for kind, value in choice.of(place, name, arguments[name]):
            changed = arguments | {name: value}
            one = apart(functools.partial(_try, path, function, changed, name, kind), path)
            outcome.calls += 1
            outcome.wrong += one.wrong
            outcome.unnamed += one.unnamed
    outcome.seconds = time.perf_counter() - start
    return outcome


def _at_once(work: Callable[[], Outcome], path: str) -> Outcome:
    return work()


def _holds_state(function: Any, arguments: dict[str, Any]) -> bool:
    """Whether a call uses up something that the next one would miss, such as agents."""
    owner = getattr(function, "__self__", None)
    kinds = (Uncopyable, labels.PrivateLabeler, labels.SoftLabeler, local.SimulatedEntry)
    return any(isinstance(one, kinds) for one in (owner, *arguments.values()))


def _with_budget(function: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments, with a ledger where the call takes one: bad calls must not spend of it."""
    if "budget" not in arguments or arguments["budget"] is not None:
        return arguments
    spending = arguments | {"budget": budget.Budget(1e6, 0.9)}
    tried = _in_a_child(lambda: _try("", function, spending, "", "with a budget"), "")
    return arguments if tried.faults() else spending


def _try(path: str, function: Any, arguments: dict[str, Any], name: str, kind: str) -> Outcome:
    """What is wrong with the end of a call."""
    books = [one for one in arguments.values() if isinstance(one, budget.Budget)]
    before, where, outcome = [book.spent for book in books], f"{path}({name}={kind})", Outcome(path)
    files = _files(arguments)
    # What is drawn may be valid alone, and wrong beside another argument, which is named then.
    about = [name] if kind in VALUES or not name else [*arguments]
    signal.setitimer(signal.ITIMER_REAL, _LONGEST)
    try:
        function(**arguments)
    except HdpFastError as error:
        if [book.spent for book in books] != before:
            outcome.wrong.append(f"{where}: spent before {error}")
        if not any(_names(one, str(error)) for one in about):
            outcome.unnamed.append(f"{where}: {error}")
        if name and _files(arguments) != files:
            outcome.wrong.append(f"{where}: changed files before {error}")
    except (ImportError, MemoryError):
        # The extra that is missing is named, and so is the room that nothing has.
        pass
    except BaseException as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        # The contract of scikit-learn's estimators, which advice runs: its own checks come first.
        estimates = ".sklearn." in path or path == "hdp_fast.advice.Advice.run"
        is_agreed = estimates and isinstance(error, ValueError | TypeError)
        # An error that the docstring promises, such as an IndexError of a row that is not there.
        is_agreed = is_agreed or _says_so(path, error)
        is_agreed = is_agreed or (path in _LONG and isinstance(error, TimeoutError))
        # A function of the caller itself may raise whatever it likes.
        if is_agreed and name:
            pass
        elif not name or not _is_callers(place.filename):
            at = f"{place.filename.rpartition('hdp_fast/')[2]}:{place.lineno}"
            outcome.wrong.append(f"{where}: {type(error).__name__}: {str(error)[:90]} ({at})")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return outcome


def _says_so(path: str, error: BaseException) -> bool:
    thing = callables().get(path.partition(",")[0])
    raises = thing.sections.get("raises", ()) if thing else ()
    names = {kind.__name__ for kind in type(error).__mro__}
    return any(str(item.annotation) in names for item in raises)


def _files(arguments: dict[str, Any]) -> set[tuple[str, int]]:
    """What stands where a call may write: beside its files, and where it runs."""
    texts = [str(one) for one in arguments.values() if isinstance(one, str | Path)]
    places = {Path(text).parent for text in texts if changes.is_file(text)} | {Path.cwd()}
    inside = [place for place in places if tempfile.gettempdir() in str(place.absolute())]
    entries = [entry for place in inside for entry in place.iterdir()]
    # The file of a ledger grows where a reservation is given back.
    return {(str(entry), entry.stat().st_size) for entry in entries if not _is_ledger(entry)}


def _is_ledger(path: Path) -> bool:
    return path.name.endswith(("-wal", "-shm", "-journal"))


# What errors call an argument that is passed on under another name.
_ALIASES = {
    "name": ("id",),
    "domain": ("X",),
    "public": ("frame",),
    "X": ("A",),
    "text": ("no JSON", "question", "schema"),
    "path": ("can't read", "data file", "the file", "no JSON", "state"),
    "hypothesis": ("kind", "features", "values", "complement"),
    "table": ("a column",),
    "defaults": ("missing",),
    "scores": ("queries",),
    "model": ("hypothesis",),
    "other": ("hypothesis",),
    "categories": ("k",),
    "texts": ("a value",),
}


def _names(argument: str, text: str) -> bool:
    """Whether a text in one line names the argument, or its last word, as one of two epsilons."""
    words = {argument, argument.split("_")[-1], argument.rstrip("s"), *_ALIASES.get(argument, ())}
    is_named = any(re.search(rf"\b{re.escape(word)}", text) for word in words if word)
    return is_named and "\n" not in text


def without_base(outcomes: Iterable[str]) -> list[str]:
    """What takes arguments from people, and was called by no one."""
    called = {path.partition(",")[0] for path in outcomes}
    asked = [path for path, thing in callables().items() if _takes_arguments(thing)]
    known = called | EXEMPT.keys()
    return [path for path in asked if path not in known and not path.startswith(_EXEMPT_ROOM)]


# What has no base here, and why.
EXEMPT = {
    "hdp_fast.learners.SGDPlan.weight_variances": "weight_noise calls it with curvatures",
    "hdp_fast.data.State.require": "jobs call it with their own name and settings",
    "hdp_fast.budget.Reservation": "Budget.reserve makes it",
    "hdp_fast.collection.ReportFolder.ask": "RemoteAgents calls it, and waits for it",
    "hdp_fast.collection.ReportFolder.collect": "RemoteAgents calls it",
    "hdp_fast.collection.Study.create": "makes a folder, once; tests/collection tries all",
    "hdp_fast.collection.SurveyServer.ask": "RemoteAgents calls it, and waits for it",
    "hdp_fast.collection.SurveyServer.collect": "RemoteAgents calls it",
    "hdp_fast.collection.serve_survey": "ends with its process",
    "hdp_fast.local.Agents.recall": "a run that is resumed calls it, after its checkpoint",
    "hdp_fast.local.RemoteAgents.recall": "likewise",
    "hdp_fast.local.Agents.rehearse": "runs a function of the caller, whose errors it passes on",
    "hdp_fast.local.MaskedParityAgents.rehearse": "likewise",
    "hdp_fast.local.FrequencyAggregate": "Randomizer.aggregate makes it",
    "hdp_fast.local.MeanAggregate": "Randomizer.aggregate makes it",
    "hdp_fast.local.Query": "its class methods make it",
    "hdp_fast.local.SQOracle.query": "a protocol",
    "hdp_fast.local.TransparentRandomizer.sample": "a protocol",
    "hdp_fast.local.TransparentRandomizer.log_probability": "a protocol",
    "hdp_fast.stability.GaussianSession": "GaussianVote.session makes it",
    "hdp_fast.stability.GaussianVote": "GaussianVote.design makes it",
    "hdp_fast.stability.TableSession": "the tables' session makes it",
    "hdp_fast.statistics.Shares": "CrossTables.shares makes it",
    "hdp_fast.transfer.SubsampleTestReweigh.resume": "tests/transfer ends runs and resumes them",
}
# Where no parity fits the records they draw, their loops make some 10 / beta tries, and say so.
_LONG = {"hdp_fast.parity.learn", "hdp_fast.parity.transfer"}
# What its example cannot be changed into, as a second call has another end.
_ONCE = {"hdp_fast.collection.Study.create"}
# The contract of scikit-learn's own checks, which tests/sklearn holds them to.
_EXEMPT_ROOM = "hdp_fast.sklearn."


def _takes_arguments(thing: Documented) -> bool:
    value = thing.value
    if inspect.isclass(value):
        # Fields that no one checks: results and plans, which calls make and people read.
        fields = issubclass(value, tuple) or dataclasses.is_dataclass(value)
        if fields and not hasattr(value, "__post_init__"):
            return False
        if issubclass(value, BaseException) or getattr(value, "_is_protocol", False):
            return False
        if inspect.isabstract(value) or issubclass(value, enum.Enum):
            return False
    return bool(thing.parameters)


def _in_a_child(work: Callable[[], Outcome], path: str) -> Outcome:
    """What `work` returns in a child of this process, whatever it does to itself."""
    read, write = os.pipe()
    stack = tempfile.TemporaryFile()  # noqa: SIM115 - the child writes into it as it ends
    parent, child = os.getpid(), os.fork()
    if not child:
        faulthandler.dump_traceback_later(_STUCK, exit=True, file=stack)
        # A ledger in memory serves the process alone that made it, and the child stands in for it.
        os.getpid = lambda: parent
        try:
            gc.disable()
            result = work()
        except BaseException as error:
            result = Outcome(path, wrong=[f"{path}: the walk itself failed: {error!r}"])
        os.close(read)
        with open(write, "wb") as pipe:
            pipe.write(pickle.dumps(result))
        os._exit(0)
    os.close(write)
    with open(read, "rb") as pipe:
        content = pipe.read()
    _, status = os.waitpid(child, 0)
    with stack:
        stack.seek(0)
        frames = [line for line in stack.read().decode().splitlines() if "File" in line]
    if frames and "/polars/" in frames[0]:
        # It waits for its threads, which a fork has not.
        return Outcome(path)
    if status or not content:
        at = frames[0].strip() if frames else ""
        return Outcome(path, wrong=[f"{path}: the process ended with {status} {at}"])
    return pickle.loads(content)


def _interrupt(*_: Any) -> None:
    raise TimeoutError(f"still running after {_LONGEST} s")


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as cache:
        warnings.simplefilter("ignore")
        os.environ.setdefault("XDG_CACHE_HOME", cache)
        kept = signal.signal(signal.SIGALRM, _interrupt)
        # A child copies each page that it writes to, and the collector writes to all.
        gc.collect()
        gc.freeze()
        try:
            yield
        finally:
            gc.unfreeze()
            signal.signal(signal.SIGALRM, kept)


def _run_example(name: str, text: str) -> None:
    parser = doctest.DocTestParser()
    test = parser.get_doctest(text, {"__name__": "__main__"}, name, None, None)
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=lambda _: None)


def main(arguments: list[str]) -> int:
    """Prints what is wrong."""
    parser = argparse.ArgumentParser(description="every public callable with bad arguments")
    parser.add_argument("paths", nargs="*", help="beginnings of their names")
    parser.add_argument("--seconds", type=float, default=0.0, help="draw values for so long")
    parser.add_argument("--seed", type=int, default=0, help="what the first ones are drawn by")
    asked = parser.parse_args(arguments)
    if not asked.seconds:
        outcomes = Walk(VALUES, asked.paths).run()
        tell(outcomes, slowest=15)
        missing = [] if asked.paths else without_base(outcomes)
        print(*(f"no base call: {path}" for path in missing), sep="\n")
        return int(any(outcome.wrong for outcome in outcomes.values()))
    end, seed, faults = time.monotonic() + asked.seconds, asked.seed, 0
    while time.monotonic() < end:
        work = Walk(VALUES, asked.paths, most=0, drawn=3, seed=seed)
        outcomes = work.run(until=end)
        print(f"seed {seed}")
        tell(outcomes)
        # An error may name what it found in an argument, such as a key of JSON: that is to be read.
        faults += sum(len(outcome.wrong) for outcome in outcomes.values())
        seed += 1
    return int(faults > 0)


def tell(outcomes: dict[str, Outcome], slowest: int = 0) -> None:
    """Prints what became of a walk."""
    if not outcomes:
        raise SystemExit("no public callable has such a name: parity.transfer is one")
    for kept in ("wrong", "unnamed"):
        for outcome in outcomes.values():
            for line in getattr(outcome, kept):
                print(f"{kept}: {line}")
    for outcome in sorted(outcomes.values(), key=lambda one: -one.seconds)[:slowest]:
        print(f"{outcome.seconds:6.2f} s  {outcome.path}, {outcome.calls} calls")
    calls = sum(outcome.calls for outcome in outcomes.values())
    seconds = sum(outcome.seconds for outcome in outcomes.values())
    print(f"{len(outcomes)} callables, {calls} calls in {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
