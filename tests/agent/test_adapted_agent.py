"""An agent with another model or other rules: everything else is the same, and the first agent does not change."""

from __future__ import annotations

import pytest

from agentkit import Agent
from agentkit.errors import ConfigError
from agentkit.messages import SystemMessage, ToolCall
from agentkit.processor import ProcessorConfig
from agentkit.testing import ScriptedModel


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def test_another_model_with_the_same_tools_instructions_and_limits() -> None:
    agent = Agent(ScriptedModel(["One."]), [add], system="Be brief.", max_turns=3, temperature=0.5, name="adder")
    other = ScriptedModel([ToolCall("", "add", {"a": 1, "b": 2}), "3."], name="other", format="hermes")
    adapted = agent.adapt(model=other)
    assert adapted.run_sync("1 + 2?").text == "3."
    request = other.requests[0]
    assert request.messages[0] == SystemMessage("Be brief.")
    assert request.temperature == 0.5
    assert (adapted.max_turns, adapted.name, adapted.registry) == (3, "adder", agent.registry)
    assert agent.run_sync("Hi").text == "One."


def test_other_rules_and_more_hooks() -> None:
    seen: list[str] = []
    agent = Agent(
        ScriptedModel([ToolCall("", "add", {"a": 1, "b": 2}), "3."]), [add], hooks=[lambda e, _: seen.append("a")]
    )
    asks = agent.adapt(config=ProcessorConfig(requires_approval=True), hooks=[lambda e, _: seen.append("b")])
    assert asks.run_sync("1 + 2?").finish == "approval"
    assert set(seen) == {"a", "b"}
    assert agent.config.requires_approval is None
    seen.clear()
    assert agent.run_sync("1 + 2?").text == "3."
    assert set(seen) == {"a"}


def test_a_wrong_model_is_refused() -> None:
    with pytest.raises(ConfigError, match="adapt"):
        Agent(ScriptedModel([])).adapt(model=5)  # type: ignore[arg-type]
