"""Other clients of AG-UI: each run judged by `ag-ui-protocol`'s own models."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import Event
from page_shop import Shop, turn
from pydantic import TypeAdapter
from ui_kit import HeldModel, Json, PageClient, calls_of, page

from agentkit import Agent
from agentkit.messages import ToolCall
from agentkit.testing import ScriptedModel

NPM = os.environ.get("AGENTKIT_PAGE_NPM", "")
EVENT: TypeAdapter[Any] = TypeAdapter(Event)


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def client(tmp_path: Path, shop: Shop) -> Iterator[PageClient]:
    with page(Agent(HeldModel(turn), [shop]), tmp_path / "page.db") as client:
        yield client


def run(
    client: PageClient, thread: str, run_id: str, *messages: Json, began: threading.Event | None = None, **more: Any
) -> list[Json]:
    """Ask for a run, and return its events; `began` is set with the first."""
    body = {"threadId": thread, "runId": run_id, "messages": list(messages), "tools": [], "context": [], **more}
    lines: list[Json] = []
    with client.http.stream("POST", "/ag-ui", json=body) as reply:
        assert reply.status_code == 200, reply.read()
        for line in reply.iter_lines():
            if line.startswith("data: "):
                lines.append(json.loads(line[6:]))
                if began is not None:
                    began.set()
    for event in lines:
        EVENT.validate_python(event)
    assert lines[0]["type"] == "RUN_STARTED"
    assert lines[-1]["type"] in ("RUN_FINISHED", "RUN_ERROR")
    assert all(event["runId"] == run_id for event in lines if "runId" in event)
    return lines


def user(id: str, content: str) -> Json:
    return {"id": id, "role": "user", "content": content}


def text(events: list[Json]) -> str:
    return "".join(event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT")


def test_a_conversation_of_two_runs(client: PageClient) -> None:
    assert text(run(client, "t", "r1", user("u1", "hello"))) == "You said hello."
    said = {"id": "a1", "role": "assistant", "content": "You said hello."}
    assert text(run(client, "t", "r2", user("u1", "hello"), said, user("u2", "again"))) == "You said again."
    assert [m["content"] for m in client.settled("t")] == ["hello", "You said hello.", "again", "You said again."]


def test_a_new_thread_begins_with_the_whole_conversation(client: PageClient) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "slow", "arguments": '{"text": "x"}'}}
    history = [
        {"id": "s", "role": "system", "content": "ignored"},
        user("u1", "hello"),
        {"id": "a1", "role": "assistant", "toolCalls": [call]},
        {"id": "r1", "role": "tool", "toolCallId": "c1", "content": "slow x"},
        {"id": "a2", "role": "assistant", "content": "There."},
    ]
    assert text(run(client, "t", "r1", *history, user("u2", "again"))) == "You said again."
    roles = [m["role"] for m in client.settled("t")]
    assert roles == ["user", "assistant", "user", "assistant"]  # a call that a page wrote is not believed


def test_interrupts_are_answered_by_the_next_run(client: PageClient, shop: Shop) -> None:
    finished = run(client, "t", "r1", user("u1", "orders"))[-1]
    interrupts = finished["outcome"]["interrupts"]
    assert len(interrupts) == 3
    some = [{"interruptId": interrupts[0]["id"], "status": "resolved", "payload": {"approved": True}}]
    assert run(client, "t", "r2", user("u1", "orders"), resume=some)[-1]["code"] == "decision_outdated"
    assert run(client, "t", "r3", user("u1", "orders"), user("u2", "hello"))[-1]["code"] == "interrupted"
    assert shop.done == []
    answers = [
        {"interruptId": interrupts[0]["id"], "status": "resolved", "payload": {"approved": True}},
        {
            "interruptId": interrupts[1]["id"],
            "status": "resolved",
            "payload": {"approved": True, "editedArgs": {"item": "bun", "amount": 9}},
        },
        {"interruptId": interrupts[2]["id"], "status": "cancelled"},
    ]
    events = run(client, "t", "r4", user("u1", "orders"), resume=answers)
    assert events[-1]["outcome"] == {"type": "success"}
    assert not [event for event in events if event["type"] == "TOOL_CALL_START"]
    assert sorted(shop.done) == ["1 tea", "9 bun"]
    again = run(client, "t", "r5", user("u1", "orders"), resume=answers)
    assert again[-1]["outcome"] == {"type": "success"}
    assert sorted(shop.done) == ["1 tea", "9 bun"]
    for n, payload in (
        (0, {"approved": False}),
        (1, {"approved": True}),
        (1, {"approved": True, "editedArgs": {"item": "bun", "amount": 8}}),
        (2, {"approved": True}),
    ):
        other = [{"interruptId": interrupts[n]["id"], "status": "resolved", "payload": payload}]
        assert run(client, "t", "r6", user("u1", "orders"), resume=other)[-1]["code"] == "decision_outdated"


def test_the_answer_about_a_call_of_a_sub_agent_is_given_once(tmp_path: Path, shop: Shop) -> None:
    helper = Agent(HeldModel(turn), [shop], name="helper")
    script = [[ToolCall("", "ask", {"task": "order"})], "Asked."]
    with page(Agent(ScriptedModel(script), [helper.as_tool("ask", "Ask.")]), tmp_path / "a.db") as client:
        (interrupt,) = run(client, "t", "r1", user("u1", "go"))[-1]["outcome"]["interrupts"]
        edited, other = ({"approved": True, "editedArgs": {"item": item, "amount": 1}} for item in ("milk", "cake"))
        answer = [{"interruptId": interrupt["id"], "status": "resolved", "payload": edited}]
        for id in ("r2", "r3"):
            assert run(client, "t", id, user("u1", "go"), resume=answer)[-1]["outcome"] == {"type": "success"}
        for payload in (other, {"approved": False}):
            late = [{**answer[0], "payload": payload}]
            assert run(client, "t", "r4", user("u1", "go"), resume=late)[-1]["code"] == "decision_outdated"
    assert shop.done == ["1 milk"]


def test_edited_arguments_that_do_not_fit_store_nothing(client: PageClient, shop: Shop) -> None:
    (interrupt,) = run(client, "t", "r1", user("u1", "order"))[-1]["outcome"]["interrupts"]
    wrong = {"approved": True, "editedArgs": {"item": 5}}
    answer = [{"interruptId": interrupt["id"], "status": "resolved", "payload": wrong}]
    assert run(client, "t", "r2", resume=answer)[-1]["code"] == "invalid_arguments"
    assert [call["status"] for call in calls_of(client.settled("t")).values()] == ["waiting"]


def test_an_interrupt_that_does_not_exist(client: PageClient) -> None:
    run(client, "t", "r1", user("u1", "hello"))
    answer = [{"interruptId": "x:1", "status": "resolved", "payload": {"approved": True}}]
    assert run(client, "t", "r2", resume=answer)[-1]["code"] == "unknown_interrupt"


@pytest.mark.skipif(
    not NPM or shutil.which("node") is None, reason="AGENTKIT_PAGE_NPM names no folder with @ag-ui/client, or no node"
)
def test_the_client_of_ag_ui_under_node(tmp_path: Path) -> None:
    def script(said: str, before: int) -> Any:
        return turn("order" if said == "Hi" else said, before)

    shop, program = Shop(), Path(__file__).parents[2] / "support" / "page_clients.mjs"
    with page(Agent(HeldModel(script), [shop]), tmp_path / "a.db") as client:
        decision = {"approved": True, "editedArgs": {"item": "milk", "amount": 1}}
        job = json.dumps({"url": f"{client.url}/ag-ui", "protocol": "ag-ui", "decision": decision})
        ran = subprocess.run(["node", program, NPM], input=f"{job}\n", capture_output=True, text=True, timeout=60)
        found = json.loads(ran.stdout)
        assert (found["error"], found["open"], found["warnings"]) == (None, 0, [])
        stored = [(m["role"], m["content"]) for m in client.settled("t", "idle")]
        assert [(m["role"], m["content"]) for m in found["messages"]] == stored
    assert shop.done == ["1 milk"]


def test_a_client_that_leaves_does_not_end_the_run(client: PageClient, shop: Shop) -> None:
    shop.gate.clear()
    body = {"threadId": "t", "runId": "r1", "messages": [user("u1", "slow")]}
    with client.http.stream("POST", "/ag-ui", json=body) as reply:
        next(reply.iter_lines())
        assert shop.entered.wait(30)
    shop.gate.set()
    assert client.settled("t", "idle")[-1]["content"] == "It is done."


def test_the_same_request_during_its_run_joins_it(client: PageClient, shop: Shop) -> None:
    shop.gate.clear()
    found: list[list[Json]] = []
    joined = threading.Event()

    def ask(id: str, began: threading.Event | None = None) -> None:
        other = PageClient(client.url)
        found.append(run(other, "t", id, user("u1", "slow"), began=began))
        other.http.close()

    tabs = [threading.Thread(target=ask, args=about) for about in (("r1",), ("r2", joined))]
    tabs[0].start()
    assert shop.entered.wait(30)
    tabs[1].start()
    assert joined.wait(30)
    shop.gate.set()
    for tab in tabs:
        tab.join(30)
    assert [text(events) for events in found] == ["Wait.It is done."] * 2
    assert shop.done == ["slow one"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"threadId": "a/b", "runId": "r"},
        {"threadId": "a", "runId": "r", "messages": 5},
        {"threadId": "a", "runId": "r", "messages": [{"role": "user", "content": "no id"}]},
        {"threadId": "a", "runId": "r", "resume": [{"interruptId": "x:1", "status": "resolved"}]},
    ],
)
def test_a_wrong_body_is_refused(client: PageClient, body: Json) -> None:
    assert client.http.post("/ag-ui", json=body).status_code == 400
