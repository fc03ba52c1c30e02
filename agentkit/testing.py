"""What a user's own tests need: models without a network. Ships with the package; loads no provider's SDK by itself."""

from __future__ import annotations

from agentkit.models.replay import Recording, Replay
from agentkit.models.scripted import ScriptedModel

__all__ = ["Recording", "Replay", "ScriptedModel"]
