"""Other JSON in prose, in which an unmarked call does not count.

Unmarked calls are common in it: in a log, an example, an API's answer. It is parsed as it is emitted, without waiting.
Knows characters, but no opener and no tool.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from agentkit.checks.spelling import edits
from agentkit.formats.otherkeys import NESTED
from agentkit.formats.reader import Delimiter

Place = Literal["inside", "damaged", "after"]
"""The place of a bracket: in such JSON; in damaged JSON, where a call is an error; or after it."""

_OBJECT: Final = r'\{\s{0,64}"(?:(?P<key>[^"\\\n]{0,32})"(?=[^\w"])|[^"\\\n]{33}|[^"\\\n]{0,32}\\)'
_NUMBERS: Final = r"\[\s{0,64}(?:-?\d[\d.eE+-]{0,31}|true|false|null)\s{0,16},"
_BEGUN: Final = r'\{\s{0,64}(?:"[^"\\\n]{0,32}"?)?|\[\s{0,64}(?:[\d.eE+-]{0,32}|[a-z]{0,5})\s{0,16}'
OTHER_JSON: Final = Delimiter(f"{_OBJECT}|{_NUMBERS}", _BEGUN)
"""The start of an object, or of an array of several numbers or the like: prose has `[1]`.

In any other array an object may be a call, and the string before it the rest of a damaged one.
"""
JSON_REPLY: Final = Delimiter(
    rf"\s{{0,64}}(?:{_OBJECT}|{_NUMBERS}|\[\s{{0,64}}[\[{{\"])", rf"\s{{0,64}}(?:{_BEGUN}|\Z)"
)
"""The start of a reply that is JSON."""
_LISTS: Final = ("tool_calls", "function_calls", "calls")  # keys of a list of calls
_WRAPS: Final = (*_LISTS, *NESTED)
ARRAY: Final = r"\s{0,64}(?:[\d.eE+-]{1,32}|[a-z]{0,5})\s{0,16}(?:,|\Z)"
"""A pattern for text after the bracket of such an array."""

_STRING: Final = r"(?P<quote>[\"'])(?:(?!(?P=quote))[^\n]){0,256}"
_CALL: Final = r"[^\W\d][\w.]{0,127}"
BARE_LIST: Final = Delimiter(
    rf"\[\s{{0,64}}(?:{_STRING}(?P=quote)\s{{0,64}}[,\]]|{_CALL}\(\s{{0,64}}[^\W\d]\w{{0,127}}\s{{0,64}}=)",
    rf"\[\s{{0,64}}(?:{_STRING}(?:(?P=quote)\s{{0,64}})?|{_CALL}(?:\(\s{{0,64}}\w{{0,128}}\s{{0,64}})?)?",
)
"""The start of a Python list that is not one of calls: a string that ends in its line, or a call of no offered tool."""
_LONG: Final = 32  # characters; a longer key is none of these
_JSON: Final = re.compile(r"[\[\]{}:,\"\n\\]|[^\[\]{}:,\"\n\\\s]+").finditer
_PYTHON: Final = re.compile(r"[\[\](){}\"'\n\\]|[^\[\](){}\"'\n\\\s]+").finditer
_NO_SCALAR: Final = re.compile(r"[^-+.\dEtrufalsen]").search


def wraps_calls(key: str | None) -> bool:
    """Return True if an object with this first key may wrap calls; the key may be misspelt, doubled or missing."""
    return key is not None and any(edits(key, word) < 2 or not key.replace(word, "") for word in _WRAPS)


class OtherJson:
    """One object, array or Python list, from its first bracket on: text before that is skipped.

    It ends with its last bracket; an array also at a word that JSON does not have, as prose has such brackets. A string
    ends with its line. JSON is damaged after such a string, after an empty line, and after a misplaced JSON token: a
    call in it is an error. It ends at a call, or in a list of calls, that the outermost object has under such a key.
    With `reply`, the reply begins with it, and text in its strings is quoted.
    Source: goose#10606.
    """

    __slots__ = ("_breaks", "_damaged", "_escaped", "_key", "_last", "_open", "_python", "_quote", "_reply")

    def __init__(self, *, python: bool = False, reply: bool = False) -> None:
        self._python, self._reply = python, reply
        self._open = ""  # the brackets that are open
        self._quote = ""  # that of the open string
        self._escaped = self._damaged = False
        self._key = ""  # the last string of the outermost object, as far as it matters
        self._last = ""  # the first character of the last symbol
        self._breaks = 0  # the line breaks since that

    @property
    def quotes(self) -> bool:
        """True if the next character is in a string of a reply that is JSON."""
        return self._reply and self._quote != "" and not self._damaged

    def feed(self, text: str) -> bool:
        """Add the next text; returns False if the JSON ends in it."""
        return all(self._takes(found[0]) for found in (_PYTHON if self._python else _JSON)(text))

    def place(self) -> Place:
        """Return the place of a bracket that comes next and opens an object or an array."""
        if (self._open == "{[" and self._key in _LISTS) or (self._open == "{" and self._key in NESTED):
            return "after"
        if self._quote and not self._python:  # a bracket of prose may be before a quotation mark
            return "inside" if self._open.startswith("{") else "after"
        has_place = self._last == ":" if self._open.endswith("{") else self._last in ("[", ",")
        return "inside" if self._python or (has_place and not self._damaged) else "damaged"

    def _takes(self, symbol: str) -> bool:
        """Read the next symbol; False if it is the last one."""
        if not self._open and symbol not in ("{", "["):
            return True
        self._breaks = self._breaks + 1 if symbol == "\n" else 0
        if symbol == "\n":
            self._damaged = self._damaged or self._quote != "" or self._breaks > 1
            self._quote = ""
            return not (self._python and self._breaks > 1)
        escaped, self._escaped = self._escaped, symbol == "\\" and not self._escaped
        if self._quote:
            if symbol == self._quote and not escaped:
                self._quote = ""
            elif self._open == "{" and len(self._key) < _LONG:
                self._key += symbol
            return True
        first, self._last = self._last in ("", "{", "[", ",", ":"), symbol[0]
        self._damaged = self._damaged or (symbol == '"' and not first) or (symbol == "," and first)
        if symbol in ('"', "'") and len(symbol) == 1:
            self._quote, self._key = symbol, "" if self._open == "{" else self._key
        elif symbol in ("{", "[", "("):
            self._open += symbol
        elif symbol in ("}", "]", ")"):
            self._open = self._open[:-1]
        elif symbol not in (":", ",") and not self._python and _NO_SCALAR(symbol):
            self._damaged = True
            return self._open.startswith("{")
        return self._open != ""
