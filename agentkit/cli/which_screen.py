"""Choose the screen for the output: one that draws, or plain lines."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import Final, TextIO

from agentkit.cli.screen import Screen
from agentkit.errors import install_command

BETTER: Final = f"plain display; for Markdown and history: {install_command('cli')}"
"""Said once in a chat at a terminal, where the extra is missing."""


def screen() -> Screen:
    """The screen for a run: all on standard output if that is a terminal; otherwise only the answers."""
    shown = sys.stdout.isatty()
    out = sys.stdout if shown else sys.stderr
    answers = None if shown else answers_only()
    if not (capable(out) and installed()):
        return Screen(out, answers=answers)
    from agentkit.cli.live_screen import LiveScreen

    return LiveScreen(out, answers)


def answers_only() -> TextIO:
    """Return standard output for the answers alone: that of programs that tools start goes to standard error."""
    out = sys.stdout
    try:
        if out.fileno() != 1:
            return out
        out.flush()
        own = os.fdopen(os.dup(1), "w", encoding=out.encoding, errors=out.errors)
        os.dup2(sys.stderr.fileno(), 1)
    except OSError:  # a replaced stream, which has no descriptor
        return out
    sys.stdout = own
    return own


def capable(out: TextIO) -> bool:
    """Say if something can be drawn there: a terminal that understands control sequences, and UTF-8."""
    encoding = (getattr(out, "encoding", None) or "").lower().replace("-", "")
    return out.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "") and encoding == "utf8"


def installed() -> bool:
    """Say if the extra `cli` is installed."""
    return find_spec("rich") is not None and find_spec("prompt_toolkit") is not None
