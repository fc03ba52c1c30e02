# `dumps(event)`, `loads(…)` of `langchain_core.load`; tuples in the metadata become lists
import json

from langchain.agents import create_agent
from langchain_core.load import dumps, loads
from local_server import LocalServer

LocalServer(("weather", {"city": "Oslo"}), "It is sunny in Oslo.")


def weather(city: str) -> str:
    """Look up the weather in a city."""
    return "sunny"


agent = create_agent("openai:gpt-5", [weather])
for mode, event in agent.stream({"messages": "Is it warm?"}, stream_mode=["messages", "updates"]):
    if mode == "messages":
        event = [event[0], json.loads(json.dumps(event[1]))]
    assert loads(dumps(event), allowed_objects="core") == event
print("all equal")
