"""S15, S16, S20 and S22 to S25 on a thread: what is saved, in every cutting, and that it can be played again."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from clock import best_of_three
from kept_scenarios import everyway_kept, kept, read, text_kept
from scenario_kit import T, arguments, cuttings

from agentkit import formats
from agentkit.errors import ProviderError
from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallStart,
    Event,
    Finish,
    SourceEvent,
    Text,
    ToolCompleted,
    ToolFailed,
    ToolStarted,
)
from agentkit.messages import AssistantMessage, ToolCall
from agentkit.models.messages_body import anthropic_messages
from agentkit.models.openai import chat_messages
from agentkit.processor import ProcessorConfig
from agentkit.testing import ScriptedModel
from agentkit.threads import SQLiteStore, ThreadManager
from agentkit.tool.registry import ToolRegistry
from scenarios.test_streams import mixed

DONE = [Text("Done."), Finish("stop")]


def invoke(body: str, end: str = "</parameter></invoke></function_calls>") -> str:
    head = '<function_calls><invoke name="create_file"><parameter name="file_path">a</parameter>'
    return f'{head}<parameter name="file_contents">{body}{end}'


# ---------------------------------------------------------------- S15: the closing tags in a value


@pytest.mark.parametrize(
    "body", ["</parameter>", "x</parameter>", "</parameter>x", "a </function_calls> b </parameter> c"]
)
def test_s15_a_file_with_a_closing_tag_in_it_is_not_written(body: str) -> None:
    ran = text_kept(invoke(f"{body}\n"), DONE)
    assert ran.made == []
    assert [(name, code) for name, code, _ in ran.results] == [("create_file", "ambiguous_call")]


def test_s15_all_closing_tags_are_content_in_cdata() -> None:
    body = "a </parameter></invoke></function_calls> b"
    ran = text_kept(invoke(f"<![CDATA[{body}]]>"), DONE)
    assert ran.made == [("create_file", "a", body)]


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("body", "end", "code"),
    [
        ("x <![CDATA[y", "", "truncated_call"),
        ("x <![CDATA[y", "</parameter>", "truncated_call"),
        ("x </parameter> y", "", "ambiguous_call"),
        ("x </parameter> y", "</parameter>", "ambiguous_call"),
        ("x </parameter> y", "</parameter></inv", "ambiguous_call"),
    ],
)
def test_s15_a_file_whose_end_is_not_sure_is_never_written_short(body: str, end: str, code: str) -> None:
    ran = text_kept(invoke(body, end), DONE)
    assert ran.made == []
    assert [(name, code) for name, code, _ in ran.results] == [("create_file", code)]


# ---------------------------------------------------------------- S16: the token limit inside a call


WHOLE = '<create-file file_path="a.txt">line 1\nif a < b:\n</create-file>'
CUT = WHOLE.index("if a")


def test_s16_a_call_that_was_cut_is_saved_as_cut() -> None:
    ran = text_kept(WHOLE[:CUT], DONE, end=[Finish("length")], auto_continue=0)
    assert ran.made == []
    [(name, code, text)] = ran.results
    assert (name, code) == ("create_file", "truncated_call")
    assert "file_contents" in text
    assert ran.text == "Done."


def test_s16_a_call_that_was_cut_and_went_on_is_saved_as_one() -> None:
    first: list[SourceEvent] = [Text(WHOLE[:CUT]), Finish("length")]
    ways = ([first, [*map(Text, cut), Finish("stop")], DONE] for cut in cuttings(WHOLE[CUT:]))
    ran = everyway_kept(ways, formats="xml")
    assert ran.made == [("create_file", "a.txt", "line 1\nif a < b:\n")]
    assert [r[1] for r in ran.results] == [None]
    [call] = [c for m in ran.messages if isinstance(m, AssistantMessage) for c in m.calls]
    assert call.raw == WHOLE
    assert (ran.finish, ran.text) == ("stop", "Done.")


# ---------------------------------------------------------------- S20: order, limits


@pytest.mark.parametrize(("strategy", "ended"), [("parallel", ["B", "A"]), ("sequential", ["A", "B"])])
def test_s20_answers_are_saved_in_the_order_of_their_calls(strategy: str, ended: list[str]) -> None:
    async def main() -> None:
        store, tool = SQLiteStore(":memory:"), T()
        threads = ThreadManager(store, ToolRegistry(tool))
        thread = await threads.create_thread(messages="Go")
        calls = [ToolCall(id, "slow", {"id": id, "s": s}) for id, s in (("A", 0.3), ("B", 0.05))]
        config = ProcessorConfig(strategy=strategy)  # type: ignore[arg-type]
        run = threads.run_thread(thread, None, ScriptedModel([calls, "Done."]), config)
        order: list[str] = []
        async for event in run:
            if isinstance(event, ToolStarted):  # saved, and not begun
                stored = {c.id: c.status for c in (await store.load(thread)).calls}
                assert stored[event.call.id] == "started"
                assert ("slow", event.call.id, event.call.arguments["s"]) not in tool.made
            if isinstance(event, ToolCompleted):
                order.append(event.call.id)
        assert order == ended
        saved = await read(store, thread, tool, run.result)
        assert [text for _, _, text in saved.results] == ["A", "B"]
        await store.aclose()

    asyncio.run(main())


@pytest.mark.parametrize("execute", ["stream", "end"])
def test_s20_what_is_behind_the_last_call_that_may_run_is_not_saved(execute: str) -> None:
    said = "So " + "".join(f"<note><text>{i}</text></note> and " for i in range(3))
    ran = text_kept(said, DONE, max_calls=1, execute=execute, formats="xml")
    assert (ran.made, ran.text) == ([("note", "0")], "So Done.")
    assert len(ran.results) == 1


@pytest.mark.parametrize("execute", ["stream", "end"])
def test_s20_two_calls_of_three_that_may_run(execute: str) -> None:
    ran = text_kept("<note><text>0</text></note><note><text>1</text></note>", DONE, max_calls=3, execute=execute)
    assert ran.made == [("note", "0"), ("note", "1")]


# ---------------------------------------------------------------- S22: terminating tools


NOTE_ASK_NOTE = "<note><text>x</text></note><ask>q?</ask><note><text>y</text></note>"


@pytest.mark.parametrize("execute", ["stream", "end"])
def test_s22_a_terminating_call_ends_the_run_and_those_behind_it_are_answered(execute: str) -> None:
    ran = text_kept(NOTE_ASK_NOTE, execute=execute, formats="xml")
    assert ran.made == [("note", "x"), ("ask", "q?", None)]
    assert [code for _, code, _ in ran.results] == [None, None, "skipped"]
    assert ran.results[2][2].startswith("not run: terminated")
    assert ran.finish == "agent_terminated"


@pytest.mark.parametrize("quoted", ["`<ask>q?</ask>`", "so:\n```\n<ask>q?</ask>\n```\n"])
def test_s22_a_quoted_call_ends_nothing(quoted: str) -> None:
    ran = text_kept(f"Write {quoted} now.", formats="xml", in_code="ignore")
    assert (ran.made, ran.finish, ran.text) == ([], "stop", f"Write {quoted} now.")


# ---------------------------------------------------------------- S23: broken off


def broken() -> ProviderError:
    return ProviderError("overloaded", kind="overloaded", provider="scripted")


def test_s23_what_was_said_and_done_before_the_error_is_saved() -> None:
    said = f"Let me see. {WHOLE} And"
    ran = text_kept(said, end=[broken()], formats="xml")
    assert ran.made == [("create_file", "a.txt", "line 1\nif a < b:\n")]
    assert (ran.finish, ran.text) == ("ProviderError", "Let me see.  And")
    assert ran.results == [("create_file", None, "done")]


def test_s23_a_native_call_that_was_whole_is_run_and_saved_and_the_error_raised_once() -> None:
    text = arguments(text="a")

    def ways() -> Any:
        for pieces in cuttings(text):
            yield [
                [
                    Text("Let me see."),
                    CallStart(0, "note", "n"),
                    *(ArgumentDelta(0, piece) for piece in pieces),
                    CallEnd(0, ToolCall("n", "note", {"text": "a"}, raw=text)),
                    Text(" And"),
                    broken(),
                ]
            ]

    ran = everyway_kept(ways())
    assert (ran.made, ran.text, ran.finish) == ([("note", "a")], "Let me see. And", "ProviderError")
    assert ran.results == [("note", None, "done")]


@pytest.mark.parametrize("way", ["aclose", "token"])
@best_of_three
def test_s23_left_or_cancelled_while_a_tool_runs(way: str, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        store, tool, token = SQLiteStore(":memory:"), T(), asyncio.Event()
        threads = ThreadManager(store, ToolRegistry(tool))
        thread = await threads.create_thread(messages="Go")
        model = ScriptedModel([["So", ToolCall("s", "slow", {"id": "A", "s": 30.0})]])
        run = threads.run_thread(thread, model=model, cancel=token)
        seen: list[Event] = []
        since = 0.0
        async for event in run:
            seen.append(event)
            if isinstance(event, ToolStarted):
                if way == "aclose":
                    break
                asyncio.get_running_loop().call_later(0.02, token.set)
                since = time.perf_counter() + 0.02
        if way == "aclose":
            since = time.perf_counter()
            await run.aclose()
        assert time.perf_counter() - since < 5
        assert sum(isinstance(e, ToolFailed) for e in seen) == (way == "token")
        saved = await read(store, thread, tool, run.result)
        assert [code for _, code, _ in saved.results] == ["cancelled"]
        assert (saved.finish, saved.text) == ("cancelled", "So")
        again = await threads.run_thread(thread, model=ScriptedModel(["Back."])).complete()
        assert again.text == "Back."
        await store.aclose()

    asyncio.run(main())
    assert caplog.records == []


# ---------------------------------------------------------------- S24: long streams


def many() -> tuple[formats.ToolSpec, ...]:
    """The scenarios' tools and others, 40 in all."""
    registry = ToolRegistry(T())
    others = [formats.ToolSpec(f"tool_{i}", "Do.", {"type": "object"}) for i in range(40 - len(registry.specs()))]
    return (*registry.specs(), *others)


def streamed(size: int) -> tuple[float, list[Event]]:
    """The time to read a file of `size` characters in fours, and its events."""
    body = ("line of code: if a < b and c > d: <b>&amp;\n" * (size // 40))[:size]
    text = f'<create-file file_path="a.txt">{body}</create-file>'
    pieces = [text[i : i + 4] for i in range(0, len(text), 4)]
    parser = formats.Parser(("xml",), many())
    since = time.thread_time()  # of this thread: the machine is shared
    events = [event for piece in pieces for event in parser.feed(piece)] + list(parser.close())
    return time.thread_time() - since, events  # type: ignore[return-value]


@best_of_three
def test_s24_a_long_file_is_read_in_linear_time_and_passed_on_as_it_comes() -> None:
    short = min(streamed(65_536)[0] for _ in range(3))
    long, events = min((streamed(131_072) for _ in range(3)), key=lambda timed: timed[0])
    assert short <= 0.3
    assert long / short <= 2.2 * 1.15  # the machine is shared
    deltas = [e.text for e in events if isinstance(e, ArgumentDelta)]
    [end] = [e for e in events if isinstance(e, CallEnd)]
    assert len(deltas) > 10_000
    assert sum(map(len, deltas)) < 131_072 + 1_000
    assert "".join(deltas).endswith(end.call.arguments["file_contents"])


def test_s24_a_call_is_announced_with_its_opening_tag() -> None:
    parser = formats.Parser(("xml",), many())
    assert any(isinstance(e, CallStart) for e in parser.feed('<create-file file_path="a.txt">'))


# ---------------------------------------------------------------- S25: everything in one response


def test_s25_reasoning_text_and_both_kinds_of_call_are_saved_and_go_back_to_both_providers() -> None:
    ran = everyway_kept(([events, DONE] for events in mixed()), formats="xml")
    assert ran.made == [("create_file", "a.txt", "hi"), ("note", "n")]
    assert ran.text == "Answer Done."
    response = ran.messages[1]
    assert isinstance(response, AssistantMessage)
    assert response.thinking == "I could write <ask>q?</ask>"
    chat = chat_messages(ran.messages, "openai")
    assert [m["role"] for m in chat] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [c["function"]["name"] for c in chat[1]["tool_calls"]] == ["create_file", "note"]
    blocks = anthropic_messages(ran.messages, "anthropic")
    assert [[b["type"] for b in m["content"]] for m in blocks] == [
        ["text"],
        ["text", "tool_use", "tool_use"],
        ["tool_result", "tool_result"],
        ["text"],
    ]
    assert [b["input"] for b in blocks[1]["content"][1:]] == [c.arguments for c in response.calls]


def test_s25_with_native_calls_alone_the_xml_stays_text() -> None:
    ran = everyway_kept(([events, DONE] for events in mixed()), formats=())
    assert ran.made == [("note", "n")]
    assert ran.text == 'Answer <create-file file_path="a.txt">hi</create-file>Done.'


# ---------------------------------------------------------------- the loop


def test_a_call_repeated_again_and_again_ends_the_run() -> None:
    again: list[SourceEvent] = [Text("<ping></ping>"), Finish("stop")]

    async def main() -> None:
        store = SQLiteStore(":memory:")
        ran = await kept(store, [again] * 9, formats="xml", max_repeats=4)
        assert (ran.finish, len(ran.made), len(ran.results)) == ("loop_detected", 4, 4)
        await store.aclose()

    asyncio.run(main())
