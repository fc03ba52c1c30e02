"""Requests of clients as they are read: whole conversations, every setting, sloppy clients, and clear refusals."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from functools import reduce
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recordings import ABSENT, rows

from agentkit.errors import FormatError
from agentkit.formats import Parser, render_prompt
from agentkit.gateway.client_request import ClientRequest, RequestRefused
from agentkit.gateway.client_wire import WireName
from agentkit.gateway.foreign_parts import file_of
from agentkit.gateway.request_fields import is_left_out
from agentkit.gateway.wire_fields import fields_for
from agentkit.gateway.wires import WIRES
from agentkit.messages import (
    AssistantMessage,
    FilePart,
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
from agentkit.models.argument_text import ArgumentText
from agentkit.models.messages_body import anthropic_messages
from agentkit.models.openai import chat_messages
from agentkit.models.responses import responses_input
from agentkit.toolspec import OutputSchema, ToolSpec

CITY: Final = {"type": "object", "properties": {"city": {"type": "string"}}}
WEATHER: Final = ToolSpec("weather", "Weather of a city.", CITY)
PNG: Final = "iVBORw0KGgo="


def chat(*messages: Any, **fields: Any) -> ClientRequest:
    return WIRES["chat"].read({"model": "m", "messages": list(messages) or [USER], **fields})


def responses(*items: Any, **fields: Any) -> ClientRequest:
    return WIRES["responses"].read({"model": "m", "input": list(items) or "Hi", **fields})


def anthropic(*messages: Any, **fields: Any) -> ClientRequest:
    return WIRES["messages"].read({"model": "m", "max_tokens": 9, "messages": list(messages) or [USER], **fields})


USER: Final = {"role": "user", "content": "Hi"}
FUNCTION: Final = {"name": "weather", "description": "Weather of a city.", "parameters": CITY}
CHAT_TOOL: Final = {"type": "function", "function": FUNCTION}
RESPONSES_TOOL: Final = {"type": "function", **FUNCTION, "strict": True}
ANTHROPIC_TOOL: Final = {"name": "weather", "description": "Weather of a city.", "input_schema": CITY}


def called(id: str = "call_1") -> ToolCall:
    return ToolCall(id, "weather", {"city": "Rome"}, None, '{"city": "Rome"}')


IMAGE: Final = ImagePart(url=f"data:image/png;base64,{PNG}")

CONVERSATION: Final[list[Message]] = [
    SystemMessage("Be brief."),
    user("Here?", IMAGE, ImagePart(url="https://a.org/b.jpg")),
    AssistantMessage((TextPart("I'll look."), called())),
    ToolMessage("call_1", "weather", (TextPart("sunny"),)),
    AssistantMessage("Sunny."),
]


def test_a_conversation_of_chat_completions() -> None:
    arguments = '{"city": "Rome"}'
    asked = chat(
        {"role": "developer", "content": "Be brief."},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Here?"},
                {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
                {"type": "image_url", "image_url": {"url": "https://a.org/b.jpg"}},
            ],
        },
        {
            "role": "assistant",
            "content": "I'll look.",
            "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": arguments}}
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
        {"role": "assistant", "content": "Sunny."},
    )
    assert asked.request.messages == CONVERSATION


def test_a_conversation_of_responses() -> None:
    call = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "weather", "status": "completed"}
    asked = responses(
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Here?"},
                {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
                {"type": "input_image", "image_url": "https://a.org/b.jpg"},
            ],
        },
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I'll look."}]},
        {**call, "arguments": '{"city": "Rome"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
        {"role": "assistant", "content": "Sunny."},
        instructions="Be brief.",
    )
    assert asked.request.messages == CONVERSATION


def test_a_conversation_of_messages() -> None:
    asked = anthropic(
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Here?", "cache_control": {"type": "ephemeral"}},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                {"type": "image", "source": {"type": "url", "url": "https://a.org/b.jpg"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "I'll look."},
                {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Rome"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "sunny"}]},
        {"role": "assistant", "content": "Sunny."},
        system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    )
    assert asked.request.messages == CONVERSATION


# ---------------------------------------------------------------- there and back


BACK: Final[Mapping[WireName, Callable[[Sequence[Message]], list[dict[str, Any]]]]] = {
    "chat": lambda messages: chat_messages(messages, "openai"),
    "responses": lambda messages: responses_input(messages, "responses"),
    "messages": lambda messages: anthropic_messages(messages, "anthropic"),
}
"""The conversation of an upstream's body, in each wire."""


def facts(value: Any) -> Iterator[tuple[str, ...]]:
    """Every call, result and image in a conversation of any wire."""
    match value:
        case {"function": {"name": name, "arguments": arguments}, "id": id}:
            yield "call", id, name, str(json.loads(arguments or "{}"))
        case {"type": "function_call", "call_id": id, "name": name, "arguments": arguments}:
            yield "call", id, name, str(json.loads(arguments or "{}"))
        case {"type": "tool_use", "id": id, "name": name, "input": arguments}:
            yield "call", id, name, str(arguments)
        case {"role": "tool", "tool_call_id": id} | {"type": "function_call_output", "call_id": id}:
            yield "result", id
        case {"type": "tool_result", "tool_use_id": id}:
            yield "result", id, str(bool(value.get("is_error")))
        case {"type": "image_url" | "input_image" | "image"}:
            url = value.get("image_url") or value.get("source")
            yield "image", str(url.get("url") or url.get("data") if isinstance(url, dict) else url)
        case {"type": "thinking" | "redacted_thinking" | "reasoning"}:
            kept = value.get("signature") or value.get("data") or value.get("encrypted_content")
            if kept:
                yield "thinking", kept
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from facts(one)


APIS: Final[Mapping[str, WireName]] = {
    "openai-chat": "chat",
    "openai-responses": "responses",
    "anthropic-messages": "messages",
}


RECORDED: Final = [
    (row["id"], APIS[row["api"]], row["request"]["body"]) for row in rows("wire.jsonl") if row["request"]["body"]
]
"""The recorded requests, by their ids."""


def own_tools(name: WireName, body: Mapping[str, Any]) -> set[str]:
    """The types of the tools that only this wire has, without those that are left out."""
    types = {tool.get("type", "custom") for tool in body["tools"]} - {"custom" if name == "messages" else "function"}
    return {kind for kind in types if not is_left_out(kind)}


WRONG_ID: Final = ("toolu_01DYJo37oETVsCdLTTcCWcdq", "toolu_01UiyhG7tywQKaqdgxyqa8z9")
"""The id of a recorded result that is not that of its call, and the id of the call."""

REFUSED: Final = [
    pytest.param(name, body, id=id)
    for id, name, body in RECORDED
    if own_tools(name, body) or body.get("previous_response_id") or "tool_addition" in str(body)
]
TRANSLATED: Final = [pytest.param(*one[1:], id=one[0]) for one in RECORDED if one[0] not in {p.id for p in REFUSED}]


@pytest.mark.skipif(not RECORDED, reason=ABSENT)
@pytest.mark.parametrize(("name", "body"), REFUSED)
def test_recorded_requests_that_only_their_wire_can_answer(name: WireName, body: dict[str, Any]) -> None:
    with pytest.raises(
        RequestRefused, match=r"only where client and upstream speak the same wire|only text"
    ) as refused:
        WIRES[name].read(body)
    assert refused.value.status == 400


@pytest.mark.skipif(not RECORDED, reason=ABSENT)
@pytest.mark.parametrize(("name", "body"), TRANSLATED)
def test_recorded_requests_are_read_whole(name: WireName, body: dict[str, Any]) -> None:
    asked = WIRES[name].read(body)
    back = [one for one in facts(BACK[name](asked.request.messages)) if one[1] not in asked.parts]
    given = json.dumps(body["input" if name == "responses" else "messages"]).replace(*WRONG_ID)
    assert sorted(back) == sorted(facts(json.loads(given)))
    choice = body.get("tool_choice")
    if not (isinstance(choice, dict) and choice["type"] == "allowed_tools"):
        assert [tool.name for tool in asked.request.tools] == [
            (t.get("function") or t)["name"] for t in body["tools"] if not is_left_out(t.get("type", ""))
        ]


def test_what_only_its_wire_can_read_returns_to_it() -> None:
    signed = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    redacted = {"type": "redacted_thinking", "data": "ZW5j"}
    search = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    blocks = [signed, redacted, search, found, {"type": "text", "text": "Hi"}]
    given = [USER, {"role": "assistant", "content": blocks}, USER]
    asked = anthropic(*given)
    assert asked.request.messages[1] == AssistantMessage(
        (
            ThinkingPart("Hm.", "anthropic", signed),
            ThinkingPart("", "anthropic", redacted),
            ProviderPart("anthropic", search),
            ProviderPart("anthropic", found),
            TextPart("Hi"),
        )
    )
    assert BACK["messages"](asked.request.messages)[1]["content"] == blocks

    reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "ZW5j"}
    asked = responses(USER, reasoning, {"role": "assistant", "content": "Hi", "phase": "final_answer"}, USER)
    assert BACK["responses"](asked.request.messages)[1:3] == [
        reasoning,
        {"type": "message", "role": "assistant", "content": "Hi", "phase": "final_answer"},
    ]

    signature = {"google": {"thought_signature": "c2ln"}}
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra_content": signature}
    reply = {"role": "assistant", "content": None, "tool_calls": [call], "reasoning_content": "Hm."}
    asked = chat(USER, reply, {"role": "tool", "tool_call_id": "c", "content": "1"})
    assert BACK["chat"](asked.request.messages)[1] == reply


def test_thinking_of_another_upstreams_model_has_no_signature() -> None:
    asked = anthropic(
        USER, {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": ""}]}
    )
    assert asked.request.messages[1] == AssistantMessage((ThinkingPart("Hm."),))


def test_results_with_errors_and_images() -> None:
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
    result = {"type": "tool_result", "tool_use_id": "call_1", "is_error": True}
    asked = anthropic(
        USER,
        {"role": "assistant", "content": [{"type": "tool_use", "id": "call_1", "name": "weather", "input": {}}]},
        {
            "role": "user",
            "content": [
                {**result, "content": [{"type": "text", "text": "no such city"}, image]},
                {"type": "text", "text": "And now?"},
            ],
        },
    )
    answer = ToolMessage("call_1", "weather", (TextPart("no such city"), IMAGE), "tool_error")
    assert asked.request.messages[2:] == [answer, user("And now?")]


# ---------------------------------------------------------------- parts of one wire


@pytest.mark.parametrize(
    ("read", "part"),
    [
        (chat, {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}),
        (chat, {"type": "file", "file": {"file_id": "file-1"}}),
        (chat, {"type": "image_url", "image_url": {"url": "data:application/pdf;base64,JVBE"}}),
        (responses, {"type": "input_file", "file_url": "https://a.org/b.pdf"}),
        (responses, {"type": "input_image", "file_id": "file-1"}),
        (anthropic, {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}}),
        (anthropic, {"type": "image", "source": {"type": "file", "file_id": "file_1"}}),
    ],
)
def test_a_part_that_only_its_wire_has_is_kept(read: Callable[..., ClientRequest], part: dict[str, Any]) -> None:
    asked = read({"role": "user", "content": [part, part]})
    first, second = (ImagePart(url=f"agentkit:part/{n}") for n in (0, 1))
    assert asked.request.messages == [user(first, second)]
    assert asked.parts == {"agentkit:part/0": part, "agentkit:part/1": part}


def test_a_text_document_may_begin_like_a_data_url() -> None:
    source = {"type": "text", "media_type": "text/plain", "data": "data: the readings of May"}
    assert file_of({"type": "document", "source": source}, "chat") == FilePart(
        b"data: the readings of May", "text/plain"
    )


# ---------------------------------------------------------------- settings


def test_settings_of_chat_completions() -> None:
    asked = chat(
        tools=[CHAT_TOOL],
        tool_choice={"type": "function", "function": {"name": "weather"}},
        parallel_tool_calls=False,
        max_completion_tokens=7,
        temperature=0.5,
        stop="END",
        stream=True,
        stream_options={"include_usage": True},
        response_format={"type": "json_schema", "json_schema": {"name": "a b", "schema": CITY, "strict": True}},
        seed=1,
        user=None,
        chat_template_kwargs={"enable_thinking": False},
    )
    request = asked.request
    assert (request.tools, request.tool_choice, request.parallel_tool_calls) == ((WEATHER,), "weather", False)
    assert (request.max_tokens, request.temperature, request.stop, request.stream) == (7, 0.5, ("END",), True)
    assert request.output_schema == OutputSchema("a_b", CITY)
    assert request.extra == {"seed": 1, "chat_template_kwargs": {"enable_thinking": False}}
    assert (asked.model, asked.include_usage) == ("m", True)
    assert not chat().include_usage


def test_settings_of_responses() -> None:
    asked = responses(
        tools=[RESPONSES_TOOL],
        tool_choice={"type": "function", "name": "weather"},
        parallel_tool_calls=True,
        max_output_tokens=7,
        temperature=1,
        text={"format": {"type": "json_schema", "name": "city", "schema": CITY}, "verbosity": "low"},
        reasoning={"effort": "low"},
        store=False,
        previous_response_id=None,
        background=False,
    )
    request = asked.request
    assert (request.tools, request.tool_choice, request.parallel_tool_calls) == ((WEATHER,), "weather", True)
    assert (request.max_tokens, request.temperature, request.stream) == (7, 1, False)
    assert request.output_schema == OutputSchema("city", CITY)
    assert request.extra == {"reasoning": {"effort": "low"}, "store": False, "text": {"verbosity": "low"}}


def test_settings_of_messages() -> None:
    asked = anthropic(
        tools=[ANTHROPIC_TOOL],
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
        temperature=0.0,
        stop_sequences=["END", "STOP"],
        stream=True,
        thinking={"type": "adaptive"},
        output_config={"effort": "high", "format": {"type": "json_schema", "schema": CITY}},
        metadata={"user_id": "u"},
    )
    request = asked.request
    assert (request.tools, request.tool_choice, request.parallel_tool_calls) == ((WEATHER,), "required", False)
    assert (request.max_tokens, request.temperature, request.stop) == (9, 0.0, ("END", "STOP"))
    assert request.output_schema == OutputSchema("reply", CITY)
    assert request.extra == {
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "high"},
        "metadata": {"user_id": "u"},
    }


CHOICES: Final[list[tuple[WireName, Any, str]]] = [
    ("chat", None, "auto"),
    ("chat", "auto", "auto"),
    ("chat", "none", "none"),
    ("chat", "required", "required"),
    ("chat", "any", "required"),
    ("chat", {"type": "function", "function": {"name": "weather"}}, "weather"),
    ("chat", {"type": "function", "name": "weather"}, "weather"),
    ("chat", {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [CHAT_TOOL]}}, "required"),
    ("responses", None, "auto"),
    ("responses", "required", "required"),
    ("responses", {"type": "function", "name": "weather"}, "weather"),
    (
        "responses",
        {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "weather"}]},
        "auto",
    ),
    ("messages", None, "auto"),
    ("messages", {"type": "auto"}, "auto"),
    ("messages", {"type": "any"}, "required"),
    ("messages", {"type": "none"}, "none"),
    ("messages", {"type": "tool", "name": "weather"}, "weather"),
]
TOOLS: Final = {"chat": CHAT_TOOL, "responses": RESPONSES_TOOL, "messages": ANTHROPIC_TOOL}
READ: Final[Mapping[WireName, Callable[..., ClientRequest]]] = {
    "chat": chat,
    "responses": responses,
    "messages": anthropic,
}


@pytest.mark.parametrize(("name", "given", "choice"), CHOICES)
def test_the_choice_of_a_tool(name: WireName, given: Any, choice: str) -> None:
    asked = READ[name](tools=[TOOLS[name]], **({} if given is None else {"tool_choice": given}))
    assert asked.request.tool_choice == choice


def test_only_the_allowed_tools_are_offered() -> None:
    other = {"type": "function", "function": {"name": "other"}}
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [other]}}
    asked = chat(tools=[CHAT_TOOL, other], tool_choice=allowed)
    assert [tool.name for tool in asked.request.tools] == ["other"]


@pytest.mark.parametrize(
    ("client", "upstream", "extra", "passed"),
    [
        ("chat", "chat", {"store": True, "seed": 1}, {"store": True, "seed": 1}),
        ("chat", "messages", {"store": True, "seed": 1, "user": "u"}, {"seed": 1}),
        ("chat", "responses", {"store": True, "user": "u"}, {"store": True, "user": "u"}),
        ("chat", "responses", {"reasoning_effort": "low"}, {"reasoning": {"effort": "low"}}),
        ("responses", "chat", {"reasoning": {"effort": "high"}, "include": ["x"]}, {"reasoning_effort": "high"}),
        ("responses", "messages", {"reasoning": {"effort": "none"}}, {}),
        ("messages", "chat", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "max"}, "top_k": 3},
         {"top_k": 3, "reasoning_effort": "xhigh"}),
        ("messages", "responses", {"metadata": {"user_id": "u"}, "top_p": 0.9}, {"top_p": 0.9}),
    ],
)  # fmt: skip
def test_further_fields_for_an_upstream(
    client: WireName, upstream: WireName, extra: dict[str, Any], passed: dict[str, Any]
) -> None:
    assert fields_for(extra, client, upstream) == passed


# ---------------------------------------------------------------- sloppy clients

ARGUMENTS: Final = '{"city": "Rome"}'
CHAT_CALL: Final = {"id": "call_1", "function": {"name": "weather", "arguments": ARGUMENTS}}
CHAT_RESULT: Final = {"role": "tool", "tool_call_id": "call_1", "content": "sunny"}
ANSWERED: Final[list[Message]] = [
    user("Hi"),
    AssistantMessage((called(),)),
    ToolMessage("call_1", "weather", (TextPart("sunny"),)),
]


def replied(**fields: Any) -> dict[str, Any]:
    return {"role": "assistant", **fields}


SLOPPY: Final[Mapping[str, tuple[WireName, list[Any], list[Message]]]] = {
    "no content": ("chat", [USER, replied(tool_calls=[CHAT_CALL]), CHAT_RESULT], ANSWERED),
    "null content": ("chat", [USER, replied(content=None, tool_calls=[CHAT_CALL]), CHAT_RESULT], ANSWERED),
    "empty fields": (
        "chat",
        [
            {**USER, "name": "Ann", "tool_calls": None},
            replied(content="", tool_calls=[CHAT_CALL], refusal=None, audio=None, annotations=[]),
            CHAT_RESULT,
        ],
        ANSWERED,
    ),
    "arguments as an object": (
        "chat",
        [
            USER,
            replied(tool_calls=[{"id": "call_1", "function": {"name": "weather", "arguments": {"city": "Rome"}}}]),
            CHAT_RESULT,
        ],
        ANSWERED,
    ),
    "a call without the object function": (
        "chat",
        [USER, replied(tool_calls=[{"id": "call_1", "name": "weather", "arguments": ARGUMENTS}]), CHAT_RESULT],
        ANSWERED,
    ),
    "a result without an id": (
        "chat",
        [USER, replied(tool_calls=[CHAT_CALL]), {"role": "tool", "content": "sunny"}],
        ANSWERED,
    ),
    "a result in parts": (
        "chat",
        [USER, replied(tool_calls=[CHAT_CALL]), {**CHAT_RESULT, "content": [{"type": "text", "text": "sunny"}]}],
        ANSWERED,
    ),
    "a result with another id": (
        "chat",
        [USER, replied(tool_calls=[CHAT_CALL]), {**CHAT_RESULT, "tool_call_id": "call_9"}],
        ANSWERED,
    ),
    "a result whose call is not in the history": (
        "chat",
        [{**CHAT_RESULT, "tool_call_id": "call_0"}, USER, replied(tool_calls=[CHAT_CALL]), CHAT_RESULT],
        [ToolMessage("call_0", "", (TextPart("sunny"),)), *ANSWERED],
    ),
    "a result before its call": ("chat", [USER, CHAT_RESULT, replied(tool_calls=[CHAT_CALL])], ANSWERED),
    "the old form of calls": (
        "chat",
        [
            USER,
            replied(content=None, function_call={"name": "weather", "arguments": ARGUMENTS}),
            {"role": "function", "name": "weather", "content": "sunny"},
        ],
        [user("Hi"), AssistantMessage((called("call_0"),)), ToolMessage("call_0", "weather", (TextPart("sunny"),))],
    ),
    "a refusal": ("chat", [USER, replied(content=None, refusal="No.")], [user("Hi"), AssistantMessage("No.")]),
    "thinking as a content part": (
        "chat",
        [USER, replied(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"text": "Hi"}])],
        [user("Hi"), AssistantMessage((ThinkingPart("Hm."), TextPart("Hi")))],
    ),
    "a part as a string": ("chat", [{"role": "user", "content": ["Hi"]}], [user("Hi")]),
    "a part without its type": ("chat", [{"role": "user", "content": [{"text": "Hi"}]}], [user("Hi")]),
    "one part that is not in a list": (
        "chat",
        [{"role": "user", "content": {"type": "text", "text": "Hi"}}],
        [user("Hi")],
    ),
    "a reply without content": ("chat", [USER, replied(content="")], [user("Hi")]),
    "system text in parts": (
        "chat",
        [{"role": "system", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, USER],
        [SystemMessage("a\n\nb"), user("Hi")],
    ),
    "items without a type": (
        "responses",
        [
            {"role": "user", "content": "Hi"},
            {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": ARGUMENTS},
            {"type": "function_call_output", "call_id": "call_1", "output": [{"type": "input_text", "text": "sunny"}]},
        ],
        ANSWERED,
    ),
    "a call with only the id of its item": (
        "responses",
        [
            USER,
            {"type": "function_call", "id": "call_1", "name": "weather", "arguments": ARGUMENTS},
            {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
        ],
        ANSWERED,
    ),
    "parts of chat completions": (
        "responses",
        [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
        [user("Hi")],
    ),
    "a block without its type": ("messages", [{"role": "user", "content": [{"text": "Hi"}]}], [user("Hi")]),
    "a system message": (
        "messages",
        [{"role": "system", "content": "Be brief."}, USER],
        [SystemMessage("Be brief."), user("Hi")],
    ),
    "a call without input": (
        "messages",
        [USER, replied(content=[{"type": "tool_use", "id": "c", "name": "weather"}])],
        [user("Hi"), AssistantMessage((ToolCall("c", "weather", {}, None, "{}"),))],
    ),
    "a result without content": (
        "messages",
        [
            USER,
            replied(content=[{"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Rome"}}]),
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1"}]},
        ],
        [*ANSWERED[:2], ToolMessage("call_1", "weather", ())],
    ),
}


@pytest.mark.parametrize("case", SLOPPY)
def test_sloppy_clients_are_understood(case: str) -> None:
    name, messages, expected = SLOPPY[case]
    assert READ[name](*messages).request.messages == expected


@pytest.mark.parametrize("name", READ)
def test_empty_settings_ask_for_nothing(name: WireName) -> None:
    fields = ("tools", "tool_choice", "stop", "temperature", "stream", "n", "logprobs", "response_format", "text")
    asked = READ[name](**dict.fromkeys((*fields, "metadata", "max_completion_tokens", "stop_sequences", "system")))
    request = asked.request
    assert (request.tools, request.tool_choice, request.stream, request.extra) == ((), "auto", False, {})
    assert READ[name](tools=[], tool_choice="auto").request.tools == ()


def test_a_schema_without_its_nulls() -> None:
    given = {"type": "object", "properties": {"a": {"type": "string", "enum": None, "default": None}}, "required": None}
    [tool] = chat(tools=[{"name": "now", "parameters": given}]).request.tools
    assert tool.parameters == {"type": "object", "properties": {"a": {"type": "string", "default": None}}}


def test_the_same_tool_is_the_same_value() -> None:
    """What formats compute from tools is kept by their identity."""
    first, second = chat(tools=[CHAT_TOOL]), chat(tools=[deepcopy(CHAT_TOOL)])
    assert first.request.tools[0] is second.request.tools[0]


def test_sloppy_tools() -> None:
    bare = ToolSpec("now", "", {"type": "object", "properties": {}})
    assert chat(tools=[{"type": "function", "function": {"name": "now"}}]).request.tools == (bare,)
    assert chat(tools=[{"name": "now", "parameters": None}]).request.tools == (bare,)
    assert chat(functions=[{"name": "now", "parameters": {}}]).request.tools == (bare,)
    assert responses(tools=[{"type": "function", "function": {"name": "now"}}]).request.tools == (bare,)
    assert anthropic(tools=[{"name": "now"}]).request.tools == (bare,)


# ---------------------------------------------------------------- refusals

SAME_WIRE: Final = "goes through unchanged only where client and upstream speak the same wire"

UNSUPPORTED: Final[list[tuple[WireName, dict[str, Any], str]]] = [
    ("chat", {"n": 2}, "n"),
    ("chat", {"logprobs": True}, "logprobs"),
    ("chat", {"modalities": ["text", "audio"]}, "modalities"),
    ("chat", {"audio": {"voice": "a", "format": "wav"}}, "audio"),
    ("chat", {"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0].type"),
    ("responses", {"previous_response_id": "resp_1"}, "previous_response_id"),
    ("responses", {"conversation": {"id": "conv_1"}}, "conversation"),
    ("responses", {"background": True}, "background"),
    ("responses", {"tools": [{"type": "custom", "name": "apply_patch"}]}, "tools[0].type"),
    ("responses", {"input": [{"type": "item_reference", "id": "msg_1"}]}, "input[0]"),
    ("messages", {"tools": [ANTHROPIC_TOOL, {"type": "bash_20250124", "name": "bash"}]}, "tools[1].type"),
    ("messages", {"tools": [{"type": "computer_20251124", "name": "computer"}]}, "tools[0].type"),
    ("messages", {"mcp_servers": [{"type": "url", "url": "https://a.org"}]}, "mcp_servers"),
]


def test_tools_that_only_their_provider_can_run_are_left_out() -> None:
    searches: list[dict[str, Any]] = [{"type": "web_search_20250305", "name": "web_search"}, ANTHROPIC_TOOL]
    asked = anthropic(tools=searches)
    assert [tool.name for tool in asked.request.tools] == [ANTHROPIC_TOOL["name"]]


def test_more_tools_than_any_model_takes_are_refused() -> None:
    with pytest.raises(RequestRefused, match="tools: expected at most 1,024 tools, found 1,025"):
        anthropic(tools=[ANTHROPIC_TOOL] * 1_025)


@pytest.mark.parametrize(("name", "fields", "param"), UNSUPPORTED)
def test_what_a_translated_reply_cannot_honour_is_refused(name: WireName, fields: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestRefused, match=SAME_WIRE) as refused:
        WIRES[name].read({"model": "m", "messages": [USER], "input": "Hi", "max_tokens": 9} | fields)
    assert (refused.value.status, refused.value.code, refused.value.param) == (400, "unsupported", param)


def said(**message: Any) -> dict[str, Any]:
    """The messages of a request with one."""
    return {"messages": [message]}


def pictured(url: str) -> list[dict[str, Any]]:
    return [{"type": "image_url", "image_url": {"url": url}}]


TWO_CALLS: Final = [
    replied(tool_calls=[CHAT_CALL, {**CHAT_CALL, "id": "call_2"}]),
    {**CHAT_RESULT, "tool_call_id": "call_9"},
]
NAMELESS: Final = "expected the tool's name, found NoneType None"
WRONG: Final[list[tuple[WireName, dict[str, Any], str, str]]] = [
    ("chat", {"model": None}, "model", "expected a string with content, found NoneType None"),
    ("chat", {"messages": []}, "messages", "expected a list with messages, found list []"),
    ("chat", {"messages": ["Hi"]}, "messages[0]", "expected an object, found str 'Hi'"),
    ("chat", said(role="robot"), "messages[0].role",
     "expected system, developer, user, assistant or tool, found str 'robot'"),
    ("chat", said(role="user", content=7), "messages[0].content",
     "expected a string or a list of content parts, found int 7"),
    ("chat", said(role="user", content=pictured("b.png")), "messages[0].content[0].image_url",
     "expected a URL, or data:image/png;base64,… with the image, found str 'b.png'"),
    ("chat", said(role="system", content=pictured("https://a.org")), "messages[0].content",
     "only text is allowed here"),
    ("chat", said(role="assistant", tool_calls=[{"function": {}}]), "messages[0].tool_calls[0].name", NAMELESS),
    ("chat", {"messages": TWO_CALLS}, "messages",
     "no call has the id 'call_9' of a result; without one are 'call_1', 'call_2'"),
    ("chat", {"tools": "weather"}, "tools", "expected a list, found str 'weather'"),
    ("chat", {"tools": [{"type": "function", "function": {}}]}, "tools[0].name", NAMELESS),
    ("chat", {"tools": [{"name": "f", "parameters": {"properties": {"a": {"enum": "x"}}}}]},
     "tools[0].parameters.properties.a.enum", "expected a list of values, found str 'x'"),
    ("chat", {"tool_choice": "required"}, "tool_choice", "'required' needs a tool that may be called; offered: none"),
    ("chat", {"tools": [CHAT_TOOL], "tool_choice": "wether"}, "tool_choice",
     "no offered tool is called 'wether'; offered: weather"),
    ("chat", {"max_tokens": 0}, "max_tokens", "expected a positive integer, found int 0"),
    ("chat", {"temperature": "hot"}, "temperature", "expected a number, found str 'hot'"),
    ("chat", {"stream": "yes"}, "stream", "expected true or false, found str 'yes'"),
    ("chat", {"stop": [1]}, "stop", "expected a string or a list of strings, found list [1]"),
    ("responses", {"input": ""}, "input", "expected a string with content, or a list with items, found str ''"),
    ("responses", {"input": [{"content": "Hi"}]}, "input[0].type",
     "expected the type of an item, such as message, found NoneType None"),
    ("messages", said(role="tool"), "messages[0].role", "expected user or assistant, found str 'tool'"),
    ("messages", {"output_config": {"format": {"type": "xml"}}}, "output_config.format.type",
     "expected json_schema, found str 'xml'"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "fields", "param", "message"), WRONG)
def test_what_is_wrong_is_refused(name: WireName, fields: dict[str, Any], param: str, message: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        WIRES[name].read({"model": "m", "messages": [USER], "input": "Hi"} | fields)
    assert (refused.value.status, refused.value.message) == (400, f"{param}: {message}")
    assert refused.value.param == param


# ---------------------------------------------------------------- anything

ANYTHING: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)

BODIES: Final[Mapping[WireName, dict[str, Any]]] = {
    "chat": {
        "model": "m",
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
            {"role": "user", "content": pictured("https://a.org/b.png")},
            replied(content=None, reasoning_content="Hm.", tool_calls=[CHAT_CALL]),
            CHAT_RESULT,
        ],
        "tools": [CHAT_TOOL],
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
        "stream_options": {"include_usage": True},
        "response_format": {"type": "json_schema", "json_schema": {"name": "city", "schema": CITY}},
        "stream": True,
        "stop": ["END"],
        "temperature": 0.5,
        "max_tokens": 9,
    },
    "responses": {
        "model": "m",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm."}]},
            {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": ARGUMENTS},
            {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
        ],
        "tools": [RESPONSES_TOOL],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "weather"}]},
        "text": {"format": {"type": "json_schema", "name": "city", "schema": CITY}},
    },
    "messages": {
        "model": "m",
        "max_tokens": 9,
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            {"role": "user", "content": [{"type": "image", "source": {"type": "url", "url": "https://a.org/b.png"}}]},
            replied(
                content=[
                    {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
                    {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Rome"}},
                ]
            ),
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "sunny"}]},
        ],
        "tools": [ANTHROPIC_TOOL],
        "tool_choice": {"type": "tool", "name": "weather"},
        "output_config": {"format": {"type": "json_schema", "schema": CITY}},
    },
}


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*path, key)
        yield from places(one, (*path, key))


@pytest.mark.parametrize("name", BODIES)
@given(st.data())
def test_any_value_at_any_place_is_read_or_refused(name: WireName, data: st.DataObject) -> None:
    body = deepcopy(BODIES[name])
    *path, last = data.draw(st.sampled_from(list(places(body))))
    reduce(lambda inner, key: inner[key], path, body)[last] = data.draw(ANYTHING)
    with suppress(RequestRefused, FormatError):  # the last: no prompt can show a tool of this name
        asked = WIRES[name].read(body)
        BACK[name](asked.request.messages)
        WIRES[name].writer(asked).start()
        for tool in asked.request.tools:
            ArgumentText(tool)
            render_prompt("hermes", [tool])
            Parser("invoke", [tool]).close("Hi")
