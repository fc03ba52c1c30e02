"""The bytes of each server-sent event."""

from __future__ import annotations

import itertools
import time

import pytest

from agentkit.gateway.event_blocks import EventBlocks, event_of
from agentkit.models.sse import EventTooLong
from agentkit.models.wire import DONE

STREAM = (
    b'\xef\xbb\xbf: hi\n\ndata: {"a":1}\n\nevent: b\r\ndata: {"a":2}\r\n\r\n'
    b'data: {"a":\rdata: 3}\r\rdata: [DONE]\n\r\nda'
)


def test_joined_they_are_the_input_and_say_the_same_however_it_is_cut() -> None:
    for first, second in itertools.combinations(range(len(STREAM) + 1), 2):
        blocks = EventBlocks(1000)
        pieces = STREAM[:first], STREAM[first:second], STREAM[second:]
        found = [block for piece in pieces for block in blocks.feed(piece)]
        assert b"".join(found) + blocks.take_rest() == STREAM
        events = [event for block in found if (event := event_of(block)) is not None]
        assert events == [{"a": 1}, {"a": 2, "type": "b"}, {"a": 3}, DONE]


def test_one_event_in_single_bytes() -> None:
    blocks = EventBlocks(1000)
    found = [blocks.feed(bytes([byte])) for byte in b"data: 1\n\n"]
    assert found == [[]] * 8 + [[b"data: 1\n\n"]]


def test_an_event_beyond_the_limit_is_kept_for_those_who_pass_it_on() -> None:
    blocks = EventBlocks(10)
    with pytest.raises(EventTooLong):
        blocks.feed(b"data: 1\n\ndata: 2345678")
    assert blocks.take_rest() == b"data: 1\n\ndata: 2345678"


@pytest.mark.parametrize(
    "block",
    [
        b": comment\n\n",
        b"\n\n",
        b"data: {\n\n",
        b"data: [1]\n\n",
        b"data: {} {}\n\n",
        b"data: \xff\n\n",
        b"id: 1\ndata: \xff\n\n",
        b"id: 1\n\n",
    ],
)
def test_what_cannot_be_read_is_nothing(block: bytes) -> None:
    assert event_of(block) is None


def test_a_long_event_in_small_pieces_takes_linear_time() -> None:
    def seconds(length: int) -> float:
        blocks, started = EventBlocks(1 << 30), time.process_time()
        for _ in range(length):
            blocks.feed(b"x" * 100)
        return time.process_time() - started

    seconds(1000)
    assert min(seconds(40_000) for _ in range(3)) < 30 * min(seconds(4_000) for _ in range(3))
