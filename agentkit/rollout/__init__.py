"""Rollouts, which use the same tools in reinforcement learning: trajectories, rewards, metrics; locally and on Ray."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.foreign.absent_imports import explained_module

if TYPE_CHECKING:
    from agentkit.interop.open_instruct.open_instruct_config import (
        InstructConfig,
        add_flags,
        config_from_flags,
        parse_flags,
    )
    from agentkit.interop.open_instruct.open_instruct_shape import InstructShaped
    from agentkit.interop.verl.verl_config import verl_tools
    from agentkit.interop.verl.verl_shape import VerlShaped
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
    from agentkit.rollout.tools.decorated_tool import as_rollout_tool
    from agentkit.rollout.tools.per_trajectory import RolloutInstance, RolloutTool

__all__ = [
    "CallRecord",
    "ChatTemplate",
    "FunctionCall",
    "Generation",
    "GenerationRequest",
    "InstructConfig",
    "InstructShaped",
    "Measures",
    "ModelPolicy",
    "Policy",
    "RecordFile",
    "Rollout",
    "RolloutInstance",
    "RolloutLimits",
    "RolloutTool",
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
    "VerlShaped",
    "add_flags",
    "as_rollout_tool",
    "config_from_flags",
    "get_tool_parser",
    "parse_flags",
    "read_records",
    "read_samples",
    "verl_tools",
]

explained_module(
    __name__,
    homes={
        "agentkit.interop.open_instruct.open_instruct_config": "InstructConfig add_flags config_from_flags parse_flags",
        "agentkit.interop.verl.verl_config": "verl_tools",
        "agentkit.rollout.policy.generation": "Generation GenerationRequest Policy",
        "agentkit.rollout.policy.policies": "ModelPolicy ScriptedPolicy ServerPolicy",
        "agentkit.rollout.records.measures": "Measures ToolMeasures",
        "agentkit.rollout.records.record": "CallRecord TokenRecord TrajectoryRecord",
        "agentkit.rollout.records.record_file": "RecordFile read_records",
        "agentkit.rollout.records.trajectory": "TrajectoryState",
        "agentkit.rollout.rollout": "Rollout",
        "agentkit.rollout.rollout_limits": "RolloutLimits",
        "agentkit.rollout.samples.sample": "Sample ToolKwargs",
        "agentkit.rollout.samples.samples": "read_samples",
        "agentkit.rollout.tokens.chat_template": "ChatTemplate",
        "agentkit.rollout.tokens.token_history": "TokenHistory",
        "agentkit.rollout.tokens.tool_parsers": "FunctionCall ToolParser get_tool_parser",
        "agentkit.rollout.tools.decorated_tool": "as_rollout_tool",
        "agentkit.interop.open_instruct.open_instruct_shape": "InstructShaped",
        "agentkit.rollout.tools.per_trajectory": "RolloutInstance RolloutTool",
        "agentkit.interop.verl.verl_shape": "VerlShaped",
    },
)
