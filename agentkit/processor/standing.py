"""The position of a call in a text: by itself, in a line of prose or code, or quoted. Fed what was said before it.

Pure. Knows Markdown as people write it; knows no tool and no parser.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, Literal

from agentkit.processor.block import Block
from agentkit.processor.marks import marks
from agentkit.processor.quotation import Quotation

Standing = Literal["firm", "loose", "quoted"]
"""With its own markup; bare or fenced, so that it needs more evidence; as a quote."""

FILLER: Final = " \t\r\n;,"  # what may separate bare calls and says nothing


class Before:
    """What was said before the reader's position."""

    __slots__ = ("_apart", "_begun", "_block", "_first", "_in_section", "_quotation", "_said", "_standing", "_touched")

    def __init__(self) -> None:
        self._block, self._quotation = Block(), Quotation()
        self._first = ""  # the line's first visible character
        self._begun = False  # whether there was any text
        self._said = False  # whether anything visible was said
        self._standing: Standing | None = None  # the position of the previous call, while nothing is said after it
        self._touched = False  # whether a quotation mark touches the previous call, if it is quoted
        self._apart = 0  # how many lines have ended since the previous call
        self._in_section = False  # whether the previous call is in a section that is not closed

    def said(self, text: str) -> bool:
        """Add a piece of what was said; returns whether it ends a quotation around the calls before it."""
        if not self._begun:
            text = text.removeprefix("\ufeff")  # a byte order mark does not belong to the first line
        self._add(text)
        return self._quotation.said(text)

    def pause(self) -> bool:
        """Nothing is said for now; returns whether a quotation around the calls before ended."""
        return self._quotation.pause()

    def meets_call(self) -> bool:
        """A call comes next; returns whether a quotation around the calls before ended."""
        return self._quotation.meets()

    @property
    def in_quotation(self) -> bool:
        """Whether the calls before are in a quotation that may still end."""
        return self._quotation.around

    def may_be_quoted(self) -> bool:
        """Whether a call that is here is in a quotation if that also ends in the call's last line."""
        return self._quotation.call()

    def _add(self, text: str) -> None:
        if text.strip(FILLER):
            self._standing, self._said, self._in_section = None, True, False
        self.wrapped(text)
        self._first = self._first or text.rpartition("\n")[2].lstrip(FILLER if self._standing else None)[:1]
        self._begun = self._begun or bool(text)

    def wrapped(self, text: str) -> None:
        """Add what belongs to the calls before it, and says nothing."""
        self._block.said(text)
        if "\n" in text:
            self._first = ""
            self._apart += text.count("\n")

    def section_over(self) -> None:
        """The section of the previous call is closed."""
        self._in_section = False

    def thought(self) -> None:
        """Something was thought: what follows is at the beginning of a line."""
        self._first, self._begun = "", False
        self._block, self._quotation = Block(), Quotation()

    def calls_over(self) -> None:
        """The next call's position is its own, regardless of the previous call."""
        self._standing = None

    def call_counts(self) -> None:
        """A call is here that counts so far: the line that it ends is not empty."""
        self._block.said(".")

    def call_was_text(self, text: str) -> None:
        """A call does not count, and is text, with the markup that led to it."""
        standing, in_section = self._standing, self._in_section
        self._add(text)
        self._quotation.call()
        self._standing, self._in_section, self._apart = standing, in_section, 0

    def standing(self, lead: str, head: str, name: str) -> Standing:
        """The position of a call that begins here.

        A call directly after another is judged by itself, too, but a bare one in the section of the previous call has
        its position, and so has any in that of a quoted one. After a quoted call none counts in the same line, a bare
        one only after an empty line, and after one in quotation marks none at all, until something is said.

        Args:
            lead: the markup before it that belongs to no call before.
            head: its first characters.
            name: its tool.
        """
        before = self._standing
        if before is not None:
            self.wrapped(lead[: len(lead) - len(lead.lstrip(FILLER))])
            lead = lead.lstrip(FILLER)
        within = self._in_section and not lead and (before == "quoted" or _is_bare(head, name))
        self._touched = self._quotation.touches or (before == "quoted" and self._touched)
        self._standing = self._after(before, self._by_itself((lead + head).lstrip(), name), within=within)
        self._in_section = bool(lead) or (before is not None and self._in_section)
        self._apart = 0
        return self._standing

    def _after(self, before: Standing | None, own: Standing, *, within: bool) -> Standing:
        """The position of a call by its own and by that of the one directly before it, perhaps `within` its section."""
        match before:
            case "firm" if within:
                return "firm"
            case "quoted" if within or self._touched or self._apart < (1 if own == "firm" else 2):
                return "quoted"
        return own

    def _by_itself(self, head: str, name: str) -> Standing:
        if self._quotation.touches or self._block.quote or self._block.code:
            return "quoted"
        if head.startswith("`"):
            return "quoted" if self._said else "loose"
        if _is_bare(head, name):
            return "quoted" if self._first else "loose"
        return "firm"


def is_bare(head: str, name: str) -> bool:
    """Whether a call has no markup of its own; it may be in a code fence, or after markup that belongs to no call.

    Args:
        head: its first characters, with the markup before it.
        name: its tool.
    """
    at = 0
    while found := _other_markup().match(head, at):
        at = found.end()
    head = head[at:].lstrip(FILLER)
    return head.startswith("`") or _is_bare(head, name)


def _is_bare(head: str, name: str) -> bool:
    return head.lstrip("[ \t\r\n").startswith(("{", name or "{", "functions."))


@cache
def _other_markup() -> re.Pattern[str]:
    """One token that belongs to no call."""
    words = sorted(marks().markup, key=len, reverse=True)
    return re.compile(rf"\s*(?:{'|'.join(map(re.escape, words))})", re.IGNORECASE)
