"""A cache of results computed from frozen values, by the identity of these values.

Declarations and tools are deeply nested: hashing or comparing them costs more than many of the results.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Final, Generic, TypeVar

from agentkit.formats.format import Format
from agentkit.toolspec import ToolSpec

T = TypeVar("T")

_CACHE_SIZE: Final = 64  # an application has few sets of formats and tools


class IdentityCache(Generic[T]):
    """A cache of results for particular formats and tools; the latest ones are kept."""

    def __init__(self) -> None:
        self._made: OrderedDict[Hashable, tuple[T, Sequence[Format], Sequence[ToolSpec]]] = OrderedDict()

    def get(
        self, formats: Sequence[Format], tools: Sequence[ToolSpec], make: Callable[[], T], options: Hashable = None
    ) -> T:
        """Return the result for these formats, these tools and `options`; computed now if it is not in the cache.

        The formats and tools themselves are kept, so that none of their identities is reused.
        """
        key = (options, len(formats), *map(id, formats), *map(id, tools))
        if (found := self._made.get(key)) is None:
            found = self._made[key] = (make(), tuple(formats), tuple(tools))
            if len(self._made) > _CACHE_SIZE:
                self._made.popitem(last=False)
        return found[0]
