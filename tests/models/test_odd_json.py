"""JSON that is deep, long, or none, wherever a response holds it: a clear error, or the answer, and nothing else.

Through the real SDKs: in events, in whole responses, in errors, and in the arguments of calls.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from streams import answer

from agentkit.errors import ProviderError
from agentkit.events import CallEnd, CallError, Event, Finish, ProviderBlock
from agentkit.models.response_body import MAX_DEPTH
from agentkit.testing import Recording, Replay

ODD = {
    "deep array": "[" * 500 + "]" * 500,
    "deeper array": "[" * 20_000 + "]" * 20_000,
    "deep object": '{"a":' * 500 + "1" + "}" * 500,
    "unclosed": "[" * 20_000,
    "digits": "1" * 5_000,
    "exponent": "1e999",
    "NaN": "NaN",
    "given twice": '{"a": 1, "a": 2}',
    "lone surrogate": '"\\ud800"',
    "long": '"' + "x" * 100_000 + '"',
}

CHAT_CALL = '{"index":0,"id":"c","function":{"name":"pay","arguments":%s},"extra":%s}'
ITEM = '{"type":"function_call","id":"f","call_id":"c","name":"pay","arguments":%s,"status":"completed","extra":%s}'
BLOCK = '{"type":"tool_use","id":"c","name":"pay","input":%s,"caller":{"type":"code","extra":%s}}'
FINE = json.dumps('{"to": "Al"}')


def events(*data: str) -> str:
    return "".join(f"event: x\ndata: {one}\n\n" for one in data)


def chat(arguments: str, extra: str) -> tuple[str, str]:
    """A response with a call, streamed and whole."""
    call = CHAT_CALL % (arguments, extra)
    end = f'{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"tool_calls"}}],"usage":{extra}}}'
    whole = f'{{"choices":[{{"message":{{"tool_calls":[{call}]}},"finish_reason":"tool_calls"}}],"usage":{extra}}}'
    return events(f'{{"choices":[{{"index":0,"delta":{{"tool_calls":[{call}]}}}}]}}', end), whole


def responses(arguments: str, extra: str) -> tuple[str, str]:
    item = ITEM % (arguments, extra)
    done = f'{{"type":"response.output_item.done","output_index":0,"item":{item}}}'
    end = '{"type":"response.completed","response":{"status":"completed","output":[],"usage":' + extra + "}}"
    return events(done, end), f'{{"status":"completed","output":[{item}],"usage":{extra}}}'


def messages(arguments: str, extra: str) -> tuple[str, str]:
    given = json.loads(arguments) if arguments.startswith('"{') else arguments  # an object, where it is one
    block = BLOCK % (given, extra)
    start = f'{{"type":"content_block_start","index":0,"content_block":{block}}}'
    end = '{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":' + extra + "}"
    streamed = events(start, '{"type":"content_block_stop","index":0}', end, '{"type":"message_stop"}')
    return streamed, f'{{"type":"message","content":[{block}],"stop_reason":"tool_use","usage":{extra}}}'


WIRES = {"openai": chat, "responses": responses, "anthropic": messages}


def ask(prefix: str, body: str, status: int = 200) -> tuple[list[Event], ProviderError | None]:
    streamed = body.startswith("event:")
    kind = "text/event-stream" if streamed else "application/json"
    model = Replay([Recording(body, status, {"content-type": kind})]).model(f"{prefix}:m", max_retries=0)
    return answer(model, stream=streamed)


def calls(found: list[Event]) -> list[Any]:
    """The arguments of the calls that run, and the codes of those that do not."""
    return [
        dict(e.call.arguments) if isinstance(e, CallEnd) else e.code
        for e in found
        if isinstance(e, CallEnd | CallError)
    ]


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("prefix", WIRES)
def test_beside_a_call(prefix: str, odd: str) -> None:
    for body in WIRES[prefix](FINE, ODD[odd]):
        found, error = ask(prefix, body)
        if error is None:
            assert (calls(found), type(found[-1])) == ([{"to": "Al"}], Finish)
        else:
            assert (error.kind, calls(found)) == ("stream", [])
        for block in found:
            if isinstance(block, ProviderBlock):
                json.dumps(block.data, allow_nan=False).encode()  # what a store keeps, and its server gets back


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("prefix", WIRES)
def test_as_arguments(prefix: str, odd: str) -> None:
    """No call runs with what is left of them."""
    written = json.dumps('{"to": ' + ODD[odd] + "}")
    for arguments in (ODD[odd], written):
        for body in WIRES[prefix](arguments, "null"):
            found, error = ask(prefix, body)
            ran = [call for call in calls(found) if isinstance(call, dict)]
            assert error is not None or calls(found)
            assert all(same(call, odd) for call in ran)


def same(arguments: dict[str, Any], odd: str) -> bool:
    """Whether arguments that run are what was written; of a key given twice in an event itself, JSON's last value."""
    if odd == "given twice":
        return arguments in ({"a": 2}, {"to": {"a": 2}})
    return arguments == {"to": {"long": "x" * 100_000, "lone surrogate": "�"}.get(odd)}


def errors(odd: str) -> Iterator[str]:
    yield f'{{"error":{odd}}}'
    yield f'{{"error":{{"message":{odd},"code":{odd}}}}}'
    yield odd


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("prefix", WIRES)
def test_as_an_error(prefix: str, odd: str) -> None:
    for body in errors(ODD[odd]):
        _, error = ask(prefix, body, 400)
        assert error is not None
        assert (error.kind, error.status) == ("bad_request", 400)
    inside = f'{{"type":"error","error":{{"message":{ODD[odd]},"code":{ODD[odd]}}}}}'
    _, error = ask(prefix, events(inside))
    assert error is not None
    assert error.kind in ("stream", "server")
    assert len(str(error)) < 10_000


def test_how_deep_a_response_may_be() -> None:
    found, error = ask("openai", chat(FINE, "[" * 150 + "]" * 150)[0])
    assert (calls(found), error) == ([{"to": "Al"}], None)
    _, error = ask("openai", chat(FINE, "[" * MAX_DEPTH + "]" * MAX_DEPTH)[0])
    assert f"JSON in the response is nested deeper than {MAX_DEPTH} arrays and objects" in str(error)
