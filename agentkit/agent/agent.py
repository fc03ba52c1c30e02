"""An agent: a model with tools, and the limits that apply to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, Unpack, overload

from agentkit.agent.options import LIMITS, AgentLimits, AgentOptions, RunOptions, check_settings, limits_in, spelt_out
from agentkit.agent.outcome import OutputT, RunResult
from agentkit.agent.system import SYSTEM, System
from agentkit.checks.bounds import CALLABLE, TEXT, Bounds, each, either, instance, lacking, like, or_none, refuse
from agentkit.checks.missing_await import Closing, hint_missing_await
from agentkit.checks.spelling import takes
from agentkit.checks.tool_names import FIND_TOOLS
from agentkit.checks.type_variables import TypeVar
from agentkit.errors import ConfigError, SchemaError
from agentkit.foreign import argument_names
from agentkit.foreign.absent import suggest_attributes
from agentkit.foreign.elsewhere import at
from agentkit.messages import SystemMessage
from agentkit.models.base import Model, close, names
from agentkit.processor.config import ProcessorConfig
from agentkit.tool.registry import ToolRegistry

if TYPE_CHECKING:
    from typing_extensions import TypeForm

    from agentkit.agent.hooks import Hook
    from agentkit.agent.journal import Journal
    from agentkit.agent.prompts import Prompt
    from agentkit.agent.run import RunStream
    from agentkit.tool.bound_tool import BoundTool
    from agentkit.tool.reply import Output

    _Asked = Prompt | Iterable[Prompt] | RunResult[Any]
    """The input of an agent: a prompt, a conversation, or the result of an earlier run."""

ContextT = TypeVar("ContextT", contravariant=True, default=Any)
"""The type of the value that an agent's tools and instructions need from the application."""
T = TypeVar("T")
_NOTHING: Mapping[str, Any] = MappingProxyType({})

_BOUNDS: Final[Bounds] = {
    "model": either(TEXT, like(Model, "a model"), words="a model, or a model string such as 'openai:gpt-5'"),
    "system": SYSTEM,
    "config": or_none(instance(ProcessorConfig, "a ProcessorConfig, such as ProcessorConfig(formats='xml')")),
    "hooks": each(CALLABLE, "a list of functions, such as hooks=[print]"),
    "name": TEXT,
    **LIMITS,
}


@suggest_attributes
class Agent(AgentLimits, Closing, Generic[ContextT, OutputT]):
    """A model with tools.

    Its two type parameters are the types of the run's `context` and `output`: `Agent[Shop, City]`. The type checker
    infers them from `system` and `output_type` if possible; `Agent[Shop](…)` sets the first one.

    Close it with `aclose`, or use it in `async with`: that closes the model if the agent created it from a string. A
    model that you pass is yours to close.

    Args:
        model: a `Model`, or a model string such as `openai:gpt-5`; a string is checked immediately, and its API key is
            looked up at the first run.
        tools: a function, an instance, a class or a `"module:Class"` string, or a list of them; or one `ToolRegistry`.
        system: instructions, put before every prompt that does not begin with its own system message: a string, or a
            function, plain or async, that receives the run's `context` and returns the string. It is called once for
            each such run.
        config: what the calls of a response may do.
        output_type: the type of the final reply: any type that pydantic supports. The value is in `RunResult.output`;
            with `str` it is the reply's text, unchanged. A run can have its own type.
        hooks: called with each event of a run, and with the run itself; may be async. See `agentkit.agent.hooks`.
        name: the agent's name in traces, and its name as a tool of another agent.
        **options: its limits, see `agentkit.agent.options.AgentLimits`, and settings for its requests, see `Settings`.

    Raises:
        SchemaError: a tool is defined incorrectly, or there is no JSON Schema for the `output_type`.
        ConfigError: an argument has the wrong type, a limit is out of range, or a setting is unknown.

    >>> from agentkit.testing import ScriptedModel
    >>> agent = Agent(ScriptedModel(["Hello!"]))
    >>> agent.run_sync("Hi").text
    'Hello!'
    """

    if not TYPE_CHECKING:  # before 3.13, type variables have no defaults at run time: see `checks.type_variables`

        def __class_getitem__(cls, types: Any) -> Any:
            given = types if isinstance(types, tuple) else (types,)
            return super().__class_getitem__(given + (Any,) * (len(cls.__parameters__) - len(given)))

    @spelt_out
    @takes(AgentOptions, others=at("Agent"), such="Agent('openai:gpt-5', [function])")
    def __init__(
        self,
        model: Model | str,
        tools: Any = (),
        *,
        system: System[ContextT] | None = None,
        config: ProcessorConfig | None = None,
        output_type: TypeForm[OutputT] = str,  # type: ignore[assignment]  # the default of OutputT
        hooks: Sequence[Hook] = (),
        name: str = "agent",
        **options: Unpack[AgentOptions],
    ) -> None:
        if isinstance(model, str) and not lacking(tools, Model):
            raise ConfigError(f"Agent(model, tools): the model comes first; {model!r} would be name={model!r}")
        if isinstance(model, list | tuple) and not lacking(tools, Model):
            raise ConfigError("Agent(model, tools): the model comes first, then the tools")
        limits, settings = limits_in(options)
        given = {"model": model, "system": system, "config": config, "hooks": hooks, "name": name}
        refuse("Agent", given | limits, _BOUNDS)
        if isinstance(model, str):
            from agentkit.models.model_strings import split_name

            split_name(model)
        super().__init__(**limits)
        self.registry = tools if isinstance(tools, ToolRegistry) else ToolRegistry(*_each(tools))
        if self.offered_tools is not None and self.registry.get_tool(FIND_TOOLS) is not None:
            raise SchemaError(f"Agent(…, offered_tools=…) adds a tool {FIND_TOOLS!r}: rename yours with this name")
        self.system = system
        self.config = config or ProcessorConfig()
        self.output_type = output_type
        self._output = _output(output_type)
        self.hooks = _checked(hooks) if hooks else ()
        self.name = name
        self.settings = check_settings(settings)
        self._model = model
        self._owns_model = isinstance(model, str)  # created by the agent, which then closes it

    @property
    def model(self) -> Model:
        """The model.

        Raises:
            ConfigError: the model string does not name a known provider.
        """
        if isinstance(self._model, str):
            from agentkit import models

            self._model = models.model(self._model)
        return self._model

    def adapt(
        self, *, model: Model | None = None, config: ProcessorConfig | None = None, hooks: Sequence[Hook] = ()
    ) -> Agent[ContextT, OutputT]:
        """Return this agent with another model or other rules for calls; everything else is the same.

        Args:
            model: answers in place of the agent's, and stays yours to close; None keeps it.
            config: what the calls of a response may do; None keeps it.
            hooks: called in addition to the agent's.

        Raises:
            ConfigError: an argument has the wrong type.
        """
        values = {"model": self._model if model is None else model, "config": config, "hooks": hooks}
        refuse("adapt", values, _BOUNDS)
        other = copy(self)
        if model is not None:
            other._model, other._owns_model = model, False
        if config is not None:
            other.config = config
        if hooks:
            other.hooks = (*self.hooks, *_checked(hooks))
        return other

    async def aclose(self) -> None:
        """Close the connections of a model that the agent created from a string. The agent can be used again."""
        if self._owns_model and not isinstance(self._model, str):
            await close(self._model)

    @overload
    def stream(
        self, prompt: _Asked, *, output_type: TypeForm[T], **options: Unpack[RunOptions[ContextT]]
    ) -> RunStream[T]: ...
    @overload
    def stream(self, prompt: _Asked, **options: Unpack[RunOptions[ContextT]]) -> RunStream[OutputT]: ...
    @takes(RunOptions, others=at("run"))
    def stream(
        self, prompt: _Asked, *, output_type: Any = None, **options: Unpack[RunOptions[ContextT]]
    ) -> RunStream[Any]:
        """Start a run and iterate over its events: `async for event in agent.stream("…")`.

        Args:
            prompt: what to answer: a string, parts, a message, an OpenAI message as a dict, or a list of these,
                oldest first; see `agentkit.agent.prompts.messages_from`. Or the result of a run whose calls wait
                for a decision; needed if they are those of a sub-agent.
            output_type: the type of the final reply, in place of the agent's.
            **options: see `RunOptions`.

        Raises:
            ConfigError: an option is unknown, a prompt or an option has the wrong type, or a decision is for a call
                that is not waiting.
            SchemaError: there is no JSON Schema for the `output_type`.
        """
        from agentkit.agent.in_memory import Conversation
        from agentkit.agent.prompts import messages_from

        check_settings(options, RunOptions)
        delegated = asked_for = _NOTHING
        if isinstance(prompt, RunResult) and prompt.pending:
            delegated, asked_for, prompt = prompt.delegated, prompt._asked_for, prompt.messages
        messages = messages_from(prompt)  # type: ignore[arg-type]  # any other result is refused there
        if not messages:
            raise ConfigError(
                f"the prompt is empty: expected something to answer, such as 'Hello', found {prompt!r:.60}"
            )
        has_system = isinstance(messages[0], SystemMessage)
        journal = Conversation(messages, options.get("decisions", _NOTHING), delegated, asked_for)
        return self.begin(journal, None if has_system else self.system, output_type=output_type, **options)

    def begin(
        self,
        journal: Journal,
        system: System[ContextT] | None,
        *,
        output_type: Any = None,
        caller: RunStream[Any] | None = None,
        hooks: Sequence[Hook] = (),
        **options: Unpack[RunOptions[ContextT]],
    ) -> RunStream[Any]:
        """Start a run on a journal, which contains the conversation.

        Args:
            journal: records the run.
            system: the instructions before the conversation; None for none.
            output_type: as for `stream`.
            caller: the run whose call this run answers: its budget pays for this run, its hooks watch it, and its
                guards hold.
            hooks: hooks in addition to the agent's.
            **options: see `RunOptions`; the journal handles `decisions`.
        """
        from agentkit.agent.guarding import RunGuards
        from agentkit.agent.plan import Plan
        from agentkit.agent.run import RunStream
        from agentkit.agent.run_budget import Spending
        from agentkit.tool.result import NO_CONTEXT

        given = check_settings(options, RunOptions)
        context, cancel, _ = given.pop("context", NO_CONTEXT), given.pop("cancel", None), given.pop("decisions", None)
        model, config = self.model, self.config
        if config.formats is None:
            config = replace(config, formats=(model.format,) if model.format else ())
        limits, above = self._limits(), None if caller is None else caller.plan
        if above is not None:
            config = replace(config, attended=config.attended and above.config.attended)
            limits.max_depth = min(limits.max_depth, above.limits.max_depth - 1)
        spending = Spending(limits.budget, None if above is None else above.spending)
        spending.check(names(model))
        output = self._output if output_type is None else _output(output_type)
        registry, tool = self._tools(limits, model, output)
        plan = Plan(
            agent=self,
            model=model,
            registry=registry,
            config=config,
            settings={**self.settings, **given},
            limits=limits,
            spending=spending,
            guards=RunGuards(limits.guards, None if above is None else above.guards),
            context=context,
            system=system,
            output=output,
            output_tool=tool,
            hooks=tuple(dict.fromkeys([*self.hooks, *hooks, *(() if above is None else above.hooks)])),
            cancel=cancel,
        )
        return RunStream(plan, journal)

    def _tools(self, limits: AgentLimits, model: Model, output: Output | None) -> tuple[ToolRegistry, BoundTool | None]:
        """Return the tools of a run, and the one whose call is the output, if there is one."""
        registry = self.registry
        if limits.offered_tools is not None:
            from agentkit.agent.offering import searchable

            registry = searchable(registry, limits.offered_tools, model.format)
        if output is None or limits.output_mode != "tool":
            return registry, None
        from agentkit.tool.output_tool import with_output

        return with_output(registry, output)

    @overload
    async def run(
        self, prompt: _Asked, *, output_type: TypeForm[T], **options: Unpack[RunOptions[ContextT]]
    ) -> RunResult[T]: ...
    @overload
    async def run(self, prompt: _Asked, **options: Unpack[RunOptions[ContextT]]) -> RunResult[OutputT]: ...
    @hint_missing_await("agent.run(…)", "agent.run_sync(…)")
    @takes(RunOptions, others=at("run"))
    async def run(
        self, prompt: _Asked, *, output_type: Any = None, **options: Unpack[RunOptions[ContextT]]
    ) -> RunResult[Any]:
        """Run until the model makes no more calls. Arguments as for `stream`.

        Raises:
            ProviderError: the provider refused, or the response was interrupted. Its `result` has all until then.
        """
        return await self.stream(prompt, output_type=output_type, **options).complete()

    @overload
    def run_sync(
        self, prompt: _Asked, *, output_type: TypeForm[T], **options: Unpack[RunOptions[ContextT]]
    ) -> RunResult[T]: ...
    @overload
    def run_sync(self, prompt: _Asked, **options: Unpack[RunOptions[ContextT]]) -> RunResult[OutputT]: ...
    @takes(RunOptions, others=at("run"))
    def run_sync(
        self, prompt: _Asked, *, output_type: Any = None, **options: Unpack[RunOptions[ContextT]]
    ) -> RunResult[Any]:
        """`run` for code without an event loop. Connections that the model opened for it are closed at the end.

        A tool that ignores its cancellation is abandoned after a second, and a warning names it.

        Raises:
            RuntimeError: an event loop is running in this thread, as in a notebook or an async function: await `run`
                there.
        """
        from agentkit.agent.blocking_call import run_blocking

        return run_blocking(
            lambda: self.run(prompt, output_type=output_type, **options), self._end_loop, "run_sync", "agent.run"
        )

    async def _end_loop(self) -> None:
        """Close the model's connections: they belong to the loop that is about to end."""
        if not isinstance(self._model, str):
            await close(self._model)

    @takes(others=argument_names.AS_TOOL, such="agent.as_tool('its_name', 'what it is good at')")
    def as_tool(self, name: str, description: str) -> BoundTool:
        """This agent as a tool of another: `Agent(model, tools=[other.as_tool("research", "Find out about …")])`.

        The tool takes a `task` as a string and returns the agent's last reply; if a tool ended the agent
        (`terminates=True`), it adds that tool's arguments and its result. Each call is a separate conversation. It
        spends from the caller's budget as well as from its own, ends when the caller ends, and is watched by the
        caller's hooks. If a call of the sub-agent waits for approval, so does the caller's call. A sub-agent that stops
        early, ends without a reply, or would run deeper below the first caller than `max_depth` allows answers with an
        error that says so.

        Args:
            name: the tool's name.
            description: what the agent is good at, as the calling model reads it.
        """
        from agentkit.agent.delegate import delegate

        return delegate(self, name, description)


def _output(kind: Any) -> Output | None:
    """How the final reply is read; None if its text is the output."""
    if kind is str or kind is None:
        return None
    from agentkit.tool.reply import Output

    return Output(kind)


def _checked(hooks: Sequence[Hook]) -> tuple[Hook, ...]:
    from agentkit.agent.hooks import checked_hooks

    return checked_hooks("Agent", hooks)


def _each(tools: Any) -> Iterable[Any]:
    """One tool, or several; an instance with tools may itself be iterable."""
    if type(tools) in (list, tuple):
        return tuple(tools)
    from agentkit.tool.declare import declarations_of

    single = not isinstance(tools, Iterable) or isinstance(tools, (str, type, Mapping)) or declarations_of(type(tools))
    return (tools,) if single else tools
