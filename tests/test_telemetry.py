"""Spans and metrics of a run, by the names that OpenTelemetry's conventions give them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agentkit import Agent, ProviderError, ToolCall
from agentkit.events import ToolStarted, Usage
from agentkit.telemetry import OpenTelemetry
from agentkit.testing import ScriptedModel
from agentkit.threads import SQLiteStore, ThreadManager


class Recorder:
    """A telemetry hook whose spans and metrics stay in memory."""

    def __init__(self, **options: Any) -> None:
        self.provider = TracerProvider()
        self._exporter = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._reader = InMemoryMetricReader()
        meters = MeterProvider([self._reader])
        self.hook = OpenTelemetry(tracer_provider=self.provider, meter_provider=meters, **options)

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self._exporter.get_finished_spans()}

    @property
    def tree(self) -> list[str]:
        """Each span with its parent's name, in the order in which they ended."""
        spans = self._exporter.get_finished_spans()
        names = {span.context.span_id: span.name for span in spans}
        return [f"{s.name} < {names[s.parent.span_id] if s.parent else '-'}" for s in spans]

    @property
    def metrics(self) -> dict[str, list[tuple[dict[str, Any], int]]]:
        """By name, the attributes and the count of each series."""
        data = self._reader.get_metrics_data()
        return {
            metric.name: [(dict(point.attributes), point.count) for point in metric.data.data_points]
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    yield recorder
    recorder.provider.shutdown()


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def boom() -> None:
    """Fail."""
    raise ValueError("no")


ADD = ToolCall("c1", "add", {"a": 1, "b": 2})
MODEL = {"gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-5"}


def test_a_run_is_a_span_with_its_requests_and_tools_in_it(recorder: Recorder) -> None:
    model = ScriptedModel([[ADD, Usage(100, 20, 60, 10, 5)], ["3", Usage(130, 4)]], name="openai:gpt-5")
    Agent(model, [add], hooks=[recorder.hook], name="sums", temperature=0.5).run_sync("1 + 2?")
    assert recorder.tree == [
        "execute_tool add < invoke_agent sums",
        "chat gpt-5 < invoke_agent sums",
        "chat gpt-5 < invoke_agent sums",
        "invoke_agent sums < -",
    ]
    run = dict(recorder.spans["invoke_agent sums"].attributes or {})
    assert run == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "sums",
        **MODEL,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 230,
        "gen_ai.usage.output_tokens": 24,
        "gen_ai.usage.cache_read.input_tokens": 60,
        "gen_ai.usage.cache_creation.input_tokens": 10,
        "gen_ai.usage.reasoning.output_tokens": 5,
    }
    chat = dict(recorder.spans["chat gpt-5"].attributes or {})
    assert chat.pop("gen_ai.response.time_to_first_chunk") >= 0
    assert chat == {
        "gen_ai.operation.name": "chat",
        **MODEL,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 130,
        "gen_ai.usage.output_tokens": 4,
    }
    assert dict(recorder.spans["execute_tool add"].attributes or {}) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.description": "Add two numbers.",
    }


def test_the_metrics_of_a_run(recorder: Recorder) -> None:
    model = ScriptedModel([[ADD, Usage(100, 20)], "3"], name="openai:gpt-5")
    Agent(model, [add], hooks=[recorder.hook]).run_sync("1 + 2?")
    chat = {"gen_ai.operation.name": "chat", **MODEL}
    assert recorder.metrics == {
        "gen_ai.client.token.usage": [
            ({**chat, "gen_ai.token.type": "input"}, 1),
            ({**chat, "gen_ai.token.type": "output"}, 1),
        ],
        "gen_ai.client.operation.duration": [(chat, 2)],
        "gen_ai.client.operation.time_to_first_chunk": [(chat, 2)],
        "gen_ai.execute_tool.duration": [({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "add"}, 1)],
        "gen_ai.invoke_agent.duration": [({"gen_ai.operation.name": "invoke_agent", **MODEL}, 1)],
    }


def test_what_a_tool_does_is_inside_its_span_and_a_sub_agent_too(recorder: Recorder) -> None:
    async def fetch() -> str:
        """Fetch."""
        with recorder.provider.get_tracer("http").start_as_current_span("GET"):
            return "page"

    helper = Agent(ScriptedModel(["found"], name="openai:small"), name="helper")
    calls = [ToolCall("c1", "fetch"), ToolCall("c2", "research", {"task": "x"})]
    model = ScriptedModel([calls, "done"], name="openai:gpt-5")
    Agent(model, [fetch, helper.as_tool("research", "Find out.")], hooks=[recorder.hook]).run_sync("Go")
    assert set(recorder.tree) == {
        "GET < execute_tool fetch",
        "execute_tool fetch < invoke_agent agent",
        "chat small < invoke_agent helper",
        "invoke_agent helper < execute_tool research",
        "execute_tool research < invoke_agent agent",
        "chat gpt-5 < invoke_agent agent",
        "invoke_agent agent < -",
    }


def test_contents_are_recorded_on_demand_only() -> None:
    quiet, open_ = Recorder(), Recorder(contents=True)
    model = ScriptedModel([ADD, "3", ADD, "3"], name="openai:gpt-5")
    agent = Agent(model, [add], system="Be brief.", hooks=[quiet.hook, open_.hook])
    agent.run_sync("my secret")
    assert "secret" not in str([s.attributes for s in quiet.spans.values()])
    chat = open_.spans["chat gpt-5"].attributes or {}
    assert json.loads(str(chat["gen_ai.input.messages"]))[0] == {
        "role": "user",
        "parts": [{"type": "text", "content": "my secret"}],
    }
    assert json.loads(str(chat["gen_ai.system_instructions"])) == [{"type": "text", "content": "Be brief."}]
    assert json.loads(str(chat["gen_ai.output.messages"])) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "3"}]}
    ]
    tool = open_.spans["execute_tool add"].attributes or {}
    assert (tool["gen_ai.tool.call.arguments"], tool["gen_ai.tool.call.result"]) == ('{"a": 1, "b": 2}', "3")


def test_errors_are_marked_where_they_happened(recorder: Recorder) -> None:
    error = ProviderError("no more", kind="rate_limit", provider="openai")
    model = ScriptedModel([[ToolCall("c1", "boom")], error], name="openai:gpt-5")
    with pytest.raises(ProviderError):
        Agent(model, [boom], hooks=[recorder.hook]).run_sync("Go")
    kinds = {name: (span.attributes or {}).get("error.type") for name, span in recorder.spans.items()}
    assert kinds == {"execute_tool boom": "tool_error", "chat gpt-5": "rate_limit", "invoke_agent agent": "rate_limit"}


def test_a_thread_is_a_conversation_and_a_run_left_early_ends_its_spans(recorder: Recorder, tmp_path: Any) -> None:
    async def slow() -> None:
        """Take a while."""
        await asyncio.sleep(30)

    async def main() -> None:
        threads = ThreadManager(SQLiteStore(tmp_path / "t.db"), hooks=[recorder.hook])
        threads.registry.register(slow)
        await threads.create_thread("t7", messages="Go")
        async for event in threads.run_thread("t7", model=ScriptedModel([ToolCall("c1", "slow")], name="openai:x")):
            if isinstance(event, ToolStarted):
                break
        await asyncio.sleep(0.05)
        await threads.aclose()

    asyncio.run(main())
    spans = recorder.spans
    assert spans.keys() == {"invoke_agent agent", "chat x", "execute_tool slow"}
    assert (spans["invoke_agent agent"].attributes or {})["gen_ai.conversation.id"] == "t7"
    assert (spans["invoke_agent agent"].attributes or {})["gen_ai.response.finish_reasons"] == ("cancelled",)


def test_a_hook_that_fails_is_logged_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def bad(event: object, run: object) -> None:
        raise RuntimeError("not my day")

    assert Agent(ScriptedModel(["Hi"]), hooks=[bad]).run_sync("Hi").text == "Hi"
    assert "a hook failed on RunStarted" in caplog.text
