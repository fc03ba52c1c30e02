# the default
from pydantic import BaseModel
from pydantic_ai import Agent
from local_server import LocalServer

server = LocalServer(
    ("final_result", {"name": "Ulm", "people": "many"}),
    ("final_result", {"name": "Ulm", "people": 128000}),
)


class City(BaseModel):
    name: str
    people: int


agent = Agent("openai:gpt-5", output_type=City)
print(repr(agent.run_sync("Where?").output), len(server.bodies))
