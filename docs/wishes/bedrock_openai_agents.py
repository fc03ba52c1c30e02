# `LitellmModel("bedrock/…")`
import os

from agents import Agent, ModelSettings, Runner, function_tool
from agents.extensions.models.litellm_model import LitellmModel
from openai.types.shared import Reasoning
from local_server import LocalServer

server = LocalServer(("add", {"a": 1, "b": 2}), "It is 3.")


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


name = "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"
model = LitellmModel(name, base_url=os.environ["AWS_ENDPOINT_URL_BEDROCK_RUNTIME"])
settings = ModelSettings(reasoning=Reasoning(effort="low"))
agent = Agent("a", model=model, tools=[add], model_settings=settings)
print(Runner.run_sync(agent, "1 + 2?").final_output)
print("c2lnbmVk" in str(server.bodies[1]))
