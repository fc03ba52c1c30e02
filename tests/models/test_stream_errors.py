"""An error as an event of a stream, in any shape that servers give it: it is raised, as the provider's own would be.

As bytes through the real SDKs; the rest of the stream follows as if nothing had been wrong.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from streams import answer

from agentkit.errors import ProviderError
from agentkit.events import CallEnd, CallError, Event, Finish, Text
from agentkit.models.stream_errors import error_in, whole_error
from agentkit.testing import Replay

WHY = "CUDA out of memory"
FLAT = {"object": "error", "message": WHY, "type": "InternalServerError", "param": None, "code": 500}

SHAPES: dict[str, Any] = {
    "an error": {"error": {"message": WHY, "code": 500}},
    "an error of a type": {"type": "error", "error": {"type": "api_error", "message": WHY}},
    "an error as text": {"error": WHY},
    "an error in a list": [{"error": {"message": WHY}}],
    "an error that is true": {"error": True, "message": WHY},
    "the error's name": {"error": "Internal Server Error", "message": WHY, "statusCode": 500},
    "vLLM": FLAT,
    "SGLang": {key: value for key, value in FLAT.items() if key != "object"},
    "a type": {"type": "error", "message": WHY},
    "a type and a code": {"type": "error", "message": WHY, "code": "server_error"},
    "FastAPI": {"detail": WHY},
    "a code": {"code": 500, "message": WHY},
    "a name of an error": {"type": "InternalServerError", "message": WHY},
    "FastChat": {"text": WHY, "error_code": 50001},
    "a status": {"status": "error", "message": WHY},
    "only a status": {"status": "error", "text": WHY},
    "only an object": {"object": "error", "text": WHY, "code": 500},
    "no success": {"success": False, "message": WHY},
    "a list of errors": {"errors": [{"message": WHY}]},
}

NO_ERRORS: list[Any] = [
    {"error": None, "choices": []},
    {"error": {}, "message": None},
    {"code": 0, "message": "ok"},
    {"code": "200", "message": "success", "success": True},
    {"message": {"content": WHY}, "done": False},
    {"message": "keep-alive"},
    {"type": "message_start", "message": {"content": []}},
    {"type": "response.in_progress", "message": WHY, "code": 7},
    {"choices": [{"delta": {"content": WHY}}], "message": WHY, "code": 500},
    {"error_code": 0, "text": WHY},
]


NAMED = ["event: error\ndata", "error", "data: {}\nerror", "event: ping\nError"]
"""How a server says that what follows is an error: llama.cpp did so by a field of its own."""


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish, **more}]}


FUNCTION = {"name": "delete", "arguments": '{"path": "a"}'}
TEXT_ITEM = {"type": "response.output_text.delta", "output_index": 0, "item_id": "m", "delta": "Hi"}
ITEM = {"type": "function_call", "id": "f", "call_id": "c", "name": "delete", "arguments": ""}
BLOCK = {"type": "tool_use", "id": "c", "name": "delete", "input": {}}
BEFORE: dict[str, dict[str, list[Any]]] = {
    "openai": {
        "nothing": [],
        "text": [chunk({"content": "Hi"})],
        "a call": [chunk({"tool_calls": [{"index": 0, "id": "c", "function": FUNCTION}]})],
    },
    "anthropic": {
        "nothing": [{"type": "message_start", "message": {}}],
        "text": [{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}],
        "a call": [
            {"type": "content_block_start", "index": 0, "content_block": BLOCK},
            {"type": "content_block_delta", "index": 0, "delta": {"partial_json": '{"path": "a"}'}},
        ],
    },
    "responses": {
        "nothing": [{"type": "response.created", "response": {}}],
        "text": [TEXT_ITEM],
        "a call": [
            {"type": "response.output_item.added", "output_index": 0, "item": ITEM},
            {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": '{"path": "a"}'},
        ],
    },
}
AFTER: dict[str, list[Any]] = {
    "openai": [chunk({}, "tool_calls")],
    "anthropic": [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}],
    "responses": [{"type": "response.completed", "response": {"status": "completed", "output": []}}],
}


def failed(prefix: str, before: list[Any], error: Any, after: list[Any], how: str) -> tuple[list[Event], str]:
    """The events before an error of a stream, which is written behind some fields; and what is said of it."""
    data = [f"data: {json.dumps(event)}\n\n" for event in before]
    rest = [f"data: {json.dumps(event)}\n\n" for event in after]
    body = "".join([*data, f"{how}: {json.dumps(error)}\n\n", *rest, "data: [DONE]\n\n"])
    events, raised = answer(Replay([body]).model(f"{prefix}:m"))
    assert isinstance(raised, ProviderError)
    return events, str(raised)


@pytest.mark.share(4)
@pytest.mark.parametrize("how", ["data", *NAMED])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("prefix", BEFORE)
def test_an_error_in_any_shape_is_raised_and_nothing_runs(prefix: str, shape: str, how: str) -> None:
    for what, before in BEFORE[prefix].items():
        for after in ([], AFTER[prefix]):
            events, said = failed(prefix, before, SHAPES[shape], after, how)
            assert said.startswith(f"{prefix} inside the stream")
            assert said.endswith(f": {WHY}")
            assert not any(isinstance(e, CallEnd | Finish) for e in events)
            assert any(isinstance(e, Text) for e in events) == (what == "text")
            assert [e.code for e in events if isinstance(e, CallError)] == ["truncated_call"] * (what == "a call")


@pytest.mark.parametrize("value", [WHY, {"why": WHY}, {"type": "odd", "message": WHY}, [{"message": WHY}]])
@pytest.mark.parametrize("prefix", BEFORE)
@pytest.mark.parametrize("how", NAMED)
def test_what_a_server_names_an_error_is_one(prefix: str, value: Any, how: str) -> None:
    _, said = failed(prefix, BEFORE[prefix]["a call"], value, AFTER[prefix], how)
    assert WHY in said


@pytest.mark.parametrize("how", NAMED)
def test_an_error_that_is_no_json_says_why(how: str) -> None:
    events, raised = answer(Replay([f"{how}: {WHY}\n\ndata: [DONE]\n\n"]).model("openai:m"))
    assert str(raised) == f"openai inside the stream: {WHY}"
    assert not any(isinstance(e, Finish) for e in events)


def test_a_field_for_errors_without_one_is_none() -> None:
    body = "".join(f"error:\ndata: {json.dumps(event)}\n\n" for event in [chunk({"content": "Hi"}, "stop")])
    events, raised = answer(Replay([body]).model("openai:m"))
    assert raised is None
    assert isinstance(events[-1], Finish)


@pytest.mark.parametrize("finish", [None, "error", "stop"])
@pytest.mark.parametrize("kind", ["streamed", "whole"])
def test_the_error_of_a_choice_is_raised(kind: str, finish: str | None) -> None:
    error = {"code": 502, "message": WHY}
    if kind == "streamed":
        _, said = failed("openai", BEFORE["openai"]["a call"], chunk({}, finish, error=error), AFTER["openai"], "data")
    else:
        choice = {"message": {"content": "Hi"}, "finish_reason": finish, "error": error}
        _, raised = answer(Replay([{"choices": [choice]}]).model("openai:m"), stream=False)
        said = str(raised)
    assert said == f"openai inside the stream (502): {WHY}"


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if isinstance(SHAPES[shape], dict)] + ["a message"])
@pytest.mark.parametrize("prefix", BEFORE)
def test_a_whole_response_that_is_an_error_says_why(prefix: str, shape: str) -> None:
    for stream in (True, False):
        _, raised = answer(Replay([SHAPES.get(shape, {"message": WHY})]).model(f"{prefix}:m"), stream=stream)
        assert str(raised).endswith(f": {WHY}")


@pytest.mark.parametrize("event", NO_ERRORS, ids=str)
def test_what_is_no_error(event: dict[str, Any]) -> None:
    assert error_in(event) is None


def test_a_whole_response_with_an_output_is_judged_by_its_status() -> None:
    assert whole_error({"output": [], "status": "completed", "error": {"message": WHY}}) is None
