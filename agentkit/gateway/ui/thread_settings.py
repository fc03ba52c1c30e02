"""The settings of a person for one thread: its title, its model, its format.

It is in the thread's metadata, under `ui`. A value only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from agentkit.models.wire import mapping_of
from agentkit.threads import Thread

KEY: Final = "ui"
LONGEST_TITLE: Final = 200


@dataclass(frozen=True, slots=True)
class ThreadSettings:
    """The settings of a thread.

    Args:
        title: empty for one made from the first message.
        model: the name of a choice; empty for the agent's own model.
        format: of the calls; empty for the model's own, `native` for native calls.
        stopped: the last entry when a person stopped the thread; -1 if that never happened.
    """

    title: str = ""
    model: str = ""
    format: str = ""
    stopped: int = -1

    @classmethod
    def of(cls, thread: Thread) -> ThreadSettings:
        """The settings of a thread; the defaults for whatever is missing or wrong."""
        found = mapping_of(thread.metadata.get(KEY))
        return cls(
            **{one.name: found[one.name] for one in fields(cls) if type(found.get(one.name)) is type(one.default)}
        )

    def in_metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        """A thread's metadata with these settings."""
        return {**metadata, KEY: asdict(self)}
