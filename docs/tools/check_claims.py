"""Runs the commands of the page of claims, and writes what became of each into its last table.

docs/claims.md holds the claims and their commands, docs/evidence.toml the figures that a command
must print and what it needs, and docs/evidence.json the last run of each command, for each kind of
processor. The page's table of runs is written from these; `--check` fails where they differ.

    python docs/tools/check_claims.py                     every command that needs nothing
    python docs/tools/check_claims.py --also long quiet   those as well that take long, ...
    python docs/tools/check_claims.py --only parity       those that have this in them

A computed figure must be equal, a measured one within the band that is stated beside it.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "claims.md"
FIGURES, RUNS = PAGE.with_name("evidence.toml"), PAGE.with_name("evidence.json")
COMMAND = re.compile(r"`((?:[A-Z_]+=\S+ )?(?:python|make|cargo|hdp-fast) [^`]*)`")
TABLE = re.compile(r"(<!-- runs -->\n).*?(<!-- end -->)", re.DOTALL)
# What a command may need, and how the page says so.
NEEDS = {
    "long": "takes more than three minutes",
    "data": "needs the files of real data",
    "rivals": "needs other packages in an interpreter of their own",
    "quiet": "needs a quiet machine",
    "later": "is new",
    "browser": "needs Chromium",
}
# What stands for something of the reader's own.
OWN = {"FOLDER": "HDP_FAST_DATA", "PYTHON": "HDP_FAST_RIVALS"}
HOLDS, FAILS = "holds", "fails"
SUMMARY = re.compile(r"^=*\s*((?:\d+ \w+(?:, )?)+)(?: in [\d.]+s.*)$", re.M)

Runs = dict[str, dict[str, dict[str, Any]]]


@dataclass(frozen=True)
class Expected:
    """What is known of a command before it runs.

    Attributes:
        needs: what it needs beside a clone and its set-up, names of `NEEDS`.
        prints: lines that it prints, spaces aside; what is not * in them is computed.
        on_page: figures of those lines, which stand on the page too.
        page: the page, below docs.
        measured: tables of a pattern with one group, the value that it had, and the factor that
            it may differ by; or the most that it may be.
        stored: whether its times are compared with those of benches/results.
        minutes: after how many it is ended.
    """

    needs: tuple[str, ...] = ()
    prints: tuple[str, ...] = ()
    on_page: tuple[str, ...] = ()
    page: str = ""
    measured: tuple[dict[str, Any], ...] = ()
    stored: bool = False
    minutes: float = 30.0

    def missing(self) -> list[str]:
        """Figures of the page that are not there, or that no line prints."""
        if not self.on_page:
            return []
        text = (PAGE.parent / self.page).read_text("utf-8")
        lines = " ".join(self.prints)
        return [one for one in self.on_page if not (_stands(one, text) and _stands(one, lines))]


@dataclass
class Result:
    """What became of a command."""

    words: list[str] = field(default_factory=list)
    seconds: float = 0.0
    tests: str = ""

    def entry(self) -> dict[str, Any]:
        """What is kept of it."""
        kept: dict[str, Any] = {"day": datetime.now(UTC).date().isoformat()}
        kept["result"] = FAILS if self.words else HOLDS
        kept["seconds"] = float(f"{self.seconds:.2g}")
        return kept | ({"tests": self.tests} if self.tests else {})


def _stands(figure: str, text: str) -> bool:
    """Whether a figure is in a text, and not a part of a longer one."""
    return re.search(rf"(?<![\d,.]){re.escape(figure)}(?![\d,]*\d)", text) is not None


def commands(text: str) -> list[str]:
    """All commands of the page's claims, each once: what stands in a second cell."""
    cells = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")]
    named = [line[1] for line in cells if len(line) >= 3]
    return list(dict.fromkeys(command for cell in named for command in COMMAND.findall(cell)))


def expectations(known: list[str]) -> dict[str, Expected]:
    """What is known of each command; that of a command that is not on the page is an error."""
    tables = tomllib.loads(FIGURES.read_text("utf-8"))["command"]
    if surplus := tables.keys() - {*known}:
        raise SystemExit(f"{FIGURES.name} has commands that {PAGE.name} has not: {sorted(surplus)}")
    made = {}
    for command in known:
        table = {name: _tuple(value) for name, value in tables.get(command, {}).items()}
        needs = [*table.pop("needs", ())]
        needs += ["data"] if "FOLDER" in command else []
        needs += ["rivals"] if "--rivals PYTHON" in command else []
        made[command] = Expected(needs=tuple(dict.fromkeys(needs)), **table)
    return made


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def run(command: str, expected: Expected, kind: str) -> Result:
    """Runs a command, and compares what it prints."""
    compared = expected.stored and _results(kind).exists()
    shell = _shell(command) + (" --check" if compared else "")
    result, start = Result(), time.perf_counter()
    code, output = _finish(shell, 60 * expected.minutes)
    result.seconds = time.perf_counter() - start
    if code is None:
        result.words.append(f"it was still running after {expected.minutes:g} minutes")
    elif code:
        result.words.append(f"it ended with {code}:\n" + "\n".join(output.splitlines()[-12:]))
    result.words += differences(output, expected)
    if "pytest" in command and (summaries := SUMMARY.findall(output)):
        result.tests = summaries[-1]
        if "passed" not in result.tests:
            result.words.append(f"no test of it ran: {result.tests}")
    return result


def _results(kind: str) -> Path:
    """The file of the benches' results on a kind of processor."""
    return ROOT / "benches" / "results" / f"{kind}.json"


def _finish(shell: str, seconds: float) -> tuple[int | None, str]:
    """The exit code of a command, None where it takes too long, and what it printed."""
    process = subprocess.Popen(
        ["bash", "-c", shell],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, process.communicate()[0]
    except KeyboardInterrupt:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return process.returncode, output


def _shell(command: str) -> str:
    """A command of the page as this interpreter runs it, with the reader's own folders."""
    python = shlex.quote(sys.executable)
    text = re.sub(r"^((?:[A-Z_]+=\S+ )?)python ", rf"\1{python} ", command)
    text = re.sub(r"^hdp-fast ", f"{python} -m hdp_fast ", text)
    for word, name in OWN.items():
        text = re.sub(rf"\b{word}\b", shlex.quote(os.environ.get(name, word)), text)
    return text


def differences(output: str, expected: Expected) -> list[str]:
    """In what an output is not what was expected, in words."""
    lines = [" ".join(line.split()) for line in output.splitlines()]
    known = {line for line in expected.prints if fnmatch.filter(lines, line.replace("[", "[[]"))}
    words = [f"it does not print: {line}" for line in expected.prints if line not in known]
    for figure in expected.measured:
        values = re.findall(figure["pattern"], output)
        if not values:
            words.append(f"it does not print {figure['pattern']}")
        for value in (float(text.replace(",", "")) for text in values):
            if "most" in figure and value > figure["most"]:
                words.append(f"{value:g} is above {figure['most']:g}")
            within, usual = figure.get("within", 1.0), figure.get("value", value)
            if not usual / within <= value <= usual * within:
                words.append(f"{value:g} is not within {within:g} times of {usual:g}")
    return words


# The page ----------------------------------------------------------------------------------------


def write(text: str, runs: Runs, expected: dict[str, Expected]) -> str:
    """The page with the table of runs in its place, and nothing else changed."""
    names = [entry["processor"]["name"] for entry in runs.values()]
    lines = [["command", *names], ["---"] * (1 + len(names))]
    for command, one in expected.items():
        last = {kind: entry["commands"].get(command) for kind, entry in runs.items()}
        if any(last.values()) or one.needs:
            cells = [_cell(entry, one, kind) for kind, entry in last.items()]
            lines.append([f"`{command}`", *cells])
    table = "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
    return TABLE.sub(lambda match: match[1] + table + match[2], text)


def _cell(last: dict[str, Any] | None, expected: Expected, kind: str) -> str:
    """What became of a command on a kind of processor."""
    stored = _results(kind)
    if last is None and expected.stored and stored.exists():
        return f"not repeated since `make bench-store`, {json.loads(stored.read_text())['day']}"
    if last is None:
        return "not run: it " + " and ".join(NEEDS[need] for need in expected.needs or ["later"])
    words = [
        last["result"],
        last["day"],
        f"{last['seconds']:,g} s",
        *last.get("tests", "").split(", "),
    ]
    return ", ".join(word for word in words if word)


def read_runs() -> Runs:
    """The last runs, by the kind of processor."""
    return json.loads(RUNS.read_text("utf-8")) if RUNS.exists() else {}


def processor() -> tuple[str, dict[str, Any]]:
    """The kind of this processor, as the benches name it, and what they keep of it."""
    sys.path.insert(0, str(ROOT / "benches"))
    from _machine import kind_of, processor_of
    from cpuinfo import get_cpu_info

    kept = processor_of({"cpu": get_cpu_info()})
    return kind_of(kept), kept


def check() -> list[str]:
    """What is wrong with the page as it stands, without a run."""
    text, runs = PAGE.read_text("utf-8"), read_runs()
    known = commands(text)
    expected = expectations(known)
    words = [f"no file: {command}" for command in known for _ in _absent_files(command)]
    for command, one in expected.items():
        words += [f"{one.page} has no {figure}, of {command}" for figure in one.missing()]
    for kind, entry in runs.items():
        for command, last in entry["commands"].items():
            if command not in known:
                words.append(f"{RUNS.name}, {kind}: no command of the page: {command}")
            elif last["result"] != HOLDS:
                words.append(f"{RUNS.name}, {kind}: {command} {last['result']}")
    if write(text, runs, expected) != text:
        words.append(f"{PAGE.name} is not what its last runs say: check_claims.py --write")
    return words


def _absent_files(command: str) -> list[str]:
    files = re.findall(r"(?:^| )((?:tests|benches|docs)/[\w/.]+)", command)
    return [name for name in files if not (ROOT / name).exists()]


def main(arguments: list[str] | None = None) -> int:
    """Runs commands and writes the page, or compares them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="run nothing: compare page and runs")
    parser.add_argument("--write", action="store_true", help="run nothing: write the page")
    parser.add_argument("--also", nargs="+", default=[], choices=NEEDS, help="what is there, too")
    parser.add_argument("--only", nargs="+", default=[""], help="parts of commands")
    asked = parser.parse_args(arguments)
    if asked.check:
        print(*(words := check()), sep="\n")
        return int(bool(words))
    expected = expectations(commands(PAGE.read_text("utf-8")))
    runs, failed = read_runs(), 0
    if not asked.write:
        kind, facts = processor()
        mine = runs.setdefault(kind, {"processor": facts, "commands": {}})["commands"]
        for command, one in expected.items():
            if {*one.needs} <= {*asked.also} and any(part in command for part in asked.only):
                failed += run_and_keep(command, one, kind, mine)
                RUNS.write_text(json.dumps(runs, indent=1, sort_keys=True) + "\n", "utf-8")
        for entry in runs.values():
            kept = entry["commands"]
            entry["commands"] = {command: kept[command] for command in expected if command in kept}
        RUNS.write_text(json.dumps(runs, indent=1, sort_keys=True) + "\n", "utf-8")
    PAGE.write_text(write(PAGE.read_text("utf-8"), runs, expected), "utf-8")
    return int(failed > 0)


def run_and_keep(command: str, expected: Expected, kind: str, kept: dict[str, Any]) -> bool:
    """Runs a command, prints and keeps what became of it; whether it failed."""
    result = run(command, expected, kind)
    words = result.words + [f"{expected.page} has no {figure}" for figure in expected.missing()]
    result.words = words
    kept[command] = result.entry()
    print(f"{kept[command]['result']:5}  {result.seconds:6.1f} s  {command}", flush=True)
    print(*(f"       {line}" for text in words for line in text.splitlines()), sep="\n", end="")
    return bool(words)


if __name__ == "__main__":
    sys.exit(main())
