"""Secrets that must not be shown: keys, and the credentials in a URL. Pure, except for the loggers that it watches."""

from __future__ import annotations

import base64
import json
import logging
import re
import urllib.parse
import weakref
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from agentkit.checks.keys import BLOT, shown_url, without_credentials

MIN_SECRET: Final = 6  # characters; anything shorter is not a key, and redacting it would garble texts

MAX_DEPTH: Final = 100  # nested arrays and objects, in an error

DEEP: Final = "[nested too deep]"

LOGGERS: Final = (
    "httpx2",  # logs each request's URL, at the level INFO
    *("httpcore2.connection", "httpcore2.http11", "httpcore2.http2", "httpcore2.proxy"),  # headers, at DEBUG
    *("openai._base_client", "anthropic._base_client"),  # all of a request, at DEBUG
    *("botocore.auth", "botocore.endpoint", "botocore.hooks", "botocore.parsers"),  # all of a request, at DEBUG
)
"""The loggers of libraries that may log a URL or a header."""

_NAMES = re.compile("auth|cookie|key|secret|token$|pass|^sig", re.IGNORECASE)


_UNPRINTABLE: Final = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


def is_secret(name: str) -> bool:
    """Return whether a header, field or parameter of this name contains something that must not be seen."""
    return _NAMES.search(name) is not None


def redact(text: str, secrets: Iterable[str]) -> str:
    r"""Text without the given secrets, even where they are escaped for JSON or a URL.

    >>> redact(r'{"wrong key": "Zk9\/x+Q"}', ["Zk9/x+Q"])
    '{"wrong key": "[key]"}'
    """
    for secret in secrets:
        text = _spelled(secret).sub(BLOT, text)
    return text


@lru_cache(maxsize=256)
def _spelled(secret: str) -> re.Pattern[str]:
    """A secret as it is, and as a server may repeat it."""
    text = json.dumps(secret)[1:-1]
    ways = {secret, text, text.replace("/", "\\/"), urllib.parse.quote(secret, safe="")}
    return re.compile("|".join(re.escape(way) for way in sorted(ways, key=len, reverse=True)))


def without_secrets(value: Any, secrets: Sequence[str], depth: int = 0) -> Any:
    """Text or JSON with keys redacted, as well as anything nested too deep to be examined."""
    if isinstance(value, str):
        return without_credentials(redact(value, secrets))
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
            raise ValueError(f"not a URL: {shown_url(url)}")
        if _UNPRINTABLE.search(parts.hostname + parts.path):  # those that `urlsplit` has not removed
            raise ValueError(f"not a URL: {shown_url(url)}")
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
    """Return the secrets in a URL; empty for text that is not a URL.

    >>> secrets_in("https://example.org/v1?key=abcdefgh&page=2")
    ('abcdefgh',)
    """
    try:
        return tuple(secret for secret in Address.of(url).secrets if len(secret) >= MIN_SECRET)
    except ValueError:
        return ()


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


def watch_logs(owner: object, secrets: Sequence[str], more: Iterable[str] = ()) -> None:
    """Redact secrets in what the underlying libraries, and `more` loggers, log, for as long as the owner lives.

    A list of secrets can be changed later.
    """
    blots = _Blots(secrets)
    for name in (*LOGGERS, *more):
        logger = logging.getLogger(name)
        logger.addFilter(blots)
        weakref.finalize(owner, _forget, logger, blots)


def _forget(logger: logging.Logger, blots: _Blots) -> None:
    """Remove a filter; the logger may be in the middle of its old list, which would then skip the next one."""
    logger.filters = [other for other in logger.filters if other is not blots]
