"""The chat templates that trl carries, as published with the models: what is appended is what they would render.

They are read where trl is installed; none of trl is run.
"""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest
from small_tokenizers import with_template

from agentkit.messages import ToolMessage, UserMessage
from agentkit.rollout.tokens.chat_template import TURN_ENDS, ChatTemplate
from agentkit.schemas import flavours
from agentkit.toolspec import ToolSpec

pytestmark = pytest.mark.soak
FOUND = importlib.util.find_spec("trl")
FOLDER = Path(FOUND.origin or "").parent / "chat_templates" if FOUND is not None else None
NATIVE = {
    "gemma4": "gemma4", "glm4moe": "glm45", "gptoss": "harmony", "lfm2_2_5": "lfm2", "llama3_1": "llama3_json",
    "llama3_2": "llama3_json", "muse_glimmer": "muse", "nemotron_3_nano": "qwen3_coder", "qwen2_5": "hermes",
    "qwen3": "hermes", "qwen3_5_think": "qwen3_coder", "qwen3_6": "qwen3_coder", "qwen3_instruct_2507": "hermes",
}  # fmt: skip
"""Templates that show tools, and the formats of their calls."""
TAUGHT = ("deepseek_r1_distill", "gemma", "gemma3", "llama3", "phi3", "phi3_5")
ADD = ToolSpec(
    "add",
    "Add.",
    {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]},
)
SPECIAL = re.compile(r"<[|｜][^\s<>|｜'\"]{1,40}[|｜]>|<\|[a-z_]+>|<[a-z_]+\|>|<(?:start|end)_of_turn>|<bos>|</s>")
RESULTS = [ToolMessage("call_0001", "add", '3 <x> "q"\nz'), ToolMessage("call_0002", "add", "4")]


def published(name: str) -> Any:
    if FOLDER is None or not (FOLDER / f"{name}.jinja").exists():
        pytest.skip(f"the package `trl` is not installed, or has no template {name}")
    source = (FOLDER / f"{name}.jinja").read_text(encoding="utf-8")
    end = next((end for end in TURN_ENDS if end in source and end not in ("<|observation|>", "<|user|>")), "</s>")
    return with_template(source, sorted({*SPECIAL.findall(source), end}), end)


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
