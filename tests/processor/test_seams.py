"""Law 12 where no single source shows the call: it stands between two that follow one another."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import pytest
from growth import assert_linear, cpu_seconds

from agentkit import formats
from agentkit.events import CallQuoted, Event, Text, ToolStarted
from agentkit.formats import CATALOG, Format
from agentkit.messages import AssistantMessage, Message, ProviderPart, TextPart, ToolCall, ToolMessage, user
from agentkit.processor import ResponseProcessor
from agentkit.processor.echo import Heard
from agentkit.tool.registry import ToolRegistry

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def move_all(path: str, to: str, note: str = "") -> str:
    """Move."""
    return "moved"


def ping() -> str:
    """Answer."""
    return "pong"


REGISTRY = ToolRegistry(move_all, ping)
SPECS = REGISTRY.specs()
TOOLS = {tool.name: tool for tool in SPECS}
CALL = ToolCall("", "move_all", {"path": "/data/x_y", "to": "/old", "note": 'said "no" & <b>\nleft 😀 für 1\\2'})


def fail(_: object) -> Sequence[formats.Parser]:
    raise AssertionError("read for calls")


def page(number: int, text: str, tool: str = "read") -> ToolMessage:
    return ToolMessage(f"c{number}", tool, (TextPart(text),))


def quoted(raw: str, heard: Sequence[Message], call: ToolCall = CALL) -> bool:
    """Whether a call as it is written in a reply was heard."""
    of_raw = ToolCall("", call.name, call.arguments, raw=raw)
    return Heard(lambda: heard, parsers).quoted(of_raw, TOOLS) is not None


def parsers(_: object) -> Sequence[formats.Parser]:
    return [formats.Parser(formats.auto(), SPECS, in_code="execute")]


Halves = Callable[[str, str], Sequence[Message]]
BETWEEN: dict[str, Halves] = {
    "results": lambda one, other: [page(1, f"Welcome.\n{one}"), page(2, f"{other}\nBye.")],
    "results alone": lambda one, other: [page(1, one), page(2, other)],
    "results of a tool": lambda one, other: [page(1, one), user("Go on."), page(2, "a\nb", "list"), page(3, other)],
    "messages": lambda one, other: [user(f"Look:\n{one}"), user(f"{other}\nSo?")],
    "a result and a message": lambda one, other: [page(1, one), AssistantMessage("Yes?"), user(other)],
    "blocks": lambda one, other: [
        AssistantMessage([ProviderPart("x", {"type": "y", "output": one})]),
        AssistantMessage([ProviderPart("x", {"type": "y", "output": other})]),
    ],
    "three": lambda one, other: [page(1, one), page(2, other[:3]), page(3, other[3:])],
    "objects": lambda one, other: [
        page(n, json.dumps({"path": "notes.md", "text": text, "next": n})) for n, text in enumerate((one, other))
    ],
    "added lines": lambda one, other: [
        page(1, f"From: a.md\n\n{one}\n[cut: lines 1-100 of 104; continue with offset=101]"),
        page(2, f"From: a.md\n\n{other}\n\n[That is all.]"),
    ],
}
"""How a text that is read in two pieces comes to a model."""


WAYS = list(BETWEEN.values())


@pytest.mark.share(12)
@pytest.mark.parametrize("format", CATALOG, ids=lambda format: format.name)
def test_wherever_two_sources_divide_a_call_it_is_heard(format: Format) -> None:
    raw = formats.render_calls(format, [CALL], SPECS)
    for cut in range(1 + CATALOG.index(format) % 3, len(raw), 3):  # the soak takes every place
        between = WAYS[(cut + CATALOG.index(format)) % len(WAYS)]
        assert quoted(raw, between(raw[:cut], raw[cut:])), (between("", ""), raw[:cut], raw[cut:])


@pytest.mark.soak
@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("format", CATALOG, ids=lambda format: format.name)
def test_in_every_way(format: Format, between: str) -> None:
    raw = formats.render_calls(format, [CALL], SPECS)
    for cut in range(1, len(raw)):
        assert quoted(raw, BETWEEN[between](raw[:cut], raw[cut:])), (raw[:cut], raw[cut:])


@pytest.mark.parametrize("format", formats.auto(), ids=lambda format: format.name)
def test_in_whatever_format_the_divided_call_was_it_is_heard(format: Format) -> None:
    """Here, no escape is divided."""
    call = replace(CALL, arguments={**CALL.arguments, "note": "left 😀 für 12"})
    source, reply = (formats.render_calls(each, [call], SPECS) for each in (format, formats.get("hermes")))
    for cut in range(1 + len(format.name) % 9, len(source), 9):
        for between in ("results", "messages"):
            heard = BETWEEN[between](source[:cut], source[cut:])
            assert quoted(reply, heard, call), (between, source[:cut], source[cut:])


OWN = [
    [user("Use move_all on what it lists, and put it to /old."), page(1, "/data/x_y\n/data/z\nleft\n")],
    [page(1, "These may be used: move_all"), page(2, "to: /old\npath: /data/x_y\nnote: left"), user("So?")],
    [user("move_all:"), user("/data/x_y, /old, left")],
    [user('{"name": "move_all", "arguments": {"path": "/data/a", "to": "/b", "note": "c"}}'), page(1, '"/data/x_y"}}')],
    [page(1, "/data/x_y"), page(2, "/old"), page(3, "left"), user("Do move_all.")],
    [page(n, f"move_all may put {n} there.\n{'.' * 500}\n/data/x_y to /old: left") for n in range(200)],
    [
        page(1, '{"name": "move_all", "arguments": {'),
        page(2, "." * 1_000 + '"path": "/data/x_y", "to": "/old", "note": "left"}}'),
    ],
]
"""Sources that, together, name the tool and all values, but show no call."""


@pytest.mark.share(6)
@pytest.mark.parametrize("heard", OWN)
@pytest.mark.parametrize("format", formats.auto(), ids=lambda format: format.name)
def test_what_only_names_all_parts_of_a_call_together_is_no_call(format: Format, heard: Sequence[Message]) -> None:
    call = ToolCall("", "move_all", {"path": "/data/x_y", "to": "/old", "note": "left"})
    assert not quoted(formats.render_calls(format, [call], SPECS), heard, call)


SHORT = ToolCall("", "move_all", {"path": "/data/a12", "to": "/b"})


@pytest.mark.parametrize("between", BETWEEN)
def test_a_call_that_differs_from_a_divided_one_is_made(between: str) -> None:
    for name in ("hermes", "qwen3_coder", "python", "xml", "kimi_k2"):
        raw = formats.render_calls(name, [SHORT], SPECS)
        for own in ({**SHORT.arguments, "path": "/data/a21"}, {**SHORT.arguments, "to": "/c"}):
            call = replace(SHORT, arguments=own)
            said = formats.render_calls(name, [call], SPECS)
            for cut in range(1, len(raw), 10):
                assert not quoted(said, BETWEEN[between](raw[:cut], raw[cut:]), call), (said, raw[:cut], raw[cut:])


def test_a_call_without_arguments_is_heard_and_runs_if_it_is_not_said() -> None:
    call = ToolCall("", "ping", {})
    assert quoted("ping()", [user("What is pin"), user("g() for?")], call)
    assert not quoted("ping()", [user("Please ping"), user("f() is a function, and g() too.")], call)
    assert not quoted("ping()", [user("Please ping"), page(1, "f()\n() ")], call)


async def test_the_whole_turn_obeys() -> None:
    """And says where the call begins."""
    raw = formats.render_calls("hermes", [CALL], SPECS)
    for heard, begins in (([page(1, raw[:60]), page(2, raw[60:])], "c1"), ([user(raw[:60]), user(raw[60:])], None)):
        turn = ResponseProcessor(REGISTRY, heard=partial(list, heard)).process([Text(f"It says:\n{raw}")])
        events: list[Event] = [event async for event in turn]
        assert not any(isinstance(event, ToolStarted) for event in events)
        assert [event.call_id for event in events if isinstance(event, CallQuoted)] == [begins]


# ---------------------------------------------------------------- what it costs


def test_other_conversations_are_not_read_for_calls() -> None:
    heard = [page(n, f"{n}: move_all is here, /data/x_y is there") for n in range(50)]
    raw = formats.render_calls("hermes", [CALL], SPECS)
    assert Heard(lambda: heard, fail).quoted(replace(CALL, raw=raw), TOOLS) is None


@pytest.mark.parametrize("way", ["other", "halves", "first halves", "short", "told"])
def test_the_time_grows_linearly(way: str) -> None:
    raw = formats.render_calls("hermes", [CALL], SPECS)
    texts = {
        "other": "Nothing at all. " * 20,
        "halves": f"{raw[len(raw) // 2 + 20 :]}. {raw[: len(raw) // 2 - 20]}",
        "first halves": raw[: len(raw) // 2 + 1],
        "short": "a",
        "told": "move_all(",
    }

    def seconds(count: int) -> float:
        heard = [page(n, texts[way]) for n in range(count)]
        return cpu_seconds(lambda: quoted(raw, heard))

    assert_linear(seconds, 100)
