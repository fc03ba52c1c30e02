"""A user's message to a thread: stored first, and answered only once.

Runs nothing, and writes nothing but the message.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agentkit.agent import RunResult
from agentkit.agent.final_reply import FinalReply
from agentkit.agent.prompts import Prompt
from agentkit.errors import ConfigError, StoreConflict, ThreadNotFound
from agentkit.events import Usage
from agentkit.messages import AssistantMessage
from agentkit.threads.conversation import in_order, messages_of, role_of
from agentkit.threads.entries import OWN, entries_of, one_message
from agentkit.threads.log_reader import read_log, readable
from agentkit.threads.resume import finish_of
from agentkit.threads.store import Entry, Log
from agentkit.tool.codec import from_json

if TYPE_CHECKING:
    from agentkit.agent.plan import Plan
    from agentkit.threads.kept_threads import KeptThreads


async def put(threads: KeptThreads, thread_id: str, message: Prompt, *, client_id: str | None = None) -> int:
    """Add a message for a model to a thread that may be new; returns the message's `seq`."""
    if isinstance(one := one_message(message, {}), AssistantMessage):
        raise ConfigError("a model answers a user's message or a result, found a model's message: use add_message")
    try:
        return await threads.add_message(thread_id, message, client_id=client_id)
    except ThreadNotFound:
        readable(entries_of([one]), thread_id)  # before there is a thread
        await threads.create_thread(thread_id, exist_ok=True)  # someone else may have created it just now
        return await threads.add_message(thread_id, message, client_id=client_id)


async def answered_before(threads: KeptThreads, thread_id: str, seq: int, plan: Plan) -> RunResult[Any] | None:
    """The stored answer to a message after which the user has written again; None if a run is to answer it.

    Args:
        threads: the threads.
        thread_id: the thread.
        seq: the message's entry.
        plan: how a run would answer it: its tools, and the type of its output.

    Raises:
        StoreConflict: it got no complete answer before the user wrote again.
    """
    since = await read_log(threads.store, thread_id, after=seq - 1)
    roles = [role_of(entry) for entry in since.entries]
    if roles[0] != "user" or "user" not in roles[1:]:  # it answered a call; or nothing was said after it, as usual
        return None
    log = await read_log(threads.store, thread_id)
    order = in_order(log)
    place = next(n for n, entry in enumerate(order) if entry.seq == seq)
    answer = _answer(order, place, log, plan)
    if answer is None:
        return None
    if answer.finish is None:
        raise StoreConflict(
            f"thread {thread_id!r}: the message {order[place].key!r} got no complete answer before the user wrote "
            "again; to ask the same again, use another client_id"
        )
    text, reply, messages = answer.text, answer.reply, tuple(messages_of(answer.log))
    return RunResult(
        text, messages, Usage(), 0, answer.finish, len(messages), output_error=reply.error, _output=reply.value
    )


class _Answer:
    """A response as the end of a run.

    Args:
        log: the thread up to this response.
        plan: the run.
    """

    def __init__(self, log: Log, plan: Plan) -> None:
        self.log = log
        message = from_json(log.entries[-1].body["message"])
        assert isinstance(message, AssistantMessage)
        self.reply = FinalReply(plan.output, 1, tool=plan.output_tool)
        self.finish = finish_of(log, plan.registry)
        """Why the run is over after it; None if it is not."""
        self.text = message.text
        if self.reply.read_last(message, messages_of(log)):
            self.finish, self.text = "stop", self.reply.called
        elif self.finish is not None and self.reply.misfits(self.text, self.finish):
            self.finish = "invalid_output"


def _answer(order: Sequence[Entry], place: int, log: Log, plan: Plan) -> _Answer | None:
    """The last response to a message; None if no user wrote after that.

    What users write before the first response is also answered by it. After that, only further responses of the same
    run belong to the answer, until it is complete.
    """
    end, run, wrote = 0, None, False
    answer: _Answer | None = None
    for at, entry in enumerate(order[place + 1 :], place + 1):
        if role_of(entry) == "assistant":
            its = entry.body.get("response", {}).get("run")
            if wrote and (its is None or its != run):
                return answer
            end, run, wrote = at, its, False
        elif end:
            answer = _Answer(replace(log, entries=tuple(order[: end + 1])), plan)
            wrote = not entry.body.get(OWN, False)
            if wrote and answer.finish is not None:
                return answer
    return None
