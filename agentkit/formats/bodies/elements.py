"""The bodies whose values are text: parameters between tags or literals, and an element per tool.

Knows the call in progress, the reader and the declarations.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Generator, Iterable
from typing import Final

from agentkit.errors import ErrorCode
from agentkit.events import ArgumentDelta
from agentkit.formats import tags, valueends, values
from agentkit.formats.bodies.json import read_json
from agentkit.formats.call import CallReader, ended, strays, until
from agentkit.formats.damage.missing_close import unsure
from agentkit.formats.format import Json, NameTag, Pairs, Tag, TagParameters, TextArgument, ToolElement
from agentkit.formats.rawvalue import Value
from agentkit.formats.reader import Damage, Decline, Reader, Wait, literal
from agentkit.formats.repairs import MISSING_CLOSE
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
        if (yield from r.sees(tags.tag(part.name, closing=False))):  # with the rest of this tag as a value of its own
            told = f"<{part.name}> opens in the opening tag of another one"
            raise Damage("invalid_arguments", told, r.offset, in_tag=True) from None
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
    _refuse_strays(part.name, (k for k in opening.attributes if k != part.attribute), own, r.offset)


def _refuse_strays(name: str, attributes: Iterable[str], own: Collection[str], position: int) -> None:
    """Refuse an opening tag that says what is read nowhere: dropping it would change the call.

    Args:
        name: the tag's.
        attributes: what it says, without what is read.
        own: names of which none says nothing here.
        position: where the tag ends.
    """
    if lost := strays(attributes, own):
        shown = ", ".join(map(repr, lost))[:200]
        told = f"<{name}> has {shown}, which is read nowhere; expected each argument between tags of its own"
        raise Damage("invalid_arguments", told, position)


def _attribute(r: Reader, call: CallReader, parameter: str, text: str | None) -> None:
    """Take an argument from an attribute; the value of a string must be written, and be it an empty one.

    Without one it is null, as our own writer has it, where that is what the parameter is if it is left out.
    """
    schema, root = call.schema(parameter)
    if text is None and schema and schema.get("default", "") is not None and values.accepts("", schema, root):
        raise Damage("invalid_arguments", f"expected '=' and a value behind {parameter!r}", r.offset)
    call.put(r, parameter, text, nulls=False)


_AGAIN: Final = " "
"""What marks the second attribute of one name: it stands in no attribute's name."""


class _NameAndArguments(tags.Attributes):
    """The attributes of a tag that holds the tool's name and arguments; an argument may be called as the name is."""

    def key(self) -> Generator[None, None, str]:
        key = yield from super().key()
        return f"{_AGAIN}{key}" if key in self.known and key in self.opening.attributes else key


def read_tag_parameters(r: Reader, call: CallReader, part: TagParameters) -> Wait:
    """Repeated `<parameter name="key">value</parameter>`."""
    end = valueends.end_of_value(call.shape, part)
    while not call.complete:
        yield from r.space()
        found = yield from r.sees(tags.tag(part.name, closing=False))
        if found is None:
            yield from _maybe_json(r, call)
            return
        r.at = found.end()
        attributes = tags.Attributes(r, part.name, (part.attribute,))
        attributes.committed = True
        opening = yield from attributes.read()
        key = opening.attributes.get(part.attribute)
        if not key:
            raise Damage("invalid_arguments", f"<{part.name}> has no {part.attribute!r}", r.offset)
        _refuse_strays(part.name, (k for k in opening.attributes if k not in (part.attribute, part.kind)), (), r.offset)
        if opening.empty:
            call.put(r, key, None)
            continue
        value = _value(r, call, key, end)
        yield from value.read()
        _note(call, value)
        kind = opening.attributes.get(part.kind) if part.kind else None
        if kind == "true":
            call.set(r, key, value.text())
        elif kind == "false" and not (call.tool and call.tool.declares(key)):
            call.set(r, key, values.read(value.text(), {}, {}))
        else:
            call.put(r, key, value.text(), nulls=not value.verbatim)


def _value(r: Reader, call: CallReader, key: str, end: valueends.ValueEnd) -> Value:
    """One of the call's raw values, to be read."""

    def missing(name: str) -> bool:
        properties = call.tool.parameters.get("properties", {}) if call.tool is not None else {}
        return name in properties and name not in call.arguments and name != key

    def scalar() -> bool:
        return values.is_scalar(*call.schema(key))

    return Value(r, call.index, key, end, missing, scalar)


def _note(call: CallReader, value: Value) -> None:
    """How a value of the call that has been read was written."""
    if value.unclosed:
        call.note(MISSING_CLOSE)
    if not value.verbatim:
        call.raw.add(value.key)


def _maybe_json(r: Reader, call: CallReader) -> Wait:
    """Where parameters may stand, models also write one JSON object with all of them."""
    if not call.arguments and r.buf.startswith("{", r.at):
        yield from read_json(r, call, Json())
        call.complete = False


def read_pairs(r: Reader, call: CallReader, part: Pairs) -> Wait:
    """Repeated key and value between literals."""
    end = valueends.end_of_value(call.shape, part)
    while True:
        yield from tags.layout(r)
        found = yield from r.sees(literal(part.key))
        if found is None:
            yield from _maybe_json(r, call)
            return
        r.at = found.end()
        key, kind = yield from _key_and_kind(r, part)
        value = _value(r, call, key, end)
        yield from value.read()
        text = value.text()
        if not value.verbatim and _opens_again(text, part):
            told = f"the value of {key!r} begins with what opens a value, and does not close it"
            raise Damage("ambiguous_call", told, value.start)
        _note(call, value)
        if kind == "string":
            call.set(r, key, text)
        elif kind:
            call.set(r, key, values.read(text, {"type": kind}, {}))
        else:
            call.put(r, key, text, nulls=not value.verbatim)


def _opens_again(text: str, part: Pairs) -> bool:
    """Whether a value begins with the tag that opens one, or that stands before it, and does not balance."""
    close = part.close.strip()
    own = f"<{close.removeprefix('</')}" if close.startswith("</") and part.middle.rstrip().endswith(close[2:]) else ""
    tags = tuple(literal[literal.rfind("<") :] for literal in (own, *part.kind[:1]) if literal.endswith(">"))
    return bool(own) and text.lstrip().startswith(tags) and text.count(own) > text.count(close)


def _key_and_kind(r: Reader, part: Pairs) -> Generator[None, None, tuple[str, str]]:
    """A key, and its value's type where one is written, up to where the value starts."""
    start = r.offset
    middle, kind = part.middle.strip(), ""
    key = yield from until(r, tuple(text.split()[0] for text in (*part.kind[:1], middle)), _IN_NO_KEY)
    if key is not None and part.kind and (found := (yield from r.sees(literal(part.kind[0].strip())))):
        r.at = found.end()
        middle = part.kind[1].strip()
        kind = (yield from until(r, (middle.split()[0],), _IN_NO_KEY)) or ""
        key = key if kind else None
    if key is None:
        over = ended(r, start) or r.cut >= start
        r.back_to(start)  # a key that runs on may hold whole calls
        raise _no_value(middle, start, over=over)
    for word in middle.split():
        yield from tags.layout(r)
        if (found := (yield from r.sees(literal(word)))) is None:
            raise _no_value(middle, start, over=r.ended and r.offset in (r.cut, r.base + len(r.buf)))
        r.at = found.end()
    return (tags.decoded(key) if part.key.endswith('="') else key).strip(), kind.strip()


_IN_NO_KEY = re.compile("[<\n]").search  # what closes the key was forgotten


def _no_value(middle: str, start: int, *, over: bool) -> Damage:
    """The error for a parameter's name without its value; the text may be `over`."""
    code: ErrorCode = "truncated_call" if over else "invalid_arguments"
    return Damage(code, f"expected {middle!r} behind a parameter's name", start, ended=over)


def read_text_argument(r: Reader, call: CallReader, part: TextArgument) -> Wait:
    """The tool's first required parameter as the text up to the closing tag, which stays; other tags are content."""
    if call.complete:
        return
    names = call.tool.first_required if call.tool else ("text",)
    closing = next(p for p in call.shape.call[call.part + 1 :] if isinstance(p, Tag))
    value = Value(r, call.index, names[0] if names else "text", valueends.end_of_content(closing.name))
    yield from value.read()
    _refuse_wrapped(r, call, value)
    required = call.tool.parameters.get("required", ()) if call.tool else ()
    if value.text().strip() or (names and names[0] in required):
        call.put(r, value.key, value.text(), nulls=not value.verbatim)
    call.complete = True


def wrapped(text: str, tool: ToolSpec | None) -> str:
    """The first of the tool's parameters in whose tags, one or more, all of this text stands; empty where it does not.

    One of two tags may be missing. A model may have meant parameters by them, or a value that is a document.
    """
    known = tool.parameters.get("properties", {}) if tool is not None else {}
    text, at, first = text.strip(), 0, ""
    while (opened := _OPENED(text, at)) is not None and opened[1] in known:
        first, at = first or opened[1], _closed_at(text, opened)
        if at >= len(text):
            return first
    closed = _CLOSED_LAST(text)
    stray = closed is not None and closed[1] in known and not re.search(rf"<{re.escape(closed[1])}[\s>]", text)
    return closed[1] if closed is not None and stray else ""


def _closed_at(text: str, opened: re.Match[str]) -> int:
    """Where the element is over that this tag opens: at the text's end if it is not closed."""
    depth = 1
    for tag in re.finditer(rf"<(/?){re.escape(opened[1])}\s*>", text[opened.end() :]):
        depth += -1 if tag[1] else 1
        if not depth:
            return opened.end() + tag.end()
    return len(text)


_OPENED: Final = re.compile(r"\s*<([^\W\d][\w.-]*)\s*>").match
_CLOSED_LAST: Final = re.compile(r"</([^\W\d][\w.-]*)\s*>\Z").search


def _refuse_wrapped(r: Reader, call: CallReader, value: Value) -> None:
    """Refuse content that stands in parameters' tags: whether they belong to it, nobody can tell."""
    if not value.verbatim and (name := wrapped(value.text(), call.tool)):
        told = f"the value of {value.key!r} stands in tags of {name!r}: leave them out, or put it in <![CDATA[ … ]]>"
        raise Damage("ambiguous_call", told, r.offset, end=r.offset)


# ---------------------------------------------------------------- an element per tool


class _ElementAttributes(tags.Attributes):
    """The attributes of a tool's tag: the first one that is the tool's commits the call."""

    def __init__(self, r: Reader, call: CallReader, tool: ToolSpec) -> None:
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


def read_element(r: Reader, call: CallReader, part: ToolElement) -> Wait:
    """One tool's element. The parser has set `call.tool` from the tag."""
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
    if opening.empty:
        return
    content = element.of("content")
    if content:
        value = Value(r, call.index, content[0].parameter, valueends.end_of_content(element.tag))
        yield from value.read()
        if value.first_close >= 0 and (half := _half_of(value.text(), _other_tags(call, element))):
            told = f"<{half}> opens inside the value of {content[0].parameter!r} and is not closed there"
            raise Damage("ambiguous_call", told, value.first_close, end=r.offset)
        _refuse_wrapped(r, call, value)
        call.put(r, content[0].parameter, _stripped(element, value), nulls=not value.verbatim)
    else:
        yield from _Children(r, call, tool, call.elements[part.layout]).read((element.tag,), group_of(tool))


def _stripped(element: Element, value: Value) -> str:
    """The value, without the white space around it where the element says so and it is not marked as meant."""
    return value.text().strip() if element.strip and not value.verbatim else value.text()


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


class _Children:
    """The child elements of a tool's element."""

    def __init__(self, r: Reader, call: CallReader, tool: ToolSpec, elements: valueends.Elements) -> None:
        self.r, self.call, self.tool, self.elements = r, call, tool, elements

    def read(self, parents: tuple[str, ...], group: Group) -> Wait:
        """Those of one group in any order, up to the closing tag of the first of `parents`, which is consumed."""
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
                raise Damage("invalid_arguments", f"expected {_wanted(group, parent)}", r.offset, got=True)
            name, start = found["name"], r.offset - r.mark
            r.at = found.end()
            attributes = tags.Attributes(r, name, ())
            attributes.committed = True
            opening = yield from attributes.read()
            below = group.get(name)
            if below is None and not (call.tool and call.tool.declares(name)):
                raise _unknown(call, name, _wanted(group, parent), r.mark + start)
            _refuse_strays(name, opening.attributes, (), r.offset)
            if isinstance(below, dict):
                if not opening.empty:
                    yield from self.read((name, *parents), below)
                continue
            parameter = below.parameter if below is not None else name
            if opening.empty:
                call.put(r, parameter, None)
            else:
                yield from self.take(name, parameter, parents, group)

    def take(self, name: str, parameter: str, parents: tuple[str, ...], group: Group) -> Wait:
        """The value of one that is open."""
        r, call, element = self.r, self.call, self.tool.element
        assert element is not None
        value = _value(r, call, parameter, self.elements.end(self.tool, name, group, parents))
        yield from value.read()
        _note(call, value)
        if value.unclosed and (swallowed := _swallowed(value.text(), call, group, name)):
            raise unsure(parameter, swallowed, r.offset, -1)
        call.put(r, parameter, _stripped(element, value), nulls=not value.verbatim)


def _wanted(group: Group, parent: str) -> str:
    """What may stand in an element."""
    return " or ".join([*(f"<{name}>" for name in group), f"</{parent}>"])


def _unknown(call: CallReader, name: str, wanted: str, position: int) -> Damage:
    """The error for a child element that is none of the tool's."""
    return Damage(
        "invalid_arguments", f"<{name}> is no parameter of {call.name!r}, expected {wanted}", position, got=True
    )


def _other_tags(call: CallReader, element: Element) -> tuple[str, ...]:
    """The tags of the other tools."""
    part = next(p for p in call.shape.call if isinstance(p, ToolElement))
    return tuple(tag for tag in call.elements[part.layout].tags if tag != element.tag)


def _half_of(text: str, tags: tuple[str, ...]) -> str:
    """The first of these tags that opens in the text more often than it closes; nothing if none does."""
    found = Counter((f[1] or "", f[2].lower()) for f in _A_TAG.finditer(text))
    return next((t for t in tags if found["", t.lower()] > found["/", t.lower()]), "")


_A_TAG: Final = re.compile(r"<(/?)([^\W\d][\w.-]{0,255}+)(?![^<>]{0,512}/>)")


def _swallowed(text: str, call: CallReader, group: Group, own: str) -> str:
    """The first sibling, not given so far, that begins in a value whose own end was missing; nothing if none does."""
    names = (n for n, below in group.items() if isinstance(below, Node) and below.parameter not in call.arguments)
    return next((n for n in names if n != own and re.search(tags.opening_tag(n), text, re.IGNORECASE)), "")
