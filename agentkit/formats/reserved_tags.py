"""Tags that a tool cannot have: those that a format uses for itself, and those of another tool. Pure.

If a tool had one, its calls would never be read, or would run the other tool.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.errors import FormatError
from agentkit.formats.format import Format, ToolElement
from agentkit.formats.tags import fold_name, tag_of
from agentkit.toolspec import ToolSpec

_REMEDY = "or use a format in which tools do not have their own tags, such as 'hermes'"


def refuse_reserved(format: Format, tools: Sequence[ToolSpec]) -> None:
    """Refuse tools whose calls the format would read as something else.

    Raises:
        FormatError: a tool's tag is one that the format uses for itself, or another tool's; names both.
    """
    for layout in (part.layout for part in format.call if isinstance(part, ToolElement)):
        tags = [(tool.name, tool.with_element(layout).element) for tool in tools]
        _refuse(format, [(name, element.tag) for name, element in tags if element is not None])


def refuse_unread(formats: Sequence[Format], tools: Sequence[ToolSpec]) -> None:
    """Refuse tools as `refuse_reserved` does, if only one format is read; of several, another may read the calls."""
    if len(formats) == 1:
        refuse_reserved(formats[0], tools)


def _refuse(format: Format, tags: Sequence[tuple[str, str]]) -> None:
    """Refuse a tool's tag that is another tool's, whose calls would run it, or a tag of the format itself."""
    taken: dict[str, str] = {}
    for name, tag in tags:
        if (other := taken.setdefault(tag, name)) != name:
            raise FormatError(
                f"format {format.name!r} cannot offer both {other!r} and {name!r}: the tag of each is <{tag}>, so a "
                "call of one would run the other. Give one of them another name, or another tag with "
                f"@xml_schema(name=…); {_REMEDY}"
            )
    own = _own(format)
    for _, tag in tags:
        if (found := own.get(fold_name(tag))) is not None:
            raise FormatError(
                f"format {format.name!r} cannot offer a tool with the tag <{tag}>: it reads <{found[0]}> as the start "
                f"of {found[1]}, so no call of it would run. Give the tool another name, such as {tag + '_tool'!r}, "
                f"with @xml_schema(name=…) for its tag alone; {_REMEDY}"
            )


def _own(format: Format) -> dict[str, tuple[str, str]]:
    """Return the tags that the format uses between calls, each with its use, by the normalized tag."""
    uses = [(opened, "thinking") for opened, _ in format.thinking]
    uses += [(opened, "an answer") for opened, _ in format.answer] + [(text, "markup") for text in format.markup]
    return {fold_name(tag): (tag, what) for text, what in uses if (tag := tag_of(text))}
