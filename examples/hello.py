"""Hello world with a tool. Needs OPENAI_API_KEY, or OPENAI_BASE_URL for a compatible server."""

from agentkit import Agent


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


print(Agent("openai:gpt-5", [add]).run_sync("What is 19 + 23?").text)
