"""The collector's server: an ASGI application that hands out questions and takes answers.

It needs starlette, and to be run uvicorn and httptools: the extra `hdp-fast[serve]`.
"""

from __future__ import annotations

import asyncio
import bisect
import ipaddress
import json
import logging
import math
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from importlib import resources
from typing import Any, NamedTuple

from .._support.lazy import load_optional
from .._support.validate import instance, nonnegative_int
from ..exceptions import HdpFastError
from .endpoints import (
    ENDING,
    ENDPOINTS,
    HEADERS,
    MOST_BODY,
    MOST_HEADERS,
    NO_STORE,
    PAGE,
    TEXTS,
    openapi,
)
from .reports import LineForm
from .store import Answer, Desk, Outcome, PublishedStage, hash_token
from .study import Study, read_envelope

_LOGGER = logging.getLogger("hdp_fast")
_BODY_SECONDS = 10.0
# A group of answers waits for one synchronization of the disk; more would delay the first of them.
_MOST_IN_GROUP = 512
# The log is emptied when nothing came for so long, and in any case so often.
_QUIET_SECONDS, _LOG_SECONDS = 0.5, 1.0
# Stages are looked at again after so long.
_FRESH_SECONDS = 0.25
_LIMIT_SECONDS = 60.0
_MOST_KEYS = 200_000


class _Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, text: str | None = None):
        super().__init__(status)
        self.status, self.text = status, TEXTS[status] if text is None else text


class _Limiter:
    """Counts what comes from each key, and forgets all of them every minute."""

    def __init__(self, most: int):
        self._most, self._end = most, 0.0
        self._counts: dict[Any, int] = {}

    def check(self, key: Any) -> None:
        """Raises _Refused if too much has come from this key; 0 sets no limit."""
        if not self._most:
            return
        now = asyncio.get_running_loop().time()
        if now >= self._end or len(self._counts) >= _MOST_KEYS:
            self._counts, self._end = {}, now + _LIMIT_SECONDS
        self._counts[key] = count = self._counts.get(key, 0) + 1
        if count > self._most:
            raise _Refused(429)


class _Served(NamedTuple):
    """A stage as the server uses it; `places` tells whose question is which, for a stage."""

    stage: PublishedStage
    envelope: bytes
    form: LineForm
    places: Any


class _Group:
    """Writes all answers that wait in one transaction, and the next ones meanwhile gather."""

    def __init__(self, desk: Desk):
        self._desk = desk
        self._waiting: list[tuple[Answer, asyncio.Future[Outcome]]] = []
        self._comes, self._is_stopping = asyncio.Event(), False
        # The disk is waited for in a thread of its own; so is another process that writes.
        self._thread = ThreadPoolExecutor(1, "hdp_fast answers")

    async def put(self, answer: Answer) -> Outcome:
        """Waits until an answer is on the disk."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((answer, future))
        self._comes.set()
        return await future

    async def run(self) -> None:
        """Writes groups until `stop`."""
        loop = asyncio.get_running_loop()
        # One that was killed has left a log.
        has_log, emptied = True, -math.inf
        while self._waiting or not self._is_stopping:
            if self._waiting:
                group = self._waiting[:_MOST_IN_GROUP]
                del self._waiting[:_MOST_IN_GROUP]
                is_written, has_log = await self._write(group), True
                # To empty it makes room, too, on a disk that is full.
                is_due = not is_written or loop.time() - emptied > _LOG_SECONDS
            else:
                is_due = not await self._has_come(_QUIET_SECONDS if has_log else None)
            if is_due:
                with suppress(HdpFastError):
                    has_log = not await self._wait_for(self._desk.empty_log)
                emptied = loop.time()

    async def _has_come(self, seconds: float | None) -> bool:
        """Waits for an answer, or for `stop`, and returns whether one has come in time."""
        self._comes.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                return await self._comes.wait()
        return False

    async def _write(self, group: list[tuple[Answer, asyncio.Future[Outcome]]]) -> bool:
        """Writes a group, tells those who wait for it, and returns whether it is written."""
        is_written = False
        results: list[Any] = [_Refused(503) for _ in group]
        try:
            await self._wait_for(self._desk.begin)
            outcomes = self._desk.take([answer for answer, _ in group])
            await self._wait_for(self._desk.commit)
            is_written, results = True, list(outcomes)
        except HdpFastError:
            # The disk is full, or another process holds the file: those who wait come again.
            self._desk.roll_back()
        except Exception as error:
            self._desk.roll_back()
            _log_defect(error)
        for (_, future), result in zip(group, results, strict=True):
            # Whoever has hung up does not wait any more.
            if not future.done() and isinstance(result, _Refused):
                future.set_exception(result)
            elif not future.done():
                future.set_result(result)
        return is_written

    async def _wait_for(self, step: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, step)

    def stop(self) -> None:
        """Lets `run` end with what waits."""
        self._is_stopping = True
        self._comes.set()

    def close(self) -> None:
        """Ends the thread."""
        self._thread.shutdown()


class _Collector:
    """What the endpoints do, over one study."""

    def __init__(self, study: Study, per_address: int, per_token: int):
        self._study = study
        self._addresses, self._tokens = _Limiter(per_address), _Limiter(per_token)
        self._served: dict[int, _Served] = {}
        self._stages: list[PublishedStage] = []
        self._fresh_until = 0.0
        self._desk: Desk
        self._group: _Group

    @asynccontextmanager
    async def run(self, app: Any) -> AsyncIterator[None]:
        """Opens the study for as long as the application runs."""
        with self._study.open_desk() as desk:
            self._desk, self._group = desk, _Group(desk)
            work = asyncio.create_task(self._group.run())
            try:
                yield
            finally:
                self._group.stop()
                await work
                self._group.close()
                with suppress(HdpFastError):
                    desk.empty_log()

    async def question(self, request: Any) -> Any:
        """GET /question."""
        number, is_burned, _ = self._identify(request)
        if is_burned:
            raise _Refused(410, "answered")
        served = self._find(number)
        if served.stage.closed:
            raise _Refused(410, "closed")
        return _reply(200, served.envelope)

    async def answer(self, request: Any) -> Any:
        """POST /answer."""
        number, _, token = self._identify(request)
        body = await _read_body(request)
        served = self._find(number)
        read = served.form.read(body)
        if isinstance(read, str):
            raise _Refused(422, read.replace("_", " "))
        key, report = read
        place = None if served.places is None else int(served.places[number - served.stage.first])
        if place not in (None, report >> 1):
            raise _Refused(422, "the question of somebody else")
        taken = Answer(token, served.stage.number, bytes.fromhex(key), report)
        outcome = await self._group.put(taken)
        if outcome is Outcome.ACCEPTED:
            return _reply(200, b'{"accepted":true}')
        statuses = {Outcome.UNKNOWN: 401, Outcome.BURNED: 409, Outcome.CLOSED: 410}
        raise _Refused(statuses[outcome], outcome.value)

    def _identify(self, request: Any) -> tuple[int, bool, bytes]:
        """The number of a request's token, whether it is burned, and its hash."""
        self._addresses.check(_address_of(request))
        scheme, _, text = request.headers.get("authorization", "").partition(" ")
        try:
            token = bytes.fromhex(text) if scheme.lower() == "bearer" else b""
        except ValueError:
            token = b""
        if len(token) != 16 or len(text) != 32:
            raise _Refused(401)
        hashed = hash_token(token)
        found = self._desk.find(hashed)
        if found is None:
            raise _Refused(401)
        self._tokens.check(hashed)
        return *found, hashed

    def _find(self, number: int) -> _Served:
        """The stage that a person is invited to."""
        now = asyncio.get_running_loop().time()
        stage = self._stage_of(number) if now < self._fresh_until else None
        if stage is None:
            # One that went out a moment ago is known at once, one that was closed soon.
            self._stages = sorted(self._desk.stages(), key=lambda stage: stage.first)
            self._fresh_until = now + _FRESH_SECONDS
            stage = self._stage_of(number)
        if stage is None:
            raise _Refused(404, "no question yet")
        served = self._served.get(stage.number)
        if served is None or served.stage != stage:
            served = served._replace(stage=stage) if served else self._open(stage)
            self._served[stage.number] = served
        return served

    def _stage_of(self, number: int) -> PublishedStage | None:
        at = bisect.bisect_right(self._stages, number, key=lambda stage: stage.first) - 1
        stage = self._stages[at] if at >= 0 else None
        return stage if stage is not None and number < stage.first + stage.count else None

    def _open(self, stage: PublishedStage) -> _Served:
        envelope = self._desk.read_envelope(stage.number)
        question = read_envelope(envelope)
        places = None if question.stage is None else question.stage.places()
        return _Served(stage, envelope.encode(), LineForm(question), places)


def survey_app(
    study: Study, *, per_address: int = 600, per_token: int = 60, describe: bool = False
) -> Callable[..., Awaitable[None]]:
    """Makes the ASGI application of a collector, for any server of such applications.

    It hands out the question of an invitation, takes its answer, and serves the page on which a
    person answers: nothing else. Nothing is logged but defects of its own, without values. One
    process should run it; several work, too, each with limits of its own.

    Args:
        study: The study.
        per_address: The most requests a minute of one address to the two endpoints, or of one
            network of 64 bits where addresses are of version 6; 0 sets no limit. A household, or a
            company behind one address, shares it. Addresses are kept in memory alone,
            until the first request after a minute.
        per_token: The most requests a minute with one token; 0 sets no limit.
        describe: Whether GET /openapi.json describes the endpoints.

    Returns:
        The application.

    Raises:
        ParameterError: An argument breaks its rule.
        ImportError: starlette is not installed; the error names the extra.

    Guarantee:
        An answer is confirmed once it is on the disk. Each token counts once, however many requests
        race, and a line that is sent again is confirmed again.

    Examples:
        >>> from hdp_fast import collection
        >>> study = collection.Study.create(
        ...     "study", asker="City of Example", epsilon=1.0, people=3, url="https://example.org"
        ... )
        >>> app = collection.survey_app(study)  # for example: uvicorn.run(app)
    """
    instance("study", study, Study, "a Study")
    limits = nonnegative_int("per_address", per_address), nonnegative_int("per_token", per_token)
    applications, routing = (
        import_served("starlette.applications"),
        import_served("starlette.routing"),
    )
    collector = _Collector(study, *limits)
    work = {"/question": collector.question, "/answer": collector.answer, "/health": _say_health}
    routes = [
        routing.Route(endpoint.path, _guard(work[endpoint.path]), methods=[endpoint.method])
        for endpoint in ENDPOINTS
    ]
    files = {f"/{name}": (content, PAGE[name]) for name, content in read_page().items()}
    if "/index.html" in files:
        files["/"] = files["/index.html"]
    if describe:
        files["/openapi.json"] = (json.dumps(openapi()).encode(), "application/json")
    routes += [routing.Route(path, _serve_file(*file)) for path, file in files.items()]
    app = applications.Starlette(
        routes=routes,
        lifespan=collector.run,
        exception_handlers={404: _say_error, 405: _say_error},
    )
    app.router.redirect_slashes = False
    return _harden(app)


def read_page() -> dict[str, bytes]:
    """The files of the page that this installation has, by their names."""
    folder = resources.files(__package__).joinpath("page")
    files = {name: folder.joinpath(name) for name in PAGE}
    return {name: file.read_bytes() for name, file in files.items() if file.is_file()}


def import_served(name: str) -> Any:
    """A module of the extra `serve`; the error names the package that is missing."""
    return load_optional(name, "a collector's server", "serve")


def _guard(work: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
    """An endpoint whose refusals are answers, and so are its defects, of which no value is told."""

    async def respond(request: Any) -> Any:
        try:
            return await work(request)
        except _Refused as refused:
            return _refuse(refused)
        except HdpFastError:
            return _refuse(_Refused(503))
        except Exception as error:
            _log_defect(error)
            return _refuse(_Refused(500))

    return respond


def _log_defect(error: Exception) -> None:
    """Logs where a defect is, without the text of the error, which may hold a value."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    _LOGGER.error("%s at %s:%s", type(error).__name__, last.name, last.lineno)


def _refuse(refused: _Refused) -> Any:
    headers = {}
    if refused.status in ENDING:
        headers["connection"] = "close"
    if refused.status == 401:
        headers["www-authenticate"] = "Bearer"
    if refused.status in (429, 503):
        headers["retry-after"] = "60" if refused.status == 429 else "1"
    body = json.dumps({"error": refused.text}).encode()
    return _reply(refused.status, body, headers)


def _reply(status: int, body: bytes, more: Mapping[str, str] | None = None) -> Any:
    responses = import_served("starlette.responses")
    headers = {**NO_STORE, **(more or {})}
    return responses.Response(body, status, headers, "application/json")


async def _say_health(request: Any) -> Any:
    return _reply(200, b'{"healthy":true}')


async def _say_error(request: Any, error: Any) -> Any:
    body = json.dumps({"error": TEXTS[error.status_code]}).encode()
    return _reply(error.status_code, body, error.headers)


def _serve_file(content: bytes, kind: str) -> Callable[[Any], Awaitable[Any]]:
    async def serve(request: Any) -> Any:
        responses = import_served("starlette.responses")
        return responses.Response(content, 200, {"cache-control": "no-cache"}, kind)

    return serve


async def _read_body(request: Any) -> bytes:
    """The body, which is never held in memory whole where it is too large."""
    declared = request.headers.get("content-length", "0")
    if not declared.isdecimal() or len(declared) > 9 or int(declared) > MOST_BODY:
        raise _Refused(413)
    body = b""
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > MOST_BODY:
                    raise _Refused(413)
    except TimeoutError:
        raise _Refused(408) from None
    return body


def _address_of(request: Any) -> str:
    """The address of a client; a person has 2^64 of version 6, which count as one."""
    host: str = request.client.host if request.client else ""
    if ":" not in host:
        return host
    with suppress(ValueError):
        return str(ipaddress.ip_network((host.partition("%")[0], 64), strict=False))
    return host


def _harden(app: Any) -> Callable[..., Awaitable[None]]:
    """Adds headers to all that an application answers, and refuses requests with large ones."""
    added = [(name.encode(), value.encode()) for name, value in HEADERS.items()]

    async def hardened(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return

        async def send_more(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *added]}
            await send(message)

        size = sum(len(name) + len(value) for name, value in scope["headers"])
        if size > MOST_HEADERS:
            await _refuse(_Refused(431))(scope, receive, send_more)
        else:
            await app(scope, receive, send_more)

    return hardened
