"""Errors about Python's arguments in the words of the command line, and the types of its own arguments."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import inf
from sys import float_info
from typing import Any, Final, TypeVar

N = TypeVar("N", int, float)

_PHRASES: Final[Mapping[str, str]] = {
    "or pass api_key=": "or name another one with --api-key-env",
    ", or api_key=": ", or the variable of --api-key-env",
    "only needs base_url=": "only needs --base-url",
    "base_url must be": "--base-url must be",
    "base_url ends in": "--base-url ends in",
    "base_url has no path": "--base-url has no path",
    "constrained=True": "--constrained",
    ": constrained= ": ": --constrained ",
}

_FLAGS: Final[Mapping[str, str]] = {
    "api_key": "--api-key-env",
    "processor_config": "--format",
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            *("tools", "allow", "model", "system", "base_url", "server", "format", "max_tokens", "temperature"),
            *("max_turns", "requires_approval"),
        )
    },
}
"""Our keywords, and the options that set the same."""

_KEYWORD: Final = re.compile(rf"(?<![\w(?&])({'|'.join(_FLAGS)})=(\[[^\]]*\]|'[^']*'|\"[^\"]*\"|[\w./…-]*)")


def in_flags(message: str) -> str:
    """A message with the options of the command line in place of keywords.

    >>> in_flags("if you trust it, pass allow=['shop']")
    'if you trust it, pass --allow shop'
    """
    for ours, spelt in _PHRASES.items():
        message = message.replace(ours, spelt)
    return _KEYWORD.sub(_as_flag, message)


def _as_flag(keyword: re.Match[str]) -> str:
    values = re.sub(r"[\[\]'\",]+", " ", keyword[2]).split()
    return " ".join([_FLAGS[keyword[1]], *values])


def tool_reference(text: str) -> str:
    """A tool as an argument: `module:Class`, or `module:function`.

    Raises:
        argparse.ArgumentTypeError: it has another form; says what to write.
    """
    if not text.isidentifier():  # errors of the import say more
        return text
    raise argparse.ArgumentTypeError(
        f"{text!r} is not a tool: write its module and its name, such as shop:Support for the class or function "
        "Support of the file shop.py in the current directory"
    )


def number_type(kind: type[N], least: float, most: float, wanted: str) -> Callable[[str], N]:
    """Make the type of an argument that is a number.

    Args:
        kind: int or float.
        least: the smallest number.
        most: the largest.
        wanted: in words, for messages.
    """

    def read(text: str) -> N:
        with suppress(ValueError):
            if least <= (number := kind(text)) <= most:
                return number
        raise argparse.ArgumentTypeError(f"expected {wanted}, found {text!r}")

    return read


whole: Final = number_type(int, 1, inf, "an integer (1 or more)")
temperature: Final = number_type(float, 0, float_info.max, "a number, 0 or more")
port: Final = number_type(int, 0, 65_535, "a port from 0 to 65535")

APPROVALS: Final = ("ask", "always", "never")
"""The ways to treat calls that wait for approval."""

TOOLS: Final[Mapping[str, Any]] = {"nargs": "+", "type": tool_reference, "metavar": "MODULE:CLASS"}
"""The settings of an option for tools."""
