"""What is sent for a conversation is made once for each message, and is what would be made of the whole at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from conversations import MESSAGES, RESPONSES, USERS
from hypothesis import given
from hypothesis import strategies as st

from agentkit import formats
from agentkit.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    Message,
    ProviderPart,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    user,
)
from agentkit.models.gemini import gemini_contents
from agentkit.models.messages_body import anthropic_messages
from agentkit.models.openai import chat_messages
from agentkit.models.render_cache import Make, RenderCache
from agentkit.models.responses import responses_input
from agentkit.models.text import text_messages

HERMES = formats.get("hermes")
TEXT = (TextPart("3"),)
IMAGE = (ImagePart(b"\x89PNG\r\n\x1a\n"),)


def as_text(messages: Sequence[Message], _: str, rendered: RenderCache) -> list[Message]:
    return text_messages(messages, HERMES, (), rendered)


FORMS: list[tuple[Callable[..., list[Any]], str]] = [
    (chat_messages, "openai"),
    (anthropic_messages, "anthropic"),
    (responses_input, "responses"),
    (gemini_contents, "gemini"),
    (as_text, ""),
]


class AtOnce(RenderCache):
    """Makes everything of the whole conversation."""

    def of(self, form: object, messages: Sequence[Message], make: Make[Any], using: Sequence[object] = ()) -> list[Any]:
        return make(messages, {})


@st.composite
def exchange(draw: st.DrawFn) -> list[Message]:
    """A response whose calls have their results, some of them under an id that was used before, and what follows."""
    ids = draw(st.lists(st.sampled_from(["a", "b", "call:1", "x" * 70]), max_size=3, unique=True))
    said = draw(RESPONSES)
    spoken = tuple(part for part in said.content if not isinstance(part, ToolCall))
    calls = tuple(ToolCall(id, "add", {"a": 1}) for id in ids)
    results = [ToolMessage(id, "add", draw(st.sampled_from([TEXT, IMAGE, ()]))) for id in draw(st.permutations(ids))]
    return [AssistantMessage((*spoken, *calls)), *results]


STEPS = st.lists(MESSAGES | exchange() | exchange() | USERS.map(lambda m: [m]) | st.just([user("Go on")]), max_size=8)


@pytest.mark.share(3)
@pytest.mark.parametrize(("make", "provider"), FORMS)
@given(steps=STEPS, system=st.booleans())
def test_a_conversation_that_grows_is_sent_as_if_it_were_new(
    make: Callable[..., list[Any]], provider: str, steps: list[list[Message]], system: bool
) -> None:
    rendered = RenderCache()
    messages: list[Message] = []
    for step in steps:
        messages += step
        told = [SystemMessage("Be brief."), *messages] if system else messages
        assert make(told, provider, rendered) == make(told, provider, AtOnce())


def counted(made: list[int]) -> Make[Message]:
    def make(messages: Sequence[Message], taken: object) -> list[Message]:
        made.append(len(messages))
        return list(messages)

    return make


def turn(n: int) -> list[Message]:
    return [AssistantMessage(ToolCall(f"c{n}", "add", {"a": n})), ToolMessage(f"c{n}", "add", TEXT)]


def test_a_turn_makes_what_is_new_however_long_the_conversation_is() -> None:
    rendered, made = RenderCache(), list[int]()
    messages: list[Message] = [user("Go on")]
    most = []
    for n in range(300):
        messages += turn(n)
        made.clear()
        assert rendered.of("form", [SystemMessage("Be brief."), *messages], counted(made)) == [
            SystemMessage("Be brief."),
            *messages,
        ]
        most.append(sum(made))
    assert max(most) <= 6


def test_a_conversation_that_was_shortened_is_made_again() -> None:
    rendered, made = RenderCache(), list[int]()
    messages = [user("Go on"), *turn(0), *turn(1), *turn(2)]
    rendered.of("form", messages, counted(made))
    shorter = [user("Before: …"), *messages[3:]]
    assert rendered.of("form", shorter, counted(made)) == shorter


def test_other_tools_or_formats_make_it_again() -> None:
    rendered = RenderCache()
    messages = [user("Go on"), *turn(0), *turn(1)]
    for name in ("hermes", "xml", "hermes"):
        format = formats.get(name)
        assert text_messages(messages, format, (), rendered) == text_messages(messages, format, (), AtOnce())


def test_servers_that_want_a_file_in_another_form_share_nothing() -> None:
    messages = [user("What is said?", FilePart(b"RIFF", "audio/wav")), *turn(0), *turn(1)]
    rendered = RenderCache()
    sent = [chat_messages(messages, "openai", rendered, by_url=by_url)[0] for by_url in (False, True, False)]
    assert [one["content"][1]["type"] for one in sent] == ["input_audio", "audio_url", "input_audio"]


def test_a_server_tools_call_waits_for_its_output_in_a_later_message() -> None:
    asked = ProviderPart("responses", {"type": "mcp_call", "call_id": "m"})
    output = ProviderPart("responses", {"type": "mcp_call_output", "call_id": "m"})
    messages = [user("Go on"), AssistantMessage((TextPart("Well:"), asked)), user("And?"), AssistantMessage("Yes.")]
    rendered = RenderCache()
    assert "mcp_call" not in str(responses_input(messages, "responses", rendered))
    messages += [user("So?"), AssistantMessage((output, TextPart("So.")))]
    assert "mcp_call" in str(responses_input(messages, "responses", rendered))
