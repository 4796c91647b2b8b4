"""The command hdp-fast label: labels for a public table from a private one."""

from __future__ import annotations

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._support import progress
from .._support.validate import positive, positive_int, probability, refuse
from ..data import files
from ..data.table import Table
from ..exceptions import BudgetExceeded, ParameterError
from . import label_task
from .exit_codes import ExitCode
from .label_statistics import (
    METHODS,
    choose,
    fit,
    is_kept,
    make_labeler,
    option,
    settle_method,
    summarize,
    summarize_plan,
)
from .label_task import LabelPlaces, LabelTask, passed, place_results, read_task
from .output import (
    Watch,
    add_plot,
    inform,
    note_swapped,
    record_of,
    say_protected,
    say_table,
    show,
    spent,
    write_figure,
)
from .tables import SCHEMA_HELP, add_delimiter, add_parts, name_parts, open_workers

if TYPE_CHECKING:
    from ..budget.account import Budget
    from ..labels.labeler import PrivateLabeler
    from ..labels.pool import MethodChoice
    from ..labels.results import LabelResult
    from ..stability.plans import VotePlan

_TEXT = """Label the rows of PUBLIC by a linear model that one noisy release of PRIVATE's statistics
makes, or by the votes of members, each trained on its own part of PRIVATE. --method says which:
statistics where labels are about linear in the features and PUBLIC's rows are of the population of
PRIVATE's; votes for any --estimator; auto chooses by public facts, and pays a tenth of epsilon and
delta for a test whether the populations agree. Where they do not, it learns by noisy gradients from
PRIVATE alone. Without --method it is votes where anything is set that only votes have. Written is
PUBLIC with one more column, of labels: empty where the model's probability of its label is below
--threshold, or where too few members agree to say anything in private, and in all rows after the
last such one (--max-unstable). PRIVATE may lie in parts, each of which holds whole members and is
read where --workers or --dask say; --ids need one file. Privacy: PRIVATE is
protected by (epsilon, delta) for each row, with --ids for all rows of an id, whatever is printed or
written, except by --save, whose file is as private as PRIVATE; PUBLIC is not protected. The schema
is public and says which columns are features and which rows are positive: those get its text of
them, all others --negative, or the one other text in PUBLIC's column of that name if it holds both,
or else its opposite: "0" to "1", "no" to "yes", "not A" to "A" (0 and 1 where the schema says above
which number); unless --classes lists all labels, which are public, too. --members decides how many
rows get a label, and how good it is, not how private it is. Labels are texts to the estimator."""
_MOST_MEMBERS = 1 << 24
# The estimator of votes that auto chooses.
_USUAL = "naive-bayes"
_TABLES = ("fewest", "hazard", "vote", "gaussian")
_PARAMETERS = (
    *("epsilon", "delta", "queries", "max_unstable"),
    *("members", "beta", "agreement", "table", "threshold"),
)
_SUGGESTED = (
    *("epsilon", "delta", "queries", "classes", "max_unstable"),
    *("beta", "agreement", "table", "threshold"),
)


def add_label(parser: argparse.ArgumentParser) -> None:
    """The arguments of hdp-fast label."""
    parser.description = _TEXT
    add = parser.add_argument
    add_parts(parser)
    add("public", type=Path, metavar="PUBLIC", help="one file, no label needed: one is not used")
    add("--schema", type=Path, required=True, metavar="FILE", help=SCHEMA_HELP)
    add("--method", choices=METHODS, help="votes with --estimator, or else auto, if not given")
    add("--estimator", metavar="NAME", help=f"of votes: one of {label_task.RULE}")
    add("--epsilon", type=float, required=True, help="privacy of PRIVATE")
    add("--delta", type=float, required=True, help="privacy of PRIVATE")
    add("--label", metavar="COLUMN", help="column of the label, the schema's if not given")
    add("--classes", metavar="A,B,...", help="all labels there are, instead of the schema's rule")
    add("--negative", metavar="TEXT", help="label of rows that the schema does not call positive")
    add("--ids", metavar="COLUMN", help="whose row it is: protects all rows of an id together")
    _add_plan(parser)
    add_delimiter(parser)
    add("--plan", action="store_true", help="print which method, and members it needs, and stop")
    add(
        "--suggest",
        action="store_true",
        help="try --members on PUBLIC for PRIVATE's rows, and stop",
    )
    add(
        "--output",
        type=Path,
        metavar="FILE",
        help="in PUBLIC's format, - prints it [PUBLIC.labeled...]",
    )
    add("--record", type=Path, metavar="FILE", help="new, JSON, nothing private [OUTPUT.json]")
    add_plot(parser, "answers and bottoms")
    add(
        "--save", type=Path, metavar="FILE", help="keep members or model, or go on with those in it"
    )
    add("--budget", type=Path, metavar="FILE", help="spend from it, or refuse")
    add("--seed", type=int, help="repeatable, and not private")
    add("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=_label)


def _add_plan(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--queries", type=int, metavar="M", help="rows that may be labeled [those of PUBLIC]")
    empty = "empty labels that end it [5%% of M, plus 1]"
    add("--max-unstable", type=int, metavar="T", help=empty)
    add("--members", type=int, metavar="K", help="as many as --beta needs, or as auto can train")
    add("--beta", type=float, help="probability of less than promised [.05]")
    add("--agreement", type=float, help="share of members that agree on a clear row [.75]")
    add("--table", choices=_TABLES, help="vote: two labels, none is empty; gaussian: none ends it")
    clear = "gap of gaussian that is clear, in sigmas [1]; probability, for statistics [.5]"
    add("--threshold", type=float, help=clear)


def _label(arguments: argparse.Namespace) -> ExitCode | None:
    from ..budget.account import Budget  # Help and a wrong flag do not wait for it.

    positive("--epsilon", arguments.epsilon)
    probability("--delta", arguments.delta)
    method = settle_method(arguments)
    places = place_results(arguments)
    label_task.check_name(arguments.estimator or _USUAL)
    budget = None if arguments.budget is None else Budget.open(arguments.budget)
    before, watch = spent(budget), Watch([places.output])
    task = read_task(arguments)
    try:
        with open_workers(arguments):
            return _label_task(method, places, arguments, task, budget)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_cost(watch, arguments, before, spent(budget))) from None


def _label_task(
    method: str,
    places: LabelPlaces,
    arguments: argparse.Namespace,
    task: LabelTask,
    budget: Budget | None,
) -> ExitCode | None:
    choice = choose(method, arguments, task)
    if _takes_statistics(method, choice, arguments):
        return _label_by_statistics(method, choice, places, arguments, task, budget)
    return _label_by_votes(choice, places, arguments, task, budget)


def _takes_statistics(
    method: str, choice: MethodChoice | None, arguments: argparse.Namespace
) -> bool:
    if choice is not None:
        return choice.method == "statistics"
    return method == "statistics" or (method == "auto" and is_kept(arguments.save))


def _label_by_votes(
    choice: MethodChoice | None,
    places: LabelPlaces,
    arguments: argparse.Namespace,
    task: LabelTask,
    budget: Budget | None,
) -> ExitCode | None:
    from ..labels.pool import choose_members

    labeler = _labeler(arguments, task)
    if choice is not None and labeler.members is None:
        # No one asked for votes: as many members as the records bear.
        labeler.members = choose_members(labeler.plan(), task.rows, "PRIVATE")
    if arguments.plan:
        _show_plan(labeler, choice, arguments)
        return None
    if arguments.suggest:
        _suggest(labeler, arguments, task)
        return None
    _say_protected(arguments)
    is_new = not hasattr(labeler, "members_")
    if is_new:
        _train(labeler, arguments, task, budget)
    # A new one has been tried on these points before it was trained.
    result = labeler.label(task.points, progress=progress.can_show(), preflight=not is_new)
    summary = _summarize(places, task, result) | _summarize_votes(labeler, result)
    _deliver(places, task, result, summary | _reason(choice), arguments)
    return None if result.shares else ExitCode.NOTHING_USEFUL


def _label_by_statistics(
    method: str,
    choice: MethodChoice | None,
    places: LabelPlaces,
    arguments: argparse.Namespace,
    task: LabelTask,
    budget: Budget | None,
) -> ExitCode | None:
    labeler = make_labeler(method, arguments, task)
    if arguments.plan:
        show(summarize_plan(labeler, choice, task), arguments.json)
        return None
    _say_protected(arguments)
    if not hasattr(labeler, "method_"):
        _check_swapped(arguments, task)
        fit(labeler, arguments, task, budget)
    result = labeler.label(task.points)
    summary = _summarize(places, task, result) | summarize(labeler, result, choice)
    summary["record"] = record_of(result.record)
    _deliver(places, task, result, summary, arguments)
    return None if result.shares else ExitCode.NOTHING_USEFUL


def _reason(choice: MethodChoice | None) -> dict[str, Any]:
    """Why votes were taken, where it was not asked for."""
    return {} if choice is None else {"method": "votes", "reason": choice.reason}


def _say_protected(arguments: argparse.Namespace) -> None:
    privacy = arguments.epsilon, arguments.delta
    say_protected(arguments, {name_parts(arguments): privacy}, [arguments.public])


def _show_plan(
    labeler: PrivateLabeler, choice: MethodChoice | None, arguments: argparse.Namespace
) -> None:
    from ..labels.ensemble import note_flips

    plan = labeler.plan()
    members = plan.k if labeler.members is None else labeler.members
    positive_int("--members", members, _MOST_MEMBERS)
    note_flips(plan, members)
    show(_reason(choice) | _summarize_plan(plan, members), arguments.json)


def _suggest(labeler: PrivateLabeler, arguments: argparse.Namespace, task: LabelTask) -> None:
    """Show which number of members is best for as many rows as PRIVATE has; nothing is spent."""
    from ..labels.suggestion import suggest

    if arguments.ids is not None:
        raise ParameterError("--suggest needs the number of rows, but with --ids it is private")
    public = task.public
    result = suggest(
        label_task.estimator(arguments.estimator),
        task.points,
        task.labels(public) if task.label in public.columns else None,
        n=task.rows,
        progress=progress.can_show(),
        **{name: getattr(labeler, name) for name in _SUGGESTED},
    )
    summary = dataclasses.asdict(result) | {"rows": task.rows}
    for one in summary.pop("candidates"):
        accuracy, flip = one["accuracy"], one["flip_probability"]
        summary[f"members {one['members']}"] = f"accuracy {accuracy:.3f}, flipped {flip:.3f}"
    show(summary, arguments.json)


def _labeler(arguments: argparse.Namespace, task: LabelTask) -> PrivateLabeler:
    """A labeler that still needs its learner and training, or the one that was kept."""
    if arguments.save is not None and arguments.save.exists():
        return _load(arguments, task)
    return task.pool(arguments).make_labeler()


def _load(arguments: argparse.Namespace, task: LabelTask) -> PrivateLabeler:
    from ..labels.labeler import PrivateLabeler

    options = passed(arguments, _PARAMETERS) | {"classes": task.label_set}
    # Whoever names the file on the command line has made it by the same command.
    labeler = PrivateLabeler.load(arguments.save, trusted=True, random_state=arguments.seed)
    if (
        arguments.negative is None
        and task.classes is None
        and task.texts[1] in labeler.classes_.tolist()
    ):
        # Its members know the text of the others, which this PUBLIC may not.
        del options["classes"]
    for name, value in options.items():
        if getattr(labeler, name) != value:
            rule = f"{arguments.save} was made for {getattr(labeler, name)!r}"
            raise ParameterError(f"{option(name)} = {value!r}, but {rule}")
    rows = len(task.points)
    left, most = labeler.queries_left, labeler.plan_.table.queries
    if left < rows:
        rule = f"{arguments.save} has answered {most - left:,} of {most:,}, and has {left:,} left"
        lost = "answers that a run was stopped before writing are paid for and lost"
        advice = "fewer rows, or --save with a new file, which trains again at its own epsilon"
        raise BudgetExceeded(f"PUBLIC has {rows:,} queries, but {rule}: {lost}; take {advice}")
    return labeler


def _train(
    labeler: PrivateLabeler, arguments: argparse.Namespace, task: LabelTask, budget: Budget | None
) -> None:
    from ..labels.ensemble import require_records

    plan = labeler.plan()
    _check_swapped(arguments, task)
    ids = None
    if arguments.ids is not None:
        ids = _read_ids(arguments.ids, task)
    elif labeler.members is None:
        require_records(plan, task.rows, plan.k, f"PRIVATE has {task.rows:,} rows")
    X, y = task.records()
    # Scikit-learn takes seconds to import: not before the files have been looked at.
    labeler.learner = label_task.estimator(arguments.estimator or _USUAL)
    labeler.check(task.points, records=None if ids is not None else task.rows)
    labeler.fit(
        X,
        y,
        ids=ids,
        budget=budget,
        random_state=arguments.seed,
        progress=progress.can_show(),
        preflight=False,
    )
    if arguments.save is not None:
        labeler.save(arguments.save)


def _read_ids(name: str, task: LabelTask) -> Any:
    """Whose row each one of PRIVATE is.

    Raises:
        ParameterError: PRIVATE lies in parts, or has no such column.
    """
    if not isinstance(task.private, Table):
        refuse("--ids", name, "a person may have rows in several parts: join them first")
    column = task.private.column(name)
    return np.array(column.texts)[column.codes]


def _check_swapped(arguments: argparse.Namespace, task: LabelTask) -> None:
    if task.column != task.label:
        _refuse_swapped(arguments, task)
        note_swapped(name_parts(arguments), task.rows, arguments.public, len(task.points))


def _refuse_swapped(arguments: argparse.Namespace, task: LabelTask) -> None:
    """Refuses files of which only the label stands in the other one."""
    columns, others = set(task.columns), task.schema.columns.keys() - {task.label}
    if task.label not in columns and others <= columns:
        files = (
            f"PRIVATE, {name_parts(arguments)}, has none, while PUBLIC, {arguments.public}, has one"
        )
        refuse("column", task.label, f"{files}: are the two swapped?")


def _deliver(
    places: LabelPlaces,
    task: LabelTask,
    result: LabelResult,
    summary: dict[str, Any],
    arguments: argparse.Namespace,
) -> None:
    texts = [*result.labels.tolist(), *[""] * (len(task.points) - len(result.labels))]
    if places.output is None:
        _print(places, task.append(texts).decode(), summary, result, texts)
        rows = f"{summary['answered']:,} of {summary['rows']:,} rows answered"
        inform(arguments, f"{rows}; what protects them is in {places.record}")
        return
    try:
        files.write_atomically(places.output, task.append(texts))
        _write_beside(places, summary, result)
    except ParameterError:
        # They are paid for: a full disk must not take them along.
        summary["labels"] = texts
        raise
    finally:
        show(summary, arguments.json, None if "labels" in summary else places.output)


def _print(
    places: LabelPlaces, table: str, summary: dict[str, Any], result: LabelResult, texts: list[str]
) -> None:
    """Print the labeled table; if that fails, the labels are kept beside the record."""
    try:
        say_table(table, f"; the labels are in {places.record}")
    except (ParameterError, BrokenPipeError):
        summary["labels"] = texts
        raise
    finally:
        _write_beside(places, summary, result)


def _write_beside(places: LabelPlaces, summary: dict[str, Any], result: LabelResult) -> None:
    text = json.dumps(summary, indent=2) + "\n"
    files.write_atomically(places.record, text.encode())
    if places.plot is not None:
        from .. import plotting  # Whoever draws nothing does not wait for it.

        write_figure(places.plot, plotting.labels(result))


def _summarize(places: LabelPlaces, task: LabelTask, result: LabelResult) -> dict[str, Any]:
    bottoms = int(np.count_nonzero(result.is_bottom))
    kept = f"column {task.label!r} of PUBLIC is kept, and was not used"
    return {
        "output": str(places.output or "-"),
        "column": task.column,
        "note": None if task.column == task.label else kept,
        "rows": len(task.points),
        "answered": len(result.labels) - bottoms,
        "bottoms": bottoms,
        "unanswered": len(task.points) - len(result.labels),
        "shares": {label: round(share, 4) for label, share in result.shares.items()},
    }


def _summarize_votes(labeler: PrivateLabeler, result: LabelResult) -> dict[str, Any]:
    return {
        "members": labeler.members_,
        "unstable_left": result.unstable_left,
        "queries_left": result.queries_left,
        "flip_probability": result.flip_probability,
        "plan": _summarize_plan(labeler.plan_, labeler.members_),
        "record": record_of(result.record),
    }


def _summarize_plan(plan: VotePlan, members: int) -> dict[str, Any]:
    from ..stability.gaussian import GaussianVote
    from ..stability.tables import HazardTable

    table = plan.table
    return {
        "members": plan.k,
        "members_hazard": plan.k_hazard,
        "members_vote": plan.k_vote,
        "members_gaussian": plan.k_gaussian,
        "members_paper": plan.k_paper,
        "table": type(table).__name__,
        "levels": None if isinstance(table, GaussianVote) else table.J,
        "queries": table.queries,
        "max_unstable": table.max_unstable if isinstance(table, HazardTable) else None,
        "members_in_use": members,
        "flip_probability": plan.flip(members),
        "flip_probability_at_75": plan.flip(members, agreement=0.75),
    }


def _cost(watch: Watch, arguments: argparse.Namespace, before: str, after: str) -> str:
    """What an interrupted run leaves behind, in words."""
    parts = watch.describe()
    if after:
        parts.append(f"of the budget {after} are spent, before this run {before}")
    if arguments.save is not None and arguments.save.exists():
        parts.append(f"the same command goes on with what is in {arguments.save}")
    return "; ".join(parts)
