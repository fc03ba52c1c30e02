"""`agentkit chat`: a conversation in the terminal, streamed, with every tool call and its result in sight.

With `--thread` it is kept in a store, and goes on where it stopped. Calls that wait for approval are asked about.
"""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agentkit.cli.keyboard import as_text, typed
from agentkit.cli.screen import Screen
from agentkit.cli.terminal import plain, visible, width
from agentkit.cli.threads import STORE, add_store, store_option
from agentkit.errors import ConfigError, ProviderError, StoreError, ThreadBusy

if TYPE_CHECKING:
    from agentkit.agent import Agent, OwnLoop, RunResult, RunStream
    from agentkit.cli.asking import Decider
    from agentkit.cli.keeping import InThread, KeptChat
    from agentkit.messages import ToolCall

PROMPT = "you> "
RECENT = 4  # entries of a thread that are shown when it is opened again
WAITS = 3  # the exit status when a call waits for approval


def add(commands: Any) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "chat",
        help="talk to a model in the terminal, with tools",
        description="Talk to a model. Ctrl-C stops an answer, Ctrl-D ends the chat. "
        "When the input is no terminal, each of its lines is one message.",
    )
    command.add_argument("--model", required=True, help="such as openai:gpt-5, anthropic:…, responses:…")
    command.add_argument("--format", help="text format of the calls, such as xml; native calls without it")
    command.add_argument("--base-url", help="address of a compatible server")
    command.add_argument("--system", help="instructions that come before the conversation")
    command.add_argument(
        "--tools", nargs="+", default=[], metavar="MODULE:CLASS", help="such as agentkit_tools.files:Files"
    )
    command.add_argument("--thread", metavar="NAME", help="keep the conversation under this name, and go on with it")
    add_store(command, default=None)
    command.add_argument("--require-approval", action="store_true", help="every call waits for approval")
    command.add_argument(
        "--approve",
        choices=("ask", "always", "never"),
        default="ask",
        help="what to do about calls that wait for approval; ask, unless told otherwise",
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Answer line after line. Status 1 if the last answer failed, 3 if a call waits for approval at the end."""
    from agentkit.agent import Agent, OwnLoop
    from agentkit.models import model
    from agentkit.processor import ProcessorConfig

    if arguments.store is not None and arguments.thread is None:
        raise ConfigError("--store says where the threads are; --thread NAME says which one")
    if arguments.thread == "":
        raise ConfigError("--thread wants a name")
    chosen = model(arguments.model, format=arguments.format, base_url=arguments.base_url)
    config = ProcessorConfig(requires_approval=True if arguments.require_approval else None)
    agent = Agent(chosen, arguments.tools, system=arguments.system, config=config)
    with OwnLoop() as loop:
        try:
            return Chat(agent, arguments, loop).run()
        finally:
            if hasattr(chosen, "aclose"):
                loop.run(chosen.aclose())


class Chat:
    """One session at the terminal."""

    def __init__(self, agent: Agent, arguments: argparse.Namespace, loop: OwnLoop) -> None:
        from agentkit.cli.asking import decider
        from agentkit.cli.keeping import InMemory

        self.agent = agent
        self.loop = loop
        self.screen = Screen(sys.stdout)
        self.thread: str | None = arguments.thread
        self.store: str = arguments.store or STORE
        later = self.thread is not None
        self.decide: Decider = decider(arguments.approve, agent.registry, self.screen, later=later)
        self.conversation: KeptChat = InMemory(agent)
        self.said = False  # anything, in this session

    def run(self) -> int:
        """Talk until the input ends."""
        if self.thread is None:
            self.greet("")
            return self.talk(0)
        from agentkit.cli.keeping import InThread
        from agentkit.threads import ThreadManager

        thread: InThread
        manager = ThreadManager(self.store, hooks=[lambda event, _: thread.watch(event)])
        try:
            self.conversation = thread = InThread(manager, self.thread, self.agent, self.tell_of_others)
            return self.talk(self.reopen(thread))
        finally:
            self.loop.run(manager.aclose())

    def greet(self, where: str) -> None:
        """Say who is there and what they can do."""
        tools = ", ".join(spec.name for spec in self.agent.registry.specs()) or "none"
        told = f"{self.agent.model.name}, tools: {tools}{where}. Ctrl-C stops an answer, Ctrl-D ends."
        self.screen.line(self.screen.style(visible(told), "dim"))

    def reopen(self, thread: InThread) -> int:
        """Show where the thread stands, and finish what a run that broke off left open. The status of that."""
        from agentkit.cli.transcript import transcript

        log = self.loop.run(thread.show())
        entries = log.entries if log is not None else ()
        self.greet(f", thread {thread.id}: {f'{len(entries)} entries' if entries else 'new'}")
        if log is None or not entries:
            return 0
        if len(entries) > RECENT:
            self.screen.line(self.screen.style(f"… {len(entries) - RECENT} entries before", "dim"))
        for line in transcript(log, width(), self.screen.style, after=entries[-1].seq - RECENT):
            self.screen.line(line)
        return self.answer() if thread.is_unfinished(log) else 0

    def talk(self, status: int) -> int:
        """Answer line after line; where nobody can be asked, the session ends with a call that waits."""
        unsent = 0
        for line in lines(self.screen):
            if status == WAITS and not sys.stdin.isatty():
                unsent += 1
                continue
            try:
                self.loop.run(self.conversation.say(line))
                self.said = True
                status = self.answer()
            except StoreError as e:
                self.complain(e)
                status = 1
        if unsent:
            self.screen.line(self.screen.style(f"lines of the input that were not sent: {unsent}", "red"))
        return status

    def answer(self) -> int:
        """Let the model answer; ask about the calls that wait, and go on, until none is left that was not put off."""
        put_off: set[str] = set()
        while True:
            status = self.follow()
            waiting = self.loop.run(self.conversation.waiting())
            if status or not waiting:
                return status
            undecided = {call.id for call in waiting} - put_off
            put_off |= {call.id for call in waiting if call.id in undecided and not self.settled(call)}
            if undecided <= put_off:
                self.tell_waiting(waiting)
                return WAITS

    def settled(self, call: ToolCall) -> bool:
        """Ask about a call and keep the decision at once; False when it is put off."""
        decision = self.decide(call)
        if decision is None:
            return False
        try:
            self.loop.run(self.conversation.decide(call, decision))
        except (ConfigError, StoreError) as e:  # such as: somebody else has decided meanwhile
            self.complain(e)
        return True

    def follow(self) -> int:
        """One run; its status."""
        stream = self.conversation.run()
        try:
            stopped = self.loop.run(shown(stream, self.screen))
        except ThreadBusy as e:
            self.tell_busy(e)
            return 1
        except (ProviderError, StoreError) as e:
            self.complain(e)
            self.conversation.keep(stream.result)
            return 1
        self.conversation.keep(stream.result)
        if stopped:
            self.screen.line(self.screen.style("(stopped)", "dim"))
            return 1
        close(stream.result, self.screen)
        return 0

    def tell_busy(self, busy: ThreadBusy) -> None:
        """Say who is at work on this thread, and what becomes of the message."""
        from agentkit.threads.owner import in_words

        where = f"{in_words(busy.owner)} is at work on this thread" if busy.owner else "this thread was taken over"
        self.screen.line(self.screen.style(visible(f"not answered here: {where}."), "red"))
        kept = "What you wrote is kept: it is answered there" if self.said else "It is gone on with there"
        self.screen.line(f"{kept}, or by the next run on this thread; open it again to read the answer.")

    def tell_of_others(self, text: str) -> None:
        """Show what was written into this thread elsewhere, before it is answered here."""
        self.screen.line(f"{self.screen.style('from elsewhere>', 'bold')} {plain(text)}")

    def complain(self, error: Exception) -> None:
        """Say what went wrong."""
        self.screen.line(self.screen.style(plain(f"error: {error}"), "red"))

    def tell_waiting(self, waiting: tuple[ToolCall, ...]) -> None:
        """Say how the calls that wait can be decided about."""
        names = ", ".join(f"{visible(call.name)} ({visible(call.id)})" for call in waiting)
        if self.thread is None:
            how = "nobody can be asked here: --approve always|never decides, --thread NAME keeps the call for later"
        else:
            where = f"{shlex.quote(self.thread)} {waiting[0].id}{store_option(self.store)}"
            how = f"agentkit threads approve {where}, or deny; then open this thread again"
        self.screen.line(self.screen.style(f"waits for approval: {names}; {visible(how)}", "dim"))


def lines(screen: Screen) -> Iterator[str]:
    """What the user types, line by line, until the end of the input."""
    if not sys.stdin.isatty():
        yield from (as_text(line).strip() for line in sys.stdin if line.strip())
        return
    with suppress(ImportError):
        import readline  # noqa: F401 - gives input() its line editing and history
    while True:
        try:
            line = typed(PROMPT).strip()
        except ConfigError as e:
            screen.line(plain(f"error: {e}"))
            continue
        except EOFError:
            screen.line()
            return
        except KeyboardInterrupt:
            screen.line("\n(Ctrl-D ends the chat)")
            continue
        if line:
            yield line


async def shown(stream: RunStream, screen: Screen) -> bool:
    """Write a run's events as they come; whether Ctrl-C stopped it.

    The first Ctrl-C cancels the run, whose last events are still shown; a second one ends the program.
    """

    async def follow() -> None:
        async with stream:
            async for event in stream:
                screen.show(event)

    work = asyncio.ensure_future(follow())
    try:
        await asyncio.shield(work)
    except asyncio.CancelledError:
        stream.cancel()
        await work
        return True
    return False


def close(result: RunResult, screen: Screen) -> None:
    """End an answer: what it cost, where the server says so, and why it ended, where that is not the usual."""
    notes = []
    if any(result.usage):
        notes.append(f"{result.usage.input_tokens} tokens in, {result.usage.output_tokens} out")
    if result.finish not in ("stop", "approval"):
        notes.append(f"ended by {result.finish}")
    screen.fresh()
    if notes:
        screen.line(screen.style(f"({', '.join(notes)})", "dim"))
