"""One response is the same streamed and whole, and none of its calls runs that its end, or its own status, bars.

Over all three wires: texts, refusals and calls in any order, with every end that providers and gateways write.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit.events import TAKEN_BACK, ArgumentDelta, CallEnd, CallError, CallStart, Finish, SourceEvent, Text
from agentkit.models import messages_wire, openai, responses_wire
from agentkit.models.stream_errors import ErrorInStream
from agentkit.models.wire import DONE, Wire, WireEvent

EXAMPLES = int(os.environ.get("AGENTKIT_EXAMPLES", "12"))
TOOLS = {"get": {"type": "object", "properties": {"n": {}}}, "ping": {"type": "object"}}
OBJECTS = st.sampled_from([{}, {"n": "x"}, {"n": "x", "m": [1, {}]}])
UNFINISHED = '{"n": "x'


class Part(NamedTuple):
    """A text, a refusal or a call of a response.

    Attributes:
        kind: `text`, `refusal` or `call`.
        text: the words, or the arguments.
        name: of the tool.
        status: of a call's item.
    """

    kind: str
    text: str
    name: str = ""
    status: str = "completed"


class Response(NamedTuple):
    """What a provider says: its parts, and how it words the end."""

    parts: list[Part]
    end: Any

    def calls(self) -> list[Part]:
        return [part for part in self.parts if part.kind == "call"]


def parts(*, statuses: Iterable[str] = ("completed",), refusals: bool = True, broken: bool = True) -> Any:
    objects = OBJECTS.map(json.dumps)
    arguments = st.one_of(objects, st.just(UNFINISHED)) if broken else objects
    calls = st.builds(Part, st.just("call"), arguments, st.sampled_from(list(TOOLS)), st.sampled_from(list(statuses)))
    texts = [st.just(Part("text", "Hm. "))] + ([st.just(Part("refusal", "No. "))] if refusals else [])
    return st.lists(st.one_of(calls, calls, *texts), max_size=4)


def cut(text: str) -> list[str]:
    return [text[:3], text[3:]] if len(text) > 3 else [text]


# ---------------------------------------------------------------- the three wires


CHAT_ENDS = [
    None,
    "stop",
    "tool_calls",
    "length",
    "content_filter",
    "error",
    "abort",
    "refusal",
    "SAFETY",
    "STOP",
    "odd",
]


def chat() -> st.SearchStrategy[Response]:
    in_order = parts().map(lambda found: sorted(found, key=lambda part: part.kind == "call"))
    return st.builds(Response, in_order, st.sampled_from(CHAT_ENDS))


def chat_whole(response: Response) -> list[WireEvent]:
    message: dict[str, Any] = {"role": "assistant"}
    for field, kind in (("content", "text"), ("refusal", "refusal")):
        message[field] = "".join(part.text for part in response.parts if part.kind == kind) or None
    message["tool_calls"] = [chat_call(at, call, call.text) for at, call in enumerate(response.calls())]
    return openai.chunks_of({"choices": [{"message": message, "finish_reason": response.end}]})


def chat_call(at: int, call: Part, text: str) -> dict[str, Any]:
    return {"id": f"c{at}", "type": "function", "function": {"name": call.name, "arguments": text}}


def chat_streamed(response: Response) -> list[WireEvent]:
    deltas: list[dict[str, Any]] = []
    for kind, field in (("text", "content"), ("refusal", "refusal")):
        deltas += [{field: part.text} for part in response.parts if part.kind == kind]
    for at, call in enumerate(response.calls()):
        first, *rest = cut(call.text)
        deltas.append({"tool_calls": [{"index": at, **chat_call(at, call, first)}]})
        deltas += [{"tool_calls": [{"index": at, "function": {"arguments": piece}}]} for piece in rest]
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    return [*chunks, {"choices": [{"index": 0, "delta": {}, "finish_reason": response.end}]}, DONE]


RESPONSES_ENDS = [
    {"status": "completed"},
    *(
        {"status": "incomplete", "incomplete_details": details}
        for details in (None, {"reason": "max_output_tokens"}, {"reason": "content_filter"}, {"reason": "odd"})
    ),
]


def responses() -> st.SearchStrategy[Response]:
    found = parts(statuses=("completed", "completed", "incomplete", "in_progress", "failed"))
    return st.builds(Response, found, st.sampled_from(RESPONSES_ENDS))


def items(response: Response) -> list[dict[str, Any]]:
    made = []
    for at, part in enumerate(response.parts):
        if part.kind == "call":
            call = {"type": "function_call", "id": f"f{at}", "call_id": f"c{at}", "name": part.name}
            made.append({**call, "arguments": part.text, "status": part.status})
        else:
            kind, field = ("output_text", "text") if part.kind == "text" else ("refusal", "refusal")
            content = [{"type": kind, field: part.text}]
            made.append({"type": "message", "id": f"m{at}", "status": "completed", "content": content})
    return made


def responses_whole(response: Response) -> list[WireEvent]:
    return list(responses_wire.events_of({**response.end, "output": items(response)}))


def responses_streamed(response: Response) -> list[WireEvent]:
    events: list[WireEvent] = [{"type": "response.in_progress", "response": {"status": "in_progress", "output": []}}]
    for at, (part, item) in enumerate(zip(response.parts, items(response), strict=True)):
        empty = {"arguments": ""} if part.kind == "call" else {"content": []}
        events.append(said("output_item.added", at, item={**item, **empty, "status": "in_progress"}))
        kind = {"call": "function_call_arguments", "text": "output_text", "refusal": "refusal"}[part.kind]
        events += [said(f"{kind}.delta", at, item_id=item["id"], delta=piece) for piece in cut(part.text)]
        events.append(said("output_item.done", at, item=item))
    end = {**response.end, "output": items(response)}
    return [*events, {"type": f"response.{end['status']}", "response": end}]


def said(kind: str, at: int, **fields: Any) -> WireEvent:
    return {"type": f"response.{kind}", "output_index": at, "content_index": 0, **fields}


MESSAGES_ENDS = ["end_turn", "tool_use", "max_tokens", "model_context_window_exceeded", "refusal", "pause_turn", "odd"]


def messages() -> st.SearchStrategy[Response]:
    return st.builds(Response, parts(refusals=False, broken=False), st.sampled_from(MESSAGES_ENDS))


def block(at: int, part: Part, given: object) -> dict[str, Any]:
    if part.kind == "text":
        return {"type": "text", "text": given}
    return {"type": "tool_use", "id": f"c{at}", "name": part.name, "input": given}


def messages_whole(response: Response) -> list[WireEvent]:
    content = [
        block(at, part, part.text if part.kind == "text" else json.loads(part.text))
        for at, part in enumerate(response.parts)
    ]
    return messages_wire.events_of({"type": "message", "content": content, "stop_reason": response.end})


def messages_streamed(response: Response) -> list[WireEvent]:
    events: list[WireEvent] = [{"type": "message_start", "message": {"stop_reason": None}}]
    for at, part in enumerate(response.parts):
        kind, field = ("text", "text") if part.kind == "text" else ("input_json", "partial_json")
        start = block(at, part, "" if part.kind == "text" else {})
        events.append({"type": "content_block_start", "index": at, "content_block": start})
        for piece in cut("" if part.text == "{}" else part.text):  # no input streams as an empty text
            delta = {"type": f"{kind}_delta", field: piece}
            events.append({"type": "content_block_delta", "index": at, "delta": delta})
        events.append({"type": "content_block_stop", "index": at})
    return [*events, {"type": "message_delta", "delta": {"stop_reason": response.end}}, {"type": "message_stop"}]


class Api(NamedTuple):
    responses: Callable[[], st.SearchStrategy[Response]]
    wire: Callable[[], Wire]
    whole: Callable[[Response], list[WireEvent]]
    streamed: Callable[[Response], list[WireEvent]]


APIS = {
    "chat": Api(chat, lambda: openai.ChatWire("s", TOOLS, TOOLS), chat_whole, chat_streamed),
    "responses": Api(responses, lambda: responses_wire.ResponsesWire("s", TOOLS), responses_whole, responses_streamed),
    "messages": Api(messages, lambda: messages_wire.MessagesWire("s", TOOLS), messages_whole, messages_streamed),
}


# ---------------------------------------------------------------- the properties


def read(wire: Wire, events: Iterable[WireEvent]) -> list[SourceEvent]:
    return [made for event in events for made in wire.feed(event)] + wire.close()


def merged(events: Iterable[SourceEvent]) -> tuple[str, dict[int, list[Any]], Finish | None]:
    """The words, what is said of each call, and the finish."""
    words, calls, ending = "", {}, None
    for event in events:
        match event:
            case Text():
                words += event.text
            case CallStart():
                calls[event.index] = [event, ""]
            case ArgumentDelta():
                calls[event.index][1] += event.text
            case CallEnd() | CallError():
                calls[event.index].append(event)
            case Finish():
                ending = event
    return words, calls, ending


def both(api: Api, response: Response) -> list[list[SourceEvent]]:
    return [read(api.wire(), api.whole(response)), read(api.wire(), api.streamed(response))]


def running(events: Iterable[SourceEvent]) -> set[int]:
    return {event.index for event in events if isinstance(event, CallEnd)}


@pytest.mark.parametrize("kind", APIS)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_a_response_is_the_same_streamed_and_whole(kind: str, data: st.DataObject) -> None:
    api = APIS[kind]
    response = data.draw(api.responses())
    whole, streamed = both(api, response)
    assert merged(whole) == merged(streamed)


@pytest.mark.parametrize("kind", APIS)
@settings(max_examples=EXAMPLES)
@given(data=st.data())
def test_no_call_runs_that_is_taken_back(kind: str, data: st.DataObject) -> None:
    api = APIS[kind]
    response = data.draw(api.responses())
    whole, streamed = both(api, response)
    ending = merged(whole)[2]
    assert ending is not None
    if any(part.kind == "refusal" for part in response.parts):
        assert ending.reason in (*TAKEN_BACK, "error")
    if ending.reason not in TAKEN_BACK:
        return
    assert not running(whole)
    refused = next((at for at, part in enumerate(response.parts) if part.kind == "refusal"), len(response.parts))
    before = [part.kind for part in response.parts[:refused]].count("call")
    last = bool(response.parts) and refused == len(response.parts) and response.parts[-1].kind == "call"
    assert running(streamed) <= set(range(before - last))


@pytest.mark.parametrize("indexes", [(0, 1), (None, None), (None, 1), ("no", "no"), (0, "no")])
@pytest.mark.parametrize("whole", [True, False], ids=["whole", "streamed"])
def test_only_the_first_of_several_choices_counts(indexes: tuple[object, object], whole: bool) -> None:
    """Choices without an index are in their order."""
    calls = [chat_call(0, Part("call", '{"n": 1}', "get"), '{"n": 1}')]
    said = [({"content": "Hi."}, "stop"), ({"tool_calls": calls}, "tool_calls")]
    choices = [
        {**({} if at == "no" else {"index": at}), "message" if whole else "delta": words, "finish_reason": reason}
        for at, (words, reason) in zip(indexes, said, strict=True)
    ]
    events = read(
        APIS["chat"].wire(), openai.chunks_of({"choices": choices}) if whole else [{"choices": choices}, DONE]
    )
    assert events == [Text("Hi."), Finish("stop", "stop")]


FILTERED = {
    "chat": ("content_filter", [{"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}]),
    "responses": (RESPONSES_ENDS[3], [{"type": "response.completed", "response": RESPONSES_ENDS[0]}]),
    "messages": ("refusal", [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}]),
}
"""The end of a response, and what some gateway says after it."""


@pytest.mark.parametrize("kind", FILTERED)
def test_another_finish_after_a_filter_changes_nothing(kind: str) -> None:
    api, (end, more) = APIS[kind], FILTERED[kind]
    streamed = api.streamed(Response([Part("call", '{"n": 1}', "get")], end))
    events = read(api.wire(), [*streamed, *more])
    assert [e.code for e in events if isinstance(e, CallError)] == ["denied"]
    assert events == read(api.wire(), streamed)


@settings(max_examples=EXAMPLES)
@given(response=responses())
def test_a_call_whose_item_is_not_complete_does_not_run(response: Response) -> None:
    enough = ("completed",) if response.end["status"] == "incomplete" else ("completed", "in_progress")
    statuses = [call.status for call in response.calls()]
    for events in both(APIS["responses"], response):
        assert all(statuses[at] in enough for at in running(events))
        codes = {e.index: e.code for e in events if isinstance(e, CallError)}
        assert all(codes[at] == "truncated_call" for at, status in enumerate(statuses) if status not in enough)


@pytest.mark.parametrize("details", [None, {"reason": "odd"}])
def test_that_a_response_is_incomplete_is_told_whatever_its_reason(details: Any) -> None:
    end = {"status": "incomplete", "incomplete_details": details}
    for events in both(APIS["responses"], Response([Part("call", "{}", "ping")], end)):
        assert events[-1] == Finish("length", "odd" if details else "incomplete")


@settings(max_examples=EXAMPLES)
@given(response=responses())
def test_the_status_of_a_response_counts_and_not_the_name_of_its_last_event(response: Response) -> None:
    *before, last = responses_streamed(response)
    named = [*before, {**last, "type": "response.completed"}]  # LiteLLM names every end so
    assert read(APIS["responses"].wire(), named) == read(APIS["responses"].wire(), [*before, last])


@pytest.mark.parametrize("status", ["failed", "cancelled"])
@pytest.mark.parametrize("name", ["completed", "incomplete", "failed", "cancelled"])
@settings(max_examples=EXAMPLES // 4)
@given(response=responses())
def test_a_response_that_failed_is_an_error_under_any_name(status: str, name: str, response: Response) -> None:
    """And so it is whole; its end confirms no call."""
    end = {"status": status, "error": {"message": "Sorry", "code": "server_error"}, "output": items(response)}
    *before, _ = responses_streamed(response)
    wire = APIS["responses"].wire()
    for event in before:
        wire.feed(event)
    for reading, events in ((wire, [{"type": f"response.{name}", "response": end}]), (APIS["responses"].wire(), None)):
        with pytest.raises(ErrorInStream, match="Sorry"):
            read(reading, responses_wire.events_of(end) if events is None else events)


@pytest.mark.parametrize("status", ["queued", "in_progress", None, "odd"])
@settings(max_examples=EXAMPLES // 4)
@given(response=responses())
def test_no_call_runs_of_a_whole_response_that_is_not_over(status: str | None, response: Response) -> None:
    wire = APIS["responses"].wire()
    events = read(wire, responses_wire.events_of({"status": status, "output": items(response)}))
    assert not wire.done
    assert not running(events)
    assert merged(events)[0] == "".join(part.text for part in response.parts if part.kind != "call")


@pytest.mark.parametrize(("end", "reason"), [("error", "error"), ("abort", "error"), ("refusal", "refusal")])
@pytest.mark.parametrize("end_of", [chat_whole, chat_streamed])
def test_a_chat_completion_that_broke_off_may_have_cut_its_last_call(
    end_of: Callable[[Response], list[WireEvent]], end: str, reason: str
) -> None:
    calls = [Part("call", '{"n": 1}', "get"), Part("call", '{"n": 2}', "get")]
    events = read(APIS["chat"].wire(), end_of(Response(calls, end)))
    codes = {e.index: e.code for e in events if isinstance(e, CallError)}
    assert codes[1] == ("denied" if reason == "refusal" else "truncated_call")
    assert events[-1] == Finish(reason, end)
