"""Whoever answers a call first, its run says so: as its one event, in its result, and to the model."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import pytest
from deciding import Overtaken, late, moves

from agentkit import Agent, ProcessorConfig, ThreadManager, ToolCall, openapi_schema
from agentkit.agent import RunStream
from agentkit.errors import ErrorCode
from agentkit.events import ToolCompleted, ToolFailed, ToolSkipped, ToolStarted
from agentkit.messages import TextPart, ToolMessage
from agentkit.processor.config import Execute, Strategy
from agentkit.testing import ScriptedModel

pytestmark = pytest.mark.anyio

Moment = Literal["before", "event", "tool", "end"]
"""When it is answered: as its start is written, at its `ToolStarted`, while its tool runs, as its answer is written."""
End = Literal["go on", "cancel", "cancel after", "leave"]
LAST: Final = (ToolCompleted, ToolFailed, ToolSkipped)


class Word(NamedTuple):
    """The answer to a call."""

    error: str | None
    text: str


class Case(NamedTuple):
    """Which call is answered when, with what, and how the run ends then."""

    moment: Moment
    end: End
    tool: Literal["quick", "fail", "plain"]
    hand: ErrorCode | None
    strategy: Strategy
    execute: Execute


class Desk:
    """Tools, in each of which something may happen."""

    def __init__(self) -> None:
        self.act: Callable[[], Any] | None = None
        self.runs = 0

    async def _acted(self, n: int) -> None:
        if n == 1:
            self.runs += 1
            if self.act is not None:
                await self.act()
        await asyncio.sleep(0.002)

    @openapi_schema
    async def quick(self, n: int) -> str:
        """Work."""
        await self._acted(n)
        return f"tool {n}"

    @openapi_schema
    async def fail(self, n: int) -> str:
        """Fail."""
        await self._acted(n)
        raise ValueError(f"tool {n}")

    @openapi_schema
    def plain(self, n: int) -> str:
        """Work in a thread."""
        self.runs += n == 1
        return f"tool {n}"


CASES = [
    Case(moment, end, tool, hand, strategy, execute)
    for moment, end, tool, hand, strategy, execute in product(
        ("before", "event", "tool", "end"),
        ("go on", "cancel", "cancel after", "leave"),
        ("quick", "fail", "plain"),
        (None, "tool_error", "cancelled"),
        ("parallel", "sequential"),
        ("stream", "end"),
    )
    if (moment, tool) != ("tool", "plain")
    and (moment, end) not in (("tool", "cancel"), ("before", "leave"), ("end", "leave"))
    and (execute == "end" or (end == "go on" and moment != "before"))  # otherwise not all is in the store yet
]


@pytest.mark.share(4)
@pytest.mark.parametrize("moment", ["before", "event", "tool", "end"])
async def test_who_answers_first_is_told_by_all(tmp_path: Path, moment: Moment) -> None:
    cases = [case for case in CASES if case.moment == moment]
    assert len(cases) > 40
    await asyncio.gather(*(play(case, tmp_path / f"{number}.db") for number, case in enumerate(cases)))


class Book:
    """What a run says of each call, and which it has started."""

    def __init__(self) -> None:
        self.told: dict[str, list[Word]] = defaultdict(list)
        self.started: list[str] = []

    def hear(self, event: object) -> None:
        if isinstance(event, LAST):
            text = "".join(part.text for part in event.result.parts if isinstance(part, TextPart))
            self.told[event.call.id].append(Word(event.result.code, text))
        elif isinstance(event, ToolStarted):
            self.started.append(event.call.id)


async def play(case: Case, path: Path) -> None:
    desk, book, left = Desk(), Book(), asyncio.Event()
    store = Overtaken(path, durability="process")
    async with ThreadManager(store) as threads, ThreadManager(path) as other:
        await other.create_thread("t", messages="Go.")
        turn = [ToolCall(f"c{n}", case.tool if n == 1 else "quick", {"n": n}) for n in range(3)]
        model = ScriptedModel([turn, "Done."])
        config = ProcessorConfig(strategy=case.strategy, execute=case.execute)
        run: RunStream[Any] = threads.run_agent("t", Agent(model, [desk], config=config))

        async def act() -> None:
            if case.end == "cancel":
                run.cancel()
            await other.add_message("t", by_hand(case))
            {"cancel after": run.cancel, "leave": left.set}.get(case.end, int)()

        if case.moment == "tool":
            desk.act = lambda: asyncio.shield(act())
        elif case.moment != "event":
            store.when(of_c1("started" if case.moment == "before" else "answered"), act)
        async with run:
            async for event in run:
                book.hear(event)
                if case.moment == "event" and isinstance(event, ToolStarted) and event.call.id == "c1":
                    await act()
                if left.is_set():
                    break
        check(case, book, words(await other.get_llm_messages("t")), words(run.result.messages))
        asked = model.requests[1:]
        assert [words(request.messages) for request in asked] == [words(run.result.messages)] * len(asked), case
        assert len(asked) == (case.end == "go on"), case
        assert desk.runs == 0 if case.moment == "before" else "c1" in book.started, case


def check(case: Case, book: Book, kept: dict[str, Word], result: dict[str, Word]) -> None:
    assert set(kept) == {"c0", "c1", "c2"}, case
    assert kept["c1"] == Word(case.hand, "from outside"), case
    assert result == kept, case
    assert dict(book.told) == {id: [kept[id]] for id in book.told}, case
    assert case.end == "leave" or set(book.told) == set(kept), case


def by_hand(case: Case) -> ToolMessage:
    answer = late("c1", case.tool)
    return ToolMessage("c1", answer.name, answer.content, case.hand)


def of_c1(to: str) -> Callable[[Any], bool]:
    return lambda change: moves(to)(change) and change.ordinal == 1


def words(messages: Any) -> dict[str, Word]:
    return {m.call_id: Word(m.error, m.text) for m in messages if isinstance(m, ToolMessage)}
