"""A shop whose tools a test counts and holds, and the script of the model that calls them."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from agentkit import openapi_schema
from agentkit.events import Thinking
from agentkit.messages import ToolCall


class Shop:
    def __init__(self) -> None:
        self.done: list[str] = []
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()

    @openapi_schema(requires_approval=True)
    async def order(self, item: str, amount: int) -> str:
        """Order an item."""
        self.done.append(f"{amount} {item}")
        return f"ordered {amount} {item}"

    @openapi_schema
    async def slow(self, text: str) -> str:
        """Take a while."""
        self.done.append(f"slow {text}")
        self.entered.set()
        while not self.gate.is_set():  # noqa: ASYNC110 - the test sets it in another thread
            await asyncio.sleep(0.005)
        return f"slow {text}"

    @openapi_schema
    async def fail(self) -> str:
        """Fail."""
        raise ValueError("no paper")


TURNS: dict[str, list[Any]] = {
    "order": [["Let me.", ToolCall("", "order", {"item": "tea", "amount": 3})], "It is done."],
    "orders": [
        [ToolCall("", "order", {"item": item, "amount": 1}) for item in ("tea", "milk", "cake")],
        "All settled.",
    ],
    "twice": [
        [ToolCall("", "order", {"item": "tea", "amount": 1})],
        [ToolCall("", "order", {"item": "milk", "amount": 2})],
        "Both settled.",
    ],
    "slow": [["Wait.", ToolCall("", "slow", {"text": "one"})], "It is done."],
    "both": [
        [ToolCall("", "slow", {"text": "one"}), ToolCall("", "order", {"item": "tea", "amount": 3})],
        "Both done.",
    ],
    "fail": [[Thinking("Deep thought."), ToolCall("", "fail", {})], "It failed."],
    "long": [" ".join(f"word{n}" for n in range(40))],
}


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def turn(said: str, before: int) -> Any:
    turns = TURNS.get(said.split()[0], [f"You said {said}."])
    return turns[before] if before < len(turns) else "Nothing more."
