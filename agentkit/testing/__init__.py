"""Support for users' own tests: models without a network, checks for a store. Does not load a provider's SDK itself."""

from __future__ import annotations

from agentkit.foreign.absent_imports import explained_module
from agentkit.testing.checking import StoreCheck
from agentkit.testing.replay import Recording, Replay
from agentkit.testing.scripted import ScriptedModel
from agentkit.testing.store_checks import STORE_CHECKS

__all__ = ["STORE_CHECKS", "Recording", "Replay", "ScriptedModel", "StoreCheck"]

explained_module(__name__)
