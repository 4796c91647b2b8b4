"""How commands deliver results: printed, and written to a file where one is named."""

from __future__ import annotations

import argparse
import contextlib
import glob
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from .._support.notes import note
from ..exceptions import ParameterError, printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..budget.account import Budget
    from ..record import PrivacyRecord

# How the file of a figure ends.
_FIGURES = (".png", ".svg", ".pdf")
# What may be replaced by what is made of it.
_IN_PLACE = ("merge",)


def record_of(record: PrivacyRecord | None) -> Any:
    """A privacy record as a dict for JSON."""
    return None if record is None else json.loads(record.to_json())


def advantage_of(record: Mapping[str, Any]) -> float:
    """The largest advantage of an attacker that the dict of a record implies, rounded up."""
    from .._support.numbers import round_up  # Whoever sees no record does not wait for these.
    from ..record import PrivacyRecord

    return round_up(PrivacyRecord.from_json(json.dumps(record)).attack_advantage)


def is_standard(path: Path | None) -> bool:
    """Whether a path is "-", the standard output."""
    return path is not None and str(path) == "-"


def settle_output(arguments: argparse.Namespace) -> None:
    """Settles what an --output of "-" means for a result: JSON that is printed."""
    if is_standard(arguments.output):
        arguments.output, arguments.json = None, True


def add_plot(parser: argparse.ArgumentParser, what: str) -> None:
    """Adds the option of verbs whose result can be drawn."""
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help=f"draw {what} as .png, .svg or .pdf"
    )


def write_figure(path: Path, figure: Figure) -> None:
    """Writes a figure, as PNG, SVG or PDF by the name of its file.

    Raises:
        ParameterError: The file cannot be written.
    """
    from ..data import files

    kind = path.suffix[1:].lower()
    files.write_atomically(path, lambda stream: figure.savefig(stream, format=kind, dpi=150))


def check_output(arguments: argparse.Namespace) -> None:
    """Settles an --output, and refuses it, and a --plot, as `check_outputs` does."""
    settle_output(arguments)
    check_outputs(arguments, [arguments.output, getattr(arguments, "plot", None)])


def check_outputs(arguments: argparse.Namespace, paths: Iterable[Path | None]) -> None:
    """Refuses outputs that cannot be written, that are inputs, or that exist without --force.

    This is checked before the run. A private result that cannot be written has spent its epsilon
    all the same, and a result in an existing file has been paid for. The same holds for a --plot
    where nothing can be drawn.

    Raises:
        ParameterError: An output is refused.
        ImportError: A figure is asked for and matplotlib is not installed; the error names the
            extra.
    """
    from .._support.atomic import LOG_ENDINGS
    from ..data import files

    outputs = [path for path in paths if path is not None]
    values = [value for name, value in vars(arguments).items() if name not in _IN_PLACE]
    listed = [value if isinstance(value, list) else [value] for value in values]
    others = [path for value in listed for path in value if isinstance(path, Path)]
    others = [path for path in others if not any(path is output for output in outputs)]
    taken = {os.path.realpath(file) for path in others for file in [path, *_match(path)]}
    # A file of state that is yet to come gets its logs beside it, and a saved labeler its ledger.
    named = taken | {os.path.realpath(path) for path in outputs}
    taken |= {path + ending for path in named for ending in (*LOG_ENDINGS, ".ledger")}
    for path in outputs:
        if is_standard(path):
            raise ParameterError("output must be a file here, got -, the standard output")
        files.check_writable(path)
        if path.exists() and not arguments.force:
            text = f"each output must be a new file of its own, got {path}"
            raise ParameterError(f"{text}, which is there: --force replaces it")
        if os.path.realpath(path) in taken or (path.exists() and _lies_in(path, others)):
            text = f"each output must be a new file of its own, got {path}"
            raise ParameterError(f"{text}, which stands for another file of this command, too")
        taken.add(os.path.realpath(path))
    drawn = getattr(arguments, "plot", None)
    if drawn is not None:
        if drawn.suffix.lower() not in _FIGURES:
            text = "it must end in .png, .svg or .pdf"
            raise ParameterError(f"--plot = {str(drawn)!r}, but {text}")
        from .. import plotting  # Whoever draws nothing does not wait for it.

        plotting.require()


def _match(path: Path) -> list[Path]:
    """The files that a pattern names; none of a path that is none."""
    text = str(path)
    is_pattern = glob.has_magic(text) and not path.exists()
    return [Path(file) for file in glob.glob(text, recursive=True)] if is_pattern else []


def _lies_in(path: Path, others: Iterable[Path]) -> bool:
    """Whether a file lies in a folder that a command reads."""
    parents = Path(os.path.realpath(path)).parents
    return any(Path(os.path.realpath(other)) in parents for other in others if other.is_dir())


def check_report(arguments: argparse.Namespace) -> None:
    """Refuses a --report that is no new file of HTML.

    Raises:
        ParameterError: It is refused.
    """
    path = arguments.report
    if path is None:
        return
    if path.suffix.lower() not in (".html", ".htm"):
        raise ParameterError(f"--report = {str(path)!r}, but it must end in .html")
    check_outputs(arguments, [path])


class Watch:
    """Finds out which files have been written since it was made, replaced files included."""

    def __init__(self, paths: Iterable[Path | None]) -> None:
        """Notes the state of the files."""
        self._before = {path: _inode(path) for path in paths if path is not None}

    def describe(self) -> list[str]:
        """Says which of the files have been written."""
        return [
            f"{path} is {'not ' if _inode(path) in (None, before) else ''}written"
            for path, before in self._before.items()
        ]


@contextlib.contextmanager
def describe_interrupt(paths: Iterable[Path | None], budget: Budget | None) -> Iterator[None]:
    """Lets a Ctrl-C in the block say which of the files are written, and what was spent."""
    before, watch = spent(budget), Watch(paths)
    try:
        yield
    except KeyboardInterrupt:
        parts = watch.describe() or ["nothing is written"]
        if budget is not None:
            parts.append(f"of the budget {spent(budget)} are spent, before this run {before}")
        raise KeyboardInterrupt("; ".join(parts)) from None


def _inode(path: Path) -> int | None:
    """The inode of a file, which changes when the file is replaced as a whole."""
    return path.stat().st_ino if path.exists() else None


def say_protected(
    arguments: argparse.Namespace,
    protected: Mapping[Path, tuple[float, float | None]],
    public: Sequence[Path] = (),
) -> None:
    """Prints, as a command's first line, which files are protected, by what, and which are not.

    It is printed before anything is spent, so that somebody who mixed them up can still stop the
    run.

    Args:
        arguments: Arguments of the command.
        protected: Epsilon and delta by file; a delta of 0 is left out.
        public: All other tables.
    """
    parts = [
        f"{path}, epsilon = {epsilon:g}" + ("" if delta is None else f", delta = {delta:g}")
        for path, (epsilon, delta) in protected.items()
    ]
    text = "protected: " + ("; ".join(parts) or "nothing")
    inform(arguments, text + ("; public: " + ", ".join(map(str, public)) if public else ""))
    private = {os.path.realpath(path) for path in protected}
    for path in public:
        if os.path.realpath(path) in private and not is_standard(path):
            note(f"{path} is protected and public at once: what is written of it is not protected")


def protect_both(
    panel: Path,
    guarantee: tuple[float, float],
    people: Path,
    epsilon: float,
    parts: Iterable[str | None] = (),
) -> dict[Path, tuple[float, float | None]]:
    """What protects a panel and the people asked, for say_protected.

    A file that plays both has rows that take part in both: what protects them is the sum, and a
    note asks whether that is meant.

    parts: the files of a panel that has several.
    """
    files = map(os.path.realpath, filter(None, (str(panel), *parts)))
    if os.path.realpath(people) not in files:
        return {panel: guarantee, people: (epsilon, None)}
    note(f"{people} is the panel and plays the people asked: it tells nothing of anybody else")
    return {panel: (guarantee[0] + epsilon, guarantee[1])}


def note_swapped(protected: Path, rows: int, public: Path, public_rows: int) -> None:
    """Warns that the larger of two labeled files is the public one, which is rarely meant."""
    if public_rows > rows:
        sizes = f"{public} has {public_rows:,} rows and labels, and is public, while {protected}"
        note(f"{sizes}, which is protected, has {rows:,}: are the two swapped?")


def spent(budget: Budget | None) -> str:
    """Says how much of a budget is spent; empty without a budget."""
    if budget is None:
        return ""
    epsilon, delta = budget.spent
    return f"epsilon = {epsilon:g} and delta = {delta:g}"


def deliver(
    summary: dict[str, Any],
    arguments: argparse.Namespace,
    *,
    words: dict[str, Any] | None = None,
    page: Callable[[dict[str, Any]], str] | None = None,
) -> None:
    """Writes the summary to the output and its page to the report, if asked for, and prints it.

    Args:
        summary: What is written, and printed with --json.
        arguments: The arguments of the command, with output and json, and with report if there is a
            page.
        words: What is printed without --json; None prints the summary.
        page: What makes the report's HTML of the summary.

    Raises:
        ParameterError: One of the two fails.
    """
    from ..data import files

    written = None
    try:
        if arguments.output is not None:
            text = json.dumps(summary, indent=2) + "\n"
            files.write_atomically(arguments.output, text.encode())
            written = arguments.output
        if page is not None and arguments.report is not None:
            files.write_atomically(arguments.report, page(summary).encode())
    finally:
        # The epsilon is spent: a full disk must not take the result with it.
        printed = summary if arguments.json or words is None else words
        show(printed, arguments.json, written)


def show(summary: dict[str, Any], as_json: bool, written: Path | None = None) -> None:
    """Prints the summary, one line for each entry that has a value.

    Errors say what has become of a result that was paid for: `written` is the file that holds it as
    well. Raises the errors of `say`.
    """
    if written is not None:
        fate = f"; the result is in {written}"
    else:
        paid = summary.get("record") is not None
        fate = "; the result has been paid for and is lost" if paid else ""
    say(json.dumps(summary, indent=2) if as_json else "\n".join(_lines(summary)), fate)


class Block(str):
    """A text of several lines, which stands below its name."""


def coefficient_table(
    names: Iterable[str], coef: Iterable[float], deviations: Iterable[float] = ()
) -> Block:
    """A line for each coefficient, the largest first: its name, four digits of it, and its noise.

    There are as many names as coefficients, and as many standard deviations, or none.
    """
    pairs = list(zip(map(printable, names), coef, strict=True))
    ends = [f"  +- {deviation:.2g}" for deviation in deviations] or [""] * len(pairs)
    rows = sorted(zip(pairs, ends, strict=True), key=lambda row: -abs(row[0][1]))
    texts = [(name, f"{value:.4g}", end) for (name, value), end in rows]
    width = max((len(name) for name, *_ in texts), default=0)
    digits = max((len(text) for _, text, _ in texts), default=0)
    lines = (f"{name:<{width}}  {text:>{digits + 2}}{end}" for name, text, end in texts)
    return Block("\n".join(lines))


def effect_table(effects: Sequence[Mapping[str, Any]]) -> Block:
    """A line for each effect: its name, its size, an interval of its noise, and its direction."""
    texts = [
        (
            printable(one["name"]),
            f"{one['value']:.3g}",
            f"{one['low']:.3g} to {one['high']:.3g}",
            str(one["direction"]),
        )
        for one in effects
    ]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    return Block(
        "\n".join(
            f"{name:<{widths[0]}}  {value:>{widths[1]}}  {ends:>{widths[2]}}  {direction}"
            for name, value, ends, direction in texts
        )
    )


def say(text: str, fate: str = "") -> None:
    """Prints a text and flushes it, so that a failure shows now and not when Python ends.

    What is neither printable nor a line break is escaped, since names of columns may hold anything.
    In the error, `fate` says what becomes of the text otherwise.

    Raises:
        ParameterError: The standard output is closed or its disk is full.
        BrokenPipeError: The reader of the output has stopped reading.
    """
    _print("\n".join(map(printable, text.split("\n"))), fate)


def say_table(text: str, fate: str = "") -> None:
    """Prints a table in the format of its file: byte for byte, unless a terminal shows it.

    Raises the errors of `say`.
    """
    if sys.stdout is not None and sys.stdout.isatty():
        lines = text.replace("\r\n", "\n").split("\n")
        text = "\n".join("\t".join(map(printable, line.split("\t"))) for line in lines)
    _print(text.removesuffix("\n"), fate)


def _print(text: str, fate: str) -> None:
    fault = "it is closed"
    try:
        if sys.stdout is not None:
            print(text, flush=True)
            return
    except UnicodeEncodeError:
        # A terminal may lack the letters of a column's name, and the result is paid for.
        _print(text.encode("ascii", "backslashreplace").decode(), fate)
        return
    except OSError as error:
        silence(sys.stdout)
        if isinstance(error, BrokenPipeError):
            raise
        fault = error.strerror or "it cannot be written"
    raise ParameterError(f"can't write to the standard output: {fault}{fate}")


def complain(text: str) -> None:
    """Prints one line on the error stream, if there is one."""
    try:
        if sys.stderr is not None:
            line = printable(" ".join(text.split()))
            print(f"hdp-fast: {line}", file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr)


def inform(arguments: argparse.Namespace, text: str) -> None:
    """Prints one line beside the result, on the error stream, unless --quiet was passed."""
    if not arguments.quiet:
        complain(text)


def silence(stream: TextIO | None) -> None:
    """Drops what a stream could not write: Python would try again at its end, and complain."""
    # A caller's own stream may be no file, and then Python does not flush it at its end.
    with contextlib.suppress(AttributeError, OSError, ValueError):
        target = stream.fileno()  # type: ignore[union-attr]
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, target)
        os.close(null)


def _lines(summary: dict[str, Any]) -> Iterator[str]:
    # Why nothing was released stands in a note.
    noted = ("promise", "summary") if summary.get("released") is False else ()
    width = max(map(len, summary))
    for name, value in summary.items():
        if value is not None and name not in noted:
            text = f"\n{value}" if isinstance(value, Block) else printable(_text(value))
            yield f"{printable(name):<{width}}  {text}"


def _text(value: Any) -> str:
    """A value for people: --json and files have all digits, and records whole."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, dict) and "mechanism" in value:
        return _record_text(value)
    if isinstance(value, dict):
        parts = {name: _part(one) for name, one in value.items() if one is not None}
        # Names of columns and labels may be numbers, or have spaces.
        signs = {name: " = " if str(name).isidentifier() else ": " for name in parts}
        return ", ".join(f"{name}{signs[name]}{text}" for name, text in parts.items())
    return _part(value)


def _part(value: Any) -> str:
    """A value, which may stand in a list: no commas between the digits of a number."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_part, value))}]"
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _record_text(record: Mapping[str, Any]) -> str:
    """What protects, what can be told apart at most, and what did it."""
    privacy = f"epsilon = {record['epsilon']:g}, delta = {record['delta']:g}"
    privacy += f", attacker's advantage at most {advantage_of(record):g}"
    how = f"neighbors {record['neighbors']}, numerics {record['numerics']}, rng {record['rng']}"
    return f"{privacy}; {how}; {record['mechanism']}"
