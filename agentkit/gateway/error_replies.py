"""Errors as HTTP: those of an upstream, the headers of an error, the last event of a stream."""

from __future__ import annotations

import asyncio
import json
import logging
import time
import traceback
from collections.abc import Mapping
from math import ceil
from typing import Any, Final

from agentkit.errors import (
    AgentkitError,
    ProviderError,
    StoreConflict,
    StoreError,
    ThreadBusy,
    ThreadExists,
    ThreadNotFound,
)
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.client_wire import WireName
from agentkit.models.provider_errors import retry_after
from agentkit.models.stream_errors import ErrorInStream

_LOG: Final = logging.getLogger("agentkit.gateway")
_SHOWN: Final = 300  # characters of a body that is not an error of any wire


def json_of(text: bytes | str) -> Any:
    """Return the value of a JSON text; None if it is not JSON, or nested too deeply."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


_STATUS: Final[Mapping[str, int]] = {
    "rate_limit": 429, "overloaded": 503, "timeout": 504, "bad_request": 400, "too_long": 400, "not_found": 404,
}  # fmt: skip
"""The status of a provider's failures that have none, by their kind; of the others it is 502."""


def as_refusal(error: BaseException) -> RequestRefused:
    """Any failure, for a client. A fault of agentkit's own is logged: where it is, and nothing of what was asked."""
    match error:
        case RequestRefused():
            return error
        case RecursionError():
            return RequestRefused(400, "arrays and objects in the request are nested too deeply", "invalid_request")
        case asyncio.CancelledError():
            return RequestRefused(503, "the gateway is shutting down", "shutting_down")
        case ProviderError(kind=kind, status=status, code=code):
            status, code = status or _STATUS.get(kind, 502), code or "upstream_error"
            return RequestRefused(status, str(error), code, retry_after=error.retry_after, of_upstream=True)
        case ThreadNotFound():
            return RequestRefused(404, str(error), "thread_not_found")
        case ThreadBusy() | ThreadExists() | StoreConflict():
            return RequestRefused(409, str(error), "thread_busy")
        case StoreError():
            return RequestRefused(503, str(error), "store_failed")
        case AgentkitError():
            return RequestRefused(400, str(error), "invalid_request")
    _LOG.error("a fault of the gateway: %s", "".join(traceback.format_tb(error.__traceback__)) + type(error).__name__)
    return RequestRefused(500, "a fault of the gateway; its log says more", "internal_error")


def is_error_body(wire: WireName, body: Any) -> bool:
    """Return whether this is the body of an error in a wire, so that a client's SDK finds its message."""
    error = body.get("error") if isinstance(body, dict) else None
    return isinstance(error, dict) and "message" in error and (wire != "messages" or body.get("type") == "error")


def upstream_error(status: int, headers: Mapping[str, str], raw: bytes) -> RequestRefused:
    """An upstream's error response, or a reply that is not one of any wire, such as a proxy's page, for a client.

    Args:
        status: the HTTP status; it is kept if it is 400 or higher.
        headers: with lower-case names.
        raw: the body.
    """
    if isinstance(body := json_of(raw), dict | list):
        found = ErrorInStream.of(body)
        said, code = str(found), found.code
    else:
        shown = raw[:_SHOWN].decode(errors="replace").strip() or "no body"
        said, code = f"the upstream answered with status {status}: {shown}", None
    wait = retry_after(headers, time.time())
    status, code = status if status >= 400 else 502, code or "upstream_error"
    return RequestRefused(status, said, code, retry_after=wait, of_upstream=True)


def error_headers(error: RequestRefused) -> list[tuple[bytes, bytes]]:
    """Return the headers of an error response."""
    headers = [(b"content-type", b"application/json")]
    if error.retry_after is not None:
        headers.append((b"retry-after", str(ceil(error.retry_after)).encode()))
    if error.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    return headers


def error_event(wire: WireName, body: Mapping[str, Any]) -> bytes:
    """Return the event that ends a stream at any place.

    Args:
        wire: the client's.
        body: of the error, in that wire.
    """
    if wire == "responses":
        fields = {name: body["error"].get(name) for name in ("code", "message", "param")}
        body = {"type": "error", "sequence_number": 0, **fields}
    data = b"data: %b\n\n" % json.dumps(body, separators=(",", ":"), default=str).encode()
    return data + b"data: [DONE]\n\n" if wire == "chat" else b"event: error\n" + data
