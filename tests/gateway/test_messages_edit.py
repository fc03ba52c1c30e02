"""Calls in the text of a message become blocks of their own."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from upstream_replies import WIRES, messages_stream, messages_whole, named

from agentkit.gateway.exchanges import ReplyRecord
from agentkit.gateway.messages_edit import MessagesEdit
from agentkit.gateway.pass_through import PassThrough
from agentkit.toolspec import ToolSpec

ADD = ToolSpec("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'


def machine(record: ReplyRecord | None = None) -> PassThrough:
    numbers = itertools.count(1)
    return PassThrough(MessagesEdit(), (ADD,), record or ReplyRecord(), new_id=lambda: f"c{next(numbers)}")


def passed(pieces: Sequence[bytes], record: ReplyRecord | None = None) -> bytes:
    reply = machine(record)
    return b"".join([*map(reply.feed, pieces), reply.close()])


def start(index: int, block: Mapping[str, Any]) -> bytes:
    return named({"type": "content_block_start", "index": index, "content_block": block})


def delta(index: int, **fields: Any) -> bytes:
    return named({"type": "content_block_delta", "index": index, "delta": fields})


def stop(index: int) -> bytes:
    return named({"type": "content_block_stop", "index": index})


def called(index: int, id: str) -> list[bytes]:
    block = {"type": "tool_use", "id": id, "name": "add", "input": {}}
    return [start(index, block), delta(index, type="input_json_delta", partial_json='{"a": 1}'), stop(index)]


def same(sent: bytes, wanted: Sequence[bytes]) -> bool:
    """Whether these are the same events; white space in their JSON does not count."""
    return [*map(_read, sent.split(b"\n\n"))] == [*map(_read, b"".join(wanted).split(b"\n\n"))]


def _read(block: bytes) -> tuple[bytes, Any]:
    name, _, data = block.partition(b"\n")
    return name, json.loads(data[6:]) if data else None


BEGIN = messages_stream([])[0]
PING = messages_stream([])[2]
END = messages_stream([], "tool_use")[-2:]
TEXT = {"type": "text", "text": ""}


def test_a_call_after_text_is_a_second_block() -> None:
    record = ReplyRecord()
    sent = passed(messages_stream(["Let me add.", *CALL]), record)
    text = [start(0, TEXT), PING, delta(0, type="text_delta", text="Let me add."), stop(0)]
    assert same(sent, [BEGIN, *text, *called(1, "c1"), *END])
    assert (record.recovered, record.finish) == (1, "tool_calls")
    assert record.usage is not None
    assert (record.usage.input_tokens, record.usage.output_tokens) == (10, 5)


def test_a_reply_that_is_a_call_has_no_empty_text() -> None:
    assert same(passed(messages_stream(["\n", *CALL])), [BEGIN, PING, *called(0, "c1"), *END])


def test_text_between_two_calls_is_a_block() -> None:
    sent = passed(messages_stream([*CALL, "And ", "again.", *CALL]))
    more = delta(1, type="text_delta", text="And "), delta(1, type="text_delta", text="again.")
    assert same(sent, [BEGIN, PING, *called(0, "c1"), start(1, TEXT), *more, stop(1), *called(2, "c2"), *END])


def test_thinking_before_the_call_stays_in_its_place() -> None:
    thought = [start(0, {"type": "thinking", "thinking": ""}), delta(0, type="thinking_delta", thinking="Hm"), stop(0)]
    said = [start(1, TEXT), delta(1, type="text_delta", text=CALL), stop(1)]
    sent = passed([BEGIN, *thought, *said, *messages_stream([])[-2:]])
    assert same(sent, [BEGIN, *thought, *called(1, "c1"), *END])


def test_a_block_after_the_call_moves() -> None:
    said = [start(0, TEXT), delta(0, type="text_delta", text=f"So: {CALL}"), stop(0)]
    thought = [start(1, {"type": "thinking", "thinking": ""}), delta(1, type="thinking_delta", thinking="Hm"), stop(1)]
    sent = passed([BEGIN, *said, *thought, *messages_stream([])[-2:]])
    moved = [start(2, {"type": "thinking", "thinking": ""}), delta(2, type="thinking_delta", thinking="Hm"), stop(2)]
    said = [start(0, TEXT), delta(0, type="text_delta", text="So: "), stop(0)]
    assert same(sent, [BEGIN, *said, *called(1, "c1"), *moved, *END])


def test_a_message_that_was_cut_is_unchanged() -> None:
    stream = messages_stream([CALL], "max_tokens")
    assert passed(stream) == b"".join(stream)


def test_text_that_begins_with_white_space_is_unchanged() -> None:
    stream = messages_stream(["\n", "\n", "The sum", " is 3."])
    assert passed(stream) == b"".join(stream)


def test_a_whole_message_with_a_call_is_edited() -> None:
    found = json.loads(machine().whole(json.dumps(messages_whole(f"Let me add.{CALL}Done.")).encode()))
    assert found == {
        **messages_whole(""),
        "content": [
            {"type": "text", "text": "Let me add."},
            {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}},
            {"type": "text", "text": "Done."},
        ],
        "stop_reason": "tool_use",
    }


def test_what_a_server_side_tool_returned_may_be_quoted() -> None:
    result = {"type": "web_search_tool_result", "tool_use_id": "s", "content": [{"type": "text", "text": CALL}]}
    blocks = [start(0, result), stop(0), start(1, TEXT), delta(1, type="text_delta", text=CALL), stop(1)]
    stream = [BEGIN, *blocks, *messages_stream([])[-2:]]
    reply = PassThrough(MessagesEdit(), (ADD,), ReplyRecord(), lambda: ())
    assert b"".join([*map(reply.feed, stream), reply.close()]) == b"".join(stream)
    assert WIRES["messages"].read(b"".join(stream)).text == CALL
