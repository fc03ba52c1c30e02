"""A call's arguments as a text that a person edits, and back: JSON, then each text of several lines as it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentkit.checks.visible_text import shows
from agentkit.cli.keyboard import read_object
from agentkit.cli.terminal import as_json
from agentkit.errors import ConfigError

WHAT: Final = "the arguments"
EXAMPLE: Final = '{"path": "a.txt"}'
_RULE: Final = "-" * 8


def read_arguments(text: str) -> dict[str, Any]:
    """Read a call's arguments from JSON.

    Raises:
        ConfigError: it is not a JSON object, or a key in it has two values.
    """
    return read_object(text, WHAT, EXAMPLE)


def to_text(given: Mapping[str, Any]) -> str:
    r"""Write arguments so that a text of several lines can be edited line by line.

    >>> print(to_text({"path": "a.py", "text": "x\ny\n"}), end="")
    {
      "path": "a.py"
    }
    -------- text --------
    x
    y
    <BLANKLINE>
    """
    texts = _texts(given)
    rest = {name: value for name, value in given.items() if name not in texts}
    parts = [as_json(rest, 2)]
    for name, rule in _rules(texts).items():
        parts += [rule, texts[name]]
    return "\n".join(parts) + "\n"


def from_text(text: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Read what `to_text` wrote of `given`, and a person has changed; the order of the arguments is kept.

    Raises:
        ConfigError: the JSON is not an object, or the line above a text is missing.
    """
    changed: dict[str, Any] = {}
    left = text.removesuffix("\n")
    for name, rule in reversed(_rules(_texts(given)).items()):
        left, found, value = f"\n{left}".rpartition(f"\n{rule}\n")
        if not found:
            raise ConfigError(f"{WHAT}: the line {rule!r} is missing")
        changed[name] = value
        left = left.removeprefix("\n")
    changed |= read_arguments(left)
    return {name: changed[name] for name in [*filter(changed.__contains__, given), *(set(changed) - set(given))]}


def _texts(given: Mapping[str, Any]) -> dict[str, str]:
    """The texts of several lines without invisible characters: these are escaped in JSON."""
    texts = {name: value for name, value in given.items() if isinstance(value, str) and "\n" in value}
    return {name: value for name, value in texts.items() if shows(value.replace("\n", "").replace("\t", ""))}


def _rules(texts: Mapping[str, str]) -> dict[str, str]:
    """The line above each text, which is in none of them."""
    rule, everything = _RULE, "\n".join(texts.values())
    while rule in everything:
        rule += "-"
    return {name: f"{rule} {name} {rule}" for name in texts}
