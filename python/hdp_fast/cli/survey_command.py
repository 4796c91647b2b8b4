"""The commands hdp-fast survey: a study with invitations, and the server that takes its answers."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from .. import collection
from .._support.validate import from_json
from ..data.reading import read_safely
from ..exceptions import ParameterError
from .output import inform, show
from .parser import name_flags
from .tables import read_schema

_CREATE_TEXT = """Make the folder of a study: its keys, an invitation for each person, and the file
that will hold the answers. It is made whole or not at all, and only its owner can read it. Send
each line of invitations.csv to the person of that number, and then destroy what tells whose number
it is. Privacy: every answer to this study is protected by epsilon before it leaves the person's
device, which refuses any other epsilon."""
_SERVE_TEXT = """Hand out the questions of a study, take the answers, and serve the page on which
people answer. It runs until Ctrl-C, speaks HTTP on this machine, and needs a reverse proxy for TLS.
An answer is confirmed once it is on the disk. Nothing is logged: no address, no time, no answer.
The study's questions are published by collection.SurveyServer, from this process or another one.
Either may be killed and started again at any time."""


def add_survey(parser: argparse.ArgumentParser) -> None:
    """Adds the commands of hdp-fast survey."""
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_create(commands.add_parser("create", help="make a study: keys and invitations"))
    _add_serve(commands.add_parser("serve", help="hand out questions, and take answers"))


def _add_create(parser: argparse.ArgumentParser) -> None:
    parser.description = _CREATE_TEXT
    add = parser.add_argument
    add("study", type=Path, metavar="STUDY", help="the folder, which must be new")
    add("--asker", required=True, metavar="TEXT", help="who asks, as people are shown it")
    add("--epsilon", type=float, required=True, help="privacy of every answer to the study")
    add("--people", type=int, required=True, metavar="N", help="number of invitations")
    add("--url", required=True, help="where people open the page, such as https://example.org")
    add("--schema", type=Path, metavar="FILE", help="the page asks for what its columns need")
    kinds = ("numbers", "bits")
    add("--features", choices=kinds, help="of the model, as hdp-fast hybrid --plan says [numbers]")
    add("--texts", type=Path, metavar="FILE", help="what people read of the schema, as JSON")
    add("--form", type=Path, metavar="FILE", help="what the page asks for otherwise, as JSON")
    add("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=_create)


def _add_serve(parser: argparse.ArgumentParser) -> None:
    parser.description = _SERVE_TEXT
    add = parser.add_argument
    add("study", type=Path, metavar="STUDY", help="as create made it")
    add("--host", default="127.0.0.1", help="address to listen at [127.0.0.1]")
    add("--port", type=int, default=8000, help="0 takes any that is free [8000]")
    address = "most requests a minute of one address, 0 for any number [600]"
    add("--per-address", type=int, default=600, metavar="N", help=address)
    token = "most requests a minute with one token, 0 for any number [60]"
    add("--per-token", type=int, default=60, metavar="N", help=token)
    add("--openapi", action="store_true", help="describe the endpoints at /openapi.json")
    parser.set_defaults(command=_serve)


def _create(arguments: argparse.Namespace) -> None:
    options: dict[str, Any] = {
        name: getattr(arguments, name) for name in ("asker", "epsilon", "people", "url")
    }
    with name_flags("asker", "epsilon", "people", "url", "form", "texts", path="STUDY"):
        options["form"] = _read_form(arguments)
        study = collection.Study.create(arguments.study, **options)
    summary = {
        "study": study.id,
        "folder": str(study.path),
        "people": study.people,
        "epsilon": study.epsilon,
        "invitations": str(study.path / "invitations.csv"),
        "public_key": study.public_key,
    }
    show(summary, arguments.json)
    if arguments.schema is not None and study.form is not None:
        inputs = json.loads(study.form)["inputs"]
        bare = [one["name"] for one in inputs if one["text"] == one["name"]]
        if bare:
            names = ", ".join(bare)
            inform(arguments, f"people read these names as questions, for lack of --texts: {names}")


def _read_form(arguments: argparse.Namespace) -> str | None:
    """What the page asks for: by a schema, or as it is given."""
    if arguments.schema is None:
        for name in ("features", "texts"):
            if getattr(arguments, name) is not None:
                raise ParameterError(f"--{name} must go with --schema")
        return None if arguments.form is None else _read_text(arguments.form, "form")
    if arguments.form is not None:
        raise ParameterError("--form and --schema: only one of them says what the page asks for")
    texts = None
    if arguments.texts is not None:
        text = _read_text(arguments.texts, "texts")
        texts = from_json("--texts", text, "somebody as a JSON object", lambda content: content)
    features: Any = arguments.features or "numbers"
    return collection.form_of(read_schema(arguments.schema), features=features, texts=texts)


def _read_text(path: Path, what: str) -> str:
    with read_safely(path, f"{what}, a JSON object in UTF-8"):
        return path.read_bytes().decode("utf-8")


def _serve(arguments: argparse.Namespace) -> None:
    with name_flags("host", "port", "per_address", "per_token"):
        study = collection.Study.open(arguments.study)

        def announce(url: str) -> None:
            counts = study.counts()
            have = f"{counts['answered']:,} of {study.people:,} people have answered"
            inform(arguments, f"serving study {study.id} at {url}: {have}")

        collection.serve_survey(
            study,
            host=arguments.host,
            port=arguments.port,
            per_address=arguments.per_address,
            per_token=arguments.per_token,
            describe=arguments.openapi,
            announce=announce,
        )
