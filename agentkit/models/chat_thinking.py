"""Thinking in chat completions, which every compatible server streams under its own name.

Pure. It is sent back to the server that wrote it, in the fields in which it came.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentkit.checks.unicode import Joiner
from agentkit.events import SourceEvent, Thinking
from agentkit.models.native import provider_block
from agentkit.models.wire import items_of, text_of

FIELDS: Final = ("reasoning_content", "reasoning")
"""Text: DeepSeek, SGLang and older vLLM use the first name; newer vLLM, Groq, Ollama and OpenRouter the second."""

DETAILS: Final = "reasoning_details"
"""OpenRouter's blocks: the text again, with the signatures that its providers require back."""

NAMES: Final = frozenset((*FIELDS, DETAILS))

_TEXTS: Final = ("text", "summary", "data")


class ChatThinking:
    """The thinking of one response.

    Args:
        provider: the provider that wrote it.
    """

    def __init__(self, provider: str) -> None:
        self.provider = provider
        self._joiner = Joiner()
        self._fields: dict[str, list[str]] = {}
        self._details: list[tuple[dict[str, Any], dict[str, list[str]]]] = []

    def feed(self, delta: Mapping[str, Any]) -> list[SourceEvent]:
        """The thinking in one delta. If a server sends it under two names, it counts once."""
        details = items_of(delta.get(DETAILS))
        for detail in details:
            self._keep(detail)
        for name in FIELDS:
            text = text_of(delta.get(name))
            if text:
                self._fields.setdefault(name, []).append(text)
                return self.say(text)
        if details and not self._fields:
            return self.say("".join(text_of(d.get("text")) or text_of(d.get("summary")) for d in details))
        return []

    def say(self, text: str) -> list[SourceEvent]:
        """Thinking that its server does not require back."""
        said = self._joiner.feed(text)
        return [Thinking(said)] if said else []

    def end(self) -> list[SourceEvent]:
        """End the thinking: other content starts, or the response is over."""
        rest = self._joiner.close()
        events: list[SourceEvent] = [Thinking(rest)] if rest else []
        thought = self._thought()
        if thought:
            events.append(provider_block(self.provider, thought, thinking=True))
            self._fields, self._details = {}, []
        return events

    def _keep(self, detail: Mapping[str, Any]) -> None:
        """A detail's texts arrive in pieces under one index."""
        if not self._details or any(self._details[-1][0].get(k) != detail.get(k) for k in ("type", "index")):
            self._details.append(({}, {}))
        known, texts = self._details[-1]
        known.update({k: v for k, v in detail.items() if v is not None})
        for name in _TEXTS:
            if text_of(detail.get(name)):
                texts.setdefault(name, []).append(detail[name])

    def _thought(self) -> dict[str, Any]:
        if self._details:
            return {DETAILS: [{**known, **_joined(texts)} for known, texts in self._details]}
        return _joined(self._fields)


def _joined(texts: Mapping[str, list[str]]) -> dict[str, Any]:
    return {name: "".join(pieces) for name, pieces in texts.items()}
