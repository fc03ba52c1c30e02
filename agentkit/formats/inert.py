"""Text in which a call that nothing marks as one does not count: other JSON, a comment, a string of code.

A bare call is common in such text: in a log, in an example, in what an API answered. It is followed as it is emitted,
and nothing is held back. Knows characters, but no opener and no tool.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final, Literal

from agentkit.formats.damage.listed import later
from agentkit.formats.damage.otherkeys import NESTED
from agentkit.formats.damage.worn_tokens import end_of
from agentkit.formats.reader import Delimiter, Reader, Search
from agentkit.formats.worn import alike

Standpoint = Literal["inside", "damaged", "over"]
"""Where a bracket is: in such text; in damaged JSON, where a call is an error; or after it."""

OTHER_JSON: Final = Delimiter(
    r'\{\s{0,64}"(?:(?P<key>[^"\\\n]{0,32})"(?=[^\w"])|[^"\\\n]{33}|[^"\\\n]{0,32}\\)'
    r"|\[\s{0,64}(?:-?\d[\d.eE+-]{0,31}|true|false|null)\s{0,16},",
    r'\{\s{0,64}(?:"[^"\\\n]{0,32}"?)?|\[\s{0,64}(?:[\d.eE+-]{0,32}|[a-z]{0,5})\s{0,16}',
)
"""What begins an object, or an array of numbers or the like: of several, as prose has `[1]`.

In any other array an object may be a call, and the string before it what is left of a damaged one.
"""
_WRAPS: Final = ("tool_calls", "function_calls", *NESTED)

_QUOTES: Final = {
    '"': '"',
    "'": "'",
    "\u201c": "\u201d",
    "\u2018": "\u2019",
    "\u201e": "\u201c\u201d",
    "\u00ab": "\u00bb",
}
"""What opens a quotation, and what closes it."""
_ENDS: Final = {"//": r"\n", "/*": r"\*/|\n[ \t\r]*\n", '"""': '"""', "'''": "'''"}
"""What begins a comment or a string of code, and a regular expression for what ends it."""
_MARK: Final = f"[{''.join(_QUOTES)}]"
_STRING: Final = "\"{3}|'{3}"
_VALUE: Final = r"\[?\s{0,16}"  # up to the brace of a call's object
_SHOWN: Final = Delimiter(
    rf"(?:{_STRING})(?:(?P<alone>(?=[ \t]{{0,64}}\r?\n))|(?=[ \t]{{0,64}}+[^\r\n]))"
    rf"|//|/\*|(?P<mark>{_MARK})(?={_VALUE}\{{)|(?P<sign>[=#])[ \t]{{0,8}}(?={_VALUE}\{{)",
    rf"(?:{_STRING})[ \t]{{0,64}}\r?|\"{{1,2}}|'{{1,2}}|/|{_MARK}{_VALUE}|[=#][ \t]{{0,8}}{_VALUE}",
)
MARKS: Final = {
    **dict.fromkeys(_QUOTES, rf"[\"']|{_VALUE}(?:\{{|\Z)"),
    **dict.fromkeys("=#", rf"[ \t]{{0,8}}{_VALUE}(?:\{{|\Z)"),
    "/": "[/*]",
}
"""What shows a bare call as code, or quotes it, by its first character: a regular expression for what may follow."""
ARRAY: Final = r"\s{0,64}(?:[\d.eE+-]{1,32}|[a-z]{0,5})\s{0,16}(?:,|\Z)"
"""What follows the bracket of such an array."""
COMMENT: Final = Delimiter("#|//", "/?")
"""What begins a comment after code in the same line."""
_REACH: Final = 2048  # characters in which the end of a quotation is looked for
_FEW: Final = 64  # characters that are searched again with each new one

_TOKEN: Final = re.compile(r"\s+|[\[\]{}:,\"]|[^\s\[\]{}:,\"]+").match
_IN_STRING: Final = re.compile(r"[^\"\\\x00-\x1f]*").match
_SCALAR: Final = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?").fullmatch
_OPENS: Final = {"}": "{", "]": "["}
_EDGE: Final = 80  # characters of the text before, in which what ends it may begin


def wraps_calls(key: str | None) -> bool:
    """Whether an object whose first key is this may be the wrapping of calls, perhaps misspelt, doubled or missing."""
    return key is not None and any(alike(key, word) or not key.replace(word, "") for word in _WRAPS)


def begins_inert(r: Reader, *, blank: bool) -> Generator[None, None, OtherJson | UpTo | None]:
    """What begins here in which no bare call counts, if anything does; `blank` if only white space is before it."""
    if (found := (yield from r.sees(_SHOWN))) is None:
        return None
    if found["mark"] is not None:
        return OtherJson() if (yield from _is_quoted(r, _QUOTES[found[0]])) else None
    if found["sign"] is not None:
        return OtherJson()
    return up_to(found[0]) if blank or found["alone"] is not None else None


def up_to(opening: str) -> UpTo:
    """The comment or the string that begins like this."""
    return UpTo(re.compile(_ENDS[opening]).search, len(opening))


def _is_quoted(r: Reader, closes: str) -> Generator[None, None, bool]:
    """Whether the mark here is closed directly after the value that it touches; a long value counts as if it was."""
    if not r.may_rewind(r.offset):
        return False
    enough = 0
    while True:
        text = r.buf[r.at + 1 : r.at + 1 + _REACH]
        whole = r.ended or len(text) == _REACH
        if whole or len(text) >= enough:
            end = end_of(text, 0, python=False)
            if whole or 0 <= end < len(text):
                r.rewound += end if end >= 0 else len(text)
                return text[end] in closes if 0 <= end < len(text) else len(text) == _REACH
            enough = later(len(text)) if len(text) > _FEW else 0
        yield


class OtherJson:
    """One object or array, from its first bracket on: what is before that is skipped.

    It is read strictly. A damaged object continues up to its last bracket, an empty line, or a line that neither is
    indented nor begins with a closing bracket; a damaged array is over at once, as prose has such brackets.
    """

    __slots__ = ("_apart", "_breaks", "_damaged", "_edge", "_escaped", "_expects", "_open", "_string", "_word")

    def __init__(self) -> None:
        self._open = ""  # the brackets that are open
        self._expects = "value"  # nothing if what was read is no JSON
        self._word = ""  # a number or a name of which more may come
        self._apart = False  # whether it begins a line that is not one of an object's
        self._string = self._escaped = False  # whether this is in a string, and after a backslash in it
        self._damaged = False
        self._breaks = 0  # the line breaks since the last token
        self._edge = False  # whether nothing followed the last one of them

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
            elif self._goes_on(token):
                self._breaks, self._edge = 0, False
            else:
                return False
        return True

    def place(self, bracket: str) -> Standpoint:
        """Where a bracket is that comes next and opens an object or an array."""
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
        self._escaped, self._string = c == "\\", c in ("", "\\")
        if self._string:
            return end + len(c)
        is_key = self._expects in ("key", "first key")
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
            self._word += token
            return self._expects in ("value", "item")
        self._end_word()
        expects, value = self._expects, self._expects in ("value", "item")
        match token:
            case "{" | "[" if value:
                self._open += token
                self._expects = "first key" if token == "{" else "item"
            case '"' if value or expects in ("key", "first key"):
                self._string = True
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


class UpTo:
    """Text up to and including what a pattern finds, after its opening of this many characters."""

    __slots__ = ("_end", "_opening", "_tail")

    def __init__(self, end: Search, opening: int) -> None:
        self._end, self._opening, self._tail = end, opening, ""

    def feed(self, text: str) -> bool:
        """Add what comes next; returns whether it continues after that."""
        skipped = min(self._opening, len(text))
        self._opening -= skipped
        self._tail += text[skipped:]
        if self._end(self._tail):
            return False
        self._tail = self._tail[-_EDGE:]
        return True

    def place(self, bracket: str) -> Standpoint:
        """Where a bracket is that comes next."""
        return "inside"
