"""Markdown and code as lines for a terminal: safe, complete, and visible on any background.

Loads rich; imported only by what draws on a terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from pygments import token as kinds
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.markdown import CodeBlock, Heading, ListItem, Markdown
from rich.segment import Segment
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.text import Text
from rich.theme import Theme

from agentkit.cli.markdown_blocks import reader
from agentkit.cli.terminal import plain

BAR: Final = "│ "  # before each line of code
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
    {"markdown.code": "cyan", "markdown.code_block": "none", "markdown.link": "underline", "markdown.link_url": "dim"}
)
"""In place of rich's own styles that have a background, or a colour that cannot be read on white and on black."""


class _Heading(Heading):
    """A heading at the left, so that it does not depend on the width."""

    LEVEL_ALIGN: ClassVar = dict.fromkeys(Heading.LEVEL_ALIGN, "left")


class _Code(CodeBlock):
    """Code after a bar at the left, under the name of its language, without a background."""

    @classmethod
    def create(cls, markdown: Markdown, token: Any) -> _Code:
        return cls(token.info.strip(), "")

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        info, text = self.lexer_name, str(self.text).rstrip("\n")
        if info:
            yield Text(f"{BAR}{info}", style="dim italic")
        width = max(options.max_width - len(BAR), 1)
        for line in _code_lines(text, info.partition(" ")[0]):
            for piece in line.wrap(console, width, overflow="fold", tab_size=4) or [line]:
                yield Text.assemble((BAR, "dim"), piece)


def _code_lines(text: str, language: str) -> list[Text]:
    if not language or len(text) > LARGE:
        return [Text(line) for line in text.expandtabs(4).split("\n")]
    syntax = Syntax("", language, theme=_CODE, tab_size=4)
    lines = list(syntax.highlight(text.expandtabs(4)).split("\n", allow_blank=True))
    return lines[: text.count("\n") + 1]


def highlight(text: str, file: str) -> list[Text]:
    """The lines of a text in the colours of its language.

    Args:
        text: lines without tabs and control characters.
        file: the language, as pygments names it, or the name of such a file; without colours if it is unknown.
    """
    language = file if "." not in file else Syntax.guess_lexer(file)
    return _code_lines(text, "" if language == "default" else language)


class _Item(ListItem):
    """An item, whose number has a full stop."""

    def render_number(self, console: Console, options: ConsoleOptions, number: int, last_number: int) -> RenderResult:
        first, *rest = super().render_number(console, options, number, last_number)
        assert isinstance(first, Segment)
        yield Segment(f"{number}. ".rjust(len(first.text)), first.style)
        yield from rest


class _Markdown(Markdown):
    """Markdown as `reader` reads it."""

    elements: ClassVar = {
        **Markdown.elements,
        "heading_open": _Heading,
        "fence": _Code,
        "code_block": _Code,
        "list_item_open": _Item,
    }

    def __init__(self, source: str) -> None:
        super().__init__("", hyperlinks=False)  # a link may hide where it leads
        self.parsed = reader().parse(source)


class MarkdownLines:
    """Some Markdown, drawn. Where drawing would lose a word, as of a table that is too wide, it shows the source."""

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
