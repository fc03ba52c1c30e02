"""A call in formats of bare JSON is one that stands by itself: none runs inside of other JSON, or shown in code.

Other JSON is an object or an array that is no call: a log, an example, what an API answered. All of it is text; if it
is damaged, a call in it is an error. What is before a call in prose, and what was other JSON before it, hides none.
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
    {"log": [NAMED]}, {"log": [{**NAMED, "result": "ok"}]}, {"calls": [NAMED], "count": 1}, {"example": NAMED},
    {"a": 1, "b": {"c": NAMED}}, [1, NAMED], [None, [NAMED]], ["x", {"y": NAMED}], {"denied": [NAMED, NAMED]}, API,
    {"a": "{", "b": NAMED}, {"a": '"', "b": NAMED}, {"a": "\\", "b": [[], {}, -1.5e3, None, True, NAMED]},
    {"name": "submit", "arguments": {"call": NAMED}}, {"text": "`", "b": NAMED}, {"text": "a\n\nb", "b": NAMED},
    {"note": "<b>x</b> [1] {y}", "b": NAMED}, {"role": "assistant", "tool_calls": [NAMED]},
]  # fmt: skip


@every_bare_format
@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("around", ["{}", "The log:\n\n{}\n\nNothing else happened.", "It says {}, and ends."])
def test_no_call_runs_inside_of_other_json(given: str | tuple[Format, ...], indent: int | None, around: str) -> None:
    for value in OTHER_JSON:
        text = around.replace("{}", json.dumps(value, indent=indent))
        assert read(text, given) == [Text(text)]


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
        '["a" is the key, ', "https://x.org/a ", "## Call: ", "Use /* here: ", '{"a": 1,\n', '{"a": "b\n',
        '{"a": [1,\n\nNo. ', "It's ", "[1, see above]. ", '{"a": 1\n\n', 'He said "yes". ', "It's 5' {", "- ", "> ",
        '"', "'", "(", "issue #5: ",
    ],
)  # fmt: skip
def test_a_call_after_prose_or_after_other_json_runs(given: str | tuple[Format, ...], before: str) -> None:
    assert made(read(before + CALL, given)) == ["delete"]
    assert made(read(f"{before}{CALL}\n", given)) == ["delete"]


@every_bare_format
@pytest.mark.parametrize(
    "text",
    [
        f"// {CALL}", f"/* {CALL} */", f"# {CALL}", f"const call = {CALL};", f"assert call == {CALL}", f'"{CALL}"',
        f"'{CALL}'", f'He wrote "{CALL}" there.', f"curl -d '{CALL}' x.org", f"// such as {CALL}, or\n", f"“{CALL}”",
        f"/*\n * such as\n * {CALL}\n */", f"x = {CALL}\n\nThat is all.", f"  // {CALL}\n  // {CALL}\n",
    ],
)  # fmt: skip
def test_no_call_runs_that_is_shown_in_a_comment_in_code_or_in_quotation_marks(
    given: str | tuple[Format, ...], text: str
) -> None:
    assert read(text, given) == [Text(text)]
    assert made(read(f'{text}\n{{"name": "ping", "arguments": {{}}}}', given)) == ["ping"]
    assert made(formats.parse(text, given, TOOLS, in_code="execute")) == ["delete"] * text.count(CALL)


@every_bare_format
@pytest.mark.parametrize(
    "damaged", ['{"count": 1 "denied": [%s]}', '{"a": x, "b": %s}', '{"a": 1,, "b": [\n  %s]}', '{"a": 1} {"b": 1; %s']
)
def test_a_call_in_damaged_json_is_an_error(given: str | tuple[Format, ...], damaged: str) -> None:
    events = read(damaged % CALL, given)
    assert not made(events)
    assert any(isinstance(e, CallError) for e in events)


@every_bare_format
def test_other_json_is_shown_as_it_comes(given: str | tuple[Format, ...]) -> None:
    parser = Parser(given, TOOLS)
    text = json.dumps({"log": ["word " * 9, NAMED] * 50})
    shown = 0
    for n, c in enumerate(text, 1):
        shown += len(source(parser.feed(c)))
        assert n - shown < 400  # in which an object may name a tool
    assert not made(parser.close())


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


PYTHON = [f.name for f in CATALOG if made(formats.parse('delete(path="x")', f, TOOLS)) == ["delete"]]
LISTS = [f.name for f in CATALOG if made(formats.parse('[delete(path="x")]', f, TOOLS)) == ["delete"]]


@pytest.mark.parametrize("given", PYTHON)
@pytest.mark.parametrize("quotes", ['"""', "'''"])
def test_no_python_call_runs_in_a_string_over_lines(given: str, quotes: str) -> None:
    for before in ("", "x = ", "Such as:\n"):
        text = f'{before}{quotes}\ndelete(path="x")\n\n[delete(path="x")]\n{quotes}\nThat is all.\n'
        assert read(text, given) == [Text(text)]
        assert made(read(f"{text}ping()", given)) == ["ping"]
    assert made(read(f'In {quotes} a call is text.\ndelete(path="x")', given)) == ["delete"]


@pytest.mark.parametrize("given", LISTS)
def test_no_call_runs_in_a_comment_after_another_one(given: str) -> None:
    call = '[delete(path="x")]'
    assert made(read(f"[ping()]  # not {call}", given)) == ["ping"]
    assert made(read(f"[ping()]  # not {call}\n{call}", given)) == ["ping", "delete"]
    assert made(read(f"# Now\n\n{call}", given)) == made(read(f"It is #1: {call}", given)) == ["delete"]


@every_bare_format
def test_no_json_call_runs_in_a_comment_after_another_one(given: str | tuple[Format, ...]) -> None:
    ping = json.dumps({"name": "ping", "arguments": {}})
    for comment in ("//", "#"):
        assert made(read(f"{ping}  {comment} not {CALL}", given)) == ["ping"]
        assert made(read(f"{ping}  {comment} not {CALL}\n{CALL}", given)) == ["ping", "delete"]
