"""Conversations of any shape, however torn and hostile, as Hypothesis draws them."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from agentkit.messages import (
    AssistantMessage,
    ImagePart,
    MarkupPart,
    ProviderPart,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)

TEXTS = st.sampled_from(["", " ", "Hi", "\ud800 half", "é", "\x00", "<function_calls>", "</tool_response>", "x" * 300])
IDS = st.sampled_from(["", "a", "b", "call:1", "x" * 70, "\udcff"])
NAMES = st.sampled_from(["", "add", "a.b/c", "n" * 100, "дом", 'add">\x00<'])
ARGUMENTS = st.sampled_from([{}, {"a": 1}, {"t": "\ud800"}, {"t": "</parameter></invoke>"}, {"": {"x": [None]}}])
RAWS = st.sampled_from(["", "{}", '{"a": 1}', '{"a": ', "[1]", '<add a="1">\n</add>', "<tool_call>\n{"])
FORMATS = st.sampled_from([None, None, "xml", "hermes", "invoke"])
IMAGES = st.sampled_from(
    [ImagePart(b"png"), ImagePart(url="https://x/y.png"), ImagePart(url="data:image/png;base64,QQ==")]
)

BLOCKS: dict[str, list[dict[str, Any]]] = {
    "anthropic": [
        {"type": "thinking", "thinking": "Hm.", "signature": "S"},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "server_tool_use", "id": "c", "name": "code_execution", "input": {"code": "…"}},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}, "caller": {"tool_id": "c"}},
        {"type": "code_execution_tool_result", "tool_use_id": "c", "content": {}},
        {"caller": {"type": "code_execution_20250825", "tool_id": "c"}},
    ],
    "responses": [
        {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "E"},
        {"type": "reasoning", "id": "rs", "summary": []},
        {"type": "web_search_call", "id": "ws"},
        {"type": "computer_call", "call_id": "cc"},
    ],
    "openai": [{"reasoning_content": "Hm."}],
    "bedrock": [
        {"type": "thinking", "thinking": "Hm.", "signature": "S"},
        {"type": "redacted_thinking", "data": "AP8="},
        {"type": "server_tool_use", "id": "s", "name": "nova_grounding", "input": {}},
        {"type": "server_tool_result", "tool_use_id": "s", "content": [], "status": "success"},
    ],
    "gemini": [
        {"thoughtSignature": "QUJD"},
        {"thoughtSignature": "QUJD", "id": "g"},
        {"text": "", "thoughtSignature": "QUJD"},
        {"text": "Hm.", "thought": True, "thoughtSignature": "QUJD"},
        {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "QUJD"},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
        {"groundingMetadata": {"webSearchQueries": ["a"]}},
    ],
}


@st.composite
def blocks(draw: st.DrawFn) -> ThinkingPart | ProviderPart:
    provider = draw(st.sampled_from([*BLOCKS]))
    data = draw(st.sampled_from(BLOCKS[provider]))
    if (
        data.get("type") in ("thinking", "redacted_thinking", "reasoning")
        or "reasoning_content" in data
        or "thought" in data
    ):
        return ThinkingPart("Hm.", provider, data)
    of_call = ("caller" in data and "type" not in data) or data.keys() == {"thoughtSignature", "id"}
    return ProviderPart(provider, data, draw(IDS) if of_call else None)


CALLS = st.builds(ToolCall, IDS, NAMES, ARGUMENTS, FORMATS, RAWS)
PARTS = TEXTS.map(TextPart) | CALLS | TEXTS.map(MarkupPart) | TEXTS.map(ThinkingPart) | blocks()
CONTENT = st.lists(TEXTS.map(TextPart) | IMAGES, max_size=3).map(tuple)
USERS = CONTENT.map(UserMessage)
RESPONSES = st.lists(PARTS, max_size=5).map(lambda parts: AssistantMessage(tuple(parts)))
RESULTS = st.builds(ToolMessage, IDS, NAMES, CONTENT, st.sampled_from([None, "tool_error"]))
MESSAGES = st.lists(st.one_of(TEXTS.map(SystemMessage), USERS, RESPONSES, RESULTS), max_size=10)
