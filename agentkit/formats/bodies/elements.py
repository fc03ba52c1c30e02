"""An XML element per tool, and the tag that contains a tool's name and arguments. Values are raw text.

Knows the call in progress, the reader and the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from agentkit.errors import FormatError
from agentkit.events import ArgumentDelta
from agentkit.formats import tags
from agentkit.formats.bodies.pairs import refuse_strays
from agentkit.formats.call import CallReader
from agentkit.formats.escapes import attribute, cdata, raw_value, reads_as_null, text_of
from agentkit.formats.format import NameTag, Tag, TextArgument, ToolElement
from agentkit.formats.kind import OTHERS_AS_JSON, PartKind, Writing
from agentkit.formats.listing import listed
from agentkit.formats.reader import Damage, Decline, Delimiter, Reader, Wait
from agentkit.formats.value import read_value
from agentkit.formats.valueends import Elements, end_of_content, end_of_element
from agentkit.schemas.typed import values
from agentkit.toolspec import Element, Node, ToolSpec


def read_name_tag(r: Reader, call: CallReader, part: NameTag) -> Wait:
    """An opening tag with the tool's name in an attribute."""
    yield from r.space()
    found = yield from r.sees(tags.tag(part.name, closing=False))
    if found is None:
        raise Decline
    r.at = found.end()
    carries = any(isinstance(p, TextArgument) for p in call.shape.call)
    attributes = (_NameAndArguments if carries else tags.Attributes)(r, part.name, (part.attribute,))
    try:
        opening = yield from attributes.read()
    except Decline:
        if (yield from r.sees(tags.named_tag(part.name, part.attribute))):  # with the rest of this tag as its value
            message = f"<{part.name}> opens in the opening tag of another one"
            raise Damage("invalid_arguments", message, r.offset, in_tag=True) from None
        raise
    name = opening.attributes.get(part.attribute)
    if not name:
        raise Decline
    call.begin(r, name)
    call.complete = opening.empty
    if carries:
        for key, text in opening.attributes.items():
            if key != part.attribute:
                _attribute(r, call, key.removeprefix(_AGAIN), text)
        return
    refuse_strays(part.name, (k for k in opening.attributes if k != part.attribute), r.offset)


def _attribute(r: Reader, call: CallReader, parameter: str, text: str | None) -> None:
    """Store an argument from an attribute; the value of a string must be written, even if it is empty.

    Without a value it is null, as our own writer writes it, if null is also the value when the parameter is omitted.
    """
    schema, root = call.arguments.schema(parameter)
    if text is None and schema and schema.get("default", "") is not None and values.accepts("", schema, root):
        raise Damage("invalid_arguments", f"expected '=' and a value after {parameter!r}", r.offset)
    call.arguments.put(r, parameter, text, nulls=False)


_AGAIN: Final = " "
"""Marks a second attribute of the same name: no attribute's name contains it."""


class _NameAndArguments(tags.Attributes):
    """The attributes of a tag with the tool's name and arguments; an argument may have the name attribute's name."""

    def key(self) -> Generator[None, None, str]:
        key = yield from super().key()
        return f"{_AGAIN}{key}" if key in self.known and key in self.opening.attributes else key


def read_text_argument(r: Reader, call: CallReader, part: TextArgument) -> Wait:
    """The tool's first required parameter as the text up to the closing tag, which stays; other tags are content."""
    if call.complete:
        return
    names = call.tool.first_required if call.tool else ("text",)
    closing = next(p for p in call.shape.call[call.part + 1 :] if isinstance(p, Tag))
    key = names[0] if names else "text"
    text, verbatim = yield from read_value(r, call, key, end_of_content(closing.name), is_text=True)
    _refuse_unlike(r, call, key, text, verbatim=verbatim)
    required = call.tool.parameters.get("required", ()) if call.tool else ()
    if text.strip() or (names and names[0] in required):
        call.arguments.put(r, key, text, nulls=not verbatim)
    call.complete = True


class _ElementAttributes(tags.Attributes):
    """The attributes of a tool's tag: the first that belongs to the tool commits the call."""

    streams = True

    def __init__(self, r: Reader, call: CallReader, tool: ToolSpec) -> None:
        assert tool.element is not None
        self.call, self.tool = call, tool
        self.parameters = {n.path[0]: n.parameter for n in tool.element.of("attribute")}
        every = tool.parameters.get("properties", {})
        super().__init__(r, tool.element.tag, {*self.parameters, *every})

    def parameter(self, key: str) -> str:
        return self.parameters.get(key, key)

    def on_attribute(self, key: str) -> None:
        if not self.call.started:
            self.call.begin(self.r, self.tool.name)
            for earlier, text in self.opening.attributes.items():
                self.on_piece(earlier, text or "")

    def on_piece(self, key: str, text: str) -> None:
        if text:
            self.r.out.append(ArgumentDelta(self.call.index, text, self.parameter(key)))


def read_element(r: Reader, call: CallReader, part: ToolElement) -> Wait:
    """One tool's element. The parser has already set `call.tool` from the tag."""
    tool = call.tool
    assert tool is not None
    assert tool.element is not None
    element = tool.element
    found = yield from r.sees(tags.tag(element.tag, closing=False))
    if found is None:
        raise Decline
    r.at = found.end()
    attributes = _ElementAttributes(r, call, tool)
    opening = yield from attributes.read()
    if not call.started:
        call.begin(r, tool.name)
    for key, text in opening.attributes.items():
        _attribute(r, call, attributes.parameter(key), text)
    content, elements = element.of("content"), call.elements[part.layout]
    if content and not opening.empty:
        key = content[0].parameter
        end = end_of_content(element.tag, elements.others(element.tag))
        text, verbatim = yield from read_value(r, call, key, end, is_text=True)
        _refuse_unlike(r, call, key, text, verbatim=verbatim)
        call.arguments.put(r, key, _stripped(element, text, verbatim=verbatim), nulls=not verbatim)
    group = {} if content else _group_of(tool, elements)
    if not (opening.empty or content):
        yield from _Children(r, call, tool, elements).read((element.tag,), group)
    if (yield from r.sees(_rest_of(element.tag, tuple(name for name in group if name not in elements.tags)))):
        message = f"<{element.tag}> is closed before its last part: close it once, after all of it"
        raise Damage("invalid_arguments", message, r.offset)


def _refuse_unlike(r: Reader, call: CallReader, key: str, text: str, *, verbatim: bool) -> None:
    """Refuse content that begins with a piece of the tag before it, or is a call or its arguments in another style.

    Raises:
        Damage: it is not meant as this parameter's value, or that is ambiguous.
    """
    if verbatim:
        return
    known = call.tool.parameters.get("properties", {}) if call.tool is not None else {}
    rest = _REST_OF_TAG(text)
    unlike = rest is not None and (rest[1] is None or rest[1] in known)
    unlike = unlike or any(found[1] in call.tools for found in _NAMED(text))
    if text.lstrip()[:1] == "{" and not unlike:
        read = values.read(text, {"type": "object"}, {})
        unlike = isinstance(read, dict) and bool(read) and read.keys() <= known.keys()
    names = [name for found in _EDGE_TAGS(text) if (name := found[1] or found[2]) in known]
    torn = len(names) > 1 or any(text.count(f"<{name}") != text.count(f"</{name}>") for name in names)
    if unlike or torn:
        message = f"the value of {key!r} is not its text alone: write that, or put it in <![CDATA[ … ]]>"
        raise Damage("ambiguous_call", message, r.offset)


_REST_OF_TAG: Final = re.compile(
    r"\A(?:>|[\w.-]{0,256}=?[\"'][^\"'<>\n]{0,256}[\"']?>|\s*(?:<?[\w.-]{1,256}\s+)?([\w.-]{1,256})=[\"'])"
).match
"""Matches what content begins with if the tag before it is broken: an attribute, or the end of one and of the tag."""
_NAMED: Final = re.compile(r"\bname[\"']?\s{0,64}[:=]\s{0,64}[\"']([\w.-]{1,256})").finditer
"""Finds names, as tags and envelopes have them."""
_EDGE_TAGS: Final = re.compile(r"\A\s*</?([\w.-]+)[\s/>]|</?([\w.-]+)\s*>\s*\Z").finditer


@lru_cache(4096)
def _rest_of(tag: str, children: tuple[str, ...]) -> Delimiter:
    """What may not follow an element that is closed: its own end, or one more of its child elements."""
    either = "|".join([tags.closing_tag(tag), *map(tags.opening_tag, children)])
    return Delimiter(rf"\s{{0,64}}(?:{either})", r"\s{0,64}(?:</?[^\s<>/\"'=]{0,160}\s{0,64})?", re.IGNORECASE)


def _stripped(element: Element, text: str, *, verbatim: bool) -> str:
    """Its text; white space around it is stripped if the element says so and the value is not marked as literal."""
    return text.strip() if element.strip and not verbatim else text


Group = dict[str, "Group | Node"]


def group_of(tool: ToolSpec) -> Group:
    """The tool's child elements as a tree; parameters without their own node may also be written as elements.

    Not those whose name is where another parameter is.
    """
    assert tool.element is not None
    nodes = tool.element.of("element")
    taken = {name for node in nodes for name in (node.parameter, node.path[0])}
    own = (name for name in tool.parameters.get("properties", {}) if name not in taken)
    root: Group = {name: Node(name, "element", (name,)) for name in own}
    for node in nodes:
        group = root
        for step in node.path[:-1]:
            below = group.setdefault(step, {})
            group = below if isinstance(below, dict) else group
        group[node.path[-1]] = node
    return root


def _group_of(tool: ToolSpec, elements: Elements) -> Group:
    """The same, made once as long as the elements are used."""
    if (found := elements.groups.get(id(tool))) is None:
        found = elements.groups[id(tool)] = (tool, group_of(tool))  # kept here, so that its id is not used again
    group: Group = found[1]
    return group


class _Children:
    """The child elements of a tool's element."""

    def __init__(self, r: Reader, call: CallReader, tool: ToolSpec, elements: Elements) -> None:
        self.r, self.call, self.tool, self.elements = r, call, tool, elements

    def read(self, parents: tuple[str, ...], group: Group) -> Wait:
        """The elements of a group in any order, up to the closing tag of the first of `parents`, which is consumed."""
        r, call, parent = self.r, self.call, parents[0]
        closing = tags.tag(parent, closing=True)
        while True:
            yield from r.space()
            if found := (yield from r.sees(closing)):
                r.at = found.end()
                return
            found = yield from r.sees(tags.ANY_OPENING)
            if found is None:
                if r.at >= len(r.buf):
                    raise Damage("truncated_call", f"the text ended inside <{parent}>", r.offset, ended=True)
                raise Damage("invalid_arguments", f"expected {_allowed(group, parent)}", r.offset, got=True)
            name, start = found["name"], r.offset - r.mark
            r.at = found.end()
            attributes = tags.Attributes(r, name, ())
            attributes.committed = True
            opening = yield from attributes.read()
            below = group.get(name)
            if below is None and not (call.tool and call.tool.declares(name)):
                raise _unknown(call, name, _allowed(group, parent), r.mark + start)
            refuse_strays(name, opening.attributes, r.offset)
            if isinstance(below, dict):
                if not opening.empty:
                    yield from self.read((name, *parents), below)
                continue
            parameter = below.parameter if below is not None else name
            if opening.empty:
                call.arguments.put(r, parameter, None)
            else:
                yield from self.take(name, parameter, parents, group)

    def take(self, name: str, parameter: str, parents: tuple[str, ...], group: Group) -> Wait:
        """The value of an open element."""
        r, call, element = self.r, self.call, self.tool.element
        assert element is not None
        end = self.elements.end(self.tool, name, group, parents)
        text, verbatim = yield from read_value(r, call, parameter, end)
        call.arguments.put(r, parameter, _stripped(element, text, verbatim=verbatim), nulls=not verbatim)


def _allowed(group: Group, parent: str) -> str:
    """What an element may contain."""
    return " or ".join([*(f"<{name}>" for name in group), f"</{parent}>"])


def _unknown(call: CallReader, name: str, wanted: str, position: int) -> Damage:
    """The error for a child element that does not belong to the tool."""
    return Damage(
        "invalid_arguments", f"<{name}> is not a parameter of {call.name!r}, expected {wanted}", position, got=True
    )


# ---------------------------------------------------------------- written


_ATTRIBUTE_NAME = re.compile(r"[^\s=/>\"'<]{1,256}\Z")


def write_name_tag(w: Writing, part: NameTag) -> str:
    """The opening tag; if the body is a single text, the other arguments are its attributes."""
    start = f'<{part.name} {part.attribute}="{attribute(w.call.name)}"'
    if any(isinstance(p, TextArgument) for p in w.format.call):
        for key, value in w.call.arguments.items():
            if key not in w.tool.first_required:
                text = text_of(value, key, w.tool)
                start += f" {key}" if text is None else f' {key}="{attribute(text)}"'
    return start + ">"


def write_text_argument(w: Writing, part: TextArgument) -> str:
    """The argument that is the tag's text."""
    closing = next(p.name for p in w.format.call if isinstance(p, Tag))
    names = w.tool.first_required
    if not names or names[0] not in w.call.arguments:
        return ""
    value = w.call.arguments[names[0]]
    text = text_of(value, names[0], w.tool, nulls=value is None) or ""
    unlike = reads_as_null(value) or end_of_content(closing).marks(text) or _is_unlike(text)
    return cdata(text) if unlike else raw_value(text)


def write_element(w: Writing, part: ToolElement) -> str:
    """The tool's whole element: attributes, then content or child elements."""
    tool, call = w.tool, w.call
    element = tool.element
    assert element is not None
    nodes = {n.parameter: n for n in element.nodes}
    attributes, body = [], ""
    content: str | None = None
    elements: dict[str, Any] = {}
    for key, value in call.arguments.items():
        node = nodes.get(key)
        text = text_of(value, key, tool, nulls=value is None and node is not None and node.kind == "element")
        if node is None or node.kind == "attribute" or text is None:
            name = node.path[0] if node is not None and node.kind == "attribute" else key
            if _ATTRIBUTE_NAME.match(name) is None:
                raise FormatError(f"{tool.name}: {name!r} cannot be the name of an attribute of <{element.tag}>")
            attributes.append(f" {name}" if text is None else f' {name}="{attribute(text)}"')
        elif node.kind == "content":
            marked = (
                _to_the_letter(value, element) or end_of_content(element.tag, w.others).marks(text) or _is_unlike(text)
            )
            content = cdata(text) if marked else raw_value(text)
        else:
            end = end_of_element(node.path[-1], (), (*node.path[-2::-1], element.tag), w.others)
            marked = _to_the_letter(value, element) or end.marks(text)
            elements[key] = cdata(text) if marked else raw_value(text)
    if elements:
        body = _child_texts(group_of(tool), elements)
    start = f"<{element.tag}{''.join(attributes)}"
    if content is None and not elements:
        return f"{start}/>"
    return f"{start}>{content if content is not None else body}</{element.tag}>"


def _is_unlike(text: str) -> bool:
    """Whether content may look like markup or arguments in another style; see `_refuse_unlike`."""
    edges = text.lstrip()[:1] in ("{", ">", "<") or text.rstrip().endswith(">")
    return edges or _REST_OF_TAG(text) is not None or any(_NAMED(text))


def _child_texts(group: Mapping[str, Any], elements: Mapping[str, str]) -> str:
    """Child elements in their declared order, nested as their paths say."""
    out = "\n"
    for name, below in group.items():
        if isinstance(below, Node):
            if below.parameter in elements:
                out += f"<{name}>{elements[below.parameter]}</{name}>\n"
        elif (inner := _child_texts(below, elements)) != "\n":
            out += f"<{name}>{inner}</{name}>\n"
    return out


def _to_the_letter(value: Any, element: Element) -> bool:
    """Whether a string must be marked as literal text: it reads as null, or would be stripped."""
    return reads_as_null(value) or (element.strip and isinstance(value, str) and value != value.strip())


# ---------------------------------------------------------------- taught


def listed_elements(part: ToolElement, tools: Sequence[ToolSpec]) -> str:
    """The tools as a prompt lists them: each by its tag and what goes where."""
    elements = [t.with_element(part.layout) for t in tools]
    shown = [_element(t) for t in elements]
    if any(node.kind == "attribute" for t in elements if t.element is not None for node in t.element.nodes):
        shown.append(_ATTRIBUTES)
    return "\n\n".join(shown)


def _element(tool: ToolSpec) -> str:
    assert tool.element is not None
    nodes = {n.parameter: n for n in tool.element.nodes}
    shown = listed(tool, f"<{tool.element.tag}>", lambda name: _place(name, nodes.get(name)))
    return f"{shown}\n\n{tool.element.example.strip()}" if tool.element.example else shown


def _place(parameter: str, node: Node | None) -> str:
    label = "/".join(node.path) if node is not None and node.path else parameter
    kind = "attribute" if node is None else node.kind
    return {"attribute": f"attribute `{label}`", "element": f"element <{label}>", "content": "the element's content"}[
        kind
    ]


_AS_MEANT: Final = (
    "Write what stands between tags exactly as it is meant: no quotes around it, no escaping. "
    "Line breaks and indentation count."
)
_ATTRIBUTES: Final = 'In the value of an attribute, write &quot; for ", &amp; for & and &lt; for <.'
_RULES: Final = (
    _AS_MEANT,
    OTHERS_AS_JSON,
    "Text that contains the very tag that encloses it must stand in <![CDATA[ and ]]>.",
)

KINDS = (
    PartKind(NameTag, read_name_tag, write_name_tag, taught=()),
    PartKind(TextArgument, read_text_argument, write_text_argument, taught=_RULES),
    PartKind(ToolElement, read_element, write_element, taught=_RULES, listing=listed_elements),
)
