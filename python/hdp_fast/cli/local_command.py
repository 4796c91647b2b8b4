"""The commands hdp-fast local: simulations of agents, and client and collector of real ones."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from .. import local
from .._support.random_state import check_random_state
from .._support.validate import probability
from ..collection.questions import Question
from ..data.columns import Column
from ..exceptions import ParameterError, ShapeError
from .collect_command import (
    add_collect,
    add_frequency,
    add_mean,
    add_question,
    add_randomize,
    draw_estimate,
    estimate,
    frequency_of,
    mean_of,
)
from .output import add_plot, check_output, deliver, record_of
from .tables import FILE_HELP, add_delimiter, read

_ESTIMATE_TEXT = """Estimate the mean of a column from randomized reports. A simulation: each row of
VALUES plays an agent, who reports its number once, randomized. Privacy: each row is protected by
epsilon and delta against whoever sees what is printed or written. --low and --high are public and
must not be read off VALUES; a number outside counts as the nearer end. The interval is for the
population that the rows were drawn from."""
_FREQUENCY_TEXT = """Estimate how frequent each category is, from randomized reports. A simulation:
each row of VALUES plays an agent, who reports its category once, randomized. Privacy: each row is
protected by epsilon against whoever sees what is printed or written. The categories are public and
must not be read off VALUES; a text that is none of them counts as the last. An estimate may be
negative, and they may not add up to 1; none is off by more than half_width, but for beta."""
_MASKED_TEXT = """Learn MASKED-PARITY, which takes two rounds of questions, from simulated agents.
A concept and its agents are drawn at random, as many as are proved to suffice, and the learned
concept is compared with it. Privacy: each agent answers one question by randomized response."""


def add_local(parser: argparse.ArgumentParser) -> None:
    """Adds the commands of hdp-fast local."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_estimate(commands.add_parser("estimate", help="a mean, from simulated agents"))
    _add_frequency(commands.add_parser("frequency", help="frequencies, from simulated agents"))
    _add_masked_parity(commands.add_parser("masked-parity", help="learn in two rounds, simulated"))
    add_question(commands.add_parser("question", help="fix what is asked, and how privately"))
    add_randomize(commands.add_parser("randomize", help="answer a question: a device's part"))
    add_collect(commands.add_parser("collect", help="estimate from answers: a collector's part"))


def _add_estimate(parser: argparse.ArgumentParser) -> None:
    parser.description = _ESTIMATE_TEXT
    _add_values(parser)
    add_mean(parser)
    add_plot(parser, "the estimate")
    _add_output(parser)
    parser.set_defaults(command=_estimate)


def _add_frequency(parser: argparse.ArgumentParser) -> None:
    parser.description = _FREQUENCY_TEXT
    _add_values(parser)
    add_frequency(parser)
    add_plot(parser, "the largest frequencies")
    _add_output(parser)
    parser.set_defaults(command=_frequency)


def _add_values(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("values", type=Path, metavar="VALUES", help=FILE_HELP)
    parser.add_argument("--column", metavar="NAME", help="which one, if there are several")
    add_delimiter(parser)


def _add_masked_parity(parser: argparse.ArgumentParser) -> None:
    parser.description = _MASKED_TEXT
    add = parser.add_argument
    add("--d", type=int, required=True, help="bits of the parity, a power of two")
    add("--epsilon", type=float, required=True, help="privacy of each agent")
    add("--beta", type=float, default=0.05, help="failure probability [.05]")
    _add_output(parser)
    parser.set_defaults(command=_masked_parity)


def _add_output(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--seed", type=int, help="repeatable, and not private")
    add("--output", type=Path, metavar="FILE", help="write the result as JSON")
    add("--json", action="store_true", help="print JSON")


def _estimate(arguments: argparse.Namespace) -> None:
    question = mean_of("simulation", arguments)
    _deliver(question, arguments)


def _frequency(arguments: argparse.Namespace) -> None:
    question = frequency_of("simulation", arguments)
    _deliver(question, arguments)


def _deliver(question: Question, arguments: argparse.Namespace) -> None:
    probability("--beta", arguments.beta)
    check_output(arguments)
    aggregate = question.randomizer.aggregate(_reports(question, arguments))
    summary = {
        **estimate(question, aggregate, arguments.beta),
        "agents": aggregate.reports,
        "randomizer": repr(question.randomizer),
        "record": record_of(question.randomizer.record(arguments.seed)),
    }
    deliver(summary, arguments)
    draw_estimate(question, aggregate, arguments.beta, arguments.plot)


def _reports(question: Question, arguments: argparse.Namespace) -> Any:
    column = _column(arguments)
    try:
        values = question.values(column.texts)[column.codes]
    except ParameterError as error:
        raise ParameterError(f"{arguments.values}: {error}") from None
    return question.randomizer.sample(values, random_state=arguments.seed)


def _column(arguments: argparse.Namespace) -> Column:
    table = read(arguments.values, arguments)
    if arguments.column is not None:
        return table.column(arguments.column)
    if len(table.columns) > 1:
        # The error does not name them: without a header the first line is a record.
        count = f"{arguments.values} has {len(table.columns)} columns"
        raise ShapeError(f"--column must be given: {count}")
    (column,) = table.columns.values()
    return column


def _masked_parity(arguments: argparse.Namespace) -> None:
    d, goal = arguments.d, {"beta": arguments.beta, "epsilon": arguments.epsilon}
    check_output(arguments)
    check_random_state(arguments.seed)
    needs = local.masked_parity_agents(d, **goal)
    # One stream for concept, agents and answers, which must be independent of one another.
    rng = np.random.default_rng(arguments.seed)
    secret = local.MaskedParity(rng.integers(0, 2, d, dtype=np.uint8), int(rng.integers(2)))
    agents = local.MaskedParityAgents(
        secret, needs.first + needs.second, epsilon=arguments.epsilon, random_state=rng
    )
    stream = None if arguments.seed is None else rng
    learned = local.learn_masked_parity(agents, d, beta=arguments.beta, random_state=stream)
    summary = {
        "exact": learned.concept == secret,
        "promised": f"exact, missed with probability {arguments.beta:g}",
        "agents": learned.agents,
        "first_round": needs.first,
        "second_round": needs.second,
        "agents_of_groups": needs.groups,
        "queries": learned.queries,
        "record": record_of(learned.agents_record),
    }
    deliver(summary, arguments)
