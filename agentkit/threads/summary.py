"""A model's summary of the turns that leave a conversation, and the compaction that this makes."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator, Sequence
from typing import Any, Final

from agentkit.errors import ProviderError
from agentkit.events import Text, Usage
from agentkit.messages import AssistantMessage, ImagePart, SystemMessage, TextPart, ToolCall, user
from agentkit.models.base import Model, ModelRequest
from agentkit.threads.compaction import Compaction, Plan, entry_body, plan
from agentkit.threads.history import Said, answer_of, key_of
from agentkit.threads.shortening import cut
from agentkit.threads.store import Log
from agentkit.tokens import text_tokens

_LOG = logging.getLogger("agentkit.threads")

SUMMARY: Final = "Summary of the conversation up to here; the messages themselves were taken out to save space:"
LEFT_OUT: Final = "[Earlier messages of this conversation were left out here: it had become too long.]"
_USERS: Final = "The user's newest message follows, and what came last."


async def compacted(
    log: Log, policy: Compaction, tokens: int, *, model: Model | None = None, readable: bool = True
) -> dict[str, Any] | None:
    """The compaction that a thread needs now, as the body of its entry; None when there is nothing to do, or to gain.

    A summary that fails (the provider refused or took too long, nothing came) costs nothing but the summary: the oldest
    turns are then left out, and a note says so.

    Args:
        log: the whole thread.
        policy: when and how.
        tokens: of the conversation, see `agentkit.threads.tokens`.
        model: who writes summaries; None for no summaries.
        readable: whether the model has a tool that reads stored results again.
    """
    if model is not None and policy.summary_tokens:
        wanted = plan(log, policy, tokens, readable=readable)
        if wanted is None or wanted.start is None:
            return None if wanted is None else entry_body(wanted, tokens, None, {})
        summary, usage = await _summarised(wanted, policy, model)
        if summary is not None:
            made = {"model": model.name, "usage": list(usage)}
            return entry_body(wanted, tokens, _introduced(summary, wanted), made)
    wanted = plan(log, policy, tokens, summary=False, readable=readable)
    if wanted is None:
        return None
    return entry_body(wanted, tokens, _noted(wanted, policy), {})


async def _summarised(wanted: Plan, policy: Compaction, model: Model) -> tuple[str | None, Usage]:
    """The summary of what is dropped, made in several steps where one request could not hold it."""
    spent, summary = Usage(), _before(wanted)
    try:
        async with asyncio.timeout(policy.summary_timeout):
            for part in _parts(_transcript(wanted.dropped, policy), policy.window // 2):
                summary, usage = await _asked(summary, part, policy, model)
                spent = spent.plus(usage)
    except (ProviderError, TimeoutError) as e:
        _LOG.warning("no summary, the oldest turns are left out: %s: %s", type(e).__name__, e)
        return None, spent
    if not summary:
        _LOG.warning("no summary, the oldest turns are left out: %s wrote nothing", model.name)
        return None, spent
    return cut(summary, 2 * policy.summary_tokens), spent


async def _asked(summary: str, part: str, policy: Compaction, model: Model) -> tuple[str, Usage]:
    before = f"<summary_so_far>\n{summary}\n</summary_so_far>\n\n" if summary else ""
    task = f"Write the summary of all of it, in at most {policy.summary_tokens * 3 // 4:,} words."
    asked = f"{before}<conversation>\n{part}\n</conversation>\n\n{task}"
    written: list[str] = []
    usage = Usage()
    events = model.stream(ModelRequest((SystemMessage(policy.summary_prompt), user(asked))))
    try:
        async for event in events:
            if isinstance(event, Text):
                written.append(event.text)
            elif isinstance(event, Usage):
                usage = event
    finally:
        close = getattr(events, "aclose", None)  # a generator's; any other iterator ends by itself
        if close is not None:
            await close()
    return "".join(written).strip(), usage


def _before(wanted: Plan) -> str:
    """The summary of an earlier compaction, if what is dropped begins with one."""
    first = wanted.dropped[0]
    if first.entry is not None:
        return ""
    return "".join(part.text for part in first.message.content if isinstance(part, TextPart))


def _introduced(summary: str, wanted: Plan) -> str:
    return "\n\n".join([SUMMARY, summary, *([_USERS] if wanted.user is not None else [])])


def _noted(wanted: Plan, policy: Compaction) -> str | None:
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
