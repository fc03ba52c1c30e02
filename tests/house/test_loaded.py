"""What a program loads: a part of the package is loaded when it is used, and not before."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

RUN = """
from agentkit import Agent
from agentkit.testing import ScriptedModel
assert Agent(ScriptedModel(["Hello."])).run_sync("Hi").text == "Hello."
"""

TOOL = """
from agentkit import ToolRegistry
def add(a: int) -> int:
    "Add."
    return a
ToolRegistry(add)
"""

STORED = """
import asyncio
from agentkit import ThreadManager
from agentkit.testing import ScriptedModel
threads = ThreadManager(":memory:")
assert threads.say_sync("t", "Hi", ScriptedModel(["Hello."])).text == "Hello."
"""

OUTSIDE = ("cli", "gateway", "grammar", "interop", "rollout", "sandbox", "telemetry")
READING = ("formats.catalog", "formats.engine", "formats.format", "formats.reader", "formats.teach")
REQUESTS = ("models.model_options", "models.provider", "models.sdk_model", "models.servers", "models.text")
RUNNING = (
    "agent.journal",
    "agent.run",
    "agent.run_budget",
    "processor.processor",
    "processor.recovery",
    "processor.turn",
)
BINDING = ("schemas", "tool.arguments", "tool.bound_tool", "tool.declare", "tool.result")


LAZY = sorted(
    file.parent
    for file in (Path(__file__).parents[2] / "agentkit").rglob("__init__.py")
    if "homes=" in file.read_text()
)
"""The packages whose names are loaded on first use."""

NAMES = [".".join(package.relative_to(Path(__file__).parents[2]).parts) for package in LAZY]


def loaded(program: str) -> list[str]:
    """The modules that a program has loaded at its end; those of a bare interpreter are not among them."""
    script = f"import sys; before = set(sys.modules)\n{program}\nprint(*sorted(sys.modules.keys() - before))"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()[-1].split()


def within(modules: list[str], parts: tuple[str, ...]) -> list[str]:
    """Those of the modules that are one of these parts, or inside one."""
    return [m for m in modules if any(m == part or m.startswith(f"{part}.") for part in parts)]


@pytest.mark.parametrize(
    ("program", "unused"),
    [
        ("import agentkit", ("agent", "errors", "messages", "models", "tool", "checks", "formats", *OUTSIDE)),
        (
            "from agentkit import Agent",
            (*OUTSIDE, *READING, *REQUESTS, *RUNNING, *BINDING, "agent.hooks", "threads", "testing"),
        ),
        ("from agentkit import model", (*OUTSIDE, *READING, *RUNNING, *BINDING, "threads", "agent", "processor")),
        (TOOL, (*OUTSIDE, *READING, *REQUESTS, *RUNNING, "threads", "agent", "processor")),
        (RUN, (*OUTSIDE, *REQUESTS, *READING, "threads", "agent.delegate")),
        (STORED, (*OUTSIDE, *REQUESTS, "threads.sql.postgres")),
        ("import agentkit.rollout", ("rollout.rollout", "rollout.records", "processor", "models", "formats", "tool")),
    ],
    ids=["package", "agent", "model", "registry", "run", "stored", "rollouts"],
)
def test_only_what_is_used_is_loaded(program: str, unused: tuple[str, ...]) -> None:
    assert within(loaded(program), tuple(f"agentkit.{part}" for part in unused)) == []


OTHERS = ("pydantic", "pydantic_core", "typing_extensions", "docstring_parser", "jsonschema", "openai", "anthropic")


@pytest.mark.parametrize(
    ("program", "unused"),
    [
        ("import agentkit", (*OTHERS, "typing", "dataclasses", "inspect", "re")),
        (
            "from agentkit import Agent",
            (*OTHERS, "asyncio", "concurrent", "json", "logging", "pathlib", "socket", "ssl", "subprocess", "urllib"),
        ),
        (RUN, (*OTHERS, "hashlib", "random", "tempfile", "email")),
    ],
    ids=["package", "agent", "run"],
)
def test_of_others_only_what_is_used_is_loaded(program: str, unused: tuple[str, ...]) -> None:
    """`asyncio` alone would be as much again as all that an agent's class needs."""
    assert within(loaded(program), unused) == []


def test_the_class_of_agents_needs_few_modules() -> None:
    """Each costs a third of a millisecond or more: whatever only a run needs is loaded with the first one."""
    assert len(within(loaded("from agentkit import Agent"), ("agentkit",))) <= 38


@pytest.mark.parametrize("package", NAMES)
def test_a_package_alone_loads_none_of_its_names(package: str) -> None:
    parents = {package.rsplit(".", up)[0] for up in range(package.count(".") + 1)}
    assert set(within(loaded(f"import {package}"), ("agentkit",))) == {
        *parents,
        "agentkit.foreign",
        "agentkit.foreign.absent_imports",
    }


@pytest.mark.parametrize(("package", "folder"), [*zip(NAMES, LAZY, strict=True)], ids=NAMES)
def test_checkers_editors_and_programs_find_the_same_names(package: str, folder: Path) -> None:
    seen = {
        alias.name: str(node.module)
        for block in ast.parse((folder / "__init__.py").read_text()).body
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    module = import_module(package)
    assert vars(module)["_homes"] == seen
    assert set(module.__all__) == seen.keys() <= set(dir(module))
    for name, home in seen.items():
        assert getattr(module, name) is getattr(import_module(home), name)


@pytest.mark.parametrize("package", NAMES)
def test_no_name_that_is_loaded_on_first_use_is_also_a_module(package: str) -> None:
    """A loaded submodule becomes an attribute of its package, where it would hide such a name."""
    found = import_module(package)
    assert {module.name for module in iter_modules(found.__path__)} & set(found.__all__) == set()
