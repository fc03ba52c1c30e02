"""The first and the last bytes of a stream, whatever pieces it comes in."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from agentkit.sandbox import StreamOutput
from agentkit.sandbox.output_buffer import OutputBuffer

PIECES = st.lists(st.binary(max_size=30), max_size=30)


def gathered(pieces: list[bytes], most: int) -> StreamOutput:
    stream = OutputBuffer(most)
    for piece in pieces:
        stream.add(piece)
    return stream.take()


@given(PIECES, st.integers(2, 40))
def test_nothing_is_lost_but_the_middle(pieces: list[bytes], most: int) -> None:
    whole, output = b"".join(pieces), gathered(pieces, most)
    assert whole.startswith(output.head)
    assert whole.endswith(output.tail)
    assert len(output.head) + output.left_out + len(output.tail) == len(whole)
    assert 0 <= output.left_out - max(0, len(whole) - most) <= 6, "but for what is left of two characters"


@given(PIECES, st.integers(2, 40))
def test_how_it_is_cut_into_pieces_does_not_matter(pieces: list[bytes], most: int) -> None:
    assert gathered(pieces, most) == gathered([b"".join(pieces)], most)


@given(st.text(), st.integers(2, 40))
def test_a_cut_damages_no_character(text: str, most: int) -> None:
    output = gathered([text.encode()], most)
    first, *last = output.parts
    assert text.startswith(first)
    assert text.endswith("".join(last))
    assert output.left_out == len(text.encode()) - len((first + "".join(last)).encode())


@given(st.lists(st.one_of(st.text(max_size=3).map(str.encode), st.binary(max_size=3))), st.data())
def test_the_texts_of_all_reads_are_the_text_of_the_whole(pieces: list[bytes], data: st.DataObject) -> None:
    """A character may be written in two pieces, between which somebody reads; the bytes are as they came."""
    whole, stream, reads = b"".join(pieces), OutputBuffer(1000), []
    places = sorted(data.draw(st.lists(st.integers(0, len(whole)))))
    for start, end in pairwise([0, *places, len(whole)]):
        stream.add(whole[start:end])
        reads.append(stream.take(more=True))
    reads.append(stream.take())
    assert "".join(read.text for read in reads) == whole.decode("utf-8", "replace")
    assert b"".join(read.head + read.tail for read in reads) == whole


@given(st.binary(), st.integers(0, 9), st.binary())
def test_row_32_decoding_never_raises(head: bytes, left_out: int, tail: bytes) -> None:
    text = StreamOutput(head, left_out, tail).text
    assert ("bytes left out" in text) >= (left_out > 0)


def test_memory_stays_bounded() -> None:
    stream = OutputBuffer(1000)
    for _ in range(1000):
        stream.add(bytes(10_000))
        assert len(stream._tail) <= 2 * 1000 + 10_000
    assert stream.take().left_out == 10_000_000 - 1000


def test_a_mark_is_found_across_pieces_and_after_a_cut() -> None:
    stream = OutputBuffer(100)
    stream.add(b"one ma")
    stream.add(b"rk\n")
    assert stream.has(b"mark")
    stream.add(bytes(1000) + b"end")
    assert stream.has(b"end")
