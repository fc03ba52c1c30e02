"""`"module:Class"` to the object it names. Imports on request; knows nothing of tools."""

from __future__ import annotations

import importlib
from typing import Any

from agentkit.errors import ConfigError


def load(reference: str) -> Any:
    """The object that a reference names.

    >>> load("json:dumps").__name__
    'dumps'

    Args:
        reference: `module:name`, or `module:name.inner`.

    Raises:
        ConfigError: it is not of that form, the module cannot be imported, or has no such name.
    """
    module_name, _, path = reference.partition(":")
    if not module_name or not path:
        raise ConfigError(f"{reference!r} names no tool; write 'module:Class' or 'module:function'")
    try:
        found: Any = importlib.import_module(module_name)
    except ImportError as e:
        raise ConfigError(f"{reference!r}: module {module_name!r} cannot be imported: {e}") from e
    for step in path.split("."):
        if not hasattr(found, step):
            raise ConfigError(f"{reference!r}: {getattr(found, '__name__', found)!s} has no {step!r}")
        found = getattr(found, step)
    return found
