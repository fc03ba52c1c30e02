"""Traces and metrics of runs, following OpenTelemetry's conventions for generative AI; needs the extra `otel`.

Use `Agent(…, hooks=[OpenTelemetry()])`, or pass the same `hooks` to a `ThreadManager`. A run is a span `invoke_agent`;
inside it, each request is a span `chat` and each tool execution a span `execute_tool`. Whatever a tool does itself,
including a sub-agent's run, is inside the tool's span. Messages and arguments are recorded only with `contents=True`.

Names and buckets: OpenTelemetry's semantic conventions for generative AI systems (still marked as in development).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from agentkit.agent import RunEnded, RunStarted, RunStream, TurnEnded, TurnStarted
from agentkit.errors import ConfigError, ProviderError, install_command
from agentkit.events import Finish, ModelSelected, ToolCompleted, ToolFailed, ToolStarted, Usage
from agentkit.foreign.absent_imports import explained_module
from agentkit.messages import AssistantMessage, Message, SystemMessage, TextPart, ThinkingPart, ToolCall, ToolMessage
from agentkit.models.base import ModelRequest, names

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import Span, TracerProvider

TOKEN_BUCKETS: Final = tuple(4**n for n in range(14))
"""1 to 67,108,864 tokens."""

SECONDS_BUCKETS: Final = tuple(0.01 * 2**n for n in range(14))
"""0.01 to 81.92 s."""

PROVIDERS: Final = {"responses": "openai", "gemini": "gcp.gemini", "bedrock": "aws.bedrock"}
"""Prefixes of model strings that differ from the provider's name."""


@dataclass(slots=True)
class _Run:
    """The spans of one run."""

    span: Span
    context: Context
    since: float
    chat: Span | None = None
    asked: float = 0.0
    waiting: bool = False  # for the first part of a response
    timing: bool = False  # of a request
    tools: dict[str, Span] = field(default_factory=dict)
    model: str = ""  # the one that answers, if it is a member of a chain


class OpenTelemetry:
    """A hook that writes spans and metrics.

    Args:
        tracer_provider: where spans go; by default the process-wide provider.
        meter_provider: where metrics go; by default the process-wide provider.
        contents: whether messages, arguments and results are recorded. They may contain anything that users write.

    Raises:
        ConfigError: OpenTelemetry is not installed.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        contents: bool = False,
    ) -> None:
        try:
            from opentelemetry import metrics, trace
        except ImportError as e:
            raise ConfigError(f"OpenTelemetry is not installed: {install_command('otel')}") from e
        from agentkit import __version__

        self._contents = contents
        self._trace = trace
        self._tracer = trace.get_tracer("agentkit", __version__, tracer_provider)
        meter = metrics.get_meter("agentkit", __version__, meter_provider)

        def seconds(name: str, description: str) -> Any:
            return meter.create_histogram(
                name, "s", description, explicit_bucket_boundaries_advisory=list(SECONDS_BUCKETS)
            )

        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            "Number of input and output tokens used",
            explicit_bucket_boundaries_advisory=[float(b) for b in TOKEN_BUCKETS],
        )
        self._chat_seconds = seconds("gen_ai.client.operation.duration", "Duration of a request to a model")
        self._first_seconds = seconds(
            "gen_ai.client.operation.time_to_first_chunk", "Time until the first part of the response arrived"
        )
        self._tool_seconds = seconds("gen_ai.execute_tool.duration", "Duration of a tool's execution")
        self._run_seconds = seconds("gen_ai.invoke_agent.duration", "Duration of an agent's run")
        self._runs: dict[str, _Run] = {}

    def __call__(self, event: Any, run: RunStream[Any]) -> None:
        """Handle one event of a run."""
        match event:
            case RunStarted():
                self._begin(run)
            case RunEnded(result, error):
                self._end(run, result.finish, result.usage, error)
            case TurnStarted(_, request):
                self._ask(run, request)
            case TurnEnded(_, message, _, usage, finish, _):
                self._response(self._runs[run.id], run, message, usage, finish)
            case ToolStarted(_, call):
                self._start_tool(self._runs[run.id], run, call)
            case ToolCompleted(_, call, result, took) | ToolFailed(_, call, result, took):
                self._end_tool(self._runs[run.id], call, result.text, result.code, took)
            case ModelSelected(model):
                self._runs[run.id].model = model
            case Finish():
                self._end_response(self._runs[run.id], run)
            case _:
                self._note_first_part(self._runs[run.id], run)

    @contextmanager
    def tool_scope(self, call: ToolCall, run: RunStream[Any]) -> Iterator[None]:
        """Make the call's span current while its task is created."""
        from opentelemetry import context

        state = self._runs.get(run.id)
        span = state.tools.get(call.id) if state is not None else None
        if span is None:
            yield
            return
        token = context.attach(self._trace.set_span_in_context(span))
        try:
            yield
        finally:
            context.detach(token)

    # -------------------------------------------------------------- runs

    def _begin(self, run: RunStream[Any]) -> None:
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": run.agent.name, **_model(run)}
        if run.thread_id is not None:
            attributes["gen_ai.conversation.id"] = run.thread_id
        span = self._tracer.start_span(f"invoke_agent {run.agent.name}", attributes=attributes)
        self._runs[run.id] = _Run(span, self._trace.set_span_in_context(span), perf_counter())

    def _end(self, run: RunStream[Any], finish: str, usage: Usage, error: BaseException | None) -> None:
        state = self._runs.pop(run.id)
        for span in (*state.tools.values(), *([state.chat] if state.chat is not None else [])):
            span.end()  # the run ended before it did
        state.span.set_attribute("gen_ai.response.finish_reasons", (finish,))
        _count(state.span, usage)
        kind = self._fail(state.span, error)
        state.span.end()
        attributes = {"gen_ai.operation.name": "invoke_agent", **_model(run), **kind}
        self._run_seconds.record(perf_counter() - state.since, attributes)

    # -------------------------------------------------------------- requests

    def _ask(self, run: RunStream[Any], request: ModelRequest) -> None:
        state = self._runs[run.id]
        state.model = ""
        named = {
            "gen_ai.operation.name": "chat",
            **_model(run),
            "gen_ai.request.temperature": request.temperature,
            "gen_ai.request.max_tokens": request.max_tokens,
            "gen_ai.request.stop_sequences": request.stop or None,
            "gen_ai.conversation.id": run.thread_id,
        }
        attributes = {name: value for name, value in named.items() if value is not None}
        if self._contents:
            attributes |= _message_attributes("gen_ai.input.messages", request.messages)
            attributes["gen_ai.tool.definitions"] = json.dumps([{"name": t.name} for t in request.tools])
        kind = self._trace.SpanKind.CLIENT
        name = f"chat {attributes['gen_ai.request.model']}"
        state.chat = self._tracer.start_span(name, state.context, kind, attributes)
        state.asked, state.waiting, state.timing = perf_counter(), True, True

    def _note_first_part(self, state: _Run, run: RunStream[Any]) -> None:
        """The first part of a response arrived."""
        if state.waiting and state.chat is not None:
            state.waiting = False
            took = perf_counter() - state.asked
            state.chat.set_attribute("gen_ai.response.time_to_first_chunk", took)
            self._first_seconds.record(took, {"gen_ai.operation.name": "chat", **_model(run, state.model)})

    def _end_response(self, state: _Run, run: RunStream[Any], error: BaseException | None = None) -> None:
        """The response is complete; its tools may still be running."""
        if state.timing:
            state.timing = False
            kind = {} if error is None else {"error.type": _kind(error)}
            self._chat_seconds.record(
                perf_counter() - state.asked, {"gen_ai.operation.name": "chat", **_model(run, state.model), **kind}
            )

    def _response(self, state: _Run, run: RunStream[Any], message: AssistantMessage, usage: Usage, finish: str) -> None:
        if state.chat is None:
            return  # calls of an earlier run were answered; there was no request to a model
        chat, state.chat = state.chat, None
        self._end_response(state, run, run.error)
        chat.set_attributes({"gen_ai.response.finish_reasons": (finish,), **_model(run, state.model)})
        _count(chat, usage)
        if self._contents:
            chat.set_attributes(_message_attributes("gen_ai.output.messages", [message]))
        self._fail(chat, run.error)
        chat.end()
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            if tokens:
                attributes = {"gen_ai.operation.name": "chat", "gen_ai.token.type": kind, **_model(run, state.model)}
                self._tokens.record(tokens, attributes)

    # -------------------------------------------------------------- tools

    def _start_tool(self, state: _Run, run: RunStream[Any], call: ToolCall) -> None:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": call.name,
            "gen_ai.tool.call.id": call.id,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.description": tool.description if (tool := run.plan.registry.get_tool(call.name)) else "",
        }
        if self._contents:
            attributes["gen_ai.tool.call.arguments"] = json.dumps(dict(call.arguments), default=str)
        span = self._tracer.start_span(f"execute_tool {call.name}", state.context, attributes=attributes)
        state.tools[call.id] = span

    def _end_tool(self, state: _Run, call: ToolCall, text: str, code: str | None, took: float) -> None:
        span = state.tools.pop(call.id, None)
        if span is None:
            return  # it was refused before it started
        if self._contents:
            span.set_attribute("gen_ai.tool.call.result", text)
        attributes = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": call.name}
        if code is not None:
            attributes["error.type"] = code
            span.set_attribute("error.type", code)
            span.set_status(self._trace.StatusCode.ERROR, code)
        span.end()
        self._tool_seconds.record(took, attributes)

    def _fail(self, span: Span, error: BaseException | None) -> dict[str, str]:
        """Record an error; returns the attribute with its type."""
        if error is None or isinstance(error, GeneratorExit):
            return {}
        kind = _kind(error)
        span.set_attribute("error.type", kind)
        span.set_status(self._trace.StatusCode.ERROR, str(error) if self._contents else kind)
        return {"error.type": kind}


def _kind(error: BaseException) -> str:
    return error.kind if isinstance(error, ProviderError) else type(error).__name__


def _model(run: RunStream[Any], answers: str = "") -> dict[str, Any]:
    provider, _, model = (answers or names(run.plan.model)[0]).partition(":")
    return {"gen_ai.provider.name": PROVIDERS.get(provider, provider), "gen_ai.request.model": model or provider}


def _count(span: Span, usage: Usage) -> None:
    names = ("input_tokens", "output_tokens", "cache_read.input_tokens", "cache_creation.input_tokens")
    for name, tokens in zip((*names, "reasoning.output_tokens"), usage, strict=True):
        if tokens:
            span.set_attribute(f"gen_ai.usage.{name}", tokens)


def _message_attributes(name: str, messages: Sequence[Message]) -> dict[str, str]:
    """Messages in the form that the conventions define; system messages separately."""
    system = [m.content for m in messages if isinstance(m, SystemMessage)]
    rest = [_shape(m) for m in messages if not isinstance(m, SystemMessage)]
    attributes = {name: json.dumps(rest, ensure_ascii=False, default=str)}
    if system:
        parts = [{"type": "text", "content": text} for text in system]
        attributes["gen_ai.system_instructions"] = json.dumps(parts, ensure_ascii=False)
    return attributes


def _shape(message: Message) -> dict[str, Any]:
    if isinstance(message, ToolMessage):
        answer = {"type": "tool_call_response", "id": message.call_id, "response": message.text}
        return {"role": "tool", "parts": [answer]}
    role = "assistant" if isinstance(message, AssistantMessage) else "user"
    parts: list[dict[str, Any]] = []
    for part in message.content:
        match part:
            case TextPart(text):
                parts.append({"type": "text", "content": text})
            case ThinkingPart(text):
                parts.append({"type": "reasoning", "content": text})
            case ToolCall(id, name, arguments):
                parts.append({"type": "tool_call", "id": id, "name": name, "arguments": dict(arguments)})
    return {"role": role, "parts": parts}


explained_module(__name__)
