"""What is in a code fence of calls, one after another, of which the first cannot be read. Knows the declarations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from agentkit.formats.format import Envelope, Shape
from agentkit.formats.reader import pattern

_SPACE: Final = r"\s{0,64}"
_END: Final = re.compile(r"\n[ \t]{0,64}`{3,}(?=[^`]|\Z)")
_FIRST: Final = 256  # characters in which the first object shows that it was meant as a call


class Fenced:
    """Looks in a fence for an object that is nearly a call, and for a call of an offered tool after it."""

    __slots__ = ("_call", "_like", "_open")

    def __init__(self, shape: Shape, names: Iterable[str]) -> None:
        envelope = next((part for part in shape.call if isinstance(part, Envelope)), None)
        known = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True)) or "(?!)"
        key, arguments = (re.escape(envelope.name), "|".join(envelope.arguments)) if envelope else ("(?!)", "(?!)")
        self._open = re.compile(rf"{pattern(str(shape.call[0]).strip())}{_SPACE}(?=\{{)")
        self._like = re.compile(rf'"(?:{key}|{arguments}|{known})"').search
        named = rf'\{{{_SPACE}"{key}"{_SPACE}:{_SPACE}"(?:{known})"{_SPACE}'
        self._call = re.compile(rf'[\}}\],;\n]{_SPACE}{named}(?:\}}|,{_SPACE}"(?:{arguments})"{_SPACE}:)').search

    def opening(self, text: str, at: int) -> int:
        """How long the fence's opening is that starts there."""
        found = self._open.match(text, at)
        return found.end() - at if found else 0

    def end(self, text: str, *, whole: bool) -> int | None:
        """Where the fence ends with which this text begins; 0 if no call is lost in it, None while more must decide."""
        inside = self.opening(text, 0)
        first = text[inside : inside + _FIRST]
        if not inside or (self._like(first) is None and (whole or len(first) == _FIRST)):
            return 0
        closed = _END.search(text, inside)
        if closed is None and not whole:
            return None
        if closed is not None and closed.end() == len(text) and not whole:
            return None
        call = self._call(text, inside, closed.start() if closed else len(text))
        return (closed.end() if closed else len(text)) if call else 0
