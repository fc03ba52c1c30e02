"""Errors about Python's arguments in the words of the command line, and the types of its own arguments."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib.machinery import PathFinder
from importlib.util import find_spec
from math import inf
from sys import float_info
from typing import Any, Final, TypeVar

N = TypeVar("N", int, float)

_FLAGS: Final[Mapping[str, str]] = {
    "api_key": "--api-key-env",
    "processor_config": "--format",
    "requires_approval": "--require-approval",
    **{
        name: f"--{name.replace('_', '-')}"
        for name in (
            *("tools", "allow", "model", "system", "base_url", "server", "format", "constrained", "max_tokens"),
            *("temperature", "max_turns", "tokenizer", "sampling", "repeats", "aggregate", "concurrency"),
            *("max_response_tokens", "max_context_tokens", "max_assistant_turns", "max_user_turns"),
            *("max_parallel_calls", "max_tool_response", "call_timeout", "turn_timeout", "trajectory_timeout"),
        )
    },
}
"""Our keywords, and the options that set the same."""

_VALUES: Final[Mapping[str, str]] = {"True": "", "None": "native", "…": ""}
"""Values that an option has in other words; None is only written for a format."""

_PHRASES: Final[Mapping[str, str]] = {
    "or pass api_key=.": "or name another one with --api-key-env.",
    ", or api_key=": ", or the variable of --api-key-env",
    "model('openai:…', ": "model(model='openai:NAME', ",
    "model('openai:…')": "--model openai:NAME",
    "stream(samples, ": "stream(",
}
"""Texts for which translating word by word is not enough."""

_NAME: Final = "|".join(_FLAGS)
_VALUE: Final = r"""\[[^\]]*\]|\{[^}]*\}|'[^']*'|"[^"]*"|[\w./…-]*"""
_CALL: Final = re.compile(
    rf"\b(?:agentkit\.)?(?:model|stream|Rollout|RolloutLimits)\(((?:…, )?(?:(?:{_NAME})=(?:{_VALUE})(?:, )?)+)\)"
)
_KEYWORD: Final = re.compile(rf"(?<![\w?&-])(?<!\w\()({_NAME})=({_VALUE})")
_QUOTED: Final = re.compile(rf"`({_NAME})`")
_WORD: Final = re.compile(rf"(?<![\w'\"`/?&.=-])({'|'.join(name for name in _FLAGS if '_' in name)})(?![\w'=])")
"""A name with an underscore is no English word."""


def in_flags(message: str) -> str:
    """A message with the options of the command line in place of keywords; calls of our functions lose their frame.

    A message about code that the user wrote, such as a tool, is about Python, and stays as it is.

    >>> in_flags("if you trust it, pass allow=['shop']")
    'if you trust it, pass --allow shop'
    >>> in_flags("name the server with model(…, server='vllm'), or omit `format`")
    'name the server with --server vllm, or omit --format'
    """
    for ours, spelt in _PHRASES.items():
        message = message.replace(ours, spelt)
    message = _CALL.sub(lambda call: call[1].removeprefix("…, ").replace(", ", " "), message)
    message = _KEYWORD.sub(_as_flag, message)
    for pattern in (_QUOTED, _WORD):
        message = pattern.sub(lambda word: _FLAGS[word[1]], message)
    return message


def _as_flag(keyword: re.Match[str]) -> str:
    text = keyword[2]
    values = [text] if text.startswith("{") else re.sub(r"[\[\]'\",]+", " ", text).split()
    return " ".join([_FLAGS[keyword[1]], *(word for value in values if (word := _VALUES.get(value, value)))])


def flag_of(name: str) -> str:
    """The option that sets an argument of this name."""
    return f"--{name.replace('_', '-')}"


def given_names(arguments: argparse.Namespace) -> list[str]:
    """The names of the arguments that were given, or have another value than by default.

    Args:
        arguments: of a command that is their `parser`.
    """
    own = ("command", "words", "run", "parser")
    default = arguments.parser.get_default
    return [name for name, value in vars(arguments).items() if name not in own and value != default(name)]


def find_here(reference: str) -> None:
    """Let the module that a user names be imported from the current folder, if none of that name is installed.

    Without such a name nothing is imported from there: a folder from elsewhere may have its own `httpx.py`.
    """
    name, here = re.split(r"[:.]", reference)[0], os.getcwd()
    known = not name.isidentifier() or name in sys.modules or find_spec(name) is not None
    if not known and PathFinder.find_spec(name, [here]) is not None:
        sys.path.insert(0, here)


def tool_reference(text: str) -> str:
    """A tool as an argument: `module:Class`, or `module:function`.

    Raises:
        argparse.ArgumentTypeError: it has another form; says what to write.
    """
    if not text.isidentifier():  # errors of the import say more
        find_here(text)
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
