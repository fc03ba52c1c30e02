"""The body of elements inside elements, a token before each tag: objects and arrays are elements with child elements.

Read as a tree while it streams, typed by the tool's schema once it is complete. A whole call quoted in an element is
the element's text; an element still open at the enclosing call's end was not closed. Knows the call in progress, the
reader and the declarations.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from agentkit.formats import values
from agentkit.formats.call import CallReader
from agentkit.formats.callarguments import CallArguments
from agentkit.formats.format import NameTag, NestedTags, Tag
from agentkit.formats.kind import STRINGS_AS_MEANT, PartKind, Writing
from agentkit.formats.reader import Damage, Delimiter, Reader, Search, Wait, beginnings, literal, may_begin, pattern
from agentkit.formats.repairs import MISSING_CLOSE
from agentkit.formats.valueends import A_TAG
from agentkit.formats.worn import begins_closing, halved, lacks_some
from agentkit.schemas import walk

_TAG = Delimiter(r"<(?P<slash>/?)(?P<name>[^\s<>/]{1,128})>", r"<(?:/?[^\s<>/]{0,128})")
_LAST_NEWLINE = re.compile(r"\r?\n\Z")


@dataclass(slots=True)
class _Node:
    """One element: the absolute offsets of its text between tags, its child elements, and whether it was closed.

    `tags` counts those of its text up to the offset `counted`; None before a call is quoted there.
    """

    name: str
    spans: list[tuple[int, int]] = field(default_factory=list)
    children: list[_Node] = field(default_factory=list)
    closed: bool = True
    counted: int = 0
    tags: Counter[tuple[str, str]] | None = None


def read_nested_tags(r: Reader, call: CallReader, part: NestedTags) -> Wait:
    """Elements up to the literal that closes the call, which stays."""
    closing = call.shape.call[call.part + 1]
    assert isinstance(closing, str)
    end, token = literal(closing.strip()), literal(part.token)
    section = call.shape.section
    around = (section.open, section.close) if section is not None else ("", "")
    first = call.shape.call[0]
    opening = f"<{first.name}" if isinstance(first, NameTag) else str(first).strip()
    edges = _edges(opening, closing.strip(), *around)
    stops = _stops(part.token, opening, closing.strip(), *around)
    stack, unclosed = [_Node("")], False
    while True:
        if len(stack) == 1:
            yield from r.space()
            if (yield from r.sees(end)) is not None:
                if unclosed and (yield from r.sees(_goes_on(closing.strip(), part.token, around))):
                    raise Damage("invalid_arguments", "expected no tag after the call's end", r.offset, got=True)
                break
        elif edge := (yield from _edge(r, edges, part, stack)):
            if edge["opens"]:
                yield from _quoted(r, call, edges, stack, stops)
                continue
            if edge["ends"]:
                _leave(r, call, stack, 1, closing.strip())
                unclosed = True
                continue
        if (found := (yield from r.sees(token))) is None:
            yield from _text(r, call, part, stack, stops)
            continue
        r.at = found.end()
        yield from _tag(r, call, stack, closing.strip())
    start = r.mark + call.lead.size
    source = _Source(r.text(start, r.offset), start, call.arguments, r.repairs, _left_of(part.token))
    for node in stack[0].children:
        call.arguments.set(r, node.name, _value(node, source, *call.arguments.schema(node.name)))


@cache
def _stops(*edges: str | Tag) -> Search:
    """A search for where one of these may begin: more text must be looked at there in any cutting."""
    texts = dict.fromkeys(edge.strip() for edge in edges if isinstance(edge, str) and edge.strip())
    return re.compile("|".join(map(may_begin, texts)), re.IGNORECASE).search


@cache
def _goes_on(end: str, token: str, around: tuple[str | Tag, str | Tag]) -> Delimiter:
    """What shows, after a call's end, that the elements still open continue.

    Text other than a token, a tag without a token, or one that is neither another end of the call nor of its section.
    """
    apart = rf"(?!{pattern(token)}|{beginnings(token)}\Z)"  # it may still become a token
    edges = "|".join(pattern(edge.strip()) for edge in (end, *around) if isinstance(edge, str) and edge.strip())
    tag = rf"\s{{0,64}}(?!{edges}){pattern(token)}</?[^\s<>/]{{1,128}}>"
    whole = rf"{pattern(end)}(?:\s{{0,64}}</?[^\W\d]|{apart}\S|{tag})"
    begun = rf"\s{{0,64}}(?:{beginnings(token)}|{pattern(token)}(?:</?[^\s<>/]{{0,128}})?|</?)?"
    return Delimiter(whole, rf"{beginnings(end)}|{pattern(end)}{begun}")


@cache
def _edges(call: str, end: str, first: str | Tag, last: str | Tag) -> Delimiter:
    """What opens and closes a call and its section; a section's opening counts only if a call follows."""
    opens, part = pattern(call), [beginnings(call), beginnings(end)]
    over = r"(?!)"
    if isinstance(first, str) and first and isinstance(last, str):
        start, over = pattern(first.strip()), pattern(last.strip()) or over
        opens = rf"{opens}|{start}(?=\s{{0,1024}}{opens})"
        part += [beginnings(first.strip()), beginnings(last.strip())]
        part.append(rf"{start}\s{{0,1024}}{beginnings(call)}")
    return Delimiter(f"(?P<opens>{opens})|(?P<ends>{pattern(end)})|(?P<over>{over})", "|".join(part))


def _edge(
    r: Reader, edges: Delimiter, part: NestedTags, stack: list[_Node]
) -> Generator[None, None, re.Match[str] | None]:
    """What opens or ends a call here, inside an element; None if it closes the element or one around it."""
    found = yield from r.sees(edges)
    while found is not None and not found["opens"] and not r.ended and edges.part.match(r.buf, r.at):
        yield  # what ends a call may be the beginning of what opens one
        found = edges.match(r.buf, r.at)
    if found is None or found["opens"]:
        return found
    name = found[0].removeprefix(part.token).strip("</>")
    return None if any(node.name == name for node in stack) else found


def _tag(r: Reader, call: CallReader, stack: list[_Node], closing: str) -> Wait:
    """A tag after its token."""
    tag = yield from r.sees(_TAG)
    if tag is None:
        ended = r.at >= len(r.buf)
        code = "truncated_call" if ended else "invalid_arguments"
        raise Damage(code, "expected a tag", r.offset, ended=ended, got=not ended)  # type: ignore[arg-type]
    r.at = tag.end()
    part = call.shape.call[call.part]
    if not tag["name"].isidentifier() and isinstance(part, NestedTags) and tag["name"] in part.token:
        raise Damage("invalid_arguments", "expected a tag, got a part of a token", tag.start() + r.base, got=True)
    if not tag["slash"]:
        stack.append(_Node(tag["name"]))
        if len(stack) > r.limits.depth:
            raise Damage("invalid_arguments", f"expected nesting of at most {r.limits.depth}", r.offset)
        return
    level = next((i for i in range(len(stack) - 1, 0, -1) if stack[i].name == tag["name"]), 0)
    if not level:
        raise _expected(stack, closing, r.offset - len(tag[0]))
    _leave(r, call, stack, level + 1, f"</{stack[-1].name}>")
    _pop(stack)


def _leave(r: Reader, call: CallReader, stack: list[_Node], size: int, wanted: str) -> None:
    """Close elements, down to a number, that end with what encloses them, without their own closing tags."""
    if len(stack) > size and MISSING_CLOSE not in r.repairs:
        raise _expected(stack, wanted, r.offset)
    part = call.shape.call[call.part]
    token = part.token if isinstance(part, NestedTags) else ""
    while len(stack) > size:
        stack[-1].closed = False
        if lacks_some(stack[-1].name, stack[-2].name):  # what is left of the closing tag of the element around it
            raise _expected(stack, wanted, r.offset)
        closing = f"</{stack[-1].name}>"
        bare = re.compile(f"(?<!{re.escape(token)}){re.escape(closing)}")  # without its token, and therefore not a tag
        text = "".join([r.text(a, b) for a, b in stack[-1].spans])  # regardless of the pieces in which it arrived
        openings, closings = text.count(f"{token}<"), text.count(f"{token}</")
        torn = halved(text, token + closing) or begins_closing(text, closing)
        if bare.search(text) or torn or openings != 2 * closings:  # it contains half a call
            raise _expected(stack, wanted, r.offset)
        call.arguments.note(MISSING_CLOSE)
        _pop(stack)


def _pop(stack: list[_Node]) -> None:
    node = stack.pop()
    stack[-1].children.append(node)


def _expected(stack: list[_Node], closing: str, position: int) -> Damage:
    wanted = f"</{stack[-1].name}>" if len(stack) > 1 else closing
    return Damage("invalid_arguments", f"expected {wanted}", position, got=True)


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
            raise _truncated(r, call)
        r.heat(stops, None, call.index, stack[1].name)
        yield
    if r.offset > start:
        spans = stack[-1].spans
        spans.append((spans.pop()[0] if spans and spans[-1][1] == start else start, r.offset))


def _quoted(r: Reader, call: CallReader, edges: Delimiter, stack: list[_Node], stops: Search) -> Wait:
    """A whole call, quoted in an element, with its section: all of it is text."""
    start, depth = r.offset, 0
    while True:
        if found := (yield from r.sees(edges)):
            depth += 1 if found["opens"] else -1
            r.tell(found.end(), call.index, stack[1].name)
            if not depth:
                _refuse_twice(r, stack[-1], start)
                stack[-1].spans.append((start, r.offset))
                return
            continue
        if r.at < len(r.buf):
            found = stops(r.buf, r.at + 1)
            r.tell(found.start() if found else len(r.buf), call.index, stack[1].name)
        if r.at >= len(r.buf) and r.ended:
            raise _truncated(r, call)


def _refuse_twice(r: Reader, node: _Node, start: int) -> None:
    """Refuse an element in which a quoted call, from `start` up to here, or one before it has an end twice."""
    if node.tags is None:
        node.tags, node.counted = Counter(), min([start, *(first for first, _ in node.spans[:1])])
    found = Counter(A_TAG.findall(r.text(node.counted, r.offset)))
    node.tags.update(found)
    node.counted = r.offset
    if any(slash and node.tags[slash, name] > node.tags["", name] for slash, name in found):
        message = f"what opens and closes in {node.name!r} does not balance: write each end once"
        raise Damage("ambiguous_call", message, start)


def _truncated(r: Reader, call: CallReader) -> Damage:
    return Damage("truncated_call", f"the text ended inside the call of {call.name!r}", r.offset, ended=True)


@dataclass(frozen=True, slots=True)
class _Source:
    """The call's text, the offset at which it starts, its arguments so far, and the repairs that may be made.

    `has_left` is whether a text contains what is left of the token before a tag.
    """

    raw: str
    mark: int
    arguments: CallArguments
    allowed: frozenset[str]
    has_left: Callable[[str], bool]


@cache
def _left_of(token: str) -> Callable[[str], bool]:
    """Finds what is left of a token of which characters are missing at one place, but less than half at either end."""
    half, whole = len(token) // 2 + 1, re.escape(token)
    if len(token) < _LONG:  # what is left of it is nothing but punctuation, or a word
        return lambda _: False
    name = token[3:-3]
    rests = sorted({name[:i] + name[j:] for j in range(1, len(name) + 1) for i in range(j)}, key=len, reverse=True)
    middle = f"{re.escape(token[:3])}(?:{'|'.join(map(re.escape, rests))}){re.escape(token[-3:])}"
    first, last = re.escape(token[:half]), rf"(?<!{re.escape(token[:-half])}){re.escape(token[-half:])}"
    left = re.compile(f"(?!{whole})(?:{first}|{middle})|{last}").search
    return lambda text: (token[:3] in text or token[-half:] in text) and left(text) is not None


_LONG = 8


def _value(node: _Node, source: _Source, schema: walk.Schema, root: walk.Schema) -> Any:
    raw, mark = source.raw, source.mark
    plain = next((s for s in walk.alternatives(schema, root) if s.get("type") in ("array", "object")), {})
    if not node.children:
        text = "".join([raw[a - mark : b - mark] for a, b in node.spans])
        if not text.strip() and plain and not values.accepts(text, schema, root):
            return [] if plain["type"] == "array" else {}
        if source.has_left(text):
            wanted = f"expected no part of a tag inside <{node.name}>, which contains what is left of one"
            raise Damage("invalid_arguments", wanted, node.spans[0][0], got=True)
        opening = f"<{node.name}>"
        if text.lstrip().startswith(opening) and text.count(opening) > text.count(f"</{node.name}>"):
            message = f"the text of {opening} begins with a part of its opening: write that once"
            raise Damage("ambiguous_call", message, node.spans[0][0])
        text = text if node.closed else _LAST_NEWLINE.sub("", text)
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
