"""Tool parsers by name read what the formats' own reader reads: the same calls and the same text, in every format.

A response may also begin inside thinking that the prompt opened. Only then may the two differ.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from damages import damaged, plan
from format_tools import ADD, NOTE, PING, TOOLS
from small_tokenizers import BARE, with_template

from agentkit import formats
from agentkit.errors import FormatError
from agentkit.events import CallEnd, CallError, Event, Text
from agentkit.formats import CATALOG, Format, ToolSpec
from agentkit.messages import ToolCall
from agentkit.rollout import get_tool_parser
from agentkit.rollout.tokens.tool_parsers import FunctionCall, ToolParser

CALLS = (ToolCall("", "add", {"a": 1, "b": 2}), ToolCall("", "note", {"text": "zz"}), ToolCall("", "ping", {}))
PROSE = ("It writes {} there. ", "I close with {}, if asked. ", "Write `{}`. ", 'The tag "{}" ends it. ')
CODE = ("```\n{}\n```", "```xml\nHm.\n{}\nDone.\n```\n")
COMMENTS = ("<!-- {} -->", "Hm. <!--{}-->\n", "<!--\nHm.\n{}\nDone.\n-->", "<!-- a --> <!-- {} --> b")
MENTIONS = (*PROSE, *CODE, *COMMENTS)
each_format = pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)


def closer(format: Format) -> str:
    return format.thinking[0][1].strip()


def tools_of(format: Format) -> Sequence[ToolSpec]:
    return (NOTE, PING) if format.name in ("legacy", "dr_tulu") else (ADD, NOTE, PING)


@cache
def rendered(format: Format, which: tuple[int, ...]) -> str | None:
    try:
        return formats.render_calls(format, [CALLS[n] for n in which], tools_of(format))
    except FormatError:
        return None


def replies(format: Format) -> list[str]:
    """Whole replies: calls, words around them, and each message that the format knows besides."""
    made = [text for which in ((0,), (2,), (1, 2), (0, 1, 2)) if (text := rendered(format, which))]
    made += [f"{a}\n{said}\n{b}" for a in made[:2] for b in made[:2] for said in spoken(format)]
    made += [f"{said}\n{a}" for a in made[:2] for said in spoken(format)]
    made += [f"{a}\n{said}" for a in made[:2] for said in spoken(format)]
    opened, closed = format.thinking[0]
    return [*made, *spoken(format), *(f"{opened}Hm.{closed}{text}" for text in list(made[:8]))]


def spoken(format: Format) -> list[str]:
    """Words, as plain text and as the format's own messages."""
    pairs = [f"{start}And b.{end}" for start, end in format.answer]
    pairs += [f"{start}And b.{closer(format)}" for start in format.markup if closer(format) in format.markup]
    return ["And b.", *pairs]


def read(text: str, format: Format, tools: Sequence[ToolSpec], **settings: bool) -> tuple[str, list[Any]]:
    return said_by(formats.parse(text, format, tools, **settings))


def said_by(events: Sequence[Event]) -> tuple[str, list[Any]]:
    text = "".join(event.text for event in events if isinstance(event, Text))
    calls = [
        (e.call.name, dict(e.call.arguments) if isinstance(e, CallEnd) else "damaged")
        for e in events
        if isinstance(e, CallEnd | CallError)
    ]
    return text, calls


def extracted(text: str, parser: ToolParser, tools: Sequence[ToolSpec], **told: bool) -> tuple[str, list[Any]]:
    content, calls = parser.extract(text, tools, **told)
    return content, [(call.name, _arguments(call)) for call in calls]


def _arguments(call: FunctionCall) -> Any:
    try:
        return json.loads(call.arguments)
    except json.JSONDecodeError:
        return "damaged"


def asking(format: Format, prompt: str) -> Any:
    """A tokenizer whose template ends its prompts so."""
    return SimpleNamespace(
        apply_chat_template=lambda *_, **__: f"<|im_start|>assistant\n{prompt}",
        encode=lambda text, **_: [ord(c) for c in text],
        decode=lambda ids, **_: "".join(map(chr, ids)),
        added_tokens_decoder={},
    )


@each_format
def test_a_whole_reply_is_read_as_its_format_reads_it(format: Format) -> None:
    parser, tools = get_tool_parser(format.name), tools_of(format)
    for text in replies(format):
        assert extracted(text, parser, tools) == read(text, format, tools), text


@each_format
def test_a_closing_that_is_only_spoken_of_loses_no_call(format: Format) -> None:
    parser, tools = get_tool_parser(format.name), tools_of(format)
    called = rendered(format, (2,))
    for mention in MENTIONS:
        said = mention.format(closer(format))
        for text in (f"{called}\n{said}", f"{said}\n{called}", f"{called}\n{said}\n{called}"):
            assert extracted(text, parser, tools) == read(text, format, tools), text


@each_format
def test_a_closing_inside_a_value_is_the_value(format: Format) -> None:
    parser, tools, told = get_tool_parser(format.name), tools_of(format), 0
    for value in (closer(format), f"a {closer(format)} b", *(mention.format(closer(format)) for mention in MENTIONS)):
        try:
            text = formats.render_calls(format, [ToolCall("", "note", {"text": value})], tools)
        except FormatError:  # the format cannot write this value
            continue
        told += 1
        content, calls = extracted(text, parser, tools)
        assert (content.strip(), calls) == ("", [("note", {"text": value})])
    assert told > 3 or closer(format) in (rendered(format, (1,)) or "")


@pytest.mark.share(12)
@each_format
def test_damaged_replies_too(format: Format) -> None:
    parser, told = get_tool_parser(format.name), 0
    for seed in range(60):
        written = damaged(plan(seed, format))
        if written is None:
            continue
        text, told = written.text, told + 1
        assert extracted(text, parser, TOOLS, thinking=False) == read(text, format, TOOLS), text
        if closer(format) not in text:
            assert extracted(text, parser, TOOLS) == read(text, format, TOOLS), text
    assert told > 20


@each_format
def test_where_the_template_opens_no_thinking_no_response_begins_in_it(format: Format) -> None:
    parser, tools = ToolParser(asking(format, ""), format), tools_of(format)
    called, rng = rendered(format, (2,)) or "", random.Random(format.name)
    for _ in range(20):
        pieces = [called, "Hm.", "\n", " ", f"\n{closer(format)}\n", closer(format)]
        text = "".join(rng.choices(pieces, k=rng.randint(1, 6)))
        assert extracted(text, parser, tools) == read(text, format, tools), text


@each_format
def test_where_it_does_the_thought_before_the_closing_is_none_of_the_reply(format: Format) -> None:
    opened, called = format.thinking[0][0], rendered(format, (2,))
    parser, tools = ToolParser(asking(format, opened), format), tools_of(format)
    for text in (f"Hm.\n{closer(format)}\n\n{called}", f"{closer(format)}{called}", f"So.{closer(format)}\nDone."):
        assert extracted(text, parser, tools) == read(text, format, tools, thinking=True), text


@each_format
def test_a_caller_who_knows_the_prompt_can_say_so(format: Format) -> None:
    parser, tools = get_tool_parser(format.name), tools_of(format)
    text = f"{rendered(format, (2,))}\n{closer(format)}\nDone."
    assert extracted(text, parser, tools, thinking=True) == read(text, format, tools, thinking=True)
    assert extracted(text, parser, tools, thinking=False) == read(text, format, tools)


@pytest.mark.parametrize("switch", ["enable_thinking", "thinking"])
def test_a_template_that_thinks_when_told_to(switch: str) -> None:
    """Whether it was told is not known here: what stands where thinking ends does end it."""
    end = "<|im_start|>assistant\n{% endif %}"
    source = BARE.replace(end, f"<|im_start|>assistant\n{{% if {switch} %}}<think>\n{{% endif %}}{{% endif %}}")
    assert source != BARE
    called = formats.render_calls("hermes", [CALLS[2]], [PING])
    parser = get_tool_parser("hermes", with_template(source, ["<|im_start|>", "<|im_end|>"], "<|im_end|>"))
    assert parser.extract(f"I could write {called}\n</think>\n\nNo.", [PING]) == ("\n\nNo.", [])
    _, calls = parser.extract(f"{called}\nIt writes </think> there.", [PING])
    assert [call.name for call in calls] == ["ping"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Hm </think> <answer>4</answer>", []),
        ("So it is four. </think> The answer is 4.", []),
        ("Hm.</think>done", []),
        ("```\nx\n```\n</think>\nDone.", []),
        ("```\nx\n</think>\n```\nDone.", ["ping"]),
        ("Such as </think>, for instance.", ["ping"]),
    ],
)
def test_without_a_template_the_place_of_the_closing_decides(text: str, names: list[str]) -> None:
    called = formats.render_calls("hermes", [CALLS[2]], [PING])
    _, calls = get_tool_parser("hermes").extract(f"I try {called}\n{text}", [PING])
    assert [call.name for call in calls] == names
