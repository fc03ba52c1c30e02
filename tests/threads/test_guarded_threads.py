"""Guards of runs on threads: asked again after a crash, by whatever agent continues, on the arguments that count."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from agentkit import (
    Agent,
    Approved,
    AskAgain,
    AskPerson,
    Denied,
    Guards,
    ProcessorConfig,
    Refused,
    ThreadManager,
    ToolCall,
    ToolContext,
    openapi_schema,
)
from agentkit.agent import RunStream, call_hash
from agentkit.messages import AssistantMessage, ToolMessage, UserMessage
from agentkit.testing import ScriptedModel
from agentkit.threads import AllowRule, Compaction
from agentkit.tool.codec import call_from_json

pytestmark = pytest.mark.anyio

PAY = ToolCall("p", "pay", {"amount": 5})


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def threads(tmp_path: Path) -> AsyncIterator[ThreadManager]:
    async with ThreadManager(str(tmp_path / "chat.db")) as manager:
        await manager.create_thread("t", messages="Pay Ada.")
        yield manager


class Bank:
    """Counts what really happened."""

    def __init__(self) -> None:
        self.done: list[int] = []

    @openapi_schema(idempotent=True)
    async def pay(self, amount: int) -> str:
        """Pay."""
        self.done.append(amount)
        return f"paid {amount}"


def agent(bank: Bank, *guards: Any, ruled: bool | None = None, model: Any = None) -> Agent:
    config = ProcessorConfig(requires_approval=ruled)
    return Agent(model or ScriptedModel([PAY, "done"]), [bank], config=config, guards=Guards(call=guards))


def asks(call: ToolCall, context: ToolContext) -> AskPerson:
    return AskPerson("is it right?")


def denies(call: ToolCall, context: ToolContext) -> Denied:
    return Denied("closed today")


def halves(call: ToolCall, context: ToolContext) -> Approved:
    """Do not accept what it wrote itself: it halves that again."""
    return Approved(arguments={"amount": call.arguments["amount"] // 2})


async def answers(threads: ThreadManager) -> list[str]:
    return [m.text for m in await threads.get_llm_messages("t") if isinstance(m, ToolMessage)]


async def test_a_guard_asks_and_the_approved_call_runs(threads: ThreadManager) -> None:
    bank = Bank()
    waits = await threads.run_agent("t", agent(bank, asks)).complete()
    assert (waits.finish, bank.done) == ("approval", [])
    await threads.approve("t", "p", seen=call_hash(PAY))
    over = await threads.run_agent("t", agent(bank, asks, model=ScriptedModel(["done"]))).complete()
    assert (over.finish, await answers(threads), bank.done) == ("stop", ["paid 5"], [5])


@pytest.mark.parametrize("edit", [None, {"amount": 6}])
async def test_an_approval_covers_only_the_reason_that_was_read(threads: ThreadManager, edit: Any) -> None:
    """The tool requires it; the guard of the next run has a reason that nobody has read."""
    bank = Bank()
    await threads.run_agent("t", agent(bank, ruled=True))
    await threads.approve("t", "p", arguments=edit)
    waits = await threads.run_agent("t", agent(bank, asks, ruled=True))
    assert ([call.id for call in waits.pending], bank.done) == (["p"], [])
    await threads.approve("t", "p")
    over = await threads.run_agent("t", agent(bank, asks, ruled=True, model=ScriptedModel(["done"])))
    assert (over.text, bank.done) == ("done", [5 if edit is None else 6])


async def test_an_agent_with_new_guards_denies_what_was_approved(threads: ThreadManager) -> None:
    bank = Bank()
    await threads.run_agent("t", agent(bank, ruled=True)).complete()
    await threads.approve("t", "p")
    over = await threads.run_agent("t", agent(bank, denies, model=ScriptedModel(["done"]))).complete()
    assert (over.finish, bank.done) == ("stop", [])
    assert await answers(threads) == ["not run: a guard denied this call: closed today"]


async def test_arguments_that_a_person_edits_are_guarded(threads: ThreadManager) -> None:
    def limit(call: ToolCall, context: ToolContext) -> Denied | None:
        return Denied("more than 100") if call.arguments["amount"] > 100 else None

    bank = Bank()
    await threads.run_agent("t", agent(bank, limit, ruled=True)).complete()
    await threads.approve("t", "p", arguments={"amount": 500})
    await threads.run_agent("t", agent(bank, limit, model=ScriptedModel(["done"]))).complete()
    assert bank.done == []
    (answer,) = await answers(threads)
    assert answer == (
        'The user changed the arguments before the call was run: {"amount": 500}\n'
        "not run: a guard denied this call: more than 100"
    )


async def test_a_person_sees_and_approves_what_the_guards_made_of_the_call(threads: ThreadManager) -> None:
    bank = Bank()
    await threads.run_agent("t", agent(bank, halves, ruled=True)).complete()
    (shown,) = await threads.pending("t")
    assert shown.arguments == {"amount": 2}
    await threads.approve("t", "p", seen=call_hash(shown))
    over = await threads.run_agent("t", agent(bank, halves, model=ScriptedModel(["done"]))).complete()
    assert (over.finish, bank.done) == ("stop", [2])
    assert await answers(threads) == ['The arguments were changed before the call was run: {"amount": 2}\npaid 2']
    message = (await threads.get_llm_messages("t"))[1]
    assert isinstance(message, AssistantMessage)
    assert message.calls[0].arguments == {"amount": 5}


async def test_an_edit_that_a_guard_changes_is_asked_about_again(threads: ThreadManager) -> None:
    bank = Bank()
    await threads.run_agent("t", agent(bank, halves, ruled=True)).complete()
    await threads.approve("t", "p", arguments={"amount": 20})
    again = await threads.run_agent("t", agent(bank, halves)).complete()
    assert (again.finish, [call.arguments for call in await threads.pending("t")], bank.done) == (
        "approval",
        [{"amount": 10}],
        [],
    )
    await threads.approve("t", "p")
    await threads.run_agent("t", agent(bank, halves, model=ScriptedModel(["done"]))).complete()
    assert bank.done == [10]
    (answer,) = await answers(threads)
    assert answer == (
        'The user changed the arguments before the call was run: {"amount": 20}\n'
        'The arguments were changed before the call was run: {"amount": 10}\npaid 10'
    )


async def test_without_the_guards_an_approval_is_not_one_of_the_model_s_arguments(threads: ThreadManager) -> None:
    bank = Bank()
    await threads.run_agent("t", agent(bank, halves, ruled=True)).complete()
    await threads.approve("t", "p")
    again = await threads.run_agent("t", agent(bank)).complete()
    (shown,) = await threads.pending("t")
    assert (again.finish, shown.arguments, bank.done) == ("approval", {"amount": 5}, [])
    await threads.approve("t", "p")
    await threads.run_agent("t", agent(bank, model=ScriptedModel(["done"]))).complete()
    assert bank.done == [5]


async def test_a_sub_agent_s_approved_call_is_guarded_by_the_new_guards_of_the_outer_one(
    threads: ThreadManager,
) -> None:
    bank = Bank()

    def office(*guards: Any) -> Agent:
        clerk = Agent(ScriptedModel([PAY, "done"]), [bank], config=ProcessorConfig(requires_approval=True))
        manager = Agent(ScriptedModel([ToolCall("c", "clerk", {"task": "Pay."}), "done"]), clerk.as_tool("clerk", "."))
        boss = ScriptedModel([ToolCall("m", "manager", {"task": "Pay."}), "done"])
        return Agent(boss, manager.as_tool("manager", "."), guards=Guards(call=guards))

    def no_payments(call: ToolCall, context: ToolContext) -> Denied | None:
        return Denied("closed today") if call.name == "pay" else None

    await threads.run_agent("t", office()).complete()
    (waiting,) = await threads.pending("t")
    assert waiting.id == "m/c/p"
    await threads.approve("t", waiting.id)
    over = await threads.run_agent("t", office(no_payments)).complete()
    assert (over.finish, bank.done) == ("stop", [])


# ---------------------------------------------------------------- killed

SCRIPT = """
import asyncio, json, os, signal, sys
from agentkit import *
from agentkit.messages import AssistantMessage, ToolMessage
from agentkit.testing import ScriptedModel

FOLDER, DIES, GUARD = sys.argv[1:]

def die(where):
    if where == DIES:
        os.kill(os.getpid(), signal.SIGKILL)

@openapi_schema(idempotent=True)
def pay(amount: int) -> str:
    "Pay."
    with open(FOLDER + "/done", "a") as file:
        print(amount, file=file)
    die("in the tool")
    return f"paid {amount}"

async def judge(call, context):
    die("in the guard")
    half = call.arguments["amount"] // (8 if GUARD == "caps" else 2)
    return Denied("closed today") if GUARD == "denies" else Approved(arguments={"amount": half})

async def accept(reply, run):
    die("in the reply's guard")
    return Refused("not polite") if GUARD == "refuses" else None

def turn(request):
    said = any(isinstance(m, AssistantMessage) for m in request.messages)
    return "done" if said else ToolCall("p", "pay", {"amount": 40})

async def main():
    threads = ThreadManager(FOLDER + "/chat.db")
    await threads.create_thread("t", messages="Pay Ada.", exist_ok=True)
    config = ProcessorConfig(requires_approval=DIES == "after the question")
    guards = None if GUARD == "nothing" else Guards(call=[judge], reply=[accept])
    agent = Agent(ScriptedModel(turn), [pay], config=config, guards=guards)
    result = await threads.run_agent("t", agent)
    if result.pending:
        await threads.approve("t", "p")
        die("after the question")
    answers = [m.text for m in result.messages if isinstance(m, ToolMessage)]
    print(json.dumps([result.finish, result.text, answers]))
    await threads.aclose()

asyncio.run(main())
"""


def run(folder: Path, dies: str = "", guard: str = "halves") -> Any:
    """The finish, the text and the answers of a run in another process; None if it was killed."""
    command = [sys.executable, "-c", SCRIPT, str(folder), dies, guard]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    if dies:
        assert done.returncode == -signal.SIGKILL, done.stderr
        with closing(sqlite3.connect(folder / "chat.db")) as connection:
            connection.execute("UPDATE threads SET lease_until = 0")
            connection.commit()
        return None
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def paid(folder: Path) -> list[str]:
    return (folder / "done").read_text().split() if (folder / "done").exists() else []


ALLOWED = 'The arguments were changed before the call was run: {"amount": 20}\npaid 20'
DENIED = "not run: a guard denied this call: closed today"
STARTED = (
    "interrupted while running, and not run again: its effects may have happened; find out before you repeat it. "
    "Why it was not run again: a guard denied this call: closed today"
)


@pytest.mark.parametrize(
    ("dies", "done", "guard", "result"),
    [
        ("in the guard", [], "denies", ["stop", "done", [DENIED]]),
        ("after the question", [], "denies", ["stop", "done", [DENIED]]),
        ("in the tool", ["20"], "denies", ["stop", "done", [STARTED]]),
        ("in the reply's guard", ["20"], "refuses", ["refused_by_guard", "", [ALLOWED]]),
    ],
)
def test_after_a_kill_the_guards_are_asked_again(
    dies: str, done: list[str], guard: str, result: Any, tmp_path: Path
) -> None:
    run(tmp_path, dies)
    assert paid(tmp_path) == done
    if dies == "after the question":
        copytree(tmp_path, other := tmp_path / "b")
        assert (run(other), paid(other)) == (["stop", "done", [ALLOWED]], ["20"])
    assert (run(tmp_path, guard=guard), paid(tmp_path)) == (result, done)


OTHERWISE = (
    "interrupted while running, and not run again: its effects may have happened; find out before you repeat it. "
    "Why it was not run again: it was started with other arguments"
)


@pytest.mark.parametrize(
    ("guard", "done", "answer"),
    [
        ("halves", ["20", "20"], ALLOWED),  # the same: it is run again under its key
        ("caps", ["20"], OTHERWISE),
        ("nothing", ["20"], OTHERWISE),
    ],
)
def test_after_a_kill_a_call_is_repeated_only_with_the_arguments_that_it_was_started_with(
    guard: str, done: list[str], answer: str, tmp_path: Path
) -> None:
    run(tmp_path, "in the tool")
    assert (run(tmp_path, guard=guard), paid(tmp_path)) == (["stop", "done", [answer]], done)


async def test_the_store_has_the_arguments_that_a_call_is_started_with(threads: ThreadManager) -> None:
    """A tool that is asked for the outcome after a crash (`reconcile`) is asked with these."""
    started: list[Any] = []

    @openapi_schema
    async def pay(amount: int) -> str:
        """Pay."""
        (call,) = (await threads.get_log("t")).calls
        started.append((call.status, call_from_json(call.body).arguments))
        return "paid"

    await threads.run_agent("t", Agent(ScriptedModel([PAY, "done"]), [pay], guards=Guards(call=[halves]))).complete()
    assert started == [("started", {"amount": 2})]


# ---------------------------------------------------------------- requests and replies


async def test_a_request_for_a_summary_is_guarded(threads: ThreadManager) -> None:
    """The oldest turns are dropped without one; what a guard refuses is not sent."""
    for n in range(6):
        await threads.add_message("t", f"secret {n} " * 200)
        await threads.say("t", "Go on.", ScriptedModel(["word " * 300]))
    seen: list[str] = []

    def guard(request: Any, run: Any) -> Refused | None:
        text = "".join(m.content[0].text for m in request.messages if isinstance(m, UserMessage))
        seen.append("summary" if "<conversation>" in text else "turn")
        return Refused("no summaries") if "<conversation>" in text else None

    await threads.add_message("t", "And now?")
    model = ScriptedModel(["done"])
    small = Compaction(window=4000, summary_tokens=200)
    one = Agent(model, guards=Guards(request=[guard]))
    result = await threads.run_agent("t", one, compaction=small).complete()
    assert (result.text, seen, len(model.requests)) == ("done", ["summary", "turn"], 1)


async def test_a_stored_answer_that_the_guards_refuse_is_not_the_answer(threads: ThreadManager) -> None:
    for text, client_id in (("Tea?", "1"), ("Milk?", "2")):
        await threads.say("t", text, ScriptedModel(["No."]), client_id=client_id)
    guards = Guards(reply=[lambda reply, run: AskAgain("say please")])
    said = await threads.say("t", "Tea?", ScriptedModel([]), client_id="1", guards=guards)
    assert (said.finish, said.text, said.guard_reason) == ("refused_by_guard", "", "say please")


async def test_a_message_that_arrives_while_a_guard_reads_the_reply_is_answered(threads: ThreadManager) -> None:
    async def slow(reply: AssistantMessage, run: RunStream[Any]) -> None:
        if reply.text == "Paid.":
            await threads.add_message("t", "And Eve?")

    model = ScriptedModel(["Paid.", "Eve too."])
    result = await threads.run_thread("t", model=model, guards=Guards(reply=[slow]))
    assert (result.finish, result.text, len(model.requests)) == ("stop", "Eve too.", 2)


async def test_a_stored_answer_whose_guard_is_cancelled_is_not_shown(threads: ThreadManager) -> None:
    for text, client_id in (("Tea?", "1"), ("Milk?", "2")):
        await threads.say("t", text, ScriptedModel(["No."]), client_id=client_id)

    async def slow(reply: AssistantMessage, run: RunStream[Any]) -> None:
        run.cancel()
        await asyncio.sleep(60)

    said = await threads.say("t", "Tea?", ScriptedModel([]), client_id="1", guards=Guards(reply=[slow]))
    assert (said.finish, said.text, said.guard_reason) == ("cancelled", "", None)


async def test_a_guard_asks_the_model_again_and_the_thread_has_both_replies(threads: ThreadManager) -> None:
    guards = Guards(reply=[lambda reply, run: AskAgain("say please") if "please" not in reply.text else None])
    result = await threads.run_thread("t", "", ScriptedModel(["No.", "No, please."]), guards=guards).complete()
    assert (result.finish, result.text) == ("stop", "No, please.")
    assert [m.content[0].text for m in await threads.get_llm_messages("t")] == [  # type: ignore[union-attr]
        "Pay Ada.",
        "No.",
        "Your reply was not accepted: say please\nWrite the whole reply again.",
        "No, please.",
    ]


@pytest.mark.parametrize("guard", [AskPerson("too dear"), Denied("never"), Approved({"amount": 6})])
async def test_what_a_person_has_allowed_overrules_no_guard(threads: ThreadManager, guard: Any) -> None:
    bank = Bank()
    asking = agent(bank, lambda call, context: guard, ruled=True, model=ScriptedModel([PAY, "done"]))
    rule = AllowRule("pay", {"amount": 5})
    await threads.allow("t", rule, registry=asking.registry)
    result = await threads.run_agent("t", asking)
    if isinstance(guard, Denied):
        assert (result.finish, bank.done) == ("stop", [])
        return
    assert [call.id for call in result.pending] == ["p"]  # the rule does not cover the amount that the guard sets
    await threads.allow("t", rule, registry=asking.registry)  # the call that waits is considered again, by both
    again = await threads.run_agent("t", asking)
    assert (len(again.pending), bank.done) == (1, [])
