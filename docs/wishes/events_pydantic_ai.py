# `TypeAdapter(AgentStreamEvent)`
import asyncio

from pydantic import TypeAdapter
from pydantic_ai import Agent, AgentStreamEvent
from local_server import LocalServer

LocalServer(("weather", {"city": "Oslo"}), "It is sunny in Oslo.")
adapter = TypeAdapter(AgentStreamEvent)


def weather(city: str) -> str:
    """Look up the weather in a city."""
    return "sunny"


async def main():
    async with Agent("openai-chat:gpt-5", tools=[weather]).iter("Is it warm?") as run:
        async for node in run:
            if Agent.is_model_request_node(node) or Agent.is_call_tools_node(node):
                async with node.stream(run.ctx) as events:
                    async for event in events:
                        assert adapter.validate_json(adapter.dump_json(event)) == event
    print("all equal")


asyncio.run(main())
