"""S16, S22 and S23: calls cut by the token limit, terminating tools, and turns that are cancelled."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from clock import best_of_three
from scenario_kit import Res, T, arguments, assert_paired, cuttings, native, play, processor_of, streamed, text

from agentkit.events import (
    CallEnd,
    Event,
    Finish,
    SourceEvent,
    Text,
    Thinking,
    ToolCompleted,
    ToolFailed,
    ToolSkipped,
    ToolStarted,
    Usage,
)
from agentkit.messages import AssistantMessage, TextPart, ThinkingPart, ToolCall
from agentkit.processor import Turn
from agentkit.processor.inbox import Source

# ---------------------------------------------------------------- S16: the token limit inside a call

BODY = "line 1\nif a < b: <b>&amp;\n" * 2
WHOLE = f'<create-file file_path="a.txt">{BODY}</create-file> Done.'
HERMES = f"""<tool_call>
{{"name": "create_file", "arguments": {arguments(file_path="a.txt", file_contents=BODY)}}}
</tool_call> Done."""
INVOKE = f"""<function_calls>
<invoke name="create_file">
<parameter name="file_path">a.txt</parameter>
<parameter name="file_contents">{BODY}</parameter>
</invoke>
</function_calls> Done."""
TOOL = T()


async def continued(first: Sequence[SourceEvent], *rest: Sequence[SourceEvent], format: str) -> tuple[T, Turn, Any]:
    """A response and its continuations; and what was asked for them."""
    tool, asked, further = TOOL, [], iter(rest)
    tool.made = []

    def more(partial: AssistantMessage) -> Source | None:
        asked.append(partial)
        events = next(further, None)
        return None if events is None else streamed(events)

    turn = processor_of(tool, formats=format).process(streamed(first), more=more)
    seen = [event async for event in turn]
    assert_paired(turn.message, turn.results)
    return tool, turn, (asked, seen)


def cut(said: str) -> list[SourceEvent]:
    return [Text(said), Usage(10, 5), Finish("length")]


def ways(said: str) -> Iterator[list[SourceEvent]]:
    for chunks in cuttings(said):
        yield [*map(Text, chunks), Usage(20, 3), Finish("stop")]


@pytest.mark.parametrize(("format", "whole"), [("xml", WHOLE), ("hermes", HERMES), ("invoke", INVOKE)])
def test_s16_a_call_cut_in_two_is_joined_and_runs_once(format: str, whole: str) -> None:
    async def main() -> None:
        at = whole.index("if a")
        for second in ways(whole[at:]):
            tool, turn, (asked, seen) = await continued(cut(f"So {whole[:at]}"), second, format=format)
            assert tool.made == [("create_file", "a.txt", BODY)]
            assert asked == [AssistantMessage((TextPart(f"So {whole[:at]}"),))]
            assert turn.message.text == "So  Done."
            assert [e for e in seen if isinstance(e, Finish)] == [Finish("stop")]
            assert turn.usage == Usage(30, 8)

    asyncio.run(main())


@pytest.mark.parametrize(("format", "whole"), [("xml", WHOLE), ("hermes", HERMES), ("invoke", INVOKE)])
def test_s16_a_call_that_is_begun_again_is_not_joined_with_its_half(format: str, whole: str) -> None:
    async def main() -> None:
        half = whole[: whole.index("if a")]
        for second in ways(f"\n{whole}"):
            tool, turn, _ = await continued(cut(half), second, format=format)
            assert (tool.made, [r.error for r in turn.results]) == ([], ["truncated_call"])

    asyncio.run(main())


def test_s16_a_call_that_lacked_only_its_end_does_not_run_when_it_is_begun_again() -> None:
    async def main() -> None:
        first, second = cut(HERMES[: HERMES.index("</tool_call>")]), [Text(HERMES), Finish("stop")]
        tool, turn, _ = await continued(first, second, format="hermes")
        assert (tool.made, [r.error for r in turn.results]) == ([], ["truncated_call"])

    asyncio.run(main())


def test_s16_the_first_response_may_be_cut_at_any_place_of_the_call() -> None:
    async def main() -> None:
        exact = 0
        for at in range(1, WHOLE.index("</create-file>") + 14):
            second = [Text(WHOLE[at:]), Finish("stop")]
            tool, turn, _ = await continued(cut(WHOLE[:at]), second, format="xml")
            if tool.made:
                exact += 1
                assert tool.made == [("create_file", "a.txt", BODY)], WHOLE[:at]
            else:  # the text repeats itself: what goes on there may also go back
                assert [r.error for r in turn.results] == ["truncated_call"], WHOLE[:at]
        assert exact > 60

    asyncio.run(main())


def test_s16_more_than_once_and_only_as_long_as_it_is_wanted() -> None:
    async def main() -> None:
        a, b, c = WHOLE[:40], WHOLE[40:60], WHOLE[60:]
        tool, turn, (asked, _) = await continued(cut(a), cut(b), [Text(c), Finish("stop")], format="xml")
        assert [m.text for m in asked] == [a, a + b]
        assert tool.made == [("create_file", "a.txt", BODY)]
        tool, turn, (asked, seen) = await continued(cut(a), cut(b), format="xml")
        assert (tool.made, [r.error for r in turn.results], len(asked)) == ([], ["truncated_call"], 2)
        assert turn.finish == Finish("length")
        assert sum(isinstance(e, Finish) for e in seen) == 1

    asyncio.run(main())


def test_s16_a_model_may_think_before_it_goes_on() -> None:
    async def main() -> None:
        half, rest = WHOLE[:40], WHOLE[40:]
        first: list[SourceEvent] = [Thinking("A file."), *cut(half)]
        second: list[SourceEvent] = [Thinking("Go on."), Text(rest), Finish("stop")]
        tool, turn, (asked, _) = await continued(first, second, format="xml")
        assert asked == [AssistantMessage((ThinkingPart("A file."), TextPart(half)))]
        assert tool.made == [("create_file", "a.txt", BODY)]
        assert turn.message.thinking == "A file.Go on."

    asyncio.run(main())


@pytest.mark.parametrize("said", ["So it ends", "<ping></ping> and\n"])
def test_s16_text_without_an_open_call_is_not_continued(said: str) -> None:
    _, turn, (asked, _) = asyncio.run(continued(cut(said), [Text("x")], format="xml"))
    assert (asked, turn.finish) == ([], Finish("length"))


def test_s16_a_native_call_that_was_cut_is_answered_as_cut() -> None:
    ran = native(("create_file", '{"file_path": "a.txt", "file_con'), finish="length")
    assert (ran.made, [r.error for r in ran.results]) == ([], ["truncated_call"])


# ---------------------------------------------------------------- S22: terminating tools


NOTE_ASK_NOTE = [("note", arguments(text="x")), ("ask", arguments(text="q?")), ("note", arguments(text="y"))]
SKIPPED = Res("note", "skipped", "not run: terminated by the call of ask before it")


@pytest.mark.parametrize("strategy", ["parallel", "sequential"])
@pytest.mark.parametrize("execute", ["stream", "end"])
def test_s22_behind_a_terminating_call_nothing_runs(strategy: str, execute: str) -> None:
    written = "<note><text>x</text></note> <ask>q?</ask> <note><text>y</text></note> and more"
    for ran in (
        native(*NOTE_ASK_NOTE, strategy=strategy, execute=execute),
        text(written, strategy=strategy, execute=execute, formats="xml"),
    ):
        assert ran.made == [("note", "x"), ("ask", "q?", None)]
        assert ran.results == [Res("note", None, "done"), Res("ask", None, "done"), SKIPPED]
        assert ran.turn.terminated
    assert ran.text == " and more"


@pytest.mark.parametrize("quoted", ["`<ask>q?</ask>`", "so:\n```\n<ask>q?</ask>\n```\n"])
def test_s22_a_quoted_tag_does_not_terminate(quoted: str) -> None:
    ran = text(f"Write {quoted} now.\n<note><text>x</text></note>", formats="xml", in_code="ignore")
    assert (ran.made, ran.turn.terminated) == ([("note", "x")], False)


def test_s22_a_terminating_call_that_cannot_run_ends_nothing() -> None:
    ran = native(("ask", "{}"), ("note", arguments(text="x")))
    assert ran.made == [("note", "x")]
    assert ([r.error for r in ran.results], ran.turn.terminated) == (["invalid_arguments", None], False)


def test_s22_an_unreadable_call_behind_it_is_skipped_too() -> None:
    ran = native(("complete", "{}"), ("note", '{"text": "a'))
    assert [r.error for r in ran.results] == [None, "skipped"]


@pytest.mark.parametrize("execute", ["end", "stream"])
def test_s22_an_earlier_call_that_is_complete_later_still_runs(execute: str) -> None:
    ends = [CallEnd(i, ToolCall(f"c{i}", n, a)) for i, (n, a) in enumerate([("note", {"text": "x"}), ("complete", {})])]
    starts = [e for e in native(*NOTE_ASK_NOTE[:2]).events if type(e).__name__ == "CallStart"]
    ran = play([*starts, ends[1], ends[0], Finish("tool_calls")], execute=execute)  # type: ignore[list-item]
    assert sorted(ran.made) == [("complete",), ("note", "x")]
    assert ran.turn.terminated


# ---------------------------------------------------------------- S23: cancelled from outside


class Stubborn:
    """Tools that let go in their own time."""

    def __init__(self) -> None:
        self.let_go = 0.0

    async def hang(self) -> str:
        """Hang, and take a moment to clean up."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.02)
            self.let_go = time.perf_counter()
            raise
        return "never"

    async def quick(self) -> str:
        """Be quick."""
        return "done"


def endless(*wanted: str) -> Any:
    """A response that never ends behind its calls."""

    async def source() -> Any:
        for i, name in enumerate(wanted):
            yield CallEnd(i, ToolCall(f"c{i}", name))
        await asyncio.Event().wait()

    return source()


@pytest.mark.parametrize("strategy", ["parallel", "sequential"])
@best_of_three
def test_s23_cancel_while_the_consumer_waits(strategy: str) -> None:
    async def main() -> None:
        tool = Stubborn()
        registry = [tool.hang, tool.quick]
        processor = processor_of(tuple(registry), strategy=strategy, execute="stream")
        turn = processor.process(endless("quick", "hang", "quick"))
        asyncio.get_running_loop().call_later(0.05, turn.cancel)
        seen: list[Event] = [event async for event in turn]
        assert time.perf_counter() - tool.let_go < 5
        assert turn.finish == Finish("cancelled")
        third = None if strategy == "parallel" else "cancelled"
        assert [r.error for r in turn.results] == [None, "cancelled", third]
        assert [e.index for e in seen if isinstance(e, ToolFailed)] == [1]
        assert [e.index for e in seen if isinstance(e, ToolSkipped)] == ([] if third is None else [2])

    asyncio.run(main())


@pytest.mark.parametrize("stop_at", [CallEnd, ToolStarted, ToolCompleted, Text])
def test_s23_cancel_at_any_event_ends_the_iteration_in_good_order(stop_at: type) -> None:
    async def main() -> None:
        tool = T()
        said = [Text("So "), CallEnd(0, ToolCall("c0", "note", {"text": "x"})), Text("and"), Finish("tool_calls")]
        turn = processor_of(tool).process(streamed(said))
        async for event in turn:
            if isinstance(event, stop_at):
                turn.cancel()
                turn.cancel()
        assert turn.finish == Finish("cancelled")
        assert_paired(turn.message, turn.results)
        assert tool.made == ([("note", "x")] if stop_at is ToolCompleted else [])

    asyncio.run(main())


def test_s23_a_turn_that_was_cancelled_before_it_began_reads_nothing() -> None:
    async def main() -> None:
        turn = processor_of(tool := T()).process([CallEnd(0, ToolCall("c0", "note", {"text": "x"}))])
        turn.cancel()
        assert [event async for event in turn] == []
        assert (turn.finish, turn.results, tool.made) == (Finish("cancelled"), (), [])

    asyncio.run(main())


def test_s23_a_tool_may_cancel_its_own_turn() -> None:
    async def main() -> None:
        turns: list[Turn] = []

        async def stop() -> str:
            """Stop all."""
            turns[0].cancel()
            await asyncio.sleep(0)
            return "never"

        turns.append(processor_of(stop, execute="stream").process(endless("stop")))
        async for _ in turns[0]:
            pass
        assert [r.error for r in turns[0].results] == ["cancelled"]

    asyncio.run(main())


# ---------------------------------------------------------------- what a journal can rely on


def test_an_answer_is_there_with_its_event_and_the_message_says_what_was_said() -> None:
    async def main() -> None:
        said = "A <note><text>x</text></note> B <note><text>y</text></note> C"
        turn = processor_of(T(), formats="xml").process([Text(said), Finish("stop")])
        seen: list[str] = []
        async for event in turn:
            if isinstance(event, CallEnd):
                seen.append("".join(p.text if isinstance(p, TextPart) else "#" for p in turn.message.content))
                assert turn.answer(event.index) is None
            if isinstance(event, ToolCompleted):
                answer = turn.answer(event.index)
                assert answer is not None
                assert (answer.call_id, answer.text) == (event.call.id, "done")
        assert seen == ["A #", "A # B #"]
        assert turn.message.text == "A  B  C"
        assert turn.answer(2) is None

    asyncio.run(main())
