"""Every call has one last word over all runs, whoever decides when and however a run ends; the store's is the same.

A run gives it as an event or, if its consumer has left, as an answer in its result. Until then the call waits: its
runs have it in `pending`, and no answer. Only a denial may be told again, until the model has answered it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import pytest
from deciding import EDITED, Decide, Till, decide

from agentkit import Agent, Approved, Budget, Denied, ProcessorConfig, ThreadManager, ToolCall
from agentkit.agent import RunResult, RunStream
from agentkit.errors import ProviderError, StoreError
from agentkit.events import (
    ApprovalRequired,
    CallEnd,
    Finish,
    SourceEvent,
    Text,
    ToolCompleted,
    ToolFailed,
    ToolSkipped,
    ToolStarted,
)
from agentkit.messages import ToolMessage, UserMessage
from agentkit.models.base import ModelRequest
from agentkit.processor.config import Execute
from agentkit.threads import SQLiteStore

pytestmark = pytest.mark.anyio

Kind = Literal["native", "hermes", "inside"]
End = Literal["stop", "length", "content_filter", "refusal", "error", "cancel", "leave", "task", "seconds", "death"]
ENDS: Final[tuple[End, ...]] = (
    "stop",
    "length",
    "content_filter",
    "refusal",
    "error",
    "cancel",
    "leave",
    "task",
    "seconds",
    "death",
)
RAISES: Final = {"error": ProviderError, "task": asyncio.CancelledError, "death": StoreError}
LAST: Final = (ToolCompleted, ToolFailed, ToolSkipped)
FORMATS: Final[dict[Kind, str | None]] = {"native": None, "hermes": "hermes", "inside": None}


class Mortal(SQLiteStore):
    """A store whose process can die: nothing is written any more."""

    dead = False

    async def commit(self, thread_id: str, changes: Any, *, fence: int | None = None) -> tuple[int, ...]:
        if self.dead and fence is not None:
            raise StoreError("the process is dead")
        return await super().commit(thread_id, changes, fence=fence)


class Word(NamedTuple):
    """How a call ended."""

    error: str | None
    text: str


class Case(NamedTuple):
    """When which call is decided, and how the first run ends."""

    kind: Kind
    end: End
    early: Decide | None
    later: Decide
    execute: Execute


class Asking:
    """A model whose first response calls twice, and then ends as the case wants, once the first call is decided."""

    name = "asking"

    def __init__(self, case: Case, decided: asyncio.Event) -> None:
        self.case, self.decided = case, decided
        self.format = FORMATS[case.kind]

    async def stream(self, request: ModelRequest) -> AsyncIterator[SourceEvent]:
        if any(isinstance(m, ToolMessage) for m in request.messages):
            yield Text("Done.")
            yield Finish("stop")
            return
        for n in (1, 2):
            if self.case.kind == "hermes":
                yield Text(f'<tool_call>\n{{"name": "pay", "arguments": {{"n": {n}}}}}\n</tool_call>\n')
            elif self.case.kind == "native":
                yield CallEnd(n - 1, ToolCall(f"c{n}", "pay", {"n": n}))
            else:
                yield CallEnd(n - 1, ToolCall(f"c{n}", "ask", {"task": str(n)}))
        yield Text("More.")
        await self.decided.wait()
        match self.case.end:
            case "error":
                raise ProviderError("the line is dead", provider="p", kind="connection")
            case "stop" | "length" | "content_filter" | "refusal" as finish:
                yield Finish(finish)
            case _:
                await asyncio.sleep(30)


class Clerk:
    """The model of a sub-agent, which pays what its task says."""

    name, format = "clerk", None

    async def stream(self, request: ModelRequest) -> AsyncIterator[SourceEvent]:
        if any(isinstance(m, ToolMessage) for m in request.messages):
            yield Text("Paid.")
        else:
            task = next(m.text for m in request.messages if isinstance(m, UserMessage))
            yield CallEnd(0, ToolCall("p", "pay", {"n": int(task)}))
        yield Finish("stop")


def agent(case: Case, till: Till, decided: asyncio.Event) -> Agent[Any, Any]:
    tools = [Agent(Clerk(), [till]).as_tool("ask", "Pays.") if case.kind == "inside" else till]
    budget = Budget(seconds=0.3) if case.end == "seconds" else None
    return Agent(Asking(case, decided), tools, config=ProcessorConfig(execute=case.execute), budget=budget)


class Book:
    """What the runs say of each call, by its id."""

    def __init__(self) -> None:
        self.told: dict[str, list[str | None]] = defaultdict(list)

    def tell(self, id: str, error: str | None) -> None:
        self.told[id].append(error)

    def hear(self, event: object) -> None:
        if isinstance(event, LAST):
            self.tell(event.call.id, event.result.code)

    def hear_result(self, result: RunResult[Any]) -> None:
        """Of a run whose consumer left: its answers are in its result."""
        for id, word in words(result).items():
            if not self.told[id]:
                self.tell(id, word.error)

    def check(self, result: RunResult[Any], answers: dict[str, Word | None], *, asked: bool = False) -> None:
        """A run's result agrees with what was told and with the answers in the store; what it has `asked` for waits."""
        said, waits = words(result), {call.id.split("/")[0] for call in result.pending}
        for id, answer in answers.items():
            if self.told[id]:
                assert (answer, said.get(id)) == (answer or "an answer", answer), id
                assert set(self.told[id]) == {answer and answer.error}, id
                assert id not in waits
            else:
                assert id not in said
                assert id in waits or (answer is None and not asked)

    def close(self, answers: dict[str, Word | None]) -> None:
        """In the end every call has one last word."""
        for id, answer in answers.items():
            assert answer is not None
            assert self.told[id] == [answer.error] or set(self.told[id]) == {"denied"}, id


def words(result: RunResult[Any]) -> dict[str, Word]:
    """The answers in a run's result; what stands there for one that waits is none."""
    answers = [m for m in result.messages if isinstance(m, ToolMessage) and not m.text.startswith("no result yet")]
    assert len(answers) == len({m.call_id for m in answers})
    return {m.call_id: Word(m.error, m.text) for m in answers}


async def kept(threads: ThreadManager) -> dict[str, Word | None]:
    """The answers of all calls in the store; None for one that has none yet."""
    calls = (await threads.get_log("t")).calls
    answers = {
        m.call_id: Word(m.error, m.text) for m in await threads.get_llm_messages("t") if isinstance(m, ToolMessage)
    }
    return {call.id: answers[call.id] if call.status == "answered" else None for call in calls}


async def first_run(
    case: Case, threads: ThreadManager, run: RunStream[Any], decided: asyncio.Event, book: Book, agreed: list[int]
) -> None:
    """Decide the first call that asks (of two sub-agents, either) at its event, and end the run once both wait."""
    asked = 0
    async with run:
        async for event in run:
            book.hear(event)
            if not isinstance(event, ApprovalRequired):
                continue
            asked += 1
            if asked == 1 and case.early is not None:
                first = (await threads.pending("t"))[0]
                agreed += {"approve": [first.arguments["n"]], "edit": [EDITED]}.get(case.early, [])
                await decide(threads, case.early, first.id)
            if asked < 2:
                continue
            decided.set()
            if case.end == "cancel":
                run.cancel()
            elif case.end == "leave":
                break
            elif case.end == "task":
                asyncio.current_task().cancel()  # type: ignore[union-attr]
            elif case.end == "death":
                threads.store.dead = True  # type: ignore[attr-defined]
                run.cancel()


CASES = [
    Case(kind, end, early, "deny" if early == "approve" else "approve", execute)
    for kind, end, early, execute in product(
        ("native", "hermes", "inside"), ENDS, (None, "approve", "edit", "deny"), ("stream", "end")
    )
    if (kind, execute) not in (("inside", "end"), ("hermes", "end"))  # a sub-agent then starts only after the response
]


@pytest.mark.share(4)
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("kind", ["native", "hermes", "inside"])
async def test_every_call_of_a_thread_has_one_last_word(tmp_path: Path, kind: Kind, end: End) -> None:
    cases = [case for case in CASES if (case.kind, case.end) == (kind, end)]
    assert len(cases) > 3
    await asyncio.gather(*(play(case, tmp_path / f"{number}.db") for number, case in enumerate(cases)))


async def play(case: Case, path: Path) -> None:
    till, decided, book = Till(), asyncio.Event(), Book()
    agreed: list[int] = []
    store = Mortal(path, durability="process")
    async with ThreadManager(store) as threads:
        await threads.create_thread("t", messages="Pay twice.")
        one = agent(case, till, decided)
        run = threads.run_agent("t", one)
        task = asyncio.create_task(first_run(case, threads, run, decided, book, agreed))
        await asyncio.wait([task])
        raised = asyncio.CancelledError if task.cancelled() else task.exception() and type(task.exception())
        assert raised == RAISES.get(case.end), case
        store.dead = False
        if case.end != "death":
            book.hear_result(run.result)
            book.check(run.result, await kept(threads), asked=True)
        for number in range(6):
            run = threads.run_agent("t", one)
            end = case.end if number in (1, 2) else "stop"
            await later_run(run, book, end, object if number == 1 else ToolStarted)
            book.check(run.result, await kept(threads))
            for call in await threads.pending("t"):
                await decide(threads, case.later, call.id)
                agreed += [call.arguments["n"]] if case.later == "approve" else []
        assert run.result.finish == "stop", case
        book.close(await kept(threads))
        if case.end in ("stop", "cancel", "leave"):  # at no step of a tool: what was approved was done, once
            assert sorted(till.paid) == sorted(agreed), case
        if case.kind != "inside":
            done = [answer for answer in (await kept(threads)).values() if answer is not None and answer.error is None]
            assert len(till.paid) == len(done), case


async def later_run(run: RunStream[Any], book: Book, end: End, at: type = object) -> None:
    """Run it; end it at such an event if that is how the case ends."""
    async with run:
        async for event in run:
            book.hear(event)
            if not isinstance(event, at):
                continue
            if end == "cancel":
                run.cancel()
            elif end == "leave":
                break
    book.hear_result(run.result)


@pytest.mark.parametrize("end", ["stop", "error", "cancel", "leave", "seconds"])
@pytest.mark.parametrize("kind", ["native", "hermes", "inside"])
async def test_and_without_a_store_by_the_results_alone(kind: Kind, end: End) -> None:
    for approves in (True, False):
        case, till, decided, book = Case(kind, end, None, "approve", "stream"), Till(), asyncio.Event(), Book()
        one, asked = agent(case, till, decided), 0
        run = one.stream("Pay twice.")
        with suppress(ProviderError):
            async with run:
                async for event in run:
                    book.hear(event)
                    asked += isinstance(event, ApprovalRequired)
                    if asked == 2:
                        decided.set()
                    if asked == 2 and end == "cancel":
                        run.cancel()
                    elif asked == 2 and end == "leave":
                        break
        book.hear_result(run.result)
        waits = [call.id for call in run.result.pending]
        assert set(book.told) & {id.split("/")[0] for id in waits} == set()
        assert len(waits) + len(book.told) == 2
        decisions = {id: Approved() if approves else Denied() for id in waits}
        run = one.stream(run.result, decisions=decisions) if waits else one.stream([*run.result.messages, "And now?"])
        await later_run(run, book, "stop")
        answers: dict[str, Word | None] = {**words(run.result)}
        book.check(run.result, answers)
        book.close(answers)
        assert run.result.pending == ()
        assert len(till.paid) == (len(waits) if approves else 0)
