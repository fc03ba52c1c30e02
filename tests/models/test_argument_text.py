"""A call's arguments as JSON text: of every format, in any pieces, complete only at the call's end."""

from __future__ import annotations

import json
from collections.abc import Iterable
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit.errors import FormatError
from agentkit.events import ArgumentDelta, CallEnd, SourceEvent
from agentkit.formats import CATALOG, Format, Parser, render_calls
from agentkit.messages import ToolCall
from agentkit.models.argument_text import ArgumentText, ContradictedArguments
from agentkit.toolspec import Element, Node, ToolSpec

WRITE: Final = ToolSpec(
    "write_file",
    "Write a file.",
    {
        "type": "object",
        "properties": {
            "path": {"type": "string"},
            "content": {"type": "string"},
            "mode": {"type": ["string", "null"]},
            "kind": {"enum": ["text", "1"]},
            "lines": {"type": "array", "items": {"type": "integer"}},
            "size": {"type": "number"},
            "force": {"type": "boolean"},
            "options": {"type": "object"},
            "anything": {},
        },
        "required": ["path"],
    },
)

NOTE: Final = ToolSpec(
    "note",
    "Write a note.",
    {
        "type": "object",
        "properties": {"title": {"type": "string"}, "text": {"type": "string"}, "tags": {"type": "array"}},
    },
    Element(
        "note",
        (
            Node("title", "attribute", ("title",)),
            Node("text", "element", ("body", "text")),
            Node("tags", "element", ("tags",), required=False),
        ),
        strip=True,
    ),
)

ARGUMENTS: Final[list[dict[str, Any]]] = [
    {},
    {"path": ""},
    {"path": "a.txt"},
    {"path": "a.txt", "size": 7, "content": "x"},
    {"path": "007", "content": "true"},
    {"path": '{"a": 1}', "content": "  spaced \n\n"},
    {"path": "\t x \x01", "content": 'line 1\n"q" \\ é 😀 & <b>\n\n  x'},
    {"path": "a", "mode": "null", "kind": "1", "lines": [1, 2], "size": -1.5e-7, "force": True},
    {"path": "a", "mode": None, "options": {"k": [1, {"z": None, "w": []}, "}]"]}, "anything": "1.10"},
    {"anything": {"x": [[], {}, {"y": '\\"'}]}, "path": "b"},
]

NOTES: Final[list[dict[str, Any]]] = [
    {"title": 'a "b" & <c>', "text": "one\ntwo"},
    {"title": "", "text": "x < y && z"},
    {"title": "é", "text": "t", "tags": ["a", "b"]},
]


def pieces(text: str, random: Random, size: int) -> Iterable[str]:
    """The text in pieces of at most `size` characters."""
    at = 0
    while at < len(text):
        end = at + random.randint(1, size)
        yield text[at:end]
        at = end


def parse(format: Format, tool: ToolSpec, cut: Iterable[str]) -> list[SourceEvent]:
    parser = Parser(format, [tool])
    events = [event for piece in cut for event in parser.feed(piece)]
    return events + parser.close()


def sent(tool: ToolSpec | None, events: Iterable[SourceEvent]) -> tuple[str, ToolCall]:
    """All text of the one call's arguments; before its end it is not complete."""
    text, said = ArgumentText(tool), ""
    for event in events:
        if isinstance(event, ArgumentDelta):
            said += text.feed(event)
            with pytest.raises(ValueError, match=r"."):
                json.loads(said)
        elif isinstance(event, CallEnd):
            return said + text.end(event.call), event.call
    raise AssertionError("no call ended")


@pytest.mark.share(1)
@pytest.mark.parametrize("format", CATALOG, ids=lambda format: format.name)
def test_the_text_parses_to_the_arguments(format: Format) -> None:
    random = Random(7)
    for tool, arguments in [*((WRITE, one) for one in ARGUMENTS), *((NOTE, one) for one in NOTES)]:
        try:
            text = render_calls(format, [ToolCall("c", tool.name, arguments)], [tool])
        except FormatError:  # the format cannot represent these arguments
            continue
        for size in (1, 3, 12, len(text)):
            said, call = sent(tool, parse(format, tool, pieces(text, random, size)))
            assert json.loads(said) == call.arguments == arguments


def deltas(*texts: str, key: str | None = None) -> list[ArgumentDelta]:
    return [ArgumentDelta(0, text, key) for text in texts]


def fed(events: Iterable[ArgumentDelta], tool: ToolSpec | None = WRITE) -> list[str]:
    text = ArgumentText(tool)
    return [text.feed(event) for event in events]


def test_a_string_parameter_is_passed_on_as_it_arrives() -> None:
    assert fed([*deltas('a"', "b\n", key="path"), *deltas("x", key="content")]) == [
        r'{"path": "a\"',
        r"b\n",
        '", "content": "x',
    ]


def test_other_values_wait_for_the_end() -> None:
    text = ArgumentText(WRITE)
    events = [*deltas("a", key="path"), *deltas("1", "2", key="size")]
    assert [text.feed(event) for event in events] == ['{"path": "a', '"', ""]
    assert text.end(ToolCall("c", "write_file", {"path": "a", "size": 12})) == ', "size": 12}'


def test_json_is_passed_on_but_for_keys_and_numbers_that_are_not_complete() -> None:
    cut = ['{"pa', 'th": "a', 'b", "si', 'ze": 1', '2, "lines": [', "1", ", 2]", "}"]
    assert fed(deltas(*cut)) == ["{", '"path": "a', 'b"', "", ', "size": 12, "lines": [', "", "1, 2]", ""]


@pytest.mark.parametrize(
    ("text", "accepted"),
    [
        ("{'a': 1}", "{"),  # quotes of another kind
        ('{"path": "a\nb"}', '{"path": "a'),  # a raw line end
        ('{"path": "a\\x"}', '{"path": "a'),  # no escape of JSON
        ('{"path": "\\ud83d"}', '{"path": "'),  # half a character
        ('{"lines": [1,]}', '{"lines": [1'),
        ('{"lines": [01]}', '{"lines": ['),
        ('{"size": 12345678901234567890.5, "path": "a"}', "{"),  # digits that no float has
        ('{"path": "a", "path": "a"}', '{"path": "a"'),
        ('{"size": "7", "path": "a"}', "{"),  # may become a number
        ('{"arguments": {"path": "a"}}', "{"),  # may only wrap the arguments
        ('{"path": "a"}}', '{"path": "a"'),
        ('{"options": {"a": 1]}', '{"options": {"a": 1'),
        ('"{}"', ""),
        ("write_file(path='a')", ""),
        ('{"path": "a"} {"path": "a"}', '{"path": "a"'),
    ],
)
def test_nothing_is_passed_on_from_where_the_text_may_be_wrong(text: str, accepted: str) -> None:
    assert "".join(fed(deltas(text))) == "".join(fed(deltas(*text))) == accepted


def test_what_was_held_is_completed_from_the_arguments() -> None:
    text = ArgumentText(WRITE)
    said = text.feed(ArgumentDelta(0, '{"options": {"a": [1, "x\ny'))
    said += text.end(ToolCall("c", "write_file", {"options": {"a": [1, "x\ny", None], "b": {}}, "path": "p"}))
    assert said == '{"options": {"a": [1, "x\\ny", null], "b": {}}, "path": "p"}'


@pytest.mark.parametrize(
    ("events", "arguments"),
    [
        (deltas("abc", key="path"), {"path": "abd"}),
        (deltas("abc", key="path"), {}),
        (deltas("abc", key="path"), {"path": 7}),
        (deltas('{"path": "abc"'), {"path": "abd"}),
        (deltas('{"options": {"a": [1, 2'), {"options": {"a": []}}),
        (deltas('{"options": {"a": ['), {"options": 7}),
        (deltas("a", key="path") + deltas("b", key="path"), {"path": "a"}),
    ],
)
def test_arguments_that_contradict_the_text(events: list[ArgumentDelta], arguments: dict[str, Any]) -> None:
    text = ArgumentText(WRITE)
    assert "".join(map(text.feed, events))
    with pytest.raises(ContradictedArguments, match="the arguments of 'write_file' contradict"):
        text.end(ToolCall("c", "write_file", arguments))


def test_a_call_without_deltas() -> None:
    assert ArgumentText(WRITE).end(ToolCall("c", "write_file", {})) == "{}"
    assert ArgumentText().end(ToolCall("c", "unknown", {"a": 1})) == '{"a": 1}'


def test_deltas_of_both_kinds_in_one_call() -> None:
    text = ArgumentText(WRITE)
    said = [text.feed(event) for event in (*deltas("a", key="path"), *deltas('{"size": 1'), *deltas("b", key="mode"))]
    assert said == ['{"path": "a', "", ""]
    assert text.end(ToolCall("c", "write_file", {"path": "a", "size": 1})) == '", "size": 1}'


JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(
    st.dictionaries(st.text(max_size=4), JSON, max_size=4), st.booleans(), st.none() | st.integers(0, 2), st.randoms()
)
def test_any_object_in_any_pieces(value: dict[str, Any], ascii_only: bool, indent: int | None, random: Random) -> None:
    value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    events = [ArgumentDelta(0, piece) for piece in pieces(text, random, 5)]
    said, _ = sent(None, [*events, CallEnd(0, ToolCall("c", "any", value))])
    assert json.loads(said) == value


@given(st.text(alphabet='{}[]",:\\u0d8 1e-.tnb\n', max_size=30), st.randoms())
def test_text_that_is_anything_is_passed_on_alike_in_any_pieces(text: str, random: Random) -> None:
    whole = "".join(fed(deltas("{" + text), None))
    cut = "".join(fed(deltas(*pieces("{" + text, random, 4)), None))
    assert cut == whole
    assert ("{" + text).startswith(whole)
