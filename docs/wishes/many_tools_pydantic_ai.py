# `Tool(…, defer_loading=True)`, `ToolSearch(…)`
from pydantic_ai import Agent, Tool
from pydantic_ai.capabilities import ToolSearch
from local_server import LocalServer
from many_tools import TOOLS

server = LocalServer(("search_tools", {"queries": ["weather"]}), ("weather", {"city": "Oslo"}), "It is sunny.")
tools = [Tool(function, defer_loading=True) for function in TOOLS]
agent = Agent("openai-chat:gpt-5", tools=tools, capabilities=[ToolSearch(strategy="keywords")])
print(agent.run_sync("Is it warm?").output)
print(max(len(body["tools"]) for body in server.bodies) < 20, "sunny in Oslo" in str(server.bodies))
