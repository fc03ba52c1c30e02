"""The fuzz: damaged texts of every format, read whole, by the character and in random pieces, and judged.

What was written is known (see `damaged_texts`), so what was read can be judged without another parser:

- nothing raises; every cutting gives the same merged events; texts and raw spans of calls are exactly the input;
- every call is begun once and ends once; a finished call has a name that the text holds;
- an argument holds one written value, whole, and nothing but what was written for it: nothing cut off, no neighbour, no
  markup; all that was written inside a finished call is among its arguments; what no damage touched is unchanged;
- a call that no damage touched is read as it was meant, unless a `CallError` covers it;
- a call that was cut off is not finished, unless nothing of it is missing but what closes it; nothing is called twice.

    python tests/fuzz.py --texts 1000000 --seed 1 --processes 2

prints how many texts of each format and damage were read, and of each kind of fault the number and the smallest text.
"""

from __future__ import annotations

import argparse
import html
import json
import multiprocessing
import random
import re
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentkit import formats
from agentkit.events import CallEnd, CallError, CallStart, Event, Markup, SourceEvent, Text, Thinking, merge
from agentkit.formats import Format, Parser
from agentkit.formats.values import same, without_surrogates
from agentkit.messages import ToolCall
from damaged_texts import BEGIN, CALLED, END, MARKS, Plan, Written, damaged, plan

CLOSERS_ONLY = re.compile(r"[\s\]})\"'<>/|]*")


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with what was read of a text."""

    kind: str
    plan: Plan
    text: str
    detail: str


# ---------------------------------------------------------------- reading


def readers(plan: Plan) -> tuple[Format, ...]:
    """In what formats a text is read: mostly its own, sometimes all that tell themselves."""
    rng = random.Random(plan.seed + 2)
    kind = rng.random()
    every = formats.auto()
    known = (
        any(f.name == plan.format.name for f in every) and plan.format.name != "cline"
    )  # its tags are those of `xml`
    if kind < 0.06 and known and plan.shape == plan.format.shapes[0]:
        return every
    return (plan.format,)


def read(text: str, declared: Sequence[Format], pieces: Sequence[str]) -> list[Event]:
    """The merged events of a text that comes in these pieces."""
    parser = Parser(declared, CALLED)
    events: list[SourceEvent] = []
    for piece in pieces:
        events += parser.feed(piece)
    return merge([*events, *parser.close()])


def cuttings(text: str, seed: int) -> Iterator[Sequence[str]]:
    """The text by the character, and in random pieces."""
    yield text
    rng = random.Random(seed + 3)
    places = sorted({0, len(text), *(rng.randrange(len(text) + 1) for _ in range(rng.randrange(1, 8)))})
    yield [text[a:b] for a, b in zip(places, places[1:], strict=False)]


def spans(events: Sequence[Event]) -> list[tuple[Event, int, int]]:
    """Every event that has a text of its own, with where that stands."""
    at, out = 0, []
    for event in events:
        match event:
            case Text(text) | Thinking(text) | Markup(text):
                out.append((event, at, at + len(text)))
                at += len(text)
            case CallEnd(_, call) | CallError(_, _, _, call):
                out.append((event, at, at + len(call.raw)))
                at += len(call.raw)
            case _:
                pass
    return out


def fuzz(plan: Plan) -> tuple[Written | None, list[Fault]]:
    """Write the text of a plan, read it in three cuttings, judge it."""
    written = damaged(plan)
    if written is None:
        return None, []
    text, declared = written.text, readers(plan)
    try:
        events = read(text, declared, [text])
    except Exception as e:  # noqa: BLE001 - whatever is raised is what is looked for
        return written, [Fault(f"raises {type(e).__name__}", plan, text, str(e)[:200])]
    found = [Fault(kind, plan, text, detail[:300]) for kind, detail in Judge(written, events).faults()]
    for pieces in cuttings(text, plan.seed):
        try:
            other = read(text, declared, pieces)
        except Exception as e:  # noqa: BLE001 - as above
            return written, [*found, Fault(f"raises {type(e).__name__} in pieces", plan, text, str(e)[:200])]
        if other != events:
            first = next((f"{a} / {b}" for a, b in zip(events, other, strict=False) if a != b), "more events")
            found.append(Fault("cuttings differ", plan, text, first))
            break
    return written, found


# ---------------------------------------------------------------- judging


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


def _text_of(value: str | int) -> str:
    return value if isinstance(value, str) else str(value) if abs(value) < 10**9 else ""


def leaves(key: str, value: Any) -> Iterator[Leaf]:
    """The strings, numbers, words and keys in a value."""
    if isinstance(value, dict):
        for k, v in value.items():
            yield Leaf(key, k)
            yield from leaves(key, v)
    elif isinstance(value, list):
        for v in value:
            yield from leaves(key, v)
    else:
        yield Leaf(key, value)


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
        for event, _, _ in self.spans:
            if isinstance(event, CallEnd):
                yield from self._call(event, made)
        for number, times in made.items():
            if times > self._times(number):
                yield "called twice", str(self.written.calls[number])
        yield from self._neighbours()

    def _times(self, number: int) -> int:
        """How often a call is written: damage may double it."""
        own = [n for n, (call, _) in self.written.owner.items() if call == number]
        return max((self.text.count(BEGIN.format(n)) + self.text.count(f"9100{n:02d}") for n in own), default=1)

    def _source(self, event: Event) -> str:
        return event.call.raw if isinstance(event, CallEnd | CallError) else event.text  # type: ignore[union-attr]

    def _order(self) -> Iterator[tuple[str, str]]:
        begun: list[int] = []
        ended: list[int] = []
        for event in self.events:
            match event:
                case CallStart(index):
                    begun.append(index)
                case CallEnd(index):
                    ended.append(index)
                    if begun[-1:] != [index]:
                        yield "ended and never begun", repr(event)
                case CallError(index):
                    ended.append(index)
                case _:
                    pass
        if ended != list(range(len(ended))) or not set(begun) <= set(ended):
            yield "begun and ended otherwise", f"{begun} {ended}"

    def _call(self, event: CallEnd, made: Counter[int]) -> Iterator[tuple[str, str]]:
        """What is wrong with a call that would be executed."""
        w, call = self.written, event.call
        said = f"{call.name} {dict(call.arguments)} {event.repairs}"
        if re.sub("[_-]", "", call.name).casefold() not in re.sub("[_-]", "", self.text).casefold():
            yield "a name that is not there", said
        if not runs(call):
            return
        found = [leaf for k, v in call.arguments.items() for leaf in (Leaf(k, k), *leaves(k, v))]
        numbers = {n for leaf in found for n in leaf.numbers}
        whose = {w.owner[n][0] for n in numbers if n in w.owner}
        glued = [leaf for leaf in found if len({w.owner[n][0] for n in leaf.numbers if n in w.owner}) > 1]
        if len(whose) > 1 and not (glued and all(balanced(str(leaf.value)) for leaf in glued)):
            yield "two calls in one", said
        if any(n in w.inner and w.inner[n] not in numbers and not self._outer_hurt(n) for n in numbers):
            yield "a quoted call is made", said
        raw = {int(a or b or c) for a, b, c in MARKS.findall(call.raw)}
        if lost := {n for n in raw - numbers if n not in w.inner and n not in w.touched}:
            yield "written, and not among the arguments", f"{sorted(lost)} {said}"
        for number in whose:
            made[number] += 1
            if call.name != w.calls[number].name and call.name.casefold() != w.calls[number].name.casefold():
                if number not in w.hurt or call.name in {t.name for t in CALLED}:
                    yield "another tool", said
        for leaf in found:
            for kind in self._leaf(leaf, event):
                yield kind, said

    def _outer_hurt(self, inner: int) -> bool:
        return self.written.owner[self.written.inner[inner]][0] in self.written.hurt

    def _leaf(self, leaf: Leaf, event: CallEnd) -> Iterator[str]:
        """What is wrong with one value of a call."""
        w = self.written
        numbers = [n for n in leaf.numbers if n not in w.inner]
        if not numbers:
            return
        text = str(leaf.value)
        own = numbers[0]
        if len(set(numbers)) > 1:
            if own not in w.touched and len(set(numbers) - w.touched) > 1 and not balanced(text):
                yield "two values in one"
            return
        whole = w.values[own]
        if own in w.touched:
            yield from self._touched(own, text, event)
        elif BEGIN.format(own) in text and END.format(own) not in text:
            yield "a value is cut off"
        elif leaf.key != w.owner[own][1] and w.owner[own][0] not in w.rekeyed and w.owner[own][0] not in w.hurt:
            yield "under another key"
        elif text != whole and (without_surrogates(text) != whole or not event.repairs):
            around = text.replace(whole, "", 1)
            if around == text:
                yield "a value is altered"
            elif not any(around.strip() in i for i in w.inserted) and not balanced(around):
                yield "markup in a value"
            elif not around.strip() and not event.repairs and not w.inserted:
                yield "white space in a value"

    def _touched(self, number: int, text: str, event: CallEnd) -> Iterator[str]:
        """A damaged value of a call that is made: as it was written, or by a named repair, and never without its end."""
        w = self.written
        now = [t.text for t in w.tokens if t.value == number]
        if BEGIN.format(number) in text and END.format(number) not in text and any(END.format(number) in t for t in now):
            yield "a damaged value is cut off"
        elif not event.repairs and not any(text in _readings(t) or t.strip() in text for t in now):
            yield "a damaged value is altered and no repair is named"

    def _neighbours(self) -> Iterator[tuple[str, str]]:
        """Calls that no damage touched are read as they were meant."""
        w = self.written
        if w.quotes:
            return
        ends = [e for e, _, _ in self.spans if isinstance(e, CallEnd)]
        at = 0
        for number, call in enumerate(w.calls):
            if number in w.hurt:
                continue
            hit = next((i for i in range(at, len(ends)) if equal(ends[i].call, call)), None)
            if hit is not None:
                at = hit + 1
                if ends[hit].repairs and not any(equal(e.call, call) and not e.repairs for e in ends):
                    yield "a sound call is repaired", f"{ends[hit].repairs} {call}"
            elif self._covered(number, refused=True):
                yield "a neighbour is lost in a call with invalid arguments", str(call)
            elif not self._covered(number):
                yield ("a neighbour is lost without an error" if w.done else "an undamaged text is misread"), str(call)
            elif not w.done and not any(c.quoting for c in w.plan.calls):
                yield "an undamaged text is refused", str(call)

    def _covered(self, number: int, *, refused: bool = False) -> bool:
        """Whether an error covers some of what was written for a call; or a call whose arguments will be refused."""
        at, start, end = 0, -1, -1
        for token in self.written.tokens:
            if token.call == number:
                start = at if start < 0 else start
                end = at + len(token.text)
            at += len(token.text)
        over = [e for e, a, b in self.spans if a < end and b > start]
        if refused:
            return any(isinstance(e, CallEnd) and not runs(e.call) for e in over)
        return any(isinstance(e, CallError) for e in over)


def _readings(text: str) -> set[str]:
    """What a damaged value may mean as it stands: the characters, or what they are in a JSON or Python string."""
    text = without_surrogates(text)
    out = {text, text.strip(), html.unescape(text)}
    for one in list(out):
        for loads in (lambda t: json.loads(f'"{t}"', strict=False), json.loads):
            try:
                out.add(str(without_surrogates(loads(one))))
            except (ValueError, RecursionError):
                continue
        out |= {_unescaped(one), _unescaped(_unescaped(one))}
    return out


def _unescaped(text: str) -> str:
    """What stands in a string with the escapes that JSON and Python share; what is no escape of theirs stays."""
    return _ESCAPE.sub(lambda m: _ESCAPES.get(m[1][:1]) or chr(int(m[1][1:], 16)), text)


_ESCAPE = re.compile(r"\\([nrt\"'\\/]|u[0-9a-fA-F]{4})")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "\\": "\\", "/": "/"}


def balanced(text: str) -> bool:
    """Whether every tag in a value that is closed is opened there, and the other way round."""
    found = re.findall(r"<(/?)([^\s<>/=|]+)", text)
    return Counter(n for c, n in found if c) == Counter(n for c, n in found if not c)


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


# ---------------------------------------------------------------- shrinking


def smaller(of: Plan) -> Iterator[Plan]:
    """Plans like this one with something less."""
    for i in range(len(of.damages)):
        yield replace(of, damages=of.damages[:i] + of.damages[i + 1 :])
    for i in range(len(of.calls)):
        if len(of.calls) > 1:
            yield replace(of, calls=of.calls[:i] + of.calls[i + 1 :], prose=of.prose[:i] + of.prose[i + 1 :])
    if of.thought:
        yield replace(of, thought="")
    for i, said in enumerate(of.prose):
        if said:
            yield replace(of, prose=(*of.prose[:i], "", *of.prose[i + 1 :]))
    for i, call in enumerate(of.calls):
        if call.quoting:
            yield _with(of, i, replace(call, quoting=""))
        for j, content in enumerate(call.contents):
            if content:
                yield _with(of, i, replace(call, contents=(*call.contents[:j], "", *call.contents[j + 1 :])))
        for tool in ("ping", "note", "ask", "add"):
            if len(tool) < len(call.tool.name) or len(call.tool.parameters["properties"]) > 1:
                yield _with(of, i, replace(call, tool=next(t for t in CALLED if t.name == tool)))


def _with(of: Plan, i: int, call: Any) -> Plan:
    return replace(of, calls=(*of.calls[:i], call, *of.calls[i + 1 :]))


def shrunk(fault: Fault, tries: int = 400) -> Fault:
    """The smallest text found that has the same kind of fault."""
    done = 0
    while True:
        for candidate in smaller(fault.plan):
            for seed in range(fault.plan.seed, fault.plan.seed + 4):
                done += 1
                found = fuzz(replace(candidate, seed=seed))[1]
                hit = next((f for f in found if f.kind == fault.kind and len(f.text) <= len(fault.text)), None)
                if hit or done > tries:
                    break
            if hit or done > tries:
                break
        else:
            return fault
        if hit is None:
            return fault
        fault = hit


# ---------------------------------------------------------------- many


@dataclass(slots=True)
class Tally:
    """What many texts showed."""

    texts: int
    unwritten: int
    by_format: Counter[str]
    by_damage: Counter[str]
    outcomes: Counter[str]
    faults: Counter[tuple[str, str, str]]
    examples: dict[tuple[str, str, str], Fault]

    @classmethod
    def empty(cls) -> Tally:
        return cls(0, 0, Counter(), Counter(), Counter(), Counter(), {})

    def add(self, other: Tally) -> None:
        """Take in what another process found."""
        self.texts += other.texts
        self.unwritten += other.unwritten
        for mine, more in (
            (self.by_format, other.by_format),
            (self.by_damage, other.by_damage),
            (self.outcomes, other.outcomes),
            (self.faults, other.faults),
        ):
            mine.update(more)  # type: ignore[arg-type]
        for key, fault in other.examples.items():
            if key not in self.examples or len(fault.text) < len(self.examples[key].text):
                self.examples[key] = fault


def run(seeds: range) -> Tally:
    """Fuzz the texts of these seeds."""
    tally = Tally.empty()
    for seed in seeds:
        of = plan(seed)
        written, faults = fuzz(of)
        if written is None:
            tally.unwritten += 1
            continue
        tally.texts += 1
        tally.by_format[of.format.name] += 1
        tally.by_damage.update(written.done or ["none"])
        for fault in faults:
            key = (fault.kind, of.format.name, "+".join(written.done) or "none")
            tally.faults[key] += 1
            if key not in tally.examples or len(fault.text) < len(tally.examples[key].text):
                tally.examples[key] = fault
    return tally


def many(texts: int, seed: int, processes: int) -> Tally:
    """Fuzz so many texts in so many processes; the same seed gives the same texts."""
    size = 2000
    first = seed * 1_000_000_000
    parts = [range(first + i, first + min(i + size, texts)) for i in range(0, texts, size)]
    total = Tally.empty()
    with multiprocessing.Pool(processes) as pool:
        for part in pool.imap_unordered(run, parts):
            total.add(part)
    return total


def report(tally: Tally, show: int) -> None:
    """Print counts, and of each kind of fault the smallest texts."""
    print(f"{tally.texts} texts, {tally.unwritten} plans that their format cannot carry")
    print("formats:", dict(tally.by_format.most_common()))
    print("damages:", dict(tally.by_damage.most_common()))
    kinds: Counter[str] = Counter()
    for (kind, _, _), n in tally.faults.items():
        kinds[kind] += n
    print("faults:", dict(kinds.most_common()))
    for kind, n in kinds.most_common():
        mine = Counter({k: v for k, v in tally.faults.items() if k[0] == kind})
        print(f"\n=== {kind}: {n}")
        print("   formats:", dict(_by(mine, 1).most_common(60)))
        print("   damages:", dict(_by(mine, 2).most_common(14)))
        seen: set[str] = set()
        for key in sorted(mine, key=lambda k: len(tally.examples[k].text)):
            if key[1] not in seen and len(seen) < show:
                seen.add(key[1])
                fault = shrunk(tally.examples[key])
                print(
                    f"   {key[1]} [{'+'.join(fault.plan.damages)}] seed {fault.plan.seed}\n      {fault.text[:900]!r}"
                )
                print(f"      -> {fault.detail}")


def _by(counts: Counter[tuple[str, str, str]], place: int) -> Counter[str]:
    out: Counter[str] = Counter()
    for key, n in counts.items():
        out[key[place]] += n
    return out


def main() -> int:
    """Run the fuzz as the words say."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--texts", type=int, default=20_000)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--processes", type=int, default=2)
    words.add_argument("--show", type=int, default=3, help="smallest texts to print of each kind of fault")
    given = words.parse_args()
    start = time.monotonic()
    tally = many(given.texts, given.seed, given.processes)
    report(tally, given.show)
    print(f"\n{time.monotonic() - start:.0f} s; {sum(tally.faults.values())} faults")
    return 1 if tally.faults else 0


if __name__ == "__main__":
    raise SystemExit(main())
