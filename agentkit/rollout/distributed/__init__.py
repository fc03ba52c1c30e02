"""A rollout on Ray: workers that roll out, and actors that own a tool's resources. Needs the extra `rollout`."""

from __future__ import annotations

from agentkit.rollout.distributed.actor_pool import ActorPool
from agentkit.rollout.distributed.ray_rollout import RayRollout

__all__ = ["ActorPool", "RayRollout"]
