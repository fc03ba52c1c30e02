"""A tool class with state: one basket per customer, shared by the turns of a conversation, never between customers.

Runs offline: `ScriptedModel` stands in for the model. Its second step shows what a model reads when a tool raises an
error.
"""

from agentkit import Agent, ProcessorConfig, ToolCall, ToolContext, ToolResult, openapi_schema
from agentkit.messages import user
from agentkit.testing import ScriptedModel

PRICES = {"apple": 30, "bread": 250}


class Basket:
    """The products that one customer wants to buy, with their quantities."""

    def __init__(self) -> None:
        self.pieces: dict[str, int] = {}

    @openapi_schema
    def put(self, product: str, pieces: int = 1) -> dict[str, int] | ToolResult:
        """Put a product into the basket; returns the whole basket.

        Args:
            product: what the customer wants
            pieces: how many
        """
        if product not in PRICES:
            return ToolResult(error=f"we have no {product!r}; we have {', '.join(PRICES)}")
        self.pieces[product] = self.pieces.get(product, 0) + pieces
        return self.pieces

    @openapi_schema
    def total(self, context: ToolContext) -> str:
        """What the basket costs."""
        cents = sum(PRICES[product] * pieces for product, pieces in self.pieces.items())
        return f"{cents / 100:.2f} {context.state['currency']}"  # the model never sees `context`


baskets = {"Ada": Basket(), "Bob": Basket()}

model = ScriptedModel(
    [
        ToolCall("", "put", {"product": "pear"}),  # fails: the error's message is sent to the model
        ToolCall("", "put", {"product": "apple", "pieces": 2}),
        "We have no pears, so I took 2 apples.",
        [ToolCall("", "put", {"product": "bread"}), ToolCall("", "total")],
        "With the bread that is 3.10 EUR.",
    ]
)
one_by_one = ProcessorConfig(strategy="sequential")  # the total must not be computed while something is being added
ada = Agent(model, [baskets["Ada"]], config=one_by_one)
first = ada.run_sync("Two pears, or else apples.", context={"currency": "EUR"})
second = ada.run_sync([*first.messages, user("And a bread. What is it in all?")], context={"currency": "EUR"})
for message in second.messages:
    print(f"{type(message).__name__:17} {message.content}")

print({name: basket.pieces for name, basket in baskets.items()})
assert baskets["Ada"].pieces == {"apple": 2, "bread": 1}
assert baskets["Bob"].pieces == {}
