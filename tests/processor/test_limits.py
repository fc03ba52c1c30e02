"""What is bounded: how many calls of a response are read, how much of an output; and how a tool is asked afterwards."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from itertools import chain, repeat
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit.errors import ProviderError
from agentkit.events import ArgumentDelta, CallEnd, CallStart, Event, Finish, SourceEvent, Text, ToolCompleted, Usage
from agentkit.messages import ImagePart, TextPart, ToolCall
from agentkit.processor import ProcessorConfig, ResponseProcessor, Turn, ask_outcome, sources
from agentkit.processor.error_results import cap
from agentkit.tool.declare import openapi_schema
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.result import ToolContext, ToolResult


async def note(text: str) -> str:
    """Note."""
    return text


def end(index: int) -> CallEnd:
    return CallEnd(index, ToolCall(f"c{index}", "note", {"text": str(index)}))


class Source:
    """A stream that says how far it was read and whether it was closed."""

    def __init__(self, events: Iterable[SourceEvent | Exception]) -> None:
        self.events = events
        self.read = 0
        self.closed = False

    async def __aiter__(self) -> AsyncIterator[SourceEvent]:
        for event in self.events:
            await asyncio.sleep(0)
            self.read += 1
            if isinstance(event, Exception):
                raise event
            yield event

    async def aclose(self) -> None:
        self.closed = True


def play(source: Any, **config: Any) -> tuple[Turn, list[Event]]:
    async def main() -> tuple[Turn, list[Event]]:
        turn = ResponseProcessor(ToolRegistry(note), ProcessorConfig(**config)).process(source)
        return turn, [event async for event in turn]

    return asyncio.run(main())


# ---------------------------------------------------------------- calls


def test_behind_the_last_call_only_the_usage_is_read() -> None:
    turn, events = play([Text("So "), end(0), Text("and"), end(1), Usage(7, 5), Finish("tool_calls")], max_calls=1)
    assert turn.message.content == (TextPart("So "), ToolCall("c0", "note", {"text": "0"}))
    assert [type(e).__name__ for e in events] == [
        "Text", "CallEnd", "Finish", "ToolStarted", "ToolCompleted",
    ]  # fmt: skip
    assert turn.usage == Usage(7, 5)
    assert turn.finish == Finish("tool_limit_reached")


def test_an_endless_stream_is_left_after_the_last_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "DRAIN", 0.01)
    source = Source(chain([end(0)], repeat(Text("x"))))
    turn, _ = play(source, max_calls=1)
    assert source.closed
    assert turn.usage == Usage()
    assert [r.text for r in turn.results] == ["0"]


def test_a_stream_that_goes_quiet_behind_the_last_call_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "DRAIN", 0.01)

    async def quiet() -> AsyncIterator[SourceEvent]:
        yield end(0)
        await asyncio.Event().wait()

    made, events = play(quiet(), max_calls=1)
    assert isinstance(events[-1], ToolCompleted)
    assert made.finish == Finish("tool_limit_reached")


def test_an_error_behind_the_last_call_is_no_matter() -> None:
    broken = ProviderError("lost", kind="connection", provider="openai")
    made, _ = play(Source([end(0), broken]), max_calls=1)
    assert [r.text for r in made.results] == ["0"]


def test_of_calls_that_are_written_at_the_same_time_the_first_ones_count() -> None:
    begun = [CallStart(0, "note", "c0"), CallStart(1, "note", "c1"), ArgumentDelta(1, "{"), ArgumentDelta(0, "{")]
    made, events = play([*begun, end(1), end(0), Finish("tool_calls")], max_calls=1)
    assert {e.index for e in events if isinstance(e, CallStart | ArgumentDelta | CallEnd)} == {0}
    assert [c.id for c in made.message.calls] == ["c0"]


def test_of_recovered_calls_too_only_so_many_run() -> None:
    written = '<tool_call>{"name": "note", "arguments": {"text": "x"}}</tool_call>\n'
    made, _ = play([Text(written * 3), Finish("stop")], max_calls=2)
    assert [r.text for r in made.results] == ["x", "x"]
    assert made.finish == Finish("tool_limit_reached")


# ---------------------------------------------------------------- outputs


LONG = "".join(f"line {i}\n" for i in range(1000))


@pytest.mark.parametrize(
    ("keep", "head", "tail"),
    [("head", "line 0\n", "left out …]\n"), ("tail", "\n[… ", "line 999\n"), ("both", "line 0\n", "line 999\n")],
)
def test_which_end_of_a_long_output_is_kept(keep: Any, head: str, tail: str) -> None:
    [part] = cap((TextPart(LONG),), 300, keep)
    assert isinstance(part, TextPart)
    assert len(part.text) == 300
    assert part.text.startswith(head)
    assert part.text.endswith(tail)
    assert "8,632 of 8,890 characters left out" in part.text


@given(st.integers(200, 2_000), st.integers(128, 1_999), st.sampled_from(["head", "tail", "both"]))
def test_the_mark_says_how_much_is_left_out(size: int, limit: int, keep: Any) -> None:
    [part] = cap((TextPart("x" * size),), limit, keep)
    assert isinstance(part, TextPart)
    told = re.search(r"\n\[… ([\d,]+) of ([\d,]+) characters left out …\]\n", part.text)
    assert len(part.text) <= limit if told else len(part.text) == size
    if told:
        left, whole = (int(number.replace(",", "")) for number in told.groups())
        assert (left + len(part.text) - len(told[0]), whole) == (size, size)


@pytest.mark.parametrize(("keep", "first", "last"), [("head", "a" * 300, ""), ("tail", "", "b" * 300)])
def test_of_two_texts_the_kept_end_is_kept_whole(keep: Any, first: str, last: str) -> None:
    image = ImagePart(url="https://example.org/i.png")
    kept = cap((TextPart("a" * 300), image, TextPart("b" * 300)), 300, keep)
    assert kept == tuple(p for p in (TextPart(first), image, TextPart(last)) if p != TextPart(""))


def test_a_tools_own_cap_goes_before_that_of_the_run() -> None:
    async def flood() -> str:
        """Say much."""
        return LONG

    async def main(**policy: Any) -> str:
        registry = ToolRegistry()
        registry.register_function(flood, **policy)
        config = ProcessorConfig(max_output=1000, keep="head")
        turn = ResponseProcessor(registry, config).process([CallEnd(0, ToolCall("c", "flood"))])
        async for _ in turn:
            pass
        return turn.results[0].text

    assert asyncio.run(main()).startswith("line 0\n")
    assert len(asyncio.run(main())) == 1000
    own = asyncio.run(main(max_output=300, keep="tail"))
    assert len(own) == 300
    assert own.endswith("line 999\n")


# ---------------------------------------------------------------- after a crash


class Bank:
    """Knows what it has paid."""

    @openapi_schema(reconcile="was_paid")
    def pay(self, amount: int) -> str:
        """Pay."""
        return "paid"

    def was_paid(self, arguments: dict[str, Any], context: ToolContext) -> str | None:
        return f"paid {arguments['amount']} for {context.idempotency_key}" if arguments["amount"] < 100 else None

    @openapi_schema(reconcile="was_sent")
    async def send(self, amount: int) -> str:
        """Send."""
        return "sent"

    async def was_sent(self, arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        if arguments["amount"] < 0:
            raise LookupError("no such payment")
        if not arguments["amount"]:
            raise SystemExit("closed")
        return ToolResult(error="it bounced")

    @openapi_schema
    def look(self, amount: int) -> str:
        """Look."""
        return "seen"


@pytest.mark.parametrize(
    ("tool", "amount", "told"),
    [
        ("pay", 5, ToolResult("paid 5 for c")),
        ("pay", 500, None),
        ("send", 5, ToolResult(error="it bounced")),
        (
            "send",
            -5,
            ToolResult(
                error="interrupted; its outcome could not be determined: LookupError: no such payment",
                code="interrupted",
            ),
        ),
        (
            "send",
            0,
            ToolResult(
                error="interrupted; its outcome could not be determined: SystemExit: closed", code="interrupted"
            ),
        ),
        ("look", 5, None),
    ],
)
def test_a_tool_is_asked_what_became_of_an_interrupted_call(tool: str, amount: int, told: ToolResult | None) -> None:
    bound = ToolRegistry(Bank()).tools[tool]
    assert asyncio.run(ask_outcome(bound, {"amount": amount}, ToolContext("c", tool))) == told
