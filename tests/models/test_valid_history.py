"""Any conversation, however torn, becomes one that each provider accepts."""

from __future__ import annotations

import pytest
from conversations import MESSAGES
from hypothesis import given
from wire_rules import check_anthropic, check_chat, check_gemini, check_responses

from agentkit.messages import (
    AssistantMessage,
    MarkupPart,
    Message,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    user,
)
from agentkit.models import valid_history as history
from agentkit.models.gemini import gemini_contents
from agentkit.models.messages_body import anthropic_messages
from agentkit.models.openai import chat_messages
from agentkit.models.responses import responses_input

ANY_IDS = history.IdRule(limit=1000)

# ---------------------------------------------------------------- any conversation


@given(MESSAGES)
def test_any_history_is_valid_chat(messages: list[Message]) -> None:
    check_chat(chat_messages(messages, "openai"))


@given(MESSAGES)
def test_any_history_is_valid_for_anthropic(messages: list[Message]) -> None:
    check_anthropic(anthropic_messages(messages, "anthropic"))


@given(MESSAGES)
def test_any_history_is_valid_for_responses(messages: list[Message]) -> None:
    check_responses(responses_input(messages, "responses"))


@pytest.mark.parametrize("third", [True, False])
@given(MESSAGES)
def test_any_history_is_valid_for_gemini(third: bool, messages: list[Message]) -> None:
    check_gemini(gemini_contents(messages, "gemini", third=third))


@given(MESSAGES)
def test_nothing_but_pairing_changes(messages: list[Message]) -> None:
    """All calls stay, in order; a result that was there is the one that is sent."""
    fitted = history.conversation(messages, ANY_IDS)
    calls = [c for m in fitted if isinstance(m, AssistantMessage) for c in m.calls]
    assert [c.name for c in calls] == [c.name for m in messages if isinstance(m, AssistantMessage) for c in m.calls]
    given_content = [m.content for m in messages if isinstance(m, ToolMessage)]
    for message in fitted:
        if isinstance(message, ToolMessage):
            assert message.error == "interrupted" or message.content in given_content


@given(MESSAGES, MESSAGES)
def test_what_was_sent_stays_as_it_was(first: list[Message], more: list[Message]) -> None:
    """Ids depend on what came before them alone, so that a provider's prompt cache holds."""
    ids = [c.id for m in history.conversation(first, ANY_IDS) if isinstance(m, AssistantMessage) for c in m.calls]
    longer = history.conversation([*first, *more], ANY_IDS)
    assert [c.id for m in longer if isinstance(m, AssistantMessage) for c in m.calls][: len(ids)] == ids


# ---------------------------------------------------------------- examples


def assistant(*parts: TextPart | ThinkingPart | ToolCall | MarkupPart | ProviderPart) -> AssistantMessage:
    return AssistantMessage(parts)


def result(id: str, text: str) -> ToolMessage:
    return ToolMessage(id, "f", (TextPart(text),))


def test_call_without_a_result_is_interrupted() -> None:
    fitted = history.conversation([assistant(ToolCall("a", "f")), user("Go on")], ANY_IDS)
    assert [type(m) for m in fitted] == [AssistantMessage, ToolMessage, UserMessage]
    assert isinstance(fitted[1], ToolMessage)
    assert (fitted[1].call_id, fitted[1].error) == ("a", "interrupted")


def test_result_without_its_call_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    assert history.conversation([user("Hi"), result("a", "1")], ANY_IDS) == [user("Hi")]
    assert caplog.messages == ["1 tool results are omitted from the request: no call of the conversation has their ids"]


def test_results_follow_their_calls_in_order() -> None:
    both = assistant(ToolCall("a", "f"), ToolCall("b", "f"))
    fitted = history.conversation([both, user("Wait"), result("b", "2"), result("a", "1")], ANY_IDS)
    assert fitted == [both, result("a", "1"), result("b", "2"), user("Wait")]


def test_id_that_is_used_again_is_made_unique() -> None:
    messages = [assistant(ToolCall("0", "f")), result("0", "1"), assistant(ToolCall("0", "f")), result("0", "2")]
    assert history.conversation(messages, ANY_IDS) == [
        assistant(ToolCall("0", "f")),
        result("0", "1"),
        assistant(ToolCall("0_2", "f")),
        result("0_2", "2"),
    ]


def test_a_thousand_calls_with_one_id() -> None:
    messages: list[Message] = []
    for _ in range(1000):
        messages += [assistant(ToolCall("0", "f")), result("0", "1")]
    check_chat(chat_messages(messages, "openai"))


def test_damaged_call_goes_back_as_the_model_wrote_it() -> None:
    damaged = ToolCall("a", "f", {}, None, '{"text": "a')
    assert history.arguments_of(damaged) == {"INVALID_JSON": '{"text": "a'}


def test_arguments_go_back_character_by_character() -> None:
    assert history.arguments_text(ToolCall("a", "f", {"a": 1}, None, '{"a":  1}')) == '{"a":  1}'
    assert history.arguments_text(ToolCall("a", "f", {"a": 1}, "xml", "<f><a>1</a></f>")) == '{"a": 1}'
    assert history.arguments_text(ToolCall("a", "f", {"a": 1}, None, '{}{"a": 1}')) == '{"a": 1}'


# ---------------------------------------------------------------- the provider's own calls


def searched(query: str) -> list[ProviderPart]:
    """A search of Anthropic's, under an id that every one of these has."""
    call = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": query}}
    return [
        ProviderPart("anthropic", call),
        ProviderPart("anthropic", {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}),
    ]


def test_an_id_of_the_providers_own_calls_is_unique_in_joined_messages() -> None:
    """An empty user message between them is not sent, so that two replies become one message."""
    first, second = AssistantMessage((*searched("a"), TextPart("A."))), AssistantMessage((*searched("b"),))
    sent = anthropic_messages([user("Hi"), first, UserMessage(()), second, user("Go on")], "anthropic")
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    blocks = sent[1]["content"]
    assert [b.get("id") or b.get("tool_use_id") for b in blocks if b["type"] != "text"] == [
        "srv_1",
        "srv_1",
        "srv_1_2",
        "srv_1_2",
    ]


def test_a_call_in_text_without_its_text_is_sent_as_a_native_call() -> None:
    said = AssistantMessage(ToolCall("c", "add", {"a": 1}, format="hermes"))
    messages: list[Message] = [user("?"), said, ToolMessage("c", "add", "1")]
    assert history.conversation(messages, history.IdRule(40), written={"c"}) == messages
