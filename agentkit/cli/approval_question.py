"""A question about one call: its effect, and the typed answer of a person: approve, deny, edit, or later."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from agentkit.agent import Approved, Decision, Denied
from agentkit.checks.visible_text import visible
from agentkit.cli import effect_rows
from agentkit.cli.edited_arguments import read_arguments
from agentkit.cli.keyboard import read_line
from agentkit.cli.screen import Screen
from agentkit.cli.terminal import as_json, more, width
from agentkit.errors import ConfigError
from agentkit.messages import ToolCall
from agentkit.schemas.words import InvalidArguments
from agentkit.threads import AllowRule
from agentkit.tool.bound_tool import BoundTool
from agentkit.tool.call_effect import effect

STAR: Final = "* stands for letters, digits, spaces and _ . / : = @ , + -"


class Question:
    """One call, about which a person is asked.

    Attributes:
        remember: the later calls that the person allows with this one: by a rule, or all of the tool.
        inner: whether it is a call of a sub-agent, for which no rule holds.
    """

    def __init__(self, call: ToolCall, tool: BoundTool | None, screen: Screen, *, later: bool, count: str) -> None:
        self.call = call
        self.tool = tool
        self.screen = screen
        self.later = later
        self.effect = effect(call)
        self.title = effect_rows.title(call, self.effect, count)
        self.remember: AllowRule | bool = False
        self.inner = "/" in call.id

    def ask(self) -> Decision | None:
        """Show what the call does, and ask until there is an answer: a line, for terminals without single keys.

        Ctrl-C and Ctrl-D mean later, or no without `later`.
        """
        cut = self.show(effect_rows.SHOWN)
        forget_typed()
        always = "" if self.inner else " [a]lways [p]attern"
        question = f"[y]es{always} [n]o [e]dit{' [v]iew' if cut else ''}{' [l]ater' if self.later else ''}? "
        if len(question) >= width():  # a line that is edited would be scrolled
            question = re.sub(r"(?<=\])\w+", "", question)
        try:
            while True:
                match read_line(question).strip().lower():
                    case "y" | "yes" | "a" | "always" | "p" | "pattern" as word if self._approves(word[0]):
                        return Approved()
                    case "n" | "no":
                        return Denied(read_line("reason (may be empty): ").strip())
                    case "e" | "edit":
                        if (changed := self._edited()) is not None:
                            return Approved(changed)
                    case "v" | "view":
                        self.show(None)
                    case "l" | "later" if self.later:
                        return None
        except (EOFError, KeyboardInterrupt):
            self.screen.line()
            return None if self.later else Denied()

    def _approves(self, key: str) -> bool:
        """Approve the call: this one; this one and all of its tool; this one and those that fit patterns."""
        if key == "y" or self.inner:
            return key == "y"
        if key == "a":
            self.remember = True
            return True
        self.screen.note(f"Allow such calls. {STAR} Of this call: {as_json(self.patterns)}")
        return self.allow(read_line("allow> ").strip() or as_json(self.patterns))

    def show(self, most: int | None) -> bool:
        """Write what the call does, for good. Returns whether something is left out.

        Args:
            most: rows below the title; None for all.
        """
        self.screen.line(self.screen.style(f"? {self.title}", "bold"))
        rows = list(effect_rows.rows(self.effect, width()))
        for mark, piece in rows[:most]:
            self.screen.line(f"{mark}{self._coloured(piece) if mark else piece}")
        left = 0 if most is None else max(len(rows) - most, 0)
        if left:
            self.screen.line(self.screen.style(f"  {more(left)}", "dim"))
        return left > 0

    def _coloured(self, line: str) -> str:
        colour = effect_rows.COLOURS.get(line[:1]) if self.effect.edits else None
        return self.screen.style(line, colour) if colour else line

    def check(self, given: Mapping[str, Any]) -> None:
        """Check edited arguments.

        Raises:
            InvalidArguments: they do not fit the tool.
        """
        if self.tool is not None:
            self.tool.validate(dict(given), lenient=False)

    @property
    def patterns(self) -> dict[str, Any]:
        """The patterns that only this call has, to be changed by a person."""
        return dict(AllowRule.exactly(self.call).arguments or {})

    def allow(self, text: str) -> bool:
        """Remember the rule with these patterns, a JSON object; returns whether it can be one that covers the call."""
        try:
            rule = AllowRule(self.call.name, read_arguments(text))
            if not rule.covers(self.call):
                raise ConfigError("these patterns do not fit this call itself")
        except ConfigError as e:
            self.tell(e)
            return False
        self.remember = rule
        return True

    def tell(self, error: Exception) -> None:
        """Write why edited arguments were not taken."""
        for line in str(error).split("\n"):
            self.screen.line(self.screen.style(visible(line), "red"))

    def _edited(self) -> Mapping[str, Any] | None:
        """Edited arguments that match the tool, asked for until they do; None if they were not changed after all."""
        with suppress(ImportError, ValueError):  # ValueError: an argument that the terminal's encoding lacks
            import readline

            readline.add_history(json.dumps(dict(self.call.arguments), default=str))
        self.screen.note("Enter all arguments as one line of JSON. Arrow up: edit the current ones; empty: keep them.")
        while text := read_line("json> ").strip():
            try:
                given = read_arguments(text)
                self.check(given)
            except (ConfigError, InvalidArguments) as e:
                self.tell(e)
            else:
                return given
        return None


def forget_typed() -> None:
    """Discard keys that were typed before the question was shown: they cannot answer it."""
    with suppress(ImportError):  # not on Windows
        import termios

        with suppress(termios.error):
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
