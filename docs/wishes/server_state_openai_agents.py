# `previous_response_id=…`
from agents import Agent, Runner
from local_server import LocalServer

server = LocalServer("Hello!", "Fine.")
agent = Agent("a", model="gpt-5")
result = Runner.run_sync(agent, "Hi")
again = Runner.run_sync(agent, "And you?", previous_response_id=result.last_response_id)
print(again.final_output)
print(server.bodies[1]["previous_response_id"], len(server.bodies[1]["input"]))
