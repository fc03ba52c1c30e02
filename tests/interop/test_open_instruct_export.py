"""Ours as open-instruct's environments and, before those, its tools: from checkouts named by the environment.

`OPEN_INSTRUCT` is a checkout of its main branch, `OPEN_INSTRUCT_EARLY` one from before February 2026.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from typing import Any

import pytest
from peer_tools import Adder, fail, search

from agentkit.interop.open_instruct import to_early_open_instruct, to_open_instruct

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

SUMS = ["1", "3", "6", "10", "15", "21", "28", "36"]


@pytest.fixture(autouse=True)
def fresh() -> None:
    Adder.forget()


def checkout(variable: str, module: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    if not (path := os.environ.get(variable)):
        pytest.skip(f"open-instruct is not on the registry: name a checkout in {variable}")
    for name in [name for name in sys.modules if name.split(".")[0] == "open_instruct"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(path)
    try:
        return importlib.import_module(module)
    except ImportError as e:
        pytest.skip(f"open-instruct does not import here: {e}")


@pytest.fixture
def base(monkeypatch: pytest.MonkeyPatch) -> Any:
    return checkout("OPEN_INSTRUCT", "open_instruct.environments.base", monkeypatch)


@pytest.fixture
def utils(monkeypatch: pytest.MonkeyPatch) -> Any:
    return checkout("OPEN_INSTRUCT_EARLY", "open_instruct.tools.utils", monkeypatch)


async def steps(base: Any, environment: Any, name: str, *arguments: dict[str, Any]) -> list[Any]:
    return [await environment.step(base.EnvCall(id=str(i), name=name, args=a)) for i, a in enumerate(arguments)]


EIGHT = [{"n": n} for n in range(1, 9)]


def test_an_environment_keeps_its_state_for_a_rollout_and_begins_anew_with_the_next(base: Any) -> None:
    config = to_open_instruct(Adder, name="adder")
    assert issubclass(config, base.BaseEnvConfig)
    assert issubclass(config.tool_class, base.RLEnvironment)

    async def main() -> tuple[Any, ...]:
        environment = config.tool_class(call_name="adder", pool_size=4)
        await environment.setup()
        _, definitions = await environment.reset()
        first = await steps(base, environment, "add", *EIGHT)
        await environment.reset(start=100)
        second = await steps(base, environment, "add", {"n": 1})
        return definitions, first, second, environment.state().step_count

    definitions, first, second, count = asyncio.run(main())
    assert [definition["function"]["name"] for definition in definitions] == ["add", "total_of"]
    assert [step.result for step in first] == SUMS
    assert sum(step.reward for step in first) == 8 * 0.5 + 36
    assert (second[0].result, count, Adder.released) == ("101", 1, [36])


def test_64_rollouts_at_once(base: Any) -> None:
    environments = [to_open_instruct(Adder).tool_class() for _ in range(64)]

    async def rollout(environment: Any) -> list[str]:
        await environment.reset()
        said = [step.result for step in await steps(base, environment, "add", *EIGHT)]
        await environment.close()
        return said

    async def main() -> list[list[str]]:
        return await asyncio.gather(*map(rollout, environments))

    assert asyncio.run(main()) == [SUMS] * 64
    assert Adder.released == [36] * 64


def test_an_error_is_what_the_model_reads_and_what_is_counted(base: Any) -> None:
    async def main() -> list[Any]:
        adder, broken = to_open_instruct(Adder).tool_class(), to_open_instruct(fail).tool_class()
        return [
            *await steps(base, adder, "add", {"n": "many"}),
            *await steps(base, broken, "fail", {"path": "a.txt"}),
            *await steps(base, adder, "ad", {}),
        ]

    wrong, failed, absent = asyncio.run(main())
    assert "invalid arguments for add" in wrong.result
    assert "no such file: a.txt" in failed.result
    assert failed.metadata["error"] == failed.result
    assert absent.result == "there is no tool 'ad'; there are add, total_of"


def test_the_class_can_be_sent_to_an_actor(base: Any) -> None:
    cloudpickle = pytest.importorskip("cloudpickle")
    environment = cloudpickle.loads(cloudpickle.dumps(to_open_instruct(Adder).tool_class))()

    async def main() -> list[str]:
        await environment.reset()
        return [step.result for step in await steps(base, environment, "add", *EIGHT)]

    assert asyncio.run(main()) == SUMS


def test_the_tools_of_before_run_with_the_arguments_as_the_model_wrote_them(utils: Any) -> None:
    made = to_early_open_instruct([search, fail])
    (find, broken) = (made[name]() for name in ("search", "fail"))

    async def main() -> tuple[Any, Any, Any]:
        return await find(queries=["a"]), await find(queries='["a"]'), await broken(path="a.txt")

    found, wrong, failed = asyncio.run(main())
    assert isinstance(found, utils.ToolOutput)
    assert (found.output, found.called, found.error) == ("['a'] 3 None None", True, "")
    assert (wrong.called, failed.called) == (False, True)
    assert "no such file: a.txt" in failed.error
    assert find.get_openai_tool_definitions()["function"]["parameters"]["required"] == ["queries"]
