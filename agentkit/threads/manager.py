"""Threads as an application uses them: the stored threads, and the runs on them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Never, Unpack, overload

from agentkit.agent import Agent, Hook, RunOptions, RunStream, checked_hooks
from agentkit.agent.options import ThreadRunOptions, limits_in, spelt_out
from agentkit.agent.prompts import Prompt
from agentkit.agent.system import SYSTEM, System
from agentkit.checks.bounds import CALLABLE, PATH, TEXT, Bounds, each, either, instance, lacking, like, or_none, refuse
from agentkit.checks.missing_await import Closing
from agentkit.checks.spelling import refuse_unknown, takes
from agentkit.checks.type_variables import TypeVar
from agentkit.errors import ConfigError
from agentkit.foreign.absent import suggest_attributes
from agentkit.foreign.elsewhere import at
from agentkit.models.base import Model
from agentkit.processor import ProcessorConfig
from agentkit.threads.compaction import Compaction
from agentkit.threads.entries import one_message
from agentkit.threads.excerpts import READ_RESULT
from agentkit.threads.results import StoredResults
from agentkit.threads.saying_threads import SayingThreads
from agentkit.threads.store import Store
from agentkit.threads.store_url import open_store
from agentkit.threads.summary import Writer
from agentkit.threads.thread_journal import ThreadJournal
from agentkit.tool.bound_tool import BoundTool, FunctionNames
from agentkit.tool.registry import ToolRegistry

if TYPE_CHECKING:
    from typing_extensions import TypeForm

T = TypeVar("T")
_ContextT = TypeVar("_ContextT", default=Any)
_OutputT = TypeVar("_OutputT", default=str)
_LOG = logging.getLogger("agentkit.threads")

_BOUNDS: Final[Bounds] = {
    "store": either(PATH, like(Store, "a store"), words="a store, the path of a SQLite file, or 'postgresql://…'"),
    "registry": or_none(instance(ToolRegistry, "a ToolRegistry: ToolRegistry(tool, …)")),
    "hooks": each(CALLABLE, "a list of functions, such as hooks=[print]"),
    "compaction": or_none(instance(Compaction, "a Compaction")),
}
_BY_NAME: Final = (*RunOptions.__annotations__, "output_type", "temporary_message", "compaction")
_RUN: Final[Bounds] = {
    "thread_id": TEXT,
    "agent": instance(Agent, "an Agent"),
    "system_prompt": SYSTEM,
    "compaction": _BOUNDS["compaction"],
}


@suggest_attributes
class ThreadManager(SayingThreads, Closing):
    """Persistent conversations, and the runs on them.

    Close it with `aclose`, or use it in `async with`: that closes its store, even one that you passed, and the models
    that it created from strings. A model that you pass is yours to close.

    Args:
        store: a `Store`, the path of a SQLite file, or `postgresql://…`; by default `agentkit.db` in the working
            directory. The object's `repr` shows the location, as does a line in the log (`agentkit.threads`, INFO).
        registry: the tools; by default an empty registry. `add_tool` adds to it.
        hooks: called with each event of every run; see `Agent`.
        compaction: when and how a conversation that becomes too long is shortened; None never shortens it. Otherwise
            the registry gets the tool `read_result`, with which a model can read shortened results again.

    Raises:
        ConfigError: an argument has the wrong type, or the store's URL is not supported. A store that cannot be opened
            raises an error when it is first used.

    Example:
        ```python
        threads = ThreadManager("chat.db")
        threads.add_tool(Files, root="project")
        thread = await threads.create_thread()
        await threads.add_message(thread, "What is in notes.txt?")
        async for event in threads.run_thread(thread, "You are brief.", model="openai:gpt-5"):
            ...
        ```
    """

    @takes(others=at("ThreadManager"))
    def __init__(
        self,
        store: Store | str | Path = "agentkit.db",
        registry: ToolRegistry | None = None,
        *,
        hooks: Sequence[Hook] = (),
        compaction: Compaction | None = None,
    ) -> None:
        values = {"store": store, "registry": registry, "hooks": hooks, "compaction": compaction}
        refuse("ThreadManager", values, _BOUNDS)
        super().__init__(open_store(store), ToolRegistry() if registry is None else registry)
        self.hooks = checked_hooks("ThreadManager", hooks)
        self.compaction = compaction
        if compaction is not None and READ_RESULT not in self.registry.tools:
            self.registry.register(StoredResults(self.store))
        _LOG.info("threads are stored in %s", self._where)

    def __repr__(self) -> str:
        return f"<ThreadManager: {self._where}>"

    @property
    def _where(self) -> str:
        """The file, or the server without its password; for any other store, its name or its `repr`."""
        return str(getattr(self.store, "name", None) or repr(self.store))

    @property
    def tool_registry(self) -> ToolRegistry:
        """Return `registry`, under another name."""
        return self.registry

    async def aclose(self) -> None:
        """Close the store, and the models that the manager created. It cannot be used afterwards.

        Runs in progress are ended first, as by their `cancel`, and waited for, so that everything up to that point is
        stored: a cancelled task may not have left its loop yet. If nothing takes the next event of a run within a
        second, its iteration ends there. A run on another event loop ends with a `StoreError`.
        """
        try:
            await asyncio.gather(*(run.end() for run in self._runs))
            await self._close_models()
        finally:
            await self.store.aclose()

    def add_tool(
        self, tool_class: Any, function_names: FunctionNames | None = None, **kwargs: Any
    ) -> tuple[BoundTool, ...]:
        """Register a tool in any form that `Agent(…, tools=[…])` accepts.

        Args:
            tool_class: a class, an instance, a function, `"module:Class"`, or a list of these; see
                `ToolRegistry.register`.
            function_names: for a class or an instance, which methods, and under which names; see
                `ToolRegistry.register_tool`.
            kwargs: for a class, its constructor's arguments.

        Raises:
            SchemaError: its definition is wrong, or its name is taken. In that case nothing is registered.
            ConfigError: a reference does not resolve to a tool.
        """
        if function_names is None and not kwargs:
            return self.registry.register(tool_class)
        return self.registry.register_tool(tool_class, function_names, **kwargs)

    # -------------------------------------------------------------- runs

    @spelt_out
    @takes(ThreadRunOptions, others=at("run_thread"))
    def run_thread(
        self,
        thread_id: str,
        system_prompt: System[Any] | None = None,
        model: Model | str = "",
        processor_config: ProcessorConfig | None = None,
        *,
        temporary_message: Prompt | None = None,
        compaction: Compaction | None = None,
        name: str = "agent",
        output_type: TypeForm[_OutputT] = str,  # type: ignore[assignment]  # the default of OutputT
        **options: Unpack[ThreadRunOptions],
    ) -> RunStream[_OutputT]:
        """Let a model answer the thread's last message, with the registry's tools, until it makes no more calls.

        Anything that an interrupted run left open is settled first (see `agentkit.threads.resume`); on a thread
        whose last message is a complete answer, nothing happens.

        Args:
            thread_id: the thread.
            system_prompt: instructions for this run, as the `system` of `Agent`; not stored in the thread.
            model: a `Model`, or a model string such as `openai:gpt-5`. It can differ from that of earlier runs, and use
                another format.
            processor_config: the limits of the calls of a response.
            temporary_message: put before the last user message in this run, or after the reply to it; not stored in the
                thread.
            compaction: used in place of the manager's.
            name: the agent's name, in traces.
            output_type: see `Agent`.
            **options: its limits, see `AgentLimits`, and other options, see `RunOptions`.

        Returns:
            A stream of events; iterate over it, or await its `complete()`. It raises `ThreadBusy` if the thread is
            already being run, and `ThreadNotFound`.
        """
        given = {"processor_config": processor_config, "name": name, "output_type": output_type, **options}
        given |= {"temporary_message": temporary_message, "compaction": compaction}
        return self._start_run("run_thread", thread_id, model, None, system_prompt, given)

    resume_thread = run_thread
    """`run_thread` under a name that shows the intent: every run first settles what an interrupted run left open."""

    @overload
    def run_agent(
        self,
        thread_id: str,
        agent: Agent[_ContextT, Any],
        *,
        system_prompt: System[_ContextT] | None = None,
        temporary_message: Prompt | None = None,
        compaction: Compaction | None = None,
        output_type: TypeForm[T],
        **options: Unpack[RunOptions[_ContextT]],
    ) -> RunStream[T]: ...
    @overload
    def run_agent(
        self,
        thread_id: str,
        agent: Agent[_ContextT, _OutputT],
        *,
        system_prompt: System[_ContextT] | None = None,
        temporary_message: Prompt | None = None,
        compaction: Compaction | None = None,
        **options: Unpack[RunOptions[_ContextT]],
    ) -> RunStream[_OutputT]: ...
    @takes(RunOptions, others=at("run_thread"))
    def run_agent(
        self,
        thread_id: str,
        agent: Agent[_ContextT, Any],
        *misplaced: Never,
        system_prompt: System[_ContextT] | None = None,
        temporary_message: Prompt | None = None,
        compaction: Compaction | None = None,
        output_type: Any = None,
        **options: Unpack[RunOptions[_ContextT]],
    ) -> RunStream[Any]:
        """`run_thread` with your own agent: its model, its tools, its limits; `system_prompt` in place of its `system`.

        Register `StoredResults` with it if its model should be able to read shortened results again.
        """
        if isinstance(thread_id, Agent):
            raise ConfigError("run_agent(agent, thread_id): these are swapped; write run_agent(thread_id, agent)")
        if misplaced:
            raise ConfigError(
                f"run_agent(thread_id, agent) answers the thread's last message, found {misplaced[0]!r:.60} after them"
                ": to say something write say(thread_id, message, agent=agent); pass instructions as system_prompt='…'"
            )
        given = {"temporary_message": temporary_message, "compaction": compaction, "output_type": output_type}
        return self._start_run("run_agent", thread_id, None, agent, system_prompt, {**given, **options})

    def _start_run(
        self,
        callee: str,
        thread_id: str,
        model: Model | str | None,
        agent: Agent[Any, Any] | None,
        system_prompt: System[Any] | None,
        options: dict[str, Any],
    ) -> RunStream[Any]:
        if agent is None:
            agent, options = self._agent(callee, model, system_prompt, options)
        rest = dict(options)
        temporary_message, policy = rest.pop("temporary_message", None), rest.pop("compaction", None)
        values = {"thread_id": thread_id, "agent": agent, "system_prompt": system_prompt, "compaction": policy}
        refuse(callee, values, _RUN)
        refuse_unknown(callee, rest, _BY_NAME, at("run")())
        if "decisions" in rest:
            raise ConfigError(
                "decisions on a thread's calls are stored in it: approve(…) or deny(…), then run the thread"
            )
        policy = self.compaction if policy is None else policy
        journal = ThreadJournal(
            self.store,
            thread_id,
            temporary=None if temporary_message is None else one_message(temporary_message, {}),
            compaction=policy,
            writer=None if policy is None else _writer(policy, agent, self._model),
            known=self._known,
        )
        system = agent.system if system_prompt is None else system_prompt
        run = agent.begin(journal, system, hooks=self.hooks, **rest)
        self._runs.add(run)
        return run

    def _agent(
        self, callee: str, model: Model | str | None, system_prompt: Any, options: Mapping[str, Any]
    ) -> tuple[Agent[Any, Any], dict[str, Any]]:
        """The agent of a run with a model and the registry's tools, and the options of the run itself."""
        for name, value in {"model": model, "system_prompt": system_prompt}.items():
            if isinstance(value, Agent):
                instead = "run_agent(thread_id, agent)" if callee == "run_thread" else f"{callee}(…, agent=agent)"
                raise ConfigError(f"{callee}(…, {name}=…) is an Agent; write {instead}")
        if not isinstance(system_prompt, str) and not lacking(system_prompt, Model):
            raise ConfigError(f"{callee}(…, system_prompt=…) is a model; write {callee}(…, model=model)")
        if not model:
            misplaced = system_prompt if isinstance(system_prompt, str) and ":" in system_prompt[:40] else None
            hint = f"; {misplaced!r} is the system prompt here" if misplaced else ""
            raise ConfigError(f"{callee}(…, model=…) is missing: name a model, such as 'openai:gpt-5'{hint}")
        limits, rest = limits_in(options)
        of_agent = {name: rest.pop(name) for name in ("name", "output_type") if name in rest}
        config = rest.pop("processor_config", None)
        return Agent(self._model(model), self.registry, config=config, **of_agent, **limits), rest


def _writer(policy: Compaction, agent: Agent[Any, Any], made: Callable[[str], Model]) -> Writer:
    """The writer of summaries for an agent's runs; a model string is resolved when the first summary is due.

    Raises:
        ConfigError: the string does not name a known provider, or the agent's budget has no price for the model.
    """
    model = policy.summary_model
    if model is None:
        return Writer(lambda: agent.model)
    name = model if isinstance(model, str) else model.name
    if isinstance(model, str):
        from agentkit.models.model_strings import split_name

        split_name(model)
    if policy.summary_tokens:
        agent.budget.price(name)
    return Writer(lambda: made(model) if isinstance(model, str) else model)
