"""Records of trajectories for tests: a plain one, hostile ones, and any that Hypothesis can think of."""

from __future__ import annotations

import base64
from dataclasses import replace

from hypothesis import strategies as st

from agentkit.messages import (
    AssistantMessage,
    ImagePart,
    MarkupPart,
    Message,
    SystemMessage,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit.rollout import CallRecord, TokenRecord, TrajectoryRecord

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAgAAAAICAIAAABLbSncAAAAEklEQVR4nGP4z8CAFWEXHbQSACj/P8Fu7N9hAAAAAElFTkSuQmCC"
)
"""A red square of 8 pixels."""


def add(turn: int, index: int = 0, **changed: object) -> CallRecord:
    """A call of `add` that succeeded."""
    call = CallRecord(
        turn, index, f"call_{turn}_{index}", "add", {"a": turn}, result=str(turn), reward=0.5, queued=0.001, ran=0.01
    )
    return replace(call, **changed)  # type: ignore[arg-type]


def record(id: str = "s1#0", **changed: object) -> TrajectoryRecord:
    """A trajectory of one call and an answer."""
    sample, _, repeat = id.rpartition("#")
    call = ToolCall("call_0_0", "add", {"a": 0}, "hermes", '<tool_call>{"name": "add"}</tool_call>')
    messages: tuple[Message, ...] = (
        SystemMessage("Add."),
        UserMessage(("What is it?", ImagePart(PNG))),
        AssistantMessage((ThinkingPart("hm"), TextPart("Let me see. "), MarkupPart("\n"), call)),
        ToolMessage("call_0_0", "add", (TextPart("0"), ImagePart(PNG))),
        AssistantMessage("It is 0."),
    )
    plain = TrajectoryRecord(
        id,
        sample,
        int(repeat),
        messages,
        "answered",
        calls=(add(0),),
        final_rewards={"add": 1.0},
        reward=1.5,
        tokens=TokenRecord((1, 2), (3, 4, 5), (1, 1, 0), (-0.1, -2.5e-7, 0.0)),
        assistant_turns=2,
        seconds=1.25,
        generating=1.0,
        extra={"split": "test", "index": 7},
    )
    return replace(plain, **changed)  # type: ignore[arg-type]


NASTY = (
    "</script><script>document.title='HACKED'</script>",
    "<img src=x onerror=\"document.title='HACKED'\">",
    "{{ 7*7 }} {% raw %} ${x} $\\frac{1}{2}$",
    "\x1b[31mred\x07 \u202egnp.exe \u2028 \x00",
    "half a pair: \ud83d",
    "]]> --> */ </style></svg></details><h1>out</h1>",
    "javascript:alert(1)",
    "A" * 5_000,
)
"""What a result, a name or an id may hold."""


def hostile(text: str, number: int = 0) -> TrajectoryRecord:
    """A trajectory in which every text is this one."""
    messages: tuple[Message, ...] = (
        SystemMessage(text),
        UserMessage((text, ImagePart(url="https://example.org/tracker.png"), ImagePart(PNG))),
        AssistantMessage((TextPart(text), ThinkingPart(text), ToolCall("c", text, {text: text}, text, text))),
        ToolMessage("c", text, text, "tool_error"),
    )
    call = CallRecord(0, 0, text, text, {text: [text]}, result=text, error="tool_error", metrics={text: 1.0})
    return TrajectoryRecord(
        f"{text}#{number}", text, number, messages, "policy_error", error=text, calls=(call,),
        final_rewards={text: 1.0}, unscored={text: text}, unreleased={text: text}, extra={text: text},
    )  # fmt: skip


_texts = st.text(st.characters(), max_size=20)  # lone surrogates, too
_numbers = st.floats(allow_nan=False) | st.just(float("inf"))
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=5,
)
_objects = st.dictionaries(_texts, _json, max_size=3)
_counts = st.integers(0, 1000)
_said = st.lists(st.builds(TextPart, _texts) | st.just(ImagePart(PNG)), max_size=2).map(tuple)
_messages = (
    st.builds(SystemMessage, _texts)
    | st.builds(UserMessage, _said)
    | st.builds(ToolMessage, _texts, _texts, _said)
    | st.builds(AssistantMessage, st.lists(st.builds(ToolCall, _texts, _texts, _objects), max_size=2).map(tuple))
)
_calls = st.builds(
    CallRecord,
    _counts,
    _counts,
    _texts,
    _texts,
    _objects,
    _texts,
    st.none() | st.just("timeout"),
    st.none() | _numbers,
    _objects,
    _numbers,
    _numbers,
    st.none() | st.tuples(_counts, _counts),
)
_ids = st.lists(_counts, max_size=4).map(tuple)
records = st.builds(
    TrajectoryRecord,
    _texts,
    _texts,
    _counts,
    st.lists(_messages, max_size=3).map(tuple),
    st.sampled_from(["answered", "deadline", "lost"]),
    st.none() | _texts,
    st.lists(_calls, max_size=2).map(tuple),
    st.dictionaries(_texts, _numbers, max_size=2),
    _numbers,
    st.none()
    | st.builds(TokenRecord, _ids, _ids, _ids, st.none() | st.lists(_numbers, max_size=3).map(tuple), st.booleans()),
    _counts,
    _numbers,
    _numbers,
    st.dictionaries(_texts, _texts, max_size=2),
    st.dictionaries(_texts, _texts, max_size=2),
    _objects,
)
"""Any trajectory's record."""
