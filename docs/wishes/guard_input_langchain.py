# `@before_model(can_jump_to=["end"])`
from langchain.agents import create_agent
from langchain.agents.middleware import before_model
from langchain.messages import AIMessage
from local_server import LocalServer

server = LocalServer("Stored.")


@before_model(can_jump_to=["end"])
def no_secrets(state, runtime):
    if "password" in state["messages"][-1].text:
        return {"messages": [AIMessage("no passwords")], "jump_to": "end"}


agent = create_agent("openai:gpt-5", middleware=[no_secrets])
result = agent.invoke({"messages": "My password is 123."})
print(result["messages"][-1].text, len(server.bodies))
