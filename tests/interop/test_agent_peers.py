"""Ours in the loops of OpenAI's Agents SDK, LangChain and Pydantic AI, and in SkyRL's tool groups: real packages."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from peer_tools import Adder, fail, search

from agentkit import Agent, ToolResult, openapi_schema
from agentkit.errors import ConfigError, SchemaError
from agentkit.interop.langchain import to_langchain
from agentkit.interop.openai_agents import to_openai_agents
from agentkit.interop.pydantic_ai import to_pydantic_ai
from agentkit.interop.skyrl import to_skyrl
from agentkit.interop.trl import to_trl_environment
from agentkit.messages import ImagePart
from agentkit.testing import ScriptedModel

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]

PIXEL = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\r"
    b"IDATx\x9cc\xf8\xff\xff?\x00\x05\xfe\x02\xfe\xa7\x9a\xa0\xa0\x00\x00\x00\x00IEND\xaeB`\x82"
)


@openapi_schema
def draw() -> ToolResult:
    """Draw."""
    return ToolResult("a dot", content=ImagePart(PIXEL, "image/png"))


@pytest.fixture(autouse=True)
def fresh() -> None:
    Adder.forget()


# ---------------------------------------------------------------- OpenAI's Agents SDK


@pytest.fixture
def agents() -> Any:
    return pytest.importorskip("agents", reason="openai-agents is not installed: agentkit-calls[dev]")


def scripted(agents: Any, calls: list[tuple[str, str]]) -> Any:
    """A model of the SDK's that makes one call a turn, then says what it read last."""
    from agents import ModelResponse, Usage
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    class Scripted(agents.Model):
        asked: list[Any] = []  # noqa: RUF012 - one run for each class
        turn = 0

        async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **more: Any) -> Any:
            self.asked.append(input)
            if self.turn < len(calls):
                name, arguments = calls[self.turn]
                item: Any = ResponseFunctionToolCall(
                    type="function_call", call_id=f"c{self.turn}", name=name, arguments=arguments
                )
                self.turn += 1
            else:
                text = ResponseOutputText(type="output_text", text="done", annotations=[])
                item = ResponseOutputMessage(
                    id="m", type="message", role="assistant", status="completed", content=[text]
                )
            return ModelResponse(output=[item], usage=Usage(), response_id=None)

        def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    return Scripted()


def outputs(agents: Any, tools: Any, calls: list[tuple[str, str]]) -> list[Any]:
    model = scripted(agents, calls)
    agent = agents.Agent(name="a", model=model, tools=to_openai_agents(tools))
    config = agents.RunConfig(tracing_disabled=True)
    asyncio.run(agents.Runner.run(agent, "go", run_config=config, max_turns=20))
    return [item["output"] for item in model.asked[-1] if item.get("type") == "function_call_output"]


def test_openai_agents_run_our_tools_and_keep_their_state(agents: Any) -> None:
    calls = [("add", json.dumps({"n": n})) for n in range(1, 9)]
    assert list(map(int, outputs(agents, Adder, calls))) == [1, 3, 6, 10, 15, 21, 28, 36]


def test_openai_agents_see_the_whole_schema(agents: Any) -> None:
    (tool,) = to_openai_agents(search)
    assert tool.params_json_schema["properties"]["queries"]["items"] == {"type": "string"}
    assert tool.params_json_schema["required"] == ["queries"]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("add", '{"n": "many"}', "invalid arguments for add"),
        ("add", "{", "not JSON"),
        ("add", '{"n": 1, "n": 2}', "'n' is given twice, with different values"),
        ("add", "[1]", "must be one JSON object"),
        ("fail", '{"path": "a.txt"}', "no such file: a.txt"),
    ],
)
def test_openai_agents_tell_the_model_what_is_wrong(agents: Any, name: str, arguments: str, said: str) -> None:
    (output,) = outputs(agents, [Adder, fail], [(name, arguments)])
    assert said in output


def test_openai_agents_show_images(agents: Any) -> None:
    (output,) = outputs(agents, draw, [("draw", "{}")])
    assert [part["type"] for part in output] == ["input_text", "input_image"]


# ---------------------------------------------------------------- LangChain


@pytest.fixture
def langchain() -> Any:
    return pytest.importorskip("langchain_core.tools", reason="langchain-core is not installed: agentkit-calls[dev]")


def message(tool: Any, **arguments: Any) -> Any:
    call = {"type": "tool_call", "id": "c1", "name": tool.name, "args": arguments}
    return asyncio.run(tool.ainvoke(call))


def test_langchain_runs_our_tools_and_keeps_their_state(langchain: Any) -> None:
    add, _ = to_langchain(Adder)
    answers = [message(add, n=n) for n in range(1, 9)]
    assert [answer.content for answer in answers] == ["1", "3", "6", "10", "15", "21", "28", "36"]
    assert answers[0].artifact.reward == 0.5


def test_langchain_runs_them_without_an_event_loop_too(langchain: Any) -> None:
    add, _ = to_langchain(Adder)
    call = {"type": "tool_call", "id": "c1", "name": "add", "args": {"n": 5}}
    assert add.invoke(call).content == "5"


def test_langchain_hands_the_whole_schema_to_a_model(langchain: Any) -> None:
    from langchain_core.utils.function_calling import convert_to_openai_tool

    (tool,) = to_langchain(search)
    parameters = convert_to_openai_tool(tool)["function"]["parameters"]
    assert parameters["properties"]["queries"]["items"] == {"type": "string"}
    assert parameters["properties"]["limit"]["default"] == 3


def test_langchain_tells_the_model_what_is_wrong(langchain: Any) -> None:
    add, _, broken = to_langchain([Adder, fail])
    wrong, failed = message(add, n="many"), message(broken, path="a.txt")
    assert (wrong.status, failed.status) == ("error", "error")
    assert "invalid arguments for add" in wrong.content
    assert "no such file: a.txt" in failed.content


def test_langchain_shows_images(langchain: Any) -> None:
    (tool,) = to_langchain(draw)
    assert [block["type"] for block in message(tool).content] == ["text", "image"]


# ---------------------------------------------------------------- Pydantic AI


@pytest.fixture
def pydantic_ai() -> Any:
    return pytest.importorskip("pydantic_ai", reason="pydantic-ai-slim is not installed: agentkit-calls[dev]")


def returns(tools: Any, calls: list[tuple[str, dict[str, Any]]]) -> list[Any]:
    """What the model of a real run reads: it makes one call a turn."""
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    turn = iter(calls)

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        call = next(turn, None)
        return ModelResponse([TextPart("done") if call is None else ToolCallPart(*call)])

    agent = Agent(FunctionModel(model), tools=to_pydantic_ai(tools), retries=3)
    history = asyncio.run(agent.run("go")).all_messages()
    kinds = ("tool-return", "retry-prompt")
    return [part for message in history for part in message.parts if part.part_kind in kinds]


def test_what_belongs_to_pydantic_ai_is_named_as_ours(pydantic_ai: Any) -> None:
    def look(ctx: pydantic_ai.RunContext[int], at: str) -> str:
        return at

    with pytest.raises(SchemaError, match=r"uses 'RunContext', .* write ctx: ToolContext, and read ctx.state"):
        Agent(ScriptedModel([]), [look])
    with pytest.raises(SchemaError, match=r"is not a type: write .*output_type=YourType, output_mode='tool'"):
        Agent(ScriptedModel([]), output_type=pydantic_ai.ToolOutput(int))
    with pytest.raises(ConfigError, match=r"found DocumentUrl .*; write agentkit.FilePart"):
        Agent(ScriptedModel([])).run_sync(["What is this?", pydantic_ai.DocumentUrl("https://a.org/b.pdf")])


def test_pydantic_ai_runs_our_tools_and_keeps_their_state(pydantic_ai: Any) -> None:
    parts = returns(Adder, [("add", {"n": n}) for n in range(1, 9)])
    assert [part.content for part in parts] == ["1", "3", "6", "10", "15", "21", "28", "36"]


def test_pydantic_ai_sees_the_whole_schema(pydantic_ai: Any) -> None:
    (tool,) = to_pydantic_ai(search)
    assert tool.tool_def.parameters_json_schema["properties"]["queries"]["items"] == {"type": "string"}


def test_pydantic_ai_tells_the_model_what_is_wrong(pydantic_ai: Any) -> None:
    wrong, failed = returns([Adder, fail], [("add", {"n": "many"}), ("fail", {"path": "a.txt"})])
    assert (wrong.outcome, failed.outcome) == ("retried", "failed")
    assert "invalid arguments for add" in wrong.content
    assert "no such file: a.txt" in failed.content


def test_pydantic_ai_shows_images(pydantic_ai: Any) -> None:
    (part, *_) = returns(draw, [("draw", {})])
    assert part.content == "a dot"


# ---------------------------------------------------------------- SkyRL


@pytest.fixture
def environment() -> type[Any]:
    """An environment of SkyRL's that calls what the model names, with what it writes behind it."""
    pytest.importorskip("skyrl_gym", reason="skyrl-gym is not installed: agentkit-calls[dev]")
    from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

    class Counting(BaseTextEnv):
        def __init__(self, group: Any) -> None:
            super().__init__()
            self.group = group
            self.init_tool_groups([group])

        def step(self, action: str) -> BaseTextEnvStepOutput:
            name, *values = json.loads(action)
            said = self._execute_tool(self.tool_to_toolgroup[name], name, values)
            return BaseTextEnvStepOutput(
                observations=[{"role": "user", "content": said}],
                reward=0.0,
                done=False,
                metadata={},
            )

        def close(self) -> None:
            self.group.close()

    return Counting


def test_skyrl_groups_keep_one_state_for_each_environment(environment: Any) -> None:
    group = to_skyrl(Adder)
    one, other = environment(group()), environment(group(start=100))
    said = [one.step(json.dumps(["add", n]))["observations"][0]["content"] for n in range(1, 9)]
    assert said == ["1", "3", "6", "10", "15", "21", "28", "36"]
    assert other.step('["add", 1]')["observations"][0]["content"] == "101"
    assert one.group.total_reward() == 8 * 0.5 + 36
    one.close()
    other.close()
    assert Adder.released == [36, 101]


def test_skyrl_reads_what_is_wrong(environment: Any) -> None:
    env = environment(to_skyrl(Adder)())
    assert "invalid arguments for add" in env.step('["add", "many"]')["observations"][0]["content"]
    said = env.step('["add", 1, "pears", 2]')["observations"][0]["content"]
    assert said == "invalid arguments for add: it takes 2 values (n, unit), found 3"
    assert env.group.add(1, n=2) == "invalid arguments for add: n was given by position and by name"
    assert env.group.add(1, unit="pears") == "1"
    env.close()
    said = env.step('["add", 1]')["observations"][0]["content"]
    assert said == "add: its trajectory is over, and its instance has been released"


class Broken(Adder):
    async def create(self) -> None:
        raise OSError("no page")


def test_skyrl_reads_that_a_tool_could_not_be_created_and_goes_on(environment: Any) -> None:
    env = environment(to_skyrl(Broken)())
    said = [env.step('["add", 1]')["observations"][0]["content"] for _ in range(2)]
    assert said == ["add cannot be called: create of 'add' failed: OSError: no page"] * 2
    assert env.group.total_reward() == 0
    env.close()


def test_skyrl_scores_an_environment_without_calls(environment: Any) -> None:
    env = environment(to_skyrl(Adder)(start=3))
    assert env.group.total_reward() == 3
    env.close()
    assert Adder.released == [3]


# ---------------------------------------------------------------- all


def test_a_reserved_name_is_refused_with_the_name_of_the_peer(environment: Any) -> None:
    @openapi_schema
    def reset() -> str:
        """Reset."""
        return ""

    with pytest.raises(SchemaError, match="SkyRL keeps the name 'reset' for itself"):
        to_skyrl(reset)


def test_trl_has_no_rollout_before_reset(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys
    from types import ModuleType

    monkeypatch.setitem(sys.modules, "trl", ModuleType("trl"))  # the export only asks whether it is there
    environment = to_trl_environment(Adder)()
    with pytest.raises(ConfigError, match="AdderEnvironment: total_of was called before reset, with which a rollout"):
        environment.total_of()
    with pytest.raises(ConfigError, match="get_reward was called before reset"):
        environment.get_reward()


def test_a_peer_that_is_absent_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "agents", None)
    with pytest.raises(ConfigError, match=r'this export needs OpenAI Agents: pip install "openai-agents"'):
        to_openai_agents(search)
