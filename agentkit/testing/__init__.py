"""What a user's own tests need: models without a network, checks of a store. Loads no provider's SDK by itself."""

from __future__ import annotations

from agentkit.absent_imports import explained_module
from agentkit.models.replay import Recording, Replay
from agentkit.models.scripted import ScriptedModel
from agentkit.testing.checking import StoreCheck
from agentkit.testing.stores import STORE_CHECKS

__all__ = ["STORE_CHECKS", "Recording", "Replay", "ScriptedModel", "StoreCheck"]

explained_module(__name__)
