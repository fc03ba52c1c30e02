# `@output_guardrail`; asking again by hand
from agents import Agent, GuardrailFunctionOutput, OutputGuardrailTripwireTriggered, Runner, output_guardrail
from local_server import LocalServer

server = LocalServer("Ask Eve.", "Ask Eve, please.")


@output_guardrail
def polite(context, agent, output):
    return GuardrailFunctionOutput("say please", tripwire_triggered="please" not in output)


agent = Agent("a", model="gpt-5", output_guardrails=[polite])
said = [{"role": "user", "content": "Who pays?"}]
for _ in range(3):
    try:
        result = Runner.run_sync(agent, said)
        break
    except OutputGuardrailTripwireTriggered as error:
        refused = error.guardrail_result
        said.append({"role": "assistant", "content": refused.agent_output})
        said.append({"role": "user", "content": refused.output.output_info})
print(result.final_output, "say please" in str(server.bodies[1]))
