"""Calls that a person has allowed run unasked in every run on their thread: exactly these, until she revokes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from deciding import Till

from agentkit import Agent, ProcessorConfig, ThreadManager, ToolCall, ToolContext, openapi_schema
from agentkit.errors import ConfigError, StoreConflict, ThreadNotFound
from agentkit.events import ApprovalRequired, Text, ToolStarted
from agentkit.messages import ToolMessage
from agentkit.testing import ScriptedModel
from agentkit.threads import AllowRule, SQLiteStore
from agentkit.threads.store import Body, Change, Move, Store, Thread
from agentkit.tool.registry import ToolRegistry

pytestmark = pytest.mark.anyio

PAY, PAY_MORE = ToolCall("c1", "pay", {"n": 1}), ToolCall("c2", "pay", {"n": 2})
ONE = AllowRule("pay", {"n": 1})


@pytest.fixture
def till() -> Till:
    return Till()


@pytest.fixture
async def threads(new_store: Callable[..., Store], till: Till) -> AsyncIterator[ThreadManager]:
    async with ThreadManager(new_store(), ToolRegistry(till)) as manager:
        await manager.create_thread("t", messages="Go.", metadata={"title": "Bills"})
        yield manager


async def run(threads: ThreadManager, *script: Any, thread: str = "t", **options: Any) -> list[str]:
    """Let a model go on, and return the ids of the calls that wait then."""
    result = await threads.run_thread(thread, model=ScriptedModel(list(script)), **options).complete()
    return [call.id for call in result.pending]


async def test_a_tool_is_allowed_in_each_later_run(threads: ThreadManager, till: Till) -> None:
    await threads.allow("t", "pay")
    assert await run(threads, PAY, "Done.") == []
    await threads.say("t", "Again.", ScriptedModel([PAY_MORE, "Done."]))
    agent = Agent(ScriptedModel([PAY, "Done."]), [till])
    await threads.add_message("t", "Again.")
    await threads.run_agent("t", agent)
    assert till.paid == [1, 2, 1]
    await threads.create_thread("other", messages="Go.")
    assert await run(threads, PAY, thread="other") == ["c1"]


async def test_rules_are_listed_and_revoked_and_leave_metadata_alone(threads: ThreadManager) -> None:
    await threads.allow("t", "pay")
    await threads.allow("t", ONE)
    await threads.allow("t", AllowRule("pay", {"n": 1.0}))
    await threads.allow("t", ONE)
    rules = await threads.allow_rules("t")
    assert [str(rule) for rule in rules] == ["pay: any arguments", "pay: n = 1.0", "pay: n = 1"]
    assert all(rule.digest == threads.registry.tools["pay"].digest for rule in rules)
    await threads.revoke("t", ONE)
    await threads.revoke("t", "pay: any arguments")  # as it is printed
    assert [str(rule) for rule in await threads.allow_rules("t")] == ["pay: n = 1.0"]
    with pytest.raises(ConfigError, match="has no rule 'pay: n = 1'"):
        await threads.revoke("t", ONE)
    await threads.revoke("t", "pay")
    assert (await threads.get_thread("t")).metadata == {"title": "Bills"}


async def test_other_arguments_are_asked_about(threads: ThreadManager, till: Till) -> None:
    await threads.allow("t", ONE)
    assert await run(threads, [PAY, PAY_MORE, ToolCall("c3", "pay", {"n": 1})]) == ["c2"]
    assert till.paid == [1, 1]
    await threads.deny("t", "c2")
    assert await run(threads, "Done.") == []


async def test_a_rule_needs_a_tool_and_a_thread(threads: ThreadManager) -> None:
    with pytest.raises(ConfigError, match="there is no tool 'pya' to allow; did you mean 'pay'"):
        await threads.allow("t", "pya")
    with pytest.raises(ConfigError, match="expected an AllowRule, or the name of a tool"):
        await threads.allow("t", 5)  # type: ignore[arg-type]
    with pytest.raises(ThreadNotFound):
        await threads.allow("no", "pay")


async def test_an_approval_is_remembered_with_the_arguments_that_it_ran_with(
    threads: ThreadManager, till: Till
) -> None:
    await run(threads, PAY)
    with pytest.raises(ConfigError, match="does not cover this call"):
        await threads.approve("t", "c1", arguments={"n": 7}, remember=ONE)
    assert [call.id for call in await threads.pending("t")] == ["c1"]
    assert await threads.allow_rules("t") == ()
    await threads.approve("t", "c1", arguments={"n": 7}, remember=AllowRule("pay", {"n": 7}))
    assert await run(threads, ToolCall("c3", "pay", {"n": 1})) == ["c3"]
    assert till.paid == [7]
    await threads.deny("t", "c3")
    assert await run(threads, ToolCall("c4", "pay", {"n": 7}), "Done.") == []
    assert till.paid == [7, 7]


async def test_a_refused_decision_remembers_nothing(threads: ThreadManager) -> None:
    await run(threads, PAY)
    await threads.deny("t", "c1")
    with pytest.raises(ConfigError):
        await threads.approve("t", "c1", remember=True)
    assert await threads.allow_rules("t") == ()


async def test_calls_that_wait_already_run_if_a_rule_covers_them_by_now(threads: ThreadManager, till: Till) -> None:
    assert await run(threads, [PAY, PAY_MORE]) == ["c1", "c2"]
    await threads.approve("t", "c1", remember=AllowRule("pay", {"n": 1}))
    assert await run(threads) == ["c2"]
    await threads.allow("t", "pay")
    assert await run(threads, "Done.") == []
    assert till.paid == [1, 2]


async def test_rules_that_this_version_cannot_read_are_kept(threads: ThreadManager) -> None:
    newer = {"tool": "pay", "arguments": None, "digest": "d", "until": "2030-01-01"}
    await threads.store.update("t", {"allowed": [newer]})
    await threads.allow("t", "pay")
    await threads.revoke("t", "pay")
    assert (await threads.store.get("t")).metadata == {"allowed": [newer]}


async def test_a_call_that_no_run_made_waits_all_the_same(threads: ThreadManager, till: Till) -> None:
    call = {"role": "assistant", "tool_calls": [{"id": "c9", "function": {"name": "pay", "arguments": '{"n": 1}'}}]}
    await threads.add_message("t", call)
    await threads.allow("t", "pay")
    assert await run(threads) == ["c9"]
    assert till.paid == []


async def test_a_rule_is_for_the_tool_that_the_person_saw(threads: ThreadManager, till: Till) -> None:
    class Other(Till):
        @openapi_schema(requires_approval=True)
        async def pay(self, n: int) -> str:
            """Pay twice."""
            return await super().pay(n)

    await threads.allow("t", "pay")
    other = Agent(ScriptedModel([PAY]), [Other()])
    assert len((await threads.run_agent("t", other)).pending) == 1
    await threads.deny("t", "c1")
    registry = ToolRegistry()
    registry.register_tool(till, {"pay": "give"})
    renamed = Agent(ScriptedModel([ToolCall("c2", "give", {"n": 1})]), registry)
    assert len((await threads.run_agent("t", renamed)).pending) == 1


@pytest.mark.parametrize("junk", [5, ["pay"], [{"tool": "pay", "arguments": None}], {"pay": ""}])
async def test_junk_in_the_store_asks(threads: ThreadManager, till: Till, junk: Any) -> None:
    await threads.store.update("t", {"allowed": junk})
    assert await run(threads, PAY) == ["c1"]
    assert await threads.allow_rules("t") == ()
    await threads.approve("t", "c1", remember=True)
    assert await run(threads, PAY_MORE, "Done.") == []
    assert till.paid == [1, 2]


async def test_a_fork_and_new_metadata_have_no_rules(threads: ThreadManager) -> None:
    await threads.allow("t", "pay")
    metadata = (await threads.get_thread("t")).metadata
    with pytest.raises(ConfigError, match="under this name are the rules"):
        await threads.create_thread("u", metadata=metadata)
    for more in ({}, {"metadata": metadata}):
        fork = await threads.fork_thread("t", **more)
        assert await threads.allow_rules(fork) == ()
    for rule in await threads.allow_rules("t"):
        await threads.allow(fork, rule)
    assert await threads.allow_rules(fork) == await threads.allow_rules("t")


async def test_calls_of_sub_agents_are_always_asked_about(threads: ThreadManager, till: Till) -> None:
    inner = Agent(ScriptedModel([PAY, "Paid."]), [till])
    outer = Agent(ScriptedModel([ToolCall("d1", "clerk", {"task": "Pay."})]), [inner.as_tool("clerk", "pays"), till])
    await threads.allow("t", "pay")
    result = await threads.run_agent("t", outer)
    assert [call.id for call in result.pending] == ["d1/c1"]
    with pytest.raises(ConfigError, match="'d1/c1' is a call of a sub-agent"):
        await threads.approve("t", "d1/c1", remember=True)
    assert till.paid == []


async def test_a_text_call_and_a_native_call_are_one_tool(threads: ThreadManager, till: Till) -> None:
    await threads.allow("t", ONE)
    text = '<invoke name="pay">\n<parameter name="n">{}</parameter>\n</invoke>'
    model = ScriptedModel([text.format(1), text.format(2)], format="invoke")
    result = await threads.run_thread("t", model=model)
    assert [call.arguments for call in result.pending] == [{"n": 2}]
    assert till.paid == [1]


async def test_a_revoked_rule_ends_with_the_next_call_of_a_live_run(threads: ThreadManager, till: Till) -> None:
    await threads.allow("t", "pay")
    seen = []
    async for event in threads.run_thread("t", model=ScriptedModel([PAY, ["And now:", PAY_MORE]])):
        if isinstance(event, Text) and event.text:
            await threads.revoke("t", "pay")
        if isinstance(event, (ToolStarted, ApprovalRequired)):
            seen.append(type(event))
    assert (seen, till.paid) == ([ToolStarted, ApprovalRequired], [1])


async def test_one_by_one_a_rule_that_a_call_revokes_does_not_cover_those_after_it(
    threads: ThreadManager, till: Till
) -> None:
    async def revoke() -> str:
        """Revoke the rule."""
        await threads.revoke("t", "pay")
        return "revoked"

    threads.add_tool(revoke)
    await threads.allow("t", "pay")
    one_by_one = ProcessorConfig(strategy="sequential")
    assert await run(threads, [PAY, ToolCall("r", "revoke"), PAY_MORE], processor_config=one_by_one) == ["c2"]
    assert till.paid == [1]


async def test_a_rule_is_heard_by_a_live_run(threads: ThreadManager, till: Till) -> None:
    async for event in threads.run_thread("t", model=ScriptedModel([ToolCall("c0", "slow"), PAY, "Done."])):
        if isinstance(event, ToolStarted) and event.call.name == "slow":
            await threads.allow("t", "pay")
    assert till.paid == [1]


async def test_nobody_has_to_be_there(threads: ThreadManager, till: Till) -> None:
    await threads.allow("t", ONE)
    assert await run(threads, [PAY, PAY_MORE], "Done.", processor_config=ProcessorConfig(attended=False)) == []
    answers = [m.error for m in await threads.get_llm_messages("t") if isinstance(m, ToolMessage)]
    assert (answers, till.paid) == ([None, "denied"], [1])


@pytest.mark.parametrize("rule", ["true", "false", "fails", "odd", "later"])
async def test_a_rule_in_code_is_asked_first(threads: ThreadManager, till: Till, rule: str) -> None:
    """What it lets run needs nobody; if it fails, a person decides whatever she has allowed."""

    async def later(call: ToolCall, context: ToolContext) -> bool:
        await asyncio.sleep(0)
        return True

    def now(call: ToolCall, context: ToolContext) -> Any:
        return {"true": True, "false": False, "odd": "yes"}[rule]

    await threads.allow("t", ONE)
    config = ProcessorConfig(requires_approval=later if rule == "later" else now)
    waits = await run(threads, [PAY, PAY_MORE], *["Done."] * (rule == "false"), processor_config=config)
    assert waits == {"true": ["c2"], "later": ["c2"], "false": []}.get(rule, ["c1", "c2"])


async def test_rules_of_many_processes_at_once_are_all_kept(tmp_path: Path, till: Till) -> None:
    stores = [SQLiteStore(tmp_path / "t.db", durability="process") for _ in range(4)]
    managers = [ThreadManager(store, ToolRegistry(till)) for store in stores]
    await managers[0].create_thread("t", metadata={"title": "x"})
    rules = [AllowRule("pay", {"n": n}) for n in range(40)]
    await asyncio.gather(*(managers[n % 4].allow("t", rule) for n, rule in enumerate(rules)))
    assert {rule.key for rule in await managers[0].allow_rules("t")} == {rule.key for rule in rules}
    await asyncio.gather(*(managers[n % 4].revoke("t", rule) for n, rule in enumerate(rules)))
    assert (await managers[1].get_thread("t")).metadata == {"title": "x"}
    with pytest.raises(StoreConflict):
        await stores[0].update("t", {}, expect={"title": "y"})
    for manager in managers:
        await manager.aclose()


class Dies(SQLiteStore):
    """A store whose process dies once a call is planned, or once it has started."""

    at = ""

    async def commit(self, thread_id: str, changes: Sequence[Change], *, fence: int | None = None) -> tuple[int, ...]:
        written = await super().commit(thread_id, changes, fence=fence)
        if any(isinstance(change, Move) and change.to == self.at for change in changes):
            self.at = ""
            raise ProcessLookupError("killed")
        return written


@pytest.mark.parametrize(("at", "paid"), [("planned", [1]), ("started", [])])
async def test_a_run_that_dies_leaves_an_allowed_call_as_any_other(
    tmp_path: Path, till: Till, at: str, paid: list[int]
) -> None:
    store = Dies(tmp_path / "t.db", durability="process")
    async with ThreadManager(store, ToolRegistry(till)) as threads:
        await threads.create_thread("t", messages="Go.")
        assert await run(threads, PAY) == ["c1"]
        await threads.allow("t", "pay")
        store.at = at
        with pytest.raises(Exception, match="killed"):
            await run(threads)
        await run(threads, "Done.")
    assert till.paid == paid


async def test_a_rule_revoked_before_the_next_run_asks_again_about_a_planned_call(tmp_path: Path, till: Till) -> None:
    store = Dies(tmp_path / "t.db", durability="process")
    async with ThreadManager(store, ToolRegistry(till)) as threads:
        await threads.create_thread("t", messages="Go.")
        await run(threads, PAY)
        await threads.allow("t", "pay")
        store.at = "planned"
        with pytest.raises(Exception, match="killed"):
            await run(threads)
        await threads.revoke("t", "pay")
        assert await run(threads) == ["c1"]
    assert till.paid == []


async def test_a_rule_whose_thread_others_change_without_end_is_given_up(threads: ThreadManager) -> None:
    tries: list[str] = []

    async def update(thread_id: str, metadata: Body, *, expect: Body | None = None) -> Thread:
        tries.append(thread_id)
        raise StoreConflict("changed in the meantime")

    threads.store.update = update  # type: ignore[method-assign]
    with pytest.raises(StoreConflict, match="changed in the meantime"):
        await threads.allow("t", "pay")
    assert len(tries) == 100
