"""`agentkit chat`: a conversation in the terminal, streamed, with every tool call and its result in sight."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from agentkit.cli.screen import Screen
from agentkit.errors import ProviderError
from agentkit.messages import Message, user

if TYPE_CHECKING:
    from agentkit.agent import Agent, RunResult, RunStream

PROMPT = "you> "


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
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Answer line after line. Status 1 if the last answer failed."""
    from agentkit.agent import Agent
    from agentkit.models import model

    chosen = model(arguments.model, format=arguments.format, base_url=arguments.base_url)
    agent = Agent(chosen, arguments.tools, system=arguments.system)
    screen = Screen(sys.stdout)
    greet(agent, screen)
    messages: tuple[Message, ...] = ()
    status = 0
    with asyncio.Runner() as loop:
        try:
            for line in lines(screen):
                messages, status = answer(agent, (*messages, user(line)), screen, loop)
        finally:
            if hasattr(chosen, "aclose"):
                loop.run(chosen.aclose())
    return status


def greet(agent: Agent, screen: Screen) -> None:
    """Say who is there and what they can do."""
    tools = ", ".join(agent.registry.tools) or "none"
    screen.line(screen.style(f"{agent.model.name}, tools: {tools}. Ctrl-C stops an answer, Ctrl-D ends.", "dim"))


def lines(screen: Screen) -> Iterator[str]:
    """What the user types, line by line, until the end of the input."""
    if not sys.stdin.isatty():
        yield from (line.strip() for line in sys.stdin if line.strip())
        return
    with suppress(ImportError):
        import readline  # noqa: F401 - gives input() its line editing and history
    while True:
        try:
            line = input(PROMPT).strip()
        except EOFError:
            screen.line()
            return
        except KeyboardInterrupt:
            screen.line("\n(Ctrl-D ends the chat)")
            continue
        if line:
            yield line


def answer(
    agent: Agent, messages: tuple[Message, ...], screen: Screen, loop: asyncio.Runner
) -> tuple[tuple[Message, ...], int]:
    """Stream one answer; the conversation after it, and the status.

    A failed or stopped answer stays as far as it came, each of its calls with a result; one that never began is taken
    back together with its question, so that the next one can be asked.
    """
    stream = agent.stream(messages)
    status = 1
    try:
        loop.run(shown(stream, screen))
        status = 0
    except ProviderError as e:
        screen.line(screen.style(f"error: {e}", "red"))
    except KeyboardInterrupt:
        screen.line(screen.style("(stopped)", "dim"))
    result = stream.result
    if status == 0:
        close(result, screen)
    return (result.messages if result.new_messages else messages[:-1]), status


async def shown(stream: RunStream, screen: Screen) -> None:
    """Write a run's events as they come."""
    async with stream:
        async for event in stream:
            screen.show(event)


def close(result: RunResult, screen: Screen) -> None:
    """End an answer: what it cost, where the server says so, and why it ended, where that is not the usual."""
    notes = []
    if any(result.usage):
        notes.append(f"{result.usage.input_tokens} tokens in, {result.usage.output_tokens} out")
    if result.finish != "stop":
        notes.append(f"ended by {result.finish}")
    screen.fresh()
    if notes:
        screen.line(screen.style(f"({', '.join(notes)})", "dim"))
