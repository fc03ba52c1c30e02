"""What is looked for in whole values: the same as without its common beginning, and as fast as one search for that."""

import re
from collections.abc import Callable

import pytest
from growth import cpu_seconds

from agentkit.formats import CATALOG
from agentkit.formats.format import Pairs, Shape, TagParameters
from agentkit.formats.tags import either
from agentkit.formats.valueends import end_of_value

CODE = '    if (a && b < c) { return x->y["k"]; }\n'
ENDED = [(s, p) for f in CATALOG for s in f.shapes for p in s.call if isinstance(p, Pairs | TagParameters)]


def seconds(run: Callable[[], object]) -> float:
    """The least CPU time of several runs."""
    return min(cpu_seconds(run) for _ in range(7))


@pytest.mark.parametrize(("shape", "part"), ENDED)
def test_a_search_for_what_ends_values_does_not_try_every_character(shape: Shape, part: Pairs | TagParameters) -> None:
    end, text = end_of_value(shape, part), CODE * 2000
    assert end.own is not None
    slow = re.compile(r"(?P<close></parameter>)|<parameter", re.IGNORECASE)  # tried at every character
    for quick in filter(None, (end.own, end.calls)):
        assert quick.search(text) is None
        assert seconds(lambda: quick.search(text)) < seconds(lambda: slow.search(text)) / 2, quick.pattern  # noqa: B023


@pytest.mark.parametrize("closing", [["</ab>"], ["</ab>", "</cd>"], ["[/ab]"], ["</ab>", "END"]])
@pytest.mark.parametrize("opening", ["<ab>", "<a[bc]>", "x<ab>"])
def test_both_ways_to_write_alternatives_find_the_same(closing: list[str], opening: str) -> None:
    text = "<ab>1</ab><ac>x<ab> </cd>END[/ab]<<ab></ab></ ab>abc"
    escaped = [re.escape(one) for one in closing]
    naive = re.compile(f"(?P<close>{'|'.join(escaped)})|{opening}")
    written = re.compile(either("close", escaped, opening))
    assert [f.span() for f in written.finditer(text)] == [f.span() for f in naive.finditer(text)]
    assert [bool(f["close"]) for f in written.finditer(text)] == [bool(f["close"]) for f in naive.finditer(text)]
