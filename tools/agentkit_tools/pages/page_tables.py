"""The data tables of a page, written as a grid of cells. Knows lxml's trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, TypeAlias

Element: TypeAlias = Any  # lxml's: it ships no types

MAX_SPAN: Final = 50  # columns or rows over which one cell is repeated; the standard allows 1,000 and 65,534
MAX_COLUMNS: Final = 200
MAX_REPEATED: Final = 80  # characters of a cell that is repeated

_LAYOUT: Final = frozenset(
    ("h1", "h2", "h3", "h4", "h5", "h6", "pre", "form", "table", "iframe", "blockquote", "article")
)


def rows(table: Element) -> Iterator[Element]:
    """A table's own rows, not those of tables in it."""
    for child in table:
        if child.tag == "tr":
            yield child
        elif child.tag in ("thead", "tbody", "tfoot"):
            yield from child.iterchildren("tr")


def is_data(table: Element) -> bool:
    """Return True if a table holds data rather than a page's layout.

    It does if it has headings or a caption; otherwise if it has two rows and columns and nothing but words in them.
    It does not if any content is outside its cells, as in broken pages: that would be lost.
    """
    if _outside(table):
        return False
    if any(True for _ in table.iterchildren("thead", "caption")):
        return True
    own = list(rows(table))
    if any(cell.tag == "th" for row in own for cell in row):
        return True
    if next(table.iterdescendants(*_LAYOUT), None) is not None:
        return False
    return len(own) > 1 and max((len(row) for row in own), default=0) > 1


_PARTS: Final[Mapping[str, frozenset[str]]] = {
    "table": frozenset(("thead", "tbody", "tfoot", "tr", "caption", "colgroup", "col")),
    **dict.fromkeys(("thead", "tbody", "tfoot"), frozenset(("tr",))),
    "tr": frozenset(("td", "th")),
}
"""What each part of a table consists of."""


def _outside(part: Element) -> bool:
    """Return True if a part of a table has words or elements that belong to none of its cells."""
    allowed = _PARTS.get(part.tag)
    if allowed is None:
        return False
    if (part.text or "").strip():
        return True
    return any(
        (child.tail or "").strip() or child.tag not in allowed or _outside(child)
        for child in part
        if child.tag not in ("script", "template", "style") or (child.tail or "").strip()
    )


def table_lines(table: Element, text_of: Callable[[Element], str]) -> list[str]:
    """A table of data in lines of Markdown. A cell over several columns or rows is repeated in each."""
    grid = list(_grid(table, text_of))
    width = max((len(row) for row in grid), default=0)
    if not width:
        return []
    first = next(rows(table))
    headed = first.getparent().tag == "thead" or all(cell.tag == "th" for cell in first)
    if not headed:
        grid.insert(0, [""] * width)
    lines = [f"| {' | '.join(row)} |" for row in grid]  # a short row is not filled up: it may be one of a million
    lines.insert(1, "|" + " --- |" * width)
    return lines


def _grid(table: Element, text_of: Callable[[Element], str]) -> Iterator[list[str]]:
    below: dict[int, tuple[int, str]] = {}  # by column: how many more rows a cell covers, and its text
    for row in rows(table):
        line: list[str] = []
        cells = (cell for cell in row if cell.tag in ("td", "th"))
        for cell in cells:
            _fill_covered(line, below)
            text = text_of(cell)
            again = text if len(text) <= MAX_REPEATED else ""
            down = _span(cell, "rowspan")
            for number in range(min(_span(cell, "colspan"), MAX_COLUMNS - len(line))):
                if down > 1:
                    below[len(line)] = (down - 1, again)
                line.append(again if number else text)
        _fill_covered(line, below)
        yield line


def _fill_covered(line: list[str], below: dict[int, tuple[int, str]]) -> None:
    """Fill the columns that cells of earlier rows cover."""
    while len(line) in below:
        left, text = below.pop(len(line))
        if left > 1:
            below[len(line)] = (left - 1, text)
        line.append(text)


def _span(cell: Element, name: str) -> int:
    value = cell.get(name, "1").strip()
    return min(max(int(value), 1), MAX_SPAN) if value.isascii() and value.isdigit() and len(value) < 6 else 1
