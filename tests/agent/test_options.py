"""An agent's limits are declared once; what else has their names follows."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import Any, get_type_hints

import pytest

from agentkit.agent import Agent, Budget
from agentkit.agent.options import LIMITS, AgentLimits, AgentOptions, LimitKeywords, Settings, ThreadRunOptions
from agentkit.errors import ConfigError
from agentkit.testing import ScriptedModel
from agentkit.threads import ThreadManager

NAMES = [limit.name for limit in fields(AgentLimits)]


def test_the_keywords_are_the_limits_with_the_same_types() -> None:
    keywords, limits = get_type_hints(LimitKeywords), get_type_hints(AgentLimits)
    assert list(keywords) == NAMES
    assert keywords == limits | {"budget": Budget | None}  # where none is given, the agent has one without bounds


@pytest.mark.parametrize("door", [Agent, ThreadManager.run_thread])
def test_a_signature_shows_each_of_them(door: Any) -> None:
    shown = inspect.signature(door).parameters
    assert {name: shown[name].default for name in NAMES} == {one.name: one.default for one in fields(AgentLimits)}


@pytest.mark.parametrize("name", NAMES)
def test_each_of_them_is_held_against_its_bound(name: str) -> None:
    with pytest.raises(ConfigError, match=rf"^Agent\({name}='many'\): expected "):
        Agent(ScriptedModel([]), **{name: "many"})
    assert LIMITS[name].holds(getattr(Agent(ScriptedModel([])), name))


def test_no_option_is_two() -> None:
    assert not LimitKeywords.__annotations__.keys() & Settings.__annotations__.keys()
    assert AgentOptions.__annotations__.keys() <= ThreadRunOptions.__annotations__.keys()


def test_a_run_has_the_limits_of_the_moment_at_which_it_was_begun() -> None:
    agent = Agent(ScriptedModel(["Hi."]), max_turns=3)
    run = agent.stream("Hello")
    agent.max_turns = 9
    assert run.plan.limits.max_turns == 3
    run.cancel()
