"""A response that was cut off and goes on: `Parser.resume`."""

from __future__ import annotations

from agentkit import formats
from agentkit.events import ArgumentDelta, CallEnd, CallError, CallStart, Text, Thinking, merge
from agentkit.formats import Limits, Parser
from agentkit.messages import ToolCall
from format_tools import TOOLS, resumed


def test_a_call_cut_in_two_ends_once_and_whole() -> None:
    cut, rest = '<tool_call>{"name": "note", "arguments": {"text": "Par', 'is"}}</tool_call>'
    at_end, events = resumed("hermes", cut, rest)
    assert [(e.code, e.call.raw) for e in at_end if isinstance(e, CallError)] == [("truncated_call", cut)]
    assert [type(e).__name__ for e in events] == ["CallStart", "ArgumentDelta", "CallEnd"]
    assert events[-1] == CallEnd(0, ToolCall("", "note", {"text": "Paris"}, "hermes", cut + rest))


def test_the_second_call_keeps_its_number() -> None:
    first = '<tool_call>{"name": "ping"}</tool_call>'
    _, events = resumed("hermes", f'{first}<tool_call>{{"name": "ask", ', '"arguments": {"text": "?"}}</tool_call>')
    assert [(e.index, e.call.name) for e in events if isinstance(e, CallEnd)] == [(0, "ping"), (1, "ask")]


def test_what_was_given_before_is_not_given_again() -> None:
    parser = Parser("invoke", TOOLS).resume('Hi. <invoke name="note"><parameter name="text">a')
    assert parser.feed("b</parameter>") == [ArgumentDelta(0, "b", "text")]


def test_half_an_opener_that_was_given_as_text_becomes_a_call() -> None:
    at_end, events = resumed("hermes", "Look: <tool_c", 'all>{"name": "ping"}</tool_call>')
    assert merge(at_end) == [Text("<tool_c")]
    assert [type(e).__name__ for e in events] == ["Text", "CallStart", "CallEnd"]


def test_thinking_that_was_cut_off_goes_on() -> None:
    call = '<tool_call>{"name": "ping"}</tool_call>'
    _, events = resumed("hermes", "<think>I could write " + call[:20], call[20:] + " later</think>")
    assert [e for e in events if isinstance(e, Thinking)] == [Thinking(f"I could write {call} later")]
    assert formats.calls(events) == []


def test_a_call_that_only_lacked_its_closing_tag_is_not_given_twice() -> None:
    at_end, events = resumed("hermes", '<tool_call>{"name": "ping"}</tool', "_call> done")
    assert [type(e).__name__ for e in at_end] == ["CallEnd"]
    assert [type(e).__name__ for e in events] == ["CallStart", "Markup", "Text"]


def test_a_resumed_call_obeys_the_limits() -> None:
    cut = '<tool_call>{"name": "note", "arguments": {"text": "' + "x" * 40
    parser = Parser("hermes", TOOLS, limits=Limits(call=100)).resume(cut)
    events = parser.feed("y" * 60 + '"}}</tool_call>') + parser.close()
    assert [e.code for e in events if isinstance(e, CallError)] == ["limit"]


CUT = "<function=note>\n<parameter=text>\nThe sum is"


def test_a_model_that_begins_the_cut_call_again_makes_a_new_call() -> None:
    whole = "<function=note>\n<parameter=text>\nThe sum is 4\n</parameter>\n</function>"
    _, events = resumed("qwen3_coder", CUT, whole, restarts=True)
    assert [(e.index, type(e).__name__) for e in events if isinstance(e, CallStart | CallEnd | CallError)] == [
        (0, "CallStart"),
        (0, "CallError"),
        (1, "CallStart"),
        (1, "CallEnd"),
    ]
    assert formats.calls(events)[0].arguments == {"text": "The sum is 4"}


def test_a_model_that_may_begin_again_may_also_go_on() -> None:
    _, events = resumed("qwen3_coder", CUT, " 4\n</parameter>\n</function>", restarts=True)
    assert [c.arguments for c in formats.calls(events)] == [{"text": "The sum is 4"}]


def test_a_continued_text_may_hold_anything() -> None:
    _, events = resumed("qwen3_coder", CUT, "<function=note> of it\n</parameter>\n</function>")
    assert [c.arguments for c in formats.calls(events)] == [{"text": "The sum is<function=note> of it"}]
