# `to_json(event)`, `from_json(…)`
import asyncio
import json

from agentkit import Agent
from agentkit.events import from_json, to_json
from local_server import LocalServer

LocalServer(("weather", {"city": "Oslo"}), "It is sunny in Oslo.")


def weather(city: str) -> str:
    """Look up the weather in a city."""
    return "sunny"


async def main():
    async for event in Agent("openai:gpt-5", [weather]).stream("Is it warm?"):
        assert from_json(json.loads(json.dumps(to_json(event)))) == event
    print("all equal")


asyncio.run(main())
