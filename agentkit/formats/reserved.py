"""Tags that a tool cannot have: those that a format uses for itself, and those of another tool. Pure.

If a tool had one, its calls would never be read, or would run the other tool.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentkit.errors import FormatError
from agentkit.formats.format import Format, ToolElement
from agentkit.formats.tags import folded, tag_of
from agentkit.toolspec import Element, ToolSpec


def refuse_reserved(format: Format, tools: Sequence[ToolSpec]) -> None:
    """Refuse tools whose calls the format would read as something else.

    Raises:
        FormatError: a tool's tag is one that the format uses for itself, or another tool's; names both.
    """
    if not format.tagged:
        return
    _refuse_shared(format, tools)
    own = {folded(tag): (tag, what) for tag, what in _own(format)}
    for _, element in _elements(format, tools):
        if (found := own.get(folded(element.tag))) is not None:
            raise FormatError(
                f"format {format.name!r} cannot offer a tool with the tag <{element.tag}>: it reads <{found[0]}> "
                f"as the start of {found[1]}, so no call of it would run. Give the tool another name, such as "
                f"{element.tag + '_tool'!r}, with @xml_schema(name=…) for its tag alone; or use a format in which "
                "tools have no tags of their own, such as 'hermes'"
            )


def _refuse_shared(format: Format, tools: Sequence[ToolSpec]) -> None:
    """Refuse tools of which two have the same tag in this format: the calls of one would run the other.

    Raises:
        FormatError: says which two.
    """
    taken: dict[str, str] = {}
    for tool, element in _elements(format, tools):
        if (other := taken.setdefault(element.tag, tool.name)) != tool.name:
            raise FormatError(
                f"format {format.name!r} cannot offer both {other!r} and {tool.name!r}: the tag of each is "
                f"<{element.tag}>, so a call of one would run the other. Give one of them another name, or another "
                "tag with @xml_schema(name=…); or use a format in which tools have no tags of their own, such as "
                "'hermes'"
            )


def _elements(format: Format, tools: Sequence[ToolSpec]) -> Iterator[tuple[ToolSpec, Element]]:
    """The tools with their elements, if the format's calls are such elements."""
    for layout in (part.layout for part in format.call if isinstance(part, ToolElement)):
        for tool in tools:
            if (element := tool.with_element(layout).element) is not None:
                yield tool, element


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
