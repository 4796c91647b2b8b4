"""The command hdp-fast hybrid: a model from a private panel, repaired and checked by a survey."""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._support.json_text import JsonText
from .._support.random_state import check_random_state
from .._support.validate import positive, probability, refuse
from ..data import files
from ..data.column_kinds import require_label
from ..data.schema import Schema
from ..data.table import Table
from ..exceptions import ParameterError
from .exit_codes import ExitCode
from .hybrid_report import render
from .hybrid_study import (
    check_form,
    describe_rounds,
    keep_settings,
    open_people,
    open_study,
    recall,
    say_longest,
    state_of,
)
from .output import (
    check_report,
    coefficient_table,
    describe_interrupt,
    inform,
    protect_both,
    record_of,
    say_protected,
    show,
)
from .parser import name_flags, require
from .predict_command import Places, Request, add_predict_options, deliver_predictor, place_results
from .tables import (
    SCHEMA_HELP,
    add_delimiter,
    add_parts,
    appender,
    describe_label,
    name_new_column,
    name_parts,
    open_workers,
    read,
    read_parts,
    read_schema,
    sign_of,
)

if TYPE_CHECKING:
    from ..budget.account import Budget
    from ..collection import Study
    from ..data.chunks import Chunks
    from ..local import Agents, RemoteAgents
    from ..transfer import Certificate, HybridModel, HybridRun

_TEXT = """Learn a model from the records of PANEL, people who opted in, in one file or in many, and
let the people of SURVEY say what moved between the two, how the model's probabilities must be
changed for them (calibration), and how often it errs on them (a certificate). Columns that are
nearly constant in PANEL and not in SURVEY are left out of the model; all others that moved are
reported. SURVEY is a table for a simulation: each of its rows plays a person, who answers one
question by randomized response, randomized by this program. Or it is the folder of a study with
real people, as hdp-fast survey create makes it and hdp-fast survey serve hands it out: the run
publishes its rounds of questions there, waits for the answers of each, and keeps what it has
released. After a crash, Ctrl-C or a week hdp-fast hybrid STUDY goes on: nothing is released, spent
or asked twice. --plan says in how many rounds, before anything is spent.
Privacy: PANEL is protected by (epsilon, delta) for each row, whatever is printed or written; each
row of SURVEY by the agents' epsilon. The schema is public and must not be made from either table.
The file of --predict is not protected; it gets a column with the probability of label 1."""
# How many columns that moved are printed.
_SHOWN = 5
_FEATURES = ("auto", "bits", "numbers")
_METHODS = ("descent", "additive", "auto")
_MODELS = {
    "descent": "logistic regression by noisy steps on all records",
    "additive": "an additive model of binned columns by noisy sums over all records",
}
_CERTIFY = 0.3
# Half of the width that an interval of a rate must have to say something.
_WIDE = 0.25


def add_hybrid(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of hdp-fast hybrid."""
    parser.description = _TEXT
    add = parser.add_argument
    add_parts(parser, "PANEL", least=0)
    survey = "one such table, one person a row, or the folder of a study; it is last"
    add("survey", type=Path, metavar="SURVEY", help=survey)
    add("--schema", type=Path, metavar="FILE", help=SCHEMA_HELP)
    add("--epsilon", type=float, help="privacy of PANEL")
    add("--delta", type=float, help="privacy of PANEL")
    add("--agents-epsilon", type=float, help="privacy of a person of SURVEY; a study has its own")
    add("--deadline", metavar="TIME", help="a study: how long a round waits, such as 12h or 7d")
    rate = "a study: share of those asked who will answer, as far as is known [1]"
    add("--response-rate", type=float, metavar="SHARE", help=rate)
    add("--plan", action="store_true", help="say what would be asked and spent, and do nothing")
    add("--beta", type=float, default=0.05, help="failure probability of what is certified [.05]")
    part = "share of SURVEY that"
    add(
        "--screen",
        type=float,
        metavar="SHARE",
        help=f"{part} says which columns moved; 0: no one [.3, or 0 if too few for that]",
    )
    add(
        "--certify",
        type=float,
        default=_CERTIFY,
        metavar="SHARE",
        help=f"{part} certifies the model; the rest calibrates it [{_CERTIFY:g}]",
    )
    add(
        "--features",
        choices=_FEATURES,
        default="auto",
        help="a bit for each cut of a number, or the number [bits if PANEL's rows times epsilon "
        "are 10,000 or more]",
    )
    add(
        "--method",
        choices=_METHODS,
        default="descent",
        help="a linear model, shapes that bend, or what a look at PANEL tells [descent]",
    )
    add_predict_options(parser)
    add("--report", type=Path, metavar="FILE", help="one page of .html, with all figures")
    add("--output", type=Path, metavar="FILE", help="JSON: the model, its figures and records")
    add("--budget", type=Path, metavar="FILE", help="spend from it, or refuse")
    add("--seed", type=int, help="repeatable, and not private")
    add("--json", action="store_true", help="print JSON")
    add_delimiter(parser)
    parser.set_defaults(command=partial(_hybrid, parser), plot=None)


def _hybrid(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> ExitCode:
    from ..budget.account import Budget  # Help and a wrong flag do not wait for it.

    arguments = recall(arguments)
    is_study = arguments.survey.is_dir()
    of_survey = () if is_study else ("agents_epsilon",)
    require(parser, arguments, "schema", "epsilon", "delta", *of_survey)
    study = open_study(arguments) if is_study else None
    _check_flags(arguments, study)
    places = place_results(arguments)
    check_report(arguments)
    budget = None if arguments.budget is None else Budget.open(arguments.budget)
    run = _make_run(arguments, read_schema(arguments.schema))
    request = _read_request(arguments, run.schema)
    with open_workers(arguments), describe_interrupt([*places, arguments.report], budget):
        learned = None if study is None else run.recall(state_of(study))
        panel = None if learned is not None else read_parts(arguments)
        n = learned.plan.n if learned is not None else _count_rows(panel, run.schema)
        agents: Agents | RemoteAgents | None = None
        if study is None:
            survey, epsilon = read(arguments.survey, arguments), arguments.agents_epsilon
            agents = run.simulate(survey, n=n, epsilon=epsilon)
            people = len(agents)
        else:
            people, epsilon = study.people, study.epsilon
        with name_flags("screen", agents="SURVEY"):
            plan = run.plan(n=n, agents=people, agents_epsilon=epsilon)
        if study is not None:
            check_form(study, run.schema, plan)
        if arguments.plan:
            longest = {} if study is None else {"takes": say_longest(plan, arguments)}
            show({"rounds": plan.rounds, **_json(plan), **longest}, arguments.json)
            return ExitCode.DONE
        _say_protected(arguments, panel, epsilon)
        if arguments.screen is None and not plan.screen:
            few = "too few rows or people, at these epsilons, to see which columns moved"
            inform(arguments, f"{few}: no one is asked for that (--screen .3 asks all the same)")
        options: dict[str, Any] = {"budget": budget, "random_state": arguments.seed}
        if study is not None:
            if not state_of(study).exists():
                keep_settings(study, arguments)  # those that began it stay
            rounds = f"{plan.rounds} rounds of questions, {say_longest(plan, arguments)}"
            goes_on = f"hdp-fast hybrid {arguments.survey} goes on after an interruption"
            inform(arguments, f"{rounds}; {goes_on}")
            agents = open_people(study, arguments)
            options |= {"count": people, "state": state_of(study)}
        assert agents is not None
        model = run.run(panel, agents, **options)
        summary = _summarize(arguments, run, model, budget, study)
        _deliver(arguments, places, summary, request, model)
    useless = _last_certificate(model).prefers_constant
    return ExitCode.NOTHING_USEFUL if useless else ExitCode.DONE


def _count_rows(panel: Table | Chunks | None, schema: Schema) -> int:
    """The number of rows of a panel, which must have the columns of the schema."""
    assert panel is not None
    if not isinstance(panel, Table):
        return panel.count()  # A part that lacks one is refused where its rows are read.
    for name in (*schema.reads, require_label(schema.label).column):
        panel.column(name)
    return panel.rows


def _check_flags(arguments: argparse.Namespace, study: Study | None) -> None:
    """Refuses wrong flags before any table is read."""
    from .. import local

    positive("--epsilon", arguments.epsilon)
    probability("--delta", arguments.delta)
    probability("--beta", arguments.beta)
    check_random_state(arguments.seed)
    if study is None:
        for name in ("deadline", "response_rate"):
            if getattr(arguments, name) is not None:
                rule = "goes with the folder of a study, and the rows of a table answer at once"
                raise ParameterError(f"--{name.replace('_', '-')} {rule}")
        epsilon = positive("--agents-epsilon", arguments.agents_epsilon)
        local.agents_needed(alpha=0.5, beta=0.5, epsilon=epsilon)
    elif arguments.seed is not None:
        refuse("--seed", arguments.seed, "real people draw their own random bits: leave it out")


def _make_run(arguments: argparse.Namespace, schema: Schema) -> HybridRun:
    from ..transfer import HybridRun

    with name_flags("epsilon", "screen", "certify", "features", "method"):
        return HybridRun(
            schema,
            epsilon=arguments.epsilon,
            delta=arguments.delta,
            screen=arguments.screen,
            certify=arguments.certify,
            features=arguments.features,
            beta=arguments.beta,
            method=arguments.method,
        )


def _read_request(arguments: argparse.Namespace, schema: Schema) -> Request | None:
    """The table to predict; its features are made once the columns of the model are known."""
    path = arguments.predict
    if path is None:
        return None
    table = read(path, arguments, public=True)
    schema.floats(table)  # refuses a table that lacks a column
    name = f"{require_label(schema.label).column}_probability"
    column = name_new_column(str(path), name, "predicted", table.columns)
    return Request(table, column, appender(path, column, sign_of(arguments)))


def _say_protected(
    arguments: argparse.Namespace, panel: Table | Chunks | None, agents_epsilon: float
) -> None:
    protected = protect_both(
        name_parts(arguments),
        (arguments.epsilon, arguments.delta),
        arguments.survey,
        agents_epsilon,
        getattr(panel, "names", ()),
    )
    say_protected(arguments, protected, [] if arguments.predict is None else [arguments.predict])


def _deliver(
    arguments: argparse.Namespace,
    places: Places,
    summary: dict[str, Any],
    request: Request | None,
    model: HybridModel,
) -> None:
    column = None if request is None else request.column
    summary |= {**places.as_strings(), "column": column}

    def predict(table: Table) -> list[float]:
        return [round(float(share), 6) for share in model.model.probabilities(table)[:, 1]]

    try:
        if arguments.report is not None:
            files.write_atomically(arguments.report, render(summary).encode())
    finally:
        # The model is paid for: a full disk must not take it with the report.
        deliver_predictor(arguments, places, summary, request, predict, None, _words(summary))


def _summarize(
    arguments: argparse.Namespace,
    run: HybridRun,
    model: HybridModel,
    budget: Budget | None,
    study: Study | None,
) -> dict[str, Any]:
    certificates = {name: _json(one) for name, one in model.certificates.items()}
    plan, predictor = model.plan, model.predictor
    return {
        "verdict": model.verdict,
        "label": describe_label(run.schema),
        "panel": {"file": str(name_parts(arguments)), "rows": plan.n},
        "survey": {
            "file": str(arguments.survey),
            "people": plan.screen + plan.calibrate + plan.certify,
        },
        "settings": _describe_settings(arguments, run, model),
        "agents": {
            "screen": plan.screen,
            "calibrate": plan.calibrate,
            "certify": plan.certify,
        },
        "left_out": list(model.left_out),
        "intercept": predictor.intercept,
        "coefficients": predictor.coefficients,
        "deviations": model.deviations,
        "panel_model": model.panel_predictor._asdict(),
        "shift": None if model.shift is None else _json(model.shift),
        "calibration": None if model.calibrated is None else _json(model.calibrated),
        "reliability": _describe_reliability(model),
        "certificates": certificates,
        "response": _describe_response(model, study),
        "base_rate": _describe_base_rate(model),
        "records": [record_of(record) for record in model.records],
        "budget": None if budget is None else {"epsilon": run.epsilon, "delta": run.delta},
        "report": arguments.report and str(arguments.report),
        "model": _json(model.model),
    }


def _describe_settings(
    arguments: argparse.Namespace, run: HybridRun, model: HybridModel
) -> dict[str, Any]:
    return {
        "epsilon": run.epsilon,
        "delta": run.delta,
        "agents_epsilon": model.plan.agents_epsilon,
        "beta": run.beta,
        "seed": arguments.seed,
        "features": model.plan.features,
        "screen_share": model.plan.screen_share,
        "certify_share": run.certify,
        "method": model.panel_model.method,
        "model": _MODELS[model.panel_model.method],
    }


def _describe_response(model: HybridModel, study: Study | None) -> dict[str, Any]:
    """How many rounds of questions there were, and how many people told of the model's errors.

    A study tells when its rounds went out, and how many answered in each.
    """
    from .. import local

    certificates = model.certificates.values()
    asked, answered = (
        sum(getattr(one, name) for one in certificates) for name in ("asked", "agents")
    )
    last = list(certificates)[-1]
    moved = local.largest_distortion(model.plan.agents_epsilon, reports=last.agents, liars=1)
    return {
        "rounds": model.plan.rounds,
        "asked": asked,
        "answered": answered,
        "rate": answered / asked,
        "one_liar": moved,
        "days": None if study is None else describe_rounds(study),
    }


def _last_certificate(model: HybridModel) -> Certificate:
    return list(model.certificates.values())[-1]


def _describe_base_rate(model: HybridModel) -> dict[str, Any] | None:
    """The share of label 1 among the people, by all answers about it, whoever asked."""
    constants = _last_certificate(model).constants
    if constants is None:
        return None
    ends = {"low": constants.zero_low, "high": constants.zero_high}
    return {"value": constants.zero, **ends, "answers": constants.agents}


def _describe_reliability(model: HybridModel) -> dict[str, Any] | None:
    """Whether the reliability diagram tells anything, and how many people each bin would take."""
    if model.calibrated is None:
        return None
    tells = not model.calibrated.reliability.tells_nothing
    people = _round_up(model.count_people(_WIDE))
    return {"tells": tells, "half_width": _WIDE, "people": people}


def _round_up(count: int) -> int:
    """The number that is written with two digits and zeros, and not less."""
    unit = int(10 ** max(len(str(count)) - 2, 0))
    return -(-count // unit) * unit


def _json(result: JsonText) -> Any:
    return json.loads(result.to_json())


def _words(summary: dict[str, Any]) -> dict[str, Any]:
    """What people read instead of long entries; files and --json have all of them."""
    hidden = (
        "settings",
        "panel_model",
        "shift",
        "certificates",
        "model",
        "reliability",
        "response",
    )
    words: dict[str, Any] = {"verdict": summary["verdict"]} | dict.fromkeys(hidden)
    shift, calibration = summary["shift"], summary["calibration"]
    if shift is not None:
        words["moved"] = f"{len(shift['moved'])} of {len(shift['columns'])} columns{_list(shift)}"
    words["left_out"] = summary["left_out"] or "nothing"
    words["calibration"] = calibration["outcome"]
    if calibration["outcome"] == "calibrated":
        slope, intercept = calibration["slope"], calibration["intercept"]
        words["calibration"] = f"slope {slope:.3g}, intercept {intercept:+.3g} of the log-odds"
    for name, one in summary["certificates"].items():
        sure = f"{100 - 100 * one['beta']:.4g} % interval"
        words[f"error_{name}"] = (
            f"{one['value']:.3f} ({sure} {one['low']:.3f} to {one['high']:.3f})"
        )
    response = summary["response"]
    words["rounds"] = f"{response['rounds']} of questions, each person asked in one of them"
    for i, one in enumerate(response["days"] or (), start=1):
        came = f"{one['answered']:,} of {one['invited']:,} answered"
        words[f"round {i}"] = f"from {one['day']}, {came}"
    if response["answered"] < response["asked"]:
        words["answered"] = f"{response['answered']:,} of {response['asked']:,} who certify"
    rate = summary["base_rate"]
    words["base_rate"] = None
    if rate is not None:
        ends = f"from {rate['low']:.3f} to {rate['high']:.3f}"
        words["base_rate"] = f"label 1 has a share of {rate['value']:.3f}, {ends}"
    coefficients = summary["coefficients"]
    known = summary["deviations"]
    noise = () if known is None else [known[name] for name in coefficients]
    words["coefficients"] = coefficient_table(coefficients.keys(), coefficients.values(), noise)
    # All categories of a column, and the intercept against them, move together by noise.
    centered = "of a category, of how far it is from its column's mean"
    words["deviations"] = known and f"what noise makes of each, or a bound on it; {centered}"
    words["records"] = None
    words |= {f"record {i}": one for i, one in enumerate(summary["records"], start=1)}
    return words


def _list(shift: dict[str, Any]) -> str:
    """The largest differences."""
    columns = {column["name"]: column for column in shift["columns"]}
    first = [columns[name] for name in shift["moved"][:_SHOWN]]
    texts = [f"{one['name']} {one['source']:.2f} -> {one['target']:.2f}" for one in first]
    more = ", ..." if len(shift["moved"]) > _SHOWN else ""
    return f": {', '.join(texts)}{more}" if texts else ""
