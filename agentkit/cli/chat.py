"""`agentkit chat`: a conversation in the terminal, streamed, showing every tool call and its result.

With `--thread` it is kept in a store and continues where it stopped. Calls that wait for approval prompt the user.
"""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any

from agentkit.cli.keyboard import as_text, typed
from agentkit.cli.screen import Screen
from agentkit.cli.serve_mcp import servers
from agentkit.cli.terminal import plain, visible, width
from agentkit.cli.threads import STORE, add_store, store_option
from agentkit.errors import ConfigError, ProviderError, StoreError, ThreadBusy

if TYPE_CHECKING:
    from agentkit.agent import Agent, OwnLoop, RunResult, RunStream
    from agentkit.cli.asking import Decider
    from agentkit.cli.keeping import InThread, KeptChat
    from agentkit.messages import ToolCall

PROMPT = "you> "
RECENT = 4  # entries shown when a thread is reopened
WAITS = 3  # the exit status if a call is waiting for approval


def add(commands: Any) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "chat",
        help="chat with a model in the terminal, with tools",
        description="Chat with a model. Ctrl-C stops an answer, Ctrl-D ends the chat. "
        "If standard input is not a terminal, each line is one message.",
    )
    add_model(command)
    command.add_argument("--system", help="the system prompt")
    command.add_argument(
        "--tools", nargs="+", default=[], metavar="MODULE:CLASS", help="such as agentkit_tools.files:Files"
    )
    command.add_argument(
        "--mcp", metavar="FILE", help="also the tools of the MCP servers in this file, such as servers.json"
    )
    command.add_argument("--thread", metavar="NAME", help="keep the conversation under this name, and continue it")
    add_store(command, default=None)
    command.add_argument("--require-approval", action="store_true", help="require approval for every call")
    command.add_argument(
        "--approve",
        choices=("ask", "always", "never"),
        default="ask",
        help="what to do with calls that wait for approval; default: ask",
    )
    command.set_defaults(run=run)


def add_model(command: argparse.ArgumentParser, *, required: bool = True, format: str | None = None) -> None:
    """Declare the options that select a model.

    Args:
        command: the command.
        required: whether there must be a model.
        format: the default of `--format`; None is native calls.
    """
    command.add_argument("--model", required=required, help="such as openai:gpt-5, anthropic:…, responses:…")
    command.add_argument(
        "--format",
        default=format,
        help=f"text format of the calls, such as xml; default: {format or 'native calls'}",
    )
    command.add_argument("--base-url", help="URL of a compatible server")


def run(arguments: argparse.Namespace) -> int:
    """Answer line by line. Exit status 1 if the last answer failed, 3 if a call is waiting for approval at the end."""
    from agentkit.agent import Agent, OwnLoop
    from agentkit.models import model
    from agentkit.processor import ProcessorConfig

    if arguments.store is not None and arguments.thread is None:
        raise ConfigError("--store selects the store; --thread NAME selects the thread in it")
    if arguments.thread == "":
        raise ConfigError("--thread requires a name")
    chosen = model(arguments.model, format=arguments.format, base_url=arguments.base_url)
    config = ProcessorConfig(requires_approval=True if arguments.require_approval else None)
    mcp = servers(arguments.mcp, arguments.approve)
    with OwnLoop() as loop, ExitStack() as started:
        for server in mcp:
            started.enter_context(server)
        try:
            agent = Agent(chosen, [*arguments.tools, *mcp], system=arguments.system, config=config)
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
        self.wrote = False  # whether the user wrote anything in this session

    def run(self) -> int:
        """Chat until the input ends."""
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
        """Show the model and its tools."""
        tools = ", ".join(spec.name for spec in self.agent.registry.specs()) or "none"
        greeting = f"{self.agent.model.name}, tools: {tools}{where}. Ctrl-C stops an answer, Ctrl-D ends."
        self.screen.line(self.screen.style(visible(greeting), "dim"))

    def reopen(self, thread: InThread) -> int:
        """Show the state of the thread, and finish what an interrupted run left open. Returns its exit status."""
        from agentkit.cli.transcript import transcript

        log = self.loop.run(thread.show())
        entries = log.entries if log is not None else ()
        self.greet(f", thread {thread.id}: {f'{len(entries)} entries' if entries else 'new'}")
        if log is None or not entries:
            return 0
        if len(entries) > RECENT:
            self.screen.line(self.screen.style(f"… {len(entries) - RECENT} earlier entries", "dim"))
        for line in transcript(log, width(), self.screen.style, after=entries[-1].seq - RECENT):
            self.screen.line(line)
        return self.answer() if thread.is_unfinished(log) else 0

    def talk(self, status: int) -> int:
        """Answer line by line; if nobody can be asked, the session ends at a call that needs approval."""
        unsent = 0
        for line in lines(self.screen):
            if status == WAITS and not sys.stdin.isatty():
                unsent += 1
                continue
            try:
                self.loop.run(self.conversation.say(line))
                self.wrote = True
                status = self.answer()
            except StoreError as e:
                self.complain(e)
                status = 1
        if unsent:
            self.screen.line(self.screen.style(f"input lines that were not sent: {unsent}", "red"))
        return status

    def answer(self) -> int:
        """Let the model answer; ask about waiting calls and continue until only postponed ones are left."""
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
        """Ask about a call and store the decision at once; False if it is postponed."""
        decision = self.decide(call)
        if decision is None:
            return False
        try:
            self.loop.run(self.conversation.decide(call, decision))
        except (ConfigError, StoreError) as e:  # for example, someone else has decided in the meantime
            self.complain(e)
        return True

    def follow(self) -> int:
        """Do one run; returns its exit status."""
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
        """Show who is running this thread, and what will happen to the message."""
        from agentkit.threads.owner import in_words

        where = f"{in_words(busy.owner)} is running this thread" if busy.owner else "this thread was taken over"
        self.screen.line(self.screen.style(visible(f"not answered here: {where}."), "red"))
        kept = "Your message is saved and will be answered there" if self.wrote else "It continues there"
        self.screen.line(f"{kept}, or by the next run on this thread; open it again to read the answer.")

    def tell_of_others(self, text: str) -> None:
        """Show what was added to this thread elsewhere, before it is answered here."""
        self.screen.line(f"{self.screen.style('from elsewhere>', 'bold')} {plain(text)}")

    def complain(self, error: Exception) -> None:
        """Print what went wrong."""
        self.screen.line(self.screen.style(plain(f"error: {error}"), "red"))

    def tell_waiting(self, waiting: tuple[ToolCall, ...]) -> None:
        """Show how to decide about the waiting calls."""
        names = ", ".join(f"{visible(call.name)} ({visible(call.id)})" for call in waiting)
        if self.thread is None:
            how = "nobody can be asked here: decide with --approve always|never, or keep the call with --thread NAME"
        else:
            where = f"{shlex.quote(self.thread)} {waiting[0].id}{store_option(self.store)}"
            how = f"agentkit threads approve {where}, or deny; then open this thread again"
        self.screen.line(self.screen.style(f"waits for approval: {names}; {visible(how)}", "dim"))


def lines(screen: Screen) -> Iterator[str]:
    """The user's input, line by line, until it ends."""
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
    """Write a run's events as they arrive; returns whether Ctrl-C stopped it.

    The first Ctrl-C cancels the run, whose last events are still shown; the second one ends the program.
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
    """End an answer: show its tokens, if the server reports them, and why it ended, if that is unusual."""
    notes = []
    if any(result.usage):
        notes.append(f"{result.usage.input_tokens} tokens in, {result.usage.output_tokens} out")
    if result.finish not in ("stop", "approval"):
        notes.append(f"ended by {result.finish}")
    screen.fresh()
    if notes:
        screen.line(screen.style(f"({', '.join(notes)})", "dim"))
