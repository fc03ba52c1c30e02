"""The tokens at which a raw value may end: which one is here, and what follows it.

Knows the reader, but no format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Final

from agentkit.formats.reader import Damage, Reader, Wait
from agentkit.formats.valueends import ValueEnd

CDATA_OPEN: Final = "<![CDATA["
CDATA_CLOSE: Final = "]]>"
_BLANK = re.compile(r"\s*")
_LINE_OVER = re.compile(r"[ \t]*(?:\r|\n|\Z|[<\[\]])").match
"""After the end of a call: the line's end, or what may open or close something; not more of a sentence."""
_SPACES_ONLY = re.compile(r"[ \t]*\r?\Z").match
_WORD_BEHIND = re.compile(r"[ \t]+[^\s<]").match
_LINE: Final = 256  # characters examined of the line after a section
_TOLD: Final = ("fit", "call")  # they are complete: more text cannot make them something else


class ValueTokens:
    """Examines what may end the value of `key`; `missing` decides by name whether a parameter is still to come."""

    __slots__ = ("end", "key", "missing", "r")

    def __init__(self, r: Reader, key: str, end: ValueEnd, missing: Callable[[str], bool] | None) -> None:
        self.r, self.key, self.end, self.missing = r, key, end, missing

    def token(self, ahead: int, *, over_space: bool = False) -> Generator[None, None, re.Match[str] | None]:
        """The token that is `ahead` characters from here, maybe over white space; waits until it is certain."""
        r, token = self.r, self.end.token
        while True:
            at = r.at + ahead
            if over_space:
                at = _BLANK.match(r.buf, at).end()  # type: ignore[union-attr]  # it matches nothing too
            found = token.match(r.buf, at)
            if r.ended or (found is not None and found.lastgroup in _TOLD):
                return found
            if at < len(r.buf) and token.part.match(r.buf, at) is None:
                return found
            yield

    def is_missing(self, token: re.Match[str]) -> bool:
        """Whether the opening of a value is that of a parameter that is still to come."""
        name = token.groupdict().get("name")
        return name is not None and self.missing is not None and self.missing(name.strip())

    def is_over(self, token: re.Match[str]) -> Generator[None, None, bool]:
        """Whether the value's closing certainly ends it: after the call nothing closes a second time.

        Only white space is skipped. After prose a closing may as well be all that is left of a damaged call, which
        must not cost this one.
        """
        if token["over"] is None or token.groupdict().get("section") is not None:
            return True
        r = self.r
        ahead = token.end("over") - r.at
        while True:
            behind = yield from self.token(ahead, over_space=True)
            if behind is None:
                if token.groupdict().get("shut") is not None:
                    yield from self.refuse_in_line(ahead)
                return True
            if behind.lastgroup == "value" and self.is_missing(behind):
                wanted = f"expected no parameter after the end of the call, which closes {self.key!r}"
                raise Damage("invalid_arguments", wanted, r.base + behind.start(), got=True)
            if behind.lastgroup not in ("tail", "section"):
                return behind.lastgroup not in ("close", "fit", "odd", "end")
            ahead = behind.end() - r.at

    def refuse_in_line(self, ahead: int) -> Wait:
        """Look at the line after a section's end by which the call is over, too.

        Raises:
            Damage: a value is closed there that nothing opens; it may be one of the call, in which the section ended.
        """
        r = self.r
        while True:
            line = r.buf[r.at + ahead : r.at + ahead + _LINE].partition("\n")[0]
            if r.ended or len(line) == _LINE or r.at + ahead + len(line) < len(r.buf):
                break
            yield
        if (found := self.end.unopened(line)) >= 0:
            wanted = f"expected the end of the call before that of its section, and no {self.end.what} after that"
            raise Damage("ambiguous_call", wanted, r.offset + ahead + found)

    def is_clean(self, token: re.Match[str]) -> Generator[None, None, bool]:
        """Whether the call may be over after this: its line ends there, or other markup follows."""
        r = self.r
        ahead = token.end() - r.at
        while not r.ended and _SPACES_ONLY(r.buf, r.at + ahead):
            yield
        return _LINE_OVER(r.buf, r.at + ahead) is not None

    def in_a_sentence(self, token: re.Match[str]) -> Generator[None, None, bool]:
        """Whether a sentence continues after this in its line."""
        r = self.r
        ahead = token.end() - r.at
        while not r.ended and _SPACES_ONLY(r.buf, r.at + ahead):
            yield
        return _WORD_BEHIND(r.buf, r.at + ahead) is not None

    def unsure(self, start: int, end: int, *, ended: bool = False) -> Damage:
        """The error for a value in which, from `start`, what opens and closes does not balance."""
        return Damage(
            "ambiguous_call",
            f"it is ambiguous where the value of {self.key!r} ends: what opens and closes in it does not balance. "
            f"Write {self.end.what} after each value, and put one that contains parts of a call in {CDATA_OPEN} … "
            f"{CDATA_CLOSE}",
            start,
            ended=ended,
            end=end,
        )

    def truncated(self) -> Damage:
        """The error for a text that ends inside the value."""
        message = f"the text ended inside {self.key!r}, before {self.end.what}"
        return Damage("truncated_call", message, self.r.offset, ended=True)
