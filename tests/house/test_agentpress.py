"""The page "Coming from AgentPress": every line of its tables, run."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import agentkit
import agentkit.agent
import agentkit.events
import agentkit.formats
import agentkit.threads
import agentkit.tool
from agentkit.errors import ConfigError
from agentkit.foreign import argument_names
from agentkit.processor import EventStream
from agentkit.testing import ScriptedModel
from agentkit_tools.files import Files

PAGE = (Path(__file__).parents[2] / "docs" / "agentpress.md").read_text()
CODE = re.compile(r"`([^`]+)`")


def rows(section: str) -> list[tuple[str, str]]:
    """The two cells of each row of a section's table."""
    text = PAGE.split(f"\n## {section}\n")[1].split("\n## ")[0]
    lines = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [(left.strip(), right.strip()) for left, right in lines[1:]]


class MyTool(agentkit.Tool):
    @agentkit.openapi_schema
    @agentkit.xml_schema(content="text", example="<ask>Why?</ask>")
    def ask(self, text: str) -> agentkit.ToolResult:
        """Ask."""
        return self.success_response(text)


@pytest.fixture
def names() -> Iterator[Mapping[str, Any]]:
    threads = agentkit.ThreadManager(":memory:")
    tool = MyTool()

    async def begun() -> str:
        return await threads.create_thread(messages="Hi")

    yield {
        **{name: getattr(agentkit, name) for name in agentkit.__all__},
        "agentkit": agentkit,
        "MyTool": MyTool,
        "tool": tool,
        "registry": agentkit.ToolRegistry(tool),
        "threads": threads,
        "thread": asyncio.run(begun()),
        "model": ScriptedModel(["Hello."]),
        "add_message": print,
        "events": [],
        "EXAMPLE": "<ask>Why?</ask>",
        "MAPPINGS": [{"param_name": "text", "node_type": "content", "path": "."}],
        "SCHEMA": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    }
    asyncio.run(threads.aclose())


def run(code: str, names: Mapping[str, Any]) -> None:
    value = eval(code, dict(names))
    if inspect.isawaitable(value):

        async def awaited() -> None:
            await value

        asyncio.run(awaited())
    elif isinstance(value, EventStream):
        asyncio.run(value.aclose())


@pytest.mark.parametrize(("left", "right"), rows("Names"))
def test_a_name(left: str, right: str, names: Mapping[str, Any]) -> None:
    """One that is the same runs; for another one it is refused, and what stands beside it runs."""
    if right != "the same":
        for code in CODE.findall(left):
            with pytest.raises((Exception, ImportError)):
                run(code, names)
    for code in CODE.findall(left if right == "the same" else right):
        run(code, names)


@pytest.mark.parametrize(("left", "right"), rows("Rows and events"))
def test_an_event(left: str, right: str, names: Mapping[str, Any]) -> None:
    assert CODE.findall(left)
    for code in CODE.findall(right):
        run(code, names)


@pytest.mark.parametrize(("left", "right"), rows("Imports"))
def test_an_import(left: str, right: str) -> None:
    """Each name has another one here, or is in `agentkit`; and what is asked for under its old name is told so."""
    (old,), (new,) = CODE.findall(left), CODE.findall(right)
    exec(new)
    with pytest.raises(ModuleNotFoundError):
        exec(old)
    for name in old.split(" import ")[1].split(", "):
        if name in new:
            exec(f"from agentkit import {name}")
        else:
            with pytest.raises(ImportError, match=f"agentkit has no {name!r}: "):
                exec(f"from agentkit import {name}")


ARGUMENTS = [
    ("run_thread", "threads.run_thread(thread, 'Be brief.', {}=1)", argument_names.AGENTPRESS_RUN_THREAD),
    ("create_thread", "threads.create_thread({}=1)", argument_names.AGENTPRESS_CREATE_THREAD),
    ("add_message", "threads.add_message(thread, {}=1)", argument_names.AGENTPRESS_ADD_MESSAGE),
    ("ProcessorConfig", "ProcessorConfig({}=1)", argument_names.AGENTPRESS_PROCESSOR_CONFIG),
]


@pytest.mark.parametrize(("owner", "call", "known"), ARGUMENTS, ids=[owner for owner, _, _ in ARGUMENTS])
def test_an_argument(owner: str, call: str, known: Mapping[str, str], names: Mapping[str, Any]) -> None:
    """It is refused, and the error says all that the page says of it."""
    table = {CODE.findall(left)[0]: right for left, right in rows(f"Arguments of {owner}")}
    assert table.keys() == known.keys()
    for name, right in table.items():
        with pytest.raises(ConfigError) as refused:
            run(call.format(name), names)
        said = str(refused.value)
        assert said.startswith(f"{owner} has no argument {name!r}")
        assert [code for code in CODE.findall(right) if code not in said] == [], said
        assert CODE.findall(right) or right in said


def test_arguments_of_the_same_name(names: Mapping[str, Any]) -> None:
    run(
        "threads.run_thread(thread, system_prompt='Be brief.', model=model, processor_config=ProcessorConfig(), "
        "temporary_message={'role': 'user', 'content': 'Now.'}, tool_choice='none', stream=True)",
        names,
    )


def test_the_file_tools_have_these_names_and_parameters(tmp_path: Path) -> None:
    tools = agentkit.ToolRegistry(Files(tmp_path)).tools
    for theirs, ours in rows("File tools"):
        name, parameters = CODE.findall(theirs if ours == "the same" else ours)[0].rstrip(")").split("(")
        assert list(inspect.signature(getattr(tools[name].instance, name)).parameters) == parameters.split(", ")
