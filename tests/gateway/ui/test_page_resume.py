"""Whoever comes back sees the same: at every event, after a reload, and after the server was killed."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from page_server import PageServer
from page_shop import Shop, turn
from scenario_kit import SOAK
from ui_kit import PATIENCE, Followed, HeldModel, Json, PageClient, calls_of, page

from agentkit import Agent


class Shown:
    """The contents of a page: the texts in their order, and each call with its arguments and its result."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.runs: dict[str, set[str]] = {}
        self.calls: dict[str, Json] = {}
        self.run = ""

    def apply(self, event: Json) -> None:
        match event:
            case {"type": "MESSAGES_SNAPSHOT", "messages": messages}:
                self.texts, self.calls, self.runs = {}, {}, {}
                for message in messages:
                    self._stored(message)
            case {"type": "RUN_STARTED", "runId": run}:
                for id in self.runs.pop(run, ()):
                    self.texts.pop(id)
                self.run = run
            case {"type": "TEXT_MESSAGE_START", "messageId": id}:
                self.texts[id] = ""
                self.runs.setdefault(self.run, set()).add(id)
            case {"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta}:
                self.texts[id] += delta
            case {"type": "TOOL_CALL_END", "toolCallId": id}:
                self.calls[id] = {"arguments": event["metadata"]["agentkit"]["arguments"], "result": None}
            case {"type": "TOOL_CALL_RESULT", "toolCallId": id, "content": content}:
                self.calls[id]["result"] = content
            case {"name": "agentkit:user", "value": {"id": id, "content": content}}:
                self.texts[id] = content

    def _stored(self, message: Json) -> None:
        if message["role"] == "tool":
            self.calls[message["toolCallId"]]["result"] = message["content"]
            return
        if message["content"]:
            self.texts[message["id"]] = message["content"]
        for call in message.get("toolCalls", ()):
            self.calls[call["id"]] = {"arguments": call["metadata"]["agentkit"]["arguments"], "result": None}

    @property
    def all(self) -> Any:
        return list(self.texts.values()), self.calls


def shown(events: list[Json]) -> Shown:
    found = Shown()
    for event in events:
        found.apply(event)
    return found


def number(id: str) -> int:
    return int(id.rpartition(".")[2] or -1)


@pytest.fixture
def client(tmp_path: Path) -> Iterator[PageClient]:
    with page(Agent(HeldModel(turn, chunk=3), [Shop()]), tmp_path / "page.db") as client:
        yield client


def test_from_every_event_the_rest_leads_to_the_same(client: PageClient) -> None:
    thread = client.new()
    with client.follow(thread) as events:
        client.say(thread, "slow")
        events.until_run_end()
        everything, end = shown(events.events).all, events.ids[-1]
        assert everything == (["slow", "Wait.", "It is done."], everything[1])
        for at, id in enumerate(events.ids):
            if not id or id == end:
                continue
            found = shown(events.events[: at + 1])
            with client.follow(thread, id) as rest:
                while number(rest.ids[-1] if rest.ids else "") < number(end):
                    found.apply(rest.next())
            assert found.all == everything, id


def test_a_stream_that_is_cut_after_every_event(client: PageClient) -> None:
    thread = client.new()
    client.say(thread, "slow")
    found, last = Shown(), ""
    while True:
        with client.follow(thread, last) as events:
            events.until(lambda e: e["type"] != "CUSTOM" or e["name"] != "agentkit:thread")
        for id, event in zip(events.ids, events.events, strict=True):
            found.apply(event)
            last = id or last
        if "It is done." in found.texts.values():
            break
    assert found.all == shown([{"type": "MESSAGES_SNAPSHOT", "messages": client.settled(thread, "idle")}]).all


def test_a_tab_that_comes_late_sees_the_live_run_from_its_beginning(tmp_path: Path) -> None:
    model = HeldModel(turn)
    with page(Agent(model, [Shop()]), tmp_path / "page.db") as client:
        thread = client.new()
        client.say(thread, "hello")
        client.settled(thread, "idle")
        model.allowed = 6
        client.say(thread, "long")
        assert model.waiting.wait(30)
        with client.follow(thread) as events:
            snapshot = events.until(lambda e: e["type"] == "MESSAGES_SNAPSHOT")["messages"]
            assert [m["content"] for m in snapshot] == ["hello", "You said hello.", "long"]
            assert events.next()["type"] == "RUN_STARTED"
            model.allowed = 1_000_000
            events.until_run_end()
        assert (
            shown(events.events).all
            == shown([{"type": "MESSAGES_SNAPSHOT", "messages": client.settled(thread, "idle")}]).all
        )


def test_the_log_of_a_long_run_is_shortened_at_the_end_of_a_turn(
    client: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentkit.gateway.ui.live_threads.LONGEST_LOG", 10)
    thread = client.new()
    with client.follow(thread) as events:
        client.say(thread, "twice")
        for _ in range(2):
            asked = events.until(lambda e: e.get("name") == "agentkit:approval")["value"]
            events.until_run_end()
            client.decide(thread, {"id": asked["toolCallId"], "hash": asked["hash"]}, approved=True)
        events.until_run_end()
        with client.follow(thread, events.ids[5]) as late:
            late.until(lambda e: e["type"] == "MESSAGES_SNAPSHOT")
    assert client.settled(thread, "idle")[-1]["content"] == "Both settled."


def test_a_late_tab_sees_a_shortened_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentkit.gateway.ui.live_threads.LONGEST_LOG", 10)
    shop, model = Shop(), HeldModel(turn)
    with page(Agent(model, [shop]), tmp_path / "page.db") as client:
        thread = client.new()
        shop.gate.clear()
        client.say(thread, "slow")
        assert shop.entered.wait(30)
        model.allowed = 2
        shop.gate.set()
        assert model.waiting.wait(30)
        with client.follow(thread) as events:
            snapshot = events.until(lambda e: e["type"] == "MESSAGES_SNAPSHOT")["messages"]
            assert [m["role"] for m in snapshot] == ["user", "assistant", "tool"]
            assert events.next()["type"] == "RUN_STARTED"
            assert events.ids[-1] == ""
            model.allowed = 1_000_000
            events.until_run_end()
        assert (
            shown(events.events).all
            == shown([{"type": "MESSAGES_SNAPSHOT", "messages": client.settled(thread, "idle")}]).all
        )


@pytest.fixture
def person(server: PageServer) -> Iterator[PageClient]:
    """A client of the server, whose address stays the same."""
    found = PageClient(server.url)
    yield found
    found.http.close()


def finish(client: PageClient, thread: str) -> list[Json]:
    """Answer whatever is asked until the thread is idle."""
    end = time.monotonic() + PATIENCE * 2
    while time.monotonic() < end:
        found = client.settled(thread)
        states = {call["id"]: call for call in calls_of(found).values()}
        unknown = [call for call in states.values() if call["status"] == "unknown"]
        waits = [call for call in states.values() if call["status"] == "waiting"]
        for call in unknown:
            client.ask("POST", f"threads/{thread}/outcomes", {"call": call["id"], "happened": True, "text": "done"})
        for call in waits:
            client.decide(thread, call, approved=True)
        if not waits:
            client.ask("POST", f"threads/{thread}/continue", {}, 202)
            if client.settled(thread, "idle", "waiting")[-1]["role"] == "assistant":
                found = client.settled(thread)
                if all(call["status"] == "answered" for call in calls_of(found).values()):
                    return found
    raise AssertionError("it does not end")


def test_killed_at_any_event_no_call_runs_twice_and_none_is_lost(server: PageServer, person: PageClient) -> None:
    chance = random.Random(7)
    server.pace(0.002)
    for n in range(20 if SOAK else 2):
        thread = person.new()
        with person.follow(thread) as events:
            person.say(thread, "both")
            after = chance.randrange(1, 26)
            try:
                for _ in range(after):
                    events.next()
                    if events.events[-1]["type"] == "RUN_FINISHED":
                        break
            finally:
                server.restart()
        found = finish(person, thread)
        assert found[-1]["content"] == "Both done.", (n, after, json.dumps(found)[:2000])
        assert server.repeated == {}, (n, after)


def test_a_call_whose_outcome_is_unknown_is_asked_about(server: PageServer, person: PageClient) -> None:
    for happened, says in ((True, "I saw it."), (False, "")):
        thread = person.new()
        server.hold("slow")
        with person.follow(thread) as events:
            person.say(thread, "slow")
            events.until(lambda e: e.get("name") == "agentkit:started")
        server.restart()
        server.release("slow")
        (call,) = calls_of(person.settled(thread, "interrupted")).values()
        assert call["status"] == "unknown"
        person.ask("POST", f"threads/{thread}/outcomes", {"call": call["id"], "happened": happened, "text": says})
        person.ask("POST", f"threads/{thread}/outcomes", {"call": call["id"], "happened": True, "text": "again"}, 409)
        person.ask("POST", f"threads/{thread}/continue", {}, 202)
        found = person.settled(thread, "idle")
        assert found[-1]["content"] == "It is done."
        result = next(m for m in found if m["role"] == "tool")
        assert result["metadata"]["agentkit"]["status"] == ("done" if happened else "stopped")
        assert (says or "was not done") in result["content"]


@pytest.mark.parametrize("decision", ["approved", "edited", "denied"])
@pytest.mark.share(3)
def test_a_decision_survives_the_server(server: PageServer, person: PageClient, decision: str) -> None:
    thread = person.new()
    person.say(thread, "orders")
    first, *others = calls_of(person.settled(thread, "waiting")).values()
    more: Json = {"arguments": {"item": "bun", "amount": 9}} if decision == "edited" else {}
    person.decide(thread, first, approved=decision != "denied", **more)
    server.restart()
    found = calls_of(person.settled(thread, "waiting"))
    assert found[first["id"]]["status"] == ("answered" if decision == "denied" else "approved")
    assert [found[call["id"]]["status"] for call in others] == ["waiting", "waiting"]
    for call in others:
        person.decide(thread, call, approved=True)
    found = calls_of(person.settled(thread, "idle"))
    assert len(server.effects) == (2 if decision == "denied" else 3)
    assert found[first["id"]]["decided"]["edited"] == (decision == "edited")


@pytest.mark.soak
def test_nothing_runs_by_itself_after_a_start(server: PageServer, person: PageClient) -> None:
    thread = person.new()
    server.hold("model", 5)
    person.say(thread, "long")
    server.until_held("model")
    server.restart()
    server.release("model")
    assert person.ask("GET", "threads")["threads"][0]["state"] == "interrupted"
    time.sleep(0.3)
    assert person.settled(thread)[-1]["role"] != "assistant" or person.settled(thread, "interrupted")
    person.ask("POST", f"threads/{thread}/continue", {}, 202)
    assert person.settled(thread, "idle")[-1]["content"].endswith("The end.")


@pytest.mark.soak
def test_a_position_of_another_server_gets_a_snapshot(server: PageServer, person: PageClient) -> None:
    thread = person.new()
    person.say(thread, "hello")
    person.settled(thread, "idle")
    with person.follow(thread) as events:
        events.until(lambda e: e["type"] == "MESSAGES_SNAPSHOT")
        last = events.ids[-1]
    server.restart()
    for id in (last, "", "x", "x.y", "a.-1", f"{last}9", "..", "é.1"):
        url = f"{person.url}/ui/api/threads/{thread}/events"
        with httpx2.stream("GET", url, params={"last": id}, timeout=PATIENCE) as reply:
            assert Followed(reply.iter_lines()).until(lambda e: e["type"] == "MESSAGES_SNAPSHOT")["messages"]
