"""Usage as servers report it: whatever is wrong with the counts, nothing that was spent is lost, and no cost falls."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit.agent import Agent
from agentkit.agent.limits import Budget, Price
from agentkit.events import Usage
from agentkit.models import messages_wire
from agentkit.models.messages_wire import MessagesWire
from agentkit.models.openai import ChatWire
from agentkit.models.wire import openai_usage
from agentkit.testing import Replay

COUNT = st.integers(0, 2_000)
WRITTEN = st.one_of(
    COUNT, COUNT.map(float), st.none(), st.sampled_from([-1, 0.5, "7", [], {}, float("nan"), float("inf")])
)
"""A count as a server may write it."""


def chat(prompt: Any, reply: Any, cached: Any, written: Any, thought: Any, total: Any) -> Mapping[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": reply,
        "total_tokens": total,
        "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
        "completion_tokens_details": {"reasoning_tokens": thought},
    }


def responses(prompt: Any, reply: Any, cached: Any, written: Any, thought: Any, total: Any) -> Mapping[str, Any]:
    return {
        "input_tokens": prompt,
        "output_tokens": reply,
        "total_tokens": total,
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
        "output_tokens_details": {"reasoning_tokens": thought},
    }


def messages(prompt: Any, reply: Any, cached: Any, written: Any, thought: Any, total: Any) -> Mapping[str, Any]:
    return {
        "input_tokens": prompt,
        "output_tokens": reply,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
        "output_tokens_details": {"thinking_tokens": thought},
    }


WIRES: dict[str, tuple[Callable[..., Mapping[str, Any]], Callable[[Mapping[str, Any]], Usage]]] = {
    "chat": (chat, lambda usage: openai_usage(usage, "prompt", "completion")),
    "responses": (responses, lambda usage: openai_usage(usage, "input", "output")),
    "messages": (messages, messages_wire.usage_of),
}


def meant(count: Any) -> int:
    return int(count) if isinstance(count, int | float) and count >= 1 and count % 1 == 0 else 0


@pytest.mark.parametrize("wire", WIRES)
@given(st.tuples(WRITTEN, WRITTEN, WRITTEN, WRITTEN, WRITTEN, WRITTEN))
def test_usage_is_consistent_and_loses_nothing(wire: str, counts: Sequence[Any]) -> None:
    written, read = WIRES[wire]
    usage = read(written(*counts))
    prompt, reply, cached, stored, thought, total = map(meant, counts)
    assert all(type(count) is int and count >= 0 for count in usage)
    assert usage.input_tokens >= max(prompt, cached + stored) == max(prompt, usage[2] + usage[3])
    assert usage.output_tokens >= max(reply, thought) == max(reply, usage.reasoning_tokens)
    if prompt and wire != "messages":
        assert usage.input_tokens + usage.output_tokens >= total


@pytest.mark.parametrize("wire", WIRES)
@given(COUNT, COUNT, st.data())
def test_sound_counts_are_unchanged(wire: str, prompt: int, reply: int, data: st.DataObject) -> None:
    cached = data.draw(st.integers(0, prompt))
    stored = data.draw(st.integers(0, prompt - cached))
    thought = data.draw(st.integers(0, reply))
    written, read = WIRES[wire]
    beside = prompt - cached - stored if wire == "messages" else prompt
    usage = read(written(beside, reply, cached, stored, thought, prompt + reply))
    assert usage == Usage(prompt, reply, cached, stored, thought)


@given(st.tuples(COUNT, COUNT, COUNT, COUNT, COUNT))
def test_no_usage_costs_less_than_nothing(counts: tuple[int, int, int, int, int]) -> None:
    price = Price(3, 15, cached=0.3)
    usage = Usage(*counts)
    assert price.of(usage) >= price.of(usage._replace(input_tokens=0)) >= 0


KNOWN = {
    "reasoning beside the reply, as xAI": (
        chat(1_000, 10, 0, 0, 100_000, 101_010),
        Usage(1_000, 100_010, 0, 0, 100_000),
    ),
    "the same without a total": (chat(1_000, 10, 0, 0, 100_000, None), Usage(1_000, 100_010, 0, 0, 100_000)),
    "thinking only in the total, as Gemini": (chat(1_000, 10, 0, 0, None, 101_010), Usage(1_000, 100_010)),
    "cached tokens beside the prompt": (chat(1_000, 10, 5_000, 0, 0, 1_010), Usage(6_000, 10, 5_000)),
    "floats": (chat(1_000.0, 100_000.0, 4.0, 0, 0, 101_000.0), Usage(1_000, 100_000, 4)),
    "a total of less": (chat(1_000, 10, 0, 0, 0, 5), Usage(1_000, 10)),
    "a total alone": (chat(None, None, 0, 0, 0, 500), Usage()),
}


@pytest.mark.parametrize("shape", KNOWN)
def test_shapes_of_servers(shape: str) -> None:
    reported, usage = KNOWN[shape]
    assert openai_usage(reported, "prompt", "completion") == usage


# ---------------------------------------------------------------- several reports of one response


def of_message(start: Mapping[str, Any], *deltas: Mapping[str, Any] | None) -> Usage:
    wire = MessagesWire("anthropic")
    wire.feed({"type": "message_start", "message": {"usage": start}})
    for usage in deltas:
        wire.feed({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage})
    [usage] = [event for event in wire.close() if isinstance(event, Usage)]
    return usage


def test_a_message_is_counted_by_what_each_report_says() -> None:
    start = {"input_tokens": 1_000, "output_tokens": 1, "cache_read_input_tokens": 500}
    assert of_message(start, {"output_tokens": 50}) == Usage(1_500, 50, 500)
    assert of_message(start, {"output_tokens": 20}, {"output_tokens": 50}) == Usage(1_500, 50, 500)
    assert of_message({"input_tokens": 0, "output_tokens": 0}, {**start, "output_tokens": 50}) == Usage(1_500, 50, 500)


SPENT = st.tuples(*[COUNT] * 5).map(lambda counts: messages(*counts, None))


def summed(parts: Sequence[Mapping[str, Any]]) -> Usage:
    return Usage(*(sum(counts) for counts in zip(*map(messages_wire.usage_of, parts), strict=True)))


@given(st.lists(SPENT, min_size=1, max_size=3), SPENT, st.booleans())
def test_all_that_a_message_took_is_counted(
    compactions: list[Mapping[str, Any]], said: Mapping[str, Any], in_total: bool
) -> None:
    """Without the compactions at the top, as Anthropic, or with them, as servers between."""
    parts = [*compactions, said]
    total = summed(parts)
    cached, written = total.cached_tokens, total.cache_write_tokens
    prompt = total.input_tokens - cached - written
    top = messages(prompt, total.output_tokens, cached, written, total.reasoning_tokens, None) if in_total else said
    kinds = ["compaction"] * len(compactions) + ["message"]
    usage = {**top, "iterations": [{"type": kind, **part} for kind, part in zip(kinds, parts, strict=True)]}
    assert of_message({"input_tokens": said["input_tokens"]}, usage) == total
    body = {"type": "message", "content": [], "stop_reason": "end_turn", "usage": usage}
    wire = MessagesWire("anthropic")
    assert [e for event in messages_wire.events_of(body) for e in wire.feed(event)] == []
    assert total in wire.close()


@given(SPENT, st.lists(st.one_of(SPENT, st.none(), st.sampled_from([7, {}, {"input_tokens": "7"}])), max_size=3))
def test_no_part_of_a_message_makes_it_less(top: Mapping[str, Any], parts: list[Any]) -> None:
    alone, usage = messages_wire.usage_of(top), messages_wire.usage_of({**top, "iterations": parts})
    assert usage.input_tokens >= max(alone.input_tokens, usage.cached_tokens + usage.cache_write_tokens)
    assert usage.output_tokens >= max(alone.output_tokens, usage.reasoning_tokens)


def test_a_compaction_by_the_provider_is_counted() -> None:
    """Source: Anthropic, Compaction, "Understanding usage"."""
    said = {"input_tokens": 23_000, "output_tokens": 1_000}
    compaction = {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500}
    usage = {**said, "iterations": [compaction, {"type": "message", **said}]}
    assert of_message({"input_tokens": 23_000}, usage) == Usage(203_000, 4_500)


def test_zeros_after_counts_count_nothing() -> None:
    start = {"input_tokens": 1_000, "output_tokens": 1, "cache_read_input_tokens": 500}
    zeros = {"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 50}
    assert of_message(start, zeros) == Usage(1_500, 50, 500)
    assert of_message(start, zeros, {"output_tokens": 0}) == Usage(1_500, 50, 500)
    wire = ChatWire("openai")
    for usage in (chat(1_000, 50, 9, 0, 0, 1_050), chat(0, 60, 0, 0, 0, 0), chat(0, 0, 0, 0, 0, 0)):
        wire.feed({"choices": [], "usage": usage})
    assert [event for event in wire.close() if isinstance(event, Usage)] == [Usage(1_000, 60, 9)]


def test_what_is_counted_before_the_reply_is_not_the_reply() -> None:
    """`message_start` counts what was written before it: 1, as a rule."""
    assert of_message({"input_tokens": 1_000, "output_tokens": 1}, None) == Usage(1_000)
    assert of_message({"input_tokens": 1_000, "output_tokens": 1}, {}) == Usage(1_000)


# ---------------------------------------------------------------- budgets hold


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def completion(at: int, usage: Mapping[str, Any]) -> Any:
    function = {"name": "add", "arguments": json.dumps({"a": at, "b": 1})}
    call = {"id": f"c{at}", "function": function}
    return {"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}], "usage": usage}


def message(at: int, start: Mapping[str, Any], end: Mapping[str, Any] | None) -> str:
    call = {"type": "tool_use", "id": f"c{at}", "name": "add", "input": {"a": at, "b": 1}}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"usage": start}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "word " * 20_000}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": call},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, **({} if end is None else {"usage": end})},
        {"type": "message_stop"},
    ]
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


TOKENS = Budget(tokens=50_000)
COST = Budget(cost=2, prices={"m": Price(3, 15, cached=0.3)})
SPENDING: dict[str, tuple[str, Callable[[int], Any], Budget, int]] = {
    **{
        f"{shape}, {name}": ("openai:m", lambda at, usage=usage: completion(at, usage), budget, most)  # type: ignore[misc]
        for shape, (usage, _) in KNOWN.items()
        if "total of" not in shape and "total alone" not in shape and "cached" not in shape
        for name, budget, most in (("tokens", TOKENS, 1), ("cost", COST, 2))
    },
    "cached tokens beside the prompt": (
        "openai:m",
        lambda at: completion(at, chat(1_000, 100_000, 1_000_000, 0, 0, 101_000)),
        COST,
        2,
    ),
    "no usage at a message's end": (
        "anthropic:m",
        lambda at: message(at, {"input_tokens": 100, "output_tokens": 1}, None),
        TOKENS,
        3,
    ),
    "a compaction by the provider": (
        "anthropic:m",
        lambda at: message(at, {"input_tokens": 100}, {"iterations": [{"type": "compaction", "input_tokens": 30_000}]}),
        TOKENS,
        2,
    ),
    "no input at a message's end": (
        "anthropic:m",
        lambda at: message(at, {"input_tokens": 30_000, "output_tokens": 1}, {"input_tokens": 0, "output_tokens": 5}),
        TOKENS,
        2,
    ),
}


@pytest.mark.parametrize("shape", SPENDING)
def test_a_budget_ends_the_run(shape: str) -> None:
    name, response, budget, most = SPENDING[shape]
    tape = Replay([response(at) for at in range(8)])
    stream = name.startswith("anthropic")
    result = Agent(tape.model(name), [add], budget=budget, max_turns=6, stream=stream).run_sync("Go.")
    assert result.finish in ("token_budget", "cost_budget")
    assert result.turns <= most


def test_a_whole_message_has_its_usage() -> None:
    body = {"type": "message", "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn"}
    body["usage"] = {"input_tokens": 3, "output_tokens": 2}
    result = Agent(Replay([body]).model("anthropic:m"), stream=False, budget=TOKENS).run_sync("Go.")
    assert (result.usage, result.estimated) == (Usage(3, 2), False)
