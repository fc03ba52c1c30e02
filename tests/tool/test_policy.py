"""What a tool's author may say about running it, where, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agentkit.errors import SchemaError
from agentkit.messages import ToolCall
from agentkit.tool.declare import openapi_schema, xml_schema
from agentkit.tool.policy import ToolPolicy
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.result import ToolContext


def refused(register: Callable[[], Any]) -> str:
    with pytest.raises(SchemaError) as raised:
        register()
    return str(raised.value)


class Shop:
    """A tool with a method for each part of a policy."""

    def __init__(self) -> None:
        self.cautious_above = 100

    @openapi_schema
    @xml_schema
    def plain(self, item: str) -> str:
        """Look."""
        return item

    @xml_schema(content="text")
    @openapi_schema(description="Ask the user.", terminates=True, timeout=5, text="the question")
    def ask(self, text: str) -> str:
        return text

    @openapi_schema(
        {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]},
        requires_approval="expensive",
        reconcile="was_paid",
        max_output=500,
        keep="tail",
    )
    @xml_schema(attributes=["amount"])
    def pay(self, amount: int) -> str:
        """Pay."""
        return str(amount)

    def expensive(self, call: ToolCall, context: ToolContext) -> bool:
        return bool(call.arguments["amount"] > self.cautious_above)

    async def was_paid(self, arguments: dict[str, Any], context: ToolContext) -> None:
        return None


def test_a_policy_stands_beside_the_other_keywords_in_each_form() -> None:
    tools = ToolRegistry(shop := Shop()).tools
    assert tools["plain"].policy == ToolPolicy()
    assert tools["ask"].policy == ToolPolicy(terminates=True, timeout=5)
    assert tools["ask"].spec.parameters["properties"]["text"]["description"] == "the question"
    policy = tools["pay"].policy
    assert policy == ToolPolicy(requires_approval=shop.expensive, reconcile="was_paid", max_output=500, keep="tail")
    assert callable(policy.requires_approval)
    assert policy.requires_approval(ToolCall("c", "pay", {"amount": 101}), ToolContext("c", "pay")) is True


def test_what_is_given_at_registration_goes_before_what_the_decorator_says() -> None:
    @openapi_schema(timeout=5, idempotent=True)
    def fetch(url: str) -> str:
        """Fetch."""
        return url

    bound = ToolRegistry().register_function(fetch, timeout=1, terminates=True)
    assert bound.policy == ToolPolicy(timeout=1, idempotent=True, terminates=True)


def test_a_string_beside_a_parameter_of_that_name_describes_it() -> None:
    @openapi_schema(keep="which ones", idempotent=True)
    def clean(keep: str) -> str:
        """Clean."""
        return keep

    bound = ToolRegistry().register_function(clean)
    assert bound.policy == ToolPolicy(idempotent=True)
    assert bound.spec.parameters["properties"]["keep"]["description"] == "which ones"


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        ({"timeout": 0}, "pay: timeout=0: expected seconds above 0, or None"),
        ({"timeout": "5"}, "pay: timeout='5': expected seconds above 0, or None"),
        ({"terminates": 1}, "pay: terminates=1: expected True or False"),
        ({"idempotent": "yes"}, "pay: idempotent='yes': expected True or False"),
        ({"max_output": 5}, "pay: max_output=5: expected an integer (200 characters or more), or None"),
        ({"keep": "middle"}, "pay: keep='middle': expected one of head, tail, both"),
        ({"requires_approval": 1}, "pay: requires_approval=1: expected True, False or a function of call and context"),
        (
            {"requires_approval": "expensive"},
            "pay: requires_approval='expensive' names a method, but a plain function has no methods; pass the function",
        ),
        (
            {"requires_approval": refused},
            "pay: requires_approval=refused is called with two values (too many positional arguments); write it as (",
        ),
        ({"reconcile": refused}, f"pay: reconcile={refused!r} must be the name of a method of the tool, as a string"),
        ({"reconcile": "was_paid"}, "pay: reconcile='was_paid' names a method, but a plain function has no methods"),
        (
            {"terminate": True},
            "register_function has no argument 'terminate'; did you mean 'terminates'? It takes ",
        ),
    ],
)
def test_a_wrong_policy_is_refused_with_the_way_to_fix_it(policy: dict[str, Any], message: str) -> None:
    def pay(amount: int) -> int:
        """Pay."""
        return amount

    pay.__qualname__ = "pay"
    assert refused(lambda: ToolRegistry().register_function(pay, **policy)).startswith(message)


def test_a_method_that_is_not_there_or_takes_something_else() -> None:
    class Bank:
        @openapi_schema(requires_approval="expensive")
        def pay(self, amount: int) -> None:
            """Pay."""

        @openapi_schema(reconcile="was_paid")
        def send(self, amount: int) -> None:
            """Send."""

        def was_paid(self) -> None: ...

    Bank.__qualname__ = "Bank"
    assert refused(lambda: ToolRegistry().register_tool(Bank, ["pay"])) == (
        "Bank.pay: requires_approval='expensive' is not a method of Bank; write "
        "`def expensive(self, call, context)` there"
    )
    assert refused(lambda: ToolRegistry().register_tool(Bank, ["send"])) == (
        "Bank.send: reconcile='was_paid' is called with two values (too many positional arguments); write it as "
        "(self, arguments, context)"
    )


def test_run_again_or_asked_about_but_not_both() -> None:
    class Bank:
        @openapi_schema(idempotent=True, reconcile="was_paid")
        def pay(self, amount: int) -> None:
            """Pay."""

        def was_paid(self, arguments: Any, context: Any) -> None: ...

    Bank.__qualname__ = "Bank"
    assert refused(lambda: ToolRegistry(Bank)).startswith(
        "Bank.pay: idempotent=True and reconcile='was_paid' exclude each other"
    )


def test_a_context_has_an_idempotency_key_of_its_own() -> None:
    assert ToolContext("call_1", "pay").idempotency_key == "call_1"
    context = ToolContext("call_1", "pay", idempotency_key="thread/call_1", attempt=2)
    assert (context.idempotency_key, context.attempt, context.run) == ("thread/call_1", 2, None)
