"""Holds what was read of a damaged text against what was written: see `fuzz` for what counts as a fault."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

from damaged_texts import BEGIN, CALLED, END, MARKS, Token, Written, thinking, write
from format_tools import NOTE
from meanings import TAG, agrees, balanced, leaves, plain, readings, says_python
from sound_values import says_so

from agentkit.events import ArgumentDelta, CallEnd, CallError, CallStart, Event, InventedResult, Markup, Text, Thinking
from agentkit.formats.format import Braced, Envelope, Json, KeyEnvelope, TextArgument, ToolElement, edge
from agentkit.formats.repairs import ARITHMETIC
from agentkit.formats.values import same
from agentkit.messages import ToolCall
from agentkit.unicode import without_surrogates


def spans(events: Sequence[Event]) -> list[tuple[Event, int, int]]:
    """Every event that has a text of its own, with where that stands."""
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


@dataclass(frozen=True, slots=True)
class Leaf:
    """One value of a finished call, under the key of the argument in which it stands."""

    key: str
    value: Any

    @property
    def numbers(self) -> list[int]:
        """The written values that begin or end here, in order."""
        if isinstance(self.value, bool) or not isinstance(self.value, str | int):
            return []
        return [int(a or b or c) for a, b, c in MARKS.findall(_text_of(self.value))]


def unescaped(text: str) -> str:
    """The text with its character references read; not those of more digits than a number may have."""
    return html.unescape(re.sub(r"&#\d{8,};?", "", text))


def _text_of(value: str | int) -> str:
    return value if isinstance(value, str) else str(value) if abs(value) < 10**1000 else ""


class Judge:
    """Holds what was read against what was written."""

    def __init__(self, written: Written, events: Sequence[Event]) -> None:
        self.written = written
        self.events = events
        self.text = written.text
        self.spans = spans(events)

    def faults(self) -> Iterator[tuple[str, str]]:
        """Each fault, in a few words and with what shows it."""
        source = "".join(self._source(e) for e, _, _ in self.spans)
        if source != self.text:
            yield "conservation", repr(source)
            return
        yield from self._order()
        made: Counter[int] = Counter()
        for event, start, end in self.spans:
            if isinstance(event, CallEnd):
                yield from self._call(event, made)
                yield from self._place(event.call, start, end)
        yield from self._names()
        for number, times in made.items():
            if times > self._times(number):
                yield "called twice", str(self.written.calls[number])
        yield from self._neighbours()

    def _names(self) -> Iterator[tuple[str, str]]:
        """No name makes more calls than the text has it."""
        ended = Counter(e.call.name for e, _, _ in self.spans if isinstance(e, CallEnd))
        for name, times in ended.items():
            if times > max(plain(text).count(plain(name)) for text in (self.text, unescaped(self.text))):
                yield "a call is made that is not written", f"{name} {times}"

    def _place(self, call: ToolCall, start: int, end: int) -> Iterator[tuple[str, str]]:
        """A call that runs stands where one of this tool was written, or where damage put one in."""
        w = self.written
        under = self._under(start, end)
        names = {w.calls[n].name.casefold() for n in under}
        quoted = NOTE.name if any(w.owner[n][0] in under for n in w.inner.values()) else ""
        if runs(call) and call.name.casefold() not in {*names, quoted} and not any(call.name in i for i in w.inserted):
            yield "a call where none was written", f"{call.name} {dict(call.arguments)} {call.raw!r}"

    def _under(self, start: int, end: int) -> set[int]:
        """The calls of which something was written here."""
        return {t.call for t, a, b in self._tokens if t.call >= 0 and a < end and b > start}

    @cached_property
    def _tokens(self) -> list[tuple[Token, int, int]]:
        """The pieces that were written, with where each stands."""
        ends = [*accumulate(len(t.text) for t in self.written.tokens)]
        return [*zip(self.written.tokens, [0, *ends], ends, strict=False)]

    def _times(self, number: int) -> int:
        """How often a call is written: damage may double it."""
        own = [n for n, (call, _) in self.written.owner.items() if call == number]
        found = (max(self.text.count(mark.format(n)) for mark in (BEGIN, END, "9100{:02d}")) for n in own)
        return max(found, default=1)

    def _source(self, event: Event) -> str:
        return event.call.raw if isinstance(event, CallEnd | CallError) else event.text  # type: ignore[union-attr]

    def _order(self) -> Iterator[tuple[str, str]]:
        begun: dict[int, str] = {}
        ended: list[int] = []
        for event in self.events:
            match event:
                case CallStart(index, name):
                    begun[index] = name
                case CallEnd(index, call):
                    ended.append(index)
                    if [*begun][-1:] != [index]:
                        yield "ended and never begun", repr(event)
                    elif begun[index] != call.name:
                        yield "begun under another name", f"{begun[index]} {call.name}"
                case CallError(index, code):
                    ended.append(index)
                    if code == "internal_error":
                        yield "a fault of ours", repr(event)
                case _:
                    pass
        if ended != list(range(len(ended))) or not begun.keys() <= set(ended):
            yield "begun and ended otherwise", f"{[*begun]} {ended}"
        yield from self._deltas()

    def _deltas(self) -> Iterator[tuple[str, str]]:
        """What streamed of a call's arguments is what the call has, where nothing had to be repaired."""
        json = any(isinstance(part, Json | Envelope | KeyEnvelope) for part in self.written.plan.shape.call)
        streamed: dict[tuple[int, str | None], str] = {}
        for event in self.events:
            match event:
                case ArgumentDelta(index, text, key) if json or key is not None:  # others stream as they are written
                    streamed[index, key] = streamed.get((index, key), "") + text
                case CallEnd(index, call, repairs) if not repairs:
                    for (i, key), text in streamed.items():
                        if i == index and not agrees(text, key, call):
                            yield "streamed otherwise", f"{key} {text!r} {dict(call.arguments)}"
                case _:
                    pass

    def _call(self, event: CallEnd, made: Counter[int]) -> Iterator[tuple[str, str]]:
        """What is wrong with a call that would be executed."""
        call = event.call
        said = f"{call.name} {dict(call.arguments)} {event.repairs}"
        if plain(call.name) not in plain(f"{call.raw} {unescaped(call.raw)}"):
            yield "a name that is not there", said
        if not runs(call) or self._begins_outside(call.raw):
            return
        found = [
            leaf for k, v in call.arguments.items() for leaf in (Leaf(k, k), *(Leaf(*leaf) for leaf in leaves(k, v)))
        ]
        wrong = [(kind, said) for leaf in found for kind in self._leaf(leaf, event)]
        if ARITHMETIC not in event.repairs:  # of which a number with damage beside it is a part
            wrong += self._whole(call, found, said, made)
        if wrong and not says_so(self.written, self.events, event):
            yield from wrong

    def _begins_outside(self, raw: str) -> bool:
        """Whether this call was quoted in a value whose own call damage left without an opening.

        That value then begins in prose or in an error, and nothing tells what is in it from what is not.
        """
        begun = (n for n in self.written.inner.values() if self.written.owner[n][0] in self.written.hurt)
        return any(BEGIN.format(n) not in raw and END.format(n) in raw for n in begun)

    def _whole(self, call: ToolCall, found: Sequence[Leaf], said: str, made: Counter[int]) -> Iterator[tuple[str, str]]:
        """What is wrong with the values of a call together."""
        w = self.written
        numbers = {n for leaf in found for n in leaf.numbers}
        whose = {w.owner[n][0] for n in numbers if n in w.owner}
        glued = [leaf for leaf in found if len({w.owner[n][0] for n in leaf.numbers if n in w.owner}) > 1]
        content = glued and all(self._whole_markup(str(leaf.value)) for leaf in glued)  # half a call, and a whole one
        if len(whose) > 1 and not content:
            yield "two calls in one", said
        if any(n in w.inner and w.inner[n] not in numbers and not self._outer_hurt(n) for n in numbers):
            yield "a quoted call is made", said
        raw = {int(a or b or c) for a, b, c in MARKS.findall(call.raw)}
        if lost := {n for n in raw - numbers if n not in w.inner and not self._in_another_number(n, found)}:
            yield "written, and not among the arguments", f"{sorted(lost)} {said}"
        whole = any(leaf.value in self._bodies(number) for leaf in found for number in whose)
        if (
            len(whose) == 1
            and not whose & w.rekeyed
            and not whole
            and not any(self._whole_markup(str(leaf.value)) for leaf in found)
        ):
            meant = w.calls[next(iter(whose))]
            given = dict(call.arguments)
            there = {k: v for k, v in meant.arguments.items() if not self._put_out(k, v, call)}
            inside = {k: v for k, v in there.items() if k in given or not self._emptied(v)}
            if meant.name == call.name and not self._alike(given, inside) and not says_python(call):
                yield "unlike what was written", said
        for number in whose:
            made[number] += 1
            meant = call.name.casefold() == w.calls[number].name.casefold()
            if not meant and not content and not any(call.name in i for i in w.inserted):
                yield "another tool", said

    def _in_another_number(self, number: int, found: Sequence[Leaf]) -> bool:
        """Whether damage joined digits in front of a number, so that both are one: `0xff910004`."""
        hexes = [t.text[2:] for t in self.written.tokens if t.value == number and t.text.startswith("0x")]
        return any(isinstance(leaf.value, int) and f"{leaf.value:x}" in hexes for leaf in found)

    def _alike(self, got: Any, meant: Any) -> bool:
        """Whether this has the keys, items and words that were written; numbered values are held elsewhere."""
        match got, meant:
            case dict(), dict():
                named = {k if k in meant else self._without_damage(k): v for k, v in got.items()}
                return named.keys() == meant.keys() and all(self._alike(named[k], v) for k, v in meant.items())
            case list(), list():
                gone = sum(map(self._erased, meant))
                if len(got) == len(meant) and not gone:
                    return all(map(self._alike, got, meant))
                return len(meant) - gone <= len(got) <= len(meant)
            case _:
                numbers = Leaf("", meant).numbers
                held = numbers and (numbers[0] in self.written.touched or Leaf("", got).numbers[:1] == numbers[:1])
                damaged = isinstance(got, str) and any(i in got for i in self.written.inserted)
                return bool(same(got, meant) or held or damaged)

    def _erased(self, item: Any) -> bool:
        """Whether damage wrote something else for an item of a list."""
        own = Leaf("", item).numbers[:1]
        now = [t.text for t in self.written.tokens if [t.value] == own]
        return any(Leaf("", text).numbers[:1] != own for text in now)

    def _emptied(self, item: Any) -> bool:
        """Whether damage left nothing of a value: where only its text tells that there is one, there is none."""
        own = Leaf("", item).numbers[:1]
        return bool(own) and not any(t.text for t in self.written.tokens if [t.value] == own)

    def _put_out(self, key: str, value: Any, call: ToolCall) -> bool:
        """Whether an argument stands behind the end that damage gave to its call."""
        raw = call.raw.rstrip()
        ended = any(raw.endswith(i.strip()) for i in self.written.inserted if i.strip())
        return ended and key not in call.arguments and str(value) not in raw

    def _without_damage(self, key: str) -> str:
        for piece in sorted(self.written.inserted, key=len, reverse=True):
            meant = next((one for one in sorted(readings(piece), key=len, reverse=True) if one and one in key), "")
            key = key.replace(meant, "", 1)
            if piece == "\\ud800":  # in a string it stands for half a character
                key = key.replace("\ufffd", "", 1)
        return key

    @cached_property
    def _tags(self) -> set[str]:
        """The names of the tags with which this text's own calls were written, without those around several calls."""
        sound = write(self.written.plan) or self.written
        section = self.written.plan.shape.section
        around = {n for _, n in TAG.findall(f"{edge(section.open)}{edge(section.close)}")} if section else set()
        own = {n for t in sound.tokens if t.call != -1 and t.value < 0 for _, n in TAG.findall(t.text)}
        return own - around

    def _outer_hurt(self, inner: int) -> bool:
        return self.written.owner[self.written.inner[inner]][0] in self.written.hurt

    def _leaf(self, leaf: Leaf, event: CallEnd) -> Iterator[str]:
        """What is wrong with one value of a call."""
        w = self.written
        numbers = [n for n in leaf.numbers if n in w.owner and n not in w.inner]
        if not numbers:
            return
        text = str(leaf.value)
        own = numbers[0]
        if len(set(numbers)) > 1:
            bodies = self._bodies(w.owner[own][0])
            if not self._whole_markup(text) and not any(
                self._inserted(text.replace(b, "", 1)) for b in bodies if b in text
            ):
                yield "two values in one"
            return
        if own in w.touched:
            yield from self._touched(own, text, event)
        elif BEGIN.format(own) in text and END.format(own) not in text:
            yield "a value is cut off"
        elif leaf.key != w.owner[own][1] and w.owner[own][0] not in w.rekeyed:
            yield "under another key"
        elif text != w.values[own] and (without_surrogates(text) != w.values[own] or not event.repairs):
            yield from self._around(w.values[own], text, event)

    def _around(self, whole: str, text: str, event: CallEnd) -> Iterator[str]:
        """What is wrong with a value that is not as it was written though nothing touched it."""
        w = self.written
        around = text.replace(whole, "", 1)
        if around == text:
            yield "a value is altered"
        elif not self._may_surround(around, text):
            yield "markup in a value"
        elif not around.strip() and not event.repairs and not w.inserted:
            yield "white space in a value"

    def _may_surround(self, around: str, text: str) -> bool:
        """Whether this may stand in a value besides what was written: damage, white space, or balanced markup.

        So may prose without any markup, where damage put the value's closing behind it.
        """
        for said in filter(str.strip, self.written.plan.prose):
            around = around.replace(said, "", 1)
        return not around.strip() or self._inserted(around) or self._whole_markup(around) or self._whole_markup(text)

    def _whole_markup(self, text: str) -> bool:
        """Whether markup stands in a value and is balanced there: its own, or that of this text's calls."""
        names = {name for _, name in TAG.findall(text)}
        return bool(names) and (balanced(text) or bool((tags := self._tags & names) and balanced(text, tags)))

    def _inserted(self, text: str) -> bool:
        """Whether nothing else stands there than what damage put in, in one piece or in several."""
        text, inserted = text.casefold(), [r.casefold() for i in self.written.inserted for r in readings(i)]
        if any(text.strip() in i for i in inserted):
            return True
        for piece in sorted(filter(None, inserted), key=len, reverse=True):
            text = text.replace(piece, "", 1)
        return not text.strip()

    def _touched(self, number: int, text: str, event: CallEnd) -> Iterator[str]:
        """A damaged value of a call that is made: as written, or by a named repair; never without its end."""
        w = self.written
        now = [t.text for t in w.tokens if t.value == number]
        now += self._bodies(w.owner[number][0])
        if any(text + p in t for p in w.inserted if p[:1] in "\"'<" for t in now):
            return  # what was put into it closed it, as far as anybody can tell
        if (
            BEGIN.format(number) in text
            and END.format(number) not in text
            and any(END.format(number) in t for t in now)
            and not any(text in readings(t) for t in now)
            and number not in w.inner.values()  # what damage left of a quoted call balances no more: the first end
        ):
            yield "a damaged value is cut off"
        elif number in w.inner.values() and any(self._part_of(text, t) for t in now):
            return
        elif not any(text == r or self._holds(r.strip(), text) for t in now for r in readings(t)):
            yield f"a damaged value is altered and {'a' if event.repairs else 'no'} repair is named"

    def _bodies(self, call: int) -> list[str]:
        """What damage wrote for the parameters of a call, which may all be one value."""
        if call not in self.written.rebodied:
            return []
        tokens = self.written.tokens
        own = [i for i, t in enumerate(tokens) if t.call == call and t.body]
        if not own:
            return []
        first, last = own[0], own[-1] + 1
        return ["".join(t.text for t in tokens[start:last]).strip() for start in {first, own[0]}]

    def _holds(self, meaning: str, text: str) -> bool:
        return bool(meaning) and meaning in text and self._may_surround(text.replace(meaning, "", 1), text)

    def _part_of(self, text: str, value: str) -> bool:
        """Whether this is a part of a damaged value, with what damage put in front of it or without."""
        value = str(without_surrogates(value))
        return any(text.removeprefix(p) in value for p in ("", *self.written.inserted))

    def _neighbours(self) -> Iterator[tuple[str, str]]:
        """Calls that no damage touched are read as they were meant."""
        w = self.written
        hidden = self._hidden_from()
        ends = [e for e, _, _ in self.spans if isinstance(e, CallEnd)]
        for number, call in enumerate(w.calls):
            start, end = self._where(number)
            if number in w.hurt or end > hidden or start >= self._shut():
                continue
            hit = next((e for e in self._over(number) if isinstance(e, CallEnd) and equal(e.call, call)), None)
            if hit is not None:
                if hit.repairs and not any(equal(e.call, call) and not e.repairs for e in ends):
                    yield "a sound call is repaired", f"{hit.repairs} {call}"
            elif self._quoted_more(number) or self._said_otherwise(number):
                continue
            elif self._covered(number, refused=True):
                yield "a neighbour is lost in a call with invalid arguments", str(call)
            elif not self._covered(number):
                yield ("a neighbour is lost without an error" if w.done else "an undamaged text is misread"), str(call)
            elif not w.done and not any(c.quoting in self._unsure() for c in w.plan.calls):
                yield "an undamaged text is refused", str(call)

    def _unsure(self) -> tuple[str, ...]:
        """The quoted calls with which nobody can always tell where the value ends.

        Halves, those of other formats, and any where strings open and close by the same words.
        """
        braced = any(isinstance(part, Braced) for part in self.written.plan.shape.call)
        return ("half", "other", "whole") if braced else ("half", "other")

    def _shut(self) -> int:
        """Where a whole section that damage put into another one ends both: what stands behind it stands in prose."""
        w = self.written
        if w.plan.shape.section is None or not w.plan.together:
            return len(self.text)
        sections = [s.section for s in w.plan.format.shapes if s.section is not None]
        edges = [(edge(s.open).strip(), edge(s.close).strip()) for s in sections]
        whole = (i for i in w.inserted if any(first in i and i.strip().endswith(last) for first, last in edges))
        return min((self.text.find(i) + len(i) for i in whole), default=len(self.text))

    def _quoted_more(self, number: int) -> bool:
        """Whether what is quoted here was read as more than was meant: what damage left of other calls closes it.

        Half a call is then a whole one; and an element that lacks its closing tag holds the calls up to another one.
        """
        nests = any(isinstance(part, TextArgument | ToolElement) for part in self.written.plan.shape.call)
        halves = {call.tool.name for call in self.written.plan.calls if call.quoting == "half"}
        over = (e.call for e in self._made_of_damage(number))
        made = (c for c in over if nests or c.name in halves)
        return any(any(self._whole_markup(str(v)) for v in c.arguments.values()) for c in made)

    def _said_otherwise(self, number: int) -> bool:
        """Whether all of a call stands in one that was read, whose text soundly says what was read."""
        over = [e for e in self._over(number) if not isinstance(e, Markup)]
        return len(over) == 1 and isinstance(over[0], CallEnd) and says_so(self.written, self.events, over[0])

    def _hidden_from(self) -> int:
        """Where damage begins that may quote what stands behind it, or make it reasoning."""
        w = self.written
        fences = [self.text.find("``````")] if w.hurt else []  # two fences without a line between them are none
        if w.quotes:
            fences += [self.text.find(i) for i in w.inserted if "`" in i or "think" in i.lower()] or [0]
            fences += [self.text.find(t) for t in thinking(w.plan.format) if t in w.inserted]
            fences.append(self.text.find("`"))
        fences += [self.text.find("```")] if any("```" in self._quoted(n) for n in w.hurt) else []
        return min((at for at in fences if at >= 0), default=len(self.text))

    def _quoted(self, number: int) -> str:
        """The value in which a call quotes another one: of a damaged call, a fence in it may stand in prose."""
        w = self.written
        return next((w.values[v] for v in w.inner.values() if w.owner[v][0] == number), "")

    def _made_of_damage(self, number: int) -> list[CallEnd]:
        """The calls that are made of some of what was written for this one, and of a damaged one or damage alone."""
        w = self.written
        made = [(e, self._under(a, b)) for e, a, b in self.spans if isinstance(e, CallEnd)]
        closed = tuple(i.strip() for i in w.inserted if i.strip())
        return [e for e, own in made if number in own and (own & w.hurt or e.call.raw.rstrip().endswith(closed))]

    def _over(self, number: int) -> list[Event]:
        """The events that stand over some of what was written for a call."""
        start, end = self._where(number)
        return [e for e, a, b in self.spans if a < end and b > start]

    def _where(self, number: int) -> tuple[int, int]:
        """Where a call was written: the beginning and the end."""
        own = [(a, b) for t, a, b in self._tokens if t.call == number]
        return (own[0][0], own[-1][1]) if own else (-1, -1)

    def _covered(self, number: int, *, refused: bool = False) -> bool:
        """Whether an error or a made-up result covers some of a call; or a call whose arguments will be refused."""
        over = self._over(number)
        if refused:
            return any(isinstance(e, CallEnd) and not runs(e.call) for e in over)
        return any(isinstance(e, CallError) or self._made_up(e) for e in over)

    def _made_up(self, event: Event) -> bool:
        """Whether damage wrote the beginning of a made-up result, after which nothing is read."""
        inserted = (piece.strip() for piece in self.written.inserted)
        return isinstance(event, InventedResult) and any(p and p in event.text[: len(p) + 40] for p in inserted)


TYPES = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}


def runs(call: ToolCall) -> bool:
    """Whether this call would be executed: the tool is known, and the arguments are all there and of its types."""
    tool = next((t for t in CALLED if t.name == call.name), None)
    if tool is None or not set(tool.parameters["required"]) <= call.arguments.keys():
        return False
    properties = tool.parameters["properties"]
    return all(k in properties and isinstance(v, TYPES[properties[k]["type"]]) for k, v in call.arguments.items())


def equal(got: ToolCall, meant: ToolCall) -> bool:
    """Whether these are the same call."""
    return (
        got.name == meant.name
        and got.arguments.keys() == meant.arguments.keys()
        and all(same(v, meant.arguments[k]) for k, v in got.arguments.items())
    )
