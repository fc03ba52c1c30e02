"""The marks of a request for Anthropic's prompt cache, as they go over the wire."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from streams import events_of
from wire_rules import check_anthropic

from agentkit.messages import AssistantMessage, ImagePart, Message, SystemMessage, TextPart, ToolCall, ToolMessage, user
from agentkit.models import ModelRequest
from agentkit.models.caching import add_marks
from agentkit.models.messages_body import messages_body
from agentkit.testing import Replay
from agentkit.toolspec import ToolSpec

ANSWER = {"type": "message", "content": [], "stop_reason": "end_turn"}
SYSTEM = SystemMessage("Be brief. " * 600)
LONG = "word " * 2_000  # 2,040 tokens, by estimate
TOOL = ToolSpec("look", "Look. " * 1_000, {"type": "object", "properties": {}})


def sent(messages: list[Message], cache: bool = True, **request: Any) -> dict[str, Any]:
    """The body of the request, as the SDK sent it."""
    tape = Replay([ANSWER])
    events_of(tape.model("anthropic:m", cache=cache), messages, **request)
    return tape.requests[0]


def marks(value: Any, path: str = "") -> list[str]:
    """Where the marks of a body stand, in order of the prompt: tools, system, messages."""
    if isinstance(value, dict):
        own = [path] if "cache_control" in value else []
        keys = [*(k for k in ("tools", "system") if k in value), *(k for k in value if k not in ("tools", "system"))]
        return own + [place for key in keys for place in marks(value[key], f"{path}/{key}")]
    if isinstance(value, list):
        return [place for at, item in enumerate(value) for place in marks(item, f"{path}/{at}")]
    return []


def without(value: Any) -> Any:
    """A body without its marks, its system prompt as text."""
    if isinstance(value, dict):
        return {k: without(v) for k, v in value.items() if k != "cache_control"}
    return [without(item) for item in value] if isinstance(value, list) else value


def looked(n: int, text: str = LONG) -> list[Message]:
    calls = (ToolCall(f"a{n}", "look"), ToolCall(f"b{n}", "look"))
    return [AssistantMessage(calls), *(ToolMessage(c.id, "look", (TextPart(text),)) for c in calls)]


def test_without_the_option_nothing_is_marked() -> None:
    assert marks(sent([SYSTEM, user(LONG)], cache=False)) == []


def test_a_short_request_is_not_marked() -> None:
    assert marks(sent([SystemMessage("Be brief."), user("Hi")])) == []


def test_the_system_prompt_and_the_last_two_user_messages() -> None:
    body = sent([SYSTEM, user("Look twice."), *looked(1), *looked(2, "small")])
    assert marks(body) == ["/system/0", "/messages/2/content/1", "/messages/4/content/1"]
    assert body["system"] == [{"type": "text", "text": SYSTEM.content, "cache_control": {"type": "ephemeral"}}]
    assert body["messages"][4]["content"][1]["type"] == "tool_result"
    assert body["messages"][4]["content"][1]["cache_control"] == {"type": "ephemeral"}


def test_the_tools_where_there_is_no_system_prompt() -> None:
    assert marks(sent([user("Look.")], tools=[TOOL, TOOL])) == ["/tools/1", "/messages/0/content/0"]


def test_one_mark_further_back() -> None:
    """Each pair of results has 4,100 tokens: every second one lies behind a further 8,192."""
    messages: list[Message] = [SYSTEM, user("Look."), *(m for n in range(9) for m in looked(n))]

    def ends(pairs: int) -> list[str]:
        return [place.split("/")[2] for place in marks(sent(messages[: 2 + 3 * pairs])) if "messages" in place]

    assert [ends(pairs) for pairs in (1, 5, 6, 7, 8)] == [
        ["0", "2"],
        ["4", "8", "10"],
        ["8", "10", "12"],
        ["8", "12", "14"],
        ["12", "14", "16"],
    ]


def test_an_image_at_the_end() -> None:
    body = sent([SYSTEM, user("See", ImagePart(data=b"png"))])
    assert marks(body) == ["/system/0", "/messages/0/content/1"]


TURNS = st.lists(
    st.one_of(
        st.tuples(st.just("user"), st.integers(1, 3_000)),
        st.tuples(st.just("answer"), st.integers(1, 500)),
        st.tuples(st.just("calls"), st.lists(st.integers(0, 9_000), min_size=1, max_size=4)),
    ),
    max_size=16,
)


def conversation(turns: list[tuple[Any, ...]]) -> list[Message]:
    messages: list[Message] = [user("Begin.")]
    for n, turn in enumerate(turns):
        match turn:
            case ("user", size):
                messages.append(user("u" * size))
            case ("answer", size):
                messages.append(AssistantMessage((TextPart("a" * size),)))
            case ("calls", sizes):
                calls = tuple(ToolCall(f"{n}_{i}", "look") for i in range(len(sizes)))
                messages.append(AssistantMessage(calls))
                messages += [ToolMessage(c.id, "look", (TextPart("r" * s),)) for c, s in zip(calls, sizes, strict=True)]
    return messages


@given(TURNS, st.booleans(), st.booleans())
def test_marks_are_few_and_part_no_call_from_its_result(
    turns: list[tuple[Any, ...]], system: bool, tools: bool
) -> None:
    messages = [*([SYSTEM] if system else []), *conversation(turns)]
    request = ModelRequest(messages, [TOOL] if tools else [])
    plain = messages_body(request, "m", "anthropic")
    body = add_marks(plain)
    places = marks(body)
    assert len(places) <= 4
    check_anthropic(body["messages"])
    for place in places:
        if place.startswith("/messages/"):
            at, block = int(place.split("/")[2]), int(place.split("/")[4])
            assert body["messages"][at]["role"] == "user"
            assert block == len(body["messages"][at]["content"]) - 1
    bare = without(body)
    if system:
        bare["system"] = bare["system"][0]["text"]
    assert json.dumps(bare) == json.dumps(plain)


@given(TURNS, st.integers(1, 4_000))
def test_the_next_request_finds_what_this_one_left(turns: list[tuple[Any, ...]], size: int) -> None:
    """Of two requests in a row, the second has a mark where the first one's last mark was, after the same blocks."""
    now = [SYSTEM, *conversation([*turns, ("user", 10)])]
    then = [*now, *looked(99, "r" * size)]
    first, second = (add_marks(messages_body(ModelRequest(m), "m", "anthropic")) for m in (now, then))
    last = marks(first)[-1]
    assert last in marks(second)
    at = int(last.split("/")[2])
    assert without(first["messages"][: at + 1]) == without(second["messages"][: at + 1])
    assert first["system"] == second["system"]
