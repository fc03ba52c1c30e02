"""Type variables with defaults, as type checkers read them.

Python itself has them from 3.13. Before that, `typing_extensions` has them, but loading it would be a twelfth of what
`from agentkit import Agent` costs; without it, a default is only known to checkers.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

__all__ = ["TypeVar"]

if TYPE_CHECKING:
    from typing_extensions import TypeVar
elif sys.version_info >= (3, 13):
    from typing import TypeVar
else:
    import typing
    from typing import Any

    def TypeVar(name: str, *, default: Any = None, **how: Any) -> typing.TypeVar:
        """A type variable, without its default."""
        return typing.TypeVar(name, **how)
