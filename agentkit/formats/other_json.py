"""Other JSON in prose, in which a call that nothing marks as one does not count.

A bare call is common in it: in a log, in an example, in what an API answered. It is followed as it is emitted, and
nothing is held back. Knows characters, but no opener and no tool.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from agentkit.checks.spelling import edits
from agentkit.formats.otherkeys import NESTED
from agentkit.formats.reader import Delimiter

Standpoint = Literal["inside", "damaged", "over"]
"""Where a bracket is: in such text; in damaged JSON, where a call is an error; or after it."""

_OBJECT: Final = r'\{\s{0,64}"(?:(?P<key>[^"\\\n]{0,32})"(?=[^\w"])|[^"\\\n]{33}|[^"\\\n]{0,32}\\)'
_NUMBERS: Final = r"\[\s{0,64}(?:-?\d[\d.eE+-]{0,31}|true|false|null)\s{0,16},"
_BEGUN: Final = r'\{\s{0,64}(?:"[^"\\\n]{0,32}"?)?|\[\s{0,64}(?:[\d.eE+-]{0,32}|[a-z]{0,5})\s{0,16}'
OTHER_JSON: Final = Delimiter(f"{_OBJECT}|{_NUMBERS}", _BEGUN)
"""What begins an object, or an array of numbers or the like: of several, as prose has `[1]`.

In any other array an object may be a call, and the string before it what is left of a damaged one.
"""
JSON_REPLY: Final = Delimiter(
    rf"\s{{0,64}}(?:{_OBJECT}|{_NUMBERS}|\[\s{{0,64}}[\[{{\"])", rf"\s{{0,64}}(?:{_BEGUN}|\Z)"
)
"""What a reply begins with that is JSON."""
_LISTS: Final = ("tool_calls", "function_calls", "calls")  # keys of a list of calls
_WRAPS: Final = (*_LISTS, *NESTED)
_LONG: Final = 32  # characters; a longer key is none of these
_WORD: Final = 64  # characters of a number or name that are examined
ARRAY: Final = r"\s{0,64}(?:[\d.eE+-]{1,32}|[a-z]{0,5})\s{0,16}(?:,|\Z)"
"""What follows the bracket of such an array."""

_TOKEN: Final = re.compile(r"\s+|[\[\]{}:,\"]|[^\s\[\]{}:,\"]+").match
_IN_STRING: Final = re.compile(r"[^\"\\\x00-\x1f]*").match
_SCALAR: Final = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?").fullmatch
_OPENS: Final = {"}": "{", "]": "["}


def wraps_calls(key: str | None) -> bool:
    """Whether an object whose first key is this may be the wrapping of calls, perhaps misspelt, doubled or missing."""
    return key is not None and any(edits(key, word) < 2 or not key.replace(word, "") for word in _WRAPS)


class OtherJson:
    """One object or array, from its first bracket on: what is before that is skipped.

    It is read strictly. A damaged object continues up to its last bracket, an empty line, or a line that neither is
    indented nor begins with a closing bracket; a damaged array is over at once, as prose has such brackets. It is also
    over at a call, or in a list of calls, that the outermost object has under such a key. With `reply`, it is what the
    reply begins with, and its strings quote what is in them. Source: goose#10606.
    """

    __slots__ = (
        "_apart", "_breaks", "_damaged", "_edge", "_escaped", "_expects", "_key", "_open", "_reply", "_string", "_word",
    )  # fmt: skip

    def __init__(self, *, reply: bool = False) -> None:
        self._reply = reply
        self._open = ""  # the brackets that are open
        self._expects = "value"  # nothing if what was read is no JSON
        self._key = ""  # the last one of the outermost object, as far as it matters
        self._word = ""  # a number or a name of which more may come
        self._apart = False  # whether it begins a line that is not one of an object's
        self._string = self._escaped = False  # whether this is in a string, and after a backslash in it
        self._damaged = False
        self._breaks = 0  # the line breaks since the last token
        self._edge = False  # whether nothing followed the last one of them

    @property
    def quotes(self) -> bool:
        """Whether what comes next is in a string of a reply that is JSON."""
        return self._reply and self._string and not self._damaged

    def feed(self, text: str) -> bool:
        """Add what comes next; returns whether it continues after that."""
        at = 0
        while at < len(text):
            if self._string:
                at = self._in_string(text, at)
                continue
            found = _TOKEN(text, at)
            token = found[0] if found is not None else text[at]
            at += len(token)
            if token.isspace():
                self._end_word()
                if not self._expects and self._apart:
                    return False
                self._breaks += token.count("\n")
                self._edge = token[-1] == "\n"
                if self._damaged and self._breaks > 1:
                    return False
            elif self._goes_on(token):
                self._breaks, self._edge = 0, False
            else:
                return False
        return True

    def place(self, bracket: str) -> Standpoint:
        """Where a bracket is that comes next and opens an object or an array."""
        if (self._open == "{[" and self._key in _LISTS) or (self._open == "{" and self._key in NESTED):
            return "over"
        if self._string:  # a bracket of prose may be before a quotation mark
            return "inside" if self._open.startswith("{") else "over"
        self._end_word()
        self._damaged = self._damaged or self._expects not in ("value", "item")
        return "inside" if not self._damaged else "over" if self._is_over(bracket) else "damaged"

    def _in_string(self, text: str, at: int) -> int:
        """Read on in a string, up to its end or to the text's; returns where that is."""
        if self._escaped:
            self._escaped = False
            return at + 1
        found = _IN_STRING(text, at)
        end = found.end() if found is not None else at
        c = text[end : end + 1]
        is_key = self._expects in ("key", "first key")
        if is_key and self._open == "{" and len(self._key) < _LONG:
            self._key += text[at:end]
        self._escaped, self._string = c == "\\", c in ("", "\\")
        if self._string:
            return end + len(c)
        self._expects = "" if c != '"' else "colon" if is_key else "next"  # a string has no line breaks
        return end + (c == '"')

    def _goes_on(self, token: str) -> bool:
        """Read the next token; False if it is the last one, or does not belong to it any more."""
        if not self._open and token not in ("{", "["):
            return True
        self._damaged = self._damaged or not self._reads(token)
        if not self._damaged:
            return self._open != ""
        if self._is_over(token):
            return False
        if token in ("{", "["):
            self._open += token
        elif token in _OPENS:
            self._open = self._open[:-1]
        return self._open != ""

    def _is_over(self, token: str) -> bool:
        """Whether damaged JSON ends before this."""
        apart = self._breaks > 1 or (self._edge and token not in _OPENS)
        return apart or self._apart or not self._open.startswith("{")

    def _reads(self, token: str) -> bool:
        """Read the next token as JSON; False if it may not be here."""
        if token[0] not in '[]{}:,"':
            self._apart = self._breaks > 1 or self._edge if not self._word else self._apart
            self._word = (self._word + token)[:_WORD]
            return self._expects in ("value", "item")
        self._end_word()
        expects, value = self._expects, self._expects in ("value", "item")
        match token:
            case "{" | "[" if value:
                self._open += token
                self._expects = "first key" if token == "{" else "item"
            case '"' if value or expects in ("key", "first key"):
                self._string = True
                self._key = self._key if value or self._open != "{" else ""
            case ":" if expects == "colon":
                self._expects = "value"
            case "," if expects == "next":
                self._expects = "key" if self._open.endswith("{") else "value"
            case "}" | "]" if expects in ("next", "item", "first key") and self._open.endswith(_OPENS[token]):
                self._open, self._expects = self._open[:-1], "next"
            case _:
                return False
        return True

    def _end_word(self) -> None:
        """No more of a number or name comes."""
        if self._word:
            self._expects = "next" if _SCALAR(self._word) else ""
            self._apart = self._apart and not self._expects
            self._word = ""
