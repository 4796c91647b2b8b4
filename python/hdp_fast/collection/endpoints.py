"""The endpoints of a collector: one table, from which routes and the OpenAPI document are made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .._core import __version__

MOST_BODY, MOST_HEADERS = 1_024, 16_384

_POLICY = {
    "default-src": "'none'",
    "script-src": "'self' 'wasm-unsafe-eval'",
    "connect-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}
HEADERS = {
    "content-security-policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
NO_STORE = {"cache-control": "no-store"}

# The files of the page, the only ones there are, and what they are.
PAGE = {
    "index.html": "text/html; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "style.css": "text/css; charset=utf-8",
    "texts.json": "application/json",
    "device.wasm": "application/wasm",
}

TEXTS = {
    401: "unknown token",
    404: "not found",
    405: "method not allowed",
    408: "too slow",
    409: "answered otherwise",
    413: "too large",
    422: "malformed",
    429: "too many",
    431: "headers too large",
    500: "defect",
    503: "try again",
}
# These end a connection whose request was not read to its end.
ENDING = (408, 413, 431)


class Endpoint(NamedTuple):
    """An endpoint: its one method, and what each of its statuses means."""

    method: str
    path: str
    summary: str
    statuses: Mapping[int, str]
    has_token: bool = True
    has_body: bool = False


_SHARED = {429: "Too many requests.", 431: "The headers are too large.", 503: "Try again later."}
ENDPOINTS = (
    Endpoint(
        "GET",
        "/question",
        "The signed question of an invitation.",
        {
            200: "The envelope.",
            401: "No such token.",
            404: "No question yet.",
            410: "Answered, or closed.",
            **_SHARED,
        },
    ),
    Endpoint(
        "POST",
        "/answer",
        "Takes the line that a device wrote. The same line again is accepted again.",
        {
            200: "The answer is on the disk.",
            401: "No such token.",
            404: "No question yet.",
            408: "The body came too slowly.",
            409: "Another line came with this token.",
            410: "Closed.",
            413: "The body is too large.",
            422: "The body is no line that answers this question.",
            **_SHARED,
        },
        has_body=True,
    ),
    Endpoint(
        "GET", "/health", "Whether the server runs.", {200: "It runs.", 431: _SHARED[431]}, False
    ),
)


def openapi() -> dict[str, Any]:
    """Describes the endpoints of a collector.

    Returns:
        An OpenAPI document of version 3.1.

    Examples:
        >>> from hdp_fast import collection
        >>> sorted(collection.openapi()["paths"])
        ['/answer', '/health', '/question']
    """
    info = {"title": "hdp_fast collector", "version": __version__}
    security = {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "32 hex digits"}}
    paths = {
        endpoint.path: {endpoint.method.lower(): _describe(endpoint)} for endpoint in ENDPOINTS
    }
    components = {"securitySchemes": security}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": components}


def _describe(endpoint: Endpoint) -> dict[str, Any]:
    error = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    good = {"type": "object"}
    described: dict[str, Any] = {
        "summary": endpoint.summary,
        "operationId": endpoint.path[1:],
        "responses": {
            str(status): {
                "description": text,
                "content": {"application/json": {"schema": good if status == 200 else error}},
            }
            for status, text in endpoint.statuses.items()
        },
    }
    if endpoint.has_token:
        described["security"] = [{"token": []}]
    if endpoint.has_body:
        line = {"type": "string", "maxLength": MOST_BODY, "pattern": r'^\{"format":"hdp_fast\.'}
        described["requestBody"] = {"required": True, "content": {"text/plain": {"schema": line}}}
    return described
