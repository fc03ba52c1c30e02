"""What the reader read so far, as data: of each text, the calls that were made and how many errors there were.

A new reader may refuse what was read, and may run nothing that was not run: the calls that it makes of a text are among
the recorded ones. `data/readings_real.txt` has a line for each text that others wrote, without the text, which stays
where the data is: digest, number of errors, digests of the calls. `data/readings_directed.jsonl` has texts of this
project's own, from the tests of `formats` when the readings were recorded, with their formats and tools.

    python tests/support/recorded_readings.py            read every text, and print what differs
    python tests/support/recorded_readings.py --write    record what is read now
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from corpora import Sample, answers, samples

from agentkit import formats
from agentkit.events import CallEnd, CallError, Event, SourceEvent, merge
from agentkit.formats import Element, Format, Node, Parser, ToolSpec

DATA = Path(__file__).parents[1] / "data"
REAL, DIRECTED = DATA / "readings_real.txt", DATA / "readings_directed.jsonl"
AUTO = 8  # of so many answers one is also read in all formats at once; of the other texts, each is


@dataclass(frozen=True, slots=True)
class Row:
    """One text, and how it is read: in formats by name, with tools and options of the parser."""

    id: str
    formats: tuple[str, ...]
    tools: tuple[ToolSpec, ...]
    text: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The digest by which its reading is found."""
        return digest([self.formats, [tool_json(t) for t in self.tools], self.text, self.options], 6)

    def read(self, size: int = 0) -> list[Event]:
        """Its merged events, whole or in chunks of so many characters."""
        parser = Parser(_declared(self.formats), self.tools, **self.options)
        events: list[SourceEvent] = []
        for at in range(0, len(self.text) if size else 0, size or 1):
            events += parser.feed(self.text[at : at + size])
        return merge([*events, *parser.close("" if size else self.text)])


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of a text: digests of its calls, in order, and how many errors."""

    calls: tuple[str, ...]
    errors: int

    @classmethod
    def of(cls, events: Iterable[Event]) -> Reading:
        found = [*events]
        calls = (digest([e.call.name, dict(e.call.arguments)], 3) for e in found if isinstance(e, CallEnd))
        return cls(tuple(calls), sum(isinstance(e, CallError) for e in found))

    def difference(self, before: Reading) -> str:
        """How this differs from the reading before; `new` where a call is made that was not."""
        if Counter(self.calls) - Counter(before.calls):
            return "new"
        if self.calls == before.calls:
            return "same" if self.errors == before.errors else "other errors"
        return "refused" if self.errors else "lost"


def digest(value: object, size: int) -> str:
    """So many bytes of a value's SHA-256, as letters."""
    text = json.dumps(value, sort_keys=True, default=str)
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:size]).decode()


@cache
def _declared(names: tuple[str, ...]) -> tuple[Format, ...]:
    several = {("auto",): formats.auto, ("recoverable",): formats.recoverable}
    return several[names]() if names in several else tuple(map(formats.get, names))


# ---------------------------------------------------------------- the texts


def real() -> Iterator[Row]:
    """Every text at hand that others wrote, in its own format, and many in all formats."""
    every: Sequence[Sample] = samples()
    for sample in every:
        yield Row(sample.id, (sample.format.name,), sample.tools, sample.text)
        yield Row(f"{sample.id} auto", ("auto",), sample.tools, sample.text)
    for number, sample in enumerate(answers()):
        yield Row(sample.id, (sample.format.name,), sample.tools, sample.text)
        if number % AUTO == 0:
            yield Row(f"{sample.id} auto", ("auto",), sample.tools, sample.text, {"in_code": "reply"})


def tool_json(tool: ToolSpec) -> list[Any]:
    """A tool as JSON."""
    element = None if tool.element is None else asdict(tool.element)
    return [tool.name, tool.description, dict(tool.parameters), element]


def _tool(name: str, description: str, parameters: dict[str, Any], element: dict[str, Any] | None) -> ToolSpec:
    if element is None:
        return ToolSpec(name, description, parameters)
    nodes = tuple(Node(**{**node, "path": tuple(node["path"])}) for node in element["nodes"])
    return ToolSpec(name, description, parameters, Element(**{**element, "nodes": nodes}))


@cache
def directed() -> tuple[tuple[Row, Reading], ...]:
    """The recorded texts of this project's own, with their readings."""
    first, *lines = map(json.loads, DIRECTED.read_text().splitlines())
    tools = [_tool(*tool) for tool in first["tools"]]
    sets = [tuple(tools[i] for i in one) for one in first["sets"]]
    return tuple(
        (Row(f"directed {n} {'+'.join(names)}", tuple(names), sets[s], text, options), Reading(tuple(calls), errors))
        for n, (names, s, options, text, errors, calls) in enumerate(lines)
    )


@cache
def recorded() -> dict[str, Reading]:
    """The readings of texts that others wrote, by the text's digest."""
    found = {}
    for line in REAL.read_text().splitlines():
        key, errors, *calls = line.split()
        found[key] = Reading(tuple(calls), int(errors))
    return found


# ---------------------------------------------------------------- comparing and writing


def compared(row: Row, before: Reading) -> str:
    """How a text is read now: `same`, or what differs; `cut` where it is read otherwise in chunks of 4 characters."""
    events = row.read()
    return Reading.of(events).difference(before) if row.read(4) == events else "cut"


def write() -> None:
    """Record what is read now, of every text at hand; the directed texts stay the same."""
    found = {row.key: Reading.of(row.read()) for row in real()}
    lines = (" ".join([key, str(reading.errors), *reading.calls]) for key, reading in sorted(found.items()))
    REAL.write_text("".join(f"{line}\n" for line in lines))
    write_directed([row for row, _ in directed()])


def write_directed(texts: Sequence[Row]) -> None:
    """Record what is read now of these texts."""
    tools, sets, lines = dict[str, int](), dict[tuple[int, ...], int](), []
    for row in texts:
        own = tuple(tools.setdefault(_line(tool_json(tool)), len(tools)) for tool in row.tools)
        reading = Reading.of(row.read())
        number = sets.setdefault(own, len(sets))
        lines.append(_line([row.formats, number, row.options, row.text, reading.errors, reading.calls]))
    head = f'{{"tools":[{",".join(tools)}],"sets":{_line([*sets])}}}'
    DIRECTED.write_text("".join(f"{line}\n" for line in [head, *lines]))


def _line(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def main() -> int:
    """Read every text and print what differs, or record it."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--write", action="store_true", help="record what is read now")
    if words.parse_args().write:
        write()
        return 0
    known, counts = recorded(), {"real": Counter[str](), "directed": Counter[str]()}
    both = [("real", row, known.get(row.key)) for row in real()]
    both += [("directed", row, reading) for row, reading in directed()]
    for kind, row, before in both:
        how = "not recorded" if before is None else compared(row, before)
        counts[kind][how] += 1
        if how not in ("same", "not recorded"):
            print(f"{how}: {row.id}: {row.text[:300]!r}")
    for kind, count in counts.items():
        print(f"{kind}: {dict(count.most_common())}")
    return int(any(count["new"] or count["cut"] for count in counts.values()))


if __name__ == "__main__":
    raise SystemExit(main())
