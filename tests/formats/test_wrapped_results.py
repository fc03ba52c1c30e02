"""A result and the wrapper around it form no token together, wherever a token is cut at the wrapper's edge."""

from __future__ import annotations

import pytest
from scenario_kit import SOAK

from agentkit import formats
from agentkit.errors import FormatError
from agentkit.events import CallEnd, CallError
from agentkit.formats import ToolSpec, control, parse, render_calls, render_result
from agentkit.messages import ToolCall

TEXTS = {"type": "object", "properties": {"src": {"type": "string"}, "dst": {"type": "string"}}}
TOOLS = (ToolSpec("move", "Move.", TEXTS),)
PIPED = ("<|im_end|>", "<|im_start|>", "<｜User｜>", "<|turn>", "<turn|>", '<|"|>', "<tool_call|>")


@pytest.mark.share(12)
@pytest.mark.parametrize("name", {f.result: f.name for f in formats.CATALOG}.values())
def test_no_token_is_cut_at_a_wrappers_edge(name: str) -> None:
    empty = render_result(name, "move", "c1", "", None, TOOLS)
    for number, token in enumerate((*control.tokens(), *PIPED)):
        for at in range(1, len(token))[number % 3 :: 1 if SOAK else 3]:
            for text in (token[:at], f"Hi {token[:at]}", token[at:], f"{token[at:]} Hi", token[at:] + token[:at]):
                whole = render_result(name, "move", "c1", text, None, TOOLS)
                assert whole.count(token) == empty.count(token), (token, text)


def test_the_result_itself_stays() -> None:
    assert render_result("mistral", "f", "c1", "Hi[e~").replace("\u206f", "").count("Hi[e~[/TOOL_RESULTS]") == 1
    assert "\u206f" not in render_result("mistral", "f", "c1", "Hi [e")


@pytest.mark.parametrize("name", formats.names())
@pytest.mark.parametrize("make", [lambda inner: [inner], lambda inner: {"a": inner}])
def test_a_value_that_is_too_deep_is_refused(name: str, make: object) -> None:
    value: object = "x"
    for _ in range(2000):
        value = make(value)  # type: ignore[operator]
    tool = ToolSpec("move", "Move.", {"type": "object", "properties": {"src": {}}})
    with pytest.raises(FormatError, match="move"):
        render_calls(name, [ToolCall("", "move", {"src": value})], [tool])


@pytest.mark.parametrize("between", ["<ESCAPE>,DST:<ESCAPE>", "<ESCAPE>,dst:<escapE>", "<Escape>, Dst :<Escape>"])
def test_delimiters_in_another_case_do_not_join_two_values(between: str) -> None:
    text = f"<start_function_call>call:move{{src:<escape>AAA{between}BBB<escape>}}<end_function_call>"
    (end,) = (event for event in parse(text, "functiongemma", TOOLS) if isinstance(event, CallEnd | CallError))
    assert isinstance(end, CallError)
    assert end.code == "ambiguous_call"
