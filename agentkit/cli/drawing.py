"""Markdown and code as lines for a terminal: safe, complete, and visible on any background.

Loads rich; imported only by what draws on a terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from pygments import token as kinds
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, HorizontalRule, ListItem, Markdown
from rich.rule import Rule
from rich.segment import Segment
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.text import Text
from rich.theme import Theme

from agentkit.cli.markdown_blocks import reader
from agentkit.cli.terminal import plain

LARGE: Final = 20_000  # characters of code that are still highlighted: a lexer may be slow on hostile code

# Colours of the terminal's own palette, without backgrounds, and of these only the four that can be read on white and
# on black: yellow vanishes on white, blue on black.
_CODE: Final = ANSISyntaxTheme(
    {
        kinds.Comment: Style(dim=True, italic=True),
        kinds.Keyword: Style(color="magenta"),
        kinds.Operator.Word: Style(color="magenta"),
        kinds.Name.Builtin: Style(color="cyan"),
        kinds.Name.Function: Style(bold=True),
        kinds.Name.Class: Style(bold=True),
        kinds.Name.Decorator: Style(color="cyan"),
        kinds.Name.Tag: Style(color="magenta"),
        kinds.Name.Attribute: Style(color="cyan"),
        kinds.String: Style(color="green"),
        kinds.Number: Style(color="cyan"),
        kinds.Generic.Deleted: Style(color="red"),
        kinds.Generic.Inserted: Style(color="green"),
        kinds.Generic.Heading: Style(bold=True),
    }
)
THEME: Final = Theme(
    {
        "markdown.paragraph": "none",
        "markdown.text": "none",
        "markdown.code": "cyan",
        "markdown.code_block": "none",
        "markdown.block_quote": "italic",
        "markdown.hr": "dim",
        "markdown.item.bullet": "bold",
        "markdown.item.number": "bold",
        "markdown.link": "underline",
        "markdown.link_url": "dim",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
        "markdown.em": "italic",
        "markdown.strong": "bold",
        "markdown.s": "strike",
        "markdown.h1": "bold underline",
        **{f"markdown.h{n}": "bold" for n in range(2, 7)},
    }
)


class _Heading(Heading):
    """A heading at the left, so that it does not depend on the width."""

    LEVEL_ALIGN: ClassVar = dict.fromkeys(Heading.LEVEL_ALIGN, "left")


class _Code(CodeBlock):
    """Code under the name of its language, without a background."""

    @classmethod
    def create(cls, markdown: Markdown, token: Any) -> _Code:
        made = cls("text", "")
        made.info = token.info.strip()
        return made

    def __init__(self, lexer_name: str, theme: str) -> None:
        super().__init__(lexer_name, theme)
        self.info = ""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.info:
            yield Text(self.info, style="dim")
        yield code(str(self.text), self.info.partition(" ")[0])


class _Item(ListItem):
    """An item, whose number has a full stop."""

    def render_number(self, console: Console, options: ConsoleOptions, number: int, last_number: int) -> RenderResult:
        width = len(str(last_number)) + 3
        lines = console.render_lines(self.elements, options.update(width=max(options.max_width - width, 1)))
        for n, line in enumerate(lines):
            yield Segment(" " * width) if n else Segment(f"{number}.".rjust(width - 1) + " ", Style(bold=True))
            yield from line
            yield Segment.line()


class _Rule(HorizontalRule):
    """A line, without an empty one after it."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Rule(style="markdown.hr", characters="─")


class _Markdown(Markdown):
    """Markdown as `reader` reads it."""

    elements: ClassVar = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "list_item_open": _Item,
        "hr": _Rule,
    }

    def __init__(self, source: str) -> None:
        super().__init__("", hyperlinks=False)  # a link may hide where it leads
        self.parsed = reader().parse(source)


def code(text: str, language: str) -> RenderableType:
    """Highlighted code, folded at the terminal's edge."""
    text = text.rstrip("\n")
    if not language or len(text) > LARGE:
        return Text(text)
    return Syntax(text, language, theme=_CODE, word_wrap=True, tab_size=4)


class MarkdownLines:
    """Some Markdown, drawn. Where drawing would lose a word, as of a table that is too wide, it shows the source.

    Args:
        source: the Markdown.
    """

    def __init__(self, source: str) -> None:
        self._source = source.rstrip("\n")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in self._lines(console, options):
            yield from line
            yield Segment.line()

    def _lines(self, console: Console, options: ConsoleOptions) -> list[list[Segment]]:
        try:
            lines = console.render_lines(_Markdown(self._source), options, pad=False)
        except Exception:  # noqa: BLE001 - whatever the library makes of a model's text, its words are shown
            lines = []
        drawn = "".join(segment.text for line in lines for segment in line)
        if _letters(self._source) - _letters(drawn):
            lines = console.render_lines(Text(self._source), options, pad=False)
        blank = [not "".join(segment.text for segment in line).strip() for line in lines]
        first = blank.index(False) if False in blank else len(lines)
        return lines[first : len(lines) - ([*blank[::-1], False].index(False))]


def _letters(text: str) -> Counter[str]:
    return Counter(filter(str.isalnum, text))


class Safe:
    """Renderables as lines without control characters, links, and blanks at their ends.

    Blanks would be copied, and become empty lines when the window is made narrower.

    Args:
        parts: what to draw.
        last: draw only this number of lines, the last ones; None for all.
    """

    def __init__(self, *parts: RenderableType, last: int | None = None) -> None:
        self._parts = parts
        self._last = last

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(Group(*self._parts), options, pad=False)
        for line in lines if self._last is None else lines[-self._last :] if self._last else []:
            yield from _stripped(list(_safe(line)))
            yield Segment.line()


def _safe(line: Sequence[Segment]) -> Iterator[Segment]:
    for text, style, control in line:
        if not control and text:
            yield Segment(plain(text).replace("\n", " "), style.update_link() if style and style.link else style)


def _stripped(line: list[Segment]) -> list[Segment]:
    while line and not (kept := line[-1].text.rstrip(" ")):
        line.pop()
    if line:
        line[-1] = Segment(kept, line[-1].style)
    return line
