"""What a terminal may be given: text that cannot command it, folded to its width. Knows text only.

`plain` is for reading: what could command the terminal is left out. `visible` is for deciding: nothing is left out, and
what does not print is written as an escape.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from unicodedata import category, east_asian_width

from agentkit.unicode import commands

_BLANK: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""What is no control and yet shows nothing: fillers, selectors of variants, the empty Braille cell."""


class _ByClass(dict[int, str | None]):
    """For `str.translate`: what becomes of a character by its Unicode class, worked out when it is first met.

    Args:
        instead: what stands for a character that a terminal may not get.
    """

    def __init__(self, instead: Callable[[str], str | None]) -> None:
        super().__init__()
        self._instead = instead

    def __missing__(self, code: int) -> str | None:
        c = chr(code)
        self[code] = one = self._instead(c) if commands(c) else c
        return one


def _left_out(c: str) -> str | None:
    return {"Zl": "\n", "Zp": "\n", "Cs": "\ufffd"}.get(category(c))


def _in_json(c: str) -> str:
    return json.dumps(c)[1:-1]


_PLAIN: Final = _ByClass(_left_out)
_JSON: Final = _ByClass(lambda c: _in_json(c) if c != "\x7f" else "\\u007f")
LINE, GOES_ON = "| ", "⋮ "  # what stands before each line of a text argument, and before the rest of a folded line


def plain(text: str) -> str:
    """Text without what commands a terminal, turns its direction or stands in it unseen.

    What a model or a tool says may not move the cursor, set a title or write to the clipboard. The Unicode classes
    decide: controls (Cc) but newline and tab are left out, and format characters (Cf) but those that text needs; the
    separators of lines and paragraphs (Zl, Zp) are newlines, half a surrogate pair (Cs) is U+FFFD.
    """
    return text if text.isprintable() else text.translate(_PLAIN)


def as_json(value: object, indent: int | None = None) -> str:
    r"""A value as JSON that a terminal may be given: without loss, what `plain` would alter is an escape.

    >>> as_json({"name": "a\u202egnp.exe é"})
    '{"name": "a\\u202egnp.exe é"}'
    """
    return json.dumps(value, ensure_ascii=False, indent=indent).translate(_JSON)


def visible(text: str) -> str:
    r"""One line that hides nothing: each character that prints nothing, or ends a line, as its escape.

    >>> visible("a\u202egnp.exe")
    'a\\u202egnp.exe'
    """
    return text if shows(text) else "".join(c if shows(c) else _escape(c) for c in text)


def shows(text: str) -> bool:
    """Whether every character of a text can be seen, or is a space."""
    return text.isprintable() and (text.isascii() or _BLANK.search(text) is None)


def _escape(c: str) -> str:
    return f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}"


def cells(text: str) -> int:
    """How many columns a text takes: 2 for a wide character, none for one that joins the one before it."""
    return len(text) if text.isascii() else sum(map(_cell, text))


def _cell(c: str) -> int:
    return 0 if category(c) in ("Mn", "Me", "Cf") else 2 if east_asian_width(c) in "WF" else 1


def width() -> int:
    """The columns to write in: those of the terminal, 80 without one, 100 at most, since longer lines read badly."""
    return max(20, min(shutil.get_terminal_size((80, 24)).columns, 100))


def folded(line: str, width: int) -> Iterator[str]:
    """A line in pieces of at most `width` columns, broken at a space where one is near the end.

    >>> list(folded("one two three", 8))
    ['one two ', 'three']
    """
    while cells(line) > width:
        fits = end = 0
        while end < len(line) and fits + _cell(line[end]) <= width:
            fits += _cell(line[end])
            end += 1
        end = max(end, 1)  # one wide character in one column
        space = line.rfind(" ", end // 2, end)
        end = space + 1 if space >= 0 else end
        yield line[:end]
        line = line[end:]
    yield line


def cut(text: str, width: int) -> str:
    """A text as one line of at most `width` columns."""
    line = " ".join(plain(text[: width * 8]).split())
    if cells(line) <= width and len(text) <= width * 8:
        return line
    while line and cells(line) > width - 1:
        line = line[: min(len(line) - 1, width)]
    return f"{line}…"


def block(text: str, width: int, indent: str = "") -> Iterator[str]:
    """A text in lines of at most `width` columns, each behind the indent."""
    for line in plain(text).expandtabs(4).split("\n"):
        yield from (f"{indent}{piece}".rstrip() for piece in folded(line, max(width - len(indent), 1)))


def arguments(given: Mapping[str, Any], width: int, indent: str = "") -> Iterator[str]:
    r"""Arguments for a person who decides about them: complete, and none can pass for another.

    A value is JSON; a text of several lines stands line by line, each behind a bar. Wherever a line is folded the rest
    of it stands behind `⋮`.

    >>> print("\n".join(arguments({"path": "a.py", "text": "x\npath: /etc"}, 40)))
    path: "a.py"
    text:
      | x
      | path: /etc
    """
    for name, value in given.items():
        if isinstance(value, str) and "\n" in value and shows(value.replace("\n", "").replace("\t", "")):
            yield from _marked(f"{visible(name)}:", width, indent, f"{indent}  {GOES_ON}")
            for line in value.expandtabs(4).split("\n"):
                yield from _marked(line, width, f"{indent}  {LINE}", f"{indent}  {GOES_ON}")
        else:
            said = visible(json.dumps(value, ensure_ascii=False, default=str))
            yield from _marked(f"{visible(name)}: {said}", width, indent, f"{indent}  {GOES_ON}")


def _marked(line: str, width: int, first: str, others: str) -> Iterator[str]:
    for n, piece in enumerate(folded(line, max(width - len(others), 1))):
        yield f"{others if n else first}{piece}"
