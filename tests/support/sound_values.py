"""Whether a text soundly says what was read of it, though other calls were meant: some damage leaves nothing damaged.

Where a parameter's opening became a plain word and the closing before it is missing, the value before it has more
lines: a writer who means that value writes this very text, and by the round-trip law it is read so. Where two
parameters have changed names, and a closing is missing, the text says what was read as well. The declarations alone
decide what is markup: knows no parser.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from damaged_texts import CALLED, Written, call_text

from agentkit.errors import FormatError
from agentkit.events import CallEnd, CallError, Event, Text
from agentkit.formats.format import (
    Braced,
    CallBody,
    NameTag,
    NestedTags,
    Pairs,
    Shape,
    Tag,
    TagParameters,
    ToolElement,
    edge,
)
from agentkit.formats.repairs import MISSING_CLOSE
from agentkit.messages import ToolCall

_PIECE = re.compile(r"</?[^<>\s]+>?|\S+")
_TAG = re.compile(r"</?[^<>\n]+>?").fullmatch
_MARKUP = re.compile(r"\w.*[<>|\[\]]|[<>|\[\]].*\w").search
_STANDS_FOR = "zz{:02d}zz"


def says_so(written: Written, events: Sequence[Event], event: CallEnd) -> bool:
    """Whether the format's writer writes exactly this text for this call, and its values are content by any count.

    Besides what was planned, no value may hold any of the format's literals or most of one, or a tag of a declared tool
    or parameter, unless what opens and closes there balances. Nor may anything else that was read of the text.
    """
    shape = written.plan.shape
    braced = any(isinstance(part, Braced) for part in shape.call)  # where a quote token moved, strings hold other text
    if not braced and not any(isinstance(part, CallBody) and part.raw for part in shape.call):
        return False
    rest = "\n".join(e.text for e in events if isinstance(e, Text))
    if any(isinstance(e, CallError) for e in events) or marked(rest, shape):
        return False
    planned = set(written.values.values())
    more = {k: v for k, v in event.call.arguments.items() if isinstance(v, str) and v not in planned}
    if event.repairs:
        whole = all(value.strip("\r\n") in planned for value in more.values())  # of two line ends one may be left
        return event.repairs == (MISSING_CLOSE,) and whole and _writes_but_a_closing(written, event.call)
    content = all(_is_content(value, planned, shape) for value in more.values())
    data = any(isinstance(value, list | dict) for value in event.call.arguments.values())
    if braced:
        return not event.repairs and _writes(written, event.call, ())
    return (bool(more) or data) and content and _writes(written, event.call, more)


def _writes_but_a_closing(written: Written, call: ToolCall) -> bool:
    """Whether the writer writes exactly this text for this call, but for one closing of a value, which is missing.

    Then the text says these values under these names, and damage gave each name to the other one's value.
    """
    places = sorted(call.arguments, key=lambda key: call.raw.find(str(call.arguments[key])))
    call = replace(call, arguments={key: call.arguments[key] for key in places})  # as the text has them
    closings = [p.close.strip() for p in written.plan.shape.call if isinstance(p, Pairs)]
    closings += [f"</{p.name}>" for p in written.plan.shape.call if isinstance(p, TagParameters)]
    for number in range(len(written.calls) + 1):
        try:
            text = "".join(call_text(written.plan.format, written.plan.shape, call, number))
        except (FormatError, StopIteration):
            return False
        for found in re.finditer("|".join(map(re.escape, closings)) or "(?!)", text):
            if _joined(text[: found.start()] + text[found.end() :]) == _joined(call.raw):
                return True
    return False


def _writes(written: Written, call: ToolCall, more: Collection[str]) -> bool:
    """Whether the writer writes this call as it stands, where the values that hold more stand raw, as models write."""
    words = {key: _STANDS_FOR.format(n) for n, key in enumerate(more)}
    spoken = ToolCall("", call.name, {**call.arguments, **words})
    for number in range(len(written.calls) + 1):
        try:
            text = "".join(call_text(written.plan.format, written.plan.shape, spoken, number))
        except (FormatError, StopIteration):
            return False
        for key, word in words.items():
            text = text.replace(word, call.arguments[key])
        if "".join(text.split()) == "".join(call.raw.split()):  # white space beside a value may be the format's own
            return True
    return False


def _is_content(value: str, planned: Collection[str], shape: Shape) -> bool:
    """Whether a value has no markup of a call but balanced one, in whole or besides the values that were planned."""
    rest = value
    for known in sorted(planned, key=len, reverse=True):
        rest = rest.replace(known, "\n")
    return any(
        outside is not None and not marked(outside, shape)
        for outside in (_outside(value, shape), _outside(rest, shape))
    )


def marked(text: str, shape: Shape) -> bool:
    """Whether a text has more than half of a literal or tag of such calls, or a tag of a declared tool or parameter."""
    joined = _joined(text)
    return _declared(shape).search(text) is not None or any(left in joined for left in _left(shape))


def _joined(text: str) -> str:
    """A text without differences that do not matter: white space, as some tags are read without it, and case."""
    return "".join(text.split()).casefold()


def _outside(text: str, shape: Shape) -> str | None:
    """A text without what is balanced in it; None if anything that opens or closes there does not balance."""
    edges = _edges(shape)
    out, at = "", 0
    opened: list[int] = []
    for found in re.finditer("|".join(f"(?P<{e.name}>{e.pattern})" for e in edges), text, re.IGNORECASE):
        kind = next(e for e in edges if e.name == found.lastgroup)
        out += text[at : found.start()] if not opened else ""
        at = found.end()
        if not kind.closes:
            opened.append(kind.pair)
        elif not opened or opened.pop() != kind.pair:
            return None
    return None if opened else out + text[at:]


@dataclass(frozen=True, slots=True)
class _Edge:
    """What opens or closes one of the pairs of a shape."""

    name: str
    pair: int
    closes: bool
    pattern: str


@cache
def _edges(shape: Shape) -> tuple[_Edge, ...]:
    pairs = [*_pairs(shape)]
    both = [
        _Edge(f"{'c' if n else 'o'}{i}", i, bool(n), text)
        for i, pair in enumerate(pairs)
        for n, text in enumerate(pair)
    ]
    return tuple(sorted(both, key=lambda e: -len(e.pattern)))


def _pairs(shape: Shape) -> Iterator[tuple[str, str]]:
    """What opens and what closes: a section, a call, a value, and the tags of declared tools and parameters."""
    literals = [p.strip() for p in shape.call if isinstance(p, str) and p.strip()]
    if len(literals) > 1:
        yield re.escape(literals[0]), re.escape(literals[-1])
    if shape.section is not None and edge(shape.section.close).strip():
        yield re.escape(edge(shape.section.open).strip()), re.escape(edge(shape.section.close).strip())
    for part in shape.call:
        if isinstance(part, Pairs):
            yield re.escape(part.key.strip()), re.escape(part.close.strip())
        elif isinstance(part, NameTag | TagParameters):
            yield rf"<{re.escape(part.name)}(?=[\s>])[^<>]*(?<!/)>", rf"</{re.escape(part.name)}\s*>"
        elif isinstance(part, ToolElement | NestedTags):
            token = re.escape(part.token) if isinstance(part, NestedTags) else ""
            for name in _names(shape):
                yield rf"{token}<{name}(?=[\s>])[^<>]*(?<!/)>", rf"{token}</{name}\s*>"


@cache
def _names(shape: Shape) -> tuple[str, ...]:
    """The names of the tags of declared tools and parameters, as regular expressions."""
    layout = next((part.layout for part in shape.call if isinstance(part, ToolElement)), None)
    names: dict[str, None] = {}
    for tool in CALLED:
        element = tool.with_element(layout or "own").element
        assert element is not None
        names.update((name, None) for node in element.of("element") for name in node.path)
        names[element.tag] = None
        if layout is None:
            names.update(dict.fromkeys((tool.name, *tool.parameters["properties"])))
    return tuple(dict.fromkeys(re.sub(r"\\?[-_]", "[-_]", re.escape(name)) for name in names))


@cache
def _declared(shape: Shape) -> re.Pattern[str]:
    return re.compile(rf"</?(?:\w[\w.-]*:)?(?:{'|'.join(_names(shape))})(?=[\s/>]|\Z)", re.IGNORECASE)


@cache
def _left(shape: Shape) -> tuple[str, ...]:
    """What is left of each literal and tag of a shape where less than half of it is missing, at one of its ends."""
    texts = [edge(p) if isinstance(p, Tag) else p for p in shape.call if isinstance(p, str | Tag)]
    texts += [text for part in shape.call for text in _literals(part)]
    if shape.section is not None:
        texts += [edge(shape.section.open), edge(shape.section.close)]
    whole = (text.strip() for text in texts)
    found = (piece for text in whole for piece in ([text] if _TAG(text) else _PIECE.findall(text)) if _MARKUP(piece))
    out = set()
    for piece in {_joined(piece) for piece in found}:
        size = len(piece) // 2 + 1
        out |= {piece[:size], piece[-size:]}
    return tuple(sorted(out))


def _literals(part: object) -> tuple[str, ...]:
    match part:
        case Pairs():
            return part.key, part.middle, part.close, *part.kind
        case TagParameters() | NameTag():
            return f"<{part.name}", f"</{part.name}>"
        case NestedTags():
            return part.token, f"<{part.item}>", f"</{part.item}>"
        case _:
            return ()
