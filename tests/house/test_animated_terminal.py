"""The picture of a chat that plays: its frames, its time, and what its program replaces."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def docs() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(DOCS))
        import animated_terminal
        import record_picture

        yield animated_terminal, record_picture
    for name in ("animated_terminal", "record_picture", "recording"):
        sys.modules.pop(name, None)


def test_a_long_wait_is_played_in_the_longest_time_and_the_rest_as_it_was(docs: Any) -> None:
    clock = docs[1].Clock()
    clock.waited(10, 10 + 4 * docs[1].LONGEST)
    clock.waited(100, 100 + docs[1].LONGEST)
    assert clock.played(10) == 10
    assert clock.played(10 + 2 * docs[1].LONGEST) == 10 + docs[1].LONGEST / 2
    assert clock.played(200) == 200 - 3 * docs[1].LONGEST


def test_a_frame_that_is_shown_too_briefly_is_replaced_by_the_next_one(docs: Any) -> None:
    assert docs[0].cut([(5.0, "a"), (6.0, "b"), (6.01, "c"), (8.0, "c"), (9.0, "d")], step=0.06) == [
        (0.0, "a"),
        (1.0, "c"),
        (4.0, "d"),
    ]


def test_each_frame_is_shown_from_its_time_and_a_line_is_drawn_once(docs: Any) -> None:
    run = docs[0].Run
    prompt, answer = (run(0, "you>", "#fff", "", "b"),), (run(2, "<a> & ⎿", "#fff", "", ""),)
    film = [(0.0, ((), prompt, (), ())), (6.0, ((), prompt, answer, ()))]
    picture = docs[0].drawn(film, 20, "title", "label")
    assert "0.00%{transform:translateY(0px)}60.00%{transform:translateY(-38px)}" in picture
    assert picture.count(">you&gt;</text>") == 1
    assert picture.count('href="#l0"') == 2
    assert "&lt;a&gt; &amp; └" in picture
