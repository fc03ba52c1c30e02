"""Names that a module loads on first use, and errors that say where a missing name is.

A package of agentkit is lazy like this: under `TYPE_CHECKING` it imports its public names, for type checkers and
editors, and `explained_module` gets the same list. A function that needs what is large and rarely used imports it in
its body. Loads nothing until then, not even `typing`: that would be most of what `import agentkit` costs.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import FrameType
    from typing import Any


class _ExplainedModule(ModuleType):
    """A module that loads some of its names on first use, and whose errors say where a missing name is."""

    def __getattr__(self, name: str) -> Any:
        home = vars(self).get("_homes", {}).get(name)
        if home is None:
            raise absent(self, name, sys._getframe(1))
        value = getattr(import_module(home), name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *vars(self).get("__all__", ())})

    def __call__(self, *_: object, **__: object) -> Any:
        raise TypeError(f"{self.__name__} is a module and cannot be called{vars(self).get('_called', '')}")


def explained_module(name: str, called: str = "", homes: Mapping[str, str] | None = None) -> None:
    """Make a module's errors say where a missing name is, and the right call if the module itself is called.

    Args:
        name: the module's `__name__`.
        called: the right code in place of a call of the module.
        homes: names that it loads on first use, with spaces between them, by the module that defines them.
    """
    module = sys.modules[name]
    module.__class__ = _ExplainedModule
    if homes:
        vars(module)["_homes"] = {name: home for home, names in homes.items() for name in names.split()}
    if called:
        vars(module)["_called"] = f": {called}"


def absent(module: ModuleType, name: str, asker: FrameType) -> Exception:
    """The error for a name that a module does not have.

    Args:
        module: the module.
        name: the missing name.
        asker: the frame that looks it up. An `import` statement shows only an ImportError's message; everything else
            expects an AttributeError.
    """
    where = module.__name__
    # the import system asks first, and tries a submodule if there is no attribute
    by_importlib = asker.f_code.co_filename.startswith("<frozen ")
    if name.startswith("_") or by_importlib:
        return AttributeError(f"module {where!r} has no attribute {name!r}", name=name, obj=module)
    hint = _hint(module, name)
    if _imports(asker.f_code.co_code, asker.f_lasti):
        return ImportError(f"{where} has no {name!r}{hint}", name=where, path=getattr(module, "__file__", None))
    return AttributeError(f"module {where!r} has no attribute {name!r}{hint}", name=name, obj=module)


def _imports(code: bytes, at: int) -> bool:
    """Return True if the instruction belongs to `from … import …`."""
    from opcode import opmap

    return code[at] == opmap["IMPORT_FROM"]


def _hint(module: Any, name: str) -> str:
    from importlib.util import find_spec

    from agentkit.checks.spelling import did_you_mean
    from agentkit.foreign.imports import FOREIGN, HOMES, MODULES

    where = module.__name__
    if hasattr(module, "__path__") and find_spec(f"{where}.{name}") is not None:
        return f": it is a module: write import {where}.{name}"
    public = sys.modules["agentkit"].__all__
    known = getattr(module, "__all__", None) or [n for n in (*public, *HOMES) if n in vars(module)]
    homes = {**dict.fromkeys(public, "agentkit"), **HOMES}
    others = {n: f"it is in {home}: from {home} import {n}" for n, home in homes.items() if n not in known}
    return did_you_mean(name, known, {**others, **MODULES, **FOREIGN}) or f"; it has {', '.join(known)}"
