"""Call guards attacked: every source of calls against every way in which a guard says no, or fails to say anything."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from mcp_kit import LOCAL
from pydantic import BaseModel, ConfigDict, Field, SecretStr, computed_field

from agentkit import (
    Agent,
    Approved,
    AskPerson,
    Denied,
    Guards,
    Hidden,
    ProcessorConfig,
    Refused,
    RunResult,
    ToolCall,
    ToolContext,
    ToolRegistry,
    openapi_schema,
)
from agentkit.agent import RunStream
from agentkit.events import CallEnd, Event, ToolSkipped, ToolStarted
from agentkit.messages import AssistantMessage, ToolMessage
from agentkit.processor.admission import AdmittedCall, Ruling
from agentkit.processor.call_runner import CallRunner
from agentkit.testing import ScriptedModel

pytestmark = pytest.mark.anyio

GUARDED = ("pay", "finish", "local_echo")
QUICK = 0.05  # seconds, for guards that hang


class Bank:
    """Counts what really happened."""

    def __init__(self) -> None:
        self.done: list[str] = []

    @openapi_schema
    async def pay(self, amount: int, to: str = "Ada") -> str:
        """Pay."""
        self.done.append(f"pay {amount} to {to}")
        return "paid"

    @openapi_schema
    def look(self) -> str:
        """Look."""
        self.done.append("look")
        return "seen"

    @openapi_schema(terminates=True)
    async def finish(self, amount: int) -> str:
        """Pay, and finish."""
        self.done.append(f"finish {amount}")
        return "finished"


PAY = ToolCall("p", "pay", {"amount": 5})


# ---------------------------------------------------------------- ways to say no, or nothing


def raises(error: BaseException) -> Any:
    def guard(call: ToolCall, context: ToolContext) -> None:
        if call.name in GUARDED:
            raise error

    return guard


def raises_later(error: BaseException) -> Any:
    async def guard(call: ToolCall, context: ToolContext) -> None:
        await asyncio.sleep(0)
        raises(error)(call, context)

    return guard


def says(answer: Any) -> Any:
    return lambda call, context: answer if call.name in GUARDED else None


def says_all(answer: Any) -> Any:
    return lambda call, context: answer


async def hangs(call: ToolCall, context: ToolContext) -> None:
    if call.name in GUARDED:
        await asyncio.sleep(60)


async def hangs_on(call: ToolCall, context: ToolContext) -> None:
    """Ignore the cancellation, for longer than the test takes."""
    for _ in range(3 if call.name in GUARDED else 0):
        try:
            await asyncio.sleep(0.2)
        except asyncio.CancelledError:
            continue


NO: dict[str, Any] = {
    "denies": says(Denied("no")),
    "raises": raises(ValueError("broken")),
    "cancels": raises(asyncio.CancelledError()),
    "exits": raises(SystemExit(1)),
    "stops": raises(StopIteration()),
    "raises later": raises_later(ValueError("broken")),
    "cancels later": raises_later(asyncio.CancelledError()),
    "exits later": raises_later(SystemExit(1)),
    "hangs": hangs,
    "hangs on": hangs_on,
    "says yes": says(True),
    "says no": says(False),
    "says a type": says(Approved),
    "answers a request": says(Refused("no")),
    "writes what the tool does not accept": says(Approved(arguments={"amount": "much", "text": 1})),
    "writes what is not JSON": says(Approved(arguments={"amount": object(), "text": object()})),
}


# ---------------------------------------------------------------- where calls come from


def as_text(format: str) -> Callable[[Bank, Guards], RunResult]:
    def run(bank: Bank, guards: Guards) -> RunResult:
        return Agent(ScriptedModel([PAY, "done"], format=format), [bank], guards=guards).run_sync("Pay.")

    return run


def native(bank: Bank, guards: Guards) -> RunResult:
    return Agent(ScriptedModel([PAY, "done"]), [bank], guards=guards).run_sync("Pay.")


def eager(bank: Bank, guards: Guards) -> RunResult:
    model, config = ScriptedModel([["I pay.", PAY, "Bye."], "done"], chunk=2), ProcessorConfig(execute="stream")
    return Agent(model, [bank], config=config, guards=guards).run_sync("Pay.")


def one_by_one(bank: Bank, guards: Guards) -> RunResult:
    model, config = ScriptedModel([PAY, "done"]), ProcessorConfig(strategy="sequential")
    return Agent(model, [bank], config=config, guards=guards).run_sync("Pay.")


def recovered(bank: Bank, guards: Guards) -> RunResult:
    written = '<tool_call>\n{"name": "pay", "arguments": {"amount": 5}}\n</tool_call>'
    return Agent(ScriptedModel([written, "done"]), [bank], guards=guards).run_sync("Do it.")


def terminating(bank: Bank, guards: Guards) -> RunResult:
    call = ToolCall("f", "finish", {"amount": 5})
    return Agent(ScriptedModel([call, "done"]), [bank], guards=guards).run_sync("Pay.")


def with_a_rule(bank: Bank, guards: Guards) -> RunResult:
    """Approval is asked for by the settings, and the guard is asked first."""
    config = ProcessorConfig(requires_approval=True)
    return Agent(ScriptedModel([PAY, "done"]), [bank], config=config, guards=guards).run_sync("Pay.")


def two_levels_deep(bank: Bank, guards: Guards) -> RunResult:
    """Only the outermost agent has guards."""
    clerk = Agent(ScriptedModel([PAY, "done"]), [bank])
    manager = Agent(ScriptedModel([ToolCall("m", "clerk", {"task": "Pay."}), "done"]), clerk.as_tool("clerk", "Pays."))
    boss = ScriptedModel([ToolCall("b", "manager", {"task": "Pay."}), "done"])
    results: list[RunResult] = []
    clerk.hooks = (lambda event, run: results.append(event.result) if hasattr(event, "result") else None,)
    Agent(boss, manager.as_tool("manager", "Has it paid."), guards=guards).run_sync("Pay.")
    return next(one for one in results if isinstance(one, RunResult))


def edited(bank: Bank, guards: Guards) -> RunResult:
    """A person approves a call that no guard objected to, with arguments that they do not allow."""
    config = ProcessorConfig(requires_approval=True)
    agent = Agent(ScriptedModel([PAY, "done"]), [bank], config=config)
    waits = agent.run_sync("Pay.")
    agent.guards = guards
    return agent.run_sync(waits, decisions={"p": Approved(arguments={"amount": 7})})


def added_by_hand(bank: Bank, guards: Guards) -> RunResult:
    agent = Agent(ScriptedModel(["done"]), [bank], guards=guards)
    return agent.run_sync(["Pay.", AssistantMessage(PAY)], decisions={"p": Approved()})


SOURCES: dict[str, Callable[[Bank, Guards], RunResult]] = {
    "native": native,
    "xml": as_text("xml"),
    "hermes": as_text("hermes"),
    "eager": eager,
    "one by one": one_by_one,
    "recovered": recovered,
    "terminating": terminating,
    "with a rule": with_a_rule,
    "two levels deep": two_levels_deep,
    "edited": edited,
    "added by hand": added_by_hand,
}


def answers(result: RunResult) -> list[ToolMessage]:
    calls = [call.id for m in result.messages if isinstance(m, AssistantMessage) for call in m.calls]
    found = [m for m in result.messages if isinstance(m, ToolMessage)]
    assert Counter(calls) == Counter(answer.call_id for answer in found), "every call has exactly one answer"
    return found


@pytest.mark.parametrize("no", NO)
@pytest.mark.parametrize("source", SOURCES)
def test_nothing_runs_that_was_not_allowed(source: str, no: str) -> None:
    bank = Bank()
    result = SOURCES[source](bank, Guards(call=[NO[no]], timeout=QUICK))
    assert bank.done == []
    (answer,) = answers(result)
    assert (answer.error, result.pending) == ("denied", ())
    assert "not run: a guard denied this call: " in answer.text


@pytest.mark.parametrize("source", SOURCES)
def test_what_a_guard_changes_in_place_has_no_effect(source: str) -> None:
    def spoils(call: ToolCall, context: ToolContext) -> None:
        call.arguments.update(amount=1_000_000)  # type: ignore[attr-defined]

    bank = Bank()
    result = SOURCES[source](bank, Guards(call=[spoils]))
    for call in result.pending:
        assert call.arguments == {"amount": 5}
    assert not [what for what in bank.done if "1000000" in what]
    assert len(bank.done) + len(result.pending) == 1


@pytest.mark.parametrize("source", [source for source in SOURCES if source not in ("with a rule", "terminating")])
def test_a_guard_changes_the_arguments_and_the_model_is_informed(source: str) -> None:
    def caps(call: ToolCall, context: ToolContext) -> Approved | None:
        return Approved(arguments={**call.arguments, "amount": 1}) if "amount" in call.arguments else None

    def checks(call: ToolCall, context: ToolContext) -> Denied | None:
        return Denied("too much") if call.arguments.get("amount", 0) > 1 else None

    bank = Bank()
    result = SOURCES[source](bank, Guards(call=[caps, checks]))
    if source in ("edited", "added by hand"):  # a person approved other arguments: she is asked again
        assert ([call.arguments["amount"] for call in result.pending], bank.done) == ([1], [])
        return
    assert bank.done == ["pay 1 to Ada"]
    (answer,) = answers(result)
    assert answer.text == 'The arguments were changed before the call was run: {"amount": 1}\npaid'


class Login(BaseModel):
    """What is shown of it is not all of it, and is not accepted as it is shown."""

    model_config = ConfigDict(extra="forbid")
    user: str
    token: str = Field(default="none", exclude=True)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def initial(self) -> str:
        """The first letter."""
        return self.user[0]


def test_arguments_that_a_guard_leaves_as_they_are_stay_as_the_model_wrote_them() -> None:
    got: list[tuple[str, str, str, str]] = []

    def login(login: Login, password: SecretStr, note: str) -> str:
        """Log in."""
        got.append((login.user, login.token, password.get_secret_value(), note))
        return "in"

    def guard(call: ToolCall, context: ToolContext) -> Approved:
        assert call.arguments["password"] == "**********"
        return Approved(arguments={**call.arguments, "note": "checked"})

    call = ToolCall("c", "login", {"login": {"user": "ada", "token": "t0k"}, "password": "s3cret", "note": ""})
    Agent(ScriptedModel([call, "done"]), [login], guards=Guards(call=[guard, guard])).run_sync("Log in.")
    assert got == [("ada", "t0k", "s3cret", "checked")]


def test_the_arguments_of_a_guard_are_json() -> None:
    """Their keys are strings, and what is no JSON value is not guessed at."""

    def note(data: dict[str, Any]) -> str:
        """Note it."""
        return str(data)

    def runs(data: Any) -> RunResult:
        guards = Guards(call=[says_all(Approved(arguments={"data": data})), says_all(AskPerson("right?"))])
        return Agent(ScriptedModel([ToolCall("n", "note", {"data": {}}), "done"]), [note], guards=guards).run_sync("?")

    (waits,) = runs({1: "a", "b": 2}).pending
    assert waits.arguments == {"data": {"1": "a", "b": 2}}
    (answer,) = answers(runs({"when": SecretStr("x")}))
    assert "not valid: Object of type SecretStr is not JSON serializable" in answer.text


@pytest.mark.parametrize("answer", [None, Approved()])
def test_an_answer_after_its_time_is_no_answer(answer: Any) -> None:
    """Nothing stops a guard that blocks the event loop."""

    def blocks(call: ToolCall, context: ToolContext) -> Any:
        time.sleep(0.2)
        return answer

    async def blocks_too(call: ToolCall, context: ToolContext) -> Any:
        return blocks(call, context)

    for guard in (blocks, blocks_too):
        bank = Bank()
        agent = Agent(ScriptedModel([PAY, "done"]), [bank], guards=Guards(call=[guard], timeout=0.1))
        (late,) = answers(agent.run_sync("Pay."))
        assert ("did not answer in time" in late.text, bank.done) == (True, [])


async def test_a_call_of_an_mcp_server_is_guarded() -> None:
    from agentkit.interop.mcp import MCPTools

    async with MCPTools(LOCAL, name="local", approve=lambda command: True) as tools:
        model = ScriptedModel([ToolCall("e", "local_echo", {"text": "hi"}), "done"])
        result = await Agent(model, tools, guards=Guards(call=[says(Denied("not there"))])).run("Say hi.")
    assert [answer.text for answer in answers(result)] == ["not run: a guard denied this call: not there"]


# ---------------------------------------------------------------- beside each other


async def test_of_parallel_calls_one_is_denied_and_the_others_run() -> None:
    async def guard(call: ToolCall, context: ToolContext) -> Denied | None:
        await asyncio.sleep(0.01 * (5 - call.arguments["amount"]))
        return Denied("odd") if call.arguments["amount"] % 2 else None

    bank = Bank()
    calls = [ToolCall(f"c{n}", "pay", {"amount": n}) for n in range(5)]
    result = await Agent(ScriptedModel([calls, "done"]), [bank], guards=Guards(call=[guard])).run("Pay.")
    assert sorted(bank.done) == ["pay 0 to Ada", "pay 2 to Ada", "pay 4 to Ada"]
    assert [answer.error for answer in answers(result)] == [None, "denied", None, "denied", None]


async def test_guards_of_parallel_calls_run_at_the_same_time() -> None:
    together = asyncio.Barrier(40)

    async def meet(call: ToolCall, context: ToolContext) -> None:
        await together.wait()

    calls = [ToolCall(f"c{n}", "pay", {"amount": n}) for n in range(40)]
    agent = Agent(ScriptedModel([calls, "done"]), [Bank()], guards=Guards(call=[meet], timeout=60))
    assert [answer.error for answer in answers(await agent.run("Pay."))] == [None] * 40


async def test_guards_have_their_time_together() -> None:
    async def slow(call: ToolCall, context: ToolContext) -> None:
        await asyncio.sleep(0.2)

    bank = Bank()
    agent = Agent(ScriptedModel([PAY, "done"]), [bank], guards=Guards(call=[slow] * 400, timeout=0.3))
    result = await asyncio.wait_for(agent.run("Pay."), 30)
    assert ([answer.error for answer in answers(result)], bank.done) == (["denied"], [])


async def test_one_by_one_calls_keep_their_order() -> None:
    async def guard(call: ToolCall, context: ToolContext) -> None:
        await asyncio.sleep(0.02 * (3 - call.arguments["amount"]))

    bank, config = Bank(), ProcessorConfig(strategy="sequential", execute="stream")
    calls = [ToolCall(f"c{n}", "pay", {"amount": n}) for n in range(3)]
    agent = Agent(ScriptedModel([calls, "done"]), [bank], config=config, guards=Guards(call=[guard]))
    await agent.run("Pay.")
    assert bank.done == ["pay 0 to Ada", "pay 1 to Ada", "pay 2 to Ada"]


@pytest.mark.parametrize("execute", ["end", "stream"])
async def test_one_by_one_each_call_is_judged_when_those_before_have_ended(execute: Any) -> None:
    bank = Bank()

    async def once(call: ToolCall, context: ToolContext) -> Denied | None:
        await asyncio.sleep(0)
        return Denied("only once") if bank.done else None

    config = ProcessorConfig(strategy="sequential", execute=execute)
    calls = [ToolCall("a", "pay", {"amount": 80}), ToolCall("b", "pay", {"amount": 70})]
    result = await Agent(ScriptedModel([calls, "done"]), [bank], config=config, guards=Guards(call=[once])).run("Pay.")
    assert [answer.text for answer in answers(result)] == ["paid", "not run: a guard denied this call: only once"]
    assert bank.done == ["pay 80 to Ada"]


@pytest.mark.parametrize("later", [False, True])
@pytest.mark.parametrize("execute", ["end", "stream"])
@pytest.mark.parametrize("strategy", ["parallel", "sequential"])
async def test_a_call_that_would_end_the_run_and_is_denied_ends_nothing(
    strategy: Any, execute: Any, *, later: bool
) -> None:
    bank, seen = Bank(), list[str]()

    def hook(event: Any, run: RunStream[Any]) -> None:
        if isinstance(event, ToolSkipped | ToolStarted):
            seen.append(f"{type(event).__name__} {event.call.id}")

    async def guard(call: ToolCall, context: ToolContext) -> Denied | None:
        for _ in range(20 if later and call.name == "finish" else 0):
            await asyncio.sleep(0)
        return Denied("not yet") if call.name == "finish" else None

    config = ProcessorConfig(strategy=strategy, execute=execute)
    reply = [ToolCall("f", "finish", {"amount": 1}), ToolCall("l", "look", {}), PAY]
    agent = Agent(ScriptedModel([reply, "done"]), [bank], config=config, guards=Guards(call=[guard]), hooks=[hook])
    result = await agent.run("Pay.")
    assert [answer.text for answer in answers(result)] == [
        "not run: a guard denied this call: not yet",
        "seen",
        "paid",
    ]
    assert (result.finish, seen) == ("stop", ["ToolSkipped f", "ToolStarted l", "ToolStarted p"])


@pytest.mark.parametrize("strategy", ["parallel", "sequential"])
async def test_after_a_call_that_ends_the_run_and_that_a_guard_lets_wait_nothing_runs(strategy: Any) -> None:
    async def guard(call: ToolCall, context: ToolContext) -> AskPerson | None:
        await asyncio.sleep(0)
        return AskPerson("sure?") if call.name == "finish" else None

    bank, config = Bank(), ProcessorConfig(strategy=strategy)
    reply = [ToolCall("f", "finish", {"amount": 1}), ToolCall("l", "look", {}), PAY]
    result = await Agent(ScriptedModel([reply]), [bank], config=config, guards=Guards(call=[guard])).run("Pay.")
    assert ([call.id for call in result.pending], bank.done) == (["f"], [])
    assert {m.text for m in result.messages if isinstance(m, ToolMessage)} == {
        "not run: terminated by the call of finish before it"
    }


def test_outer_guards_are_called_first_and_know_which_agent_acts() -> None:
    seen: list[str] = []

    def watch(who: str) -> Any:
        return lambda call, context: seen.append(f"{who}: {context.run.agent.name} calls {call.name}")

    bank = Bank()
    clerk = Agent(ScriptedModel([PAY, "done"]), [bank], name="clerk", guards=Guards(call=[watch("inner")]))
    boss = ScriptedModel([ToolCall("b", "ask", {"task": "Pay."}), "done"])
    agent = Agent(boss, clerk.as_tool("ask", "Pays."), name="boss", guards=Guards(call=[watch("outer")]))
    agent.run_sync("Pay.")
    assert seen == ["outer: boss calls ask", "outer: clerk calls pay", "inner: clerk calls pay"]


def test_a_guard_reads_arguments_as_the_tool_does() -> None:
    seen: list[dict[str, Any]] = []

    def guard(call: ToolCall, context: ToolContext) -> Denied | None:
        seen.append(dict(call.arguments))
        return Denied("too much") if call.arguments["amount"] > 100 else None

    bank, config = Bank(), ProcessorConfig(lenient_native=True)
    call = ToolCall("p", "pay", {"amount": "500", "to": "A\ud800da"})
    Agent(ScriptedModel([call, "done"]), [bank], config=config, guards=Guards(call=[guard])).run_sync("Pay.")
    assert (seen, bank.done) == ([{"amount": 500, "to": "A�da"}], [])


# ---------------------------------------------------------------- a person


def asks(call: ToolCall, context: ToolContext) -> AskPerson | None:
    return AskPerson("more than 3") if call.arguments.get("amount", 0) > 3 else None


@pytest.mark.parametrize("ruled", [None, False])
def test_a_guard_asks_a_person_whatever_was_allowed(ruled: bool | None) -> None:
    bank, config = Bank(), ProcessorConfig(requires_approval=ruled)
    agent = Agent(ScriptedModel([PAY, "done"]), [bank], config=config, guards=Guards(call=[asks]))
    waits = agent.run_sync("Pay.")
    assert (waits.finish, [call.id for call in waits.pending], bank.done) == ("approval", ["p"], [])
    over = agent.run_sync(waits, decisions={"p": Approved()})
    assert (over.text, bank.done) == ("done", ["pay 5 to Ada"])


def test_an_approval_covers_only_the_reason_that_was_read() -> None:
    """The tool requires it, without a reason; then a guard has one, and then another one."""
    reasons: list[str] = []

    def guard(call: ToolCall, context: ToolContext) -> AskPerson | None:
        return AskPerson(reasons[-1]) if reasons else None

    bank, config = Bank(), ProcessorConfig(requires_approval=True)
    agent = Agent(ScriptedModel([PAY, "done"]), [bank], config=config, guards=Guards(call=[guard]))
    result = agent.run_sync("Pay.")
    for reason in ("the limit is exceeded", "the limit is exceeded by 5"):
        reasons.append(reason)
        result = agent.run_sync(result, decisions={"p": Approved()})
        assert ([call.id for call in result.pending], bank.done) == (["p"], [])
    assert (agent.run_sync(result, decisions={"p": Approved()}).text, bank.done) == ("done", ["pay 5 to Ada"])


def test_a_reason_is_known_while_another_call_is_decided_first() -> None:
    bank = Bank()
    calls = [ToolCall("a", "pay", {"amount": 5}), ToolCall("b", "pay", {"amount": 6})]
    agent = Agent(ScriptedModel([calls, "done"]), [bank], guards=Guards(call=[asks]))
    result = agent.run_sync("Pay.")
    for id in ("b", "a"):
        result = agent.run_sync(result, decisions={id: Approved()})
    assert (result.text, bank.done) == ("done", ["pay 6 to Ada", "pay 5 to Ada"])


def test_where_nobody_is_there_a_guard_that_asks_denies() -> None:
    bank, config = Bank(), ProcessorConfig(attended=False)
    agent = Agent(ScriptedModel([PAY, "done"]), [bank], config=config, guards=Guards(call=[asks]))
    (answer,) = answers(agent.run_sync("Pay."))
    assert answer.text == "not run: pay needs a person's approval, and nobody is here to give it (more than 3)"
    assert bank.done == []


def test_a_person_cannot_overrule_a_denial() -> None:
    bank = Bank()
    agent = Agent(ScriptedModel([PAY, "done"]), [bank], guards=Guards(call=[asks]))
    waits = agent.run_sync("Pay.")
    agent.guards = Guards(call=[asks, says(Denied("closed today"))])
    (answer,) = answers(agent.run_sync(waits, decisions={"p": Approved()}))
    assert (answer.text, bank.done) == ("not run: a guard denied this call: closed today", [])


def test_an_approval_is_valid_for_what_the_guards_made_of_the_call() -> None:
    """Also if a guard does not accept its own arguments: it judges what the model wrote."""
    prefix = ["/box/"]

    def confines(call: ToolCall, context: ToolContext) -> Approved:
        return Approved(arguments={**call.arguments, "to": prefix[0] + call.arguments["to"]})

    bank, config = Bank(), ProcessorConfig(requires_approval=True)
    call = ToolCall("p", "pay", {"amount": 5, "to": "Ada"})
    agent = Agent(ScriptedModel([call, "done"]), [bank], config=config, guards=Guards(call=[confines]))
    waits = agent.run_sync("Pay.")
    assert [call.arguments["to"] for call in waits.pending] == ["/box/Ada"]

    prefix[0] = "/elsewhere/"  # not what she saw
    again = agent.run_sync(waits, decisions={"p": Approved()})
    assert ([call.arguments["to"] for call in again.pending], bank.done) == (["/elsewhere/Ada"], [])

    over = agent.run_sync(again, decisions={"p": Approved()})
    assert (over.text, bank.done) == ("done", ["pay 5 to /elsewhere/Ada"])


def test_an_approval_of_changed_arguments_does_not_run_the_model_s_own() -> None:
    """The next run has no guards any more."""
    bank, config = Bank(), ProcessorConfig(requires_approval=True)
    guards = Guards(call=[says(Approved(arguments={"amount": 1}))])
    agent = Agent(ScriptedModel([PAY, "done"]), [bank], config=config, guards=guards)
    waits = agent.run_sync("Pay.")
    agent.guards = None
    again = agent.run_sync(waits, decisions={"p": Approved()})
    assert ([call.arguments for call in again.pending], bank.done) == ([{"amount": 5}], [])


def test_a_sub_agent_s_call_waits_and_is_guarded_again() -> None:
    bank, closed = Bank(), list[str]()

    def guard(call: ToolCall, context: ToolContext) -> Any:
        return Denied(closed[0]) if closed and call.name == "pay" else asks(call, context)

    def agent(*more: Any) -> Agent:
        clerk = Agent(ScriptedModel([PAY, "done"]), [bank])
        boss = ScriptedModel([ToolCall("b", "ask", {"task": "Pay."}), "all done"])
        return Agent(boss, clerk.as_tool("ask", "Pays."), guards=Guards(call=[guard]))

    first = agent()
    waits = first.run_sync("Pay.")
    assert [call.id for call in waits.pending] == ["b/p"]
    over = first.run_sync(waits, decisions={"b/p": Approved()})
    assert (over.text, bank.done) == ("all done", ["pay 5 to Ada"])

    second = agent()
    waits = second.run_sync("Pay.")
    closed.append("closed today")
    over = second.run_sync(waits, decisions={"b/p": Approved()})
    assert (over.text, bank.done) == ("all done", ["pay 5 to Ada"])


# ---------------------------------------------------------------- the end of a run


@pytest.mark.parametrize("guard", [hangs, hangs_on])
async def test_a_run_that_is_cancelled_does_not_wait_for_a_guard(guard: Any) -> None:
    bank, stop = Bank(), asyncio.Event()
    agent = Agent(ScriptedModel([PAY, "done"]), [bank], guards=Guards(call=[guard], timeout=60))
    asyncio.get_running_loop().call_later(0.1, stop.set)
    result = await asyncio.wait_for(agent.run("Pay.", cancel=stop), 30)
    assert (result.finish, [answer.error for answer in answers(result)]) == ("cancelled", ["cancelled"])
    assert bank.done == []


@pytest.mark.parametrize("guard", [hangs, hangs_on])
async def test_a_run_whose_time_is_over_does_not_wait_for_a_guard(guard: Any) -> None:
    from agentkit import Budget

    bank = Bank()
    agent = Agent(
        ScriptedModel([PAY, "done"]), [bank], guards=Guards(call=[guard], timeout=60), budget=Budget(seconds=0.2)
    )
    result = await asyncio.wait_for(agent.run("Pay."), 30)
    assert (result.finish, [answer.error for answer in answers(result)]) == ("time_budget", ["cancelled"])
    assert bank.done == []


async def test_a_consumer_that_leaves_during_a_guard_leaves_nothing_running() -> None:
    bank, begun = Bank(), asyncio.Event()

    async def guard(call: ToolCall, context: ToolContext) -> None:
        begun.set()
        await asyncio.sleep(60)

    run = Agent(ScriptedModel([PAY, "done"]), [bank], guards=Guards(call=[guard], timeout=60)).stream("Pay.")
    task = asyncio.ensure_future(run.complete())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ([answer.error for answer in answers(run.result)], bank.done) == (["cancelled"], [])


async def test_a_response_that_is_retracted_during_a_guard_runs_nothing() -> None:
    from agentkit.events import Finish

    bank = Bank()

    async def guard(call: ToolCall, context: ToolContext) -> None:
        await asyncio.sleep(0.05)

    model, config = ScriptedModel([[PAY, Finish("content_filter")], "done"]), ProcessorConfig(execute="stream")
    result = await Agent(model, [bank], config=config, guards=Guards(call=[guard])).run("Pay.")
    assert ([answer.error for answer in answers(result)], bank.done) == (["denied"], [])


async def test_hooks_see_the_call_that_runs_and_the_one_that_does_not() -> None:
    seen: list[Event] = []

    def hook(event: Any, run: RunStream[Any]) -> None:
        if isinstance(event, ToolStarted | ToolSkipped):
            seen.append(event)

    def guard(call: ToolCall, context: ToolContext) -> Any:
        return Denied("no") if call.name == "look" else Approved(arguments={"amount": 1})

    model = ScriptedModel([[PAY, ToolCall("l", "look", {})], "done"])
    await Agent(model, [Bank()], hooks=[hook], guards=Guards(call=[guard])).run("Pay.")
    assert sorted((type(event).__name__, dict(event.call.arguments)) for event in seen if event.call.id != "x") == [
        ("ToolSkipped", {}),
        ("ToolStarted", {"amount": 1}),
    ]


async def test_a_call_with_other_arguments_keeps_what_is_added_to_it() -> None:
    def pay(amount: int, user: Annotated[str, Hidden] = "") -> str:
        """Pay."""
        return f"{amount} for {user}"

    async def judge(admitted: AdmittedCall, context: ToolContext) -> Ruling:
        assert admitted.arguments == {"amount": 1}
        return Ruling(admitted.with_arguments({"amount": 2}))

    runner = CallRunner(
        ToolRegistry(pay),
        ProcessorConfig(),
        lambda call: ToolContext(call.id, call.name),
        added=lambda tool: {"user": "ada"},
        judge=judge,
    )
    await runner.run([CallEnd(0, ToolCall("c", "pay", {"amount": 1}))], lambda event: None)
    assert runner.answers[0].text.endswith("2 for ada")
