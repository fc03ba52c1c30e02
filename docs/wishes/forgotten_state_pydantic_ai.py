# the same; again by hand
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelNotFoundError
from pydantic_ai.models.openai import OpenAIResponsesModelSettings
from local_server import LocalServer

server = LocalServer("Hello!", "Fine.", forgetful=True)
settings = OpenAIResponsesModelSettings(openai_previous_response_id="auto")
agent = Agent("openai-responses:gpt-5")
history = agent.run_sync("Hi").all_messages()
try:
    again = agent.run_sync("And you?", message_history=history, model_settings=settings)
except ModelNotFoundError:
    again = agent.run_sync("And you?", message_history=history)
print(again.output)
print("Hi" in str(server.bodies[1]["input"]))
