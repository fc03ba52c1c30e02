"""A conversation between a person and a model with tools: each message is answered, and waiting calls are asked about.

Knows no input: `agentkit chat` and `agentkit run` get the messages.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final

from agentkit.checks.visible_text import visible
from agentkit.cli.agent_options import agent_with
from agentkit.cli.last_response import ChatRecord
from agentkit.cli.model_choice import ModelChoice
from agentkit.cli.run_display import show_run
from agentkit.cli.screen import Screen
from agentkit.cli.serve_mcp import servers
from agentkit.cli.terminal import plain, width
from agentkit.cli.threads import store_option
from agentkit.errors import ConfigError, ProviderError, StoreError, ThreadBusy

if TYPE_CHECKING:
    from agentkit.agent import Agent, Decision, OwnLoop
    from agentkit.cli.approval_prompt import PersonsAnswer
    from agentkit.cli.chat_storage import InThread, KeptChat
    from agentkit.messages import ToolCall
    from agentkit.threads import Log, ThreadManager

RECENT: Final = 4  # entries shown when a thread is reopened
WAITS: Final = 3  # the exit status if a call is waiting for approval
STOPPED: Final = -1  # no exit status: the user stopped an answer


@contextmanager
def open_session(arguments: argparse.Namespace, screen: Screen, *, interactive: bool = True) -> Iterator[ChatSession]:
    """Open a conversation with the model and the tools that the arguments name.

    Args:
        arguments: those of `agentkit.cli.chat.add_conversation`.
        screen: where it is shown.
        interactive: whether a person chats: show who answers, and a thread's last entries, and let Esc stop an answer.

    Raises:
        ConfigError: the arguments contradict each other, or the model or a tool cannot be had.
    """
    from agentkit.agent import OwnLoop

    if arguments.thread == "":
        raise ConfigError("--thread requires a name")
    model = ModelChoice.of(arguments).create()
    mcp = servers(arguments.mcp, arguments.approve)
    with OwnLoop() as loop, ExitStack() as started:
        for server in mcp:
            screen.note(f"starting the MCP server {plain(server.name)} …")
            started.enter_context(server)
        agent = agent_with(model, arguments, mcp)
        conversation = ChatSession(agent, arguments, loop, screen, interactive=interactive)
        try:
            yield conversation
        finally:
            conversation.close()


class ChatSession:
    """One conversation."""

    def __init__(
        self, agent: Agent, arguments: argparse.Namespace, loop: OwnLoop, screen: Screen, *, interactive: bool
    ) -> None:
        from agentkit.cli.approval_prompt import ApprovalChoices
        from agentkit.cli.chat_storage import InMemory

        self.agent = agent
        self.loop = loop
        self.screen = screen
        self.thread: str | None = arguments.thread
        self.store: str = arguments.store
        self.choice = ModelChoice.of(arguments)
        self.approvals = ApprovalChoices(arguments.approve)
        self.kept: KeptChat = InMemory(agent)
        self.manager: ThreadManager | None = None
        self.record = ChatRecord()
        self._interactive = interactive
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
        self.greet(f" · thread {thread.id} ({f'{len(entries)} entries' if entries else 'new'})")
        if log is not None and entries and self._interactive:
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
        return InThread(self.manager, name, self.agent, self._show_from_elsewhere)

    def close(self) -> None:
        """Close the store, and the connections of all models that answered."""
        if self.manager is not None:
            self.loop.run(self.manager.aclose())
        for one in self._to_close:
            if hasattr(one, "aclose"):
                self.loop.run(one.aclose())

    def answer_with(self, choice: ModelChoice) -> None:
        """Let another model answer from now on, with the same tools and settings."""
        model = choice.create()
        self.agent = self.kept.agent = self.agent.adapt(model=model)
        self.choice = choice
        self._to_close.append(model)

    def greet(self, where: str) -> None:
        """Show the model and its tools."""
        if not self._interactive:
            return
        from agentkit import __version__

        tools = len(self.agent.registry.specs())
        count = f"{tools or 'no'} tool{'s' * (tools != 1)}"
        self.screen.note(f"agentkit {__version__} · {self.agent.model.name} · {count}{where} · /help")

    def clear(self) -> None:
        """Start an empty conversation, in memory."""
        from agentkit.cli.chat_storage import InMemory

        self.thread, self.kept, self.record = None, InMemory(self.agent), ChatRecord()

    def retry(self) -> int:
        """Answer the last message again, as if it had not been answered. Returns the status.

        Raises:
            ConfigError: there is no message yet, or the conversation is in a thread, where nothing is removed.
        """
        from agentkit.cli.chat_storage import InMemory

        if self.record.said is None:
            raise ConfigError("/retry: there is no message yet")
        if not isinstance(self.kept, InMemory):
            raise ConfigError("/retry: nothing is removed from a thread; send the message again")
        self.kept.forget_last()
        return self.say(self.record.said)

    def toolbar(self) -> str:
        """The model, the format, the thread, and the tokens so far, in one line."""
        model, usage = self.agent.model, self.record.usage
        parts = [
            model.name,
            str(model.format or "native"),
            "in memory" if self.thread is None else f"thread {self.thread}",
        ]
        if any(usage):
            parts.append(f"{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out")
            parts.append(f"ctx {self.record.context:,}")
        return visible(" · ".join(parts))

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
        self.record.said = message
        return self.answer()

    def answer(self) -> int:
        """Let the model answer; ask about waiting calls and continue until only postponed ones are left."""
        from agentkit.processor.approval import STARTED_BEFORE

        put_off: set[str] = set()
        while True:
            status = self.follow()
            if status:
                return max(status, 0)
            waiting = self.loop.run(self.kept.waiting())
            if not waiting:
                return 0
            undecided = [call for call in waiting if call.id not in put_off]
            again = self.loop.run(self.kept.started_before())
            for n, call in enumerate(undecided, 1):
                if self.loop.run(self.kept.allows(call)):  # since the answer to an earlier question
                    continue
                if call.id in again:
                    self.screen.note(visible(f"{call.name} ({call.id}): {STARTED_BEFORE}"))
                if not self.settled(call, self.decide(call, f"{n} of {len(undecided)}" if len(undecided) > 1 else "")):
                    put_off.add(call.id)
            if {call.id for call in undecided} <= put_off:
                self.tell_waiting(waiting)
                return WAITS

    def decide(self, call: ToolCall, count: str) -> PersonsAnswer:
        """Ask about a call, unless that is decided in advance; `count` is such as `2 of 3`."""
        registry, later = self.agent.registry, self.thread is not None
        answer = self.approvals.decide(call, registry, self.screen, self.loop, later=later, count=count)
        self.screen.show_decision(call, _in_words(answer.decision))
        return answer

    def settled(self, call: ToolCall, answer: PersonsAnswer) -> bool:
        """Store a decision about a call at once; False if it was postponed."""
        if answer.decision is None:
            return False
        try:
            self.loop.run(self.kept.decide(call, answer.decision, answer.remember))
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
                keys = self._interactive and self.screen.drawn and sys.stdin.isatty()
                stopped = self.loop.run(show_run(stream, self.screen, self.record, self.agent.model, keys=keys))
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
        kept = (
            "Your message is saved and will be answered there" if self.record.said is not None else "It continues there"
        )
        self.screen.line(f"{kept}, or by the next run on this thread; open it again to read the answer.")

    def _show_from_elsewhere(self, text: str) -> None:
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


def _in_words(decision: Decision | None) -> str:
    from agentkit.agent import Approved

    if decision is None:
        return ""
    return "approved" if isinstance(decision, Approved) else "denied"
