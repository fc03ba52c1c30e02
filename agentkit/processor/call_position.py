"""Where a call is in a native model's text: by itself, bare in prose, or quoted.

Pure. Knows how people quote and show code; knows no tool and no parser.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from agentkit.processor.format_tokens import QUOTATION_MARKS, format_tokens

CallPosition = Literal["firm", "loose", "quoted"]
"""`firm`: with its own markup. `loose`: bare or in a code fence; it counts only if nothing is said after it.
`quoted`: shown, not made."""

FILLER: Final = " \t\r\n;,\ufeff"  # may separate bare calls, or come before the reply, and says nothing

_NEAR: Final = 1_000  # characters before a call by which it is judged
_START: Final = "\n\n"  # what stands for the beginning of the text
_INDENTED: Final = re.compile(r"\n[ \t]*\n(?:(?: {4}|\t)[^\n]*\n)*(?: {4}|\t)[ \t]*\Z")


def position(before: str, head: str, name: str, *, said: bool) -> CallPosition:
    """Return the position of a call by the text before it.

    It is quoted if a quotation mark touches it, in a Markdown quote, and in code by its indentation. A bare call must
    begin a line, and one in a code fence the reply.

    Args:
        before: the last characters before it.
        head: its own first characters, with the markup that leads to it.
        name: its tool.
        said: whether anything visible was said before it.
    """
    line = before.rpartition("\n")[2]
    if before[-1] in QUOTATION_MARKS or line.lstrip().startswith(">") or _INDENTED.search(before):
        return "quoted"
    if head.startswith("`"):
        return "quoted" if said else "loose"
    if _is_bare(head, name):
        begins = line.strip(" \t\r") if "\0" not in line else line.strip(FILLER + "\0")
        return "quoted" if begins else "loose"
    return "firm"


class TextBefore:
    """The text before the reader's place, as far as the position of a call depends on it."""

    __slots__ = ("_before", "_in_section", "_marked", "_previous", "_said", "firm", "led_to_text")

    def __init__(self) -> None:
        self.firm = False
        """True if there was a call that counts, with its own markup."""
        self.led_to_text = False
        """True if the last markup led to a call that does not count."""
        self._before = _START  # a call that counts is a "\0" in it
        self._said = False  # whether anything visible was said
        self._previous: CallPosition | None = None  # that of the call before, while nothing is said after it
        self._marked = False  # whether a quotation mark touches that call
        self._in_section = False  # whether that call is in a section that is not closed

    def say(self, text: str) -> None:
        """Add a piece of text."""
        if text.strip(FILLER):
            self._previous, self._said, self._in_section = None, True, False
        self.pass_over(text)

    def pass_over(self, text: str) -> None:
        """Add text that belongs to the calls before it, and says nothing."""
        self._before = (self._before + text.replace("\ufeff", ""))[-_NEAR:]

    def end_section(self) -> None:
        """Close the section of the call before."""
        self._in_section = False

    def end_thought(self) -> None:
        """End some thinking: the text after it is at the beginning of a line."""
        self._before = _START

    def end_calls(self) -> None:
        """Forget the position of the call before, unless that is quoted."""
        self._previous = "quoted" if self._previous == "quoted" else None

    def add_call(self, *, firm: bool) -> None:
        """Add a call that counts so far."""
        self.pass_over("\0")
        self.firm |= firm
        self.led_to_text = False

    def add_refused(self, text: str) -> None:
        """Add a call that does not count, and is text, with the markup that led to it."""
        previous, in_section = self._previous, self._in_section
        self.say(text)
        self._previous, self._in_section = previous, in_section

    def position(self, lead: str, head: str, name: str) -> CallPosition:
        """Return the position of a call that begins here; one in the section of the call before has its position.

        After a call that a quotation mark touches none counts, until something is said.

        Args:
            lead: the markup before it that belongs to no call before.
            head: its first characters.
            name: its tool.
        """
        previous = self._previous
        if previous is not None:
            self.pass_over(lead[: len(lead) - len(lead.lstrip(FILLER))])
            lead = lead.lstrip(FILLER)
        own = position(self._before, (lead + head).lstrip(), name, said=self._said)
        within = self._in_section and not lead
        if previous == "quoted" and (within or self._marked):
            own = "quoted"
        elif previous == "firm" and within and _is_bare(head, name):
            own = "firm"
        self._marked = own == "quoted" and (self._marked or self._before[-1] in QUOTATION_MARKS)
        self._previous = own
        self._in_section = bool(lead) or (previous is not None and self._in_section)
        return own


def _is_bare(head: str, name: str) -> bool:
    return head.lstrip("[ \t\r\n").startswith(("{", name or "{", "functions."))


def has_no_markup(head: str, name: str) -> bool:
    """Return whether a call lacks its own markup; it may be in a fence, or after markup that belongs to no call.

    Args:
        head: its first characters, with the markup before it.
        name: its tool.
    """
    while found := format_tokens().other.match(head):
        head = head[found.end() :]
    head = head.lstrip(FILLER)
    return head.startswith("`") or _is_bare(head, name)
