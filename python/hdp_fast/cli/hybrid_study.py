"""hdp-fast hybrid with a study: its people in place of a table, and a folder to go on from."""

from __future__ import annotations

import argparse
import datetime
import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._support.progress import say_time
from .._support.validate import from_json, probability_or_one, refuse, take_form
from ..data.files import write_atomically
from ..data.reading import parse_file
from ..exceptions import ParameterError
from .output import is_standard

if TYPE_CHECKING:
    from ..collection import Study
    from ..data.schema import Schema
    from ..local import RemoteAgents
    from ..transfer import HybridPlan

_FORM = {"format": "hdp_fast.hybrid_settings", "version": 1}
_SETTINGS, _STATE, _AGENTS = "hybrid.json", "run.json", "agents.db"
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)([smhd]?)")
# What a call that goes on takes from the one that began.
_PATHS = ("survey", "schema", "predict", "predictions", "report", "output", "budget")
_VALUES = (
    *("epsilon", "delta", "beta", "screen", "certify", "features", "method", "deadline"),
    *("response_rate", "workers", "dask", "delimiter"),
)


def read_duration(text: str) -> float:
    """A time in seconds, such as 90, 90s, 30m, 12h or 7d."""
    form = _DURATION.fullmatch(text)
    seconds = float(form[1]) * _UNITS[form[2]] if form else math.nan
    if not 0 < seconds < math.inf:
        refuse("--deadline", text, "it must be a time such as 90s, 30m, 12h or 7d")
    return seconds


def open_study(arguments: argparse.Namespace) -> Study:
    """The study whose people are asked.

    Raises:
        ParameterError: There is none, or an argument does not suit it.
    """
    from ..collection import Study  # Help and a wrong flag do not wait for it.

    if any(map(is_standard, arguments.private)):
        raise ParameterError("PANEL is -, but a run that goes on must read it again: a file")
    study, told = Study.open(arguments.survey), arguments.agents_epsilon
    if told not in (None, study.epsilon):
        rule = f"the study promises its people epsilon = {study.epsilon:g}: leave it out"
        refuse("--agents-epsilon", told, rule)
    if arguments.deadline is None:
        rule = "how long a round waits for answers, such as 7d"
        raise ParameterError(f"--deadline must be given with a study: {rule}")
    read_duration(arguments.deadline)
    if arguments.response_rate is not None:
        probability_or_one("--response-rate", arguments.response_rate)
    return study


def check_form(study: Study, schema: Schema, plan: HybridPlan) -> None:
    """Refuses a study whose page does not ask for what the model is made of.

    Raises:
        ParameterError: It has another form, or none.
    """
    from ..collection import form_of

    told = {} if study.form is None else json.loads(study.form)
    asked = json.loads(form_of(schema, features=plan.features))
    if any(told.get(name) != asked[name] for name in ("features", "label")):
        made = f"--schema and --features {plan.features}"
        rule = f"its page asks people for something else: make it by survey create with {made}"
        raise ParameterError(f"{study.path} is a study for another model, and {rule}")


def state_of(study: Study) -> Path:
    """Where a run with a study keeps what it has released."""
    return study.path / _STATE


def open_people(study: Study, arguments: argparse.Namespace) -> RemoteAgents:
    """The people of a study, of whom some may have been asked."""
    from ..collection import SurveyServer
    from ..local import RemoteAgents

    server = SurveyServer(study, deadline=read_duration(arguments.deadline))
    rate = arguments.response_rate
    return RemoteAgents(
        server.ask,
        collect=server.collect,
        epsilon=study.epsilon,
        count=study.people,
        response_rate=1.0 if rate is None else rate,
        state=study.path / _AGENTS,
    )


def say_longest(plan: HybridPlan, arguments: argparse.Namespace) -> str:
    """How long all rounds take, if in none of them everybody answers."""
    return f"at most {say_time(plan.rounds * read_duration(arguments.deadline))}"


def describe_rounds(study: Study) -> list[dict[str, Any]]:
    """The rounds that went out: the day, how many were invited, and how many answered."""
    return [
        {
            "day": _day_of(stage.published),
            "invited": stage.count,
            "answered": study.counts(stage.number)["answered"],
        }
        for stage in study.stages()
    ]


def keep_settings(study: Study, arguments: argparse.Namespace) -> None:
    """Writes what `hdp-fast hybrid STUDY` needs to go on."""
    fields: dict[str, Any] = {name: getattr(arguments, name) for name in _VALUES}
    paths = {name: getattr(arguments, name) for name in _PATHS}
    fields |= {name: None if one is None else str(one.absolute()) for name, one in paths.items()}
    fields["private"] = [str(one.absolute()) for one in arguments.private]
    text = json.dumps({**_FORM, **fields}, indent=2)
    write_atomically(study.path / _SETTINGS, f"{text}\n".encode())


def recall(arguments: argparse.Namespace) -> argparse.Namespace:
    """The arguments that began a study, where the study is all that was given.

    Raises:
        ParameterError: Nothing was begun with it, or other arguments were given.
    """
    if arguments.private:
        return arguments
    path = arguments.survey / _SETTINGS
    if not arguments.survey.is_dir() or not path.exists():
        rule = "give PANEL before it, and --schema, --epsilon and --delta, to begin"
        raise ParameterError(f"{arguments.survey} is no study that a run was begun with: {rule}")

    def read(fields: dict[str, Any]) -> dict[str, Any]:
        take_form("settings", fields, _FORM)
        if fields.keys() != {*_PATHS, *_VALUES, "private"}:
            raise ValueError("other fields")
        fields |= {name: None if fields[name] is None else Path(fields[name]) for name in _PATHS}
        return fields | {"private": [Path(one) for one in fields["private"]]}

    stored = parse_file(
        path, "settings", lambda text: from_json("settings", text, "hdp-fast hybrid", read)
    )
    given = vars(arguments)
    changed = [name for name in ("schema", "epsilon", "delta") if given[name] is not None]
    if changed:
        flags = ", ".join(f"--{name}" for name in changed)
        rule = "the study has those that it was begun with: leave them out"
        raise ParameterError(f"{flags}: given without PANEL, but {rule}")
    return argparse.Namespace(**given | stored | {"survey": arguments.survey})


def _day_of(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).date().isoformat()
