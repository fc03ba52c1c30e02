"""A model's summary of the turns that are removed from a conversation, and the resulting compaction."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Final

from agentkit.agent.journal import Ask
from agentkit.agent.run_budget import BudgetSpent
from agentkit.checks.keys import words
from agentkit.events import Finish, SourceEvent, Text, Usage
from agentkit.formats.control import restore
from agentkit.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    MaterialPart,
    SystemMessage,
    TextPart,
    ToolCall,
    UserMessage,
)
from agentkit.models.base import Model, ModelRequest
from agentkit.models.tokens import text_tokens
from agentkit.threads.compaction import Compaction, CompactionPlan, entry_body, plan
from agentkit.threads.conversation import LocatedMessage, answer_of, key_of
from agentkit.threads.excerpts import excerpt
from agentkit.threads.store import Log
from agentkit.tool.registry import ToolRegistry

_LOG = logging.getLogger("agentkit.threads")

SUMMARY: Final = "Summary of the conversation up to here; the messages themselves were taken out to save space:"
LEFT_OUT: Final = "[Earlier messages of this conversation were left out here: it had become too long.]"
_BREATH: Final = 1_000  # events after which other tasks may run: otherwise a model that never waits could not time out
_USERS: Final = "The user's newest message follows, and then the newest part of the conversation."


AskSummary = Callable[[ModelRequest], tuple[str, AsyncGenerator[SourceEvent, None]]]
"""Asks the writer of summaries: returns the model's name, and its events."""


class Writer:
    """The writer of a thread's summaries.

    Args:
        find: returns the model; called when the first summary is due.
    """

    def __init__(self, find: Callable[[], Model]) -> None:
        self._find = find
        self._found: Model | None = None

    def asked_by(self, ask: Ask, registry: ToolRegistry) -> AskSummary:
        """A function that asks it, at the expense of a run that has these tools."""

        def write(request: ModelRequest) -> tuple[str, AsyncGenerator[SourceEvent, None]]:
            self._found = model = self._found or self._find()
            if model.format is not None:  # so that it reads no call of them in the material; it may not make any
                request = replace(request, tools=registry.offered_specs(model.format), tool_choice="none")
                return model.name, _restored(ask(model, request))
            return model.name, ask(model, request)

        return write


async def _restored(events: AsyncGenerator[SourceEvent, None]) -> AsyncGenerator[SourceEvent, None]:
    """Yield a model's events with the quarantined texts that it passes on restored."""
    async with aclosing(events):
        async for event in events:
            yield Text(restore(event.text)) if isinstance(event, Text) else event


class NoSummary(Exception):
    """A model was asked for a summary, but did not write one."""


async def compaction_body(
    log: Log, policy: Compaction, tokens: int, *, write: AskSummary | None = None, readable: bool = True
) -> dict[str, Any] | None:
    """Return the compaction that a thread needs now, as the body of its entry; None if there is nothing to gain.

    If a summary fails (it raised, took too long, was refused, cut off or empty), only the summary is lost: the oldest
    turns are then dropped, and a note says so. If the run's budget has nothing left for it, nothing is done: no further
    request will be made.

    Args:
        log: the whole thread.
        policy: when and how.
        tokens: the tokens of the conversation, see `agentkit.threads.sizes`.
        write: asks the writer of summaries; None for no summaries.
        readable: whether the model has a tool that reads stored results again.
    """
    if write is not None and policy.summary_tokens:
        chosen = plan(log, policy, tokens, readable=readable)
        if chosen is None or chosen.start is None:
            return None if chosen is None else entry_body(chosen, tokens, None, {})
        try:
            summary, made = await _summarised(chosen, policy, write)
        except BudgetSpent:
            return None
        except (Exception, asyncio.CancelledError) as e:
            if isinstance(e, asyncio.CancelledError) and _is_cancelled():
                raise
            _LOG.warning("no summary, the oldest turns are dropped: %s", e if isinstance(e, NoSummary) else words(e))
        else:
            return entry_body(chosen, tokens, _introduced(summary, chosen), made)
    chosen = plan(log, policy, tokens, summary=False, readable=readable)
    if chosen is None:
        return None
    return entry_body(chosen, tokens, _noted(chosen, policy), {})


def _is_cancelled() -> bool:
    """Return True if the current task itself is cancelled, not only a task that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _summarised(chosen: CompactionPlan, policy: Compaction, write: AskSummary) -> tuple[str, dict[str, Any]]:
    """Return a summary of the dropped messages, in several requests if one is too small, and its model and usage."""
    spent, summary, name = Usage(), _before(chosen), ""
    async with asyncio.timeout(policy.summary_timeout):
        for part in _parts(_transcript(chosen.dropped, policy), policy.window // 2):
            name, summary, usage = await _asked(summary, part, policy, write)
            spent = spent.plus(usage)
    if not summary:
        raise NoSummary("there was nothing to summarize")
    return excerpt(summary, 2 * policy.summary_tokens), {"model": name, "usage": list(spent)}


async def _asked(summary: str, part: str, policy: Compaction, write: AskSummary) -> tuple[str, str, Usage]:
    before = f"<summary_so_far>\n{summary}\n</summary_so_far>\n\n" if summary else ""
    task = f"Write the summary of all of it, in at most {policy.summary_tokens * 3 // 4:,} words."
    asked = f"{before}<conversation>\n{part}\n</conversation>\n\n{task}"
    written: list[str] = []
    usage, finish = Usage(), Finish("unknown")
    name, events = write(ModelRequest((SystemMessage(policy.summary_prompt), UserMessage(MaterialPart(asked)))))
    async with aclosing(events):
        async for event in events:
            match event:
                case Text(text):
                    written.append(text)
                    if len(written) % _BREATH == 0:
                        await asyncio.sleep(0)
                case Usage():
                    usage = event
                case Finish():
                    finish = event
    if finish.reason != "stop" and not (finish.reason == "unknown" and finish.raw):
        reason = finish.raw or finish.reason
        raise NoSummary(f"{name} did not finish it" + (f" ({reason})" if reason != "unknown" else ""))
    text = "".join(written).strip()
    if not text:
        raise NoSummary(f"{name} wrote nothing")
    return name, text, usage


def _before(chosen: CompactionPlan) -> str:
    """Return the summary of an earlier compaction, if the dropped messages begin with one."""
    first = chosen.dropped[0]
    if first.entry is not None:
        return ""
    return "".join(part.text for part in first.message.content if isinstance(part, TextPart))


def _introduced(summary: str, chosen: CompactionPlan) -> str:
    return "\n\n".join([SUMMARY, summary, *([_USERS] if chosen.user is not None else [])])


def _noted(chosen: CompactionPlan, policy: Compaction) -> str | None:
    """The text that replaces turns without a summary: the summary of the turns before them, and a note."""
    if chosen.start is None:
        return None
    before = _before(chosen).removesuffix(LEFT_OUT).strip()
    kept = [excerpt(before, 2 * policy.summary_tokens)] if before and policy.summary_tokens else []
    return "\n\n".join([*kept, LEFT_OUT])


# ---------------------------------------------------------------- what the summary's model reads


def _transcript(dropped: Sequence[LocatedMessage], policy: Compaction) -> Iterator[str]:
    """Yield the dropped messages as text; tool outputs shortened, each text at most an eighth of the window."""
    for said in dropped:
        if said.entry is None:
            continue
        role = "Assistant" if isinstance(said.message, AssistantMessage) else "User"
        for part in said.message.content:
            match part:
                case TextPart(text) if text.strip():
                    yield f"{role}: {excerpt(text, policy.window // 8)}"
                case ImagePart():
                    yield f"{role}: (an image)"
                case FilePart():
                    yield f"{role}: ({part.kind} {excerpt(part.name, policy.result_tokens)})"
                case ToolCall(_, name, arguments):
                    written = json.dumps(dict(arguments), ensure_ascii=False, default=str)
                    yield f"Assistant calls {name}: {excerpt(written, policy.result_tokens)}"
        for call, answer in said.answers:
            words = "failed" if answer.error else "returned"
            yield f"{answer.name} ({key_of(call)}) {words}: {excerpt(answer_of(call).text, policy.result_tokens)}"


def _parts(lines: Iterator[str], tokens: int) -> Iterator[str]:
    """The lines in parts of at most this many tokens."""
    part: list[str] = []
    size = 0
    for line in lines:
        more = text_tokens(line)
        if part and size + more > tokens:
            yield "\n\n".join(part)
            part, size = [], 0
        part.append(line)
        size += more
    if part:
        yield "\n\n".join(part)
