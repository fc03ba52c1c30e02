"""What the three providers' wires share: their shape, the errors in them, and how their fields are read.

A wire is a state machine: `feed(wire event) -> events`, no I/O, no SDK. A whole response goes through the same machine,
as the wire events in which it would have been streamed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Protocol

from agentkit.events import SourceEvent, Usage

WireEvent = Mapping[str, Any]
"""One event of a provider's stream, as its JSON object."""

DONE: Final[WireEvent] = {"[DONE]": True}
"""The wire event of a stream's closing line `data: [DONE]`."""


class ErrorInStream(Exception):
    """The provider reported an error inside a response that had started well.

    Args:
        message: the provider's message.
        code: its code or type, as it wrote it; None if it named none.
        body: the error object.
    """

    def __init__(self, message: str, code: str | None, body: object) -> None:
        super().__init__(message)
        self.code = code
        self.body = body

    @classmethod
    def of(cls, error: object) -> ErrorInStream:
        """From an error object as any provider writes it; a text that is too long for an error is cut."""
        error = _unwrapped(error)
        given = error if isinstance(error, Mapping) else {}
        code = given.get("code") or given.get("type")
        message = _short(_reason(error) or NO_REASON, MAX_MESSAGE)
        code = None if code is None else _short(str(code), MAX_CODE)
        whole = json.dumps(error, ensure_ascii=False, default=str)
        body = error if len(whole) <= MAX_BODY else _short(whole, MAX_MESSAGE)
        return cls(message, code, body)


MAX_MESSAGE: Final = 4_000
"""The maximum length of a provider's error message, in characters."""

MAX_CODE: Final = 200
"""The maximum length of an error's code, in characters."""

MAX_BODY: Final = 1024 * 1024
"""The maximum size of an error object that is kept whole, in characters: as for an HTTP error's body."""


NO_REASON: Final = "no reason given"
"""The message of an error that does not say what was wrong where it is known to be said."""

_REASONS: Final = ("message", "detail", "msg", "error_message", "error", "errors")
"""Where servers write what was wrong: the providers; FastAPI, and so vLLM and SGLang, `detail`, as text or as a list of
objects with `loc` and `msg`; other proxies the rest."""

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
    """What an error says was wrong; empty if it does not say so in a way that is known."""
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


class Wire(Protocol):
    """One response of one provider, as a state machine."""

    @property
    def done(self) -> bool:
        """Whether the response came to its end; False also if the provider interrupted it."""
        ...

    @property
    def called(self) -> bool:
        """Whether a call came."""
        ...

    @property
    def over(self) -> bool:
        """Whether nothing more is to come; a response that is done may still report its usage."""
        ...

    def feed(self, event: WireEvent) -> list[SourceEvent]:
        """The events that this wire event stands for.

        Raises:
            ErrorInStream: it reports an error.
        """
        ...

    def close(self) -> list[SourceEvent]:
        """The last events, when nothing more will come.

        Ends with `Finish` if the response was done; otherwise its open calls are truncated and there is no `Finish`.
        """
        ...


def text_of(value: object) -> str:
    """A string field of a wire event; the empty string if a server omitted it or wrote something else."""
    return value if isinstance(value, str) else ""


def json_text_of(value: object) -> str:
    """A call's arguments, as JSON text. Servers write a string, an object, nothing, or what is refused later."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def mapping_of(value: object) -> Mapping[str, Any]:
    """An object field of a wire event; an empty one if a server omitted it or wrote something else."""
    return value if isinstance(value, Mapping) else {}


def items_of(value: object) -> list[Mapping[str, Any]]:
    """The objects of an array field of a wire event."""
    return [v for v in value if isinstance(v, Mapping)] if isinstance(value, list) else []


def count_of(value: object) -> int:
    """A count of tokens; 0 if a server omitted it or wrote something else. Some write 7 as 7.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and value > 0 else 0


def counted(*, prompt: int, reply: int, cached: int, written: int, reasoning: int, total: int = 0) -> Usage:
    """The usage of which a server reports these counts; 0 for any that it omits.

    A part may be counted separately from what it belongs to: more cached tokens than prompt, or, by xAI, more reasoning
    than reply. Gemini's thinking is only in the total.

    >>> counted(prompt=1_000, reply=10, cached=0, written=0, reasoning=90, total=1_100).output_tokens
    100
    """
    if cached + written > prompt:
        prompt += cached + written
    if reasoning > reply:
        reply += reasoning
    if prompt:
        reply = max(reply, total - prompt)
    return Usage(prompt, reply, cached, written, reasoning)
