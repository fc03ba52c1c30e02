"""`agentkit chat`: a conversation in the terminal, streamed, showing every tool call and its result.

With `--thread` it is kept in a store and continues where it stopped. Calls that wait for approval prompt the user.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from typing import Any

from agentkit.cli.agent_options import add_agent_parts
from agentkit.cli.chat_commands import ChatCommands
from agentkit.cli.chat_session import WAITS, ChatSession, open_session
from agentkit.cli.flag_words import APPROVALS
from agentkit.cli.help_text import SETTINGS, examples
from agentkit.cli.keyboard import as_text, disable_echo, disable_signals, enable_line_editing, read_line
from agentkit.cli.model_choice import add_model
from agentkit.cli.screen import Screen
from agentkit.cli.slash_words import as_message, slash_word
from agentkit.cli.terminal import plain
from agentkit.cli.threads import add_store
from agentkit.cli.which_screen import BETTER, capable, installed, screen
from agentkit.errors import ConfigError, StoreError

PROMPT = "you> "


def add(commands: Any) -> None:
    """Declare the command and its options."""
    command = commands.add_parser(
        "chat",
        help="chat with a model in the terminal, with tools",
        description="Chat with a model. Esc or Ctrl-C stops an answer, Ctrl-D ends the chat, /help lists the commands. "
        "If standard input is not a terminal, each line is one message.",
        epilog=examples(
            "agentkit chat -m openai:gpt-5 -t agentkit_tools.files:Files",
            "agentkit chat -m openai:qwen3 --base-url http://127.0.0.1:8000/v1 -f hermes",
            "agentkit chat -m openai:gpt-5 --thread notes",
            after=SETTINGS,
        ),
    )
    add_conversation(command)
    command.set_defaults(run=run)


def add_conversation(command: argparse.ArgumentParser) -> None:
    """Declare the options of everything that lets a model use tools for a person."""
    add_model(command)
    add_agent_parts(command)
    command.add_argument("--thread", metavar="NAME", help="keep the conversation under this name, and continue it")
    add_store(command)
    command.add_argument(
        "--approve", choices=APPROVALS, default="ask", help="what to do with calls that wait for approval; default: ask"
    )
    names = ("model", "base_url", "api_key_env", "server", "format", "tools", "mcp", "store")
    command.set_defaults(settings=names)


def run(arguments: argparse.Namespace) -> int:
    """Answer message by message. Exit status 1 if the last answer failed, 3 if a call is waiting for approval then."""
    with open_session(arguments, screen()) as conversation:
        return Chat(conversation).run()


class Chat:
    """One session at the terminal, with its messages and answers."""

    def __init__(self, conversation: ChatSession) -> None:
        self.conversation = conversation
        self.screen = conversation.screen
        self.commands = ChatCommands(conversation)

    def run(self) -> int:
        """Chat until the input ends."""
        if sys.stdin.isatty() and capable(self.screen.out) and not installed():
            self.screen.note(BETTER)
        if sys.stdin.isatty():
            self.screen.start_at_bottom()
        status = self.conversation.open()
        unsent = 0
        with closing(self.messages()) as messages:
            for message in messages:
                if status == WAITS and not sys.stdin.isatty():
                    unsent += 1
                elif (word := slash_word(message)) is None:
                    status = self.say(as_message(message))
                elif word.name == "exit":
                    break
                else:
                    status = self.commands.do(word) or status
        if unsent:
            self.screen.problem(f"input lines that were not sent: {unsent}")
        return status

    def say(self, message: str) -> int:
        """Send a message and answer it; returns the status."""
        typed = sys.stdin.isatty()
        try:
            if typed:
                self.screen.begin_turn()
            return self.conversation.say(message)
        except StoreError as e:
            self.screen.show_error(e)
            return 1
        finally:
            if typed:
                self.screen.gap()

    def messages(self) -> Generator[str, None, None]:
        """The user's messages, until the input ends."""
        if not sys.stdin.isatty():
            yield from self.piped_lines()
        elif capable(self.screen.out) and installed():
            with disable_echo(by_line=False):  # the editor reads key by key, including the keys between two messages
                yield from typed_messages(self.editor_prompt(), self.screen)
        else:
            enable_line_editing()
            yield from typed_messages(lambda: read_line(PROMPT), self.screen)

    def piped_lines(self) -> Iterator[str]:
        """The lines of standard input."""
        lines = (line.strip() for line in map(as_text, sys.stdin) if line.strip())
        for number, line in enumerate(lines):
            if number == 1:
                self.screen.note("each line of standard input is one message; `agentkit run -` sends all of it as one")
            yield line

    def editor_prompt(self) -> Callable[[], str | None]:
        """Return a function that asks for a message in the line editor."""
        from agentkit.cli.line_editor import LineEditor, history_file

        try:
            file = history_file()
        except OSError as e:
            self.screen.note(f"earlier messages are not kept: {e}")
            file = None
        editor = LineEditor(PROMPT, self.commands.choices, file, self.conversation.toolbar)

        def ask() -> str | None:
            with disable_signals():  # else what it interrupts may be the editor's own beginning or end
                message = self.conversation.loop.run(editor.ask())
            return None if message is None else as_text(message)

        return ask


def typed_messages(ask: Callable[[], str | None], screen: Screen) -> Iterator[str]:
    """Yield the user's messages until the input ends, or Ctrl-C is pressed at two prompts, one after the other.

    Args:
        ask: asks for a message: it returns None after Ctrl-C, and raises EOFError after Ctrl-D.
        screen: shows what became of a key or a line that is not a message.
    """
    answer, again = "", False
    while True:
        asked = False
        try:  # all of it: between two prompts Ctrl-C is a signal
            if answer:
                screen.line(answer)
                answer = ""
            asked = True
            message = ask()
        except ConfigError as e:
            message, answer = "", plain(f"error: {e}")
        except EOFError:
            screen.line()
            return
        except KeyboardInterrupt:
            message = None
        if message is None:
            if asked and again:
                screen.line()
                return
            answer, again = "\n(Ctrl-C again, or Ctrl-D, ends the chat)", again or asked
        elif message.strip():
            again = False
            yield message.strip()
