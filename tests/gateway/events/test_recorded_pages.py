"""Recorded replies and texts of every format as the events of pages: nothing is lost, doubled or out of order."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from random import Random
from typing import Any, TypeVar

import pytest
from page_reading import AgUiReader, AiSdkReader, PageView, view_of
from recorded_recoveries import Reply, replies
from recordings import ABSENT, recording, rows

from agentkit import openapi_schema
from agentkit.agent import RunResult
from agentkit.errors import ProviderError
from agentkit.events import (
    ApprovalRequired,
    ArgumentDelta,
    CallEnd,
    CallError,
    CallStart,
    Event,
    Finish,
    InventedResult,
    Text,
    Thinking,
    ToolCompleted,
    ToolFailed,
    ToolSkipped,
    ToolStarted,
    UnreadCall,
    Usage,
)
from agentkit.formats import CATALOG, Format, ToolSpec, render_calls
from agentkit.gateway.events import AgUiRun, AiSdkRun
from agentkit.messages import ToolCall, user
from agentkit.models import ModelRequest
from agentkit.processor import ProcessorConfig, ResponseProcessor, Source
from agentkit.testing import Replay
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.result import ToolResult

ROWS = rows("wire.jsonl")
PREFIXES = {"openai-chat": "openai", "openai-responses": "responses", "anthropic-messages": "anthropic"}
ENDED = RunResult("", (), Usage(1, 2), 1, "stop")

T = TypeVar("T", str, bytes)
Outcome = tuple[list[Event], Exception | None]


async def processed(source: Source, registry: ToolRegistry, formats: Iterable[Format] = ()) -> Outcome:
    """The events of one response, and the error in which they end."""
    numbers = itertools.count()
    config = ProcessorConfig(formats=[*formats]) if formats else ProcessorConfig()
    processor = ResponseProcessor(registry, config, new_id=lambda: f"new-{next(numbers)}")
    events: list[Event] = []
    try:
        async for event in processor.process(source):
            events.append(event)  # noqa: PERF401 - the events before an error count
    except ProviderError as error:
        return events, error
    return events, None


def check(outcome: Outcome, tools: Sequence[ToolSpec]) -> int:
    """Both protocols show what the events say; returns how many calls there are."""
    events, error = outcome
    known = {tool.name: tool for tool in tools}
    for offered in (known, {}):
        wanted = view_of(events)
        ag_ui, ai_sdk = AgUiRun("t", "r", tools=offered), AiSdkRun("r", tools=offered)
        seen = AgUiReader().read(whole(ag_ui, events, error))
        compare(seen, wanted)
        assert seen.end == ("error" if error else "success")
        seen = AiSdkReader().read(whole(ai_sdk, events, error))
        compare(seen, wanted)
        assert seen.end == ("error" if error else "stop")
    return len(view_of(events).calls)


def whole(encoder: AgUiRun | AiSdkRun, events: Iterable[Event], error: Exception | None) -> list[dict[str, Any]]:
    found = [*encoder.start(), *(one for event in events for one in encoder.feed(event))]
    found += encoder.fail(error) if error is not None else encoder.finish(ENDED)
    return [json.loads(json.dumps(one)) for one in found]


def compare(seen: PageView, wanted: PageView) -> None:
    assert (seen.text, seen.thinking, seen.calls) == (wanted.text, wanted.thinking, wanted.calls)
    assert set(wanted.damaged) <= set(seen.damaged)
    assert seen.results.keys() == wanted.results.keys()
    assert all(text in (None, wanted.results[id]) for id, text in seen.results.items())
    wrong = [id for id, _, arguments in seen.calls if not parses_to(seen.partial[id], arguments)]
    assert not wrong, seen.partial


def parses_to(text: str, value: Any) -> bool:
    try:
        return bool(json.loads(text) == value)
    except ValueError:
        return False


def pieces(whole: T, seed: int = 0) -> Iterator[T]:
    sizes, at = Random(seed), 0
    while at < len(whole):
        size = sizes.choice([1, 2, 3, 7, 50, 400])
        yield whole[at : at + size]
        at += size


@pytest.mark.share(32)
@pytest.mark.skipif(not ROWS, reason=ABSENT)
@pytest.mark.parametrize("share", range(32))
def test_recorded_wires(share: int) -> None:
    calls = 0
    for row in ROWS[share::32]:
        model = Replay([recording(row)], chunks=pieces).model(f"{PREFIXES[row['api']]}:m")
        request = ModelRequest([user("Hi")], stream="sse" in row["response"])
        calls += check(asyncio.run(processed(model.stream(request), ToolRegistry())), ())
    assert calls


@pytest.mark.share(64)
@pytest.mark.skipif(not ROWS, reason=ABSENT)
@pytest.mark.parametrize("share", range(64))
def test_calls_in_recorded_texts(share: int) -> None:
    assert sum(check((reply.read(4), None), reply.tools) for reply in short_replies()[share::64])


@cache
def short_replies() -> list[Reply]:
    return [reply for reply in replies() if len(reply.text) < 1_000]


class Files:
    @openapi_schema()
    def write_file(self, path: str, content: str = "", lines: list[int] | None = None, force: bool = False) -> str:
        """Write a file."""
        return f"{len(content)} characters written to {path}"


ARGUMENTS: list[dict[str, Any]] = [
    {"path": "a.txt", "content": 'line 1\n"q" \\ é 😀 & <b>', "force": True},
    {"path": "007", "lines": [1, 2]},
]


@pytest.mark.share(1)
@pytest.mark.parametrize("format", CATALOG, ids=lambda format: format.name)
def test_calls_of_every_format(format: Format) -> None:
    registry = ToolRegistry(Files())
    tools = registry.specs()
    calls = [ToolCall("", "write_file", arguments) for arguments in ARGUMENTS]
    text = render_calls(format, calls, tools)
    source = [*map(Text, pieces(text)), Finish("stop")]
    assert check(asyncio.run(processed(source, registry, [format])), tools) == 2


CALL = ToolCall("c1", "write_file", {"path": "a"})
LATER = ToolCall("c2", "write_file", {"path": "b"})
LONG_RUN: list[Event] = [
    Thinking("Two files."), Text("I write"), CallStart(0, "write_file", "c1"), ArgumentDelta(0, '{"path": "a'),
    CallStart(1, "write_file"), ArgumentDelta(1, '{"path": "b"'), ArgumentDelta(0, '"}'), CallEnd(0, CALL),
    ToolStarted(0, CALL), Text(" both."), ToolCompleted(0, CALL, ToolResult("ok"), 0.1), CallEnd(1, LATER),
    ApprovalRequired(1, LATER), Thinking("So."), Usage(1, 2), Finish("tool_calls"),
    ToolSkipped(1, LATER, ToolResult(error="no", code="denied")), Thinking("Well."), CallStart(0, "write_file"),
    ArgumentDelta(0, "{"), CallError(0, "truncated_call", "cut", ToolCall("c3", "write_file"), 1),
    ToolFailed(0, ToolCall("c3", "write_file"), ToolResult(error="cut", code="truncated_call"), 0.0),
    InventedResult("ok"), UnreadCall("w(", "write_file"), Usage(3, 4), Finish("stop"), Text("Done."), Finish("stop"),
]  # fmt: skip


@pytest.mark.parametrize("error", [None, ValueError()], ids=["finish", "fail"])
def test_a_run_that_ends_after_any_event_is_complete(error: Exception | None) -> None:
    for end in range(len(LONG_RUN) + 1):
        AgUiReader().read(whole(AgUiRun("t", "r"), LONG_RUN[:end], error))
        AiSdkReader().read(whole(AiSdkRun("r"), LONG_RUN[:end], error))
    wanted = view_of(LONG_RUN)
    compare(AgUiReader().read(whole(AgUiRun("t", "r"), LONG_RUN, None)), wanted)
    compare(AiSdkReader().read(whole(AiSdkRun("r"), LONG_RUN, None)), wanted)
