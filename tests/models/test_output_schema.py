"""A schema for the final reply, as each provider is asked for it; and runs to their end through the real SDKs."""

from __future__ import annotations

import json
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field
from replay_server import ReplayServer
from streams import events_of

from agentkit import Agent
from agentkit.messages import Message, SystemMessage, user
from agentkit.models import Model
from agentkit.testing import Replay
from agentkit.tool.reply import Output
from agentkit.toolspec import OutputSchema, ToolSpec

ANSWERS: dict[str, dict[str, Any]] = {
    "openai": {"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}]},
    "responses": {"status": "completed", "output": []},
    "anthropic": {"type": "message", "content": [], "stop_reason": "end_turn"},
}
PREFIXES = sorted(ANSWERS)
ADD = ToolSpec("add", "Add.", {"type": "object", "properties": {"a": {"type": "integer"}}})
ELSEWHERE = {"base_url": "http://127.0.0.1:8000/v1"}


class City(BaseModel):
    name: Annotated[str, Field(max_length=40)]
    people: Annotated[int, Field(ge=0)]
    twins: list[str] = []


class Tree(BaseModel):
    name: str
    children: list[Tree] = []


CITY = Output(City).schema
SECTION = """\
# Output

Your final reply must be one JSON value that fits this JSON Schema:

{"type": "object", "properties": {"ok": {"type": "boolean"}}}

- Write nothing but the JSON: no words before or after it, no code fence.
- Inside JSON strings, escape quotes, backslashes and line breaks."""
OK = OutputSchema("ok", {"type": "object", "properties": {"ok": {"type": "boolean"}}})


def sent(
    model: str,
    output: OutputSchema,
    messages: list[Message] | None = None,
    settings: dict[str, Any] | None = None,
    **request: Any,
) -> dict[str, Any]:
    """The body of the request."""
    tape = Replay([ANSWERS[model.partition(":")[0]]])
    events_of(tape.model(model, **(settings or {})), messages or [user("Hi")], output_schema=output, **request)
    return tape.requests[0]


# ---------------------------------------------------------------- natively


STRICT = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": 'Must satisfy {"maxLength": 40}'},
        "people": {"type": "integer", "minimum": 0},
        "twins": {"type": ["array", "null"], "items": {"type": "string"}},
    },
    "required": ["name", "people", "twins"],
    "additionalProperties": False,
}


def test_chat_completions_are_asked_strictly() -> None:
    assert sent("openai:gpt-5", CITY, tools=[ADD])["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "City", "strict": True, "schema": STRICT},
    }


def test_responses_are_asked_strictly() -> None:
    assert sent("responses:gpt-5", CITY, tools=[ADD])["text"] == {
        "format": {"type": "json_schema", "name": "City", "strict": True, "schema": STRICT}
    }


def test_anthropic_is_asked_without_bounds() -> None:
    assert sent("anthropic:claude-opus-4-8", CITY, tools=[ADD])["output_config"] == {
        "format": {
            "type": "json_schema",
            "schema": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": 'Must satisfy {"maxLength": 40}'},
                    "people": {"type": "integer", "description": 'Must satisfy {"minimum": 0}'},
                    "twins": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["name", "people"],
                "additionalProperties": False,
            },
        }
    }


@pytest.mark.parametrize("wanted", [dict[str, int], Any, list[dict[str, str]]])
def test_what_strict_mode_cannot_say_is_asked_without_it(wanted: Any) -> None:
    output = Output(wanted).schema
    asked = sent("openai:gpt-5", output)["response_format"]["json_schema"]
    assert asked == {"name": output.name, "strict": False, "schema": output.schema}


def test_a_type_that_holds_itself_is_strict_for_openai_and_in_the_prompt_for_anthropic() -> None:
    output = Output(Tree).schema
    assert sent("openai:gpt-5", output)["response_format"]["json_schema"]["strict"] is True
    body = sent("anthropic:claude-opus-4-8", output)
    assert "output_config" not in body
    assert '"#/$defs/Tree"' in body["system"]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_without_a_schema_nothing_is_said(prefix: str) -> None:
    tape = Replay([ANSWERS[prefix]])
    events_of(tape.model(f"{prefix}:m"))
    assert {"response_format", "text", "output_config", "system", "instructions"}.isdisjoint(tape.requests[0])


@pytest.mark.parametrize(
    ("model", "field", "extra"),
    [
        ("responses:gpt-5", "text", {"verbosity": "low"}),
        ("anthropic:claude-opus-4-8", "output_config", {"effort": "low"}),
    ],
)
def test_extra_settings_stand_beside_the_schema(model: str, field: str, extra: dict[str, str]) -> None:
    assert sent(model, OK, extra={field: extra})[field].keys() == {"format", *extra}


# ---------------------------------------------------------------- compatible servers


def system_of(body: dict[str, Any]) -> str:
    """The instructions of a request, whatever the wire."""
    if "messages" in body and body["messages"][0]["role"] == "system":
        return str(body["messages"][0]["content"])
    return str(body.get("system") or body.get("instructions"))


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_compatible_server_is_told_in_the_prompt(prefix: str) -> None:
    body = sent(f"{prefix}:m", OK, [SystemMessage("Be brief."), user("Hi")], ELSEWHERE)
    assert system_of(body) == f"Be brief.\n\n{SECTION}"


@pytest.mark.parametrize(("prefix", "field"), [("openai", "response_format"), ("responses", "text")])
def test_a_compatible_server_holds_to_the_schema_where_no_call_is_possible(prefix: str, field: str) -> None:
    """With tools it would hold the calls to it, too."""
    assert field in sent(f"{prefix}:m", OK, settings=ELSEWHERE)
    assert field in sent(f"{prefix}:m", OK, settings=ELSEWHERE, tools=[ADD], tool_choice="none")
    body = sent(f"{prefix}:m", OK, settings=ELSEWHERE, tools=[ADD])
    assert field not in body
    assert "A reply that calls a tool is not the final one" in system_of(body)


def test_a_server_that_refuses_the_field_is_spared_it() -> None:
    body = sent("openai:m", OK, settings={**ELSEWHERE, "extra": {"response_format": None}})
    assert "response_format" not in body
    assert system_of(body) == SECTION


# ---------------------------------------------------------------- whole runs, through the real SDKs


def sse(*events: dict[str, Any], done: str = "") -> str:
    """Server-sent events; named after their type where they have one."""
    named = (
        (f"event: {event['type']}\n" if "type" in event else "") + f"data: {json.dumps(event)}" for event in events
    )
    return "".join(f"{event}\n\n" for event in named) + done


def chat(delta: dict[str, Any], reason: str) -> str:
    choices = [{"index": 0, "delta": delta, "finish_reason": None}, {"index": 0, "delta": {}, "finish_reason": reason}]
    chunks = ({"id": "x", "object": "chat.completion.chunk", "choices": [choice]} for choice in choices)
    return sse(*chunks, done="data: [DONE]\n\n")


def block(block: dict[str, Any], delta: dict[str, Any], reason: str) -> str:
    return sse(
        {"type": "message_start", "message": {"usage": {"input_tokens": 1, "output_tokens": 1}}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    )


def item(item: dict[str, Any], *deltas: dict[str, Any]) -> str:
    return sse(
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "content": [], "arguments": ""}},
        *deltas,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"status": "completed", "output": [item]}},
    )


def said(prefix: str, text: str) -> str:
    match prefix:
        case "openai":
            return chat({"role": "assistant", "content": text}, "stop")
        case "anthropic":
            return block({"type": "text", "text": ""}, {"type": "text_delta", "text": text}, "end_turn")
    content = [{"type": "output_text", "text": text, "annotations": []}]
    where = {"item_id": "m1", "output_index": 0, "content_index": 0}
    return item(
        {"type": "message", "id": "m1", "role": "assistant", "content": content},
        {"type": "response.output_text.delta", "delta": text, **where},
    )


def called(prefix: str, name: str, arguments: str) -> str:
    match prefix:
        case "openai":
            function = {"name": name, "arguments": arguments}
            return chat(
                {"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}]}, "tool_calls"
            )
        case "anthropic":
            begun = {"type": "tool_use", "id": "c1", "name": name, "input": {}}
            return block(begun, {"type": "input_json_delta", "partial_json": arguments}, "tool_use")
    return item({"type": "function_call", "id": "f1", "call_id": "c1", "name": name, "arguments": arguments})


def count(name: str) -> int:
    """Count the people of a city."""
    return {"Ulm": 128_000}[name]


def script(prefix: str) -> list[str]:
    return [
        called(prefix, "count", '{"name": "Ulm"}'),
        said(prefix, '{"name": "Ulm", "people": "128000"}'),
        said(prefix, '{"name": "Ulm", "people": 128000, "twins": null}'),
    ]


def run(model: Model) -> None:
    result = Agent(model, [count]).run_sync("Tell me about Ulm.", output_type=City)
    assert (result.output, result.finish, result.turns) == (City(name="Ulm", people=128_000), "stop", 3)


@pytest.mark.parametrize("chunks", ["whole", "lines", 7])
@pytest.mark.parametrize("model", ["openai:gpt-5", "responses:gpt-5", "anthropic:claude-opus-4-8"])
def test_run(model: str, chunks: Any) -> None:
    tape = Replay(script(model.partition(":")[0]), chunks=chunks)
    run(tape.model(model))
    tape.assert_finished()
    assert "/people: expected integer (>= 0), found string" in json.dumps(tape.requests[2])
    field = {"openai": "response_format", "responses": "text", "anthropic": "output_config"}[model.partition(":")[0]]
    assert all(body[field] == tape.requests[0][field] for body in tape.requests)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_run_against_a_compatible_server(prefix: str) -> None:
    from agentkit import models

    with ReplayServer([body.encode() for body in script(prefix)]) as server:
        url = server.url.removesuffix("/v1") if prefix == "anthropic" else server.url
        run(models.model(f"{prefix}:m", base_url=url, api_key="none"))
        assert len(server.requests) == 3
        assert "# Output" in system_of(server.requests[0].body)
