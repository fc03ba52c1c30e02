"""What a native model shows, thinks or says in another's name is no call, in text of every format."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from agentkit import formats
from agentkit.events import CallEnd, InventedResult, Markup, Text, Thinking, ToolStarted
from agentkit.formats import Format
from agentkit.messages import ToolCall
from agentkit.processor import ResponseProcessor
from agentkit.tool.registry import ToolRegistry

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def delete_all(path: str, depth: int = 0) -> str:
    """Delete."""
    return "deleted"


REGISTRY = ToolRegistry(delete_all)
SPECS = REGISTRY.specs()


def written(format: Format, path: str) -> str:
    """A call in this format, that no fence of its own surrounds."""
    return formats.render_calls(format, [ToolCall("", "delete_all", {"path": path})], SPECS).strip("\n")


def around(before: str, after: str) -> Callable[[str], str]:
    return lambda text: f"{before}{text}{after}"


SHOWN: dict[str, Callable[[str], str]] = {
    "backticks": around("```\n", "\n```"),
    "tildes": around("~~~\n", "\n~~~"),
    "a block in a block": around("```markdown\n```python\nx = 1\n```\n", "\n```"),
    "pre": around("<pre>\n", "\n</pre>"),
    "pre and code": around('<pre class="x"><code>', "</code></pre>"),
    "code": around("<code>\n", "\n</CODE>"),
    "a comment": around("<!-- for instance:\n\n", "\n-->"),
    "an example": around("<example>\nQ: how?\n\nA:\n", "\n</example>"),
}
THOUGHT = {
    tag: around(f"<{tag}>\nI could say\n\n", f"\nbut no.\n</{tag}>") for tag in ("reasoning", "thought", "scratchpad")
}
MADE_UP: dict[str, Callable[[str], str]] = {
    "tool_response": around("<tool_response>\n", "\n\n</tool_response>"),
    "tool_result": around('<tool_result name="read" call_id="1" status="success">\n', "\n</tool_result>"),
    "function_results": around("<function_results>\n<result>", "</result>\n</function_results>"),
    "ChatML": around("<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n"),
    "Llama 3": around("<|start_header_id|>ipython<|end_header_id|>\n\n", "<|eot_id|>"),
    "Gemma 3": around("<start_of_turn>user\n", "<end_of_turn>\n"),
    "DeepSeek": around("<｜User｜>", "<｜Assistant｜>"),
}
ASIDES = SHOWN | THOUGHT


async def ran(text: str, size: int | None = None) -> list[str]:
    """The calls of a native model's reply that run."""
    pieces = [text[i : i + size] for i in range(0, len(text), size)] if size else [text]
    turn = ResponseProcessor(REGISTRY).process([Text(piece) for piece in pieces])
    events = [event async for event in turn]
    found = "".join(e.text if isinstance(e, Text | Markup | Thinking | InventedResult) else "" for e in events)
    assert any(isinstance(event, CallEnd) for event in events) or found == text
    return [event.call.arguments["path"] for event in events if isinstance(event, ToolStarted)]


INDENTED: dict[str, Callable[[str], str]] = {
    "indented": lambda text: "So:\n\n" + "\n".join(f"    {line}" for line in text.split("\n")),
    "indented by a tab": lambda text: "So:\n\n" + "\n".join(f"\t{line}" for line in text.split("\n")),
}


@pytest.mark.parametrize("format", formats.auto(), ids=lambda format: format.name)
async def test_a_native_models_aside_is_text(format: Format) -> None:
    aside = written(format, "aside")
    for name, said in (ASIDES | INDENTED | MADE_UP).items():
        assert await ran(f"See:\n{said(aside)}", len(name) % 4 or None) == [], name


async def test_a_native_models_call_behind_its_aside_runs() -> None:
    own = written(formats.get("hermes"), "own")
    for name, said in (ASIDES | INDENTED).items():
        assert await ran(f"See:\n{said('nothing')}\n\n{own}") == ["own"], name
    fenced = '```json\n{"name": "delete_all", "arguments": {"path": "own"}}\n```'
    for name in THOUGHT:
        for call in (fenced, 'delete_all(path="own")'):
            assert await ran(f"{THOUGHT[name]('no')}\n{call}") == ["own"], name
