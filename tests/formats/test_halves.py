"""Half a call and then a whole one: whatever runs is one of the two as it was written, never a mixture of both."""

from __future__ import annotations

from itertools import product

import pytest
from corpora import source

from agentkit import ToolRegistry, formats, openapi_schema, xml_schema
from agentkit.events import CallEnd, CallError, Event
from agentkit.formats import CATALOG, Format
from agentkit.messages import ToolCall


class _Files:
    @openapi_schema
    @xml_schema(elements=["path", "mode"])
    def read(self, path: str, mode: str = "r") -> str:
        """Read a file."""
        return path

    @openapi_schema
    @xml_schema(elements=["path", "mode"])
    def delete(self, path: str, mode: str = "r") -> str:
        """Delete a file."""
        return path

    @openapi_schema
    @xml_schema
    def clean(self, path: str = "/") -> str:
        """Empty a folder."""
        return path

    @openapi_schema
    @xml_schema
    def ping(self) -> str:
        """Answer."""
        return "pong"


REGISTRY = ToolRegistry(_Files())
TOOLS = REGISTRY.specs()
PAIRS = [
    (ToolCall("", "delete", {"path": "old.txt"}), ToolCall("", "read", {"path": "new.txt"})),
    (ToolCall("", "read", {"path": "old.txt"}), ToolCall("", "delete", {"path": "new.txt", "mode": "y"})),
    (ToolCall("", "delete", {"path": "old.txt", "mode": "x"}), ToolCall("", "read", {"path": "new.txt"})),
    (ToolCall("", "delete", {"path": "old.txt"}), ToolCall("", "delete", {"path": "new.txt", "mode": "y"})),
    (ToolCall("", "ping", {}), ToolCall("", "delete", {"path": "new.txt"})),
    (ToolCall("", "delete", {"path": "new.txt"}), ToolCall("", "ping", {})),
    (ToolCall("", "clean", {"path": "old"}), ToolCall("", "clean", {"path": "new"})),
    (ToolCall("", "clean", {"path": "old"}), ToolCall("", "ping", {})),
]
BETWEEN = ["", "\n", " oops, again: ", "\n\n", "\n\nSorry, again:\n", "...\n"]


def valid(call: ToolCall) -> bool:
    """Return True if the tool would run; a call that its schema refuses is an error for the model."""
    try:
        REGISTRY.tools[call.name].validate(dict(call.arguments), lenient=True)
    except (KeyError, ValueError):
        return False
    return True


def check(text: str, format: Format, written: tuple[ToolCall, ToolCall]) -> list[Event]:
    events = formats.parse(text, format, TOOLS)
    assert source(events) == text
    run = [(e.call.name, dict(e.call.arguments)) for e in events if isinstance(e, CallEnd) and valid(e.call)]
    assert [r for r in run if r not in [(c.name, dict(c.arguments)) for c in written]] == [], text
    return events


@pytest.mark.share(12)
@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
def test_half_a_call_lends_nothing_to_the_whole_one_after_it(format: Format) -> None:
    """Every cut of the first, each with the next of what may be written between."""
    first, second = PAIRS[0]
    half, whole = (formats.render_calls(format, [call], TOOLS) for call in PAIRS[0])
    for cut in range(1, len(half)):
        check(half[:cut] + BETWEEN[cut % 3] + whole, format, (first, second))


@pytest.mark.share(12)
@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
def test_half_a_call_does_not_run_without_the_arguments_that_it_lacks(format: Format) -> None:
    """Its tool needs none of them, so that nothing but what follows says that it is half a call."""
    for (first, second), between in product(PAIRS[-2:], ("", "\n", " and ")):
        half, whole = (formats.render_calls(format, [call], TOOLS) for call in (first, second))
        for cut in range(1, len(half)):
            check(half[:cut] + between + whole, format, (first, second))


@pytest.mark.soak
@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
def test_half_a_call_lends_nothing_to_any_other(format: Format) -> None:
    for (first, second), between in product(PAIRS, BETWEEN):
        half, whole = (formats.render_calls(format, [call], TOOLS) for call in (first, second))
        for cut in range(1, len(half)):
            check(half[:cut] + between + whole, format, (first, second))
            check(half[cut:] + between + whole, format, (first, second))
            check(whole + between + half[:cut], format, (first, second))


@pytest.mark.parametrize(
    "header",
    [
        "<|channel|>commentary to=functions.read <|constrain|>json",
        "<|channel|>commentary to=functions.read code",
        "<|channel|>analysis to=functions.read",
        "<|start|>assistant to=functions.read<|channel|>commentary <|constrain|>json",
        "<|start|>assistant to=functions.read<|channel|>commentary json",
    ],
)
def test_what_a_header_has_besides_the_name_is_no_part_of_the_call(header: str) -> None:
    (end,) = (
        e
        for e in formats.parse(f'{header}<|message|>{{"path": "a"}}<|call|>', "harmony", TOOLS)
        if isinstance(e, CallEnd | CallError)
    )
    assert isinstance(end, CallEnd)
    assert (end.call.name, end.call.arguments) == ("read", {"path": "a"})
