r"""A program's terminal output as text for reading, without control sequences. Pure.

The output reaches a model and then perhaps a person's terminal. There it must not move the cursor, set a title,
write to the clipboard (OSC 52) or make a link that shows one address and opens another (OSC 8).
"""

from __future__ import annotations

import re
from typing import Final

from agentkit.sandbox import StreamOutput

_SEQUENCE: Final = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI: colours, the cursor
    "|(?:\x1b[\\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\\\|\x9c)?"  # strings: OSC, DCS, …
    "|\x1b[ -/]*[0-~]?"  # the others: character sets, resets
)
"""Source: ECMA-48, 5.4 and 5.6; BEL as the end of a string is xterm's. An unfinished one goes up to the next ESC."""

_OPENERS: Final = "\x1b\x90\x98\x9b\x9d\x9e\x9f"
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


class Reading:
    r"""Reads a program's output piece by piece: the texts, joined, equal `readable` of the whole output.

    Only text of a line that is overwritten later stays.

    >>> reading = Reading()
    >>> reading.add("a \x1b[3"), reading.add("1mred\x1b[0m")
    (['a '], ['red'])
    """

    def __init__(self) -> None:
        self._started = ""

    def add(self, *parts: str) -> list[str]:
        """The next piece as text; of a cut one the parts, between which a sequence is not followed."""
        first, *others = parts
        texts = [self._started + first, *others]
        self._started = _open_sequence(texts[-1])
        return [readable(text) for text in texts]


def _open_sequence(text: str) -> str:
    """Return the start and the last character of a control sequence that continues after the text."""
    if not any(opener in text for opener in _OPENERS):
        return ""
    text = text[max(0, text.rfind("\x1b")) :]  # which ends any other
    found = _SEQUENCE.finditer(f"{text}~")  # one more character, which belongs to any sequence that has not ended
    start = next((match.start() for match in found if match.end() > len(text)), len(text))
    sequence = text[start:]
    return sequence[:2] + sequence[2:][-1:]


def decode(output: StreamOutput, reading: Reading | None = None) -> str:
    r"""Return the kept output of a stream as text; a cut is marked on a separate line.

    >>> decode(StreamOutput(b"one\ntw", 3_000, b"nd\xff"))
    'one\ntw\n[… 3,000 bytes left out …]\nnd�'
    """
    return output.mark.join((reading or Reading()).add(*output.parts))
