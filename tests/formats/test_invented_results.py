"""A tool's result, or another role's turn, that a model writes is not part of its reply."""

from __future__ import annotations

import pytest

from agentkit import formats
from agentkit.events import CallEnd, CallError, Event, InventedResult, Markup, Text, Thinking, merge
from agentkit.formats import CATALOG, Format, Parser, ToolSpec, parse, render_calls, render_result
from agentkit.formats.asides import LITERALS
from agentkit.messages import ToolCall

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = (ToolSpec("get_weather", "Weather.", CITY),)
CALL = ToolCall("", "get_weather", {"city": "Ulm"})
TURNS = [mark for mark, aside in LITERALS.items() if not aside.paragraph]


def calls(events: list[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, CallEnd | CallError)]


def by_character(text: str, format: Format) -> list[Event]:
    parser = Parser(format, TOOLS)
    return merge([*(event for c in text for event in parser.feed(c)), *parser.close()])


def written(events: list[Event]) -> str:
    said = (Text, Thinking, Markup, InventedResult)
    return "".join(e.text if isinstance(e, said) else e.call.raw if isinstance(e, CallEnd) else "" for e in events)


@pytest.mark.share(12)
@pytest.mark.parametrize("format", CATALOG, ids=lambda format: format.name)
@pytest.mark.parametrize("family", {f.result: f for f in CATALOG}.values(), ids=lambda family: family.name)
def test_a_made_up_result_of_any_family_ends_the_reply(format: Format, family: Format) -> None:
    """From its mark on: the words "Result of …:" before one are text, which a run does not keep without a call."""
    call = render_calls(format, [CALL], TOOLS)
    result = render_result(family, "get_weather", "c1", "17 degrees")
    for before in ("", "Let me see.\n", call + "\n"):
        text = f"{before}{result}\nIt is 17 degrees.\n{call}"
        events = parse(text, format, TOOLS)
        made_up = result[result.index(family.result.mark) :]
        assert events[-1] == InventedResult(f"{made_up}\nIt is 17 degrees.\n{call}"), before
        assert len(calls(events)) == (before == call + "\n")
        assert (by_character(text, format), written(events)) == (events, text)


@pytest.mark.parametrize("format", CATALOG, ids=lambda format: format.name)
def test_another_roles_turn_ends_the_reply(format: Format) -> None:
    call = render_calls(format, [CALL], TOOLS)
    for mark in TURNS:
        text = f"Done.\n{mark}\nAnd now?\n{call}"
        events = parse(text, format, TOOLS)
        assert isinstance(events[-1], InventedResult), mark
        assert (calls(events), by_character(text, format), written(events)) == ([], events, text)


@pytest.mark.parametrize("mark", TURNS)
def test_a_mark_with_nothing_after_it_only_ends_the_turn(mark: str) -> None:
    assert parse(f"Done.{mark}\n", "xml", TOOLS) == [Text("Done."), Markup(f"{mark}\n")]


@pytest.mark.parametrize("format", CATALOG, ids=lambda format: format.name)
def test_in_a_value_it_is_data(format: Format) -> None:
    for family in CATALOG:
        said = f"before {family.result.mark or 'x'} after"
        try:
            text = render_calls(format, [ToolCall("", "get_weather", {"city": said})], TOOLS)
        except formats.FormatError:
            continue
        (end,) = calls(parse(text, format, TOOLS))
        assert isinstance(end, CallEnd)
        assert end.call.arguments == {"city": said}


@pytest.mark.parametrize(
    "text",
    [
        "The `<tool_response>` tag wraps a result.",
        "The <tool_response> tag wraps a result.",
        "Templates begin a turn with `<|im_start|>user`, and end it with `<|im_end|>`.",
        "```xml\n<tool_result>\n17\n</tool_result>\n```\nIs what it looks like.",
        "> <tool_response>\n> 17\n\nis a quote",
    ],
)
def test_a_mark_that_is_quoted_or_mentioned_is_text(text: str) -> None:
    assert "".join(e.text for e in parse(text, "hermes", TOOLS) if isinstance(e, Text)) == text


def test_a_format_of_ones_own_has_marks_of_its_own() -> None:
    from dataclasses import replace

    from agentkit.formats.format import ResultShape

    own = replace(formats.get("hermes"), name="own", result=ResultShape('<got name="{name}">\n', "\n</got>"))
    assert parse('So.\n<got name="a">\n5\n</got>', own) == [Text("So.\n"), InventedResult('<got name="a">\n5\n</got>')]
    assert parse("So.\n<gotten>5</gotten>", own) == [Text("So.\n<gotten>5</gotten>")]
