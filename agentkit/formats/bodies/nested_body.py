"""The body of elements inside elements, a token before each tag: objects and arrays are elements with child elements.

Read as a tree while it streams, typed by the tool's schema once it is complete. Every element is closed by its own tag,
and no text contains the token, not even in a quoted call: nothing could mark it as text.
Knows the call in progress, the reader and the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from agentkit.errors import FormatError
from agentkit.formats.bodies.fixed_parts import missing_error
from agentkit.formats.call import CallReader
from agentkit.formats.callarguments import CallArguments
from agentkit.formats.format import NestedTags
from agentkit.formats.kind import STRINGS_AS_MEANT, PartKind, Writing
from agentkit.formats.reader import Damage, Delimiter, Reader, Search, Wait, literal, may_begin
from agentkit.formats.valueends import markup_search
from agentkit.schemas import walk
from agentkit.schemas.typed import values

_TAG = Delimiter(r"<(?P<slash>/?)(?P<name>[^\s<>/\[\]]{1,128})>", r"<(?:/?[^\s<>/\[\]]{0,128})")


@dataclass(slots=True)
class _Node:
    """One element: the absolute offsets of its text between tags, and its child elements."""

    name: str
    spans: list[tuple[int, int]] = field(default_factory=list)
    children: list[_Node] = field(default_factory=list)


def read_nested_tags(r: Reader, call: CallReader, part: NestedTags) -> Wait:
    """Read elements up to the literal that closes the call, which stays."""
    end, token, stops = literal(str(call.shape.call[-1]).strip()), literal(part.token), _stops(part.token)
    stack = [_Node("")]
    while True:
        if len(stack) == 1:
            yield from r.space()
            if (yield from r.sees(end)) is not None:
                break
        if (found := (yield from r.sees(token))) is None:
            yield from _text(r, call, part, stack, stops)
            continue
        r.at = found.end()
        yield from _tag(r, stack)
    start = r.mark + call.lead.size
    source = _Source(r.text(start, r.offset), start, call.arguments, r.repairs, markup_search((part.token,)))
    if not stack[0].children:
        call.refuse_none(r)
    for node in stack[0].children:
        call.arguments.set(r, node.name, _value(node, source, *call.arguments.schema(node.name)))


@cache
def _stops(token: str) -> Search:
    return re.compile(may_begin(token), re.IGNORECASE).search


def _tag(r: Reader, stack: list[_Node]) -> Wait:
    if (tag := (yield from r.sees(_TAG))) is None:
        raise missing_error(r, "a tag", "invalid_arguments")
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
    """Read the text of an element, up to a possible next token."""
    start = r.offset
    if r.at < len(r.buf):
        if len(stack) == 1:
            raise Damage("invalid_arguments", f"expected {part.token}<parameter>", start, got=True)
        found = stops(r.buf, r.at + 1)  # this is not a token
        r.emit_argument(found.start() if found else len(r.buf), call.index, stack[1].name)
    if r.at >= len(r.buf):
        if r.ended:
            raise missing_error(r, f"the end of the call of {call.name!r}")
        r.set_fast_path(stops, None, call.index, stack[1].name)
        yield
    if r.offset > start:
        spans = stack[-1].spans
        spans.append((spans.pop()[0] if spans and spans[-1][1] == start else start, r.offset))


@dataclass(frozen=True, slots=True)
class _Source:
    """The call's text, the offset at which it starts, its arguments so far, and the repairs that may be made.

    `find_markup` finds a fragment of the token before a tag.
    """

    raw: str
    mark: int
    arguments: CallArguments
    allowed: frozenset[str]
    find_markup: Search


def _value(node: _Node, source: _Source, schema: walk.Schema, root: walk.Schema) -> Any:
    raw, mark = source.raw, source.mark
    plain = next((s for s in walk.alternatives(schema, root) if s.get("type") in ("array", "object")), {})
    if not node.children:
        text = "".join([raw[a - mark : b - mark] for a, b in node.spans])
        if not text.strip() and plain and not values.accepts(text, schema, root):
            return [] if plain["type"] == "array" else {}
        if found := source.find_markup(text):
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
    """Write one element per argument, objects and arrays as far as the schema declares them."""
    return "".join(_element(part, k, v, *w.schema(k)) for k, v in w.call.arguments.items())


def _element(part: NestedTags, name: str, value: Any, schema: walk.Schema, root: walk.Schema) -> str:
    plain = next((s for s in walk.alternatives(schema, root) if s.get("type") in ("array", "object")), {})
    if isinstance(value, Mapping) and value:
        inner = plain.get("properties", {})
        body = "".join(_element(part, k, v, inner.get(k, {}), root) for k, v in value.items())
    elif isinstance(value, list) and value and plain.get("type") == "array":
        items = plain.get("items")
        body = "".join(_element(part, part.item, v, items if isinstance(items, Mapping) else {}, root) for v in value)
    else:
        body = values.write(value, schema, root, nulls=True)
        if found := markup_search((part.token,))(body):
            raise FormatError(f"{name!r} contains {found[0]!r}, a piece of what precedes tags in this format")
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
