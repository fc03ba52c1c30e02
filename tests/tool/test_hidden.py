"""Parameters that the model neither sees nor writes."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from agentkit import Agent, Hidden, SchemaError, ToolCall, ToolRegistry, openapi_schema
from agentkit.testing import ScriptedModel


@openapi_schema
def ask(question: str, retries: Annotated[int, Hidden] = 3, loud: Annotated[bool, Hidden()] = False) -> str:
    """Ask.

    Args:
        question: what
        retries: how often
        loud: whether to shout
    """
    return f"{question} {retries} {loud}"


def test_it_is_not_in_the_schema_and_has_its_default() -> None:
    (tool,) = ToolRegistry(ask).tools.values()
    assert tool.spec.parameters["properties"].keys() == {"question"}
    result = Agent(ScriptedModel([ToolCall("c", "ask", {"question": "Why?"}), "done"]), [ask]).run_sync("go")
    assert "Why? 3 False" in str(result.messages)


def test_a_model_that_writes_it_is_told_that_there_is_no_such_parameter() -> None:
    model = ScriptedModel([ToolCall("c", "ask", {"question": "Why?", "retries": 9}), "done"])
    assert "Why?" not in str(Agent(model, [ask]).run_sync("go").messages[-2].text)


def no_default(n: Annotated[int, Hidden]) -> None: ...
def described(n: Annotated[int, Hidden] = 1) -> None: ...
def written(n: Annotated[int, Hidden] = 1) -> None: ...


N: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}
WRITTEN = {"type": "function", "function": {"name": "written", "description": "d", "parameters": N}}


@pytest.mark.parametrize(
    ("tool", "message"),
    [
        (openapi_schema(no_default), "parameter 'n' is Hidden, so that no call of a model has it; give it a default"),
        (openapi_schema(n="how many")(described), "describes 'n', which is Hidden; remove it"),
        (openapi_schema(WRITTEN)(written), "has parameter 'n', which is Hidden; remove it there"),
    ],
)
def test_what_is_hidden_has_a_default_and_no_description(tool: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        ToolRegistry(tool)
