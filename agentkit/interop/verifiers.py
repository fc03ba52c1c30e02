"""verifiers (github.com/PrimeIntellect-ai/verifiers): agentkit tools as a `StatefulToolEnv` (up to 0.3) or `Toolset`.

An environment hands every call the rollout's `state`: the instance is kept by that, and released in the rollout's
cleanup. A toolset of 0.4 is a server process for one rollout, so it holds the instance itself.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Mapping
from types import FrameType
from typing import Any, Final, NoReturn

from agentkit.interop.callables import drop_omitted, function_like
from agentkit.interop.owned_instance import Kwargs, OwnedInstance, Trajectories, kwargs_by_tool
from agentkit.interop.peers import TRL, VERIFIERS, parameters_for, refuse_reserved, require
from agentkit.interop.single_call import SingleAnswer
from agentkit.messages import ImagePart
from agentkit.processor import ProcessorConfig
from agentkit.rollout.tools.decorated_tool import as_rollout_tool
from agentkit.tool import BoundTool

REWARD: Final = "tool_reward"
"""The key of a rollout's state that holds the rewards of all calls and the final one, once it is over."""

UNSCORED: Final = "tool_unscored"
"""The key that then holds why the final reward is missing from them: what `calc_reward` raised; empty if nothing."""


def to_verifiers(
    tool: Any, tool_config: Mapping[str, Any] | None = None, *, config: ProcessorConfig | None = None
) -> type[Any]:
    """A class with decorated methods as a subclass of verifiers' `StatefulToolEnv`, to be constructed with a data set.

    The model sees the whole schema. A rollout's `info["tools_kwargs"]`, as in verl's data sets, tells the tools about
    it. Its `state["tool_reward"]` is the sum of all rewards, and is scored with weight 1. If the final reward cannot be
    had, it counts as 0, and `state["tool_unscored"]` says why.

    Args:
        tool: a class with decorated methods, or whatever a rollout takes as a tool.
        tool_config: keyword arguments of the class's constructor.
        config: limits of the calls.

    Raises:
        ConfigError: verifiers is not installed, or is 0.4 or later, which has no such environment: `to_toolset`.
        SchemaError: a definition is wrong, or a function has a name that verifiers reserves.
    """
    vf = require(VERIFIERS, "verifiers.legacy")
    source = as_rollout_tool(tool, tool_config or {})
    refuse_reserved(VERIFIERS, source.tools.values())
    trajectories = Trajectories(source, config)

    def construct(self: Any, **settings: Any) -> None:
        ours = vf.Rubric(funcs=[tool_reward], weights=[1.0])
        vf.StatefulToolEnv.__init__(self, **{"rubric": ours, **settings})
        self.trajectories = trajectories
        for bound in source.tools.values():
            _offer(self, bound)
        if "rubric" in settings:
            self.add_rubric(ours)

    members = {
        "__init__": construct,
        "__doc__": f"{source.name} for verifiers.",
        "update_tool_args": _update_tool_args,
        "call_tool": _call_tool,
        "release_tools": vf.cleanup(_releasing()),
    }
    return type(f"{getattr(tool, '__name__', source.name)}Env", (vf.StatefulToolEnv,), members)


def _offer(environment: Any, bound: BoundTool) -> None:
    """Declare a tool with our schema: verifiers would make its own, from hints."""
    tool = require(VERIFIERS, "verifiers.legacy.types").Tool
    shown = tool(name=bound.name, description=bound.description, parameters=dict(bound.spec.parameters))
    environment.tool_defs.append(shown)
    environment.tool_map[bound.name] = bound.method
    environment.tool_monitor_rubric.add_tool_metric(bound.name)


def _update_tool_args(
    self: Any, tool_name: str, tool_args: dict[str, Any], messages: Any, state: Any, **kwargs: Any
) -> dict[str, Any]:
    return {"given": tool_args, "state": state}


async def _call_tool(self: Any, tool_name: str, tool_args: dict[str, Any], tool_call_id: str, **kwargs: Any) -> Any:
    given, state = tool_args["given"], tool_args["state"]
    names = self.trajectories.tool.tools
    if tool_name not in names:
        said: Any = f"there is no tool {tool_name!r}; there are {', '.join(names)}"
    else:
        answer = await self.trajectories.of(state, lambda: _told(state)).call(tool_name, given)
        images = any(isinstance(part, ImagePart) for part in answer.parts)
        said = [_block(part) for part in answer.parts] if images else answer.text
    message = require(VERIFIERS, "verifiers.legacy.types").ToolMessage
    return message(role="tool", content=said, tool_call_id=tool_call_id)


def _releasing() -> Any:
    """A separate cleanup for each class: verifiers marks the function."""

    async def release_tools(self: Any, state: Any) -> None:
        state[REWARD], state[UNSCORED] = await self.trajectories.over(state, lambda: _told(state))

    return release_tools


def tool_reward(state: Any) -> float:
    """The rewards of all calls of a rollout, and the final one: a reward function of verifiers' rubrics."""
    return float(state.get(REWARD, 0.0))


def _told(state: Any) -> Kwargs:
    return kwargs_by_tool((state.get("info") or {}).get("tools_kwargs"))


def _block(part: Any) -> dict[str, Any]:
    if isinstance(part, ImagePart):
        return {"type": "image_url", "image_url": {"url": part.data_url if part.data is not None else part.url}}
    return {"type": "text", "text": part.text}


def to_toolset(
    tool: Any, tool_config: Mapping[str, Any] | None = None, *, config: ProcessorConfig | None = None
) -> type[Any]:
    """A class with decorated methods as a subclass of the `Toolset` of verifiers 0.4, for a separate process.

    The instance is released when the process is told to end, by SIGTERM or SIGINT.

    Where the `openai` of verifiers and of agentkit exclude each other, serve the tools by `agentkit mcp` from
    another environment instead, and name its address in `ToolsetConfig(url=…)`.

    Args:
        tool: a class with decorated methods, or whatever a rollout takes as a tool.
        tool_config: keyword arguments of the class's constructor.
        config: limits of the calls.

    Raises:
        ConfigError: verifiers is not installed, or older than 0.4.
        SchemaError: a definition is wrong, or a function has a name that verifiers reserves.
    """
    toolset = require(VERIFIERS, "verifiers.v1.mcp.toolset").Toolset
    source = as_rollout_tool(tool, tool_config or {})
    refuse_reserved(VERIFIERS, source.tools.values())

    def register(self: Any, mcp: Any) -> None:
        self.owned = OwnedInstance(source, {}, config)
        self._exit_stack.push_async_callback(self.owned.release)
        _leave_when_told()
        for name, bound in source.tools.items():
            parameters, _ = parameters_for(TRL, bound.spec)  # by type hints: the server reads signatures

            async def call(_name: str = name, _parameters: Any = parameters, /, **arguments: Any) -> str:
                answer: SingleAnswer = await self.owned.call(_name, drop_omitted(arguments, _parameters))
                if not answer.result.ok:
                    raise ValueError(answer.text)
                return answer.text

            function_like(bound.spec, parameters, call)
            mcp.add_tool(self._with_state(call), name=name, description=bound.description)

    return type(f"{getattr(tool, '__name__', source.name)}Toolset", (toolset,), {"register": register})


def _leave_when_told() -> None:
    """Let SIGTERM, with which verifiers ends a toolset, unwind the process: by default it would die there and then."""
    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _leave)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)
