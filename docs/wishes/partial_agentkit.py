# `partial_output()`
import asyncio

from pydantic import BaseModel
from agentkit import Agent
from local_server import LocalServer

LocalServer('{"name": "Ulm on the Danube", "people": 128000}')


class City(BaseModel):
    name: str
    people: int


async def main():
    run = Agent("openai:gpt-5", output_type=City).stream("Where?")
    seen = [city async for city in run.partial_output()]
    print("before the end:", len(seen) > 1)
    print({city["people"] for city in seen if "people" in city})


asyncio.run(main())
