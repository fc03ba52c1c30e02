"""The reader runs nothing that it did not run before: real and directed texts against the recorded readings.

A text may be refused that was read; how many are is bounded, for real ones. What is to be read otherwise stands in
`ACCEPTED`, with the reason. Here one text of several is read; `make soak` reads all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from itertools import islice
from zlib import crc32

import pytest
from recorded_readings import Reading, Row, compared, directed, real, recorded
from recordings import ABSENT

DECORATED = (
    "directed 1183 pythonic",
    "directed 1184 llama3_json",
    "directed 1185 xlam",
    "directed 1186 pythonic",
)
ACCEPTED: Mapping[str, str] = {
    "directed 419 glm45": "the family's template writes no line break around a value: it is the value's",
    **dict.fromkeys(DECORATED, "a module before a tool's name is decoration: the name fits one offered tool"),
    "directed 1261 glm4": "the call is whole; what follows it may be prose",
    "directed 1416 step3": "no markup is in the value, but for the end of a tag that any text may have",
    "directed 2102 deepseek_v32": "the family's template writes no line break around a value: it is the value's",
    "directed 198[68] minimax_m3": "the token in the value lacks letters: too few are left that only it has",
    "*parallel_186": "an opening that is written several times is markup (Hermes 2 Pro); what follows is read",
    "vectors_vllm.jsonl:54[34]*": "the first token of the opening belongs to the prompt (vllm#51977); vLLM reads it",
}
"""Texts in which a call is made that was not: the row's id (`*` for anything), and why it is right."""

SAME = 0.993
"""The least fraction of the real texts of which the same calls are read as before."""

PARTS = 8
ONE_OF = 4


def differences(rows: Iterable[tuple[Row, Reading | None]]) -> tuple[Counter[str], list[str]]:
    """How many texts are read in which way, and those in which there is a new call, or a cutting decides."""
    counts, wrong = Counter[str](), []
    for row, before in rows:
        how = "not recorded" if before is None else compared(row, before)
        counts[how] += 1
        if how in ("new", "cut") and not any(fnmatchcase(row.id, pattern) for pattern in ACCEPTED):
            wrong.append(f"{how}: {row.id}: {row.text[:300]!r}")
    return counts, wrong


def part(of: int, number: int) -> Iterable[tuple[Row, Reading | None]]:
    """One of so many parts of the real texts, with their readings."""
    known = recorded()
    return ((row, known.get(row.key)) for row in real() if crc32(row.id.encode()) % of == number)


def hold(counts: Counter[str], wrong: list[str]) -> None:
    print(dict(counts))
    if not counts.total():
        pytest.skip(ABSENT)
    assert wrong == []
    known = counts.total() - counts["not recorded"]
    assert counts["same"] + counts["other errors"] >= SAME * known, counts


def test_real_texts_run_nothing_that_they_did_not_run() -> None:
    hold(*differences(part(PARTS * ONE_OF, 0)))


@pytest.mark.soak
@pytest.mark.parametrize("number", range(PARTS))
def test_all_real_texts_run_nothing_that_they_did_not_run(number: int) -> None:
    hold(*differences(part(PARTS, number)))


@pytest.mark.share(2)
@pytest.mark.parametrize("number", range(2))
def test_directed_texts_run_nothing_that_they_did_not_run(number: int) -> None:
    counts, wrong = differences(islice(directed(), number, None, 2))
    print(dict(counts))
    assert wrong == []


def test_a_new_call_is_a_difference_and_a_refused_one_is_not() -> None:
    before = Reading(("a", "b"), 1)
    hows = [Reading(("a", "b"), 1), Reading(("a",), 2), Reading(("a",), 0), Reading(("b", "a", "b"), 0)]
    assert [reading.difference(before) for reading in hows] == ["same", "refused", "lost", "new"]
    assert all(fnmatchcase(row.id, pattern) is False for row, _ in directed() for pattern in ACCEPTED if pattern == "*")
