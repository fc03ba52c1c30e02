# `@input_guardrail(run_in_parallel=False)`
from agents import Agent, GuardrailFunctionOutput, InputGuardrailTripwireTriggered, Runner, input_guardrail
from local_server import LocalServer

server = LocalServer("Stored.")


@input_guardrail(run_in_parallel=False)
def no_secrets(context, agent, said):
    return GuardrailFunctionOutput("no passwords", tripwire_triggered="password" in said)


agent = Agent("a", model="gpt-5", input_guardrails=[no_secrets])
try:
    Runner.run_sync(agent, "My password is 123.")
except InputGuardrailTripwireTriggered as error:
    print(error.guardrail_result.output.output_info, len(server.bodies))
