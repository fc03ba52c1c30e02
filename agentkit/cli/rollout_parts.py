"""The tools, policy, tokenizer and format that the words of `agentkit rollout` name."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentkit.checks.spelling import did_you_mean
from agentkit.cli.flag_words import find_here
from agentkit.cli.model_choice import NATIVE, ModelChoice, key_in
from agentkit.cli.serve_mcp import asked, pins_of
from agentkit.errors import ConfigError

if TYPE_CHECKING:
    from agentkit.formats import Format
    from agentkit.interop.verl.verl_config import McpEntry
    from agentkit.rollout import Policy

ALL: Final = "--help-all"
KEY: Final = "VLLM_API_KEY"
"""The environment variable with the key of `--server`, as vLLM itself reads it, unless `--api-key-env` names one."""

# ---------------------------------------------------------------- tools


def add_tools(command: argparse.ArgumentParser) -> None:
    """Declare the options that say which tools there are: ours, verl's file, open-instruct's names."""
    command.add_argument(
        "-t", "--tools", nargs="+", metavar="TOOL",
        help="tools, such as my_tools:Search, or my_tools for all of a module; a "
        "YAML file of verl's; names of open-instruct's, such as serper_search; or a registry or configuration class of "
        "its form, such as my_tools:TOOL_REGISTRY",
    )  # fmt: skip
    command.add_argument("--allow", nargs="+", default=[], metavar="MODULE", help="what a YAML file may import")
    command.add_argument(ALL, action="help", help="also show the settings of open-instruct's tools")
    late: Callable[[Sequence[str]], None] = partial(_add_settings, command)
    command.late = late  # type: ignore[attr-defined]  # of the command line's own parser


def _add_settings(command: argparse.ArgumentParser, given: Sequence[str]) -> None:
    """The flags that are generated from open-instruct's configuration classes, which take a moment to load."""
    from agentkit.interop.open_instruct.open_instruct_config import add_settings

    words = next(([*given][n + 1 :] for n, word in enumerate(given) if word in ("-t", "--tools")), [])
    ours = len(command._actions)
    try:
        registry = ChosenTools([*takewhile(lambda word: not word.startswith("-"), words)]).registry
    except ConfigError:  # said when the tools are made
        registry = None
    add_settings(command, registry)
    if ALL not in given:
        for action in command._actions[ours:]:
            action.help = argparse.SUPPRESS


class ChosenTools:
    """The tools that the words after `--tools` name.

    A registry of open-instruct's form chooses all of its tools, or those of them that other words name.

    Args:
        words: the words.

    Raises:
        ConfigError: one of a module cannot be loaded.
    """

    def __init__(self, words: Sequence[str]) -> None:
        from agentkit.interop.open_instruct.open_instruct_config import ready_made

        self.registry = dict(ready_made())
        self.found: dict[str, Any] = {}
        """By word of a module: a registry, or tools."""
        for word in words:
            if word in self.registry or word.endswith((".yaml", ".yml")):
                continue
            find_here(word)
            if ":" in word or _is_module(word):
                self.found[word] = _in_module(word)
        own = {word: found for word, found in self.found.items() if isinstance(found, Mapping)}
        for registry in own.values():
            self.registry.update(registry)
        self.words: list[str] = []
        for word in words:
            named = set(own.get(word, ())) & set(words)
            self.words += [word] if word not in own else [] if named else own[word]


def _in_module(word: str) -> Any:
    """Load the module that a word names: a registry of configuration classes, or a list of tools."""
    from agentkit.interop.open_instruct.open_instruct_config import is_config
    from agentkit.tool.references import load

    if ":" in word:
        found = load(word)
        if is_config(found):
            return {found.__name__: found}
        return found if isinstance(found, Mapping) else [word]
    try:
        module = importlib.import_module(word)
    except ImportError as e:
        raise ConfigError(f"--tools {word}: the module cannot be imported: {e}") from e
    if isinstance(registry := getattr(module, "TOOL_REGISTRY", None), Mapping):
        return registry
    own = {name: one for name, one in vars(module).items() if getattr(one, "__module__", "") == word}
    if configs := {name: one for name, one in own.items() if is_config(one)}:
        return configs
    tools = [one for one in own.values() if _is_tool(one)]
    if not tools:
        raise ConfigError(f"--tools {word}: the module has no tools; expected classes with tools, functions declared "
                          "with @openapi_schema, or TOOL_REGISTRY")  # fmt: skip
    return tools


def _is_tool(found: Any) -> bool:
    from agentkit.rollout.tools.decorated_tool import shape_of
    from agentkit.tool.declare import declarations_of, schemas_of

    if isinstance(found, type):
        return shape_of(found) is not None or bool(declarations_of(found))
    return bool(schemas_of(found))


def _is_module(word: str) -> bool:
    with suppress(ImportError):  # of a package that it would be in
        return all(part.isidentifier() for part in word.split(".")) and importlib.util.find_spec(word) is not None
    return False


def tools_of(arguments: argparse.Namespace) -> list[Any]:
    """The tools that the words after `--tools` name.

    Raises:
        ConfigError: one names none.
    """
    from agentkit.interop.open_instruct.open_instruct_config import config_from_flags
    from agentkit.interop.verl.verl_config import verl_tools

    for module in arguments.allow:
        find_here(module)
    chosen = ChosenTools(arguments.tools)
    theirs = [word for word in chosen.words if word in chosen.registry]
    config = config_from_flags(argparse.Namespace(**{**vars(arguments), "tools": theirs}), chosen.registry)
    named = dict(zip(theirs, config.rollout_tools(), strict=True))
    tools: list[Any] = []
    for word in chosen.words:
        if word in named:
            tools.append(named[word])
        elif word.endswith((".yaml", ".yml")):
            tools += verl_tools(word, allow=arguments.allow, mcp=_mcp_tools)
        elif word in chosen.found:
            tools += chosen.found[word]
        else:
            raise ConfigError(
                f"--tools {word}: expected module:Class, a module, a YAML file, or one of {', '.join(chosen.registry)}"
                f"{did_you_mean(word, chosen.registry)}"
            )
    return tools


def _mcp_tools(entry: McpEntry) -> Sequence[Any]:
    """The tools of an `mcp` entry; the commands of its servers are approved at the terminal, once."""
    from agentkit.interop.verl import mcp_tools

    return mcp_tools(entry, pins=pins_of(entry.servers), approve=lambda command: asked(command, "this rollout"))


# ---------------------------------------------------------------- the policy


def add_policy(command: argparse.ArgumentParser) -> None:
    """Declare the options that say who writes, besides those of a model."""
    command.add_argument(
        "--script", metavar="FILE", help="instead of a model: a JSON list of texts, played in each trajectory; or "
        "module:name, a list or function",
    )  # fmt: skip
    command.add_argument(
        "--server", metavar="URL", help="an engine that takes token ids, such as http://127.0.0.1:8000/v1 of vLLM; "
        "--model is then the name under which it serves",
    )  # fmt: skip
    command.add_argument(
        "--tokenizer", metavar="NAME", help="a folder or a name of transformers: records get token ids and a mask; "
        "with --server by default the model's name",
    )  # fmt: skip


def format_of(arguments: argparse.Namespace) -> Format | None:
    """The format of the calls, by its name or that of a parser of verl's or open-instruct's; None for native ones.

    Raises:
        FormatError: there is none of this name.
    """
    from agentkit import formats
    from agentkit.rollout.tokens.tool_parsers import OPEN_INSTRUCT_NAMES, VERL_NAMES

    name = arguments.format
    return None if name == NATIVE else formats.get(VERL_NAMES.get(name, OPEN_INSTRUCT_NAMES.get(name, name)))


def policy_of(arguments: argparse.Namespace) -> Policy:
    """A script, an engine, or a model.

    Raises:
        ConfigError: options that do not go together.
    """
    from agentkit.rollout.policy.policies import ModelPolicy, ScriptedPolicy, ServerPolicy

    if arguments.server is not None and (arguments.script is not None or arguments.base_url is not None):
        raise ConfigError(
            "--server takes token ids, and --base-url messages; name one of --server, --base-url, --script"
        )
    if arguments.script is not None:
        return ScriptedPolicy(_script(arguments.script))
    if arguments.server is not None:
        own = arguments.api_key_env
        key = os.environ.get(KEY) if own is None else key_in(own)
        return ServerPolicy(arguments.model, arguments.server, api_key=key or None)
    chosen = ModelChoice(arguments.model, base_url=arguments.base_url, api_key_env=arguments.api_key_env)
    return ModelPolicy(chosen.create(), format_of(arguments))


def _script(where: str) -> Any:
    """A script: the turns of a JSON file, or a Python object.

    Raises:
        ConfigError: it is neither.
    """
    if not where.endswith(".json"):
        from agentkit.tool.references import load

        find_here(where)
        return load(where)
    try:
        turns = json.loads(Path(where).read_text(encoding="utf-8"))
    except (OSError, ValueError) as e:
        raise ConfigError(f"--script {where}: {e}") from e
    if not isinstance(turns, list) or not all(isinstance(turn, str) for turn in turns):
        raise ConfigError(f"--script {where}: expected a JSON list of texts, one for each turn, found {turns!r:.60}")
    return turns


def tokenizer_of(arguments: argparse.Namespace) -> Any:
    """The tokenizer of transformers; None if there is to be none.

    Raises:
        ConfigError: transformers is missing, or has no tokenizer of this name.
    """
    name = arguments.tokenizer or (arguments.model if arguments.server is not None else None)
    if name is None:
        return None
    try:
        from transformers import AutoTokenizer
    except ImportError as e:
        raise ConfigError(f"--tokenizer {name}: reading it needs transformers: pip install transformers") from e
    try:
        return AutoTokenizer.from_pretrained(name)
    except Exception as e:
        first = next(iter(str(e).splitlines()), "")
        raise ConfigError(f"--tokenizer {name}: transformers cannot load it: {type(e).__name__}: {first}") from e
