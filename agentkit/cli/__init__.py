"""The command line: `agentkit demo | chat | threads | parse | formats | tools`. One file per group of commands.

argparse only. Exit status: 0 done, 1 the command could not do it (the message says why), 2 wrong arguments, 3 a call
waits for approval, 130 interrupted.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from agentkit.checks.spelling import did_you_mean, then
from agentkit.cli import chat, demo, inspect, threads
from agentkit.cli.terminal import plain
from agentkit.errors import AgentkitError
from agentkit.foreign.renamed import CHOICES, OPTIONS, STANDARD_INPUT


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: the words after `agentkit`; those of the process unless given.

    Returns:
        The exit status.
    """
    _open_streams()
    if sys.stdout is None:  # else the next file that is opened would be it, and be printed into
        complain("agentkit: the standard output is closed; > /dev/null drops what is printed")
        return 1
    name = "agentkit"
    try:
        try:
            arguments = parser().parse_args(argv)
            name = f"agentkit {arguments.command}"
            sys.path.insert(0, os.getcwd())  # so that --tools my_module:MyTool finds the file beside the user
            with _logged():
                status: int = arguments.run(arguments)
        finally:
            sys.stdout.flush()
        return status
    except AgentkitError as e:
        complain(f"{name}: {e}")
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        _drop_output()
    except KeyboardInterrupt:
        return 130
    except OSError as e:  # a full disk behind the output, a folder that is gone, …
        _drop_output()
        complain(f"{name}: the system refused: {e}")
    return 1


def complain(text: str) -> None:
    """Say what went wrong, if there is anybody to hear it."""
    with suppress(OSError):
        print(plain(text), file=sys.stderr, flush=True)


def _open_streams() -> None:
    """Make of the standard streams what every command may use: text goes in and out without an error of encoding."""
    if sys.stdin is None:  # closed: there is nothing to read
        sys.stdin = open(os.devnull)  # noqa: SIM115 - open as long as the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as above
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 shows ? instead of ending the run
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="surrogateescape")  # see `agentkit.cli.keyboard`


def _drop_output() -> None:
    """What is still held cannot be written; Python would try again when it ends, and complain."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Plain(logging.Formatter):
    """What is logged may quote a model, a tool or a stored name: it commands the terminal as little as they do."""

    def format(self, record: logging.LogRecord) -> str:
        return plain(super().format(record))


@contextmanager
def _logged() -> Iterator[None]:
    """Warnings go to the standard error, unless the application has its own way."""
    root = logging.getLogger()
    handler = logging.StreamHandler()
    handler.setFormatter(_Plain())
    handler.setLevel(logging.WARNING)
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)


class _Parser(argparse.ArgumentParser):
    """Its messages quote what was typed, and say what was meant."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, rest = self.parse_known_args(args, namespace)
        if rest:  # the usage of the command is wanted, not that of all
            self._command(getattr(found, "command", "")).refuse(rest)
        return found

    def refuse(self, rest: Sequence[str]) -> None:
        """End with what is not understood, and with what was meant."""
        options = [name for action in self._actions for name in action.option_strings]
        hint = did_you_mean(rest[0].partition("=")[0], options, OPTIONS)
        if not hint and not rest[0].startswith("-"):
            hint = f": {STANDARD_INPUT}"
        self.error(f"unrecognized arguments: {' '.join(rest)}{hint}")

    def _command(self, name: str) -> _Parser:
        for action in self._actions:
            if isinstance(action.choices, dict) and name in action.choices:
                return action.choices[name]  # type: ignore[no-any-return]
        return self

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            hint = then(did_you_mean(str(value), choices, CHOICES), f"there are {', '.join(choices)}")
            raise argparse.ArgumentError(action, f"invalid choice: {value!r}{hint}")

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            (file or sys.stderr).write(plain(message))  # argparse would keep an error to itself


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    from agentkit import __version__

    top = _Parser(prog="agentkit", description="Write a tool method once; any model can call it.")
    top.add_argument("--version", action="version", version=f"agentkit {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="command")
    demo.add(commands)
    chat.add(commands)
    threads.add(commands)
    inspect.add(commands)
    return top
