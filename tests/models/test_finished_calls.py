"""What the end of a response decides about its calls: those without arguments, taken back, contradicted, dropped.

Each through the machines of all three wires, whole and streamed.
"""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from streams import answer

from agentkit import Agent
from agentkit.events import CallEnd, CallError, Event, Finish, Text
from agentkit.messages import ToolCall, ToolMessage
from agentkit.models.messages_wire import MessagesWire
from agentkit.models.native import takes_no_arguments
from agentkit.models.openai import ChatWire
from agentkit.models.responses_wire import ResponsesWire
from agentkit.models.wire import Wire, WireEvent
from agentkit.processor import ProcessorConfig
from agentkit.testing import Replay, ScriptedModel

WIRES = ["openai", "responses", "anthropic"]
WAYS = ["streamed", "whole"]
LEFT_OUT = object()


def said(key: str, value: object) -> dict[str, Any]:
    return {} if value is LEFT_OUT else {key: value}


# ---------------------------------------------------------------- one call, as each wire tells it


def chat(name: str, arguments: object, finish: str, whole: bool) -> Any:
    function = {"name": name, **said("arguments", arguments)}
    call = {"id": "c1", "type": "function", "function": function}
    if whole:
        return {"choices": [{"message": {"content": None, "tool_calls": [call]}, "finish_reason": finish}]}
    return [
        {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **call}]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]},
    ]


def responses(name: str, arguments: object, finish: str, whole: bool) -> Any:
    item = {"type": "function_call", "id": "f1", "call_id": "c1", "name": name, **said("arguments", arguments)}
    end: dict[str, Any] = {"status": "completed"}
    if finish == "content_filter":
        end = {"status": "incomplete", "incomplete_details": {"reason": finish}}
    item["status"] = end["status"]
    if whole:
        return {**end, "output": [item]}
    added = {**item, "arguments": "", "status": "in_progress"}
    done = (
        [] if finish == "content_filter" else [{"type": "response.output_item.done", "output_index": 0, "item": item}]
    )
    text = arguments if isinstance(arguments, str) else ""
    return [
        {"type": "response.output_item.added", "output_index": 0, "item": added},
        {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "f1", "delta": text},
        *done,
        {"type": f"response.{end['status']}", "response": {**end, "output": [item] if done else []}},
    ]


def messages(name: str, arguments: object, finish: str, whole: bool) -> Any:
    given = json.loads(arguments) if isinstance(arguments, str) and arguments else arguments
    block = {"type": "tool_use", "id": "c1", "name": name, **said("input", {} if given == "" else given)}
    reason = {"tool_calls": "tool_use", "content_filter": "refusal"}[finish]
    if whole:
        return {"type": "message", "content": [block], "stop_reason": reason}
    stop = [] if reason == "refusal" else [{"type": "content_block_stop", "index": 0}]
    return [
        {"type": "content_block_start", "index": 0, "content_block": block},
        *stop,
        {"type": "message_delta", "delta": {"stop_reason": reason}},
        {"type": "message_stop"},
    ]


TELL = {"openai": chat, "responses": responses, "anthropic": messages}


def tape(prefix: str, name: str, arguments: object, way: str, finish: str = "tool_calls") -> Replay:
    told = TELL[prefix](name, arguments, finish, way == "whole")
    if way == "streamed":
        told = "".join(f"event: x\ndata: {json.dumps(event)}\n\n" for event in told)
    return Replay([told])


# ---------------------------------------------------------------- calls without arguments


def ping() -> str:
    """Ping."""
    return "pong"


def clear(path: str = "everything") -> str:
    """Clear."""
    return f"cleared {path}"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("prefix", WIRES)
@pytest.mark.parametrize("arguments", ["", None, "{}", LEFT_OUT], ids=["empty", "null", "braces", "left out"])
def test_a_call_of_a_tool_without_parameters_runs(prefix: str, way: str, arguments: object) -> None:
    assert results(prefix, way, ping, arguments) == ["pong"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("prefix", WIRES)
@pytest.mark.parametrize("arguments", ["", None, "{}"], ids=["empty", "null", "braces"])
def test_a_finished_call_that_is_said_to_have_no_arguments_has_none(prefix: str, way: str, arguments: object) -> None:
    assert results(prefix, way, clear, arguments) == ["cleared everything"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("prefix", WIRES)
def test_half_a_character_is_no_contradiction(prefix: str, way: str) -> None:
    """No encoding carries it, so that U+FFFD stands for it wherever the arguments are told."""
    assert results(prefix, way, clear, json.dumps({"path": "a\ud800b"})) == ["cleared a\ufffdb"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("prefix", WIRES)
def test_a_call_of_whose_arguments_nothing_is_said_does_not_run(prefix: str, way: str) -> None:
    """Not with what its tool makes up for them, though the response finished."""
    (said,) = results(prefix, way, clear, LEFT_OUT)
    assert said == "no arguments of this call came, nor a statement that it has none; call again with them"


@pytest.mark.parametrize("prefix", WIRES)
@pytest.mark.parametrize("arguments", [["x"], 5, True], ids=["array", "number", "boolean"])
def test_arguments_that_are_none_are_refused_and_not_left_out(prefix: str, arguments: object) -> None:
    (said,) = results(prefix, "whole", clear, arguments)
    assert said.startswith("the arguments must be one JSON object, such as {}; found ")


def results(prefix: str, way: str, tool: Any, arguments: object) -> list[str]:
    """What the one call of a run is answered, by the real SDK and an agent."""
    told = tape(prefix, tool.__name__, arguments, way)
    agent = Agent(told.model(f"{prefix}:m"), tool, max_turns=1, stream=way == "streamed")
    return [m.text for m in agent.run_sync("Hi").messages if isinstance(m, ToolMessage)]


def test_which_tools_take_nothing() -> None:
    schemas: dict[str, dict[str, Any]] = {
        "none": {"type": "object", "properties": {}, "required": [], "additionalProperties": False},
        "shortest": {"type": "object"},
        "optional": {"type": "object", "properties": {"a": {"type": "string"}}},
        "free": {"type": "object", "additionalProperties": True},
        "by pattern": {"type": "object", "patternProperties": {"^a": {}}},
    }
    assert {name for name, schema in schemas.items() if takes_no_arguments(schema)} == {"none", "shortest"}


# ---------------------------------------------------------------- responses that are taken back


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("prefix", WIRES)
def test_a_complete_call_does_not_run_after_a_filter(prefix: str, way: str) -> None:
    told = tape(prefix, "clear", '{"path": "a"}', way, finish="content_filter")
    agent = Agent(told.model(f"{prefix}:m"), clear, max_turns=1, stream=way == "streamed")
    (result,) = [m for m in agent.run_sync("Hi").messages if isinstance(m, ToolMessage)]
    named = "refusal" if prefix == "anthropic" else "content_filter"
    assert (result.error in ("denied", "truncated_call"), named in result.text) == (True, True)


@pytest.mark.parametrize("prefix", WIRES)
def test_of_a_whole_response_that_was_taken_back_no_call_runs(prefix: str) -> None:
    ids = ("c1", "c2")
    blocks = [{"type": "tool_use", "id": id, "name": "clear", "input": {"path": "a"}} for id in ids]
    cut = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
    choice = {"finish_reason": "content_filter", "message": {"tool_calls": [call("a", id=id) for id in ids]}}
    bodies: dict[str, dict[str, Any]] = {
        "openai": {"choices": [choice]},
        "responses": {**cut, "output": [item("a", id=id, call_id=id) for id in ids]},
        "anthropic": {"type": "message", "stop_reason": "refusal", "content": blocks},
    }
    events, error = answer(Replay([bodies[prefix]]).model(f"{prefix}:m"), stream=False)
    assert error is None
    assert [e.code for e in events if isinstance(e, CallError)] == ["denied", "denied"]
    assert not any(isinstance(e, CallEnd) for e in events)


def test_a_refusal_in_words_takes_back_the_calls_beside_it() -> None:
    delta = {"refusal": "I will not.", "tool_calls": [call("a", index=0)]}
    found = read(ChatWire("s"), [{"choices": [{"delta": delta, "finish_reason": "tool_calls"}]}])
    assert [e.code for e in found if isinstance(e, CallError)] == ["denied"]
    assert found[-1] == Finish("refusal", "tool_calls")


def clears(prefix: str, *paths: str) -> tuple[Wire, list[WireEvent], list[WireEvent]]:
    """Complete calls as a wire streams them, each with its end, and a finish that takes them back."""
    events: list[WireEvent] = []
    if prefix == "openai":
        events += [delta(call(path, id=path, index=at)) for at, path in enumerate(paths)]
        return ChatWire("s"), events, [delta(finish_reason="content_filter")]
    if prefix == "responses":
        for at, path in enumerate(paths):
            done = item(path, id=path, call_id=path)
            added = {**done, "arguments": "", "status": "in_progress"}
            events.append({"type": "response.output_item.added", "output_index": at, "item": added})
            events.append({"type": "response.output_item.done", "output_index": at, "item": done})
        cut = {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}
        return ResponsesWire("r"), events, [{"type": "response.incomplete", "response": cut}]
    for at, path in enumerate(paths):
        block = {"type": "tool_use", "id": path, "name": "clear", "input": {"path": path}}
        events.append({"type": "content_block_start", "index": at, "content_block": block})
        events.append({"type": "content_block_stop", "index": at})
    taken_back = {"type": "message_delta", "delta": {"stop_reason": "refusal"}}
    return MessagesWire("a"), events, [taken_back, {"type": "message_stop"}]


@pytest.mark.parametrize("prefix", WIRES)
def test_no_call_ends_before_its_response_does(prefix: str) -> None:
    wire, calls, taken_back = clears(prefix, "a", "b")
    assert paths([out for event in calls for out in wire.feed(event)]) == []
    assert paths(read(wire, taken_back)) == ["denied"] * 2


@pytest.mark.parametrize("prefix", WIRES)
def test_a_complete_call_of_a_response_that_broke_off_behind_it_is_told(prefix: str) -> None:
    wire, calls, _ = clears(prefix, "a")
    assert paths(read(wire, calls)) == (["truncated_call"] if prefix == "openai" else ["a"])  # chat marks no ends


@pytest.mark.parametrize("reason", ["content_filter", "refusal"])
def test_what_waits_for_the_end_of_a_response_does_not_run_once_it_is_taken_back(reason: Any) -> None:
    """Calls that the provider had told to be complete before, where they do not start at once."""
    script = ScriptedModel([[ToolCall("c1", "clear", {"path": "a"}), Finish(reason)]])
    agent = Agent(script, clear, max_turns=1, config=ProcessorConfig(execute="end"))
    (result,) = [m for m in agent.run_sync("Hi").messages if isinstance(m, ToolMessage)]
    assert (result.error, result.text) == (
        "denied",
        f"not run: the response finished with {reason}, which retracts its calls",
    )


# ---------------------------------------------------------------- responses that contradict themselves


def read(wire: Wire, events: list[WireEvent]) -> list[Event]:
    return [out for event in events for out in wire.feed(event)] + wire.close()


def paths(events: list[Event]) -> list[Any]:
    """The paths of the calls that run, and the codes of those that do not."""
    return [
        e.call.arguments.get("path") if isinstance(e, CallEnd) else e.code
        for e in events
        if isinstance(e, CallEnd | CallError)
    ]


def delta(*calls: dict[str, Any], **choice: Any) -> WireEvent:
    return {"choices": [{"index": 0, "delta": {"tool_calls": list(calls)}, **choice}]}


def call(path: str, id: str = "c1", **fields: Any) -> dict[str, Any]:
    return {"id": id, "function": {"name": "clear", "arguments": json.dumps({"path": path})}, **fields}


@pytest.mark.parametrize(
    ("streamed", "final", "run"),
    [
        ([], [call("a"), call("b", id="c2")], ["a", "b"]),
        ([call("a", index=0)], [], ["a"]),
        ([call("a", index=0)], [call("a")], ["a"]),
        ([call("a", index=0)], [call("b", id="c2")], ["a"]),
    ],
    ids=["alone", "none", "same", "other"],
)
def test_the_message_as_a_whole_is_read_if_no_call_came_in_pieces(
    streamed: list[Any], final: list[Any], run: list[Any]
) -> None:
    end = {"index": 0, "delta": {}, "finish_reason": "tool_calls", "message": {"tool_calls": final}}
    assert paths(read(ChatWire("s"), [*map(delta, streamed), {"choices": [end]}])) == run


def test_words_that_only_the_message_as_a_whole_holds_are_not_lost() -> None:
    end = {"message": {"content": "Hello"}, "finish_reason": "stop"}
    assert read(ChatWire("s"), [{"choices": [end]}]) == [Text("Hello"), Finish("stop", "stop")]
    both = {"delta": {"content": "Hello"}, **end}
    assert read(ChatWire("s"), [{"choices": [both]}]) == [Text("Hello"), Finish("stop", "stop")]


def item(path: str, **fields: Any) -> dict[str, Any]:
    arguments = json.dumps({"path": path})
    named = {"type": "function_call", "id": "f1", "call_id": "c1", "name": "clear"}
    return {**named, "arguments": arguments, "status": "completed", **fields}


ADDED = {"type": "response.output_item.added", "output_index": 0, "item": item("", arguments="", status="in_progress")}
DELTA = {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "f1", "delta": '{"path": "a"}'}


def completed(*output: Any) -> WireEvent:
    return {"type": "response.completed", "response": {"status": "completed", "output": list(output)}}


def item_done(path: str) -> WireEvent:
    return {"type": "response.output_item.done", "output_index": 0, "item": item(path)}


def arguments_done(path: str) -> WireEvent:
    kind = "response.function_call_arguments.done"
    return {"type": kind, "output_index": 0, "item_id": "f1", "arguments": json.dumps({"path": path})}


@pytest.mark.parametrize(
    ("events", "run"),
    [
        ([ADDED, DELTA, item_done("bbb"), completed()], ["bbb"]),
        ([ADDED, DELTA, arguments_done("bbb"), completed()], ["bbb"]),
        ([ADDED, DELTA, completed(item("bbb"))], ["bbb"]),
        ([ADDED, DELTA, arguments_done("a"), item_done("bbb"), completed()], ["bbb"]),
    ],
    ids=["item", "arguments", "response", "item after arguments"],
)
def test_an_item_that_is_done_decides_over_its_pieces(events: list[WireEvent], run: list[Any]) -> None:
    assert paths(read(ResponsesWire("r"), events)) == run


# ---------------------------------------------------------------- calls that do not come


def test_a_call_that_is_announced_beside_words_and_does_not_come_is_told(caplog: pytest.LogCaptureFixture) -> None:
    body = {"choices": [{"message": {"content": "I look."}, "finish_reason": "tool_calls"}]}
    with caplog.at_level(logging.WARNING, "agentkit.models"):
        events, error = answer(Replay([body]).model("openai:m"), stream=False)
    assert (events, error) == ([Text("I look."), Finish("tool_calls", "tool_calls")], None)
    said = "says that it calls tools (tool_calls), but it has no call; the server may have dropped a call that it could"
    assert said in caplog.text
