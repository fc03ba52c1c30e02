"""The same declarations read backwards: calls and results as text. Pure; knows no registry and no model.

Whatever is written here is read back before it is handed out, so that a value is either carried exactly or refused
with a `FormatError`: it is never altered in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from agentkit.errors import ErrorCode, FormatError
from agentkit.events import CallEnd
from agentkit.formats import values
from agentkit.formats.bodies import group_of
from agentkit.formats.catalog import CATALOG
from agentkit.formats.engine import Parser, get
from agentkit.formats.spec import (
    Envelope,
    Format,
    NameTag,
    Node,
    Part,
    Tag,
    TagParameters,
    ToolElement,
    ToolSpec,
)
from agentkit.formats.tagtext import CDATA_CLOSE, CDATA_OPEN
from agentkit.messages import ToolCall

_ATTRIBUTE_ESCAPES: Final = {
    "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"
}  # fmt: skip
_ATTRIBUTE_UNSAFE = re.compile('[&<>"\n\r\t]')
_ATTRIBUTE_NAME = re.compile(r"[^\s=/>\"'<]{1,256}\Z")
_CDATA_AT_START = re.compile(r"\s*<!\[CDATA\[")


# ---------------------------------------------------------------- calls


def render_calls(format: str | Format, calls: Sequence[ToolCall], tools: Sequence[ToolSpec]) -> str:
    """Calls as a model of this format would have written them.

    Raises:
        FormatError: a value that the format cannot carry; the message names the tool and the reason.
    """
    declared = get(format)
    if not calls:
        return ""
    known = {t.name: t for t in tools}
    text = declared.separator.join(
        "".join(WRITERS[type(p)](declared, p, _spec(declared, call, known), call) for p in declared.call)
        for call in calls
    )
    if declared.section is not None:
        text = f"{edge(declared.section.open)}\n{text}\n{edge(declared.section.close)}"
    _check(declared, calls, tools, text)
    return text


def _spec(format: Format, call: ToolCall, known: Mapping[str, ToolSpec]) -> ToolSpec:
    """The called tool; for one that is not offered (any more), one that takes whatever was given."""
    tool = known.get(call.name)
    if tool is None:
        tool = ToolSpec(call.name, "", {"type": "object", "properties": {name: {} for name in call.arguments}})
    return tool.with_element()


def _check(format: Format, calls: Sequence[ToolCall], tools: Sequence[ToolSpec], text: str) -> None:
    """What was written must be read back as the same calls."""
    known = {t.name: t for t in tools}
    parser = Parser(
        format, [*tools, *(_spec(format, c, known) for c in calls if c.name not in known)], in_code="execute"
    )
    events = parser.feed(text) + parser.close()
    got = [e.call for e in events if isinstance(e, CallEnd)]
    for i, call in enumerate(calls):
        if i >= len(got) or got[i].name != call.name or not _equal(got[i].arguments, call.arguments):
            raise FormatError(
                f"format {format.name!r} cannot carry this call of {call.name!r}: it would be read back as "
                f"{got[i].name + ' ' + values.dump(got[i].arguments)[:200] if i < len(got) else 'no call'}"
            )
    if len(got) != len(calls):
        raise FormatError(f"format {format.name!r} cannot carry these calls: {len(calls)} would be read as {len(got)}")


def _equal(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return a.keys() == b.keys() and all(values.same(a[k], b[k]) for k in a)


def edge(part: str | Tag) -> str:
    """A section's opening or closing as text."""
    return f"<{'/' if part.closing else ''}{part.name}>" if isinstance(part, Tag) else part


def _write_literal(format: Format, part: str, tool: ToolSpec, call: ToolCall) -> str:
    return part


def _write_tag(format: Format, part: Tag, tool: ToolSpec, call: ToolCall) -> str:
    return edge(part)


def _write_name_tag(format: Format, part: NameTag, tool: ToolSpec, call: ToolCall) -> str:
    return f'<{part.name} {part.attribute}="{attribute(call.name)}">'


def _write_envelope(format: Format, part: Envelope, tool: ToolSpec, call: ToolCall) -> str:
    return values.dump({part.name: call.name, part.arguments[0]: dict(call.arguments)})


def _write_tag_parameters(format: Format, part: TagParameters, tool: ToolSpec, call: ToolCall) -> str:
    hazards = tuple(p.name for p in format.call if isinstance(p, Tag | NameTag | TagParameters))
    out = []
    for key, value in call.arguments.items():
        start = f'<{part.name} {part.attribute}="{attribute(key)}"'
        text = _text(value, key, tool)
        out.append(f"{start}/>\n" if text is None else f"{start}>{raw_value(text, hazards)}</{part.name}>\n")
    return "".join(out)


def _text(value: Any, parameter: str, tool: ToolSpec) -> str | None:
    """The value as text; None for a null that text cannot tell from a string."""
    schema, root = tool.schema_of(parameter), tool.parameters
    try:
        return values.write(value, schema, root)
    except FormatError as e:
        if value is None and values.accepts_null(schema, root):
            return None
        raise FormatError(f"{tool.name}: parameter {parameter!r}: {e}") from e


def attribute(text: str) -> str:
    """Text as an attribute's value, for double quotes."""
    return _ATTRIBUTE_UNSAFE.sub(lambda m: _ATTRIBUTE_ESCAPES[m[0]], text)


def raw_value(text: str, hazards: Iterable[str]) -> str:
    """Text as a raw value: as it is where no tag of `hazards` stands in it, else in CDATA."""
    if _CDATA_AT_START.match(text) or _tags(tuple(hazards)).search(text):
        return f"{CDATA_OPEN}{text.replace(CDATA_CLOSE, ']]' + CDATA_CLOSE + CDATA_OPEN + '>')}{CDATA_CLOSE}"
    return f"\n{text}" if text.startswith(("\n", "\r\n")) else text  # the first newline is not part of a value


@lru_cache(maxsize=1024)
def _tags(names: tuple[str, ...]) -> re.Pattern[str]:
    """Any tag, opening or closing, of one of these names, in any case and with any namespace."""
    return re.compile(rf"<(?=/?(?:[^\s<>/:]+:)?(?:{'|'.join(map(re.escape, names))})(?![\w.-]))", re.IGNORECASE)


def _write_element(format: Format, part: ToolElement, tool: ToolSpec, call: ToolCall) -> str:
    element = tool.element
    assert element is not None
    nodes = {n.parameter: n for n in element.nodes}
    attributes, body = [], ""
    content: str | None = None
    elements: dict[str, Any] = {}
    for key, value in call.arguments.items():
        text = _text(value, key, tool)
        node = nodes.get(key)
        if node is None or node.kind == "attribute" or text is None:
            name = node.path[0] if node is not None and node.kind == "attribute" else key
            if _ATTRIBUTE_NAME.match(name) is None:
                raise FormatError(f"{tool.name}: {name!r} cannot be the name of an attribute of <{element.tag}>")
            attributes.append(f" {name}" if text is None else f' {name}="{attribute(text)}"')
        elif node.kind == "content":
            content = raw_value(text, (element.tag,))
        else:
            elements[key] = text
    if elements:
        body = _children(group_of(tool), elements)
    start = f"<{element.tag}{''.join(attributes)}"
    if content is None and not elements:
        return f"{start}/>"
    return f"{start}>{content if content is not None else body}</{element.tag}>"


def _children(group: Mapping[str, Any], elements: Mapping[str, str]) -> str:
    """Child elements in their declared order, nested as their paths say."""
    out = "\n"
    for name, below in group.items():
        if isinstance(below, Node):
            if below.parameter in elements:
                out += f"<{name}>{raw_value(elements[below.parameter], (name,))}</{name}>\n"
        elif (inner := _children(below, elements)) != "\n":
            out += f"<{name}>{inner}</{name}>\n"
    return out


Write = Callable[[Format, Any, ToolSpec, ToolCall], str]

WRITERS: Final[Mapping[type[Part], Write]] = {
    str: _write_literal,
    Tag: _write_tag,
    NameTag: _write_name_tag,
    TagParameters: _write_tag_parameters,
    Envelope: _write_envelope,
    ToolElement: _write_element,
}


# ---------------------------------------------------------------- results


def render_result(
    format: str | Format,
    name: str,
    call_id: str,
    text: str,
    error: ErrorCode | None = None,
    tools: Sequence[ToolSpec] = (),
) -> str:
    """A tool's result as the model of this format reads it.

    Named, marked `success` or with its error code, and quarantined: no text in it can be read as a call.
    """
    declared = get(format)
    slots = {"name": attribute(name), "id": attribute(call_id), "status": error or "success"}
    start, end = declared.result.open.format_map(slots), declared.result.close
    return f"{start}{quarantine(text, declared, tools)}{end}"


def quarantine(text: str, format: str | Format, tools: Sequence[ToolSpec] = ()) -> str:
    """Break every marker of every format in text that no model wrote.

    It then never reads as a call and cannot close its wrapper. Only the markers change (`<invoke` becomes
    `&lt;invoke`); all other characters stay. Doing it twice changes nothing more.
    """
    tags = [t.with_element().element for t in tools]
    return _markers(get(format), tuple(e.tag for e in tags if e)).sub(_broken, text)


def _broken(found: re.Match[str]) -> str:
    marker = found[0]
    return "&lt;" + marker[1:] if marker[0] == "<" else f"{marker[0]} {marker[1:]}"


@lru_cache(maxsize=256)
def _markers(format: Format, tags: tuple[str, ...]) -> re.Pattern[str]:
    """Every marker of every format, this one's wrapper of results included."""
    names: set[str] = set(tags)
    literals: set[str] = set()
    for declared in (*CATALOG, format):
        parts: list[Any] = [*declared.call, *_edges(declared)]
        parts += [tag for pair in declared.thinking for tag in pair] + [declared.result.open, declared.result.close]
        for part in parts:
            match part:
                case Tag(name) | NameTag(name) | TagParameters(name):
                    names.add(name)
                case str(text) if text.strip():
                    found = re.match(r"</?([\w.:-]+)", text.strip())
                    (names if found else literals).add(found[1] if found else text.strip())
    pattern = _tags(tuple(sorted(names))).pattern
    return re.compile("|".join([pattern, *map(re.escape, sorted(literals, key=len, reverse=True))]), re.IGNORECASE)


def _edges(format: Format) -> tuple[str | Tag, ...]:
    return (format.section.open, format.section.close) if format.section is not None else ()
