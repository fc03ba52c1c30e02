"""What must not be seen: keys, and the credentials in a URL. Pure, except for the loggers that it watches."""

from __future__ import annotations

import base64
import logging
import re
import urllib.parse
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from agentkit.checks.keys import BLOT, without_keys

MIN_SECRET: Final = 6  # characters; anything shorter is not a key, and redacting it would garble texts

MAX_DEPTH: Final = 100  # nested arrays and objects, in an error

DEEP: Final = "[nested too deep]"

LOGGERS: Final = (
    "httpx2",  # logs each request's URL, at the level INFO
    *("httpcore2.connection", "httpcore2.http11", "httpcore2.http2", "httpcore2.proxy"),  # headers, at DEBUG
    *("openai._base_client", "anthropic._base_client"),  # all of a request, at DEBUG
)
"""The loggers of libraries that may log a URL or a header."""

_NAMES = re.compile("auth|cookie|key|secret|token$|pass|^sig", re.IGNORECASE)


def is_secret(name: str) -> bool:
    """Whether a header, field or parameter of this name contains something that must not be seen."""
    return _NAMES.search(name) is not None


def without_secrets(value: Any, secrets: Sequence[str], depth: int = 0) -> Any:
    """Text or JSON with keys redacted, as well as anything nested too deep to be examined."""
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, BLOT)
        return without_keys(value)
    if not isinstance(value, Mapping | list | tuple):
        return value
    if depth == MAX_DEPTH:
        return DEEP
    below = depth + 1
    if isinstance(value, Mapping):
        return {without_secrets(k, secrets): without_secrets(v, secrets, below) for k, v in value.items()}
    found = [without_secrets(v, secrets, below) for v in value]
    return found if isinstance(value, list) else tuple(found)


class Address(NamedTuple):
    """A server's URL, and separately its credentials.

    Args:
        url: without credentials and query; this may be seen.
        query: the parameters of the query.
        headers: the credentials as a header.
        secrets: the parts of all these that must not be seen.
    """

    url: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    secrets: tuple[str, ...]

    @classmethod
    def of(cls, url: str) -> Address:
        """Split a URL.

        Raises:
            ValueError: it is not a URL.

        >>> Address.of("https://ada:secret@example.org/v1?key=abcdef").url
        'https://example.org/v1'
        """
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"not a URL: {shown(url)}")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        place = f"{host}:{parts.port}" if parts.port else host
        query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        user, password = (urllib.parse.unquote(part or "") for part in (parts.username, parts.password))
        secrets = [password or user, *(value for name, value in query.items() if is_secret(name))]
        headers = {}
        if user or password:
            basic = base64.b64encode(f"{user}:{password}".encode()).decode()
            headers["Authorization"] = f"Basic {basic}"
            secrets.append(basic)
        spelled = [s for secret in secrets for s in (secret, urllib.parse.quote(secret, safe=""))]
        return cls(f"{parts.scheme}://{place}{parts.path}", query, headers, tuple(dict.fromkeys(spelled)))


def secrets_in(url: str) -> tuple[str, ...]:
    """What must not be seen of a URL; empty for text that is not a URL.

    >>> secrets_in("https://example.org/v1?key=abcdefgh&page=2")
    ('abcdefgh',)
    """
    try:
        return tuple(secret for secret in Address.of(url).secrets if len(secret) >= MIN_SECRET)
    except ValueError:
        return ()


def shown(url: str) -> str:
    """A URL fit to be shown, regardless of what is wrong with it."""
    bare, _, query = re.sub(r"[^/\s]*@", "", url).partition("?")
    return bare + ("?…" if query else "")


_FORMATTER: Final = logging.Formatter()


class _Blots(logging.Filter):
    def __init__(self, secrets: Sequence[str]) -> None:
        super().__init__()
        self._secrets = secrets

    def filter(self, record: logging.LogRecord) -> bool:
        said = record.getMessage()
        record.msg, record.args = without_secrets(said, self._secrets), None
        if record.exc_info:  # a traceback ends with its error's message, which may quote a URL
            record.exc_text = _FORMATTER.formatException(record.exc_info)
            record.exc_info = None
        if record.exc_text:  # perhaps from a filter that knows other secrets
            record.exc_text = without_secrets(record.exc_text, self._secrets)
        return True


def watch_logs(owner: object, secrets: Iterable[str], more: Iterable[str] = ()) -> None:
    """Redact secrets in what the underlying libraries, and `more` loggers, log, for as long as the owner lives."""
    blots = _Blots(tuple(secrets))
    for name in (*LOGGERS, *more):
        logger = logging.getLogger(name)
        logger.addFilter(blots)
        weakref.finalize(owner, logger.removeFilter, blots)
