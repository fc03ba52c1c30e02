"""The same declarations read backwards: calls as text. Pure; knows no registry and no model.

Whatever is written here is read back before it is handed out, so that a value is either carried exactly or refused
with a `FormatError`: it is never altered in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from agentkit.errors import FormatError
from agentkit.events import CallEnd
from agentkit.formats import values
from agentkit.formats.bodies.elements import group_of, wrapped
from agentkit.formats.engine import Parser, get
from agentkit.formats.format import (
    Braced,
    CountedName,
    Envelope,
    Format,
    FormatPart,
    Json,
    KeyEnvelope,
    Name,
    NameTag,
    NestedTags,
    Pairs,
    PythonCall,
    Section,
    Shape,
    Skip,
    Tag,
    TagParameters,
    TextArgument,
    ToolElement,
)
from agentkit.formats.rawvalue import CDATA_CLOSE, CDATA_OPEN
from agentkit.formats.tags import spelt
from agentkit.messages import ToolCall
from agentkit.schemas import walk
from agentkit.toolspec import Element, Node, ToolSpec
from agentkit.unicode import has_surrogate

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
    written = [_write(Writing(declared, _spec(declared, call, known), call, n)) for n, call in enumerate(calls)]
    section = declared.section
    if section is not None and section.each:
        written = [_within(section, text) for text in written]
    text = declared.separator.join(written)
    if section is not None and not section.each:
        text = _within(section, text)
    _check(declared, calls, tools, text)
    return text


@dataclass(frozen=True, slots=True)
class Writing:
    """What a part needs to know to write itself: format, called tool, call, and the call's number among the calls."""

    format: Format
    tool: ToolSpec
    call: ToolCall
    number: int


def _write(w: Writing) -> str:
    try:
        text = "".join(WRITERS[type(p)](w, p) for p in w.format.call)
    except FormatError as e:
        raise e if w.tool.name in str(e) else FormatError(f"{w.tool.name}: {e}") from e
    if has_surrogate(text):
        raise FormatError(f"{w.tool.name}: a string with a lone surrogate cannot be written in any format")
    return text


def _within(section: Section, text: str) -> str:
    """A section around calls; tags stand on lines of their own, literals say themselves what white space they want."""
    start = f"{edge(section.open)}\n" if isinstance(section.open, Tag) else section.open
    end = f"\n{edge(section.close)}" if isinstance(section.close, Tag) else section.close
    return f"{start}{text}{end}"


def _spec(format: Format, call: ToolCall, known: Mapping[str, ToolSpec]) -> ToolSpec:
    """The called tool; for one that is not offered (any more), one that takes whatever was given."""
    tool = known.get(call.name)
    if tool is None:
        tool = ToolSpec(call.name, "", {"type": "object", "properties": {name: {} for name in call.arguments}})
    return tool.with_element(next((p.layout for p in format.call if isinstance(p, ToolElement)), "own"))


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


def _write_literal(w: Writing, part: str) -> str:
    return part


def _write_tag(w: Writing, part: Tag) -> str:
    return edge(part)


def _write_name(w: Writing, part: Name) -> str:
    return part.prefix + (attribute(w.call.name) if part.attribute else w.call.name)


def _write_counted_name(w: Writing, part: CountedName) -> str:
    return w.call.id if _COUNTED.match(w.call.id) else f"{part.prefix}{w.call.name}:{w.number}"


_COUNTED = re.compile(r"\S+:\d+\Z")


def _write_name_tag(w: Writing, part: NameTag) -> str:
    start = f'<{part.name} {part.attribute}="{attribute(w.call.name)}"'
    if any(isinstance(p, TextArgument) for p in w.format.call):
        for key, value in w.call.arguments.items():
            if key not in w.tool.first_required:
                text = _text(value, key, w.tool)
                start += f" {key}" if text is None else f' {key}="{attribute(text)}"'
    return start + ">"


def _write_json(w: Writing, part: Json) -> str:
    return values.dump(dict(w.call.arguments))


def _write_envelope(w: Writing, part: Envelope) -> str:
    return values.dump({part.name: w.call.name, part.arguments[0]: dict(w.call.arguments)})


def _write_key_envelope(w: Writing, part: KeyEnvelope) -> str:
    return values.dump({w.call.name: dict(w.call.arguments)})


def _write_python_call(w: Writing, part: PythonCall) -> str:
    return f"{w.call.name}({', '.join(f'{k}={python_literal(v)}' for k, v in w.call.arguments.items())})"


def python_literal(value: Any) -> str:
    """A JSON value as Python writes it.

    Raises:
        FormatError: the value is not JSON.
    """
    values.dump(value)
    return repr(value)


def _write_skip(w: Writing, part: Skip) -> str:
    return part.written.format(number=w.number + 1)


def _write_braced(w: Writing, part: Braced) -> str:
    arguments: Mapping[str, Any] = w.call.arguments
    if not part.typed:
        arguments = {k: values.write(v, *_schema(w.tool, k), nulls=v is None) for k, v in arguments.items()}
    return _braced(arguments, part.quote)


def _schema(tool: ToolSpec, parameter: str) -> tuple[walk.Schema, walk.Schema]:
    return tool.schema_of(parameter), tool.parameters


def _braced(value: Any, quote: str) -> str:
    match value:
        case str():
            return f"{quote}{value}{quote}"
        case Mapping():
            return "{" + ",".join(f"{_bare_key(k)}:{_braced(v, quote)}" for k, v in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(_braced(v, quote) for v in value) + "]"
        case _:
            return values.dump(value)


def _bare_key(key: str) -> str:
    if re.fullmatch(r"[^\s:{}\[\],\"']+", key) is None:
        raise FormatError(f"{key!r} cannot be a key of this format: it has no quotes around keys")
    return key


def _write_nested_tags(w: Writing, part: NestedTags) -> str:
    return "".join(_nested(part, k, v, *_schema(w.tool, k)) for k, v in w.call.arguments.items())


def _nested(part: NestedTags, name: str, value: Any, schema: walk.Schema, root: walk.Schema) -> str:
    plain = next((s for s in walk.alternatives(schema, root) if s.get("type") in ("array", "object")), {})
    if isinstance(value, Mapping) and value:
        inner = plain.get("properties", {})
        body = "".join(_nested(part, k, v, inner.get(k, {}), root) for k, v in value.items())
    elif isinstance(value, list) and value and plain.get("type") == "array":
        items = plain.get("items")
        body = "".join(_nested(part, part.item, v, items if isinstance(items, Mapping) else {}, root) for v in value)
    else:
        body = values.write(value, schema, root, nulls=True)
    return f"{part.token}<{name}>{body}{part.token}</{name}>"


def _write_text_argument(w: Writing, part: TextArgument) -> str:
    closing = next(p.name for p in w.format.call if isinstance(p, Tag))
    names = w.tool.first_required
    if not names or names[0] not in w.call.arguments:
        return ""
    value = w.call.arguments[names[0]]
    text = _text(value, names[0], w.tool, nulls=value is None) or ""
    return _cdata(text) if _is_word_null(value) or wrapped(text, w.tool) else raw_value(text, (closing,))


def _write_tag_parameters(w: Writing, part: TagParameters) -> str:
    hazards = tuple(p.name for p in w.format.call if isinstance(p, Tag | NameTag | TagParameters))
    out = []
    for key, value in w.call.arguments.items():
        start = f'<{part.name} {part.attribute}="{attribute(key)}"'
        if part.kind:
            text: str | None = value if isinstance(value, str) else values.dump(value)
            start += f' {part.kind}="{"true" if isinstance(value, str) else "false"}"'
        else:
            text = _text(value, key, w.tool)
        raw = text if text is None else _cdata(text) if _is_word_null(value) else raw_value(text, hazards)
        out.append(f"{start}/>\n" if raw is None else f"{start}>{raw}</{part.name}>\n")
    return "".join(out)


def _write_pairs(w: Writing, part: Pairs) -> str:
    out = []
    for key, value in w.call.arguments.items():
        text = _typed_text(value) if part.kind else _text(value, key, w.tool, nulls=value is None)
        if text is None:
            raise FormatError(f"{w.tool.name}: parameter {key!r}: this format cannot write null for it")
        verbatim = _is_word_null(value)
        kind = _kind(value, part)
        body = _cdata(text) if verbatim and not kind else _paired(text, part, w.format.shapes[0])
        name = attribute(key) if part.key.endswith('="') else key
        out.append(f"{part.key}{name}{kind or part.middle}{body}{part.close}\n")
    return "".join(out)


def _to_the_letter(value: Any, element: Element) -> bool:
    """Whether a string must be marked as meant to the letter: it reads as null, or would be stripped."""
    return _is_word_null(value) or (element.strip and isinstance(value, str) and value != value.strip())


def _typed_text(value: Any) -> str:
    return value if isinstance(value, str) else values.dump(value)


def _kind(value: Any, part: Pairs) -> str:
    """The type of a value, where the format writes it."""
    if not part.kind:
        return ""
    return f"{part.kind[0]}{walk.type_of(value)}{part.kind[1]}"


def _is_word_null(value: Any) -> bool:
    """Whether this is a string that reads as null unless it is meant to the letter."""
    return isinstance(value, str) and value in ("null", "None", "NULL")


def _paired(text: str, part: Pairs, shape: Shape) -> str:
    """A value between literals: in CDATA where it holds what opens or closes something in a call."""
    both = part.newlines == "both"
    edges = [p for p in shape.call if isinstance(p, str) and p.strip()]
    marked = any(mark.strip() in text for mark in (part.close, part.key, edges[0], edges[-1]))
    if _CDATA_AT_START.match(text) or marked or (both and text.endswith("\r")):
        return _cdata(text)
    dropped = part.newlines != "none" and not part.middle.endswith("\n")
    start = "\n" if dropped and text.startswith(("\n", "\r\n")) else ""
    end = "\n" if both and not part.close.startswith("\n") and text.endswith("\n") else ""
    return start + text + end


def _cdata(text: str) -> str:
    return f"{CDATA_OPEN}{text.replace(CDATA_CLOSE, ']]' + CDATA_CLOSE + CDATA_OPEN + '>')}{CDATA_CLOSE}"


def _text(value: Any, parameter: str, tool: ToolSpec, *, nulls: bool = False) -> str | None:
    """The value as text; None for a null that text cannot tell from a string."""
    schema, root = tool.schema_of(parameter), tool.parameters
    try:
        return values.write(value, schema, root, nulls=nulls)
    except FormatError as e:
        if value is None and values.accepts_null(schema, root):
            return None
        raise FormatError(f"{tool.name}: parameter {parameter!r}: {e}") from e


def attribute(text: str) -> str:
    """Text as an attribute's value, for double quotes."""
    return _ATTRIBUTE_UNSAFE.sub(lambda m: _ATTRIBUTE_ESCAPES[m[0]], text)


def raw_value(text: str, hazards: Iterable[str]) -> str:
    """Text as a raw value: as it is where no tag of `hazards` stands in it, else in CDATA."""
    if _CDATA_AT_START.match(text) or tags(tuple(hazards)).search(text):
        return _cdata(text)
    return f"\n{text}" if text.startswith(("\n", "\r\n")) else text  # the first newline is not part of a value


@lru_cache(maxsize=1024)
def tags(names: tuple[str, ...]) -> re.Pattern[str]:
    """Any tag, opening or closing, of one of these names, in any case and with any namespace."""
    return re.compile(rf"<(?=/?(?:[^\W\d][\w.-]*:)?(?:{'|'.join(map(spelt, names))})(?![\w.-]))", re.IGNORECASE)


def _write_element(w: Writing, part: ToolElement) -> str:
    tool, call = w.tool, w.call
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
            marked = _to_the_letter(value, element) or wrapped(text, tool)
            content = _cdata(text) if marked else raw_value(text, (element.tag,))
        else:
            hazards = (*node.path, element.tag)
            elements[key] = _cdata(text) if _to_the_letter(value, element) else raw_value(text, hazards)
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
                out += f"<{name}>{elements[below.parameter]}</{name}>\n"
        elif (inner := _children(below, elements)) != "\n":
            out += f"<{name}>{inner}</{name}>\n"
    return out


WritePart = Callable[[Writing, Any], str]

WRITERS: Final[Mapping[type[FormatPart], WritePart]] = {
    str: _write_literal,
    Tag: _write_tag,
    Name: _write_name,
    CountedName: _write_counted_name,
    NameTag: _write_name_tag,
    TagParameters: _write_tag_parameters,
    Pairs: _write_pairs,
    Json: _write_json,
    Envelope: _write_envelope,
    KeyEnvelope: _write_key_envelope,
    PythonCall: _write_python_call,
    Skip: _write_skip,
    Braced: _write_braced,
    NestedTags: _write_nested_tags,
    TextArgument: _write_text_argument,
    ToolElement: _write_element,
}
