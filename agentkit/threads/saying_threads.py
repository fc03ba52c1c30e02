"""Messages to threads, and the runs that answer them: whole, streamed, and without an event loop.

`ThreadManager` starts the runs.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Generic, Unpack, overload

from agentkit import models
from agentkit.agent import Agent, RunOptions, RunResult, RunStream
from agentkit.agent.blocking_call import run_blocking
from agentkit.agent.final_reply import as_shown
from agentkit.agent.options import ThreadRunOptions
from agentkit.agent.outcome import OutputT
from agentkit.agent.plan import Plan
from agentkit.agent.prompts import Prompt
from agentkit.agent.system import System
from agentkit.checks.bounds import Bound, Bounds, instance, lacking, or_none, refuse
from agentkit.checks.missing_await import hint_missing_await
from agentkit.checks.spelling import takes
from agentkit.checks.type_variables import TypeVar
from agentkit.errors import ConfigError
from agentkit.events import Event, Text
from agentkit.foreign import argument_names
from agentkit.foreign.elsewhere import at
from agentkit.messages import AssistantMessage
from agentkit.models.base import Model, close
from agentkit.threads.kept_threads import KeptThreads
from agentkit.threads.store import Store
from agentkit.threads.stored_answer import answered_before, put
from agentkit.tool.registry import ToolRegistry

if TYPE_CHECKING:
    from typing_extensions import TypeForm

_ContextT = TypeVar("_ContextT", default=Any)
_OutputT = TypeVar("_OutputT", default=str)

_ANSWERING: Final[Bounds] = {
    "message": Bound(
        lambda message: not isinstance(message, Agent) and bool(lacking(message, Model)),
        "what to say; the model or agent follows",
    ),
    "agent": or_none(instance(Agent, "an Agent; pass a model as model=…")),
}


class _Options(ThreadRunOptions[Any], total=False):
    """The keyword arguments of `run_thread` and `run_agent`."""

    temporary_message: Any
    compaction: Any
    processor_config: Any
    name: str
    output_type: Any


class SaidStream(RunStream[OutputT], Generic[OutputT]):
    """A run that stores a message before it begins; if that was answered before, it only yields the stored text.

    Args:
        run: the run.
        said: stores the message, and returns the stored answer to it, if there is one.
    """

    def __init__(self, run: RunStream[OutputT], said: Callable[[Plan], Awaitable[RunResult[Any] | None]]) -> None:
        run._unread = None  # this is read instead
        super().__init__(run.plan, run.journal, "threads.say_stream(…)")
        self._said = said
        self._stored: RunResult[Any] | None = None

    @property
    def result(self) -> RunResult[OutputT]:
        """How the run ended; the stored answer if there was one."""
        return super().result if self._stored is None else self._stored

    async def _events(self) -> AsyncGenerator[Event, None]:
        self._begun, asked = True, False
        try:
            self._requests.check()  # before anything is stored
            stored = await self._said(self.plan)
            self._stored = None if stored is None else await self._accepted(stored)
            if self._stored is not None and self._stored.text:
                yield Text(self._stored.text)
            asked = self._stored is None
        except BaseException as e:
            self._failed(e)
            raise
        finally:
            if not asked:
                self._is_over()
        if asked:
            async with aclosing(super()._events()) as events:
                async for event in events:
                    yield event

    async def _accepted(self, stored: RunResult[Any]) -> RunResult[Any]:
        """Return the stored answer, without its text if the guards of this run do not accept it, or it is cancelled."""
        reply = next((m for m in reversed(stored.messages) if isinstance(m, AssistantMessage)), None)
        if reply is None or not self.plan.guards.has("reply"):
            return stored
        said = await self._brake.unless_pulled(self.plan.guards.check_reply(as_shown(reply, stored.text), self))
        if isinstance(said, AssistantMessage):
            return stored
        output = None if stored._output is None else ()
        if said is None:
            return replace(stored, text="", finish=self._brake.reason or "cancelled", _output=output)
        return replace(stored, text="", finish="refused_by_guard", guard_reason=said.reason, _output=output)


class SayingThreads(KeptThreads, ABC):
    """The threads of a store, in which messages are answered."""

    def __init__(self, store: Store, registry: ToolRegistry) -> None:
        super().__init__(store, registry)
        self._models: dict[str, Model] = {}  # models that it created, by their strings
        self._runs: weakref.WeakSet[RunStream[Any]] = weakref.WeakSet()

    @abstractmethod
    def _start_run(
        self,
        callee: str,
        thread_id: str,
        model: Model | str | None,
        agent: Agent[Any, Any] | None,
        system_prompt: System[Any] | None,
        options: dict[str, Any],
    ) -> RunStream[Any]:
        """A run on a thread, by an agent, or by a model with the registry's tools; `callee` is its name in errors."""

    def _model(self, model: Model | str) -> Model:
        """The model that a string names: the same one each time, so that its connections are reused."""
        if not isinstance(model, str):
            return model
        if model not in self._models:
            self._models[model] = models.model(model)
        return self._models[model]

    async def _close_models(self) -> None:
        for model in self._models.values():
            await close(model)

    @overload
    async def say(
        self,
        thread_id: str,
        message: Prompt,
        model: Model | str,
        system_prompt: System[Any] | None = None,
        *,
        client_id: str | None = None,
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
        client_id: str | None = None,
        **options: Unpack[RunOptions[_ContextT]],
    ) -> RunResult[_OutputT]: ...
    @hint_missing_await("threads.say(…)", "threads.say_sync(…)")
    @takes(_Options, others=at("run_thread", argument_names.ADD_MESSAGE), owner="say")
    async def say(
        self,
        thread_id: str,
        message: Prompt,
        model: Model | str | None = None,
        system_prompt: System[Any] | None = None,
        *,
        agent: Agent[Any, Any] | None = None,
        client_id: str | None = None,
        **options: Any,
    ) -> RunResult[Any]:
        """Add a message to a thread, and return the result of the run that answers it.

        Args:
            thread_id: the thread; created if there is none with this id.
            message: as for `add_message`.
            model: answers with the registry's tools: a `Model`, or a model string such as `openai:gpt-5`.
            system_prompt: as for `run_thread`.
            agent: answers with its own model, tools and limits, in place of `model`.
            client_id: as for `add_message`: saying it again under the same id adds no second message, and returns the
                stored answer to it, even if the user has written again since.
            **options: as for `run_thread` or `run_agent`.

        Raises:
            ConfigError: neither a model nor an agent is passed, or both are.
            ThreadBusy: the thread is being run. The message is stored, and answered by that run or by the next one; to
                say it again, pass a `client_id`.
            StoreConflict: it was said before under this `client_id`, and got no complete answer before the user wrote
                again.
        """
        return await self._said("say", thread_id, message, model, system_prompt, agent, client_id, options)

    @overload
    def say_stream(
        self,
        thread_id: str,
        message: Prompt,
        model: Model | str,
        system_prompt: System[Any] | None = None,
        *,
        client_id: str | None = None,
        output_type: TypeForm[_OutputT] = str,  # type: ignore[assignment]
        **options: Unpack[ThreadRunOptions],
    ) -> RunStream[_OutputT]: ...
    @overload
    def say_stream(
        self,
        thread_id: str,
        message: Prompt,
        *,
        agent: Agent[_ContextT, _OutputT],
        client_id: str | None = None,
        **options: Unpack[RunOptions[_ContextT]],
    ) -> RunStream[_OutputT]: ...
    @takes(_Options, others=at("run_thread", argument_names.ADD_MESSAGE), owner="say_stream")
    def say_stream(
        self,
        thread_id: str,
        message: Prompt,
        model: Model | str | None = None,
        system_prompt: System[Any] | None = None,
        *,
        agent: Agent[Any, Any] | None = None,
        client_id: str | None = None,
        **options: Any,
    ) -> RunStream[Any]:
        """`say` as it happens: `async for event in threads.say_stream("ada", "Hello!", "openai:gpt-5")`.

        Arguments and errors as for `say`. The message is stored when the iteration begins, before the first event. If
        it was answered before under its `client_id`, the only event is the text of the stored answer.

        Returns:
            A stream of events, as from `run_thread`.
        """
        return self._said("say_stream", thread_id, message, model, system_prompt, agent, client_id, options)

    @overload
    def say_sync(
        self,
        thread_id: str,
        message: Prompt,
        model: Model | str,
        system_prompt: System[Any] | None = None,
        *,
        client_id: str | None = None,
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
        client_id: str | None = None,
        **options: Unpack[RunOptions[_ContextT]],
    ) -> RunResult[_OutputT]: ...
    @takes(_Options, others=at("run_thread", argument_names.ADD_MESSAGE), owner="say_sync")
    def say_sync(
        self,
        thread_id: str,
        message: Prompt,
        model: Model | str | None = None,
        system_prompt: System[Any] | None = None,
        *,
        agent: Agent[Any, Any] | None = None,
        client_id: str | None = None,
        **options: Any,
    ) -> RunResult[Any]:
        """`say` for code without an event loop: `threads.say_sync("ada", "Hello!", "openai:gpt-5").text`.

        Connections that models opened for it are closed at the end; the store stays open.

        Raises:
            RuntimeError: an event loop is running in this thread: await `say` there.
        """
        _one_answers("say_sync", message, model, agent)
        answering = self._model(model or "") if agent is None else agent.model

        async def said() -> RunResult[Any]:
            return await self._said("say_sync", thread_id, message, model, system_prompt, agent, client_id, options)

        async def end() -> None:
            await self._close_models()
            await close(answering)

        return run_blocking(said, end, "say_sync", "threads.say")

    def _said(
        self,
        callee: str,
        thread_id: str,
        message: Prompt,
        model: Model | str | None,
        system_prompt: System[Any] | None,
        agent: Agent[Any, Any] | None,
        client_id: str | None,
        options: dict[str, Any],
    ) -> RunStream[Any]:
        """Return the run that stores a message and answers it."""
        _one_answers(callee, message, model, agent)
        run = self._start_run(callee, thread_id, model, agent, system_prompt, options)

        async def said(plan: Plan) -> RunResult[Any] | None:
            seq = await put(self, thread_id, message, client_id=client_id)
            return None if client_id is None else await answered_before(self, thread_id, seq, plan)

        self._runs.add(stream := SaidStream(run, said))
        return stream


def _one_answers(callee: str, message: object, model: Model | str | None, agent: Agent[Any, Any] | None) -> None:
    if isinstance(model, Agent):
        raise ConfigError(
            f"{callee}(…, model=…) is an Agent; pass an agent by name: {callee}(thread_id, message, agent=agent)"
        )
    refuse(callee, {"agent": agent}, _ANSWERING)
    if (model is None) == (agent is None):
        found = "neither" if agent is None else "both"
        raise ConfigError(
            f"{callee}(…) requires either model='openai:gpt-5' or agent=Agent(…); "
            f"found {found} after thread_id and message"
        )
    refuse(callee, {"message": message}, _ANSWERING)
