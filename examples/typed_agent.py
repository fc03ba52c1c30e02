"""A typed agent: what its tools and instructions need from the application, and what a run returns.

Runs offline: `ScriptedModel` stands in for the model. A type checker knows that `shop` is a `Shop` and that
`result.output` is an `Offer`; it rejects a run without a shop and a wrong use of the offer.
"""

from dataclasses import dataclass

from pydantic import BaseModel

from agentkit import Agent, OutputError, ToolCall, ToolContext, openapi_schema
from agentkit.testing import ScriptedModel


@dataclass
class Shop:
    """What the application knows and the model does not."""

    name: str
    prices: dict[str, int]


class Offer(BaseModel):
    """What the application expects from a run."""

    product: str
    cents: int


class Till:
    """Looks things up in the shop that was passed to the run."""

    @openapi_schema
    def price(self, product: str, context: ToolContext[Shop]) -> int:
        """What a product costs, in cents."""
        return context.state.prices[product]


def instructions(shop: Shop) -> str:
    """Called once for each run."""
    return f"You sell in {shop.name}. Answer with an offer."


model = ScriptedModel(
    [
        ToolCall("", "price", {"product": "apple"}),
        '{"product": "apple", "cents": 30}',
        "We are closed.",  # not an offer: requested again, twice
        "Closed, I say.",
        "Closed!",
    ]
)
seller = Agent(model, [Till()], system=instructions, output_type=Offer)  # an Agent[Shop, Offer]
shop = Shop("Ulm", {"apple": 30})

offer = seller.run_sync("An apple?", context=shop).output
print(f"{offer.product}: {offer.cents / 100:.2f} EUR")

try:
    print(seller.run_sync("Another?", context=shop).output.cents)
except OutputError as error:
    print(f"{error}\nThe last words were: {error.result.text}")
