# `approve(…, remember=AllowRule(…))`
import asyncio

from agentkit import ThreadManager, openapi_schema
from agentkit.threads import AllowRule
from local_server import LocalServer

LocalServer(
    ("run", {"command": "git log -5"}),
    ("run", {"command": "git log --all"}),
    ("run", {"command": "git log; rm -r ."}),
)


@openapi_schema(requires_approval=True)
def run(command: str) -> str:
    """Run a command."""
    print("ran", command)
    return "done"


async def main():
    async with ThreadManager("chat.db") as threads:
        threads.add_tool(run)
        asked = await threads.say("dev", "What is new?", "openai:gpt-5")
        rule = AllowRule("run", {"command": "git log *"})
        await threads.approve("dev", asked.pending[0].id, remember=rule)
    async with ThreadManager("chat.db") as threads:  # later, in another process
        threads.add_tool(run)
        result = await threads.run_thread("dev", model="openai:gpt-5")
        print("asked", result.pending[0].arguments["command"])


asyncio.run(main())
