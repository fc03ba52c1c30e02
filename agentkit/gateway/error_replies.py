"""Errors of the gateway as HTTP: the headers of an error, and the last event of a stream that was only forwarded."""

from __future__ import annotations

import json
from math import ceil
from typing import Any

from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.client_wire import ClientWire, WireName


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


def error_event(wire: ClientWire, error: RequestRefused) -> bytes:
    """Return the event that ends a stream at any place.

    A `ReplyWriter` ends a stream that it has written; this is for one whose earlier events are unknown.
    """
    body = wire.error(error)
    if wire.name == "chat":
        return b"data: " + json.dumps(body).encode() + b"\n\ndata: [DONE]\n\n"
    if wire.name == "responses":
        body = {
            "type": "error",
            "sequence_number": 0,
            **{k: body["error"].get(k) for k in ("code", "message", "param")},
        }
    return b"event: error\ndata: " + json.dumps(body).encode() + b"\n\n"
