"""Threads as an application uses them: the kept ones, and the runs on them."""

from __future__ import annotations

import logging
import sys
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, Unpack, overload

from agentkit import models
from agentkit.agent import Agent, Hook, RunOptions, RunResult, RunStream, checked_hooks
from agentkit.agent.blocking import blocking, close
from agentkit.agent.options import ThreadRunOptions, limits_in, spelt_out
from agentkit.agent.prompts import Prompt
from agentkit.agent.system import SYSTEM, System
from agentkit.checks.awaiting import EnteredAsync, waits
from agentkit.checks.bounds import CALLABLE, PATH, TEXT, Bounds, each, either, instance, like, or_none, refuse
from agentkit.checks.spelling import takes
from agentkit.errors import ConfigError, ThreadExists, ThreadNotFound
from agentkit.foreign.absent import explained
from agentkit.foreign.elsewhere import at
from agentkit.models.base import Model
from agentkit.processor import ProcessorConfig
from agentkit.threads.compaction import Compaction
from agentkit.threads.entries import one_message
from agentkit.threads.kept_threads import KeptThreads
from agentkit.threads.opening import open_store
from agentkit.threads.results import StoredResults
from agentkit.threads.shortening import READ_RESULT
from agentkit.threads.store import Store
from agentkit.threads.summary import Writer
from agentkit.threads.thread_journal import ThreadJournal
from agentkit.tool.registry import BoundTool, FunctionNames, ToolRegistry

if sys.version_info >= (3, 13):
    from typing import TypeVar
else:  # which has no defaults of type variables
    from typing_extensions import TypeVar
if TYPE_CHECKING:
    from typing_extensions import TypeForm

T = TypeVar("T")
_ContextT = TypeVar("_ContextT", default=Any)
_OutputT = TypeVar("_OutputT", default=str)
_LOG = logging.getLogger("agentkit.threads")

_BOUNDS: Final[Bounds] = {
    "store": either(PATH, like(Store, "a store"), words="a store, the path of a SQLite file, or 'postgresql://…'"),
    "registry": or_none(instance(ToolRegistry, "a ToolRegistry: ToolRegistry(tool, …)")),
    "hooks": each(CALLABLE, "several functions: hooks=[print]"),
    "compaction": or_none(instance(Compaction, "a Compaction")),
}
_ANSWERING: Final[Bounds] = {"agent": or_none(instance(Agent, "an Agent; a model is model=…"))}
_RUN: Final[Bounds] = {
    "thread_id": TEXT,
    "agent": instance(Agent, "an Agent"),
    "system_prompt": SYSTEM,
    "compaction": _BOUNDS["compaction"],
}


@explained
class ThreadManager(KeptThreads, EnteredAsync):
    """Conversations that outlive the process, and the runs on them.

    Close it with `aclose`, or use it in `async with`: that closes its store, also one that was handed over, and the
    models that it made from strings. A model that was handed over stays the caller's.

    Args:
        store: a `Store`, the path of a SQLite file, or `postgresql://…`. Unless given: `agentkit.db` in the working
            directory. The object's `repr` says where that is, and so does a line of the log (`agentkit.threads`, INFO).
        registry: the tools; an empty registry unless given. `add_tool` adds to it.
        hooks: called with each event of every run; see `Agent`.
        compaction: when and how a conversation that becomes too long is made shorter; None never does it. With it, the
            registry gets the tool `read_result`, by which a model reads again what was shortened.

    Raises:
        ConfigError: an argument that is something else, or no store is called so. A store that cannot be opened says so
            when it is first used.

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
        given = {"store": store, "registry": registry, "hooks": hooks, "compaction": compaction}
        refuse("ThreadManager", given, _BOUNDS)
        super().__init__(open_store(store), ToolRegistry() if registry is None else registry)
        self._models: dict[str, Model] = {}  # those that it made, by their strings
        self._runs: weakref.WeakSet[RunStream[Any]] = weakref.WeakSet()
        self.hooks = checked_hooks("ThreadManager", hooks)
        self.compaction = compaction
        if compaction is not None and READ_RESULT not in self.registry.tools:
            self.registry.register(StoredResults(self.store))
        _LOG.info("threads are kept in %s", self._where)

    def __repr__(self) -> str:
        return f"<ThreadManager: {self._where}>"

    @property
    def _where(self) -> str:
        """The file, or the server without its password; of a store of another kind, what it says of itself."""
        return str(getattr(self.store, "name", None) or repr(self.store))

    @property
    def tool_registry(self) -> ToolRegistry:
        """The same as `registry`."""
        return self.registry

    async def aclose(self) -> None:
        """Close the store, and the models that the manager made. It cannot be used any more then.

        Runs whose loop was left are waited for: what was said in them is kept. A run that somebody still iterates ends
        with a `StoreError`.
        """
        try:
            for run in tuple(self._runs):
                await run.settled()
            await self._close_models()
        finally:
            await self.store.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _close_models(self) -> None:
        for model in self._models.values():
            await close(model)

    def _model(self, model: Model | str) -> Model:
        """The model that a string names: the same one each time, so that its connections last."""
        if not isinstance(model, str):
            return model
        if model not in self._models:
            self._models[model] = models.model(model)
        return self._models[model]

    def add_tool(
        self, tool_class: Any, function_names: FunctionNames | None = None, **kwargs: Any
    ) -> tuple[BoundTool, ...]:
        """Register a tool; see `ToolRegistry.register_tool`.

        A plain function is registered by `threads.registry.register(function)`.
        """
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
        """Let a model answer the thread's last message, with the registry's tools, until it calls nothing more.

        What an interrupted run left open is settled first (see `agentkit.threads.resume`); nothing happens on a thread
        whose last message is a finished answer.

        Args:
            thread_id: the thread.
            system_prompt: instructions for this run, as the `system` of `Agent`; not kept in the thread.
            model: a `Model`, or a model string such as `openai:gpt-5`. It need not be the one of earlier runs, nor use
                the same format.
            processor_config: what the calls of a response may do.
            temporary_message: put before the last user message in this run, or behind the reply to it; not kept in the
                thread.
            compaction: in place of the manager's.
            name: of the agent, in traces.
            output_type: see `Agent`.
            **options: its limits, see `AgentLimits`, and further ones, see `RunOptions`.

        Returns:
            A stream of events; iterate it, or await its `finished()`. It raises `ThreadBusy` if somebody else runs the
            thread, and `ThreadNotFound`.
        """
        if isinstance(model, Agent):
            raise ConfigError("run_thread(…, model=…) is an Agent; write run_agent(thread_id, agent)")
        if isinstance(model, str) and not model:
            said = system_prompt if isinstance(system_prompt, str) and ":" in system_prompt[:40] else None
            hint = f"; {said!r} is the system prompt here" if said else ""
            raise ConfigError(f"run_thread(…, model=…) is missing: name a model, such as 'openai:gpt-5'{hint}")
        limits, rest = limits_in(options)
        agent = Agent[Any, _OutputT](
            self._model(model),
            self.registry,
            config=processor_config,
            name=name,
            output_type=output_type,
            **limits,
        )
        return self.run_agent(
            thread_id, agent, system_prompt, temporary_message=temporary_message, compaction=compaction, **rest
        )

    resume_thread = run_thread
    """The same: every run begins by settling what an interrupted one left open. The name says what it is for."""

    @overload
    def run_agent(
        self,
        thread_id: str,
        agent: Agent[_ContextT, Any],
        system_prompt: System[_ContextT] | None = None,
        *,
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
        system_prompt: System[_ContextT] | None = None,
        *,
        temporary_message: Prompt | None = None,
        compaction: Compaction | None = None,
        **options: Unpack[RunOptions[_ContextT]],
    ) -> RunStream[_OutputT]: ...
    @takes(RunOptions, others=at("run_thread"))
    def run_agent(
        self,
        thread_id: str,
        agent: Agent[_ContextT, Any],
        system_prompt: System[_ContextT] | None = None,
        *,
        temporary_message: Prompt | None = None,
        compaction: Compaction | None = None,
        output_type: Any = None,
        **options: Unpack[RunOptions[_ContextT]],
    ) -> RunStream[Any]:
        """`run_thread` with an agent of your own: its model, its tools, its limits.

        Register `StoredResults` with it, if its model is to read again what a compaction shortened.
        """
        given = {"thread_id": thread_id, "agent": agent, "system_prompt": system_prompt, "compaction": compaction}
        refuse("run_thread", given, _RUN)
        if "decisions" in options:
            raise ConfigError(
                "decisions on a thread's calls are kept in it: approve(…) or deny(…), then run the thread"
            )
        temporary = None
        if temporary_message is not None:
            temporary = one_message(temporary_message, {})
        system = agent.system if system_prompt is None else system_prompt
        policy = self.compaction if compaction is None else compaction
        journal = ThreadJournal(
            self.store,
            thread_id,
            temporary=temporary,
            compaction=policy,
            writer=None if policy is None else _writer(policy, agent, self._model),
        )
        run = agent.begin(journal, system, hooks=self.hooks, output_type=output_type, **options)
        self._runs.add(run)
        return run

    @overload
    async def say(
        self,
        thread_id: str,
        message: Prompt,
        model: Model | str,
        system_prompt: System[Any] | None = None,
        *,
        output_type: TypeForm[_OutputT] = str,  # type: ignore[assignment]
        **options: Unpack[ThreadRunOptions],
    ) -> RunResult[_OutputT]: ...
    @overload
    async def say(
        self,
        thread_id: str,
        message: Prompt,
        *,
        agent: Agent[_ContextT, _OutputT],
        **options: Unpack[RunOptions[_ContextT]],
    ) -> RunResult[_OutputT]: ...
    @waits("threads.say(…)", "threads.say_sync(…)")
    async def say(
        self,
        thread_id: str,
        message: Prompt,
        model: Model | str | None = None,
        system_prompt: System[Any] | None = None,
        *,
        agent: Agent[Any, Any] | None = None,
        **options: Any,
    ) -> RunResult[Any]:
        """Say something in a thread, and give the result of the run that answers it.

        Args:
            thread_id: the thread; made if there is none with this id.
            message: as for `add_message`.
            model: who answers, with the registry's tools: a `Model`, or a model string such as `openai:gpt-5`.
            system_prompt: as for `run_thread`.
            agent: who answers, with tools and limits of its own, in place of a model.
            **options: as for `run_thread` or `run_agent`.

        Raises:
            ConfigError: neither a model nor an agent is named, or both are.
        """
        _one_answers(model, agent)
        if agent is not None:
            run = self.run_agent(thread_id, agent, system_prompt, **options)
        else:
            run = self.run_thread(thread_id, system_prompt, model or "", **options)
        async with run:  # also where the message is refused
            try:
                await self.add_message(thread_id, message)
            except ThreadNotFound:
                with suppress(ThreadExists):  # somebody else made it just now
                    await self.create_thread(thread_id)
                await self.add_message(thread_id, message)
            return await run.finished()

    @overload
    def say_sync(
        self,
        thread_id: str,
        message: Prompt,
        model: Model | str,
        system_prompt: System[Any] | None = None,
        *,
        output_type: TypeForm[_OutputT] = str,  # type: ignore[assignment]
        **options: Unpack[ThreadRunOptions],
    ) -> RunResult[_OutputT]: ...
    @overload
    def say_sync(
        self,
        thread_id: str,
        message: Prompt,
        *,
        agent: Agent[_ContextT, _OutputT],
        **options: Unpack[RunOptions[_ContextT]],
    ) -> RunResult[_OutputT]: ...
    def say_sync(
        self,
        thread_id: str,
        message: Prompt,
        model: Model | str | None = None,
        system_prompt: System[Any] | None = None,
        *,
        agent: Agent[Any, Any] | None = None,
        **options: Any,
    ) -> RunResult[Any]:
        """`say` for code without an event loop: `threads.say_sync("ada", "Hello!", "openai:gpt-5").text`.

        Connections that models made for it are closed at its end; the store stays open.

        Raises:
            RuntimeError: an event loop runs in this thread: await `say` there.
        """
        _one_answers(model, agent)
        answering = self._model(model or "") if agent is None else agent.model

        async def end() -> None:
            await self._close_models()
            await close(answering)

        said = {"model": model, "system_prompt": system_prompt, "agent": agent, **options}
        return blocking(lambda: self.say(thread_id, message, **said), end, "say_sync", "threads.say")


def _writer(policy: Compaction, agent: Agent[Any, Any], made: Callable[[str], Model]) -> Writer:
    """Who writes the summaries of an agent's runs; a model string is resolved when the first one is due.

    Raises:
        ConfigError: the string names no provider, or the agent's budget has no price for the model.
    """
    model = policy.summary_model
    if model is None:
        return Writer(lambda: agent.model)
    name = model if isinstance(model, str) else model.name
    if isinstance(model, str):
        models.known(model)
    if policy.summary_tokens:
        agent.budget.price(name)
    return Writer(lambda: made(model) if isinstance(model, str) else model)


def _one_answers(model: Model | str | None, agent: Agent[Any, Any] | None) -> None:
    if isinstance(model, Agent):
        raise ConfigError(
            "say(…, model=…) is an Agent; an agent is given by name: say(thread_id, message, agent=agent)"
        )
    refuse("say", {"agent": agent}, _ANSWERING)
    if (model is None) == (agent is None):
        found = "neither" if agent is None else "both"
        raise ConfigError(
            "say(…) wants who answers: model='openai:gpt-5' or agent=Agent(…); "
            f"found {found} behind thread_id and message"
        )
