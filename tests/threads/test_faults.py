"""A store that fails in the middle of a run: the run ends with its error, and the thread goes on as after a crash."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import pytest
from thread_kit import Failing, planned, said
from wire_rules import check_chat

from agentkit.agent import Denied
from agentkit.errors import ConfigError, StoreError, ThreadBusy
from agentkit.events import ApprovalRequired, Event, ToolCompleted, ToolFailed, ToolSkipped, ToolStarted
from agentkit.messages import AssistantMessage, ToolCall, user
from agentkit.models.base import ModelRequest
from agentkit.models.openai import chat_messages
from agentkit.processor import ProcessorConfig
from agentkit.testing import ScriptedModel
from agentkit.threads import SQLiteStore, ThreadManager
from agentkit.threads.store import Append, NewCall
from agentkit.tool.declare import openapi_schema
from agentkit.tool.registry import ToolRegistry
from agentkit.tool.result import ToolContext, ToolResult

pytestmark = pytest.mark.anyio


class Effects:
    """Tools whose effects are counted, and which look whether the store knew of their start."""

    def __init__(self, store: SQLiteStore) -> None:
        self.store = store
        self.made: Counter[str] = Counter()
        self.unannounced: list[str] = []

    async def _happen(self, id: str, context: ToolContext) -> str:
        known = {call.id: call.status for call in (await self.store.load("t")).calls}
        if known.get(context.call_id) != "started":
            self.unannounced.append(id)
        self.made[id] += 1
        await asyncio.sleep(0.002)
        return f"{id} happened"

    @openapi_schema
    async def effect(self, id: str, context: ToolContext) -> str:
        """Happen."""
        return await self._happen(id, context)

    @openapi_schema(idempotent=True)
    async def keyed(self, id: str, context: ToolContext) -> str:
        """Happen, once for each key."""
        return f"{id} happened" if self.made[id] else await self._happen(id, context)


STEPS = (("a", "b"), ("c",))
TOOLS = {"a": "effect", "b": "keyed", "c": "effect"}


def next_response(request: ModelRequest) -> list[Any]:
    """The first step of which not every call was made, whatever became of it."""
    made = {c.arguments["id"] for m in request.messages if isinstance(m, AssistantMessage) for c in m.calls}
    for step in STEPS:
        if missing := [id for id in step if id not in made]:
            return ["On it. ", *(ToolCall(id, TOOLS[id], {"id": id}) for id in missing)]
    return ["All done."]


@pytest.mark.parametrize("done", [False, True], ids=["not done", "done"])
@pytest.mark.parametrize("raised", [StoreError, OSError])
@pytest.mark.parametrize("operation", ["commit", "load"])
async def test_any_operation_may_fail_once(operation: str, raised: type[Exception], done: bool) -> None:
    """As `test_crash`, with an error in place of the death: no effect twice, none lost, no thread bricked."""
    for at in range(1, 20):
        store = SQLiteStore(":memory:")
        effects, failing = Effects(store), Failing(store, at, done=done, operation=operation, error=raised)
        threads = ThreadManager(store, ToolRegistry(effects))
        await threads.create_thread("t", messages="Do all three.")
        run = ThreadManager(failing, threads.registry).run_thread("t", model=ScriptedModel(next_response))
        error: StoreError | None = None
        try:
            await run.complete()
        except StoreError as e:
            error = e
        failed = failing.uses >= at
        assert (error is not None, run.result.finish) == (failed, "error" if failed else "stop")
        assert run.error is error
        assert error is None or str(error).endswith(("the disk is full", "the connection was lost")), error
        check_chat(chat_messages(await threads.get_llm_messages("t"), "openai"))
        result = await threads.run_thread("t", model=ScriptedModel(next_response)).complete()
        assert result.finish == "stop"
        assert effects.unannounced == []
        assert all(effects.made[id] <= 1 for id in TOOLS), (at, effects.made)
        log = await store.load("t")
        unknown = {c.id for c in log.calls if (c.answer or {}).get("error") in ("interrupted", "cancelled")}
        assert {id for id in TOOLS if not effects.made[id]} <= unknown
        assert {call.status for call in log.calls} == {"answered"}
        await store.aclose()
        if not failed:
            return
    raise AssertionError("it never came to its end")


@pytest.mark.parametrize("raised", [StoreError, OSError])
async def test_a_lease_that_is_not_released_costs_no_answer(
    raised: type[Exception], caplog: pytest.LogCaptureFixture
) -> None:
    store = SQLiteStore(":memory:")
    threads = ThreadManager(Failing(store, 1, operation="release", error=raised))
    await threads.create_thread("t", messages="Hello")
    assert (await threads.run_thread("t", model=ScriptedModel(["Hi."])).complete()).text == "Hi."
    assert "the lease was not released: " in caplog.text
    assert "the disk is full" in caplog.text


async def test_the_answer_of_a_tool_is_written_although_the_first_attempt_failed() -> None:
    store = SQLiteStore(":memory:")
    effects = Effects(store)
    threads = ThreadManager(Failing(store, 2), ToolRegistry(effects))  # 1: started, 2: its answer
    await ThreadManager(store).create_thread("t", messages="Go")
    with pytest.raises(StoreError, match="disk is full"):
        await threads.run_thread("t", model=ScriptedModel([ToolCall("a", "effect", {"id": "a"})])).complete()
    assert said(await threads.get_llm_messages("t")) == ["user: Go", "effect {'id': 'a'}", "= ok: a happened"]


async def test_who_lost_the_lease_writes_nothing_more_and_stops() -> None:
    store = SQLiteStore(":memory:")
    effects = Effects(store)
    threads = ThreadManager(store, ToolRegistry(effects))
    await threads.create_thread("t", messages="Go")
    calls = [ToolCall("a", "effect", {"id": "a"}), ToolCall("c", "effect", {"id": "c"})]
    first = threads.run_thread("t", model=ScriptedModel([calls, "never said"]))
    events = aiter(first)
    while not isinstance(await anext(events), ToolStarted):
        pass
    fence = first.journal.lease.fence  # type: ignore[attr-defined]
    second = await store.acquire("t", "another", 30, dead=fence)
    before = await store.load("t")
    with pytest.raises(ThreadBusy):
        await rest(events)
    assert first.result.finish == "error"
    assert await store.load("t") == before
    await store.renew(second, 30)  # and the other's lease is still its own


async def rest(events: AsyncIterator[Event]) -> None:
    """No answer comes that is not in the store."""
    async for event in events:
        assert not isinstance(event, ToolCompleted)


# ---------------------------------------------------------------- what changed between two runs


async def resumed(status: str, first: Any, second: Any, store: SQLiteStore | None = None) -> list[str]:
    """A call that one run's tools left in a status, and another run's tools, unless they are None, find."""
    store = SQLiteStore(":memory:") if store is None else store
    threads = ThreadManager(store, first)
    await threads.create_thread("t", messages="Go")
    call = ToolCall("c", "act", {"x": 1}, raw='{"x": 1}')
    if status == "approved":
        await threads.run_thread("t", model=ScriptedModel([call])).complete()
        await threads.approve("t", "c")
    else:
        failing = ThreadManager(Failing(store, 1, done=True), first)  # begun, as far as the store knows
        with pytest.raises(StoreError):
            await failing.run_thread("t", model=ScriptedModel([call])).complete()
    if second is None:
        return []
    again = ThreadManager(store, second)
    await again.run_thread("t", model=ScriptedModel(["Done."])).complete()
    return said(await again.get_llm_messages("t"))[2:]


def act(parameters: str, **policy: Any) -> ToolRegistry:
    """A registry with a tool `act` of these parameters."""
    scope: dict[str, Any] = {}
    exec(f"async def act({parameters}):\n    'Act.'\n    return 'acted'", scope)
    return ToolRegistry(openapi_schema(**policy)(scope["act"]))


async def test_an_approved_call_whose_tool_is_gone_stays_approved() -> None:
    with pytest.raises(ConfigError, match="is approved, but this run has no tool 'act'"):
        await resumed("approved", act("x: int", requires_approval=True), ToolRegistry())


async def test_an_approval_holds_for_the_tool_that_was_approved() -> None:
    [answer] = await resumed("approved", act("x: int", requires_approval=True), act("y: str"))
    assert answer == "= interrupted: no result yet: this call waits for the user's approval"


async def test_an_approved_call_whose_tool_needs_no_approval_any_more() -> None:
    assert await resumed("approved", act("x: int", requires_approval=True), act("x: int")) == [
        "= ok: acted",
        "assistant: Done.",
    ]


INTERRUPTED = "= interrupted: interrupted while running, and not run again: its effects may have happened"


@pytest.mark.parametrize("then", [False, True])
@pytest.mark.parametrize(
    ("now", "answer"),
    [
        (act("x: int"), INTERRUPTED),
        (act("x: int", idempotent=True), "= ok: acted"),
        (ToolRegistry(), INTERRUPTED),
        (act("y: str", idempotent=True), f"{INTERRUPTED}; find out before you repeat it. Why it was not run again: "),
    ],
    ids=["at most once", "idempotent", "gone", "other arguments"],
)
async def test_an_interrupted_call_runs_again_only_if_its_tool_was_and_is_idempotent(
    then: bool, now: ToolRegistry, answer: str
) -> None:
    [first, last] = await resumed("started", act("x: int", idempotent=then), now)
    assert first.startswith(answer if then else INTERRUPTED)
    assert last == "assistant: Done."


@pytest.mark.parametrize("then", [False, True])
async def test_what_counts_is_how_the_tool_was_declared_when_the_call_was_started(then: bool) -> None:
    """And not when it was planned."""
    store, found = SQLiteStore(":memory:"), []

    @openapi_schema(name="act", idempotent=then)
    async def look(x: int) -> None:
        """Look into the store while it runs."""
        found.extend((await store.load("t")).calls)

    go, response = planned(ToolCall("c", "act", {"x": 1}))
    await store.create("t", {}, [go, response])
    await ThreadManager(store, ToolRegistry(look)).run_thread("t", model=ScriptedModel(["Done."])).complete()
    left = [NewCall(call.id, call.body, call.status) for call in found]
    await store.create("died", {}, [go, Append(response.body, calls=left)])
    again = ThreadManager(store, act("x: int", idempotent=True))
    await again.run_thread("died", model=ScriptedModel(["Done."])).complete()
    [answer, _] = said(await again.get_llm_messages("died"))[2:]
    assert answer.startswith("= ok: acted" if then else INTERRUPTED)


async def asked_again() -> ThreadManager:
    """A thread with a call that was started and interrupted, and now waits for a person."""
    store = SQLiteStore(":memory:")
    await resumed("started", act("x: int", idempotent=True), None, store)
    threads = ThreadManager(store, act("x: int", idempotent=True))
    run = threads.run_thread("t", model=ScriptedModel([]), processor_config=CAREFUL)
    told = [event.reason async for event in run if isinstance(event, ApprovalRequired)]
    assert told == ["it was started before and interrupted, and its effects may have happened"]
    assert await threads.started_before("t") == {"c"} == {call.id for call in await threads.pending("t")}
    return threads


CAREFUL = ProcessorConfig(requires_approval=True)


@pytest.mark.parametrize("by", ["deny", "write", "cancel"])
async def test_a_started_call_that_does_not_run_again_never_counts_as_not_run(by: str) -> None:
    threads = await asked_again()
    if by == "deny":
        await threads.deny("t", "c", "too dear")
    elif by == "write":
        await threads.add_message("t", "Never mind.")
    else:
        await threads.approve("t", "c")
        run = threads.run_thread("t", model=ScriptedModel([]))
        async for event in run:
            if isinstance(event, ToolStarted):
                run.cancel()
    run = threads.run_thread("t", model=ScriptedModel(["Done."]))
    ends = [event async for event in run if isinstance(event, (ToolCompleted, ToolFailed, ToolSkipped))]
    [answer] = [line for line in said(await threads.get_llm_messages("t")) if line.startswith("= ")]
    why = {"deny": ". Why it was not run again: the user denied this call: too dear", "write": "the user wrote again"}
    if by != "cancel":
        assert answer.startswith(INTERRUPTED)
        assert answer.endswith(why[by])
        assert [type(event) for event in ends] == [ToolFailed]
    assert not answer.startswith(("= denied", "= cancelled: not run"))


async def test_a_started_call_may_be_approved_and_runs_again() -> None:
    threads = await asked_again()
    await threads.approve("t", "c")
    await threads.run_thread("t", model=ScriptedModel(["Done."])).complete()
    assert "= ok: acted" in said(await threads.get_llm_messages("t"))


async def test_a_tool_that_takes_other_arguments_now_cannot_say_what_became_of_a_call() -> None:
    class Asked:
        @openapi_schema(reconcile="look")
        async def act(self, y: str) -> str:
            """Act."""
            return y

        def look(self, arguments: Any, context: ToolContext) -> ToolResult:
            """What became of it."""
            return ToolResult("it happened")

    [answer, _] = await resumed("started", act("x: int"), ToolRegistry(Asked()))
    assert answer.startswith("= interrupted: interrupted while running")


# ---------------------------------------------------------------- several people


async def test_of_two_people_who_decide_at_once_one_is_told() -> None:
    threads = ThreadManager(":memory:", act("x: int", requires_approval=True))
    for _ in range(20):
        thread = await threads.create_thread(messages="Go")
        await threads.run_thread(thread, model=ScriptedModel([ToolCall("c", "act", {"x": 1})])).complete()
        decided = await asyncio.gather(
            threads.approve(thread, "c", by="Ada"), threads.deny(thread, "c", by="Eve"), return_exceptions=True
        )
        assert sorted(type(d) for d in decided if d is not None) == [ConfigError]
        result = await threads.run_thread(thread, model=ScriptedModel(["Done."])).complete()
        assert result.finish == "stop"
        [answer] = [line for line in said(await threads.get_llm_messages(thread)) if line.startswith("=")]
        assert (answer == "= ok: acted") == (decided[0] is None)


async def test_the_calls_that_wait_are_in_the_result_of_every_run() -> None:
    threads = ThreadManager(":memory:", act("x: int", requires_approval=True))
    thread = await threads.create_thread(messages="Go")
    two = [ToolCall("c1", "act", {"x": 1}), ToolCall("c2", "act", {"x": 2})]
    first = await threads.run_thread(thread, model=ScriptedModel([two])).complete()
    again = await threads.run_thread(thread, model=ScriptedModel([])).complete()
    await threads.approve(thread, "c1")
    third = await threads.run_thread(thread, model=ScriptedModel([])).complete()
    assert [[call.id for call in r.pending] for r in (first, again, third)] == [["c1", "c2"], ["c1", "c2"], ["c2"]]
    assert {r.finish for r in (first, again, third)} == {"approval"}


async def test_decisions_of_a_thread_are_kept_in_it() -> None:
    threads = ThreadManager(":memory:")
    thread = await threads.create_thread(messages=user("Go"))
    with pytest.raises(ConfigError, match="approve"):
        threads.run_thread(thread, model=ScriptedModel([]), decisions={"c": Denied()})
