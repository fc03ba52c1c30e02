"""Thinking or a block of the provider divides a text, and changes nothing of what is code or an aside in it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import ProcessorConfig, ResponseProcessor, ToolCall, ToolRegistry
from agentkit.errors import FormatError
from agentkit.events import CallEnd, Finish, ProviderBlock, SourceEvent, Text, Thinking
from agentkit.formats import Parser, render_calls
from agentkit.formats.asides import LITERALS, SHOWN
from agentkit.formats.declaration_checks import THOUGHTS
from agentkit.processor.format_tokens import QUOTATION_MARKS


def note(text: str) -> str:
    """Note something."""
    return text


REGISTRY = ToolRegistry(note)


def call_in(format: str, text: str) -> str:
    return render_calls(format, [ToolCall("c", "note", {"text": text})], REGISTRY.specs())


def called(events: Sequence[SourceEvent], **config: Any) -> list[str]:
    """The texts of the calls in text that were read as calls."""

    async def main() -> list[str]:
        turn = ResponseProcessor(REGISTRY, ProcessorConfig(**config)).process([*events, Finish("stop")])
        found = [event async for event in turn]
        return [e.call.arguments["text"] for e in found if isinstance(e, CallEnd) and e.call.format is not None]

    return asyncio.run(main())


READERS = [
    ({}, "hermes"),
    ({"formats": ("hermes",)}, "hermes"),
    ({"formats": ("xml",)}, "xml"),
    ({"formats": "auto"}, "invoke"),
]
DIVIDE = (Thinking("hm"), ProviderBlock("m", {"type": "x"}))
OPEN = [
    "`",
    "``",
    "```\n",
    "~~~py\n",
    "<pre>",
    "<!-- ",
    "<example>",
    "<tool_response>",
    "<think>",
    "> ",
    "    ",
    "Write ",
    "\n",
]
CLOSE = [
    "`",
    "``",
    "\n```\n",
    "\n~~~\n",
    "</pre>",
    " -->",
    "</example>",
    "</tool_response>",
    "</think>",
    "\n",
    ".",
    " then ",
]


@pytest.mark.share(12)
@pytest.mark.parametrize("divide", DIVIDE, ids=["thinking", "block"])
@pytest.mark.parametrize(("config", "format"), READERS, ids=["native", "hermes", "xml", "auto"])
@given(st.lists(st.sampled_from([*OPEN, *CLOSE, "CALL", "“", "”", '"']), max_size=8), st.data())
def test_nothing_is_called_that_would_not_be_if_nothing_stood_between(
    config: dict[str, Any], format: str, divide: SourceEvent, words: list[str], data: st.DataObject
) -> None:
    text = "".join(call_in(format, f"text {n}") if word == "CALL" else word for n, word in enumerate(words))
    places = sorted({0, len(text), *data.draw(st.sets(st.integers(0, len(text)), max_size=3))})
    events = [event for start, end in pairwise(places) for event in (Text(text[start:end]), divide)]
    assert set(called(events, **config)) <= set(called([Text(text)], **config)), places


@pytest.mark.parametrize("divide", DIVIDE, ids=["thinking", "block"])
@pytest.mark.parametrize(("config", "format"), READERS, ids=["native", "hermes", "xml", "auto"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Look:\n```py\nx = 1\n", "```\nCALL"),
        ("Use `x", "` then\nCALL"),
        ("<!-- Hm", " -->\nCALL"),
        ("First.\n", "CALL"),
        ("First", " then CALL"),
        ("CALL", "\nCALL"),
    ],
)
def test_no_call_after_what_ends_is_lost(
    config: dict[str, Any], format: str, divide: SourceEvent, before: str, after: str
) -> None:
    first, second = (text.replace("CALL", call_in(format, text[:1])) for text in (before, after))
    expected = called([Text(first), Text(second)], **config)
    assert expected
    assert called([Text(first), divide, Text(second)], **config) == expected


def test_a_parser_that_is_not_closed_is_followed_by_none() -> None:
    first = Parser("hermes")
    with pytest.raises(FormatError, match=r"after=: expected a parser that is closed"):
        Parser("hermes", after=first)
    first.close("Write `")
    text = call_in("hermes", "a") + "`"
    for _ in range(2):  # what one of those after it reads is nothing to another
        second = Parser("hermes", REGISTRY.specs(), after=first)
        assert "".join(e.text for e in second.close(text) if isinstance(e, Text)) == text


@pytest.mark.share(12)
@pytest.mark.parametrize("blank", ["", "\n", " \n\t"])
@pytest.mark.parametrize(("config", "format"), READERS, ids=["native", "hermes", "xml", "auto"])
@given(st.lists(st.sampled_from([*OPEN, *CLOSE, "CALL", "“", "”"]), max_size=8), st.data())
def test_thinking_without_words_divides_nothing(
    config: dict[str, Any], format: str, blank: str, words: list[str], data: st.DataObject
) -> None:
    """Not even a mark, or a call."""
    text = "".join(call_in(format, f"text {n}") if word == "CALL" else word for n, word in enumerate(words))
    places = sorted({0, len(text), *data.draw(st.sets(st.integers(0, len(text)), max_size=4))})
    pieces = [Text(text[start:end]) for start, end in pairwise(places)]
    block = ProviderBlock("m", {"reasoning_content": blank}, thinking=True)
    events = [
        event for piece in pieces for event in (piece, Thinking(blank), *data.draw(st.sampled_from([[], [block]])))
    ]
    assert called(events, **config) == called(pieces, **config)


@pytest.mark.parametrize(
    "mark", ["<pre>", "<!-- ", "~~~\n", "``", "```xml\n", "<tool_response>", "\n\n<|im_start|>user\n"]
)
@pytest.mark.parametrize("blank", ["", "\n"])
def test_thinking_without_words_does_not_cut_a_mark_in_two(blank: str, mark: str) -> None:
    call = call_in("hermes", "x")
    for at in range(1, len(mark)):
        block = ProviderBlock("m", {"reasoning_content": blank}, thinking=True)
        cut = [Text(f"It:\n{mark[:at]}"), Thinking(blank), block, Text(mark[at:] + call)]
        for config in ({}, {"formats": ("hermes",)}):
            assert not called(cut, **config)


LINES = [
    ("`", "`"), ("``", "``"), ("\\`", "\\`"), ("``` ", " ```"), ("`as\nin ", "`"),
    ("```xml\n", "\n```"), ("````\n", "\n````"), ("~~~py\n", "\n~~~"), ("```xml \n```py\na\n```\n", "\n```"),
    ("- ```\n  ", "\n  ```"), ("> ```\n> ", "\n> ```"),
    ("<!-- ", " -->"), ("<pre class='x'>\n\n", "</pre>"), ("<p><pre>\n", "</pre>"),
    *((f"<{tag}>", f"</{tag}>") for tag in (*SHOWN, *THOUGHTS, "tool_response", "function_results")),
    *((f"<{tag.upper()} id=1>\nb\n\n", f"</{tag}>") for tag in ("code", "q")),
    *((f"{text}\n", ends[0]) for text, (ends, _) in LITERALS.items() if text != "<!--"),
]  # fmt: skip
"""What shows a call, in any model's text, at the beginning of a line and its end."""
QUOTED = [
    ("> ", "\n"), ("    ", "\n"), *((mark, mark) for mark in sorted(QUOTATION_MARKS)),
]  # fmt: skip
"""What quotes one, in a native model's text alone."""


BEFORE = ("", "So.\n\n", "So: ")


@pytest.mark.share(12)
@pytest.mark.parametrize(("config", "format"), READERS, ids=["native", "hermes", "xml", "auto"])
@pytest.mark.parametrize("sixth", range(6))  # of the marks
def test_thinking_cuts_no_mark_in_two(config: dict[str, Any], format: str, sixth: int) -> None:
    """A call after it is shown if it would be without it, and so is none after the end of what shows one.

    What is around the calls of a whole reply is a mark, too, if thinking cuts it.
    """
    call = call_in(format, "x")
    for n, (opens, closes) in [*enumerate([*LINES, *(QUOTED if not config else [])])][sixth::6]:
        before = BEFORE[(n + len(format)) % 3]
        for text in (f"{before}{opens}", f"{before}{opens}x{closes}\n\n"):
            rest = call if text.endswith("\n\n") else call + closes
            expected = [] if text == opens and opens[0] == "`" else called([Text(text + rest)], **config)
            for at in range(max(len(before), 1), len(text) + 1):
                first = [Text(c) for c in text[:at]] if (n + at) % 2 else [Text(text[:at])]
                second = [Text(c) for c in text[at:] + rest] if (n + at) % 4 > 1 else [Text(text[at:] + rest)]
                assert called([*first, DIVIDE[at % 2], *second], **config) == expected, (text[:at], text[at:] + rest)
