"""The scenarios' tools, and how a scenario is played: whole, in 1 and 4 characters, under some 2-way splits, natively.

EXEC are the calls really made, RES the result messages, TEXT the visible text. Every cutting must give the same three.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from typing import Any, NamedTuple

from agentkit.errors import ErrorCode
from agentkit.events import Event, Finish, FinishReason, SourceEvent, Text
from agentkit.messages import AssistantMessage, ToolMessage
from agentkit.models.openai import ChatWire
from agentkit.models.wire import DONE
from agentkit.processor import ProcessorConfig, ResponseProcessor, Turn
from agentkit.tool.declare import openapi_schema, xml_schema
from agentkit.tool.registry import ToolRegistry

Call = tuple[Any, ...]
SOAK = int(os.environ.get("AGENTKIT_EXAMPLES", "0")) >= 100


class T:
    """The tools of the scenarios; `made` are the calls that reached them."""

    def __init__(self) -> None:
        self.made: list[Call] = []
        self.threads: list[str] = []

    def _made(self, *call: Any) -> str:
        self.made.append(call)
        return "done"

    @openapi_schema
    @xml_schema(
        tag_name="create-file",
        mappings=[
            {"param_name": "file_path", "node_type": "attribute", "path": "."},
            {"param_name": "file_contents", "node_type": "content", "path": "."},
        ],
    )
    async def create_file(self, file_path: str, file_contents: str) -> str:
        """Create a file.

        Args:
            file_path: where.
            file_contents: what.
        """
        return self._made("create_file", file_path, file_contents)

    @openapi_schema
    @xml_schema(name="str-replace", attributes=["file_path"], elements=["old_str", "new_str"])
    async def str_replace(self, file_path: str, old_str: str, new_str: str) -> str:
        """Replace text in a file."""
        return self._made("str_replace", file_path, old_str, new_str)

    @openapi_schema
    @xml_schema(name="web-search", attributes=["query", "summary", "num_results"])
    async def web_search(self, query: str, summary: bool = True, num_results: int = 20) -> str:
        """Search the web."""
        return self._made("web_search", query, summary, num_results)

    @openapi_schema
    @xml_schema(name="run", attributes=["folder", "timeout"], content="command")
    async def run(self, command: str, folder: str | None = None, timeout: int = 60) -> str:
        """Run a command."""
        return self._made("run", command, folder, timeout)

    @openapi_schema(terminates=True)
    @xml_schema(name="ask", attributes=["attachments"], content="text")
    async def ask(self, text: str, attachments: list[str] | None = None) -> str:
        """Ask the user."""
        return self._made("ask", text, attachments)

    @openapi_schema(terminates=True)
    @xml_schema(name="complete")
    async def complete(self) -> str:
        """End the work."""
        return self._made("complete")

    @openapi_schema
    async def add(self, a: int, b: int) -> int:
        """Add."""
        self._made("add", a, b)
        return a + b

    @openapi_schema
    async def total(self, numbers: list[int]) -> int:
        """Add them all."""
        self._made("total", numbers)
        return sum(numbers)

    @openapi_schema
    async def note(self, text: str) -> str:
        """Take a note."""
        return self._made("note", text)

    @openapi_schema
    async def slow(self, id: str, s: float) -> str:
        """Take a while."""
        self._made("slow", id, s)
        await asyncio.sleep(s)
        return id

    @openapi_schema
    def wait(self, id: str, s: float) -> str:
        """Take a while, as a plain function."""
        self.threads.append(threading.current_thread().name)
        self._made("wait", id, s)
        threading.Event().wait(s)
        return id

    @openapi_schema
    async def boom(self) -> str:
        """Fail."""
        self._made("boom")
        raise ValueError("no")

    @openapi_schema
    async def ping(self) -> str:
        """Answer."""
        return self._made("ping")


class Res(NamedTuple):
    """A result message: whose, its code, its text."""

    name: str
    error: ErrorCode | None
    text: str


class Ran(NamedTuple):
    """What playing a response came to."""

    made: list[Call]
    results: list[Res]
    text: str
    turn: Turn
    events: list[Event]

    @property
    def same(self) -> tuple[object, ...]:
        """What may not depend on how the response was cut."""
        return (self.made, self.results, self.text, self.turn.message, self.turn.results)


@cache
def registry_of(tool: object) -> ToolRegistry:
    """A registry with this one tool."""
    return ToolRegistry(tool)


def processor_of(tool: object, **config: Any) -> ResponseProcessor:
    """A processor that numbers its ids: c0, c1, and so on."""
    ids = count()
    return ResponseProcessor(registry_of(tool), ProcessorConfig(**config), new_id=lambda: f"c{next(ids)}")


async def streamed(events: Iterable[SourceEvent]) -> AsyncIterator[SourceEvent]:
    """A provider's stream that lets others work between its events."""
    for event in events:
        await asyncio.sleep(0)
        yield event


async def played(events: Iterable[SourceEvent], tool: Any = None, **config: Any) -> Ran:
    """One response, streamed, with the scenarios' tools or with another."""
    tool = tool or T()
    made: list[Call] = []
    if isinstance(tool, T):
        tool.made = made
    turn = processor_of(tool, **config).process(streamed(events))
    seen = [event async for event in turn]
    results = [Res(r.name, r.error, r.text) for r in turn.results]
    assert_paired(turn.message, turn.results)
    return Ran(made, results, turn.message.text, turn, seen)


def play(events: Iterable[SourceEvent], tool: Any = None, **config: Any) -> Ran:
    return asyncio.run(played(events, tool, **config))


def assert_paired(message: AssistantMessage, results: Sequence[ToolMessage]) -> None:
    """Every call has exactly one answer, in call order, and every id is its own."""
    assert [call.id for call in message.calls] == [result.call_id for result in results]
    assert len({call.id for call in message.calls}) == len(message.calls)


def cuttings(text: str) -> Iterator[list[str]]:
    """Whole, in characters, in fours, and cut in two at some twenty places; at every one in a soak."""
    yield [text]
    for size in (1, 4):
        yield [text[i : i + size] for i in range(0, len(text), size)]
    for at in range(1, len(text), 1 if SOAK else max(1, len(text) // 20)):
        yield [text[:at], text[at:]]


def everyway(sources: Iterable[Iterable[SourceEvent]], **config: Any) -> Ran:
    """Play a response in each of the ways it can come; all must come to the same."""

    async def all_ways() -> Ran:
        first: Ran | None = None
        tool = T()
        for source in sources:
            events = list(source)
            ran = await played(events, tool, **config)
            first = first or ran
            assert ran.same == first.same, events
        assert first is not None
        return first

    return asyncio.run(all_ways())


def text(said: str, *, finish: FinishReason = "stop", **config: Any) -> Ran:
    """A response of text, cut every way; its formats are `xml` and `invoke` unless named."""
    config.setdefault("formats", ("xml", "invoke"))
    return everyway(([*map(Text, chunks), Finish(finish)] for chunks in cuttings(said)), **config)


def delta(content: str | None = None, calls: Sequence[Mapping[str, Any]] = (), **choice: Any) -> dict[str, Any]:
    """One chunk of a chat completion."""
    body: dict[str, Any] = {"content": content} if content is not None else {}
    if calls:
        body["tool_calls"] = list(calls)
    return {
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": body, "finish_reason": None, **choice}],
    }


def chat(chunks: Iterable[Mapping[str, Any]]) -> list[SourceEvent]:
    """The events of a chat completion's chunks and its closing line, read by the real wire."""
    wire = ChatWire("openai")
    return [event for chunk in [*chunks, DONE] for event in wire.feed(chunk)] + wire.close()


def native(*calls: tuple[str, str], finish: str | None = "tool_calls", **config: Any) -> Ran:
    """The same calls natively, `(name, arguments as JSON text)`, the arguments cut every way."""

    def ways() -> Iterator[list[SourceEvent]]:
        longest = max(calls, key=lambda call: len(call[1]))
        for way in range(len(list(cuttings(longest[1])))):
            chunks = []
            for index, (name, arguments) in enumerate(calls):
                cut = list(cuttings(arguments))
                pieces = cut[way % len(cut)]
                head = {"index": index, "id": f"call_{index}", "function": {"name": name, "arguments": ""}}
                chunks.append(delta(calls=[head]))
                chunks += [delta(calls=[{"index": index, "function": {"arguments": piece}}]) for piece in pieces]
            yield chat([*chunks, delta(finish_reason=finish)])

    return everyway(ways(), **config)


def arguments(**values: Any) -> str:
    return json.dumps(values)
