"""Whatever a hook does, at whatever moment, the run ends as it would have ended, and in its time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

import pytest

from agentkit.agent import Agent, Budget, RunEnded, RunStarted, TurnEnded, TurnStarted, hooks
from agentkit.errors import ConfigError
from agentkit.events import CallEnd, Finish, Text, ToolCompleted, ToolStarted
from agentkit.messages import AssistantMessage, ToolCall, ToolMessage
from agentkit.processor import ProcessorConfig, ResponseProcessor
from agentkit.testing import ScriptedModel
from agentkit.threads import ThreadManager
from agentkit.tool.registry import ToolRegistry

pytestmark = pytest.mark.anyio

SECONDS = 0.02  # that hooks have here


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "HOOK_SECONDS", SECONDS)
    monkeypatch.setattr(hooks, "LAST_SECONDS", SECONDS)


async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def script() -> ScriptedModel:
    return ScriptedModel([["Let me see.", ToolCall("c", "add", {"a": 1, "b": 2})], "3"])


async def ends_well(hook: Any) -> None:
    run = Agent(script(), [add], hooks=[hook]).stream("1 + 2?")
    result = await asyncio.wait_for(run.complete(), 30)
    answers = [(m.text, m.error) for m in result.messages if isinstance(m, ToolMessage)]
    assert (result.finish, result.text, answers) == ("stop", "3", [("3", None)])


# ---------------------------------------------------------------- every moment, every way


def raises(error: BaseException) -> Callable[..., None]:
    def hook(event: Any, run: Any) -> None:
        raise error

    return hook


def fails(error: BaseException) -> Callable[..., Any]:
    async def hook(event: Any, run: Any) -> None:
        await asyncio.sleep(0)
        raise error

    return hook


async def hangs(event: Any, run: Any) -> None:
    await asyncio.Event().wait()


async def hangs_on(event: Any, run: Any) -> None:
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(2 * SECONDS)
            return


async def cancels_itself(event: Any, run: Any) -> None:
    inner = asyncio.ensure_future(asyncio.sleep(5))
    inner.cancel()
    await inner


async def awaits_the_run(event: Any, run: Any) -> None:
    await run.complete()


async def closes_the_run(event: Any, run: Any) -> None:
    await run.aclose()


async def cancels_its_task(event: Any, run: Any) -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


def returns(value: Any) -> Callable[..., Any]:
    return lambda event, run: value


ERRORS = [
    ValueError("x"),
    asyncio.CancelledError(),
    SystemExit(3),
    GeneratorExit(),
    RecursionError(),
    StopAsyncIteration(),
]
WAYS: dict[str, Any] = {
    **{f"raises {type(e).__name__}": raises(e) for e in [*ERRORS, StopIteration()]},
    **{f"fails with {type(e).__name__}": fails(e) for e in ERRORS},
    **{w.__name__: w for w in (hangs, hangs_on, cancels_itself, cancels_its_task, awaits_the_run, closes_the_run)},
    **{f"returns {type(v).__name__}": returns(v) for v in (5, "x", object(), (n for n in "ab"))},
}
MOMENTS = [RunStarted, TurnStarted, Text, CallEnd, ToolStarted, ToolCompleted, Finish, TurnEnded, RunEnded, object]


@pytest.mark.share(5)
@pytest.mark.parametrize("moment", MOMENTS, ids=lambda m: m.__name__)
@pytest.mark.parametrize("way", WAYS)
async def test_a_run_ends_as_it_would_have(way: str, moment: type, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)

    def hook(event: Any, run: Any) -> Any:
        return WAYS[way](event, run) if isinstance(event, moment) else None

    await ends_well(hook)


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda m: m.__name__)
async def test_a_hook_that_hangs_does_not_outlast_the_runs_time(moment: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "HOOK_SECONDS", 60.0)

    def hook(event: Any, run: Any) -> Any:
        return hangs(event, run) if isinstance(event, moment) else None

    model = ScriptedModel([["a", ToolCall("c", "add", {"a": 1, "b": 2})], "3"])
    result = await asyncio.wait_for(Agent(model, [add], hooks=[hook], budget=Budget(seconds=0.2)).run("x"), 30)
    assert result.finish == ("stop" if moment is RunEnded else "time_budget")


@pytest.mark.parametrize("way", ["task", "cancel", "aclose"])
async def test_a_hook_that_hangs_does_not_outlast_a_cancellation(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "HOOK_SECONDS", 60.0)
    waiting = asyncio.Event()

    async def hook(event: Any, run: Any) -> None:
        if not isinstance(event, RunStarted):
            waiting.set()
            await asyncio.Event().wait()

    run = Agent(script(), [add], hooks=[hook]).stream("x")
    task = asyncio.create_task(run.complete())
    await waiting.wait()
    if way == "cancel":
        run.cancel()
        assert (await asyncio.wait_for(task, 30)).finish == "cancelled"
        return
    if way == "task":
        task.cancel()
    else:
        closing = asyncio.create_task(run.aclose())
        await asyncio.wait([closing])
        assert isinstance(closing.exception(), RuntimeError)  # it is being iterated
        task.cancel()
    done, _ = await asyncio.wait([task], timeout=30)
    assert done == {task}
    assert run.result.finish == "cancelled"


async def test_a_hook_that_took_too_long_is_told_no_more(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []

    async def slow(event: Any, run: Any) -> None:
        told.append(type(event).__name__)
        await asyncio.Event().wait()

    await ends_well(slow)
    assert told == ["RunStarted"]
    assert "on RunStarted: it gets no more events" in caplog.text


async def test_a_strange_result_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    await ends_well(lambda event, run: 5)
    [said] = [r.getMessage() for r in caplog.records]
    assert said.endswith("<lambda> returned int: a hook returns None")


async def test_slow_hooks_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hooks, "HOOK_SECONDS", 30.0)
    told: list[str] = []

    async def hook(event: Any, run: Any) -> None:
        await asyncio.sleep(0.001)
        told.append(type(event).__name__)

    await ends_well(hook)
    assert (told[0], told[-1], told.count("TurnEnded")) == ("RunStarted", "RunEnded", 2)


# ---------------------------------------------------------------- scopes


class Scoped:
    """A hook that wants to hold something while a tool's task is made."""

    def __init__(self, scope: Callable[[], Any]) -> None:
        self.scope = scope

    def __call__(self, event: Any, run: Any) -> None:
        """Watch."""

    def tool_scope(self, call: ToolCall, run: Any) -> Any:
        """Hold."""
        return self.scope()


def never() -> Any:
    raise ValueError("no scope")


@contextmanager
def broken(enters: BaseException | None = None, leaves: BaseException | None = None) -> Iterator[None]:
    if enters:
        raise enters
    yield
    if leaves:
        raise leaves


@contextmanager
def twice() -> Iterator[None]:
    yield
    yield


SCOPES: dict[str, Callable[[], Any]] = {
    "raises": never,
    "none": lambda: None,
    "a number": lambda: 5,
    "swallows": lambda: suppress(BaseException),
    "yields twice": twice,
    "async": lambda: asyncio.Lock(),
    **{f"enters {type(e).__name__}": partial(broken, enters=e) for e in ERRORS[:3]},
    **{f"leaves {type(e).__name__}": partial(broken, leaves=e) for e in ERRORS[:3]},
}


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_scope_that_fails_is_left_out(scope: str) -> None:
    await ends_well(Scoped(SCOPES[scope]))


async def test_a_scope_that_fails_leaves_those_of_others() -> None:
    held: list[str] = []

    @contextmanager
    def holds() -> Iterator[None]:
        held.append("in")
        yield
        held.append("out")

    await asyncio.wait_for(Agent(script(), [add], hooks=[Scoped(holds), Scoped(never), Scoped(holds)]).run("x"), 30)
    assert held == ["in", "in", "out", "out"]


async def test_the_processors_own_scope_may_raise_and_nothing_hangs() -> None:
    def scope(call: ToolCall) -> Any:
        raise ValueError("no scope")

    turn = ResponseProcessor(ToolRegistry(add), scope=scope).process(
        [CallEnd(0, ToolCall("c", "add", {"a": 1, "b": 2}))]
    )

    async def read() -> None:
        async for _ in turn:
            pass

    with pytest.raises(ValueError, match="no scope"):
        await asyncio.wait_for(read(), 30)
    assert [r.error for r in turn.results] == ["cancelled"]


# ---------------------------------------------------------------- refused where it is registered


async def yields(event: Any, run: Any) -> Any:
    yield event


class Yields:
    """A hook whose call yields."""

    def __call__(self, event: Any, run: Any) -> Iterator[Any]:
        """Yield."""
        yield event


@pytest.mark.parametrize(
    ("hook", "why"),
    [
        (yields, "yields yields, so calling it does nothing"),
        (Yields(), "Yields yields"),
        (partial(yields), "partial yields"),
        (lambda: None, "cannot be called with two arguments: expected `def hook"),
        (lambda event: None, "cannot be called with two arguments: expected `def hook"),
    ],
    ids=["async generator", "object", "partial", "no arguments", "one"],
)
def test_a_hook_that_can_never_be_told_anything_is_refused(hook: Any, why: str) -> None:
    with pytest.raises(ConfigError, match=rf"Agent\(hooks=…\): .*{why}"):
        Agent(script(), hooks=[hook])
    with pytest.raises(ConfigError, match=rf"ThreadManager\(hooks=…\): .*{why}"):
        ThreadManager(":memory:", hooks=[hook])


@pytest.mark.parametrize("hook", [print, partial(print, sep=""), Scoped(never), lambda *told: None])
def test_what_takes_two_is_a_hook(hook: Any) -> None:
    Agent(script(), hooks=[hook])


async def test_a_hook_that_fails_on_every_event_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="agentkit.agent"):
        await ends_well(raises(ValueError("no")))
    levels = [record.levelno for record in caplog.records if "a hook failed" in record.message]
    assert levels[0] == logging.ERROR
    assert len(levels) > 5
    assert set(levels[1:]) == {logging.DEBUG}


@pytest.mark.parametrize("format", [None, "hermes", "xml"])
async def test_what_a_hook_changes_in_a_call_changes_no_run(format: str | None) -> None:
    """A hook that hides secrets, say; and the function that decides about approval."""
    seen: list[str] = []

    def send(texts: list[str]) -> str:
        """Send them."""
        return ",".join(texts)

    class Hides:
        def __call__(self, event: Any, run: Any) -> None:
            if isinstance(call := getattr(event, "call", None), ToolCall) and call.arguments:
                seen.append(type(event).__name__)
                call.arguments["texts"][0] = "***"
                call.arguments.clear()  # type: ignore[attr-defined]

        @contextmanager
        def tool_scope(self, call: ToolCall, run: Any) -> Iterator[None]:
            call.arguments.clear()  # type: ignore[attr-defined]
            yield

    def decides(call: ToolCall, context: Any) -> bool:
        call.arguments["texts"].append("more")
        return False

    model = ScriptedModel([ToolCall("c", "send", {"texts": ["a"]}), "Sent."], format=format)
    config = ProcessorConfig(requires_approval=decides)
    async with ThreadManager(":memory:", ToolRegistry(send)) as threads:
        agent = Agent(model, [send], config=config, hooks=[Hides(), Hides()])
        result = await threads.say("t", "Go.", agent=agent)
        assert [m.text for m in result.messages if isinstance(m, ToolMessage)] == ["a"]
        (said,) = [m.calls for m in await threads.get_llm_messages("t") if isinstance(m, AssistantMessage) and m.calls]
    assert said[0].arguments == {"texts": ["a"]}
    assert {"CallEnd", "ToolStarted", "ToolCompleted"} <= set(seen)
    assert seen.count("CallEnd") == 2


async def test_a_hook_hears_of_a_call_that_is_nested_too_deeply_to_be_copied() -> None:
    deep: Any = 1
    for _ in range(800):
        deep = [deep]
    heard: list[str] = []
    model = ScriptedModel([ToolCall("c", "add", {"a": deep, "b": 2}), "No."])
    result = await Agent(model, [add], hooks=[lambda event, _: heard.append(type(event).__name__)]).run("Go.")
    (answer,) = [m for m in result.messages if isinstance(m, ToolMessage)]
    assert answer.error == "invalid_arguments"
    assert {"CallEnd", "ToolFailed"} <= set(heard)
