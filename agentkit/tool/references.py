"""Resolves `"module:Class"` to the object it names. Imports on demand."""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from typing import Any, Final

from agentkit.checks.spelling import did_you_mean
from agentkit.errors import ConfigError

_FILE: Final = re.compile(r"[/\\]|\.py\Z")


def _likely_reference(reference: str) -> str:
    """Return the most likely reference as the end of a message."""
    place, mark, name = reference.partition(":")
    if not (_FILE.search(place) or place.startswith(".")):
        if not mark and (only := _only_class(place)):
            return f"; did you mean '{place}:{only}'?"
        module, dot, name = reference.rpartition(".")
        return (
            f"; did you mean '{module}:{name}'?"
            if dot and not mark and all(map(str.isidentifier, module.split("."))) and name.isidentifier()
            else ""
        )
    module = place.removesuffix(".py").strip("./\\").replace("\\", "/").replace("/", ".")
    return f"; name the module as in an import, not as a file: '{module}:{name or 'name'}'"


def _only_class(module: str) -> str | None:
    """The one class of a module that has tools; None if there is no such module, or if it has none or several."""
    from agentkit.tool.declare import declarations_of

    try:
        found = vars(importlib.import_module(module))
    except Exception:  # noqa: BLE001 - a module that cannot be imported gives no hint
        return None
    own = [one for one in found.values() if isinstance(one, type) and one.__module__ == module]
    tools = [one.__name__ for one in own if not one.__name__.startswith("_") and declarations_of(one)]
    return tools[0] if len(tools) == 1 else None


def _nearby(missing: str) -> str:
    """The module of the same package, or of the working folder, that was most likely meant, as the end of a message."""
    package, dot, _ = missing.rpartition(".")
    folders = getattr(sys.modules.get(package), "__path__", ()) if dot else ["."]
    return did_you_mean(missing, [f"{package}{dot}{module.name}" for module in pkgutil.iter_modules(folders)])


def load(reference: str) -> Any:
    """The object that a reference names.

    >>> load("json:dumps").__name__
    'dumps'

    Args:
        reference: `module:name`, or `module:name.inner`.

    Raises:
        ConfigError: it does not have that form, the module cannot be imported, or it has no such name.
    """
    module_name, _, path = reference.partition(":")
    if not module_name or not path or _FILE.search(module_name) or module_name.startswith("."):
        raise ConfigError(
            f"{reference!r} is not a tool reference; write 'module:Class' or 'module:function'"
            f"{_likely_reference(reference)}"
        )
    try:
        found: Any = importlib.import_module(module_name)
    except ImportError as e:
        hint = _nearby(e.name) if e.name and f"{module_name}.".startswith(f"{e.name}.") else ""
        raise ConfigError(f"{reference!r}: module {module_name!r} cannot be imported: {e}{hint}") from e
    for step in path.split("."):
        if not hasattr(found, step):
            hint = did_you_mean(step, [name for name in dir(found) if not name.startswith("_")])
            raise ConfigError(f"{reference!r}: {getattr(found, '__name__', found)!s} has no {step!r}{hint}")
        found = getattr(found, step)
    return found
