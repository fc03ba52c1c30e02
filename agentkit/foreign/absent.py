"""What is said to who asks an object for a name that it has not, but other toolkits have.

Nothing here is paid for by who asks for a name that there is: a class gets a descriptor under each foreign name, which
is found only under that name. (A class's `__getattr__` would be called as rarely, yet makes each attribute and each
property slower: threefold on Python 3.11, where an agent's turn took 7 % longer.) What asks whether there is such a
name is told that there is none: each descriptor raises AttributeError, and `dir` leaves it out.

Knows names only; may be imported by everything. For modules, `agentkit.foreign.absent_imports` does the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from agentkit.foreign.attributes import ATTRIBUTES, Words

C = TypeVar("C", bound=type)


class Foreign:
    """A name that others have for something: whoever asks for it is told ours, in an AttributeError."""

    __slots__ = ("_name", "ours")

    def __init__(self, name: str, ours: str) -> None:
        self._name = name
        self.ours = ours

    @property
    def _hint(self) -> str:
        return f"; did you mean {self.ours!r}?" if self.ours.isidentifier() else f": {self.ours}"

    def __get__(self, instance: Any, owner: type) -> Any:
        what = f"type object {owner.__name__!r}" if instance is None else f"{owner.__name__!r} object"
        if (told := getattr(instance, "_told", None)) is not None:
            told()  # so that it does not complain, too, that nobody waited for it
        # Without its `obj`, Python adds no guess of its own: for remove_thread that would be resume_thread.
        raise AttributeError(f"{what} has no attribute {self._name!r}{self._hint}", name=self._name)

    def __repr__(self) -> str:  # as `help` lists it
        return f"<not here{self._hint}>"


def explained(cls: C) -> C:
    """Make a class say what its instances have in place of the names in its table.

    A subclass, and an object that is written to, may have these names for themselves.
    """
    return explain_with(ATTRIBUTES.get(cls.__name__, {}))(cls)


def explain_with(names: Words) -> Callable[[C], C]:
    """The same, with a table of its own: by name, an attribute of ours or words that follow a colon."""
    return lambda cls: _explain(cls, names)


def _explain(cls: C, names: Words) -> C:
    for name, ours in names.items():
        setattr(cls, name, Foreign(name, ours))
    if names:
        cls.__dir__ = _dir  # type: ignore[assignment]
    return cls


def _dir(self: object) -> list[str]:
    """The names that there are: Python looks here for what may have been meant."""
    own = getattr(self, "__dict__", {})
    return [name for name in object.__dir__(self) if name in own or not _is_foreign(type(self), name)]


def _is_foreign(cls: type, name: str) -> bool:
    return isinstance(next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None), Foreign)
