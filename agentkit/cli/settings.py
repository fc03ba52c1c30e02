"""Values for options that are not on the command line: from the environment, else from `agentkit.toml` in this folder.

| option | environment | key in the file |
|---|---|---|
| `--model`, `--base-url`, `--api-key-env`, `--server`, `--format` | `AGENTKIT_MODEL`, … | `model`, `base-url`, … |
| `--tools`, `--mcp`, `--store` | `AGENTKIT_TOOLS` (separated by spaces), … | `tools` (a list), … |

The command line wins over the environment, and the environment over the file, each option for itself. An empty variable
is not a value, and the file is not asked for it. A key is never read from the file: it may end up in a repository.
"""

from __future__ import annotations

import argparse
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from agentkit.checks.spelling import did_you_mean, then
from agentkit.cli.flag_words import tool_reference
from agentkit.cli.model_choice import is_reference
from agentkit.errors import ConfigError

FILE: Final = "agentkit.toml"
STORE: Final = "agentkit.db"
NO_MODEL: Final = (
    "no model given: set AGENTKIT_MODEL or pass --model, e.g. --model openai:gpt-5, or for a local server "
    "--model openai:NAME --base-url http://127.0.0.1:8000/v1"
)
_BESIDE: Final = ("base_url", "api_key_env", "server", "format")
"""The options that a model object of Python has itself."""
_NAMES: Final = ("model", *_BESIDE, "tools", "mcp", "store")


def takes(command: argparse.ArgumentParser, *names: str) -> None:
    """Declare that a command takes these options from elsewhere if they are not given.

    Args:
        command: its parser.
        names: the options, as attributes of the arguments.
    """
    command.set_defaults(settings=(*(command.get_default("settings") or ()), *names))


def fill(arguments: argparse.Namespace, names: Iterable[str]) -> None:
    """Set the options that the command line left open.

    Raises:
        ConfigError: a setting is wrong, or there is no model.
    """
    if not (left := list(names)):
        return
    if "store" in left and getattr(arguments, "thread", "") is None and arguments.store is not None:
        raise ConfigError("--store selects the store; --thread NAME selects the thread in it")
    found = _in_file() | _in_environment()
    for name in left:
        if name in _BESIDE and is_reference(arguments.model or ""):
            continue
        if getattr(arguments, name) in (None, []) and name in found:
            setattr(arguments, name, found[name])
    if "base_url" in left:
        arguments.base_url = arguments.base_url or None
    if "store" in left:
        arguments.store = arguments.store or STORE
    if "model" in left and not arguments.model:
        raise ConfigError(NO_MODEL)


def _in_environment() -> dict[str, Any]:
    given = {name: os.environ.get(f"AGENTKIT_{name.upper()}") for name in _NAMES}
    return {
        name: _tools(text.split(), "AGENTKIT_TOOLS") if name == "tools" else text.strip() or None
        for name, text in given.items()
        if text is not None
    }


def _in_file() -> dict[str, Any]:
    path = Path(FILE)
    try:
        if path.stat().st_uid not in (os.getuid(), 0):
            raise ConfigError(f"{FILE} in this folder belongs to another user, who could run code as you: remove it")
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as e:
        raise ConfigError(f"{FILE}: {e}") from e
    return {name.replace("-", "_"): _checked(name, value) for name, value in found.items()}


_KEYS: Final = tuple(name.replace("_", "-") for name in _NAMES)
_NOT_HERE: Final[Mapping[str, str]] = dict.fromkeys(
    ("api-key", "api_key", "key", "token", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"),
    "a key does not belong in this file; name the environment variable that has it: api-key-env",
)


def _checked(name: str, value: Any) -> Any:
    if name not in _KEYS:
        hint = then(did_you_mean(name, _KEYS, _NOT_HERE), f"there are {', '.join(_KEYS)}")
        raise ConfigError(f"{FILE}: there is no setting {name!r}{hint}")
    if name == "tools":
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise ConfigError(f'{FILE}: tools: expected a list of texts such as ["shop:Support"]')
        return _tools(value, f"{FILE}: tools")
    if not isinstance(value, str):
        raise ConfigError(f"{FILE}: {name}: expected a text in quotation marks, found {value!r:.60}")
    return value or None


def _tools(words: list[str], where: str) -> list[str]:
    try:
        return [tool_reference(word) for word in words]
    except argparse.ArgumentTypeError as e:
        raise ConfigError(f"{where}: {e}") from e
