# `Guards(reply=[…])`
from agentkit import Agent, AskAgain, Guards
from local_server import LocalServer

server = LocalServer("Ask Eve.", "Ask Eve, please.")


def polite(reply, run):
    if "please" not in reply.text:
        return AskAgain("say please")


agent = Agent("openai:gpt-5", guards=Guards(reply=[polite]))
print(agent.run_sync("Who pays?").text, "say please" in str(server.bodies[1]))
