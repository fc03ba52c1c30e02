"""The runs of an agent that answer one request: on the request's own conversation, or on a thread of a store.

Knows agents and threads; knows no client's wire.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, Final

from agentkit.agent import Agent, RunResult, RunStream
from agentkit.errors import ThreadNotFound
from agentkit.events import Event
from agentkit.gateway.agent_conversation import AgentInput
from agentkit.gateway.client_request import RequestRefused
from agentkit.threads import ThreadManager
from agentkit.threads.resume import waits_inside

OWNER: Final = "gateway_agent"
"""In a thread's metadata: the agent, by its name in the gateway. A client reaches only threads of the agent it asks."""


@dataclass(slots=True)
class AgentRuns:
    """The runs that answer one request: one, or two on a thread on which a person has decided about calls.

    Args:
        agent: the agent; its calls wait for a person only if its `config` is attended.
        name: its name in the gateway.
        said: what to answer.
        thread: the thread's id; None for the request's own conversation.
        threads: where threads are stored.
        repeat: the client's own id of its message; None for none.
        results: the results of the runs that are over, even those that failed.
    """

    agent: Agent[Any, Any]
    name: str
    said: AgentInput
    thread: str | None = None
    threads: ThreadManager | None = None
    repeat: str | None = None
    results: list[RunResult[Any]] = field(default_factory=list)
    _added: bool = False

    async def events(self) -> AsyncGenerator[Event, None]:
        """The events of all runs. Closing the generator ends the run, and waits for its end.

        Raises:
            RequestRefused: the thread belongs to someone else.
            AgentkitError: as a run raises it.
        """
        resumed = await self._open()
        run: RunStream[Any] | None = self._resume() if resumed else self._answer()
        while run is not None:
            try:
                async with run:
                    async for event in run:
                        if resumed and not self._added:
                            await self._add()
                        yield event
            finally:
                if run.over:
                    self.results.append(run.result)
            run, resumed = self._next(run.result) if resumed else None, False

    def _next(self, resumed: RunResult[Any]) -> RunStream[Any] | None:
        """The run after the one that acted on decided calls; None if that has answered the message."""
        if not self._added:  # nothing happened in it, as without budget
            return self._answer()
        return self._resume() if resumed.finish == "approval" else None  # other calls waited, until it was added

    def _answer(self) -> RunStream[Any]:
        """The run that adds the message, and answers it."""
        if self.thread is None or self.threads is None:
            return self.agent.stream(self.said.messages)
        return self.threads.say_stream(self.thread, self.said.last, agent=self.agent, client_id=self.repeat)

    def _resume(self) -> RunStream[Any]:
        """The run that acts on decided calls, and answers whatever was added."""
        assert self.thread is not None
        assert self.threads is not None
        return self.threads.run_agent(self.thread, self.agent)

    async def _add(self) -> None:
        """Add the message once the run has the decided calls: it withdraws those that wait, and is answered as well."""
        assert self.thread is not None
        assert self.threads is not None
        await self.threads.add_message(self.thread, self.said.last, client_id=self.repeat)
        self._added = True

    async def _open(self) -> bool:
        """Create the thread with the client's history, or make sure that it is this agent's.

        Returns whether it has calls to act on before the message is added.
        """
        if self.thread is None or self.threads is None:
            return False
        try:
            known = await self.threads.get_thread(self.thread)
        except ThreadNotFound:
            owner, history = {OWNER: self.name}, self.said.history
            await self.threads.create_thread(self.thread, metadata=owner, messages=history, exist_ok=True)
            known = await self.threads.get_thread(self.thread)
        if known.metadata.get(OWNER) != self.name:
            found = f"{self.name!r} has no thread {self.thread!r}"
            raise RequestRefused(404, found, "thread_not_found", param="thread_id")
        return await has_decided_calls(self.threads, self.thread)


async def has_decided_calls(threads: ThreadManager, thread: str) -> bool:
    """Return whether a thread has calls that a run can act on: approved ones, or those that a crash left.

    Raises:
        ThreadNotFound: there is no such thread.
    """
    calls = [call for call in (await threads.get_log(thread)).calls if call.status != "answered"]
    if not calls:
        return False
    waiting = await threads.pending(thread)
    inside = {call.id.partition("/")[0] for call in waiting if "/" in call.id}
    return any(call.status != "waiting" or (waits_inside(call) and call.id not in inside) for call in calls)
