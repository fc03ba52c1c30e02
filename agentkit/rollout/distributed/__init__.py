"""The same rollout on Ray: workers that roll out, and actors that own what a tool needs. Needs the extra `rollout`."""

from __future__ import annotations

from agentkit.rollout.distributed.actor_pool import ActorPool
from agentkit.rollout.distributed.ray_rollout import RayRollout

__all__ = ["ActorPool", "RayRollout"]
