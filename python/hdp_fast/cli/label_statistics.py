"""The ways of hdp-fast label: which one is taken, and the one without members."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._support.validate import refuse
from ..exceptions import ParameterError
from .label_task import LabelTask

if TYPE_CHECKING:
    from ..budget.account import Budget
    from ..labels.pool import MethodChoice
    from ..labels.results import LabelResult
    from ..labels.statistics_labeler import StatisticsLabeler

METHODS = ("statistics", "votes", "auto")
# What only votes have.
_OF_VOTES = ("queries", "max_unstable", "members", "beta", "agreement", "table", "ids")
_ARCHIVE = b"PK"
AS_ASKED = "as asked"


def settle_method(arguments: argparse.Namespace) -> str:
    """The method that the arguments name or imply, before any file is read.

    Whoever names an estimator, or anything else that only votes have, wants votes.

    Raises:
        ParameterError: The method has no use for an argument, or lacks one.
    """
    of_votes = [name for name in (*_OF_VOTES, "estimator") if _is_passed(arguments, name)]
    method = arguments.method
    if method is None:
        method = "votes" if of_votes or arguments.suggest else "auto"
    if method == "statistics" and of_votes:
        name = of_votes[0]
        refuse(option(name), getattr(arguments, name), "--method statistics has no members")
    if method == "statistics" and arguments.suggest:
        raise ParameterError("--suggest tries members, but --method statistics has none")
    if method == "votes" and arguments.estimator is None:
        raise ParameterError("--estimator must be given, as --method votes trains members")
    if method == "auto":
        _check_auto(arguments)
    return str(method)


def _check_auto(arguments: argparse.Namespace) -> None:
    if arguments.threshold is not None:
        rule = "votes and statistics have different ones: name the --method"
        refuse("--threshold", arguments.threshold, rule)
    for name in ("ids", "suggest"):
        if _is_passed(arguments, name):
            rule = "only --method votes has it"
            raise ParameterError(f"{option(name)} is given with --method auto, but {rule}")


def choose(method: str, arguments: argparse.Namespace, task: LabelTask) -> MethodChoice | None:
    """The method of "auto", from public facts; the number of PRIVATE's rows is one of them.

    It is None where the arguments name the method, or a model or members were kept.

    Raises:
        ParameterError: PRIVATE cannot be read, or a parameter is out of range.
    """
    kept = arguments.save is not None and arguments.save.exists()
    return task.pool(arguments).choose(task.rows) if method == "auto" and not kept else None


def is_kept(save: Path | None) -> bool:
    """Whether a file exists and holds a released model rather than members."""
    if save is None or not save.is_file():
        return False
    with save.open("rb") as handle:
        return handle.read(len(_ARCHIVE)) == _ARCHIVE


def make_labeler(method: str, arguments: argparse.Namespace, task: LabelTask) -> StatisticsLabeler:
    """A labeler without a model, or the one that was kept.

    Raises:
        CheckpointError: The file holds something else, such as members.
        ParameterError: The kept one was made for something else.
    """
    # Help and a wrong flag do not wait for them.
    from ..labels.pool import population_of
    from ..labels.statistics_labeler import StatisticsLabeler

    options: dict[str, Any] = {
        "epsilon": arguments.epsilon,
        "delta": arguments.delta,
        "population": population_of(method),
    }
    if arguments.threshold is not None:
        options["threshold"] = arguments.threshold
    classes = task.label_set
    if arguments.save is None or not arguments.save.exists():
        return StatisticsLabeler(classes=classes, **options)
    labeler = StatisticsLabeler.load(arguments.save)
    labeler.set_params(threshold=options.pop("threshold", labeler.threshold))
    if arguments.method is None:
        del options["population"]
    for name, value in {**options, "classes": classes}.items():
        kept = labeler.classes_.tolist() if name == "classes" else getattr(labeler, name)
        if kept != value:
            refuse(option(name), value, f"{arguments.save} was made for {kept!r}")
    return labeler


def fit(
    labeler: StatisticsLabeler,
    arguments: argparse.Namespace,
    task: LabelTask,
    budget: Budget | None,
) -> None:
    """Release what the model needs, and keep it where --save says."""
    X, y = task.records()
    labeler.fit(
        X,
        y,
        task.points,
        budget=budget,
        random_state=arguments.seed,
    )
    if arguments.save is not None:
        labeler.save(arguments.save)


def summarize(
    labeler: StatisticsLabeler, result: LabelResult, choice: MethodChoice | None
) -> dict[str, Any]:
    """What the record says beside the counts of answers."""
    return {
        "method": "statistics",
        "reason": AS_ASKED if choice is None else choice.reason,
        "learned_by": labeler.method_,
        "population_distance": None if labeler.test_ is None else labeler.test_.distance,
        "population_most": None if labeler.test_ is None else labeler.test_.most,
        "queries_left": result.queries_left,
    }


def summarize_plan(
    labeler: StatisticsLabeler, choice: MethodChoice | None, task: LabelTask
) -> dict[str, Any]:
    """What --plan shows where no members are needed."""
    return {
        "method": "statistics",
        "reason": AS_ASKED if choice is None else choice.reason,
        "signal": None if choice is None else choice.signal,
        "columns": task.points.shape[1],
        "classes": len(task.label_set),
        "pool": len(task.points),
        "population": labeler.population,
    }


def _is_passed(arguments: argparse.Namespace, name: str) -> bool:
    value = getattr(arguments, name)
    return value is not None and value is not False


def option(name: str) -> str:
    """The option of an argument."""
    return f"--{name.replace('_', '-')}"
