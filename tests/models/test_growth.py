"""Twice as long a response takes about twice the time, on every wire, however odd the server that streams it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from growth import assert_linear, cpu_seconds

from agentkit.events import CallEnd, CallError
from agentkit.models.converse_wire import ConverseWire
from agentkit.models.gemini_wire import GeminiWire
from agentkit.models.messages_wire import MessagesWire
from agentkit.models.openai import ChatWire
from agentkit.models.responses import ResponsesWire
from agentkit.models.wire import Wire, WireEvent

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "string"}, "m": {"type": "integer"}}}
TOOLS = dict.fromkeys(("get", "get_weather", "ping", "a", "aa", "get_get"), SCHEMA)
ARGUMENTS = '{"n": "some words", "m": 12345}'

Stream = Callable[[int], Iterator[WireEvent]]


def seconds(wire: Wire, events: Iterator[WireEvent]) -> float:
    stream = list(events)
    out: list[object] = []

    def read() -> None:
        for event in stream:
            out.extend(wire.feed(event))
        out.extend(wire.close())

    spent = cpu_seconds(read)
    assert out
    return spent


# ---------------------------------------------------------------- chat completions


def chunk(*pieces: dict[str, Any], finish: str | None = None, **delta: Any) -> WireEvent:
    if pieces:
        delta["tool_calls"] = list(pieces)
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def piece(text: str | None = None, name: str | None = None, **fields: Any) -> dict[str, Any]:
    function = {k: v for k, v in (("name", name), ("arguments", text)) if v is not None}
    return {**{k: v for k, v in fields.items() if v is not None}, "function": function}


def cut(text: str, size: int = 8) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)] or [""]


def calls(texts: list[str], *, index: str = "own", id: str = "own", names: tuple[str, ...] = ("get",)) -> Stream:
    """Calls, each in these pieces; each with its own index and id, or as one says."""

    def stream(count: int) -> Iterator[WireEvent]:
        for at in range(count):
            for number, text in enumerate(texts):
                name = names[number] if number < len(names) else None
                named = {"own": None if number else f"c{at}", "none": None, "changing": f"c{at}.{number}"}[id]
                yield chunk(piece(text, name, index={"own": at, "zero": 0, "none": None}[index], id=named))
        yield chunk(finish="tool_calls")

    return stream


def one(text: Callable[[int], str], size: int, name: str | None = None, **fields: Any) -> Stream:
    """One call in very many pieces."""

    def stream(count: int) -> Iterator[WireEvent]:
        yield chunk(piece("", "get", index=0, id="c"))
        for part in cut(text(count), size):
            yield chunk(piece(part, name, **fields))
        yield chunk(finish="tool_calls")

    return stream


def of_events(make: Callable[[int], list[WireEvent]]) -> Stream:
    def stream(count: int) -> Iterator[WireEvent]:
        for at in range(count):
            yield from make(at)
        yield chunk(finish="tool_calls")

    return stream


def all_in_one_chunk(count: int) -> Iterator[WireEvent]:
    yield chunk(*(piece(ARGUMENTS, "get", index=at, id=f"c{at}") for at in range(count)), finish="tool_calls")


WHOLE, PIECES = [ARGUMENTS], cut(ARGUMENTS)
CHAT: dict[str, Stream] = {
    "in one piece each": calls(WHOLE),
    "in many pieces each": calls(PIECES),
    "all at index 0, in pieces": calls(PIECES, index="zero"),
    "without indexes": calls(WHOLE, index="none"),
    "changing ids at index 0": calls(PIECES, index="zero", id="changing"),
    "names in fragments": calls(["", "", *PIECES], names=("get", "_wea", "ther")),
    "names with each piece": calls(PIECES, names=("get",) * len(PIECES)),
    "unfinished at index 0": calls(['{"n": '], index="zero"),
    "all in one chunk": all_in_one_chunk,
    "one call in pieces": one(lambda count: json.dumps({"n": "words " * 4 * count}), 1),
    "one call in pieces, named in each": one(lambda count: json.dumps({"n": "words " * 4 * count}), 1, "get", index=0),
    "one call of many equal objects": one(lambda count: '{"n": 1}' * 10 * count, 8, "get", index=0, id="c"),
    "thinking": of_events(lambda at: [chunk(reasoning_content="Hm. "), chunk(content="So. ")] * 8),
    "thinking in details": of_events(
        lambda at: [chunk(reasoning_details=[{"type": "reasoning.text", "text": "Hm.", "index": at}])] * 8
    ),
    "text": of_events(lambda at: [chunk(content="Hm. ")] * 20),
}  # fmt: skip


def some(kinds: Iterable[str]) -> list[Any]:
    """All of them, three of four only in the soak."""
    return [pytest.param(kind, marks=pytest.mark.soak if n % 4 else ()) for n, kind in enumerate(kinds)]


@pytest.mark.share(6)
@pytest.mark.parametrize("kind", some(CHAT))
def test_chat(kind: str) -> None:
    def run(count: int) -> float:
        return seconds(ChatWire("server", TOOLS, TOOLS), CHAT[kind](count))

    assert_linear(run, 1_000)


# ---------------------------------------------------------------- Responses


def said(kind: str, **fields: Any) -> WireEvent:
    return {"type": f"response.{kind}", **fields}


def item(at: int, arguments: str) -> dict[str, Any]:
    call = {"type": "function_call", "id": f"fc{at}", "call_id": f"c{at}", "name": "get", "status": "completed"}
    return {**call, "arguments": arguments}


def completed(output: list[Any]) -> WireEvent:
    return said("completed", response={"status": "completed", "output": output})


def items(*, place: int | None = None, ids: bool = True) -> Stream:
    """Calls, each with its start, its pieces and its end."""

    def stream(count: int) -> Iterator[WireEvent]:
        for at in range(count):
            where = at if place is None else place
            named = {"item_id": f"fc{at}"} if ids else {}
            yield said("output_item.added", output_index=where, item=item(at, ""))
            for text in PIECES:
                yield said("function_call_arguments.delta", output_index=where, delta=text, **named)
            yield said("output_item.done", output_index=where, item=item(at, ARGUMENTS))
        yield completed([item(at, ARGUMENTS) for at in range(count)])

    return stream


def messages(count: int) -> Iterator[WireEvent]:
    for at in range(count):
        yield said("output_text.delta", output_index=at, content_index=0, item_id=f"m{at}", delta="Hm. ")
        words = {"type": "message", "id": f"m{at}", "content": [{"type": "output_text", "text": "Hm. "}]}
        yield said("output_item.done", output_index=at, item=words)
    yield completed([])


def one_part(count: int) -> Iterator[WireEvent]:
    for _ in range(4 * count):
        yield said("output_text.delta", output_index=0, content_index=0, item_id="m", delta="Hm. ")
        yield said("output_text.done", output_index=0, content_index=0, item_id="m", text="Hm. ")
    yield completed([])


def reasoning(count: int) -> Iterator[WireEvent]:
    for at in range(4 * count):
        yield said("reasoning_summary_part.added", output_index=0, summary_index=at, item_id="r")
        yield said("reasoning_summary_text.delta", output_index=0, summary_index=at, item_id="r", delta="Hm. ")
    yield completed([])


def deltas(count: int) -> Iterator[WireEvent]:
    yield said("output_item.added", output_index=0, item=item(0, ""))
    for part in cut(json.dumps({"n": "words " * 4 * count}), 1):
        yield said("function_call_arguments.delta", output_index=0, item_id="fc0", delta=part)
    yield completed([])


RESPONSES: dict[str, Stream] = {
    "calls": items(),
    "at place 0": items(place=0),
    "without ids of items": items(ids=False),
    "deltas": deltas,
    "messages": messages,
    "one part": one_part,
    "reasoning": reasoning,
}


@pytest.mark.share(7)
@pytest.mark.parametrize("kind", some(RESPONSES))
def test_responses(kind: str) -> None:
    def run(count: int) -> float:
        return seconds(ResponsesWire("server", TOOLS), RESPONSES[kind](count))

    assert_linear(run, 1_000)


# ---------------------------------------------------------------- Messages


def block(at: int, **fields: Any) -> WireEvent:
    return {"type": "content_block_start", "index": at, "content_block": fields}


def delta(at: int, **fields: Any) -> WireEvent:
    return {"type": "content_block_delta", "index": at, "delta": fields}


END: list[WireEvent] = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]


def blocks(*, place: int | None = None, given: bool = False) -> Stream:
    """Calls, each with its input in its start or in pieces."""

    def stream(count: int) -> Iterator[WireEvent]:
        for at in range(count):
            where = at if place is None else place
            yield block(where, type="tool_use", id=f"c{at}", name="get", input={"n": "x"} if given else {})
            for text in [] if given else PIECES:
                yield delta(where, type="input_json_delta", partial_json=text)
            yield {"type": "content_block_stop", "index": where}
        yield from END

    return stream


def with_start(kind: str, of: str, **first: Any) -> Stream:
    """Many deltas of one block."""

    def stream(count: int) -> Iterator[WireEvent]:
        yield block(0, type=kind, **first)
        for at in range(20 * count):
            yield delta(0, type=f"{of}_delta", **{of: f"Hm {at}."})
        yield {"type": "content_block_stop", "index": 0}
        yield from END

    return stream


def input_in_pieces(count: int) -> Iterator[WireEvent]:
    yield block(0, type="tool_use", id="c", name="get", input={})
    for part in cut(json.dumps({"n": "words " * 4 * count}), 1):
        yield delta(0, type="input_json_delta", partial_json=part)
    yield {"type": "content_block_stop", "index": 0}
    yield from END


MESSAGES: dict[str, Stream] = {
    "calls": blocks(),
    "whole": blocks(given=True),
    "at place 0": blocks(place=0),
    "input in pieces": input_in_pieces,
    "text in pieces": with_start("text", "text", text=""),
    "signature in pieces": with_start("thinking", "signature", thinking="a"),
    "compaction in pieces": with_start("compaction", "content", content=""),
}


@pytest.mark.share(5)
@pytest.mark.parametrize("kind", some(MESSAGES))
def test_messages(kind: str) -> None:
    def run(count: int) -> float:
        return seconds(MessagesWire("anthropic", TOOLS), MESSAGES[kind](count))

    assert_linear(run, 1_000)


# ---------------------------------------------------------------- Gemini


def candidate(*parts: dict[str, Any], reason: str | None = None) -> WireEvent:
    end = {"finishReason": reason} if reason else {}
    return {"candidates": [{"content": {"parts": list(parts)}, **end}]}


def parts(*each: dict[str, Any], together: bool = False) -> Stream:
    """Parts, each in an event of its own, or all in one."""

    def stream(count: int) -> Iterator[WireEvent]:
        if together:
            yield candidate(*each * count)
        else:
            yield from (candidate(one) for _ in range(count) for one in each)
        yield candidate(reason="STOP")

    return stream


CALL = {"functionCall": {"name": "get", "args": {"n": "some words", "m": 12345}}, "thoughtSignature": "QUJD"}

GEMINI: dict[str, Stream] = {
    "calls": parts(CALL),
    "calls in one event": parts(CALL, together=True),
    "text": parts(*[{"text": "Hm. "}] * 20),
    "thinking": parts(*[{"text": "Hm. ", "thought": True}, {"text": "So. ", "thoughtSignature": "QUJD"}] * 8),
    "code": parts({"executableCode": {"language": "PYTHON", "code": "1"}}, {"codeExecutionResult": {"output": "1"}}),
}


@pytest.mark.share(5)
@pytest.mark.parametrize("kind", some(GEMINI))
def test_gemini(kind: str) -> None:
    def run(count: int) -> float:
        return seconds(GeminiWire("gemini", TOOLS), GEMINI[kind](count))

    assert_linear(run, 1_000)


# ---------------------------------------------------------------- Converse


def converse(kind: str, at: int, **fields: Any) -> WireEvent:
    return {f"contentBlock{kind}": {"contentBlockIndex": at, **fields}}


CONVERSE_END: list[WireEvent] = [{"messageStop": {"stopReason": "tool_use"}}, {"metadata": {"usage": {}}}]


def uses(count: int) -> Iterator[WireEvent]:
    for at in range(count):
        yield converse("Start", at, start={"toolUse": {"toolUseId": f"c{at}", "name": "get"}})
        yield from (converse("Delta", at, delta={"toolUse": {"input": text}}) for text in PIECES)
        yield converse("Stop", at)
    yield from CONVERSE_END


def one_block(*deltas: dict[str, Any]) -> Stream:
    """Very many deltas of one block."""

    def stream(count: int) -> Iterator[WireEvent]:
        yield from (converse("Delta", 0, delta=one) for _ in range(10 * count) for one in deltas)
        yield converse("Stop", 0)
        yield from CONVERSE_END

    return stream


CONVERSE: dict[str, Stream] = {
    "calls": uses,
    "text": one_block({"text": "Hm. "}, {"text": "So. "}),
    "thinking": one_block({"reasoningContent": {"text": "Hm. "}}),
    "signature in pieces": one_block({"reasoningContent": {"signature": "QUJD"}}),
    "encrypted in pieces": one_block({"reasoningContent": {"redactedContent": b"some bytes"}}),
}


@pytest.mark.share(5)
@pytest.mark.parametrize("kind", some(CONVERSE))
def test_converse(kind: str) -> None:
    def run(count: int) -> float:
        return seconds(ConverseWire("bedrock", TOOLS), CONVERSE[kind](count))

    assert_linear(run, 1_000)


def test_the_many_calls_are_read() -> None:
    for wire, events in (
        (ChatWire("server", TOOLS, TOOLS), CHAT["in many pieces each"](1_000)),
        (ResponsesWire("server", TOOLS), RESPONSES["calls"](1_000)),
        (MessagesWire("anthropic", TOOLS), MESSAGES["calls"](1_000)),
        (GeminiWire("gemini", TOOLS), GEMINI["calls"](1_000)),
        (ConverseWire("bedrock", TOOLS), CONVERSE["calls"](1_000)),
    ):
        out = [made for event in events for made in wire.feed(event)] + wire.close()
        assert [e.index for e in out if isinstance(e, CallEnd | CallError)] == list(range(1_000))
        assert sum(isinstance(e, CallEnd) for e in out) == 1_000
