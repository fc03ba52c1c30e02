"""Values for options that are not on the command line: from the environment, else from the user's own file.

The file is `config.toml` in `$XDG_CONFIG_HOME/agentkit`, by default in `~/.config/agentkit`. Its keys are the names of
`_NAMES`, written as in options. The command line wins over the environment, and the environment over the file, each
option for itself. An empty variable is not a value, and the file is not asked for it.

Nothing is read from the current folder: tools are code, and a server gets the key. A key is never read from the file.
"""

from __future__ import annotations

import argparse
import os
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from agentkit.checks.spelling import did_you_mean, then
from agentkit.cli.flag_words import tool_reference
from agentkit.cli.model_choice import is_reference
from agentkit.errors import ConfigError

STORE: Final = "agentkit.db"
NO_MODEL: Final = (
    "no model given: set AGENTKIT_MODEL or pass --model, e.g. --model openai:gpt-5, or for a local server "
    "--model openai:NAME --base-url http://127.0.0.1:8000/v1"
)
_OF_OBJECT: Final = ("base_url", "api_key_env", "server", "format")
"""The options that a model object of Python has itself."""
_NAMES: Final = ("model", *_OF_OBJECT, "tools", "mcp", "store")
_VARIABLES: Final = {f"AGENTKIT_{name.upper()}": name for name in ("model", "base_url", "format", "tools", "store")}
_KEYS: Final = {name.replace("_", "-"): name for name in _NAMES}


def fill_declared(arguments: argparse.Namespace) -> None:
    """Set the options that the command line left open, of those that the command declares as `settings`.

    Raises:
        ConfigError: a setting is wrong, or there is no model.
    """
    names = getattr(arguments, "settings", ())
    fill(arguments, names)
    if "model" in names and not arguments.model:
        raise ConfigError(NO_MODEL)


def fill(arguments: argparse.Namespace, names: Iterable[str]) -> None:
    """Set these options where the command line left them open.

    Raises:
        ConfigError: a setting is wrong.
    """
    if not (left := list(names)):
        return
    if "store" in left and getattr(arguments, "thread", "") is None and arguments.store is not None:
        raise ConfigError("--store selects the store; --thread NAME selects the thread in it")
    found = _in_file() | _in_environment()
    for name in left:
        if name in _OF_OBJECT and is_reference(arguments.model or ""):
            continue
        if getattr(arguments, name) in (None, []) and name in found:
            setattr(arguments, name, found[name])
    if "base_url" in left:
        arguments.base_url = arguments.base_url or None
    if "store" in left:
        arguments.store = arguments.store or STORE


def _in_environment() -> dict[str, Any]:
    return {
        name: _checked(name, text.split() if name == "tools" else text, variable)
        for variable, name in _VARIABLES.items()
        if (text := os.environ.get(variable)) is not None
    }


def _in_file() -> dict[str, Any]:
    folders = (os.environ.get("XDG_CONFIG_HOME", ""), os.path.expanduser("~/.config"))
    home = next(filter(os.path.isabs, folders), None)  # a relative one would be in the current folder
    if home is None:
        return {}
    file = Path(home, "agentkit", "config.toml")
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError) as e:
        raise ConfigError(f"{file}: {e}") from e
    for key in found.keys() - _KEYS:
        hint = then(did_you_mean(key, _KEYS), f"there are {', '.join(_KEYS)}")
        raise ConfigError(f"{file}: there is no setting {key!r}{hint}")
    settings = {_KEYS[key]: _checked(key, value, f"{file}: {key}") for key, value in found.items()}
    if servers := settings.get("mcp"):  # a file that starts programs
        settings["mcp"] = str(file.parent / servers)
    return settings


def _checked(name: str, value: Any, where: str) -> Any:
    if name != "tools":
        if not isinstance(value, str):
            raise ConfigError(f"{where}: expected a text in quotation marks, found {value!r:.60}")
        return value.strip() or None
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ConfigError(f'{where}: expected a list of texts such as ["shop:Support"]')
    try:
        return [tool_reference(word) for word in value]
    except argparse.ArgumentTypeError as e:
        raise ConfigError(f"{where}: {e}") from e
