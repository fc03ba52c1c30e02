# `"bedrock:…"`
from agentkit import Agent
from local_server import LocalServer

server = LocalServer(("add", {"a": 1, "b": 2}), "It is 3.")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


print(Agent("bedrock:us.anthropic.claude-sonnet-4-5-20250929-v1:0", [add]).run_sync("1 + 2?").text)
print("c2lnbmVk" in str(server.bodies[1]))
