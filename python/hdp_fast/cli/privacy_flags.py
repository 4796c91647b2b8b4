"""What --epsilon, --delta and --budget say, and the names of flags in errors."""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from .._support.validate import positive, probability
from ..exceptions import AgentsExhausted, ParameterError


class Price(NamedTuple):
    """Epsilon and delta; without protection epsilon is infinite and there is no delta."""

    epsilon: float
    delta: float | None

    @property
    def protects(self) -> bool:
        """Whether anybody is protected."""
        return self.epsilon < math.inf


def read_price(arguments: argparse.Namespace) -> Price:
    """What protects the private file.

    Raises:
        ParameterError: A flag is missing, is out of range, or must not go with --epsilon inf.
    """
    if arguments.epsilon == math.inf:
        for name in ("delta", "budget"):
            if getattr(arguments, name) is not None:
                raise ParameterError(f"--{name} must not go with --epsilon inf")
        return Price(math.inf, None)
    for name in ("epsilon", "delta"):
        if getattr(arguments, name) is None:
            rule = "it is the privacy of the private file (--epsilon inf protects nobody)"
            raise ParameterError(f"--{name} must be given: {rule}")
    return Price(positive("--epsilon", arguments.epsilon), probability("--delta", arguments.delta))


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
