"""What a program loads: a part of the package is loaded when it is used, and not before."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
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

OUTSIDE = ("cli", "gateway", "grammar", "interop", "rollout", "sandbox")
READING = ("formats.catalog", "formats.engine", "formats.format", "formats.reader", "formats.teach")


@pytest.mark.parametrize(
    ("program", "unused"),
    [
        ("from agentkit import Agent", (*OUTSIDE, *READING, "threads", "testing", "telemetry")),
        ("from agentkit import model", (*OUTSIDE, *READING, "threads")),
        (TOOL, (*OUTSIDE, *READING, "threads", "agent")),
        (RUN, (*OUTSIDE, "threads")),
        (STORED, (*OUTSIDE, "threads.sql.postgres")),
    ],
    ids=["agent", "model", "registry", "run", "stored"],
)
def test_only_what_is_used_is_loaded(program: str, unused: tuple[str, ...]) -> None:
    script = f"{program}\nimport sys; print(*(m[9:] for m in sys.modules if m.startswith('agentkit.')))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert [m for m in loaded for part in unused if m == part or m.startswith(f"{part}.")] == []


@pytest.mark.parametrize("package", ["agentkit", "agentkit.formats", "agentkit.models", "agentkit.testing"])
def test_no_name_that_is_loaded_on_first_use_is_also_a_module(package: str) -> None:
    """A loaded submodule becomes an attribute of its package, where it would hide such a name."""
    found = import_module(package)
    assert {module.name for module in iter_modules(found.__path__)} & set(found.__all__) == set()
