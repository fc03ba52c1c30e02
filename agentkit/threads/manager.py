"""Threads as an application uses them: made, written to, run, resumed, approved, forked. All state is in the store."""

from __future__ import annotations

import logging
import secrets
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, Unpack, overload

from agentkit import models
from agentkit.agent import Agent, Hook, RunOptions, RunResult, RunStream, call_hash, checked_hooks
from agentkit.agent.blocking import blocking, close
from agentkit.agent.decisions import denial
from agentkit.agent.options import ThreadRunOptions, limits_in, spelt_out
from agentkit.agent.prompts import Prompt, messages_from
from agentkit.agent.system import SYSTEM, System
from agentkit.checks.awaiting import EnteredAsync, waits
from agentkit.checks.bounds import CALLABLE, PATH, TEXT, Bounds, each, either, instance, like, or_none, refuse, whole
from agentkit.checks.spelling import takes
from agentkit.errors import ConfigError, StoreConflict, StoreError, ThreadExists, ThreadNotFound
from agentkit.foreign import renamed
from agentkit.foreign.absent import explained
from agentkit.foreign.elsewhere import at
from agentkit.messages import Message, ToolCall, ToolMessage
from agentkit.models.base import Model
from agentkit.processor import ProcessorConfig
from agentkit.threads.codec import call_from_json, call_to_json, to_json
from agentkit.threads.compaction import Compaction
from agentkit.threads.conversation import messages_of
from agentkit.threads.entries import entries_of, one_message
from agentkit.threads.fork import copied
from agentkit.threads.opening import open_store
from agentkit.threads.reading import read_log
from agentkit.threads.results import StoredResults
from agentkit.threads.resume import waiting
from agentkit.threads.shortening import READ_RESULT
from agentkit.threads.store import Call, Log, Move, Store, Thread
from agentkit.threads.summary import Writer
from agentkit.threads.thread_journal import ThreadJournal, child_id
from agentkit.tool.registry import BoundTool, FunctionNames, InvalidArguments, ToolRegistry

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
_NOTHING: Mapping[str, Any] = MappingProxyType({})

_BOUNDS: Final[Bounds] = {
    "store": either(PATH, like(Store, "a store"), words="a store, the path of a SQLite file, or 'postgresql://…'"),
    "registry": or_none(instance(ToolRegistry, "a ToolRegistry: ToolRegistry(tool, …)")),
    "hooks": each(CALLABLE, "several functions: hooks=[print]"),
    "compaction": or_none(instance(Compaction, "a Compaction")),
}
_NEW: Final[Bounds] = {
    "thread_id": or_none(TEXT, "for a new one"),
    "metadata": instance(Mapping, "a mapping, such as {'title': 'Holidays'}"),
}
_THREAD: Final[Bounds] = {"thread_id": TEXT}
_PAGE: Final[Bounds] = {"limit": whole(0), "before": or_none(instance(Thread, "a thread that list_threads gave"))}
_ANSWERING: Final[Bounds] = {"agent": or_none(instance(Agent, "an Agent; a model is model=…"))}
_RUN: Final[Bounds] = {
    "thread_id": TEXT,
    "agent": instance(Agent, "an Agent"),
    "system_prompt": SYSTEM,
    "compaction": _BOUNDS["compaction"],
}


@explained
class ThreadManager(EnteredAsync):
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
        self.store = open_store(store)
        self._models: dict[str, Model] = {}  # those that it made, by their strings
        self._runs: weakref.WeakSet[RunStream[Any]] = weakref.WeakSet()
        self.registry = ToolRegistry() if registry is None else registry
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

    # -------------------------------------------------------------- threads

    @takes(others=renamed.CREATE_THREAD)
    async def create_thread(
        self,
        thread_id: str | None = None,
        *,
        metadata: Mapping[str, Any] = _NOTHING,
        messages: Prompt | Iterable[Prompt] = (),
    ) -> str:
        """Make a thread and give its id.

        Args:
            thread_id: its id; a new one unless given.
            metadata: the application's: a JSON object.
            messages: its first messages, in one transaction with the thread itself; see `add_message`.

        Raises:
            ThreadExists: there is a thread with this id.
            ConfigError: as `add_message`, or the metadata is no mapping.
            StoreError: the metadata holds what JSON cannot, or a key that is no text.
        """
        refuse("create_thread", {"thread_id": thread_id, "metadata": metadata}, _NEW)
        id = secrets.token_hex(8) if thread_id is None else thread_id
        if not id:
            raise ConfigError("create_thread(''): a thread's id is not empty; leave it out for a new one")
        await self.store.create(id, metadata, entries_of(messages_from(messages)))
        return id

    async def get_thread(self, thread_id: str) -> Thread:
        """A thread's own data.

        Raises:
            ThreadNotFound: there is none with this id.
        """
        refuse("get_thread", {"thread_id": thread_id}, _THREAD)
        return await self.store.get(thread_id)

    async def list_threads(self, *, limit: int = 100, before: Thread | None = None) -> tuple[Thread, ...]:
        """Threads, the last changed first; one whose own data are damaged is among them, with its `damage`.

        Args:
            limit: so many at most, 0 or more.
            before: the last one of the page before; None for the first page.
        """
        refuse("list_threads", {"limit": limit, "before": before}, _PAGE)
        return await self.store.list(limit=limit, before=before)

    async def delete_thread(self, thread_id: str) -> None:
        """Remove a thread and all that belongs to it, the threads of its sub-agents included.

        A thread that is damaged in the store can be deleted, too. Where its calls cannot be read, the threads of its
        sub-agents stay, and a warning is logged.

        Raises:
            ThreadBusy: somebody runs it.
        """
        refuse("delete_thread", {"thread_id": thread_id}, _THREAD)
        keys: list[Any] = []
        try:
            keys = [call.body.get("key") for call in (await self.store.load(thread_id)).calls]
        except ThreadNotFound:
            raise
        except StoreError as e:
            _LOG.warning("thread %s is deleted without the threads of its sub-agents: %s", thread_id, e)
        await self.store.delete(thread_id)
        for key in keys:
            if isinstance(key, str) and key:
                with suppress(ThreadNotFound):  # most calls employ no agent
                    await self.delete_thread(child_id(thread_id, key))

    async def fork_thread(
        self,
        thread_id: str,
        *,
        until: int | None = None,
        new_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> str:
        """Make a thread that begins as a copy of another, and give its id.

        A call without an answer is answered `cancelled` in the copy: what it would do happens in one thread at most.

        Args:
            thread_id: the thread to copy.
            until: the last entry to copy, by its place; None copies all.
            new_id: the new thread's id; a new one unless given.
            metadata: the new thread's; that of the copied one unless given. `forked_from` is added.

        Raises:
            ThreadNotFound: there is no such thread.
            ThreadExists: there is a thread with the new id.
            ConfigError: it has no entry `until`.
        """
        refuse("fork_thread", {"thread_id": thread_id}, _THREAD)
        if metadata is not None:
            refuse("fork_thread", {"metadata": metadata}, _NEW)
        thread, log = await self.store.get(thread_id), await read_log(self.store, thread_id)
        if until is not None and until not in (entry.seq for entry in log.entries):
            raise ConfigError(
                f"fork_thread(until={until!r}): thread {thread_id!r} has {len(log.entries)} entries, from 0"
            )
        id = new_id or secrets.token_hex(8)
        said = {**(thread.metadata if metadata is None else metadata), "forked_from": thread_id}
        await self.store.create(id, said, copied(log, until))
        return id

    # -------------------------------------------------------------- messages

    @takes(others=renamed.ADD_MESSAGE)
    async def add_message(self, thread_id: str, message: Prompt, *, client_id: str | None = None) -> int:
        """Add a message at the end and give its place.

        A run that is going on sends it with its next request, and makes one more if it was about to end.

        A `ToolMessage` is no message of its own: it answers the newest call with its id that has no answer yet.

        Args:
            thread_id: the thread.
            message: whatever a prompt may be, as one message: text, a part, a dict of OpenAI's chat API.
            client_id: the client's id of the message: adding it again under the same id changes nothing.

        Raises:
            ThreadNotFound: there is no such thread.
            ConfigError: a system message (a run is given its own), or a result without a call that waits for one.
        """
        refuse("add_message", {"thread_id": thread_id}, _THREAD)
        names = await self._names(thread_id) if isinstance(message, Mapping) else {}
        one = one_message(message, names)
        if isinstance(one, ToolMessage):
            call = await self._open_call(thread_id, one.call_id)
            move = Move(call.seq, call.ordinal, "answered", (call.status,), answer=to_json(one))
            await self.store.commit(thread_id, [move])
            return call.seq
        (entry,) = entries_of([one])
        (seq,) = await self.store.commit(thread_id, [replace(entry, key=client_id)])
        return seq

    async def get_llm_messages(self, thread_id: str) -> list[Message]:
        """The conversation as a model reads it: every call followed by its answer, from the newest compaction on."""
        refuse("get_llm_messages", {"thread_id": thread_id}, _THREAD)
        return messages_of(await read_log(self.store, thread_id))

    async def get_log(self, thread_id: str) -> Log:
        """Everything that the thread holds, as stored.

        Raises:
            StoreError: an entry is damaged; the message names it. `store.load` shows what can be read of it.
        """
        refuse("get_log", {"thread_id": thread_id}, _THREAD)
        return await read_log(self.store, thread_id)

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
        **options: Unpack[RunOptions],
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
        **options: Unpack[RunOptions],
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

    # -------------------------------------------------------------- approvals

    async def pending(self, thread_id: str) -> tuple[ToolCall, ...]:
        """The calls that wait for approval, oldest first.

        Those after which the user wrote again are none of them: they are not run any more.
        """
        refuse("pending", {"thread_id": thread_id}, _THREAD)
        return tuple(call_from_json(call.body) for call in waiting(await read_log(self.store, thread_id)))

    async def approve(
        self,
        thread_id: str,
        call_id: str,
        *,
        arguments: Mapping[str, Any] | None = None,
        seen: str | None = None,
        by: str | None = None,
    ) -> None:
        """Let a waiting call run when the thread is resumed, by this or by another process.

        Args:
            thread_id: the thread.
            call_id: the call.
            arguments: run it with these instead; the model is told.
            seen: what `call_hash` gave for the call that the person saw; refused if the call is another by now.
            by: who approved it; kept with the call.

        Raises:
            ConfigError: no such call waits, it is not the one that the person saw, or its tool does not take these
                arguments.
        """
        record = await self._waiting(thread_id, call_id)
        call = call_from_json(record.body)
        if seen is not None and seen != call_hash(call):
            raise ConfigError(
                f"call {call_id!r} is not the one that was shown: it is {call.name} {dict(call.arguments)}"
            )
        if arguments is not None:
            call = replace(call, arguments=arguments)
            self._check(call)
        edited = arguments is not None or bool(record.note.get("edited"))
        note = {"hash": call_hash(call), "by": by, "edited": edited}
        body = {**record.body, **call_to_json(call)} if arguments is not None else None
        await self._decide(thread_id, Move(record.seq, record.ordinal, "approved", ("waiting",), body=body, note=note))

    async def deny(self, thread_id: str, call_id: str, reason: str = "", *, by: str | None = None) -> None:
        """Refuse a waiting call. The model reads the reason when the thread is resumed.

        Raises:
            ConfigError: no such call waits.
        """
        record = await self._waiting(thread_id, call_id)
        said = to_json(denial(call_from_json(record.body), reason))
        note = {"by": by, **({"edited": True} if record.note.get("edited") else {})}
        move = Move(record.seq, record.ordinal, "answered", ("waiting",), note=note, answer=said)
        await self._decide(thread_id, move)

    def _check(self, call: ToolCall) -> None:
        """Whether a call's tool, where it is known here, takes its arguments."""
        tool = self.registry.get_tool(call.name)
        if tool is None:
            return
        try:
            tool.validate(call.arguments, lenient=False)
        except InvalidArguments as e:
            raise ConfigError(f"approve(arguments=…): {e}") from e

    async def _decide(self, thread_id: str, move: Move) -> None:
        try:
            await self.store.commit(thread_id, [move])
        except StoreConflict as e:
            raise ConfigError("somebody else decided about this call in the meantime") from e

    async def _waiting(self, thread_id: str, call_id: str) -> Call:
        log = await read_log(self.store, thread_id)
        for call in waiting(log):
            if call.id == call_id:
                return call
        for call in log.calls:
            if call.id == call_id and call.status == "waiting":
                raise ConfigError(f"call {call_id!r} waits no more: the user wrote again since it was made")
        listed = ", ".join(repr(call.id) for call in waiting(log)) or "none"
        raise ConfigError(
            f"no call waits for approval under the id {call_id!r} in thread {thread_id!r}; waiting: {listed}"
        )

    async def _names(self, thread_id: str) -> dict[str, str]:
        """The tools' names by the ids of the calls that have no answer yet."""
        calls = (await self.store.load(thread_id)).calls
        return {call.id: str(call.body["name"]) for call in calls if call.status != "answered"}

    async def _open_call(self, thread_id: str, call_id: str) -> Call:
        log = await read_log(self.store, thread_id)
        for call in reversed(log.calls):
            if call.id == call_id and call.status != "answered":
                return call
        raise ConfigError(f"no call {call_id!r} of thread {thread_id!r} waits for an answer")


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
