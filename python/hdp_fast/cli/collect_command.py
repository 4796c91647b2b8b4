"""The commands hdp-fast local question, randomize and collect, for devices and who asks them."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from .. import local
from .._support import progress
from .._support.notes import note
from .._support.numbers import nearest_float
from .._support.validate import nonnegative_int, probability, refuse
from ..budget.account import Budget, spend
from ..collection import questions
from ..collection.device import answer_once
from ..collection.exports import ExportedLines
from ..collection.questions import Question, frequency_question, mean_question, read_question
from ..collection.reports import (
    REASONS,
    Collection,
    hypothesis_line,
    read_collection,
    report_lines,
)
from ..data import files
from ..data.delimited import delimiter_of, name_of
from ..data.reading import read_safely
from ..exceptions import ParameterError
from ..local.estimation import largest_distortion, tell_doubts
from ..local.randomizers.aggregates import Aggregate
from ..local.randomizers.frequency import FrequencyAggregate
from ..record import tell_both
from .exit_codes import ExitCode
from .output import (
    add_plot,
    check_output,
    check_outputs,
    deliver,
    record_of,
    say,
    settle_output,
    write_figure,
)
from .tables import add_delimiter, sign_of

_QUESTION_TEXT = """Write a question: its name, what values it is about, and the randomizer that
answers it. Devices and collectors share the file, so that epsilon is fixed before anybody answers.
It is public, and what is in it must not be read off private values."""
_RANDOMIZE_TEXT = """Answer a question: one value in, one JSON line out, which is all that need ever
leave the device. Privacy: the line is protected by the question's epsilon and delta, against
everybody. Lines add up: a device must keep a --state, and a --budget limits what all questions
together may cost. With a --state a question is answered once: the line is written there before it
is shown, and whoever asks again gets the same line, whatever the value is by then, so that a client
that was cut off can send it once more. A number out of range counts as the nearer end. What is no
number or no category is refused, here on the device: give the question a category for the rest,
since silence tells, too. A question that holds a hypothesis or a query is answered with --record
from the device's own features and label, whatever they are. The id in a line is random, and lets a
collector drop copies of the line,
nothing else. Exit code 1: there was no value to answer with."""
_COLLECT_TEXT = """Estimate from lines that hdp-fast local randomize wrote, as many as there are. No
line stops it, and each is counted once: accepted, malformed, of another question, out of range of
the randomizer (rejected, not clipped), or a duplicate, whose id came before. Ids keep a line from
counting twice; they cannot keep a client from lying, or from sending lines with new ids. The
interval is for a population of which those who answered are a sample, or with --asked for the mean
of those who answered, whoever they are, and then most often narrower. A second interval is for all
who were invited, whatever the silent ones would have said and whatever some liars have sent, where
--invited or --liars says how many they are. With --column a FILE is the export of a survey tool: a
table whose first row names the columns, and whose cells of that column are lines; empty cells are
counted apart. Exit code 1: no line was accepted, and there is no estimate. It holds ids and reports
in memory, about 200 bytes each, and nothing else that grows. What --aggregate writes is as public
as the lines, and --merge takes it for them, duplicates across files included. With --shuffled the
record tells what holds against everybody who saw the lines only after a shuffler had mixed them,
and what holds against the shuffler: the lines must be one mix, and so one file, and all that are
accepted are taken to be of people who follow the protocol."""


_LINES = "file of lines"
# The rounding error of the ends of an interval that were computed from places in [0, 1].
_ROUNDING = 1e-9


def add_mean(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that describe a question about a mean."""
    add = parser.add_argument
    add("--low", type=float, required=True, help="least number; a smaller one counts as it")
    add("--high", type=float, required=True, help="greatest number, public like --low")
    add("--delta", type=float, help="privacy of each, too: allows gaussian")
    add("--spread", type=float, help="best: a guess of the values' distance from the middle")
    add("--randomizer", choices=questions.MEANS, default="best", help="best: fewest agents")
    _add_goal(parser)


def add_frequency(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments that describe a question about frequencies."""
    add = parser.add_argument
    values = parser.add_mutually_exclusive_group(required=True)
    values.add_argument("--categories", metavar="A,B,...", help="all texts there are")
    values.add_argument("--k", type=int, help="values are the integers from 0 to K - 1")
    add("--randomizer", choices=questions.FREQUENCIES, default="best", help="best: least error")
    _add_goal(parser)


def _add_goal(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--epsilon", type=float, required=True, help="privacy of each value")
    parser.add_argument("--beta", type=float, default=0.05, help="failure probability [.05]")


def mean_of(name: str, arguments: argparse.Namespace) -> Question:
    """The question of that name, described by the arguments of `add_mean`."""
    names = ("randomizer", "epsilon", "delta", "low", "high", "beta", "spread")
    return mean_question(name, **{key: getattr(arguments, key) for key in names})


def frequency_of(name: str, arguments: argparse.Namespace) -> Question:
    """The question of that name, described by the arguments of `add_frequency`."""
    names = ("randomizer", "epsilon", "categories", "k")
    return frequency_question(name, **{key: getattr(arguments, key) for key in names})


def draw_estimate(
    question: Question, aggregate: Any, beta: float, place: Path | None, *, sampled: bool = True
) -> None:
    """Writes a figure of the estimate, if one is asked for and there are reports.

    Raises:
        ParameterError: The figure cannot be written.
    """
    if place is None or not aggregate.reports:
        return
    from .. import plotting  # Whoever draws nothing does not wait for it.

    names, result = None, aggregate
    if isinstance(aggregate, FrequencyAggregate):
        names = list(question.name_frequencies(aggregate.frequencies()))
    elif not sampled:
        result = aggregate.estimate(beta, sampled=False)
    write_figure(place, plotting.local(result, beta=beta, names=names))


def estimate(
    question: Question, aggregate: Any, beta: float, *, sampled: bool = True
) -> dict[str, Any]:
    """The estimate from reports, and an interval that fails with probability at most beta."""
    if not aggregate.reports:
        return {"beta": beta}
    if isinstance(aggregate, FrequencyAggregate):
        frequencies = question.name_frequencies(aggregate.frequencies())
        half_width = aggregate.interval(beta)
        if half_width >= 1:
            _note_no_knowledge(aggregate, "frequencies", 1.0, beta)
        return {"frequencies": frequencies, "half_width": half_width, "beta": beta}
    value, low, high = aggregate.estimate(beta, sampled=sampled)
    least, greatest = aggregate.randomizer.bounds
    if high - low >= (1 - _ROUNDING) * (greatest - least):
        _note_no_knowledge(aggregate, "mean", greatest - least, beta)
    return {"estimate": value, "interval": [low, high], "beta": beta}


def _note_no_knowledge(aggregate: Aggregate, what: str, width: float, beta: float) -> None:
    """Warns that an interval holds every possible value, and says how many reports would help."""
    randomizer, within = aggregate.randomizer, width / 10
    have = f"{aggregate.reports:,} reports at epsilon = {randomizer.epsilon:g} tell nothing"
    try:
        needed = f"{randomizer.agents_needed(alpha=within, beta=beta):,}"
    except ParameterError:
        needed = "more than anybody has"
    more = f"{needed} estimate the {what} to within {within:g}"
    note(f"{have}, since the interval is the whole range: {more}")


def add_question(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of hdp-fast local question."""
    parser.description = _QUESTION_TEXT
    kinds = parser.add_subparsers(required=True, metavar="KIND")
    for kind, text, add_options, make in (
        ("mean", "about numbers", add_mean, mean_of),
        ("frequency", "about categories", add_frequency, frequency_of),
    ):
        command = kinds.add_parser(kind, help=text)
        command.add_argument("id", metavar="ID", help="name of the question")
        add_options(command)
        command.add_argument("--output", type=Path, metavar="FILE", help="instead of printing it")
        command.set_defaults(command=_question, make=make)


def add_randomize(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of hdp-fast local randomize."""
    parser.description = _RANDOMIZE_TEXT
    add = parser.add_argument
    value_help = (
        "read from the standard input if not given, where no other user of the machine sees it"
    )
    add("value", nargs="?", metavar="VALUE", help=value_help)
    add("--question", type=Path, required=True, metavar="FILE", help="as question writes it")
    record_help = "a value is a record: features and a label, with commas between them"
    add("--record", action="store_true", help=record_help)
    add("--state", type=Path, metavar="FILE", help="what was answered; made if missing")
    add("--many", action="store_true", help="a line of input is a value, of somebody else each")
    add("--budget", type=Path, metavar="FILE", help="spend from it at a new answer, or refuse")
    parser.set_defaults(command=_randomize)


def add_collect(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of hdp-fast local collect."""
    parser.description = _COLLECT_TEXT
    add = parser.add_argument
    add("files", nargs="*", type=Path, metavar="FILE", help="lines; - is the standard input")
    add("--question", type=Path, required=True, metavar="FILE", help="as question writes it")
    add("--column", metavar="NAME", help="FILE is a table, of which this column has the lines")
    add_delimiter(parser)
    add("--merge", type=Path, action="append", default=[], metavar="FILE", help="as --aggregate")
    add("--aggregate", type=Path, metavar="FILE", help="write what was collected, as .npz")
    add("--beta", type=float, default=0.05, help="failure probability [.05]")
    shuffled_help = "if a shuffler mixed the lines: the delta of all of them together"
    add("--shuffled", type=float, metavar="DELTA", help=shuffled_help)
    add("--asked", action="store_true", help="a mean: the interval for those who answered alone")
    add("--invited", type=int, metavar="N", help="how many people could have answered")
    add("--liars", type=int, metavar="K", help="how many of the reports may be anything")
    add("--output", type=Path, metavar="FILE", help="write the result as JSON")
    add_plot(parser, "the estimate")
    add("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=_collect)


def _question(arguments: argparse.Namespace) -> None:
    check_output(arguments)
    text = arguments.make(arguments.id, arguments).to_json()
    if arguments.output is None:
        say(text)
    else:
        files.write_atomically(arguments.output, f"{text}\n".encode())


def _randomize(arguments: argparse.Namespace) -> ExitCode | None:
    question = read_question(arguments.question)
    if arguments.many:
        return _randomize_many(question, _many(arguments), arguments.record)
    text = arguments.value if arguments.value is not None else _input().removesuffix("\n")
    if "\n" in text:
        raise ParameterError("the input has several lines, but it must be one value, or --many")
    if not text.strip():
        raise ParameterError("there is no value: give VALUE, or a line of the standard input")
    # What is refused must cost nothing.
    if arguments.record:
        _require_hypothesis(question)
    else:
        question.require_categories([text])
        question.values([text])
    budget = None if arguments.budget is None else Budget.open(arguments.budget)

    def draw() -> str:
        with spend(budget, question.randomizer.record()):
            return _lines(question, [text], arguments.record)[0]

    if arguments.state is None:
        say(draw(), "; the line is lost, and what it cost is spent")
    else:
        line = answer_once(arguments.state, question, draw)
        say(line, f"; the line is kept in {arguments.state}: the same command shows it")
    return None


def _require_hypothesis(question: Question) -> None:
    if question.hypothesis is None:
        rule = "--record answers one with a hypothesis or a query: leave it out"
        raise ParameterError(f"question {question.id!r} asks for a value, but {rule}")
    local.true_answers(question.hypothesis, [], [])


def _lines(question: Question, texts: list[str], are_records: bool) -> list[str]:
    """The lines that answer with values, or with records, of which nothing is ever an error."""
    if not are_records:
        return report_lines(question, texts)
    records = ([nearest_float(part) for part in text.split(",")] for text in texts)
    return [hypothesis_line(question, features, label) for *features, label in records]


def _randomize_many(question: Question, texts: list[str], are_records: bool) -> ExitCode | None:
    if are_records:
        _require_hypothesis(question)
    if not texts:
        note("the input has 0 lines, so there is no answer: --many needs a value on each line")
        return ExitCode.NOTHING_USEFUL
    say("\n".join(_lines(question, texts, are_records)))
    return None


def _many(arguments: argparse.Namespace) -> list[str]:
    for name in ("value", "state", "budget"):
        if getattr(arguments, name) is not None:
            flag = "VALUE" if name == "value" else f"--{name}"
            raise ParameterError(f"{flag} must not go with --many: it is one person's")
    *lines, last = _input().split("\n")
    return [*lines, last] if last else lines


def _input() -> str:
    with read_safely("the input", "text in UTF-8"):
        return _standard_input().read().decode("utf-8")


def _standard_input() -> IO[bytes]:
    if sys.stdin is None:
        raise ParameterError("the standard input is closed, but it must be read")
    return sys.stdin.buffer


def _collect(arguments: argparse.Namespace) -> ExitCode | None:
    probability("--beta", arguments.beta)
    settle_output(arguments)
    aggregate_file = _check_aggregate(arguments.aggregate)
    check_outputs(arguments, [arguments.output, aggregate_file, arguments.plot])
    question = read_question(arguments.question)
    _check_shuffled(arguments, question)
    _check_people(arguments, question)
    collection = Collection(question)
    try:
        for path in arguments.merge:
            collection.merge(read_collection(path, question, max_bytes=arguments.max_bytes))
        rows = _read(collection, arguments)
    except KeyboardInterrupt:
        lost = f"{collection.lines:,} lines were read, and nothing is written"
        raise KeyboardInterrupt(lost) from None
    if arguments.invited is not None and collection.accepted > arguments.invited:
        rule = f"{collection.accepted:,} reports were accepted: no more people can have answered"
        refuse("--invited", arguments.invited, rule)
    if arguments.aggregate is not None:
        files.write_atomically(arguments.aggregate, collection.to_bytes())
    invited = arguments.invited if question.stage is None else question.stage.count
    summary = {
        "question": question.id,
        **rows,
        **collection.counts(),
        **_rate(collection, invited),
        **_estimates(collection, question, arguments),
        "randomizer": repr(question.randomizer),
        **_protection(collection, arguments.shuffled),
    }
    deliver(summary, arguments)
    if arguments.plot is not None:
        shown = {"sampled": not arguments.asked}
        draw_estimate(question, collection.aggregate(), arguments.beta, arguments.plot, **shown)
    if collection.accepted:
        return None
    note(_describe_failure(collection))
    return ExitCode.NOTHING_USEFUL


def _check_shuffled(arguments: argparse.Namespace, question: Question) -> None:
    delta = arguments.shuffled
    if delta is None:
        return
    probability("--shuffled", delta)
    if question.randomizer.delta:
        refuse("--shuffled", delta, "only reports of pure randomizers can be shuffled")
    if question.stage is not None:
        refuse("--shuffled", delta, "those who have one question of a stage are a mix each")
    # Whose line is in which file is known: lines hide among those of their own file alone.
    if len(arguments.files) + len(arguments.merge) > 1:
        refuse("--shuffled", delta, "there must be one file: those of several were not one mix")


def _check_people(arguments: argparse.Namespace, question: Question) -> None:
    for name in ("invited", "liars"):
        value = getattr(arguments, name)
        if value is not None:
            nonnegative_int(f"--{name}", value)
    if arguments.delimiter is not None and arguments.column is None:
        refuse("--delimiter", arguments.delimiter, "it is for tables, and needs --column")
    if question.stage is None:
        return
    if arguments.invited is not None:
        refuse("--invited", arguments.invited, "a stage says itself how many people it asks")
    if arguments.plot is not None:
        refuse("--plot", str(arguments.plot), "a stage has an estimate for each of its questions")


def _estimates(
    collection: Collection, question: Question, arguments: argparse.Namespace
) -> dict[str, Any]:
    """The estimate and its intervals, or those of each question of a stage."""
    shown = {"sampled": not arguments.asked}
    if question.stage is None:
        aggregate = collection.aggregate()
        silent = 0 if arguments.invited is None else arguments.invited - collection.accepted
        return {
            **estimate(question, aggregate, arguments.beta, **shown),
            **_bound_any(aggregate, silent, arguments),
        }
    made = {}
    for place, (asked, bits) in enumerate(collection.answered(), start=1):
        aggregate = question.randomizer.aggregate(bits)
        made[f"answer {place}"] = {
            "asked": asked,
            "answered": len(bits),
            **(estimate(question, aggregate, arguments.beta, **shown) if len(bits) else {}),
            **_bound_any(aggregate, asked - len(bits), arguments),
        }
    return made


def _rate(collection: Collection, invited: int | None) -> dict[str, Any]:
    if not invited:
        return {}
    return {"invited": invited, "response_rate": collection.accepted / invited}


def _bound_any(aggregate: Any, silent: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """The interval for all who were invited, whoever is silent or lies."""
    reports, liars = aggregate.reports, arguments.liars or 0
    if not reports or not (silent or liars):
        return {}
    told: dict[str, Any] = {"any": tell_doubts("whoever did not answer" if silent else None, liars)}
    if liars:
        moved = {"reports": reports, "liars": min(liars, reports)}
        told |= {"liars": liars, "distortion": largest_distortion(aggregate.randomizer, **moved)}
    doubts = {"liars": liars, "silent": silent}
    if isinstance(aggregate, FrequencyAggregate):
        return {"half_width_any": aggregate.interval(arguments.beta, **doubts), **told}
    _, *ends = aggregate.estimate(arguments.beta, sampled=not arguments.asked, **doubts)
    return {"interval_any": ends, **told}


def _protection(collection: Collection, shuffled: float | None) -> dict[str, Any]:
    """What protects the reports, in words, too, where a shuffler mixed them."""
    record = collection.record(shuffled=shuffled if collection.accepted else None)
    words = {} if record.trust != "shuffler" else {"privacy": tell_both(record)}
    return {**words, "record": record_of(record)}


def _describe_failure(collection: Collection) -> str:
    """Says why there is no estimate, and what would help."""
    counts = collection.counts()
    if not counts["lines"]:
        return "0 lines were read, so there is no estimate: give files that devices' lines are in"
    helps = "these must be lines that hdp-fast local randomize wrote, or a table with --column"
    if counts["wrong_question"]:
        helps = "--question must be the very file that the devices answered"
    refused = ", ".join(f"{reason} {counts[reason]:,}" for reason in REASONS if counts[reason])
    return f"0 of {counts['lines']:,} lines were accepted ({refused}): {helps}"


def _check_aggregate(path: Path | None) -> Path | None:
    if path is not None and path.suffix != ".npz":
        refuse("--aggregate", str(path), "it must end in .npz")
    return path


def _read(collection: Collection, arguments: argparse.Namespace) -> dict[str, int]:
    """Reads the files; returns the numbers of rows, of empty cells and of rows of names, if any."""
    paths = arguments.files or ([] if arguments.merge else [Path("-")])
    named = [path for path in paths if str(path) != "-"]
    total, counts = sum(map(_size, named)), Counter[str]()
    with progress.bar(total, "B", bool(named) and progress.can_show()) as bar:
        for path in paths:
            with _open(path) as handle:
                if arguments.column is None:
                    collection.read(handle, bar.update)
                else:
                    counts.update(_read_table(collection, handle, path, arguments, bar.update))
    return dict(counts)


def _read_table(
    collection: Collection,
    handle: IO[bytes],
    path: Path,
    arguments: argparse.Namespace,
    done: Callable[[int], object],
) -> dict[str, int]:
    sign = delimiter_of(path, sign_of(arguments))
    try:
        lines: Any = ExportedLines(handle, arguments.column, delimiter=sign, done=done)
    except ParameterError as error:
        raise ParameterError(f"{name_of(path)}: --{error}") from None
    collection.read(lines, lambda length: None)
    return {"rows": lines.rows, "header_rows": lines.header_rows, "empty": lines.empty}


def _size(path: Path) -> int:
    with read_safely(path, _LINES):
        return path.stat().st_size


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    if str(path) == "-":
        with read_safely("the input", _LINES):
            yield _standard_input()
        return
    with read_safely(path, _LINES), path.open("rb") as handle:
        yield handle
