"""A conversation between a person and a model with tools: each message is answered, and waiting calls are asked about.

Knows no input: `agentkit chat` and `agentkit run` get the messages.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from agentkit.cli.model_choice import ModelChoice, model_log
from agentkit.cli.screen import Screen
from agentkit.cli.serve_mcp import servers
from agentkit.cli.terminal import plain, visible, width
from agentkit.cli.threads import store_option
from agentkit.errors import ConfigError, ProviderError, StoreError, ThreadBusy

if TYPE_CHECKING:
    from agentkit.agent import Agent, OwnLoop, RunStream
    from agentkit.cli.chat_storage import InThread, KeptChat
    from agentkit.messages import ToolCall
    from agentkit.threads import Log, ThreadManager

RECENT: Final = 4  # entries shown when a thread is reopened
WAITS: Final = 3  # the exit status if a call is waiting for approval
STOPPED: Final = -1  # no exit status: the user stopped an answer
TICK: Final = 0.08  # seconds between two drawings


@contextmanager
def open_session(arguments: argparse.Namespace, screen: Screen, *, greeting: bool = True) -> Iterator[ChatSession]:
    """Open a conversation with the model and the tools that the arguments name.

    Args:
        arguments: those of `agentkit.cli.chat.add_conversation`.
        screen: where it is shown.
        greeting: whether to show who answers, and a thread's last entries.

    Raises:
        ConfigError: the arguments contradict each other, or the model or a tool cannot be had.
    """
    from agentkit.agent import Agent, OwnLoop
    from agentkit.processor import ProcessorConfig

    if arguments.thread == "":
        raise ConfigError("--thread requires a name")
    model = ModelChoice.of(arguments).create()
    settings = {name: getattr(arguments, name) for name in ("max_tokens", "temperature", "max_turns")}
    given = {name: value for name, value in settings.items() if value is not None}
    config = ProcessorConfig(requires_approval=True if arguments.require_approval else None)
    mcp = servers(arguments.mcp, arguments.approve)
    with OwnLoop() as loop, ExitStack() as started:
        for server in mcp:
            screen.note(f"starting the MCP server {plain(server.name)} …")
            started.enter_context(server)
        agent = Agent(model, [*arguments.tools, *mcp], system=arguments.system, config=config, **given)
        conversation = ChatSession(agent, arguments, loop, screen, greeting=greeting)
        try:
            yield conversation
        finally:
            conversation.close()


class ChatSession:
    """One conversation."""

    def __init__(
        self, agent: Agent, arguments: argparse.Namespace, loop: OwnLoop, screen: Screen, *, greeting: bool
    ) -> None:
        from agentkit.cli.chat_storage import InMemory

        self.agent = agent
        self.loop = loop
        self.screen = screen
        self.thread: str | None = arguments.thread
        self.store: str = arguments.store
        self.choice = ModelChoice.of(arguments)
        self.approve: str = arguments.approve
        self.kept: KeptChat = InMemory(agent)
        self.manager: ThreadManager | None = None
        self.wrote = False  # whether the user wrote anything in this session
        self._greeting = greeting
        self._to_close: list[Any] = [agent.model]

    def open(self) -> int:
        """Show who answers; in a thread, finish what an interrupted run left open. Returns the status."""
        if self.thread is None:
            self.greet("")
            return 0
        return self.reopen(self.thread)

    def reopen(self, name: str) -> int:
        """Show the state of a thread, continue it, and finish what an interrupted run left open. Returns the status."""
        thread, log = self.join(name)
        return self.answer() if log is not None and thread.is_unfinished(log) else 0

    def join(self, name: str) -> tuple[InThread, Log | None]:
        """Show the state of a thread, in which the next message is said. Returns it with its log, if there is one."""
        from agentkit.cli.transcript import transcript

        self.thread, self.kept = name, (thread := self.in_thread(name))
        log = self.loop.run(thread.show())
        entries = log.entries if log is not None else ()
        self.greet(f", thread {thread.id}: {f'{len(entries)} entries' if entries else 'new'}")
        if log is not None and entries and self._greeting:
            if len(entries) > RECENT:
                self.screen.note(f"… {len(entries) - RECENT} earlier entries")
            for line in transcript(log, width(), self.screen.style, after=entries[-1].seq - RECENT):
                self.screen.line(line)
        return thread, log

    def move(self, name: str) -> int:
        """Continue in a thread; a new one begins with the messages in memory. Returns the status."""
        from agentkit.cli.chat_storage import InMemory

        before, thread = self.kept, self.in_thread(name)
        if isinstance(before, InMemory) and before.messages and self.loop.run(thread.log()) is None:
            self.loop.run(thread.manager.create_thread(name, messages=before.messages))
        return self.reopen(name)

    def in_thread(self, name: str) -> InThread:
        """The conversation in a thread of the store."""
        from agentkit.cli.chat_storage import InThread
        from agentkit.threads import ThreadManager

        if self.manager is None:
            self.manager = ThreadManager(self.store, hooks=[lambda event, _: self.kept.watch(event)])
        return InThread(self.manager, name, self.agent, self._tell_of_others)

    def close(self) -> None:
        """Close the store, and the connections of all models that answered."""
        if self.manager is not None:
            self.loop.run(self.manager.aclose())
        for one in self._to_close:
            if hasattr(one, "aclose"):
                self.loop.run(one.aclose())

    def answer_with(self, choice: ModelChoice) -> None:
        """Let another model answer from now on, with the same tools and settings."""
        from agentkit.agent import Agent

        model, old = choice.create(), self.agent
        self.agent = self.kept.agent = Agent(
            model, old.registry, system=old.system, config=old.config, max_turns=old.max_turns, **old.settings
        )
        self.choice = choice
        self._to_close.append(model)

    def greet(self, where: str) -> None:
        """Show the model and its tools."""
        if not self._greeting:
            return
        tools = ", ".join(spec.name for spec in self.agent.registry.specs()) or "none"
        self.screen.note(
            f"{self.agent.model.name}, tools: {tools}{where}. Ctrl-C stops an answer, Ctrl-D ends, /help lists more."
        )

    def ask(self, message: str) -> int:
        """Say one message, and nothing before it: it also answers what an interrupted run left open.

        Whatever becomes of the answer, the message is in the thread. Returns the status.
        """
        if self.thread is not None:
            self.join(self.thread)
        return self.say(message)

    def say(self, message: str) -> int:
        """Add the user's message, and let the model answer. Returns the status."""
        self.loop.run(self.kept.say(message))
        self.wrote = True
        return self.answer()

    def answer(self) -> int:
        """Let the model answer; ask about waiting calls and continue until only postponed ones are left."""
        from agentkit.cli.approval_prompt import decider
        from agentkit.processor.approval import STARTED_BEFORE

        decide = decider(self.approve, self.agent.registry, self.screen, later=self.thread is not None)
        put_off: set[str] = set()
        while True:
            status = self.follow()
            if status:
                return max(status, 0)
            waiting = self.loop.run(self.kept.waiting())
            if not waiting:
                return 0
            undecided = {call.id for call in waiting} - put_off
            again = self.loop.run(self.kept.started_before())
            for call in waiting:
                if call.id in undecided & again:
                    self.screen.note(visible(f"{call.name} ({call.id}): {STARTED_BEFORE}"))
                if call.id in undecided and not self.settled(call, decide(call)):
                    put_off.add(call.id)
            if undecided <= put_off:
                self.tell_waiting(waiting)
                return WAITS

    def settled(self, call: ToolCall, decision: Any) -> bool:
        """Store a decision about a call at once; False if it was postponed."""
        if decision is None:
            return False
        try:
            self.loop.run(self.kept.decide(call, decision))
        except (ConfigError, StoreError) as e:  # for example, someone else has decided in the meantime
            self.screen.show_error(e)
        return True

    def follow(self) -> int:
        """Do one run; returns its status, or `STOPPED`.

        Raises:
            KeyboardInterrupt: the user stopped it, and there is no prompt to return to.
        """
        stream = self.kept.run()
        try:
            with self.screen.answering(self.agent.model.name):
                stopped = self.loop.run(shown(stream, self.screen, _sdk(self.agent.model)))
        except ThreadBusy as e:
            self.tell_busy(e)
            return 1
        except (ProviderError, StoreError) as e:
            self.screen.show_error(e)
            self.screen.show_break(stream.result)
            self.kept.keep(stream.result)
            return 1
        self.kept.keep(stream.result)
        if not stopped:
            self.screen.show_end(stream.result)
            return int(stream.result.finish not in ("stop", "approval"))
        self.screen.note("(stopped)")
        self.screen.show_break(stream.result)
        if not sys.stdin.isatty():
            raise KeyboardInterrupt
        return STOPPED

    def tell_busy(self, busy: ThreadBusy) -> None:
        """Show who is running this thread, and what will happen to the message."""
        from agentkit.threads.owner import in_words

        where = f"{in_words(busy.owner)} is running this thread" if busy.owner else "this thread was taken over"
        self.screen.problem(visible(f"not answered here: {where}."))
        kept = "Your message is saved and will be answered there" if self.wrote else "It continues there"
        self.screen.line(f"{kept}, or by the next run on this thread; open it again to read the answer.")

    def _tell_of_others(self, text: str) -> None:
        self.screen.line(f"{self.screen.style('from elsewhere>', 'bold')} {plain(text)}")

    def tell_waiting(self, waiting: tuple[ToolCall, ...]) -> None:
        """Show how to decide about the waiting calls."""
        names = ", ".join(f"{visible(call.name)} ({visible(call.id)})" for call in waiting)
        if self.thread is None:
            how = "nobody can be asked here: decide with --approve always|never, or keep the call with --thread NAME"
        else:
            where = f"{shlex.quote(self.thread)} {waiting[0].id}{store_option(self.store)}"
            how = f"agentkit threads approve {where}, or deny; then open this thread again"
        self.screen.line(self.screen.style(f"waits for approval: {names}; {visible(how)}", "dim"))


def _sdk(model: Any) -> str:
    """The module of the SDK that a model uses; empty if it uses none."""
    return getattr(getattr(getattr(model, "inner", model), "vendor", None), "sdk", "")


async def shown(stream: RunStream, screen: Screen, sdk: str) -> bool:
    """Write a run's events as they arrive; returns whether Ctrl-C stopped it.

    The first Ctrl-C cancels the run, whose last events are still shown; the second one ends the program.

    Args:
        stream: the run.
        screen: where it is shown.
        sdk: a module that it needs. It is loaded in a thread, because that takes a second or two.
    """

    async def follow() -> None:
        if sdk:
            await asyncio.to_thread(import_module, sdk)
        async with stream:
            async for event in stream:
                screen.show(event)

    async def tick() -> None:
        while True:
            screen.tick()
            await asyncio.sleep(TICK)

    def show_retry(record: logging.LogRecord) -> bool:
        if (wait := getattr(record, "retry_in", None)) is not None:
            screen.show_retry(record.getMessage(), wait)
        return True

    work, ticking = asyncio.ensure_future(follow()), asyncio.ensure_future(tick())
    try:
        with model_log(logging.INFO, show_retry):
            await asyncio.shield(work)
    except asyncio.CancelledError:
        stream.cancel()
        await work
        return True
    finally:
        ticking.cancel()
    return False
