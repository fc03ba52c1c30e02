"""An agent for the page: `agentkit ui --agent ui_agent:agent`, in this folder. As a program, it prints its events."""

import asyncio

from agentkit import Agent, ToolCall, openapi_schema
from agentkit.gateway.events import AgUiRun
from agentkit.messages import ToolMessage
from agentkit.models import ModelRequest
from agentkit.testing import ScriptedModel


class Desk:
    """The orders of a shop."""

    @openapi_schema
    def orders(self, customer: str) -> list[dict[str, str]]:
        """List a customer's orders."""
        return [
            {"order": "A17", "item": "tea pot", "paid": "40 EUR", "state": "arrived broken"},
            {"order": "A18", "item": "green tea", "paid": "12 EUR", "state": "on its way"},
        ]

    @openapi_schema(requires_approval=True)
    def refund(self, order: str, euros: int) -> str:
        """Refund an order."""
        return f"{euros} EUR refunded for {order}"


def answer(request: ModelRequest) -> str | list[str | ToolCall]:
    """Play the model. In place of it: Agent("openai:gpt-5", [Desk()])."""
    last = request.messages[-1]
    if not isinstance(last, ToolMessage):
        return ["Let me look at Ada's orders.", ToolCall("", "orders", {"customer": "Ada"})]
    if last.name == "orders":
        return ["The **tea pot** arrived broken.", ToolCall("", "refund", {"order": "A17", "euros": 40})]
    return "Ada gets her money back." if last.error is None else "Then I leave it as it is."


agent = Agent(ScriptedModel(answer, chunk=8), [Desk()], name="desk")


async def main() -> None:
    """Print what a page gets of a run."""
    async with agent.stream("Ada's tea pot is broken.") as run:
        page = AgUiRun("ada", "run-1")
        for event in page.start():
            print(event)
        async for happened in run:
            for event in page.feed(happened):
                print(event)
        for event in page.finish(run.result):
            print(event)


if __name__ == "__main__":
    asyncio.run(main())
