"""An XML element per tool, and the tag that contains a tool's name and arguments. Values are raw text.

Knows the call in progress, the reader and the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, Final

from agentkit.errors import FormatError
from agentkit.events import ArgumentDelta
from agentkit.formats import tags, valueends, values
from agentkit.formats.bodies.pairs import noted, refuse_strays, value_of
from agentkit.formats.call import CallReader
from agentkit.formats.damage.childless import refuse_behind
from agentkit.formats.damage.crossing import crossing, refuse_crossing
from agentkit.formats.damage.doubtful import doubt_of
from agentkit.formats.damage.missing_close import unsure
from agentkit.formats.escapes import attribute, cdata, raw_value, reads_as_null, text_of
from agentkit.formats.format import NameTag, Tag, TextArgument, ToolElement
from agentkit.formats.kind import OTHERS_AS_JSON, PartKind, Writing
from agentkit.formats.listing import listed
from agentkit.formats.rawvalue import Value
from agentkit.formats.reader import Damage, Decline, Reader, Wait
from agentkit.formats.worn import doubtful_end
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
    own = call.tool.parameters.get("properties", {}) if call.tool is not None else {}
    refuse_strays(part.name, (k for k in opening.attributes if k != part.attribute), own, r.offset)


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
    value = Value(r, call.index, names[0] if names else "text", valueends.end_of_content(closing.name))
    yield from value.read()
    tag = next(p for p in call.shape.call if isinstance(p, NameTag))
    yield from _refuse_doubtful(r, call, value, tag.name, (tag.attribute,))
    required = call.tool.parameters.get("required", ()) if call.tool else ()
    if value.text().strip() or (names and names[0] in required):
        call.arguments.put(r, value.key, value.text(), nulls=not value.verbatim)
    call.complete = True


def _refuse_doubtful(r: Reader, call: CallReader, value: Value, tag: str, attributes: Iterable[str]) -> Wait:
    """Refuse content of which it is ambiguous whether it is all of the value, and nothing else."""
    if value.verbatim and not value.bare():
        return
    doubt = doubt_of(value.bare(), call.tool, tag, attributes)
    if not doubt and call.tool is not None and (yield from value.closed_again()):
        again = f"</{tag}> comes again after it: write the call again"
        doubt = f"is closed, and {again}" if value.text().strip() else f"is empty, and {again}"
    if doubt:
        message = f"the value of {value.key!r} {doubt}, or put it in <![CDATA[ … ]]>"
        raise Damage("ambiguous_call", message, r.offset, end=r.offset)


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
    if opening.empty:
        yield from refuse_behind(r, element.tag, _missing(call, {} if content else _group_of(tool, elements)))
    elif content:
        value = Value(r, call.index, content[0].parameter, valueends.end_of_content(element.tag))
        yield from value.read()
        yield from refuse_crossing(r, value, elements.others(element.tag))
        yield from _refuse_doubtful(r, call, value, element.tag, tool.parameters.get("properties", {}))
        call.arguments.put(r, content[0].parameter, _stripped(element, value.text(), value), nulls=not value.verbatim)
    else:
        group = _group_of(tool, elements)
        yield from _Children(r, call, tool, elements).read((element.tag,), group)
        yield from refuse_behind(r, element.tag, _missing(call, group))


def _missing(call: CallReader, group: Group) -> set[str]:
    """The names of child elements, as `folded`, whose parameters were not passed."""
    taken = call.arguments.by_name
    nodes = ((name, node) for name, node in group.items() if isinstance(node, Node))
    return {tags.folded(name) for name, node in nodes if node.parameter not in taken}


def _stripped(element: Element, text: str, value: Value) -> str:
    """Its text; white space around it is stripped if the element says so and the value is not marked as literal."""
    return text.strip() if element.strip and not value.verbatim else text


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


def _group_of(tool: ToolSpec, elements: valueends.Elements) -> Group:
    """The same, made once as long as the elements are used."""
    if (found := elements.groups.get(id(tool))) is None:
        found = elements.groups[id(tool)] = (tool, group_of(tool))  # kept here, so that its id is not used again
    group: Group = found[1]
    return group


class _Children:
    """The child elements of a tool's element."""

    def __init__(self, r: Reader, call: CallReader, tool: ToolSpec, elements: valueends.Elements) -> None:
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
            refuse_strays(name, opening.attributes, (), r.offset)
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
        value = value_of(r, call, parameter, self.elements.end(self.tool, name, group, parents))
        yield from value.read()
        text = noted(call, value)
        if swallowed := _swallowed(text, call, group, name, unclosed=value.unclosed):
            raise unsure(parameter, swallowed, r.offset, -1)
        call.arguments.put(r, parameter, _stripped(element, text, value), nulls=not value.verbatim)


def _allowed(group: Group, parent: str) -> str:
    """What an element may contain."""
    return " or ".join([*(f"<{name}>" for name in group), f"</{parent}>"])


def _unknown(call: CallReader, name: str, wanted: str, position: int) -> Damage:
    """The error for a child element that does not belong to the tool."""
    return Damage(
        "invalid_arguments", f"<{name}> is not a parameter of {call.name!r}, expected {wanted}", position, got=True
    )


def _swallowed(text: str, call: CallReader, group: Group, own: str, *, unclosed: bool) -> str:
    """The first sibling, not set so far, that starts in a value whose own end was missing; empty if none does.

    In one that is closed, where an element of its own name ends before the sibling, and that is not closed.
    """
    if "<" not in text:
        return ""
    taken = call.arguments.by_name
    begins = "" if unclosed else rf"{tags.closing_tag(own)}\s{{0,64}}"
    ends = "" if unclosed else r"[^<>]*>[^<>]*\Z"
    names = (n for n, below in group.items() if isinstance(below, Node) and below.parameter not in taken)
    return next((n for n in names if n != own and _found(f"{begins}{tags.opening_tag(n)}{ends}", text)), "")


def _found(written: str, text: str) -> bool:
    return re.search(written, text, re.IGNORECASE) is not None


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
    tag = next(p for p in w.format.call if isinstance(p, NameTag))
    unlike = reads_as_null(value) or doubt_of(text, w.tool, tag.name, (tag.attribute,))
    return cdata(text) if unlike else raw_value(text, (closing,))


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
            own = tool.parameters.get("properties", {})
            marked = _to_the_letter(value, element) or doubt_of(text, tool, element.tag, own) or crossing(text)
            content = cdata(text) if marked else raw_value(text, (element.tag,))
        else:
            hazards = (*node.path, element.tag)
            doubtful = doubtful_end(text, f"</{node.path[-1]}>")
            elements[key] = cdata(text) if doubtful or _to_the_letter(value, element) else raw_value(text, hazards)
    if elements:
        body = _child_texts(group_of(tool), elements)
    start = f"<{element.tag}{''.join(attributes)}"
    if content is None and not elements:
        return f"{start}/>"
    return f"{start}>{content if content is not None else body}</{element.tag}>"


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
