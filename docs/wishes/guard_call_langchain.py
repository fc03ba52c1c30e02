# `@wrap_tool_call`
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain.messages import ToolMessage
from local_server import LocalServer

server = LocalServer(("pay", {"amount": 500}), "I may not.")


def pay(amount: int) -> str:
    """Pay euros."""
    print("paid", amount)
    return "paid"


@wrap_tool_call
def limit(request, handler):
    call = request.tool_call
    if call["name"] == "pay" and call["args"]["amount"] > 100:
        return ToolMessage("at most 100 euros", tool_call_id=call["id"], status="error")
    return handler(request)


agent = create_agent("openai:gpt-5", [pay], middleware=[limit])
print(agent.invoke({"messages": "Pay 500."})["messages"][-1].text)
print("at most 100 euros" in str(server.bodies[1]))
