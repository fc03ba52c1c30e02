# by hand: `tool_use_behavior=…`
from agents import Agent, Runner, ToolsToFinalOutputResult, function_tool
from pydantic import BaseModel
from local_server import LocalServer

server = LocalServer(
    ("final_result", {"name": "Ulm", "people": "many"}),
    ("final_result", {"name": "Ulm", "people": 128000}),
)


class City(BaseModel):
    name: str
    people: int


@function_tool
def final_result(name: str, people: int) -> City:
    """Give the final answer."""
    return City(name=name, people=people)


def stop(context, results):
    outputs = [r.output.model_dump_json() for r in results if isinstance(r.output, City)]
    return ToolsToFinalOutputResult(bool(outputs), outputs[0] if outputs else None)


agent = Agent("a", model="gpt-5", tools=[final_result], tool_use_behavior=stop)
output = Runner.run_sync(agent, "Where?").final_output
print(repr(City.model_validate_json(output)), len(server.bodies))
