"""Guards decide what an agent and its sub-agents may do: deny a call, change one, and ask for another reply.

Runs offline: `ScriptedModel` stands in for the model.
"""

from pathlib import PurePosixPath
from typing import Any

from agentkit import Agent, Approved, AskAgain, Denied, Guards, ToolCall, ToolContext
from agentkit.agent import RunStream
from agentkit.messages import AssistantMessage, ToolMessage
from agentkit.testing import ScriptedModel


def write(path: str, text: str) -> str:
    """Write a file."""
    return f"wrote {len(text)} characters to {path}"


def inside(call: ToolCall, context: ToolContext) -> Approved | Denied | None:
    """Keep every agent in its own folder."""
    if call.name != "write":
        return None
    path = PurePosixPath(call.arguments["path"])
    if path.is_absolute() or ".." in path.parts:
        return Denied("write inside your own folder, with a relative path")
    return Approved(arguments={**call.arguments, "path": f"{context.run.agent.name}/{path}"})


async def short(reply: AssistantMessage, run: RunStream[Any]) -> AskAgain | None:
    """Accept short replies only."""
    return AskAgain("use at most five words") if len(reply.text.split()) > 5 else None


model = ScriptedModel(
    [
        [
            ToolCall("c1", "write", {"path": "/etc/motd", "text": "Hello!"}),
            ToolCall("c2", "write", {"path": "motd", "text": "Hello!"}),
        ],
        "I have now written the file that you wanted me to write.",
        "The file is written.",
    ]
)
agent = Agent(model, [write], name="clerk", guards=Guards(call=[inside], reply=[short]))
result = agent.run_sync("Write the message of the day.")
for message in result.messages:
    if isinstance(message, ToolMessage):
        print(message.text)
print(result.text)
