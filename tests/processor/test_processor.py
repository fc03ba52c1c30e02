"""What becomes of calls: run once, answered once, in order; whatever tools, sources and consumers do."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import gc
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Annotated, Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator

from agentkit.errors import ConfigError, FormatError, ProviderError
from agentkit.events import (
    ArgumentDelta,
    CallEnd,
    CallError,
    CallStart,
    Event,
    Finish,
    Markup,
    ProviderBlock,
    SourceEvent,
    Text,
    Thinking,
    ToolCompleted,
    ToolFailed,
    ToolSkipped,
    ToolStarted,
    Usage,
)
from agentkit.messages import (
    AssistantMessage,
    ImagePart,
    MarkupPart,
    ProviderPart,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit.processor import ProcessorConfig, ResponseProcessor, Turn, inbox, tooltask
from agentkit.processor.tool_run import run_tool
from agentkit.processor.workers import Workers
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.result import ToolContext, ToolResult

V = TypeVar("V")


# ---------------------------------------------------------------- tools and sources


async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def echo(text: str) -> str:
    """Say it again."""
    return text


def shout(text: str) -> str:
    """Say it louder, as a plain function."""
    return text.upper()


def call(name: str, id: str = "", /, index: int = 0, **arguments: Any) -> CallEnd:
    return CallEnd(index, ToolCall(id, name, arguments))


def calls(*ends: CallEnd) -> list[SourceEvent]:
    """Calls one after the other, numbered, with ids a, b, c, and so on."""
    return [CallEnd(i, ToolCall("abcdefghij"[i], e.call.name, e.call.arguments)) for i, e in enumerate(ends)]


async def streamed(events: Iterable[SourceEvent | Exception]) -> AsyncIterator[SourceEvent]:
    for event in events:
        await asyncio.sleep(0)
        if isinstance(event, Exception):
            raise event
        yield event


def processor(*tools: Any, **config: Any) -> ResponseProcessor:
    return ResponseProcessor(ToolRegistry(*tools), ProcessorConfig(**config))


def run(main: Coroutine[Any, Any, V]) -> V:
    return asyncio.run(main)


def play(
    events: Iterable[SourceEvent | Exception], *tools: Any, context: dict[str, Any] | None = None, **config: Any
) -> tuple[Turn, list[Event]]:
    """A response to its end: its turn and its events."""

    async def main() -> tuple[Turn, list[Event]]:
        made = ResponseProcessor(ToolRegistry(*tools), ProcessorConfig(**config), context=context or {})
        turn = made.process(streamed(events))
        return turn, [event async for event in turn]

    return run(main())


def said(turn: Turn) -> list[tuple[str | None, str]]:
    """Each result's code and text."""
    return [(result.error, result.text) for result in turn.results]


def result_of(tool: Callable[..., Any], **config: Any) -> ToolMessage:
    """The result of calling this one tool, without arguments."""
    turn, _ = play(calls(call(tool.__name__)), tool, **config)
    [result] = turn.results
    return result


# ---------------------------------------------------------------- a turn


def test_a_call_from_its_start_to_its_result() -> None:
    wanted = ToolCall("x", "add", {"a": 1, "b": 2}, None, '{"a":1,"b":2}')
    turn, events = play(
        [
            Text("Sum: "),
            CallStart(0, "add", "x"),
            ArgumentDelta(0, '{"a":1,"b":2}'),
            CallEnd(0, wanted),
            Usage(10, 5),
            Finish("tool_calls", "tool_calls"),
        ],
        add,
    )
    seconds = next(e.seconds for e in events if isinstance(e, ToolCompleted))
    assert [e for e in events if not isinstance(e, Usage | Finish)] == [
        Text("Sum: "),
        CallStart(0, "add", "x"),
        ArgumentDelta(0, '{"a":1,"b":2}'),
        CallEnd(0, wanted),
        ToolStarted(0, wanted),
        ToolCompleted(0, wanted, ToolResult(3), seconds),
    ]
    assert turn.message == AssistantMessage((TextPart("Sum: "), wanted))
    assert turn.results == (ToolMessage("x", "add", (TextPart("3"),)),)
    assert turn.usage == Usage(10, 5)
    assert turn.finish == Finish("tool_calls", "tool_calls")


def test_events_may_come_from_a_plain_list() -> None:
    async def main() -> Turn:
        turn = processor(add).process([call("add", "x", a=1, b=2)])
        assert [type(e) async for e in turn] == [CallEnd, ToolStarted, ToolCompleted]
        return turn

    assert said(run(main())) == [(None, "3")]


def test_a_turn_is_iterated_once() -> None:
    async def main() -> None:
        turn = processor(add).process([Text("hi")])
        assert [e async for e in turn] == [Text("hi")]
        with pytest.raises(RuntimeError, match="iterated before"):
            async for _ in turn:
                pass

    run(main())


def test_the_message_joins_what_belongs_together() -> None:
    signed = {"signature": "s"}
    turn, _ = play(
        [
            Thinking("let "),
            Thinking("me"),
            ProviderBlock("anthropic", signed, thinking=True),
            ProviderBlock("anthropic", {"redacted": 1}, thinking=True),
            Text("a"),
            Text("b"),
            Markup("\n"),
            ProviderBlock("anthropic", {"type": "server_tool_use"}),
            Text("c"),
        ]
    )
    assert turn.message.content == (
        ThinkingPart("let me", "anthropic", signed),
        ThinkingPart("", "anthropic", {"redacted": 1}),
        TextPart("ab"),
        MarkupPart("\n"),
        ProviderPart("anthropic", {"type": "server_tool_use"}),
        TextPart("c"),
    )


def test_a_call_stands_where_it_began() -> None:
    a, b = ToolCall("a", "echo", {"text": "1"}), ToolCall("b", "echo", {"text": "2"})
    turn, _ = play(
        [CallStart(0, "echo", "a"), Text("x"), CallStart(1, "echo", "b"), CallEnd(1, b), CallEnd(0, a)], echo
    )
    assert turn.message.content == (a, TextPart("x"), b)
    assert [r.text for r in turn.results] == ["1", "2"]


# ---------------------------------------------------------------- ids


def test_a_text_call_gets_an_id_that_every_provider_accepts() -> None:
    turn, events = play(
        [Text('<invoke name="echo"><parameter name="text">x</parameter></invoke>')], echo, formats="invoke"
    )
    [made] = turn.message.calls
    assert len(made.id) == 9
    assert made.id.isalnum()
    assert next(e for e in events if isinstance(e, CallStart)).id == made.id


def test_ids_are_unique_over_the_turns_of_a_run() -> None:
    async def main() -> list[str]:
        made = processor(echo)
        seen = []
        for _ in range(2):
            turn = made.process([CallStart(0, "echo", "call_0"), call("echo", "call_0", text="x")])
            async for _ in turn:
                pass
            [result] = turn.results
            seen.append(result.call_id)
        return seen

    first, second = run(main())
    assert first == "call_0"
    assert second != first


def test_a_source_of_ids_that_raises_ends_the_turn_with_its_error() -> None:
    def no_id() -> str:
        raise LookupError("no more ids")

    async def main() -> None:
        turn = ResponseProcessor(ToolRegistry(echo), new_id=no_id).process(
            [CallStart(0, "echo"), call("echo", index=1)]
        )
        async with turn:
            async for _ in turn:
                pass

    with pytest.raises(LookupError, match="no more ids"):
        run(asyncio.wait_for(main(), 30))


# ---------------------------------------------------------------- one answer each, in call order


def test_results_come_in_call_order_whatever_ends_first() -> None:
    async def main() -> tuple[list[str], list[str]]:
        first_may_end = asyncio.Event()

        async def slow() -> str:
            """Wait for the other."""
            await first_may_end.wait()
            return "slow"

        async def fast() -> str:
            """End at once."""
            first_may_end.set()
            return "fast"

        turn = processor(slow, fast).process(streamed(calls(call("slow"), call("fast"))))
        ended = [e.call.name async for e in turn if isinstance(e, ToolCompleted)]
        return ended, [r.text for r in turn.results]

    assert run(main()) == (["fast", "slow"], ["slow", "fast"])


def test_sequential_tools_begin_when_those_before_have_ended() -> None:
    order: list[str] = []

    async def step(name: str) -> None:
        """Take a step."""
        order.append(f"{name} begins")
        await asyncio.sleep(0)
        order.append(f"{name} ends")

    _, events = play(calls(call("step", name="a"), call("step", name="b")), step, strategy="sequential")
    assert order == ["a begins", "a ends", "b begins", "b ends"]
    assert [type(e) for e in events if not isinstance(e, CallEnd)] == [ToolStarted, ToolCompleted] * 2


def test_nothing_runs_before_the_response_is_over() -> None:
    _, events = play([*calls(call("echo", text="x")), Text("more"), Finish("stop")], echo)
    assert [type(e) for e in events] == [CallEnd, Text, Finish, ToolStarted, ToolCompleted]


@pytest.mark.parametrize(
    ("events", "config", "complete"),
    [
        ([call("echo", "x", text="x"), Finish("stop")], {}, [ToolCompleted]),
        (calls(call("echo", text="x"), call("echo", text="y")), {}, [ToolCompleted]),
        (calls(call("echo", text="x"), call("nope")), {"requires_approval": True}, []),
        ([call("nope"), Finish("stop")], {}, []),
    ],
)
def test_a_turn_is_complete_with_the_last_answer_behind_the_end_of_the_response(
    events: list[SourceEvent], config: dict[str, Any], complete: list[type]
) -> None:
    async def main() -> list[type]:
        turn = processor(echo, **config).process(streamed(events))
        return [type(event) async for event in turn if turn.complete]

    assert run(main()) == complete


def test_with_execute_stream_a_result_does_not_wait_for_the_response() -> None:
    async def main() -> list[type]:
        done = asyncio.Event()

        async def source() -> AsyncIterator[SourceEvent]:
            yield call("echo", "x", text="x")
            await done.wait()
            yield Finish("stop")

        kinds = []
        async for event in processor(echo, execute="stream").process(source()):
            kinds.append(type(event))
            if isinstance(event, ToolCompleted):
                done.set()
        return kinds

    assert run(main()) == [CallEnd, ToolStarted, ToolCompleted, Finish]


def test_a_tool_starts_only_when_its_start_was_seen() -> None:
    ran: list[bool] = []

    async def act() -> None:
        """Have an effect."""
        ran.append(True)

    async def main() -> None:
        async for event in processor(act).process(streamed(calls(call("act")))):
            if isinstance(event, ToolStarted):
                for _ in range(10):
                    await asyncio.sleep(0)
                assert ran == []

    run(main())
    assert ran == [True]


# ---------------------------------------------------------------- calls that do not run


def test_an_unknown_tool_is_answered_with_what_there_is() -> None:
    turn, events = play(calls(call("ad", a=1, b=2)), add, echo)
    assert said(turn) == [("unknown_tool", "there is no tool 'ad'; did you mean 'add'? The tools are: add, echo")]
    assert isinstance(events[-1], ToolFailed)


def test_a_name_that_only_looks_alike_never_runs() -> None:
    turn, _ = play(calls(call("аdd", a=1, b=2), call("ADD", a=1, b=2)), add)  # noqa: RUF001 - Cyrillic
    assert [r.error for r in turn.results] == ["unknown_tool", "unknown_tool"]


def test_a_call_without_tools_is_told_so() -> None:
    turn, _ = play(calls(call("x" * 100_000)))
    [(code, text)] = said(turn)
    assert code == "unknown_tool"
    assert "there are no tools here" in text
    assert len(text) < 250


def test_invalid_arguments_name_the_field_what_was_expected_and_what_came() -> None:
    turn, _ = play(calls(call("add", a="x", b=2)), add)
    [(code, text)] = said(turn)
    assert code == "invalid_arguments"
    assert "/a" in text
    assert "integer" in text
    assert '"x"' in text


@pytest.mark.parametrize("name", ["self", "__class__", "kwargs", "_private"])
def test_only_declared_parameters_reach_the_tool(name: str) -> None:
    turn, _ = play(calls(call("echo", text="x", **{name: 1})), echo)
    assert [r.error for r in turn.results] == ["invalid_arguments"]


def test_a_damaged_call_is_answered_with_its_own_code() -> None:
    damaged = CallError(0, "invalid_json", "expected ',' at position 7", ToolCall("a", "add", raw='{"a": 1 "b"'), 7)
    turn, events = play([damaged], add)
    assert said(turn) == [("invalid_json", "expected ',' at position 7")]
    assert turn.message.calls == (damaged.call,)
    assert isinstance(events[-1], ToolFailed)


def test_ten_thousand_calls_run_64() -> None:
    ran: list[int] = []

    async def count() -> None:
        """Count."""
        ran.append(1)

    turn, _ = play([CallEnd(i, ToolCall(str(i), "count")) for i in range(10_000)], count)
    assert len(ran) == len(turn.results) == len(turn.message.calls) == 64
    assert turn.finish == Finish("tool_limit_reached")


def test_a_native_call_is_denied_where_native_calls_are_off() -> None:
    turn, events = play(calls(call("echo", text="x")), echo, native=False, formats="hermes")
    assert said(turn) == [("denied", "not run: native calls are turned off; write the call in your text, as hermes")]
    assert isinstance(events[-1], ToolSkipped)


# ---------------------------------------------------------------- what tools do


def raising(error: BaseException, *, is_async: bool) -> Callable[[], Any]:
    """A tool `fail` that raises this."""

    async def fail() -> str:
        raise error

    def plain() -> str:
        raise error

    plain.__name__ = "fail"
    return fail if is_async else plain


class Panic(BaseException):
    """What native extensions raise."""


@pytest.mark.parametrize("is_async", [True, False], ids=["async", "plain"])
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no"), "ValueError: no"),
        (ValueError(), "ValueError"),
        (SystemExit(2), "SystemExit: 2"),
        (asyncio.CancelledError(), "CancelledError"),
        (GeneratorExit(), "GeneratorExit"),
        (Panic("at the disco"), "Panic: at the disco"),
        (
            ExceptionGroup("two", [ValueError("a"), KeyError("b")]),
            "ExceptionGroup: two (2 sub-exceptions): ValueError: a; KeyError: 'b'",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_whatever_a_tool_raises_is_its_result(error: BaseException, text: str, is_async: bool) -> None:
    turn, _ = play(calls(call("fail"), call("echo", text="still here")), raising(error, is_async=is_async), echo)
    assert said(turn) == [("tool_error", text), (None, "still here")]


@pytest.mark.parametrize("error", [GeneratorExit(), SystemExit(2), asyncio.CancelledError()], ids=repr)
def test_what_an_async_tool_raises_is_not_said_twice(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    result_of(raising(error, is_async=True))
    gc.collect()
    assert [record.name for record in caplog.records] == ["agentkit.processor.tools"]


def test_a_tool_that_is_thrown_away_while_it_waits_has_raised_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    async def main() -> None:
        task = asyncio.create_task(run_tool(ToolRegistry(wait).tools["wait"], {}, None, None))
        await asyncio.sleep(0)
        waiting: Any = task.get_coro()
        waiting.close()
        task.cancel()
        with suppress(BaseException):
            await task

    run(main())
    assert caplog.text == ""


@pytest.mark.parametrize("error", [SystemExit(2), GeneratorExit(), asyncio.CancelledError(), Panic(), KeyError("x")])
def test_whatever_a_validator_raises_is_the_calls_result(error: BaseException) -> None:
    def refuse(value: int) -> int:
        raise error

    def fail(n: Annotated[int, AfterValidator(refuse)]) -> None: ...

    turn, _ = play(calls(call("fail", n=1), call("echo", text="still here")), fail, echo)
    assert [code for code, _ in said(turn)] == ["tool_error", None]
    assert type(error).__name__ in str(said(turn)[0][1])


@pytest.mark.parametrize("error", [StopIteration("x"), KeyboardInterrupt("x")])
def test_what_a_coroutine_cannot_raise_is_a_result_all_the_same(error: BaseException) -> None:
    message = result_of(raising(error, is_async=False))
    assert (message.error, message.text) == ("tool_error", f"{type(error).__name__}: x")


def test_the_operators_interrupt_passes_through_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async for _ in processor(raising(KeyboardInterrupt(), is_async=True)).process(streamed(calls(call("fail")))):
            pass

    with pytest.raises(KeyboardInterrupt):
        run(main())
    gc.collect()
    assert caplog.text == ""


def test_an_exception_without_words() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    assert result_of(raising(Mute(), is_async=True)).text == "Mute"


def test_where_an_exception_was_raised_is_kept_for_the_application() -> None:
    _, events = play(calls(call("fail")), raising(ValueError("no"), is_async=False))
    failed = next(e for e in events if isinstance(e, ToolFailed))
    assert "in plain" in failed.result.metadata["traceback"]


def test_an_error_result_passes_as_it_is() -> None:
    async def refuse() -> ToolResult:
        """Refuse."""
        return ToolResult(error="no such user", code="denied")

    message = result_of(refuse)
    assert (message.error, message.text) == ("denied", "no such user")


PNG = ImagePart(data=b"\x89PNG")


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", (TextPart("text"),)),
        ({"a": [1, None]}, (TextPart('{"a": [1, null]}'),)),
        (None, (TextPart("ok"),)),
        (3.5, (TextPart("3.5"),)),
        (ToolResult("out"), (TextPart("out"),)),
        ([TextPart("see"), PNG], (TextPart("see"), PNG)),
    ],
)
def test_whatever_a_tool_returns_is_read_as_text_or_parts(value: Any, content: tuple[Any, ...]) -> None:
    def give() -> Any:
        """Give."""
        return value

    assert result_of(give).content == content


def test_a_long_output_is_cut_in_the_middle_and_says_so() -> None:
    def flood() -> str:
        """Say much."""
        return "a" * 5_000_000 + "b" * 5_000_000

    text = result_of(flood, max_output=1000).text
    assert len(text) <= 1000
    assert text.startswith("a" * 400)
    assert text.endswith("b" * 400)
    assert "9,999,052 of 10,000,000 characters left out" in text


def test_the_event_keeps_the_whole_output() -> None:
    async def flood() -> str:
        """Say much."""
        return "a" * 5000

    _, events = play(calls(call("flood")), flood, max_output=200)
    assert next(e for e in events if isinstance(e, ToolCompleted)).result.output == "a" * 5000


def test_of_many_parts_the_images_stay() -> None:
    async def pages() -> list[Any]:
        """Show."""
        return ["a" * 150, PNG, "b" * 5000, PNG, "c"]

    content = result_of(pages, max_output=250).content
    assert [type(p) for p in content].count(ImagePart) == 2
    assert sum(len(p.text) for p in content if isinstance(p, TextPart)) <= 250


def test_what_the_application_passes_reaches_the_tool() -> None:
    def whoami(context: ToolContext) -> str:
        """Say who."""
        return f"{context.state['user']} {context.call_id} {context.name}"

    turn, _ = play(calls(call("whoami")), whoami, context={"user": "ann"})
    assert said(turn) == [(None, "ann a whoami")]


# ---------------------------------------------------------------- threads


def test_plain_functions_run_beside_each_other_off_the_event_loop() -> None:
    together = threading.Barrier(4, timeout=30)
    threads: set[str] = set()

    def meet() -> str:
        """Wait until four are here."""
        together.wait()
        threads.add(threading.current_thread().name)
        return "met"

    turn, _ = play(calls(*[call("meet")] * 4), meet)
    assert said(turn) == [(None, "met")] * 4
    assert threading.main_thread().name not in threads


def test_the_event_loop_goes_on_while_a_plain_function_works() -> None:
    async def main() -> Turn:
        released = threading.Event()

        def wait() -> str:
            """Wait."""
            return "released" if released.wait(30) else "never"

        turn = processor(wait).process(streamed(calls(call("wait"))))
        async for event in turn:
            if isinstance(event, ToolStarted):
                asyncio.get_running_loop().call_later(0, released.set)
        return turn

    assert said(run(main())) == [(None, "released")]


def test_a_plain_function_may_return_a_coroutine() -> None:
    def later() -> Any:
        """Give a coroutine."""
        return echo("from the loop")

    assert result_of(later).text == "from the loop"


WHO: contextvars.ContextVar[str] = contextvars.ContextVar("WHO")


def test_context_variables_reach_both_kinds_of_tools() -> None:
    async def on_the_loop() -> str:
        """Read."""
        return WHO.get()

    def in_a_thread() -> str:
        """Read."""
        return WHO.get()

    async def main() -> Turn:
        WHO.set("me")
        turn = processor(on_the_loop, in_a_thread).process(streamed(calls(call("on_the_loop"), call("in_a_thread"))))
        async for _ in turn:
            pass
        return turn

    assert said(run(main())) == [(None, "me"), (None, "me")]


def test_threads_are_reused_and_bounded() -> None:
    async def main() -> tuple[set[str], int]:
        pool = Workers(limit=2)
        names = await asyncio.gather(*(pool.run(lambda: threading.current_thread().ident) for _ in range(50)))
        return set(names), pool._threads

    names, threads = run(main())
    assert len(names) <= 2
    assert threads <= 2


def test_idle_threads_end() -> None:
    async def main() -> Workers:
        pool = Workers(idle=0.001)
        await pool.run(lambda: None)
        return pool

    pool = run(main())
    for _ in range(1000):
        if not pool._threads:
            break
        threading.Event().wait(0.01)
    assert pool._threads == 0


def test_a_tool_that_never_returns_does_not_hold_up_the_exit() -> None:
    script = """
import asyncio, threading
from agentkit.events import CallEnd
from agentkit.messages import ToolCall
from agentkit.processor import ProcessorConfig, ResponseProcessor
from agentkit.tool import ToolRegistry

def stuck() -> str:
    "Never return."
    threading.Event().wait()

async def main():
    processor = ResponseProcessor(ToolRegistry(stuck), ProcessorConfig(timeout=0.01))
    turn = processor.process([CallEnd(0, ToolCall("a", "stuck"))])
    async for _ in turn:
        pass
    print(turn.results[0].error)

asyncio.run(main())
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert (ran.stdout, ran.stderr) == ("timeout\n", "")


# ---------------------------------------------------------------- timeouts


def test_an_async_tool_is_cancelled_at_its_timeout() -> None:
    cleaned: list[bool] = []

    async def hang() -> None:
        """Hang."""
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append(True)

    message = result_of(hang, timeout=0.01)
    assert (message.error, message.text) == ("timeout", "no result after 0.01 s: the tool was stopped")
    assert cleaned == [True]


def test_a_plain_tool_lets_go_of_its_caller_at_its_timeout() -> None:
    never = threading.Event()

    def hang() -> None:
        """Hang."""
        never.wait(30)

    message = result_of(hang, timeout=0.5)  # long enough for a thread to begin on a busy machine
    never.set()
    assert message.error == "timeout"
    assert "may still be running" in message.text


def test_a_tools_own_timeout_counts() -> None:
    async def hang() -> None:
        """Hang."""
        await asyncio.Event().wait()

    async def main() -> Turn:
        registry = ToolRegistry()
        registry.register_function(hang, timeout=0.01)
        turn = ResponseProcessor(registry, ProcessorConfig(timeout=None)).process(calls(call("hang")))
        async for _ in turn:
            pass
        return turn

    assert [r.error for r in run(main()).results] == ["timeout"]


def test_a_tool_that_ignores_its_cancellation_is_answered_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tooltask, "GRACE", 0.01)

    async def main() -> Turn:
        release = asyncio.Event()

        async def stubborn() -> None:
            """Go on."""
            while not release.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await release.wait()

        turn = processor(stubborn, timeout=0.01).process(calls(call("stubborn")))
        async for _ in turn:
            pass
        release.set()
        await asyncio.sleep(0)
        return turn

    assert [r.error for r in run(main()).results] == ["timeout"]


# ---------------------------------------------------------------- a source that fails


BROKEN = ProviderError("connection lost", kind="connection", provider="openai")


def test_a_broken_response_keeps_what_it_brought_and_raises_once() -> None:
    async def main() -> Turn:
        turn = processor(echo).process(
            streamed(
                [Text("So "), call("echo", "a", text="x"), CallStart(1, "echo", "b"), ArgumentDelta(1, '{"te'), BROKEN]
            )
        )
        with pytest.raises(ProviderError, match="connection lost"):
            async for _ in turn:
                pass
        await turn.aclose()
        return turn

    turn = run(main())
    assert turn.message.content == (
        TextPart("So "),
        ToolCall("a", "echo", {"text": "x"}),
        ToolCall("b", "echo", {}, None, '{"te'),
    )
    assert [r.error for r in turn.results] == [None, "truncated_call"]
    assert turn.finish == Finish("error")


def test_tools_at_work_when_the_response_breaks_come_to_their_end() -> None:
    async def main() -> tuple[Turn, list[Event]]:
        broken = asyncio.Event()

        async def work() -> str:
            """Work until the source has failed, and longer."""
            await broken.wait()
            return "worked"

        async def source() -> AsyncIterator[SourceEvent]:
            yield call("work", "a")
            await asyncio.sleep(0)
            broken.set()
            raise BROKEN

        turn = processor(work, execute="stream").process(source())
        seen: list[Event] = []
        with contextlib.suppress(ProviderError):
            async for event in turn:
                seen.append(event)  # noqa: PERF401 - a comprehension would lose them with the error
        return turn, seen

    turn, seen = run(main())
    assert said(turn) == [(None, "worked")]
    assert isinstance(seen[-1], ToolCompleted)


def test_a_text_call_in_a_broken_response_never_runs() -> None:
    async def main() -> Turn:
        turn = processor(echo, formats="invoke").process(
            streamed([Text('<invoke name="echo"><parameter name="text">half'), BROKEN])
        )
        with pytest.raises(ProviderError):
            async for _ in turn:
                pass
        return turn

    assert [r.error for r in run(main()).results] == ["truncated_call"]


def test_a_fault_in_the_source_is_raised_as_it_is() -> None:
    with pytest.raises(KeyError):
        play([Text("x"), KeyError("choices")])


def test_a_source_of_something_else_is_refused_in_words() -> None:
    with pytest.raises(TypeError, match=r"events such as Text\('hi'\); found str 'hello'"):
        play(["hello"])  # type: ignore[list-item]


def test_a_source_that_cancels_itself_is_a_failed_source() -> None:
    async def source() -> AsyncIterator[SourceEvent]:
        yield Text("x")
        raise asyncio.CancelledError

    async def main() -> None:
        async for _ in processor().process(source()):
            pass

    with pytest.raises(ProviderError, match="cancelled itself"):
        run(main())


# ---------------------------------------------------------------- a consumer that leaves


class Hanging:
    """A tool that hangs until it is cancelled."""

    def __init__(self) -> None:
        self.cancelled = False

    async def hang(self) -> None:
        """Hang."""
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise


CANCELLED = ("cancelled", "cancelled while it ran: what it had done by then may have taken effect")
NOT_BEGUN = ("cancelled", "not run: the run was cancelled before this call started")


def test_leaving_cancels_the_tools_at_work_and_answers_every_call() -> None:
    async def main() -> tuple[Turn, Hanging]:
        tool = Hanging()
        turn = processor(tool.hang, echo).process(
            streamed([*calls(call("hang"), call("echo", text="x")), Text("never read" * 100)])
        )
        async with turn:
            async for event in turn:
                if isinstance(event, ToolStarted) and event.call.name == "echo":
                    break
        return turn, tool

    turn, tool = run(main())
    assert tool.cancelled
    assert said(turn) == [CANCELLED, NOT_BEGUN]
    assert [c.id for c in turn.message.calls] == ["a", "b"]


def test_leaving_right_after_a_start_means_that_nothing_ran() -> None:
    async def main() -> Turn:
        turn = processor(echo).process(streamed(calls(call("echo", text="x"))))
        events = aiter(turn)
        async for event in events:
            if isinstance(event, ToolStarted):
                await turn.aclose()
        return turn

    assert said(run(main())) == [NOT_BEGUN]


def test_a_call_that_is_cancelled_when_its_start_is_seen_is_skipped() -> None:
    async def main() -> list[tuple[str, str]]:
        told = []
        turn = processor(echo).process([*calls(*[call("echo", text=text) for text in "xy"]), Finish("tool_calls")])
        async for event in turn:
            if isinstance(event, ToolStarted | ToolSkipped | ToolFailed | ToolCompleted):
                told.append((type(event).__name__, event.call.arguments["text"]))
            if told[-1:] == [("ToolStarted", "y")]:
                turn.cancel()
        assert said(turn) == [(None, "x"), NOT_BEGUN]
        assert turn.skipped_ids == {turn.message.calls[1].id}
        return told

    told = run(main())
    assert sorted(told) == [("ToolCompleted", "x"), ("ToolSkipped", "y"), ("ToolStarted", "x"), ("ToolStarted", "y")]


def test_leaving_without_a_block_ends_the_turn_too() -> None:
    async def main() -> tuple[Turn, Hanging]:
        tool = Hanging()
        turn = processor(tool.hang, execute="stream").process(streamed([*calls(call("hang")), Finish("tool_calls")]))
        async for event in turn:
            if isinstance(event, Finish):
                break
        await turn.aclose()
        return turn, tool

    turn, tool = run(main())
    assert tool.cancelled
    assert said(turn) == [CANCELLED]


def test_a_cancelled_consumer_leaves_a_complete_turn() -> None:
    async def main() -> tuple[Turn, Hanging]:
        tool = Hanging()
        turn = processor(tool.hang, formats="invoke").process(
            streamed([*calls(call("hang")), Text('<invoke name="hang">')])
        )

        async def consume() -> None:
            async for event in turn:
                if isinstance(event, CallStart):
                    asyncio.get_running_loop().call_soon(task.cancel)

        task = asyncio.ensure_future(consume())
        with pytest.raises(asyncio.CancelledError):
            await task
        return turn, tool

    turn, tool = run(main())
    assert tool.cancelled
    assert [r.error for r in turn.results] == ["cancelled", "truncated_call"]


def test_leaving_closes_the_source() -> None:
    async def main() -> bool:
        closed = False

        async def source() -> AsyncIterator[SourceEvent]:
            nonlocal closed
            try:
                while True:
                    yield Text("x")
            finally:
                closed = True

        async with processor().process(source()) as turn:
            async for _ in turn:
                break
        return closed

    assert run(main())


def test_an_endless_source_is_read_a_bounded_way_ahead() -> None:
    async def main() -> int:
        read = 0

        async def source() -> AsyncIterator[SourceEvent]:
            nonlocal read
            while True:
                read += 1
                yield Text("x")

        async with processor().process(source()) as made:
            async for _ in made:
                break
        return read

    assert run(main()) <= inbox.AHEAD + 1


def test_the_source_is_read_in_one_task() -> None:
    async def source() -> AsyncIterator[SourceEvent]:
        async with asyncio.timeout(30):
            for i in range(5):
                yield call("echo", index=i, text="x")
                await asyncio.sleep(0)

    async def main() -> Turn:
        turn = processor(echo).process(source())
        async for _ in turn:
            pass
        return turn

    assert len(run(main()).results) == 5


# ---------------------------------------------------------------- one answer each


EVENTS = st.one_of(
    st.sampled_from(
        [
            Text("hello "),
            Text('<invoke name="echo"><parameter name="text">x</parameter></invoke>'),
            Text('<invoke name="echo">'),
            Text('<invoke name="nope"/>'),
            Text("<"),
            Thinking("hm"),
            ProviderBlock("anthropic", {"signature": "s"}, True),
            Usage(1, 1),
            Finish("stop"),
            BROKEN,
        ]
    ),
    st.builds(
        CallStart, st.integers(0, 3), st.sampled_from(["echo", "shout", "nope"]), st.sampled_from(["i", "j", None])
    ),
    st.builds(ArgumentDelta, st.integers(0, 3), st.text(max_size=3)),
    st.builds(
        CallEnd,
        st.integers(0, 3),
        st.builds(
            ToolCall,
            st.sampled_from(["i", "j", ""]),
            st.sampled_from(["echo", "shout", "fail", "nope"]),
            st.sampled_from([{"text": "x"}, {"text": 1}, {}]),
        ),
    ),
    st.builds(
        CallError,
        st.integers(0, 3),
        st.sampled_from(["invalid_json", "truncated_call"]),
        st.just("broken"),
        st.builds(ToolCall, st.sampled_from(["i", ""]), st.just("echo")),
    ),
)


async def _undecided(call: ToolCall, context: ToolContext) -> bool:
    await asyncio.sleep(0)
    return call.name == "echo"


@given(
    events=st.lists(EVENTS, max_size=12),
    leave=st.integers(0, 40),
    config=st.fixed_dictionaries(
        {},
        optional={
            "execute": st.sampled_from(["stream", "end"]),
            "strategy": st.sampled_from(["parallel", "sequential"]),
            "max_calls": st.sampled_from([1, 3, None]),
            "native": st.booleans(),
            "requires_approval": st.sampled_from([True, lambda call, context: call.name == "echo", _undecided]),
        },
    ),
    cancel=st.booleans(),
)
def test_however_it_ends_every_call_has_one_answer_or_waits_for_a_person(
    events: list[SourceEvent | Exception], leave: int, config: dict[str, Any], cancel: bool
) -> None:
    async def main() -> tuple[Turn, list[Event]]:
        turn = processor(echo, shout, raising(ValueError("no"), is_async=True), formats="invoke", **config).process(
            streamed(events)
        )
        seen = []
        with contextlib.suppress(ProviderError):
            async with turn:
                async for event in turn:
                    seen.append(event)
                    if len(seen) == leave and cancel:
                        turn.cancel()
                    elif len(seen) == leave:
                        break
        return turn, seen

    turn, seen = run(main())
    ids = [c.id for c in turn.message.calls]
    waiting = [c.id for c in turn.pending]
    assert [r.call_id for r in turn.results] == [id for id in ids if id not in waiting]
    assert set(waiting) <= set(ids)
    assert len(set(ids)) == len(ids)
    assert len(ids) <= (config.get("max_calls") or 64)
    started = [e.index for e in seen if isinstance(e, ToolStarted)]
    answered = [e.index for e in seen if isinstance(e, ToolCompleted | ToolFailed | ToolSkipped)]
    assert len(set(started)) == len(started)
    assert len(set(answered)) == len(answered)


# ---------------------------------------------------------------- replies and configuration


def test_replies_speak_by_the_role_that_was_asked_for() -> None:
    said_as_user = '<invoke name="echo"><parameter name="text">hi</parameter></invoke>'
    for role, kind in (("user", UserMessage), ("tool", ToolMessage)):
        turn, _ = play([Text(said_as_user)], echo, formats="invoke", result_role=role)
        [reply] = turn.replies
        assert isinstance(reply, kind)
        assert "hi" in "".join(p.text for p in reply.content if isinstance(p, TextPart))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"strategy": "serial"}, "strategy='serial'): expected one of parallel, sequential"),
        ({"execute": True}, "execute=True): expected one of stream, end"),
        ({"max_calls": 0}, "max_calls=0): expected an integer (1 or more)"),
        ({"timeout": 0}, "timeout=0): expected seconds above 0"),
        ({"max_output": 5}, "max_output=5): expected an integer (200 characters or more)"),
        ({"native": False, "formats": ()}, "no call could be read"),
    ],
)
def test_a_wrong_configuration_says_what_was_wanted(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        ProcessorConfig(**config)
    assert message in str(raised.value)


def test_an_unknown_format_is_refused_by_name() -> None:
    with pytest.raises(FormatError, match="'xlm'"):
        ProcessorConfig(formats="xlm")


def test_a_configuration_is_a_value() -> None:
    assert ProcessorConfig(formats="xml") == ProcessorConfig(formats=["xml"])


# ---------------------------------------------------------------- text and native calls in one count


def test_text_and_native_calls_are_counted_together() -> None:
    _, events = play(
        [
            Text('<invoke name="echo"><parameter name="text">a</parameter></invoke>'),
            CallStart(0, "echo", "n"),
            ArgumentDelta(0, '{"text": "b"}'),
            CallEnd(0, ToolCall("n", "echo", {"text": "b"})),
        ],
        echo,
        formats="invoke",
    )
    assert [e.index for e in events if isinstance(e, CallStart)] == [0, 1]
    assert [e.index for e in events if isinstance(e, CallEnd)] == [0, 1]
    assert [(e.index, e.key) for e in events if isinstance(e, ArgumentDelta)] == [(0, "text"), (1, None)]


def test_text_that_is_held_back_comes_before_the_native_call_that_follows_it() -> None:
    turn, _ = play([Text("a <"), CallEnd(0, ToolCall("n", "echo", {"text": "b"})), Text("c")], echo, formats="invoke")
    assert turn.message.content == (TextPart("a <"), ToolCall("n", "echo", {"text": "b"}), TextPart("c"))


def test_usage_in_the_middle_does_not_end_a_text_call() -> None:
    turn, _ = play(
        [Text('<invoke name="echo"><parameter name="te'), Usage(1, 1), Text('xt">a</parameter></invoke>'), Usage(1, 9)],
        echo,
        formats="invoke",
    )
    assert said(turn) == [(None, "a")]
    assert turn.usage == Usage(1, 9)


def test_threads_work_after_a_fork() -> None:
    script = """
import asyncio, os
from agentkit.processor.workers import WORKERS

async def main():
    return await WORKERS.run(lambda: "ran")

asyncio.run(main())
if child := os.fork():
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
assert asyncio.run(main()) == "ran"
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0


@pytest.mark.share(12)
@pytest.mark.parametrize("before", ["cold", "warm", "held"])
def test_in_the_child_of_a_fork_several_threads_may_call_tools_at_once(before: str) -> None:
    """Also if a thread of the parent holds a lock at that moment, or runs the tool."""
    script = f"""
import asyncio, os, sys, threading, time
from agentkit import Agent, ToolCall, openapi_schema
from agentkit.processor.exclusive_locks import _LOCKS
from agentkit.processor.workers import WORKERS
from agentkit.testing import ScriptedModel

class Slow:
    @openapi_schema(exclusive=True)
    def work(self, seconds: float) -> str:
        "Work."
        time.sleep(seconds)
        return "ran"

slow = Slow()

def use(seconds=0.0):
    return Agent(ScriptedModel([ToolCall("1", "work", {{"seconds": seconds}}), "end"]), [slow]).run_sync("go").text

def hold():
    with WORKERS._changed, _LOCKS.lock:
        time.sleep(3)

if {before!r} != "cold":
    use()
if {before!r} == "held":
    for what in (lambda: use(3.0), hold):
        threading.Thread(target=what, daemon=True).start()
        time.sleep(0.5)
for _ in range(5):
    if child := os.fork():
        if code := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            os._exit(code)
        continue
    sys.setswitchinterval(1e-6)
    said = []
    at_once = threading.Barrier(4)
    def work():
        at_once.wait()
        said.append(use())
    threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join(30) for thread in threads]
    os._exit(said != ["end"] * 4)
os._exit(0)
"""
    assert subprocess.run([sys.executable, "-c", script], timeout=60, check=False).returncode == 0
