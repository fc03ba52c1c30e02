"""What was made of values that never change, found again by which values they are.

Declarations and tools are deep: to hash or to compare them costs more than much of what is made of them. Knows nothing
of them but that they are frozen.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, TypeVar

from agentkit.formats.format import Format
from agentkit.toolspec import ToolSpec

T = TypeVar("T")

_KEPT: Final = 64  # an application has few sets of formats and tools


class Remembered(Generic[T]):
    """What was made of these very formats and tools, the last ones of them."""

    def __init__(self) -> None:
        self._made: OrderedDict[Hashable, tuple[T, Sequence[Format], Sequence[ToolSpec]]] = OrderedDict()

    def get(
        self, formats: Sequence[Format], tools: Sequence[ToolSpec], make: Callable[[], T], said: Hashable = None
    ) -> T:
        """What was made of them, and of what else was `said`; made now if it never was.

        It holds the formats and tools themselves, so that the identity of none is used again.
        """
        key = (said, len(formats), *map(id, formats), *map(id, tools))
        if (found := self._made.get(key)) is None:
            found = self._made[key] = (make(), tuple(formats), tuple(tools))
            if len(self._made) > _KEPT:
                self._made.popitem(last=False)
        return found[0]
