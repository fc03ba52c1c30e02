# `Hooks().on.before_run` that raises
from pydantic_ai import Agent
from pydantic_ai.capabilities import Hooks
from local_server import LocalServer

server = LocalServer("Stored.")
hooks = Hooks()


@hooks.on.before_run
def no_secrets(ctx):
    if "password" in ctx.prompt:
        raise ValueError("no passwords")


agent = Agent("openai:gpt-5", capabilities=[hooks])
try:
    agent.run_sync("My password is 123.")
except ValueError as error:
    print(error, len(server.bodies))
