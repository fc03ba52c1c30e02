"""Tools that are not methods: their JSON Schema exists already, and one function answers every call.

For adapters to other systems, which learn about their tools at runtime. Knows no registry and no such system.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, Protocol, Unpack, runtime_checkable

from agentkit.checks.spelling import takes
from agentkit.errors import SchemaError
from agentkit.foreign import argument_names
from agentkit.schemas.walk import map_schemas, with_all_properties
from agentkit.tool.arguments import arguments_of_schema
from agentkit.tool.bound_tool import BoundTool, is_async, refuse_control_tokens, refuse_name
from agentkit.tool.declare import OpenAPISchema
from agentkit.tool.policy import PolicyKeywords, policy_of
from agentkit.tool.result import ToolContext
from agentkit.toolspec import ToolSpec

Answerer = Callable[[dict[str, Any], ToolContext], Any | Awaitable[Any]]
"""Answers the calls of a ready-made tool: receives the arguments as one dict, and the call's context."""


@runtime_checkable
class ToolSource(Protocol):
    """An object that brings its own tools; accepted wherever an instance with decorated methods is.

    Its tools are made with `tool_from_schema`.
    """

    def bound_tools(self) -> Iterable[BoundTool]:
        """Its tools. Called once per registration."""
        ...


class ReadyMadeTool(BoundTool):
    """A tool whose function receives all arguments as one dict: their names cannot clash with anything."""

    __slots__ = ()

    @property
    def takes_context(self) -> bool:
        """Its function always receives it."""
        return True

    def invoke(self, kwargs: Mapping[str, Any], context: ToolContext | None) -> Any:
        """Call the function; returns its value, or an awaitable if `is_async`."""
        return self.method(dict(kwargs), context)


@takes(PolicyKeywords, others=argument_names.OPENAPI_SCHEMA, error=SchemaError)
def tool_from_schema(
    function: Answerer,
    name: str,
    description: str = "",
    parameters: Mapping[str, Any] | None = None,
    *,
    patterns: bool = True,
    **policy: Unpack[PolicyKeywords],
) -> BoundTool:
    """A tool with a ready-made JSON Schema.

    >>> tool = tool_from_schema(
    ...     lambda arguments, context: arguments["q"],
    ...     "echo",
    ...     "Repeat q.",
    ...     {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]},
    ... )
    >>> tool.invoke(tool.validate({"q": "hello"}, lenient=False), None)
    'hello'

    Args:
        function: called with the validated arguments as one dict, and the `ToolContext`; sync or async.
        name: the tool's name.
        description: its description for the model.
        parameters: JSON Schema of the arguments object; None for a tool without parameters.
        patterns: whether arguments are checked against the regular expressions of the schema. Pass False for a schema
            from a stranger: some expressions take hours to reject thirty characters.
        policy: how the tool may be run, see `ToolPolicy`.

    Raises:
        SchemaError: a wrong name, a wrong keyword, or a schema that is invalid or refers to something outside itself.
    """
    where = f"tool_from_schema({name!r})"
    refuse_name(name, where)
    schema = {"type": "object", "properties": {}, **(parameters or {})}
    refuse_control_tokens(schema, where)
    shown = with_all_properties(schema)
    instance = getattr(function, "__self__", None)
    given = {keyword: value for keyword, value in policy.items() if value is not None}
    return ReadyMadeTool(
        name=name,
        tag=None,
        instance=instance,
        method=function,
        spec=ToolSpec(name, description, shown),
        schema=OpenAPISchema(),
        xml_schema=None,
        is_async=is_async(function),
        policy=policy_of(given, instance, where),
        where=name,
        arguments=arguments_of_schema(shown, schema if patterns else without_patterns(schema), where),
    )


_EXPRESSIONS: Final = ("pattern", "patternProperties")


def without_patterns(schema: Any) -> Any:
    """A JSON Schema without its regular expressions; it accepts whatever the original accepts, and more."""
    if not isinstance(schema, Mapping):
        return schema
    # without patternProperties, the names that it allowed would not be allowed by additionalProperties: false
    loose = ("additionalProperties", "unevaluatedProperties") if "patternProperties" in schema else ()
    return {
        keyword: map_schemas(keyword, value, lambda inner, _: without_patterns(inner))
        for keyword, value in schema.items()
        if keyword not in _EXPRESSIONS and keyword not in loose
    }
