# pieces of text; JSON by hand
import asyncio

from agents import Agent, Runner
from pydantic import BaseModel
from pydantic_core import from_json
from local_server import LocalServer

LocalServer('{"name": "Ulm on the Danube", "people": 128000}')


class City(BaseModel):
    name: str
    people: int


async def main():
    run = Runner.run_streamed(Agent("a", model="gpt-5", output_type=City), "Where?")
    text, seen = "", []
    async for event in run.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            text += event.data.delta
            seen.append(from_json(text, allow_partial="trailing-strings"))
    print("before the end:", len(seen) > 1)
    print({city["people"] for city in seen if "people" in city})


asyncio.run(main())
