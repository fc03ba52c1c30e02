"""A model's summary of the turns that leave a conversation, and the compaction that this makes."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Final

from agentkit.agent.journal import Ask
from agentkit.agent.spending import BudgetSpent
from agentkit.events import Finish, SourceEvent, Text, Usage
from agentkit.messages import AssistantMessage, ImagePart, SystemMessage, TextPart, ToolCall, user
from agentkit.models.base import Model, ModelRequest
from agentkit.threads.compaction import Compaction, CompactionPlan, entry_body, plan
from agentkit.threads.conversation import Said, answer_of, key_of
from agentkit.threads.shortening import cut
from agentkit.threads.store import Log
from agentkit.tokens import text_tokens

_LOG = logging.getLogger("agentkit.threads")

SUMMARY: Final = "Summary of the conversation up to here; the messages themselves were taken out to save space:"
LEFT_OUT: Final = "[Earlier messages of this conversation were left out here: it had become too long.]"
_BREATH: Final = 1_000  # events after which others get a turn: a model that never waits could not be timed out
_USERS: Final = "The user's newest message follows, and what came last."


AskSummary = Callable[[ModelRequest], tuple[str, AsyncGenerator[SourceEvent, None]]]
"""Asks who writes summaries: gives the model's name, and what it says."""


class Writer:
    """Who writes a thread's summaries.

    Args:
        find: gives the model; asked when the first summary is due.
    """

    def __init__(self, find: Callable[[], Model]) -> None:
        self._find = find
        self._found: Model | None = None

    def asked_by(self, ask: Ask) -> AskSummary:
        """How it is asked, at the expense of a run."""

        def write(request: ModelRequest) -> tuple[str, AsyncGenerator[SourceEvent, None]]:
            self._found = model = self._found or self._find()
            return model.name, ask(model, request)

        return write


class _Failed(Exception):
    """A model was asked for a summary, and wrote none."""


async def compacted(
    log: Log, policy: Compaction, tokens: int, *, write: AskSummary | None = None, readable: bool = True
) -> dict[str, Any] | None:
    """The compaction that a thread needs now, as the body of its entry; None when there is nothing to do, or to gain.

    A summary that fails (it raised, took too long, was refused or cut, nothing came) costs nothing but the summary: the
    oldest turns are then left out, and a note says so. Where the run's budget has nothing left for it nothing is done:
    there will be no request that could be too long.

    Args:
        log: the whole thread.
        policy: when and how.
        tokens: of the conversation, see `agentkit.threads.sizes`.
        write: asks who writes summaries; None for no summaries.
        readable: whether the model has a tool that reads stored results again.
    """
    if write is not None and policy.summary_tokens:
        wanted = plan(log, policy, tokens, readable=readable)
        if wanted is None or wanted.start is None:
            return None if wanted is None else entry_body(wanted, tokens, None, {})
        try:
            summary, made = await _summarised(wanted, policy, write)
        except BudgetSpent:
            return None
        except (Exception, asyncio.CancelledError) as e:
            if isinstance(e, asyncio.CancelledError) and _is_cancelled():
                raise
            _LOG.warning("no summary, the oldest turns are left out: %s: %s", type(e).__name__, e)
        else:
            return entry_body(wanted, tokens, _introduced(summary, wanted), made)
    wanted = plan(log, policy, tokens, summary=False, readable=readable)
    if wanted is None:
        return None
    return entry_body(wanted, tokens, _noted(wanted, policy), {})


def _is_cancelled() -> bool:
    """Whether the task that runs this is, and not only something in it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _summarised(wanted: CompactionPlan, policy: Compaction, write: AskSummary) -> tuple[str, dict[str, Any]]:
    """The summary of what is dropped, made in several steps where one request could not hold it, and what it cost."""
    spent, summary, name = Usage(), _before(wanted), ""
    async with asyncio.timeout(policy.summary_timeout):
        for part in _parts(_transcript(wanted.dropped, policy), policy.window // 2):
            name, summary, usage = await _asked(summary, part, policy, write)
            spent = spent.plus(usage)
    if not summary:
        raise _Failed("there was nothing to write of")
    return cut(summary, 2 * policy.summary_tokens), {"model": name, "usage": list(spent)}


async def _asked(summary: str, part: str, policy: Compaction, write: AskSummary) -> tuple[str, str, Usage]:
    before = f"<summary_so_far>\n{summary}\n</summary_so_far>\n\n" if summary else ""
    task = f"Write the summary of all of it, in at most {policy.summary_tokens * 3 // 4:,} words."
    asked = f"{before}<conversation>\n{part}\n</conversation>\n\n{task}"
    written: list[str] = []
    usage, finish = Usage(), Finish("unknown")
    name, events = write(ModelRequest((SystemMessage(policy.summary_prompt), user(asked))))
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
        said = finish.raw or finish.reason
        raise _Failed(f"{name} did not write to its end" + (f" ({said})" if said != "unknown" else ""))
    text = "".join(written).strip()
    if not text:
        raise _Failed(f"{name} wrote nothing")
    return name, text, usage


def _before(wanted: CompactionPlan) -> str:
    """The summary of an earlier compaction, if what is dropped begins with one."""
    first = wanted.dropped[0]
    if first.entry is not None:
        return ""
    return "".join(part.text for part in first.message.content if isinstance(part, TextPart))


def _introduced(summary: str, wanted: CompactionPlan) -> str:
    return "\n\n".join([SUMMARY, summary, *([_USERS] if wanted.user is not None else [])])


def _noted(wanted: CompactionPlan, policy: Compaction) -> str | None:
    """What stands for turns that nobody summarised: the summary of those before them, and a note."""
    if wanted.start is None:
        return None
    before = _before(wanted).removesuffix(LEFT_OUT).strip()
    kept = [cut(before, 2 * policy.summary_tokens)] if before and policy.summary_tokens else []
    return "\n\n".join([*kept, LEFT_OUT])


# ---------------------------------------------------------------- what the summary's model reads


def _transcript(dropped: Sequence[Said], policy: Compaction) -> Iterator[str]:
    """What is dropped, message by message; tool outputs shortened, a text no longer than an eighth of the window."""
    for said in dropped:
        if said.entry is None:
            continue
        role = "Assistant" if isinstance(said.message, AssistantMessage) else "User"
        for part in said.message.content:
            match part:
                case TextPart(text) if text.strip():
                    yield f"{role}: {cut(text, policy.window // 8)}"
                case ImagePart():
                    yield f"{role}: (an image)"
                case ToolCall(_, name, arguments):
                    written = json.dumps(dict(arguments), ensure_ascii=False, default=str)
                    yield f"Assistant calls {name}: {cut(written, policy.result_tokens)}"
        for call, answer in said.answers:
            words = "failed" if answer.error else "gave"
            yield f"{answer.name} ({key_of(call)}) {words}: {cut(answer_of(call).text, policy.result_tokens)}"


def _parts(lines: Iterator[str], tokens: int) -> Iterator[str]:
    """The lines in parts of at most so many tokens."""
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
