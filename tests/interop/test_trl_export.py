"""Ours as TRL takes them: probed, described and called as its `GRPOTrainer` does it, read by transformers."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

pytest.importorskip("trl", reason="TRL is not installed: make peers")

from peer_tools import Adder, fail, search
from transformers.utils import get_json_schema

from agentkit import openapi_schema
from agentkit.errors import SchemaError
from agentkit.interop.trl import to_trl, to_trl_environment

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def fresh() -> None:
    Adder.forget()


def called(tool: Any, **arguments: Any) -> Any:
    """As TRL calls it: async ones on a loop of its own, plain ones where it stands."""
    return asyncio.run(tool(**arguments)) if inspect.iscoroutinefunction(tool) else tool(**arguments)


def test_the_schema_that_transformers_reads_is_ours() -> None:
    (tool,) = to_trl(search)
    function = get_json_schema(tool)["function"]
    assert (function["name"], function["description"]) == ("search", "Search.")
    assert function["parameters"]["required"] == ["queries"]
    properties = function["parameters"]["properties"]
    assert properties["queries"] == {
        "type": "array",
        "items": {"type": "string"},
        "description": "what to look for.",
    }
    assert properties["limit"] == {"type": "integer", "nullable": True, "description": "how many hits. Default: 3"}
    assert properties["kind"]["enum"] == ["web", "news", None]


def test_tools_run_with_what_the_model_sent() -> None:
    (tool,) = to_trl(search)
    assert called(tool, queries=["a"], limit=None) == "['a'] 3 None None"
    assert called(tool, queries=["a"], kind="web") == "['a'] 3 web None"


def test_an_error_is_what_the_model_reads() -> None:
    broken, add = to_trl(fail)[0], to_trl(Adder)[0]
    assert "no such file: a.txt" in called(broken, path="a.txt")
    assert "invalid arguments for add" in called(add, n="many")


def environment_tools(environment: Any) -> list[Any]:
    """Source: TRL's `GRPOTrainer`: the public functions of the class, but for reset and get_reward."""
    members = inspect.getmembers(type(environment), predicate=inspect.isfunction)
    return [
        getattr(environment, name)
        for name, _ in members
        if name not in ("reset", "get_reward") and not name.startswith("_")
    ]


def test_an_environment_shows_its_tools_and_nothing_else() -> None:
    environment = to_trl_environment(Adder)()
    tools = environment_tools(environment)
    assert [tool.__name__ for tool in tools] == ["add", "total_of"]
    assert get_json_schema(tools[0])["function"]["parameters"]["properties"]["n"] == {
        "type": "integer",
        "description": "how many.",
    }


def test_each_rollout_has_its_state_its_reward_and_its_end() -> None:
    factory = to_trl_environment(Adder, columns=["start"])
    one, other = factory(), factory()
    one.reset(prompt="p", start=0)
    other.reset(prompt="p", start=100)
    add, total = environment_tools(one)
    assert [called(add, n=n) for n in range(1, 9)] == ["1", "3", "6", "10", "15", "21", "28", "36"]
    assert called(total) == "36"
    assert called(environment_tools(other)[0], n=1) == "101"
    assert (one.get_reward(), other.get_reward()) == (8 * 0.5 + 36, 0.5 + 101)
    one.reset(prompt="p", start=5)  # the pool uses it again
    assert called(add, n=1) == "6"
    assert one.get_reward() == 6.5
    assert Adder.released == [36]


def test_64_rollouts_at_once() -> None:
    factory = to_trl_environment(Adder)
    pool = [factory() for _ in range(64)]
    for environment in pool:
        environment.reset(prompt="p")

    async def rollout(environment: Any) -> list[str]:
        add = environment_tools(environment)[0]
        return [await add(n=n) for n in range(1, 9)]

    async def main() -> list[list[str]]:
        return await asyncio.gather(*map(rollout, pool))

    assert asyncio.run(main()) == [["1", "3", "6", "10", "15", "21", "28", "36"]] * 64


def test_a_reserved_name_is_refused_with_the_name_of_the_peer() -> None:
    @openapi_schema
    def get_reward() -> float:
        """Reward."""
        return 1.0

    with pytest.raises(SchemaError, match="TRL keeps the name 'get_reward' for itself"):
        to_trl(get_reward)
