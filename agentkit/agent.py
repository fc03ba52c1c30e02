"""The loop: model → processor → results → model, until the model calls nothing more.

Knows models by their protocol and runs no tool itself. `stream` is the one core, `run` waits for its end, `run_sync` is
the door for code without an event loop. Nothing is copied per turn: a turn of a long run costs what its first one did.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, TypedDict, Unpack

from agentkit.errors import ConfigError
from agentkit.events import Event, FinishReason, Usage
from agentkit.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage, messages_from
from agentkit.models.base import Model, ModelRequest
from agentkit.processor import EventStream, ProcessorConfig, ResponseProcessor, Turn
from agentkit.registry import ToolRegistry
from agentkit.schema import declared

RunFinish = FinishReason | Literal["max_turns", "cancelled"]
"""Why a run ended: the last response's own reason, the limit of turns, or the consumer who left."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Settings(TypedDict, total=False):
    """What every request of a run asks of its model; the fields of `ModelRequest` under their own names.

    `tool_choice="required"`, or the name of a tool, holds until the first call is answered, then `auto` takes over: a
    model that must call on every turn would never end.
    """

    tool_choice: str
    parallel_tool_calls: bool | None
    stream: bool
    max_tokens: int | None
    temperature: float | None
    stop: tuple[str, ...]
    extra: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunResult:
    """A finished run.

    Args:
        text: the visible text of the last response.
        messages: the whole conversation, the prompt first; `agent.run([*result.messages, user("…")])` goes on from it.
        usage: tokens of all responses together.
        turns: how many responses the model gave.
        finish: why the run ended: `stop` when the model had no more to say, `max_turns` at the limit, …
        start: how many of `messages` were there before the run.
    """

    text: str
    messages: tuple[Message, ...]
    usage: Usage
    turns: int
    finish: RunFinish
    start: int = 0

    @property
    def new_messages(self) -> tuple[Message, ...]:
        """The messages that the run added."""
        return self.messages[self.start :]


class Agent:
    """A model with tools.

    Args:
        model: a `Model`, or a model string such as `openai:gpt-5`; a string is resolved at the first run.
        tools: one or several of: functions, instances, classes, `"module:Class"` strings; or one `ToolRegistry`.
        system: instructions, put before every prompt that does not begin with a system message of its own.
        config: what the calls of a response may do.
        max_turns: responses per run at most; the run then ends with `finish="max_turns"`.
        **settings: see `Settings`.

    Raises:
        SchemaError: a tool is defined wrongly.
        ConfigError: `max_turns` below 1, or an unknown setting.

    >>> from agentkit.testing import ScriptedModel
    >>> agent = Agent(ScriptedModel(["Hello!"]))
    >>> agent.run_sync("Hi").text
    'Hello!'
    """

    def __init__(
        self,
        model: Model | str,
        tools: Any = (),
        *,
        system: str | None = None,
        config: ProcessorConfig | None = None,
        max_turns: int = 50,
        **settings: Unpack[Settings],
    ) -> None:
        if max_turns < 1:
            raise ConfigError(f"Agent(max_turns={max_turns}): wanted 1 or more")
        if isinstance(tools, ToolRegistry):
            self.registry = tools
        else:
            self.registry = ToolRegistry(*_each(tools))
        self.system = system
        self.config = config or ProcessorConfig()
        self.max_turns = max_turns
        self.settings = _checked(settings)
        self._model = model

    @property
    def model(self) -> Model:
        """The model.

        Raises:
            ConfigError: the model string names no provider.
        """
        if isinstance(self._model, str):
            from agentkit import models

            self._model = models.model(self._model)
        return self._model

    def stream(
        self,
        prompt: str | Message | Iterable[Message],
        *,
        context: Mapping[str, Any] = _NOTHING,
        **settings: Unpack[Settings],
    ) -> RunStream:
        """Begin a run whose events you iterate: `async for event in agent.stream("…")`.

        Args:
            prompt: what to answer: text, one message, or a conversation, oldest first.
            context: values for this run's tools, which find them in `ToolContext.state`; never shown to the model.
            **settings: override the agent's own for this run.
        """
        return RunStream(self, _conversation(prompt), context, {**self.settings, **_checked(settings)})

    async def run(
        self,
        prompt: str | Message | Iterable[Message],
        *,
        context: Mapping[str, Any] = _NOTHING,
        **settings: Unpack[Settings],
    ) -> RunResult:
        """Run until the model calls nothing more. Arguments as for `stream`.

        Raises:
            ProviderError: the provider refused or broke off. What was said until then is in the result of a `stream`.
        """
        return await self.stream(prompt, context=context, **settings).finished()

    def run_sync(
        self,
        prompt: str | Message | Iterable[Message],
        *,
        context: Mapping[str, Any] = _NOTHING,
        **settings: Unpack[Settings],
    ) -> RunResult:
        """`run` for code without an event loop. Connections that the model made for it are closed at its end.

        Raises:
            RuntimeError: an event loop runs in this thread, as in a notebook or an async function: await `run` there.
        """
        if asyncio._get_running_loop() is not None:
            raise RuntimeError(
                "run_sync() would block the event loop that runs here: write `await agent.run(…)` instead"
            )
        return asyncio.run(self._run_once(self.stream(prompt, context=context, **settings)))

    async def _run_once(self, stream: RunStream) -> RunResult:
        """In an event loop that ends with this run: what is bound to it must end too."""
        close = getattr(self.model, "aclose", None)
        try:
            return await stream.finished()
        finally:
            if close is not None:
                await close()


def _each(tools: Any) -> Iterable[Any]:
    """One or several tools; a tool's own class may be iterable, too."""
    several = isinstance(tools, Iterable) and not isinstance(tools, (str, type)) and not declared(type(tools))
    return tools if several else (tools,)


def _checked(settings: Settings) -> Settings:
    for name in settings:
        if name not in Settings.__annotations__:
            raise ConfigError(f"there is no setting {name!r}; there are {', '.join(Settings.__annotations__)}")
    return settings


def _conversation(prompt: str | Message | Iterable[Message]) -> list[Message]:
    messages = messages_from(prompt)
    for message in messages:
        if not isinstance(message, SystemMessage | UserMessage | AssistantMessage | ToolMessage):
            raise ConfigError(
                f"a prompt is text, a message or messages; found a {type(message).__name__}: {str(message)[:100]!r}; "
                "write user('…')"
            )
    return messages


class RunStream(EventStream[Event]):
    """One run as it happens. Iterate it once; then `result` says how it ended, be it early or with an error.

    Each response ends with a `Finish`; the tool events that still follow it belong to its calls. Then the next response
    begins, and its calls are counted from 0 again.
    """

    def __init__(
        self, agent: Agent, messages: list[Message], context: Mapping[str, Any], settings: Mapping[str, Any]
    ) -> None:
        super().__init__()
        if agent.system is not None and not (messages and isinstance(messages[0], SystemMessage)):
            messages.insert(0, SystemMessage(agent.system))
        self._agent = agent
        self._messages = messages
        self._start = len(messages)
        self._context = context
        self._settings = dict(settings)
        self._usage = Usage()
        self._text = ""
        self._turns = 0
        self._finish: RunFinish = "cancelled"

    @property
    def result(self) -> RunResult:
        """How the run ended.

        Raises:
            RuntimeError: it has not ended yet.
        """
        if not self._over.is_set():
            raise RuntimeError("the run is not over: iterate the stream to its end, or leave its `async with` block")
        return RunResult(self._text, tuple(self._messages), self._usage, self._turns, self._finish, self._start)

    async def finished(self) -> RunResult:
        """Run to the end and give the result."""
        async with self:
            async for _ in self:
                pass
        return self.result

    async def _events(self) -> AsyncGenerator[Event, None]:
        self._begun = True
        try:
            model, processor, request = self._prepare()
            for _ in range(self._agent.max_turns):
                natively = model.format is None and request.tool_choice != "none"
                offered = request.tools if natively else ()
                turn = processor.process(model.stream(request), offered=offered)
                try:
                    async for event in turn:
                        yield event
                finally:
                    await turn.aclose()
                    self._keep(turn)
                if not turn.results and turn.finish.reason != "pause":
                    self._finish = turn.finish.reason
                    return
                if turn.results and request.tool_choice not in ("auto", "none"):
                    request = replace(request, tool_choice="auto")
            self._finish = "max_turns"
        finally:
            self._over.set()

    def _prepare(self) -> tuple[Model, ResponseProcessor, ModelRequest]:
        model = self._agent.model
        registry, config = self._agent.registry, self._agent.config
        if config.formats is None:
            config = replace(config, formats=(model.format,) if model.format else ())
        specs = registry.specs()
        request = ModelRequest(self._messages, specs, **self._settings)
        choice = request.tool_choice
        if choice not in ("auto", "required", "none") and choice not in registry.tools:
            known = ", ".join(["auto", "required", "none", *registry.tools])
            raise ConfigError(f"tool_choice={choice!r} is no tool of this agent; wanted one of {known}")
        taken = {call.id for m in self._messages if isinstance(m, AssistantMessage) for call in m.calls}
        return model, ResponseProcessor(registry, config, context=self._context, taken=taken), request

    def _keep(self, turn: Turn) -> None:
        """Add a response and its answers to the conversation; one without content adds nothing: providers refuse it."""
        self._turns += 1
        self._usage = self._usage.plus(turn.usage)
        self._text = turn.message.text
        if turn.finish.reason == "error":
            self._finish = "error"
        if turn.message.content:
            self._messages.append(turn.message)
        self._messages.extend(turn.results)
