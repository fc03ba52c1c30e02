# the same; again by hand
import openai
from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from local_server import LocalServer

server = LocalServer("Hello!", "Fine.", forgetful=True)
agent = create_agent(init_chat_model("openai:gpt-5", use_previous_response_id=True))
whole = create_agent(init_chat_model("openai:gpt-5", use_responses_api=True))
history = agent.invoke({"messages": "Hi"})["messages"]
said = {"messages": [*history, {"role": "user", "content": "And you?"}]}
try:
    result = agent.invoke(said)
except openai.NotFoundError:
    result = whole.invoke(said)
print(result["messages"][-1].text)
print("Hi" in str(server.bodies[1]["input"]))
