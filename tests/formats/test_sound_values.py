"""What the fuzz's judge excuses: texts that soundly say something other than was meant; and what nearly does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import fuzz
import pytest
from damaged_texts import FIND, MIXED, Plan, Planned, Written, write
from format_tools import ASK, CREATE_FILE, NOTE
from judging import Judge

from agentkit.events import CallEnd, CallError, CallStart, Event, Markup, Text
from agentkit.formats import CATALOG
from agentkit.messages import ToolCall

FINDS = (FIND,)
ASKS = (ASK, ASK)


def written(format: str, tools: Sequence[Any], quoting: str = "") -> Written:
    """A sound text of a call of each tool."""
    declared = next(f for f in CATALOG if f.name == format)
    calls = (Planned(tools[0], ("a b",) * 4, quoting), *(Planned(tool, ("a b",) * 4) for tool in tools[1:]))
    out = write(Plan(declared, declared.shapes[0], calls, ("",) * (len(calls) + 1), "", False, (), 1))
    assert out is not None
    return out


def edited(out: Written, old: str, new: str) -> None:
    """Write `new` for the first markup that is `old`; what is put in counts as damage."""
    for start, first in enumerate(out.tokens):
        for end in range(start + 1, len(out.tokens) + 1):
            run = out.tokens[start:end]
            if any(t.value >= 0 for t in run):
                break
            if "".join(t.text for t in run) == old:
                for t in run:
                    out.hurts(t)
                    t.text = ""
                first.text = new
                out.inserted += [new] if new else []
                return
    raise AssertionError(old)


def faults(out: Written, events: Sequence[Event]) -> list[str]:
    """The kinds of what the judge finds, of wrong calls and lost ones."""
    return [kind for kind, _ in Judge(out, events).faults() if fuzz.grade(kind) in ("wrong call", "lost")]


def misread(out: Written, key: str, closing: str) -> list[Event]:
    """A reading in which the first call ends with the text, and its argument `key` with the last of such closings."""
    section, call, raw = out.plan.shape.section, out.calls[0], out.text
    end = Markup(section.end) if section is not None else None
    start = Markup(section.start) if section is not None else None
    raw = raw.removeprefix(section.start).removesuffix(section.end) if section is not None else raw
    value = str(call.arguments[key])
    value = raw[raw.index(value) : raw.rindex(closing)]
    arguments = {**{k: v for k, v in call.arguments.items() if str(v) in raw and str(v) not in value}, key: value}
    made = ToolCall("", call.name, arguments, out.plan.format.name, raw)
    events = [start, CallStart(0, call.name), CallEnd(0, made), end]
    return [e for e in events if e is not None]


PAIR = "\n</parameter>\n<parameter=number>\n"
NEXT = "\n</parameter>\n</function>\n</tool_call><tool_call>\n<function=ask>\n<parameter=text>\n"
WORDS = {
    "the opening is a word": ("qwen3_coder", FINDS, PAIR, "\n\ntool_name\n", "\n</parameter>"),
    "the next call's opening is words": ("qwen3_coder", ASKS, NEXT, "\nfunction ask\n", "\n</parameter>"),
    "the next tag is no tool's": ("xml", ASKS, "</ask>\n<ask>", "\n<a>", "</ask>"),
}


@pytest.mark.parametrize("case", WORDS)
def test_a_text_that_soundly_says_what_was_read_is_no_fault(case: str) -> None:
    format, tools, old, new, closing = WORDS[case]
    out = written(format, tools)
    edited(out, old, new)
    assert faults(out, misread(out, "text", closing)) == []
    assert faults(out, fuzz.read(out.text, (out.plan.format,), [out.text])) == []


@pytest.mark.parametrize(
    ("format", "tools", "old", "new", "closing"),
    [
        ("qwen3_coder", FINDS, PAIR, "\n<parameter=number>\n", "\n</parameter>"),  # only the closing is missing
        ("qwen3_coder", FINDS, PAIR, "\n</parameter>\ntool_name\n", "\n</parameter>"),
        ("qwen3_coder", FINDS, PAIR, "\n</param\ntool_name\n", "\n</parameter>"),
        ("qwen3_coder", FINDS, PAIR, "\nameter>\ntool_name\n", "\n</parameter>"),
        ("qwen3_coder", FINDS, PAIR, "\n<number>\n", "\n</parameter>"),  # the tag of a parameter
        ("qwen3_coder", ASKS, NEXT, "\n<function=ask>\n", "\n</parameter>"),
        ("xml", ASKS, "</ask>\n<ask>", "\n<ask>", "</ask>"),
        ("xml", ASKS, "</ask>\n<ask>", "</ask>\n<a>", "</ask>"),
        ("invoke", FINDS, '</parameter>\n<parameter name="number">', '\n<parameter nme="number">', "</parameter>"),
        ("kimi_k3", FINDS, '<|close|>argument<|sep|>\n<|open|>argument key="number" type="integer"<|sep|>',
         "<|close|>argument<|se>\n", "<|close|>argument<|sep|>"),
    ],
)  # fmt: skip
def test_a_value_that_takes_in_what_is_left_of_markup_is_a_fault(
    format: str, tools: Sequence[Any], old: str, new: str, closing: str
) -> None:
    out = written(format, tools)
    edited(out, old, new)
    assert faults(out, misread(out, "text", closing))


def test_a_list_in_a_list_is_no_fault_where_the_text_has_both_brackets_twice() -> None:
    out = written("glm45", (MIXED,))
    edited(out, "[", "[[")
    edited(out, "]", "]]")
    events = fuzz.read(out.text, (out.plan.format,), [out.text])
    assert faults(out, events) == []
    (end,) = (e for e in events if isinstance(e, CallEnd))
    other = replace(end.call, arguments={**end.call.arguments, "items": [end.call.arguments["items"]]})
    assert faults(out, [CallEnd(0, other) if e is end else e for e in events]) != []


def test_a_value_of_which_damage_left_only_the_end_is_written_once() -> None:
    out = written("kimi_k3", (ASK,))
    (token,) = (t for t in out.tokens if t.value >= 0)
    token.text = f'"{token.text[:3]}" "{token.text[3:]}"'
    out.hurts(token)
    assert faults(out, fuzz.read(out.text, (out.plan.format,), [out.text])) == []


def test_a_value_that_takes_in_whole_calls_is_no_fault_only_where_they_balance() -> None:
    """A call that half another one is quoted in: what closes twice makes the half, and the next call, whole."""
    closers = "</arg_value>\n</tool_call>\n</tool_calls>"
    out = written("hy_v3", (NOTE, ASK), "half")
    end = max(i for i, t in enumerate(out.tokens) if t.text == "</tool_calls>")
    for closing in (closers, closers.replace("</arg_value>", ""), closers.replace("</tool_call>\n", "")):
        twice = written("hy_v3", (NOTE, ASK), "half")
        twice.tokens[end].text += closing
        twice.hurts(twice.tokens[end])
        twice.inserted.append(closing)
        found = faults(twice, misread(twice, "text", "</arg_value>"))
        assert bool(found) == (closing != closers), closing


def test_nothing_is_excused_beside_an_error_or_other_markup_or_if_the_text_says_something_else() -> None:
    sound = written("qwen3_coder", FINDS)
    edited(sound, PAIR, "\n\ntool_name\n")
    events = misread(sound, "text", "\n</parameter>")
    at = next(i for i, e in enumerate(events) if isinstance(e, CallEnd))
    made = events[at]
    assert isinstance(made, CallEnd)
    assert faults(sound, events) == []
    cut = {**made.call.arguments, "text": made.call.arguments["text"][:-1]}
    error = CallError(1, "invalid_arguments", "", ToolCall("", "", raw=""))
    others: dict[str, list[Event]] = {
        "cut": [
            *events[:at],
            made._replace(call=ToolCall("", "find", cut, "qwen3_coder", made.call.raw)),
            *events[at + 1 :],
        ],
        "repaired": [*events[:at], made._replace(repairs=("missing_close",)), *events[at + 1 :]],
        "an error": [*events, error],
        "markup as text": [Text(e.text) if isinstance(e, Markup) else e for e in events],
    }
    assert [name for name, reading in others.items() if not faults(sound, reading)] == []


def test_an_attribute_in_which_a_call_opens_is_a_fault() -> None:
    """The opening around it lost its space and is text; the call that stands in it would be written so."""
    out = written("dr_tulu", (MIXED,))
    edited(out, '<call_tool name="mixed" number="', '<call_toolname="mixed" number="<call_tool name="note">')
    start = out.text.index("<call_tool ")
    raw = out.text[start:]
    value = raw[raw.index(">") + 1 : raw.index("</")]
    made = ToolCall("", "note", {"text": value}, "dr_tulu", raw)
    assert faults(out, [Text(out.text[:start]), CallStart(0, "note"), CallEnd(0, made)])


def exchanged(format: str, opening: str, first: str, second: str, closing: str) -> Written:
    """A call of two parameters that have each other's name, of which the first is not closed."""
    out = written(format, (CREATE_FILE,))
    between_them = f"{closing}\n{opening.format(second)}"
    edited(out, opening.format(first), opening.format(second))
    edited(out, between_them, f"\n{opening.format(first)}")
    return out


@pytest.mark.parametrize(
    ("format", "opening", "closing"),
    [
        ("mimo", "<parameter={}>", "</parameter>"),
        ("invoke", '<parameter name="{}">', "</parameter>"),
        ("glm45", "<arg_key>{}</arg_key>\n<arg_value>", "</arg_value>"),
    ],
)
def test_parameters_that_have_exchanged_names_are_no_fault_where_the_text_has_them_and_only_lacks_a_closing(
    format: str, opening: str, closing: str
) -> None:
    out = exchanged(format, opening, "file_path", "file_contents", closing)
    events = fuzz.read(out.text, (out.plan.format,), [out.text])
    at = next(i for i, e in enumerate(events) if isinstance(e, CallEnd))
    made = events[at]
    assert isinstance(made, CallEnd)
    assert made.repairs == ("missing_close",)
    assert faults(out, events) == []
    path, contents = made.call.arguments["file_path"], made.call.arguments["file_contents"]
    wrong = {
        "no repair is named": made._replace(repairs=()),
        "another one is": made._replace(repairs=("surplus_brace",)),
        "a value is cut": made._replace(
            call=replace(made.call, arguments={**made.call.arguments, "file_path": path[:-1]})
        ),
        "one value twice": made._replace(
            call=replace(made.call, arguments={"file_contents": contents, "file_path": contents})
        ),
    }
    kept = [name for name, event in wrong.items() if not faults(out, [*events[:at], event, *events[at + 1 :]])]
    assert kept == []
    sound = written(format, (CREATE_FILE,))
    events = fuzz.read(sound.text, (sound.plan.format,), [sound.text])
    at = next(i for i, e in enumerate(events) if isinstance(e, CallEnd))
    turned = made._replace(call=replace(events[at].call, arguments=made.call.arguments))  # type: ignore[union-attr]
    assert faults(sound, [*events[:at], turned, *events[at + 1 :]])
