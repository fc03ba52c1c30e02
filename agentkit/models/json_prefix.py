"""JSON text of one object while it is being written: how much of it is certainly right, and what completes it. Pure.

Text is accepted up to the last place from which any value can still be completed: after a complete value, or inside a
string. The end of the object itself is never accepted; `rest` writes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Any, Final

from agentkit.checks.unicode import has_surrogate, without_surrogates
from agentkit.formats.format import Limits
from agentkit.formats.pieces import Pieces
from agentkit.schemas.typed import values
from agentkit.schemas.typed.exact import RoundedNumber

_HIGH, _LOW = "[dD][89abAB][0-9a-fA-F]{2}", "[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE: Final = rf'\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{{4}}|u{_HIGH}\\u{_LOW})'  # no half of a pair
_CHARACTER: Final = '[^"\\\\\\x00-\\x1f\ud800-\udfff]'
_CHARACTERS: Final = re.compile(rf"(?:{_CHARACTER}++|{_ESCAPE})*+")
_STOP: Final = re.compile('["\\\\\\x00-\\x1f\ud800-\udfff]').search

_SPACE: Final = r"[ \t\n\r]*+"
_KEY: Final = rf'("(?:{_CHARACTER}++|{_ESCAPE})*+"){_SPACE}:{_SPACE}'
_LEADS: Final = {
    (True, False): re.compile(_SPACE + _KEY),
    (True, True): re.compile(f"{_SPACE},{_SPACE}{_KEY}"),
    (False, False): re.compile(f"({_SPACE})"),
    (False, True): re.compile(f"({_SPACE},{_SPACE})"),
}
"""The text before a value: in an object or an array, before its first value or a further one."""

_OPENING: Final = re.compile(rf"{_SPACE}\{{")
_CLOSING: Final = re.compile(rf"{_SPACE}([}}\]])")
_SCALAR: Final = re.compile(
    r"(?:(-?(?:0|[1-9][0-9]{0,300})(?:\.[0-9]{1,300})?(?:[eE][+-]?[0-9]{1,9})?)|true|false|null)(?=[ \t\n\r,}\]])"
)

_MAX_HELD: Final = 1_024  # characters of a key and the space around it that are read again with every piece

_DEPTH: Final = Limits().depth


class Contradiction(ValueError):
    """The text that was passed on is not the beginning of the value."""


class _Level:
    """An object or array that is open. `count` are its values so far; `key` is the key of the last one."""

    __slots__ = ("count", "key", "keys")

    def __init__(self, opener: str) -> None:
        self.keys: set[str] | None = set() if opener == "{" else None
        self.key = ""
        self.count = 0

    def begin(self, key: str) -> None:
        self.count += 1
        if self.keys is not None:
            self.key = key
            self.keys.add(key)

    def last(self, value: Any) -> Any:
        """Return the last of the values so far, of the whole array or object."""
        return value[self.count - 1] if self.keys is None else value[self.key]

    def rest(self, value: Any) -> str:
        """Return the values that are missing, and the end."""
        if self.keys is None:
            texts, closer = [values.dump(inner) for inner in value[self.count :]], "]"
        else:
            missing = [(k, v) for k, v in value.items() if k not in self.keys]
            texts, closer = [f"{values.dump(k)}: {values.dump(v)}" for k, v in missing], "}"
        return (", " if self.count and texts else "") + ", ".join(texts) + closer


class JsonPrefix:
    """The text of one JSON object, as it arrives.

    Args:
        passes: whether the value of a key of the object itself may be passed on, by the key and the first character of
            the value. After the first value that may not, nothing is accepted.
    """

    __slots__ = ("_held", "_levels", "_passes", "_string", "_text", "stopped")

    def __init__(self, passes: Callable[[str, str], bool] = lambda key, first: True) -> None:
        self._passes = passes
        self._levels: list[_Level] = []
        self._string: Pieces | None = None  # the open string value, as it is written in JSON
        self._held = ""
        self._text = Pieces()
        self.stopped = False

    def feed(self, text: str) -> str:
        """Read more of the object's text; returns the text that is accepted now."""
        if self.stopped:
            return ""
        if self._string is not None and not self._held and _STOP(text) is None:
            self._string.add(text)
            self._text.add(text)
            return text
        buf, at = self._held + text, 0
        while (end := self._step(buf, at)) > at:
            at = end
        self._held = buf[at:]
        if len(self._held) > _MAX_HELD:
            self.stop()
        self._text.add(buf[:at])
        return buf[:at]

    def stop(self) -> None:
        """Accept nothing more."""
        self.stopped = True

    def open(self, key: str) -> str:
        """Begin a string value in the object itself; returns the text before its characters."""
        before = '{"' if not self._levels else ', "'
        if not self._levels:
            self._levels.append(_Level("{"))
        self._levels[0].begin(key)
        self._string = Pieces()
        return self._add(f'{before}{encode_basestring(key)[1:-1]}": "')

    def write(self, text: str) -> str:
        """Continue the open string value; returns the characters as JSON writes them."""
        if not text.isascii() and has_surrogate(text):
            text = without_surrogates(text)
        written = encode_basestring(text)[1:-1]
        if self._string is not None:
            self._string.add(written)
        return self._add(written)

    def end_string(self) -> str:
        """End the open string value, if there is one."""
        if self._string is None:
            return ""
        self._string = None
        return self._add('"')

    def rest(self, value: dict[str, Any]) -> str:
        """Return the text that completes the accepted text, so that it says this value.

        Raises:
            Contradiction: the accepted text is not the beginning of this value.
        """
        try:
            rest = self._rest(value) if self._levels else values.dump(value)
            if json.loads(self._text.text() + rest) == value:
                return rest
        except (LookupError, TypeError, AttributeError, ValueError, RecursionError) as e:
            raise Contradiction(str(e)) from e
        raise Contradiction("the values differ")

    def __len__(self) -> int:
        """Return how many characters are accepted."""
        return len(self._text)

    def value(self) -> Any:
        """Return the value so far: what is open ends here. None before its first character."""
        if not self._levels:
            return None
        ends = ("}" if level.keys is not None else "]" for level in reversed(self._levels))
        return json.loads("".join((self._text.text(), '"' if self._string is not None else "", *ends)))

    def _rest(self, value: Any) -> str:
        path = [value]
        for level in self._levels[:-1]:
            path.append(level.last(path[-1]))
        rest = []
        if self._string is not None:
            whole, sent = self._levels[-1].last(path[-1]), json.loads(f'"{self._string.text()}"')
            rest.append(values.dump(whole.removeprefix(sent))[1:])
        rest += [level.rest(inner) for level, inner in zip(reversed(self._levels), reversed(path), strict=True)]
        return "".join(rest)

    def _add(self, text: str) -> str:
        self._text.add(text)
        return text

    # ------------------------------------------------------------ reading; each returns the index up to which it read

    def _step(self, buf: str, at: int) -> int:
        if self._string is not None:
            return self._characters(buf, at, self._string)
        if not self._levels:
            opened = _OPENING.match(buf, at)
            return self._enter(opened.end(), "{") if opened else at
        if closed := _CLOSING.match(buf, at):
            return self._leave(closed, at)
        level = self._levels[-1]
        lead = _LEADS[level.keys is not None, level.count > 0].match(buf, at)
        if lead is None or lead.end() == len(buf):
            return at
        return self._value(buf, at, lead)

    def _characters(self, buf: str, at: int, string: Pieces) -> int:
        end = _CHARACTERS.match(buf, at).end()  # type: ignore[union-attr]  # it matches the empty string
        string.add(buf[at:end])
        if buf[end : end + 1] == '"':
            self._string = None
            return end + 1
        return end

    def _leave(self, closed: re.Match[str], at: int) -> int:
        if len(self._levels) == 1 or (closed[1] == "]") != (self._levels[-1].keys is None):
            self.stop()
            return at
        self._levels.pop()
        return closed.end()

    def _enter(self, end: int, opener: str) -> int:
        self._levels.append(_Level(opener))
        return end

    def _value(self, buf: str, at: int, lead: re.Match[str]) -> int:
        level, end, first = self._levels[-1], lead.end(), buf[lead.end()]
        key = json.loads(lead[1]) if level.keys is not None else ""
        known = level.keys is not None and key in level.keys
        if known or not (len(self._levels) > 1 or self._passes(key, first)) or len(self._levels) >= _DEPTH:
            self.stop()
            return at
        if first in '"{[':
            level.begin(key)
            if first != '"':
                return self._enter(end + 1, first)
            self._string = Pieces()
            return end + 1
        found = _SCALAR.match(buf, end)
        if found is None:
            return at
        if found[1] and not _is_exact(found[1]):
            self.stop()
            return at
        level.begin(key)
        return found.end()


def _is_exact(number: str) -> bool:
    """Return whether a number can be read without a change of its digits."""
    try:
        return not isinstance(values.DECODER.decode(number), RoundedNumber)
    except ValueError:
        return False
