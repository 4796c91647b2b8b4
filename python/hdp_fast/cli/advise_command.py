"""hdp-fast advise: which method to take, from public numbers alone."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import get_args

from ..advice import advise
from ..advice.sizes import Learner, Source, Target
from ..data import files
from ..exceptions import ParameterError
from .output import check_output, say

# From the names of options to those of arguments, where the two differ.
_ARGUMENTS = {"records": "n", "features": "d"}
_TAKEN = (
    "records",
    "features",
    "epsilon",
    "agents",
    "pool",
    "classes",
    "delta",
    "agents_epsilon",
    "learner",
    "size",
    "target",
    "source",
    "base_rate",
    "best_error",
)


def add_advise(parser: argparse.ArgumentParser) -> None:
    """Adds the options of the verb."""
    parser.add_argument("--records", type=int, required=True, metavar="N", help="private records")
    parser.add_argument(
        "--features", type=int, required=True, metavar="D", help="feature columns, or means"
    )
    parser.add_argument("--epsilon", type=float, required=True, help="privacy of the records")
    parser.add_argument("--delta", type=float, default=1e-6, help="privacy of the records")
    parser.add_argument("--classes", type=int, default=2, metavar="K", help="number of labels")
    parser.add_argument(
        "--pool",
        type=int,
        default=0,
        metavar="M",
        help="public points without labels; with --source public, its labeled records",
    )
    parser.add_argument(
        "--agents", type=int, default=0, metavar="N", help="people who answer a question each"
    )
    parser.add_argument(
        "--agents-epsilon", type=float, default=1.0, help="privacy of each agent's answer"
    )
    parser.add_argument(
        "--learner",
        choices=get_args(Learner),
        default="linear",
        help="the model: linear in the features, one of a finite class, or another; or a mean of "
        "numbers or a table of shares",
    )
    parser.add_argument(
        "--size",
        type=int,
        help="number of hypotheses of a finite class, or of a table's categories",
    )
    parser.add_argument(
        "--target",
        choices=get_args(Target),
        default="unknown",
        help="whether the model is for the population of the source",
    )
    parser.add_argument("--source", choices=get_args(Source), default="private")
    parser.add_argument("--base-rate", type=float, help="share of label 1 in the target, if public")
    parser.add_argument(
        "--best-error", type=float, help="error of such a model without privacy, if public"
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the advice as JSON")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=_advise)


def _advise(arguments: argparse.Namespace) -> None:
    check_output(arguments)
    values = {_ARGUMENTS.get(name, name): getattr(arguments, name) for name in _TAKEN}
    try:
        advice = advise(**values)
    except ParameterError as error:
        raise ParameterError(_name_options(str(error))) from None
    if arguments.output is not None:
        files.write_atomically(arguments.output, (advice.to_json() + "\n").encode())
    say(json.dumps(json.loads(advice.to_json()), indent=2) if arguments.json else repr(advice))


def _name_options(message: str) -> str:
    """An error "name = value, but rule" with the option that was typed instead of the argument."""
    options = {_ARGUMENTS.get(name, name): name.replace("_", "-") for name in _TAKEN}
    name, sign, rest = message.partition(" = ")
    return f"--{options[name]}{sign}{rest}" if name in options else message
