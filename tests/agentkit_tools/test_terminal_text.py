"""Output as text for reading: nothing that could control a terminal is left, and nothing else is lost."""

from __future__ import annotations

from itertools import pairwise

import pytest
from growth import assert_linear, cpu_seconds
from hypothesis import given
from hypothesis import strategies as st

from agentkit.sandbox import StreamOutput
from agentkit.sandbox.output_buffer import OutputBuffer
from agentkit_tools.code.terminal_text import Reading, decode, readable

BEGINNINGS = ("\x1b", "\x1b[", "\x1b]8;;", "\x1b]52;c;", "\x1bP", "\x1b(", "\x9b", "\x9d", "\x1b[38;5")
ENDINGS = ("m", "\x07", "\x1b\\", "\x9c", "[", "]", "\\", " ", "/", "1;", "~", "\r\n", "\u2028")
WRITTEN = st.lists(
    st.one_of(
        st.sampled_from([*BEGINNINGS, *ENDINGS]).map(str.encode),
        st.text(st.characters(exclude_characters="\r\b", exclude_categories=["Cs"]), max_size=4).map(str.encode),
        st.sampled_from([b"\xff", b"\xe2\x82", b"\xf0\x9f", b"\x80"]),
    ),
    max_size=30,
)
"""What a program writes, but for lines that are overwritten: what was told of one stays."""


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;https://evil.example\x1b\\docs\x1b]8;;\x1b\\", "docs"),
        ("\x1b]52;c;cm0gLXJmIH4=\x07ok", "ok"),
        ("\x1b]0;title\x07ok", "ok"),
        ("\x9b31mred\x9d0;title\x9cok", "redok"),
        ("\x1bPq#0;2;0;0;0\x1b\\ok", "ok"),
        ("\x1b(Bok\x1bc", "ok"),
        ("10 %\r50 %\r100 %\ndone", "100 %\ndone"),
        ("a\r\nb\r\n", "a\nb\n"),
        ("_\x08ab\x08b", "ab"),
        ("a\x00b\x07c\x7f", "abc"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("\x1b]52;c;unfinished", ""),
        ("a\u2028b", "a\nb"),
    ],
)
def test_row_32_control_sequences_are_removed(written: str, read: str) -> None:
    assert readable(written) == read


@given(st.text(st.one_of(st.sampled_from("\x1b[]\\;0m\x07\r\n\t\b\x9b\x9d\x9c"), st.characters())))
def test_no_control_character_is_left_in_any_text(text: str) -> None:
    assert [c for c in readable(text) if c not in "\n\t" and (c < " " or "\x7f" <= c <= "\x9f")] == []


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])))
def test_text_without_controls_is_unchanged(text: str) -> None:
    assert readable(text) == text


@given(st.binary(), st.integers(0, 10), st.binary())
def test_any_bytes_can_be_read(head: bytes, left_out: int, tail: bytes) -> None:
    assert ("left out" in decode(StreamOutput(head, left_out, tail))) >= bool(left_out)


@given(WRITTEN, st.data())
def test_what_is_read_piece_by_piece_is_the_whole(written: list[bytes], data: st.DataObject) -> None:
    whole, stream, reading, told = b"".join(written), OutputBuffer(10_000), Reading(), ""
    places = sorted(data.draw(st.lists(st.integers(0, len(whole)))))
    for start, end in pairwise([0, *places, len(whole)]):
        stream.add(whole[start:end])
        told += decode(stream.take(more=True), reading)
    assert told + decode(stream.take(), reading) == readable(whole.decode("utf-8", "replace"))


@given(st.sampled_from(BEGINNINGS), st.sampled_from(["1", " ", ";" * 9, "a" * 9, "0 "]))
def test_what_is_kept_of_a_sequence_without_end_does_not_grow(beginning: str, piece: str) -> None:
    reading = Reading()
    reading.add(beginning)
    for _ in range(9):
        reading.add(piece)
    assert len(reading._started) <= 3


@pytest.mark.parametrize("piece", ["\x1b]", "\x1b[", "a\r", "a\b", "\r", "x", "\x1b]8;;", "\x9b1"])
def test_time_grows_with_the_length(piece: str) -> None:
    def seconds(count: int) -> float:
        return cpu_seconds(lambda: readable(piece * count + "\r"))

    assert_linear(seconds, 10_000)
