"""How a command line is read: help, options of every command, and one line on a wrong one."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from .._support.validate import guess, positive, probability, refuse
from ..data.reading import MOST_BYTES
from ..exceptions import AgentsExhausted, ParameterError
from .output import say

if TYPE_CHECKING:
    from ..data.goal import Goal


class VerbHelp(NamedTuple):
    """The parts of a verb's help that argparse does not know.

    Attributes:
        example: A command line.
        text: What the verb does, and which file it protects; empty where the verb says so itself.
    """

    example: str
    text: str = ""


_PRIVACY = "--epsilon 1 --delta 1e-6"
_LABEL = f"label private.csv public.csv --schema schema.json {_PRIVACY}"
_RUN = "--agents-epsilon 1 --alpha .1 --kappa .1 --eta 1 --rounds 10"

HELP = {
    "": VerbHelp(f"hdp-fast {_LABEL}"),
    "advise": VerbHelp(
        "hdp-fast advise --records 3500 --pool 1000 --features 40 --classes 10 --epsilon 1 "
        "--target same",
        "Say which method to take, with a forecast for each, from public numbers alone. No data is "
        "read, and nothing is spent.",
    ),
    "demo": VerbHelp(
        "hdp-fast demo",
        "Learn a secret parity of 1,000 random bits at epsilon 1, and have agents verify it. No "
        "file is read, written or charged.",
    ),
    "parity": VerbHelp(
        "hdp-fast parity learn records.csv --epsilon 1",
        "Plan, learn and transfer parities: sums of bits modulo two. Privacy: DATA is protected by "
        "pure epsilon for each row; with agents, each of them by their own epsilon.",
    ),
    "parity plan": VerbHelp(
        "hdp-fast parity plan --d 100 --alpha .05 --epsilon 1",
        "Say how many records are needed. No data is read, and nothing is spent.",
    ),
    "parity learn": VerbHelp(
        "hdp-fast parity learn records.csv --epsilon 1 --budget ledger --output parity.json",
        "Learn the parity that fits all records. Privacy: DATA is protected by pure epsilon for "
        "each row, whatever is printed or written.",
    ),
    "parity transfer": VerbHelp(
        "hdp-fast parity transfer panel.csv --agents survey.csv --agents-epsilon 1 "
        "--alpha .1 --epsilon 1",
        "Learn a parity from DATA and have agents of another population test it. Privacy: DATA is "
        "protected by pure epsilon for each row; each row of --agents plays an agent, who answers "
        "one question by randomized response at the agents' epsilon.",
    ),
    "gf2": VerbHelp(
        "hdp-fast gf2 multiply A.npz B.npz --output C.npz",
        "Compute with matrices of 0 and 1 modulo two. Nothing is private: what is printed or "
        "written says what the files say.",
    ),
    "gf2 rank": VerbHelp("hdp-fast gf2 rank A.npz B.csv"),
    "gf2 solve": VerbHelp("hdp-fast gf2 solve A.npz B.npz --output X.npz"),
    "gf2 nullspace": VerbHelp("hdp-fast gf2 nullspace A.csv --output basis.csv"),
    "gf2 inverse": VerbHelp("hdp-fast gf2 inverse A.npz --output inverse.npz"),
    "gf2 multiply": VerbHelp("hdp-fast gf2 multiply A.npz B.npz --output C.npz"),
    "schema": VerbHelp(
        "hdp-fast schema public.csv --label income --positive '>50K' --output schema.json"
    ),
    "fit": VerbHelp(
        f"hdp-fast fit private.csv --schema schema.json {_PRIVACY} --output model.json "
        "--report report.html"
    ),
    "predict": VerbHelp("hdp-fast predict model.json visitors.csv --output predicted.csv"),
    "transfer": VerbHelp(
        f"hdp-fast transfer panel.csv survey.csv --schema schema.json {_PRIVACY} {_RUN}"
    ),
    "hybrid": VerbHelp(
        f"hdp-fast hybrid panel.csv survey.csv --schema schema.json {_PRIVACY} --agents-epsilon 1 "
        "--report report.html --output model.json"
    ),
    "label": VerbHelp(f"hdp-fast {_LABEL}"),
    "adapt": VerbHelp(f"hdp-fast adapt public.csv private.csv --schema schema.json {_PRIVACY}"),
    "local": VerbHelp(
        "hdp-fast local estimate minutes.csv --column minutes --low 0 --high 120 --epsilon 1",
        "Ask people who trust no one: simulations, and the two ends of a collection. Privacy: each "
        "report is protected by epsilon before it leaves the person.",
    ),
    "local estimate": VerbHelp(
        "hdp-fast local estimate minutes.csv --column minutes --low 0 --high 120 --epsilon 1"
    ),
    "local frequency": VerbHelp(
        "hdp-fast local frequency travel.csv --column mode --categories bus,bicycle,other "
        "--epsilon 1"
    ),
    "local masked-parity": VerbHelp("hdp-fast local masked-parity --d 8 --epsilon 1"),
    "local question": VerbHelp(
        "hdp-fast local question mean minutes --low 0 --high 120 --epsilon 1 --output question.json"
    ),
    "local question mean": VerbHelp(
        "hdp-fast local question mean minutes --low 0 --high 120 --epsilon 1 "
        "--output question.json",
        "Write a question about a number. Nothing private is read.",
    ),
    "local question frequency": VerbHelp(
        "hdp-fast local question frequency travel --categories bus,bicycle,other --epsilon 1 "
        "--output question.json",
        "Write a question about categories. Nothing private is read.",
    ),
    "local randomize": VerbHelp(
        "hdp-fast local randomize 45 --question question.json --state answers.db"
    ),
    "local collect": VerbHelp("hdp-fast local collect monday.jsonl --question question.json"),
    "survey": VerbHelp(
        "hdp-fast survey serve STUDY",
        "Ask people who open a link: a study with an invitation for each of them, and the server "
        "that takes their answers. Privacy: each answer is protected by epsilon before it leaves "
        "the person's device.",
    ),
    "survey create": VerbHelp(
        "hdp-fast survey create town --asker 'City of Example' --epsilon 1 --people 12000 "
        "--url https://survey.example.org --form form.json"
    ),
    "survey serve": VerbHelp("hdp-fast survey serve town --port 8000"),
    "stats": VerbHelp("hdp-fast stats private.csv --schema schema.json --epsilon 1"),
    "budget": VerbHelp(
        "hdp-fast budget ledger --epsilon 2 --delta 1e-5",
        "Make a ledger, or show what is spent and left. It protects nothing by itself: releases "
        "that are made with --budget FILE are charged to it, and refused beyond its limit.",
    ),
    "bench": VerbHelp(
        "hdp-fast bench --size 1024",
        "Time linear algebra over GF(2) beside numpy and M4RI. Nothing private is read.",
    ),
    "version": VerbHelp("hdp-fast version", "Print the version."),
    "help": VerbHelp("hdp-fast help parity learn", "Print the help of a verb."),
}


class Formatter(argparse.HelpFormatter):
    """Wraps texts, but leaves those that have lines of their own as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith("example:"):
            return text
        return super()._fill_text(text, width, indent)


def find_help(program: str) -> tuple[str | None, str | None]:
    """Returns the description and the epilog of the verb that a program's name ends in."""
    verb = HELP.get(program.partition("hdp-fast")[2].strip())
    if verb is None:
        return None, None
    return verb.text or None, f"example:\n  {verb.example}"


_SHARED = {
    "--strict": "a note on a result of no use makes the exit code 1",
    "--quiet": "no bar, and no line on what is protected; notes and errors stay",
    "--force": "replace outputs that are there, each as a whole; never files of state",
}


# How argparse begins what it says of arguments that are missing, all of them at once.
_MISSING = "the following arguments are required: "
# Above this a float such as 1e30 is not the integer that it spells.
_MOST_EXACT = 1 << 53
_NEGATIVE_NUMBER = re.compile(r"^-(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")


class Parser(argparse.ArgumentParser):
    """A parser that reports a wrong command line in one line, like any other wrong input.

    Its subcommands are parsers of this class, so that a shared option may stand before or after any
    of them. One that is made with `fill=`, a function that adds its arguments, is filled once it is
    asked: a run needs one verb of many.
    """

    def __init__(
        self,
        *arguments: Any,
        fill: Callable[[argparse.ArgumentParser], None] | None = None,
        **options: Any,
    ) -> None:
        """Adds the options that every command takes, and those of `fill` when they are asked."""
        options.setdefault("formatter_class", Formatter)
        super().__init__(*arguments, **options)
        description, example = find_help(self.prog)
        self.description = self.description or description
        self.epilog = "\n\n".join(filter(None, (example, self.epilog)))
        self.register("type", int, _whole_number)
        # Without this argparse takes -1e3 for an option.
        self._negative_number_matcher = _NEGATIVE_NUMBER
        self._fill = fill
        if fill is None:
            self._share()

    def fill(self) -> None:
        """Adds the arguments, unless they are there."""
        if self._fill is not None:
            fill, self._fill = self._fill, None
            self._share()
            fill(self)

    def parse_known_args(self, *arguments: Any, **options: Any) -> Any:
        """Reads arguments like argparse, with those of `fill` known."""
        self.fill()
        return super().parse_known_args(*arguments, **options)

    def _share(self) -> None:
        shared = self.add_argument_group("options of every command")
        for name, text in _SHARED.items():
            # No default: that of a subcommand would undo an option that stands before it.
            shared.add_argument(name, action="store_true", default=argparse.SUPPRESS, help=text)
        text = f"the most bytes that a table may unpack to [{MOST_BYTES:,}]"
        shared.add_argument(
            "--max-bytes", type=int, metavar="N", default=argparse.SUPPRESS, help=text
        )

    def error(self, message: str) -> NoReturn:
        """Raises as an error what argparse would print over several lines.

        What is missing comes with what each of it must be, from the help.
        """
        names = message.partition(_MISSING)[2].split(", ")
        helps = [
            f"{name}: {action.help.replace('; ', ', ').replace('%%', '%')}"
            for action in self._actions
            for name in [action.option_strings[0] if action.option_strings else action.metavar]
            if name in names and action.help
        ]
        raise ParameterError(f"{message} ({'; '.join(helps)})" if helps else message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuses a value that is none of the choices, and names the one most like it."""
        choices = None if action.choices is None else [str(choice) for choice in action.choices]
        if choices is not None and value not in choices:
            fault = f"invalid choice: {value!r} (choose from {', '.join(choices)})"
            raise argparse.ArgumentError(action, f"{fault}{guess(str(value), choices)}")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Prints help and versions like any result: argparse would hide that it cannot."""
        say(message.removesuffix("\n"))


def require(parser: argparse.ArgumentParser, arguments: argparse.Namespace, *names: str) -> None:
    """Refuses what is missing, all of it at once, where not every call needs it.

    Raises: ParameterError.
    """
    missing = [name for name in names if getattr(arguments, name) is None]
    if missing:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in missing)
        parser.error(f"{_MISSING}{flags}")


def _whole_number(text: str) -> int:
    """Reads an integer, which may be written as 1e4."""
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer() or abs(number) > _MOST_EXACT:
            raise
        return int(number)


def make_manners() -> argparse.Namespace:
    """The values of the options that every command takes where none is passed."""
    names = (name.removeprefix("--") for name in _SHARED)
    return argparse.Namespace(max_bytes=MOST_BYTES, **dict.fromkeys(names, False))


def split_classes(classes: str) -> list[str]:
    """The labels that --classes lists.

    Raises: ParameterError.
    """
    texts = [text.strip() for text in classes.split(",")]
    if "" in texts:
        refuse("--classes", classes, "it must be texts with commas between")
    return texts


class _Epsilon(argparse.Action):
    """The option --epsilon, whose value inf makes --delta needless."""

    delta: argparse.Action

    def __call__(self, parser: Any, namespace: Any, value: Any, option: Any = None) -> None:
        """Keeps the value."""
        setattr(namespace, self.dest, value)
        self.delta.required = value != math.inf


def add_price(parser: argparse.ArgumentParser, file: str) -> None:
    """Adds --epsilon and --delta, which must be passed unless --epsilon inf protects no one."""
    text = f"privacy of {file}; inf: none, and no --delta"
    epsilon = parser.add_argument(
        "--epsilon", type=float, required=True, action=_Epsilon, help=text
    )
    delta = parser.add_argument("--delta", type=float, required=True, help=f"privacy of {file}")
    epsilon.delta = delta  # type: ignore[attr-defined]


def read_price(arguments: argparse.Namespace) -> Goal:
    """What protects the private file, by the options of `add_price`.

    Raises:
        ParameterError: A flag is out of range, or must not go with --epsilon inf.
    """
    from ..data.goal import Goal  # Help and a wrong flag do not wait for it.

    if arguments.epsilon == math.inf:
        for name in ("delta", "budget"):
            if getattr(arguments, name) is not None:
                raise ParameterError(f"--{name} must not go with --epsilon inf")
        return Goal(math.inf, None)
    return Goal(positive("--epsilon", arguments.epsilon), probability("--delta", arguments.delta))


@contextmanager
def name_flags(*flags: str, **words: str) -> Iterator[None]:
    """Errors of the block name flags, and the command's words, where Python has arguments.

    flags: names of arguments; words: by the name of an argument what the command calls it.
    """
    words |= {name: f"--{name.replace('_', '-')}" for name in flags}
    argument = re.compile(rf"(?<![\w-])({'|'.join(words)})(?= = | asks | has |$)")
    try:
        yield
    except (ParameterError, AgentsExhausted) as error:
        text = argument.sub(lambda match: words[match[1]], str(error))
        raise type(error)(text) from None
