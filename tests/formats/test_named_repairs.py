"""Damaged arguments without a named repair are read as their language says; nothing is lost with them."""

from __future__ import annotations

import json
import random

import pytest
from fuzz import read

from agentkit import formats
from agentkit.events import CallEnd, CallError, Event
from agentkit.schemas.typed.values import same

BODY = (
    '{"text": "b \\"q\\" \\u00e9\\n", "number": 91, "items": ["i", 4], "object": {"k": "o", "n": null}, "flag": true}'
)
MARKS = "{}[]():,;\"'`\\/ \n\t\r\u2028\u00a0\x0b+-*_.019eEnulT#"
AROUND = {
    "function_json": "<function=mixed>{}</function>",
    "hermes": '<tool_call>{{"name": "mixed", "arguments": {}}}</tool_call>',
    "glm4": "\nmixed\n{}",
    "mistral_compact": "[TOOL_CALLS]mixed[ARGS]{}",
    "llama3_json": '{{"name": "mixed", "parameters": {}}}',
}


def events(format: str, text: str) -> list[Event]:
    whole = read(text, (formats.get(format),), [text])
    assert read(text, (formats.get(format),), list(text)) == whole
    return whole


@pytest.mark.parametrize("format", AROUND)
def test_arguments_that_are_no_json_are_read_by_a_named_repair_or_not_at_all(format: str) -> None:
    rng = random.Random(7)
    for _ in range(250):
        at = rng.randrange(len(BODY))
        body = BODY[:at] + rng.choice(("", *MARKS)) + BODY[at + rng.randrange(2) :]
        for event in events(format, AROUND[format].format(body)):
            assert not isinstance(event, CallEnd) or formats.REPAIRS.keys() >= {*event.repairs}
            if isinstance(event, CallEnd) and not event.repairs:
                assert same(json.loads(body), dict(event.call.arguments)), body


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("mistral_compact", '[TOOL_CALLS]find[ARGS]#{"text": "a"}'),
        ("mistral_compact", '[TOOL_CALLS]find[ARGS]{"text": "a"}, "number": 1}'),
        ("glm4", '\nfind\n{"text": "a"}, "number": 1}'),
        ("python", "\nfind(text='a') number=1)"),
        ("pythonic", "[find(text='a'), number=1)]"),
        ("function_json", '<function=mixed>{"text": "a", "object": {"n": null, "flag": true}</function>'),
        ("gemma4", '<|tool_call>call:find{text:"a } b"}<tool_call|>'),
        ("gemma4", '<|tool_call>call:mixed{text:<|"|>a<|"|>,number:1,items:[1,,2],object:{}}<tool_call|>'),
        ("mimo", "<tool_call><function=find><parameter=text>a</parameter>\n1</parameter>\n</function></tool_call>"),
        ("glm45", "<tool_call>find\n<arg_key>text</arg_key><arg_value>a</arg_value>\n1</arg_value></tool_call>"),
    ],
)  # fmt: skip
def test_a_call_that_would_lose_an_argument_is_an_error(format: str, text: str) -> None:
    assert [type(e) for e in events(format, text) if isinstance(e, CallEnd | CallError)] == [CallError]


@pytest.mark.parametrize("quote", ['"', "'"])
def test_plain_quotes_between_gemmas_own_are_none_of_the_value(quote: str) -> None:
    (end,) = [
        e
        for e in events("gemma4", f"<|tool_call>call:find{{text:{quote}a b{quote}}}<tool_call|>")
        if isinstance(e, CallEnd)
    ]
    assert (end.call.arguments, end.repairs) == ({"text": "a b"}, ("python_quotes",))


def test_markup_in_capital_letters_is_the_same_however_the_text_is_cut() -> None:
    text = "<function=find><parameter=text>a<function=a<PARAMETER=b></parameter></function>"
    whole = events("mimo", text)
    assert all(read(text, (formats.get("mimo"),), [text[:at], text[at:]]) == whole for at in range(len(text)))
