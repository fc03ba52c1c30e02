"""Which calls of a damaged text must be answered for, whatever the damage: those that the text plainly writes.

Such a call's own opening stands intact, which nothing but calls has, and behind it its tool's name, with nothing of
prose between them. See `damaged_texts` for what is known of each text.

    python tests/support/lost_calls.py 20000 1      so many texts, of that seed
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

import fuzz
from damaged_texts import CALLED, Written
from damages import damaged, plan
from judging import Judge

from agentkit.events import CallEnd, CallError, Text
from agentkit.formats.format import NameTag, Shape, ToolElement, edge
from agentkit.formats.openers import weak
from agentkit.formats.reader import pattern

HIDDEN = "\x01"
"""Stands for every character that was written for another call or for a value."""


@cache
def opening(shape: Shape) -> re.Pattern[str] | None:
    """What calls of this shape begin with, or their section; None where that is common in prose, or is a tool's tag."""
    first = next(part for part in shape.call if not isinstance(part, str) or part.strip())
    match first:
        case str():
            return None if weak(first) else re.compile(pattern(first.strip()))
        case NameTag():
            return re.compile(rf"<{re.escape(first.name)}(?=[\s/>])")
        case _ if shape.section is None or weak(shape.section.open):
            return None
        case _:
            return re.compile(pattern(edge(shape.section.open).strip()))


def _written_for(out: Written, number: int) -> str:
    """The text, of which only this call's markup can be seen, and that around several calls."""
    seen = (t.text if t.call in (number, -2) and t.value < 0 else HIDDEN * len(t.text) for t in out.tokens)
    return "".join(seen)


def plainly(out: Written, number: int) -> tuple[int, int] | None:
    """Where a call's opening and its tool's name stand; None where one of them does not."""
    text, seen, name = out.text, _written_for(out, number), out.calls[number].name
    element = next((p for p in out.plan.shape.call if isinstance(p, ToolElement)), None)
    if element is not None:
        tool = next(t for t in CALLED if t.name == name).with_element(element.layout)
        assert tool.element is not None
        found = re.search(rf"<{re.escape(tool.element.tag)}(?=[\s/>])", seen)
        return found.span() if found else None
    if (begins := opening(out.plan.shape)) is None:
        return None
    named = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])")
    for start in begins.finditer(seen):
        for end in named.finditer(text, start.end()):
            if seen[end.start() : end.end()] == name:
                return start.start(), end.end()
    return None


class Answered(Judge):
    """Holds a reading against the calls that must be answered for."""

    def asked(self) -> Iterator[tuple[int, int]]:
        """Where the calls stand that the text plainly writes, outside of code and thinking: opening to name."""
        hidden, shut, quoted = self._hidden_from(), self._shut(), self._let_out()
        for number in range(len(self.written.calls)):
            start, end = self._where(number)
            if 0 <= start < shut and end <= hidden and number <= quoted:
                place = plainly(self.written, number)
                yield from [place] if place is not None else []

    def _let_out(self) -> int:
        """The first call of which damage let a value with a code fence out into prose: it quotes what follows."""
        for token, at, end in self._tokens:
            out = token.value >= 0 and "`" in token.text
            if out and any(isinstance(e, Text) and a < end and b > at for e, a, b in self.spans):
                return token.call
        return len(self.written.calls)

    def lost(self, start: int, end: int) -> bool:
        """Whether what stands there is text: no call is made of it, and no error tells of it."""
        return not any(isinstance(e, CallEnd | CallError) and a < end and b > start for e, a, b in self.spans)


@dataclass(slots=True)
class Answers:
    """How many calls had to be answered for, and what became text: by format and damage, and a text of each."""

    asked: int = 0
    lost: Counter[tuple[str, str]] = field(default_factory=Counter)
    texts: dict[tuple[str, str], str] = field(default_factory=dict)


def answers(seeds: range) -> Answers:
    """Read the damaged texts of these seeds, whole: each in its own format."""
    found = Answers()
    for seed in seeds:
        of = plan(seed)
        if (out := damaged(of)) is None:
            continue
        judge = Answered(out, fuzz.read(out.text, (of.format,), [out.text]))
        for start, end in judge.asked():
            found.asked += 1
            if judge.lost(start, end):
                key = (of.format.name, "+".join(out.done))
                found.lost[key] += 1
                found.texts[key] = min(found.texts.get(key, out.text), out.text, key=len)
    return found


def main() -> int:
    """Print what is lost of so many texts, by format and damage."""
    total, seed = (int(word) for word in (sys.argv[1:] + ["20000", "1"][len(sys.argv) - 1 :]))
    found = answers(range(seed * fuzz.SEEDS, seed * fuzz.SEEDS + total))
    print(f"{found.asked} calls stand plainly in {total} texts; {sum(found.lost.values())} became text")
    for (format, damage), count in found.lost.most_common():
        print(f"{count} {format} [{damage}] {found.texts[format, damage][:600]!r}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
