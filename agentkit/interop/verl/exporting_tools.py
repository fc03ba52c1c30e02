"""Agentkit tools as verl's tool classes, with an instance for the whole trajectory, unlike those of verl's loop.

verl creates and releases a tool for every call, passes on only `create_kwargs`, and never asks for `calc_reward`. Its
`execute` receives the trajectory's `agent_data`, though: the instance is kept by that. Loops up to 0.7 that hand all
phases the request's id get the lifecycle that they mean. Source: verl 0.9.1 `ToolAgentLoop._call_tool`; verl 0.4.1
`sglang_rollout`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final
from uuid import uuid4

from agentkit.errors import ConfigError
from agentkit.interop.owned_instance import Trajectories, kwargs_by_tool
from agentkit.interop.peers import EARLY_VERL_PEER, VERL_PEER, export_parameters, refuse_reserved, require
from agentkit.interop.pil_images import picture
from agentkit.interop.single_call import SingleAnswer
from agentkit.messages import ImagePart
from agentkit.processor import ProcessorConfig
from agentkit.rollout.tools.decorated_tool import as_rollout_tool
from agentkit.tool import ToolResult
from agentkit.toolspec import ToolSpec


def to_verl(
    tool: Any,
    tool_config: Mapping[str, Any] | None = None,
    *,
    fold_reward: bool = True,
    config: ProcessorConfig | None = None,
) -> dict[str, type[Any]]:
    """A class with decorated methods as verl's tools: one subclass of verl's `BaseTool` for each method.

    All methods of a class share one instance in a trajectory.

    Args:
        tool: a class with decorated methods, or whatever a rollout takes as a tool.
        tool_config: keyword arguments of the class's constructor.
        fold_reward: verl 0.8 and later never ask for `calc_reward`: what it would give is added to the reward of each
            call, as the change since the call before, so that the sum over a trajectory is right. It is then called
            after every call; where it fails, the metrics say why under `unscored`, and a later call has the change.
            False leaves it out.
        config: limits of the calls.

    Returns:
        The classes, by function name, to be named in verl's YAML: `class_name: my_tools.Add`.

    Raises:
        ConfigError: verl is not installed.
        SchemaError: a definition is wrong, or a function has a name that verl reserves.
    """
    source = as_rollout_tool(tool, tool_config or {})
    trajectories = Trajectories(source, config)
    refuse_reserved(VERL_PEER, source.tools.values())
    return {name: _tool_class(trajectories, name, fold_reward) for name in source.tools}


def _tool_class(trajectories: Trajectories, name: str, fold_reward: bool) -> type[Any]:
    base = require(VERL_PEER).BaseTool
    schema = verl_schema(trajectories.tool.tools[name].spec)

    def construct(self: Any, config: dict[str, Any] | None = None, tool_schema: Any = None) -> None:
        _begin(self, trajectories, name, fold_reward)
        base.__init__(self, config or {}, tool_schema or schema)

    doc = f"The tool {name!r} for verl."
    kind = "".join(part.capitalize() for part in name.replace("-", "_").split("_"))
    return type(kind, (base,), {**_METHODS, "__init__": construct, "__doc__": doc})


def verl_schema(spec: ToolSpec) -> Any:
    """A tool's schema as verl's own type, with all that verl drops in descriptions."""
    schemas = require(VERL_PEER, "verl.tools.schemas")
    early = schemas.OpenAIFunctionPropertySchema.model_fields["type"].annotation is str
    parameters = export_parameters(EARLY_VERL_PEER if early else VERL_PEER, spec)
    function = {"name": spec.name, "description": spec.description, "parameters": parameters}
    return schemas.OpenAIFunctionToolSchema.model_validate({"type": "function", "function": function})


@lru_cache(maxsize=1)
def configured_tool() -> type[Any]:
    """The class to name in verl's YAML when you do not want to write a module; the entry's `config` says which tool.

    ```yaml
    tools:
      - class_name: agentkit.interop.verl.AgentkitTool
        config: {type: native, tool: "my_tools:Calculator", function: add}
    ```

    Raises:
        ConfigError: verl is not installed.
    """
    base = require(VERL_PEER).BaseTool

    def construct(self: Any, config: dict[str, Any], tool_schema: Any = None) -> None:
        trajectories, name = _configured(config)
        _begin(self, trajectories, name, config.get("fold_reward", True))
        base.__init__(self, config, tool_schema or verl_schema(trajectories.tool.tools[name].spec))

    doc = "A tool of agentkit's, named in the `config` of verl's YAML."
    return type("AgentkitTool", (base,), {**_METHODS, "__init__": construct, "__doc__": doc})


def _configured(config: Mapping[str, Any]) -> tuple[Trajectories, str]:
    """The tool that an entry of verl's YAML names; entries with the same tool and `tool_config` share instances."""
    reference = config.get("tool")
    if not isinstance(reference, str):
        raise ConfigError(f"verl's YAML: config.tool is 'module:Class', found {reference!r:.60}; it has {list(config)}")
    trajectories = _shared(reference, json.dumps(config.get("tool_config") or {}, sort_keys=True))
    names = list(trajectories.tool.tools)
    name = config.get("function", names[0] if len(names) == 1 else None)
    if name not in names:
        raise ConfigError(f"verl's YAML: config.function is one of {', '.join(names)} of {reference}, found {name!r}")
    return trajectories, name


@lru_cache(maxsize=256)
def _shared(reference: str, tool_config: str) -> Trajectories:
    source = as_rollout_tool(reference, json.loads(tool_config))
    refuse_reserved(VERL_PEER, source.tools.values())
    return Trajectories(source)


# ---------------------------------------------------------------- the methods of the generated classes


def _begin(self: Any, trajectories: Trajectories, name: str, fold_reward: bool) -> None:
    self._trajectories, self._function, self._fold = trajectories, name, fold_reward


async def _create(self: Any, instance_id: str | None = None, **kwargs: Any) -> Any:
    """Without an id, as the later loops call it, the trajectory is not known yet: its first call constructs."""
    given = uuid4().hex if instance_id is None else instance_id
    owned = self._trajectories.open(given, self._function)
    owned.tell(self._function, "create", {**(kwargs.pop("create_kwargs", None) or {}), **kwargs})
    if instance_id is not None:
        await owned.begin()
    respond = _response_type()
    return given if respond is None else (given, shown_by(respond, owned.first))


async def _execute(self: Any, instance_id: str, parameters: Any, agent_data: Any = None, **kwargs: Any) -> Any:
    if agent_data is None:
        owned = self._trajectories.open(instance_id, self._function)
        owned.tell(self._function, "execute", kwargs)
    else:
        owned = self._trajectories.of(agent_data, lambda: kwargs_by_tool(agent_data.tools_kwargs))
    answer, reward = await owned.step(self._function, parameters, fold=self._fold and agent_data is not None)
    respond = _response_type()
    told = answer.text if respond is None else shown_by(respond, answer)
    return told, reward, dict(answer.result.metadata)


async def _calc_reward(self: Any, instance_id: str, **kwargs: Any) -> float:
    """Return the final reward, only for the class's first function; with the calls' rewards, which these loops drop."""
    owned = self._trajectories.find(instance_id)
    if owned is None:
        return 0.0
    owned.tell(self._function, "calc_reward", kwargs)
    steps = sum(owned.rewards[self._function]) if self._fold else 0.0
    return steps + (await owned.final() or 0.0 if self._function == self._trajectories.tool.name else 0.0)


async def _release(self: Any, instance_id: str, **kwargs: Any) -> None:
    if (owned := self._trajectories.find(instance_id)) is not None:
        owned.tell(self._function, "release", kwargs)
    await self._trajectories.close(instance_id, self._function)


def _response_type() -> Any:
    """Verl's `ToolResponse`; None up to 0.4, where results are strings."""
    return getattr(require(VERL_PEER, "verl.tools.schemas"), "ToolResponse", None)


def shown_by(respond: Any, answer: SingleAnswer | ToolResult | None) -> Any:
    """Return an answer's text and pictures in verl's type."""
    if answer is None:
        return respond()
    text = answer.text
    shown = [picture(part) for part in answer.parts if isinstance(part, ImagePart)]
    return respond(text=text, image=shown) if shown else respond(text=text)


_METHODS: Final[Mapping[str, Any]] = {
    "create": _create,
    "execute": _execute,
    "calc_reward": _calc_reward,
    "release": _release,
}
