"""The fuzz's judge, itself tested: readings that are wrong in a known way, of which it must report every one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import fuzz
import pytest
from damaged_texts import MIXED, Plan, Planned, Written
from damages import damaged
from format_tools import CREATE_FILE, NOTE
from judging import Judge

from agentkit.events import CallEnd, CallError, CallStart, Event, Text
from agentkit.formats import CATALOG
from agentkit.messages import ToolCall

Wrong = Callable[[dict[str, Any]], Mapping[str, Any]]
ARGUMENTS: dict[str, Wrong] = {
    "a value is cut": lambda a: {**a, "text": a["text"][:4]},
    "a value has lost its end": lambda a: {**a, "text": a["text"][:-4]},
    "a value is empty": lambda a: {**a, "text": ""},
    "a value is another one": lambda a: {**a, "text": "rm -rf /"},
    "a character is another one": lambda a: {**a, "text": a["text"].replace("a", "o", 1)},
    "quotes stand around a value": lambda a: {**a, "text": f'"{a["text"]}"'},
    "markup stands after a value": lambda a: {**a, "text": a["text"] + "</parameter>"},
    "JSON stands after a value": lambda a: {**a, "text": a["text"] + '", "number": 910002'},
    "a number is another one": lambda a: {**a, "number": 7},
    "a number has lost its last digit": lambda a: {**a, "number": a["number"] // 10},
    "a word is another one": lambda a: {**a, "flag": False},
    "what may be left out is lost": lambda a: {k: v for k, v in a.items() if k != "flag"},
    "an item is lost": lambda a: {**a, "items": a["items"][:1]},
    "items have changed places": lambda a: {**a, "items": a["items"][::-1]},
    "null is a word": lambda a: {**a, "object": {**a["object"], "n": "None"}},
    "two values have changed places": lambda a: {**a, "text": a["items"][0], "items": [a["text"], a["items"][1]]},
}
FORMATS = ("hermes", "qwen3_coder", "pythonic", "gemma4", "cline", "glm45")


def written(*damages: str, tools: Sequence[Any] = (MIXED, NOTE), format: str = "hermes", seed: int = 1) -> Written:
    """A text of a call of each tool, with these damages."""
    declared = next(f for f in CATALOG if f.name == format)
    calls = tuple(Planned(tool, ("a b",) * 4) for tool in tools)
    prose = ("I look.\n", *("" for _ in tools[1:]), "Done.\n")
    out = damaged(Plan(declared, declared.shapes[0], calls, prose, "", False, tuple(damages), seed))
    assert out is not None
    return out


def read(out: Written) -> list[Event]:
    """Return the events of a text in its own format."""
    return fuzz.read(out.text, (out.plan.format,), [out.text])


def names(events: Sequence[Event]) -> list[str]:
    """The names of the finished calls."""
    return [e.call.name for e in events if isinstance(e, CallEnd)]


def faults(out: Written, events: Sequence[Event], *, strict: bool = False) -> list[str]:
    """The kinds of fault that the judge finds."""
    return [kind for kind, _ in Judge(out, events, strict=strict).faults()]


def changed(events: Sequence[Event], number: int, **how: Any) -> list[Event]:
    """The events, with another call in the finished call of this number."""
    at = [i for i, event in enumerate(events) if isinstance(event, CallEnd)][number]
    event = events[at]
    assert isinstance(event, CallEnd)
    return [*events[:at], event._replace(call=replace(event.call, **how)), *events[at + 1 :]]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("damages", [(), ("mentioned",), ("layout",)], ids=["sound", "mentioned", "layout"])
def test_wrong_arguments_are_reported(format: str, damages: tuple[str, ...]) -> None:
    """Of a sound call, and of one near which something is damaged."""
    texts = (written(*damages, format=format, seed=seed) for seed in range(300))
    out, events = next((out, events) for out in texts if names(events := read(out)) == ["mixed", "note"])
    assert faults(out, events) == []
    given = next(dict(e.call.arguments) for e in events if isinstance(e, CallEnd))
    passed = [name for name, wrong in ARGUMENTS.items() if not faults(out, changed(events, 0, arguments=wrong(given)))]
    assert passed == []


@pytest.mark.parametrize("format", FORMATS)
def test_wrong_calls_are_reported(format: str) -> None:
    out = written(tools=(CREATE_FILE, MIXED), format=format)
    events = read(out)
    a, b = (e.call for e in events if isinstance(e, CallEnd))
    lost = [Text(e.call.raw) if isinstance(e, CallEnd) and e.index == 1 else e for e in events]
    wrong: dict[str, Sequence[Event]] = {
        "another tool": changed(events, 0, name="find", arguments={"text": a.arguments["file_path"]}),
        "without arguments": changed(events, 1, arguments={}),
        "the neighbor's arguments": changed(events, 0, name=b.name, arguments=b.arguments),
        "lost": [e for e in lost if getattr(e, "index", 0) == 0],
        "not written": [*events, CallStart(2, "find"), CallEnd(2, ToolCall("", "find", {}, None, ""))],
        "twice": [*events, CallStart(2, a.name), CallEnd(2, replace(a, raw=""))],
        "begun under another name": [e._replace(name="x") if isinstance(e, CallStart) else e for e in events],
        "a fault of ours": [*events, CallError(2, "internal_error", "", ToolCall("", ""))],
        "not the text": [*events, Text("x")],
    }
    assert [name for name, reading in wrong.items() if not faults(out, reading)] == []


def test_what_is_refused_in_a_sound_text_is_a_fault_and_in_a_damaged_one_is_not() -> None:
    for out in (written(), written("dropped")):
        events = [
            CallError(e.index, "invalid_json", "", e.call) if isinstance(e, CallEnd) else e
            for e in read(out)
            if not isinstance(e, CallStart)
        ]
        assert bool(faults(out, events)) == (not out.done)


def test_a_damaged_call_whose_opening_and_name_are_there_is_no_text() -> None:
    texts = (written("token_limit", tools=(NOTE,), seed=seed) for seed in range(300))
    out = next(out for out in texts if out.text.startswith('I look.\n<tool_call>\n{"name": "note"'))
    assert faults(out, [Text(out.text)]) == ["lost"]


def test_nothing_runs_after_a_damaged_call_where_the_judge_is_strict() -> None:
    out = written(format="qwen3_coder")
    out.done, out.hurt = ["dropped"], {0}
    events = [
        CallError(0, "invalid_json", "", e.call) if isinstance(e, CallEnd) and e.index == 0 else e for e in read(out)
    ]
    assert (faults(out, events), faults(out, events, strict=True)) == ([], ["runs after damage"])


def test_no_raw_value_has_markup_where_the_judge_is_strict() -> None:
    texts = (written("mentioned_in_value", tools=(NOTE,), format="qwen3_coder", seed=seed) for seed in range(300))
    out = next(out for out in texts if any("</parameter>" in t.text for t in out.tokens if t.value >= 0))
    value = next(t.text for t in out.tokens if t.value >= 0)
    events = [CallStart(0, "note"), CallEnd(0, ToolCall("", "note", {"text": value}, None, out.text))]
    assert (faults(out, events), faults(out, events, strict=True)) == ([], ["markup in a value"])
