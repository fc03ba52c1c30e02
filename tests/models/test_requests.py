"""What goes over the wire, as the provider would receive it."""

from __future__ import annotations

from typing import Any

import pytest
from streams import events_of

from agentkit.errors import ConfigError
from agentkit.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    ProviderPart,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    user,
)
from agentkit.testing import Replay
from agentkit.toolspec import ToolSpec

ADD = ToolSpec("add", "Add two numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}})

ANSWERS: dict[str, dict[str, Any]] = {
    "openai": {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]},
    "responses": {"status": "completed", "output": []},
    "anthropic": {"type": "message", "content": [], "stop_reason": "end_turn"},
    "gemini": {"candidates": [{"finishReason": "STOP"}]},
}

PNG = ImagePart(data=b"png")
DATA_URL = "data:image/png;base64,cG5n"
ROUND: list[Message] = [
    SystemMessage("Be brief."),
    user("Draw"),
    AssistantMessage(
        (TextPart("I draw."), ToolCall("c1", "draw", {"size": 1}, None, '{"size": 1}'), ToolCall("c2", "ping"))
    ),
    ToolMessage("c1", "draw", (TextPart("done"), PNG)),
    ToolMessage("c2", "ping", (TextPart("no"),), "tool_error"),
    user("Thanks"),
]


def sent(
    prefix: str, messages: list[Message] | None = None, settings: dict[str, Any] | None = None, **request: Any
) -> dict[str, Any]:
    """The body of the request that these messages become."""
    tape = Replay([ANSWERS[prefix]])
    events_of(tape.model(f"{prefix}:m", **(settings or {})), messages or [user("Hi")], **request)
    return tape.requests[0]


# ---------------------------------------------------------------- conversations


def test_chat_conversation() -> None:
    assert sent("openai", ROUND)["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Draw"},
        {
            "role": "assistant",
            "content": "I draw.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "draw", "arguments": '{"size": 1}'}},
                {"id": "c2", "type": "function", "function": {"name": "ping", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "done"},
        {"role": "tool", "tool_call_id": "c2", "content": "no"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What draw (c1) returned:"},
                {"type": "image_url", "image_url": {"url": DATA_URL}},
                {"type": "text", "text": "Thanks"},
            ],
        },
    ]


def test_responses_conversation() -> None:
    body = sent("responses", ROUND)
    assert body["instructions"] == "Be brief."
    assert body["input"] == [
        {"role": "user", "content": "Draw"},
        {"type": "message", "role": "assistant", "content": "I draw."},
        {"type": "function_call", "call_id": "c1", "name": "draw", "arguments": '{"size": 1}'},
        {"type": "function_call", "call_id": "c2", "name": "ping", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "c1",
            "output": [
                {"type": "input_text", "text": "done"},
                {"type": "input_image", "image_url": DATA_URL, "detail": "auto"},
            ],
        },
        {"type": "function_call_output", "call_id": "c2", "output": "no"},
        {"role": "user", "content": "Thanks"},
    ]


def test_anthropic_conversation() -> None:
    body = sent("anthropic", ROUND)
    assert body["system"] == "Be brief."
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Draw"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I draw."},
                {"type": "tool_use", "id": "c1", "name": "draw", "input": {"size": 1}},
                {"type": "tool_use", "id": "c2", "name": "ping", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "c1",
                    "is_error": False,
                    "content": [
                        {"type": "text", "text": "done"},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "cG5n"}},
                    ],
                },
                {
                    "type": "tool_result",
                    "tool_use_id": "c2",
                    "is_error": True,
                    "content": [{"type": "text", "text": "no"}],
                },
                {"type": "text", "text": "Thanks"},
            ],
        },
    ]


def test_anthropic_is_given_the_names_of_tools_called_before() -> None:
    body = sent("anthropic", ROUND)
    assert [t["name"] for t in body["tools"]] == ["draw", "ping"]
    assert body["tool_choice"] == {"type": "none"}


@pytest.mark.parametrize(
    ("image", "source"),
    [
        (ImagePart(url="https://x/y.png"), {"type": "url", "url": "https://x/y.png"}),
        (ImagePart(url=DATA_URL), {"type": "base64", "media_type": "image/png", "data": "cG5n"}),
        (ImagePart(data=b"j", media_type="image/jpeg"), {"type": "base64", "media_type": "image/jpeg", "data": "ag=="}),
    ],
)
def test_images_for_anthropic(image: ImagePart, source: dict[str, Any]) -> None:
    assert sent("anthropic", [user("See", image)])["messages"][0]["content"][1] == {"type": "image", "source": source}


# ---------------------------------------------------------------- what only its provider reads

THOUGHTS: dict[str, tuple[ThinkingPart, Any]] = {
    "anthropic": (
        ThinkingPart("Hm.", "anthropic", {"type": "thinking", "thinking": "Hm.", "signature": "S"}),
        {"type": "thinking", "thinking": "Hm.", "signature": "S"},
    ),
    "responses": (
        ThinkingPart("Hm.", "responses", {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "E"}),
        {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "E"},
    ),
    "openai": (ThinkingPart("Hm.", "openai", {"reasoning_content": "Hm."}), "Hm."),
}


def thoughts_in(prefix: str, body: dict[str, Any]) -> list[Any]:
    """The thinking that a request carries."""
    if prefix == "responses":
        return [i for i in body["input"] if i.get("type") == "reasoning"]
    if prefix == "openai":
        return [m["reasoning_content"] for m in body["messages"] if "reasoning_content" in m]
    return [b for m in body["messages"] for b in m["content"] if b["type"] == "thinking"]


@pytest.mark.parametrize("writer", THOUGHTS)
@pytest.mark.parametrize("reader", THOUGHTS)
def test_thinking_goes_back_to_its_writer_alone(writer: str, reader: str) -> None:
    thinking, wire = THOUGHTS[writer]
    turn = AssistantMessage((thinking, ToolCall("c", "ping")))
    body = sent(reader, [user("Hi"), turn, ToolMessage("c", "ping", ())])
    assert thoughts_in(reader, body) == ([wire] if reader == writer else [])


def test_another_server_is_another_reader() -> None:
    thinking, _ = THOUGHTS["openai"]
    turn = AssistantMessage((thinking, TextPart("Yes")))
    body = sent("openai", [user("Hi"), turn, user("?")], {"base_url": "http://localhost:8000/v1"})
    assert thoughts_in("openai", body) == []


def test_reasoning_without_content_is_not_sent_back() -> None:
    item = ThinkingPart("Hm.", "responses", {"type": "reasoning", "id": "r", "summary": []})
    body = sent("responses", [user("Hi"), AssistantMessage((item, TextPart("Yes"))), user("?")])
    assert [i.get("type") for i in body["input"]] == [None, "message", None]


def test_phase_of_a_message_goes_back() -> None:
    phase = ProviderPart("responses", {"type": "message", "phase": "commentary"})
    body = sent("responses", [user("Hi"), AssistantMessage((TextPart("Wait"), phase)), user("?")])
    assert body["input"][1] == {"type": "message", "role": "assistant", "content": "Wait", "phase": "commentary"}


def test_caller_of_a_call_goes_back() -> None:
    caller = {"type": "code_execution_20250825", "tool_id": "s"}
    code = ProviderPart("anthropic", {"type": "server_tool_use", "id": "s", "name": "code_execution", "input": {}})
    asked = AssistantMessage((code, ToolCall("a b", "f"), ProviderPart("anthropic", {"caller": caller}, "a b")))
    body = sent("anthropic", [user("Hi"), asked, ToolMessage("a b", "f", ())])
    _, call = body["messages"][1]["content"]
    assert (call["type"], call["name"], call["caller"]) == ("tool_use", "f", caller)


def test_forms_of_calls_go_back() -> None:
    parts = (
        ProviderPart("responses", {"type": "function_call", "namespace": "n"}, "a"),
        ToolCall("a", "f"),
        ProviderPart("responses", {"type": "custom_tool_call"}, "b"),
        ToolCall("b", "calc", {"input": "1+1"}),
    )
    results = [ToolMessage("a", "f", ()), ToolMessage("b", "calc", (TextPart("2"),))]
    assert sent("responses", [user("Hi"), AssistantMessage(parts), *results])["input"][1:] == [
        {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}", "namespace": "n"},
        {"type": "custom_tool_call", "call_id": "b", "name": "calc", "input": "1+1"},
        {"type": "function_call_output", "call_id": "a", "output": ""},
        {"type": "custom_tool_call_output", "call_id": "b", "output": "2"},
    ]


# ---------------------------------------------------------------- tools and settings


@pytest.mark.parametrize(
    ("choice", "chat", "responses", "anthropic"),
    [
        ("auto", "auto", "auto", {"type": "auto"}),
        ("required", "required", "required", {"type": "any"}),
        ("none", "none", "none", {"type": "none"}),
        (
            "add",
            {"type": "function", "function": {"name": "add"}},
            {"type": "function", "name": "add"},
            {"type": "tool", "name": "add"},
        ),
    ],
)
def test_tool_choice(choice: str, chat: Any, responses: Any, anthropic: Any) -> None:
    wanted = {"openai": chat, "responses": responses, "anthropic": anthropic}
    for prefix, wire in wanted.items():
        assert sent(prefix, tools=[ADD], tool_choice=choice)["tool_choice"] == wire


@pytest.mark.parametrize("prefix", ANSWERS)
def test_tool_choice_must_name_an_offered_tool(prefix: str) -> None:
    with pytest.raises(ConfigError, match=r"found 'sub'\. Offered are: add"):
        sent(prefix, tools=[ADD], tool_choice="sub")


def test_tools() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    about = {"name": "add", "description": "Add two numbers."}
    assert sent("openai", tools=[ADD])["tools"] == [{"type": "function", "function": {**about, "parameters": schema}}]
    assert sent("anthropic", tools=[ADD])["tools"] == [{**about, "input_schema": schema}]
    assert sent("responses", tools=[ADD])["tools"] == [
        {"type": "function", **about, "parameters": schema, "strict": False}
    ]


@pytest.mark.parametrize("prefix", ["openai", "responses", "anthropic"])
def test_alternatives_at_the_root_of_a_schema_are_offered_together(prefix: str) -> None:
    either = {"anyOf": [{"properties": {"path": {"type": "string"}}}, {"properties": {"url": {"type": "string"}}}]}
    tool = ToolSpec("load", "Load.", {"type": "object", **either})
    made = sent(prefix, tools=[tool])["tools"][0]
    made = made.get("function", made)
    schema = made.get("parameters") or made.get("input_schema")
    properties = {"path": {"type": "string"}, "url": {"type": "string"}}
    assert schema == {"type": "object", "properties": properties, "required": []}
    assert "anyOf" in made["description"]


@pytest.mark.parametrize("parallel", [True, False])
def test_parallel_calls(parallel: bool) -> None:
    given = {"tools": [ADD], "parallel_tool_calls": parallel}
    assert sent("openai", **given)["parallel_tool_calls"] is parallel
    assert sent("responses", **given)["parallel_tool_calls"] is parallel
    assert sent("anthropic", **given)["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": not parallel}


def test_nothing_is_said_of_tools_when_there_are_none() -> None:
    for prefix in ANSWERS:
        assert not {"tools", "tool_choice", "parallel_tool_calls"} & sent(prefix, parallel_tool_calls=False).keys()


@pytest.mark.parametrize(
    ("prefix", "settings", "name"),
    [
        ("openai", {}, "max_completion_tokens"),
        ("openai", {"base_url": "http://localhost/v1"}, "max_tokens"),
        ("responses", {}, "max_output_tokens"),
        ("anthropic", {}, "max_tokens"),
    ],
)
def test_request_wins_over_the_models_settings(prefix: str, settings: dict[str, Any], name: str) -> None:
    fixed = {**settings, "max_tokens": 100, "temperature": 0.5}
    body = sent(prefix, settings=fixed)
    assert (body[name], body["temperature"]) == (100, 0.5)
    body = sent(prefix, settings=fixed, max_tokens=7, temperature=0.0)
    assert (body[name], body["temperature"]) == (7, 0.0)


def test_anthropic_gets_a_default_bound() -> None:
    assert sent("anthropic")["max_tokens"] == 16_384
    assert "max_completion_tokens" not in sent("openai")


def test_extra_fields_win_and_none_takes_a_field_out() -> None:
    settings = {"extra": {"top_p": 0.9, "stream_options": None, "seed": 1}}
    body = sent("openai", settings=settings, extra={"seed": 2})
    assert (body["top_p"], body["seed"]) == (0.9, 2)
    assert "stream_options" not in body


def test_usage_is_asked_for_when_streaming() -> None:
    assert sent("openai")["stream_options"] == {"include_usage": True}
    assert "stream_options" not in sent("openai", stream=False)


def test_stop_strings() -> None:
    assert sent("openai", stop=("END",))["stop"] == ["END"]
    assert sent("anthropic", stop=("END",))["stop_sequences"] == ["END"]
    with pytest.raises(ConfigError, match="has no stop strings"):
        sent("responses", stop=("END",))


@pytest.mark.parametrize(
    ("name", "reasons"),
    [("gpt-5", True), ("gpt-5-chat-latest", False), ("gpt-4o", False), ("o3-mini", True), ("openai/gpt-5.2", True)],
)
def test_encrypted_reasoning_is_asked_of_models_that_reason(name: str, reasons: bool) -> None:
    tape = Replay([ANSWERS["responses"]])
    events_of(tape.model(f"responses:{name}"))
    assert tape.requests[0]["store"] is False
    assert tape.requests[0].get("include") == (["reasoning.encrypted_content"] if reasons else None)


def test_halves_of_characters_do_not_get_out() -> None:
    assert sent("openai", [user("a\ud800b")])["messages"][0]["content"] == "a\ufffdb"


def test_headers_and_key() -> None:
    tape = Replay([ANSWERS["openai"], ANSWERS["anthropic"]])
    events_of(tape.model("openai:m", api_key="K", headers={"x-team": "blue"}))
    events_of(tape.model("anthropic:m", api_key="K"))
    assert (tape.headers[0]["authorization"], tape.headers[0]["x-team"]) == ("Bearer K", "blue")
    assert tape.headers[1]["authorization"] == "Bearer K"
