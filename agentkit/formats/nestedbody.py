"""The body of elements inside elements, a token before each tag: objects and arrays are elements that hold more.

Read as a tree while it streams, typed by the tool's schema once it is whole. Knows the call in progress, the reader and
the declarations.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.formats import values
from agentkit.formats.call import Call
from agentkit.formats.reader import Damage, Delimiter, Reader, Wait, literal
from agentkit.formats.spec import NestedTags

_TAG = Delimiter(r"<(?P<slash>/?)(?P<name>[^\s<>/]{1,128})>", r"<(?:/?[^\s<>/]{0,128})")


@dataclass(slots=True)
class _Node:
    """One element: its text between tags, and the elements inside it."""

    name: str
    text: list[str] = field(default_factory=list)
    children: list[_Node] = field(default_factory=list)


def read_nested_tags(r: Reader, call: Call, part: NestedTags) -> Wait:
    """Elements up to the literal that closes the call, which stays."""
    closing = call.shape.call[call.part + 1]
    assert isinstance(closing, str)
    end, token = literal(closing.strip()), literal(part.token)
    stack = [_Node("")]
    while True:
        if len(stack) == 1 and (yield from r.sees(end)) is not None:
            break
        if (found := (yield from r.sees(token))) is None:
            yield from _text(r, call, part, stack)
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
    for node in stack[0].children:
        schema, root = call.schema(node.name)
        call.set(r, node.name, _value(node, schema, root))


def _text(r: Reader, call: Call, part: NestedTags, stack: list[_Node]) -> Wait:
    """Characters up to the next token's first character; white space between parameters says nothing."""
    start = r.at + (r.buf[r.at : r.at + 1] == part.token[0])
    stop = r.buf.find(part.token[0], start)
    stop = stop if stop >= 0 else len(r.buf)
    text = r.buf[r.at : stop]
    if len(stack) > 1:
        stack[-1].text.append(text)
        r.tell(stop, call.index, stack[1].name)
    elif text.strip():
        raise Damage("invalid_arguments", f"expected {part.token}<parameter>", r.offset, got=True)
    else:
        r.at = stop
    if r.at >= len(r.buf):
        if r.ended:
            raise Damage("truncated_call", f"the text ended inside the call of {call.name!r}", r.offset, ended=True)
        yield


def _value(node: _Node, schema: values.Schema, root: values.Schema) -> Any:
    if not node.children:
        return values.read("".join(node.text), schema, root, nulls=True)
    plain = next((s for s in values.alternatives(schema, root) if s.get("type") in ("array", "object")), {})
    if plain.get("type") == "array":
        items = plain.get("items")
        return [_value(n, items if isinstance(items, Mapping) else {}, root) for n in node.children]
    properties = plain.get("properties", {})
    out: dict[str, Any] = {}
    for child in node.children:
        inner = properties.get(child.name, plain.get("additionalProperties"))
        value = _value(child, inner if isinstance(inner, Mapping) else {}, root)
        if child.name in out:  # written twice: a list, as models write one where no schema says so
            known = out[child.name]
            out[child.name] = [*known, value] if isinstance(known, list) else [known, value]
        else:
            out[child.name] = value
    return out
