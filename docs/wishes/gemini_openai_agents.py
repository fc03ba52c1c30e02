# `LitellmModel("gemini/…")`
import os

from agents import Agent, Runner, function_tool
from agents.extensions.models.litellm_model import LitellmModel
from local_server import LocalServer

server = LocalServer(("add", {"a": 1, "b": 2}), "It is 3.")


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


model = LitellmModel("gemini/gemini-3.5-flash", base_url=os.environ["GOOGLE_GEMINI_BASE_URL"])
agent = Agent("a", model=model, tools=[add])
print(Runner.run_sync(agent, "1 + 2?").final_output)
print("c2lnbmVk" in str(server.bodies[1]))
