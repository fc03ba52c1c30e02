"""The events of an agent's runs as the events of one reply to a client. Pure; runs nothing.

A client sees what the agent says in all of its turns, and what it thinks. The agent's own calls are not the client's:
the client could not run them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from agentkit.agent import RunFinish, RunResult
from agentkit.errors import ConfigError, ProviderError, StoreConflict, StoreError, ThreadBusy
from agentkit.events import CallEnd, Event, Finish, FinishReason, SourceEvent, Text, Thinking, ToolStarted, Usage
from agentkit.gateway.client_request import RequestRefused
from agentkit.gateway.error_replies import as_refusal
from agentkit.gateway.exchanges import ReplyRecord

GAP: Final = "\n\n"
"""Between the texts of two turns."""

NOTE: Final = 200  # characters of a call's arguments in a note about it

ENDS: Final[Mapping[RunFinish, FinishReason]] = {
    **dict.fromkeys(("stop", "agent_terminated", "approval", "tool_calls", "pause", "unknown"), "stop"),
    **dict.fromkeys(("max_turns", "token_budget", "cost_budget", "time_budget", "call_budget"), "length"),
    **dict.fromkeys(("length", "loop_detected", "tool_limit_reached"), "length"),
    **dict.fromkeys(("content_filter", "refused_by_guard"), "content_filter"),
    "refusal": "refusal",
}
"""How a client reads why a run ended. A run that ended otherwise gave no answer: `NO_ANSWER`."""

NO_ANSWER: Final = "the agent gave no answer: its run ended with {!r}"

FAILED_AFTER: Final = 424
"""The status of a failure after a tool has started: not a 5xx, after which the clients' SDKs repeat the request, and so
the whole run."""

_STATUS: Final[Mapping[str, int]] = {"too_long": 400, "rate_limit": 429, "overloaded": 503, "timeout": 504}
_CODES: Final[Mapping[str, str]] = {"too_long": "context_length_exceeded", "rate_limit": "rate_limit_exceeded"}


class AgentReply:
    """One reply, from the events of the runs that make it.

    Args:
        record: gets what is counted.
        shows_calls: whether the thinking has a line for each call that starts.
    """

    def __init__(self, record: ReplyRecord, *, shows_calls: bool = False) -> None:
        self.acted = False
        """True once a tool has started."""
        self._record = record
        self._shows_calls = shows_calls
        self._said = self._thought = ""  # the last piece of text, and of thinking
        self._gap = False  # a turn has ended since

    def feed(self, event: Event) -> Iterator[SourceEvent]:
        """Return what a client sees of one event."""
        match event:
            case Text(text) if text:
                if self._gap and self._said:
                    yield Text(GAP)
                self._said, self._gap = text, False
                yield event
            case Thinking(text):
                self._thought = text
                yield event
            case CallEnd(_, _, repairs):
                self._record.repairs += repairs
            case ToolStarted(_, call):
                self.acted = True
                if self._shows_calls:
                    start = "\n" if self._thought and not self._thought.endswith("\n") else ""
                    self._thought = "\n"
                    yield Thinking(f"{start}[{call.name} {_short(call.arguments)}]\n")
            case Finish():
                self._gap = True

    def close(self, results: Sequence[RunResult[Any]], last_words: str = "", note: str = "") -> Iterator[SourceEvent]:
        """End the reply: words that were not streamed, the usage of all runs, and one finish.

        Args:
            results: those of the runs, oldest first.
            last_words: what the answer says besides its text, such as the arguments of a call that ended the run.
            note: what is said after everything else, such as which calls wait.

        Raises:
            RequestRefused: the runs gave no answer.
        """
        end = results[-1]
        self.count(results)
        reason = ENDS.get(end.finish)
        if end.finish == "cancelled":  # not by this client, which has left then
            raise self.failure("the gateway ended the agent's run", "run_ended", 503)
        if reason is None:
            raise self.failure(NO_ANSWER.format(end.finish), "no_answer")
        self._gap = True
        for text in (end.text if not self._said else "", last_words, note):
            yield from self.feed(Text(text))
            self._gap = True
        if self._record.usage is not None:
            yield self._record.usage
        yield Finish(reason)

    def count(self, results: Sequence[RunResult[Any]]) -> None:
        """Record what the runs spent, and how the last one ended."""
        usage = Usage()
        for result in results:
            usage = usage.plus(result.usage)
            self._record.finish = result.finish
        self._record.usage = usage

    def failure(self, message: str, code: str, status: int = 502, retry_after: float | None = None) -> RequestRefused:
        """The error that ends the reply."""
        if self.acted and status >= 429:
            status, retry_after = FAILED_AFTER, None
        return RequestRefused(status, message, code, retry_after=retry_after)

    def refusal(self, error: Exception) -> RequestRefused:
        """The client's error for one that ended a run; its keys are redacted, and only the operator's log has more."""
        match error:
            case RequestRefused() | ThreadBusy() | StoreConflict():
                return as_refusal(error)
            case ProviderError():
                status, code = _STATUS.get(error.kind, 502), _CODES.get(error.kind, "agent_failed")
                return self.failure(f"the agent's model failed: {error}", code, status, error.retry_after)
            case StoreError():
                return self.failure(f"the store of the threads failed: {error}", "store_failed", 503)
        what = "its settings are wrong" if isinstance(error, ConfigError) else type(error).__name__
        return self.failure(f"the agent failed ({what}); the gateway's log says more", "agent_failed", 500)


def _short(arguments: Mapping[str, Any]) -> str:
    text = json.dumps(arguments, ensure_ascii=False, default=str)
    return text if len(text) <= NOTE else f"{text[:NOTE]}…"


def waiting_note(result: RunResult[Any], thread: str | None, where: str) -> str:
    """Say which calls wait for a person, and where to decide about them; empty if none does.

    Args:
        result: the run's.
        thread: the thread in which they wait.
        where: the command or address with `{thread}` and `{call}` in it.
    """
    if result.finish != "approval" or thread is None:
        return ""
    lines = [
        f"- {call.name} {json.dumps(dict(call.arguments), ensure_ascii=False, default=str)}: "
        f"{where.format(thread=thread, call=call.id)}"
        for call in result.pending
    ]
    return "\n".join(
        ["Not run yet, because a person has to approve it:", *lines, "Decide there, and then write again here."]
    )
