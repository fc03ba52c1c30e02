"""Ours in verl's own loop: state for the whole trajectory, rewards, release, formats, errors that a model can read."""

from __future__ import annotations

import asyncio
import gc
import re
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("verl.experimental.agent_loop.tool_agent_loop", reason="verl is not installed: make peers")

from peer_tools import Adder, fail, search
from verl_kit import hermes, loop_of, made, said

from agentkit import ToolContext, ToolResult, openapi_schema
from agentkit.errors import SchemaError
from agentkit.interop.peers import export_report
from agentkit.interop.verl import compute_score, register_formats, to_verl, to_verl_functions

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

EIGHT = [hermes("add", n=n) for n in range(1, 9)]
SUMS = [1, 3, 6, 10, 15, 21, 28, 36]


@pytest.fixture(autouse=True)
def fresh() -> None:
    Adder.forget()


def answers(output: Any) -> list[str]:
    return re.findall(r"<\|im_start\|>tool\n(.*?)<\|im_end\|>", said(output), re.DOTALL)


async def run(loop: Any, **sample: Any) -> Any:
    return await loop.run({}, raw_prompt=[{"role": "user", "content": "Add."}], **{"tools_kwargs": {}, **sample})


async def settled() -> None:
    gc.collect()
    for _ in range(20):
        await asyncio.sleep(0.001)


def test_eight_calls_of_one_trajectory_add_up() -> None:
    async def main() -> Any:
        return await run(loop_of(made(to_verl(Adder)), [*EIGHT, "36"]))

    assert list(map(int, answers(asyncio.run(main())))) == SUMS


def test_64_trajectories_at_once_are_all_right_and_all_released() -> None:
    async def main() -> list[Any]:
        loop = loop_of(made(to_verl(Adder)), [*EIGHT, "36"])
        outputs = await asyncio.gather(*(run(loop) for _ in range(64)))
        await settled()
        return outputs

    outputs = asyncio.run(main())
    assert [list(map(int, answers(output))) for output in outputs] == [SUMS] * 64
    assert (len(Adder.created), Adder.released) == (64, [36] * 64)


def test_a_trajectory_that_outlives_its_event_loop_is_released_all_the_same() -> None:
    class Trajectory:
        tools_kwargs: ClassVar[dict[str, Any]] = {}

    async def main() -> Any:
        (add, _) = made(to_verl(Adder))
        kept = Trajectory()
        await add.execute("x", {"n": 5}, agent_data=kept)
        return kept

    kept = asyncio.run(main())
    assert Adder.released == []
    del kept
    gc.collect()
    assert Adder.released == [5]


def test_the_methods_of_a_class_share_its_instance() -> None:
    async def main() -> Any:
        loop = loop_of(made(to_verl(Adder)), [hermes("add", n=4), hermes("total_of"), "4"])
        return await run(loop)

    assert answers(asyncio.run(main())) == ["4", "4"]
    assert len(Adder.created) == 1


def test_what_the_sample_says_reaches_every_phase() -> None:
    class Told:
        phases: ClassVar[list[tuple[str, Any]]] = []

        async def create(self, answer: str) -> None:
            self.phases.append(("create", answer))

        @openapi_schema
        async def guess(self, text: str, context: ToolContext) -> str:
            """Guess."""
            self.phases.append(("execute", (text, context.state["strictness"])))
            return "no"

        async def calc_reward(self, weight: float) -> float:
            self.phases.append(("calc_reward", weight))
            return weight

        async def release(self, why: str) -> None:
            self.phases.append(("release", why))

    kwargs = {
        "guess": {
            "create_kwargs": {"answer": "42"},
            "execute_kwargs": {"strictness": 2},
            "calc_reward_kwargs": {"weight": 0.25},
            "release_kwargs": {"why": "over"},
        }
    }

    async def main() -> Any:
        output = await run(loop_of(made(to_verl(Told)), [hermes("guess", text="41"), "41"]), tools_kwargs=kwargs)
        await settled()
        return output

    output = asyncio.run(main())
    assert Told.phases == [("create", "42"), ("execute", ("41", 2)), ("calc_reward", 0.25), ("release", "over")]
    assert output.extra_fields["tool_rewards"] == [0.25]


def test_the_rewards_of_a_trajectory_add_up_to_its_steps_and_its_final_reward() -> None:
    async def main() -> Any:
        return await run(loop_of(made(to_verl(Adder)), [*EIGHT, "36"]))

    rewards = asyncio.run(main()).extra_fields["tool_rewards"]
    assert rewards == [n + 0.5 for n in range(1, 9)]
    assert compute_score(extra_info={"tool_rewards": rewards}) == 8 * 0.5 + 36


def test_without_folding_only_the_steps_are_rewarded() -> None:
    async def main() -> Any:
        return await run(loop_of(made(to_verl(Adder, fold_reward=False)), [*EIGHT, "36"]))

    assert asyncio.run(main()).extra_fields["tool_rewards"] == [0.5] * 8


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (hermes("add", n="many"), "n"),
        ('<tool_call>{"name": "add", "arguments": [1]}</tool_call>', "must be an object"),
        ('<tool_call>{"name": "add", "arguments": {"n": 1, "m": 2}}</tool_call>', 'unknown name "m"'),
        (hermes("fail", path="a.txt"), "no such file: a.txt"),
    ],
)
def test_an_error_says_what_is_wrong(call: str, answer: str) -> None:
    async def main() -> Any:
        loop = loop_of(made(to_verl(Adder) | to_verl(fail)), [call, hermes("add", n=1), "1"])
        return await run(loop)

    first, second = answers(asyncio.run(main()))
    assert answer in first
    assert second == "1"


def test_a_schema_arrives_in_verl_as_it_was_handed_over() -> None:
    (tool,) = made(to_verl(search))
    properties = tool.tool_schema.model_dump(exclude_none=True)["function"]["parameters"]["properties"]
    assert properties["queries"] == {
        "type": "array",
        "description": 'what to look for. Must satisfy {"items": {"type": "string"}}',
    }
    assert properties["limit"] == {"type": "integer", "description": "how many hits. Default: 3"}
    assert properties["kind"]["enum"] == ["web", "news", None]
    assert export_report(search, "verl") == {
        "search": (
            "/queries: items: in the description only",
            "/limit: default: in the description only",
            "/kind: default: in the description only",
            "/where: default: in the description only",
        )
    }


def test_a_reserved_name_is_refused_with_the_name_of_the_peer() -> None:
    @openapi_schema
    def step(n: int) -> str:
        """Step."""
        return str(n)

    with pytest.raises(SchemaError, match="verl keeps the name 'step' for itself"):
        to_verl(step)


def test_a_yaml_names_the_class_and_the_tool(tmp_path: Path) -> None:
    from verl.tools.tool_registry import load_all_tools

    path = tmp_path / "tools.yaml"
    path.write_text(
        """
        tools:
          - class_name: agentkit.interop.verl.AgentkitTool
            config: {type: native, tool: "peer_tools:Adder", function: add, tool_config: {start: 100}}
          - class_name: agentkit.interop.verl.AgentkitTool
            config: {type: native, tool: "peer_tools:Adder", function: total_of, tool_config: {start: 100}}
        """
    )

    async def main() -> Any:
        tools = load_all_tools(str(path), None)
        return await run(loop_of(tools, [hermes("add", n=1), hermes("total_of"), "101"]))

    assert answers(asyncio.run(main())) == ["101", "101"]


def test_function_tools_run_in_the_loop_with_their_rewards() -> None:
    from verl.tools.function_tool import FUNCTION_TOOL_REGISTRY

    @openapi_schema
    def judged(text: str) -> ToolResult:
        """Judge."""
        return ToolResult(f"judged {text}", reward=0.75)

    to_verl_functions([judged, search])
    tools = [FUNCTION_TOOL_REGISTRY["judged"], FUNCTION_TOOL_REGISTRY["search"]]

    async def main() -> Any:
        script = [hermes("judged", text="a"), hermes("search", queries=["x"]), hermes("search", queries="x"), "done"]
        return await run(loop_of(tools, script))

    output = asyncio.run(main())
    first, second, third = answers(output)
    assert (first, second) == ("judged a", "['x'] 3 None None")
    assert "queries" in third
    assert output.extra_fields["tool_rewards"] == [0.75, 0.0, 0.0]


def test_any_of_our_formats_is_a_parser_of_verls() -> None:
    assert "agentkit_invoke" in register_formats()
    call = '<invoke name="add"><parameter name="n">7</parameter></invoke>'

    async def main() -> Any:
        return await run(loop_of(made(to_verl(Adder)), [call, "7"], "agentkit_invoke"))

    assert answers(asyncio.run(main())) == ["7"]


def test_a_damaged_call_is_answered_rather_than_dropped() -> None:
    register_formats(["hermes"])
    script = ['<tool_call>{"name": "add", "arguments": {"n": }}</tool_call>', hermes("add", n=2), "2"]

    async def main() -> Any:
        return await run(loop_of(made(to_verl(Adder)), script, "agentkit_hermes"))

    first, second = answers(asyncio.run(main()))
    assert first.startswith("Invalid JSON in arguments for 'add'")
    assert second == "2"


def test_a_call_inside_thinking_does_not_run_in_our_formats() -> None:
    register_formats(["hermes"])

    async def main() -> Any:
        script = [f"<think>perhaps {hermes('add', n=1)}</think>No."]
        return await run(loop_of(made(to_verl(Adder)), script, "agentkit_hermes"))

    assert answers(asyncio.run(main())) == []


def test_a_loop_that_hands_over_the_id_gets_one_life_for_each_id() -> None:
    """As verl up to 0.7 does it with `request_id`: create, any number of calls, calc_reward, release."""
    tools = made(to_verl(Adder))

    async def one(request: str, start: int) -> tuple[list[str], list[float]]:
        await asyncio.gather(tools[0].create(request, start=start), tools[1].create(request))
        said = [(await tools[0].execute(request, {"n": n}, unit="pears"))[0].text for n in range(1, 4)]
        rewards = [await tool.calc_reward(request) for tool in tools]
        await asyncio.gather(*(tool.release(request) for tool in tools))
        return said, rewards

    async def main() -> list[Any]:
        return await asyncio.gather(one("a", 0), one("b", 100))

    assert asyncio.run(main()) == [(["1", "3", "6"], [7.5, 0.0]), (["101", "103", "106"], [107.5, 0.0])]
    assert Adder.released == [6, 106]
