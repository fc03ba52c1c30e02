"""Errors for attributes that an object does not have but that other toolkits have.

Existing names cost nothing extra: a class gets a descriptor under each foreign name, which is found only under that
name. (A class's `__getattr__` would be called just as rarely, but makes every attribute and property slower: three
times on Python 3.11, where an agent's turn took 7 % longer.) `hasattr` is still false for these names: each descriptor
raises AttributeError, and `dir` omits it.

Knows only names; may be imported by everything. `agentkit.foreign.absent_imports` does the same for modules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from agentkit.foreign.attributes import ATTRIBUTES, Words

C = TypeVar("C", bound=type)


class Foreign:
    """Another toolkit's name for an attribute: reading it raises an AttributeError that suggests ours."""

    __slots__ = ("_name", "ours")

    def __init__(self, name: str, ours: str) -> None:
        self._name = name
        self.ours = ours

    @property
    def _hint(self) -> str:
        return f"; did you mean {self.ours!r}?" if self.ours.isidentifier() else f": {self.ours}"

    def __get__(self, instance: Any, owner: type) -> Any:
        what = f"type object {owner.__name__!r}" if instance is None else f"{owner.__name__!r} object"
        if (mark := getattr(instance, "_mark_reported", None)) is not None:
            mark()  # so that Python does not also warn that it was never awaited
        # Without `obj`, Python does not add its own suggestion: for remove_thread that would be resume_thread.
        raise AttributeError(f"{what} has no attribute {self._name!r}{self._hint}", name=self._name)

    def __repr__(self) -> str:  # read by `help`
        return f"<not here{self._hint}>"


def suggest_attributes(cls: C) -> C:
    """Make a class suggest its own attributes for the names in its table.

    Subclasses can define these names, and instances can set them.
    """
    return suggest_from(ATTRIBUTES.get(cls.__name__, {}))(cls)


def suggest_from(names: Words) -> Callable[[C], C]:
    """Return the decorator for a separate table: by name, one of our attributes or an explanation to follow a colon."""
    return lambda cls: _explain(cls, names)


def _explain(cls: C, names: Words) -> C:
    for name, ours in names.items():
        setattr(cls, name, Foreign(name, ours))
    if names:
        cls.__dir__ = _dir  # type: ignore[assignment]
    return cls


def _dir(self: object) -> list[str]:
    """The existing names: Python looks here for suggestions."""
    own = getattr(self, "__dict__", {})
    return [name for name in object.__dir__(self) if name in own or not _is_foreign(type(self), name)]


def _is_foreign(cls: type, name: str) -> bool:
    return isinstance(next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None), Foreign)
