"""A person at the terminal decides about a call: approve, deny, edit the arguments, or later. Runs nothing."""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from agentkit.agent import Approved, Decision, Denied
from agentkit.cli.keyboard import read_line, read_object
from agentkit.cli.screen import Screen
from agentkit.cli.terminal import arguments, visible, width
from agentkit.errors import ConfigError
from agentkit.messages import ToolCall
from agentkit.schemas.words import InvalidArguments
from agentkit.tool.registry import ToolRegistry

Decider = Callable[[ToolCall], Decision | None]
"""Decides about a call; None leaves it waiting."""

UNASKED: Mapping[str, Decision] = {"always": Approved(), "never": Denied("no calls are approved in this session")}


def decider(choice: str, registry: ToolRegistry, screen: Screen, *, later: bool) -> Decider:
    """Creates the function that decides.

    Args:
        choice: one of `APPROVALS`; `ask` asks at the terminal, and leaves a call waiting if there is none.
        registry: the tools, to check edited arguments.
        screen: where the question is shown.
        later: whether a call can be left waiting.
    """
    if choice in UNASKED:
        return lambda call: UNASKED[choice]
    if not sys.stdin.isatty():
        return lambda call: None
    return lambda call: ask(call, registry, screen, later=later)


def who() -> str:
    """The user's name according to the system; empty if unknown."""
    with suppress(OSError, KeyError, ImportError):  # by the Python version, for a missing name
        return getpass.getuser()
    return ""


def ask(call: ToolCall, registry: ToolRegistry, screen: Screen, *, later: bool) -> Decision | None:
    """Show the complete call, and ask until there is an answer. Ctrl-C and Ctrl-D mean later, or no without `later`."""
    screen.line(f"{screen.style(visible(call.name), 'cyan', 'bold')} wants to run ({visible(call.id)}):")
    for line in arguments(call.arguments, width(), "    "):
        screen.line(line)
    _forget_typed()
    question = f"[y]es [n]o [e]dit{' [l]ater' if later else ''}? "
    try:
        while True:
            match read_line(question).strip().lower():
                case "y" | "yes":
                    return Approved()
                case "n" | "no":
                    return Denied(read_line("reason (may be empty): ").strip())
                case "e" | "edit":
                    if (changed := _edited(call, registry, screen)) is not None:
                        return Approved(changed)
                case "l" | "later" if later:
                    return None
    except (EOFError, KeyboardInterrupt):
        screen.line()
        return None if later else Denied()


def read_arguments(text: str) -> dict[str, Any]:
    """Read a call's arguments from JSON.

    Raises:
        ConfigError: it is not a JSON object, or a key in it has two values.
    """
    return read_object(text, "the arguments", '{"path": "a.txt"}')


def _edited(call: ToolCall, registry: ToolRegistry, screen: Screen) -> Mapping[str, Any] | None:
    """Edited arguments that match the tool, asked for until they do; None if they were not changed after all."""
    with suppress(ImportError, ValueError):  # ValueError: an argument that the terminal's encoding cannot represent
        import readline

        readline.add_history(json.dumps(dict(call.arguments), default=str))
    screen.note("Enter all arguments as one line of JSON. Arrow up: edit the current ones; empty: keep them.")
    while text := read_line("json> ").strip():
        try:
            given = read_arguments(text)
            if (tool := registry.get_tool(call.name)) is not None:
                tool.validate(given, lenient=False)
        except (ConfigError, InvalidArguments) as e:
            for line in str(e).split("\n"):
                screen.line(screen.style(visible(line), "red"))
        else:
            return given
    return None


def _forget_typed() -> None:
    """Discard keys that were typed before the question was shown: they cannot answer it."""
    with suppress(ImportError):  # not on Windows
        import termios

        with suppress(termios.error):
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
