"""A backtick that none closes hides no call after its paragraph; a quote written twice takes in no next call."""

from __future__ import annotations

import pytest
from raw_values import TOOLS, made, outcomes, read

from agentkit import formats
from agentkit.messages import ToolCall

PWD = ("bash", {"command": "pwd"}, ())


# ---------------------------------------------------------------- lists of Python calls


@pytest.mark.parametrize("name", ["pythonic", "llama4_pythonic", "olmo3", "lfm2"])
@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_python_string_with_a_quote_written_twice_takes_in_no_next_call(name: str, quote: str) -> None:
    calls = [ToolCall("", "bash", {"command": "VALUE"}), ToolCall("", "bash", {"command": "LAST"})]
    text = formats.render_calls(name, calls, TOOLS)
    own = '"' if '"LAST"' in text else "'"
    text = text.replace(f"{own}VALUE{own}", f"{quote}ls{quote}{quote}").replace(f"{own}LAST{own}", f"pwd{quote}")
    assert made(outcomes(read(name, text))) == [], text


def test_a_comment_between_a_call_and_the_end_of_its_section_ends_nothing() -> None:
    text = "```tool_code\nping()<!-- x -->\n```\nTwo words\n```tool_code\nbash(command='pwd')\n```"
    assert outcomes(read("tool_code", text)) == [("ping", {}, ()), PWD]


# ---------------------------------------------------------------- code spans


SPANS = ("hermes", "xml", "qwen3_coder", "dots", "pythonic")


@pytest.mark.parametrize("name", SPANS)
@pytest.mark.parametrize("then", ["`.\n\nDone.", "` or `x`.", "", "\nand so on", "\n\nDone."])
def test_a_backtick_quotes_a_call_if_another_one_follows_in_its_paragraph_or_the_text_ends(
    name: str, then: str
) -> None:
    call = ToolCall("", "write", {"path": "a", "content": "b"})
    text = formats.render_calls(name, [call], TOOLS).strip()
    got = outcomes(read(name, f"Write `{text}{then}"))
    assert got == ([("write", {"path": "a", "content": "b"}, ())] if then.startswith("\n\n") else [])
    assert outcomes(read(name, f"Press ` or {text}\n\nDone.")) == [("write", {"path": "a", "content": "b"}, ())]


@pytest.mark.parametrize("name", SPANS)
def test_of_a_call_behind_a_lone_backtick_no_quoted_call_is_made(name: str) -> None:
    inner = formats.render_calls(name, [ToolCall("", "bash", {"command": "ls"})], TOOLS).strip()
    text = formats.render_calls(name, [ToolCall("", "write", {"path": "a", "content": inner})], TOOLS).strip()
    assert outcomes(read(name, f"`{text}\n\nDone.")) == [("write", {"path": "a", "content": inner}, ())]
