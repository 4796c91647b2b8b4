"""How a command line is read: options that every command takes, and one line on a wrong one."""

from __future__ import annotations

import argparse
import re
from typing import Any, NoReturn

from .._support.validate import guess
from ..data.reading import MOST_BYTES
from ..exceptions import ParameterError
from .output import say
from .verb_help import Formatter, find_help

_SHARED = {
    "--strict": "a note on a result of no use makes the exit code 1",
    "--quiet": "no bar, and no line on what is protected; notes and errors stay",
    "--force": "replace outputs that are there, each as a whole; never files of state",
}


# Above this a float such as 1e30 is not the integer that it spells.
_MOST_EXACT = 1 << 53
_NEGATIVE_NUMBER = re.compile(r"^-(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?$")


class Parser(argparse.ArgumentParser):
    """A parser that reports a wrong command line in one line, like any other wrong input.

    Its subcommands are parsers of this class, so that a shared option may stand before or after any
    of them.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Adds the options that every command takes."""
        options.setdefault("formatter_class", Formatter)
        super().__init__(*arguments, **options)
        description, example = find_help(self.prog)
        self.description = self.description or description
        self.epilog = "\n\n".join(filter(None, (example, self.epilog)))
        self.register("type", int, _whole_number)
        # Without this argparse takes -1e3 for an option.
        self._negative_number_matcher = _NEGATIVE_NUMBER
        shared = self.add_argument_group("options of every command")
        for name, text in _SHARED.items():
            # No default: that of a subcommand would undo an option that stands before it.
            shared.add_argument(name, action="store_true", default=argparse.SUPPRESS, help=text)
        text = f"the most bytes that a table may unpack to [{MOST_BYTES:,}]"
        shared.add_argument(
            "--max-bytes", type=int, metavar="N", default=argparse.SUPPRESS, help=text
        )

    def error(self, message: str) -> NoReturn:
        """Raises as an error what argparse would print over several lines."""
        raise ParameterError(message)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuses a value that is none of the choices, and names the one most like it."""
        choices = None if action.choices is None else [str(choice) for choice in action.choices]
        if choices is not None and value not in choices:
            fault = f"invalid choice: {value!r} (choose from {', '.join(choices)})"
            raise argparse.ArgumentError(action, f"{fault}{guess(str(value), choices)}")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Prints help and versions like any result: argparse would hide that it cannot."""
        say(message.removesuffix("\n"))


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
