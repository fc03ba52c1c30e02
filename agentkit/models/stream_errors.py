"""The shapes of errors in a response, on any of the three wires, in a stream or in a whole response. Pure.

The providers have an object `error`. Other servers also send their own errors as an event of the stream, without
that object, and end the stream as if nothing had been wrong.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agentkit.models.wire import WireEvent

_OURS: Final = ("response.", "content_block_", "message_")
"""How the types of events begin that a protocol defines: `error` in one of them is a field of something."""

_ANSWERS: Final = ("choices", "delta", "content", "content_block", "item", "output", "response")
"""Fields that hold an answer, or a part of one."""

_SAYS_ERROR: Final[Mapping[str, object]] = {"type": "error", "object": "error", "status": "error", "success": False}
"""Fields that say of an event that it is an error: vLLM `object`; other servers the rest."""

_ALONE: Final = ("detail", "errors", "error_code", "error_message", "error_msg")
"""Fields that only an error has: FastAPI's `detail`, FastChat's `error_code`."""

_SIGNS: Final = frozenset(("error", "message", "msg", "success", *_ALONE))
"""Fields of which an error has one that no word says to be one."""

_FINE: Final = frozenset(("", "0", "200", "ok", "success", "none"))  # codes that no error has


def raise_error(event: WireEvent) -> None:
    """Raise the error that an event of a stream reports, if it reports one.

    Raises:
        ErrorInStream: it does.
    """
    named = "error" in (event.get("type"), event.get("object"), event.get("status"))
    if (named or not _SIGNS.isdisjoint(event)) and (error := error_in(event)) is not None:
        raise ErrorInStream.of(error)


def error_in(event: WireEvent) -> object:
    """The error that an event of a stream reports; None if it reports none."""
    error, kind = event.get("error"), event.get("type")
    if isinstance(kind, str) and kind.startswith(_OURS):
        return None
    if error:
        return error if isinstance(error, Mapping | list) or not _reason(event.get("message")) else event
    if any(event.get(key) == value for key, value in _SAYS_ERROR.items()):
        return event
    if any(event.get(key) for key in _ANSWERS):
        return None
    if any(event.get(key) for key in _ALONE) or (isinstance(event.get("message"), str) and _has_code(event)):
        return event
    return None


def _has_code(event: WireEvent) -> bool:
    """Return whether an event with a message has the code of an error as well, or a type with that name."""
    codes = [event.get(key) for key in _CODES if key != "type"]
    given = any(isinstance(c, str | int) and str(c).lower() not in _FINE for c in codes)
    return given or "error" in str(event.get("type")).lower()


def whole_error(body: Mapping[str, Any]) -> object:
    """The error that a whole response is; None if it is not known to be one.

    A body that has nothing of an answer, and says something where errors do, is one as well.
    """
    if isinstance(body.get("output"), list):
        return None  # its status decides
    if (error := error_in(body)) is not None:
        return error
    return None if any(key in body for key in (*_ANSWERS, "object", "type", "status")) or not _reason(body) else body


class ErrorInStream(Exception):
    """The provider reported an error inside a response that had started well.

    Args:
        message: the provider's message.
        code: its code or type, as it wrote it; None if it named none.
        body: the error object.
        codes: all its codes and types, the most specific first; the code alone if omitted.
    """

    def __init__(self, message: str, code: str | None, body: object, codes: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.codes = tuple(codes) or ((code,) if code else ())
        self.body = body

    @classmethod
    def of(cls, error: object) -> ErrorInStream:
        """From an error object as any provider writes it; a text that is too long for an error is cut."""
        error = _unwrapped(error)
        given = error if isinstance(error, Mapping) else {}
        codes = [_short(str(given[key]), MAX_CODE) for key in _CODES if given.get(key) and given[key] != "error"]
        message = _short(_reason(error) or NO_REASON, MAX_MESSAGE)
        whole = json.dumps(error, ensure_ascii=False, default=str)
        body = error if len(whole) <= MAX_BODY else _short(whole, MAX_MESSAGE)
        return cls(message, codes[0] if codes else None, body, codes)


MAX_MESSAGE: Final = 4_000  # the maximum length of a provider's error message, in characters
MAX_CODE: Final = 200  # the maximum length of an error's code, in characters

MAX_BODY: Final = 1024 * 1024
"""The maximum size of an error object that is kept whole, in characters: as for an HTTP error's body."""

NO_REASON: Final = "no reason given"
"""The message of an error that does not say what was wrong where it is known to be said."""

_REASONS: Final = ("message", "detail", "msg", "error_message", "error_msg", "error", "errors", "text")
"""Where servers write what was wrong: the providers; FastAPI, and so vLLM and SGLang, `detail`, as text or as a list of
objects with `loc` and `msg`; FastChat `text`; other proxies the rest."""

_CODES: Final = ("code", "error_code", "status_code", "statusCode", "type")  # where they write its code

_MAX_REASONS: Final = 5
_MAX_NESTED: Final = 6


def _unwrapped(error: object) -> object:
    """The error object itself, where it is in another one, or in a list as at Google's endpoint."""
    for _ in range(_MAX_NESTED):
        if isinstance(error, list) and len(error) == 1 and isinstance(error[0], Mapping) and "error" in error[0]:
            error = error[0]
        inner = error.get("error") if isinstance(error, Mapping) and not error.get("message") else None
        if not inner or not isinstance(inner, Mapping | list):
            return error
        error = inner
    return error


def _reason(error: object, depth: int = 0) -> str:
    """Return the reason that an error gives; empty if it gives none in a way that is known."""
    if isinstance(error, str) or (depth and isinstance(error, int | float)):
        return str(error) if str(error).strip() else ""
    if depth >= _MAX_NESTED:
        return ""
    if isinstance(error, list):
        reasons = [reason for one in error[:_MAX_REASONS] if (reason := _reason(one, depth + 1))]
        more = [f"and {len(error) - _MAX_REASONS} more"] if len(error) > _MAX_REASONS else []
        return "; ".join(reasons + more) if reasons else ""
    if not isinstance(error, Mapping):
        return ""
    said = next((reason for key in _REASONS if (reason := _reason(error.get(key), depth + 1))), "")
    where = error.get("loc")
    return f"{'.'.join(map(str, where))}: {said}" if said and isinstance(where, list) else said


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"
