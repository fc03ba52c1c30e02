"""A call in formats of bare JSON is one that stands by itself: none runs inside of other JSON.

Other JSON is an object or an array that is not a call: a log, an example, what an API answered. All of it is text; if
it is damaged, a call in it is an error. What is before a call in prose, and what was other JSON before it, hides none.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from corpora import source
from format_tools import NOTE, PING, spec
from growth import assert_linear, cpu_seconds

from agentkit import formats
from agentkit.events import CallEnd, CallError, Event, Text, merge
from agentkit.formats import CATALOG, Format, Parser, auto

DELETE = spec("delete", None, ("path",), path="string")
TOOLS = (DELETE, NOTE, PING)
NAMED: dict[str, Any] = {"name": "delete", "arguments": {"path": "x"}}
CALL = json.dumps(NAMED)
API = {
    "choices": [
        {
            "message": {
                "role": "assistant",
                "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "delete", "arguments": '{"path": "x"}'}}
                ],
            }
        }
    ]
}


def read(text: str, given: str | tuple[Format, ...]) -> list[Event]:
    """The events of a text, which are the same by the character."""
    whole = merge(formats.parse(text, given, TOOLS))
    parser = Parser(given, TOOLS)
    assert merge([*(e for c in text for e in parser.feed(c)), *parser.close()]) == whole, text
    assert source(whole) == text
    return whole


def made(events: list[Event]) -> list[str]:
    return [e.call.name for e in events if isinstance(e, CallEnd)]


BARE: list[str | tuple[Format, ...]] = [
    *(f.name for f in CATALOG if made(formats.parse(CALL, f, TOOLS)) == ["delete"]),
    auto(),
]
ids = [given if isinstance(given, str) else "auto" for given in BARE]
every_bare_format = pytest.mark.parametrize("given", BARE, ids=ids)

OTHER_JSON = [
    {"log": [NAMED]}, {"log": [{**NAMED, "result": "ok"}]}, {"log": {"calls": [NAMED]}, "count": 1}, {"example": NAMED},
    {"a": 1, "b": {"c": NAMED}}, [1, NAMED], [None, [NAMED]], ["x", {"y": NAMED}], {"denied": [NAMED, NAMED]}, API,
    {"a": "{", "b": NAMED}, {"a": '"', "b": NAMED}, {"a": "\\", "b": [[], {}, -1.5e3, None, True, NAMED]},
    {"name": "submit", "arguments": {"call": NAMED}}, {"text": "`", "b": NAMED}, {"text": "a\n\nb", "b": NAMED},
    {"note": "<b>x</b> [1] {y}", "b": NAMED},
]  # fmt: skip


@every_bare_format
@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("around", ["{}", "The log:\n\n{}\n\nNothing else happened.", "It says {}, and ends."])
def test_no_call_runs_inside_of_other_json(given: str | tuple[Format, ...], indent: int | None, around: str) -> None:
    for value in OTHER_JSON:
        text = around.replace("{}", json.dumps(value, indent=indent))
        assert read(text, given) == [Text(text)]


@every_bare_format
@pytest.mark.parametrize("key", ["tool_calls", "function_calls", "calls"])
def test_a_list_of_calls_in_an_object_is_made(given: str | tuple[Format, ...], key: str) -> None:
    """As models write it that also write their thoughts, or a message of OpenAI's API."""
    single = json.dumps({"thought": "Now", "tool_call": NAMED})
    assert made(read(single, given)) == ["delete"]
    for before in ({"thought": "Now {"}, {"role": "assistant", "content": None}, {"plan": ["a", {"b": 1}]}):
        for indent in (None, 2):
            text = json.dumps({**before, key: [NAMED, NAMED], "z": 1}, indent=indent)
            assert made(read(text, given)) == ["delete"] * 2


@every_bare_format
def test_no_call_runs_at_any_place_of_any_json(given: str | tuple[Format, ...]) -> None:
    rng = random.Random(7)
    for _ in range(150):
        text = json.dumps(_around(rng, NAMED, 0), indent=rng.choice((None, 1, 4)))
        assert read(text, given) == [Text(text)]


def _around(rng: random.Random, inner: Any, depth: int) -> Any:
    """JSON that contains this at some depth, and is itself neither a call nor a list of calls."""
    others: list[Any] = [1, -0.5, "a b", 'q"q', "{[", "}]", "é\n", None, True, [], {}, [0], {"k": [""]}]
    before, after = rng.choices(others, k=rng.randrange(3)), rng.choices(others, k=rng.randrange(3))
    if depth and rng.random() < 0.4:
        return _around(rng, [*before, inner, *after], depth - 1) if depth > 1 else {"in": [*before, inner, *after]}
    value: dict[str, Any] = {f"k{n}": each for n, each in enumerate(before)}
    value["here"] = inner
    value.update({f"z{n}": each for n, each in enumerate(after)})
    return value if depth > 3 or rng.random() < 0.3 else _around(rng, value, depth + 1)


@every_bare_format
@pytest.mark.parametrize(
    "before",
    [
        "I'll call: ", "Let me look (again): ", "The file's gone. ", "It is {x}, then ", 'The "path" is: ',
        "a = b; so ",
        "See [1] and [2, 3]: ", '{"a": 1}\n', '{"a": [1, {"b": "x"}]} ', '["a", "b"]\n\n', '{"a", "b"} are keys. ',
        '["a" is the key, ', "https://x.org/a ", "## Call: ", "Use /* here: ", "It's ", "[1, see above]. ",
        'He said "yes". ', "It's 5' {", "- ", "> ",
        '"', "'", "(", "issue #5: ",
    ],
)  # fmt: skip
def test_a_call_after_prose_or_after_other_json_runs(given: str | tuple[Format, ...], before: str) -> None:
    assert made(read(before + CALL, given)) == ["delete"]
    assert made(read(f"{before}{CALL}\n", given)) == ["delete"]


@every_bare_format
@pytest.mark.parametrize(
    "damaged",
    ['{"count": 1 "denied": [%s]}', '{"a": x, "b": %s}', '{"a": 1,, "b": [\n  %s]}', '{"a": 1} {"b": 1; %s',
     '{"a": 1,\n%s', '{"a": "b\n%s', '{"a": [1,\n\nNo. %s', '{"a": 1\n\n%s'],
)  # fmt: skip
def test_a_call_in_damaged_json_is_an_error(given: str | tuple[Format, ...], damaged: str) -> None:
    events = read(damaged % CALL, given)
    assert not made(events)
    assert any(isinstance(e, CallError) for e in events)


@every_bare_format
def test_other_json_continues_over_what_is_shown_in_it(given: str | tuple[Format, ...]) -> None:
    for shown in ("<![CDATA[{:}]]>", "<!-- {:} -->", "<pre>{:}</pre>"):
        read(f'{{"a"{shown}{CALL}', given)


@every_bare_format
def test_other_json_is_shown_as_it_comes(given: str | tuple[Format, ...]) -> None:
    parser = Parser(given, TOOLS)
    text = json.dumps({"log": ["word " * 9, NAMED] * 50})
    shown = 0
    for n, c in enumerate(text, 1):
        shown += len(source(parser.feed(c)))
        assert n - shown < 400  # in which an object may name a tool
    assert not made(parser.close())


@pytest.mark.share(24)
@every_bare_format
@pytest.mark.parametrize(
    "each", ['{"a": ', "[1, ", '{"a": [', '"', '"{', "{", '{"a": 1 ', "= {", "// ", f"{CALL}, ", '"[{']
)
@pytest.mark.parametrize("piece", [3, 1 << 20])
def test_other_json_is_read_in_linear_time(given: str | tuple[Format, ...], each: str, piece: int) -> None:
    def seconds(size: int) -> float:
        text = f'{{"log": [{each * size}'
        pieces = [text[i : i + piece] for i in range(0, len(text), piece)]
        parser = Parser(given, TOOLS)
        return cpu_seconds(lambda: [*map(parser.feed, pieces), parser.close()])

    assert_linear(seconds, 500)


@every_bare_format
@pytest.mark.parametrize("key", ["tool_calls_log", "no_tool_calls", "old_function_calls", "made_calls"])
def test_a_key_that_contains_the_name_of_a_list_of_calls_is_another_one(
    given: str | tuple[Format, ...], key: str
) -> None:
    for value in ({key: [NAMED]}, {"a": 1, key: [NAMED]}):
        text = json.dumps(value)
        assert read(text, given) == [Text(text)]


@every_bare_format
def test_numbers_and_names_in_other_json_are_read_in_linear_time(given: str | tuple[Format, ...]) -> None:
    def seconds(size: int) -> float:
        parser = Parser(given, TOOLS)
        return cpu_seconds(lambda: [parser.feed("x [1, "), *(parser.feed("1111") for _ in range(size)), parser.close()])

    assert_linear(seconds, 20_000)
