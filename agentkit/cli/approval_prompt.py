"""Decisions about the calls of a chat: in advance, for a tool, or by a person who is asked. Runs nothing."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from agentkit.agent import Approved, Decision, Denied, OwnLoop
from agentkit.cli.approval_question import Question
from agentkit.cli.screen import Screen
from agentkit.messages import ToolCall
from agentkit.threads import AllowRule
from agentkit.tool.registry import ToolRegistry

UNASKED: Final[Mapping[str, Decision]] = {
    "always": Approved(),
    "never": Denied("no calls are approved in this session"),
}


class PersonsAnswer(NamedTuple):
    """A decision about a call, None to leave it waiting; and later calls to allow: by a rule, or all of the tool."""

    decision: Decision | None
    remember: AllowRule | bool = False


class ApprovalChoices:
    """Decides about the calls of one chat.

    Args:
        choice: one of `APPROVALS`; `ask` asks at the terminal, and leaves a call waiting if there is none.
    """

    def __init__(self, choice: str) -> None:
        self.choice = choice

    def decide(
        self, call: ToolCall, registry: ToolRegistry, screen: Screen, loop: OwnLoop, *, later: bool, count: str = ""
    ) -> PersonsAnswer:
        """Decide about a call.

        Args:
            call: the call.
            registry: the tools, to show what the call does, and to check edited arguments.
            screen: where the question is shown.
            loop: where keys are read.
            later: whether a call can be left waiting.
            count: which of several calls this is, such as `2 of 3`.
        """
        if self.choice in UNASKED:
            return PersonsAnswer(UNASKED[self.choice])
        if not sys.stdin.isatty():
            return PersonsAnswer(None)
        question = Question(call, registry.get_tool(call.name), screen, later=later, count=count)
        if screen.drawn:
            from agentkit.cli.approval_block import ask_by_key

            decision = loop.run(ask_by_key(question))
        else:
            decision = question.ask()
        return PersonsAnswer(decision, question.remember)


def who() -> str:
    """The user's name according to the system; empty if unknown."""
    with suppress(OSError, KeyError, ImportError):  # by the Python version, for a missing name
        return getpass.getuser()
    return ""
