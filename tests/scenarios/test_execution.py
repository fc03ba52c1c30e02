"""S20, S21 and S23: order, failures, limits of tools, and responses that break off."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from clock import best_of_three
from scenario_kit import Ran, Res, T, arguments, native, play, played, processor_of, streamed, text

from agentkit.errors import ProviderError
from agentkit.events import CallEnd, Finish, SourceEvent, Text, ToolCompleted, ToolStarted
from agentkit.messages import ImagePart, TextPart, ToolCall
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.result import ToolResult


def calls(*wanted: tuple[str, dict[str, Any]]) -> list[SourceEvent]:
    """A response of native calls."""
    ends = [CallEnd(i, ToolCall(f"call_{i}", name, values)) for i, (name, values) in enumerate(wanted)]
    return [*ends, Finish("tool_calls")]


def order(ran: Ran) -> list[str]:
    """What began and ended, by the tool's id argument."""
    return [
        f"{e.call.arguments['id']} {'starts' if isinstance(e, ToolStarted) else 'ends'}"
        for e in ran.events
        if isinstance(e, ToolStarted | ToolCompleted)
    ]


TWO = calls(("slow", {"id": "A", "s": 0.3}), ("slow", {"id": "B", "s": 0.25}))


def test_s20_parallel_tools_run_beside_each_other() -> None:
    ran = play(TWO, strategy="parallel")
    assert order(ran) == ["A starts", "B starts", "B ends", "A ends"]
    assert [r.text for r in ran.results] == ["A", "B"]


@best_of_three
def test_s20_sequential_tools_run_one_after_the_other() -> None:
    began = time.perf_counter()
    ran = play(TWO, strategy="sequential")
    assert time.perf_counter() - began >= 0.55
    assert order(ran) == ["A starts", "A ends", "B starts", "B ends"]
    assert [r.text for r in ran.results] == ["A", "B"]


@best_of_three
def test_s20_four_plain_functions_of_0_3_seconds_take_about_0_3_seconds() -> None:
    began = time.perf_counter()
    ran = play(calls(*[("wait", {"id": str(i), "s": 0.3}) for i in range(4)]))
    assert time.perf_counter() - began < 0.9  # one after the other they take 1.2
    assert [r.text for r in ran.results] == ["0", "1", "2", "3"]


@pytest.mark.parametrize("execute", ["stream", "end"])
def test_s20_behind_the_last_call_that_may_run_the_response_is_cut(execute: str) -> None:
    three = calls(*[("note", {"text": str(i)}) for i in range(3)])
    for ran in (
        play([Text("So "), *three], max_calls=1, execute=execute),
        native(*[("note", arguments(text=str(i))) for i in range(3)], max_calls=1, execute=execute),
        text("So " + "<note><text>0</text></note> and " * 3, max_calls=1, execute=execute, formats="xml"),
    ):
        assert ran.made == [("note", "0")]
        assert ran.results == [Res("note", None, "done")]
        assert ran.text in ("So ", "")
        assert ran.turn.finish == Finish("tool_limit_reached")


@pytest.mark.parametrize("execute", ["stream", "end"])
def test_s20_a_limit_that_is_not_reached_changes_nothing(execute: str) -> None:
    two = [("note", arguments(text=str(i))) for i in range(2)]
    ran = native(*two, max_calls=3, execute=execute)
    assert ran.made == [("note", "0"), ("note", "1")]
    assert ran.turn.finish.reason == "tool_calls"
    said = "<note><text>0</text></note>" * 2 + " so"
    ran = text(said, max_calls=3, execute=execute, formats="xml")
    assert (len(ran.made), ran.text, ran.turn.finish) == (2, " so", Finish("stop"))


def test_s21_an_exception_is_a_result_and_the_tool_ran_once() -> None:
    ran = native(("boom", "{}"))
    assert ran.made == [("boom",)]
    assert ran.results == [Res("boom", "tool_error", "ValueError: no")]
    in_text = text('<invoke name="boom"></invoke>')
    assert (in_text.made, in_text.results) == (ran.made, ran.results)


def test_s21_a_plain_method_works_off_the_event_loop() -> None:
    tool = T()
    ran = play(calls(("wait", {"id": "x", "s": 0.0})), tool)
    assert ran.results == [Res("wait", None, "x")]
    assert tool.threads != [threading.main_thread().name]


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", (TextPart("text"),)),
        ({"a": 1}, (TextPart('{"a": 1}'),)),
        (None, (TextPart("ok"),)),
        (ToolResult(output="out"), (TextPart("out"),)),
        ([TextPart("see"), ImagePart(url="https://example.org/i.png")], None),
    ],
)
def test_s21_whatever_is_returned_is_normalised(value: Any, content: tuple[Any, ...] | None) -> None:
    def give() -> Any:
        """Give."""
        return value

    ran = play(calls(("give", {})), give)
    assert ran.turn.results[0].content == (tuple(value) if content is None else content)


def test_s21_a_timeout_cancels_the_tool() -> None:
    ran = play(calls(("slow", {"id": "x", "s": 1.0})), timeout=0.1)
    assert [r.error for r in ran.results] == ["timeout"]


def test_s21_ten_megabytes_are_cut_to_the_cap_with_a_note() -> None:
    def flood() -> str:
        """Say much."""
        return "x" * 10_000_000

    [result] = play(calls(("flood", {})), flood).results
    assert len(result.text) <= 100_000
    assert "9,900,052 of 10,000,000 characters left out" in result.text


def test_s23_a_provider_error_after_a_finished_call() -> None:
    async def main() -> tuple[T, Any]:
        tool = T()

        async def source() -> Any:
            async for event in streamed([Text("So "), *calls(("note", {"text": "x"}))[:1]]):
                yield event
            raise ProviderError("overloaded", kind="overloaded", provider="anthropic")

        turn = processor_of(tool).process(source())
        with pytest.raises(ProviderError, match="overloaded"):
            async for _ in turn:
                pass
        return tool, turn

    tool, turn = asyncio.run(main())
    assert tool.made == [("note", "x")]
    assert turn.message.text == "So "
    assert [(r.call_id, r.error) for r in turn.results] == [("call_0", None)]


def test_s23_leaving_after_a_start() -> None:
    async def main() -> Any:
        turn = processor_of(T()).process(streamed(calls(("slow", {"id": "x", "s": 30.0}))))
        async with turn:
            async for event in turn:
                if isinstance(event, Finish):
                    break
        return turn

    began = time.perf_counter()
    turn = asyncio.run(main())
    assert time.perf_counter() - began < 30
    assert [r.error for r in turn.results] == ["cancelled"]


def test_arguments_are_the_same_in_every_strategy() -> None:
    wanted = [("note", arguments(text="1")), ("add", arguments(a=1, b=2))]
    for strategy in ("parallel", "sequential"):
        for execute in ("stream", "end"):
            assert native(*wanted, strategy=strategy, execute=execute).made == [("note", "1"), ("add", 1, 2)]


def test_two_runs_with_their_own_tools_never_cross() -> None:
    async def main() -> tuple[T, T]:
        one, other = T(), T()
        await asyncio.gather(
            *(played(calls(("slow", {"id": str(i), "s": 0.0})), one if i % 2 else other) for i in range(20))
        )
        return one, other

    one, other = asyncio.run(main())
    assert ToolRegistry(one).tools["slow"].instance is one
    assert {int(id) % 2 for _, id, _ in one.made} <= {1}
    assert {int(id) % 2 for _, id, _ in other.made} <= {0}
