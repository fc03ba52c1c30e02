"""open-instruct's configuration of tools: names, one JSON object for each, new names; as flags, and as rollout tools.

The flags of each tool's settings are generated from its configuration class, a dataclass with `tool_class`. Every error
names the flag and the reason.
"""

from __future__ import annotations

import argparse
import importlib
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, is_dataclass
from typing import Any, Final, NoReturn

from agentkit.checks.spelling import did_you_mean, then, unknown
from agentkit.errors import AgentkitError, ConfigError
from agentkit.interop.open_instruct.open_instruct_shape import InstructShaped, fields_of
from agentkit.rollout.tools.decorated_tool import as_rollout_tool
from agentkit.schemas.typed.values import DuplicateKey, load

Registry = Mapping[str, type[Any]]
"""Configuration classes by the names of their tools: open-instruct's `TOOL_REGISTRY`."""

_NAMES: Final = ("--tool_override_names", "--tool_call_names")
_OVERRIDE: Final = "override_name"


def ready_made() -> Registry:
    """The ready-made tools by open-instruct's names, such as `serper_search`."""
    registry: Registry = importlib.import_module("agentkit_tools.instruct_configs").TOOL_REGISTRY
    return registry


def is_config(found: Any) -> bool:
    """Say if this is a configuration class of open-instruct's form: a dataclass that names its `tool_class`."""
    return isinstance(found, type) and is_dataclass(found) and hasattr(found, "tool_class")


@dataclass(frozen=True, slots=True)
class ToolSettings:
    """One of the chosen tools.

    Args:
        name: in the registry.
        config: an object of its configuration class.
        where: the flag, for messages.
    """

    name: str
    config: Any
    where: str


class InstructConfig:
    """The chosen tools and their settings.

    >>> config = InstructConfig(["serper_search"], ['{"num_results": 10}'], ["web"])
    >>> config.get_tool_config("serper_search").num_results
    10

    Args:
        tools: names in the registry.
        configs: a JSON object for each of them, as text or as a dict; `{}` for the defaults. None for all defaults.
        override_names: a new name for each of them; None, or an empty one, keeps the tool's own.
        registry: the configuration classes; by default those of the ready-made tools.

    Raises:
        ConfigError: a name is unknown, the numbers differ, or a setting is wrong; names the flag and the reason.
    """

    def __init__(
        self,
        tools: Sequence[str],
        configs: Sequence[str | Mapping[str, Any]] | None = None,
        override_names: Sequence[str] | None = None,
        registry: Registry | None = None,
    ) -> None:
        known = ready_made() if registry is None else registry
        for name in tools:
            if name not in known:
                raise ConfigError(f"--tools: {unknown('tool', name, known)}")
        given = _one_for_each(configs, tools, "--tool_configs", "JSON object(s)", "'{}' for the defaults")
        names = _one_for_each(override_names, tools, _NAMES[0], "name(s)", "the tool's own name to keep it")
        self.tools = tuple(
            _settings(name, known[name], given[at], names[at], f"--tool_configs[{at}] ({name})")
            for at, name in enumerate(tools)
        )

    def get_tool_config(self, name: str) -> Any:
        """The configuration object of a chosen tool.

        Args:
            name: in the registry, or the new name.

        Raises:
            ConfigError: it was not chosen.
        """
        for one in self.tools:
            if name in (one.name, getattr(one.config, _OVERRIDE, None)):
                return one.config
        raise ConfigError(unknown("chosen tool", name, [one.name for one in self.tools]))

    def rollout_tools(self) -> list[Any]:
        """The tools, for `Rollout(tools=…)`.

        Raises:
            ConfigError: one cannot be constructed, or two have the same name; names the flag and the reason.
        """
        made: list[Any] = []
        names: dict[str, str] = {}
        for one in self.tools:
            tool = _rollout_tool(one)
            for name in tool.tools:
                if name in names:
                    raise ConfigError(
                        f"--tools: {one.name} and {names[name]} have a tool with the name {name!r}; rename one with "
                        f"{_NAMES[0]}"
                    )
                names[name] = one.name
            made.append(tool)
        return made


def add_flags(parser: argparse.ArgumentParser, registry: Registry | None = None) -> None:
    """Add `--tools`, `--tool_configs`, `--tool_override_names`, and a flag for each setting of each tool.

    Args:
        parser: of the command line.
        registry: the configuration classes; by default those of the ready-made tools.
    """
    known = ready_made() if registry is None else registry
    parser.add_argument("--tools", nargs="*", default=[], metavar="NAME", help=f"tools: {', '.join(known)}")
    add_settings(parser, known)


def add_settings(parser: argparse.ArgumentParser, registry: Registry | None = None) -> None:
    """Add all flags but `--tools`, for a command line that has its own `--tools`.

    Args:
        parser: of the command line.
        registry: the configuration classes; by default those of the ready-made tools.
    """
    known = ready_made() if registry is None else registry
    parser.add_argument("--tool_configs", nargs="*", metavar="JSON", help="a JSON object for each tool")
    parser.add_argument(*_NAMES, dest="tool_override_names", nargs="*", metavar="NAME", help="a name for each tool")
    for name, cls in known.items():
        group = parser.add_argument_group(f"settings of {name}")
        for field in fields_of(cls).values():
            if field.name != _OVERRIDE:
                flag, dest = _flag(name, field.name), _dest(name, field.name)
                group.add_argument(flag, dest=dest, metavar=field.name.upper(), help=_default(field))


def config_from_flags(flags: argparse.Namespace, registry: Registry | None = None) -> InstructConfig:
    """Read the flags of `add_flags`.

    Raises:
        ConfigError: names the flag and the reason.
    """
    known = ready_made() if registry is None else registry
    tools = list(flags.tools or ())
    given = _one_for_each(flags.tool_configs, tools, "--tool_configs", "JSON object(s)", "'{}' for the defaults")
    configs = [_object(one, f"--tool_configs[{at}] ({tools[at]})") for at, one in enumerate(given)]
    for name, cls in known.items():
        for field in fields_of(cls):
            text = getattr(flags, _dest(name, field), None)
            if text is None:
                continue
            flag = _flag(name, field)
            if name not in tools:
                raise ConfigError(f"{flag}: {name} is not among --tools {' '.join(tools)}")
            config = configs[tools.index(name)]
            if field in config:
                raise ConfigError(f"{flag}: --tool_configs also says {field}; remove one of them")
            config[field] = _read(text, _hints(cls)[field], flag)
    return InstructConfig(tools, configs, flags.tool_override_names, known)


def parse_flags(arguments: Sequence[str], registry: Registry | None = None) -> InstructConfig:
    """The tools that a command line chooses.

    >>> parse_flags(["--tools", "s2_search", "--tool_override_names", "search"]).tools[0].config.override_name
    'search'

    Raises:
        ConfigError: names the flag and the reason.
    """
    parser = _Parser(add_help=False, allow_abbrev=False)
    add_flags(parser, registry)
    return config_from_flags(parser.parse_args(arguments), registry)


class _Parser(argparse.ArgumentParser):
    """Raises what argparse would print before it ends the process."""

    def error(self, message: str) -> NoReturn:
        found = message.removeprefix("unrecognized arguments: ").split(" ")[0]
        hint = did_you_mean(found, self._option_string_actions) if message.startswith("unrecognized") else ""
        raise ConfigError(f"{message}{hint}")


def _one_for_each(given: Sequence[Any] | None, tools: Sequence[str], flag: str, what: str, hint: str) -> list[Any]:
    if given is None:
        return [None] * len(tools)
    if given and not tools:
        raise ConfigError(f"{flag}: found {len(given)} {what}, but --tools names no tool that takes them")
    if len(given) != len(tools):
        raise ConfigError(
            f"{flag}: found {len(given)} for --tools {' '.join(tools)}; write {len(tools)} {what}, in the same order, "
            f"with {hint}"
        )
    return list(given)


def _settings(name: str, cls: type[Any], given: Any, new_name: str | None, where: str) -> ToolSettings:
    if not is_config(cls):
        raise ConfigError(f"--tools: {name}: expected a dataclass with tool_class in the registry, found {cls!r:.60}")
    values, known, hints = _object(given, where), fields_of(cls), _hints(cls)
    for key, value in values.items():
        if key not in known:
            hint = then(did_you_mean(key, known), "it has " + ", ".join(known))
            raise ConfigError(f"{where}: there is no setting {key!r:.60}{hint}")
        _refuse_type(value, hints[key], f"{where}: {key}")
    if missing := [key for key, one in known.items() if key not in values and _required(one)]:
        raise ConfigError(f"{where}: {missing[0]} is missing and has no default")
    if new_name:
        if values.get(_OVERRIDE) not in (None, new_name):
            raise ConfigError(f"{_NAMES[0]}: {new_name!r}, but {where} says override_name {values[_OVERRIDE]!r}")
        if _OVERRIDE not in known:
            raise ConfigError(f"{_NAMES[0]}: {name} cannot be renamed: {cls.__name__} has no override_name")
        values[_OVERRIDE] = new_name
    return ToolSettings(name, cls(**values), where)


def _object(given: Any, where: str) -> dict[str, Any]:
    if isinstance(given, str):
        try:
            given = load(given)
        except DuplicateKey as e:
            raise ConfigError(f"{where}: {e}") from None
        except ValueError as e:
            raise ConfigError(f"{where}: not JSON: {e}; found {given!r:.80}") from e
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ConfigError(f"{where}: expected a JSON object, found {given!r:.80}")
    return dict(given)


def _hints(cls: type[Any]) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _refuse_type(value: Any, hint: Any, where: str) -> None:
    from pydantic import TypeAdapter, ValidationError

    try:
        TypeAdapter(hint).validate_python(value, strict=True)
    except ValidationError as e:
        raise ConfigError(f"{where}: {_words(e)}; found {value!r:.60}") from None


def _read(text: str, hint: Any, flag: str) -> Any:
    """The text of a flag as its type says: JSON for lists and dicts."""
    from pydantic import TypeAdapter, ValidationError

    adapter = TypeAdapter(hint)
    try:
        return adapter.validate_json(text) if text[:1] in ("[", "{") else adapter.validate_strings(text)
    except ValidationError as e:
        raise ConfigError(f"{flag}: {_words(e)}; found {text!r:.60}") from None


def _words(error: Any) -> str:
    return str(error.errors(include_url=False)[0]["msg"])


def _required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _flag(tool: str, field: str) -> str:
    return f"--{tool}_{field}"


def _dest(tool: str, field: str) -> str:
    return f"settings_{tool}_{field}"


def _default(field: Field[Any]) -> str:
    if _required(field):
        return "required"
    default = field.default if field.default is not MISSING else "…"
    return f"default: {default}".replace("%", "%%")


def _rollout_tool(one: ToolSettings) -> Any:
    cls, config = type(one.config).tool_class, one.config
    new_name = getattr(config, _OVERRIDE, None)
    try:
        if callable(getattr(config, "build", None)):
            built = config.build()
        else:
            built = cls(**{name: getattr(config, name) for name in fields_of(type(config))})
        if InstructShaped.recognises(built):
            return InstructShaped(built, where=one.where)
        return _renamed(built, new_name)
    except AgentkitError as e:
        raise ConfigError(f"{one.where}: {e}") from e
    except Exception as e:  # the constructor is the author's code
        raise ConfigError(f"{one.where}: {cls.__name__} could not be constructed: {type(e).__name__}: {e}") from e


def _renamed(built: Any, new_name: str | None) -> Any:
    """A tool with decorated methods, or a source of tools; under a new name if it is only one."""
    made = as_rollout_tool(built)
    if not new_name or new_name in made.tools:
        return made
    if len(made.tools) != 1:
        raise ConfigError(f"{_NAMES[0]}: it has {len(made.tools)} tools, {', '.join(made.tools)}, and one new name")
    (bound,) = made.tools.values()
    old = bound.name if callable(getattr(built, "bound_tools", None)) else bound.method_name
    return as_rollout_tool(built, names={old: new_name})
