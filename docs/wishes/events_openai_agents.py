# `dataclasses.asdict(event)`
import asyncio
import dataclasses
import json

from agents import Agent, Runner, function_tool
from local_server import LocalServer

LocalServer(("weather", {"city": "Oslo"}), "It is sunny in Oslo.")


@function_tool
def weather(city: str) -> str:
    """Look up the weather in a city."""
    return "sunny"


async def main():
    run = Runner.run_streamed(Agent("a", model="gpt-5", tools=[weather]), "Is it warm?")
    async for event in run.stream_events():
        assert type(event)(**json.loads(json.dumps(dataclasses.asdict(event)))) == event
    print("all equal")


asyncio.run(main())
