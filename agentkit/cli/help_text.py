"""The help of a command: argparse's, with example lines at the end."""

from __future__ import annotations

import argparse
from typing import Final

_EXAMPLES: Final = "examples:\n"
SETTINGS: Final = (
    "Options that are left out come from AGENTKIT_MODEL, AGENTKIT_BASE_URL, …, or from ~/.config/agentkit/config.toml."
)


def examples(*lines: str, after: str = "") -> str:
    """The end of a command's help.

    Args:
        lines: commands to try.
        after: a sentence that follows them.
    """
    return _EXAMPLES + "\n".join(f"  {line}" for line in lines) + (f"\n\n{after}" if after else "")


class HelpFormatter(argparse.HelpFormatter):
    """Keeps the lines of examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        lines, gap, after = text.partition("\n\n")
        if not lines.startswith(_EXAMPLES):
            return super()._fill_text(text, width, indent)
        return lines + gap + (super()._fill_text(after, width, indent) if after else "")
