# `stream_output()`, for fields with a default
import asyncio

from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from local_server import LocalServer

LocalServer('{"name": "Ulm on the Danube", "people": 128000}')


class City(BaseModel):
    name: str
    people: int | None = None


async def main():
    agent = Agent("openai-chat:gpt-5", output_type=NativeOutput(City))
    async with agent.run_stream("Where?") as run:
        seen = [city async for city in run.stream_output(debounce_by=None)]
    print("before the end:", len(seen) > 1)
    print({city.people for city in seen if city.people is not None})


asyncio.run(main())
