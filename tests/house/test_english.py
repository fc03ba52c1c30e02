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

PLACES: Final = (
    "*.md",
    "docs/**/*.md",
    "docs/**/*.py",
    "examples/**/*.py",
    "benchmarks/**/*.py",
    "tools/**/*.py",
    "agentkit/**/*.py",
)
"""Where the project speaks English."""

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
    r"\balso (?:if|when|where|after|before|while|without)\b": "even if, even when, even after; or: and also",
    r", also (?!(?:called|known|if|when|where|after|before|while|without)\b)[a-z]+": "including …; even …; or: and …",
    r", too(?=[.,;:)|*]|$| (?:and|but|if|in|for|on|with)\b| \()": "also, before the verb",
    r"[;,] (?:and |but )?one (?:(?:in|with|for|by|to) )?(?:that|which|whose)\b"
    r"|(?<!\bthe )\bone (?:in|for|by|to|from) (?:which|whom)\b": "repeat the noun, or make a list",
    r"\bof (?:(?:each|every|the|an?|any) \w+'s|its|their|our|one's) own(?=[.,;:)\"`|]|$| (?:in|for|and|or|but|that"
    r"|which|with|from|on|by|as|to|at|keeps?|may|has|is|are)\b)": "its own …: before the noun",
    r"(?:(?:^\s*|\. )So|(?:[;:]|, and) so) (?:is|are|was|were|do|does|did|has|have|can|could|may|will)\b": "also",
    r"\b(?:do|does|did|done|is|are|was|were|called|ends?|named|opens?|written|writes?) so(?=[.,;:)|]|$"
    r"| (?:if|for|before|and|in|when|where)\b)": "say the verb, or: like this",
    r"(?<=[a-z] )(?<!\bor )(?<!\band )such(?=[,.;)])": "say the noun",
    r"\b(?:worn|wears?)\b": "damaged, malformed",
    r"(?<=[\w,] )told\b(?!\.| (?:apart|to(?! the)|how|what|that|which|why|only how)\b)": "given, said; reports, gets",
    r"\bh(?:eld|olds?) (?:it |them )?up\b": "delay, block",
    r"\bholds? (?:for|here|there|in|natively)\b|\b[Ww]hat holds\b": "applies, is valid; is guaranteed",
    r"\b(?:a|one|whole|its) life\b": "lifetime, lifecycle; with a life: stateful",
    r"\b[Ll]aws?\b": "rule, property, invariant, or the rule itself",
    r"\b(?:[Ss]tands?|stood)\b(?! (?:for\b|in for\b|in$))": "is",
    r"\bvouch(?:es|ed)?\b": "untrusted",
    r"\bstrays\b": "is outside",
    r"\b(?:come|comes|came) back as\b": "is returned as",
    r"\b(?:at|by|for|from|in|of|to|under|with) whose\b": "two sentences, or: where its …",
    r"(?:^|[.;:] )Whatever (?:is|was|has)\b": "every …",
    r"\bby hand of\b": "by",
    r"\b[Ww]hat (?:came|comes|is here|is there|was there)\b": "say the noun",
    r"\bOurs\b|\b(?:as|of) ours\b|\bours as\b": "agentkit's …; of bugs: in agentkit",
    r"\b(?:above|below|in) (?:this room|rooms)\b|\bhas rooms\b": "package",
    r"\b(?:is|are) where\b(?= (?:it|they)\b)": "say the place",
}
"""What to write in place of a pattern."""

TASKS: Final = frozenset({"real_models_tasks.py"})
"""Tasks that live models were measured with."""

RULES: Final = frozenset({"CONTRIBUTING.md"})
"""Pages about the project's own rules, which are called laws there."""

MEASURED: Final = (
    "Write what stands between tags exactly as it is meant",
    "Text that contains the very tag that encloses it must stand in",
    "nothing but JSON stands ",
    "A string that itself contains ",
)
"""Words of prompts that live models were measured with: another wording needs another measurement."""


def passages(path: Path) -> Iterator[str]:
    """The lines of a file's English: comments and strings of code; a page without its blocks of code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        inside = False
        for line in text.splitlines():
            fence = line.startswith("```")
            inside ^= fence
            if not inside and not fence:
                yield line
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT or token.type == tokenize.STRING or "STRING_MIDDLE" in _kind(token):
            words = _EXPRESSION.sub("{}", token.string) if _IS_FORMATTED(token.string) else token.string
            yield from words.splitlines()


_IS_FORMATTED: Final = re.compile(r"[rR]?[fF][rR]?[\"']").match  # one token on Python 3.11, its expressions included
_EXPRESSION: Final = re.compile(r"\{[^{}\n]*\}")


def _kind(token: tokenize.TokenInfo) -> str:
    return tokenize.tok_name[token.type]


def wrong(*passages: str) -> list[tuple[str, str, str]]:
    """Each passage with what a native writer would not have written, and what to write."""
    text = "\n".join(passages)
    patterns = [(pattern, better) for pattern, better in _PATTERNS if pattern.search(text)]  # mostly none
    return [
        (passage, found[0], better)
        for passage in (passages if patterns else ())
        if not any(words in passage for words in MEASURED)
        for pattern, better in patterns
        if (found := pattern.search(passage))
    ]


_PATTERNS: Final = [(re.compile(pattern, re.MULTILINE), better) for pattern, better in PLAIN.items()]


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
        ("nobody can tell which call it was", "it is ambiguous"),
        ("leave it out: there is one kind", "omit, remove"),
        ("the answer is sent, also if the run fails", "even if, even when, even after; or: and also"),
        ("calls are counted, also in threads", "including …; even …; or: and …"),
        ("and run there, too.", "also, before the verb"),
        ("an error is logged; one that is raised ends the run", "repeat the noun, or make a list"),
        ("one in which it opens again", "repeat the noun, or make a list"),
        ("tools and rewards of each trajectory's own", "its own …: before the noun"),
        ("in a thread of its own, so it", "its own …: before the noun"),
        ("it fails. So does a call", "also"),
        ("if the template does so and", "say the verb, or: like this"),
        ("images arrive as such.", "say the noun"),
        ("a tag that is worn", "damaged, malformed"),
        ("the policy told no ids", "given, said; reports, gets"),
        ("a call holds up the next", "delay, block"),
        ("an approval holds for one tool", "applies, is valid; is guaranteed"),
        ("tools with a life", "lifetime, lifecycle; with a life: stateful"),
        ("it obeys the cut law", "rule, property, invariant, or the rule itself"),
        ("where a call stands in the text", "is"),
        ("commands that nobody vouches for", "untrusted"),
        ("a call that strays", "is outside"),
        ("pictures come back as images", "is returned as"),
        ("an agent in whose thread calls wait", "two sentences, or: where its …"),
        ("Whatever is started is ended", "every …"),
        ("the names with what is here", "say the noun"),
        ("a bug of ours", "agentkit's …; of bugs: in agentkit"),
    ],
)
def test_a_pattern_is_found(passage: str, better: str) -> None:
    assert [way for *_, way in wrong(passage)] == [better]


@pytest.mark.parametrize(
    "passage",
    [
        "there is no tool 'x'",
        "it is no longer there",
        "if there is none",
        "they cannot be told apart",
        "so that",
        "the file is also in the sandbox",
        "too many, too long, and too slow for this",
        "the host has no address, or one that is blocked",
        "a setting, one of which names a program",
        "a model of your own",
        "markup of its own kind",
        "an error that says so",
        "paths such as this, or such as that",
        "a model that is told to stop, or what is wrong",
        "the lock is held by a thread that holds it",
        "a lifetime, and live models",
        "`ScriptedModel` stands in for the model; `x` stands for a name",
        "stray text after a call",
        "a value whose type is unknown",
        "whatever the model writes",
        "compare ours with theirs",
        "the room for the answer",
    ],
)
def test_what_is_plain_english_is_not_found(passage: str) -> None:
    assert wrong(passage) == []


@pytest.mark.parametrize("place", PLACES)
def test_the_project_is_in_plain_english(place: str) -> None:
    paths = sorted(ROOT.glob(place))
    found = [
        f"{path.relative_to(ROOT)}: {words!r}: write {better!r}: {passage.strip()}"
        for path in paths
        if path.name not in TASKS
        for passage, words, better in wrong(*passages(path))
        if not (words.lower().startswith("law") and path.name in RULES)
    ]
    assert paths
    assert not found, "\n".join(found)


@pytest.mark.parametrize("place", PLACES)
def test_names_of_files_are_in_plain_english(place: str) -> None:
    assert wrong(*{re.sub(r"[_-]", " ", path.stem) for path in ROOT.glob(place)}) == []


def test_names_of_classes_and_functions_are_in_plain_english() -> None:
    """Names are split into words."""
    paths = [path for place in PLACES if place.endswith(".py") for path in ROOT.glob(place)]
    names = {name for path in paths for name in re.findall(DEFINITION, path.read_text(encoding="utf-8"))}
    assert wrong(*(re.sub(r"(?<=[a-z])(?=[A-Z])|_", " ", name).lower().strip() for name in names)) == []


DEFINITION: Final = r"(?m)^ *(?:async def|def|class) (\w+)"
