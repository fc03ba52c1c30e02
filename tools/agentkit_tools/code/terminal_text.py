r"""What a program wrote for a terminal, as text for reading: without control sequences. Pure.

A program's output reaches a model and then perhaps a person's terminal. There it must not move the cursor, set a title,
write to the clipboard (OSC 52) or make a link that shows one address and opens another (OSC 8).
"""

from __future__ import annotations

import re
from typing import Final

_SEQUENCE: Final = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI: colours, the cursor
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)?"  # strings: OSC, DCS, …
    "|\x1b[ -/]*[0-~]?"  # the others: character sets, resets
)
"""Source: ECMA-48, 5.4 and 5.6; BEL as the end of a string is xterm's. An unfinished one goes up to the next ESC."""

_RUBBED_OUT: Final = re.compile(r"[^\n\b]\x08")  # bold and underlined text of old manual pages
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def readable(text: str) -> str:
    r"""The text without control sequences and control characters; newlines and tabs stay.

    Of a line that a carriage return overwrites, the last state stays.

    >>> readable("\x1b[31mred\x1b[0m \x1b]8;;https://evil.example\x07link\x1b]8;;\x07")
    'red link'
    >>> readable("10 %\r50 %\r100 %\r\ndone\r\n")
    '100 %\ndone\n'
    """
    if text.isprintable():
        return text
    text = _SEQUENCE.sub("", text).replace("\r\n", "\n")
    if "\r" in text:
        text = "\n".join(next(filter(None, reversed(line.split("\r"))), "") for line in text.split("\n"))
    text = _RUBBED_OUT.sub("", text)
    return _CONTROLS.sub("", text.replace("\u2028", "\n").replace("\u2029", "\n"))


def decoded(head: bytes, left_out: int, tail: bytes) -> str:
    r"""What was kept of a stream, for reading; a cut is marked on a line of its own.

    >>> decoded(b"one\ntw", 3_000, b"nd\xff")
    'one\ntw\n[… 3,000 bytes left out …]\nnd�'
    """
    if not left_out:
        return readable((head + tail).decode("utf-8", "replace"))
    first, last = (readable(part.decode("utf-8", "replace")) for part in (head, tail))
    return f"{first}\n[… {left_out:,} bytes left out …]\n{last}"
