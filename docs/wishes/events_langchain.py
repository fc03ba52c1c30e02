# `dumps(event)`, `loads(…)` of `langchain_core.load`
from langchain.agents import create_agent
from langchain_core.load import dumps, loads
from local_server import LocalServer

LocalServer(("weather", {"city": "Oslo"}), "It is sunny in Oslo.")


def weather(city: str) -> str:
    """Look up the weather in a city."""
    return "sunny"


agent = create_agent("openai:gpt-5", [weather])
for mode, event in agent.stream({"messages": "Is it warm?"}, stream_mode=["messages", "updates"]):
    event = list(event) if mode == "messages" else event
    assert loads(dumps(event), allowed_objects="core") == event
print("all equal")
