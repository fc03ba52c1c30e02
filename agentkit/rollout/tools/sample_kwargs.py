"""A sample's arguments for a tool, phase by phase, checked against the tool's parameters. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from agentkit.checks.spelling import did_you_mean
from agentkit.errors import ConfigError
from agentkit.rollout.samples.sample import PHASES, Sample
from agentkit.rollout.tools.offered_tools import hidden_parameters
from agentkit.rollout.tools.per_trajectory import HOOKS, RolloutTool
from agentkit.tool.bound_tool import BoundTool

_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


def needed(source: RolloutTool, sample: Sample) -> bool:
    """Say if a sample uses a tool: the model may call it, or the sample has arguments for it."""
    names = sample.tool_selection
    return names is None or any(name in names or name in sample.tools_kwargs for name in source.tools)


def phase_of(sample: Sample, source: RolloutTool, phase: str) -> Mapping[str, Any]:
    """The keyword arguments of `create`, `calc_reward` or `release`: of all functions of the tool together."""
    told = sample.tools_kwargs
    if not told:
        return _NONE
    found: dict[str, Any] = {}
    for name in source.tools:
        if (kwargs := told.get(name)) is not None:
            found.update(getattr(kwargs, phase))
    return found


def check_sample(sample: Sample, sources: Mapping[str, RolloutTool]) -> None:
    """Refuse a sample that names an unknown tool, or arguments that a tool cannot take.

    Args:
        sample: the sample.
        sources: the rollout's tools by function name.

    Raises:
        ConfigError: says which, and what was expected.
    """
    try:
        for key, names in (("tools_kwargs", sample.tools_kwargs), ("tool_selection", sample.tool_selection or ())):
            for name in names:
                if name not in sources:
                    raise ConfigError(
                        f"{key} names {name!r}, but the tools are {', '.join(sources) or 'none'}"
                        f"{did_you_mean(name, sources)}"
                    )
        for source in dict.fromkeys(sources.values()):
            _check_source(sample, source)
    except ConfigError as e:
        raise ConfigError(f"sample {sample.id!r}: {e}") from e


def _check_source(sample: Sample, source: RolloutTool) -> None:
    if not needed(source, sample):
        return
    told = sample.tools_kwargs
    for phase in HOOKS:
        _refuse_contradiction(sample, source, phase)
    phases = {phase: phase_of(sample, source, phase) for phase in PHASES}
    source.check(phases)
    for name in source.tools.keys() & told.keys():
        _check_execute(source.tools[name], told[name].execute)


def _refuse_contradiction(sample: Sample, source: RolloutTool, phase: str) -> None:
    """One instance serves all functions of a tool, so they cannot have different arguments."""
    seen: dict[str, tuple[str, Any]] = {}
    for name in source.tools:
        for key, value in getattr(sample.tools_kwargs.get(name), phase, _NONE).items():
            first, other = seen.setdefault(key, (name, value))
            if other is not value and other != value:
                raise ConfigError(
                    f"{phase}_kwargs of {first} and {name} are for the same instance, but differ in {key!r}; "
                    "write it for one of them"
                )


def _check_execute(tool: BoundTool, execute: Mapping[str, Any]) -> None:
    """Refuse arguments that the model writes itself, and those that the method does not have."""
    if not execute:
        return
    properties = tool.spec.parameters.get("properties", {})
    if shown := [name for name in execute if name in properties]:
        raise ConfigError(
            f"execute_kwargs of {tool.name}: {', '.join(shown)} is what the model writes; remove it there, or "
            f"hide it from the model: `{shown[0]}: Annotated[…, Hidden] = …`"
        )
    takes = hidden_parameters(tool)
    unknown = [name for name in execute if takes is not None and name not in takes]
    if unknown and not tool.context:
        raise ConfigError(
            f"execute_kwargs of {tool.name}: {tool.where} takes no {', '.join(unknown)}; give it a parameter "
            f"`{unknown[0]}: Annotated[…, Hidden] = …`, or `context: ToolContext` and read "
            f"context.state[{unknown[0]!r}]{did_you_mean(unknown[0], takes or ())}"
        )
