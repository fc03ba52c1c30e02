"""How a scenario is played on a thread: a model that streams the given pieces, and what the store holds then.

Every way in which the response can come must leave the same calls made, the same thread, and one that every provider
takes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from scenario_kit import Call, Res, T, cuttings, registry_of
from wire_rules import check_anthropic, check_chat, check_responses

from agentkit.agent import RunResult
from agentkit.errors import ErrorCode
from agentkit.events import Finish, SourceEvent, Text
from agentkit.messages import AssistantMessage, Message, ToolCall, ToolMessage
from agentkit.models.messages_body import anthropic_messages
from agentkit.models.openai import chat_messages
from agentkit.models.responses import responses_input
from agentkit.processor import ProcessorConfig
from agentkit.testing import ScriptedModel
from agentkit.threads import SQLiteStore, ThreadManager

Response = Sequence[SourceEvent | Exception]


class Kept(NamedTuple):
    """What a run came to: the calls made, and what the thread holds.

    Attributes:
        made: the calls that reached the tools.
        results: whose, code and text of each answer in the thread.
        text: the visible text of the thread's responses.
        messages: the thread as a model reads it, its calls numbered in place of their ids.
        run: the result of the run, or its error.
    """

    made: list[Call]
    results: list[tuple[str, ErrorCode | None, str]]
    text: str
    messages: list[Message]
    run: RunResult | Exception

    @property
    def finish(self) -> str:
        """Why the run ended."""
        return self.run.finish if isinstance(self.run, RunResult) else type(self.run).__name__


async def kept(store: SQLiteStore, responses: Sequence[Response], tool: Any = None, **options: Any) -> Kept:
    """One run on a new thread, read again as another process reads it."""
    tool = tool or T()
    config = ProcessorConfig(**{k: options.pop(k) for k in [*options] if k in ProcessorConfig.__dataclass_fields__})
    threads = ThreadManager(store, registry_of(tool))
    thread = await threads.create_thread(messages="Go")
    run: RunResult | Exception
    try:
        run = await threads.run_thread(
            thread, None, ScriptedModel(responses, continues=True), config, **options
        ).complete()
    except Exception as e:  # noqa: BLE001 - what became of the thread is what counts
        run = e
    return await read(store, thread, tool, run)


async def read(store: SQLiteStore, thread: str, tool: T, run: RunResult | Exception) -> Kept:
    """What a thread holds; valid for every provider, with one answer for each call."""
    log = await store.load(thread)
    messages = await ThreadManager(store).get_llm_messages(thread)
    assert {call.status for call in log.calls} <= {"answered"}
    calls = [c for m in messages if isinstance(m, AssistantMessage) for c in m.calls]
    answers = [m for m in messages if isinstance(m, ToolMessage)]
    assert [a.call_id for a in answers] == [c.id for c in calls] == [c.id for c in log.calls]
    assert len({c.id for c in calls}) == len(calls)
    check_chat(chat_messages(messages, "openai"))
    check_responses(responses_input(messages, "responses"))
    check_anthropic(anthropic_messages(messages, "anthropic"))
    text = "".join(m.text for m in messages if isinstance(m, AssistantMessage))
    results = [Res(a.name, a.error, a.text) for a in answers]
    return Kept(list(tool.made), results, text, numbered(messages), run)


def numbered(messages: Sequence[Message]) -> list[Message]:
    """The conversation with `0`, `1`, … for the ids of its calls, which are made by chance."""
    ids: dict[str, str] = {}
    out: list[Message] = []
    for message in messages:
        if isinstance(message, AssistantMessage):
            content = tuple(
                replace(p, id=ids.setdefault(p.id, str(len(ids)))) if isinstance(p, ToolCall) else p
                for p in message.content
            )
            message = AssistantMessage(content)
        elif isinstance(message, ToolMessage):
            message = replace(message, call_id=ids[message.call_id])
        out.append(message)
    return out


def everyway_kept(ways: Iterable[Sequence[Response]], **options: Any) -> Kept:
    """A run played in each of the ways in which its responses can come."""

    async def main() -> Kept:
        store, first = SQLiteStore(":memory:"), None
        tool = T()
        for responses in ways:
            tool.made = []
            one = await kept(store, responses, tool, **options)
            first = first or one
            assert one[:4] == first[:4], responses
            assert one.finish == first.finish
        await store.aclose()
        assert first is not None
        return first

    return asyncio.run(main())


def text_kept(
    said: str, *after: Response, end: Sequence[SourceEvent | Exception] | None = None, **options: Any
) -> Kept:
    """A response of text, cut every way, then others as they are; `end` in place of a `Finish`."""
    options.setdefault("formats", ("xml", "invoke"))
    ending = [Finish("stop")] if end is None else end
    return everyway_kept(([[*map(Text, cut), *ending], *after] for cut in cuttings(said)), **options)
