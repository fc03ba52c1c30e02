"""Output as text for reading: nothing that could control a terminal is left, and nothing else is lost."""

from __future__ import annotations

import pytest
from growth import assert_linear, cpu_seconds
from hypothesis import given
from hypothesis import strategies as st

from agentkit_tools.code.terminal_text import decoded, readable


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
    assert ("left out" in decoded(head, left_out, tail)) >= bool(left_out)


@pytest.mark.parametrize("piece", ["\x1b]", "\x1b[", "a\r", "a\b", "\r", "x", "\x1b]8;;", "\x9b1"])
def test_time_grows_with_the_length(piece: str) -> None:
    def seconds(count: int) -> float:
        return cpu_seconds(lambda: readable(piece * count + "\r"))

    assert_linear(seconds, 10_000)
