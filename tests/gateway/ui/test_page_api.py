"""The page's API over real HTTP: a real server, a real SQLite file, an agent that follows a script."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import pytest
from page_shop import PNG, TURNS, Shop, turn
from ui_kit import HeldModel, Json, PageClient, calls_of, page

from agentkit import Agent, ProviderError, ToolContext, first_of, openapi_schema
from agentkit.events import Usage
from agentkit.gateway.ui.live_threads import LiveThread
from agentkit.gateway.ui.page_models import ModelOption
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel
from agentkit.threads import AllowRule, ThreadManager
from agentkit.tool.registry import ToolRegistry


class World:
    def __init__(self, client: PageClient, shop: Shop, model: HeldModel, store: Path) -> None:
        self.client = client
        self.shop = shop
        self.model = model
        self.store = store


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    shop, model = Shop(), HeldModel(turn)
    with page(Agent(model, [shop]), tmp_path / "page.db") as client:
        yield World(client, shop, model, tmp_path / "page.db")
        model.allowed = 1_000_000
        shop.gate.set()


def waiting(client: PageClient, thread: str) -> list[Json]:
    return [call for call in calls_of(client.settled(thread, "waiting")).values() if call["status"] == "waiting"]


def test_a_message_is_answered_by_a_run_that_no_request_owns(world: World) -> None:
    client, thread = world.client, world.client.new()
    said = client.say(thread, "hello", "u1")
    assert not said["queued"]
    user, assistant = client.settled(thread, "idle")
    assert user["id"] == "u1"
    assert assistant["content"] == "You said hello."
    assert assistant["metadata"]["agentkit"]["run"] == said["run"]
    assert [t["title"] for t in client.ask("GET", "threads")["threads"]] == ["hello"]


def test_the_same_message_again_changes_nothing(world: World) -> None:
    client, thread = world.client, world.client.new()
    client.say(thread, "hello", "u1")
    client.settled(thread, "idle")
    assert client.say(thread, "hello", "u1") == {"run": None, "queued": False}
    assert [m["role"] for m in client.settled(thread, "idle")] == ["user", "assistant"]
    assert len(world.model.requests) == 1


def test_a_message_during_a_run_is_queued_and_answered(world: World) -> None:
    client, thread = world.client, world.client.new()
    world.model.allowed = 2
    with client.follow(thread) as events:
        client.say(thread, "long", "u1")
        assert world.model.waiting.wait(30)
        assert client.say(thread, "more", "u2")["queued"]
        world.model.allowed = 1_000_000
        events.until_run_end()
        told = [e["value"] for e in events.events if e.get("name") == "agentkit:user"]
    assert [(t["id"], t["queued"]) for t in told] == [("u1", False), ("u2", True), ("u2", False)]
    found = client.settled(thread, "idle")
    assert [m["content"] for m in found if m["role"] == "user"] == ["long", "more"]
    assert found[-1]["content"] == "You said more."


def test_an_approved_call_runs_once_and_the_run_continues(world: World) -> None:
    client, thread = world.client, world.client.new()
    client.say(thread, "order")
    (call,) = waiting(client, thread)
    assert client.decide(thread, call, approved=True) == {"waiting": 0}
    assert client.settled(thread, "idle")[-1]["content"] == "It is done."
    assert world.shop.done == ["3 tea"]


def test_the_second_decision_about_a_call_is_refused_and_says_what_was_decided(world: World) -> None:
    client, thread = world.client, world.client.new()
    client.say(thread, "order")
    (call,) = waiting(client, thread)
    client.decide(thread, call, approved=False, reason="too dear")
    again = client.decide(thread, call, approved=True, status=409)
    assert again["error"]["message"] == "this call was already denied by page"
    found = client.settled(thread, "idle")
    assert calls_of(found)[call["id"]]["decided"] == {
        "decision": "denied",
        "by": "page",
        "edited": False,
        "reason": "too dear",
    }
    assert next(m for m in found if m["role"] == "tool")["metadata"]["agentkit"]["status"] == "denied"
    assert world.shop.done == []


def test_two_decisions_at_once_start_one_run(world: World) -> None:
    client, thread = world.client, world.client.new()
    for _ in range(5):
        client.say(thread, "order")
        (call,) = waiting(client, thread)
        answers: list[int] = []

        def decide(call: Json = call, answers: list[int] = answers) -> None:
            body = {"call": call["id"], "hash": call["hash"], "approved": True}
            other = PageClient(client.url)
            answers.append(other.http.post(f"/ui/api/threads/{thread}/decisions", json=body).status_code)
            other.http.close()

        tabs = [threading.Thread(target=decide) for _ in range(4)]
        for tab in tabs:
            tab.start()
        for tab in tabs:
            tab.join()
        assert sorted(answers) == [200, 409, 409, 409]
        client.settled(thread, "idle")
    assert world.shop.done == ["3 tea"] * 5


def test_each_of_three_calls_has_its_decision_and_the_run_starts_after_the_last(world: World) -> None:
    client, thread = world.client, world.client.new()
    client.say(thread, "orders")
    tea, milk, cake = waiting(client, thread)
    assert client.decide(thread, tea, approved=True) == {"waiting": 2}
    assert calls_of(client.messages(thread))[tea["id"]]["status"] == "approved"
    assert client.decide(thread, milk, approved=False) == {"waiting": 1}
    assert world.shop.done == []
    assert client.decide(thread, cake, approved=True, arguments={"item": "bun", "amount": 9}) == {"waiting": 0}
    found = client.settled(thread, "idle")
    assert found[-1]["content"] == "All settled."
    assert sorted(world.shop.done) == ["1 tea", "9 bun"]
    assert calls_of(found)[cake["id"]]["arguments"] == {"item": "bun", "amount": 9}
    assert [m["content"] for m in found if m["role"] == "tool"][2] == "ordered 9 bun"


def test_edited_arguments_that_do_not_fit_are_refused_field_by_field(world: World) -> None:
    client, thread = world.client, world.client.new()
    client.say(thread, "order")
    (call,) = waiting(client, thread)
    wrong = client.decide(thread, call, approved=True, arguments={"item": 5, "amount": "x"}, status=422)
    assert set(wrong["error"]["fields"]) == {"/item", "/amount"}
    assert len(waiting(client, thread)) == 1


def test_a_decision_about_another_call_than_was_shown_is_refused(world: World) -> None:
    client, thread = world.client, world.client.new()
    client.say(thread, "order")
    (call,) = waiting(client, thread)
    client.decide(thread, {**call, "hash": "0" * 64}, approved=True, status=409)
    client.decide(thread, {**call, "id": "other"}, approved=True, status=409)
    assert world.shop.done == []


def test_always_allows_the_tool_in_this_thread_until_it_is_revoked(world: World) -> None:
    client, thread = world.client, world.client.new()
    client.say(thread, "order")
    (call,) = waiting(client, thread)
    client.decide(thread, call, approved=True, always=True)
    client.settled(thread, "idle")
    client.say(thread, "order")
    assert client.settled(thread, "idle")[-1]["content"] == "It is done."
    assert world.shop.done == ["3 tea", "3 tea"]
    assert client.ask("PATCH", f"threads/{thread}", {"revoke": "order"})["allowed"] == []
    client.say(thread, "order")
    assert len(waiting(client, thread)) == 1
    other = client.new()
    client.say(other, "order")
    assert len(waiting(client, other)) == 1


def test_a_pattern_is_allowed_listed_and_revoked(world: World) -> None:
    client, thread = world.client, world.client.new()
    client.say(thread, "order")
    (call,) = waiting(client, thread)
    client.decide(thread, call, approved=True, always={"item": "milk", "amount": 3}, status=400)
    client.decide(thread, call, approved=True, always={"item": "te*", "amount": 3})
    client.settled(thread, "idle")
    rule = 'order: item = "te*", amount = 3'
    assert client.ask("PATCH", f"threads/{thread}", {"title": "Tea"})["allowed"] == [{"text": rule, "note": ""}]
    client.say(thread, "order")
    client.settled(thread, "idle")
    client.say(thread, "twice")
    assert [call["arguments"]["item"] for call in waiting(client, thread)] == ["tea"]
    assert client.ask("PATCH", f"threads/{thread}", {"revoke": rule})["allowed"] == []
    client.ask("PATCH", f"threads/{thread}", {"revoke": rule}, status=400)
    client.ask("PATCH", f"threads/{thread}", {"revoke": 1}, status=400)


async def allow(world: World, thread: str, rule: AllowRule) -> None:
    async with ThreadManager(world.store) as threads:
        await threads.allow(thread, rule, registry=ToolRegistry([world.shop]))


def test_calls_that_a_rule_covers_run_once_the_others_are_decided(world: World) -> None:
    client, thread = world.client, world.client.new()
    client.say(thread, "orders")
    calls = waiting(client, thread)
    client.decide(thread, calls[0], approved=True, always={"item": "*ea", "amount": 1})
    assert world.shop.done == []
    asyncio.run(allow(world, thread, AllowRule("order", {"item": "milk", "amount": 1})))
    client.decide(thread, calls[2], approved=False)
    client.settled(thread, "idle")
    assert world.shop.done == ["1 tea", "1 milk"]


def test_always_is_no_longer_valid_for_a_tool_that_has_changed(tmp_path: Path) -> None:
    class OtherShop:
        @openapi_schema(requires_approval=True)
        async def order(self, item: str, amount: int) -> str:
            """Order an item, and pay with the company's money."""
            return "paid"

    with page(Agent(HeldModel(turn), [Shop()]), tmp_path / "a.db") as client:
        thread = client.new()
        client.say(thread, "order")
        (call,) = waiting(client, thread)
        client.decide(thread, call, approved=True, always=True)
        client.settled(thread, "idle")
    with page(Agent(HeldModel(turn), [OtherShop()]), tmp_path / "a.db") as client:
        client.say(thread, "order")
        assert len(waiting(client, thread)) == 1
        (rule,) = client.ask("PATCH", f"threads/{thread}", {"title": "Tea"})["allowed"]
        assert rule["note"] == " (asks again: the tool has changed)"
        assert client.ask("PATCH", f"threads/{thread}", {"revoke": rule["text"]})["allowed"] == []


def test_the_agents_own_rule_is_not_loosened_for_other_tools(tmp_path: Path) -> None:
    from agentkit.processor import ProcessorConfig

    shop = Shop()

    async def rule(call: ToolCall, context: ToolContext) -> bool:
        return True

    with page(Agent(HeldModel(turn), [shop], config=ProcessorConfig(requires_approval=rule)), tmp_path / "a.db") as c:
        thread = c.new()
        c.say(thread, "both")
        calls = {call["arguments"].get("item", "slow"): call for call in waiting(c, thread)}
        c.decide(thread, calls["tea"], approved=True, always=True)
        c.decide(thread, calls["slow"], approved=True)
        c.settled(thread, "idle")
        c.say(thread, "both again")
        (call,) = waiting(c, thread)
        assert call["arguments"] == {"text": "one"}


def test_stop_while_text_streams(world: World) -> None:
    client, thread = world.client, world.client.new()
    world.model.allowed = 5
    client.say(thread, "long")
    assert world.model.waiting.wait(30)
    client.ask("POST", f"threads/{thread}/stop", {})
    client.ask("POST", f"threads/{thread}/stop", {})
    _, assistant = client.settled(thread, "idle")
    assert assistant["metadata"]["agentkit"]["state"] == "stopped"
    assert TURNS["long"][0].startswith(assistant["content"])
    assert assistant["content"]


def test_stop_while_a_tool_runs(world: World) -> None:
    client, thread = world.client, world.client.new()
    world.shop.gate.clear()
    client.say(thread, "slow")
    assert world.shop.entered.wait(30)
    client.ask("POST", f"threads/{thread}/stop", {})
    found = client.settled(thread, "idle")
    result = next(m for m in found if m["role"] == "tool")["metadata"]["agentkit"]
    assert result["status"] in ("stopped", "interrupted")
    assert len(world.model.requests) == 1


def test_stop_while_calls_wait_asks_no_model(world: World) -> None:
    client, thread = world.client, world.client.new()
    client.say(thread, "orders")
    waiting(client, thread)
    with client.follow(thread) as events:
        client.ask("POST", f"threads/{thread}/stop", {})
        events.until(lambda e: e.get("value", {}).get("state") == "idle")
    found = client.settled(thread, "idle")
    assert [m["metadata"]["agentkit"]["status"] for m in found if m["role"] == "tool"] == ["stopped"] * 3
    assert len(world.model.requests) == 1
    client.say(thread, "hello")
    assert client.settled(thread, "idle")[-1]["content"] == "You said hello."


def test_stop_right_after_a_message_leaves_no_open_call(world: World) -> None:
    client, thread = world.client, world.client.new()
    for _ in range(5):
        client.say(thread, "orders")
        waiting(client, thread)
        client.say(thread, "long")
        client.ask("POST", f"threads/{thread}/stop", {})
        found = calls_of(client.settled(thread, "idle"))
        assert {call["status"] for call in found.values()} == {"answered"}
    before = client.ask("GET", "threads")["threads"][0]["updated"]
    client.ask("POST", f"threads/{thread}/stop", {})
    assert client.ask("GET", "threads")["threads"][0]["updated"] == before


def test_stop_while_one_call_waits_and_another_runs(world: World) -> None:
    client, thread = world.client, world.client.new()
    world.shop.gate.clear()
    client.say(thread, "both")
    assert world.shop.entered.wait(30)
    client.ask("POST", f"threads/{thread}/stop", {})
    client.settled(thread, "idle")
    assert world.shop.done == ["slow one"]


def test_a_decision_while_another_tool_runs_is_acted_on_after_it(world: World) -> None:
    client, thread = world.client, world.client.new()
    world.shop.gate.clear()
    with client.follow(thread) as events:
        client.say(thread, "both")
        asked = events.until(lambda e: e.get("name") == "agentkit:approval")["value"]
        assert world.shop.entered.wait(30)
        assert client.decide(thread, {"id": asked["toolCallId"], "hash": asked["hash"]}, approved=True)["waiting"] == 0
        world.shop.gate.set()
    assert client.settled(thread, "idle")[-1]["content"] == "Both done."
    assert sorted(world.shop.done) == ["3 tea", "slow one"]


def test_a_person_who_writes_withdraws_the_waiting_call(world: World) -> None:
    client, thread = world.client, world.client.new()
    client.say(thread, "order")
    (call,) = waiting(client, thread)
    client.say(thread, "hello")
    found = client.settled(thread, "idle")
    assert found[-1]["content"] == "You said hello."
    client.decide(thread, call, approved=True, status=409)
    assert world.shop.done == []


def test_a_failed_tool_and_thinking_are_in_the_snapshot(world: World) -> None:
    client, thread = world.client, world.client.new()
    client.say(thread, "fail")
    found = client.settled(thread, "idle")
    about = found[1]["metadata"]["agentkit"]
    assert about["thinking"] == "Deep thought."
    assert [next(iter(part)) for part in about["parts"]] == ["thinking", "call"]
    assert found[2]["metadata"]["agentkit"]["status"] == "failed"
    assert "no paper" in found[2]["content"]


def test_a_picture_is_said_and_shown(world: World) -> None:
    client, thread = world.client, world.client.new()
    source = {"type": "data", "value": PNG, "mimeType": "image/png"}
    client.say(thread, [{"type": "text", "text": "look"}, {"type": "image", "source": source}])
    user = client.settled(thread, "idle")[0]
    assert user["content"] == [{"type": "text", "text": "look"}, {"type": "image", "source": source}]


@pytest.mark.parametrize(
    "content",
    ["", "  ", [], 5, None, [{"type": "image"}], [{"type": "image", "source": {"type": "url", "value": "x"}}]],
)
def test_a_message_without_content_is_refused(world: World, content: Any) -> None:
    thread = world.client.new()
    world.client.ask("POST", f"threads/{thread}/messages", {"id": "u", "content": content}, 400)
    assert world.client.messages(thread) == []


def test_titles_models_and_formats_are_changed_in_mid_thread(tmp_path: Path) -> None:
    def create(format: str | None) -> ScriptedModel:
        call = ToolCall("", "slow", {"text": "x"})
        return ScriptedModel([[call], f"As {format}."], name="test:other", format=format)

    choices = [ModelOption("test:other", "Another", create)]
    with page(Agent(HeldModel(turn), [Shop()]), tmp_path / "a.db", choices) as client:
        setup = client.ask("GET", "setup")
        assert setup["choices"] == [
            {"model": "test:held", "label": "test:held", "formats": ["native"]},
            {"model": "test:other", "label": "Another"},
        ]
        assert "xml" in setup["formats"]
        thread = client.new(title="Mine")
        client.say(thread, "hello")
        client.settled(thread, "idle")
        changed = client.ask("PATCH", f"threads/{thread}", {"model": "test:other", "format": "xml"})
        assert (changed["title"], changed["model"], changed["format"]) == ("Mine", "test:other", "xml")
        client.say(thread, "again")
        found = client.settled(thread, "idle")
        assert found[-1]["content"] == "As xml."
        assert found[-1]["metadata"]["agentkit"]["model"] == "test:other"
        (call,) = calls_of(found).values()
        assert call["format"] == "xml"
        assert "<" in call["raw"]
        client.ask("PATCH", f"threads/{thread}", {"model": "none"}, 400)
        client.ask("PATCH", f"threads/{thread}", {"format": "none"}, 400)
        client.ask("PATCH", f"threads/{thread}", {"model": "test:held", "format": "native"})
        client.say(thread, "hello")
        assert client.settled(thread, "idle")[-1]["content"] == "You said hello."


def test_a_model_with_one_format_has_no_other(tmp_path: Path) -> None:
    model = ScriptedModel(["Hello."], name="test:object", format="hermes")
    choices = [ModelOption("test:object", "module:name", lambda _: model, "hermes")]
    with page(Agent(model, [Shop()]), tmp_path / "a.db", choices) as client:
        assert client.ask("GET", "setup")["choices"][0]["formats"] == ["hermes"]
        thread = client.new(format="xml")
        assert client.ask("PATCH", f"threads/{thread}", {"title": "Mine"})["format"] == "hermes"


def test_a_thread_is_renamed_whose_model_is_no_longer_offered(tmp_path: Path) -> None:
    choices = [ModelOption("test:other", "Another", lambda _: ScriptedModel([]))]
    with page(Agent(HeldModel(turn), [Shop()]), tmp_path / "a.db", choices) as client:
        thread = client.new(model="test:other")
    with page(Agent(HeldModel(turn), [Shop()]), tmp_path / "a.db") as client:
        assert client.ask("PATCH", f"threads/{thread}", {"title": "Mine"})["title"] == "Mine"
        client.ask("PATCH", f"threads/{thread}", {"model": "test:another"}, 400)


def test_usage_is_counted_once_for_any_number_of_readers(tmp_path: Path) -> None:
    model = ScriptedModel([["Hello.", Usage(input_tokens=7)]])
    with page(Agent(model, [Shop()]), tmp_path / "a.db") as client:
        thread = client.new()
        client.say(thread, "hello")
        client.settled(thread, "idle")
        asked = [threading.Thread(target=client.messages, args=(thread,)) for _ in range(8)]
        for one in asked:
            one.start()
        for one in asked:
            one.join()
        with client.follow(thread) as events:
            usage = events.until(lambda e: e.get("name") == "agentkit:thread")["value"]["usage"]
    assert usage["inputTokens"] == 7


def test_each_reply_names_the_model_of_a_chain_that_wrote_it(tmp_path: Path) -> None:
    busy = ProviderError("test: busy", kind="overloaded", provider="test")
    chain = first_of(ScriptedModel([busy, "Two."], name="test:a"), ScriptedModel(["One."], name="test:b"))
    with page(Agent(chain, [Shop()]), tmp_path / "a.db") as client:
        thread = client.new()
        with client.follow(thread) as events:
            client.say(thread, "hello")
            stored = events.until(lambda e: e.get("name") == "agentkit:stored")["value"]
        client.settled(thread, "idle")
        client.say(thread, "hello")
        replies = [m for m in client.settled(thread, "idle") if m["role"] == "assistant"]
    assert stored["model"] == "test:b"
    assert [(m["content"], m["metadata"]["agentkit"]["model"]) for m in replies] == [
        ("One.", "test:b"),
        ("Two.", "test:a"),
    ]


def test_threads_are_listed_searched_forked_exported_and_deleted(world: World) -> None:
    client = world.client
    first, second = client.new(), client.new(title="Holidays")
    client.say(first, "order")
    client.say(second, "hello")
    client.settled(second, "idle")
    client.settled(first, "waiting")
    listed = {t["id"]: t for t in client.ask("GET", "threads")["threads"]}
    assert (listed[first]["state"], listed[first]["waiting"], listed[second]["title"]) == ("waiting", 1, "Holidays")
    assert [t["id"] for t in client.ask("GET", "threads?q=HOLI")["threads"]] == [second]
    assert [t["id"] for t in client.ask("GET", "threads?q=you%20said")["threads"]] == [second]
    assert [t["id"] for t in client.ask("GET", "threads?q=TEA")["threads"]] == [first]  # an argument of the call
    copy = client.ask("POST", f"threads/{first}/fork", {"until": 1})["id"]
    assert client.settled(copy)[-1]["role"] == "tool"
    assert "order" in client.ask("GET", f"threads/{first}/export?as=markdown")
    client.ask("GET", f"threads/{first}/export?as=nonsense", None, 400)
    client.ask("DELETE", f"threads/{first}")
    client.ask("GET", f"threads/{first}/events", None, 404)


def test_a_page_of_the_list_says_after_which_thread_there_are_more(world: World) -> None:
    client = world.client

    async def create() -> None:
        async with ThreadManager(world.store) as threads:
            for title in ["needle", *["hay"] * 200]:
                await threads.create_thread(metadata={"ui": {"title": title}})

    asyncio.run(create())
    newest = client.ask("GET", "threads?q=needle")
    assert newest["threads"] == []
    (found,) = client.ask("GET", f"threads?q=needle&before={newest['more']}")["threads"]
    assert found["title"] == "needle"
    more, pages = "", []
    while more is not None:
        threads, more = client.ask("GET", f"threads?before={more}").values()
        pages.append([thread["id"] for thread in threads])
    assert [len(ids) for ids in pages] == [50, 50, 50, 50, 1]
    assert len(set().union(*pages)) == 201


def test_a_call_has_the_same_duration_and_a_message_the_same_time_wherever_it_is_shown(world: World) -> None:
    client, thread = world.client, world.client.new()
    with client.follow(thread) as events:
        client.say(thread, "order")
        (call,) = waiting(client, thread)
        client.decide(thread, call, approved=True)
        told = events.until(lambda e: e["type"] == "TOOL_CALL_RESULT")
    first = client.settled(thread, "idle")
    copy = client.settled(client.ask("POST", f"threads/{thread}/fork", {"until": 2})["id"])
    for found in (first, copy):
        (result,) = (m for m in found if m["role"] == "tool")
        assert result["metadata"] == told["metadata"]
    assert told["metadata"]["agentkit"]["seconds"] > 0
    assert [m["metadata"]["agentkit"].get("created") for m in copy] == [
        m["metadata"]["agentkit"].get("created") for m in first
    ]


def test_a_stream_ends_when_its_thread_is_deleted(world: World) -> None:
    client, thread = world.client, world.client.new()
    with client.follow(thread) as events:
        events.until(lambda e: e["type"] == "MESSAGES_SNAPSHOT")
        client.ask("DELETE", f"threads/{thread}")
        with pytest.raises(EOFError):
            events.until(lambda e: False)


def test_what_another_program_changes_is_shown(world: World) -> None:
    client, thread = world.client, world.client.new()
    client.say(thread, "order")
    (call,) = waiting(client, thread)

    async def decide() -> None:
        async with ThreadManager(world.store) as threads:
            await threads.deny(thread, call["id"], "not today", by="terminal")

    with client.follow(thread) as events:
        events.until(lambda e: e["type"] == "MESSAGES_SNAPSHOT")
        asyncio.run(decide())
        found = events.until(lambda e: e["type"] == "MESSAGES_SNAPSHOT")["messages"]
    assert calls_of(found)[call["id"]]["decided"]["by"] == "terminal"


def test_a_thread_that_another_process_runs(world: World) -> None:
    client, thread = world.client, world.client.new()
    store = ThreadManager(world.store).store

    async def hold() -> Any:
        return await store.acquire(thread, "night job", 30)

    with asyncio.Runner() as runner:
        lease = runner.run(hold())
        with client.follow(thread) as events:
            client.say(thread, "hello", "u1")
            state = events.until(lambda e: e.get("value", {}).get("problem"))["value"]
        assert state["state"] == "running"
        assert state["problem"] == "'night job' is running this thread"
        client.ask("POST", f"threads/{thread}/stop", {}, 409)
        runner.run(store.release(lease))
        client.ask("POST", f"threads/{thread}/continue", {}, 202)
        assert client.settled(thread, "idle")[-1]["content"] == "You said hello."
        runner.run(store.aclose())


def test_a_new_snapshot_follows_the_death_of_the_process_that_ran_a_thread(world: World) -> None:
    program = "from agentkit.threads.owner import this_process; print(this_process(), flush=True); input()"
    other = Popen([sys.executable, "-c", program], stdin=PIPE, stdout=PIPE, text=True)
    assert other.stdout is not None
    owner = other.stdout.readline().strip()
    client, thread = world.client, world.client.new()

    async def hold() -> None:
        async with ThreadManager(world.store) as threads:
            await threads.store.acquire(thread, owner, 60)

    asyncio.run(hold())
    with client.follow(thread) as events:
        client.say(thread, "hello")
        events.until(lambda e: e.get("value", {}).get("problem"))
        other.communicate()
        events.until(lambda e: e.get("value", {}).get("state") == "interrupted")
        snapshot = events.until(lambda e: e["type"] == "MESSAGES_SNAPSHOT")
    assert [m["content"] for m in snapshot["messages"]] == ["hello"]


def test_a_provider_error_ends_the_run_and_the_thread_can_be_resumed(tmp_path: Path) -> None:
    from agentkit.errors import ProviderError

    model = ScriptedModel([ProviderError("overloaded", kind="overloaded", provider="test"), "Better."])
    with page(Agent(model), tmp_path / "a.db") as client:
        thread = client.new()
        with client.follow(thread) as events:
            client.say(thread, "hello")
            assert events.until_run_end()["code"] == "overloaded"
        assert client.settled(thread)[0]["content"] == "hello"
        client.ask("POST", f"threads/{thread}/continue", {}, 202)
        assert client.settled(thread, "idle")[-1]["content"] == "Better."


def test_every_request_is_checked(tmp_path: Path) -> None:
    with page(Agent(HeldModel(turn)), tmp_path / "a.db") as client:
        http = client.http
        assert http.get("/ui/api/setup", headers={"host": "evil.example"}).status_code == 421
        for site in ({"origin": "http://evil.example"}, {"sec-fetch-site": "cross-site"}):
            assert http.post("/ui/api/threads", json={}, headers=site).status_code == 403
        assert http.post("/ui/api/threads", content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
        assert (
            http.post("/ui/api/threads", content=b"[", headers={"content-type": "application/json"}).status_code == 400
        )
        assert (
            http.post("/ui/api/threads", content=b"[]", headers={"content-type": "application/json"}).status_code == 400
        )
        assert http.put("/ui/api/setup", json={}).status_code == 405
        assert http.get("/ui/api/nothing").status_code == 404
        assert http.get("/ui/../ui_app.py").status_code == 404
        assert http.get("/ui/%2e%2e/ui_app.py").status_code == 404
        same = {"origin": client.url, "sec-fetch-site": "same-origin"}
        assert http.post("/ui/api/threads", json={}, headers=same).status_code == 200


def test_keys_are_needed_for_the_api_and_not_for_the_files(tmp_path: Path) -> None:
    with page(Agent(HeldModel(turn)), tmp_path / "a.db", environment={"K": "secret"}, keys={"ada": "K"}) as client:
        assert client.http.get("/ui/api/setup").status_code == 401
        assert client.http.post("/ag-ui", json={}).status_code == 401
        assert client.http.get("/ui/missing.js").status_code == 404
        assert client.http.get("/ui/api/setup", headers={"authorization": "Bearer secret"}).status_code == 200


def test_live_runs_end_with_the_server(tmp_path: Path) -> None:
    model, shop = HeldModel(turn), Shop()
    shop.gate.clear()
    with page(Agent(model, [shop]), tmp_path / "a.db") as client:
        thread = client.new()
        with client.follow(thread):
            client.say(thread, "slow")
            assert shop.entered.wait(30)
    shop.gate.set()
    with page(Agent(model, [shop]), tmp_path / "a.db") as client:
        assert client.settled(thread)[-1]["metadata"]["agentkit"]["status"] in ("stopped", "interrupted")


def test_a_limit_ends_the_run_and_no_other_run_follows(tmp_path: Path) -> None:
    model = HeldModel(turn)
    with page(Agent(model, [Shop()], max_turns=1), tmp_path / "a.db") as client:
        thread = client.new()
        client.say(thread, "slow")
        client.settled(thread, "interrupted", "idle")
        time.sleep(0.2)
        assert len(model.requests) == 1


def test_nothing_is_left_of_threads_that_nobody_uses(tmp_path: Path) -> None:
    def left() -> int:
        gc.collect()
        return sum(isinstance(one, LiveThread) for one in gc.get_objects())

    before = left()
    with page(Agent(HeldModel(turn), [Shop()]), tmp_path / "a.db") as client:
        for _ in range(10):
            thread = client.new()
            with client.follow(thread) as events:
                client.say(thread, "hello")
                events.until_run_end()
        client.ask("GET", "threads/none/events", None, 404)
        end = time.monotonic() + 30
        while left() > before and time.monotonic() < end:
            time.sleep(0.05)
        assert left() == before


def test_the_repairs_of_a_call_are_shown_live_and_later(tmp_path: Path) -> None:
    written = '<tool_call>\n{"name": "slow", "arguments": {"text": "x",}}\n</tool_call>'
    model = ScriptedModel([written, "Done."], format="hermes")
    with page(Agent(model, [Shop()]), tmp_path / "a.db") as client:
        thread = client.new()
        with client.follow(thread) as events:
            client.say(thread, "hello")
            end = events.until(lambda e: e["type"] == "TOOL_CALL_END")["metadata"]["agentkit"]
        (call,) = calls_of(client.settled(thread, "idle")).values()
        assert [repair["code"] for repair in call["repairs"]] == ["trailing_comma"]
        assert (call["repairs"], call["raw"]) == (end["repairs"], end["raw"])


def test_a_sub_agents_waiting_call_has_its_card(tmp_path: Path) -> None:
    shop = Shop()
    helper = Agent(HeldModel(turn), [shop], name="helper")
    script = [[ToolCall("", "ask", {"task": "order"})], "Asked."]
    with page(Agent(ScriptedModel(script), [helper.as_tool("ask", "Ask.")]), tmp_path / "a.db") as client:
        thread = client.new()
        client.say(thread, "hello")
        (outer,) = calls_of(client.settled(thread, "waiting")).values()
        (inner,) = outer["inside"]
        assert (outer["status"], inner["name"], inner["arguments"]) == (
            "waiting",
            "order",
            {"item": "tea", "amount": 3},
        )
        assert inner["id"].startswith(f"{outer['id']}/")
        client.decide(thread, inner, approved=True, arguments={"item": 1}, status=422)
        client.decide(thread, inner, approved=True, always=True, status=400)
        client.decide(thread, inner, approved=True)
        assert client.settled(thread, "idle")[-1]["content"] == "Asked."
        assert shop.done == ["3 tea"]
        assert [t["id"] for t in client.ask("GET", "threads")["threads"]] == [thread]
