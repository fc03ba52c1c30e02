"""Distinguishes a client's request to a local HTTP server from that of a page in a browser. Pure.

A page reaches a server on its own machine under its own name (DNS rebinding), which is in `Host`, or under the
server's, with the page's in `Origin`. Both are read strictly: only exactly a known name is accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")

_HOST: Final = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?", re.IGNORECASE)
_ORIGIN: Final = re.compile(r"https?://(?P<host>[^/@?#\\]+)", re.IGNORECASE)


def refusal(headers: Iterable[tuple[bytes, bytes]], names: Sequence[str]) -> tuple[int, str] | None:
    """The status and the reason with which a request is refused; None if it is accepted.

    >>> refusal([(b"host", b"localhost:8000")], LOOPBACK), refusal([(b"host", b"localhost:80@evil.example")], LOOPBACK)
    (None, (421, "Host 'localhost:80@evil.example' is not a name of this server"))

    Args:
        headers: of an ASGI scope.
        names: by which the server may be called; an IPv6 address without brackets.
    """
    given = [(name.lower(), value.decode("latin-1")) for name, value in headers]
    hosts = [value for name, value in given if name == b"host"]
    if len(hosts) != 1 or not _is_one_of(hosts[0], names):
        return 421, f"Host {', '.join(hosts)[:100]!r} is not a name of this server"
    for value in (value for name, value in given if name == b"origin"):
        origin = _ORIGIN.fullmatch(value)
        if origin is None or not _is_one_of(origin["host"], names):
            return 403, f"requests from web pages of {value[:100]!r} are refused"
    return None


def _is_one_of(host: str, names: Sequence[str]) -> bool:
    found = _HOST.fullmatch(host)
    known = {name.strip("[]").lower() for name in names}
    return found is not None and not known.isdisjoint({host.lower(), found["name"].strip("[]").lower()})
