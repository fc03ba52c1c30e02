"""Calls that a native model wrote as text: which count, which stay text, and that nothing is lost either way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import pytest
from growth import assert_linear, cpu_seconds
from hypothesis import example, given
from hypothesis import strategies as st
from recovering import (
    ADD,
    BARE,
    CALLS,
    FENCE,
    FENCED,
    HERMES,
    INVOKE,
    MISTRAL,
    WRITTEN,
    Tools,
    cut,
    played,
    stays,
    told,
    written,
)

from agentkit import formats
from agentkit.agent import Agent
from agentkit.errors import ConfigError, ProviderError
from agentkit.events import (
    CallEnd,
    CallStart,
    Event,
    Finish,
    SourceEvent,
    Text,
    Thinking,
    ToolStarted,
    merge,
)
from agentkit.messages import AssistantMessage, MarkupPart, TextPart, ThinkingPart, ToolCall, ToolMessage
from agentkit.models.text import TextCalling
from agentkit.processor import ProcessorConfig, ResponseProcessor, Turn
from agentkit.processor.recovery import Recovery
from agentkit.processor.response import ResponseReader
from agentkit.processor.response_record import CallIds, ResponseRecord
from agentkit.processor.textcalls import TextCalls
from agentkit.testing.replay import Replay
from agentkit.testing.scripted_model import ScriptedModel
from agentkit.tool.registry import ToolRegistry
from agentkit.toolspec import ToolSpec

# ---------------------------------------------------------------- what is recovered


@pytest.mark.parametrize("name", WRITTEN)
def test_a_call_in_any_format_runs(name: str) -> None:
    ran = told(f"Let me add.\n{WRITTEN[name]}")
    assert (ran.made, ran.text) == ([("add", 1, 2)], "Let me add.\n")
    assert [(r.text, r.error) for r in ran.turn.results] == [("3", None)]


@pytest.mark.parametrize("name", [*WRITTEN, "fence"])
def test_a_call_alone_leaves_no_text(name: str) -> None:
    ran = told(WRITTEN.get(name, FENCE))
    assert (ran.made, ran.text) == ([("add", 1, 2)], "")


@pytest.mark.parametrize("name", [f.name for f in formats.auto() if f.name not in FENCED])
def test_two_calls_of_every_format_run(name: str) -> None:
    ran = told(formats.render_calls(name, CALLS, ADD).lstrip())
    assert (ran.made, ran.text.strip()) == ([("add", 1, 2), ("add", 3, 4)], "")


def test_the_events_are_those_of_a_text_call() -> None:
    call = ToolCall("c0", "add", {"a": 1, "b": 2}, "hermes", HERMES)
    source = [
        e for e in told(f"Hi {HERMES}").events if isinstance(e, Text | CallStart | CallEnd | Finish | ToolStarted)
    ]
    assert source == [
        Text("Hi "),
        CallStart(0, "add", "c0"),
        CallEnd(0, call),
        Finish("stop"),
        ToolStarted(0, call),
    ]


def test_the_message_holds_the_call_and_its_wrapping() -> None:
    raw = '{"name": "add", "arguments": {"a": 1, "b": 2}}'
    assert told(MISTRAL).message.content == (
        MarkupPart("[TOOL_CALLS] ["),
        ToolCall("c0", "add", {"a": 1, "b": 2}, "mistral", raw),
        MarkupPart("]"),
    )


def test_formats_may_be_mixed_and_prose_may_follow_markup() -> None:
    ran = told(f"One: {HERMES} two: {INVOKE} done.")
    assert (ran.made, ran.text) == ([("add", 1, 2)] * 2, "One:  two:  done.")


def test_what_is_wrong_with_a_value_is_told_to_the_model() -> None:
    ran = told(HERMES.replace("1", '"one"'))
    assert [r.error for r in ran.turn.results] == ["invalid_arguments"]


def test_json_in_text_is_read_as_strictly_as_native_json() -> None:
    number = '<tool_call>{"name": "note", "arguments": {"text": 7}}</tool_call>'
    assert [r.error for r in told(number).turn.results] == ["invalid_arguments"]
    assert told("<note><text>7</text></note>").made == [("note", "7")]


def test_replies_are_those_of_native_calls() -> None:
    turn = told(HERMES).turn
    assert turn.replies == turn.results


# ---------------------------------------------------------------- the stream


MORE = " and so on" * 40  # beyond the length of any name


def reading(specs: Sequence[ToolSpec]) -> ResponseReader:
    """A native model's response about to be read."""
    ids = map(str, count())
    recovery = Recovery(lambda *_: formats.Parser(formats.auto(), specs, in_code="reply"), specs)
    intake = ResponseRecord(CallIds(ids.__next__))
    return ResponseReader(intake, TextCalls(intake, None, recovery=recovery))


def held_after(text: str) -> str:
    """What the consumer has not seen of a text that streams, when its last character has come."""
    specs = ToolRegistry(Tools()).specs()
    reader = reading(specs)
    seen = "".join(e.text for c in text for e in reader.feed(Text(c)) if isinstance(e, Text))
    assert text.startswith(seen)
    return text[len(seen) :]


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("All is well", ""),
        ("if a < b then c", ""),
        ("Use <b>bold</b> or [links] and", ""),
        ("See [1] or [here](https://example.org/a), and", ""),
        ("Take [a, b, c and", ""),
        ("I call <tool_ca", "<tool_ca"),
        (f"I call <tool_call> for that{MORE}", ""),
        (f"{BARE} is a call", ""),
        (f"{HERMES.replace('add', 'nope')}{MORE}", ""),
        (f"No: {HERMES}", HERMES),
    ],
)
def test_only_what_may_be_a_call_is_held_back(text: str, held: str) -> None:
    assert held_after(text) == held


def test_a_native_call_makes_everything_text_in_its_place() -> None:
    native = ToolCall("call_1", "note", {"text": "n"}, raw='{"text": "n"}')
    for size in (None, 1, 4):
        ran = played(
            [
                *map(Text, cut(f"A {HERMES} B {INVOKE} C", size)),
                Thinking("hm"),
                CallStart(0, "note", "call_1"),
                CallEnd(0, native),
                *map(Text, cut(f" D {HERMES}", size)),
                Finish("tool_calls"),
            ]
        )
        assert ran.made == [("note", "n")]
        assert ran.message.content == (
            TextPart(f"A {HERMES} B {INVOKE} C"),
            ThinkingPart("hm"),
            native,
            TextPart(f" D {HERMES}"),
        )


def test_an_open_text_call_that_a_native_one_interrupts_is_text() -> None:
    native = ToolCall("call_1", "ping", raw="{}")
    for said in ("<tool_", HERMES[:30], HERMES[:-3], INVOKE[:60], "ping("):
        ran = played([*map(Text, said), CallStart(0, "ping", "call_1"), CallEnd(0, native), Finish("stop")])
        assert ran.message.content == (TextPart(said), native)
        assert ran.made == [("ping",)]


def test_a_damaged_native_call_counts_as_one() -> None:
    ran = played([Text(HERMES), CallStart(0, "add", "call_1"), Finish("length")])
    assert (ran.made, ran.text, [r.error for r in ran.turn.results]) == ([], HERMES, ["truncated_call"])


def test_a_response_that_broke_off_recovers_nothing() -> None:
    ran = played([Text(f"Hi {HERMES}"), ProviderError("gone", kind="stream", provider="p")])
    assert (ran.made, ran.text, ran.turn.results) == ([], f"Hi {HERMES}", ())


def test_a_consumer_who_leaves_recovers_nothing() -> None:
    async def main() -> Turn:
        turn = ResponseProcessor(ToolRegistry(Tools())).process([Text(f"Hi {HERMES}"), Finish("stop")])
        async with turn:
            async for _ in turn:
                break
        return turn

    turn = asyncio.run(main())
    assert (turn.message.text, turn.results) == (f"Hi {HERMES}", ())


# ---------------------------------------------------------------- the gates


@pytest.mark.parametrize("name", [*WRITTEN, "fence"])
def test_only_offered_tools_count(name: str) -> None:
    stays(WRITTEN.get(name, FENCE).replace("add", "sub"))


@pytest.mark.parametrize("name", [*WRITTEN, "fence"])
def test_off_without_tools_and_when_switched_off(name: str) -> None:
    text = WRITTEN.get(name, FENCE)
    stays(text, offered=())
    stays(text, recover=False)
    assert told(text, offered=ToolRegistry(Tools()).specs(["add"])).made == [("add", 1, 2)]
    stays(text, offered=ToolRegistry(Tools()).specs(["note"]))


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>',
        '<tool_call>\n{"name": "add", "arguments": {}}\n</tool_call>',
        '<invoke name="add">\n<parameter name="a">1</parameter>\n</invoke>',
        "<tool_call>add\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>",
        "[add(a=1)]",
        "add()",
        '{"name": "add"}',
        "<add>\n<a>1</a>\n</add>",
        "Use <add> and <note> for it.",
    ],
)
def test_required_arguments_must_be_there(text: str) -> None:
    stays(text)


@pytest.mark.parametrize("name", WRITTEN)
def test_nothing_in_thinking_counts(name: str) -> None:
    call = WRITTEN[name]
    stays(f"<think>maybe\n{call}\n</think>Hello")
    stays(f"maybe\n{call}\n</think>Hello")
    stays(f"{call}</think>")
    for size in (None, 1):
        ran = played([*map(Thinking, cut(call, size)), Text("Hello"), Finish("stop")])
        assert (ran.made, ran.text, ran.message.thinking) == ([], "Hello", call)


def test_a_call_behind_thinking_counts() -> None:
    ran = told(f"<think>I could {HERMES}</think>\n{BARE}")
    assert (ran.made, ran.text) == ([("add", 1, 2)], f"<think>I could {HERMES}</think>\n")
    ran = told(f"I could {HERMES}</think>\n{HERMES}")
    assert (ran.made, ran.text) == ([("add", 1, 2)], f"I could {HERMES}</think>\n")
    ran = told(f"{HERMES}<think>that was</think> a call")
    assert (ran.made, ran.text) == ([("add", 1, 2)], "<think>that was</think> a call")


@pytest.mark.parametrize("name", WRITTEN)
def test_quoted_calls_stay_text(name: str) -> None:
    call = WRITTEN[name]
    stays(f"You write ``{call}`` there." if "\n" not in call else f"So:\n```\n{call}\n```")
    stays(f"So:\n\n```xml\n{call}\n```\nand no more.")
    stays(f"Look:\n```\n{call}\n```\n```\n{call}\n```")
    stays(f'You write "{call}" there.')
    stays(f"You write “{call}” there.")
    stays(f"He said:\n> {call}")


@pytest.mark.parametrize(
    "text",
    [
        f"{FENCE}\nThis adds.",
        f"For example:\n{FENCE}",
        "For example:\n\n```tool_code\nadd(a=1, b=2)\n```",
        f"{FENCE}\n\n{FENCE}\nLike so.",
        f"You send {BARE} to it.",
        f"You send\n{BARE}\nto it.",
        f"{BARE} is how.",
        "add(a=1, b=2) gives 3",
        "You could call\n\nadd(a=1, b=2)\n\nand get 3.",
        "[add(a=1, b=2)] is a list",
        "We have [add(a=1, b=2)]",
        "Send [TOOL_CALLS] first",
        "<ping></ping>",
        "Then <ping/> it.",
        "The list: <ul><li>add</li></ul>",
        'add\n{"a": 1, "b": 2}\nis GLM\'s way',
        '{"name": "Ada", "arguments": "none"}',
        '{"a": 1, "b": 2}',
        '[{"name": "note"}, {"name": "add"}]',
    ],
)
def test_examples_in_prose_stay_text(text: str) -> None:
    stays(text)


def test_bare_calls_count_where_only_calls_follow() -> None:
    two = f"{BARE}; {BARE}"
    assert told(two).made == [("add", 1, 2)] * 2
    assert told(two).text == ""
    assert told(f"Sure.\n{BARE}\n\n").made == [("add", 1, 2)]
    assert told("add(a=1, b=2)\nping()\n").made == [("add", 1, 2), ("ping",)]
    assert told("```tool_code\nadd(a=1, b=2)\n```").made == [("add", 1, 2)]
    stays(f'[{BARE}, {{"name": "sub", "arguments": {{}}}}]')


def test_a_declared_tag_counts_even_without_arguments() -> None:
    assert told("I am <all-done></all-done>").made == [("complete",)]


@pytest.mark.parametrize(
    "text",
    [
        HERMES[:-20],
        '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": ]}\n</tool_call> and on',
        '<invoke name="add"><parameter name="a">1',
        "<add>\n<a>1</a>",
        "Use <tool_call> like this",
        "add(a=1, b=",
        "<note>it never ends",
    ],
)
def test_damaged_calls_stay_text(text: str) -> None:
    stays(text)


def test_what_follows_a_damaged_call_does_not_run() -> None:
    bad = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": ]}\n</tool_call>'
    for text, before in ((f"{HERMES} {bad} {HERMES}", 1), (f"{bad} {HERMES} {HERMES}", 0)):
        ran = told(text)
        assert ran.made == [("add", 1, 2)] * before
        assert bad in ran.text


def test_configured_formats_replace_recovery() -> None:
    ran = told(f"{HERMES} {INVOKE}", formats="invoke")
    assert (ran.made, ran.text.strip()) == ([("add", 1, 2)], HERMES)


PIECES = [
    *WRITTEN.values(),
    FENCE,
    "<think>",
    "</think>",
    "`",
    "```\n",
    "\n",
    " so ",
    "<tool_call>",
    '"',
    "; ",
    "add(",
    "<note>",
    INVOKE.replace("add", "sub").replace("1", "<think>hm</think>"),
    INVOKE.replace("</function_calls>", INVOKE.replace("add", "sub").partition("\n")[2]),
]


@example(pieces=[FENCE, "`"], size=1, native=False)
@given(st.lists(st.sampled_from(PIECES), max_size=8), st.integers(1, 9), st.booleans())
def test_nothing_is_ever_lost(pieces: list[str], size: int, native: bool) -> None:
    text = "".join(pieces)
    specs = ToolRegistry(Tools()).specs()

    def read(chunks: list[str]) -> tuple[list[Event], AssistantMessage]:
        reader = reading(specs)
        events = [e for c in chunks for e in reader.feed(Text(c))]
        if native:
            events += reader.feed(CallEnd(0, ToolCall("n", "ping", raw="{}")))
        events += reader.feed(Finish("stop"))
        return merge(events), reader.record.draft.message()

    whole, message = read(cut(text, None) if text else [])
    assert read(cut(text, size)) == (whole, message)
    assert written(message) == text
    if native or not message.calls:
        assert message.text == text


@pytest.mark.parametrize(
    "unit", [f"{HERMES}\n", f"{HERMES.replace('add', 'sub')}\n", "add(a=1, b=2)\n", f"{BARE}\nso\n"]
)
def test_the_time_grows_linearly(unit: str) -> None:
    specs = ToolRegistry(Tools()).specs()

    def seconds(size: int) -> float:
        chunks = cut(unit * (size // len(unit)), 4)
        reader = reading(specs)

        def read() -> None:
            for chunk in chunks:
                reader.feed(Text(chunk))
            reader.close()

        return cpu_seconds(read)

    assert_linear(seconds, 8_000)


# ---------------------------------------------------------------- agents


def asked(model: ScriptedModel, **settings: Any) -> tuple[list[tuple[Any, ...]], Any]:
    tools = Tools()
    return tools.made, Agent(model, tools, **settings).run_sync("1 + 2?")


@pytest.mark.parametrize("chunk", [None, 1, 4])
@pytest.mark.parametrize("name", [*WRITTEN, "fence"])
def test_an_agent_goes_on_with_the_result(name: str, chunk: int | None) -> None:
    model = ScriptedModel([WRITTEN.get(name, FENCE), "It is 3."], chunk=chunk)
    made, result = asked(model)
    assert (made, result.text) == ([("add", 1, 2)], "It is 3.")
    [answer] = [m for m in result.messages if isinstance(m, ToolMessage)]
    assert answer.text == "3"


def test_tool_choice_none_offers_nothing() -> None:
    made, result = asked(ScriptedModel([HERMES]), tool_choice="none")
    assert (made, result.text) == ([], HERMES)


def test_switched_off_by_the_configuration() -> None:
    made, result = asked(ScriptedModel([HERMES]), config=ProcessorConfig(recover=False))
    assert (made, result.text) == ([], HERMES)


def test_a_model_with_a_format_is_read_in_others_too() -> None:
    made, result = asked(ScriptedModel([HERMES, "Done."], format="xml"))
    assert (made, result.text) == ([("add", 1, 2)], "Done.")


def sse(text: str, size: int | None) -> str:
    """A chat completion of this text, in text deltas."""

    def chunk(delta: dict[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        body = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
        return f"data: {json.dumps(body)}\n\n"

    return "".join([*(chunk({"content": c}) for c in cut(text, size)), chunk({}, "stop"), "data: [DONE]\n\n"])


@pytest.mark.parametrize("size", [None, 1, 4])
@pytest.mark.parametrize("name", [*WRITTEN, "fence"])
def test_through_the_real_sdk_and_back_as_it_was_written(name: str, size: int | None) -> None:
    tape = Replay([sse(WRITTEN.get(name, FENCE), size), sse("It is 3.", None)])
    tools = Tools()

    async def main() -> tuple[str, str]:
        async with Agent(tape.model("openai:m"), tools).stream("1 + 2?") as run:
            shown = "".join([e.text async for e in run if isinstance(e, Text)])
        return shown, run.result.text

    assert asyncio.run(main()) == ("It is 3.", "It is 3.")
    assert tools.made == [("add", 1, 2)]
    _, assistant, answer = tape.requests[1]["messages"]
    assert assistant == {"role": "assistant", "content": WRITTEN.get(name, FENCE)}
    assert answer["role"] == "user"
    assert answer["content"].startswith("Result of add:\n3\n\n")


# ---------------------------------------------------------------- formats="auto"


def cuttings(text: str) -> Iterator[list[SourceEvent]]:
    for size in (None, 1, 4):
        yield [*map(Text, cut(text, size)), Finish("stop")]


def test_auto_reads_every_format() -> None:
    for source in cuttings(f"{HERMES} and {INVOKE}"):
        ran = played(source, formats="auto")
        assert (ran.made, ran.text) == ([("add", 1, 2)] * 2, " and ")


def test_auto_is_every_format_that_tells_itself() -> None:
    assert ProcessorConfig(formats="auto").text_formats == formats.auto()
    first = ProcessorConfig(formats=("glm45", "auto")).text_formats
    assert (first[0].name, len(first)) == ("glm45", len(formats.auto()))


def test_auto_answers_damaged_calls() -> None:
    assert [r.error for r in played([Text(HERMES[:-20]), Finish("stop")], formats="auto").turn.results] == [
        "truncated_call"
    ]


def test_auto_is_nothing_to_teach() -> None:
    with pytest.raises(ConfigError, match=r"format='auto' is for reading.*ProcessorConfig\(formats='auto'\)"):
        TextCalling(ScriptedModel([]), "auto")
