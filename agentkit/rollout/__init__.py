"""Rollouts: the same tools in reinforcement learning: trajectories, rewards, configuration, metrics; local and Ray."""

from __future__ import annotations

from agentkit.rollout.decorated import as_rollout_tool
from agentkit.rollout.generation import Generation, GenerationRequest, Policy
from agentkit.rollout.measures import Measures, ToolMeasures
from agentkit.rollout.record import CallRecord, TokenRecord, TrajectoryRecord
from agentkit.rollout.record_file import RecordFile, read_records
from agentkit.rollout.rollout import Rollout
from agentkit.rollout.rollout_limits import RolloutLimits
from agentkit.rollout.sample import Sample, ToolKwargs
from agentkit.rollout.trajectory import TrajectoryState

__all__ = [
    "CallRecord",
    "Generation",
    "GenerationRequest",
    "Measures",
    "Policy",
    "RecordFile",
    "Rollout",
    "RolloutLimits",
    "Sample",
    "TokenRecord",
    "ToolKwargs",
    "ToolMeasures",
    "TrajectoryRecord",
    "TrajectoryState",
    "as_rollout_tool",
    "read_records",
]
