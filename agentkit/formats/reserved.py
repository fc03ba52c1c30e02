"""Tags that a format uses for itself: if a tool had such a tag, its calls would never be read. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentkit.errors import FormatError
from agentkit.formats.format import Format, ToolElement
from agentkit.formats.tags import folded, tag_of
from agentkit.toolspec import ToolSpec


def refuse_reserved(format: Format, tools: Sequence[ToolSpec]) -> None:
    """Refuse tools whose calls the format would read as something else.

    Raises:
        FormatError: a tool's tag is one that the format uses for itself; names both.
    """
    if not format.tagged:
        return
    own = {folded(tag): (tag, what) for tag, what in _own(format)}
    for layout in (part.layout for part in format.call if isinstance(part, ToolElement)):
        for element in (tool.with_element(layout).element for tool in tools):
            if element is not None and (found := own.get(folded(element.tag))) is not None:
                raise FormatError(
                    f"format {format.name!r} cannot offer a tool with the tag <{element.tag}>: it reads <{found[0]}> "
                    f"as the start of {found[1]}, so no call of it would run. Give the tool another name, such as "
                    f"{element.tag + '_tool'!r}, with @xml_schema(name=…) for its tag alone; or use a format in which "
                    "tools have no tags of their own, such as 'hermes'"
                )


def refuse_unread(formats: Sequence[Format], tools: Sequence[ToolSpec]) -> None:
    """The same for the formats that are read; of several, any other may be the one of the calls."""
    if len(formats) == 1:
        refuse_reserved(formats[0], tools)


def _own(format: Format) -> Iterator[tuple[str, str]]:
    """Each tag that the format uses between calls, and for what."""
    for what, literals in (
        ("thinking", [opened for opened, _ in format.thinking]),
        ("an answer", [opened for opened, _ in format.answer]),
        ("markup", format.markup),
    ):
        for literal in literals:
            if tag := tag_of(literal):
                yield tag, what
