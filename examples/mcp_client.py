"""The tools of an MCP server, called by a model: the example starts its own little server, `agentkit mcp`.

Runs offline: `ScriptedModel` stands in for the model. In real use, the command is that of any MCP server, such as
`["npx", "-y", "@modelcontextprotocol/server-memory"]`, or a URL.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

from agentkit import Agent, ToolCall
from agentkit.interop.mcp import MCPProgress, MCPTools
from agentkit.testing import ScriptedModel

SERVER = '''
from collections import Counter

def count_words(text: str) -> dict[str, int]:
    """Count the words of a text.

    Args:
        text: any text
    """
    return dict(Counter(text.lower().split()))

def longest(words: list[str]) -> str:
    """Find the longest word."""
    if not words:
        raise ValueError("there are no words")
    return max(words, key=len)

tools = [count_words, longest]
'''


def approve(command: str) -> bool:
    """Is shown the exact command before the server starts; False would refuse it."""
    print("starts:", command.rpartition("/")[2])
    return True


def progress(told: MCPProgress) -> None:
    """Is told how far a call is, if its server reports that."""
    print(told)


async def main(folder: str) -> None:
    """Run one agent with the tools of the server."""
    command = [sys.executable, "-m", "agentkit", "mcp", "--tools", "words:tools"]
    async with MCPTools(command, name="words", cwd=folder, approve=approve, on_progress=progress) as server:
        model = ScriptedModel(
            [
                ToolCall("", "words_count_words", {"text": "tea and more tea"}),
                ToolCall("", "words_longest", {"words": []}),  # fails: the error is sent to the model
                ToolCall("", "words_longest", {"words": ["tea", "more"]}),
                "Tea comes twice; the longest word is 'more'.",
            ]
        )
        result = await Agent(model, [server]).run("Tell me about these words.")
    for message in result.messages:
        print(f"{type(message).__name__:17} {message.content}")
    assert result.text.startswith("Tea comes twice")


with tempfile.TemporaryDirectory() as work:
    Path(work, "words.py").write_text(SERVER)
    asyncio.run(main(work))
