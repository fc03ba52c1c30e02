"""A conversation that outlives the process: ask for approval, exit, continue in another process.

Run it twice: `python examples/durable_thread.py`, then again. The first time the agent wants to send a message and the
program ends; the second time you decide. No key needed: a scripted model stands in for a real one, such as
"openai:gpt-5".
"""

from __future__ import annotations

import asyncio
import sys

from agentkit import ThreadManager, ToolCall, openapi_schema
from agentkit.testing import ScriptedModel

STORE = "lunch.db"  # in the current folder


class Mail:
    """A tool whose effects cannot be undone."""

    @openapi_schema(requires_approval=True)
    async def send(self, to: str, text: str) -> str:
        """Send a message."""
        return f"sent to {to}"


def may(call: ToolCall) -> bool:
    """Ask the person at the terminal."""
    print(f"{call.name} {dict(call.arguments)}")
    return not sys.stdin.isatty() or input("may it? [y/n] ").startswith("y")


async def main() -> None:
    """Continue where the last process ended."""
    threads = ThreadManager(STORE)
    threads.add_tool(Mail)
    if not any(thread.id == "lunch" for thread in await threads.list_threads()):
        await threads.create_thread("lunch", messages="Ask Ada for lunch.")
    waiting = await threads.pending("lunch")
    for call in waiting:
        if may(call):
            await threads.approve("lunch", call.id)
        else:
            await threads.deny("lunch", call.id, "not now")
    script = ["She knows."] if waiting else [ToolCall("", "send", {"to": "ada@example.org", "text": "Lunch?"})]
    result = await threads.resume_thread("lunch", "You write mail.", ScriptedModel(script)).complete()
    if result.finish == "approval":
        print("A call waits for you. Run me again.")
    else:
        print(result.text)
        await threads.delete_thread("lunch")
    await threads.aclose()


asyncio.run(main())
