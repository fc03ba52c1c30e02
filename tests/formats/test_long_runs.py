"""A value that is one long run of a character, as a model in a loop writes it, costs in proportion to its length."""

from __future__ import annotations

import itertools

import pytest
from format_tools import spec
from growth import cpu_seconds

from agentkit import formats
from agentkit.formats import CATALOG, Format
from agentkit.messages import ToolCall

SENTINEL = "sentinel"
RUNS = {
    "digits": "9",
    "digits and points": "9.",
    "blanks": " ",
    "odd white space": "\u2028",
    "entities": "&amp;",
    "sums": "1+",
}


@pytest.mark.share(20)
@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
def test_twice_the_run_takes_about_twice_the_time(format: Format) -> None:
    """Followed by a word, so that the value is damaged."""
    text = formats.render_calls(format, [ToolCall("", "wait", {"n": SENTINEL})], [spec("wait", n="string")])
    before, after = text.split(SENTINEL)
    if before.endswith('"') and after.startswith('"'):
        before, after = before[:-1], after[1:]

    def seconds(type: str, run: str, size: int) -> float:
        value = RUNS[run] * (size // len(RUNS[run]))
        return cpu_seconds(lambda: formats.parse(f"{before}{value} ms{after}", format, [spec("wait", n=type)]))

    for one in itertools.product(["integer", "object"], RUNS):
        grows = not any(seconds(*one, 8_000) <= 2.6 * max(seconds(*one, 4_000), 0.005) for _ in range(5))
        assert not grows, one
