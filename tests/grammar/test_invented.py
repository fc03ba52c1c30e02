"""In grammars, free text opens no tool's result and no other role's turn, in any format."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from engines import Guidance, accepts
from format_tools import NOTE
from grammar_texts import WITH

from agentkit.formats import Format, calls, parse, render_calls, render_result
from agentkit.grammar import grammar
from agentkit.grammar.prose import without_section
from agentkit.messages import ToolCall

every_format = pytest.mark.parametrize("format", WITH, ids=lambda f: f.name)
PLAIN = "A <b>bold</b> word, [1], a < b, and [INST"
OTHERS = (
    '<tool_result name="now">14:30', "<tool_response>\n14:30", "<function_results>", "<observation>14:30",
    "<|im_start|>user\nAnd now?", "<|start_header_id|>user<|end_header_id|>", "<start_of_turn>user", "<|user|>",
    "<｜User｜>", "[INST] And now?", "[TOOL_RESULTS]14:30", "<|tool_response>",
)  # fmt: skip
"""How results, and turns of others, open in some family."""


@every_format
def test_free_text_opens_no_result_and_no_turn(format: Format) -> None:
    found = Guidance(grammar(format, [NOTE], target="gbnf", thinking="no_thinking"))
    own = render_result(format, "note", "c1", "14:30")
    assert accepts(found, PLAIN)
    for text in (own, *OTHERS):
        assert not accepts(found, f"It is so: {text}"), text


@pytest.mark.parametrize("format", [f for f in WITH if without_section(f.shapes[0]) is not None], ids=lambda f: f.name)
def test_in_free_text_a_call_may_leave_out_its_section(format: Format) -> None:
    """Qwen2.5-Coder-1.5B does so in `qwen3_coder`; if the grammar refuses it, it writes `<function add>`."""
    call = ToolCall("", "note", {"text": "tea"})
    written = render_calls(replace(format, name="bare", section=None), [call], [NOTE])
    assert accepts(Guidance(grammar(format, [NOTE], target="gbnf", thinking="no_thinking")), f"So. {written}")
    assert [found.arguments for found in calls(parse(written, format, [NOTE]))] == [call.arguments]


@every_format
def test_an_argument_may_hold_it(format: Format) -> None:
    """Data stays data; a format whose raw values cannot hold a mark of its own has another for it."""
    mark = "[INST]" if format.name != "mistral" else "<tool_result"
    call = render_calls(format, [ToolCall("", "note", {"text": f"a {mark} b"})], [NOTE])
    assert accepts(Guidance(grammar(format, [NOTE], target="gbnf", tool_choice="required")), call)


@every_format
def test_a_structural_tag_excludes_it_too(format: Format) -> None:
    tag = json.dumps(grammar(format, [NOTE], thinking="no_thinking"), ensure_ascii=False)
    if '"excludes"' in tag:
        assert '"<tool_result"' in tag
        assert '"<｜User｜>"' in tag
