"""Plain English in messages, docstrings, comments and pages: the clearest patterns that a native writer would avoid."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]

ROOMS: Final = (
    "README.md",
    "CHANGELOG.md",
    "docs/**/*.md",
    "docs/*.py",
    "examples/*.py",
    "tools/agentkit_tools/*.py",
    "agentkit/*.py",
    "agentkit/agent/*.py",
    "agentkit/checks/*.py",
    "agentkit/cli/*.py",
    "agentkit/fit/*.py",
    "agentkit/foreign/*.py",
    "agentkit/formats/**/*.py",
    "agentkit/grammar/**/*.py",
    "agentkit/interop/**/*.py",
    "agentkit/models/*.py",
    "agentkit/processor/*.py",
    "agentkit/sandbox/*.py",
    "agentkit/schemas/**/*.py",
    "agentkit/testing/*.py",
    "agentkit/threads/**/*.py",
    "agentkit/tool/*.py",
    "benchmarks/*.py",
)
"""The finished rooms; a room that has been rewritten is added here."""

PLAIN: Final = {
    r"(?<![Tt]here )\b(?:is|are|was|were|be|becomes?) no (?!longer\b|more\b|less\b)[a-z]+": "is not a …",
    r"(?<![Tt]here )\b(?:is|are|was|were) none\b(?! of\b)": "is not one; name what is rejected",
    r"\bthat there (?:is|are) not\b|\bwhat there is\b": "existing, or: unknown",
    r"(?<![`\"])\bbehind\b(?![`\":])": "after",
    r"\bbeside\b": "in addition to, together with, other than, or: next to",
    r"\bmend(?:s|ed|ing)?\b": "fix; of calls: repair",
    r"\b(?:held|holds?) (?:\w+ ){0,4}against\b": "checked against",
    r"\bso (?:much|many)\b(?! (?:as|that)\b)": "this much, this many, or the number itself",
    r"\bunless (?:given|told)\b": "by default",
    r"\b(?:go|goes|going|gone) on\b": "continue",
    r"\bbr(?:oke|eaks?) off\b": "is interrupted",
    r"\bbegun\b(?!:)": "started",
    r"(?:[):]|,) wanted\b": "expected",
    r"\bcannot be told(?! apart\b)": "cannot be distinguished, is ambiguous",
    r"\b(?:nobody|anybody|no one) can tell\b": "it is ambiguous",
    r"\btells? that\b": "means, shows",
    r"\blook(?:s|ed|ing)? over\b": "search, skip, examine",
    r"\bput off\b": "postponed",
    r"\bby place\b": "positional",
    r"\bin vain\b": "say what is unknown",
    r"\bmeanwhile\b": "in the meantime",
    r"\bwhole number\b": "integer",
    r"\bworked (?:call|example)\b": "example call, example",
    r"\bthe system refused\b": "system error",
    r"\b(?:take|takes|taken) back\b": "undo, retract, remove",
    r"\bas it came\b": "unchanged",
    r"\bin silence\b": "silently",
    r"\bleave (?:it|them) out\b": "omit, remove",
    r"\bas one writes it\b|\bas it is written there\b": "as written in code",
    r"\bwhoever\b": "say who",
    r"\b(?:a|the) share\b": "a fraction",
}
"""What to write in place of a pattern."""


def passages(path: Path) -> Iterator[tuple[int, str]]:
    """A file's English by line: comments and strings of code; a page without its blocks of code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        inside = False
        for number, line in enumerate(text.splitlines(), 1):
            fence = line.startswith("```")
            inside ^= fence
            if not inside and not fence:
                yield number, line
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or token.type == tokenize.STRING or "STRING_MIDDLE" in _kind(token):
            words = _EXPRESSION.sub("{}", token.string) if _IS_FORMATTED(token.string) else token.string
            for number, line in enumerate(words.splitlines(), token.start[0]):
                yield number, line


_IS_FORMATTED: Final = re.compile(r"[rR]?[fF][rR]?[\"']").match  # one token on Python 3.11, its expressions included
_EXPRESSION: Final = re.compile(r"\{[^{}\n]*\}")


def _kind(token: tokenize.TokenInfo) -> str:
    return tokenize.tok_name[token.type]


def wrong(passage: str) -> list[tuple[str, str]]:
    """What a native writer would not have written, and what to write."""
    return [(found[0], better) for pattern, better in PLAIN.items() if (found := re.search(pattern, passage))]


@pytest.mark.parametrize(
    ("passage", "better"),
    [
        ("5 is no tool", "is not a …"),
        ("a class itself is none", "is not one; name what is rejected"),
        ("one newline behind the tag", "after"),
        ("arguments beside the name", "in addition to, together with, other than, or: next to"),
        ("say how to mend it", "fix; of calls: repair"),
        ("the schema is held against the signature", "checked against"),
        ("max_turns=0): wanted 1 or more", "expected"),
        ("two threads that cannot be told", "cannot be distinguished, is ambiguous"),
        ("leave it out: there is one kind", "omit, remove"),
    ],
)
def test_a_pattern_is_found(passage: str, better: str) -> None:
    assert [way for _, way in wrong(passage)] == [better]
    assert _PERHAPS.search(passage)


@pytest.mark.parametrize(
    "passage",
    ["there is no tool 'x'", "it is no longer there", "if there is none", "they cannot be told apart", "so that"],
)
def test_what_is_plain_english_is_not_found(passage: str) -> None:
    assert wrong(passage) == []


_LED = re.compile(r"^(?:\(\?<!\[[^]]*\](?:here )?\)|\\b)+")
_UNLED = [_LED.sub("", either) for pattern in PLAIN for either in pattern.split(r"|\b")]
_WORDS, _MARKS = ["|".join(one for one in _UNLED if (one[3] == "[") == mark) for mark in (False, True)]
_PERHAPS: Final = re.compile(rf"\b(?:{_WORDS})|{_MARKS}")
"""The patterns without what must not stand before them: quick to search, and found wherever one of them is."""


@pytest.mark.parametrize("room", ROOMS)
def test_the_finished_rooms_are_in_plain_english(room: str) -> None:
    paths = sorted(ROOT.glob(room))
    found = [
        f"{path.relative_to(ROOT)}:{number}: {words!r}: write {better!r}: {passage.strip()}"
        for path in paths
        if _PERHAPS.search(path.read_text(encoding="utf-8"))
        for number, passage in passages(path)
        for words, better in wrong(passage)
    ]
    assert paths
    assert not found, "\n".join(found)
