"""How each part of a declaration is read: one generator per part class, in one table.

Knows the parser's call in progress, the reader and the declarations. A part reads from where the call stands and
leaves the call after itself; it raises `Decline` (this is no call) only before it has said anything, `Damage` after.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agentkit.events import ArgumentDelta, CallStart
from agentkit.formats import jsontext, tagtext, values
from agentkit.formats.reader import Damage, Decline, Reader, Wait, literal
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


@dataclass(slots=True)
class Call:
    """One call while it is read."""

    format: Format
    tools: Mapping[str, ToolSpec]
    index: int
    tool: ToolSpec | None = None
    name: str = ""
    started: bool = False
    complete: bool = False
    arguments: dict[str, Any] = field(default_factory=dict)
    repairs: list[str] = field(default_factory=list)

    def begin(self, r: Reader, name: str) -> None:
        """The name is known: from here on the call gets an answer."""
        self.name, self.started = name, True
        self.tool = self.tools.get(name)
        r.out.append(CallStart(self.index, name))

    def put(self, r: Reader, parameter: str, text: str | None) -> None:
        """Take an argument written as text; None stands for one that was named without a value."""
        if parameter in self.arguments:
            raise Damage("invalid_arguments", f"parameter {parameter!r} is given twice in {self.name!r}", r.offset)
        schema = self.tool.schema_of(parameter) if self.tool else {}
        root = self.tool.parameters if self.tool else {}
        if text is None:
            self.arguments[parameter] = None if values.accepts_null(schema, root) else values.read("", schema, root)
        else:
            self.arguments[parameter] = values.read(text, schema, root)


def read_literal(r: Reader, call: Call, part: str) -> Wait:
    """A literal; white space around it may be missing or more. The last one may be missing at the text's end."""
    wanted = part.strip()
    if not wanted:
        return
    yield from r.space()
    if found := (yield from r.sees(literal(wanted))):
        r.at = found.end()
    elif not call.started:
        raise Decline
    elif call.complete and r.ended and wanted.startswith(r.buf[r.at :]):
        r.at = len(r.buf)  # everything was said; a sampler that stops at the closing literal leaves it out
    elif call.complete and (yield from _opens_another(r, call)):
        return
    else:
        raise Damage("invalid_json", f"expected {wanted!r}", r.offset, got=True)


def _opens_another(r: Reader, call: Call) -> Generator[None, None, bool]:
    """Whether the next call of the same format starts here: models forget the closing literal between two calls."""
    first = call.format.call[0]
    return isinstance(first, str) and (yield from r.sees(literal(first.strip()))) is not None


def read_tag(r: Reader, call: Call, part: Tag) -> Wait:
    """A tag without a slot."""
    if call.complete:
        return
    yield from r.space()
    found = yield from r.sees(tagtext.tag(part.name, closing=part.closing))
    if found is None:
        what = f"</{part.name}>" if part.closing else f"<{part.name}>"
        if r.at >= len(r.buf):
            raise Damage("truncated_call", f"the text ended before {what}", r.offset, ended=True)
        raise Damage("invalid_arguments", f"expected {what}", r.offset, got=True)
    r.at = found.end()


def read_name_tag(r: Reader, call: Call, part: NameTag) -> Wait:
    """An opening tag with the tool's name in an attribute."""
    found = yield from r.sees(tagtext.tag(part.name, closing=False))
    if found is None:
        raise Decline
    r.at = found.end()
    opening = yield from tagtext.Attributes(r, part.name, (part.attribute,)).read()
    name = opening.attributes.get(part.attribute)
    if not name:
        raise Decline
    call.begin(r, name)
    call.complete = opening.empty


def read_tag_parameters(r: Reader, call: Call, part: TagParameters) -> Wait:
    """Repeated `<parameter name="key">value</parameter>`."""
    closers = [tagtext.closing_tag(p.name) for p in call.format.call if isinstance(p, Tag)]
    end = tagtext.end_of_value(part.name, (tagtext.opening_tag(part.name), *closers))
    while not call.complete:
        yield from r.space()
        found = yield from r.sees(tagtext.tag(part.name, closing=False))
        if found is None:
            return
        r.at = found.end()
        attributes = tagtext.Attributes(r, part.name, (part.attribute,))
        attributes.committed = True
        opening = yield from attributes.read()
        key = opening.attributes.get(part.attribute)
        if not key:
            raise Damage("invalid_arguments", f"<{part.name}> has no {part.attribute!r}", r.offset)
        if opening.empty:
            call.put(r, key, None)
            continue
        value = tagtext.Value(r, call.index, key, end)
        yield from value.read()
        call.put(r, key, value.text())


def read_envelope(r: Reader, call: Call, part: Envelope) -> Wait:
    """One JSON object with the name and the arguments among its keys, in any order."""
    yield from r.space()
    if r.buf[r.at : r.at + 1] != "{":
        raise Decline
    r.at += 1
    arguments: jsontext.Span | None = None
    first = True
    while (yield from _another_key(r, first=first)):
        first = False
        key = (yield from jsontext.scan(r)).read(r)
        yield from _expect_colon(r)
        if key in part.arguments and arguments is None:
            arguments = yield from jsontext.scan(r, call.index if call.started else None)
        elif key == part.name and not call.started:
            _begin_named(r, call, (yield from jsontext.scan(r)), arguments)
        else:
            yield from jsontext.scan(r)
    if not call.started:
        raise Damage("invalid_json", f"the call's JSON has no {part.name!r}", r.offset)
    call.arguments = _arguments(r, call, arguments)
    call.complete = True


def _another_key(r: Reader, *, first: bool) -> Any:
    yield from r.space()
    if not (yield from r.have(1)):
        raise Damage("truncated_call", "the text ended inside the JSON", r.offset, ended=True)
    c = r.buf[r.at]
    if c == "}":
        r.at += 1
        return False
    if not first:
        if c != ",":
            raise Damage("invalid_json", "expected ',' or '}'", r.offset, got=True)
        r.at += 1
        yield from r.space()
        if not (yield from r.have(1)):
            raise Damage("truncated_call", "the text ended inside the JSON", r.offset, ended=True)
        c = r.buf[r.at]
    if c != '"':
        raise Damage("invalid_json", "expected a key in double quotes", r.offset, got=True)
    return True


def _expect_colon(r: Reader) -> Wait:
    yield from r.space()
    if not (yield from r.have(1)):
        raise Damage("truncated_call", "the text ended inside the JSON", r.offset, ended=True)
    if r.buf[r.at] != ":":
        raise Damage("invalid_json", "expected ':'", r.offset, got=True)
    r.at += 1


def _begin_named(r: Reader, call: Call, span: jsontext.Span, arguments: jsontext.Span | None) -> None:
    name = span.read(r)
    if not isinstance(name, str) or not name:
        raise Damage("invalid_json", f"the call's name must be a string, got {values.dump(name)[:40]}", span.start)
    call.begin(r, name)
    if arguments is not None:
        text = r.raw()[arguments.start - r.mark : arguments.end - r.mark]
        r.out.append(ArgumentDelta(call.index, text))


def _arguments(r: Reader, call: Call, span: jsontext.Span | None) -> dict[str, Any]:
    value = span.read(r) if span is not None else {}
    if span is not None and span.loose:
        call.repairs.append("raw_newlines")
    if isinstance(value, str):
        try:
            value = values.load(value)
            call.repairs.append("doubly_encoded")
        except ValueError:
            pass
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Damage(
            "invalid_arguments",
            f"the arguments of {call.name!r} must be a JSON object, got {values.dump(value)[:40]}",
            span.start if span else r.offset,
        )
    return value


# ---------------------------------------------------------------- an element per tool


class _ElementAttributes(tagtext.Attributes):
    """The attributes of a tool's tag: the first one that is the tool's commits the call."""

    def __init__(self, r: Reader, call: Call, tool: ToolSpec) -> None:
        assert tool.element is not None
        self.call, self.tool = call, tool
        self.parameters = {n.path[0]: n.parameter for n in tool.element.of("attribute")}
        every = tool.parameters.get("properties", {})
        super().__init__(r, tool.element.tag, {*self.parameters, *every})

    def parameter(self, key: str) -> str:
        return self.parameters.get(key, key)

    def found(self, key: str) -> None:
        if not self.call.started:
            self.call.begin(self.r, self.tool.name)
            for earlier, text in self.opening.attributes.items():
                self.said(earlier, text or "")

    def said(self, key: str, text: str) -> None:
        if text:
            self.r.out.append(ArgumentDelta(self.call.index, text, self.parameter(key)))


def read_element(r: Reader, call: Call, part: ToolElement) -> Wait:
    """One tool's element. The parser has set `call.tool` from the tag."""
    tool = call.tool
    assert tool is not None
    assert tool.element is not None
    element = tool.element
    found = yield from r.sees(tagtext.tag(element.tag, closing=False))
    if found is None:
        raise Decline
    r.at = found.end()
    attributes = _ElementAttributes(r, call, tool)
    opening = yield from attributes.read()
    if not call.started:
        call.begin(r, tool.name)
    for key, text in opening.attributes.items():
        call.put(r, attributes.parameter(key), text)
    if opening.empty:
        return
    content = element.of("content")
    if content:
        value = tagtext.Value(r, call.index, content[0].parameter, tagtext.end_of_content(element.tag))
        yield from value.read()
        call.put(r, content[0].parameter, value.text())
    else:
        yield from _children(r, call, element.tag, group_of(tool))


Group = dict[str, "Group | Node"]


def group_of(tool: ToolSpec) -> Group:
    """The tool's child elements as a tree; parameters without a node of their own may be written as elements too."""
    assert tool.element is not None
    root: Group = {name: Node(name, "element", (name,)) for name in tool.parameters.get("properties", {})}
    for node in tool.element.of("element"):
        root.pop(node.parameter, None)
        group = root
        for step in node.path[:-1]:
            below = group.setdefault(step, {})
            group = below if isinstance(below, dict) else group
        group[node.path[-1]] = node
    return root


def _children(r: Reader, call: Call, parent: str, group: Group) -> Wait:
    """Child elements in any order, up to the parent's closing tag, which is consumed."""
    closing = tagtext.tag(parent, closing=True)
    followers = (*(tagtext.opening_tag(name) for name in group), tagtext.closing_tag(parent))
    while True:
        yield from r.space()
        if found := (yield from r.sees(closing)):
            r.at = found.end()
            return
        found = yield from r.sees(tagtext.ANY_OPENING)
        if found is None:
            if r.at >= len(r.buf):
                raise Damage("truncated_call", f"the text ended inside <{parent}>", r.offset, ended=True)
            wanted = " or ".join([*(f"<{name}>" for name in group), f"</{parent}>"])
            raise Damage("invalid_arguments", f"expected {wanted}", r.offset, got=True)
        name = found["name"]
        r.at = found.end()
        attributes = tagtext.Attributes(r, name, ())
        attributes.committed = True
        opening = yield from attributes.read()
        below = group.get(name)
        if isinstance(below, dict):
            if not opening.empty:
                yield from _children(r, call, name, below)
            continue
        parameter = below.parameter if below is not None else name
        if opening.empty:
            call.put(r, parameter, None)
            continue
        value = tagtext.Value(r, call.index, parameter, tagtext.end_of_value(name, followers))
        yield from value.read()
        call.put(r, parameter, value.text())


Read = Callable[[Reader, Call, Any], Wait]

READERS: Final[Mapping[type[Part], Read]] = {
    str: read_literal,
    Tag: read_tag,
    NameTag: read_name_tag,
    TagParameters: read_tag_parameters,
    Envelope: read_envelope,
    ToolElement: read_element,
}
