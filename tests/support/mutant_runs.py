"""Which tests see small mistakes in the package and in the core, one at a time?

    make mutants MUTANTS=300 SEED=1
    make mutants MUTANTS=100 SEED=1 OF=core

draws so many places of the packages of `mutants.STEMS` and asks the quick part of the tests of
the same package that reach them, the shortest first. Which do, a run of those tests tells at the
beginning. All happens in copies of the repository under build/mutants, where a run that was ended
goes on: what has been killed is not asked again.

A mutant that lives is a test that is missing, or it changes nothing that anybody could see. Those
stand in equivalent_mutants.toml with a reason. The harness refuses a list that names what is not
there or what a test kills, and fails where a mutant lives that the list does not name.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import functools
import itertools
import json
import math
import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import NamedTuple

import coverage
import mutants as drawn_mutants
from mutants import PACKAGE, ROOT, STEMS, Mutant

BUILD = ROOT / "build" / "mutants"
LISTED = Path(__file__).parent / "equivalent_mutants.toml"
COPIED = (".ci", ".github", "packaging", "python", "tests", "benches", "docs", "examples", "rust")
# Seconds of tests that a mutant is shown, and how much longer they may take with it.
SHOWN, SLOWER, SPARE = 60.0, 5.0, 30.0
# Of processor time, for one program of the core's tests.
CORE_LIMIT = 120
LIBRARY = "hdp_fast_core"
# Who tests a folder of the core beside the package of its name: learners release those sums.
USERS = {
    "statistics": (
        Path("tests/learners/test_feature_maps.py"),
        Path("tests/learners/test_feature_sums.py"),
        Path("tests/learners/test_sufficient_statistics.py"),
    )
}
KILLED, TIMED_OUT, LIVES = "killed", "timed out", "LIVES"


class Answer(NamedTuple):
    """What the tests said about a mutant, the test that saw it, and how many were asked."""

    state: str
    killer: str
    tests: int


def copy_tree(place: Path, changed: dict[Path, bytes] | None = None) -> Path:
    """A copy of the repository, where some files hold something else.

    What stands there already keeps its date, so that nothing is compiled again for it.
    """
    files = {path.relative_to(ROOT): None for path in ROOT.iterdir() if path.is_file()}
    for name in COPIED:
        files |= {path.relative_to(ROOT): None for path in (ROOT / name).rglob("*")}
    files |= changed or {}
    for path, text in files.items():
        source, copied = ROOT / path, place / path
        if "__pycache__" in path.parts or path.name == ".git" or source.is_dir():
            continue
        text = source.read_bytes() if text is None else text
        if not copied.exists() or copied.read_bytes() != text:
            copied.parent.mkdir(parents=True, exist_ok=True)
            copied.write_bytes(text)
            shutil.copymode(source if source.exists() else LISTED, copied)
    for name in COPIED:
        for path in [*(place / name).rglob("*")]:
            if path.is_file() and path.relative_to(place) not in files:
                path.unlink()
    return place


def list_tests(stem: str, of: str) -> list[str]:
    """The tests of a package, or of a folder of the core."""
    own = (Path("tests") / stem, Path(f"tests/test_{stem}.py"))
    if of == "core":
        own += USERS.get(stem, ())
    return [str(place) for place in own if (ROOT / place).exists()]


def list_files(stem: str, of: str) -> list[Path]:
    """The files of those tests."""
    places = [ROOT / place for place in list_tests(stem, of)]
    return [
        path
        for place in places
        for path in (sorted(place.rglob("test_*.py")) if place.is_dir() else [place])
    ]


def last_change(mutant: Mutant) -> float:
    """When a test of its package was changed, or of its folder of the core."""
    files = list_files(mutant.stem, mutant.of)
    if mutant.of == "core":
        core = ROOT / "rust" / "core"
        files += [*(core / "src" / mutant.stem).rglob("*.rs"), *(core / "tests").rglob("*.rs")]
    return max((path.stat().st_mtime for path in files), default=0.0)


def variables(tree: Path, **more: str) -> dict[str, str]:
    paths = os.pathsep.join(str(tree / part) for part in ("python", "tests/support"))
    return {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", **more}


class Map:
    """Which tests reach a mutant, by one run of the tests of some packages.

    Args:
        tree: A copy of the repository.
        place: The folder where what the run tells is kept; it is not run again.
        compiled: How many mutants of the core are compiled in; if none, lines are told instead.
    """

    def __init__(
        self, tree: Path, place: Path, stems: tuple[str, ...], compiled: int, workers: str
    ):
        if not (place / "whole").exists():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir(parents=True)
            self._run(tree, place, stems, compiled, workers)
            (place / "whole").touch()
        self._of = "core" if compiled else "package"
        self._made = (place / "whole").stat().st_mtime
        self._seconds: dict[str, float] = {}
        self._reached = collections.defaultdict(set)
        self._files: dict[str, float] = collections.Counter()
        for path in place.glob("*.json"):
            for test, (seconds, reached) in json.loads(path.read_text()).items():
                self._seconds[test] = seconds
                self._files[test.split("::")[0]] += seconds
                for index in reached:
                    self._reached[index].add(test)
        self._lines: dict[str, dict[int, list[str]]] = {}
        self._data = coverage.CoverageData(str(place / "lines"))
        if not compiled:
            self._data.read()
        self._names = {name.split("hdp_fast/", 1)[1]: name for name in self._data.measured_files()}

    def _run(self, tree: Path, place: Path, stems: tuple[str, ...], compiled: int, workers: str):
        settings = place / "settings"
        settings.write_text(
            "[run]\nparallel = true\npatch = subprocess\n\t_exit\nsource_pkgs = hdp_fast\n"
            f"data_file = {place / 'lines'}\ndisable_warnings = no-data-collected\n"
        )
        measure = [] if compiled else ["coverage", "run", f"--rcfile={settings}", "-m"]
        command = [sys.executable, "-m", *measure, "pytest", "-p", "reached", "--quick", "-q"]
        command += ["-p", "no:cacheprovider", "--numprocesses", workers, "--dist", "worksteal"]
        of = "core" if compiled else "package"
        command += [test for stem in stems for test in list_tests(stem, of)]
        # Faster ways to measure tell a line to the first test alone that runs it.
        more = {"HDP_FAST_REACHED": str(place), "COVERAGE_CORE": "ctrace"}
        more["HDP_FAST_MUTANTS"] = str(compiled)
        run = subprocess.run(command, cwd=tree, env=variables(tree, **more))
        if run.returncode not in (0, 1):
            raise SystemExit("the tests do not run without any mutant")
        if run.returncode:
            print("what failed without any mutant is not asked", flush=True)
        if measure:
            combine = [sys.executable, "-m", "coverage", "combine", "-q", f"--rcfile={settings}"]
            subprocess.run(combine, cwd=tree, check=True)

    def tests(self, mutant: Mutant, index: int | None) -> list[tuple[list[str], float]]:
        """What is asked in turn, with the seconds that it takes.

        First the tests that reach the mutant, the shortest first, then their files as a whole:
        what a fixture or a cache keeps is reached by the first test that needs it alone. With
        these go the files of tests that were written since the run.
        """
        reaching = self._reached[index] if index is not None else self._reaching(mutant)
        own = tuple(list_tests(mutant.stem, self._of))
        seconds = self._seconds
        tests = sorted(reaching, key=lambda test: (not test.startswith(own), seconds[test], test))
        tests = self._shown(tests, seconds)
        files = sorted({test.split("::")[0] for test in reaching}, key=self._files.__getitem__)
        files = self._shown([file for file in files if file.startswith(own)], self._files)
        files = list(dict.fromkeys([*self._newer(mutant.stem), *files]))
        every = {**seconds, **self._files}
        stages = (tests, files)
        return [(part, sum(every.get(test, 10.0) for test in part)) for part in stages if part]

    def _shown(self, tests: list[str], seconds: dict[str, float]) -> list[str]:
        """As many as a mutant is shown."""
        totals = itertools.accumulate(seconds[test] for test in tests)
        return [
            test
            for place, (test, total) in enumerate(zip(tests, totals, strict=True))
            if not place or total < SHOWN
        ]

    def _newer(self, stem: str) -> list[str]:
        newer = [path for path in list_files(stem, self._of) if path.stat().st_mtime > self._made]
        return [str(path.relative_to(ROOT)) for path in newer]

    def _reaching(self, mutant: Mutant) -> set[str]:
        """The tests that run its line, else its statement, else its file: what runs on import."""
        name = str(mutant.path.relative_to(PACKAGE))
        if name not in self._lines:
            measured = self._names.get(name)
            self._lines[name] = self._data.contexts_by_lineno(measured) if measured else {}
        lines = self._lines[name]
        first, last = mutant.lines
        for numbers in ([mutant.line], range(first, last + 1), lines):
            tests = {test for number in numbers for test in lines.get(number, [])}
            if known := tests & self._seconds.keys():
                return known
        return set()


class Tests:
    """A process that runs tests of a copy of the repository in forks of itself."""

    def __init__(self, tree: Path):
        self.tree = tree
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("forked.py"))],
            cwd=tree,
            env=variables(tree),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, stages: list[tuple[list[str], float]], **more: str) -> Answer:
        """Runs one list of tests after the other, until one fails."""
        asked = 0
        for tests, seconds in stages:
            asked = max(asked, len(tests))
            arguments = ["-q", "-x", "-p", "no:cacheprovider", *tests]
            request = json.dumps([arguments, SPARE + SLOWER * seconds, more])
            self._process.stdin.write(f"{request}\n")
            self._process.stdin.flush()
            status, output = json.loads(self._process.stdout.readline())
            if status:
                return read_status(status, output, asked)
        return Answer(LIVES, "", asked)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def read_status(status: int, output: str, asked: int) -> Answer:
    """What a run of tests that did not end well says."""
    if -status in (signal.SIGXCPU, signal.SIGKILL):
        return Answer(TIMED_OUT, "", asked)
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    other = f"signal {-status}" if status < 0 else "the package is not imported"
    return Answer(KILLED, failed[1] if failed else other, asked)


class Package:
    """Mutants of the package: each is written into a copy of the repository."""

    def __init__(self, arguments: argparse.Namespace):
        every = drawn_mutants.all_mutants(arguments.under)
        self.every = every
        self.mutants = drawn_mutants.draw(every, arguments.mutants, arguments.seed)
        trees = [copy_tree(BUILD / f"tree{i}") for i in range(arguments.at_once)]
        place = BUILD / "package_map"
        self._map = Map(trees[0], place, arguments.under, 0, arguments.workers)
        self._tests: queue.Queue[Tests] = queue.Queue()
        for tree in trees:
            self._tests.put(Tests(tree))
        self._writes = int(time.time()) - 10**8

    def ask(self, mutant: Mutant) -> Answer:
        tests = self._tests.get()
        try:
            mutant.write(tests.tree)
            self._date(tests.tree / mutant.path)
            return tests.ask(self._map.tests(mutant, None))
        finally:
            shutil.copy2(ROOT / mutant.path, tests.tree / mutant.path)
            self._tests.put(tests)

    def close(self) -> None:
        while not self._tests.empty():
            self._tests.get().close()

    def _date(self, path: Path) -> None:
        """Bytecode is told by the second of its source: each mutant has one of its own."""
        self._writes += 1
        os.utime(path, (self._writes, self._writes))


class Core:
    """Mutants of the core: all are compiled into one copy, and a variable turns one on."""

    def __init__(self, arguments: argparse.Namespace):
        import rust_mutants

        self.every = drawn_mutants.all_mutants(arguments.under, "core")
        self._tree, target = BUILD / "core", BUILD / "target"
        left = list(self.every)
        while True:
            self.mutants = drawn_mutants.draw(left, arguments.mutants, arguments.seed)
            # In the order of places, so that another order of the draw compiles nothing again.
            compiled = sorted(self.mutants)
            changed, stretches = rust_mutants.write(compiled)
            copy_tree(self._tree, changed)
            wrong, self._programs = rust_mutants.build(self._tree, target, stretches)
            if not wrong:
                break
            for index in wrong:
                print(f"does not compile: {compiled[index]}", flush=True)
                left.remove(compiled[index])
        rust_mutants.build_module(self._tree, target)
        place = BUILD / "core_map"
        identities = json.dumps([mutant.identity for mutant in compiled])
        if not (drawn := place / "drawn").exists() or drawn.read_text() != identities:
            shutil.rmtree(place, ignore_errors=True)
            self._try_without(arguments.under)
        stems = tuple(stem for stem in arguments.under if list_tests(stem, "core"))
        self._map = Map(self._tree, place, stems, len(compiled), arguments.workers)
        drawn.write_text(identities)
        self._tests: queue.Queue[Tests] = queue.Queue()
        for _ in range(arguments.at_once):
            self._tests.put(Tests(self._tree))
        self._index = {mutant.identity: i for i, mutant in enumerate(compiled)}

    def ask(self, mutant: Mutant) -> Answer:
        index = self._index[mutant.identity]
        on = {"HDP_FAST_MUTANT": str(index)}
        for name, program in self._programs:
            if name not in (LIBRARY, mutant.stem):
                continue
            status, output = self._run(
                program, [f"{mutant.stem}::"] if name == LIBRARY else [], **on
            )
            if status is None:
                return Answer(TIMED_OUT, name, 1)
            if status:
                failed = re.search(r"^test (\S+) .*FAILED$", output, re.MULTILINE)
                return Answer(KILLED, f"{name}: {failed[1] if failed else status}", 1)
        tests = self._tests.get()
        try:
            return tests.ask(self._map.tests(mutant, index), **on)
        finally:
            self._tests.put(tests)

    def close(self) -> None:
        while not self._tests.empty():
            self._tests.get().close()

    def _try_without(self, stems: tuple[str, ...]) -> None:
        for name, program in self._programs:
            if name in (LIBRARY, *stems) and self._run(program, [])[0]:
                raise SystemExit(f"{name} fails without any mutant")

    def _run(self, program: Path, names: list[str], **more: str) -> tuple[int | None, str]:
        """The status of a program of tests, None if it takes too long, and what it writes."""
        run = subprocess.Popen(
            ["prlimit", f"--cpu={CORE_LIMIT}", str(program), *names],
            cwd=self._tree / "rust" / "core",
            env={**os.environ, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with run:
            try:
                output, _ = run.communicate(timeout=60 + 10 * CORE_LIMIT)
            except subprocess.TimeoutExpired:
                run.kill()
                return None, ""
        return (
            None if -run.returncode in (signal.SIGXCPU, signal.SIGKILL) else run.returncode
        ), output


def read_listed() -> dict[tuple[str, ...], str]:
    """The mutants that are known to change nothing, with reasons.

    Raises:
        SystemExit: an entry is none of the mutants.
    """
    listed = {}
    for entry in tomllib.loads(LISTED.read_text())["mutant"]:
        identity = tuple(entry[name] for name in ("path", "place", "text", "before", "after"))
        identity += (str(entry.get("nth", 0)),)
        path = Path(entry["path"])
        mutants = drawn_mutants.find(path) if (ROOT / path).exists() else []
        if identity not in {mutant.identity for mutant in mutants}:
            raise SystemExit(f"{LISTED.name} names what is no mutant: {identity}")
        listed[identity] = entry["reason"]
    return listed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutants", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--of", choices=("package", "core"), default="package")
    parser.add_argument("--under", nargs="+", default=STEMS, help="packages, such as transfer")
    parser.add_argument("--workers", default="2", help="of the run that tells who reaches what")
    parser.add_argument("--at-once", type=int, default=2, help="mutants that are asked at a time")
    parser.add_argument("--minutes", type=float, default=math.inf, help="ask no more after so long")
    arguments = parser.parse_args()
    arguments.under = tuple(arguments.under)
    BUILD.mkdir(parents=True, exist_ok=True)
    harness = (Core if arguments.of == "core" else Package)(arguments)
    listed = read_listed()
    answers = Answers(BUILD / f"{arguments.of}.jsonl")
    print(f"{len(harness.mutants)} of {len(harness.every)} mutants, seed {arguments.seed}")
    counts: collections.Counter[str] = collections.Counter()
    ends = time.monotonic() + 60 * arguments.minutes
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.at_once) as pool:
        ask = functools.partial(answers.ask, harness, ends)
        for mutant, answer in zip(harness.mutants, pool.map(ask, harness.mutants), strict=True):
            state, note, failed = judge(answer, listed.get(mutant.identity))
            counts[state] += 1
            wrong += failed
            print(f"{state:10} {mutant}   {note}", flush=True)
    harness.close()
    print(", ".join(f"{count} {state}" for state, count in sorted(counts.items())))
    sys.exit(wrong > 0)


def judge(answer: Answer | None, reason: str | None) -> tuple[str, str, bool]:
    """What is said about a mutant, and whether the run fails for it."""
    if answer is None:
        return "not asked", "", False
    if answer.state != LIVES:
        listed = ": but it is listed as equivalent" if reason else ""
        return answer.state, answer.killer + listed, bool(reason)
    if reason:
        return "equivalent", reason, False
    return LIVES, f"after {answer.tests} tests", True


class Answers:
    """What was answered, in a file, which is not asked again.

    What lives is asked again once there are newer tests of its package.
    """

    def __init__(self, path: Path):
        self._path = path
        self._seen: dict[tuple[str, ...], tuple[Answer, float]] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                *identity, state, killer, tests, asked = json.loads(line)
                self._seen[tuple(identity)] = Answer(state, killer, tests), asked

    def ask(self, harness: Package | Core, ends: float, mutant: Mutant) -> Answer | None:
        """What the tests say about a mutant; None if the time is over."""
        if mutant.identity in self._seen:
            answer, asked = self._seen[mutant.identity]
            if answer.state != LIVES or last_change(mutant) < asked:
                return answer
        if time.monotonic() > ends:
            return None
        asked, answer = time.time(), harness.ask(mutant)
        with self._path.open("a") as log:
            log.write(json.dumps([*mutant.identity, *answer, asked]) + "\n")
        return answer


if __name__ == "__main__":
    main()
