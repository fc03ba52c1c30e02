"""Errors as clients read them, in each wire: as a whole response, and as the last event of a stream. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import ceil
from typing import Any, Final

from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.client_wire import WireName

_OPENAI: Final[Mapping[int, str]] = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
}
_ANTHROPIC: Final[Mapping[int, str]] = {
    **_OPENAI,
    413: "request_too_large",
    503: "overloaded_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""Types of errors by status. Source: https://docs.anthropic.com/en/api/errors."""


def error_body(wire: WireName | None, error: RequestRefused) -> dict[str, Any]:
    """Return the body of an error response.

    Args:
        wire: the client's; None for a path that belongs to no wire, whose errors have OpenAI's form.
        error: the reason.
    """
    if wire == "messages":
        kind = _ANTHROPIC.get(error.status, "invalid_request_error" if error.status < 500 else "api_error")
        return {"type": "error", "error": {"type": kind, "message": error.message}}
    kind = _OPENAI.get(error.status, "invalid_request_error" if error.status < 500 else "server_error")
    return {"error": {"message": error.message, "type": kind, "param": error.param or None, "code": error.code}}


def is_error_body(wire: WireName, body: Any) -> bool:
    """Return whether this is the body of an error in a wire, so that a client's SDK finds its message."""
    error = body.get("error") if isinstance(body, dict) else None
    return isinstance(error, dict) and "message" in error and (wire != "messages" or body.get("type") == "error")


def error_headers(error: RequestRefused) -> list[tuple[bytes, bytes]]:
    """Return the headers of an error response."""
    headers = [(b"content-type", b"application/json")]
    if error.retry_after is not None:
        headers.append((b"retry-after", str(ceil(error.retry_after)).encode()))
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    return headers


def error_event(wire: WireName, error: RequestRefused) -> bytes:
    """Return the event with which a stream ends, at any point after its start."""
    body = error_body(wire, error)
    if wire == "chat":
        return b"data: " + json.dumps(body).encode() + b"\n\n"
    if wire == "responses":
        body = {"type": "error", "sequence_number": 0, **{k: body["error"][k] for k in ("code", "message", "param")}}
    return b"event: error\ndata: " + json.dumps(body).encode() + b"\n\n"
