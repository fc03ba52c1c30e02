"""Where prose stops, to be looked at: a search made from what openers begin with. Knows no opener."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agentkit.formats.other_json import ARRAY
from agentkit.formats.reader import Delimiter, Search, any_beginning, pattern

BLOCKS: Final = (
    "if", "elif", "else", "for", "while", "def", "class", "with", "try", "except", "finally", "async", "match", "case",
)  # fmt: skip
"""What a block of Python begins with."""
BLOCK: Final = Delimiter(rf"(?:{'|'.join(BLOCKS)})(?=[\s:(])", r"[a-z]{0,8}")
"""What starts a block of Python at the start of a line."""


@dataclass(frozen=True, slots=True)
class Stops:
    """What finds where prose stops.

    That is at openers, judged by their first two characters, and at backticks and line ends, which show what is quoted
    and where a line starts. `search` is for prose at the start of a line or in a code span, `within` for all other
    prose: there a line end needs no decision if what follows it opens nothing. Both find a backslash at the end.
    `bare` tells whether they also find what may begin other JSON.
    """

    search: Search
    within: Search
    bare: bool


def stops_of(behind: Mapping[str, Iterable[str]], starts: Iterable[str], *, bare: bool = False) -> Stops:
    """The stops for these openers.

    Args:
        behind: regular expressions for what may follow, by an opener's first character.
        starts: letters that may begin a call at the start of a line.
        bare: whether a call may be JSON that nothing marks as one.
    """
    if bare:
        behind = {**behind, "[": (*behind.get("[", ()), ARRAY)}
    firsts = "".join(sorted(behind))
    opening = "".join(rf"|{re.escape(c)}(?={'|'.join(sorted(behind[c]))}|\Z)" for c in firsts)
    search = re.compile(rf"[`~\n]{opening}|\\\Z").search
    stops = re.escape("`~" + firsts + "".join(sorted(starts)))
    item = r"(?:(?:>|(?:[-+*]|\d{1,9}[.)])[ \t])[ \t]{0,7}+){0,4}+"  # markers, after which a fence may begin
    told = rf"[^\s{stops}>\-+*\d]|[-+*]\S|\d{{1,9}}+(?:[^\d.)]|[.)]\S)"
    within = re.compile(rf"`|~(?=~~|~?\Z){opening}|\\\Z|\n(?!\s{{0,64}}+{item}(?:{told}))").search
    return Stops(search, within, bare)


def line_start(words: Sequence[str], names: Iterable[str]) -> Delimiter:
    """The words, and the tools' names if arguments follow, that open a call at the start of a line."""
    names = sorted(names, key=len, reverse=True)
    either = f"(?:{'|'.join(map(re.escape, names)) or '(?!)'})"
    whole = "|".join([rf"{either}(?=\s*[({{])", *map(pattern, words)])
    return Delimiter(whole, rf"{either}\s{{0,64}}|{any_beginning((*names, *words))}")


def line_starts(words: Iterable[str], *, blocks: bool) -> set[str]:
    """The letters of what may open at the start of a line: of these words, and with `blocks`, of Python's own."""
    return {word[0] for word in (*words, *(BLOCKS if blocks else ()))}
