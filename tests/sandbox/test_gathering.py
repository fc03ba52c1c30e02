"""The first and the last bytes of a stream, whatever pieces it comes in."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentkit.sandbox import StreamOutput
from agentkit.sandbox.gathering import Gathered

PIECES = st.lists(st.binary(max_size=30), max_size=30)


def gathered(pieces: list[bytes], most: int) -> StreamOutput:
    stream = Gathered(most)
    for piece in pieces:
        stream.add(piece)
    return stream.take()


@given(PIECES, st.integers(2, 40))
def test_nothing_is_lost_but_the_middle(pieces: list[bytes], most: int) -> None:
    whole, output = b"".join(pieces), gathered(pieces, most)
    assert whole.startswith(output.head)
    assert whole.endswith(output.tail)
    assert len(output.head) + output.left_out + len(output.tail) == len(whole)
    assert output.left_out == max(0, len(whole) - most)


@given(PIECES, st.integers(2, 40))
def test_how_it_is_cut_into_pieces_does_not_matter(pieces: list[bytes], most: int) -> None:
    assert gathered(pieces, most) == gathered([b"".join(pieces)], most)


@given(st.binary(), st.integers(0, 9), st.binary())
def test_row_32_decoding_never_raises(head: bytes, left_out: int, tail: bytes) -> None:
    text = StreamOutput(head, left_out, tail).text
    assert ("bytes left out" in text) >= (left_out > 0)


def test_memory_stays_bounded() -> None:
    stream = Gathered(1000)
    for _ in range(1000):
        stream.add(bytes(10_000))
        assert len(stream._tail) <= 2 * 1000 + 10_000
    assert stream.take().left_out == 10_000_000 - 1000


def test_a_mark_is_found_across_pieces_and_after_a_cut() -> None:
    stream = Gathered(100)
    stream.add(b"one ma")
    stream.add(b"rk\n")
    assert stream.has(b"mark")
    stream.add(bytes(1000) + b"end")
    assert stream.has(b"end")
