"""Whatever may be handed over as a message reaches the wire whole, or is refused when it is built."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conversations import MESSAGES
from hypothesis import assume, given
from hypothesis import strategies as st

from agentkit import Agent
from agentkit.agent import dicts_from, messages_from
from agentkit.errors import ConfigError
from agentkit.messages import (
    AssistantMessage,
    ImagePart,
    Message,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    user,
)
from agentkit.testing import ScriptedModel
from models.test_requests import sent

WIRES = [
    (prefix, format)
    for prefix in ("openai", "responses", "anthropic", "gemini")
    for format in (None, "xml", "hermes", "invoke")
]

PNG = ImagePart(b"png")
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "word-9"}'}}


def dict_message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def dict_parts(text: str) -> dict[str, Any]:
    return {
        "role": "user",
        "content": [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": PNG.data_url}}],
    }


SHAPES = [
    lambda text: text,
    lambda text: TextPart(text),
    lambda text: user(text),
    lambda text: user(PNG, text),
    lambda text: UserMessage(text),
    lambda text: UserMessage(TextPart(text)),
    lambda text: UserMessage([text, PNG]),
    lambda text: UserMessage(iter([PNG, TextPart(text)])),
    lambda text: AssistantMessage(text),
    lambda text: AssistantMessage([text]),
    lambda text: dict_message("user", text),
    lambda text: dict_message("assistant", text),
    lambda text: dict_message("developer", text),
    dict_parts,
]
"""Ways to say a text."""


@pytest.mark.parametrize(("prefix", "format"), WIRES)
@given(said=st.lists(st.tuples(st.sampled_from(SHAPES), st.integers(0, 9)), min_size=1, max_size=5))
def test_every_word_is_in_the_bytes(prefix: str, format: str | None, said: list[tuple[Any, int]]) -> None:
    words = [f"word-{place}-{number}" for place, (_, number) in enumerate(said)]
    messages = messages_from([*(shape(word) for (shape, _), word in zip(said, words, strict=True)), "Go on."])
    body = json.dumps(sent(prefix, messages, {"format": format} if format else {}))
    assert [word for word in words if word not in body] == []
    assert '"content": ""' not in body
    assert '"content": []' not in body


@pytest.mark.parametrize(("prefix", "format"), WIRES)
def test_calls_and_results_of_dicts_are_in_the_bytes(prefix: str, format: str | None) -> None:
    messages = messages_from(
        [
            {"role": "system", "content": "Be word-1."},
            {"role": "user", "content": "word-2"},
            {"role": "assistant", "content": "word-3", "tool_calls": [CALL], "refusal": None},
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "word-4"}]},
        ]
    )
    body = json.dumps(sent(prefix, messages, {"format": format} if format else {}))
    assert [word for word in ("word-1", "word-2", "word-3", "word-4", "word-9", "look") if word not in body] == []


def test_dicts_are_read_as_messages() -> None:
    old = {"name": "look", "arguments": '{"at": 1'}
    assert messages_from(
        [
            {"role": "developer", "content": [{"type": "text", "text": "Be "}, {"type": "text", "text": "brief."}]},
            dict_parts("What is this?"),
            {"role": "assistant", "reasoning_content": "Hm.", "content": None, "function_call": old},
            {"role": "function", "name": "look", "content": "a cat"},
            {"role": "assistant", "refusal": "I cannot."},
        ]
    ) == [
        SystemMessage("Be brief."),
        user("What is this?", PNG),
        AssistantMessage([ThinkingPart("Hm."), ToolCall("function_call_1", "look", {}, None, '{"at": 1')]),
        ToolMessage("function_call_1", "look", "a cat"),
        AssistantMessage("I cannot."),
    ]


NUMBERED = {"id": "c1", "function": {"name": "look", "arguments": "{}"}}
UNNUMBERED = {"function": {"name": "look", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("call", "result", "answers"),
    [
        (NUMBERED, {"tool_call_id": "c1"}, "c1"),
        (NUMBERED, {}, "c1"),
        (UNNUMBERED, {}, "function_call_1"),
        (UNNUMBERED, {"tool_call_id": "call_7"}, "function_call_1"),
    ],
)
def test_a_result_answers_the_call_with_its_id_or_the_first_without_a_result(
    call: dict[str, Any], result: dict[str, Any], answers: str
) -> None:
    said = {"role": "assistant", "tool_calls": [call]}
    messages = messages_from([said, {"role": "tool", "content": "a cat", **result}])
    assert messages[1] == ToolMessage(answers, "look", "a cat")


def test_a_result_of_no_call_is_an_error_while_a_call_waits_for_one() -> None:
    orphan = {"role": "tool", "content": "a cat", "tool_call_id": "c2"}
    assert messages_from([orphan, user("Go on")])[0] == ToolMessage("c2", "", "a cat")
    with pytest.raises(ConfigError, match=r"message 1: no call has the tool_call_id 'c2'; without a result are 'c1'"):
        messages_from([{"role": "assistant", "tool_calls": [NUMBERED]}, orphan])


def test_messages_are_read_from_their_dicts() -> None:
    messages = [
        SystemMessage("Be brief."),
        user("What is this?", PNG),
        AssistantMessage(["Let me look.", ToolCall("c1", "look", {"at": 1}, None, '{"at": 1}')]),
        ToolMessage("c1", "look", "a cat"),
        AssistantMessage("A cat."),
    ]
    assert messages_from(dicts_from(messages)) == messages


@given(MESSAGES)
def test_the_dicts_of_any_conversation_stay_the_same_when_they_are_read_and_written_again(said: list[Message]) -> None:
    dicts = dicts_from(said, provider="nobody")  # whose own fields are not read
    assume({"role": "user", "content": ""} not in dicts)  # no prompt accepts it
    assert dicts_from(messages_from(dicts), provider="nobody") == dicts


def test_a_servers_own_fields_are_in_the_dicts_for_it() -> None:
    thought = ThinkingPart("Hm.", "127.0.0.1:8000", {"reasoning_content": "Hm."})
    said = [user("1 + 2?"), AssistantMessage([thought, "3"])]
    assert dicts_from(said)[1] == {"role": "assistant", "content": "3"}
    assert dicts_from(said, provider="127.0.0.1:8000")[1]["reasoning_content"] == "Hm."


def test_text_and_parts_that_follow_each_other_are_one_message() -> None:
    assert messages_from(["What is this?", PNG]) == [user("What is this?", PNG)]
    assert messages_from([AssistantMessage("Hello."), "Look:", PNG]) == [AssistantMessage("Hello."), user("Look:", PNG)]


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (
            lambda: UserMessage(5),
            "expects strings and parts (TextPart, ImagePart, FilePart), found int 5",
        ),
        (lambda: user(["a"]), "found list ['a']"),  # type: ignore[arg-type]
        (lambda: UserMessage(b"hi"), "found bytes b'hi'"),
        (lambda: UserMessage([ThinkingPart("x")]), "found ThinkingPart"),
        (lambda: AssistantMessage([PNG]), "AssistantMessage(…) expects strings and parts"),
        (lambda: SystemMessage(None), "SystemMessage(…) expects a string, found NoneType None"),
        (lambda: ToolMessage("c1", "look", 5), "ToolMessage(…) expects strings and parts"),
        (lambda: messages_from(5), "found int 5; write user('…'), or FilePart.from_path('…') for a file"),
        (lambda: dicts_from("Hello"), "expects a list of messages, found str 'Hello'"),  # type: ignore[arg-type]
        (
            lambda: dicts_from(Agent(ScriptedModel(["Hello."])).run_sync("Hi")),  # type: ignore[arg-type]
            "write its messages: dicts_from(result.messages)",
        ),
        (
            lambda: dicts_from([user("Hi"), {"role": "user", "content": "Hi"}]),  # type: ignore[list-item]
            "expects messages, found dict {'role': 'user', 'content': 'Hi'} as item 1",
        ),
        (
            lambda: messages_from({"role": "robot"}),
            "message 0: the role of a message is one of system, developer, user",
        ),
        (
            lambda: messages_from({"role": "user", "content": 5}),
            "message 0.content: expected a string, a list of content parts",
        ),
        (
            lambda: messages_from({"role": "user", "content": [{"type": "input_audio"}]}),
            "expected a content part of type text, refusal, image_url ({'url': '…'}), file ({'file_data'",
        ),
        (
            lambda: messages_from({"role": "user", "content": "x", "name": "Ada"}),
            "found name, which would be lost: write it in the content, or remove it",
        ),
        (
            lambda: messages_from([{"role": "tool", "tool_call_id": 9, "content": "x"}]),
            "message 0.tool_call_id: expected a string, found 9",
        ),
        (
            lambda: messages_from({"role": "assistant", "tool_calls": [{"id": "a", "type": "custom"}]}),
            "message 0.tool_calls[0]: expected",
        ),
    ],
)
def test_anything_else_is_refused_when_it_is_built(build: Any, words: str) -> None:
    with pytest.raises(ConfigError) as raised:
        build()
    assert words in str(raised.value)


def test_results_at_the_beginning_of_a_window_of_a_history() -> None:
    window = [{"role": "tool", "tool_call_id": "c9", "content": "x"}, {"role": "user", "content": "next"}]
    assert messages_from(window) == [ToolMessage("c9", "", "x"), user("next")]
    assert Agent(ScriptedModel(["two"])).run_sync(window).text == "two"


def test_calls_without_an_id_are_answered_in_order() -> None:
    calls = [{"function": {"name": name, "arguments": {}}} for name in ("one", "two")]
    history = [
        {"role": "assistant", "tool_calls": calls},
        {"role": "tool", "content": "1"},
        {"role": "tool", "tool_name": "two", "content": "2"},
    ]
    said, *results = messages_from(history)
    assert isinstance(said, AssistantMessage)
    assert [(m.call_id, m.name, m.text) for m in results if isinstance(m, ToolMessage)] == [
        (said.calls[0].id, "one", "1"),
        (said.calls[1].id, "two", "2"),
    ]


@pytest.mark.parametrize("wrong", ["chart.png", 5, ["x"]])
def test_an_image_of_something_else_than_bytes_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"expects the image's bytes, found .*Path\('chart.png'\)"):
        ImagePart(wrong)


def test_the_types_of_messages_stay_what_they_were() -> None:
    message: Message = UserMessage((TextPart("a"),))
    assert message == UserMessage("a") == user("a")
    assert hash(message) == hash(user("a"))
