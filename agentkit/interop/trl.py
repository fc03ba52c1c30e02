"""TRL (https://github.com/huggingface/trl): agentkit tools as `tools=`, and as the class for `environment_factory=`.

TRL reads functions: name, type hints, docstring. It awaits async ones on its own loop and calls plain ones in its own
thread, so everything that belongs to one trajectory runs on a loop in a separate thread.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agentkit.errors import ConfigError
from agentkit.interop.background_loop import BackgroundLoop
from agentkit.interop.callables import drop_omitted, function_like
from agentkit.interop.owned_instance import OwnedInstance, kwargs_by_tool
from agentkit.interop.peers import TRL, export_parameters, refuse_reserved, require
from agentkit.interop.pil_images import picture
from agentkit.interop.single_call import LONGEST, SingleAnswer, answer_call
from agentkit.messages import ImagePart, TextPart
from agentkit.processor import ProcessorConfig
from agentkit.rollout.tools.decorated_tool import as_rollout_tool
from agentkit.rollout.tools.per_trajectory import RolloutTool
from agentkit.tool import ToolRegistry

_LOOP: Final = BackgroundLoop("agentkit tools in TRL")


def to_trl(tools: Any, *, config: ProcessorConfig | None = None) -> list[Callable[..., Any]]:
    """Tools as the functions that a TRL trainer takes as `tools=`.

    They know no trajectory: an instance, or a class, is shared by all of them. For a tool with state use
    `to_trl_environment`.

    Args:
        tools: what `ToolRegistry` accepts: one tool, or a list.
        config: limits of the calls.

    Raises:
        ConfigError: TRL is not installed.
        SchemaError: a definition is wrong, or a function has a name that TRL reserves.
    """
    require(TRL)
    registry = ToolRegistry(tools)
    refuse_reserved(TRL, registry.tools.values())
    functions = []
    for spec in registry.offered_specs(None):
        parameters = export_parameters(TRL, spec)

        async def call(_name: str = spec.name, _parameters: Any = parameters, /, **arguments: Any) -> Any:
            return _told(await answer_call(registry, _name, drop_omitted(arguments, _parameters), config=config))

        functions.append(function_like(spec, parameters, call))
    return functions


def to_trl_environment(
    tool: Any,
    tool_config: Mapping[str, Any] | None = None,
    *,
    columns: Sequence[str] = (),
    reward: bool | None = None,
    config: ProcessorConfig | None = None,
) -> type[Any]:
    """A class with decorated methods as the class that a TRL trainer takes as `environment_factory=`.

    Each rollout has an instance: `reset` releases the last and creates the next.

    Args:
        tool: a class with decorated methods, or whatever a rollout takes as a tool.
        tool_config: keyword arguments of the class's constructor.
        columns: the columns of the data set that are keyword arguments of its `create`, or of its constructor if it has
            no `create`. A column `tools_kwargs`, as verl's data sets have it, is read besides.
        reward: whether the class has TRL's `get_reward`, which tells the rewards of all calls and the final one; None
            for a class that has `calc_reward`. Without it the trainer needs `reward_funcs`.
        config: limits of the calls.

    Raises:
        ConfigError: TRL is not installed.
        SchemaError: a definition is wrong, or a function has a name that TRL reserves.
    """
    require(TRL)
    source = as_rollout_tool(tool, tool_config or {})
    refuse_reserved(TRL, source.tools.values())
    rewarded = callable(getattr(tool, "calc_reward", None)) if reward is None else reward
    members: dict[str, Any] = {name: _method(source, name) for name in source.tools}
    members |= {"__init__": _construct, "reset": _resetting(source, tuple(columns), config)}
    if rewarded:
        members["get_reward"] = _get_reward
    kind = getattr(tool, "__name__", source.name)
    return type(f"{kind}Environment", (), {**members, "__doc__": f"{kind} for TRL, one for each rollout."})


def _method(source: RolloutTool, name: str) -> Callable[..., Any]:
    """A public method of the environment: async if ours is, so that TRL runs several at a time."""
    spec = source.tools[name].spec
    parameters = export_parameters(TRL, spec)
    call: Callable[..., Any]
    if source.tools[name].is_async:

        async def call(self: Any, **arguments: Any) -> Any:
            return _told(await _LOOP.wait(_owned(self, name).call(name, drop_omitted(arguments, parameters))))
    else:

        def call(self: Any, **arguments: Any) -> Any:
            return _told(_LOOP.run(_owned(self, name).call(name, drop_omitted(arguments, parameters)), LONGEST))

    made: Any = function_like(spec, parameters, call)
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    made.__signature__ = made.__signature__.replace(
        parameters=[
            first,
            *(p.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in made.__signature__.parameters.values()),
        ]
    )
    return call


def _construct(self: Any) -> None:
    self._owned, self._leave = None, lambda: None


def _resetting(source: RolloutTool, columns: tuple[str, ...], config: ProcessorConfig | None) -> Callable[..., Any]:
    def reset(self: Any, **row: Any) -> str | None:
        self._leave()
        owned = self._owned = OwnedInstance(source, kwargs_by_tool(row.get("tools_kwargs")), config)
        self._leave = _LOOP.finish_after(self, owned.release)  # TRL tells no rollout's end
        owned.tell(source.name, "create", {column: row[column] for column in columns})
        _LOOP.run(owned.begin(), LONGEST)
        return None if owned.first is None else owned.first.text

    return reset


def _owned(self: Any, name: str) -> OwnedInstance:
    owned: OwnedInstance | None = self._owned
    if owned is None:
        raise ConfigError(f"{type(self).__name__}: {name} was called before reset, with which a rollout begins")
    return owned


def _get_reward(self: Any) -> float:
    total: float = _LOOP.run(_owned(self, "get_reward").total(), LONGEST)
    return total


def _told(answer: SingleAnswer) -> Any:
    """Return the answer as text, or as content blocks if there are images."""
    if not any(isinstance(part, ImagePart) for part in answer.parts):
        return answer.text
    return [
        {"type": "text", "text": part.text} if isinstance(part, TextPart) else {"type": "image", "image": picture(part)}
        for part in answer.parts
    ]
