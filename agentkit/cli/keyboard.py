"""What a user types, as text. Knows the standard input only; what is no text is told, never altered in silence."""

from __future__ import annotations

import sys

from agentkit.errors import ConfigError


def typed(prompt: str) -> str:
    """One line from the terminal, after a prompt.

    Raises:
        ConfigError: it is no text.
        EOFError: the input has ended.
    """
    return as_text(input(prompt))


def as_text(line: str) -> str:
    """A line of the standard input, whose bytes Python could not all decode by the encoding that it was told.

    They are read as UTF-8 then, which is what terminals write, whatever an environment says of them.

    Raises:
        ConfigError: they are no UTF-8 either.
    """
    if not any("\udc80" <= c <= "\udcff" for c in line):
        return line
    written = line.encode(getattr(sys.stdin, "encoding", None) or "utf-8", "surrogateescape")
    try:
        return written.decode()
    except UnicodeDecodeError as e:
        found = f"byte 0x{written[e.start]:02x} at {e.start}"
        raise ConfigError(f"a line of the input is no text in UTF-8 ({found}); it was not sent") from None
