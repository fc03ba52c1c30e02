"""Which HTTP headers a request takes to its upstream, and which a reply brings to its client. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

HOP_BY_HOP: Final = frozenset(
    (
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    )
)
"""Headers of one connection. Source: RFC 9110, 7.6.1."""

CREDENTIALS: Final = frozenset(("authorization", "x-api-key"))

_NOT_FORWARDED: Final = HOP_BY_HOP | {
    *("host", "content-length", "content-encoding", "content-type", "accept", "accept-encoding", "expect"),
    *("cookie", "forwarded", "origin", "referer", "via", "api-key"),
}
_NOT_FORWARDED_PREFIXES: Final = ("sec-", "x-forwarded-", "access-control-", "proxy-", "cf-")

_NOT_RETURNED: Final = HOP_BY_HOP | {
    *("content-length", "content-encoding", "content-type", "date", "server", "set-cookie", "via", "alt-svc"),
    *("strict-transport-security", "x-request-id", "request-id", "vary"),
}
_NOT_RETURNED_PREFIXES: Final = ("access-control-", "cf-", "x-agentkit-")


def request_headers(headers: Iterable[tuple[bytes, bytes]], *, credentials: bool) -> dict[str, str]:
    """Return the headers of a client's request that go to the upstream, with lower-case names.

    >>> request_headers(
    ...     [(b"host", b"x"), (b"connection", b"x-one"), (b"x-one", b"1"), (b"x-title", b"a")], credentials=False
    ... )
    {'x-title': 'a'}

    Args:
        headers: of an ASGI scope.
        credentials: whether the client's key is passed on.
    """
    found = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
    named = {name.strip().lower() for name in found.get("connection", "").split(",")}
    dropped = _NOT_FORWARDED | named | (frozenset() if credentials else CREDENTIALS)
    return {
        name: value
        for name, value in found.items()
        if name not in dropped and not name.startswith(_NOT_FORWARDED_PREFIXES)
    }


def reply_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Return the headers of an upstream's reply that go to the client: first its id, and without its content type.

    >>> reply_headers({"x-ratelimit-limit": "5", "server": "uvicorn", "request-id": "r1"})
    [(b'x-request-id', b'r1'), (b'x-ratelimit-limit', b'5')]

    Args:
        headers: with lower-case names.
    """
    found = {"x-request-id": headers.get("x-request-id") or headers.get("request-id") or ""}
    found |= {
        name: value
        for name, value in headers.items()
        if name not in _NOT_RETURNED and not name.startswith(_NOT_RETURNED_PREFIXES)
    }
    return [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in found.items()]
