# `@agent.output_validator` with `ModelRetry`
from pydantic_ai import Agent, ModelRetry
from local_server import LocalServer

server = LocalServer("Ask Eve.", "Ask Eve, please.")
agent = Agent("openai:gpt-5")


@agent.output_validator
def polite(text: str) -> str:
    if "please" not in text:
        raise ModelRetry("say please")
    return text


print(agent.run_sync("Who pays?").output, "say please" in str(server.bodies[1]))
