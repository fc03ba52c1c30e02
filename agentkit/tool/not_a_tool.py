"""Advice for a value that was passed as a tool and is not one.

Knows values by their kind; registers and binds nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from agentkit.tool.signature import name_of


def not_a_tool(tool: Any) -> str | None:
    """Return the advice for a value that cannot be a tool; None if it might be one."""
    kind = type(tool).__name__
    if inspect.isroutine(tool):
        name = tool.__name__
        return (
            f"{name_of(tool)} is a function, not a class or its instance: write registry.register({name}), or "
            f"threads.add_tool([{name}, …]) with a ThreadManager; register_function({name}, …) takes a name and limits"
        )
    if callable(getattr(tool, "as_tool", None)) and not hasattr(tool, "args_schema"):  # LangChain's tools have both
        what = name_of(tool) if isinstance(tool, type) else f"an instance of {kind}"
        return f"{what} is not a tool: add .as_tool('its_name', 'what it is good at') to it"
    if inspect.isawaitable(tool) and not hasattr(tool, "metadata"):  # a ToolResult is also awaitable
        if inspect.iscoroutine(tool):
            tool.close()  # otherwise Python also warns that it was never awaited
        return "a coroutine is not a tool: pass the async function itself, without calling it"
    if isinstance(tool, list | tuple | Mapping):
        return _container(tool, kind)
    if inspect.ismodule(tool):
        return f"{tool.__name__} is a module: pass its functions or classes, as in tools=[{tool.__name__}.name]"
    if type(tool).__module__.partition(".")[0] == __name__.partition(".")[0] and not isinstance(tool, type):
        return _ours(tool, kind)
    return _plain_value(tool)


def _plain_value(tool: Any) -> str | None:
    if tool is None:
        return "None is not a tool: if there are no tools, omit tools or pass tools=[]"
    if isinstance(tool, str):
        return (
            f"{tool!r:.60} is not a tool: pass 'module:Class' to registry.register(…), or with a thread manager to "
            "threads.add_tool(…), and nothing else"
        )
    if isinstance(tool, (bytes, int, float, set, frozenset)):
        return (
            f"{tool!r:.60} is not a tool: pass the function itself, not its return value, or a class or "
            "instance with decorated methods"
        )
    return None


def _ours(tool: Any, kind: str) -> str | None:
    """Return the advice for an agentkit object that is not a tool; None for a tool without a decorated method."""
    if hasattr(tool, "register_tool"):
        return (
            "pass a ToolRegistry directly, tools=registry, or with other tools as tools=[*registry.tools.values(), …]"
        )
    if hasattr(tool, "stream") or hasattr(tool, "add_tool"):
        return f"an instance of {kind} is not a tool: a tool is a function, or an object with decorated methods"
    if hasattr(tool, "success_response"):
        return None
    return f"an instance of {kind} is not a tool: pass the function itself, not its return value"


def _container(tools: Any, kind: str) -> str:
    """Return the advice for a container where one tool is expected."""
    if not isinstance(tools, Mapping):
        return (
            f"a {kind} is not a tool: register its items with registry.register(*tools), or with a thread manager "
            "threads.add_tool(tools)"
        )
    if any(map(callable, tools.values())):
        return f"a {kind} is not a tool: pass its values, tools=list(tools.values())"
    return (
        f"a {kind} is not a tool, since nothing in it can be run: write the schema above the function, "
        "@openapi_schema({…}), and pass the function; pass several functions as a list"
    )


def advise_decorating(tool: Any, owner: type) -> str:
    """Return the advice for a class, or an instance of one, that has no decorated method."""
    what = name_of(owner) if tool is owner else f"an instance of {name_of(owner)}"
    if tool is not owner and hasattr(tool, "name") and hasattr(tool, "description"):
        return (
            f"{what} is a tool of another toolkit: pass the function it was made from, without that toolkit's decorator"
        )
    if hasattr(owner, "model_fields"):
        return (
            f"{what} is a pydantic model, which has values but no behaviour: use it as the type of a function's "
            f"parameter, or request one as the reply, output_type={name_of(owner)}"
        )
    public = [n for n, v in vars(owner).items() if inspect.isfunction(v) and not n.startswith("_")]
    example = f"def {public[0]}" if public else "def your_method"
    return (
        f"{what} has no decorated method; put @openapi_schema (and @xml_schema for an XML tag) on the methods that a "
        f"model may call, such as `@openapi_schema` above `{example}`"
    )
