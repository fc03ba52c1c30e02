"""The classes of all ready-made tools, for tables that must not miss one."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import agentkit_tools
from agentkit import Tool


def tool_classes() -> list[type]:
    """Every class in `agentkit_tools` that has decorated methods."""
    modules = [m.name for m in pkgutil.walk_packages(agentkit_tools.__path__, "agentkit_tools.")]
    return [
        cls
        for module in map(importlib.import_module, modules)
        for cls in vars(module).values()
        if inspect.isclass(cls) and issubclass(cls, Tool) and cls.__module__ == module.__name__ and methods(cls)
    ]


def methods(cls: type) -> set[str]:
    """The names of its decorated methods."""
    return {name for name, method in inspect.getmembers(cls) if hasattr(method, "tool_schemas")}
