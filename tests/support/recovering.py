"""One response of a native model that writes calls as text, and what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from agentkit.errors import ProviderError
from agentkit.events import (
    Event,
    Finish,
    SourceEvent,
    Text,
    merge,
)
from agentkit.messages import AssistantMessage, MarkupPart, TextPart, ToolCall
from agentkit.processor import ProcessorConfig, ResponseProcessor, Turn
from agentkit.tool.declare import openapi_schema, xml_schema
from agentkit.tool.registry import ToolRegistry
from agentkit.toolspec import ToolSpec


class Tools:
    """The tools; `made` are the calls that reached them."""

    def __init__(self) -> None:
        self.made: list[tuple[Any, ...]] = []

    @openapi_schema
    async def add(self, a: int, b: int) -> int:
        """Add."""
        self.made.append(("add", a, b))
        return a + b

    @openapi_schema
    async def note(self, text: str, tag: str | None = None) -> str:
        """Take a note."""
        self.made.append(("note", text))
        return "noted"

    @openapi_schema
    async def ping(self) -> str:
        """Answer."""
        self.made.append(("ping",))
        return "pong"

    @openapi_schema
    @xml_schema(name="all-done")
    async def complete(self) -> str:
        """End the work."""
        self.made.append(("complete",))
        return "bye"


class Ran(NamedTuple):
    """What a response came to."""

    made: list[tuple[Any, ...]]
    text: str
    message: AssistantMessage
    events: list[Event]
    turn: Turn


HERMES = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'
INVOKE = (
    '<function_calls>\n<invoke name="add">\n<parameter name="a">1</parameter>\n<parameter name="b">2</parameter>\n'
    "</invoke>\n</function_calls>"
)
QWEN = (
    "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n</parameter>\n"
    "</function>\n</tool_call>"
)
GLM = (
    "<tool_call>add\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n<arg_key>b</arg_key>\n<arg_value>2</arg_value>\n"
    "</tool_call>"
)
KIMI = (
    "<|tool_calls_section_begin|><|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>"
    '{"a": 1, "b": 2}<|tool_call_end|><|tool_calls_section_end|>'
)
DEEPSEEK = (
    "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>add<｜tool▁sep｜>"
    '{"a": 1, "b": 2}<｜tool▁call▁end｜><｜tool▁calls▁end｜>'
)
MISTRAL = '[TOOL_CALLS] [{"name": "add", "arguments": {"a": 1, "b": 2}}]'
COMPACT = '[TOOL_CALLS]add[ARGS]{"a": 1, "b": 2}'
PYTHONIC = "[add(a=1, b=2)]"
BARE = '{"name": "add", "arguments": {"a": 1, "b": 2}}'
FENCE = f"```json\n{BARE}\n```"
CLINE = "<add>\n<a>1</a>\n<b>2</b>\n</add>"

WRITTEN = {
    "hermes": HERMES,
    "invoke": INVOKE,
    "qwen3_coder": QWEN,
    "glm45": GLM,
    "kimi_k2": KIMI,
    "deepseek_v31": DEEPSEEK,
    "mistral": MISTRAL,
    "mistral_compact": COMPACT,
    "pythonic": PYTHONIC,
    "bare JSON": BARE,
    "element": CLINE,
}


def cut(text: str, size: int | None) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)] if size else [text]


TOOLS = Tools()
REGISTRY = ToolRegistry(TOOLS)  # of the same tools, the parser remembers what opens a call in fifty formats


def played(events: Iterable[SourceEvent | Exception], offered: Sequence[ToolSpec] | None = None, **config: Any) -> Ran:
    """One response of a native model, and what became of it."""
    TOOLS.made = []
    ids = iter(range(10_000))

    async def source() -> Any:
        for event in events:
            await asyncio.sleep(0)
            if isinstance(event, Exception):
                raise event
            yield event

    async def main() -> Ran:
        processor = ResponseProcessor(REGISTRY, ProcessorConfig(**config), new_id=lambda: f"c{next(ids)}")
        turn = processor.process(source(), offered=offered)
        seen: list[Event] = []
        try:
            async for event in turn:
                seen.append(event)  # noqa: PERF401 - the events before an error count
        except ProviderError:
            pass
        assert [c.id for c in turn.message.calls] == [r.call_id for r in turn.results]
        return Ran(TOOLS.made, turn.message.text, turn.message, merge(seen), turn)

    return asyncio.run(main())


def told(text: str, *more: SourceEvent, **config: Any) -> Ran:
    """A response of this text, whole, in fives and in characters: all must come to the same and lose nothing."""
    first: Ran | None = None
    for size in (None, 1, 5):
        ran = played([*map(Text, cut(text, size)), *more, Finish("stop")], **config)
        assert written(ran.message) == text
        streamed = "".join(e.text for e in ran.events if isinstance(e, Text))
        assert streamed == ran.text
        first = first or ran
        assert (ran.made, ran.message) == (first.made, first.message)
        assert [e for e in ran.events if isinstance(e, SourceEvent)] == [
            e for e in first.events if isinstance(e, SourceEvent)
        ]
    assert first is not None
    return first


def written(message: AssistantMessage) -> str:
    """Every character of a message's text: conservation."""
    return "".join(
        p.text if isinstance(p, TextPart | MarkupPart) else p.raw
        for p in message.content
        if isinstance(p, TextPart | MarkupPart) or (isinstance(p, ToolCall) and p.format)
    )


def stays(text: str, **config: Any) -> None:
    """No call in it counts, and it is seen as it was written."""
    ran = told(text, **config)
    assert (ran.made, ran.text, ran.turn.results) == ([], text, ())


ADD = ToolRegistry(Tools()).specs(["add"])
CALLS = [ToolCall("c1", "add", {"a": 1, "b": 2}), ToolCall("c2", "add", {"a": 3, "b": 4})]
FENCED = {"json_fence", "tool_code"}  # two fences, or more than one call in a fence, are no whole reply
