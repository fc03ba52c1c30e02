"""Checks what was read of a damaged text against what was written, as `fuzz` says what counts as a fault.

A call that runs is one that was written: the same tool, and the very arguments that were meant. A call that is refused
needs no excuse in a damaged text, so nothing here has to understand what damage made of a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

from damaged_texts import BEGIN, CALLED, END, MARKS, Written
from format_tools import NOTE, PING

from agentkit.errors import FormatError
from agentkit.events import CallEnd, CallError, CallStart, Event, InventedResult, Markup, Text, Thinking
from agentkit.formats import render_calls
from agentkit.formats.edges import weak
from agentkit.formats.format import (
    Braced,
    CallBody,
    NameTag,
    NestedTags,
    Pairs,
    Shape,
    Tag,
    TagParameters,
    TextArgument,
    ToolElement,
    edge,
)
from agentkit.messages import ToolCall
from agentkit.schemas.typed.values import same

NEVER = {
    "conservation": "the events are not the text",
    "a fault of ours": "a call ended with `internal_error`",
    "begun and ended otherwise": "calls do not begin and end one after the other",
    "not what was written": "a call runs that the text does not hold, or with other arguments",
    "called twice": "a call runs more often than it was written",
    "markup in a value": "a raw value has its own format's markup in it, other than whole quoted calls",
    "runs after damage": "a call runs after another one of the same reply was refused",
}
"""Each kind of fault that makes a wrong call, or events that are not the text."""
MILD = {
    "lost": "a damaged call's opening and its tool's name stand in the text, and there is neither a call nor an error",
    "a sound call is lost": "no damage, and neither a call nor an error",
    "a sound call is refused": "no damage, and an error or a call that would be refused",
    "a sound call is repaired": "no damage, and a repair",
}


def spans(events: Sequence[Event]) -> list[tuple[Event, int, int]]:
    """Every event that has a text of its own, with where that is."""
    at, out = 0, []
    for event in events:
        match event:
            case Text(text) | Thinking(text) | Markup(text) | InventedResult(text):
                out.append((event, at, at + len(text)))
                at += len(text)
            case CallEnd(_, call) | CallError(_, _, _, call):
                out.append((event, at, at + len(call.raw)))
                at += len(call.raw)
            case _:
                pass
    return out


class Judge:
    """Checks what was read against what was written.

    With `strict`, also that nothing runs after a damaged call, and that no raw value has a piece of its own markup.
    """

    def __init__(self, written: Written, events: Sequence[Event], *, strict: bool = False) -> None:
        self.written = written
        self.events = events
        self.strict = strict
        self.spans = spans(events)

    def faults(self) -> Iterator[tuple[str, str]]:
        """Each fault, in a few words and with what shows it."""
        source = "".join(e.call.raw if isinstance(e, CallEnd | CallError) else e.text for e, _, _ in self.spans)  # type: ignore[union-attr]
        if source != self.written.text:
            yield "conservation", repr(source)
            return
        yield from self._order()
        yield from self._calls()
        yield from self._lost() if self.damaged else self._sound()

    @property
    def damaged(self) -> bool:
        """Whether the text is not as a model should write it; it may also quote half a call, or another format's."""
        written = self.written
        sure = () if any(isinstance(part, Braced) for part in written.plan.shape.call) else ("", "whole")
        return bool(written.done) or any(c.quoting and c.quoting not in sure for c in written.plan.calls)

    def _order(self) -> Iterator[tuple[str, str]]:
        begun: dict[int, str] = {}
        ended: list[int] = []
        for event in self.events:
            match event:
                case CallStart(index, name):
                    begun[index] = name
                case CallEnd(index, call):
                    ended.append(index)
                    if [*begun][-1:] != [index] or begun[index] != call.name:
                        yield "begun and ended otherwise", repr(event)
                case CallError(index, code):
                    ended.append(index)
                    if code == "internal_error":
                        yield "a fault of ours", repr(event)
                case _:
                    pass
        if ended != list(range(len(ended))) or not begun.keys() <= set(ended):
            yield "begun and ended otherwise", f"{[*begun]} {ended}"

    # ------------------------------------------------------------ calls that run

    def _calls(self) -> Iterator[tuple[str, str]]:
        """What is wrong with the calls that would be executed."""
        left, refused = self._meant(), False
        for event in self.events:
            refused = refused or isinstance(event, CallError)
            if not isinstance(event, CallEnd) or not runs(event.call):
                continue
            call, said = event.call, f"{event.call.name} {dict(event.call.arguments)} {event.repairs}"
            hit = next((i for i, meant in enumerate(left) if self._is(call, meant)), -1)
            if hit >= 0:
                del left[hit]
            elif call.raw and self._written_so(call):
                pass
            elif any(self._is(call, meant) for meant in self._meant()):
                yield "called twice", said
            else:
                yield "not what was written", said
            if self.strict and refused:
                yield "runs after damage", said
            if any(self._marked(value) for value in call.arguments.values()):
                yield "markup in a value", said

    def _written_so(self, call: ToolCall) -> bool:
        """Whether the text of a call is exactly what its format writes for it: no reader may refuse it, then.

        So damage may make a sound call out of another one, as when all parameters stand after its end.
        """
        try:
            written = render_calls(self.written.plan.format, [call], CALLED)
        except FormatError:
            return False
        return "".join(call.raw.replace("functions.", "").split()) in "".join(written.split())

    def _quotes(self, value: str) -> bool:
        """Whether a value has the markup of whole calls, also of some that damage made whole."""
        plan, find = self.written.plan, pieces(self.written.plan.shape).findall
        calls = [*self.written.calls, *(ToolCall("", t.name, {"text": "x"} if t is NOTE else {}) for t in (NOTE, PING))]
        whole = []
        for call in calls:
            with suppress(FormatError):
                whole.append(find(render_calls(plan.format, [call], CALLED)))
        if plan.shape.section is not None:
            whole += [found[1:-1] for found in whole]
        left = find(value)
        while left and (first := next((w for w in whole if w and left[: len(w)] == w), None)):
            left = left[len(first) :]
        return not left and find(value) != []

    def _meant(self) -> list[ToolCall]:
        """The calls that the text holds: those written; and those that damage put in, or took out of a value."""
        w = self.written
        bare = [n for n, outer in w.inner.items() if w.owner[outer][0] in w.hurt]
        words = [f"{BEGIN.format(n)}quoted{END.format(n)}" for n in bare]
        words += [
            word + END.format(w.inner[n]) for n, word in zip(bare, words, strict=True)
        ]  # the outer call ends a half
        quoted = [ToolCall("", NOTE.name, {"text": word}) for word in words]
        put_in = [ToolCall("", PING.name, {}) for piece in w.inserted if PING.name in piece]
        return [*w.calls, *quoted, *put_in]

    def _is(self, call: ToolCall, meant: ToolCall) -> bool:
        """Whether a call is the one that was meant."""
        if call.name != meant.name:
            return False
        self.raw = call.raw
        hurt = next((n in self.written.hurt for n, one in enumerate(self.written.calls) if one is meant), True)
        there = {k: v for k, v in meant.arguments.items() if not hurt or k in call.arguments or k in call.raw}
        wanted = {k: v for k, v in there.items() if k in call.arguments or not hurt or self._inside(v, call)}
        given = call.arguments
        return given.keys() == wanted.keys() and all(self._alike(given[k], v, hurt) for k, v in wanted.items())

    def _inside(self, value: Any, call: ToolCall) -> bool:
        """Whether a value belongs to a call: after the end of an element, it is prose."""
        own = numbers(value)
        return not self._element or not own or any(mark.format(own[0]) in call.raw for mark in (BEGIN, "9100{:02d}"))

    @property
    def _element(self) -> bool:
        """Whether calls are elements, after whose end anything may follow."""
        return any(isinstance(part, ToolElement | TextArgument) for part in self.written.plan.shape.call)

    def _alike(self, got: Any, meant: Any, hurt: bool) -> bool:
        """Whether this is the value that was written; one that damage touched is whole, whatever is in it or around."""
        match got, meant:
            case dict(), dict():  # of a hurt call, keys may be damaged, too
                named = got.keys() == meant.keys() or (hurt and len(got) == len(meant))
                meant = (
                    meant
                    if named or not hurt
                    else {k: v for k, v in meant.items() if k in got or f"{k}'" in self.raw or f'{k}"' in self.raw}
                )
                named = named or got.keys() == meant.keys()
                return named and all(self._alike(g, m, hurt) for g, m in zip(got.values(), meant.values(), strict=True))
            case list(), list():
                return len(got) == len(meant) and all(self._alike(g, m, hurt) for g, m in zip(got, meant, strict=True))
        if same(got, meant) or (hurt and isinstance(got, str) and got.strip() == meant):
            return True
        own = next(iter(numbers(meant)), 0)
        if isinstance(got, str) and BEGIN.format(own) in got and self._quotes(got):
            return True  # damage made whole calls of it, which a value may quote
        if own not in self.written.touched | self.written.near:
            return False
        return isinstance(meant, int) or self._is_whole(got, own)

    def _is_whole(self, got: Any, own: int) -> bool:
        """Whether this is all of a touched value, and nothing of another; or what it is up to its own end in it."""
        w = self.written
        if not isinstance(got, str):
            return False
        start, end, known = got.find(BEGIN.format(own)), got.rfind(END.format(own)), {own}
        known |= {n for n, outer in w.inner.items() if outer == own}
        if f"\\{BEGIN.format(own)}" in self.raw:  # with a stray backslash, its first letter is of an escape
            start = max(start, 0)
        if 0 <= start < end and set(numbers(got)) <= known:
            return True
        ended = start >= 0 and any(got + piece in w.text for piece in w.inserted if piece.startswith("</"))
        return self._element and (ended or not got.strip())  # what is after the end is prose, and so may all of it be

    def _marked(self, value: Any) -> bool:
        """Whether a raw value has a piece of its own format's markup that is not part of a whole quoted call.

        If not `strict`, what was written for the value is left out, half calls and mentions in it, too.
        """
        w = self.written
        if not isinstance(value, str) or not any(isinstance(p, CallBody) and p.raw for p in w.plan.shape.call):
            return False
        if "other_body" in w.plan.damages:  # in a string of JSON any markup is content
            return False
        find = pieces(w.plan.shape).findall
        quoted = {outer for outer in w.inner.values() if w.plan.calls[w.owner[outer][0]].quoting != "half"}
        if self._quotes(value) or any(find(value) == find(w.values[n]) for n in quoted):  # their words may be damaged
            return False
        content = [] if self.strict else [*w.values.values(), *(t.text for t in w.tokens if t.value >= 0)]
        content += [] if self.strict else sorted(w.inserted, key=len, reverse=True)
        for text in content:
            value = value.replace(text, "")
        return find(value) != []

    # ------------------------------------------------------------ calls that do not

    def _lost(self) -> Iterator[tuple[str, str]]:
        """Damaged calls of which an opening and the name are in the text, and of which nothing else is."""
        w = self.written
        if w.quotes or any(isinstance(e, InventedResult | Thinking) for e in self.events if not w.plan.thought):
            return
        for number in sorted(w.hurt):
            place = self._named(number)
            if place is not None and not any(
                isinstance(e, CallEnd | CallError | Thinking | InventedResult) and a < place[1] and b > place[0]
                for e, a, b in self.spans
            ):
                yield "lost", str(w.calls[number])

    def _named(self, number: int) -> tuple[int, int] | None:
        """Where an opening that only calls have stands, and the tool's name after it; None where one is missing."""
        w, text = self.written, self.written.text
        seen = "".join(t.text if t.call in (number, -2) and t.value < 0 else "\x01" * len(t.text) for t in w.tokens)
        opening = openings(w.plan.shape, w.calls[number].name)
        named = re.compile(rf"(?<![\w.-]){re.escape(w.calls[number].name)}(?![\w.-])")
        for start in opening.finditer(seen):
            if start["tag"]:
                return start.span()
            for end in named.finditer(text, start.end()):
                if seen[end.start() : end.end()] == end[0]:
                    return start.start(), end.end()
        return None

    def _sound(self) -> Iterator[tuple[str, str]]:
        """What is wrong with the reading of a text without damage."""
        ends = [e for e in self.events if isinstance(e, CallEnd)]
        for call in self.written.calls:
            hit = next((e for e in ends if self._is(e.call, call)), None)
            if hit is not None and hit.repairs:
                yield "a sound call is repaired", f"{hit.repairs} {call}"
            elif hit is None:
                error = any(isinstance(e, CallError) for e in self.events) or len(ends) == len(self.written.calls)
                yield f"a sound call is {'refused' if error else 'lost'}", str(call)


def numbers(value: Any) -> list[int]:
    """The written values that begin or end in this one."""
    if isinstance(value, bool) or not isinstance(value, str | int) or (isinstance(value, int) and value > 10**9):
        return []
    return [int(a or b or c) for a, b, c in MARKS.findall(str(value))]


@cache
def openings(shape: Shape, name: str) -> re.Pattern[str]:
    """What calls of this shape or their section begin with, and prose does not; as `tag` what has the tool's name."""
    first = shape.first
    own = edge(first) if isinstance(first, Tag) else first if isinstance(first, str) else ""
    section = "" if shape.section is None else edge(shape.section.open)
    literals = [r"\s*".join(map(re.escape, text.split())) for text in (section, own) if text.strip() and not weak(text)]
    if isinstance(first, NameTag):
        literals.append(rf"<{re.escape(first.name)}(?=[\s/>])")
    element = next((p for p in shape.call if isinstance(p, ToolElement)), None)
    tool = next(t for t in CALLED if t.name == name)
    spec = tool.with_element(element.layout).element if element is not None else None
    tag = "(?!)" if spec is None else rf"<{re.escape(spec.tag)}(?=[\s/>])"
    return re.compile("|".join([f"(?P<tag>{tag})", *literals]))


@cache
def pieces(shape: Shape) -> re.Pattern[str]:
    """Pieces of a shape's markup that no raw value has: its literals and tags from five characters on."""
    texts = [p for p in shape.call if isinstance(p, str)]
    for part in shape.call:
        match part:
            case Tag():
                texts.append(edge(part))
            case NameTag() | TagParameters():
                texts += [f"<{part.name}", f"</{part.name}"]
            case Pairs():
                texts += [part.key, part.middle, part.close]
            case NestedTags():
                texts.append(part.token)
            case ToolElement():
                elements = [tool.with_element(part.layout).element for tool in CALLED]
                texts += [f"{slash}{e.tag}" for e in elements if e is not None for slash in ("<", "</")]
    if shape.section is not None:
        texts += [edge(shape.section.open), edge(shape.section.close)]
    lines = (line.strip() for text in texts for line in text.splitlines())
    found = {piece for piece in lines if len(piece) > 4 and not piece.isalnum()}
    ordered = sorted(found, key=len, reverse=True)
    return re.compile("|".join(re.escape(p) + r"(?![\w.:-])" * p[-1].isalnum() for p in ordered) or "(?!)")


TYPES = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}


def runs(call: ToolCall) -> bool:
    """Whether this call would be executed: the tool is known, and the arguments are all there and of its types."""
    tool = next((t for t in CALLED if t.name == call.name), None)
    if tool is None or not set(tool.parameters["required"]) <= call.arguments.keys():
        return False
    properties = tool.parameters["properties"]
    return all(k in properties and isinstance(v, TYPES[properties[k]["type"]]) for k, v in call.arguments.items())
