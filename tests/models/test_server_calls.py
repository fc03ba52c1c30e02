"""Calls of the provider's own tools in a conversation: each is sent with its answer, or while it is awaited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from wire_rules import check_anthropic

from agentkit.messages import (
    AssistantMessage,
    Message,
    ProviderPart,
    TextPart,
    ToolCall,
    ToolMessage,
    UserMessage,
    user,
)
from agentkit.models.messages_body import anthropic_messages
from agentkit.models.render_cache import RenderCache, Taken

KINDS = {"code_execution": "server_tool_use", "web_search": "server_tool_use", "mcp": "mcp_tool_use"}


def asked(kind: str, id: str, caller: str | None = None) -> ProviderPart:
    return ProviderPart("anthropic", {"type": KINDS[kind], "id": id, "name": kind, "input": {}, **made_by(caller)})


def answered(kind: str, id: str, caller: str | None = None) -> ProviderPart:
    return ProviderPart(
        "anthropic", {"type": f"{kind}_tool_result", "tool_use_id": id, "content": [], **made_by(caller)}
    )


def made_by(caller: str | None) -> dict[str, Any]:
    return {"caller": {"type": "code_execution_20250825", "tool_id": caller}} if caller else {}


def called(id: str, caller: str | None = None) -> list[Any]:
    call = ToolCall(id, "add", {"a": 1})
    return [ProviderPart("anthropic", made_by(caller), id), call] if caller else [call]


def result(id: str) -> ToolMessage:
    return ToolMessage(id, "add", (TextPart("3"),))


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Responses with calls of both sides; the provider's are answered at once, later or never, and call ours."""
    messages: list[Message] = [user("Go")]
    waiting: dict[str, tuple[str, str | None]] = {}
    for turn in range(draw(st.integers(1, 5))):
        parts: list[Any] = []
        for id in [id for id in waiting if draw(st.booleans())]:
            kind, caller = waiting.pop(id)
            parts.append(answered(kind, id, caller))
        parts += [TextPart("So.")] * draw(st.integers(0, 1))
        for n in range(draw(st.integers(0, 2))):
            id, kind = f"srvtoolu_{turn}_{n}", draw(st.sampled_from([*KINDS]))
            caller = draw(st.sampled_from([None, *waiting, "srvtoolu_lost"]))
            parts.append(asked(kind, id, caller))
            if draw(st.booleans()):
                parts.append(answered(kind, id, caller))
            else:
                waiting[id] = kind, caller
        calls = [f"toolu_{turn}_{n}" for n in range(draw(st.integers(0, 2)))]
        for id in calls:
            parts += called(id, draw(st.sampled_from([None, *waiting, "srvtoolu_lost"])))
        messages += [AssistantMessage(tuple(parts)), *map(result, calls)]
        if draw(st.integers(0, 0 if calls and draw(st.booleans()) else 1)):
            messages.append(user("And?"))
            waiting.clear()  # which no provider answers then
    return messages[draw(st.integers(0, len(messages))) :]  # the beginning may have been cut off


def own(messages: list[Message]) -> list[dict[str, Any]]:
    """The blocks of server tools, in order."""
    parts = [p for m in messages if isinstance(m, AssistantMessage) for p in m.content]
    return [dict(p.data) for p in parts if isinstance(p, ProviderPart) and not p.call_id]


def key(block: dict[str, Any]) -> str:
    return str(block.get("tool_use_id") or f"call {block['id']}")


@given(conversations())
def test_what_is_paired_is_sent_and_the_request_is_well_formed(messages: list[Message]) -> None:
    sent = anthropic_messages(messages, "anthropic")
    check_anthropic(sent)
    blocks = [block for message in sent for block in message["content"]]
    found = [key(b) for b in blocks if b["type"] != "tool_result" and b["type"] not in ("text", "tool_use")]
    given_keys = [key(block) for block in own(messages)]
    spoken = max((at for at, m in enumerate(messages) if isinstance(m, UserMessage)), default=-1)
    does = [at for at, m in enumerate(messages) if isinstance(m, AssistantMessage) and m.content != (TextPart("So."),)]
    last = does[-1] if does and does[-1] > spoken else len(messages)
    while last and last < len(messages) and isinstance(messages[last - 1], AssistantMessage):
        last -= 1  # one message with those before it
    pairs = {k for k in given_keys if f"call {k}" in given_keys}
    awaited = {key(block) for block in own(messages[last:]) if "id" in block}
    answered_or_awaited = [k for k in given_keys if k.removeprefix("call ") in pairs or k in awaited]
    assert [k for k in found if k in set(answered_or_awaited)] == answered_or_awaited
    for block in blocks:  # a caller that is there is named
        made = next((c for m in messages if isinstance(m, AssistantMessage) for c in callers(m, block)), None)
        assert ("caller" in block) == (made is not None and f"call {made}" in found)


def callers(message: AssistantMessage, block: dict[str, Any]) -> list[str]:
    """The caller of a block, as a response has it."""
    parts = [p for p in message.content if isinstance(p, ProviderPart) and "caller" in p.data]
    fields = ("id", "tool_use_id")
    return [
        p.data["caller"]["tool_id"]
        for p in parts
        if (p.call_id == block["id"] if block["type"] == "tool_use" else _same(p.data, block, fields))
    ]


def _same(data: Any, block: dict[str, Any], fields: tuple[str, ...]) -> bool:
    return data.get("type") == block["type"] and all(data.get(field) == block.get(field) for field in fields)


@given(conversations())
def test_a_conversation_that_grows_is_sent_as_if_it_were_new(messages: list[Message]) -> None:
    rendered = RenderCache()
    for end in range(len(messages) + 1):
        assert anthropic_messages(messages[:end], "anthropic", rendered) == anthropic_messages(
            messages[:end], "anthropic"
        )


def types(messages: list[Message]) -> list[list[str]]:
    return [[b["type"] for b in m["content"]] for m in anthropic_messages(messages, "anthropic")]


CODE = AssistantMessage((TextPart("Asking."), asked("code_execution", "s"), *called("t", "s")))
SEARCH = AssistantMessage((asked("web_search", "s"), *called("t")))


def test_code_of_the_provider_that_calls_a_tool_waits_for_its_result() -> None:
    ask = [user("1+2?"), CODE, result("t")]
    first = [["text"], ["text", "server_tool_use", "tool_use"], ["tool_result"]]
    assert types(ask) == first
    twice = [*ask, AssistantMessage(tuple(called("u", "s"))), result("u")]  # it calls once more
    assert types(twice) == [*first, ["tool_use"], ["tool_result"]]
    done = AssistantMessage((answered("code_execution", "s"), TextPart("3.")))
    assert types([*twice, done, user("Thanks")]) == [
        *first,
        ["tool_use"],
        ["tool_result"],
        ["code_execution_tool_result", "text"],
        ["text"],
    ]


def test_a_search_beside_a_call_waits_for_its_result() -> None:
    ask = [user("Hi"), SEARCH, result("t")]
    assert types(ask) == [["text"], ["server_tool_use", "tool_use"], ["tool_result"]]
    assert types([*ask, AssistantMessage((answered("web_search", "s"),))])[3] == ["web_search_tool_result"]


def test_what_is_never_answered_is_left_out_with_its_name() -> None:
    for more in ([user("Stop")], [AssistantMessage("Well."), user("Go on")]):
        sent = anthropic_messages([user("Hi"), CODE, result("t"), *more], "anthropic")
        assert [b["type"] for b in sent[1]["content"]] == ["text", "tool_use"]
        assert "caller" not in sent[1]["content"][1]


def test_an_answer_whose_call_was_cut_off_is_left_out() -> None:
    assert types([AssistantMessage((answered("code_execution", "s"), TextPart("3."))), user("Ok")])[1] == ["text"]


def test_a_call_that_is_never_answered_keeps_nothing_from_being_made_once() -> None:
    made: list[int] = []

    def make(messages: Sequence[Message], taken: Taken) -> list[object]:
        made.append(len(messages))
        return []

    rendered = RenderCache()
    messages: list[Message] = [user("Go"), AssistantMessage((TextPart("So."), asked("web_search", "s"))), user("And?")]
    for turn in range(20):
        messages += [AssistantMessage(tuple(called(f"c{turn}"))), result(f"c{turn}")]
        made.clear()
        rendered.of("messages", [*messages], make)
        assert sum(made) <= 5
