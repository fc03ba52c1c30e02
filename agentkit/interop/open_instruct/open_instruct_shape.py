"""open-instruct's tools as rollout tools: class attributes declare them, `__call__` answers with a `ToolOutput`.

Recognised by shape; imports nothing of open-instruct. One object serves all trajectories, as there: it has no beginning
and no end.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from agentkit.errors import ConfigError, SchemaError, show_value
from agentkit.rollout.tools.call_signatures import refuse_misfit, signature_of, takes_any
from agentkit.rollout.tools.foreign_calls import foreign_tool, read_result, refuse_config
from agentkit.rollout.tools.per_trajectory import HOOKS, SharedByAll
from agentkit.tool.bound_tool import BoundTool, bind_function, is_async
from agentkit.tool.result import ToolContext, ToolResult

_NAME: Final = "_default_tool_function_name"
_FIELDS: Final = ("output", "called", "error", "timeout", "runtime")


def parameters_of(tool: Any) -> dict[str, Any]:
    """JSON Schema of a tool's arguments: as declared, or from the hints of `__call__`.

    Raises:
        ConfigError: it is not declared, and the hints do not say it.
    """
    declared = getattr(tool, "_default_tool_parameters", None)
    if declared is not None:
        if not isinstance(declared, Mapping):
            raise ConfigError(
                f"{type(tool).__name__}._default_tool_parameters: expected a JSON Schema, found {show_value(declared)}"
            )
        return dict(declared)
    try:
        return dict(bind_function(tool.__call__, name_of(tool)).spec.parameters)
    except SchemaError as e:
        raise ConfigError(f"{type(tool).__name__}: {e}; or write _default_tool_parameters") from e


def name_of(tool: Any) -> str:
    """The function name: overridden, or its own."""
    name = getattr(tool, "_override_name", None) or getattr(tool, _NAME)
    if not isinstance(name, str) or not name:
        raise ConfigError(f"{type(tool).__name__}.{_NAME}: expected a name, found {show_value(name)}")
    return name


class InstructShaped(SharedByAll):
    """An object of open-instruct's shape as a `RolloutTool`.

    Args:
        tool: the object, or a class, which is constructed with `config`.
        config: keyword arguments of the constructor.
        where: for messages; by default the class's name.

    Raises:
        ConfigError: it cannot be constructed, or its declaration is wrong, or does not fit `__call__`.
    """

    def __init__(self, tool: Any, *, config: Mapping[str, Any] | None = None, where: str | None = None) -> None:
        cls = tool if isinstance(tool, type) else type(tool)
        self._where = where or cls.__name__
        refuse_config(tool, config)
        self.tool = _constructed(tool, config or {}, self._where) if tool is cls else tool
        self.name = name_of(self.tool)
        description = getattr(self.tool, "tool_description", None) or getattr(
            self.tool, "_default_tool_description", ""
        )
        parameters = parameters_of(self.tool)
        function: dict[str, Any] = {"name": self.name, "description": description, "parameters": parameters}
        self._signature = signature_of(self.tool, f"{self._where}.__call__")
        self._refuse_unreachable(parameters)
        if not takes_any(self._signature):  # or a model that invents an argument would set one of the sample's
            function["parameters"] = {"additionalProperties": False, **parameters}
        made = foreign_tool(self._answer, function, self._where)
        self._bound = dataclasses.replace(made, is_async=is_async(self.tool))
        self.tools: Mapping[str, BoundTool] = {self.name: self._bound}

    @staticmethod
    def recognises(tool: Any) -> bool:
        """Say if this is a class or an object of open-instruct's shape."""
        return hasattr(tool, _NAME) and callable(getattr(tool, "__call__", None))  # noqa: B004 (of the class as well)

    def _refuse_unreachable(self, parameters: Mapping[str, Any]) -> None:
        """Refuse parameters that the model would send and `__call__` does not take, and those that it would lack."""
        if takes_any(self._signature):
            return
        where = f"{self._where}._default_tool_parameters"
        for name in parameters.get("properties", {}):
            if name not in self._signature.parameters:
                takes = ", ".join(self._signature.parameters) or "nothing"
                raise ConfigError(f"{where}: __call__ does not take {name!r}; it takes {takes}")

    def check(self, kwargs: Mapping[str, Any]) -> None:
        """Refuse keyword arguments that it cannot take: all but those of `execute`.

        Raises:
            ConfigError: says which.
        """
        for phase in HOOKS:
            if given := kwargs.get(phase):
                raise ConfigError(
                    f"{self.name}: {phase}_kwargs: a tool of open-instruct's shape has no {phase}; found "
                    f"{', '.join(given)}"
                )
        declared = self._bound.spec.parameters.get("properties", {})
        given = dict(kwargs.get("execute") or {})
        if clash := [name for name in given if name in declared]:
            raise ConfigError(f"{self.name}: execute_kwargs: {clash[0]!r} is an argument that the model writes")
        refuse_misfit(self._signature, f"{self.name}: execute_kwargs: __call__", **dict.fromkeys(declared), **given)

    def _answer(self, arguments: dict[str, Any], context: ToolContext, **execute: Any) -> Any:
        return read_result(self.tool(**{**arguments, **execute}), lambda value: result_of(value, self.name))


def result_of(value: Any, name: str) -> ToolResult:
    """A `ToolOutput` as a result: its error, unless the output says it, then its output; the rest is metadata.

    Anything else that a tool may return is also a result.
    """
    if isinstance(value, ToolResult) or not all(hasattr(value, one) for one in _FIELDS):
        return ToolResult.of(value)
    output = value.output if isinstance(value.output, str) else ToolResult(value.output).text
    error = value.error or ("" if value.called else f"{name} was not called")
    if value.timeout and not error:
        error = f"timed out after {value.runtime:g} s" if value.runtime else "timed out"
    metadata = {one: getattr(value, one) for one in _FIELDS if one != "output"}
    if not error:
        return ToolResult(output, metadata=metadata)
    said = output if str(error) in output else f"{error}\n{output}".rstrip("\n")
    return ToolResult(error=said, code="timeout" if value.timeout else "tool_error", metadata=metadata)


def _constructed(cls: type, config: Mapping[str, Any], where: str) -> Any:
    given = dict(config)
    signature = signature_of(cls, where)
    if given.get("override_name", "") is None and "override_name" not in signature.parameters:
        given.pop("override_name")  # a class that cannot be renamed need not take it
    refuse_misfit(signature, f"{where}: {cls.__name__}", **given)
    try:
        return cls(**given)
    except Exception as e:  # the constructor is the author's code
        raise ConfigError(f"{where}: {cls.__name__} could not be constructed: {type(e).__name__}: {e}") from e


def fields_of(config: type) -> dict[str, dataclasses.Field[Any]]:
    """The settings of a configuration class, by name."""
    return {one.name: one for one in dataclasses.fields(config) if one.init}
