"""Who forgets to wait is told: a stream that nobody reads warns, what is read too early says what to write."""

from __future__ import annotations

import asyncio
import gc
import importlib
import inspect
import pkgutil
import subprocess
import sys
import warnings
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import agentkit
from agentkit import Agent, ConfigError, ResponseProcessor, ThreadManager, ToolCall, ToolRegistry
from agentkit.agent import RunStream
from agentkit.checks.missing_await import HintedCoroutine
from agentkit.events import Text
from agentkit.interop.mcp import MCPTools
from agentkit.testing import ScriptedModel


def agent() -> Agent:
    return Agent(ScriptedModel(["Hello, ", "and more."], chunk=1))


def manager() -> ThreadManager:
    return ThreadManager(":memory:")


def warned(use: Callable[[], Any]) -> list[str]:
    """What is said until all that was left is collected."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        use()
        gc.collect()
    return [f"{one.category.__name__}: {one.message}" for one in said]


STREAM = (
    "RuntimeWarning: agent.stream(…) was never awaited or iterated over, so nothing was run: write "
    "`await agent.stream(…)` for its result, or `async for event in agent.stream(…)`"
)


# ---------------------------------------------------------------- streams that nobody reads


def test_a_stream_that_nobody_reads() -> None:
    assert warned(lambda: agent().stream("hi")) == [STREAM]


def test_a_thread_that_nobody_runs() -> None:
    (warning,) = warned(lambda: manager().run_thread("t", None, ScriptedModel([])))
    assert warning.startswith("RuntimeWarning: threads.run_thread(…) was never awaited or iterated over, so nothing")


def test_a_response_that_nobody_reads() -> None:
    (said,) = warned(lambda: ResponseProcessor(ToolRegistry()).process([Text("hi")]))
    assert said.startswith(
        "RuntimeWarning: processor.process(…) was never iterated, so nothing of the response was read"
    )


def test_text_that_nobody_reads() -> None:
    assert warned(lambda: agent().stream("hi").text_stream()) == [STREAM]


async def awaits(run: RunStream[Any]) -> None:
    await run


async def finishes(run: RunStream[Any]) -> None:
    await run.complete()


async def iterates(run: RunStream[Any]) -> None:
    async for _ in run:
        pass


async def breaks_off(run: RunStream[Any]) -> None:
    async for _ in run:
        break


async def leaves_a_block(run: RunStream[Any]) -> None:
    async with run:
        pass


async def closes(run: RunStream[Any]) -> None:
    await run.aclose()


async def cancels(run: RunStream[Any]) -> None:
    run.cancel()


async def reads_text(run: RunStream[Any]) -> None:
    async for _ in run.text_stream():
        break


async def is_cancelled(run: RunStream[Any]) -> None:
    task = asyncio.ensure_future(run)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])


@pytest.mark.parametrize(
    "use",
    [awaits, finishes, iterates, breaks_off, leaves_a_block, closes, cancels, reads_text, is_cancelled],
)
def test_every_right_use_is_quiet(use: Callable[[RunStream[Any]], Awaitable[None]]) -> None:
    async def main() -> None:
        await use(agent().stream("hi"))

    assert warned(lambda: asyncio.run(main())) == []


def test_a_refused_message_is_quiet() -> None:
    """`say` makes the run before it adds the message, so that wrong options leave nothing behind."""

    def use() -> None:
        with pytest.raises(ConfigError):
            manager().say_sync("t", "", ScriptedModel([]))

    assert warned(use) == []


def test_who_is_told_by_an_error_is_not_warned_too() -> None:
    def use() -> None:
        with pytest.raises(AttributeError, match="write `await` first"):
            _ = agent().stream("hi").text  # type: ignore[attr-defined]
        with pytest.raises(TypeError, match="`async for`"):
            list(agent().stream("hi"))  # type: ignore[call-overload]
        with pytest.raises(TypeError, match="`async with`"):
            agent().stream("hi").__enter__()  # type: ignore[attr-defined]
        with pytest.raises(ConfigError, match="is not a tool of this agent"):
            asyncio.run(agent().run("hi", tool_choice="nope"))

    assert warned(use) == []


def test_also_at_the_end_of_a_program(tmp_path: Path) -> None:
    program = (
        "from agentkit import Agent\n"
        "from agentkit.testing import ScriptedModel\n"
        "kept = Agent(ScriptedModel([])).stream('hi')\n"
        "Agent(ScriptedModel([])).stream('hi')\n"
    )
    (tmp_path / "program.py").write_text(program)
    ran = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    first, line, *_ = ran.stderr.splitlines()
    assert first == f"{tmp_path / 'program.py'}:4: {STREAM}"
    assert line.strip() == "Agent(ScriptedModel([])).stream('hi')"
    assert ran.stderr.count(STREAM) == 2  # `kept`, too, when the interpreter ends


# ---------------------------------------------------------------- coroutines


def test_a_run_is_a_coroutine_in_every_way_that_counts() -> None:
    async def main() -> list[str]:
        made = agent()
        task = asyncio.create_task(made.run("hi"))
        group = await asyncio.gather(made.run("hi"), made.run("hi"))
        return [(await task).text, *(one.text for one in group), (await asyncio.wait_for(made.run("hi"), 30)).text]

    says = ScriptedModel(lambda request: "Hello.")
    assert asyncio.iscoroutine(waiting := Agent(says).run("hi"))
    assert inspect.isawaitable(waiting)
    assert asyncio.run(waiting).text == "Hello."
    assert asyncio.run(asyncio.wait_for(Agent(says).run("hi"), 30)).text == "Hello."


def test_nobody_awaits_a_run() -> None:
    assert warned(lambda: agent().run("hi")) == ["RuntimeWarning: coroutine 'Agent.run' was never awaited"]


def test_a_run_that_was_not_awaited_shows_as_such() -> None:
    waiting = agent().run("hi")
    assert repr(waiting) == "<agent.run(…), not awaited yet>"
    waiting.close()


def test_a_run_is_not_entered() -> None:
    waiting = agent().run("hi")
    with pytest.raises(
        TypeError, match=r"agent\.run\(…\) returns a single result: write `await agent\.run\(…\)`, without"
    ):
        waiting.__enter__()  # type: ignore[attr-defined]
    waiting.close()
    with pytest.raises(AttributeError):
        _ = HintedCoroutine.__new__(HintedCoroutine).text  # type: ignore[attr-defined]


def test_a_cancelled_run_ends() -> None:
    begun = asyncio.Event()

    async def hang() -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    async def main() -> None:
        task = asyncio.create_task(Agent(ScriptedModel([ToolCall("", "hang")]), [hang]).run("hi"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    assert warned(lambda: asyncio.run(main())) == []


# ---------------------------------------------------------------- `with`


def entered_async() -> list[type]:
    """Every class of the package that must be entered with `async with`."""
    found: set[type] = set()
    for module in pkgutil.walk_packages(agentkit.__path__, "agentkit."):
        if "__main__" not in module.name and ".cli" not in module.name:
            loaded = importlib.import_module(module.name)
            found |= {one for one in vars(loaded).values() if isinstance(one, type) and hasattr(one, "__aenter__")}
    return sorted(
        (
            one
            for one in found
            if one.__module__.startswith("agentkit.")
            and not getattr(one, "_is_protocol", False)
            and not inspect.isabstract(one)
        ),
        key=lambda one: one.__qualname__,
    )


@pytest.mark.parametrize("kind", entered_async(), ids=lambda kind: kind.__name__)
def test_with_says_async_with(kind: type) -> None:
    if kind in (
        ScriptedModel,
        MCPTools,
        HintedCoroutine,
    ):  # two are entered by `with`, too, the last not at all
        return
    made = kind.__new__(kind)
    with pytest.raises(TypeError, match=f"^{kind.__name__} must be entered with `async with`"):
        made.__enter__()


def test_a_stream_is_one_of_them() -> None:
    assert RunStream in entered_async()
