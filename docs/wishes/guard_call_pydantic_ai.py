# `Hooks().on.before_tool_execute` with `SkipToolExecution`
from pydantic_ai import Agent
from pydantic_ai.capabilities import Hooks
from pydantic_ai.exceptions import SkipToolExecution
from local_server import LocalServer

server = LocalServer(("pay", {"amount": 500}), "I may not.")
hooks = Hooks()


def pay(amount: int) -> str:
    """Pay euros."""
    print("paid", amount)
    return "paid"


@hooks.on.before_tool_execute(tools=["pay"])
def limit(ctx, *, call, tool_def, args):
    if args["amount"] > 100:
        raise SkipToolExecution("at most 100 euros")
    return args


agent = Agent("openai:gpt-5", tools=[pay], capabilities=[hooks])
print(agent.run_sync("Pay 500.").output)
print("at most 100 euros" in str(server.bodies[1]))
