"""Rollouts: the same tools in reinforcement learning: trajectories, rewards, configuration, metrics; local and Ray."""

from __future__ import annotations

from agentkit.rollout.policy.generation import Generation, GenerationRequest, Policy
from agentkit.rollout.policy.policies import ModelPolicy, ScriptedPolicy, ServerPolicy
from agentkit.rollout.records.measures import Measures, ToolMeasures
from agentkit.rollout.records.record import CallRecord, TokenRecord, TrajectoryRecord
from agentkit.rollout.records.record_file import RecordFile, read_records
from agentkit.rollout.records.trajectory import TrajectoryState
from agentkit.rollout.rollout import Rollout
from agentkit.rollout.rollout_limits import RolloutLimits
from agentkit.rollout.samples.sample import Sample, ToolKwargs
from agentkit.rollout.samples.samples import read_samples
from agentkit.rollout.tokens.chat_template import ChatTemplate
from agentkit.rollout.tokens.token_history import TokenHistory
from agentkit.rollout.tokens.tool_parsers import FunctionCall, ToolParser, get_tool_parser
from agentkit.rollout.tools.decorated import as_rollout_tool

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
