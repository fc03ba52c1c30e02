# `use_previous_response_id=True`
from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from local_server import LocalServer

server = LocalServer("Hello!", "Fine.")
agent = create_agent(init_chat_model("openai:gpt-5", use_previous_response_id=True))
history = agent.invoke({"messages": "Hi"})["messages"]
result = agent.invoke({"messages": [*history, {"role": "user", "content": "And you?"}]})
print(result["messages"][-1].text)
print(server.bodies[1]["previous_response_id"], len(server.bodies[1]["input"]))
