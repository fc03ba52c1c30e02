"""A user's program with types, checked by mypy --strict and pyright in `test_types`, and run there too.

Each `type: ignore` stands where a checker must find a mistake: both report one that is not needed.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, assert_type

from pydantic import BaseModel, Field

from agentkit import (
    Agent,
    RunResult,
    ThreadManager,
    ToolCall,
    ToolContext,
    ToolResult,
    model,
    openapi_schema,
    xml_schema,
)
from agentkit.agent import RunStream
from agentkit.events import Event
from agentkit.models import ClosableModel
from agentkit.testing import ScriptedModel


@dataclass
class Shop:
    """What the application hands to a run."""

    name: str
    prices: dict[str, float]


class Offer(BaseModel):
    """What a run brings."""

    item: str
    price: Annotated[float, Field(ge=0)]


class Till:
    """A tool class: its decorated methods keep their types."""

    @openapi_schema(description="The price of an item.")
    @xml_schema(name="price", attributes=["item"])
    async def price(self, item: str, context: ToolContext[Shop]) -> float:
        assert_type(context.state, Shop)
        return context.state.prices[item]

    @openapi_schema
    def hello(self, name: str) -> ToolResult:
        """Say hello."""
        return ToolResult(f"Hello {name}")


def instructions(shop: Shop) -> str:
    return f"You sell in {shop.name}."


async def instructions_later(shop: Shop) -> str:
    return instructions(shop)


SHOP = Shop("Ulm", {"pear": 2.0})
OFFER = '{"item": "pear", "price": 2}'
CALL = ToolCall("c1", "price", {"item": "pear"})


def says(*script: Any) -> ScriptedModel:
    return ScriptedModel(script)


def tools() -> None:
    till = Till()
    assert_type(till.hello("Ada"), ToolResult)
    assert_type(ToolContext("c1", "price", SHOP), ToolContext[Shop])
    assert_type(ToolContext("c1", "price", SHOP).state, Shop)
    assert ToolContext[Shop]("c1", "price", SHOP).state is SHOP


def agents() -> None:
    plain = Agent(says("Hi", "[1]", '"a"', "null"))
    assert_type(plain, Agent[Any, str])
    assert_type(plain.run_sync("Hi"), RunResult[str])
    assert_type(plain.run_sync("Hi", output_type=list[int]).output, list[int])
    assert_type(plain.run_sync("Hi", output_type=Literal["a", "b"]).output, Literal["a", "b"])
    assert_type(plain.run_sync("Hi", output_type=int | None).output, int | None)

    seller = Agent(says(CALL, OFFER, "Two."), [Till()], system=instructions, output_type=Offer)
    assert_type(seller, Agent[Shop, Offer])
    result = seller.run_sync("A pear?", context=SHOP)
    assert_type(result, RunResult[Offer])
    assert_type(result.output, Offer)
    assert result.output == Offer(item="pear", price=2)
    assert_type(seller.run_sync("A pear?", context=SHOP, output_type=str).output, str)

    assert_type(Agent(says(), system=instructions_later), Agent[Shop, str])
    assert_type(Agent[Shop](says()), Agent[Shop, str])
    assert_type(Agent[Shop, Offer | None](says(), output_type=Offer | None), Agent[Shop, Offer | None])
    assert_type(Agent(says(), output_type=Offer | None), Agent[Any, Offer | None])


def models() -> None:
    gpt = model("openai:gpt-5", api_key="k", timeout=30, extra={"reasoning_effort": "low"}, format="xml")
    assert_type(gpt, ClosableModel)
    assert_type(model(name="anthropic:claude-opus-4-8", api_key="k"), ClosableModel)


async def streams() -> None:
    async with Agent(says("Hi", OFFER), output_type=Offer) as agent:
        assert_type(agent, Agent[Any, Offer])
        async with agent.stream("Hi", output_type=str) as stream:
            assert_type(stream, RunStream[str])
            async for event in stream:
                assert_type(event, Event)
        assert_type(stream.result.output, str)
        assert_type(await agent.run("Hi"), RunResult[Offer])
    async for text in Agent(says("Hi")).stream("Hi").text_stream():
        assert_type(text, str)


async def threads(store: Path) -> None:
    seller = Agent(says(CALL, OFFER, OFFER), [Till()], system=instructions, output_type=Offer)
    async with ThreadManager(store) as manager:
        assert_type(manager, ThreadManager)
        assert_type(await manager.say("a", "Hi", says("Hi")), RunResult[str])
        assert_type(await manager.say("a", "Hi", says(OFFER), output_type=Offer), RunResult[Offer])
        assert_type(await manager.say("a", "Hi", says("Hi"), max_turns=3), RunResult[str])
        assert_type(await manager.say("a", "Hi", agent=seller, context=SHOP), RunResult[Offer])


def runs(seller: Agent[Shop, Offer], manager: ThreadManager) -> None:
    """Never called: nobody awaits them."""
    assert_type(manager.run_thread("a", model=says()), RunStream[str])
    assert_type(manager.run_thread("a", model=says(), max_turns=3, budget=None), RunStream[str])
    assert_type(seller.max_turns, int)
    assert_type(seller.max_repeats, int | None)
    assert_type(manager.run_thread("a", model=says(), output_type=Offer), RunStream[Offer])
    assert_type(manager.run_agent("a", seller, context=SHOP), RunStream[Offer])
    assert_type(manager.run_agent("a", seller, output_type=list[int]), RunStream[list[int]])


def mistakes(seller: Agent[Shop, Offer], manager: ThreadManager) -> None:
    """Never called."""
    Till().hello(5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    seller.run_sync("Hi", context="Ulm")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    model("openai:gpt-5", timeout="long")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    model("openai:gpt-5", formt="xml")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    model()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    seller.run_sync("Hi", temperature="hot")  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    seller.run_sync("Hi", outputtype=Offer)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    Agent("openai:gpt-5", max_turns="many")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Agent("openai:gpt-5", max_turn=3)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    manager.run_thread("a", model=says(), max_depth=None)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Agent("openai:gpt-5", sytem="Be brief.")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    str(seller.run_sync("Hi").output.prize)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]
    from agentkit import Runner  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
    from agentkit.messages import HumanMessage  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
    from agentkit.models import ChatOpenAI  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]

    print(Runner, HumanMessage, ChatOpenAI)  # pyright: ignore[reportUnknownArgumentType]
    seller.invoke("Hi")  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    manager.say_sync("a", "Hi")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    manager.say_sync("a", "Hi", agent=seller, context=5)  # type: ignore[misc]  # pyright: ignore[reportArgumentType]


def main(store: Path) -> None:
    tools()
    agents()
    models()
    asyncio.run(streams())
    asyncio.run(threads(store))
