# by hand: `@wrap_model_call` (`langgraph-bigtool` 0.0.3 fails with this LangGraph)
import re

from langchain.agents import create_agent
from langchain.agents.middleware import wrap_model_call
from local_server import LocalServer
from many_tools import TOOLS

server = LocalServer(("find_tools", {"query": "weather"}), ("weather", {"city": "Oslo"}), "It is sunny.")


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", text.lower()))


def find_tools(query: str) -> list[str]:
    """Find tools by the words of their names and descriptions."""
    wanted = words(query)
    ranked = sorted(TOOLS, key=lambda f: -len(wanted & words(f"{f.__name__} {f.__doc__}")))
    return [function.__name__ for function in ranked[:5]]


@wrap_model_call
def only_found(request, handler):
    answers = [m.text for m in request.messages if m.type == "tool" and m.name == "find_tools"]
    found = {"find_tools", *re.findall(r"\w+", " ".join(answers))}
    return handler(request.override(tools=[tool for tool in request.tools if tool.name in found]))


agent = create_agent("openai:gpt-5", [find_tools, *TOOLS], middleware=[only_found])
print(agent.invoke({"messages": "Is it warm?"})["messages"][-1].text)
print(max(len(body["tools"]) for body in server.bodies) < 20, "sunny in Oslo" in str(server.bodies))
