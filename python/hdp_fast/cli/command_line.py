"""The command line: hdp-fast and its verbs."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import NamedTuple

from .._core import __version__
from .._support import progress
from ..exceptions import HdpFastError, ParameterError
from .exit_codes import ExitCode, code_of, collect_notes, describe_codes, describe_defect
from .output import complain, say, show
from .parser import Parser, make_manners

# None stands for DONE.
Command = Callable[[argparse.Namespace], ExitCode | None]


class Verb(NamedTuple):
    """A verb, whose module is imported once its arguments are asked for: most runs need one of all.

    Attributes:
        help: What the help at the top says of it.
        module: The module of this package that runs it.
        fill: The function of the module that adds its arguments.
    """

    help: str
    module: str
    fill: str

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Adds its arguments to its parser."""
        getattr(importlib.import_module(f".{self.module}", __package__), self.fill)(parser)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command of hdp-fast.

    What went wrong is one line on the error stream. So is each note on a result of no use, which
    --strict turns into exit code 1.

    Args:
        argv: The arguments; None takes sys.argv[1:].

    Returns:
        The exit code, one of ExitCode.

    Raises:
        SystemExit: --help or --version was asked for; its code is 0.
    """
    manners = make_manners()
    with collect_notes() as notes:
        code = _run_safely(argv, manners)
    for note in notes:
        complain(f"note: {note}")
    failed = notes and manners.strict and code == ExitCode.DONE
    return ExitCode.NOTHING_USEFUL if failed else code


def _run_safely(argv: Sequence[str] | None, manners: argparse.Namespace) -> ExitCode:
    try:
        return _run(argv, manners)
    except MemoryError as error:
        complain("error: data must fit into memory")
        return code_of(error)
    except BrokenPipeError:
        # The reader of the output has stopped reading.
        return ExitCode.DONE
    except (HdpFastError, ImportError, OSError) as error:
        # An ImportError names the extra to install.
        complain(f"error: {error}")
        return code_of(error)
    except KeyboardInterrupt as interrupt:
        spent = f": {interrupt}" if interrupt.args else ""
        complain(f"interrupted{spent}")
        return ExitCode.INTERRUPTED
    except Exception as error:
        complain(f"error: {describe_defect(error)}")
        return code_of(error)


def _run(argv: Sequence[str] | None, manners: argparse.Namespace) -> ExitCode:
    arguments = _parser().parse_args(argv, manners)
    if sys.stdout is None and getattr(arguments, "output", None) is None:
        # Checked before the run: a result that no one sees would cost as much.
        raise ParameterError("the standard output is closed, but results are printed there")
    command: Command = arguments.command
    with progress.hide() if arguments.quiet else nullcontext():
        return command(arguments) or ExitCode.DONE


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="hdp-fast",
        description="Learning under differential privacy. The help of a verb says which file it "
        "protects.",
        epilog=f"exit codes:\n{describe_codes()}",
    )
    parser.add_argument("--version", action="version", version=f"hdp-fast {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, verb in VERBS.items():
        commands.add_parser(name, help=verb.help, fill=verb.add_arguments)
    return parser


def _help(arguments: argparse.Namespace) -> None:
    # Its own --help ends Python.
    with suppress(SystemExit):
        _parser().parse_args([*arguments.verb, "--help"])


def add_version(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `version`."""
    parser.set_defaults(command=lambda arguments: say(f"hdp-fast {__version__}"))


def add_help(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `help`."""
    parser.add_argument("verb", nargs="*", metavar="COMMAND", help="such as parity learn")
    parser.set_defaults(command=_help)


def add_budget(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `budget`."""
    parser.add_argument("file", type=Path, metavar="FILE", help="made if --epsilon is given")
    parser.add_argument("--epsilon", type=float, help="limit of all releases together")
    parser.add_argument("--delta", type=float, help="limit of all releases together, default 0")
    people = ("replace_person", "add_remove_person")
    parser.add_argument("--neighbors", choices=("replace_one", "add_remove", *people))
    parser.add_argument("--json", action="store_true", help="print JSON, with every release")
    parser.set_defaults(command=_budget)


def _budget(arguments: argparse.Namespace) -> None:
    from ..budget.account import Budget

    limits = {name: getattr(arguments, name) for name in ("epsilon", "delta", "neighbors")}
    summary = json.loads(Budget.open(arguments.file, **limits).to_json())
    if not arguments.json:
        summary["releases"] = len(summary.pop("records"))
    show(summary, arguments.json)


def add_bench(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `bench`."""
    from .. import bench

    parser.add_argument("--size", type=int, nargs="+", default=list(bench.SIZES), metavar="N")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=_bench)


def _bench(arguments: argparse.Namespace) -> None:
    from .. import bench

    results = bench.run(arguments.size)
    say(json.dumps(results, indent=2) if arguments.json else bench.table(results))


VERBS = {
    "demo": Verb("learn a secret parity, to see it work", "parity_command", "add_demo"),
    "advise": Verb("say which method to take, before any data", "advise_command", "add_advise"),
    "parity": Verb("plan, learn and transfer a private parity", "parity_command", "add_parity"),
    "gf2": Verb("ranks, products, inverses, solutions over GF(2)", "gf2_command", "add_gf2"),
    "stats": Verb("counts, means, quantiles, histograms of a table", "stats_command", "add_stats"),
    "schema": Verb("describe a table in public", "schema_command", "add_schema"),
    "fit": Verb("learn a model of a private table", "fit_command", "add_fit"),
    "predict": Verb(
        "predict rows of a public table by such a model", "predict_command", "add_predict"
    ),
    "transfer": Verb(
        "learn from a biased sample for a population", "table_commands", "add_transfer"
    ),
    "hybrid": Verb(
        "a panel's model, repaired and certified by a survey", "hybrid_command", "add_hybrid"
    ),
    "label": Verb("label a public table in private", "label_command", "add_label"),
    "adapt": Verb(
        "learn for a small private table from a large public one", "adapt_command", "add_adapt"
    ),
    "local": Verb("ask people who trust no one", "local_command", "add_local"),
    "survey": Verb("a study with invitations, and its server", "survey_command", "add_survey"),
    "budget": Verb("make or show a file that limits releases", "command_line", "add_budget"),
    "bench": Verb("time the linear algebra beside its peers", "command_line", "add_bench"),
    "version": Verb("say which version this is", "command_line", "add_version"),
    "help": Verb("explain a command", "command_line", "add_help"),
}
