"""The command hdp-fast transfer, and how commands read schemas."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support.validate import positive, probability
from ..data.column_kinds import require_label
from ..data.schema import Schema
from ..data.table import Table
from ..exceptions import AgentsExhausted, ParameterError
from .output import (
    add_plot,
    protect_both,
    record_of,
    say_protected,
)
from .predict_command import (
    Features,
    add_predict_options,
    deliver_predictor,
    place_results,
    read_request,
)
from .tables import FILE_HELP, add_delimiter, read, read_schema

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .. import local, transfer
    from ..learners.exponential import ExponentialLearner

_TRANSFER_TEXT = """Learn from the records of SOURCE a hypothesis that is good on the population of
TARGET (Subsample-Test-Reweigh). TARGET is a simulation: each of its rows plays an agent, who
answers one question by randomized response, or none. Privacy: SOURCE is protected by (epsilon,
delta) for each row, whatever is printed or written; each row of TARGET by the agents' epsilon. The
schema is public and must not be made from either file. With --non-private SOURCE is not protected
at all, and the learner is scikit-learn's logistic regression. With --chi2 the error is promised;
with --kappa, --eta and --rounds it is only measured, privacy is promised all the same. The file of
--predict is not protected."""


# Settings that public rules choose where no flag does.
_AUTOMATIC = ("alpha", "kappa", "eta", "rounds", "schedule")


def add_transfer(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of hdp-fast transfer."""
    parser.description = _TRANSFER_TEXT
    parser.add_argument("source", type=Path, metavar="SOURCE", help=FILE_HELP)
    parser.add_argument("target", type=Path, metavar="TARGET", help="the same, one agent a row")
    parser.add_argument("--schema", type=Path, required=True, metavar="FILE")
    parser.add_argument("--label", metavar="COLUMN", help="must be the schema's, if given")
    parser.add_argument("--epsilon", type=float, help="privacy of SOURCE")
    parser.add_argument("--delta", type=float, help="privacy of SOURCE")
    parser.add_argument("--agents-epsilon", type=float, required=True, help="privacy of an agent")
    parser.add_argument("--alpha", type=float, help="half width of each test")
    parser.add_argument("--beta", type=float, default=0.05, help="failure probability")
    parser.add_argument("--opt", type=float, default=0.0, help="least error of the class on TARGET")
    parser.add_argument("--chi2", type=float, help="public bound on the divergence from SOURCE")
    parser.add_argument("--kappa", type=float, help="density of the weights, in (0, 1]")
    parser.add_argument("--eta", type=float, help="step size of the weights")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--draws", type=int, help="records for each round, with --non-private")
    _add_choices(parser)
    add_predict_options(parser)
    add_plot(parser, "the error of every test")
    parser.add_argument("--checkpoint", type=Path, metavar="FILE", help="go on where a run died")
    parser.add_argument("--budget", type=Path, metavar="FILE", help="spend from it, or refuse")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the result as JSON")
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_delimiter(parser)
    parser.set_defaults(command=_transfer)


def _add_choices(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--schedule", choices=("every", "geometric", "final"), help="of tests")
    parser.add_argument(
        "--choose",
        choices=("tested", "smallest", "majority"),
        help="what to keep",
    )
    parser.add_argument("--size", type=int, default=2, help="features in a conjunction, at most")
    parser.add_argument("--non-private", action="store_true", help="SOURCE is not protected")


def _transfer(arguments: argparse.Namespace) -> None:
    from ..budget.account import Budget  # Help and a wrong flag do not wait for it.

    needed = _count_agents(arguments)
    places = place_results(arguments)
    budget = None if arguments.budget is None else Budget.open(arguments.budget)
    schema = _schema_of(arguments)
    features = schema.floats if arguments.non_private else schema.bits
    request = read_request(arguments, schema, features)
    run = _run(arguments, schema)
    source, target = (read(path, arguments) for path in (arguments.source, arguments.target))
    agents = _agents(target, schema, features, arguments.agents_epsilon)
    if needed > agents.remaining:
        count = f"TARGET has {agents.remaining:,} agents, but the plan needs {needed:,}"
        fewer = "fewer --rounds or --schedule final"
        if arguments.schedule == "final":
            fewer = "a larger --alpha, --beta or --agents-epsilon"
        raise AgentsExhausted(f"{count}: {fewer} need fewer")
    X, y = features(source), schema.labels(source)
    _say_protected(arguments)
    run.fit(X, y, agents, budget=budget)
    summary = _summary(run.result_, schema)
    deliver_predictor(
        arguments,
        places,
        summary,
        request,
        lambda rows: run.predict(rows).tolist(),
        lambda: _draw(run.result_),
    )


def _draw(result: transfer.TransferResult) -> Figure:
    from .. import plotting  # Whoever draws nothing does not wait for it.

    return plotting.transfer(result)


def _say_protected(arguments: argparse.Namespace) -> None:
    target, epsilon = arguments.target, arguments.agents_epsilon
    public = [] if arguments.predict is None else [arguments.predict]
    if arguments.non_private:
        say_protected(arguments, {target: (epsilon, None)}, [arguments.source, *public])
    else:
        source = arguments.epsilon, arguments.delta
        say_protected(arguments, protect_both(arguments.source, source, target, epsilon), public)


def _count_agents(arguments: argparse.Namespace) -> int:
    """The agents that the plan needs, 0 where that follows from the files.

    Wrong flags are refused before any file is read.
    """
    from .. import transfer
    from ..weights import DenseWeights

    names = ("epsilon", "delta", "chi2", "draws", "budget")
    flags = [name for name in names if getattr(arguments, name) is not None]
    if arguments.non_private:
        wrong = [name for name in ("epsilon", "delta", "budget") if name in flags]
        if wrong:
            raise ParameterError(f"--{wrong[0]} must not go with --non-private")
    else:
        positive("--epsilon", arguments.epsilon)
        probability("--delta", arguments.delta)
        if "draws" in flags:
            raise ParameterError("--draws must go with --non-private: privacy decides them else")
    if "chi2" in flags and arguments.alpha is None:
        raise ParameterError("--alpha must be given with --chi2, from which the others follow")
    if arguments.size < 1:
        raise ParameterError(f"--size = {arguments.size}, but it must be at least 1")
    options = _options(arguments) | {"draws": 1}
    # Neither the learner nor the privacy of SOURCE changes the number of agents.
    epsilon = positive("--agents-epsilon", arguments.agents_epsilon)
    plan = transfer.plan_rounds(None, agents_epsilon=epsilon, epsilon=math.inf, **options)
    DenseWeights(1, 1.0, plan.eta)  # refuses a step size that no run accepts
    kappa = 1 if arguments.non_private else arguments.kappa
    left = None in (arguments.alpha, arguments.rounds, kappa) and "chi2" not in flags
    # What is left to rules follows from the number of rows, too.
    return 0 if left else plan.N


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    names = ("beta", "chi2", "opt", "draws")
    chosen = {name: getattr(arguments, name) for name in _AUTOMATIC} | {"output": arguments.choose}
    automatic = {name: "auto" if value is None else value for name, value in chosen.items()}
    return {**{name: getattr(arguments, name) for name in names}, **automatic}


def _schema_of(arguments: argparse.Namespace) -> Schema:
    schema = read_schema(arguments.schema)
    if arguments.label not in (None, require_label(schema.label).column):
        rule = f"the schema's label is {require_label(schema.label).column!r}"
        raise ParameterError(f"--label = {arguments.label!r}, but {rule}")
    return schema


def _run(arguments: argparse.Namespace, schema: Schema) -> transfer.SubsampleTestReweigh:
    from .. import transfer
    from ..learners.logistic import LogisticLearner

    learner: Any = LogisticLearner() if arguments.non_private else _learner(schema, arguments.size)
    checkpoint = arguments.checkpoint
    return transfer.SubsampleTestReweigh(
        learner,
        epsilon=math.inf if arguments.non_private else arguments.epsilon,
        delta=arguments.delta,
        checkpoint=None if checkpoint is None else str(checkpoint),
        **_options(arguments),
    )


def _learner(schema: Schema, size: int) -> ExponentialLearner:
    from ..learners.bit_classes import Conjunctions, Stumps
    from ..learners.exponential import ExponentialLearner

    d = len(schema.names)
    if size == 1:
        return ExponentialLearner(Stumps(d), epsilon=1.0)
    return ExponentialLearner(Conjunctions(d, min(size, d), complements=True), epsilon=1.0)


def _agents(table: Table, schema: Schema, features: Features, epsilon: float) -> local.Agents:
    from .. import local

    # Tests ask agents in order, and files are often sorted. The new order does not depend on the
    # rows, and is the same when a run is resumed.
    order = np.random.default_rng(0).permutation(table.rows)
    agents = table.select(order)
    return local.Agents(features(agents), schema.labels(agents), epsilon=epsilon)


def _summary(result: transfer.TransferResult, schema: Schema) -> dict[str, Any]:
    tested = result.tested
    assert tested is not None
    hypothesis = result.hypothesis
    return {
        "hypothesis": None if hypothesis is None else schema.words(hypothesis),
        "target_error": tested.value,
        "interval": [tested.low, tested.high],
        "constant_errors": _constant_errors(result.constants),
        "promised_error": result.plan.error,
        "stopped": _STOPPED[result.stopped],
        "rounds": result.rounds,
        "planned_rounds": result.plan.rounds,
        "agents_asked": result.agents_asked,
        "description": hypothesis,
        "record": record_of(result.record),
        "agents_record": record_of(result.agents_record),
    }


def _constant_errors(constants: transfer.Constants | None) -> dict[str, float] | None:
    return None if constants is None else {"always 0": constants.zero, "always 1": constants.one}


_STOPPED = {
    "accepted": "a test accepted",
    "threshold": "measured, not better than a constant",
    "rounds": "all planned rounds were run",
}
