"""Whether what follows a Python call closes a string and a call that nothing there opened.

Then a string of the call was closed too early, and what follows is the rest of it. Reads nothing.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from agentkit.formats.damage.listed import Listed
from agentkit.formats.edges import edge_of
from agentkit.formats.format import Section
from agentkit.formats.reader import Delimiter

_TOKEN: Final = re.compile(r"\\.|(?<!\w)'|'(?!\w)|[\"()\[\]{}]", re.DOTALL).search
"""Brackets and quotes, without apostrophes in words."""
_COMMENT: Final = r"""#(?:[^\n"']|(?<=\w)'(?=\w)|"[^"\n]*"|'[^'\n]*')*+"""
"""A comment that has quotes in pairs, if a line's end follows."""
_SEPARATORS: Final = re.compile(rf"(?:[\s,;)]|{_COMMENT}(?:\n|\Z))*+").match
"""What is between two calls."""
_LINE_OVER: Final = re.compile(rf"[ \t]*+(?:{_COMMENT})?\n").match
_BLANK_LINE: Final = re.compile(r"\n[ \t\r]*\n")
_LINE: Final = re.compile(r"\n")
_BEFORE: Final = 64  # characters before a quote in which what opens a string is
_OPENED: Final = re.compile(r"[=(\[{,:+]\s*[rufRUF]{0,2}\Z").search
_GIVEN: Final = re.compile(r"=\s*[rufRUF]{0,2}\Z").search
_STRING: Final = {
    quote: re.compile(
        rf"{quote}{quote}(?:[^{quote}\\]|\\.|{quote}(?!{quote}{quote}))*+{quote}{quote}{quote}|(?:[^{quote}\\]|\\.)*+{quote}",
        re.DOTALL,
    ).match
    for quote in ('"', "'")
}
"""The rest of a string after its first quote."""
_ARGUMENT: Final = re.compile(r"\s{0,16},\s{0,16}[^\W\d]\w{0,128}\s{0,16}=(?!=)").match
_CLOSING: Final = re.compile(r"[)\]}\s]{0,16}?\)").match
_CALL: Final = re.compile(r"[^\W\d][\w.-]{0,128}\s{0,16}\(\s{0,16}[^\W\d]\w{0,128}\s{0,16}=(?!=)").match
"""A call of any name, with a named argument."""
_BETWEEN: Final = 128  # characters between two calls
_NEXT: Final = 256  # characters in which a call shows that it starts
_AHEAD: Final = 512  # characters that show what follows a quote or a bracket


def over_at_once(text: str, at: int, listed: Listed | None, *, ended: bool) -> bool:
    """Whether a call is plainly over in front of this place: there is the next one, or the end of the section.

    The end of the text, if that has `ended`, is a line's end, too.
    """
    if listed is None:
        return _LINE_OVER(text, at) is not None
    at = _SEPARATORS(text, at).end()  # type: ignore[union-attr]  # it matches nothing too
    if listed.close is None:
        shut = text.startswith("]\n", at) or (ended and text.startswith("]", at) and len(text) == at + 1)
    else:
        shut = listed.close.match(text, at) is not None
    return shut or listed.forms.start(text, at) is not None


@cache
def end_ahead(section: Section) -> Delimiter | None:
    """A section's end after a call; None for one that text may continue after, as after a bracket."""
    if isinstance(section.close, str) and len(section.close.strip()) < 2:
        return None
    edge = edge_of(section.close)
    return Delimiter(rf"{_SOON}(?:{edge.whole.pattern})", rf"{_SOON}(?:{edge.begun})?", re.RegexFlag(edge.whole.flags))


_SOON: Final = r"[\s,;)]{0,64}"


def over_early_end(text: str, listed: Listed | None, quotes: str, *, inline: bool, whole: bool) -> int | None:
    """Where the call ends, in the text after the bracket that seemed to close it; 0 if that was its end.

    Args:
        text: what follows that bracket.
        listed: what finds the other calls of the section; None where a call is a line of its own.
        quotes: those around the call's strings.
        inline: whether `]` ends the section.
        whole: whether that is all that can be searched.

    Returns:
        None while more text must decide.
    """
    sound, shut, following = False, False, 0
    if listed is not None:
        following = _SEPARATORS(text).end()  # type: ignore[union-attr]  # it matches nothing too
        comment = text.startswith("#", following) and "\n" not in text[following:]  # one that has not ended yet
        if not whole and (comment or text[following:] in ("", "]")):
            return None
        starts = listed.starts(text[following : following + _NEXT], whole=whole)
        if starts is not False:
            return None if starts is None else 0
        sound = _CALL(text, following) is not None
        if another := listed.forms.next.search(text, following):
            text, whole, shut = text[: another.start()], True, True
    text, whole = _before(text, 0, _LINE if listed is None else _BLANK_LINE, whole=whole)
    walk = _Walk(text, listed, quotes, inline=inline, whole=whole, sound=sound)
    walk.at, walk.shut = following, shut
    if listed is not None and listed.close is not None and (close := listed.close.search(text)):
        walk.text, walk.whole, walk.shut = text[: close.start()], True, True
    return walk.run()


def _before(text: str, start: int, edge: re.Pattern[str], *, whole: bool) -> tuple[str, bool]:
    """What is before an edge, and whether that is all."""
    found = edge.search(text, start)
    return (text, whole) if found is None else (text[: found.start()], True)


class _Walk:
    """Over brackets and quotes: `depth` brackets are open, and `quoted` is whether a quote was outside of them.

    `over` is whether the list has ended: then what closes it again must follow in that line. `shut` is whether the text
    ends with the end of the section; `sound`, whether it begins with a call, so far as that is read.
    """

    __slots__ = ("at", "depth", "inline", "listed", "over", "quoted", "quotes", "shut", "sound", "text", "whole")

    def __init__(
        self, text: str, listed: Listed | None, quotes: str, *, inline: bool, whole: bool, sound: bool
    ) -> None:
        self.text, self.listed, self.quotes = text, listed, quotes
        self.inline, self.whole, self.sound = inline, whole, sound
        self.depth = self.at = 0
        self.quoted = self.over = self.shut = False

    def run(self) -> int | None:
        """Where the call ends, 0 if it is over, None while more text must decide."""
        while (token := _TOKEN(self.text, self.at)) is not None:
            looks_on = token[0] in _STRING or (token[0] == ")" and (self.over or self.sound))
            if looks_on and not self.whole and len(self.text) - token.end() < _AHEAD:
                return None
            self.at = token.end()
            if token[0] == ")" and self._in_front_of_calls():
                return 0
            if token[0] in _STRING:
                self._quote(token[0], token.start())
            elif token[0] in "([{":
                self.depth += 1
            elif token[0] in ")]}" and self._closed(token[0]):
                return self.at
        return 0 if self.whole else None

    def _in_front_of_calls(self) -> bool:
        """Whether this bracket closes a call that the text begins with, and another one or the end follows."""
        closes = self.sound and self.depth == 1
        self.sound &= not closes
        return closes and not self.quoted and self._ends(self.at)

    def _closed(self, bracket: str) -> bool:
        """Whether this bracket closes the call."""
        if self.depth:
            self.depth -= 1
        elif bracket == "]" and self.inline and not self.over:
            size, self.over = len(self.text), True
            self.text, self.whole = _before(self.text, self.at, _LINE, whole=self.whole)
            self.shut &= len(self.text) == size
        elif bracket == ")" and self.quoted:
            return not self.over or self._ends(self.at)
        return False

    def _quote(self, quote: str, start: int) -> None:
        """A quote: it opens a string, is outside of any brackets, or closes a string that nothing opened."""
        before = self.text[max(start - _BEFORE, 0) : start]
        if (_OPENED if self.depth else _GIVEN)(before):
            self.quoted |= not self.depth
            self._over_string(quote)
        elif quote in self.quotes:
            closing = _CLOSING(self.text, self.at)
            if not self.depth or _ARGUMENT(self.text, self.at) or (closing and self._ends(closing.end())):
                self.depth, self.quoted = 0, True
            else:
                self._over_string(quote)

    def _ends(self, at: int) -> bool:
        """Whether the section ends here, or its next call is here."""
        at = _SEPARATORS(self.text, at, at + _BETWEEN).end()  # type: ignore[union-attr]  # it matches nothing too
        rest = self.text[at : at + _NEXT]
        over = (self.inline and rest.startswith("]")) or (not rest and (self.shut or not self.over))
        starts = self.listed is not None and self.listed.starts(rest, whole=True)
        return over or starts is True or _CALL(rest) is not None

    def _over_string(self, quote: str) -> None:
        """Pass over a string; a quote that nothing closes is not one's."""
        found = _STRING[quote](self.text, self.at)
        if found is not None:
            self.at = found.end()
        elif not self.whole:
            self.at = len(self.text)
