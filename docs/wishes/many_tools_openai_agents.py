# by hand: `is_enabled=…` (`ToolSearchTool()` is for OpenAI's models)
import re

from agents import Agent, Runner, function_tool
from local_server import LocalServer
from many_tools import TOOLS

server = LocalServer(("find_tools", {"query": "weather"}), ("weather", {"city": "Oslo"}), "It is sunny.")
found: set[str] = set()


def tool(function):
    name = function.__name__
    return function_tool(function, is_enabled=lambda context, agent: name in found)


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower()))


@function_tool
def find_tools(query: str) -> str:
    """Find tools by the words of their names and descriptions."""
    wanted = words(query)
    ranked = sorted(TOOLS, key=lambda f: -len(wanted & words(f"{f.__name__} {f.__doc__}")))
    names = [function.__name__ for function in ranked[:5]]
    found.update(names)
    return ", ".join(names)


agent = Agent("a", model="gpt-5", tools=[find_tools, *map(tool, TOOLS)])
print(Runner.run_sync(agent, "Is it warm?").final_output)
print(max(len(body["tools"]) for body in server.bodies) < 20, "sunny in Oslo" in str(server.bodies))
