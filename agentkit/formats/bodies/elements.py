"""An XML element per tool, and the tag that contains a tool's name and arguments. Values are raw text.

Knows the call in progress, the reader and the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from agentkit.errors import FormatError
from agentkit.events import ArgumentDelta
from agentkit.formats import tags
from agentkit.formats.bodies.fixed_parts import missing_error
from agentkit.formats.bodies.pairs import refuse_attributes
from agentkit.formats.call import CallReader
from agentkit.formats.escapes import attribute, cdata, raw_value, reads_as_null, text_of
from agentkit.formats.format import NameTag, Tag, TextArgument, ToolElement
from agentkit.formats.kind import OTHERS_AS_JSON, PartKind, Writing
from agentkit.formats.reader import Damage, Decline, Delimiter, Reader, Search, Wait
from agentkit.formats.tool_list import describe_tool
from agentkit.formats.value import read_value
from agentkit.formats.valueends import ValueEnd, end_beginning, end_of_content, end_of_element
from agentkit.schemas.typed import values
from agentkit.toolspec import Element, Node, ToolSpec


def read_name_tag(r: Reader, call: CallReader, part: NameTag) -> Wait:
    """Read an opening tag with the tool's name in an attribute."""
    yield from r.space()
    if (found := (yield from r.sees(tags.tag(part.name, closing=False)))) is None:
        raise Decline
    r.at = found.end()
    carries = any(isinstance(p, TextArgument) for p in call.shape.call)
    attributes = (_NameAndArguments if carries else tags.Attributes)(r, part.name, (part.attribute,))
    try:
        opening = yield from attributes.read()
    except Decline:
        if not r.buf.startswith("<", r.at):  # else the rest of this tag would be the other one's value
            raise
        raise Damage("invalid_arguments", f"another tag opens in <{part.name}", r.offset, in_tag=True) from None
    name = opening.attributes.pop(part.attribute, None)
    if not name:
        raise Decline
    call.begin(r, name)
    call.complete = opening.empty
    if not carries:
        refuse_attributes(part.name, opening.attributes, r.offset)
    for key, text in opening.attributes.items():
        _attribute(r, call, key.removeprefix(_AGAIN), text)


_AGAIN: Final = " "
"""Marks a second attribute of the same name: no attribute's name contains it."""


class _NameAndArguments(tags.Attributes):
    """The attributes of a tag with the tool's name and arguments; an argument may have the name attribute's name."""

    def key(self) -> Generator[None, None, str]:
        key = yield from super().key()
        return f"{_AGAIN}{key}" if key in self.known and key in self.opening.attributes else key


def _attribute(r: Reader, call: CallReader, parameter: str, text: str | None) -> None:
    """Store an argument from an attribute; a string needs a value, even an empty one.

    Without a value it is null, if null is also the value of an omitted parameter.
    """
    schema, root = call.arguments.schema(parameter)
    if text is None and schema and schema.get("default", "") is not None and values.accepts("", schema, root):
        raise Damage("invalid_arguments", f"expected '=' and a value after {parameter!r}", r.offset)
    call.arguments.put(r, parameter, text, nulls=False)


def read_text_argument(r: Reader, call: CallReader, part: TextArgument) -> Wait:
    """Read the tool's first required parameter as the text up to the closing tag, which stays; other tags are text."""
    if call.complete:
        return
    tool = call.tool
    names = (tool.first_required if tool else ()) or ("text",)
    closing = next(p for p in call.shape.call[call.part + 1 :] if isinstance(p, Tag))
    text, verbatim = yield from _content(r, call, names[0], end_of_content(closing.name))
    if text.strip() or (tool and names[0] in tool.parameters.get("required", ())):
        call.arguments.put(r, names[0], text, nulls=not verbatim)
    call.complete = True


def _content(r: Reader, call: CallReader, key: str, end: ValueEnd) -> Generator[None, None, tuple[str, bool]]:
    """Return an element's own text, and whether it was in CDATA.

    Raises:
        Damage: it begins with a piece of the tag before it, or is a call or its arguments in another style.
    """
    text, verbatim = yield from read_value(r, call, key, end, is_text=True)
    doubled = end.boundary.regex.match(text.lstrip()) is not None
    if not verbatim and (doubled or not _is_alone(text, call.tool, end.what, tuple(call.tools))):
        message = f"the value of {key!r} is not its text alone: write that, or put it in <![CDATA[ … ]]>"
        raise Damage("ambiguous_call", message, r.offset)
    return text, verbatim


def _is_alone(text: str, tool: ToolSpec | None, close: str, tools: tuple[str, ...] = ()) -> bool:
    """Return True if an element's text neither begins nor ends with markup or JSON of its tool's parameters.

    Nor contains a tool's name as envelopes and tags have it: any name if no tools are given. `close` ends the text.
    """
    known = tuple(tool.parameters.get("properties", {})) if tool is not None else ()
    starts, named, tags_at = _text_checks(known, close, tools)
    if starts(text) or named(text):
        return False
    if text.lstrip()[:1] != "<" and text.rstrip()[-1:] != ">":
        return True
    names = [found[1] or found[2] for found in tags_at(text)]
    return len(names) < 2 and all(text.count(f"<{name}") == text.count(f"</{name}>") for name in names)


@lru_cache(4096)
def _text_checks(
    parameters: tuple[str, ...], close: str, tools: tuple[str, ...]
) -> tuple[Search, Callable[[str], bool], Callable[[str], Any]]:
    """Return functions that find attributes and JSON at a text's start, names in it, and tags at its start and end."""
    own, names = ("|".join(map(re.escape, texts)) for texts in (parameters or ("\0",), tools))
    rest = r"[\w.-]{0,256}=?[\"'][^\"'<>\n]{0,256}[\"']?>"  # of the tag before it
    start = rf"\s*(?:<?[\w.-]{{1,256}}\s+)?(?:{own})=[\"']|\s*\{{\s*[\"'](?:{own})[\"']\s*:"
    start += "" if names else r"|\s*\{"
    names_at = re.compile(rf"[\"'](?:{names or _ANY})(?![\w.-])").finditer  # its first character is rare in a text
    whole = re.escape(f"<{close[2:-1]} ")
    key = re.compile(rf"(?<!{whole})(?:name|tool)[\"']?\s{{0,64}}[:=]\s{{0,64}}\Z").search
    opens = re.compile(r"[\"']\s{0,64}:\s{0,64}\{").match

    def named(text: str) -> bool:
        found = ((one.start(), one.end()) for one in names_at(text))
        return any(key(text, max(first - 160, 0), first) or opens(text, last) for first, last in found)

    tags_at = rf"\A\s*</?({own})[\s/>]|</?({own})\s*>\s*\Z"
    return re.compile(f">|{rest}|{start}").match, named, re.compile(tags_at).finditer


_ANY: Final = r"[\w.-]{1,256}"


class _ElementAttributes(tags.Attributes):
    """The attributes of a tool's tag: the first that belongs to the tool commits the call."""

    streams = True

    def __init__(self, r: Reader, call: CallReader, tool: ToolSpec, element: Element) -> None:
        self.call, self.tool = call, tool
        self.parameters = {n.path[0]: n.parameter for n in element.of("attribute")}
        super().__init__(r, element.tag, {*self.parameters, *tool.parameters.get("properties", {})})

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
    """Read one tool's element. The parser has already set `call.tool` from the tag."""
    tool, elements = call.tool, call.elements[part.layout]
    assert tool is not None
    assert tool.element is not None
    element = tool.element
    if (found := (yield from r.sees(tags.tag(element.tag, closing=False)))) is None:
        raise Decline
    r.at = found.end()
    attributes = _ElementAttributes(r, call, tool, element)
    opening = yield from attributes.read()
    if not call.started:
        call.begin(r, tool.name)
    for key, text in opening.attributes.items():
        _attribute(r, call, attributes.parameter(key), text)
    group, others = elements.derive(tool, group_of)
    if (content := element.of("content")) and not opening.empty:
        key = content[0].parameter
        value, verbatim = yield from _content(r, call, key, end_of_content(element.tag, others))
        call.arguments.put(r, key, _strip(element, value, verbatim=verbatim), nulls=not verbatim)
    elif not opening.empty:
        yield from _children(r, call, tool, (element.tag,), group, others)
    children = () if content else tuple(name for name in group if name not in elements.tags)
    if (yield from r.sees(_rest_of(element.tag, children))):
        message = f"<{element.tag}> is closed before its last part: close it once, after all of it"
        raise Damage("invalid_arguments", message, r.offset)


@lru_cache(4096)
def _rest_of(tag: str, children: tuple[str, ...]) -> Delimiter:
    """Return the delimiter of text that may not follow a closed element: its own end, or one more child element."""
    either = "|".join([tags.closing_tag(tag), *map(tags.opening_tag, children)])
    return Delimiter(rf"\s{{0,64}}(?:{either})", r"\s{0,64}(?:</?[^\s<>/\"'=]{0,160}\s{0,64})?", re.IGNORECASE)


def _strip(element: Element, text: str, *, verbatim: bool) -> str:
    """Return the text, without white space around it if the element says so and the value is not marked as literal."""
    return text.strip() if element.strip and not verbatim else text


Group = dict[str, "Group | Node"]


def group_of(tool: ToolSpec) -> Group:
    """Return the tool's child elements as a tree; parameters without their own node may also be elements.

    Except where an element of that name holds another parameter.
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


def _children(
    r: Reader, call: CallReader, tool: ToolSpec, parents: tuple[str, ...], group: Group, others: tuple[str, ...]
) -> Wait:
    """Read the elements of a group in any order, up to and including the closing tag of the first of `parents`.

    At the text's end the beginning of the tool's own closing tag is enough, as a stop string cuts it.
    """
    assert tool.element is not None
    parent = parents[0]
    closing, wanted = tags.tag(parent, closing=True), " or ".join([*(f"<{name}>" for name in group), f"</{parent}>"])
    while True:
        yield from r.space()
        if found := (yield from r.sees(closing)):
            r.at = found.end()
            return
        if (found := (yield from r.sees(tags.ANY_OPENING))) is None:
            if r.ended and len(parents) == 1 and end_beginning(f"</{parent}>", "<")(r.buf, r.at):
                r.at = len(r.buf)
                return
            raise missing_error(r, wanted, "invalid_arguments")
        name, start = found["name"], r.offset
        r.at = found.end()
        attributes = tags.Attributes(r, name, ())
        attributes.committed = True
        opening = yield from attributes.read()
        below = group.get(name) or (Node(name, "element", (name,)) if tool.declares(name) else None)
        if below is None:
            message = f"<{name}> is not a parameter of {call.name!r}, expected {wanted}"
            raise Damage("invalid_arguments", message, start, got=True)
        refuse_attributes(name, opening.attributes, r.offset)
        if isinstance(below, dict):
            if not opening.empty:
                yield from _children(r, call, tool, (name, *parents), below, others)
        elif opening.empty:
            call.arguments.put(r, below.parameter, None)
        else:
            end = end_of_element(name, tuple(dict.fromkeys([*group, name])), parents, others)
            text, verbatim = yield from read_value(r, call, below.parameter, end)
            text = _strip(tool.element, text, verbatim=verbatim)
            call.arguments.put(r, below.parameter, text, nulls=not verbatim)


# ---------------------------------------------------------------- written


_ATTRIBUTE_NAME = re.compile(r"[^\s=/>\"'<]{1,256}\Z")


def write_name_tag(w: Writing, part: NameTag) -> str:
    """Write the opening tag; if the body is a single text, the other arguments are its attributes."""
    out = f'<{part.name} {part.attribute}="{attribute(w.call.name)}"'
    if any(isinstance(p, TextArgument) for p in w.format.call):
        for key, value in w.call.arguments.items():
            if key not in w.tool.first_required:
                out += _attribute_text(w, key, text_of(value, key, w.tool))
    return out + ">"


def _attribute_text(w: Writing, name: str, text: str | None) -> str:
    """Return one argument as an attribute, without a value for null."""
    if _ATTRIBUTE_NAME.match(name) is None:
        raise FormatError(f"{w.tool.name}: {name!r} cannot be the name of an attribute")
    return f" {name}" if text is None else f' {name}="{attribute(text)}"'


def write_text_argument(w: Writing, part: TextArgument) -> str:
    """Write the argument that is the tag's text."""
    closing = next(p.name for p in w.format.call if isinstance(p, Tag))
    key = next((name for name in w.tool.first_required if name in w.call.arguments), None)
    if key is None:
        return ""
    value = w.call.arguments[key]
    text = text_of(value, key, w.tool, nulls=value is None) or ""
    return _value_text(w, value, text, end_of_content(closing), content=True)


def write_element(w: Writing, part: ToolElement) -> str:
    """Write the tool's whole element: attributes, then content or child elements."""
    element = w.tool.element
    assert element is not None
    nodes, content = {n.parameter: n for n in element.nodes}, element.of("content")
    start, texts = f"<{element.tag}", {}
    for key, value in w.call.arguments.items():
        node = nodes.get(key) or Node(key, "attribute", (key,))
        text = text_of(value, key, w.tool, nulls=value is None and node.kind == "element")
        if node.kind == "attribute" or text is None:
            start += _attribute_text(w, node.path[0] if node.kind == "attribute" else key, text)
        elif content:
            end = end_of_content(element.tag, w.others)
            texts[key] = _value_text(w, value, text, end, strip=element.strip, content=True)
        else:
            end = end_of_element(node.path[-1], (), (*node.path[-2::-1], element.tag), w.others)
            texts[key] = _value_text(w, value, text, end, strip=element.strip)
    if not texts:
        return f"{start}/>"
    body = texts[content[0].parameter] if content else _child_texts(group_of(w.tool), texts)
    return f"{start}>{body}</{element.tag}>"


def _value_text(w: Writing, value: Any, text: str, end: ValueEnd, *, strip: bool = False, content: bool = False) -> str:
    """Write a value between tags: in CDATA if it would be read as null, stripped, refused, or ended inside it."""
    unlike = content and not _is_alone(text, w.tool, end.what)
    stripped = strip and isinstance(value, str) and value != value.strip()
    return cdata(text) if reads_as_null(value) or stripped or unlike or end.has_markup(text) else raw_value(text)


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


# ---------------------------------------------------------------- taught


def list_elements(part: ToolElement, tools: Sequence[ToolSpec]) -> str:
    """Return the tools as a prompt lists them: each by its tag, with the place of each parameter."""
    elements = [t.with_element(part.layout) for t in tools]
    shown = [_element(t) for t in elements]
    if any(node.kind == "attribute" for t in elements if t.element is not None for node in t.element.nodes):
        shown.append(_ATTRIBUTES)
    return "\n\n".join(shown)


def _element(tool: ToolSpec) -> str:
    assert tool.element is not None
    nodes = {n.parameter: n for n in tool.element.nodes}
    shown = describe_tool(tool, f"<{tool.element.tag}>", lambda name: _place(name, nodes.get(name)))
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
    PartKind(ToolElement, read_element, write_element, taught=_RULES, listing=list_elements),
)
