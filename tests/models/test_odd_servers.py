"""Streams that real servers sent, in the shape in which public reports describe them: what must be read of each.

Each row of `data/odd_wires.jsonl` has its sources, the names of the offered tools, the events, and what they say: the
calls that run, as id, name and arguments; the codes of those that are refused; how many are read as no call of any
name; and the text.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streams import events_of

from agentkit.events import CallEnd, CallError, CallStart, Event, Text, UnreadCall
from agentkit.testing import Replay
from agentkit.testing.replay import Chunks
from agentkit.toolspec import ToolSpec

FILE = Path(__file__).parents[1] / "data" / "odd_wires.jsonl"
ROWS: list[dict[str, Any]] = [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]
CHUNKS: dict[str, Chunks] = {"whole": "whole", "bytes": 7}
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "path": {"type": "string"}}}


def sse(events: list[Any]) -> str:
    """The events as bytes on the wire have them; the closing line of a stream is a string."""
    return "".join(f"data: {e if isinstance(e, str) else json.dumps(e, ensure_ascii=False)}\n\n" for e in events)


def calls(found: list[Event]) -> list[list[Any]]:
    """The calls that run, in the order of their starts."""
    ends = {e.index: e.call for e in found if isinstance(e, CallEnd)}
    return [[c.id, c.name, dict(c.arguments)] for _, c in sorted(ends.items())]


@pytest.mark.parametrize("chunks", CHUNKS)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_what_a_real_server_sent_is_read(row: dict[str, Any], chunks: str) -> None:
    model = Replay([sse(row["stream"])], chunks=CHUNKS[chunks]).model(f"{row['api']}:m")
    found = events_of(model, tools=[ToolSpec(name, "", SCHEMA) for name in row["tools"]])
    assert calls(found) == row["calls"]
    assert [e.code for e in found if isinstance(e, CallError)] == row["errors"]
    assert sum(isinstance(e, UnreadCall) for e in found) == row["unread"]
    assert "".join(e.text for e in found if isinstance(e, Text)) == row["text"]
    assert sum(isinstance(e, CallStart) for e in found) == len(row["calls"]) + len(row["errors"])


def test_each_row_names_where_it_was_reported() -> None:
    assert all(row["source"] and all(link.startswith("https://") for link in row["source"]) for row in ROWS)
    assert len({row["id"] for row in ROWS}) == len(ROWS)
