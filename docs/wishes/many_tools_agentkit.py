# `offered_tools=5`
from agentkit import Agent
from local_server import LocalServer
from many_tools import TOOLS

server = LocalServer(("find_tools", {"query": "weather"}), ("weather", {"city": "Oslo"}), "It is sunny.")
print(Agent("openai:gpt-5", TOOLS, offered_tools=5).run_sync("Is it warm?").text)
print(max(len(body["tools"]) for body in server.bodies) < 20, "sunny in Oslo" in str(server.bodies))
