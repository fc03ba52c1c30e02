"""The user's input as text. Knows only standard input; invalid text is an error, never silently altered."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any

from agentkit.checks.unicode import has_surrogate
from agentkit.errors import ConfigError


def read_line(prompt: str) -> str:
    """Read one line from the terminal, after a prompt.

    Raises:
        ConfigError: it is not valid text.
        EOFError: the input has ended.
    """
    if sys.stdout.isatty():
        with _terminal(_by_line):
            return as_text(input(prompt))
    print(prompt, end="", file=sys.stderr, flush=True)  # `input` would write it among the answers
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return as_text(line.rstrip("\n"))


def enable_line_editing() -> None:
    """Give `input` line editing and history, where readline is installed; a pasted text is one input."""
    with suppress(ImportError):
        import readline

        readline.parse_and_bind("set enable-bracketed-paste on")


def as_text(line: str) -> str:
    """A line of standard input that Python could not decode completely with the configured encoding.

    It is then read as UTF-8, which is what terminals send, whatever the environment says.

    Raises:
        ConfigError: it is not UTF-8 either.
    """
    if not any("\udc80" <= c <= "\udcff" for c in line):
        return line
    written = line.encode(getattr(sys.stdin, "encoding", None) or "utf-8", "surrogateescape")
    try:
        return written.decode()
    except UnicodeDecodeError as e:
        raise ConfigError(f"an input line is {_invalid(e)}; it was not sent") from None


def as_argument(argument: str) -> str:
    """An argument of a command that a model reads; read as UTF-8 if Python could not decode it as configured.

    Raises:
        argparse.ArgumentTypeError: it is not UTF-8 either.
    """
    if not has_surrogate(argument):
        return argument
    written = os.fsencode(argument)
    try:
        return written.decode()
    except UnicodeDecodeError as e:
        raise argparse.ArgumentTypeError(_invalid(e)) from None


def _invalid(error: UnicodeDecodeError) -> str:
    return f"not valid UTF-8 (byte 0x{error.object[error.start]:02x} at {error.start})"


def read_object(text: str, what: str, example: str) -> dict[str, Any]:
    """Read a JSON object that a user wrote.

    Args:
        text: as it was written.
        what: its name, for messages.
        example: such an object.

    Raises:
        ConfigError: it is not a JSON object, or a key in it has two values.
    """
    from agentkit.schemas.typed import values

    try:
        given = values.load(text)
    except values.DuplicateKey as e:
        raise ConfigError(f"{what}: {e}") from None
    except ValueError as e:
        raise ConfigError(f"{what}: not JSON: {e}") from None
    if not isinstance(given, dict):
        raise ConfigError(f"{what}: expected a JSON object such as {example}, found {text!r:.60}")
    return given


def whole_input() -> str:
    """Read all of standard input, each character and line end as it is: UTF-8, or the environment's encoding.

    Raises:
        ConfigError: it is neither.
    """
    written = sys.stdin.buffer.read()
    try:
        return written.decode()
    except UnicodeDecodeError as e:
        with suppress(UnicodeDecodeError, LookupError):
            return written.decode(sys.stdin.encoding)
        raise ConfigError(f"standard input is {_invalid(e)}; it was not read") from None


def disable_echo(*, by_line: bool = True) -> AbstractContextManager[None]:
    """Hide keys that are typed while something is drawn; they are read afterwards.

    Nor does Ctrl-C discard output that is not yet shown: the next drawing would remove other lines.

    Args:
        by_line: whether the reader expects whole lines. False if it reads key by key: a terminal that collects lines
            makes a zero byte of Ctrl-D and a line's end of Enter.
    """
    return _terminal(lambda termios, mode: _unechoed(termios, mode, by_line))


def _unechoed(termios: Any, mode: list[Any], by_line: bool) -> None:
    mode[3] = mode[3] & ~termios.ECHO | termios.NOFLSH
    if not by_line:
        mode[0] &= ~termios.ICRNL
        mode[3] &= ~(termios.ICANON | termios.IEXTEN)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0  # bytes, and tenths of a second


def collect_lines() -> AbstractContextManager[None]:
    """Let the terminal collect and echo lines, for another program that uses it."""
    return _terminal(_by_line)


def disable_signals() -> AbstractContextManager[None]:
    """Make Ctrl-C a key like the others, for a reader of keys, even before and after it reads."""
    return _terminal(_unsignalled)


def _unsignalled(termios: Any, mode: list[Any]) -> None:
    mode[3] &= ~termios.ISIG


def _by_line(termios: Any, mode: list[Any]) -> None:
    mode[0] |= termios.ICRNL
    mode[3] |= termios.ECHO | termios.ICANON | termios.IEXTEN


@contextmanager
def _terminal(change: Callable[[Any, list[Any]], None]) -> Iterator[None]:
    """Standard input's terminal, if it is one, in another mode, as `termios.tcgetattr` describes it."""
    try:
        import termios
    except ImportError:  # on Windows
        yield
        return
    try:
        before, mode = termios.tcgetattr(sys.stdin), termios.tcgetattr(sys.stdin)
    except (termios.error, ValueError, OSError):  # not a terminal
        yield
        return
    change(termios, mode)
    termios.tcsetattr(sys.stdin, termios.TCSANOW, mode)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)
