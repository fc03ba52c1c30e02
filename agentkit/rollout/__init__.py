"""Rollouts: the same tools in reinforcement learning: trajectories, rewards, configuration, metrics; local and Ray."""

from __future__ import annotations

from agentkit.rollout.chat_template import ChatTemplate
from agentkit.rollout.decorated import as_rollout_tool
from agentkit.rollout.generation import Generation, GenerationRequest, Policy
from agentkit.rollout.measures import Measures, ToolMeasures
from agentkit.rollout.policies import ModelPolicy, ScriptedPolicy, ServerPolicy
from agentkit.rollout.record import CallRecord, TokenRecord, TrajectoryRecord
from agentkit.rollout.record_file import RecordFile, read_records
from agentkit.rollout.rollout import Rollout
from agentkit.rollout.rollout_limits import RolloutLimits
from agentkit.rollout.sample import Sample, ToolKwargs
from agentkit.rollout.samples import read_samples
from agentkit.rollout.token_history import TokenHistory
from agentkit.rollout.tool_parsers import FunctionCall, ToolParser, get_tool_parser
from agentkit.rollout.trajectory import TrajectoryState

__all__ = [
    "CallRecord",
    "ChatTemplate",
    "FunctionCall",
    "Generation",
    "GenerationRequest",
    "Measures",
    "ModelPolicy",
    "Policy",
    "RecordFile",
    "Rollout",
    "RolloutLimits",
    "Sample",
    "ScriptedPolicy",
    "ServerPolicy",
    "TokenHistory",
    "TokenRecord",
    "ToolKwargs",
    "ToolMeasures",
    "ToolParser",
    "TrajectoryRecord",
    "TrajectoryState",
    "as_rollout_tool",
    "get_tool_parser",
    "read_records",
    "read_samples",
]
