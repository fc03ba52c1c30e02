"""The body of elements inside elements, a token before each tag: objects and arrays are elements that hold more.

Read as a tree while it streams, typed by the tool's schema once it is whole. Knows the call in progress, the reader and
the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.formats import values
from agentkit.formats.call import Call
from agentkit.formats.reader import Damage, Delimiter, Reader, Search, Wait, literal, may_begin
from agentkit.formats.spec import NestedTags

_TAG = Delimiter(r"<(?P<slash>/?)(?P<name>[^\s<>/]{1,128})>", r"<(?:/?[^\s<>/]{0,128})")


@dataclass(slots=True)
class _Node:
    """One element: where in the call its text between tags stands, and the elements inside it."""

    name: str
    spans: list[tuple[int, int]] = field(default_factory=list)
    children: list[_Node] = field(default_factory=list)


def read_nested_tags(r: Reader, call: Call, part: NestedTags) -> Wait:
    """Elements up to the literal that closes the call, which stays."""
    closing = call.shape.call[call.part + 1]
    assert isinstance(closing, str)
    end, token = literal(closing.strip()), literal(part.token)
    stops = re.compile(may_begin(part.token)).search
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
        tag = yield from r.sees(_TAG)
        if tag is None:
            ended = r.at >= len(r.buf)
            code = "truncated_call" if ended else "invalid_arguments"
            raise Damage(code, "expected a tag", r.offset, ended=ended, got=not ended)  # type: ignore[arg-type]
        r.at = tag.end()
        if not tag["slash"]:
            stack.append(_Node(tag["name"]))
            if len(stack) > r.limits.depth:
                raise Damage("invalid_arguments", f"expected nesting of at most {r.limits.depth}", r.offset)
        elif len(stack) > 1 and stack[-1].name == tag["name"]:
            node = stack.pop()
            stack[-1].children.append(node)
        else:
            wanted = f"</{stack[-1].name}>" if len(stack) > 1 else closing.strip()
            raise Damage("invalid_arguments", f"expected {wanted}", r.offset - len(tag[0]), got=True)
    raw = r.raw()
    for node in stack[0].children:
        schema, root = call.schema(node.name)
        call.set(r, node.name, _value(node, raw, schema, root))


def _text(r: Reader, call: Call, part: NestedTags, stack: list[_Node], stops: Search) -> Wait:
    """The text of an element, up to where the next token may begin."""
    start = r.offset
    if r.at < len(r.buf):
        if len(stack) == 1:
            raise Damage("invalid_arguments", f"expected {part.token}<parameter>", start, got=True)
        found = stops(r.buf, r.at + 1)  # what stands here is no token
        r.tell(found.start() if found else len(r.buf), call.index, stack[1].name)
    if r.at >= len(r.buf):
        if r.ended:
            raise Damage("truncated_call", f"the text ended inside the call of {call.name!r}", r.offset, ended=True)
        r.heat(stops, None, call.index, stack[1].name)
        yield
    if r.offset > start:
        stack[-1].spans.append((start - r.mark, r.offset - r.mark))


def _value(node: _Node, raw: str, schema: values.Schema, root: values.Schema) -> Any:
    if not node.children:
        return values.read("".join(raw[a:b] for a, b in node.spans), schema, root, nulls=True)
    plain = next((s for s in values.alternatives(schema, root) if s.get("type") in ("array", "object")), {})
    if plain.get("type") == "array":
        items = plain.get("items")
        return [_value(n, raw, items if isinstance(items, Mapping) else {}, root) for n in node.children]
    properties = plain.get("properties", {})
    out: dict[str, Any] = {}
    for child in node.children:
        inner = properties.get(child.name, plain.get("additionalProperties"))
        value = _value(child, raw, inner if isinstance(inner, Mapping) else {}, root)
        if child.name in out:  # written twice: a list, as models write one where no schema says so
            known = out[child.name]
            out[child.name] = [*known, value] if isinstance(known, list) else [known, value]
        else:
            out[child.name] = value
    return out
