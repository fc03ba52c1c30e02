"""What is said to who imports a name from a module that has it not, or a module that there is not: what to write.

Loads nothing until then.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import FrameType, ModuleType
from typing import Any, Final

_ROOT: Final = "agentkit"


class _ExplainedModule(ModuleType):
    """A module that says where a name is which it has not."""

    def __getattr__(self, name: str) -> Any:
        raise absent(self, name, sys._getframe(1))

    def __call__(self, *_: object, **__: object) -> Any:
        raise TypeError(f"{self.__name__} is a module, and cannot be called{vars(self).get('_called', '')}")


def explained_module(name: str, called: str = "") -> None:
    """Make a module say where a name is which it has not; and what to write, where it is called as if it were one.

    Args:
        name: the module's `__name__`.
        called: what to write in place of a call of the module.
    """
    module = sys.modules[name]
    module.__class__ = _ExplainedModule
    if called:
        vars(module)["_called"] = f": {called}"


def refuse_module(name: str, frame: FrameType | None) -> None:
    """Say what to write for a module that nobody has found.

    Only an import is told so: who asks by `importlib.util.find_spec` whether there is one is told that there is none.

    Args:
        name: the module's.
        frame: who asks: the import machinery, and behind it the statement.

    Raises:
        ModuleNotFoundError: it is an import that asks.
    """
    imports = False
    while frame is not None and frame.f_code.co_filename.startswith("<frozen importlib"):
        imports = imports or frame.f_code.co_name == "_find_and_load"
        frame = frame.f_back
    if imports and frame is not None and not frame.f_code.co_filename.endswith(_BY_NAME):
        raise ModuleNotFoundError(f"No module named {name!r}{_module_hint(name, _wanted(frame))}", name=name)


_BY_NAME: Final = ("importlib/util.py", "importlib\\util.py", "pkgutil.py", "runpy.py")
"""Python's own, which ask for a parent first and take no for an answer."""


def _wanted(frame: FrameType) -> Sequence[str]:
    """The names that the statement `from … import …` wants: what it puts on the stack before it asks."""
    import dis

    last: Any = None
    for step in dis.get_instructions(frame.f_code):
        if step.offset >= frame.f_lasti:
            break
        if step.opname == "LOAD_CONST":
            last = step.argval
    return last if isinstance(last, tuple) else ()


def _module_hint(name: str, wanted: Sequence[str]) -> str:
    """Where the first of the names is, or what it is called here; else which module was meant."""
    from pkgutil import iter_modules

    from agentkit.checks.spelling import nearest
    from agentkit.foreign.imports import FOREIGN, HOMES, MODULES

    parent, _, last = name.rpartition(".")
    for one in wanted:
        if one in sys.modules[_ROOT].__all__:
            return f": write from {_ROOT} import {one}"
        if one in HOMES:
            return f": write from {HOMES[one]} import {one}"
        if one in FOREIGN:
            return f"; for {one!r}: {FOREIGN[one]}"
    if last in MODULES:
        return f"; did you mean {MODULES[last]!r}?"
    there = [module.name for module in iter_modules(getattr(sys.modules.get(parent), "__path__", []))]
    near = nearest(last, there)
    return f"; did you mean '{parent}.{near}'?" if near else ""


def absent(module: ModuleType, name: str, asker: FrameType) -> Exception:
    """What to raise where a module has no such name.

    Args:
        module: the module.
        name: what it was asked for.
        asker: the frame that asks. An `import` statement shows the words of an ImportError only; whatever else asks
            expects an AttributeError.
    """
    where = module.__name__
    imports = _imports(asker.f_code.co_code, asker.f_lasti)
    by_importlib = asker.f_code.co_filename.startswith("<frozen ")  # it asks first, and takes no for a submodule
    if name.startswith("_") or by_importlib:
        return AttributeError(f"module {where!r} has no attribute {name!r}", name=name, obj=module)
    hint = _hint(module, name)
    if imports:
        return ImportError(f"{where} has no {name!r}{hint}", name=where, path=getattr(module, "__file__", None))
    return AttributeError(f"module {where!r} has no attribute {name!r}{hint}", name=name, obj=module)


def _imports(code: bytes, at: int) -> bool:
    """Whether the instruction is that of `from … import …`."""
    from opcode import opmap

    return code[at] == opmap["IMPORT_FROM"]


def _hint(module: Any, name: str) -> str:
    from importlib.util import find_spec

    from agentkit.checks.spelling import did_you_mean
    from agentkit.foreign.imports import FOREIGN, HOMES

    where = module.__name__
    if hasattr(module, "__path__") and find_spec(f"{where}.{name}") is not None:
        return f": it is a module: write import {where}.{name}"
    public = sys.modules["agentkit"].__all__
    known = getattr(module, "__all__", None) or [n for n in (*public, *HOMES) if n in vars(module)]
    homes = {**dict.fromkeys(public, "agentkit"), **HOMES}
    others = {n: f"it is in {home}: from {home} import {n}" for n, home in homes.items() if n not in known}
    return did_you_mean(name, known, {**others, **FOREIGN}) or f"; it has {', '.join(known)}"
