"""`--agent module:name`: what is loaded, and what is said of anything else."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from agentkit import Agent
from agentkit.cli.python_objects import load_agent
from agentkit.errors import ConfigError
from agentkit.testing import ScriptedModel

AGENT = Agent(ScriptedModel(["Hello."]))
LIKELY = "expected an Agent, such as agent = Agent('openai:gpt-5', [function]), or a function without arguments"


@pytest.fixture(autouse=True)
def shop(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("shop_of_agents")
    vars(module).update(
        agent=AGENT, made=lambda: AGENT, model=AGENT.model, kind=Agent, number=lambda: 5, needs=lambda model: AGENT
    )
    monkeypatch.setitem(sys.modules, "shop_of_agents", module)


@pytest.mark.parametrize("name", ["agent", "made"])
def test_an_agent_or_a_function_that_returns_one(name: str) -> None:
    assert load_agent(f"shop_of_agents:{name}") is AGENT


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("shop_of_agents:agnet", "has no 'agnet'; did you mean 'agent'? An agent is module:name, such as shop:agent"),
        ("shop_of_agents", "write 'module:Class'"),
        ("shop_of_agents_too:agent", "cannot be imported"),
        ("shop_of_agents:model", f"{LIKELY} that returns one; found ScriptedModel"),
        ("shop_of_agents:kind", f"{LIKELY} that returns one; found the class Agent"),
        ("shop_of_agents:number", f"{LIKELY} that returns one; found a function that returned int"),
        ("shop_of_agents:needs", f"{LIKELY} that returns one; found the function <lambda>, which takes arguments"),
    ],
)
def test_anything_else_is_refused(reference: str, message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_agent(reference)
    assert str(refused.value).startswith("--agent ")
    assert message in str(refused.value)
