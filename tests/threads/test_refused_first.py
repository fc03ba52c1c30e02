"""What is refused leaves the store as it was: nothing is written that could not be read, and nothing before it fits."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agentkit import ThreadManager, ToolCall, openapi_schema
from agentkit.errors import AgentkitError, ConfigError, StoreError, ThreadNotFound
from agentkit.events import CallEnd, Event, Finish, Text, Usage
from agentkit.messages import AssistantMessage, TextPart, ToolMessage
from agentkit.models.base import ModelRequest
from agentkit.testing import ScriptedModel
from agentkit.tool.registry import ToolRegistry

pytestmark = pytest.mark.anyio


@pytest.fixture
def threads() -> ThreadManager:
    return ThreadManager(":memory:", ToolRegistry(pay))


@openapi_schema(requires_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


class OwnModel:
    """A model of one's own, which yields whatever it was given."""

    format = None
    name = "own"

    def __init__(self, *events: Event) -> None:
        self.events = events

    async def stream(self, request: ModelRequest) -> AsyncIterator[Event]:
        for event in self.events:
            yield event


@pytest.mark.parametrize(
    ("events", "message"),
    [
        ((Text("a"), Usage(1.5, 2), Finish("stop")), r"'usage' is \[1.5, 2, 0, 0, 0\], expected at most 5 integers"),  # type: ignore[arg-type]
        ((Text("a"), Finish(5)), "'finish' is 5, expected a string"),  # type: ignore[arg-type]
        (
            (CallEnd(0, ToolCall("c1", "pay", {"amount": 1}, None, 5)), Finish("tool_calls")),
            "raw is 5, expected a string",
        ),  # type: ignore[arg-type]
        ((CallEnd(0, ToolCall("c1", "pay", {"amount": 1}, 5)), Finish("tool_calls")), "format is 5, expected a string"),  # type: ignore[arg-type]
    ],
    ids=["usage", "finish", "raw", "format"],
)
async def test_what_could_not_be_read_is_not_written(
    threads: ThreadManager, events: tuple[Event, ...], message: str
) -> None:
    with pytest.raises(
        StoreError, match=f"thread 'ada', a new entry cannot be written: .*{message}.*nothing was changed"
    ):
        await threads.say("ada", "Hi", OwnModel(*events))
    assert [entry.body["message"]["role"] for entry in (await threads.get_log("ada")).entries] == ["user"]
    assert (await threads.say("ada", "Again?", ScriptedModel(["Hello."]))).text == "Hello."


@pytest.mark.parametrize("by", [42, {"id": 5}])
async def test_who_decides_is_a_string(threads: ThreadManager, by: Any) -> None:
    await threads.say("ada", "Pay", ScriptedModel([ToolCall("c1", "pay", {"amount": 1})]))
    with pytest.raises(ConfigError, match=r"approve\(by=.*\): expected a string, or None"):
        await threads.approve("ada", "c1", by=by)
    with pytest.raises(ConfigError, match=r"deny\(by=.*\): expected a string, or None"):
        await threads.deny("ada", "c1", by=by)
    await threads.approve("ada", "c1", by="ann")
    assert (await threads.run_thread("ada", model=ScriptedModel(["Done."])).complete()).text == "Done."


@pytest.mark.parametrize(
    ("message", "options", "refusal"),
    [
        ("Hi", {"tool_choice": "nosuch"}, "tool_choice='nosuch' is not a tool"),
        ("Hi", {"client_id": 5}, r"client_id=5\): expected a string"),
        (AssistantMessage((TextPart("Hi"),)), {}, "found a model's message: use add_message"),
        (ToolMessage("c9", "pay", (TextPart("paid"),)), {}, "'c9'"),
        (["Hi", {"role": "user", "content": "Hello?"}], {}, "expected one message, found 2: add the others first"),
    ],
    ids=["tool_choice", "client_id", "role", "result", "two"],
)
@pytest.mark.parametrize("exists", [False, True])
async def test_everything_is_checked_before_anything_is_stored(
    threads: ThreadManager, message: Any, options: dict[str, Any], refusal: str, exists: bool
) -> None:
    if exists:
        await threads.create_thread("ada")
    before = await threads.list_threads()
    with pytest.raises(AgentkitError, match=refusal):
        await threads.say("ada", message, ScriptedModel(["Hello."]), **options)
    assert await threads.list_threads() == before


async def test_a_first_message_keeps_its_client_id(threads: ThreadManager) -> None:
    for _ in range(2):
        await threads.say("ada", "Hi", ScriptedModel(["Hello."]), client_id="m1")
    assert [entry.key for entry in (await threads.get_log("ada")).entries] == ["m1", None]


READS: list[Callable[[ThreadManager], Any]] = [
    lambda threads: threads.list_threads(),
    lambda threads: threads.get_log("ada"),
    lambda threads: threads.pending("ada"),
]


@pytest.mark.parametrize("read", READS, ids=["list", "log", "pending"])
@pytest.mark.parametrize("empty", [False, True])
async def test_reading_creates_nothing(tmp_path: Path, read: Callable[[ThreadManager], Any], empty: bool) -> None:
    file = tmp_path / "a.db"
    if empty:
        file.touch()
    async with ThreadManager(file) as threads:
        with suppress(ThreadNotFound):
            assert await read(threads) == ()
        assert file.exists() == empty
        assert not empty or file.read_bytes() == b""
        await threads.create_thread("ada")  # by a writer, which the reader sees
        assert [thread.id for thread in await threads.list_threads()] == ["ada"]


@pytest.mark.parametrize("read", READS, ids=["list", "log", "pending"])
async def test_reading_refuses_the_database_of_another_program(
    tmp_path: Path, read: Callable[[ThreadManager], Any]
) -> None:
    file = tmp_path / "a.db"
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE orders (id INTEGER)")
    other.close()
    before = file.read_bytes()
    async with ThreadManager(file) as threads:
        with pytest.raises(StoreError, match=r"a\.db: table 'orders' was not created by agentkit"):
            await read(threads)
    assert file.read_bytes() == before
