"""What is read of real texts as a native model's, as data: of each, the calls that were made, and what was told else.

Companion of `recorded_readings`, one room higher: here decides where a call stands, whether it is complete, and whether
what the model has read shows it. `data/recoveries_real.txt` has a line for each text, without the text, which stays
where the data is: its digest, marks (`q`: a call was quoted from the conversation, `u`: an unread call, `-`: neither),
and the digests of its calls.

    python tests/support/recorded_recoveries.py            read every text, and print what differs
    python tests/support/recorded_recoveries.py --write    record what is read now
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final
from zlib import crc32

from corpora import answers, emissions, specs
from recorded_readings import DATA, Reading, digest, tool_json
from recordings import rows

from agentkit.events import CallEnd, CallQuoted, Event, Finish, Text, UnreadCall
from agentkit.formats import ToolSpec
from agentkit.messages import Message, user
from agentkit.processor import ResponseProcessor
from agentkit.tool.registry import ToolRegistry

RECOVERIES: Final = DATA / "recoveries_real.txt"
ONE_OF: Final = 4  # of so many answers to the leaderboard's cases one is read
_NAMED: Final = re.compile(
    r"<function=([\w.-]+)|[\"']name[\"']\s*:\s*[\"']([\w.-]+)|<invoke name=\"([\w.-]+)|^<(\w+)>$", re.M
)
_NO_TOOLS: Final = ToolRegistry()


@dataclass(frozen=True, slots=True)
class Reply:
    """A text as a native model's reply: the tools that it was offered, and what it had been asked."""

    id: str
    tools: tuple[ToolSpec, ...]
    text: str
    asked: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The digest by which its reading is found."""
        return digest([[tool_json(t) for t in self.tools], self.text, self.asked], 6)

    def read(self, size: int = 0) -> list[Event]:
        """The events of the response, whole or in chunks of so many characters. No tool runs: none is registered."""
        pieces = [self.text[at : at + size] for at in range(0, len(self.text), size)] if size else [self.text]
        heard: Sequence[Message] = [*map(user, self.asked)]

        async def events() -> list[Event]:
            numbers = iter(range(10_000))
            processor = ResponseProcessor(_NO_TOOLS, untrusted=lambda: heard, new_id=lambda: f"c{next(numbers)}")
            turn = processor.process([*map(Text, pieces), Finish("stop")], offered=self.tools)
            return [event async for event in turn]

        return asyncio.run(events())


@dataclass(frozen=True, slots=True)
class Recovered:
    """What was read of a reply."""

    calls: tuple[str, ...]
    marks: str

    @classmethod
    def of(cls, events: Sequence[Event]) -> Recovered:
        """The reading that these events are."""
        calls = tuple(digest([e.call.name, dict(e.call.arguments)], 3) for e in events if isinstance(e, CallEnd))
        marks = "q" * any(isinstance(e, CallQuoted) for e in events)
        return cls(calls, (marks + "u" * any(isinstance(e, UnreadCall) for e in events)) or "-")

    def difference(self, before: Recovered) -> str:
        """How this differs from the reading before; `new` where a call is made that was not."""
        how = Reading(self.calls, 0).difference(Reading(before.calls, 0))
        if how == "same":
            return how if self.marks == before.marks else f"marks {before.marks} → {self.marks}"
        return how if how == "new" else f"fewer calls, {self.marks}"


def replies() -> Iterator[Reply]:
    """Every text at hand that others wrote, and one of several answers to the leaderboard's cases."""
    for row in [*rows("raw_outputs.jsonl"), *rows("raw_streams.jsonl")]:
        yield Reply(row["id"], specs(row.get("tools")) or tools_named(row), row["text"])
    for emission in emissions():
        yield Reply(f"template {emission.template}", emission.tools, emission.text)
    questions = {case["id"]: tuple(map(_said, case["messages"])) for case in rows("bfcl_cases.jsonl")}
    for sample in answers():
        model, case = sample.id.rsplit(" ", 1)
        if model == "malformed" or crc32(sample.id.encode()) % ONE_OF == 0:
            yield Reply(sample.id, sample.tools, sample.text, questions.get(case, ()))


def _said(message: Mapping[str, Any]) -> str:
    return str(message["content"])


def tools_named(row: Mapping[str, Any]) -> tuple[ToolSpec, ...]:
    """The tools that a text without a list of tools calls."""
    found = [next(filter(None, groups)) for groups in _NAMED.findall(row["text"])]
    return tuple(ToolSpec(name, "", {"type": "object"}) for name in dict.fromkeys(found))


@cache
def recovered() -> dict[str, Recovered]:
    """The recorded readings, by the digests of the texts."""
    lines = map(str.split, RECOVERIES.read_text().splitlines())
    return {key: Recovered(tuple(calls), marks) for key, marks, *calls in lines}


def compared(reply: Reply, before: Recovered) -> str:
    """How a reply is read now: `same`, or what differs; `cut` where it is read otherwise in chunks of 4 characters."""
    now = Recovered.of(reply.read())
    return now.difference(before) if Recovered.of(reply.read(4)) == now else "cut"


def write() -> None:
    """Record what is read now."""
    found = {reply.key: Recovered.of(reply.read()) for reply in replies()}
    lines = (" ".join([key, reading.marks, *reading.calls]) for key, reading in sorted(found.items()))
    RECOVERIES.write_text("".join(f"{line}\n" for line in lines))


def main() -> int:
    """Read every text and print what differs, or record it."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--write", action="store_true", help="record what is read now")
    if words.parse_args().write:
        write()
        return 0
    known, counts = recovered(), Counter[str]()
    for reply in replies():
        how = "not recorded" if reply.key not in known else compared(reply, known[reply.key])
        counts[how] += 1
        if how not in ("same", "not recorded"):
            print(f"{how}: {reply.id}: {reply.text[:300]!r}")
    print(dict(counts.most_common()))
    return int(any(counts[how] for how in ("new", "cut")))


if __name__ == "__main__":
    raise SystemExit(main())
