# the same; again by hand
import openai
from agents import Agent, Runner
from local_server import LocalServer

server = LocalServer("Hello!", "Fine.", forgetful=True)
agent = Agent("a", model="gpt-5")
result = Runner.run_sync(agent, "Hi")
try:
    again = Runner.run_sync(agent, "And you?", previous_response_id=result.last_response_id)
except openai.NotFoundError:
    said = [*result.to_input_list(), {"role": "user", "content": "And you?"}]
    again = Runner.run_sync(agent, said)
print(again.final_output)
print("Hi" in str(server.bodies[1]["input"]))
