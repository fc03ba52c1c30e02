"""Where the thinking that is in a native model's text ends: closing tags without an opening one.

Pure. Knows the tags that the formats declare.
"""

from __future__ import annotations

import re
from bisect import bisect
from functools import cache
from typing import Final

from agentkit.processor.marks import marks
from agentkit.processor.quotation import MARKS

_QUOTES: Final = MARKS | {"`"}
_FENCE: Final = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)


def ends_thinking(text: str) -> bool:
    """Whether it closes thinking that it does not open."""
    opens = marks().opens
    return any(text.count(close) > sum(map(text.count, opens[close])) for close in opens)


def last_end_of_thinking(text: str) -> int:
    """Where the last closing tag begins that is not in quotation marks, backticks or a closed code fence; else -1."""
    ends = list(_closings().finditer(text))
    fences = [found.start() for found in _FENCE.finditer(text)] if ends else []
    for end in reversed(ends):
        around = text[max(end.start() - 1, 0) : end.start()], text[end.end() : end.end() + 1]
        before = bisect(fences, end.start())
        if not (_QUOTES.issuperset(around) or (before % 2 and before < len(fences))):
            return end.start()
    return -1


@cache
def _closings() -> re.Pattern[str]:
    return re.compile("|".join(sorted(map(re.escape, marks().opens), key=len, reverse=True)))
