"""Why a call failed, in a few words for a person. The model reads the complete sentence, which `/raw` shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agentkit.cli.terminal import truncate
from agentkit.processor.not_run import DENIED

REASONS: Final[Mapping[str, str]] = {
    "unknown_tool": "there is no such tool",
    "invalid_json": "the arguments are not valid JSON",
    "invalid_arguments": "the arguments do not fit the tool",
    "truncated_call": "the call is incomplete",
    "ambiguous_call": "the call can be read in more than one way",
    "skipped": "not run because of another call in this response",
}
"""Of the codes whose messages teach a model to write a call."""


def short_reason(code: str, text: str, width: int = 100) -> str:
    """Return the reason in one line.

    >>> short_reason("denied", "not run: the user denied this call: I still need it")
    'I still need it'
    >>> short_reason("truncated_call", "expected </tool_call>, found the end of the text")
    'the call is incomplete'
    """
    if code in REASONS:
        return REASONS[code]
    first = text.strip().partition("\n")[0].removeprefix(DENIED.text()).removeprefix(": ")
    return truncate(first, width)
