"""A thread as a file that a person saves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agentkit import Agent, ToolCall, openapi_schema
from agentkit.errors import ConfigError
from agentkit.events import Thinking
from agentkit.gateway.ui.thread_export import export_thread
from agentkit.testing import ScriptedModel
from agentkit.threads import Log, ThreadManager
from agentkit.threads.stored_answer import put

pytestmark = pytest.mark.anyio

TRANSCRIPT = """\
# Notes

## User

Look at "a b".

## Assistant (scripted)

> Hm.
> A file.

I look.

**Call of `read`** (approved by ada)

```json
{
  "name": "a b"
}
```

**Result**

````
```
é
````

## Assistant (scripted)

It is *there*.
"""


class Desk:
    """Has files."""

    @openapi_schema(requires_approval=True)
    async def read(self, name: str) -> str:
        """Read a file."""
        return "```\né"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def log(tmp_path: Path) -> Log:
    turns = [[Thinking("Hm.\nA file."), "I look.", ToolCall("c1", "read", {"name": "a b"})], "It is *there*."]
    agent = Agent(ScriptedModel(turns), [Desk()])
    async with ThreadManager(tmp_path / "threads.db") as threads:
        await put(threads, "t", 'Look at "a b".')
        await threads.run_agent("t", agent).complete()
        await threads.approve("t", "c1", by="ada")
        await threads.run_agent("t", agent).complete()
        return await threads.get_log("t")


async def test_a_transcript_shows_calls_and_results(log: Log) -> None:
    name, media_type, content = export_thread(log, "markdown", "Notes")
    assert (name, media_type) == ("Notes.md", "text/markdown; charset=utf-8")
    assert content.decode() == TRANSCRIPT


@pytest.mark.parametrize(
    ("shape", "name", "roles"),
    [
        ("json", "Notes.json", ["user", "assistant", "tool", "assistant"]),
        ("openai", "Notes.openai.json", ["user", "assistant", "tool", "assistant"]),
        ("anthropic", "Notes.anthropic.json", ["user", "assistant", "user", "assistant"]),
        ("hermes", "Notes.hermes.json", ["user", "assistant", "user", "assistant"]),
    ],
)
async def test_messages_in_the_form_of_a_provider(log: Log, shape: str, name: str, roles: list[str]) -> None:
    file = export_thread(log, shape, "Notes")
    assert (file.name, file.media_type) == (name, "application/json")
    assert [message["role"] for message in json.loads(file.content)] == roles


async def test_an_unknown_form_is_refused(log: Log) -> None:
    with pytest.raises(ConfigError, match="cannot be exported as 'word': expected json, openai, anthropic, or"):
        export_thread(log, "word", "Notes")


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("../../etc/passwd", "etc-passwd.md"),
        ('a"\r\nX: y', "a-X-y.md"),
        ("漢字", "thread.md"),
        ("x" * 99, "x" * 60 + ".md"),
    ],
)
async def test_a_file_name_is_harmless(log: Log, title: str, name: str) -> None:
    assert export_thread(log, "markdown", title).name == name
