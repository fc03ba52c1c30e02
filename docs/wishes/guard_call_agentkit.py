# `Guards(call=[…])`
from agentkit import Agent, Denied, Guards
from local_server import LocalServer

server = LocalServer(("pay", {"amount": 500}), "I may not.")


def pay(amount: int) -> str:
    """Pay euros."""
    print("paid", amount)
    return "paid"


def limit(call, context):
    if call.name == "pay" and call.arguments["amount"] > 100:
        return Denied("at most 100 euros")


print(Agent("openai:gpt-5", [pay], guards=Guards(call=[limit])).run_sync("Pay 500.").text)
print("at most 100 euros" in str(server.bodies[1]))
