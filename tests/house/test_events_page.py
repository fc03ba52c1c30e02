"""The page "The map of events": its diagrams are exactly what runs yield."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import agentkit.events
from agentkit import Agent, Approved, Denied, ProcessorConfig, ProviderError, ToolCall, ToolContext, openapi_schema
from agentkit.events import ArgumentDelta, CallEnd, CallStart, Finish, Text, ToolStarted, Usage
from agentkit.testing import ScriptedModel

PAGE = (Path(__file__).parents[2] / "docs" / "events.md").read_text()
RUN, CALL = (set(re.findall(r"^ +(\S+) --> (\S+)$", block, re.MULTILINE)) for block in PAGE.split("```mermaid")[1:])
LIFECYCLE = {"RunStarted", "TurnStarted", "TurnEnded", "RunEnded"}
LOST = ProviderError("lost", kind="connection", provider="openai")


def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


@openapi_schema(requires_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@openapi_schema(terminates=True)
def leave(text: str) -> str:
    """End."""
    return text


async def stop(context: ToolContext[asyncio.Event]) -> None:
    """Cancel the run, then take a while."""
    context.state.set()
    await asyncio.sleep(30)


HELPER = Agent(ScriptedModel([ToolCall("h1", "pay", {"amount": 1})]), [pay]).as_tool("ask_helper", "Help.")
TOOLS = [add, pay, leave, stop, HELPER]
ADD = ToolCall("c1", "add", {"a": 1})
PAY = ToolCall("c1", "pay", {"amount": 1})
STOP = ToolCall("c2", "stop", {})

SCRIPTS: Sequence[tuple[str | None, list[Any]]] = (
    (None, [ADD, "Done."]),
    (None, [ToolCall("c1", "ad", {"a": 1}), "Sorry."]),
    (None, [ToolCall("c1", "add", {"a": "x"}), "Sorry."]),
    (None, [[ToolCall("c1", "leave", {"text": "x"}), ADD]]),
    (None, [[PAY, STOP]]),
    (None, [ToolCall("c1", "ask_helper", {"task": "pay"})]),
    (None, [[CallStart(0, "add", "c1"), ArgumentDelta(0, '{"a"'), ArgumentDelta(0, ": 1}"), CallEnd(0, ADD)], "Done."]),
    (None, [[CallStart(0, "add", "c1"), ArgumentDelta(0, '{"a"'), LOST]]),
    (None, [[ADD, Usage(1, 2), Finish("refusal")], "Sorry."]),
    ("xml", ["<leave><text>x</text></leave><add><a>1</a></add>"]),
    ("xml", ["<add/>", "Sorry."]),
    ("xml", [[Text("<add><a>1</a><b>2"), Finish("length")], "Sorry."]),
    ("invoke", ['<invoke name="add" path="/tmp"/>', "Sorry."]),
    ("hermes", ["Hm. <tool_call>{bad</tool_call>", "Sorry."]),
)


class Seen:
    """A hook that notes, for each run and for each of its calls, which event followed which."""

    def __init__(self) -> None:
        self.runs: set[tuple[str, str]] = set()
        self.calls: set[tuple[str, str]] = set()
        self.last: dict[Any, str] = {}

    def __call__(self, event: Any, run: Any) -> None:
        name = type(event).__name__
        if name in LIFECYCLE:
            before = self.last.get(run.id, "[*]")
            if before == "TurnStarted":
                self.runs |= {(before, "response"), ("response", name)}
            else:
                self.runs.add((before, name))
            self.last[run.id] = name
            if name == "TurnStarted":
                self.close(run.id)
        elif isinstance(getattr(event, "index", None), int):
            key = (run.id, event.index)
            self.calls.add((self.last.get(key, "[*]"), name))
            self.last[key] = name

    def close(self, run: object = None) -> None:
        """The calls of a run's response are over; None: those of every run."""
        over = [key for key in self.last if isinstance(key, tuple) and run in (None, key[0])]
        self.calls |= {(self.last.pop(key), "[*]") for key in over}


async def observed() -> Seen:
    """What follows what in runs of all kinds."""
    seen = Seen()
    for format, script in SCRIPTS:
        agent = Agent(ScriptedModel(script, format=format), TOOLS, hooks=[seen])
        cancel = asyncio.Event()
        try:
            await agent.run("Go.", context=cancel, cancel=cancel)
        except ProviderError:  # the connection that one of the scripts loses
            assert LOST in script[0]
        seen.close()
    run = Agent(ScriptedModel([ADD]), TOOLS, hooks=[seen]).stream("Go.")
    async for event in run:
        if isinstance(event, ToolStarted):
            run.cancel()
    seen.close()
    for decision in (Approved(), Denied("too dear")):
        agent = Agent(ScriptedModel([PAY, "Done."]), TOOLS, hooks=[seen], config=ProcessorConfig(timeout=10))
        asked = await agent.run("Pay.")
        seen.close()
        await agent.run(asked, decisions={"c1": decision})
        seen.close()
    seen.runs.add(("RunEnded", "[*]"))
    return seen


def test_the_diagrams_are_what_runs_yield() -> None:
    seen = asyncio.run(observed())
    assert seen.runs == RUN
    assert seen.calls == CALL


def test_every_event_stands_on_the_page() -> None:
    kinds = [*agentkit.events.SourceEvent.__args__, *agentkit.events.ToolEvent.__args__]  # type: ignore[attr-defined]
    assert [kind.__name__ for kind in kinds if f"| `{kind.__name__}` |" not in PAGE] == []
