# `@after_model(can_jump_to=["model"])`
from langchain.agents import create_agent
from langchain.agents.middleware import after_model
from langchain.messages import HumanMessage
from local_server import LocalServer

server = LocalServer("Ask Eve.", "Ask Eve, please.")


@after_model(can_jump_to=["model"])
def polite(state, runtime):
    reply = state["messages"][-1]
    if not reply.tool_calls and "please" not in reply.text:
        return {"messages": [HumanMessage("say please")], "jump_to": "model"}


agent = create_agent("openai:gpt-5", middleware=[polite])
said = agent.invoke({"messages": "Who pays?"})["messages"][-1].text
print(said, "say please" in str(server.bodies[1]))
