"""verl's tool classes as rollout tools: `create`, `execute`, `calc_reward` and `release`, each with an `instance_id`.

Recognised by shape; imports nothing of verl. One object serves all trajectories and tells them apart by the id, so that
what it loads in its constructor is shared and what it keeps for an id is not. `create` is called once for each
trajectory, with the sample's keyword arguments, as verl's documents say (its own loop creates one for each call).
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, Final
from uuid import uuid4

from agentkit.errors import ConfigError, show_value
from agentkit.messages import ImagePart
from agentkit.rollout.records.scoring import replace_reward, reward_of
from agentkit.rollout.samples.pictures import image_parts
from agentkit.rollout.samples.sample import PHASES
from agentkit.rollout.tools.call_signatures import refuse_misfit, signature_of, takes_any
from agentkit.rollout.tools.foreign_calls import foreign_tool, read_result, refuse_config
from agentkit.tool.bound_tool import BoundTool, is_async
from agentkit.tool.output import json_text
from agentkit.tool.result import ToolContext, ToolResult

_NESTED: Final = "create_kwargs"
_THEIRS: Final = "agent_data"
"""The argument by which verl's own loop passes its state of the trajectory to `execute`; there is none here."""


def construct(cls: type, config: Mapping[str, Any], schema: Mapping[str, Any] | None, where: str) -> Any:
    """Construct a class of verl's shape, as verl does: `cls(config=…, tool_schema=…)`.

    Args:
        cls: the class.
        config: its `config`.
        schema: its `tool_schema`, OpenAI's form; None if the class has its own.
        where: for messages.

    Raises:
        ConfigError: the class refuses them.
    """
    signature = signature_of(cls, where)
    if not ({"config", "tool_schema"} <= signature.parameters.keys() or takes_any(signature)):
        names = ", ".join(signature.parameters) or "nothing"
        raise ConfigError(f"{where}: expected {cls.__name__}(config, tool_schema), but it takes {names}")
    try:
        return cls(config=dict(config), tool_schema=None if schema is None else _schema_for(cls, schema))
    except Exception as e:  # the constructor is the author's code
        raise ConfigError(f"{where}: {cls.__name__}(config, tool_schema) failed: {type(e).__name__}: {e}") from e


def _schema_for(cls: type, schema: Mapping[str, Any]) -> Any:
    """The schema in the type that the class is written for: the hint of `tool_schema`, in the class or in a base."""
    for owner in cls.__mro__:
        hint = getattr(vars(owner).get("__init__"), "__annotations__", {}).get("tool_schema")
        if hint is None:
            continue
        hints = typing.get_type_hints(vars(owner)["__init__"]) if isinstance(hint, str) else {"tool_schema": hint}
        for one in (hints["tool_schema"], *typing.get_args(hints["tool_schema"])):
            if hasattr(one, "model_validate"):
                return one.model_validate(dict(schema))
    return SimpleNamespace(**{**schema, "function": SimpleNamespace(**schema["function"])})


class VerlShaped:
    """An object of verl's shape as a `RolloutTool`.

    Args:
        tool: the object, or a class, which is constructed.
        config: the class's `config`.
        schema: its `tool_schema`, in OpenAI's form; by default the object's own.
        where: for messages; by default the class's name.

    Raises:
        ConfigError: it cannot be constructed, has no schema or a wrong one, or its methods need more than samples have.
    """

    def __init__(
        self,
        tool: Any,
        *,
        config: Mapping[str, Any] | None = None,
        schema: Mapping[str, Any] | None = None,
        where: str | None = None,
    ) -> None:
        cls = tool if isinstance(tool, type) else type(tool)
        self._where = where or cls.__name__
        refuse_config(tool, config)
        self.tool = construct(tool, config or {}, schema, self._where) if tool is cls else tool
        declared = _function(schema if schema is not None else _own_schema(self.tool), self._where)
        self._signatures = {
            phase: signature_of(getattr(self.tool, phase), f"{self._where}.{phase}")
            for phase in PHASES
            if callable(getattr(self.tool, phase, None))
        }
        made = foreign_tool(self.tool.execute, declared, f"{self._where}: tool_schema")
        self._prototype: BoundTool = replace(made, is_async=is_async(self.tool.execute), where=self._where)
        self.name = made.name
        self.tools: Mapping[str, BoundTool] = {self.name: self._prototype}
        own = getattr(self.tool, "name", self.name)
        if isinstance(own, str) and own != self.name:
            raise ConfigError(f"{self._where}: the schema's function is {self.name!r}, but the tool's name is {own!r}")
        self.hooks = frozenset(self._signatures) - {"execute"}
        self._nested = _reads(self.tool.create, _NESTED)
        execute = self._signatures["execute"].parameters.get(_THEIRS)
        self._needs_theirs = (
            _reads(self.tool.execute, _THEIRS) if execute is None else execute.default is inspect.Parameter.empty
        )

    @staticmethod
    def recognises(tool: Any) -> bool:
        """Say if this is a class or an object of verl's shape: `execute(instance_id, …)`, `create` and `release`."""
        if not all(callable(getattr(tool, phase, None)) for phase in ("create", "execute", "release")):
            return False
        try:
            names = list(inspect.signature(tool.execute).parameters)
        except (TypeError, ValueError):
            return False
        return names[1 if isinstance(tool, type) else 0 :][:1] == ["instance_id"]

    def instance(self, trajectory_id: str) -> VerlInstance:
        """Make the instance of one trajectory; its id is new even if a trajectory is tried again."""
        return VerlInstance(self, f"{trajectory_id}/{uuid4().hex[:12]}")

    def check(self, kwargs: Mapping[str, Any]) -> None:
        """Refuse keyword arguments by phase that its methods cannot take.

        Raises:
            ConfigError: says which, and what the method takes.
        """
        if self._needs_theirs and _THEIRS not in (kwargs.get("execute") or {}):
            raise ConfigError(
                f"{self.name}: {self._where}.execute reads {_THEIRS!r}, which only verl's own loop passes; do not read "
                f"it, or pass another by execute_kwargs: {{{_THEIRS!r}: …}}"
            )
        for phase in PHASES:
            given = dict(kwargs.get(phase) or {})
            where = f"{self.name}: {phase}_kwargs"
            if phase not in self._signatures:
                if given:
                    raise ConfigError(f"{where}: {self._where} has no method {phase}, found {', '.join(given)}")
                continue
            for name in ("instance_id", "parameters"):
                if name in given:
                    raise ConfigError(f"{where}: {name!r} is what {phase} receives besides these; remove it")
            args: tuple[Any, ...] = ("id", {}) if phase == "execute" else ("id",)
            shaped = self.create_kwargs(given) if phase == "create" else given
            refuse_misfit(self._signatures[phase], f"{where}: {phase}", *args, **shaped)

    def create_kwargs(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of `create`, as documented; also nested, for classes that read `create_kwargs`.

        Source: verl since 0.5 calls `create(create_kwargs={…})`, and its classes read either.
        """
        if not self._nested:
            return dict(given)
        flat = given if takes_any(self._signatures["create"]) else {}
        return {**flat, _NESTED: dict(given)}

    def bound(self, answer: Any) -> BoundTool:
        """The tool, answering by this function."""
        return replace(self._prototype, method=answer, instance=self.tool)


class VerlInstance:
    """One trajectory's part of a tool of verl's shape.

    Args:
        shaped: the tool.
        id: the `instance_id`.
    """

    def __init__(self, shaped: VerlShaped, id: str) -> None:
        self._shaped = shaped
        self._tool = shaped.tool
        self.id = id
        self.tools: Mapping[str, BoundTool] = {shaped.name: shaped.bound(self._execute)}

    async def create(self, **kwargs: Any) -> ToolResult | None:
        """Begin; the answer of `create`, if it has content."""
        made = await _awaited(self._tool.create(self.id, **self._shaped.create_kwargs(kwargs)))
        id, response = (*made, None, None)[:2] if isinstance(made, tuple) else (made, None)
        if isinstance(id, str):
            self.id = id
        if response is None or _is_empty(response):
            return None
        return result_of(response, f"{self._shaped.name}: create")

    def _execute(self, arguments: dict[str, Any], context: ToolContext, **execute: Any) -> Any:
        answered = self._tool.execute(self.id, arguments, **execute)
        return read_result(answered, lambda value: result_of(value, self._shaped.name))

    async def calc_reward(self, **kwargs: Any) -> float | None:
        """The final reward; None if the class has no `calc_reward`."""
        if not callable(calc_reward := getattr(self._tool, "calc_reward", None)):
            return None
        return reward_of(await _awaited(calc_reward(self.id, **kwargs)))

    async def release(self, **kwargs: Any) -> None:
        """Forget this trajectory."""
        await _awaited(self._tool.release(self.id, **kwargs))


def result_of(value: Any, where: str) -> ToolResult:
    """Read the value of `execute`: `(response, reward, metrics)`, or any part of it from the left.

    Args:
        value: a `ToolResponse`, a string, or anything that a model can read as JSON; alone, or in a tuple with the
            reward and the metrics.
        where: for messages.

    Raises:
        TypeError: the tuple has another form.
    """
    reward, metrics = None, None
    if isinstance(value, tuple):
        if not 1 <= len(value) <= 3:
            raise TypeError(f"{where} returned a tuple of {len(value)}; expected (response, reward, metrics)")
        value, reward, metrics = (*value, None, None)[:3]
    if metrics is not None and not isinstance(metrics, Mapping):
        raise TypeError(f"{where} returned metrics that are not a dict: {show_value(metrics)}")
    result = _response(value, where)
    score = result.reward if reward is None else reward  # the code that counts it refuses what is not a number
    return replace_reward(result, score, metrics)


def _response(value: Any, where: str) -> ToolResult:
    if isinstance(value, ToolResult):
        return value
    if not _is_response(value):
        return ToolResult(json_text(value)) if isinstance(value, dict) else ToolResult.of(value)
    pictures: tuple[ImagePart, ...] = image_parts(getattr(value, "image", None), f"{where}: image")
    videos = getattr(value, "video", None)
    text = getattr(value, "text", None)
    metadata = {}
    if videos:
        count = len(videos) if isinstance(videos, list | tuple) else 1
        note = f"[{count} video{'s' if count > 1 else ''} left out: this model reads text and images]"
        text = f"{text}\n{note}" if text else note
        metadata = {"videos_left_out": count}
    return ToolResult(text if text or not pictures else None, content=pictures, metadata=metadata)


def _is_response(value: Any) -> bool:
    """Say if a value is verl's `ToolResponse`, or like one."""
    return hasattr(value, "text") and hasattr(value, "image")


def _is_empty(response: Any) -> bool:
    if _is_response(response):
        return not (response.text or response.image or getattr(response, "video", None))
    return response in ("", {})


async def _awaited(value: Any) -> Any:
    """The value itself, for classes whose methods are not async."""
    return await value if inspect.isawaitable(value) else value


def _reads(function: Any, name: str) -> bool:
    """Say if a function reads a keyword argument of this name, that it declares or finds in its `**kwargs`."""
    function = inspect.unwrap(getattr(function, "__func__", function))
    function = function.func if isinstance(function, partial) else function
    code = getattr(function, "__code__", None)
    return code is not None and (name in code.co_varnames or name in code.co_consts)


def _own_schema(tool: Any) -> Any:
    own = tool.get_openai_tool_schema() if callable(getattr(tool, "get_openai_tool_schema", None)) else None
    return own if own is not None else getattr(tool, "tool_schema", None)


def _function(schema: Any, where: str) -> Mapping[str, Any]:
    """The function of a schema in OpenAI's form: a dict, or an object that dumps itself."""
    if callable(dump := getattr(schema, "model_dump", None)):
        schema = dump(exclude_unset=True, exclude_none=True)
    function = schema.get("function") if isinstance(schema, Mapping) else None
    if not isinstance(function, Mapping):
        raise ConfigError(
            f"{where} has no tool_schema: expected {{'type': 'function', 'function': {{'name': …}}}}, found "
            f"{show_value(schema)}"
        )
    return function
