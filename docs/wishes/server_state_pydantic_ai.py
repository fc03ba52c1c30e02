# `openai_previous_response_id="auto"`
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIResponsesModelSettings
from local_server import LocalServer

server = LocalServer("Hello!", "Fine.")
settings = OpenAIResponsesModelSettings(openai_previous_response_id="auto")
agent = Agent("openai-responses:gpt-5", model_settings=settings)
result = agent.run_sync("Hi")
print(agent.run_sync("And you?", message_history=result.all_messages()).output)
print(server.bodies[1]["previous_response_id"], len(server.bodies[1]["input"]))
