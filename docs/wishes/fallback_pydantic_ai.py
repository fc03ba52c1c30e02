# `FallbackModel(a, b, fallback_on=…)`
from pydantic_ai import Agent, ModelAPIError
from pydantic_ai.exceptions import ModelAuthenticationError
from pydantic_ai.models.fallback import FallbackModel
from local_server import LocalServer

LocalServer("Hello!", failing={"gpt-5": 529, "gpt-3": 401})


def other_may_work(error: Exception) -> bool:
    return isinstance(error, ModelAPIError) and not isinstance(error, ModelAuthenticationError)


first = FallbackModel("openai:gpt-5", "openai:gpt-4", fallback_on=other_may_work)
print(Agent(first).run_sync("Hi").output)
first = FallbackModel("openai:gpt-3", "openai:gpt-4", fallback_on=other_may_work)
try:
    Agent(first).run_sync("Hi")
except ModelAuthenticationError:
    print("authentication")
