"""The digest of a tool, so that an approval is valid for this tool alone: its name can come to mean another one. Pure.

It covers the function's module (without its package) and name, its compiled code and that of the functions it wraps,
its default values and the arguments bound by a `functools.partial`; for a server's tool, the server and its name there
instead; and the description and the parameters that a model sees. Values count if they are strings, numbers, None,
paths, or lists, sets and dicts of them; of any other only the type's name does. The registered name (part of the call),
called functions, closures, globals and the instance's state do not count.
"""

from __future__ import annotations

import functools
import inspect
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import PurePath
from types import CodeType
from typing import Any, Final

from agentkit.toolspec import ToolSpec

_SIMPLE: Final = (str, int, float, bool, bytes, type(None), PurePath)


def digest_of(spec: ToolSpec, method: Callable[..., Any], origin: str = "") -> str:
    """Return the digest of a tool as 64 hexadecimal digits (SHA-256). Another version of Python changes it.

    Args:
        spec: the tool as models see it.
        method: the function that is called.
        origin: the source of a tool that is not a function here.
    """
    from hashlib import sha256

    made = [spec.description, spec.parameters, origin or [_function(one) for one in _wrapped_functions(method)]]
    return sha256(json.dumps(made, sort_keys=True, default=dict).encode()).hexdigest()


def _wrapped_functions(method: Any) -> Iterator[Any]:
    """Yield the function that is called, its partials, and the functions that it wraps."""
    for _ in range(32):  # a longer chain is a cycle
        while isinstance(method, functools.partial | functools.partialmethod):
            yield method
            method = method.func
        method = getattr(method, "__func__", method)
        if not hasattr(method, "__code__") and not inspect.isbuiltin(method):
            method = type(method).__call__
        yield method
        if (method := getattr(method, "__wrapped__", None)) is None:
            return


def _function(function: Any) -> list[Any]:
    if isinstance(function, functools.partial | functools.partialmethod):
        return [repr(_constant((function.args, function.keywords)))]
    code = getattr(function, "__code__", None)
    values = (
        *(getattr(function, "__defaults__", None) or ()),
        *(getattr(function, "__kwdefaults__", None) or {}).items(),
    )
    return [
        _module(str(getattr(function, "__module__", ""))),
        getattr(function, "__qualname__", ""),
        repr(tuple(map(_constant, values))),
        _code(code) if isinstance(code, CodeType) else "",
    ]


def _module(name: str) -> str:
    """A module's own name; of the program that was started, its file's, since another one may import it."""
    if name == "__main__":
        return PurePath(getattr(sys.modules.get(name), "__file__", None) or name).stem
    return name.rpartition(".")[2]


def _code(code: CodeType) -> str:
    """Return the compiled code of a function as text, without file and line numbers."""
    return repr((code.co_code.hex(), code.co_names, code.co_varnames, *map(_constant, code.co_consts)))


def _constant(value: Any) -> Any:
    """A constant in a form that is the same in each process."""
    if isinstance(value, CodeType):
        return _code(value)
    if isinstance(value, tuple | list):
        return tuple(map(_constant, value))
    if isinstance(value, dict):
        return sorted(repr(_constant(item)) for item in value.items())
    if isinstance(value, set | frozenset):
        return sorted(repr(_constant(one)) for one in value)
    return value if isinstance(value, _SIMPLE) else type(value).__qualname__
