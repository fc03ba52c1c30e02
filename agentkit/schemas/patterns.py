r"""Regular expressions in the spelling that llama.cpp's schema converter reads. Pure; knows ECMA 262 and the converter.

The converter matches a pattern against a string as JSON spells it. It reads groups, classes, alternatives and
repetitions between `^` and `$`, and GBNF's own escapes. For any other pattern, older builds refuse the whole request
("failed to parse grammar", "Pattern must start with '^' and end with '$'"); newer ones ignore the pattern, or refuse
it if it is not valid. In both, `.` and negated classes allow a quote, which ends the string.
Source: `common/json-schema-to-grammar.cpp` and `src/llama-grammar.cpp` of llama.cpp, build 11434.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

MOST: Final = 2000
"""The largest count of a repetition: `MAX_REPETITION_THRESHOLD` in llama.cpp's `llama-grammar.cpp`."""

Ranges = tuple[tuple[int, int], ...]
"""Characters as ascending ranges of code points, both ends included."""

_LAST: Final = 0x10FFFF
_SHORT: Final = {0x08: "b", 0x09: "t", 0x0A: "n", 0x0C: "f", 0x0D: "r", 0x22: '"', 0x5C: "\\"}
"""Characters that JSON spells with a backslash and a letter; it spells other control characters by their number."""
_ITSELF: Final = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-,:;/@#=<>!%&~'`")
"""Characters that the converter always reads as themselves."""

_COUNT: Final = re.compile(r"\{(\d{1,9})(,?)(\d{0,9})\}")
_NAMED_GROUP: Final = re.compile(r"\(\?P?<[A-Za-z_]\w*>")
_CODE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\})")
_CONTROLS: Final = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0"}
_BEYOND: Final = {"b": "a word boundary", "B": "a word boundary", "p": "a Unicode property", "P": "a Unicode property"}


class NoSpelling(ValueError):
    """The converter cannot read a pattern in any spelling; the message says why."""


def _union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    out: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return tuple(out)


def _others(ranges: Ranges) -> Ranges:
    """Return all characters outside of these ranges."""
    ends = [-1, *(edge for low, high in ranges for edge in (low, high)), _LAST + 1]
    pairs = zip(ends[::2], ends[1::2], strict=True)
    return tuple((after + 1, before - 1) for after, before in pairs if after + 1 <= before - 1)


def _of(characters: str) -> Ranges:
    return _union((ord(c), ord(c)) for c in characters)


_DIGITS: Final = _union([(0x30, 0x39)])
_WORD: Final = _union([*_DIGITS, (0x41, 0x5A), (0x61, 0x7A), *_of("_")])
_SPACE: Final = _union([*_of("\t\n\v\f\r \xa0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff"), (0x2000, 0x200A)])
_CLASSES: Final = {
    "d": _DIGITS,
    "w": _WORD,
    "s": _SPACE,
    "D": _others(_DIGITS),
    "W": _others(_WORD),
    "S": _others(_SPACE),
}
_DOT: Final = _others(_of("\n\r\u2028\u2029"))
_UNESCAPED: Final = _others(_union([(0, 0x1F), *_of('"\\')]))


def _both(a: Ranges, b: Ranges) -> Ranges:
    return _others(_union([*_others(a), *_others(b)]))


def _in_class(code: int) -> str:
    if chr(code).isprintable() and chr(code) not in '-[]^\\"':
        return chr(code)
    if code < 0x80:
        return f"\\x{code:02X}"
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"


def _class(ranges: Ranges) -> str:
    """Characters that JSON does not escape."""
    negated = ranges[-1][1] == _LAST
    shown = _others(ranges) if negated else ranges
    inside = "".join(
        _in_class(low) if low == high else f"{_in_class(low)}{'-' if high > low + 1 else ''}{_in_class(high)}"
        for low, high in shown
    )
    return f"[{'^' if negated else ''}{inside}]"


def _character(ranges: Ranges) -> str:
    """Return one of these characters, as JSON spells it; of control characters, those that have a letter.

    Raises:
        NoSpelling: none is left.
    """
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1] and chr(ranges[0][0]) in _ITSELF:
        return chr(ranges[0][0])
    plain = _both(ranges, _UNESCAPED)
    letters = "".join(letter for code, letter in _SHORT.items() if _both(ranges, ((code, code),)))
    options = [_class(plain)] if plain else []
    if letters:
        options.append(rf"[\x5C]{_class(_of(letters))}")
    if not options:
        raise NoSpelling("a control character")
    return options[0] if len(options) == 1 and plain else f"({'|'.join(options)})"


_ANYTHING: Final = f"{_character(((0, _LAST),))}*"


def respell(pattern: str) -> tuple[str, tuple[str, ...]]:
    r"""Return a pattern in the converter's spelling, and the parts of its own spelling that the converter refuses.

    A string matches the result if it matches the pattern, except that no control character other than `\b\t\n\f\r` may
    be where the pattern names no other.

    Raises:
        NoSpelling: the converter's rules cannot express the pattern, such as a lookahead; or it is not valid.

    >>> respell(r"^\d{3}$")
    ('^[0-9]{3}$', ('\\d',))
    >>> respell("^[a-z]+$")
    ('^[a-z]+$', ())
    """
    reader = _Reader(pattern)
    return reader.pattern(), tuple(dict.fromkeys(reader.refused))


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.refused: list[str] = []

    @property
    def next(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, literal: str) -> bool:
        """Read a literal; returns False if it is not next."""
        found = self.text.startswith(literal, self.at)
        self.at += len(literal) if found else 0
        return found

    def pattern(self) -> str:
        branches = [self.branch(outermost=True)]
        while self.take("|"):
            branches.append(self.branch(outermost=True))
        if self.next:
            raise NoSpelling("unbalanced parentheses")
        body = "|".join(branches)
        return f"^{body}$" if len(branches) == 1 else f"^({body})$"

    def branch(self, *, outermost: bool = False) -> str:
        """Read one alternative, with any text around an outermost one that is not anchored."""
        begun = not outermost or self.take("^")
        out = []
        while self.next and self.next not in "|)" and not (outermost and self.ends_here()):
            out.append(self.repetition())
        ended = not outermost or self.take("$")
        if not (begun and ended):
            self.refused.append("no ^ at its start or no $ at its end")
        return "".join(["" if begun else _ANYTHING, *out, "" if ended else _ANYTHING])

    def ends_here(self) -> bool:
        return self.next == "$" and self.text[self.at + 1 : self.at + 2] in ("", "|")

    def repetition(self) -> str:
        """Return an atom with its quantifier."""
        atom = self.atom()
        times = ""
        if self.next and self.next in "*+?":
            times = self.next
            self.at += 1
        elif found := _COUNT.match(self.text, self.at):
            if any(int(count or 0) > MOST for count in (found[1], found[3])):
                raise NoSpelling(f"a count above {MOST:,}")
            times = found[0]
            self.at = found.end()
        if times and self.take("?"):
            self.refused.append("a lazy repetition")
        if self.next and self.next in "*+?{":
            raise NoSpelling("a repetition of a repetition, or of nothing")
        return atom + times

    def atom(self) -> str:
        c = self.next
        if c in "*+?{^$":
            raise NoSpelling("an anchor inside it" if c in "^$" else "a repetition of nothing")
        if c == "(":
            return self.group()
        if c == "[":
            return _character(self.characters())
        if c == "\\":
            return _character(self.escape())
        self.at += 1
        return _character(_DOT if c == "." else _of(c))

    def group(self) -> str:
        if named := _NAMED_GROUP.match(self.text, self.at):
            self.refused.append("a named group")
            self.at = named.end()
        elif not self.take("(?:"):
            self.at += 1
            if self.next == "?":
                raise NoSpelling("a lookaround or a flag")
        branches = [self.branch()]
        while self.take("|"):
            branches.append(self.branch())
        if not self.take(")"):
            raise NoSpelling("unbalanced parentheses")
        return f"({'|'.join(branches)})"

    def characters(self) -> Ranges:
        """Read a class of characters."""
        self.at += 1
        negated = self.take("^")
        found: list[tuple[int, int]] = []
        while not self.take("]"):
            first = self.member()
            if self.next == "-" and self.text[self.at + 1 : self.at + 2] not in ("", "]"):
                self.at += 1
                last = self.member()
                if len(first) != 1 or len(last) != 1 or first[0][0] > last[0][0]:
                    raise NoSpelling("a range in a class that has no order")
                first = ((first[0][0], last[0][1]),)
            found += first
        ranges = _others(_union(found)) if negated else _union(found)
        if not ranges:
            raise NoSpelling("an empty class")
        return ranges

    def member(self) -> Ranges:
        """Return one character of a class, or a class in it."""
        if not self.next:
            raise NoSpelling("a class without an end")
        if self.take("\\b"):
            return _of("\b")
        if self.next == "\\":
            return self.escape()
        self.at += 1
        return _of(self.text[self.at - 1])

    def escape(self) -> Ranges:
        """Return the characters that a backslash and the characters after it represent."""
        if code := _CODE.match(self.text, self.at):
            self.at = code.end()
            return _of(chr(min(int(code[1] or code[2] or code[3], 16), _LAST)))
        c = self.text[self.at + 1 : self.at + 2]
        self.at += 2
        if c in _CLASSES:
            self.refused.append(f"\\{c}")
            return _CLASSES[c]
        if c in _CONTROLS:
            return _of(_CONTROLS[c])
        if not c or c.isalnum():
            raise NoSpelling(_BEYOND.get(c, "a reference to a group" if c.isdigit() else f"the escape \\{c}"))
        return _of(c)
