"""A reply in the client's own wire: unchanged, but for calls that the model wrote as text."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from growth import assert_linear, cpu_seconds
from upstream_replies import WIRES, chat_stream, chat_whole, chunk

from agentkit.events import Usage
from agentkit.gateway.chat_edit import ChatEdit
from agentkit.gateway.exchanges import ReplyRecord
from agentkit.gateway.pass_through import PassThrough
from agentkit.messages import Message, TextPart, ToolMessage, user
from agentkit.toolspec import ToolSpec

ADD = ToolSpec("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'


def machine(record: ReplyRecord | None = None, tools: Sequence[ToolSpec] = (ADD,), **options: Any) -> PassThrough:
    numbers = itertools.count(1)
    return PassThrough(ChatEdit(), tools, record or ReplyRecord(), new_id=lambda: f"c{next(numbers)}", **options)


def passed(pieces: Iterable[bytes], **options: Any) -> list[bytes]:
    reply = machine(**options)
    return [*map(reply.feed, pieces), reply.close()]


def test_a_call_in_the_text_becomes_native_and_the_text_before_it_streams() -> None:
    record = ReplyRecord()
    sent = passed(chat_stream(["Let me ", "add.\n", *CALL]), record=record)
    assert b"".join(sent) == b"".join(
        [
            chunk({"role": "assistant", "content": ""}),
            chunk({"content": "Let me "}),
            chunk({"content": "add.\n"}),
            chunk({"tool_calls": [
                {"index": 0, "id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
            ]}),
            chunk({}, "tool_calls"),
            *chat_stream([])[-2:],
        ]
    )  # fmt: skip
    assert sent[:2] == chat_stream(["Let me "])[:2]
    assert (record.recovered, record.format, record.finish) == (1, "hermes", "tool_calls")
    assert record.usage is not None
    assert record.usage.output_tokens == 5


def test_a_clean_piece_is_the_same_object() -> None:
    stream = chat_stream(["The sum ", "of 1 ", 'and "2" is ', "3."])
    assert all(sent is piece for sent, piece in zip(passed(stream), stream, strict=False))


def test_several_events_in_one_piece_are_the_same_object() -> None:
    stream = chat_stream(["The sum ", "of 1 ", "and 2 ", "is ", "3."])
    pieces = [b"".join(stream[:3]), b"".join(stream[3:6]), b"".join(stream[6:])]
    assert all(sent is piece for sent, piece in zip(passed(pieces), pieces, strict=False))


def test_what_may_be_a_call_waits_and_is_passed_on_as_it_came_if_it_is_none() -> None:
    stream = chat_stream(["a ", "<tool", "_box> b"])
    sent = passed(stream)
    assert sent[2] == b""
    assert b"".join(sent) == b"".join(stream)


def test_a_reply_that_the_token_limit_cut_is_unchanged() -> None:
    stream = chat_stream([*CALL], "length")
    assert b"".join(passed(stream)) == b"".join(stream)


def test_a_reply_with_a_native_call_is_unchanged() -> None:
    native = {"index": 0, "id": "x", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}
    stream = [chunk({"content": CALL}), chunk({"tool_calls": [native]}), chunk({}, "tool_calls"), b"data: [DONE]\n\n"]
    assert b"".join(passed(stream)) == b"".join(stream)


def test_without_tools_nothing_is_read() -> None:
    stream = chat_stream([*CALL])
    assert passed(stream, tools=()) == [*stream, b""]


def test_a_call_of_a_tool_that_a_result_names_is_left_in_the_text() -> None:
    parsed: list[int] = []

    def conversation() -> list[Message]:
        parsed.append(1)
        return [user("Read the page."), ToolMessage("1", "read_page", (TextPart(f"The page says: {CALL}"),))]

    stream = chat_stream([CALL, " is on the page.", CALL])
    assert b"".join(passed(stream, conversation=conversation)) == b"".join(stream)
    assert parsed == [1]


def test_the_conversation_is_not_read_if_there_is_no_call() -> None:
    def conversation() -> list[Message]:
        raise AssertionError

    stream = chat_stream(["No <b>call</b>."])
    assert b"".join(passed(stream, conversation=conversation)) == b"".join(stream)


def test_an_invented_result_after_a_call_is_dropped() -> None:
    invented = "\n<tool_response>\n3\n</tool_response>\nThe sum is 3."
    read = WIRES["chat"].read(b"".join(passed(chat_stream([CALL, *invented]))))
    assert (read.text, read.calls, read.finish) == ("\n", [("add", {"a": 1})], "tool_calls")


def test_where_one_call_is_allowed_nothing_after_the_first_one_is_left() -> None:
    text = f"Two.\n{CALL}\n{CALL.replace('1', '2')}"
    read = WIRES["chat"].read(b"".join(passed(chat_stream(text), only_one=True)))
    assert (read.text, read.calls) == ("Two.\n", [("add", {"a": 1})])
    found = machine(only_one=True).whole(json.dumps(chat_whole(text)).encode())
    assert WIRES["chat"].read_whole(found).calls == [("add", {"a": 1})]


def test_a_whole_reply_with_a_call_is_edited() -> None:
    found = json.loads(machine().whole(json.dumps(chat_whole(f"Let me add.\n{CALL}")).encode()))
    message = {
        "role": "assistant",
        "content": "Let me add.\n",
        "refusal": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}],
    }
    whole = chat_whole("")
    assert found == {**whole, "choices": [{**whole["choices"][0], "message": message, "finish_reason": "tool_calls"}]}


def test_a_whole_reply_without_a_call_is_the_same_object() -> None:
    raw = json.dumps(chat_whole("3")).encode()
    assert machine().whole(raw) is raw


def test_more_than_the_limit_is_not_held() -> None:
    record = ReplyRecord()
    stream = chat_stream([*CALL])
    assert b"".join(passed(stream, record=record, limit=2000)) == b"".join(stream)
    assert (record.recovered, record.recovery_failed) == (0, 1)


def test_a_fault_here_passes_the_reply_on() -> None:
    record = ReplyRecord()

    def new_parser(first: bool, after: object) -> Any:
        raise RuntimeError(first, after)

    stream = chat_stream(["a", CALL])
    for pieces in (stream, [b"".join(stream)]):
        assert b"".join(passed(pieces, record=record, new_parser=new_parser)) == b"".join(stream)
    assert record.recovery_failed == 2


def test_a_character_in_two_halves_is_one_in_the_call() -> None:
    say = ToolSpec("say", "", {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
    halves = [chunk({"content": half}).replace(b"\\\\u", b"\\u") for half in ("a\\ud83d", "\\ude00b")]
    opened = chunk({"content": '<tool_call>\n{"name": "say", "arguments": {"text": "'})
    stream = [*halves, opened, *halves, chunk({"content": '"}}\n</tool_call>'}), *chat_stream([])[-3:]]
    sent = passed(stream, tools=(say,))
    assert b"".join(sent[:2]) == b"".join(halves)
    assert WIRES["chat"].read(b"".join(sent))[:2] == ("a\N{GRINNING FACE}b", [("say", {"text": "a\N{GRINNING FACE}b"})])


def test_text_with_escapes_is_read_as_json_reads_it() -> None:
    said = ["plain ", "again ", *'"quoted" \\ back\n\ttab \u00fc ', '\\", "x": "', "end"]
    for pieces in (chat_stream([*said, CALL]), [b"".join(chat_stream([*said, CALL]))]):
        assert WIRES["chat"].read(b"".join(passed(pieces)))[:2] == ("".join(said), [("add", {"a": 1})])


@pytest.mark.parametrize("tools", [(), (ADD,)])
def test_usage_and_finish_are_counted_in_what_is_not_read_too(tools: Sequence[ToolSpec]) -> None:
    record = ReplyRecord()
    native = {"index": 0, "id": "x", "type": "function", "function": {"name": "add", "arguments": ""}}
    more = {"index": 0, "function": {"arguments": "1" * 1000}}
    stream = [
        chunk({"tool_calls": [native]}),
        *[chunk({"tool_calls": [more]})] * 200,
        *chat_stream([], "tool_calls")[1:],
    ]
    assert passed(stream, tools=tools, record=record) == [*stream, b""]
    assert (record.usage, record.finish) == (Usage(10, 5), "tool_calls")


def test_a_stream_without_a_finish_reason_gets_one_with_its_calls() -> None:
    read = WIRES["chat"].read(b"".join(passed([chunk({"content": CALL}), b"data: [DONE]\n\n"])))
    assert (read.calls, read.finish) == ([("add", {"a": 1})], "tool_calls")


def test_a_finish_reason_that_is_repeated_is_changed_again() -> None:
    stream = chat_stream([CALL])
    sent = b"".join(passed([*stream[:3], stream[2], *stream[3:]]))
    assert sent.count(b'"finish_reason":"tool_calls"') == 2
    assert b'"stop"' not in sent


def test_thinking_in_a_field_of_its_own_is_not_read_for_calls() -> None:
    stream = [chunk({"reasoning_content": CALL}), *chat_stream(["3"])]
    assert b"".join(passed(stream)) == b"".join(stream)
    read = WIRES["chat"].read(b"".join(passed([chunk({"reasoning": "Hm."}), *chat_stream([CALL])])))
    assert (read.thinking, read.text, read.calls) == ("Hm.", "", [("add", {"a": 1})])


def test_a_role_in_the_first_delta_of_a_call_is_kept() -> None:
    sent = b"".join(passed([chunk({"role": "assistant", "content": CALL}), *chat_stream([])[1:]]))
    assert sent.startswith(chunk({"role": "assistant", "content": ""}))


def test_calls_have_ids_of_their_own() -> None:
    reply = PassThrough(ChatEdit(), (ADD,), ReplyRecord())
    read = WIRES["chat"].read(b"".join([*map(reply.feed, chat_stream([CALL, CALL])), reply.close()]))
    assert len({*read.ids, ""}) == 3


def test_of_several_events_in_one_piece_only_those_wait_that_may_be_a_call() -> None:
    role, *said, finish, usage, done = chat_stream(["one ", "two ", "three ", "<tool", "_box>", " four"])
    pieces = [role + said[0], b"".join(said[1:4]), said[4] + said[5], finish + usage + done]
    sent = passed(pieces)
    assert sent[1] == said[1] + said[2]
    assert b"".join(sent) == b"".join(pieces)


def test_long_text_after_a_call_takes_linear_time() -> None:
    def seconds(length: int) -> float:
        stream = chat_stream([CALL, *["and "] * length])
        sent: list[bytes] = []
        spent = cpu_seconds(lambda: sent.extend(passed(stream)))
        assert b"tool_calls" in b"".join(sent)
        return spent

    assert_linear(seconds, 1_000)
