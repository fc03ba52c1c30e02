"""Prints the table of `rollouts-exports.md`: each peer that is installed here runs one tool: eight calls, a wrong one.

`--write` puts the rows of these peers into the page and leaves the others; `make peers` runs it for all of them.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import json
import logging
import os
import re
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

PAGE = Path(__file__).with_name("rollouts-exports.md")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

SUMS = ["1", "3", "6", "10", "15", "21", "28", "36"]
EIGHT = [{"n": n} for n in range(1, 9)]
WRONG = {"n": "many"}


class Shown(NamedTuple):
    """What a peer made of the tool.

    Attributes:
        schema: the parameters that the model is shown; None if the peer shows none.
        answers: what eight calls answered.
        reward: what arrived in all; None if the peer asks for none.
        error: what a wrong call answered.
    """

    schema: list[str] | None
    answers: list[str]
    reward: float | None
    error: str


def verl() -> Shown:
    """Its own agent loop."""
    if _version("verl").startswith(("0.4", "0.5", "0.6", "0.7")):
        raise ImportError("it is an early verl")
    from peer_tools import Adder
    from verl_kit import hermes, loop_of, made, said

    from agentkit.interop.verl import compute_score, to_verl

    async def main() -> tuple[Any, Any, Any]:
        calls = [hermes("add", **arguments) for arguments in EIGHT]
        tools = made(to_verl(Adder))
        sample = {"raw_prompt": [{"role": "user", "content": "Add."}], "tools_kwargs": {}}
        good = await loop_of(tools, [*calls, "36"]).run({}, **sample)
        return good, await loop_of(tools, [hermes("add", **WRONG), "no"]).run({}, **sample), tools[0].tool_schema

    def answers(output: Any) -> list[str]:
        return re.findall(r"<\|im_start\|>tool\n(.*?)<\|im_end\|>", said(output), re.DOTALL)

    good, bad, schema = asyncio.run(main())
    shown = list(schema.function.parameters.properties)
    return Shown(shown, answers(good), compute_score(extra_info=good.extra_fields), answers(bad)[0])


def early_verl() -> Shown:
    """The life that loops up to 0.7 give a tool, by the request's id."""
    if not _version("verl").startswith(("0.4", "0.5", "0.6", "0.7")):
        raise ImportError("it is a later verl")
    from peer_tools import Adder
    from verl_kit import made

    from agentkit.interop.verl import to_verl

    async def main() -> Shown:
        tool = made(to_verl(Adder))[0]
        await tool.create("r")
        said = [(await tool.execute("r", arguments))[0] for arguments in [*EIGHT, WRONG]]
        *answers, wrong = [getattr(each, "text", each) for each in said]  # up to 0.4 a string
        reward = await tool.calc_reward("r")
        await tool.release("r")
        return Shown(list(tool.tool_schema.function.parameters.properties), answers, reward, wrong)

    return asyncio.run(main())


def open_instruct() -> Shown:
    """Its environment's `reset` and `step`."""
    from peer_tools import Adder

    sys.path.insert(0, os.environ.get("OPEN_INSTRUCT", ""))
    from open_instruct.environments.base import EnvCall

    from agentkit.interop.open_instruct import to_open_instruct

    async def main() -> Shown:
        environment = to_open_instruct(Adder).tool_class()
        _, tools = await environment.reset()
        done = [await environment.step(EnvCall(id="c", name="add", args=arguments)) for arguments in EIGHT]
        wrong = await environment.step(EnvCall(id="c", name="add", args=WRONG))
        shown = list(tools[0]["function"]["parameters"]["properties"])
        return Shown(shown, [step.result for step in done], sum(step.reward for step in done), wrong.result)

    return asyncio.run(main())


def trl() -> Shown:
    """The class for `environment_factory=`, described by transformers."""
    from peer_tools import Adder
    from transformers.utils import get_json_schema

    from agentkit.interop.trl import to_trl_environment

    environment = to_trl_environment(Adder)()
    environment.reset(prompt="Add.")
    shown = list(get_json_schema(environment.add)["function"]["parameters"]["properties"])
    answers = [asyncio.run(environment.add(**arguments)) for arguments in EIGHT]
    reward = environment.get_reward()
    return Shown(shown, answers, reward, asyncio.run(environment.add(**WRONG)))


def verifiers() -> Shown:
    """A rollout of its own loop."""
    import verifiers.legacy as vf
    from verifiers_kit import answers, client_of, environment, rollout

    client = client_of(vf, [("add", json.dumps(arguments)) for arguments in EIGHT])
    good = asyncio.run(rollout(environment(vf), client))
    bad = asyncio.run(rollout(environment(vf), client_of(vf, [("add", json.dumps(WRONG))])))
    return Shown(list(client.asked[0][0].parameters["properties"]), answers(good), good["reward"], answers(bad)[0])


def verifiers_toolset() -> Shown:
    """The server that a toolset of 0.4 registers its tools in."""
    from mcp.server.mcpserver import MCPServer
    from peer_tools import Adder
    from verifiers.v1.mcp.toolset import ToolsetConfig

    from agentkit.interop.verifiers import to_toolset

    async def main() -> Shown:
        server = MCPServer("tools")
        to_toolset(Adder)(ToolsetConfig()).register(server)
        tools = await server.list_tools()
        done = [(await server.call_tool("add", arguments)).content[0].text for arguments in EIGHT]
        try:
            wrong = (await server.call_tool("add", WRONG)).content[0].text
        except Exception as e:  # noqa: BLE001 - the server's own, which it turns into an error result
            wrong = str(e)
        return Shown(list(tools[0].input_schema["properties"]), done, None, wrong)

    return asyncio.run(main())


def skyrl() -> Shown:
    """A group of tools in an environment."""
    from peer_tools import Adder
    from skyrl_gym.envs.base_text_env import BaseTextEnv

    from agentkit.interop.skyrl import to_skyrl

    group, environment = to_skyrl(Adder)(), BaseTextEnv()
    environment.init_tool_groups([group])
    answers = [environment._execute_tool("Adder", "add", list(arguments.values())) for arguments in EIGHT]
    reward = group.total_reward()
    return Shown(None, answers, reward, environment._execute_tool("Adder", "add", list(WRONG.values())))


def openai_agents() -> Shown:
    """The tools as its runner invokes them."""
    from peer_tools import Adder

    from agentkit.interop.openai_agents import to_openai_agents

    add = to_openai_agents(Adder)[0]

    async def main() -> list[str]:
        return [await add.on_invoke_tool(None, json.dumps(arguments)) for arguments in [*EIGHT, WRONG]]

    *answers, wrong = asyncio.run(main())
    return Shown(list(add.params_json_schema["properties"]), answers, None, wrong)


def langchain() -> Shown:
    """The tools as a message's calls invoke them."""
    from peer_tools import Adder

    from agentkit.interop.langchain import to_langchain

    add = to_langchain(Adder)[0]
    messages = [
        add.invoke({"type": "tool_call", "id": "c", "name": "add", "args": arguments}) for arguments in [*EIGHT, WRONG]
    ]
    said = [message.content for message in messages]
    return Shown(list(add.args_schema["properties"]), said[:-1], None, said[-1])


def pydantic_ai() -> Shown:
    """A run of its agent with a scripted model."""
    from peer_tools import Adder
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    from agentkit.interop.pydantic_ai import to_pydantic_ai

    turn = iter([*EIGHT, WRONG])

    def model(messages: Any, info: Any) -> ModelResponse:
        arguments = next(turn, None)
        return ModelResponse([TextPart("done") if arguments is None else ToolCallPart("add", arguments)])

    tools = to_pydantic_ai(Adder)
    history = asyncio.run(Agent(FunctionModel(model), tools=tools, retries=3).run("Add.")).all_messages()
    said = [part.content for m in history for part in m.parts if part.part_kind in ("tool-return", "retry-prompt")]
    return Shown(list(tools[0].tool_def.parameters_json_schema["properties"]), said[:-1], None, said[-1])


PEERS: dict[str, tuple[str | None, Callable[[], Shown]]] = {
    "verl, `ToolAgentLoop`": ("verl", verl),
    "verl up to 0.7, one instance for each request": ("verl", early_verl),
    "open-instruct, environment": (None, open_instruct),
    "TRL, `environment_factory`": ("trl", trl),
    "verifiers, `StatefulToolEnv`": ("verifiers", verifiers),
    "verifiers, `Toolset`": ("verifiers", verifiers_toolset),
    "SkyRL-gym, `ToolGroup`": ("skyrl-gym", skyrl),
    "OpenAI Agents": ("openai-agents", openai_agents),
    "LangChain": ("langchain-core", langchain),
    "Pydantic AI": ("pydantic-ai-slim", pydantic_ai),
}


def row(name: str, version: str, shown: Shown) -> str:
    """One line of the table."""
    cells = (
        "shows none" if shown.schema is None else "yes" if shown.schema == ["n", "unit"] else "no",
        "yes" if len(shown.answers) == len(SUMS) else "no",
        "yes" if shown.answers == SUMS else "no",
        "asks for none" if shown.reward is None else "yes" if shown.reward == 40.0 else f"no: {shown.reward}",
        "yes" if "expected integer" in shown.error or "valid integer" in shown.error else f"no: {shown.error}",
    )
    return f"| {name} | {version} | {' | '.join(cells)} |"


def _version(package: str | None) -> str:
    """What is installed; of verl the one that is imported, for the test of an early one."""
    if package != "verl":
        return "main" if package is None else importlib.metadata.version(package)
    import verl as installed

    return str(installed.__version__)


def rows() -> dict[str, str]:
    """The rows of the peers that can be imported here."""
    found = {}
    for name, (package, drive) in PEERS.items():
        try:
            version = _version(package)
            found[name] = row(name, version, drive())
        except (ImportError, importlib.metadata.PackageNotFoundError) as e:
            sys.stderr.write(f"{name}: not here ({e})\n")
    return found


def main() -> None:
    """Print the rows; with `--write`, put them into the page."""
    warnings.simplefilter("ignore")
    logging.disable()
    found = rows()
    sys.stdout.write("".join(f"{line}\n" for line in found.values()))
    if "--write" in sys.argv:
        before, head, table = PAGE.read_text().partition("| system | version |")
        lines = (found.get(line.split(" | ")[0].removeprefix("| "), line) for line in table.splitlines())
        PAGE.write_text(before + head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
