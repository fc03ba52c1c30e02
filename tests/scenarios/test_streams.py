"""S16 to S19 and S25: native streams, damage, and reasoning, text and both kinds of call in one response."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from scenario_kit import Ran, T, arguments, chat, cuttings, delta, everyway, native, played, text

from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallStart,
    Finish,
    ProviderBlock,
    SourceEvent,
    Text,
    Thinking,
    ToolStarted,
)
from agentkit.messages import AssistantMessage, MarkupPart, Message, TextPart, ThinkingPart, ToolCall, user
from agentkit.models.messages_body import anthropic_messages
from agentkit.models.openai import chat_messages

FILE = '<create-file file_path="a.txt">hi</create-file>'


# ---------------------------------------------------------------- S16: a call that was cut


def test_s16_an_unfinished_call_never_executes() -> None:
    ran = text('<create-file file_path="a.txt">half of it', finish="length")
    assert ran.made == []
    [result] = ran.results
    assert (result.name, result.error) == ("create_file", "truncated_call")
    assert "file_contents" in result.text
    assert ran.turn.finish == Finish("length")


def test_s16_natively_too() -> None:
    ran = native(("create_file", '{"file_path": "a.txt", "file_contents": "half'), finish="length")
    assert ran.made == []
    assert [r.error for r in ran.results] == ["truncated_call"]


# ---------------------------------------------------------------- S17: native streaming


def interleaved(first: str, second: str, finish: str | None) -> list[dict[str, Any]]:
    """Two calls, their arguments in 1-character pieces, turn about."""
    chunks = [
        delta(calls=[{"index": 0, "id": "x", "function": {"name": "note", "arguments": ""}}]),
        delta(calls=[{"index": 1, "id": "y", "function": {"name": "add", "arguments": ""}}]),
    ]
    for a, b in itertools.zip_longest(first, second):
        if a is not None:
            chunks.append(delta(calls=[{"index": 0, "function": {"arguments": a}}]))
        if b is not None:
            chunks.append(delta(calls=[{"index": 1, "function": {"arguments": b}}]))
    return [*chunks, delta(finish_reason=finish)]


@pytest.mark.parametrize("finish", ["tool_calls", "stop", None])
def test_s17_interleaved_calls_run_once_each_in_the_order_of_their_index(finish: str | None) -> None:
    ran = everyway([chat(interleaved(arguments(text="a"), arguments(a=1, b=2), finish))])
    assert ran.made == [("note", "a"), ("add", 1, 2)]
    assert [(r.name, r.error, r.text) for r in ran.results] == [("note", None, "done"), ("add", None, "3")]


def pieces(*calls: Sequence[dict[str, Any]], finish: str | None = "tool_calls") -> Ran:
    return everyway([chat([*(delta(calls=list(call)) for call in calls), delta(finish_reason=finish)])])


def test_s17_the_id_repeated_on_later_deltas() -> None:
    ran = pieces(
        [{"index": 0, "id": "x", "function": {"name": "note", "arguments": '{"text"'}}],
        [{"index": 0, "id": "x", "function": {"arguments": ': "a"}'}}],
    )
    assert ran.made == [("note", "a")]


def test_s17_no_index_but_ids_of_their_own() -> None:
    ran = pieces(
        [{"id": "x", "function": {"name": "note", "arguments": '{"text": "a"}'}}],
        [{"id": "y", "function": {"name": "note", "arguments": '{"text": "b"}'}}],
    )
    assert ran.made == [("note", "a"), ("note", "b")]


def test_s17_no_arguments_at_all() -> None:
    assert native(("ping", "")).made == [("ping",)]


def test_s17_a_placeholder_before_the_arguments_does_not_run() -> None:
    ran = pieces(
        [{"index": 0, "id": "x", "function": {"name": "add", "arguments": "{}"}}],
        [{"index": 0, "function": {"arguments": '{"a": 1, "b": 2}'}}],
    )
    assert ran.made == [("add", 1, 2)]
    assert [r.error for r in ran.results] == [None]


# ---------------------------------------------------------------- S18 and S19: broken JSON


def test_s18_broken_json_beside_a_good_call() -> None:
    ran = native(("note", '{"text": "a'), ("note", '{"text": "b"}'), finish="stop")
    assert ran.made == [("note", "b")]
    assert [r.error for r in ran.results] == ["invalid_json", None]
    assert "position" in ran.results[0].text
    assert [(c.id, dict(c.arguments)) for c in ran.turn.message.calls] == [("call_0", {}), ("call_1", {"text": "b"})]


def test_s18_the_next_request_is_valid() -> None:
    ran = native(("note", '{"text": "a'), ("note", '{"text": "b"}'), finish="stop")
    sent = chat_messages([user("go"), ran.turn.message, *ran.turn.results], "openai")
    assert [m["role"] for m in sent] == ["user", "assistant", "tool", "tool"]
    assert [c["id"] for c in sent[1]["tool_calls"]] == [m["tool_call_id"] for m in sent[2:]]


def test_s19_a_repair_never_changes_a_string() -> None:
    ran = native(("create_file", '{"file_path":"a.c","file_contents":"{ a(); } { b(); } int v[]={1,2,};",}'))
    assert ran.made in ([], [("create_file", "a.c", "{ a(); } { b(); } int v[]={1,2,};")])
    assert len(ran.results) == 1


# ---------------------------------------------------------------- S25: everything in one response


def mixed() -> Iterator[list[SourceEvent]]:
    """Reasoning that quotes a call, text, an XML call, a native call; text and arguments cut every way."""
    for chunks in cuttings(f"Answer {FILE}"):
        for said in ([arguments(text="n")], list(arguments(text="n"))):
            yield [
                Thinking("I could write <ask>q?</ask>"),
                *map(Text, chunks),
                CallStart(0, "note", "call_n"),
                *(ArgumentDelta(0, piece) for piece in said),
                CallEnd(0, ToolCall("call_n", "note", {"text": "n"}, raw=arguments(text="n"))),
                Finish("tool_calls"),
            ]


def test_s25_text_and_native_calls_run_in_stream_order() -> None:
    ran = everyway(mixed(), formats="xml")
    assert ran.made == [("create_file", "a.txt", "hi"), ("note", "n")]
    assert ran.text == "Answer "
    assert [r.error for r in ran.results] == [None, None]
    assert ran.turn.message == AssistantMessage(
        (
            ThinkingPart("I could write <ask>q?</ask>"),
            TextPart("Answer "),
            ToolCall("c0", "create_file", {"file_path": "a.txt", "file_contents": "hi"}, "xml", FILE),
            ToolCall("call_n", "note", {"text": "n"}, None, '{"text": "n"}'),
        )
    )


def test_s25_with_native_alone_xml_stays_text() -> None:
    ran = everyway(mixed(), formats=())
    assert ran.made == [("note", "n")]
    assert ran.text == f"Answer {FILE}"


def test_s25_with_xml_alone_the_native_call_is_denied() -> None:
    ran = everyway(mixed(), formats="xml", native=False)
    assert ran.made == [("create_file", "a.txt", "hi")]
    assert [r.error for r in ran.results] == [None, "denied"]
    assert "xml" in ran.results[1].text


def test_s25_the_first_call_is_started_before_the_second_has_arrived() -> None:
    ran = asyncio.run(played(next(mixed()), formats="xml", execute="stream"))
    kinds = [type(e) for e in ran.events]
    assert kinds.index(ToolStarted) < kinds.index(ArgumentDelta, kinds.index(CallEnd))


def test_s25_what_is_kept_goes_back_to_both_providers() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    source = [Thinking("hm"), ProviderBlock("anthropic", thinking, True), *next(mixed())[1:]]
    ran = asyncio.run(played(source, T(), formats="xml"))
    conversation: list[Message] = [user("go"), ran.turn.message, *ran.turn.results]
    openai = chat_messages(conversation, "openai")
    assert [c["function"]["name"] for c in openai[1]["tool_calls"]] == ["create_file", "note"]
    assert [m["tool_call_id"] for m in openai[2:]] == ["c0", "call_n"]
    blocks = anthropic_messages(conversation, "anthropic")
    assert [b["type"] for b in blocks[1]["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert blocks[1]["content"][0] == thinking
    assert [b["tool_use_id"] for b in blocks[2]["content"]] == ["c0", "call_n"]


def test_thinking_tags_in_text_hold_no_calls() -> None:
    ran = text(f"<think>maybe {FILE}</think>Answer {FILE}")
    assert ran.made == [("create_file", "a.txt", "hi")]
    assert ran.text == "Answer "
    assert ran.turn.message.content[:3] == (
        MarkupPart("<think>"),
        ThinkingPart(f"maybe {FILE}"),
        MarkupPart("</think>"),
    )


def test_a_response_that_starts_inside_thinking() -> None:
    ran = text(f"maybe {FILE}</think>Answer {FILE}", starts_thinking=True)
    assert ran.made == [("create_file", "a.txt", "hi")]
    assert ran.text == "Answer "
