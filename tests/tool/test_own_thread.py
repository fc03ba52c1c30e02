"""A tool that owns what only the thread that opened it may use: one thread of its own, from its constructor on."""

from __future__ import annotations

import gc
import sqlite3
import threading

import pytest

from agentkit import Agent, openapi_schema
from agentkit.errors import SchemaError
from agentkit.messages import ToolCall, ToolMessage
from agentkit.testing import ScriptedModel
from agentkit.tool import own_thread
from agentkit.tool.registry import ToolRegistry


class Shop:
    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:")
        self.db.execute("create table tea (name text)")

    @openapi_schema(one_thread=True)
    def add(self, name: str) -> int:
        """Add a tea."""
        self.db.execute("insert into tea values (?)", [name])
        return len(self.db.execute("select * from tea").fetchall())


class Plain(Shop):
    @openapi_schema()
    def add(self, name: str) -> int:
        """Add a tea."""
        return super().add(name)


TWO_AT_ONCE = [ToolCall("a", "add", {"name": "oolong"}), ToolCall("b", "add", {"name": "sencha"})]


def answers(*tools: object) -> list[str]:
    """What two calls of one response and one of the next are answered."""
    agent = Agent(ScriptedModel([TWO_AT_ONCE, ToolCall("c", "add", {"name": "assam"}), "Done."]), list(tools))
    return [m.text for m in agent.run_sync("Add them.").messages if isinstance(m, ToolMessage)]


def test_a_class_is_constructed_in_the_thread_of_its_calls() -> None:
    assert answers(Shop) == ["1", "2", "3"]


def test_an_instance_that_opens_its_connection_later_needs_no_more() -> None:
    seen: list[int] = []

    class Late:
        @openapi_schema(one_thread=True)
        def add(self, name: str) -> int:
            """Add a tea."""
            return seen.append(threading.get_ident()) or len(seen)  # type: ignore[func-returns-value]

    assert answers(Late()) == ["1", "2", "3"]
    assert len(set(seen)) == 1


def test_the_thread_ends_with_the_instance() -> None:
    gc.collect()
    registry = ToolRegistry(Shop)
    instance = id(registry.tools["add"].instance)
    assert instance in own_thread._THREADS
    del registry
    gc.collect()
    assert instance not in own_thread._THREADS


@pytest.mark.parametrize("tool", [Plain, Plain(), Shop()], ids=["no keyword", "no keyword, instance", "instance"])
def test_without_it_the_error_says_what_to_write(tool: object) -> None:
    said = answers(tool)[0]
    assert said.startswith("ProgrammingError: SQLite objects created in a thread")
    assert "@openapi_schema(one_thread=True), and pass the class" in said


def test_the_constructors_own_error_is_raised() -> None:
    class Broken(Shop):
        def __init__(self) -> None:
            raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"):
        ToolRegistry(Broken)


def test_it_is_for_plain_functions() -> None:
    @openapi_schema(one_thread=True)
    async def add(name: str) -> int:
        """Add a tea."""
        return 1

    with pytest.raises(SchemaError, match="one_thread=True is for a plain function"):
        ToolRegistry(add)
