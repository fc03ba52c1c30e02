"""Replies as clients read them: literal bytes, and the official SDKs as judges."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import anthropic
import httpx2
import openai
import pytest
from pydantic import TypeAdapter

from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallStart,
    Finish,
    ProviderBlock,
    SourceEvent,
    Text,
    Thinking,
    Usage,
)
from agentkit.gateway.chat_reply import ChatReply
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.client_wire import ReplyWriter, WireName
from agentkit.gateway.messages_reply import MessagesReply
from agentkit.gateway.responses_reply import ResponsesReply
from agentkit.gateway.wires import WIRES
from agentkit.messages import ToolCall
from agentkit.models.messages_wire import MessagesWire
from agentkit.models.messages_wire import events_of as message_events
from agentkit.models.openai import ChatWire, chunks_of
from agentkit.models.responses_wire import ResponsesWire
from agentkit.models.responses_wire import events_of as response_events
from agentkit.models.wire import DONE, Wire, WireEvent

NAMES: Final[tuple[WireName, ...]] = ("chat", "responses", "messages")

TOOL: Final = {"type": "object", "properties": {"a": {"type": "integer"}}}

ASKED: Final[Mapping[WireName, dict[str, Any]]] = {
    "chat": {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream_options": {"include_usage": True},
    },
    "responses": {"model": "m", "input": "Hi"},
    "messages": {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "Hi"}]},
}

REPLY: Final[list[SourceEvent]] = [
    Thinking("Let me "),
    Thinking("see."),
    Text("I'll look.\n"),
    Text('"é"\u2028😀'),
    CallStart(0, "add", "call_a"),
    ArgumentDelta(0, '{"a"'),
    ArgumentDelta(0, ": 1"),
    CallStart(1, "now", "call_b"),
    ArgumentDelta(0, "}"),
    CallEnd(0, ToolCall("call_a", "add", {"a": 1})),
    CallEnd(1, ToolCall("call_b", "now", {})),
    Text("Done."),
    Usage(10, 5, 4, 1, 2),
    Finish("stop", "stop"),
]
"""Thinking, text before and after calls, a call without arguments, and pieces of two calls in between each other."""


def streamed(name: WireName, events: Iterable[SourceEvent]) -> bytes:
    """A reply as it is streamed to a client."""
    writer = WIRES[name].writer(WIRES[name].read(ASKED[name]))
    return writer.start() + b"".join(map(writer.write, events))


# ---------------------------------------------------------------- literal bytes


def written(create: Callable[..., ReplyWriter], name: WireName, *events: SourceEvent) -> list[str]:
    """The lines of a reply after its start; the id is `1`."""
    writer = create(WIRES[name].read(ASKED[name]), "1", *([0] if create is not MessagesReply else []))
    writer.start()
    return b"".join(map(writer.write, events)).decode().strip().split("\n\n")


SMALL: Final = (
    Text("Hi"),
    CallStart(0, "add", "call_a"),
    ArgumentDelta(0, "{}"),
    CallEnd(0, ToolCall("call_a", "add")),
    Usage(3, 2),
    Finish("stop"),
)


def test_chat_chunks() -> None:
    same = 'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":0,"model":"m","choices":'
    head, tail = same + '[{"index":0,"delta":{', '},"finish_reason":null}],"usage":null}'
    function = '"type":"function","function":{"name":"add","arguments":""}'
    assert written(ChatReply, "chat", *SMALL) == [
        head + '"content":"Hi"' + tail,
        head + '"tool_calls":[{"index":0,"id":"call_a",' + function + "}]" + tail,
        head + '"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]' + tail,
        same + '[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}',
        same
        + '[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5,"prompt_tokens_details":'
        + '{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}',
        "data: [DONE]",
    ]


def test_messages_events() -> None:
    assert written(MessagesReply, "messages", *SMALL) == (
        """event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"call_a","name":"add","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":USAGE}

event: message_stop
data: {"type":"message_stop"}""".replace(
            "USAGE",
            '{"input_tokens":3,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":2}',
        ).split("\n\n")
    )


def test_responses_events() -> None:
    events: list[dict[str, Any]] = [
        json.loads(one.partition("\ndata: ")[2]) for one in written(ResponsesReply, "responses", *SMALL)
    ]
    assert [(event["sequence_number"], event["type"].removeprefix("response.")) for event in events] == [
        (2, "output_item.added"),
        (3, "content_part.added"),
        (4, "output_text.delta"),
        (5, "output_text.done"),
        (6, "content_part.done"),
        (7, "output_item.done"),
        (8, "output_item.added"),
        (9, "function_call_arguments.delta"),
        (10, "function_call_arguments.done"),
        (11, "output_item.done"),
        (12, "completed"),
    ]
    call = {"id": "fc_1_1", "type": "function_call", "status": "in_progress", "call_id": "call_a", "name": "add"}
    assert events[6]["item"] == {**call, "arguments": ""}
    assert events[9]["item"] == {**call, "arguments": "{}", "status": "completed"}
    place = {"item_id": "msg_1_0", "output_index": 0, "content_index": 0}
    assert events[2] == {
        "type": "response.output_text.delta",
        "sequence_number": 4,
        **place,
        "logprobs": [],
        "delta": "Hi",
    }
    assert [item["id"] for item in events[-1]["response"]["output"]] == ["msg_1_0", "fc_1_1"]


@pytest.mark.parametrize("name", NAMES)
def test_no_event_is_split_at_another_line_end(name: WireName) -> None:
    """Some clients split a stream at U+2028, which JSON allows in a string."""
    text = streamed(name, [Text("a\u2028b\u2029c\x85d\x0be"), Finish("stop")]).decode()
    assert text.splitlines() == text.split("\n")[:-1]


# ---------------------------------------------------------------- the SDKs


def transport(body: bytes | Mapping[str, Any], status: int = 200) -> httpx2.MockTransport:
    """A server that always answers with this."""
    if isinstance(body, bytes):
        headers, content = {"content-type": "text/event-stream"}, body
    else:
        headers, content = {"content-type": "application/json"}, json.dumps(body).encode()
    return httpx2.MockTransport(lambda request: httpx2.Response(status, headers=headers, content=content))


def openai_client(body: bytes | Mapping[str, Any], status: int = 200) -> openai.OpenAI:
    http = httpx2.Client(transport=transport(body, status))
    return openai.OpenAI(api_key="k", base_url="http://gateway/v1", http_client=http, max_retries=0)


def anthropic_client(body: bytes | Mapping[str, Any], status: int = 200) -> anthropic.Anthropic:
    http = httpx2.Client(transport=transport(body, status))
    return anthropic.Anthropic(api_key="k", base_url="http://gateway", http_client=http, max_retries=0)


MESSAGES: Final[Any] = [{"role": "user", "content": "Hi"}]


def chat_read(events: Iterable[SourceEvent]) -> Any:
    """What the SDK accumulates from a stream of chat completions."""
    client = openai_client(streamed("chat", events))
    with client.chat.completions.stream(model="m", messages=MESSAGES, stream_options={"include_usage": True}) as stream:
        return stream.get_final_completion()


def chat_finish(events: Iterable[SourceEvent]) -> Any:
    """The `finish_reason` of a stream; the SDK's accumulator raises for some."""
    chunks = openai_client(streamed("chat", events)).chat.completions.create(model="m", messages=MESSAGES, stream=True)
    return [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1]


def responses_end(events: Iterable[SourceEvent]) -> Any:
    """The status in which a stream of the Responses API ends; the SDK's accumulator raises for some."""
    last: Any = list(openai_client(streamed("responses", events)).responses.create(model="m", input="", stream=True))
    return last[-1].response.status


def responses_read(events: Iterable[SourceEvent]) -> Any:
    """What the SDK accumulates from a stream of the Responses API."""
    with openai_client(streamed("responses", events)).responses.stream(model="m", input="Hi") as stream:
        return stream.get_final_response()


def messages_read(events: Iterable[SourceEvent]) -> Any:
    """What the SDK accumulates from a stream of the Messages API."""
    client = anthropic_client(streamed("messages", events))
    with client.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as stream:
        return stream.get_final_message()


def whole(name: WireName, events: Iterable[SourceEvent]) -> dict[str, Any]:
    return WIRES[name].whole(WIRES[name].read(ASKED[name]), events)


def chat_facts(completion: Any) -> dict[str, Any]:
    message, usage = completion.choices[0].message, completion.usage
    return {
        "text": message.content,
        "thinking": message.reasoning_content,
        "calls": [(call.id, call.function.name, call.function.arguments) for call in message.tool_calls],
        "finish": completion.choices[0].finish_reason,
        "usage": (usage.prompt_tokens, usage.completion_tokens, usage.prompt_tokens_details.cached_tokens),
    }


def test_openai_reads_chat_streamed_and_whole() -> None:
    expected = {
        "text": 'I\'ll look.\n"é"\u2028😀Done.',
        "thinking": "Let me see.",
        "calls": [("call_a", "add", '{"a": 1}'), ("call_b", "now", "{}")],
        "finish": "tool_calls",
        "usage": (10, 5, 4),
    }
    assert chat_facts(chat_read(REPLY)) == expected
    client = openai_client(whole("chat", REPLY))
    assert chat_facts(client.chat.completions.create(model="m", messages=MESSAGES)) == expected


def responses_facts(response: Any) -> list[Any]:
    facts: list[Any] = [response.status, response.usage.input_tokens, response.usage.output_tokens]
    for item in response.output:
        match item.type:
            case "message":
                facts.append(item.content[0].text)
            case "reasoning":
                facts.append(item.summary[0].text)
            case "function_call":
                facts.append((item.call_id, item.name, item.arguments, item.status))
    return facts


def test_openai_reads_responses_streamed_and_whole() -> None:
    expected = [
        *("completed", 10, 5, "Let me see.", 'I\'ll look.\n"é"\u2028😀'),
        ("call_a", "add", '{"a": 1}', "completed"),
        ("call_b", "now", "{}", "completed"),
        "Done.",
    ]
    assert responses_facts(responses_read(REPLY)) == expected
    client = openai_client(whole("responses", REPLY))
    assert responses_facts(client.responses.create(model="m", input="Hi")) == expected


def messages_facts(message: Any) -> list[Any]:
    blocks = [block.model_dump(exclude_none=True) for block in message.content]
    return [message.stop_reason, message.usage.input_tokens, message.usage.output_tokens, *blocks]


def test_anthropic_reads_messages_streamed_and_whole() -> None:
    expected = [
        *("tool_use", 5, 5),
        {"type": "thinking", "thinking": "Let me see.", "signature": ""},
        {"type": "text", "text": 'I\'ll look.\n"é"\u2028😀'},
        {"type": "tool_use", "id": "call_a", "name": "add", "input": {"a": 1}},
        {"type": "tool_use", "id": "call_b", "name": "now", "input": {}},
        {"type": "text", "text": "Done."},
    ]
    assert messages_facts(messages_read(REPLY)) == expected
    client = anthropic_client(whole("messages", REPLY))
    assert messages_facts(client.messages.create(model="m", max_tokens=9, messages=MESSAGES)) == expected


EVENTS: Final[Mapping[WireName, TypeAdapter[Any]]] = {
    "chat": TypeAdapter(openai.types.chat.ChatCompletionChunk),
    "responses": TypeAdapter(openai.types.responses.ResponseStreamEvent),
    "messages": TypeAdapter(anthropic.types.RawMessageStreamEvent),
}


@pytest.mark.parametrize("name", NAMES)
def test_each_event_has_every_field_that_the_sdk_declares(name: WireName) -> None:
    for data in re.findall(r"^data: (\{.*)$", streamed(name, REPLY).decode(), re.MULTILINE):
        EVENTS[name].validate_json(data)


# ---------------------------------------------------------------- how it ends

ENDS: Final[list[tuple[Finish, str, str, str]]] = [
    (Finish("stop"), "stop", "completed", "end_turn"),
    (Finish("unknown"), "stop", "completed", "end_turn"),
    (Finish("tool_calls"), "stop", "completed", "end_turn"),
    (Finish("length"), "length", "incomplete", "max_tokens"),
    (Finish("content_filter"), "content_filter", "incomplete", "refusal"),
    (Finish("refusal"), "content_filter", "incomplete", "refusal"),
    (Finish("pause"), "stop", "completed", "pause_turn"),
    (Finish("stop", "stop_sequence"), "stop", "completed", "stop_sequence"),
]


@pytest.mark.parametrize(("finish", "chat", "responses", "messages"), ENDS)
def test_a_finish_in_each_wire(finish: Finish, chat: str, responses: str, messages: str) -> None:
    events: list[SourceEvent] = [Text("Hi"), finish]
    assert chat_finish(events) == chat == whole("chat", events)["choices"][0]["finish_reason"]
    assert responses_end(events) == responses == whole("responses", events)["status"]
    assert messages_read(events).stop_reason == messages == whole("messages", events)["stop_reason"]


CALL: Final = (CallStart(0, "now", "c"), CallEnd(0, ToolCall("c", "now", {})))


@pytest.mark.parametrize(
    ("finish", "chat", "messages"),
    [
        (Finish("stop"), "tool_calls", "tool_use"),
        (Finish("tool_calls"), "tool_calls", "tool_use"),
        (Finish("length"), "length", "max_tokens"),
    ],
)
def test_a_finish_with_calls(finish: Finish, chat: str, messages: str) -> None:
    assert chat_finish([*CALL, finish]) == chat
    assert messages_read([*CALL, finish]).stop_reason == messages


def test_a_reply_that_the_server_reports_as_failed_ends_in_an_error() -> None:
    for name in NAMES:
        assert b"the model server reported that the reply failed" in streamed(name, [Text("Hi"), Finish("error")])
        with pytest.raises(RequestRefused):
            whole(name, [Text("Hi"), Finish("error")])


def test_a_call_without_text_beside_has_no_content() -> None:
    message = whole("chat", [*CALL, Finish("stop")])["choices"][0]["message"]
    assert message["content"] is None


def test_arguments_that_no_delta_had_are_written_at_the_end_of_the_call() -> None:
    call: list[SourceEvent] = [CallStart(0, "add", "c"), CallEnd(0, ToolCall("c", "add", {"a": 1})), Finish("stop")]
    assert chat_read(call).choices[0].message.tool_calls[0].function.arguments == '{"a": 1}'
    assert responses_read(call).output[0].arguments == '{"a": 1}'
    assert messages_read(call).content[0].input == {"a": 1}


def test_a_call_that_the_token_limit_cut() -> None:
    cut: list[SourceEvent] = [CallStart(0, "add", "c"), ArgumentDelta(0, '{"a"'), Finish("length")]
    assert chat_finish(cut) == "length"
    assert whole("chat", cut)["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == '{"a"'
    assert responses_end(cut) == "incomplete"
    assert whole("responses", cut)["output"][0]["status"] == "incomplete"
    assert messages_read(cut).stop_reason == "max_tokens"
    assert whole("messages", cut)["content"] == []  # its input could not be written


# ---------------------------------------------------------------- agentkit's own models


OWN: Final[Mapping[WireName, Callable[[], Wire]]] = {
    "chat": lambda: ChatWire("openai"),
    "responses": lambda: ResponsesWire("responses"),
    "messages": lambda: MessagesWire("anthropic"),
}
AS_STREAMED: Final[Mapping[WireName, Callable[[Mapping[str, Any]], Iterable[WireEvent]]]] = {
    "chat": chunks_of,
    "responses": response_events,
    "messages": message_events,
}


def own_events(wire: Wire, events: Iterable[WireEvent]) -> list[SourceEvent]:
    """The events of a wire, without blocks, which are of this wire alone."""
    found = [one for event in events for one in wire.feed(event)] + wire.close()
    return [one for one in found if not isinstance(one, ProviderBlock)]


def facts(events: Iterable[Any]) -> dict[str, Any]:
    """What a reply says, without the pieces in which it came."""
    events = list(events)
    return {
        "text": "".join(e.text for e in events if isinstance(e, Text)),
        "thinking": "".join(e.text for e in events if isinstance(e, Thinking)),
        "calls": [(e.call.id, e.call.name, e.call.arguments) for e in events if isinstance(e, CallEnd)],
        "usage": [e[:3] for e in events if isinstance(e, Usage)],
        "finish": events[-1].reason,
    }


@pytest.mark.parametrize("name", NAMES)
def test_agentkits_models_read_the_same_reply(name: WireName) -> None:
    expected = {**facts(REPLY), "finish": "tool_calls"}
    wire_events = [
        DONE if data == "[DONE]" else json.loads(data)
        for data in re.findall(r"^data: (.*)$", streamed(name, REPLY).decode(), re.MULTILINE)
    ]
    assert facts(own_events(OWN[name](), wire_events)) == expected
    assert facts(own_events(OWN[name](), AS_STREAMED[name](whole(name, REPLY)))) == expected


# ---------------------------------------------------------------- errors

BUSY: Final = RequestRefused(503, "the model server is busy", "overloaded")

CUTS: Final[list[list[SourceEvent]]] = [REPLY[:n] for n in range(len(REPLY) - 1)]


def failed(name: WireName, events: Iterable[SourceEvent], error: RequestRefused) -> bytes:
    writer = WIRES[name].writer(WIRES[name].read(ASKED[name]))
    return writer.start() + b"".join(map(writer.write, events)) + writer.fail(error)


@pytest.mark.parametrize("events", CUTS, ids=len)
def test_the_sdks_report_an_error_at_any_point_of_a_stream(events: list[SourceEvent]) -> None:
    chat = openai_client(failed("chat", events, BUSY)).chat.completions
    with pytest.raises(openai.APIError, match="the model server is busy"):
        list(chat.create(model="m", messages=MESSAGES, stream=True))
    client = anthropic_client(failed("messages", events, BUSY))
    with pytest.raises(anthropic.APIStatusError, match="overloaded_error"):
        list(client.messages.create(model="m", max_tokens=9, messages=MESSAGES, stream=True))
    stream = openai_client(failed("responses", events, BUSY)).responses.create(model="m", input="Hi", stream=True)
    last: Any = list(stream)[-1]
    assert (last.type, last.response.status) == ("response.failed", "failed")
    assert last.response.error.message == "the model server is busy"


@pytest.mark.parametrize(
    ("status", "of_openai", "of_anthropic"),
    [
        (400, openai.BadRequestError, anthropic.BadRequestError),
        (401, openai.AuthenticationError, anthropic.AuthenticationError),
        (404, openai.NotFoundError, anthropic.NotFoundError),
        (429, openai.RateLimitError, anthropic.RateLimitError),
        (502, openai.InternalServerError, anthropic.InternalServerError),
    ],
)
def test_an_error_response(status: int, of_openai: type[Exception], of_anthropic: type[Exception]) -> None:
    error = RequestRefused(status, "no", "some_code", param="model")
    for name in ("chat", "responses"):
        body = WIRES[name].error(error)
        chat = openai_client(body, status).chat
        with pytest.raises(of_openai) as raised:
            chat.completions.create(model="m", messages=MESSAGES)
        assert (raised.value.code, raised.value.param) == ("some_code", "model")  # type: ignore[attr-defined]
    client = anthropic_client(WIRES["messages"].error(error), status)
    with pytest.raises(of_anthropic, match="no"):
        client.messages.create(model="m", max_tokens=9, messages=MESSAGES)


def test_the_upstreams_own_error_is_passed_on() -> None:
    own = {"error": {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}}
    error = RequestRefused(400, "the model server refused the request", "upstream", body=own)
    assert WIRES["chat"].error(error) == own


# ---------------------------------------------------------------- a provider's own blocks

SIGNED: Final = {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}
ENCRYPTED: Final = {"id": "rs_up", "type": "reasoning", "summary": [], "encrypted_content": "ZW5j"}


def test_signed_thinking_reaches_a_client_of_the_same_wire() -> None:
    events: list[SourceEvent] = [Thinking("Hm."), ProviderBlock("anthropic", SIGNED, True), Text("Hi"), Finish("stop")]
    assert [block.model_dump(exclude_none=True) for block in messages_read(events).content] == [
        SIGNED,
        {"type": "text", "text": "Hi"},
    ]
    assert whole("messages", events)["content"] == [SIGNED, {"type": "text", "text": "Hi"}]


def test_redacted_thinking_and_the_calls_of_server_side_tools() -> None:
    redacted = {"type": "redacted_thinking", "data": "ZW5j"}
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    events: list[SourceEvent] = [
        ProviderBlock("anthropic", redacted, True),
        ProviderBlock("anthropic", search),
        Text("Hi"),
        Finish("stop"),
    ]
    assert [block.type for block in messages_read(events).content] == ["redacted_thinking", "server_tool_use", "text"]
    assert whole("messages", events)["content"][:2] == [redacted, search]


def test_encrypted_reasoning_reaches_a_client_of_the_same_wire() -> None:
    events: list[SourceEvent] = [ProviderBlock("responses", ENCRYPTED, True), Text("Hi"), Finish("stop")]
    assert responses_read(events).output[0].encrypted_content == "ZW5j"
    assert whole("responses", events)["output"][0] == ENCRYPTED


def test_what_a_server_of_chat_completions_adds_to_thinking_and_calls() -> None:
    details = [{"type": "reasoning.encrypted", "data": "ZW5j"}]
    signature = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
    events: list[SourceEvent] = [
        Thinking("Hm."),
        ProviderBlock("openai", {"reasoning_content": "Hm.", "reasoning_details": details}, True),
        CallStart(0, "now", "c"),
        ProviderBlock("openai", signature, False, 0),
        CallEnd(0, ToolCall("c", "now", {})),
        Finish("stop"),
    ]
    message = whole("chat", events)["choices"][0]["message"]
    assert message["reasoning_content"] == "Hm."
    assert message["reasoning_details"] == details
    assert message["tool_calls"][0]["extra_content"] == signature["extra_content"]
    streamed_message = chat_read(events).choices[0].message
    assert streamed_message.reasoning_details == details
    assert streamed_message.tool_calls[0].extra_content == signature["extra_content"]


@pytest.mark.parametrize("name", NAMES)
def test_blocks_of_another_provider_are_not_written(name: WireName) -> None:
    events: list[SourceEvent] = [ProviderBlock("elsewhere", {"type": "thinking"}, True), Text("Hi"), Finish("stop")]
    assert b"elsewhere" not in streamed(name, events)
    assert "elsewhere" not in str(whole(name, events))
