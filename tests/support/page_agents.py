"""An agent for a real `agentkit ui`, controlled by files: a test can hold its model or a tool at a point.

The folder of `PAGE_CONTROL` has `hold-NAME` (wait there), `at-NAME` (it waits there now), `effects.log` (a JSON line
for each effect of a tool), and `play-NAME.json`, further scripts. Replies depend on the conversation alone: the same
after a restart.
"""

from __future__ import annotations

import asyncio
import json
import os
import zlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

from agentkit import Agent, ToolContext, openapi_schema
from agentkit.events import Finish, SourceEvent, Thinking
from agentkit.messages import AssistantMessage, ImagePart, TextPart, ToolCall, UserMessage
from agentkit.models.base import ModelRequest
from agentkit.testing import ScriptedModel
from agentkit.tool import ToolResult

CONTROL: Final = Path(os.environ["PAGE_CONTROL"])


def _chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")


PICTURE: Final = (
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", (8).to_bytes(4, "big") * 2 + b"\x08\x02\0\0\0")
    + _chunk(b"IDAT", zlib.compress((b"\0" + b"\xff\0\0" * 8) * 8))
    + _chunk(b"IEND", b"")
)
"""A red picture of 8 by 8."""

LONG: Final = " ".join(f"Word{n}" for n in range(60))
"""60 words that a test can look for."""


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"call": tool, "arguments": arguments}


SCRIPTS: Final[dict[str, list[Any]]] = {
    "hello": [["Hello there."]],
    "long": [[f"{LONG} The end."]],
    "think": [[{"thinking": "Deep thought."}, "Thought through."]],
    "slow": [["Wait.", call("slow", text="one")], ["It is done."]],
    "order": [["Let me order.", call("order", item="tea", amount=3)], ["That is settled."]],
    "orders": [
        [
            "Three orders.",
            call("order", item="tea", amount=1),
            call("order", item="milk", amount=2),
            call("order", item="cake", amount=3),
        ],
        ["All settled."],
    ],
    "twice": [
        ["First.", call("order", item="tea", amount=1)],
        ["Second.", call("order", item="milk", amount=2)],
        ["Both settled."],
    ],
    "both": [["Two.", call("slow", text="one"), call("order", item="tea", amount=3)], ["Both done."]],
    "write": [["I write.", call("write_file", path="notes/a.txt", content="one\ntwo\n")], ["Written."]],
    "edit": [["I edit.", call("edit_file", path="notes/a.txt", old_str="a\nb", new_str="a\nc")], ["Edited."]],
    "fail": [[call("fail", why="no paper")], ["It failed."]],
    "picture": [[call("picture")], ["A picture."]],
    "table": [[call("table", rows=3)], ["A table."]],
    "save": [["I save.", call("save", text="one")], ["It is saved."]],
    "ask": [["I ask.", call("ask_helper", task="order")], ["Answered."]],
}
"""By the first word of the user's message: the turns, each of texts, calls and thinking."""


def held(name: str) -> bool:
    """Say whether to wait at this point; says so in `at-NAME`."""
    if not (CONTROL / f"hold-{name}").exists():
        return False
    (CONTROL / f"at-{name}").touch()
    return True


async def wait_at(name: str) -> None:
    """Wait while a test holds this point."""
    while held(name):  # noqa: ASYNC110 - another process releases it
        await asyncio.sleep(0.01)


class HeldModel:
    """A model that plays the script of the user's last message, and can be held after one of its events.

    Args:
        agent: whose it is: `AGENT-0` holds it at the end of its first reply to the message, and so on.
    """

    name = "test:held"
    format = None

    def __init__(self, agent: str) -> None:
        self._agent = agent

    async def stream(self, request: ModelRequest) -> AsyncIterator[SourceEvent]:
        """Play the turn that the conversation has reached; `hold-model` has the number of events before the wait."""
        said, before = _place(request)
        played = ScriptedModel([_turn(said, before, len(request.messages))], chunk=int(_number("chunk", 6)))
        seconds = _number("pace", 0)
        sent = 0
        async for event in played.stream(request):
            while self._holds(sent):  # noqa: ASYNC110 - another process releases it
                await asyncio.sleep(0.01)
            if isinstance(event, Finish):
                await wait_at(f"{self._agent}-{before}")
            yield event
            sent += not isinstance(event, Finish)
            await asyncio.sleep(seconds)

    def _holds(self, sent: int) -> bool:
        try:
            return sent >= int((CONTROL / "hold-model").read_text()) and held("model")
        except (FileNotFoundError, ValueError):  # the latter: it is being written
            return False


def _number(name: str, default: float) -> float:
    file = CONTROL / name
    return float(file.read_text()) if file.exists() else default


def _place(request: ModelRequest) -> tuple[UserMessage, int]:
    """The user's last message, and the number of replies after it."""
    last = max(at for at, message in enumerate(request.messages) if isinstance(message, UserMessage))
    said = request.messages[last]
    assert isinstance(said, UserMessage)
    return said, sum(isinstance(message, AssistantMessage) for message in request.messages[last + 1 :])


def _turn(said: UserMessage, before: int, messages: int) -> list[Any]:
    words = "".join(part.text for part in said.content if isinstance(part, TextPart)).split() or ["hello"]
    turns = _script(words[0])
    lines = turns[before] if before < len(turns) else ["Nothing more."]
    return [_line(line, f"c{messages}-{at}") for at, line in enumerate(lines)]


def _script(word: str) -> list[Any]:
    own = CONTROL / f"play-{word}.json"
    if own.exists():
        turns: list[Any] = json.loads(own.read_text())
        return turns
    return SCRIPTS.get(word, [[f"You said {word}."]])


def _line(line: Any, id: str) -> Any:
    match line:
        case {"call": str(name), "arguments": dict(arguments)}:
            return ToolCall(id, name, arguments)
        case {"thinking": str(text)}:
            return Thinking(text)
    return line


def effect(tool: str, context: ToolContext, **arguments: Any) -> None:
    """Record an effect, as one write, so that a kill leaves all of it or none."""
    line = json.dumps({"tool": tool, "key": context.idempotency_key, **arguments}) + "\n"
    with (CONTROL / "effects.log").open("ab", buffering=0) as log:
        log.write(line.encode())


class Shop:
    """Tools with effects that a test counts."""

    @openapi_schema
    async def slow(self, text: str, context: ToolContext) -> str:
        """Take a while."""
        effect("slow", context, text=text)
        await wait_at("slow")
        return f"slow {text}"

    @openapi_schema(requires_approval=True)
    async def order(self, item: str, amount: int, context: ToolContext) -> str:
        """Order an item.

        Args:
            item: what to order.
            amount: how many.
            context: of the call.
        """
        effect("order", context, item=item, amount=amount)
        await wait_at("order")
        return f"ordered {amount} {item}"

    @openapi_schema(requires_approval=True)
    async def write_file(self, path: str, content: str, context: ToolContext) -> str:
        """Write a file."""
        effect("write_file", context, path=path)
        return f"wrote {len(content)} characters"

    @openapi_schema(requires_approval=True)
    async def edit_file(self, path: str, old_str: str, new_str: str, context: ToolContext) -> str:
        """Edit a file."""
        effect("edit_file", context, path=path)
        return "edited"

    @openapi_schema
    async def fail(self, why: str) -> ToolResult:
        """Fail."""
        return ToolResult(error=why)

    @openapi_schema
    async def picture(self) -> ImagePart:
        """Draw."""
        return ImagePart(PICTURE)

    @openapi_schema
    async def table(self, rows: int) -> list[dict[str, Any]]:
        """List rows."""
        return [{"name": f"row {n}", "size": n * 10} for n in range(rows)]

    @openapi_schema
    async def hostile_table(self, cells: list[str]) -> list[dict[str, str]]:
        """List texts, also as names of columns <img src=x onerror=alert(1)>."""
        return [{cell: cell for cell in cells}]

    @openapi_schema
    async def show(self, text: str) -> str:
        """Return a text unchanged."""
        return text

    @openapi_schema(idempotent=True)
    async def save(self, text: str, context: ToolContext) -> str:
        """Save; may be repeated."""
        effect("save", context, text=text)
        await wait_at("save")
        return f"saved {text}"


shop = Shop()
helper = Agent(HeldModel("helper"), [shop], name="helper")
agent = Agent(HeldModel("shop"), [shop, helper.as_tool("ask_helper", "Ask a helper.")], name="shop")
