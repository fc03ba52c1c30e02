"""One task in one calling mode: what the model did with it, and what that cost."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

from agentkit import Agent, Budget, ProcessorConfig, ToolRegistry
from agentkit.errors import ProviderError
from agentkit.events import InventedResult, UnreadCall, Usage
from agentkit.fit.plain_tasks import FitTask, MadeCall, Storeroom
from agentkit.models import Model

SYSTEM: Final = "Use the tools for what they can do. Answer in one short sentence."
TURNS: Final = 6  # responses to one task at most: the longest needs three
SECONDS: Final = 60.0  # of one task at most: a small model that repeats itself takes all it gets


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """The outcome of one task.

    Args:
        task: its name.
        right: whether the right calls ran with the right values, and the answer says their result.
        mistake: what was wrong, in words; empty if nothing was.
        invented: results of tools, or turns of others, that the model wrote itself.
        unread: calls of a tool that could not be read.
        empty: whether it ended without a word.
        input_tokens: of all requests.
        output_tokens: of all replies.
        seconds: wall clock time.
    """

    task: str
    right: bool
    mistake: str = ""
    invented: int = 0
    unread: int = 0
    empty: bool = False
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0


class Trial:
    """A model in one calling mode, and how it is asked.

    Args:
        model: the model in that mode.
        own: the user's tools, which are never run.
        temperature: None for the model's own.
        max_tokens: of one reply.
    """

    def __init__(self, model: Model, own: ToolRegistry, *, temperature: float | None, max_tokens: int) -> None:
        self.model = model
        self._own = own
        self._settings: dict[str, Any] = {"max_turns": TURNS, "max_tokens": max_tokens}
        if temperature is not None:
            self._settings["temperature"] = temperature

    async def outcome(self, task: FitTask) -> TaskOutcome:
        """Try a task. A call of the user's tools waits for an approval that never comes, and is judged as it is.

        Raises:
            ProviderError: the server failed.
        """
        room = Storeroom()
        agent = Agent(
            self.model,
            self._own if task.own else room,
            system=SYSTEM,
            config=ProcessorConfig(requires_approval=True if task.own else None),
            budget=Budget(seconds=SECONDS),
            **self._settings,
        )
        started = time.monotonic()
        stream = agent.stream(task.prompt)
        async with stream:
            events = [event async for event in stream]
        seconds, result = time.monotonic() - started, stream.result
        ran: list[MadeCall] = [(call.name, call.arguments) for call in result.pending] if task.own else room.ran
        wrong = "" if result.finish in ("stop", "approval") else f"ended by {result.finish}"
        mistake = wrong or task.mistake(ran, result.text)
        begun = [now for last, now in zip([None, *events], events, strict=False) if type(now) is not type(last)]
        return TaskOutcome(
            task.name,
            not mistake,
            mistake,
            invented=sum(isinstance(event, InventedResult) for event in begun),  # one streams as several events
            unread=sum(isinstance(event, UnreadCall) for event in events),
            empty=result.finish == "empty",
            input_tokens=result.usage.input_tokens,
            output_tokens=result.usage.output_tokens,
            seconds=seconds,
        )


def failure_outcome(task: FitTask, error: ProviderError) -> TaskOutcome:
    """The outcome of a task that the server did not answer."""
    spent: Usage = error.result.usage if error.result is not None else Usage()
    return TaskOutcome(task.name, False, str(error), input_tokens=spent.input_tokens, output_tokens=spent.output_tokens)
