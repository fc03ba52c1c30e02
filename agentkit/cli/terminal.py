"""Text that is safe for a terminal: it cannot control it, and is folded to its width. Knows only text.

`plain` is for reading: characters that could control the terminal are removed. `checks.visible_text` is for decisions.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from typing import Any, Final
from unicodedata import category, east_asian_width

from agentkit.checks.unicode import commands
from agentkit.checks.visible_text import shows, visible


class _ByClass(dict[int, str | None]):
    """A table for `str.translate`: replaces characters by their Unicode category, computed on first use.

    Args:
        instead: the replacement for a character that a terminal must not receive.
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


_PLAIN: Final = _ByClass(_left_out)
_JSON: Final = _ByClass(lambda c: json.dumps(c)[1:-1] if c != "\x7f" else "\\u007f")
LINE, GOES_ON = "| ", "⋮ "  # the marker before each line of a text argument, and before the rest of a folded line


def plain(text: str) -> str:
    """Text without characters that control a terminal, change the text direction or are invisible.

    A model's or tool's output must not move the cursor, set a title or write to the clipboard. The Unicode categories
    decide: control characters (Cc) except newline and tab are removed, as are format characters (Cf) except those that
    text needs; line and paragraph separators (Zl, Zp) become newlines, a lone surrogate (Cs) becomes U+FFFD.
    """
    return text if text.isprintable() else text.translate(_PLAIN)


def complain(text: str) -> None:
    """Print an error message, if standard error is open."""
    with suppress(OSError):
        print(plain(text), file=sys.stderr, flush=True)


def as_json(value: object, indent: int | None = None) -> str:
    r"""A value as JSON that is safe for a terminal: lossless, with everything that `plain` would alter escaped.

    If the encoding of standard output lacks one of its characters, all but ASCII is escaped.

    >>> as_json({"name": "a\u202egnp.exe é"})
    '{"name": "a\\u202egnp.exe é"}'
    """
    text = json.dumps(value, ensure_ascii=False, indent=indent).translate(_JSON)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent).translate(_JSON)
    return text


def cells(text: str) -> int:
    """How many columns a text occupies: 2 for a wide character, 0 for a combining one."""
    return len(text) if text.isascii() else sum(map(_cell, text))


def _cell(c: str) -> int:
    return 0 if category(c) in ("Mn", "Me", "Cf") else 2 if east_asian_width(c) in "WF" else 1


def width() -> int:
    """The columns to use: those of the terminal, or 80 without one; at most 100, as longer lines are hard to read."""
    return max(20, min(shutil.get_terminal_size((80, 24)).columns, 100))


def fold(line: str, width: int) -> Iterator[str]:
    """Yield a line in pieces of at most `width` columns, broken at a space if one is near the end.

    >>> list(fold("one two three", 8))
    ['one two ', 'three']
    """
    start, end, fits = 0, 0, 0
    while end < len(line):
        fits += _cell(line[end])
        if fits > width:
            end = max(end, start + 1)  # a wide character in a single column
            space = line.rfind(" ", (start + end) // 2, end)
            end = space + 1 if space >= 0 else end
            yield line[start:end]
            start, fits = end, 0
        else:
            end += 1
    yield line[start:]


def truncate(text: str, width: int) -> str:
    """Return a text as one line of at most `width` columns."""
    line = " ".join(plain(text[: width * 8]).split())
    if cells(line) <= width and len(text) <= width * 8:
        return line
    while line and cells(line) > width - 1:
        line = line[: min(len(line) - 1, width)]
    return f"{line}…"


def block(text: str, width: int, indent: str = "") -> Iterator[str]:
    """A text as indented lines of at most `width` columns."""
    for line in plain(text).expandtabs(4).split("\n"):
        yield from (f"{indent}{piece}".rstrip() for piece in fold(line, max(width - len(indent), 1)))


def first_lines(lines: list[str], most: int, total: int | None = None, indent: str = "") -> list[str]:
    """Return the first of some lines, and a line that says how many more there are.

    Args:
        lines: the lines; of a long text a few more than `most` are enough.
        most: how many to keep; one more is kept rather than counted.
        total: how many there are, if `lines` are not all.
        indent: before the last line.
    """
    if len(lines) <= most + 1:
        return lines
    return [*lines[:most], f"{indent}{more(max((total or len(lines)) - most, 1))}"]


def more(lines: int) -> str:
    """Say how many lines are not shown."""
    return f"… {lines} more line{'s' * (lines != 1)}"


def duration(seconds: float) -> str:
    """Write a duration in one or two units.

    >>> [duration(s) for s in (0.0123, 4.56, 42, 754, 9000)]
    ['12 ms', '4.6 s', '42 s', '12 min 34 s', '2 h 30 min']
    """
    if seconds < 9.95:
        return f"{max(seconds, 0) * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def columns() -> int | None:
    """The columns that standard output has; None if it is not a terminal: a line may have any length."""
    return width() if sys.stdout.isatty() else None


def table(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None, drop: Sequence[str] = ()
) -> list[str]:
    """Align the cells of rows in columns, under a header and a rule.

    Args:
        head: the names of the columns.
        rows: their cells.
        width: the most columns of a line: cells are folded, the rest of a cell below it; None for any width.
        drop: the names of columns that are left out if folding is not enough, the first one first.
    """
    natural = [max(map(cells, column)) for column in zip(head, *rows, strict=True)]
    widths = natural if width is None else _fitted(natural, width - 2 * (len(head) - 1))
    if width is not None and sum(widths) + 2 * (len(head) - 1) > width and drop:
        left = [n for n, name in enumerate(head) if name != drop[0]]
        kept = [[row[n] for n in left] for row in (head, *rows)]
        return table(kept[0], kept[1:], width, drop[1:])
    lines = [head, ["-" * width for width in widths], *rows]
    return [line for row in lines for line in _table_row(row, widths)]


def hanging(text: str, width: int | None, indent: str) -> Iterator[str]:
    """An indented line; if it is folded, the rest of it is indented by two more columns.

    Args:
        text: one line.
        width: the most columns; None for any number.
        indent: before the line.
    """
    if width is None:
        yield f"{indent}{text}".rstrip()
        return
    for n, piece in enumerate(fold(text, max(width - len(indent) - 2, 20))):
        yield f"{indent}{'  ' if n else ''}{piece}".rstrip()


_NARROW: Final = 20  # a column is not made narrower than this by folding


def _fitted(widths: Sequence[int], room: int) -> list[int]:
    """The widths of columns after the widest ones were narrowed, as far as is needed and possible."""
    fitted = list(widths)
    while sum(fitted) > room and (widest := max(fitted)) > _NARROW:
        fitted[fitted.index(widest)] -= 1
    return fitted


def _table_row(row: Sequence[str], widths: Sequence[int]) -> Iterator[str]:
    folded = [[piece.rstrip() for piece in fold(cell, width)] for cell, width in zip(row, widths, strict=True)]
    for pieces in zip_longest(*folded, fillvalue=""):
        padded = (piece + " " * (width - cells(piece)) for piece, width in zip(pieces, widths, strict=True))
        yield "  ".join(padded).rstrip()


def arguments(given: Mapping[str, Any], width: int, indent: str = "") -> Iterator[str]:
    r"""Arguments for a person who decides about them: complete, and none can imitate another.

    A value is JSON; a multi-line string is shown line by line, each after a bar. If a line is folded, the rest of it
    follows after `⋮`.

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
            written = visible(json.dumps(value, ensure_ascii=False, default=str))
            yield from _marked(f"{visible(name)}: {written}", width, indent, f"{indent}  {GOES_ON}")


def _marked(line: str, width: int, first: str, others: str) -> Iterator[str]:
    for n, piece in enumerate(fold(line, max(width - len(others), 1))):
        yield f"{others if n else first}{piece}"
