"""SkyRL-gym (https://github.com/NovaSky-AI/SkyRL): agentkit tools as a `ToolGroup`, one for each environment.

SkyRL calls tools in its own event loop, by position, and knows no schema: an environment writes its own prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from agentkit.checks.keys import words
from agentkit.interop.background_loop import BackgroundLoop
from agentkit.interop.owned_instance import OwnedInstance
from agentkit.interop.peers import SKYRL, refuse_reserved, require
from agentkit.interop.single_call import LONGEST, SingleAnswer
from agentkit.processor import ProcessorConfig
from agentkit.rollout.samples.sample import ToolKwargs
from agentkit.rollout.tools.decorated_tool import as_rollout_tool
from agentkit.rollout.tools.per_trajectory import RolloutTool

_LOOP: Final = BackgroundLoop("agentkit tools in SkyRL")


def to_skyrl(
    tool: Any,
    tool_config: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    config: ProcessorConfig | None = None,
) -> type[Any]:
    """A class with decorated methods as a subclass of SkyRL's `ToolGroup`.

    `Group(**create)` makes an instance for one environment: pass it to `init_tool_groups`, and call its `close` in the
    environment's. `total_reward` tells the rewards of all calls and the final one, for the environment's `step`.

    Args:
        tool: a class with decorated methods, or whatever a rollout takes as a tool.
        tool_config: keyword arguments of the class's constructor.
        name: the group's name; by default the class's.
        config: limits of the calls.

    Raises:
        ConfigError: skyrl-gym is not installed.
        SchemaError: a definition is wrong, or a function has a name that SkyRL reserves.
    """
    core = require(SKYRL, "skyrl_gym.tools.core")
    source = as_rollout_tool(tool, tool_config or {})
    refuse_reserved(SKYRL, source.tools.values())
    group = name or getattr(tool, "__name__", source.name)

    def construct(self: Any, **create: Any) -> None:
        self._owned = OwnedInstance(source, {source.name: ToolKwargs(create=create)}, config)
        self._leave = _LOOP.finish_after(self, self._owned.release)  # if its environment forgets `close`
        core.ToolGroup.__init__(self, name=group)

    members: dict[str, Any] = {each: core.tool(_method(source, each)) for each in source.tools}
    members |= {"__init__": construct, "total_reward": _total_reward, "close": _close}
    return type(f"{group}Group", (core.ToolGroup,), {**members, "__doc__": f"{group} for SkyRL."})


def _method(source: RolloutTool, name: str) -> Callable[..., Any]:
    """A method that takes what SkyRL passes: values by position, in the order of the schema, or by name."""
    names = list(source.tools[name].spec.parameters.get("properties", ()))

    def call(self: Any, *values: Any, **arguments: Any) -> str:
        given = dict(zip(names, values, strict=False))
        if wrong := _misplaced(names, values, given.keys() & arguments.keys()):
            return f"invalid arguments for {name}: {wrong}"
        try:
            answer: SingleAnswer = _LOOP.run(self._owned.call(name, given | arguments), LONGEST)
        except Exception as e:  # noqa: BLE001 - the boundary: the tool's own `create`, whose error would end SkyRL's batch
            return f"{name} cannot be called: {self._owned.failed or words(e)}"
        return answer.text

    call.__name__ = call.__qualname__ = name
    call.__doc__ = source.tools[name].spec.description
    return call


def _misplaced(names: Sequence[str], values: Sequence[Any], twice: Collection[str]) -> str:
    """Return an error message for values by position; empty if they are right."""
    if len(values) > len(names):
        return f"it takes {len(names)} values ({', '.join(names)}), found {len(values)}"
    return f"{min(twice)} was given by position and by name" if twice else ""


def _total_reward(self: Any) -> float:
    """The rewards of all calls so far, and the final one."""
    total: float = _LOOP.run(self._owned.total(), LONGEST)
    return total


def _close(self: Any) -> None:
    """Release the instance; once, at the end of the environment."""
    _LOOP.run(self._owned.release(), LONGEST)
