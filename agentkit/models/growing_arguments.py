"""A call's arguments while they come: whether they are complete so far, each character read once. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from agentkit.formats.pieces import Pieces
from agentkit.models.native_arguments import LIMITS, skip_space
from agentkit.schemas.typed import values
from agentkit.unicode import has_surrogate, without_surrogates

_OUTSIDE: Final = re.compile(r'["{}\[\]]')
_INSIDE: Final = re.compile(r'["\\]')


class GrowingArguments:
    """The text of a call's arguments, in pieces.

    Args:
        text: its beginning.

    Attributes:
        blank: whether nothing but space has come.

    >>> arguments = GrowingArguments('{"a": ')
    >>> arguments.values, arguments.add("1}"), arguments.values
    (None, None, {'a': 1})
    """

    __slots__ = ("_objects", "_pieces", "_read", "blank")

    def __init__(self, text: str = "") -> None:
        self._pieces = Pieces()
        self._objects = _Objects()
        self._read = 0
        self.blank = True
        if text:
            self.add(text)

    def __len__(self) -> int:
        """How many characters have come."""
        return len(self._pieces)

    def add(self, text: str) -> None:
        """One more piece."""
        self._pieces.add(text)
        self.blank = self.blank and (not text or text.isspace())

    def text(self) -> str:
        """All that has come."""
        return self._pieces.text()

    @property
    def values(self) -> Mapping[str, Any] | None:
        """What `read_arguments` makes of the text, if it ends with an object and can be read; otherwise None."""
        length = len(self._pieces)
        if self._read < length:
            self._objects.feed(self._pieces.last(length - self._read))
            self._read = length
        return self._objects.values() if length <= LIMITS.call else None


class _Objects:
    """Objects one after the other, of which the last counts if it repeats or extends those before it."""

    __slots__ = ("_broken", "_depth", "_last", "_marked", "_object", "_quoted", "_size", "_skip", "_union")

    def __init__(self) -> None:
        self._object: list[str] = []  # the pieces of the object that is open
        self._depth = 0
        self._quoted = self._skip = False  # inside a string; after a backslash that ends a piece
        self._broken = False  # no further text makes it readable
        self._marked = False  # what ends it is a byte order mark
        self._last: dict[str, Any] | None = None
        self._size = 0  # keys of that, as they were written
        self._union: dict[str, Any] = {}

    def feed(self, text: str) -> None:
        at = 0
        while at < len(text) and not self._broken:
            if not self._depth:
                start = at
                at = skip_space(text, at)
                self._marked = self._marked or "\ufeff" in text[start:at]
                if at == len(text):
                    return
                if text[at] != "{":
                    self._broken = True
                    return
            end = self._close(text, at)
            self._object.append(text[at:end])
            at = end
            if not self._depth:
                self._read("".join(self._object))
                self._object.clear()

    def _close(self, text: str, at: int) -> int:
        """Where the object ends that is open, or the text."""
        while at < len(text):
            if self._skip:
                self._skip = False
                at += 1
                continue
            found = (_INSIDE if self._quoted else _OUTSIDE).search(text, at)
            if found is None:
                return len(text)
            at = found.end()
            match found[0]:
                case "\\":
                    self._skip = True
                case '"':
                    self._quoted = not self._quoted
                case "{" | "[":
                    self._depth += 1
                case _:
                    self._depth -= 1
                    if not self._depth:
                        return at
        return at

    def _read(self, text: str) -> None:
        try:
            found = values.LOOSE.decode(text)
        except (ValueError, RecursionError):
            self._broken = True
            return
        self._broken = values.too_deep(found, text, LIMITS.depth)
        self._marked = False
        if found or self._last is None:
            self._last = without_surrogates(found) if "\\u" in text or has_surrogate(text) else found
            self._size = len(found)
        for key, value in found.items():
            if self._union.setdefault(key, value) != value:
                self._broken = True  # no object can repeat both

    def values(self) -> Mapping[str, Any] | None:
        if self._broken or self._depth or self._marked or self._size < len(self._union):
            return None
        return self._last
