"""More tools than a request should have: the agent offers those that fit, and the model finds others.

Runs offline: `ScriptedModel` stands in for the model, and notes what it was offered.
"""

from collections.abc import Callable

from agentkit import Agent, ToolCall
from agentkit.testing import ScriptedModel


def report(number: int) -> Callable[[int], str]:
    """A function for the report with this number."""

    def run(year: int) -> str:
        return f"report {number} of {year}"

    run.__name__, run.__doc__ = f"report_{number}", f"Create report {number}."
    return run


def weather(city: str) -> str:
    """How warm it is in a city, and whether it rains."""
    return f"sunny in {city}"


def convert_currency(amount: float, to: str) -> str:
    """Convert money into another currency."""
    return f"{amount:.2f} {to}"


model = ScriptedModel(
    [
        ToolCall("", "weather", {"city": "Oslo"}),
        ToolCall("", "find_tools", {"query": "convert money"}),
        ToolCall("", "convert_currency", {"amount": 20.0, "to": "NOK"}),
        "It is sunny, and they are twenty crowns.",
    ]
)
tools = [*map(report, range(500)), weather, convert_currency]
result = Agent(model, tools, offered_tools=5).run_sync("Is it warm in Oslo? And what are twenty euros there?")
for request in model.requests:
    print("offered:", *(tool.name for tool in request.tools))
print(result.text)
assert [len(request.tools) for request in model.requests] == [2, 2, 3, 3]
