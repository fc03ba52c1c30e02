"""Patterns in the spelling of llama.cpp's converter: the same texts match, as JSON spells them."""

from __future__ import annotations

import json
import random
import re

import pytest

from agentkit.schemas.patterns import MOST, NoSpelling, respell

SAME = ["^[a-z]+$", "^(a|bc)*$", "^[0-9]{4}-[0-9]{2}$", "^x{2,}y?$"]
OTHERS = {
    r"^\d{4}$": r"^[0-9]{4}$",
    r"^\w+\.txt$": r"^[0-9A-Z_a-z]+[.]txt$",
    r"^[\w.-]+$": r"^[\x2D.0-9A-Z_a-z]+$",
    r"^(?:a|b)+?$": r"^(a|b)+$",
    r"^(?P<year>\d)$": r"^([0-9])$",
}
MATCHED = [
    *SAME, *OTHERS, "", "foo", r"^a|b$", r"^/", r"\.py$", r"\S", r"^[^\s@]+@[^\s@]+$", r"^.{1,3}$", r'^["\\]+$',
    r"^\s*\D\W?\n?$", r"^[^\n]*\t$", "^[é-ü一]+$", r"^\u00e9\x41$",
]  # fmt: skip
IMPOSSIBLE = {
    r"^(?=a)b$": "a lookaround or a flag",
    r"(?i)a": "a lookaround or a flag",
    r"^a\b$": "a word boundary",
    r"^(a)\1$": "a reference to a group",
    r"^\p{L}+$": "a Unicode property",
    r"^a^b$": "an anchor inside it",
    r"^x{3000}$": f"a count above {MOST:,}",
    r"^[a$": "a class without an end",
    r"^(a$": "an anchor inside it",
    r"^a)$": "unbalanced parentheses",
    r"^*$": "a repetition of nothing",
    r"^a**$": "a repetition of a repetition, or of nothing",
    "^\x01$": "a control character",
}


@pytest.mark.parametrize("pattern", SAME)
def test_what_the_converter_reads_stays(pattern: str) -> None:
    assert respell(pattern) == (pattern, ())


@pytest.mark.parametrize("pattern", OTHERS)
def test_what_it_does_not_read_is_spelled_otherwise(pattern: str) -> None:
    assert respell(pattern)[0] == OTHERS[pattern]


@pytest.mark.parametrize("pattern", IMPOSSIBLE)
def test_what_has_no_spelling_says_why(pattern: str) -> None:
    with pytest.raises(NoSpelling, match=re.escape(IMPOSSIBLE[pattern])):
        respell(pattern)


@pytest.mark.parametrize("pattern", MATCHED)
def test_the_same_texts_match_as_json_spells_them(pattern: str) -> None:
    """The spelling is made of constructs that Python's expressions have too, and is matched against JSON's spelling."""
    within = re.compile(respell(pattern)[0].removesuffix("$").removeprefix("^"))
    rng = random.Random(pattern)
    pieces = ["a", "b", "foo", "é", "一", "/", ".py", "@", " ", "\n", "\t", '"', "\\", "7", "2024", "_", "", "x", "."]
    for _ in range(300):
        text = "".join(rng.choices(pieces, k=rng.randint(0, 5)))
        written = json.dumps(text, ensure_ascii=False)[1:-1]
        assert (within.fullmatch(written) is not None) == (_search(pattern, text) is not None), (text, written)


def _search(pattern: str, text: str) -> re.Match[str] | None:
    """As ECMA 262 reads a pattern: `$` is the very end, and classes are ASCII's."""
    return re.compile(re.sub(r"\$(?=\||\Z)", r"\\Z", pattern), re.ASCII).search(text)
