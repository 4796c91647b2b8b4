"""The command line: hdp-fast and its verbs."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np

from .. import bench, gf2, local, parity
from .._core import __version__
from .._support import progress
from .._support.validate import nonnegative_int
from ..budget.account import Budget
from ..data import files
from ..data.delimited import is_text
from ..exceptions import HdpFastError, ParameterError
from . import (
    adapt_command,
    advise_command,
    fit_command,
    hybrid_command,
    label_command,
    local_command,
    predict_command,
    schema_command,
    stats_command,
    table_commands,
)
from .exit_codes import ExitCode, code_of, collect_notes, describe_codes, describe_defect
from .output import (
    check_output,
    complain,
    deliver,
    say,
    say_protected,
    show,
)
from .parser import Parser, make_manners
from .tables import add_delimiter, sign_of

_DATA_HELP = (
    ".npy (a matrix, with --labels), .npz (X and y, or X_packed, ncols and y) "
    "or .csv, .tsv, .txt (the last column is the label); - is the standard input, read as .csv"
)

_DEMO_BITS, _DEMO_AGENTS = 1_000, 5_000

_Result = parity.ParityResult | parity.ParityTransferResult
# None stands for DONE.
Command = Callable[[argparse.Namespace], ExitCode | None]


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
    for name, (text, fill) in _VERBS.items():
        commands.add_parser(name, help=text, fill=fill)
    return parser


def _add_demo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seed", type=int, help="repeatable, and not private")
    parser.set_defaults(command=_demo)


def _add_parity(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    plan = commands.add_parser("plan", help="how many records are needed, before any data")
    plan.add_argument("--d", type=int, required=True, help="number of features")
    plan.add_argument("--alpha", type=float, required=True, help="largest error, below 1/2")
    _add_mechanism(plan, _plan)

    learn = commands.add_parser("learn", help="learn a parity from a file")
    _add_data(learn)
    _add_mechanism(learn, _learn)

    transfer = commands.add_parser("transfer", help="learn from a file, verify with agents")
    _add_data(transfer)
    transfer.add_argument("--agents", type=Path, required=True, metavar="DATA", help="one per row")
    transfer.add_argument("--agents-labels", type=Path, metavar="FILE")
    transfer.add_argument("--agents-epsilon", type=float, required=True)
    transfer.add_argument(
        "--alpha", type=float, required=True, help="half width of the interval of the error"
    )
    _add_mechanism(transfer, _transfer)


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", type=Path, metavar="DATA", help=_DATA_HELP)
    parser.add_argument("--labels", type=Path, metavar="FILE", help=".npy or .csv, one column")
    parser.add_argument("--label", metavar="NAME", help="the label's column in a text")
    add_delimiter(parser)
    parser.add_argument("--affine", action="store_true", help="learn a constant as well")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the result as JSON")
    parser.add_argument("--budget", type=Path, metavar="FILE", help="spend from it, or refuse")


def _add_mechanism(parser: argparse.ArgumentParser, command: Command) -> None:
    parser.add_argument("--epsilon", type=float, required=True, help="privacy of the records")
    parser.add_argument("--beta", type=float, default=0.05, help="failure probability")
    parser.add_argument("--method", choices=("loop", "batches", "paper"), default="loop")
    parser.add_argument("--neighbors", choices=("replace_one", "add_remove"), default="replace_one")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=command)


def _add_budget(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="made if --epsilon is given")
    parser.add_argument("--epsilon", type=float, help="limit of all releases together")
    parser.add_argument("--delta", type=float, help="limit of all releases together, default 0")
    people = ("replace_person", "add_remove_person")
    parser.add_argument("--neighbors", choices=("replace_one", "add_remove", *people))
    parser.add_argument("--json", action="store_true", help="print JSON, with every release")
    parser.set_defaults(command=_budget)


def _add_bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--size", type=int, nargs="+", default=list(bench.SIZES), metavar="N")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=_bench)


def _help(arguments: argparse.Namespace) -> None:
    # Its own --help ends Python.
    with suppress(SystemExit):
        _parser().parse_args([*arguments.verb, "--help"])


def _demo(arguments: argparse.Namespace) -> ExitCode:
    seed = None if arguments.seed is None else nonnegative_int("--seed", arguments.seed)
    rng = np.random.default_rng(seed)
    plan = parity.plan(_DEMO_BITS, alpha=0.05, beta=0.05, epsilon=1)
    secret, source, target = (
        rng.integers(0, 2, shape, dtype=np.uint8)
        for shape in (_DEMO_BITS, (plan.n, _DEMO_BITS), (_DEMO_AGENTS, _DEMO_BITS))
    )
    result = parity.transfer(
        source,
        gf2.dot(source, secret),
        local.Agents(target, gf2.dot(target, secret), epsilon=1),
        epsilon=plan.epsilon,
        alpha=plan.alpha,
        beta=plan.beta,
        plan=plan,
        random_state=seed,
    )
    say(f"a secret parity of {_DEMO_BITS:,} bits, {plan.n:,} private records, epsilon = 1")
    if result.mask is None:
        say("nothing was released: privacy needs that to happen now and then; run it again")
    else:
        say(f"learned: {int((result.mask != secret).sum())} bits differ from the secret")
    if result.interval is not None:
        low, high = result.interval
        say(f"error by {_DEMO_AGENTS:,} agents' private answers: {low:.3f} to {high:.3f}")
    say("make demo, in the repository, learns one of real files, and surveys a town")
    return _outcome(result)


def _add_version(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(command=lambda arguments: say(f"hdp-fast {__version__}"))


def _add_help(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", nargs="*", metavar="COMMAND", help="such as parity learn")
    parser.set_defaults(command=_help)


# For each verb what the help at the top says of it, and what adds its arguments.
_VERBS: dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]] = {
    "demo": ("learn a secret parity, to see it work", _add_demo),
    "advise": ("say which method to take, before any data", advise_command.add_advise),
    "parity": ("plan, learn and transfer a private parity", _add_parity),
    "stats": ("counts, means, quantiles, histograms of a table", stats_command.add_stats),
    "schema": (
        "describe a table in public",
        schema_command.add_schema,
    ),
    "fit": ("learn a model of a private table", fit_command.add_fit),
    "predict": ("predict rows of a public table by such a model", predict_command.add_predict),
    "transfer": ("learn from a biased sample for a population", table_commands.add_transfer),
    "hybrid": (
        "a panel's model, repaired and certified by a survey",
        hybrid_command.add_hybrid,
    ),
    "label": ("label a public table in private", label_command.add_label),
    "adapt": (
        "learn for a small private table from a large public one",
        adapt_command.add_adapt,
    ),
    "local": ("ask people who trust no one", local_command.add_local),
    "budget": ("make or show a file that limits releases", _add_budget),
    "bench": ("time the linear algebra beside its peers", _add_bench),
    "version": ("say which version this is", _add_version),
    "help": ("explain a command", _add_help),
}


def _bench(arguments: argparse.Namespace) -> None:
    results = bench.run(arguments.size)
    say(json.dumps(results, indent=2) if arguments.json else bench.table(results))


def _budget(arguments: argparse.Namespace) -> None:
    limits = {name: getattr(arguments, name) for name in ("epsilon", "delta", "neighbors")}
    summary = json.loads(Budget.open(arguments.file, **limits).to_json())
    if not arguments.json:
        summary["releases"] = len(summary.pop("records"))
    show(summary, arguments.json)


def _open_budget(arguments: argparse.Namespace) -> Budget | None:
    return None if arguments.budget is None else Budget.open(arguments.budget)


def _plan(arguments: argparse.Namespace) -> None:
    plan = parity.plan(arguments.d, alpha=arguments.alpha, **_mechanism(arguments))
    goal = f"an error of at most {plan.alpha:g}, missed with probability {plan.beta:g}"
    show({"promise": f"{plan.n:,} records: {goal}", **dataclasses.asdict(plan)}, arguments.json)


def _learn(arguments: argparse.Namespace) -> ExitCode:
    check_output(arguments)
    budget = _open_budget(arguments)
    examples = _read_examples(arguments, arguments.data, arguments.labels, arguments.label)
    say_protected(arguments, {arguments.data: (arguments.epsilon, None)})
    result = parity.learn(
        examples.X, examples.y, affine=arguments.affine, budget=budget, **_mechanism(arguments)
    )
    deliver(json.loads(result.to_json()), arguments)
    return _outcome(result)


def _transfer(arguments: argparse.Namespace) -> ExitCode:
    check_output(arguments)
    budget = _open_budget(arguments)
    examples = _read_examples(arguments, arguments.data, arguments.labels, arguments.label)
    own_labels = arguments.agents_labels is None and is_text(arguments.agents)
    label = arguments.label if own_labels else None
    target = _read_examples(arguments, arguments.agents, arguments.agents_labels, label)
    agents = arguments.agents, (arguments.agents_epsilon, None)
    say_protected(arguments, dict([(arguments.data, (arguments.epsilon, None)), agents]))
    result = parity.transfer(
        examples.X,
        examples.y,
        local.Agents(target.X, target.y, epsilon=arguments.agents_epsilon),
        alpha=arguments.alpha,
        affine=arguments.affine,
        budget=budget,
        **_mechanism(arguments),
    )
    deliver(json.loads(result.to_json()), arguments)
    return _outcome(result)


def _read_examples(
    arguments: argparse.Namespace, path: Path, labels: Path | None, label: str | None
) -> files.Examples:
    one_is_text = "agents" in arguments and any(map(is_text, (arguments.data, arguments.agents)))
    # Where no file is a text the delimiter is refused.
    delimiter = None if one_is_text and not is_text(path) else sign_of(arguments)
    most = arguments.max_bytes
    return files.read_examples(
        path, labels=labels, label=label, delimiter=delimiter, max_bytes=most
    )


def _mechanism(arguments: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(arguments, name) for name in ("epsilon", "beta", "method", "neighbors")}


def _outcome(result: _Result) -> ExitCode:
    return ExitCode.DONE if result.released else ExitCode.NOTHING_USEFUL
