# `ToolStrategy(City)`
from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from pydantic import BaseModel
from local_server import LocalServer

server = LocalServer(
    ("City", {"name": "Ulm", "people": "many"}),
    ("City", {"name": "Ulm", "people": 128000}),
)


class City(BaseModel):
    name: str
    people: int


agent = create_agent("openai:gpt-5", response_format=ToolStrategy(City))
print(repr(agent.invoke({"messages": "Where?"})["structured_response"]), len(server.bodies))
