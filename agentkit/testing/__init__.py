"""Support for users' own tests: models without a network, checks for a store. Does not load a provider's SDK itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.foreign.absent_imports import explained_module

if TYPE_CHECKING:
    from agentkit.testing.assertions import StoreCheck
    from agentkit.testing.replay import Recording, Replay
    from agentkit.testing.scripted_model import ScriptedModel
    from agentkit.testing.store_checks import STORE_CHECKS

__all__ = ["STORE_CHECKS", "Recording", "Replay", "ScriptedModel", "StoreCheck"]

explained_module(
    __name__,
    homes={
        "agentkit.testing.assertions": "StoreCheck",
        "agentkit.testing.replay": "Recording Replay",
        "agentkit.testing.scripted_model": "ScriptedModel",
        "agentkit.testing.store_checks": "STORE_CHECKS",
    },
)
