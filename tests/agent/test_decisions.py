"""Calls that wait for a person: which, what happens beside them, and that doubt means waiting."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentkit.agent import Agent
from agentkit.errors import ConfigError, ProviderError
from agentkit.events import ApprovalRequired, CallEnd, Event, Finish, SourceEvent, ToolStarted
from agentkit.messages import ToolCall, ToolMessage
from agentkit.processor import ProcessorConfig, ResponseProcessor, Turn
from agentkit.testing import ScriptedModel
from agentkit.tool.declare import openapi_schema
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.result import ToolContext


class Bank:
    """Some calls need approval, by each of the ways to say so."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.asked: list[ToolContext] = []

    @openapi_schema
    async def look(self, at: str = "") -> str:
        """Look."""
        self.made.append(f"look{at}")
        return "seen"

    @openapi_schema(requires_approval=True)
    async def close(self) -> str:
        """Close the account."""
        self.made.append("close")
        return "closed"

    @openapi_schema(requires_approval="much")
    async def pay(self, amount: int) -> str:
        """Pay."""
        self.made.append(f"pay {amount}")
        return "paid"

    def much(self, call: ToolCall, context: ToolContext) -> bool:
        self.asked.append(context)
        return bool(call.arguments["amount"] > 100)

    @openapi_schema(requires_approval="slowly")
    async def lend(self, amount: int) -> str:
        """Lend."""
        self.made.append(f"lend {amount}")
        return "lent"

    async def slowly(self, call: ToolCall, context: ToolContext) -> bool:
        await asyncio.sleep(0)
        return await asyncio.sleep(0, self.much(call, context))

    @openapi_schema(requires_approval="broken")
    async def burn(self) -> str:
        """Burn."""
        self.made.append("burn")
        return "burnt"

    def broken(self, call: ToolCall, context: ToolContext) -> bool:
        raise LookupError("no rules")

    @openapi_schema(terminates=True, requires_approval=True)
    async def leave(self) -> str:
        """Leave."""
        self.made.append("leave")
        return "left"


def response(*wanted: tuple[str, dict[str, Any]]) -> list[SourceEvent]:
    return [*(CallEnd(i, ToolCall("abcdef"[i], name, args)) for i, (name, args) in enumerate(wanted)), Finish("stop")]


def play(
    bank: Bank, *wanted: tuple[str, dict[str, Any]], approved: tuple[str, ...] = (), **config: Any
) -> tuple[Turn, list[Event]]:
    async def main() -> tuple[Turn, list[Event]]:
        processor = ResponseProcessor(ToolRegistry(bank), ProcessorConfig(**config), context={"user": "Ada"})
        turn = processor.process(response(*wanted), approved=approved)
        return turn, [event async for event in turn]

    return asyncio.run(main())


def test_a_call_that_needs_approval_waits_and_has_no_answer() -> None:
    turn, events = play(bank := Bank(), ("close", {}), ("look", {}))
    assert bank.made == ["look"]
    assert [e for e in events if isinstance(e, ApprovalRequired)] == [ApprovalRequired(0, ToolCall("a", "close"))]
    assert turn.pending == (ToolCall("a", "close"),)
    assert [r.call_id for r in turn.results] == ["b"]
    assert [c.id for c in turn.message.calls] == ["a", "b"]
    assert turn.finish == Finish("stop")


def test_an_approved_call_runs_without_asking() -> None:
    turn, _ = play(bank := Bank(), ("close", {}), ("pay", {"amount": 500}), approved=("a", "b"))
    assert bank.made == ["close", "pay 500"]
    assert (turn.pending, bank.asked) == ((), [])


@pytest.mark.parametrize("tool", ["pay", "lend"])
@pytest.mark.parametrize("strategy", ["parallel", "sequential"])
def test_a_method_decides_call_by_call(tool: str, strategy: str) -> None:
    turn, _ = play(bank := Bank(), (tool, {"amount": 500}), (tool, {"amount": 5}), strategy=strategy)
    assert bank.made == [f"{tool} 5"]
    assert [call.arguments for call in turn.pending] == [{"amount": 500}]
    assert {context.state["user"] for context in bank.asked} == {"Ada"}


def test_while_one_is_decided_the_order_of_sequential_tools_stays() -> None:
    wanted = (("lend", {"amount": 5}), ("look", {}))
    for strategy, order in (("sequential", ["lend 5", "look"]), ("parallel", ["look", "lend 5"])):
        play(bank := Bank(), *wanted, strategy=strategy)
        assert bank.made == order


def test_a_sequential_call_that_waits_for_a_person_does_not_hold_up_the_others() -> None:
    turn, _ = play(bank := Bank(), ("look", {"at": 1}), ("close", {}), ("look", {"at": "2"}), strategy="sequential")
    assert bank.made == ["look2"]  # the first had a wrong argument
    assert [r.call_id for r in turn.results] == ["a", "c"]


def test_sequential_calls_are_asked_about_when_those_before_have_ended_or_wait() -> None:
    wanted = (("close", {}), ("pay", {"amount": 500}), ("look", {}), ("close", {}))
    turn, events = play(Bank(), *wanted, strategy="sequential")
    assert [f"{type(e).__name__} {e.index}" for e in events if not isinstance(e, Finish)] == [  # type: ignore[union-attr]
        *("CallEnd 0", "ApprovalRequired 0", "CallEnd 1", "ApprovalRequired 1", "CallEnd 2", "CallEnd 3"),
        *("ToolStarted 2", "ToolCompleted 2", "ApprovalRequired 3"),
    ]
    assert [call.id for call in turn.pending] == ["a", "b", "d"]


def test_what_cannot_be_decided_waits_and_says_why() -> None:
    _, events = play(bank := Bank(), ("burn", {}))
    assert bank.made == []
    [asked] = [e for e in events if isinstance(e, ApprovalRequired)]
    assert asked.reason == "the function that decides raised LookupError: no rules"


def test_an_answer_that_is_neither_yes_nor_no_means_waiting() -> None:
    async def forgets(call: ToolCall, context: ToolContext) -> bool:
        return None  # type: ignore[return-value]

    _, events = play(bank := Bank(), ("look", {}), requires_approval=forgets)
    [asked] = [e for e in events if isinstance(e, ApprovalRequired)]
    assert (bank.made, asked.reason) == ([], "the function that decides returned None, not True or False")


@pytest.mark.parametrize(
    ("rule", "made"),
    [
        (None, ["look"]),
        (True, []),
        (False, ["look", "close"]),
        (lambda call, context: call.name == "look", ["close"]),
    ],
)
def test_the_run_may_decide_for_all_tools(rule: Any, made: list[str]) -> None:
    play(bank := Bank(), ("look", {}), ("close", {}), requires_approval=rule)
    assert bank.made == made


def test_a_rule_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"requires_approval='always'\): expected True, False, None, or a function"):
        ProcessorConfig(requires_approval="always")  # type: ignore[arg-type]


def test_a_call_with_wrong_arguments_is_answered_instead_of_shown_to_a_person() -> None:
    turn, _ = play(Bank(), ("close", {"now": True}))
    assert ([r.error for r in turn.results], turn.pending) == (["invalid_arguments"], ())


def test_behind_a_terminating_call_that_waits_nothing_runs() -> None:
    turn, _ = play(bank := Bank(), ("leave", {}), ("look", {}))
    assert bank.made == []
    assert [call.name for call in turn.pending] == ["leave"]
    assert [(r.call_id, r.error) for r in turn.results] == [("b", "skipped")]
    assert turn.terminated is False


def test_leaving_answers_what_waits_for_a_person() -> None:
    async def main() -> Turn:
        turn = ResponseProcessor(ToolRegistry(Bank())).process(response(("close", {}), ("look", {})))
        async with turn:
            async for event in turn:
                if isinstance(event, ApprovalRequired):
                    break
        return turn

    turn = asyncio.run(main())
    assert turn.pending == ()
    assert [(r.call_id, r.error) for r in turn.results] == [("a", "cancelled")]
    assert [c.id for c in turn.message.calls] == ["a"]


@pytest.mark.parametrize("execute", ["stream", "end"])
def test_a_response_that_breaks_off_keeps_asking(execute: str) -> None:
    async def source() -> Any:
        yield response(("close", {}))[0]
        raise ProviderError("lost", kind="connection", provider="openai")

    async def main() -> Turn:
        config = ProcessorConfig(execute=execute)  # type: ignore[arg-type]
        turn = ResponseProcessor(ToolRegistry(Bank()), config).process(source())
        with pytest.raises(ProviderError):
            async for _ in turn:
                pass
        return turn

    turn = asyncio.run(main())
    assert ([call.name for call in turn.pending], turn.results) == (["close"], ())


def test_cancelling_ends_a_question_that_is_never_answered() -> None:
    class Slow:
        @openapi_schema(requires_approval="ask")
        async def pay(self) -> str:
            """Pay."""
            return "paid"

        async def ask(self, call: ToolCall, context: ToolContext) -> bool:
            await asyncio.Event().wait()
            return False

    async def main() -> tuple[Turn, list[Event]]:
        turn = ResponseProcessor(ToolRegistry(Slow())).process(response(("pay", {})))
        asyncio.get_running_loop().call_later(0.01, turn.cancel)
        return turn, [event async for event in turn]

    turn, events = asyncio.run(main())
    assert [r.error for r in turn.results] == ["cancelled"]
    assert not any(isinstance(e, ToolStarted | ApprovalRequired) for e in events)


def test_the_context_may_be_made_by_whoever_keeps_a_journal() -> None:
    seen: list[ToolContext] = []

    async def pay(context: ToolContext) -> str:
        """Pay."""
        seen.append(context)
        return "paid"

    async def main() -> None:
        def made(call: ToolCall) -> ToolContext:
            return ToolContext(call.id, call.name, idempotency_key=f"thread/{call.id}", attempt=2, run="run")

        turn = ResponseProcessor(ToolRegistry(pay), new_context=made).process(response(("pay", {})))
        async for _ in turn:
            pass

    asyncio.run(main())
    assert [(c.idempotency_key, c.attempt, c.run) for c in seen] == [("thread/a", 2, "run")]


def test_in_a_run_that_nobody_attends_a_call_that_needs_approval_is_denied() -> None:
    bank = Bank()
    model = ScriptedModel([ToolCall("c1", "close"), "I may not close it."])
    result = Agent(model, [bank], config=ProcessorConfig(attended=False)).run_sync("Close my account.")
    assert (result.finish, result.text, bank.made) == ("stop", "I may not close it.", [])
    answer = result.messages[-2]
    assert isinstance(answer, ToolMessage)
    assert answer.text == "not run: close needs a person's approval, and nobody is here to give it"
