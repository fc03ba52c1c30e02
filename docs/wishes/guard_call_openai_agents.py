# `@tool_input_guardrail` with `reject_content`, set for each tool
import json

from agents import Agent, Runner, ToolGuardrailFunctionOutput, function_tool, tool_input_guardrail
from local_server import LocalServer

server = LocalServer(("pay", {"amount": 500}), "I may not.")


@tool_input_guardrail
def limit(data):
    if json.loads(data.context.tool_arguments)["amount"] > 100:
        return ToolGuardrailFunctionOutput.reject_content("at most 100 euros")
    return ToolGuardrailFunctionOutput.allow()


@function_tool(tool_input_guardrails=[limit])
def pay(amount: int) -> str:
    """Pay euros."""
    print("paid", amount)
    return "paid"


print(Runner.run_sync(Agent("a", model="gpt-5", tools=[pay]), "Pay 500.").final_output)
print("at most 100 euros" in str(server.bodies[1]))
