"""How much of the package and of the core the tests run, by folder, and what they leave out.

    make coverage

runs the tests of the core and of the package in a copy of the repository under build/coverage,
whose compiled module counts its lines, too; the processes that tests start are measured as well.
It lists what no test runs and fails below the floors. A function that no test enters is dead or
wants a test, or stands in uncovered.toml with a reason; the run fails where it does not, and where
a reason is given for what is not there or for what a test runs.
"""

from __future__ import annotations

import argparse
import ast
import collections
import fnmatch
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import mutant_runs
import mutants
from mutants import PACKAGE, ROOT

BUILD = ROOT / "build" / "coverage"
TREE = BUILD / "tree"
LISTED = Path(__file__).parent / "uncovered.toml"
# Percent of lines and branches.
FLOORS = {"python lines": 95.0, "python branches": 90.0, "rust lines": 90.0}
ORDINARY = ("tests", "--ignore=tests/statistical", "--ignore=tests/browser")
CRATES = ("hdp-fast-core", "hdp-fast-device")
# Counters live in a file that processes share: workers and killed ones write none when they end.
COUNT = "-Cinstrument-coverage -Cllvm-args=-runtime-counter-relocation"
# Between two looks at Ctrl-C a kernel whose threads share counters takes up to fifteen seconds.
PATIENCE = "6"
# A child that a test kills leaves half a file.
HALF_FILES = ("Data file", "Couldn't use data file")
SETTINGS = """[run]
branch = true
parallel = true
patch = subprocess
    _exit
source_pkgs = hdp_fast
data_file = {data}
disable_warnings = no-data-collected, module-not-measured, module-not-imported
[report]
exclude_also =
    if TYPE_CHECKING:
    @overload
    ^\\s*\\.\\.\\.$
"""


ITEM = re.compile(
    r"\s*(?:pub(?:\(\w+\))? )?(?:const |unsafe )*(?:fn|impl(?:<.*?>)?|mod|trait) ([^({]+)"
)


class Part(NamedTuple):
    """What a file has, and what of it was run; branches are those of Python alone."""

    path: Path
    lines: frozenset[int]
    missing: frozenset[int]
    branches: int = 0
    missing_branches: int = 0


def llvm(tool: str) -> str:
    """The program of LLVM that reads what this compiler counts.

    Raises:
        SystemExit: there is none of the compiler's version.
    """
    named = os.environ.get({"llvm-cov": "LLVM_COV", "llvm-profdata": "LLVM_PROFDATA"}[tool])
    version = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    major = re.search(r"LLVM version: (\d+)", version)[1]
    for program in (named, f"{tool}-{major}", f"/usr/lib/llvm-{major}/bin/{tool}"):
        if program and (whole := shutil.which(program)):
            return whole
    mend = f"apt-get install llvm-{major}, or set LLVM_COV and LLVM_PROFDATA"
    raise SystemExit(f"{tool} of LLVM {major} is not here: {mend}")


def build(target: Path) -> list[Path]:
    """Builds the core's tests and the module so that they count; returns all of them."""
    wrapper = BUILD / "rustc"
    wrapper.write_text(f'#!/bin/sh\nexec "$@" {COUNT}\n')
    wrapper.chmod(0o755)
    environment = {
        **os.environ,
        "RUSTC_WORKSPACE_WRAPPER": str(wrapper),
        "LLVM_PROFILE_FILE": str(BUILD / "build" / "%p.profraw"),
    }
    cargo = ["--profile", "quick", "--target-dir", str(target), "--message-format", "json"]
    packages = [part for crate in CRATES for part in ("--package", crate)]
    objects = []
    for command in (["test", "--no-run", *packages], ["build", "--package", "hdp-fast-py"]):
        run = subprocess.run(
            ["cargo", *command, *cargo],
            cwd=TREE,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        if run.returncode:
            raise SystemExit("the instrumented crates do not compile")
        built = [json.loads(line) for line in run.stdout.splitlines()]
        objects += [Path(line["executable"]) for line in built if line.get("executable")]
    module = TREE / PACKAGE / "_core.abi3.so"
    shutil.copy2(target / "quick" / "lib_core.so", module)
    return [*objects, module]


def run_tests(objects: list[Path], workers: str, tests: list[str]) -> list[str]:
    """Runs the core's tests and those of the package; returns which of them fail."""
    counts = {"LLVM_PROFILE_FILE": str(BUILD / "rust" / "%m%c.profraw")}
    environment = mutant_runs.variables(TREE, HDP_FAST_PATIENCE=PATIENCE, **counts)
    failed = []
    for program in objects[:-1]:
        if subprocess.run([program, "--quiet"], cwd=TREE / "rust/core", env=environment).returncode:
            failed.append(f"tests fail: {program.name}")
    settings = BUILD / "settings"
    settings.write_text(SETTINGS.format(data=BUILD / "python" / "data"))
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={settings}", "-m", "pytest"]
    command += ["-q", "-p", "no:cacheprovider", "--numprocesses", workers, "--dist", "worksteal"]
    if subprocess.run([*command, *tests], cwd=TREE, env=environment).returncode:
        failed.append(f"tests fail: pytest {' '.join(tests)}")
    silent = [f"-Wignore:{text}" for text in HALF_FILES]
    combine = [sys.executable, *silent, "-m", "coverage", "combine", "-q", f"--rcfile={settings}"]
    subprocess.run(combine, cwd=TREE, check=True)
    return failed


def read_python() -> list[Part]:
    """The files of the package."""
    report = BUILD / "python.json"
    command = [sys.executable, "-m", "coverage", "json", "-q", f"--rcfile={BUILD / 'settings'}"]
    subprocess.run([*command, "-o", str(report)], cwd=TREE, check=True)
    parts = []
    for name, file in json.loads(report.read_text())["files"].items():
        path = PACKAGE / name.split("hdp_fast/", 1)[1]
        missing = frozenset(file["missing_lines"])
        lines = missing | frozenset(file["executed_lines"])
        summary = file["summary"]
        parts.append(
            Part(path, lines, missing, summary["num_branches"], summary["missing_branches"])
        )
    return parts


def read_rust(objects: list[Path]) -> list[Part]:
    """The files of the crates, without their tests."""
    profile = BUILD / "rust.profdata"
    raw = sorted(map(str, (BUILD / "rust").glob("*.profraw")))
    subprocess.run([llvm("llvm-profdata"), "merge", "-sparse", *raw, "-o", profile], check=True)
    counts: dict[Path, collections.Counter[int]] = collections.defaultdict(collections.Counter)
    # One after the other: of a function that several hold in different forms, llvm-cov counts one.
    for program in objects:
        command = [llvm("llvm-cov"), "export", "-format=lcov", f"-instr-profile={profile}", program]
        text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        for path, lines in counts_of_lines(text).items():
            counts[path].update(lines)
    parts = []
    for path, lines in sorted(counts.items()):
        tests = lines_of_tests((ROOT / path).read_text())
        ran = {number: count for number, count in lines.items() if number not in tests}
        missing = frozenset(number for number, count in ran.items() if not count)
        parts.append(Part(path, frozenset(ran), missing))
    return parts


def counts_of_lines(text: str) -> dict[Path, dict[int, int]]:
    """How often each line of the crates was run, from what llvm-cov exports."""
    counts: dict[Path, dict[int, int]] = {}
    lines: dict[int, int] = {}
    for line in text.splitlines():
        if line.startswith("SF:"):
            file, lines = Path(line[3:]), {}
            if file.is_relative_to(TREE / "rust") and "src" in file.relative_to(TREE).parts:
                counts[file.relative_to(TREE)] = lines
        elif line.startswith("DA:"):
            number, count = line[3:].split(",")[:2]
            lines[int(number)] = int(count)
    return counts


def lines_of_tests(source: str) -> set[int]:
    """The lines of a file of Rust that are compiled for tests alone."""
    lines, tests = source.splitlines(), set()
    for start, line in enumerate(lines):
        if line.strip() == "#[cfg(test)]":
            indent = line[: len(line) - len(line.lstrip())]
            ends = (i for i in range(start + 1, len(lines)) if lines[i] == f"{indent}}}")
            tests |= set(range(start + 1, next(ends, start + 1) + 2))
    return tests


def folder(path: Path) -> str:
    """The row of the table that a file belongs to."""
    if path.is_relative_to(PACKAGE):
        first = path.relative_to(PACKAGE).parts
        return f"hdp_fast/{first[0]}" if len(first) > 1 else "hdp_fast"
    crate, _, *rest = path.relative_to("rust").parts
    return f"rust/{crate}/{rest[0]}" if len(rest) > 1 else f"rust/{crate}"


def percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 100.0


def table(parts: list[Part]) -> list[str]:
    """A row for each folder, and one for all."""
    rows = collections.defaultdict(list)
    for part in parts:
        rows[folder(part.path)].append(part)
    text = ["| folder | lines | run | branches | run |", "| --- | ---: | ---: | ---: | ---: |"]
    for name, files in [*sorted(rows.items()), ("all", parts)]:
        lines, missing, branches, left = totals(files)
        row = f"| {name} | {lines:,} | {percent(lines - missing, lines):.1f} % "
        share = f"{percent(branches - left, branches):.1f} %"
        text.append(row + (f"| {branches:,} | {share} |" if branches else "| | |"))
    return text


def totals(parts: list[Part]) -> tuple[int, int, int, int]:
    return (
        sum(len(part.lines) for part in parts),
        sum(len(part.missing) for part in parts),
        sum(part.branches for part in parts),
        sum(part.missing_branches for part in parts),
    )


def functions(path: Path) -> dict[int, str]:
    """The function around each line of a file."""
    source = (ROOT / path).read_text()
    around: dict[int, str] = {}
    if path.suffix == ".py":
        tree = ast.parse(source)
        for node, (name, _) in mutants.places(tree).items():
            if isinstance(node, mutants.FUNCTIONS):
                name = f"{name}.{node.name}".lstrip(".")
                for line in range(node.lineno, node.end_lineno + 1):
                    around[line] = name
        return around
    # rustfmt has written it: what is indented less has ended.
    stack: list[tuple[int, str]] = []
    for number, line in enumerate(source.splitlines(), 1):
        indent = len(line) - len(line.lstrip())
        item = ITEM.match(line)
        while line.strip() and stack and (indent, not item) < (stack[-1][0], True):
            stack.pop()
        if item:
            stack.append((indent, item[1].strip()))
        around[number] = "::".join(name for _, name in stack)
        # What follows may be an attribute of the next one.
        if stack and (line == f"{' ' * stack[-1][0]}}}" or (item and line.endswith((";", "}")))):
            stack.pop()
    return around


class Reason(NamedTuple):
    """Why what stands in a file, or in one function of it, is not run."""

    path: str
    place: str | None
    reason: str

    def names(self, path: Path, place: str) -> bool:
        here = self.place is None or fnmatch.fnmatch(place, self.place)
        return here and fnmatch.fnmatch(str(path), self.path)


def explain(parts: list[Part]) -> tuple[list[str], list[str]]:
    """The places that are not run with their reasons, and what is wrong with the list."""
    entries = tomllib.loads(LISTED.read_text())["uncovered"]
    listed = [Reason(entry["path"], entry.get("place"), entry["reason"]) for entry in entries]
    text, wrong, used = [], [], set()
    for part in parts:
        around = functions(part.path) if part.missing else {}
        places = collections.defaultdict(list)
        for line in sorted(part.missing):
            places[around.get(line, "")].append(line)
        for place, lines in places.items():
            where = f"{part.path}:{', '.join(spans(lines))} {place}".rstrip()
            reason = next((reason for reason in listed if reason.names(part.path, place)), None)
            used.add(reason)
            text.append(f"{where}: {reason.reason}" if reason else where)
            if not reason and place and never_entered(part, place, around):
                wrong.append(f"no test enters this, and no reason is given: {where}")
    idle = [reason for reason in listed if reason not in used]
    return text, wrong + [f"no test leaves this out: {name.path} {name.place}" for name in idle]


def never_entered(part: Part, place: str, around: dict[int, str]) -> bool:
    """Whether no line of a function is run but, in Python, the one that defines it."""
    lines = {line for line in part.lines if around.get(line) == place}
    first = {min(line for line, name in around.items() if name == place)}
    return not lines - part.missing - (first if part.path.suffix == ".py" else set())


def spans(lines: list[int]) -> list[str]:
    """Lines in a row as first-last."""
    rows: list[list[int]] = []
    for line in lines:
        if rows and line == rows[-1][-1] + 1:
            rows[-1].append(line)
        else:
            rows.append([line])
    return [f"{row[0]}-{row[-1]}" if len(row) > 1 else f"{row[0]}" for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", default="3")
    parser.add_argument("--again", action="store_true", help="read what the last run counted")
    parser.add_argument("tests", nargs="*", help="what is handed on to pytest", default=ORDINARY)
    arguments = parser.parse_args()
    llvm("llvm-cov"), llvm("llvm-profdata")
    objects, failed = BUILD / "objects.json", []
    if not arguments.again:
        for name in ("rust", "python", "build"):
            shutil.rmtree(BUILD / name, ignore_errors=True)
            (BUILD / name).mkdir(parents=True)
        mutant_runs.copy_tree(TREE)
        built = build(BUILD / "target")
        objects.write_text(json.dumps(list(map(str, built))))
        failed = run_tests(built, arguments.workers, list(arguments.tests))
    python = read_python()
    rust = read_rust([Path(name) for name in json.loads(objects.read_text())])
    text, wrong = explain([*python, *rust])
    print("\n".join([*text, "", *table(python), "", *table(rust), ""]))
    lines, missing, branches, left = totals(python)
    rust_lines, rust_missing, *_ = totals(rust)
    shares = (
        percent(lines - missing, lines),
        percent(branches - left, branches),
        percent(rust_lines - rust_missing, rust_lines),
    )
    for (name, floor), share in zip(FLOORS.items(), shares, strict=True):
        print(f"{name}: {share:.1f} %, at least {floor:.0f} %")
        wrong += [f"{name}: {share:.1f} % is less than {floor:.0f} %"] if share < floor else []
    wrong += failed
    print("\n".join(wrong))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
