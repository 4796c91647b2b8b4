"""People who open a study: tokens, what their devices write, and requests without a socket."""

import asyncio
import contextlib
import csv
import json
from dataclasses import dataclass
from urllib.parse import parse_qs

from hdp_fast import collection
from hdp_fast.local import Query

QUERY = Query.value(0, 0, 1).to_json()
FACTS = {"asker": "City of Example", "epsilon": 4.0, "url": "https://example.org"}


def new_study(folder, people=20, **changes):
    return collection.Study.create(folder / "study", people=people, **FACTS | changes)


def tokens(study):
    """The tokens in the order of the invitations' numbers."""
    with (study.path / "invitations.csv").open() as table:
        links = [row["link"].partition("#")[2] for row in csv.DictReader(table)]
    return [parse_qs(link)["token"][0] for link in links]


def question_of(study, stage):
    with study.open_desk() as desk:
        return collection.Question.from_json(json.loads(desk.read_envelope(stage))["question"])


def lines(study, stage, numbers, value=1.0):
    """What the devices of these people write, whose records have this one feature."""
    question = question_of(study, stage)
    return [collection.hypothesis_line(question, [value], 0, number=one) for one in numbers]


@dataclass
class Reply:
    status: int
    headers: dict
    body: bytes

    @property
    def content(self):
        return json.loads(self.body)


class Visitor:
    """Sends requests to an application that runs."""

    def __init__(self, app):
        self.app = app

    async def get(self, path, token=None, **more):
        return await self.send("GET", path, token, **more)

    async def post(self, token, line, **more):
        pieces = [line.encode() if isinstance(line, str) else line]
        return await self.send("POST", "/answer", token, pieces, **more)

    async def send(
        self, method, path, token=None, pieces=(b"",), address="192.0.2.1", headers=(), wait=0.0
    ):
        """pieces: of the body; wait: seconds before each of them."""
        sent = [(name.lower().encode(), value.encode()) for name, value in headers]
        if token is not None:
            sent.append((b"authorization", f"Bearer {token}".encode()))
        scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1"}
        scope |= {"method": method, "path": path, "raw_path": path.encode(), "root_path": ""}
        scope |= {"query_string": b"", "headers": sent, "scheme": "http"}
        scope |= {"client": (address, 1234), "server": ("127.0.0.1", 80)}
        waiting, got = list(pieces), []

        async def receive():
            await asyncio.sleep(wait)
            if not waiting:
                return {"type": "http.disconnect"}
            body = waiting.pop(0)
            return {"type": "http.request", "body": body, "more_body": bool(waiting)}

        async def take(message):
            got.append(message)

        await self.app(scope, receive, take)
        start, *rest = got
        named = {name.decode(): value.decode() for name, value in start["headers"]}
        return Reply(start["status"], named, b"".join(part.get("body", b"") for part in rest))


@contextlib.asynccontextmanager
async def running(app):
    """A visitor of an application, which is started and ended as a server does it."""
    to_app, from_app = asyncio.Queue(), asyncio.Queue()
    work = asyncio.create_task(app({"type": "lifespan", "state": {}}, to_app.get, from_app.put))
    await to_app.put({"type": "lifespan.startup"})
    assert (await from_app.get())["type"] == "lifespan.startup.complete"
    try:
        yield Visitor(app)
    finally:
        await to_app.put({"type": "lifespan.shutdown"})
        assert (await from_app.get())["type"] == "lifespan.shutdown.complete"
        await work


def visit(study, play, **options):
    """Runs `await play(visitor)` with an application of the study; returns what that returns."""

    async def run():
        limits = {"per_address": 0, "per_token": 0}
        async with running(collection.survey_app(study, **limits | options)) as visitor:
            return await play(visitor)

    return asyncio.run(run())
