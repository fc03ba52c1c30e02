"""A Python list in prose that is no list of calls: one expression, in which no call runs that nothing marks as one.

It is followed as it is emitted, and nothing is held back. Knows characters, but no opener and no tool.
"""

from __future__ import annotations

import re
from typing import Final

from agentkit.formats.other_json import Standpoint
from agentkit.formats.reader import Delimiter

_STRING: Final = r"(?P<quote>[\"'])(?:(?!(?P=quote))[^\n]){0,256}"
_CALL: Final = r"[^\W\d][\w.]{0,127}"
BARE_LIST: Final = Delimiter(
    rf"\[\s{{0,64}}(?:{_STRING}(?P=quote)\s{{0,64}}[,\]]|{_CALL}\(\s{{0,64}}[^\W\d]\w{{0,127}}\s{{0,64}}=)",
    rf"\[\s{{0,64}}(?:{_STRING}(?:(?P=quote)\s{{0,64}})?|{_CALL}(?:\(\s{{0,64}}\w{{0,128}}\s{{0,64}})?)?",
)
"""What begins such a list: a string that ends in its line, or a call with a named argument."""
_TOKEN: Final = re.compile(r"[\[\](){}\"'\n\\]|[^\[\](){}\"'\n\\\s]+").finditer


class BareList:
    """One list, from its first bracket on. It is over at its last bracket or an empty line; a string, with its line."""

    __slots__ = ("_breaks", "_depth", "_escaped", "_quote")

    quotes: Final = False

    def __init__(self) -> None:
        self._depth = self._breaks = 0
        self._quote = ""  # that of the open string
        self._escaped = False

    def feed(self, text: str) -> bool:
        """Add what comes next; returns whether it continues after that."""
        for found in _TOKEN(text):
            c = found[0]
            self._breaks = self._breaks + 1 if c == "\n" else 0
            if self._breaks > 1:
                return False
            if c == "\n":
                self._quote = ""
            elif self._quote:
                self._quote = "" if c == self._quote and not self._escaped else self._quote
            elif c in ("'", '"'):
                self._quote = c
            elif len(c) == 1:
                self._depth += (c in "[({") - (c in "])}")
                if self._depth < 1 and c in "])}":
                    return False
            self._escaped = c == "\\" and not self._escaped
        return True

    def place(self, bracket: str) -> Standpoint:
        """Where a bracket is that comes next: always inside."""
        return "inside"
