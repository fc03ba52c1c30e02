"""The chat templates that trl carries, as published with the models: what is appended is what they would render."""

from __future__ import annotations

import json
from typing import Any

import pytest
from published_templates import NATIVE, TAUGHT, published

from agentkit.messages import ToolMessage, UserMessage
from agentkit.rollout.tokens.chat_template import ChatTemplate
from agentkit.schemas import flavours
from agentkit.toolspec import ToolSpec

pytestmark = pytest.mark.soak
ADD = ToolSpec(
    "add",
    "Add.",
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]},
)
RESULTS = [ToolMessage("call_0001", "add", '3 <x> "q"\nz'), ToolMessage("call_0002", "add", "4")]


def rendered(tok: Any, results: list[ToolMessage]) -> list[int]:
    """The whole conversation as the template renders it, with arguments as it takes them."""
    for arguments in ({"a": 1, "b": 2}, json.dumps({"a": 1, "b": 2})):
        function = {"name": "add", "arguments": arguments}
        called = [{"id": r.call_id, "type": "function", "function": function} for r in results]
        chat: list[dict[str, Any]] = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "", "tool_calls": called},
            *({"role": "tool", "tool_call_id": r.call_id, "name": "add", "content": r.text} for r in results),
        ]
        try:
            ids: list[int] = tok.apply_chat_template(
                chat, tools=[flavours.openai_chat(ADD)], add_generation_prompt=True, return_dict=False
            )
            return ids
        except TypeError:
            continue
    raise AssertionError("the template takes no calls")


@pytest.mark.parametrize("name", NATIVE)
def test_what_is_appended_is_what_the_template_renders(name: str) -> None:
    tok = published(name)
    made = ChatTemplate(tok, format=NATIVE[name], tools=[ADD])
    assert made.native
    for count in (1,) if name.startswith("llama3") else (1, 2):
        appended = made.answers(RESULTS[:count])
        assert rendered(tok, RESULTS[:count])[-len(appended) :] == appended


@pytest.mark.parametrize("name", TAUGHT)
def test_any_other_template_is_taught(name: str) -> None:
    tok = published(name)
    made = ChatTemplate(tok, format="hermes", tools=[ADD])
    assert not made.native
    assert "You can call the tools" in tok.decode(made.prompt([UserMessage("hi")]))
    assert "<tool_response>\n4\n</tool_response>" in tok.decode(made.answers(RESULTS))
