"""The command line, one file per group of commands: `agentkit demo | chat | ui | fit | threads | serve | mcp | …`.

Uses only argparse. Exit status: 0 success, 1 the command failed (the message says why), 2 wrong arguments or input, 3 a
call is waiting for approval, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import Any, Final, NoReturn

from agentkit.checks.spelling import did_you_mean, then
from agentkit.cli import chat, demo, fit, inspect, one_shot, python_server, rollouts, serve, serve_mcp, threads, ui
from agentkit.cli.flag_words import in_flags
from agentkit.cli.help_text import HelpFormatter, examples
from agentkit.cli.log_lines import log_to_stderr
from agentkit.cli.settings import fill_declared
from agentkit.cli.terminal import complain, plain
from agentkit.errors import AgentkitError, ConfigError, FormatError, SchemaError
from agentkit.foreign.command_names import CHOICES, OPTIONS, STANDARD_INPUT

_REQUIRED: Final = "the following arguments are required"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: the arguments after `agentkit`; by default those of the process.

    Returns:
        The exit status.
    """
    _open_streams()
    if sys.stdout is None:  # otherwise the next opened file would get its descriptor, and be printed into
        complain("agentkit: standard output is closed; to discard the output use > /dev/null")
        return 1
    name = "agentkit"
    try:
        try:
            words = sys.argv[1:] if argv is None else argv
            arguments = parser().parse_args(words, argparse.Namespace(words=words))
            if arguments.command is None:
                arguments.run = _help
            name = f"agentkit {arguments.command}"
            with log_to_stderr():
                fill_declared(arguments)
                status: int = arguments.run(arguments)
        finally:
            sys.stdout.flush()
        return status
    except AgentkitError as e:
        complain(f"{name}: {in_flags(str(e))}")
        return 2 if isinstance(e, ConfigError | FormatError | SchemaError) else 1
    except BrokenPipeError:  # the reader, such as `head`, has closed the pipe
        _drop_output()
    except KeyboardInterrupt:
        return 130
    except OSError as e:  # a full disk, a deleted directory, …
        _drop_output()
        complain(f"{name}: system error: {e}")
    return 1


def _open_streams() -> None:
    """Prepare the standard streams for all commands: reading and writing text never raises an encoding error."""
    if sys.stdin is None:  # closed: there is nothing to read
        sys.stdin = open(os.devnull)  # noqa: SIM115 - open for the lifetime of the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as above
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # without UTF-8, a character is shown as its escape
    if hasattr(sys.stdin, "reconfigure"):
        sys.stdin.reconfigure(errors="surrogateescape")  # see `agentkit.cli.keyboard`


def _drop_output() -> None:
    """Discard buffered output that cannot be written; otherwise Python would retry at exit, and print an error."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Parser(argparse.ArgumentParser):
    """A parser whose messages quote the input and suggest what was meant."""

    late: Callable[[Sequence[str]], None] | None = None
    """Declares options that take a moment to load; called with the words of this command when it is chosen."""
    _given: Sequence[str] = ()

    def __init__(self, **settings: Any) -> None:
        fixed = {"allow_abbrev": False, "formatter_class": HelpFormatter}  # `--api-key k` is not `--api-key-env k`
        super().__init__(**{**settings, **fixed})

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._given = sys.argv[1:] if args is None else args
        if self.late is not None:
            late, self.late = self.late, None
            late(self._given)
        return super().parse_known_args(args, namespace)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        found, rest = self.parse_known_args(args, namespace)
        if rest:  # show the usage of this command, not of all
            self._command(getattr(found, "command", "")).refuse(rest)
        return found

    def error(self, message: str) -> NoReturn:
        """Exit with an error; if a word is missing that an option has taken, with that."""
        super().error(f"{message}{self._taken()}" if message.startswith((_REQUIRED, "argument --tools:")) else message)

    def _taken(self) -> str:
        """The words that an option has taken besides its first, in a sentence; empty if none has."""
        for action in self._actions if "--" not in self._given else ():
            for name in action.option_strings if action.nargs == "+" else ():
                at = self._given.index(name) + 1 if name in self._given else len(self._given)
                words = [*takewhile(lambda word: not word.startswith("-"), self._given[at:])]
                if len(words) > 1:
                    taken = f"{name} takes all words up to the next option, also {words[-1]!r}"
                    return f"; {taken}: write the others before {name}, or after --"
        return ""

    def refuse(self, rest: Sequence[str]) -> None:
        """Exit with an error about unknown arguments, and a suggestion."""
        options = [name for action in self._actions for name in action.option_strings]
        hint = did_you_mean(rest[0].partition("=")[0], options, OPTIONS)
        if not hint and not rest[0].startswith("-") and self.prog.endswith((" chat", " run")):
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
            (file or sys.stderr).write(plain(message))  # argparse would swallow the error


def _help(arguments: argparse.Namespace) -> int:
    parser().print_help()
    return 0


def parser() -> argparse.ArgumentParser:
    """The parser for all commands and their options."""
    from agentkit import __version__

    top = _Parser(
        prog="agentkit",
        description="Write a tool method once; any model can call it.",
        epilog=examples(
            "agentkit demo",
            "agentkit chat -m openai:gpt-5 -t agentkit_tools.files:Files",
            'agentkit run -m anthropic:claude-sonnet-5 "What is a monad?"',
            "agentkit formats",
            after="agentkit COMMAND --help says more about a command.",
        ),
    )
    top.add_argument("--version", action="version", version=f"agentkit {__version__}")
    commands = top.add_subparsers(dest="command", metavar="command")
    for group in (demo, chat, ui, one_shot, fit, threads, serve, serve_mcp, inspect, python_server, rollouts):
        group.add(commands)
    return top
