"""An agent with its own tools as a model of the gateway: one request of a client is one run of the agent.

The conversation is the request's own, or a thread of a store. A client that leaves ends the run: its calls are
answered, and nothing of it continues.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from copy import copy
from dataclasses import replace
from typing import Any, Final, Literal, get_args

from agentkit.agent import Agent
from agentkit.agent.delegate import terminating_words
from agentkit.checks.bounds import TEXT, YES_OR_NO, Bounds, instance, one_of, or_none, refuse
from agentkit.errors import AgentkitError, ConfigError
from agentkit.events import SourceEvent
from agentkit.gateway.agent_conversation import REPEAT_HEADER, THREAD_HEADER, input_of, thread_of
from agentkit.gateway.agent_reply import AgentReply, waiting_note
from agentkit.gateway.agent_runs import AgentRuns
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.client_wire import ReplyWriter
from agentkit.gateway.exchanges import Exchange, GatewayReply, MadeBody, ReadBody
from agentkit.models.files_taken import check_model_files
from agentkit.threads import ThreadManager
from agentkit.tool import ToolRegistry

Unapproved = Literal["deny", "safe", "ask"]
"""The fate of a call that needs a person's approval, for clients that cannot ask one.

- `deny`: it is answered `denied` with the reason, and the agent continues.
- `safe`: as `deny`, and tools whose every call needs approval are not offered to the agent's model.
- `ask`: on a thread, it waits, and the reply says where to approve it. Without a thread, as `deny`.
"""

APPROVE: Final = "agentkit threads approve {thread} {call}"
"""Where a call is approved, by default."""

_LOG: Final = logging.getLogger("agentkit.gateway")

_BOUNDS: Final[Bounds] = {
    "agent": instance(Agent, "an Agent"),
    "threads": or_none(instance(ThreadManager, "a ThreadManager"), "for no threads"),
    "unapproved": one_of(get_args(Unapproved)),
    "approve": TEXT,
    "shows_calls": YES_OR_NO,
}


class AgentModel:
    """Answers requests for one model of the gateway by runs of an agent.

    The model's settings are the agent's own: a client's `temperature`, `max_tokens`, `stop` and further fields do not
    change them. Requests that offer tools are refused.

    Args:
        agent: the agent. `aclose` closes it.
        threads: where threads are stored; None if there are none. `aclose` closes it.
        unapproved: what becomes of calls that need approval.
        approve: where a person decides about a call that waits: a text with `{thread}` and `{call}` in it.
        shows_calls: whether a reply's thinking has a line for each call that starts.

    Raises:
        ConfigError: an argument is wrong, or the agent's model has no key.
    """

    def __init__(
        self,
        agent: Agent[Any, Any],
        *,
        threads: ThreadManager | None = None,
        unapproved: Unapproved = "deny",
        approve: str = APPROVE,
        shows_calls: bool = False,
    ) -> None:
        given = {"agent": agent, "threads": threads, "unapproved": unapproved, "approve": approve}
        refuse("AgentModel", {**given, "shows_calls": shows_calls}, _BOUNDS)
        agent.model  # noqa: B018 - created now: a missing key is found at the start, and a copy shares the model
        self._asking = agent if unapproved == "ask" else None
        self.agent = without_approvals(agent, safe=unapproved == "safe")
        self._threads = threads
        self._approve = approve
        self._shows_calls = shows_calls
        self._closes = agent
        self._running: set[str | None] = set()

    @property
    def name(self) -> str:
        """The name under which it is served: the agent's."""
        return self.agent.name

    async def answer(self, exchange: Exchange) -> GatewayReply:
        """Answer one request; the status is known once the run has started.

        Raises:
            RequestRefused: the request is not for an agent (400), its thread is being run (409), or the run failed
                before its first event.
        """
        asked = exchange.wire.read(exchange.body)
        said, thread = input_of(asked), thread_of(exchange.headers, exchange.body)
        try:
            check_model_files(self.agent.model, said.messages)
        except ConfigError as error:
            raise RequestRefused(400, str(error), "unsupported_part", param="messages") from error
        repeat = exchange.headers.get(REPEAT_HEADER)
        agent = self.agent if thread is None else self._asking or self.agent
        runs = AgentRuns(agent, asked.model, said, thread, self._threads, repeat)
        self._reserve(thread)
        exchange.record.format = "agent"
        batches = self._reply(runs, AgentReply(exchange.record, shows_calls=self._shows_calls))
        first = await anext(batches)  # a failure before it has its own status
        own = () if thread is None else ((THREAD_HEADER.encode(), thread.encode()),)
        if asked.request.stream:
            pieces = MadeBody(_bytes(exchange.wire.writer(asked), first, batches), batches.aclose)
            return GatewayReply(200, ((b"content-type", b"text/event-stream; charset=utf-8"), *own), pieces)
        async with aclosing(batches):
            whole = exchange.wire.whole(asked, [*first, *[event async for events in batches for event in events]])
        return GatewayReply(200, ((b"content-type", b"application/json"), *own), ReadBody(json.dumps(whole).encode()))

    async def aclose(self) -> None:
        """End the runs on threads, and close the store and the agent."""
        if self._threads is not None:
            await self._threads.aclose()
        await self._closes.aclose()

    async def _reply(self, runs: AgentRuns, reply: AgentReply) -> AsyncGenerator[list[SourceEvent], None]:
        """Yield the events for a client, for each event of the runs and for their end.

        Closing it ends the run, as a person's stop does: calls that have started are cancelled, and all are answered.

        Raises:
            RequestRefused: they failed, or gave no answer.
        """
        try:
            async with aclosing(runs.events()) as events:
                async for event in events:
                    yield [*reply.feed(event)]
            end = runs.results[-1]
            words, note = terminating_words(end, self.agent), waiting_note(end, runs.thread, self._approve)
            last = [*reply.close(runs.results, "\n\n".join(words), note)]
        except RequestRefused:
            raise
        except Exception as e:
            _LOG.error("the agent %r: %s", runs.name, e, exc_info=not isinstance(e, AgentkitError))
            raise reply.refusal(e) from e
        finally:
            reply.count(runs.results)
            self._running.discard(runs.thread)
        yield last

    def _reserve(self, thread: str | None) -> None:
        """Keep other requests from running a thread, until its reply is over.

        Raises:
            RequestRefused: there are no threads (400), or another request runs it (409).
        """
        if thread is None:
            return
        if self._threads is None:
            found = f"{THREAD_HEADER}: this gateway keeps no threads: send the whole conversation without it"
            raise RequestRefused(400, found, "invalid_request", param="thread_id")
        if thread in self._running:
            found = f"thread {thread!r} is answering another request; this one was not added to it"
            raise RequestRefused(409, found, "thread_busy", retry_after=1.0)
        self._running.add(thread)


def without_approvals(agent: Agent[Any, Any], *, safe: bool) -> Agent[Any, Any]:
    """Return a copy of the agent of which no call waits for a person.

    Args:
        agent: the agent, with a model that was created.
        safe: whether the tools whose every call needs approval are left out.
    """
    rule, alone = agent.config.requires_approval, copy(agent)
    alone.config = replace(agent.config, attended=False)
    if safe:
        tools = {id(tool): tool for tool in (*agent.registry.tools.values(), *agent.registry.xml_tools.values())}
        alone.registry = ToolRegistry(
            *(tool for tool in tools.values() if (tool.policy.requires_approval if rule is None else rule) is not True)
        )
    return alone


async def _bytes(
    writer: ReplyWriter, first: Sequence[SourceEvent], batches: AsyncIterator[Sequence[SourceEvent]]
) -> AsyncGenerator[bytes, None]:
    """The bytes of a streamed reply, whose first events are known."""
    yield writer.start() + b"".join(map(writer.write, first))
    try:
        async for events in batches:
            if piece := b"".join(map(writer.write, events)):
                yield piece
    except RequestRefused as e:
        yield writer.fail(e)
