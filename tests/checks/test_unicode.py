"""Halves of surrogate pairs: joined where text arrives, replaced where a value is read from a text in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit.checks.unicode import Joiner, clean, has_surrogate, without_surrogates
from agentkit.tool.result import ToolResult

TEXTS = st.text(st.sampled_from("a\ud83d\ude00\u00e9\U0001f600"))


@pytest.mark.parametrize(
    ("text", "read"), [("\ud83d\ude00", "\U0001f600"), ("\ude00\ud83d", "\ufffd\ufffd"), ("a", "a")]
)
def test_two_halves_are_one_character_wherever_text_comes_in(text: str, read: str) -> None:
    assert clean(text) == ToolResult(text).text == read


@given(st.lists(TEXTS))
def test_a_text_in_pieces_is_joined_as_if_it_came_whole(pieces: list[str]) -> None:
    joiner = Joiner()
    joined = "".join(map(joiner.feed, pieces)) + joiner.close()
    assert joined == clean("".join(pieces))
    assert not has_surrogate(joined)


@given(st.lists(TEXTS))
def test_pieces_of_a_value_are_replaced_one_by_one_as_the_whole_is(pieces: list[str]) -> None:
    replaced = without_surrogates({"".join(pieces): pieces})
    assert replaced == {"".join(replaced[next(iter(replaced))]): list(map(without_surrogates, pieces))}
