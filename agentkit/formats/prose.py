"""What stands between calls: where one may start, where thinking starts, and what is quoted as code.

Compiled once per parser from the formats' declarations and the tools; knows no body.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from agentkit.formats.reader import Delimiter, beginnings
from agentkit.formats.spec import Envelope, Format, NameTag, Tag, ToolElement, ToolSpec

TAG: Final = Delimiter(
    r"<(?P<slash>/?)(?:[^\W\d][\w.-]{0,31}:)?(?P<name>[^\s<>/:\"'=]{1,160})(?=[\s/>])",
    r"</?[^\s<>/\"'=]{0,193}",
)
"""Any tag up to its name's end, with or without a namespace."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What an opener may open."""

    kind: Literal["call", "section", "close", "thinking"]
    format: Format
    tool: ToolSpec | None = None
    close: str = ""


class Openers:
    """Every literal and tag at which prose may stop, and what each may open."""

    def __init__(self, formats: Sequence[Format], tools: Sequence[ToolSpec]) -> None:
        self.tags: dict[tuple[str, bool], list[Entry]] = {}
        self.literals: dict[str, list[Entry]] = {}
        for format in formats:
            self._add(format, tools)
        alternatives = sorted(self.literals, key=len, reverse=True)
        self.literal = Delimiter(
            "|".join(map(re.escape, alternatives)) or r"(?!)", "|".join(map(beginnings, alternatives)) or r"(?!)"
        )
        firsts = {text[0] for text in alternatives} | ({"<"} if self.tags else set())
        self.firsts = "".join(sorted(firsts))

    def _add(self, format: Format, tools: Sequence[ToolSpec]) -> None:
        for tag_open, tag_close in format.thinking:
            self._literal(tag_open, Entry("thinking", format, close=tag_close))
        if format.section is not None:
            self._edge(format.section.open, Entry("section", format))
            self._edge(format.section.close, Entry("close", format))
        match format.call[0]:
            case ToolElement():
                for tool in tools:
                    tool = tool.with_element()
                    assert tool.element is not None
                    self._tag(tool.element.tag, False, Entry("call", format, tool))
            case NameTag(name):
                self._tag(name, False, Entry("call", format))
            case str(text):
                self._literal(text.strip(), Entry("call", format))
            case Envelope():
                self._literal("{", Entry("call", format))
            case other:
                raise TypeError(f"format {format.name!r} cannot start with {other!r}")

    def _edge(self, edge: str | Tag, entry: Entry) -> None:
        if isinstance(edge, Tag):
            self._tag(edge.name, edge.closing, entry)
        else:
            self._literal(edge.strip(), entry)

    def _tag(self, name: str, closing: bool, entry: Entry) -> None:
        self.tags.setdefault((name.lower(), closing), []).append(entry)

    def _literal(self, text: str, entry: Entry) -> None:
        entries = self.literals.setdefault(text, [])
        if entry.kind != "thinking" or not any(e.kind == "thinking" for e in entries):
            entries.append(entry)

    def at_tag(self, found: re.Match[str]) -> Iterable[Entry]:
        """What this tag may open, the exactly spelt tool first."""
        entries = self.tags.get((found["name"].lower(), bool(found["slash"])), ())
        exact = [e for e in entries if e.tool is None or (e.tool.element and e.tool.element.tag == found["name"])]
        return exact or entries


@dataclass(slots=True)
class Quoting:
    """Whether the prose is inside a code span or a fenced block, in the manner of Markdown.

    `fence` is the number of backticks that opened the block, `span` the number that opened the span; 0 outside. `blank`
    tells that the current line holds nothing but white space so far.
    """

    fence: int = 0
    span: int = 0
    blank: bool = True

    @property
    def quoted(self) -> bool:
        """Whether what stands here is quoted."""
        return self.fence > 0 or self.span > 0

    def said(self, text: str) -> None:
        """Plain prose, without backticks, went by."""
        line = text.rfind("\n")
        if line >= 0:
            self.span = 0  # an unmatched backtick is a character, not code to the end of the text
            self.blank = True
            text = text[line + 1 :]
        self.blank = self.blank and (not text or text.isspace())

    def ticks(self, n: int) -> None:
        """A run of `n` backticks went by."""
        if self.fence:
            if self.blank and n >= self.fence:
                self.fence = 0
        elif self.blank and n >= 3:
            self.fence = n
        elif self.span:
            self.span = 0 if n == self.span else self.span
        else:
            self.span = n
        self.blank = False


STOPS: Final[Mapping[bool, str]] = {True: "`\n", False: ""}
"""Characters at which prose stops beside the openers' first ones: where quoting counts, and where it does not."""
