"""One response of Gemini's `generateContent`, streamed or whole, as events.

Each event of the stream is a response with more parts. A function call comes complete in one part, often without an id.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from agentkit.checks.unicode import clean
from agentkit.events import Finish, SourceEvent, Text, Thinking, Usage
from agentkit.models.base import ABOUT_REPLY
from agentkit.models.finishes import finish
from agentkit.models.native import provider_block
from agentkit.models.stream_errors import raise_error
from agentkit.models.wire import (
    DONE,
    Wire,
    WireEvent,
    count_of,
    items_of,
    json_text_of,
    make_usage,
    mapping_of,
    text_of,
)

SIGNATURE: Final = "thoughtSignature"
"""The field with the encrypted thinking that led to a part; the API requires it back in the same part."""

_UNREAD_CALLS: Final = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL")
"""The ends of replies with a call that Google could not read, or that nobody offered; `finishMessage` quotes it."""

_IN_PIECES: Final = "its arguments came in pieces, which are not read; omit streamFunctionCallArguments"


class GeminiWire(Wire):
    """One response of the Gemini API, or of Vertex AI."""

    def __init__(self, provider: str, schemas: Mapping[str, Mapping[str, Any]] = MappingProxyType({})) -> None:
        super().__init__(provider, schemas)
        self._usage: Usage | None = None
        self._blocked = False
        self._about: dict[str, Any] = {}

    def feed(self, event: WireEvent) -> list[SourceEvent]:
        """One response of the stream, or the whole one."""
        raise_error(event)
        if usage := mapping_of(event.get("usageMetadata")):
            self._usage = usage_of(usage)
        if event is DONE:
            self.done = self.over = True
            return []
        return self._response(event)

    def _response(self, event: WireEvent) -> list[SourceEvent]:
        if blocked := text_of(mapping_of(event.get("promptFeedback")).get("blockReason")):
            self._finish, self._blocked = blocked, True
        candidates = items_of(event.get("candidates"))
        if not (candidates or event.get("usageMetadata") or blocked):
            self._calls.unread(event)
        return [event for one in candidates if not count_of(one.get("index")) for event in self._more(one)]

    def close(self) -> list[SourceEvent]:
        """The last events. Only the end of the body is an end: some models and proxies give each chunk a reason."""
        self.done = self.done or self._finish is not None
        about = [provider_block(self.provider, self._about)] if self._about else []
        ending: Finish | None = None
        if self.done and self._blocked:
            ending = finish(self._finish, calls=False, otherwise="content_filter")
        elif self.done:
            ending = finish(self._finish, calls=self.called)
        return [*about, *self._calls.close(self._usage, ending)]

    def _more(self, candidate: Mapping[str, Any]) -> list[SourceEvent]:
        parts = items_of(mapping_of(candidate.get("content")).get("parts"))
        events = [event for part in parts for event in self._part(part)]
        self._about |= {name: candidate[name] for name in ABOUT_REPLY if candidate.get(name)}
        reason = text_of(candidate.get("finishReason"))
        if reason in _UNREAD_CALLS:
            self._calls.lost.append(clean(text_of(candidate.get("finishMessage")) or reason))
        if reason or events:
            self._finish = reason or None
        return events

    def _part(self, part: Mapping[str, Any]) -> list[SourceEvent]:
        if "functionCall" in part:
            return self._call(part, mapping_of(part["functionCall"]))
        text, signature = part.get("text"), {k: part[k] for k in (SIGNATURE,) if part.get(k)}
        if not isinstance(text, str) or (signature and not text):
            thinking = bool(part.get("thought")) or {name for name, value in part.items() if value} == {SIGNATURE}
            return [provider_block(self.provider, part, thinking=thinking)] if any(part.values()) else []
        text = clean(text)
        if part.get("thought"):
            said: list[SourceEvent] = [Thinking(text)] if text else []
            return [*said, provider_block(self.provider, part, thinking=True)] if signature else said
        said = [Text(text)] if text else []
        return [provider_block(self.provider, signature), *said] if signature else said

    def _call(self, part: Mapping[str, Any], asked: Mapping[str, Any]) -> list[SourceEvent]:
        id = text_of(asked.get("id"))
        call, events = self._calls.begin(id, text_of(asked.get("name")))
        call.has_arguments, call.end = True, "complete"
        call.extras = {name: value for name, value in ((SIGNATURE, part.get(SIGNATURE)), ("id", id)) if value}
        if "partialArgs" in asked or asked.get("willContinue"):
            call.ambiguity = _IN_PIECES
        return events + self._calls.set_arguments(call, json_text_of(asked.get("args")))


def usage_of(usage: Mapping[str, Any]) -> Usage:
    """The usage of a response. Google counts neither thinking as reply, nor its tools' input as prompt."""
    thoughts = count_of(usage.get("thoughtsTokenCount"))
    return make_usage(
        prompt=count_of(usage.get("promptTokenCount")) + count_of(usage.get("toolUsePromptTokenCount")),
        reply=count_of(usage.get("candidatesTokenCount")) + thoughts,
        cached=count_of(usage.get("cachedContentTokenCount")),
        written=0,
        reasoning=thoughts,
    )


def events_of(body: Mapping[str, Any]) -> list[WireEvent]:
    """A whole response as the one event in which it would have been streamed, and its end."""
    return [body, DONE] if body.get("candidates") else [body]
