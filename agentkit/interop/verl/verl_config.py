"""verl's configuration of tools: a YAML file, read with OmegaConf, as rollout tools.

Every error names the file, the path of the key, and the reason. Knows no MCP: the caller may say how `mcp` entries
become tools.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final

from agentkit.checks.bounds import SECONDS, TEXT, Bound, each, instance, one_of, or_none
from agentkit.checks.spelling import did_you_mean, then
from agentkit.errors import AgentkitError, ConfigError, install_command
from agentkit.interop.verl.class_names import get_tool_class
from agentkit.interop.verl.verl_shape import VerlShaped
from agentkit.rollout.tools.decorated_tool import as_rollout_tool
from agentkit.schemas.walk import map_strings

_KEYS: Final = ("class_name", "config", "tool_schema", "mcp")
_MCP_KEYS: Final = ("mcp_servers_config_path", "tool_selected_list")
_VARIABLE: Final = re.compile(r"(?<!\\)\$\{([A-Za-z_]\w*)\}")


class ToolType(Enum):
    """The kinds of tools that verl's configuration has (`config.type`)."""

    NATIVE = "native"
    MCP = "mcp"
    SANDBOX_FUSION = "sandbox_fusion"


_TYPE: Final = one_of(one.value for one in ToolType)
_CLASS_NAME: Final = Bound(lambda name: isinstance(name, str) and name != "", "the dotted name of a class")


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """One entry under `tools`.

    Args:
        class_name: the class's dotted name.
        config: what its constructor gets.
        schema: its declaration, in OpenAI's form; None if the class has its own.
        where: the file and the path of the entry, for messages.
    """

    class_name: str
    config: Mapping[str, Any] = field(repr=False)  # may hold keys from the environment
    schema: Mapping[str, Any] | None
    where: str


@dataclass(frozen=True, slots=True)
class McpEntry:
    """One entry with `config.type: mcp`.

    Args:
        servers: the path of the JSON file that lists the servers.
        selected: the names of the tools to offer; None offers all.
        timeout: seconds for a call.
        where: the file and the path of the entry, for messages.
    """

    servers: Path
    selected: tuple[str, ...] | None
    timeout: float
    where: str


def verl_tools(
    path: str | os.PathLike[str],
    *,
    allow: Iterable[str] = (),
    mcp: Callable[[McpEntry], Sequence[Any]] | None = None,
) -> list[Any]:
    """The tools of a YAML file of verl's, for `Rollout(tools=…)`.

    Args:
        path: the file: `tools: [{class_name, config, tool_schema}]`. `${NAME}` is an environment variable, unless the
            file has such a key; the rest is OmegaConf's.
        allow: the modules, packages or classes that it may load, besides the ready-made tools.
        mcp: makes the tools of an `mcp` entry, such as `agentkit.interop.verl.mcp_tools`; None refuses these entries.

    Returns:
        A `VerlShaped` for each class of verl's shape, a `RolloutTool` for other classes, and what `mcp` returned.

    Raises:
        ConfigError: it is wrong; the message names the file, the path of the key, and the reason.
    """
    allowed = (allow,) if isinstance(allow, str) else tuple(allow)
    made: list[Any] = []
    for entry in read_verl_config(path):
        if isinstance(entry, ToolEntry):
            made.append(_tool(entry, allowed))
        elif mcp is None:
            raise ConfigError(f"{entry.where}: type mcp: pass mcp=agentkit.interop.verl.mcp_tools to load these tools")
        else:
            made += mcp(entry)
    _refuse_same_names(made, str(path))
    return made


def read_verl_config(path: str | os.PathLike[str]) -> tuple[ToolEntry | McpEntry, ...]:
    """The entries of a YAML file of verl's. No class is loaded.

    Raises:
        ConfigError: it is wrong; the message names the file, the path of the key, and the reason.
    """
    found = _resolved(Path(path))
    entries = found.get("tools") if isinstance(found, dict) else None
    if not isinstance(entries, list):
        keys = ", ".join(map(str, found)) if isinstance(found, dict) else type(found).__name__
        raise ConfigError(f"{path}: tools: expected a list of tools, found {'the keys ' if keys else 'nothing'}{keys}")
    return tuple(_entry(entry, f"{path}: tools[{at}]", Path(path).parent) for at, entry in enumerate(entries))


def _resolved(path: Path) -> Any:
    """The file's content, with its variables in place."""
    try:
        import yaml
        from omegaconf import OmegaConf
        from omegaconf.errors import InterpolationKeyError, InterpolationResolutionError, OmegaConfBaseException
    except ImportError as e:
        raise ConfigError(f"{path}: reading it needs OmegaConf: {install_command('rollout')}") from e
    try:
        config = OmegaConf.load(path)
        raw = OmegaConf.to_container(config, resolve=False)
        names = set(raw) if isinstance(raw, dict) else set()
        return OmegaConf.to_container(OmegaConf.create(_from_environment(raw, names)), resolve=True)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        raise ConfigError(f"{path}: cannot be read as YAML: {e}") from e
    except (InterpolationKeyError, InterpolationResolutionError) as e:
        reason = str(e.msg or e).partition("\n")[0]
        raise ConfigError(f"{path}: {e.full_key}: {reason}") from e
    except OmegaConfBaseException as e:
        raise ConfigError(f"{path}: {str(e).partition(chr(10))[0]}") from e


def _from_environment(value: Any, keys: set[Any]) -> Any:
    """Write `${NAME}` as OmegaConf does, where the file has no such key."""

    def variable(found: re.Match[str]) -> str:
        return found[0] if found[1] in keys else f"${{oc.env:{found[1]}}}"

    return map_strings(value, lambda text: _VARIABLE.sub(variable, text))


def _entry(found: Any, where: str, folder: Path) -> ToolEntry | McpEntry:
    entry = _mapping(found, where, _KEYS)
    config = _mapping(entry.get("config") or {}, f"{where}.config")
    kind = _value(config, "type", f"{where}.config", _TYPE, "mcp" if "mcp" in entry else "native")
    if kind == "mcp":
        return _mcp_entry(entry, config, where, folder)
    if "mcp" in entry:
        raise ConfigError(f"{where}.mcp: only for tools with config.type: mcp, found type {kind!r}")
    name = _value(entry, "class_name", where, _CLASS_NAME)
    schema = entry.get("tool_schema")
    return ToolEntry(name, config, None if schema is None else _schema(schema, f"{where}.tool_schema"), where)


def _mcp_entry(entry: Mapping[str, Any], config: Mapping[str, Any], where: str, folder: Path) -> McpEntry:
    given = _mapping(entry.get("mcp"), f"{where}.mcp", _MCP_KEYS)
    servers = Path(_value(given, "mcp_servers_config_path", f"{where}.mcp", instance(str, "a path"))).expanduser()
    selected = _value(given, "tool_selected_list", f"{where}.mcp", or_none(each(TEXT, "a list of names")))
    timeout = _value(config, "timeout", f"{where}.config", SECONDS, 60.0)
    beside = folder / servers  # verl looks in the working folder; a path next to the YAML is what is mostly meant
    return McpEntry(servers if servers.exists() else beside, tuple(selected) if selected else None, timeout, where)


def _schema(found: Any, where: str) -> Mapping[str, Any]:
    schema = _mapping(found, where, ("type", "function"))
    _value(schema, "type", where, Bound(lambda kind: kind == "function", "'function'"), "function")
    function = _mapping(schema.get("function"), f"{where}.function")
    _value(function, "name", f"{where}.function", TEXT)
    _value(function, "description", f"{where}.function", TEXT, "")
    _mapping(function.get("parameters") or {}, f"{where}.function.parameters")
    return {"type": "function", "function": function}


def _value(of: Mapping[str, Any], key: str, where: str, bound: Bound, default: Any = None) -> Any:
    value = of.get(key, default)
    if not bound.holds(value):
        hint = did_you_mean(str(value), bound.choices)
        raise ConfigError(f"{where}.{key}: expected {bound.words}, found {value!r:.60}{hint}")
    return value


def _mapping(found: Any, where: str, keys: Sequence[str] = ()) -> Mapping[str, Any]:
    """A mapping of strings, with no other keys than these."""
    if not isinstance(found, dict):
        raise ConfigError(f"{where}: expected a mapping, found {found!r:.60}")
    for key in found:
        if not isinstance(key, str) or (keys and key not in keys):
            hint = then(did_you_mean(str(key), keys), f"it has {', '.join(keys)}")
            raise ConfigError(f"{where}: unknown key {key!r:.60}{hint}")
    return found


def _tool(entry: ToolEntry, allow: Sequence[str]) -> Any:
    try:
        cls = get_tool_class(entry.class_name, allow)
    except ConfigError as e:
        raise ConfigError(f"{entry.where}.class_name: {e}") from e
    if VerlShaped.recognises(cls):
        return VerlShaped(cls, config=entry.config, schema=entry.schema, where=entry.where)
    config = {key: value for key, value in entry.config.items() if key != "type"}
    try:
        made = as_rollout_tool(cls, config=config)
    except AgentkitError as e:
        raise ConfigError(f"{entry.where}: {e}") from e
    return made if entry.schema is None else _as_declared(made, entry.schema["function"]["name"], cls, config, entry)


def _as_declared(made: Any, name: str, cls: type, config: Mapping[str, Any], entry: ToolEntry) -> Any:
    """Return the class's one tool, under the name that the file gives it. Its own schema stays: that is checked."""
    if list(made.tools) == [name]:
        return made
    if len(made.tools) != 1:
        raise ConfigError(
            f"{entry.where}.tool_schema: {cls.__name__} declares its own tools, {', '.join(made.tools)}; remove "
            "tool_schema"
        )
    (bound,) = made.tools.values()
    return as_rollout_tool(cls, config=config, names={bound.method_name: name})


def _refuse_same_names(tools: Iterable[Any], path: str) -> None:
    names: set[str] = set()
    for tool in tools:
        bound = tool.tools if hasattr(tool, "tools") else {one.name: one for one in tool.bound_tools()}
        for name in bound:
            if name in names:
                raise ConfigError(f"{path}: tools: two tools have the name {name!r}; rename one in its tool_schema")
            names.add(name)
