"""Of real texts, a native model's reply makes no call that it did not make, and loses none without being asked again.

What is to be read otherwise stands in `ACCEPTED`, with the reason. Here one text of several is read; `make soak` reads
all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from fnmatch import fnmatchcase
from zlib import crc32

import pytest
from recorded_recoveries import Recovered, compared, recovered, replies
from recordings import ABSENT

ACCEPTED: Mapping[str, str] = {
    "* simple_python_297": "the user's message is nothing but a call of the tool: it looks like a page that was pasted",
}
"""Replies that are read otherwise: the row's id (`*` for anything), and why that is right."""

PARTS = 8


def hold(of: int, number: int) -> None:
    known, counts, wrong = recovered(), Counter[str](), []
    for reply in replies():
        if crc32(reply.id.encode()) % of != number or reply.key not in known:
            continue
        how = compared(reply, known[reply.key])
        counts[how] += 1
        if how != "same" and not any(fnmatchcase(reply.id, pattern) for pattern in ACCEPTED):
            wrong.append(f"{how}: {reply.id}: {reply.text[:300]!r}")
    print(dict(counts))
    if not counts.total():
        pytest.skip(ABSENT)
    assert wrong == []


def test_a_part_of_the_real_replies() -> None:
    hold(PARTS, 0)


@pytest.mark.soak
@pytest.mark.parametrize("number", range(1, PARTS))
def test_all_real_replies(number: int) -> None:
    hold(PARTS, number)


def test_a_new_call_is_a_difference_and_so_is_a_lost_one() -> None:
    before = Recovered(("a", "b"), "-")
    hows = [Recovered(*of).difference(before) for of in ((("a", "b"), "-"), (("a", "b", "c"), "-"), (("a",), "q"))]
    assert hows == ["same", "new", "fewer calls, q"]
