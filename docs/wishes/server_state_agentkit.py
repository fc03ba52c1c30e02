# `stateful=True`
from agentkit import Agent, model
from local_server import LocalServer

server = LocalServer("Hello!", "Fine.")
agent = Agent(model("responses:gpt-5", stateful=True))
result = agent.run_sync("Hi")
print(agent.run_sync([*result.messages, "And you?"]).text)
print(server.bodies[1]["previous_response_id"], len(server.bodies[1]["input"]))
