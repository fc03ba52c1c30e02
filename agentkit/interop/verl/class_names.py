"""Classes by the dotted names of configuration files: only those that the caller allows. Imports on demand.

A configuration file that names a class runs its module's code, so an untrusted file must not choose freely.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable, Mapping
from typing import Final

from agentkit.checks.spelling import did_you_mean
from agentkit.errors import ConfigError

ALWAYS: Final = ("agentkit_tools",)
"""Whose modules may always be loaded: the ready-made tools."""

REMOVED: Final[Mapping[str, str]] = {
    "verl.tools.geo3k_tool.Geo3kTool": "agentkit_tools.verl_shaped.Geo3kTool",
    "verl.tools.gsm8k_tool.Gsm8kTool": "agentkit_tools.verl_shaped.Gsm8kTool",
    "verl.tools.search_tool.SearchTool": "agentkit_tools.verl_shaped.SearchTool",
    "verl.tools.sandbox_fusion_tools.SandboxFusionTool": "agentkit_tools.verl_shaped.SandboxFusionTool",
}
"""The tools that verl has removed, and ours in their place. Source: verl pull request 6302."""


def get_tool_class(cls_name: str, allow: Iterable[str] = ()) -> type:
    """Load the class with a dotted name; agentkit's for a class that verl has removed, unless the installed one has it.

    >>> get_tool_class("verl.tools.gsm8k_tool.Gsm8kTool").__module__
    'agentkit_tools.verl_shaped'

    Args:
        cls_name: `package.module.Class`, such as `verl.tools.geo3k_tool.Geo3kTool`.
        allow: names that may be loaded besides `agentkit_tools`: modules, packages (with all inside) and classes.

    Raises:
        ConfigError: it may not be loaded, cannot be imported, or is not a class.
    """
    module, _, cls = cls_name.rpartition(".")
    if not module or not all(part.isidentifier() for part in cls_name.split(".")):
        raise ConfigError(f"{cls_name!r:.100} is not the name of a class; write package.module.Class")
    if cls_name in REMOVED and not _exists(module):
        return get_tool_class(REMOVED[cls_name])
    allowed = (*ALWAYS, *((allow,) if isinstance(allow, str) else allow))
    if not any(cls_name == one or cls_name.startswith(f"{one}.") for one in allowed):
        raise ConfigError(
            f"{cls_name} may not be loaded: loading runs the code of its module; if you trust it, pass "
            f"allow=[{module!r}]"
        )
    try:
        found = getattr(importlib.import_module(module), cls, None)
    except ImportError as e:
        raise ConfigError(f"{cls_name}: the module {module} cannot be imported: {e}") from e
    if found is None:
        classes = [key for key, value in vars(importlib.import_module(module)).items() if isinstance(value, type)]
        raise ConfigError(f"{cls_name}: the module {module} has no {cls!r}{did_you_mean(cls, classes)}")
    if not isinstance(found, type):
        raise ConfigError(f"{cls_name}: expected a class, found a {type(found).__name__}")
    return found


def _exists(module: str) -> bool:
    """Say if a module is installed; its packages are imported to see."""
    try:
        return importlib.util.find_spec(module) is not None
    except ImportError:
        return False
