"""Reads the regular expressions of a `response_template` as literals and gaps.

Such a template has patterns as delimiters. Most of them are literals with optional white space, a captured name, and an
alternative or two: these can be declared as parts. Knows no format and no template.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from agentkit.errors import FormatError


@dataclass(frozen=True, slots=True)
class CapturedGroup:
    """A named group: its characters are a value, up to the literal after it."""

    name: str


class Zero(Enum):
    """The elements of a pattern other than literals and captured values."""

    GAP = "any characters"
    EDGE = "a condition that consumes no characters: the start or end of the text, or a lookaround"


Item = str | CapturedGroup | Zero
Spelling = tuple[Item, ...]

_MOST: Final = 16  # maximum number of alternatives in a pattern: real ones have up to 4


def spellings(pattern: str) -> tuple[Spelling, ...]:
    """Everything that a pattern can match, as literals, captured values and gaps, in the order of the alternatives.

    Optional white space becomes one newline, or a space in JSON: a format reads literals with any or no white space.

    Raises:
        FormatError: it has elements that no format's parts can express (a repeated group, a reference, …).
    """
    reader = _Pattern(pattern)
    found = reader.alternatives()
    if reader.at < len(pattern):
        raise reader.cannot("a ')' that closes nothing")
    return tuple(dict.fromkeys(map(_merged, found)))


def _merged(items: Spelling) -> Spelling:
    """Merge adjacent literals, and adjacent gaps."""
    out: list[Item] = []
    for item in items:
        last = out[-1] if out else None
        if isinstance(item, str) and isinstance(last, str):
            out[-1] = last if item.isspace() and last[-1:].isspace() else last + item
        elif item is not last:
            out.append(item)
    return tuple(out)


class _Pattern:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def cannot(self, what: str) -> FormatError:
        return FormatError(f"the pattern {self.text!r} has {what} at {self.at}")

    def sees(self, text: str) -> bool:
        """Consume this text if it is next."""
        found = self.text.startswith(text, self.at)
        self.at += len(text) * found
        return found

    def alternatives(self) -> list[Spelling]:
        found = self.sequence()
        while self.sees("|"):
            found += self.sequence()
        return found

    def sequence(self) -> list[Spelling]:
        found: list[Spelling] = [()]
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            following = list(self.quantified())
            found = [(*before, *after) for before in found for after in following]
            if len(found) > _MOST:
                raise self.cannot(f"more than {_MOST} alternatives")
        return found

    def quantified(self) -> Iterator[Spelling]:
        before = self.text[self.at - 1 : self.at]
        found, wide = self.atom()
        mark = self.text[self.at : self.at + 1]
        if mark not in ("*", "+", "?", "{"):
            return iter([(Zero.GAP,)] if wide and found == [(Zero.GAP,)] else found)
        self.at += 1
        if mark == "{":
            self.at = self.text.find("}", self.at) + 1 or len(self.text)
        if self.text[self.at : self.at + 1] in ("?", "+"):  # lazy or possessive
            self.at += 1
        if found == [("\n",)] or found == [(" ",)]:
            return iter([(" " if mark == "+" or before in (":", ",") else "\n",)])
        if wide:
            return iter([(Zero.GAP,)])
        if mark != "?" or any(isinstance(item, CapturedGroup) for spelling in found for item in spelling):
            raise self.cannot("a repeated or optional part that is not a single character class")
        return iter([*found, ()])

    def atom(self) -> tuple[list[Spelling], bool]:
        """The next element, and whether it is a character class."""
        c = self.text[self.at]
        if self.sees("(?P<"):
            return [(self.captured(),)], False
        if self.sees("(?:"):
            found = self.alternatives()
            self.close()
            return found, False
        if any(self.sees(start) for start in ("(?=", "(?!", "(?<=", "(?<!")):
            self.skip_group()
            return [(Zero.EDGE,)], False
        self.at += 1
        match c:
            case "(":
                raise self.cannot("a group that is neither named nor (?:…)")
            case "^" | "$":
                return [(Zero.EDGE,)], False
            case ".":
                return [(Zero.GAP,)], True
            case "[":
                self.skip_class()
                return [(Zero.GAP,)], True
            case "\\":
                return self.escape()
            case _:
                return [(c,)], False

    def escape(self) -> tuple[list[Spelling], bool]:
        c = self.text[self.at : self.at + 1]
        self.at += 1
        if c in "AZz":
            return [(Zero.EDGE,)], False
        if c in "nsrt":
            return [("\n",)], False
        if c in "wWdDSB":
            return [(Zero.GAP,)], True
        if c.isalnum():
            raise self.cannot(f"the escape \\{c}")
        return [(c,)], False

    def captured(self) -> CapturedGroup:
        end = self.text.find(">", self.at)
        name, self.at = self.text[self.at : end], end + 1
        self.skip_group()
        return CapturedGroup(name)

    def close(self) -> None:
        if not self.sees(")"):
            raise self.cannot("a group without an end")

    def skip_group(self) -> None:
        """Consume a group's characters and its end."""
        while self.at < len(self.text) and self.text[self.at] != ")":
            c = self.text[self.at]
            self.at += 2 if c == "\\" else 1
            if c == "[":
                self.skip_class()
            elif c == "(":
                self.skip_group()
        self.close()

    def skip_class(self) -> None:
        """Consume a character class, after its bracket."""
        self.at += len(self.text[self.at : self.at + 1]) * (self.text[self.at : self.at + 1] == "^")
        self.at += self.text[self.at : self.at + 1] == "]"
        while self.at < len(self.text) and self.text[self.at] != "]":
            self.at += 2 if self.text[self.at] == "\\" else 1
        if not self.sees("]"):
            raise self.cannot("a class without end")
