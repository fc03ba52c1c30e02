"""The same events for any cut, over every recorded text, and over recorded streams in their own chunks.

The normal run tries every text whole, by 1 and by 4 characters, at random places and at some 2-way splits; `make soak`
tries every 2-way split of all texts up to 400 characters.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
from corpora import Sample, calls_of, cut, equal, samples, source
from recordings import ABSENT, rows

from agentkit import formats
from agentkit.events import CallError, Event, Text, Thinking

SHORT = 400  # characters up to which every 2-way split is tried
SPLITS = 4  # 2-way splits of a text in the normal run
PARTS = 8  # into which the long runs are divided, so that they spread over processes

needs_data = pytest.mark.skipif(not samples(), reason=ABSENT)
STREAMS = [pytest.param(r, id=r["id"]) for r in rows("raw_streams.jsonl")] or [
    pytest.param(None, marks=pytest.mark.skip(ABSENT))
]


def by(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


def cuttings(sample: Sample, splits: int) -> Iterator[list[str]]:
    """The text by 1 character, by 4, as it came, at random places twice, and in two at some places.

    Which places is chosen by the sample's id: the same in every run.
    """
    text, chance = sample.text, random.Random(sample.id)
    yield by(text, 1)
    yield by(text, 4)
    yield list(sample.chunks) or [text]
    for _ in range(2):
        edges = sorted(chance.sample(range(len(text) + 1), min(9, len(text))))
        yield [text[a:b] for a, b in pairwise([0, *edges, len(text)])]
    places = range(1, len(text))
    for at in chance.sample(places, min(splits, len(places))):
        yield [text[:at], text[at:]]


def differences(found: Sequence[Sample], splits: int, chosen: object = None) -> list[str]:
    out = []
    for sample in found:
        whole = cut(sample, [sample.text], chosen)
        for chunks in cuttings(sample, splits if len(sample.text) <= SHORT else min(splits, SPLITS)):
            if cut(sample, chunks, chosen) != whole:
                out.append(f"{sample.id} ({sample.format.name}): {len(chunks)} chunks, the first {chunks[0]!r}")
                break
    return out


@needs_data
def test_no_cutting_changes_what_is_read() -> None:
    assert differences(samples(), SPLITS) == []


@needs_data
def test_no_cutting_changes_what_is_read_in_all_formats_at_once() -> None:
    assert differences(samples()[::20], 2, formats.auto()) == []


@needs_data
@pytest.mark.soak
@pytest.mark.parametrize("part", range(PARTS))
def test_no_2_way_split_changes_what_is_read(part: int) -> None:
    assert differences(samples()[part::PARTS], SHORT) == []


@needs_data
@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", range(PARTS))
def test_no_cutting_of_any_text_changes_what_is_read_in_all_formats_at_once(part: int) -> None:
    assert differences(samples()[part::PARTS], SPLITS, formats.auto()) == []


@needs_data
def test_no_character_of_any_text_is_lost() -> None:
    assert [s.id for s in samples() if source(cut(s, [s.text])) != s.text] == []
    assert [s.id for s in samples()[::10] if source(cut(s, [s.text], formats.auto())) != s.text] == []


@pytest.mark.parametrize("row", STREAMS)
def test_stream_gives_what_the_server_should_have_answered(row: dict[str, object]) -> None:
    (sample,) = [s for s in samples() if s.id == row["id"]]
    events = cut(sample, sample.chunks)
    expected = row["expected"]
    assert isinstance(expected, dict)
    calls = [(c["function"]["name"], json.loads(c["function"]["arguments"])) for c in expected["tool_calls"]]
    assert equal(calls_of(events), calls)
    assert [e for e in events if isinstance(e, CallError)] == []
    assert joined(events, Thinking) == expected["reasoning_content"]
    assert joined(events, Text).strip() == expected["normal_content"].strip()  # our white space around calls is markup


def joined(events: Sequence[Event], kind: type[Text] | type[Thinking]) -> str:
    return "".join(e.text for e in events if isinstance(e, kind))
