"""How the application of a collector runs: a socket, limits of connections, and no log."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .._support.validate import nonnegative_int, refuse
from ..exceptions import ParameterError
from .server import import_served, survey_app
from .study import Study

_MOST_PORT = (1 << 16) - 1
# All of a request must have come by then, and the first byte of the first one.
_REQUEST_SECONDS = 20.0
_IDLE_SECONDS = 20
_MOST_CONNECTIONS = 2_000
# Bytes that come after a request was answered, and requests that come before replies are read.
_MOST_SPARE, _MOST_WAITING = 16_384, 16
_BACKLOG = 2_048
_END_SECONDS = 5


def serve_survey(
    study: Study,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    per_address: int = 600,
    per_token: int = 60,
    describe: bool = False,
    announce: Callable[[str], object] | None = None,
) -> None:
    """Serves a study until the process gets SIGINT or SIGTERM.

    It speaks HTTP: a reverse proxy on the same machine adds TLS. The proxy's X-Forwarded-For is
    believed, and no one else's.

    Args:
        study: The study.
        host: Address to listen at.
        port: Its port; 0 takes any that is free.
        per_address: As for survey_app.
        per_token: As for survey_app.
        describe: As for survey_app.
        announce: Called with the URL once the port is taken; None tells nobody.

    Raises:
        ParameterError: An argument breaks its rule, or the address or the port cannot be taken.
        ImportError: starlette, uvicorn or httptools is not installed; the error names the extra.
        KeyboardInterrupt: The process got SIGINT.

    Guarantee:
        As for survey_app.

    Examples:
        >>> from hdp_fast import collection
        >>> study = collection.Study.create(
        ...     "study", asker="City of Example", epsilon=1.0, people=3, url="https://example.org"
        ... )
        >>> collection.serve_survey(study, port=70_000)
        Traceback (most recent call last):
        hdp_fast.exceptions.ParameterError: port = 70000, but it must be at most 65535
    """
    limits = {"per_address": per_address, "per_token": per_token, "describe": describe}
    app = survey_app(study, **limits)  # type: ignore[arg-type]
    uvicorn = import_served("uvicorn")
    protocol = _make_protocol(
        import_served("uvicorn.protocols.http.httptools_impl").HttpToolsProtocol
    )
    with _listen(host, port) as listener:
        config = uvicorn.Config(
            app,
            http=protocol,
            ws="none",
            lifespan="on",
            # What clients do wrong is no news, and would fill a disk.
            log_config=None,
            log_level="error",
            access_log=False,
            server_header=False,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_END_SECONDS,
            limit_concurrency=_MOST_CONNECTIONS,
            backlog=_BACKLOG,
        )
        if announce is not None:
            name, taken, *_ = listener.getsockname()
            announce(f"http://{f'[{name}]' if ':' in name else name}:{taken}")
        uvicorn.Server(config).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    """A socket that nobody else listens at."""
    if nonnegative_int("port", port) > _MOST_PORT:
        refuse("port", port, f"it must be at most {_MOST_PORT}")
    if not isinstance(host, str):
        refuse("host", host, "it must be an address of this machine")
    family = socket.AF_INET
    with suppress(ValueError):
        if ipaddress.ip_address(host).version == 6:
            family = socket.AF_INET6
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except (OSError, UnicodeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no address"
        text = f"host = {host!r} and port = {port}, but it must be free and of this machine"
        raise ParameterError(f"{text} ({reason})") from None


def _make_protocol(base: type[Any]) -> type[Any]:
    """The protocol of a connection, which is ended where requests are too slow or have no end."""

    class Bounded(base):  # type: ignore[misc]
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            # Bytes of a head so far, and of a request that was answered before its end.
            self._head = self._spare = 0
            self._timer: Any = None
            self._has_begun = False
            self._watch()

        def connection_lost(self, error: Exception | None) -> None:
            self._rest()
            super().connection_lost(error)

        def data_received(self, data: bytes) -> None:
            self._head += len(data)
            if self._has_begun and self.cycle is not None and self.cycle.response_complete:
                self._spare += len(data)
            # Also for what begins no request, such as empty lines.
            self._watch()
            if self._spare <= _MOST_SPARE:
                super().data_received(data)
            # Heads that are whole are measured by the application.
            if max(self._head // 2, self._spare) > _MOST_SPARE:
                self.transport.abort()

        def on_message_begin(self) -> None:
            if len(self.pipeline) > _MOST_WAITING:
                raise ValueError("so many requests wait for their replies")
            super().on_message_begin()
            self._has_begun, self._spare = True, 0
            self._watch()

        def on_headers_complete(self) -> None:
            self._head = 0
            super().on_headers_complete()

        def on_body(self, body: bytes) -> None:
            self._head = 0
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._has_begun = False
            self._rest()
            super().on_message_complete()

        def _watch(self) -> None:
            if self._timer is None:
                self._timer = self.loop.call_later(_REQUEST_SECONDS, self.transport.abort)

        def _rest(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    return Bounded
