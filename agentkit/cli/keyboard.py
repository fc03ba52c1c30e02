"""The user's input as text. Knows only standard input; invalid text is an error, never silently altered."""

from __future__ import annotations

import sys

from agentkit.errors import ConfigError


def typed(prompt: str) -> str:
    """One line from the terminal, after a prompt.

    Raises:
        ConfigError: it is not valid text.
        EOFError: the input has ended.
    """
    return as_text(input(prompt))


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
        found = f"byte 0x{written[e.start]:02x} at {e.start}"
        raise ConfigError(f"an input line is not valid UTF-8 ({found}); it was not sent") from None
