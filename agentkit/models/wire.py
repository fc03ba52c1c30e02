"""The base of the providers' wires, and how their fields are read.

A wire is a state machine: `feed(wire event) -> events`, no I/O, no SDK. A whole response goes through the same machine,
as the wire events in which it would have been streamed.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from agentkit.events import SourceEvent, Usage
from agentkit.models.native import NativeCalls

WireEvent = Mapping[str, Any]
"""One event of a provider's stream, as its JSON object."""

DONE: Final[WireEvent] = {"[DONE]": True}
"""The wire event of a stream's closing line `data: [DONE]`."""


class Wire(ABC):
    """One response of one provider, as a state machine.

    Args:
        provider: the provider that wrote the blocks.
        schemas: those of the offered tools, by name.
        whole: whether the provider marks the end of each call, and sends its name in one piece.

    Attributes:
        done: whether the response came to its end; False if the provider interrupted it.
        over: whether nothing more will arrive; a response that is done may still report its usage.
    """

    def __init__(
        self, provider: str, schemas: Mapping[str, Mapping[str, Any]] = MappingProxyType({}), *, whole: bool = True
    ) -> None:
        self.provider = provider
        self._calls = NativeCalls(provider, marks_ends=whole, whole_names=whole, schemas=schemas)
        self._finish: str | None = None
        self.done = self.over = False

    @property
    def called(self) -> bool:
        """Return whether the response has a call."""
        return bool(self._calls.all)

    @abstractmethod
    def feed(self, event: WireEvent) -> list[SourceEvent]:
        """Read a wire event; raises an `ErrorInStream` if it reports an error."""

    @abstractmethod
    def close(self) -> list[SourceEvent]:
        """End the response: the last event is `Finish` if it was done; otherwise its open calls are truncated."""


def text_of(value: object) -> str:
    """A string field of a wire event; the empty string if a server omitted it or wrote something else."""
    return value if isinstance(value, str) else ""


def json_text_of(value: object) -> str:
    """A call's arguments, as JSON text. Servers write a string, an object, nothing, or a value refused later."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def mapping_of(value: object) -> Mapping[str, Any]:
    """An object field of a wire event; an empty one if a server omitted it or wrote something else."""
    return value if isinstance(value, Mapping) else {}


def items_of(value: object) -> list[Mapping[str, Any]]:
    """The objects of an array field of a wire event, or the one that a server wrote without the array."""
    return [v for v in (value if isinstance(value, list) else [value]) if isinstance(v, Mapping)]


def count_of(value: object) -> int:
    """A count of tokens; 0 if a server omitted it or wrote something else. Some write 7 as 7.0."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and value > 0 else 0


def offered_schemas(body: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The schemas of a request's tools by name, regardless of where its API has them."""
    listed = items_of(body.get("tools")) or items_of(mapping_of(body.get("toolConfig")).get("tools"))
    where = ("functionDeclarations", "function", "toolSpec")
    inner = [next(filter(None, map(tool.get, where)), tool) for tool in listed]
    return {text_of(tool.get("name")): _schema(tool) for one in inner for tool in items_of(one)}


def _schema(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    names = ("parameters", "input_schema", "parametersJsonSchema", "inputSchema")
    found = next((mapping_of(tool[name]) for name in names if name in tool), {})
    return mapping_of(found.get("json")) if "inputSchema" in tool else found


def make_usage(*, prompt: int, reply: int, cached: int, written: int, reasoning: int, total: int = 0) -> Usage:
    """The usage of which a server reports these counts; 0 for any that it omits.

    A part may be counted separately from what it belongs to: more cached tokens than prompt, or, by xAI, more reasoning
    than reply. Gemini's thinking is only in the total.

    >>> make_usage(prompt=1_000, reply=10, cached=0, written=0, reasoning=90, total=1_100).output_tokens
    100
    """
    if cached + written > prompt:
        prompt += cached + written
    if reasoning > reply:
        reply += reasoning
    if prompt:
        reply = max(reply, total - prompt)
    return Usage(prompt, reply, cached, written, reasoning)


def openai_usage(usage: Mapping[str, Any], prompt: str, reply: str) -> Usage:
    """The usage of chat completions, or of a response: they differ in what they call the prompt and the reply."""
    prompt_details, reply_details = (mapping_of(usage.get(f"{name}_tokens_details")) for name in (prompt, reply))
    return make_usage(
        prompt=count_of(usage.get(f"{prompt}_tokens")),
        reply=count_of(usage.get(f"{reply}_tokens")),
        cached=count_of(prompt_details.get("cached_tokens")) or count_of(usage.get("prompt_cache_hit_tokens")),
        written=count_of(prompt_details.get("cache_write_tokens")),
        reasoning=count_of(reply_details.get("reasoning_tokens")),
        total=count_of(usage.get("total_tokens")),
    )
