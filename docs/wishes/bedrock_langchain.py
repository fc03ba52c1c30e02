# `"bedrock_converse:…"`, `langchain-aws`
from langchain.agents import create_agent
from local_server import LocalServer

server = LocalServer(("add", {"a": 1, "b": 2}), "It is 3.")


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


agent = create_agent("bedrock_converse:us.anthropic.claude-sonnet-4-5-20250929-v1:0", [add])
print(agent.invoke({"messages": "1 + 2?"})["messages"][-1].text)
print("c2lnbmVk" in str(server.bodies[1]))
