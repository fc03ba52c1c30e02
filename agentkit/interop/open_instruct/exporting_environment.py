"""Agentkit tools as open-instruct's environments, which its tools are since February 2026: one for each rollout.

An actor of Ray holds each of them, so the class carries what makes the tools and builds them there: it pickles.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import field, make_dataclass
from functools import partial
from time import perf_counter
from typing import Any, ClassVar

from agentkit.interop.owned_instance import OwnedInstance
from agentkit.interop.peers import OPEN_INSTRUCT, refuse_reserved, require
from agentkit.processor import ProcessorConfig
from agentkit.rollout.samples.sample import ToolKwargs
from agentkit.rollout.tools.decorated_tool import as_rollout_tool
from agentkit.schemas.flavours import FLAVOURS


def to_open_instruct(
    tool: Any,
    tool_config: Mapping[str, Any] | None = None,
    *,
    name: str | None = None,
    fold_reward: bool = True,
    config: ProcessorConfig | None = None,
) -> type[Any]:
    """A class with decorated methods as the configuration of an environment, to be put into open-instruct's registry.

    `TOOL_REGISTRY["adder"] = to_open_instruct(Adder, name="adder")`, then `--tools adder`. `reset` releases the last
    rollout's instance and creates the next, with the arguments of the data set's `env_config`.

    Args:
        tool: a class with decorated methods, or whatever a rollout takes as a tool.
        tool_config: keyword arguments of the class's constructor; `--tool_configs` overrides them.
        name: its name in the registry; by default the first function's.
        fold_reward: open-instruct never asks for `calc_reward`: what it would give is added to the reward of each step,
            as the change since the step before. It is then called after every step; where it fails, the metadata say
            why under `unscored`, and a later step has the change. False leaves it out.
        config: limits of the calls.

    Raises:
        ConfigError: open-instruct cannot be imported, or has no environments (before February 2026).
        SchemaError: a definition is wrong, or a function has a name that open-instruct reserves.
    """
    base = require(OPEN_INSTRUCT, "open_instruct.environments.base")
    states = require(OPEN_INSTRUCT, "openenv.core.env_server.types")
    source = as_rollout_tool(tool, tool_config or {})
    refuse_reserved(OPEN_INSTRUCT, source.tools.values())
    named = name or source.name
    definitions = [FLAVOURS["chat"](bound.spec) for bound in source.tools.values()]
    types = (base.StepResult, states.State)
    del source  # nothing below may hold it: the class is pickled

    def construct(self: Any, call_name: str = named, **own: Any) -> None:
        settings = {key: value for key, value in own.items() if key != "pool_size"}
        self._source = as_rollout_tool(tool, {**(tool_config or {}), **settings})
        self._types, self._config, self._fold = types, config, fold_reward
        self._owned = None
        self._steps = 0

    members = {
        **_METHODS,
        "__init__": construct,
        "__doc__": f"{named} for open-instruct.",
        "config_name": named,
        "call_name": named,
        "get_tool_definitions": classmethod(lambda cls: definitions),
    }
    environment = type(f"{named.title().replace('_', '')}Environment", (base.RLEnvironment,), members)
    options = [
        (key, Any, field(default_factory=partial(deepcopy, value))) for key, value in (tool_config or {}).items()
    ]
    namespace = {"tool_class": environment, "__annotations__": {"tool_class": ClassVar[type]}}
    made: type[Any] = make_dataclass(
        f"{named.title().replace('_', '')}Config", options, bases=(base.BaseEnvConfig,), namespace=namespace
    )
    setattr(made, "tool_class", environment)  # noqa: B010 - the type checker knows no such attribute
    return made


async def _setup(self: Any) -> None:
    return None


async def _reset(self: Any, **kwargs: Any) -> tuple[Any, list[dict[str, Any]]]:
    await _leave(self)
    self._steps = 0
    create = ToolKwargs(create=kwargs)
    self._owned = OwnedInstance(self._source, {self._source.name: create}, self._config)
    await self._owned.begin()
    first = self._owned.first
    result, _ = self._types
    return result(result="" if first is None else first.text), self.get_tool_definitions()


async def _step(self: Any, call: Any) -> Any:
    result, _ = self._types
    if call.name not in self._source.tools:
        said = f"there is no tool {call.name!r}; there are {', '.join(self._source.tools)}"
        return result(result=said, metadata={"error": said, "timeout": False, "runtime": 0.0})
    if self._owned is None:
        await _reset(self)
    self._steps += 1
    begun = perf_counter()
    answer, reward = await self._owned.step(call.name, call.args, fold=self._fold)
    metadata = {
        "error": answer.result.error or "",
        "timeout": answer.result.code == "timeout",
        "runtime": perf_counter() - begun,
    }
    if "unscored" in answer.result.metadata:
        metadata["unscored"] = answer.result.metadata["unscored"]
    ends = answer.result.ok and self._source.tools[call.name].policy.terminates
    return result(result=answer.text, reward=reward, done=ends, metadata=metadata)


def _state(self: Any) -> Any:
    _, state = self._types
    return state(step_count=self._steps)


async def _leave(self: Any) -> None:
    owned, self._owned = self._owned, None
    if owned is not None:
        await owned.release()


def _stop_strings(self: Any) -> list[str]:
    return []


_METHODS: Mapping[str, Any] = {
    "setup": _setup,
    "reset": _reset,
    "step": _step,
    "state": _state,
    "close": _leave,
    "get_stop_strings": _stop_strings,
}
