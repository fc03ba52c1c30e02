"""The body of elements inside elements, a token before each tag: objects and arrays are elements with child elements.

Read as a tree while it streams, typed by the tool's schema once it is complete. A whole call quoted in an element is
the element's text; every element is closed by its own tag. Knows the call in progress, the reader and the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from agentkit.formats import values
from agentkit.formats.bodies.fixed import lacking
from agentkit.formats.call import CallReader
from agentkit.formats.callarguments import CallArguments
from agentkit.formats.format import NestedTags, Shape, edge
from agentkit.formats.kind import STRINGS_AS_MEANT, PartKind, Writing
from agentkit.formats.reader import Damage, Delimiter, Reader, Search, Wait, beginnings, literal, may_begin, pattern
from agentkit.formats.valueends import pieces
from agentkit.schemas import walk

_TAG = Delimiter(r"<(?P<slash>/?)(?P<name>[^\s<>/\[\]]{1,128})>", r"<(?:/?[^\s<>/\[\]]{0,128})")
_OPENS: Final = ("section", "call")


@dataclass(slots=True)
class _Node:
    """One element: the absolute offsets of its text between tags, its child elements, and whether it quotes a call."""

    name: str
    spans: list[tuple[int, int]] = field(default_factory=list)
    children: list[_Node] = field(default_factory=list)
    quotes: bool = False


@dataclass(frozen=True, slots=True)
class _Edges:
    """What opens and ends a call and its section, and a search for where one, or a token, may begin."""

    token: Delimiter
    around: Delimiter
    stops: Search


def read_nested_tags(r: Reader, call: CallReader, part: NestedTags) -> Wait:
    """Elements up to the literal that closes the call, which stays."""
    edges = _edges_of(call.shape, part.token)
    end, token = literal(edge(call.shape.call[-1]).strip()), edges.token  # type: ignore[arg-type]  # a literal
    stack = [_Node("")]
    while True:
        if len(stack) == 1:
            yield from r.space()
            if (yield from r.sees(end)) is not None:
                break
        elif (found := (yield from _edge(r, edges))) and found.lastgroup != "over":
            yield from _quoted(r, call, edges, stack, found)
            continue
        if (found := (yield from r.sees(token))) is None:
            yield from _text(r, call, part, stack, edges.stops)
            continue
        r.at = found.end()
        yield from _tag(r, stack, end.whole.pattern)
    start = r.mark + call.lead.size
    source = _Source(r.text(start, r.offset), start, call.arguments, r.repairs, pieces((part.token,)))
    if not stack[0].children:
        call.refuse_none(r)
    for node in stack[0].children:
        call.arguments.set(r, node.name, _value(node, source, *call.arguments.schema(node.name)))


@cache
def _edges_of(shape: Shape, token: str) -> _Edges:
    section = shape.section
    around = [edge(e).strip() for e in (section.open, section.close)] if section is not None else []
    call, end = str(shape.first).strip(), str(shape.call[-1]).strip()
    named = dict(zip(("call", "end", "section", "over"), (call, end, *around), strict=False))
    follows = {"section": rf"(?=\s{{0,64}}{pattern(call)})"}  # else it is an element of this name
    either = "|".join(f"(?P<{name}>{pattern(text)}{follows.get(name, '')})" for name, text in named.items() if text)
    texts = [text for text in named.values() if text]
    begun = [rf"{pattern(text)}\s{{0,64}}{beginnings(call)}" for text in around[:1]]
    stops = "|".join(map(may_begin, dict.fromkeys([token, *texts])))
    return _Edges(
        literal(token),
        Delimiter(either, "|".join([*map(beginnings, texts), *begun])),
        re.compile(stops, re.IGNORECASE).search,
    )


def _edge(r: Reader, edges: _Edges) -> Generator[None, None, re.Match[str] | None]:
    """What opens or ends a call or its section here, inside an element."""
    found = yield from r.sees(edges.around)
    while found is not None and not r.ended and edges.around.part.match(r.buf, r.at):
        yield  # one may be the beginning of another
        found = edges.around.match(r.buf, r.at)
    return found


def _tag(r: Reader, stack: list[_Node], closing: str) -> Wait:
    """A tag after its token."""
    if (tag := (yield from r.sees(_TAG))) is None:
        raise lacking(r, "a tag", "invalid_arguments")
    r.at = tag.end()
    if not tag["slash"]:
        stack.append(_Node(tag["name"]))
        if len(stack) > r.limits.depth:
            raise Damage("invalid_arguments", f"expected nesting of at most {r.limits.depth}", r.offset)
        return
    if len(stack) == 1 or stack[-1].name != tag["name"]:
        wanted = f"</{stack[-1].name}>" if len(stack) > 1 else "a parameter or the end of the call"
        raise Damage("invalid_arguments", f"expected {wanted}", r.offset - len(tag[0]), got=True)
    node = stack.pop()
    stack[-1].children.append(node)


def _text(r: Reader, call: CallReader, part: NestedTags, stack: list[_Node], stops: Search) -> Wait:
    """The text of an element, up to where the next token may start."""
    start = r.offset
    if r.at < len(r.buf):
        if len(stack) == 1:
            raise Damage("invalid_arguments", f"expected {part.token}<parameter>", start, got=True)
        found = stops(r.buf, r.at + 1)  # this is not a token
        r.tell(found.start() if found else len(r.buf), call.index, stack[1].name)
    if r.at >= len(r.buf):
        if r.ended:
            raise lacking(r, f"the end of the call of {call.name!r}")
        r.heat(stops, None, call.index, stack[1].name)
        yield
    if r.offset > start:
        spans = stack[-1].spans
        spans.append((spans.pop()[0] if spans and spans[-1][1] == start else start, r.offset))


def _quoted(r: Reader, call: CallReader, edges: _Edges, stack: list[_Node], found: re.Match[str] | None) -> Wait:
    """A whole call, quoted in an element, with its section: all of it is text."""
    start, opened = r.offset, [""]
    while opened:
        if found is not None:
            kind = found.lastgroup or ""
            if kind in _OPENS:
                opened = [*opened, kind] if opened != [""] else [kind]
            elif opened.pop() != {"end": "call", "over": "section"}[kind]:
                wanted = f"</{stack[-1].name}>"
                raise Damage("ambiguous_call", f"expected {wanted}: what opens and closes does not balance", r.offset)
            r.tell(found.end(), call.index, stack[1].name)
        elif r.at < len(r.buf):
            stop = edges.stops(r.buf, r.at + 1)
            r.tell(stop.start() if stop else len(r.buf), call.index, stack[1].name)
        elif r.ended:
            raise lacking(r, f"the end of the call of {call.name!r}")
        found = (yield from _edge(r, edges)) if opened else None
    stack[-1].spans.append((start, r.offset))
    stack[-1].quotes = True


@dataclass(frozen=True, slots=True)
class _Source:
    """The call's text, the offset at which it starts, its arguments so far, and the repairs that may be made.

    `piece` finds a piece of the token before a tag.
    """

    raw: str
    mark: int
    arguments: CallArguments
    allowed: frozenset[str]
    piece: Search


def _value(node: _Node, source: _Source, schema: walk.Schema, root: walk.Schema) -> Any:
    raw, mark = source.raw, source.mark
    plain = next((s for s in walk.alternatives(schema, root) if s.get("type") in ("array", "object")), {})
    if not node.children:
        text = "".join([raw[a - mark : b - mark] for a, b in node.spans])
        if not text.strip() and plain and not values.accepts(text, schema, root):
            return [] if plain["type"] == "array" else {}
        if not node.quotes and (found := source.piece(text)):
            message = f"<{node.name}> contains {found[0]!r}, a piece of what precedes tags"
            raise Damage("ambiguous_call", message, node.spans[0][0])
        return source.arguments.read(text, schema, root, source.allowed, nulls=True)
    for start, end in node.spans:
        if not raw[start - mark : end - mark].isspace():
            wanted = f"expected only elements inside <{node.name}>, which contains some"
            raise Damage("invalid_arguments", wanted, start, got=True)
    if plain.get("type") == "array":
        items = plain.get("items")
        return [_value(n, source, items if isinstance(items, Mapping) else {}, root) for n in node.children]
    properties = plain.get("properties", {})
    out: dict[str, Any] = {}
    for child in node.children:
        inner = properties.get(child.name, plain.get("additionalProperties"))
        value = _value(child, source, inner if isinstance(inner, Mapping) else {}, root)
        if child.name in out:  # written twice: a list, as models write one if the schema does not say
            known = out[child.name]
            out[child.name] = [*known, value] if isinstance(known, list) else [known, value]
        else:
            out[child.name] = value
    return out


# ---------------------------------------------------------------- written


def write_nested_tags(w: Writing, part: NestedTags) -> str:
    """One element per argument, objects and arrays as far as the schema declares them."""
    return "".join(_nested(part, k, v, *w.schema(k)) for k, v in w.call.arguments.items())


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


KINDS = (
    PartKind(
        NestedTags,
        read_nested_tags,
        write_nested_tags,
        taught=(
            STRINGS_AS_MEANT,
            "Write a list as one element per item, and an object as one element per property, named after it.",
            "Every tag comes after the same token as in the example; no string can contain that token.",
        ),
    ),
)
