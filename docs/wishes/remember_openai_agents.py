# `needs_approval=…`; rules and their file by hand (`always_approve=True` is for a whole tool)
import asyncio
import json
import re
from pathlib import Path

from agents import Agent, Runner, RunState, function_tool
from local_server import LocalServer

LocalServer(
    ("run", {"command": "git log -5"}),
    ("run", {"command": "git log --all"}),
    ("run", {"command": "git log; rm -r ."}),
)
ALLOWED, CHAT = Path("allowed.txt"), Path("chat.json")


async def not_allowed(context, arguments, call_id) -> bool:
    rules = ALLOWED.read_text().splitlines() if ALLOWED.exists() else []
    return not any(re.fullmatch(rule, arguments["command"]) for rule in rules)


@function_tool(needs_approval=not_allowed)
def run(command: str) -> str:
    """Run a command."""
    print("ran", command)
    return "done"


async def main():
    agent = Agent("a", model="gpt-5", tools=[run])
    asked = await Runner.run(agent, "What is new?")
    state = asked.to_state()
    state.approve(asked.interruptions[0])
    CHAT.write_text(state.to_string())
    ALLOWED.write_text(r"git log [\w ./:=@,+-]*")
    state = await RunState.from_string(agent, CHAT.read_text())  # later, in another process
    result = await Runner.run(agent, state)
    print("asked", json.loads(result.interruptions[0].arguments)["command"])


asyncio.run(main())
