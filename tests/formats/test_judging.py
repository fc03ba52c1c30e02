"""The fuzz's judge, held itself: readings that are wrong in a known way, of which it must report every one."""

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
from meanings import balanced, readings

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
    "markup stands behind a value": lambda a: {**a, "text": a["text"] + "</parameter>"},
    "JSON stands behind a value": lambda a: {**a, "text": a["text"] + '", "number": 910002'},
    "a number is another one": lambda a: {**a, "number": 7},
    "a number has lost its last digit": lambda a: {**a, "number": a["number"] // 10},
    "a word is another one": lambda a: {**a, "flag": False},
    "what may be left out is lost": lambda a: {k: v for k, v in a.items() if k != "flag"},
    "an item is lost": lambda a: {**a, "items": a["items"][:1]},
    "items have changed places": lambda a: {**a, "items": a["items"][::-1]},
    "null is a word": lambda a: {**a, "object": {**a["object"], "n": "None"}},
    "two values have changed places": lambda a: {**a, "text": a["items"][0], "items": [a["text"], a["items"][1]]},
}


def written(*damages: str, tools: Sequence[Any] = (MIXED, NOTE), format: str = "hermes") -> tuple[Written, list[Event]]:
    """A text of a call of each tool, and what is read of it: without fault."""
    declared = next(f for f in CATALOG if f.name == format)
    calls = tuple(Planned(tool, ("a b",) * 4) for tool in tools)
    prose = ("I look.\n", *("" for _ in tools[1:]), "Done.\n")
    for seed in range(2000):
        out = damaged(Plan(declared, declared.shapes[0], calls, prose, "", False, tuple(damages), seed))
        assert out is not None
        events = fuzz.read(out.text, (declared,), [out.text])
        made = [e.call for e in events if isinstance(e, CallEnd)]
        blank = all(piece.isspace() for piece in out.inserted)  # a damage that may not be taken for what is wrong
        if (
            [c.arguments for c in made] == [c.arguments for c in out.calls]
            and blank
            and (0 in out.hurt) == bool(damages)
        ):
            assert not list(Judge(out, events).faults())
            return out, events
    raise AssertionError("no such text")


def calls(events: Sequence[Event]) -> list[int]:
    """Where the finished calls are."""
    return [i for i, event in enumerate(events) if isinstance(event, CallEnd)]


def changed(events: Sequence[Event], at: int, **how: Any) -> list[Event]:
    """The events, with another call in one of them."""
    event = events[at]
    assert isinstance(event, CallEnd)
    return [*events[:at], event._replace(call=replace(event.call, **how)), *events[at + 1 :]]


FORMATS = ("hermes", "qwen3_coder", "pythonic", "gemma4", "cline", "glm45")


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("damages", [(), ("stray",), ("no_space",)], ids=["sound", "stray", "no space"])
def test_wrong_arguments_are_reported(format: str, damages: tuple[str, ...]) -> None:
    """Of a sound call, and of one that damage touched elsewhere."""
    try:
        out, events = written(*damages, format=format)
    except AssertionError:
        pytest.skip(f"{format} has nothing of the kind")
    at = calls(events)[0]
    given = dict(events[at].call.arguments)  # type: ignore[union-attr]
    passed = [
        name
        for name, wrong in ARGUMENTS.items()
        if not list(Judge(out, changed(events, at, arguments=wrong(given))).faults())
    ]
    assert passed == []


@pytest.mark.parametrize("format", FORMATS)
def test_wrong_calls_are_reported(format: str) -> None:
    out, events = written(tools=(CREATE_FILE, MIXED), format=format)
    first, second = calls(events)
    a, b = events[first].call, events[second].call  # type: ignore[union-attr]
    alone = [e for e in events if getattr(e, "index", 0) == 0 or not isinstance(e, CallStart | CallEnd)]
    invented = [
        *alone[: first + 1],
        CallStart(1, "find"),
        CallEnd(1, ToolCall("", "find", {}, None, "")),
        *alone[first + 1 :],
    ]
    lost = [Text(e.call.raw) if isinstance(e, CallEnd) and e.index == 1 else e for e in events]
    wrong: dict[str, Sequence[Event]] = {
        "another tool": changed(events, first, name="find", arguments={"text": a.arguments["file_path"]}),
        "a name that is not written": changed(events, first, name="delete_all"),
        "without arguments": changed(events, second, arguments={}),
        "the neighbour's arguments": changed(events, first, name=b.name, arguments=b.arguments),
        "lost": [e for e in lost if getattr(e, "index", 0) == 0],
        "not written": invented,
        "begun under another name": [e._replace(name="x") if isinstance(e, CallStart) else e for e in events],
        "a fault of ours": [*events, CallError(2, "internal_error", "", ToolCall("", ""))],
    }
    assert [name for name, reading in wrong.items() if not list(Judge(out, reading).faults())] == []


@pytest.mark.parametrize(
    ("written", "meaning"),
    [
        (r'a" + "C:\\\\new', r"aC:\new"),  # two strings, joined, in JSON that is itself a string
        (r'a" + "C:\\new', r"aC:\new"),
        (f"&#10;&#1{'9' * 20};", f"\n&#1{'9' * 20};"),  # no character has such a number
        ("&#10;&#x1f642;", "\n🙂"),
    ],
)
def test_what_a_damaged_value_may_mean_has_no_other_way_of_writing_it(written: str, meaning: str) -> None:
    assert meaning in readings(written)
    assert meaning[1:] not in readings(written)


def test_a_list_may_hold_a_line_end_in_a_string() -> None:
    assert "a\n  b" in readings('["a\n  b",]')
    assert "a\r\nb" in readings("['a\r\nb']")


def test_a_tag_that_closes_itself_is_balanced() -> None:
    assert balanced('<ask>a</ask> <ping/> <note text="b"/> <ask>c</ask>')
    assert not balanced("<ask>a <ping/>")
    assert not balanced("<ping/></ask>")
