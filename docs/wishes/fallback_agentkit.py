# `first_of(a, b)`
from agentkit import Agent, ProviderError, first_of
from local_server import LocalServer

LocalServer("Hello!", failing={"gpt-5": 529, "gpt-3": 401})
result = Agent(first_of("openai:gpt-5", "openai:gpt-4")).run_sync("Hi")
print(result.text)
try:
    Agent(first_of("openai:gpt-3", "openai:gpt-4")).run_sync("Hi")
except ProviderError as error:
    print(error.kind)
