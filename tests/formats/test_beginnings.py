"""The patterns for what several literals may begin with: exactly their beginnings, whatever stands behind them."""

import re

from hypothesis import example, given
from hypothesis import strategies as st

from agentkit.formats.reader import Delimiter, any_beginning

WORDS = st.text("aAb<|", min_size=1, max_size=5)


@given(st.lists(WORDS, min_size=1, max_size=4), st.text("aAb<|", max_size=6), st.booleans())
@example(["Aab", "aab"], "aa", True)  # the same branch twice, where case does not count
@example(["<|a|>", "<|b|>", "<|a"], "<|a|", False)
def test_a_text_is_a_beginning_exactly_where_a_literal_begins_so(texts: list[str], text: str, ignore: bool) -> None:
    part = Delimiter("x", any_beginning(texts), re.IGNORECASE if ignore else re.NOFLAG).part
    same = str.lower if ignore else str
    begun = any(same(known).startswith(same(text)) and len(text) < len(known) for known in texts)
    assert (part.match(text) is not None) == (begun or not text)


def test_white_space_of_a_literal_may_be_missing_or_more() -> None:
    part = Delimiter("x", any_beginning(["a b c", "ab d", "a b\n[x"])).part
    assert [text for text in ("a", "a  ", "ab", "a b ", "ab d", "a\nb[", "ac", "a b c") if part.match(text)] == [
        "a", "a  ", "ab", "a b ", "a\nb[",
    ]  # fmt: skip
