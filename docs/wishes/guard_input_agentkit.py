# `Guards(request=[…])`
from agentkit import Agent, Guards, Refused
from local_server import LocalServer

server = LocalServer("Stored.")


def no_secrets(request, run):
    if "password" in request.messages[-1].text:
        return Refused("no passwords")


agent = Agent("openai:gpt-5", guards=Guards(request=[no_secrets]))
result = agent.run_sync("My password is 123.")
print(result.guard_reason, len(server.bodies))
