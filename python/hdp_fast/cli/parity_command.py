"""The verbs demo and parity: learn a parity of bits, and carry it to another population."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.validate import nonnegative_int, refuse
from ..data import files
from ..data.delimited import is_text
from ..exceptions import ParameterError
from .exit_codes import ExitCode
from .output import check_output, deliver, is_standard, say, say_protected, show
from .tables import add_delimiter, name_files, sign_of

if TYPE_CHECKING:
    from .. import parity
    from ..budget.account import Budget

    _Result = parity.ParityResult | parity.ParityTransferResult

_DATA_HELP = (
    ".npy (a matrix, with --labels), .npz (X and y, or X_packed, ncols and y) "
    "or .csv, .tsv, .txt (the last column is the label); - is the standard input, read as .csv"
)

_DEMO_BITS, _DEMO_AGENTS = 1_000, 5_000

# None stands for DONE.
_Command = Callable[[argparse.Namespace], ExitCode | None]


def add_demo(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of `demo`."""
    parser.add_argument("--seed", type=int, help="repeatable, and not private")
    parser.set_defaults(command=_demo)


def _demo(arguments: argparse.Namespace) -> ExitCode:
    # Help and a wrong flag do not wait for them.
    from .. import gf2, local, parity

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


def add_parity(parser: argparse.ArgumentParser) -> None:
    """Adds the verbs of `parity`."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    plan = commands.add_parser("plan", help="how many records are needed, before any data")
    plan.add_argument("--d", type=int, required=True, help="number of features")
    plan.add_argument("--alpha", type=float, required=True, help="largest error, below 1/2")
    _add_mechanism(plan, _plan)

    learn = commands.add_parser("learn", help="learn a parity from one file, or several as one")
    _add_data(learn, nargs="+")
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


def _add_data(parser: argparse.ArgumentParser, **many: Any) -> None:
    parser.add_argument("data", type=Path, metavar="DATA", help=_DATA_HELP, **many)
    parser.add_argument("--labels", type=Path, metavar="FILE", help=".npy or .csv, one column")
    parser.add_argument("--label", metavar="NAME", help="the label's column in a text")
    add_delimiter(parser)
    parser.add_argument("--affine", action="store_true", help="learn a constant as well")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the result as JSON")
    parser.add_argument("--budget", type=Path, metavar="FILE", help="spend from it, or refuse")


def _add_mechanism(parser: argparse.ArgumentParser, command: _Command) -> None:
    parser.add_argument("--epsilon", type=float, required=True, help="privacy of the records")
    parser.add_argument("--beta", type=float, default=0.05, help="failure probability")
    parser.add_argument("--method", choices=("loop", "batches", "paper"), default="loop")
    parser.add_argument("--neighbors", choices=("replace_one", "add_remove"), default="replace_one")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=command)


def _plan(arguments: argparse.Namespace) -> None:
    from .. import parity

    plan = parity.plan(arguments.d, alpha=arguments.alpha, **_mechanism(arguments))
    goal = f"an error of at most {plan.alpha:g}, missed with probability {plan.beta:g}"
    show({"promise": f"{plan.n:,} records: {goal}", **dataclasses.asdict(plan)}, arguments.json)


def _learn(arguments: argparse.Namespace) -> ExitCode:
    from .. import parity

    check_output(arguments)
    budget = _open_budget(arguments)
    records = _read_records(arguments)
    say_protected(arguments, {name_files(arguments.data): (arguments.epsilon, None)})
    result = parity.learn(*records, affine=arguments.affine, budget=budget, **_mechanism(arguments))
    deliver(json.loads(result.to_json()), arguments)
    return _outcome(result)


def _read_records(arguments: argparse.Namespace) -> tuple[Any, ...]:
    """X and y of one file, or Chunks of several, which are read one after the other."""
    first, *others = arguments.data
    if not others:
        return _read_pair(arguments, first, arguments.labels)
    from ..data.chunks import Chunks

    if any(map(is_standard, arguments.data)):
        raise ParameterError("DATA is - and more, but the standard input must come alone")
    if arguments.labels is not None:
        refuse("--labels", str(arguments.labels), "several files must hold their labels")
    return (Chunks([partial(_read_pair, arguments, path, None) for path in arguments.data]),)


def _read_pair(arguments: argparse.Namespace, path: Path, labels: Path | None) -> tuple[Any, Any]:
    examples = _read_examples(arguments, path, labels, arguments.label)
    return examples.X, examples.y


def _transfer(arguments: argparse.Namespace) -> ExitCode:
    from .. import local, parity

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


def _open_budget(arguments: argparse.Namespace) -> Budget | None:
    from ..budget.account import Budget

    return None if arguments.budget is None else Budget.open(arguments.budget)


def _outcome(result: _Result) -> ExitCode:
    return ExitCode.DONE if result.released else ExitCode.NOTHING_USEFUL
