"""Threads as an application uses them: written to, run, continued by another process, approved, forked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from thread_kit import planned, said

from agentkit.agent import Agent, Budget, Denied, call_hash
from agentkit.errors import ConfigError, ProviderError, ThreadBusy, ThreadExists, ThreadNotFound
from agentkit.events import ApprovalRequired, CallEnd, Event, Finish, SourceEvent, Text, ToolCompleted, ToolStarted
from agentkit.messages import (
    AssistantMessage,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolMessage,
    user,
)
from agentkit.models.base import ModelRequest
from agentkit.processor import ProcessorConfig
from agentkit.testing import ScriptedModel
from agentkit.threads import SQLiteStore, ThreadManager
from agentkit.threads.store import Change
from agentkit.tool.declare import openapi_schema
from agentkit.tool.registry import ToolRegistry

pytestmark = pytest.mark.anyio


class Desk:
    """Tools that remember what they did."""

    def __init__(self) -> None:
        self.made: list[Any] = []
        self.keys: list[str] = []

    @openapi_schema
    async def note(self, text: str) -> str:
        """Take a note."""
        self.made.append(("note", text))
        return f"noted {text}"

    @openapi_schema(requires_approval=True)
    async def send(self, to: str, text: str) -> str:
        """Send a message."""
        self.made.append(("send", to, text))
        return f"sent to {to}"

    @openapi_schema(terminates=True)
    async def ask(self, text: str) -> str:
        """Ask the user."""
        self.made.append(("ask", text))
        return "asked"

    @openapi_schema
    async def slow(self, text: str) -> str:
        """Take a while."""
        self.made.append(("slow", text))
        await asyncio.sleep(30)
        return "at last"


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
async def threads(tmp_path: Path, desk: Desk) -> AsyncIterator[ThreadManager]:
    manager = ThreadManager(SQLiteStore(tmp_path / "chat.db", durability="process"), ToolRegistry(desk))
    yield manager
    await manager.aclose()


NOTE = ToolCall("c1", "note", {"text": "a"})
SEND = ToolCall("c2", "send", {"to": "Ada", "text": "hi"}, raw='{"to": "Ada", "text": "hi"}')


async def test_a_conversation_goes_on_in_another_process(tmp_path: Path, desk: Desk) -> None:
    first = ThreadManager(tmp_path / "chat.db", ToolRegistry(desk))
    thread = await first.create_thread(messages="Note a.")
    result = await first.run_thread(thread, "Be brief.", ScriptedModel([NOTE, "Noted."])).complete()
    assert (result.finish, result.text) == ("stop", "Noted.")
    await first.aclose()

    second = ThreadManager(tmp_path / "chat.db", ToolRegistry(desk))
    await second.add_message(thread, "Thanks.")
    model = ScriptedModel(["Welcome."])
    await second.run_thread(thread, "Be brief.", model).complete()
    assert said(await second.get_llm_messages(thread)) == [
        "user: Note a.",
        "note {'text': 'a'}",
        "= ok: noted a",
        "assistant: Noted.",
        "user: Thanks.",
        "assistant: Welcome.",
    ]
    assert [type(m).__name__ for m in model.requests[0].messages] == [
        "SystemMessage",
        "UserMessage",
        "AssistantMessage",
        "ToolMessage",
        "AssistantMessage",
        "UserMessage",
    ]
    await second.aclose()


async def test_a_message_sent_again_under_its_client_id_changes_nothing(threads: ThreadManager) -> None:
    thread = await threads.create_thread()
    places = [await threads.add_message(thread, "Hi", client_id="m1") for _ in range(3)]
    assert places == [0, 0, 0]
    assert said(await threads.get_llm_messages(thread)) == ["user: Hi"]


async def test_a_message_said_again_under_its_client_id_is_not_added_again(threads: ThreadManager) -> None:
    """Also if the thread was busy the first time: the message is stored, and the run in progress answers it."""
    asked, gate = asyncio.Event(), asyncio.Event()

    async def wait(request: ModelRequest) -> str:
        asked.set()
        await gate.wait()
        return "Hello."

    thread = await threads.create_thread(messages="Go")
    first = asyncio.create_task(threads.run_thread(thread, model=ScriptedModel(wait)).complete())
    await asked.wait()
    for _ in range(2):
        with pytest.raises(ThreadBusy):
            await threads.say(thread, "Ada?", ScriptedModel([]), client_id="m1")
    gate.set()
    await first
    assert (await threads.say(thread, "Ada?", ScriptedModel([]), client_id="m1")).text == "Hello."
    assert said(await threads.get_llm_messages(thread)).count("user: Ada?") == 1


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@pytest.mark.parametrize(
    "tool", [add, Desk, Desk(), [add, Desk], "agentkit_tools.tasks:TaskList", ToolRegistry(add).tools["add"]]
)
async def test_whatever_an_agent_accepts_as_a_tool_can_be_added(threads: ThreadManager, tool: Any) -> None:
    ours = ThreadManager(threads.store)
    added = [bound.name for bound in ours.add_tool(tool)]
    assert added == list(ours.registry.tools) == list(Agent(ScriptedModel([]), [tool]).registry.tools)


async def test_a_finished_thread_is_not_run_again(threads: ThreadManager) -> None:
    thread = await threads.create_thread(messages="Hi")
    await threads.run_thread(thread, model=ScriptedModel(["Hello."])).complete()
    model = ScriptedModel(["Never said."])
    assert (await threads.resume_thread(thread, model=model).complete()).finish == "stop"
    assert model.requests == []


async def test_a_thread_must_be_there_and_hold_a_message(threads: ThreadManager) -> None:
    with pytest.raises(ThreadNotFound, match="'nowhere'"):
        await threads.run_thread("nowhere", model=ScriptedModel([])).complete()
    thread = await threads.create_thread("empty")
    with pytest.raises(ConfigError, match="has no message to answer"):
        await threads.run_thread(thread, model=ScriptedModel([])).complete()
    with pytest.raises(ThreadExists):
        await threads.create_thread("empty")
    with pytest.raises(ConfigError, match="system_prompt"):
        await threads.create_thread(messages=[SystemMessage("Be brief.")])


class Recorded(SQLiteStore):
    """A store that remembers what each commit changed."""

    commits: list[list[str]]

    async def commit(self, thread_id: str, changes: Sequence[Change], *, fence: int | None = None) -> tuple[int, ...]:
        self.commits.append([type(change).__name__ for change in changes])
        return await super().commit(thread_id, changes, fence=fence)


@pytest.mark.parametrize(
    ("late", "commits"),
    [
        (False, [["Append"], ["Revise", "Move"], ["Append"]]),
        (True, [["Append"], ["Move"], ["Revise"], ["Append"]]),
    ],
)
async def test_the_last_answer_is_written_with_the_response_if_that_is_over(
    tmp_path: Path, desk: Desk, late: bool, commits: list[list[str]]
) -> None:
    noted = asyncio.Event()

    class Slow(ScriptedModel):
        async def stream(self, request: ModelRequest) -> AsyncIterator[SourceEvent]:
            async for event in super().stream(request):
                if late and len(self.requests) == 1 and isinstance(event, Finish):
                    await noted.wait()
                yield event

    store = Recorded(tmp_path / "chat.db", durability="process")
    store.commits = []
    threads = ThreadManager(store, ToolRegistry(desk))
    thread = await threads.create_thread(messages="Go")
    config = ProcessorConfig(execute="stream")
    async for event in threads.run_thread(thread, model=Slow([NOTE, "Done."]), processor_config=config):
        if isinstance(event, ToolCompleted):
            noted.set()
    assert store.commits == commits
    log = await threads.get_log(thread)
    assert [e.body.get("response", {}).get("finish") for e in log.entries] == [None, "tool_calls", "stop"]
    assert [(c.status, c.attempts) for c in log.calls] == [("answered", 1)]
    await threads.aclose()


async def test_two_runners_of_one_thread(threads: ThreadManager) -> None:
    thread = await threads.create_thread(messages="Go")
    asked, gate = asyncio.Event(), asyncio.Event()

    async def wait(request: ModelRequest) -> str:
        asked.set()
        await gate.wait()
        return "Done."

    first = asyncio.create_task(threads.run_thread(thread, model=ScriptedModel(wait)).complete())
    await asked.wait()
    with pytest.raises(ThreadBusy, match="it is already being run"):
        await threads.run_thread(thread, model=ScriptedModel(["No."])).complete()
    with pytest.raises(ThreadBusy):
        await threads.delete_thread(thread)
    gate.set()
    assert (await first).text == "Done."
    await threads.delete_thread(thread)


async def test_a_message_that_arrives_while_tools_run_is_sent_with_the_next_request(threads: ThreadManager) -> None:
    thread = await threads.create_thread(messages="Go")
    model = ScriptedModel([NOTE, "Stopped."])
    async for event in threads.run_thread(thread, model=model):
        if isinstance(event, ToolStarted):
            await threads.add_message(thread, "Wait!")
    assert said(list(model.requests[1].messages)) == [
        "user: Go",
        "note {'text': 'a'}",
        "= ok: noted a",
        "user: Wait!",
    ]
    assert said(await threads.get_llm_messages(thread))[-2:] == ["user: Wait!", "assistant: Stopped."]


async def test_a_temporary_message_is_sent_and_not_kept(threads: ThreadManager) -> None:
    thread = await threads.create_thread(messages="What do you see?")
    model = ScriptedModel(["A page."])
    await threads.run_thread(thread, model=model, temporary_message="The browser shows: a page").complete()
    assert said(list(model.requests[0].messages)) == ["user: The browser shows: a page", "user: What do you see?"]
    assert said(await threads.get_llm_messages(thread)) == ["user: What do you see?", "assistant: A page."]


async def test_a_temporary_message_on_a_finished_thread_is_the_one_to_answer(threads: ThreadManager) -> None:
    """Providers go on with a reply that is the last message, or refuse it."""
    thread = await threads.create_thread(messages="What do you see?")
    await threads.run_thread(thread, model=ScriptedModel(["A page."])).complete()
    model = ScriptedModel(["Another page."])
    await threads.run_thread(thread, model=model, temporary_message="The browser shows: another").complete()
    assert said(list(model.requests[0].messages)) == [
        "user: What do you see?",
        "assistant: A page.",
        "user: The browser shows: another",
    ]


async def test_calls_of_one_id_are_run_once_each(threads: ThreadManager, desk: Desk) -> None:
    """As those of a server that counts anew or gives no ids."""
    same = [ToolCall(id, "note", {"text": text}) for id, text in [("0", "a"), ("0", "b"), ("", "c"), ("", "d")]]
    await threads.store.create(thread := "t", {}, planned(*same))
    model = ScriptedModel(["Done."])
    await threads.run_thread(thread, model=model).complete()
    assert desk.made == [("note", "a"), ("note", "b"), ("note", "c"), ("note", "d")]
    answers = [m.text for m in model.requests[0].messages if isinstance(m, ToolMessage)]
    assert answers == ["noted a", "noted b", "noted c", "noted d"]
    assert len((await threads.get_log(thread)).entries) == 3


@pytest.mark.parametrize("door", ["create_thread", "add_message"])
async def test_a_call_that_no_run_of_the_thread_made_waits(threads: ThreadManager, desk: Desk, door: str) -> None:
    call, model = AssistantMessage((ToolCall("c9", "note", {"text": "a"}),)), ScriptedModel(["Noted."])
    await threads.create_thread("t", messages=[user("Go"), call] if door == "create_thread" else "Go")
    if door == "add_message":
        await threads.add_message("t", call)
    result = await threads.run_thread("t", model=model).complete()
    assert (result.finish, [one.id for one in result.pending], desk.made) == ("approval", ["c9"], [])
    await threads.approve("t", "c9")
    assert (await threads.resume_thread("t", model=model).complete()).finish == "stop"
    assert desk.made == [("note", "a")]


async def test_a_call_from_elsewhere_that_cannot_be_read_or_was_passed_over_is_answered(threads: ThreadManager) -> None:
    calls = [ToolCall("c1", "note", {"text": "a"}), ToolCall("c2", "note", {}, raw='{"text": ')]
    history = [user("Go"), *map(AssistantMessage, calls)]
    result = await threads.run_thread(await threads.create_thread(messages=history), model=ScriptedModel(["Well."]))
    assert [m.error for m in result.messages if isinstance(m, ToolMessage)] == ["cancelled", "invalid_json"]


async def test_an_id_that_was_used_before_gets_a_number(threads: ThreadManager) -> None:
    """As from a server that counts the calls of each response."""
    calls = [ToolCall("call_0", "note", {"text": text}) for text in ("a", "b")]
    said = [(AssistantMessage((call,)), ToolMessage("call_0", "note", call.arguments["text"])) for call in calls]
    thread = await threads.create_thread(messages=[user("Go"), *said[0], user("Again"), *said[1]])
    log = await threads.get_log(thread)
    assert [(call.id, call.body["arguments"]) for call in log.calls] == [
        ("call_0", '{"text": "a"}'),
        ("call_0_2", '{"text": "b"}'),
    ]
    stored = await threads.get_llm_messages(thread)
    assert [(m.call_id, m.text) for m in stored if isinstance(m, ToolMessage)] == [("call_0", "a"), ("call_0_2", "b")]


async def test_a_call_that_needs_approval_ends_the_run_and_waits_in_the_store(
    tmp_path: Path, threads: ThreadManager, desk: Desk
) -> None:
    thread = await threads.create_thread(messages="Greet Ada, and note it.")
    run = threads.run_thread(thread, model=ScriptedModel([[SEND, NOTE]]))
    events = [e async for e in run]
    assert [e.call.name for e in events if isinstance(e, ApprovalRequired)] == ["send"]
    assert run.result.finish == "approval"
    assert run.result.pending == (SEND,)
    assert desk.made == [("note", "a")]
    assert (await threads.run_thread(thread, model=ScriptedModel([])).complete()).finish == "approval"

    elsewhere = ThreadManager(SQLiteStore(tmp_path / "chat.db"), ToolRegistry(desk))
    (call,) = await elsewhere.pending(thread)
    await elsewhere.approve(thread, call.id, seen=call_hash(call), by="Eve")
    result = await elsewhere.resume_thread(thread, model=ScriptedModel(["Greeted."])).complete()
    assert result.finish == "stop"
    assert desk.made == [("note", "a"), ("send", "Ada", "hi")]
    assert said(await elsewhere.get_llm_messages(thread)) == [
        "user: Greet Ada, and note it.",
        "send {'to': 'Ada', 'text': 'hi'}",
        "note {'text': 'a'}",
        "= ok: sent to Ada",
        "= ok: noted a",
        "assistant: Greeted.",
    ]
    await elsewhere.aclose()


async def test_a_run_without_the_tool_of_an_approved_call_does_not_spend_the_approval(
    tmp_path: Path, threads: ThreadManager, desk: Desk
) -> None:
    thread = await threads.create_thread(messages="Greet Ada.")
    await threads.run_thread(thread, model=ScriptedModel([SEND])).complete()
    await threads.approve(thread, "c2")

    forgot = ThreadManager(SQLiteStore(tmp_path / "chat.db"))
    before = await forgot.get_log(thread)
    with pytest.raises(ConfigError, match=r"call 'c2' is approved, but this run has no tool 'send' .*\(tools: none\)"):
        await forgot.resume_thread(thread, model=ScriptedModel([])).complete()
    assert await forgot.get_log(thread) == before

    assert (await threads.resume_thread(thread, model=ScriptedModel(["Greeted."])).complete()).text == "Greeted."
    assert desk.made == [("send", "Ada", "hi")]
    await forgot.aclose()


async def test_a_user_who_writes_again_frees_a_thread_from_a_tool_that_is_gone(tmp_path: Path, desk: Desk) -> None:
    threads = ThreadManager(SQLiteStore(tmp_path / "chat.db"), ToolRegistry(desk))
    thread = await threads.create_thread(messages="Greet Ada.")
    await threads.run_thread(thread, model=ScriptedModel([SEND])).complete()
    await threads.approve(thread, "c2")
    threads.registry.unregister("send")
    await threads.add_message(thread, "Leave it.")
    assert (await threads.run_thread(thread, model=ScriptedModel(["Well."])).complete()).text == "Well."
    assert desk.made == []
    await threads.aclose()


async def test_a_denied_call_is_not_run_and_the_model_reads_why(threads: ThreadManager, desk: Desk) -> None:
    thread = await threads.create_thread(messages="Greet Ada.")
    await threads.run_thread(thread, model=ScriptedModel([SEND])).complete()
    await threads.deny(thread, "c2", "Ada is asleep")
    await threads.resume_thread(thread, model=ScriptedModel(["Later, then."])).complete()
    assert desk.made == []
    assert said(await threads.get_llm_messages(thread))[2:] == [
        "= denied: not run: the user denied this call: Ada is asleep",
        "assistant: Later, then.",
    ]


async def test_an_approval_may_change_the_arguments_and_the_model_is_told(threads: ThreadManager, desk: Desk) -> None:
    thread = await threads.create_thread(messages="Greet Ada.")
    await threads.run_thread(thread, model=ScriptedModel([SEND])).complete()
    await threads.approve(thread, "c2", arguments={"to": "Ada", "text": "hello"})
    await threads.resume_thread(thread, model=ScriptedModel(["Done."])).complete()
    assert desk.made == [("send", "Ada", "hello")]
    assert said(await threads.get_llm_messages(thread))[1:3] == [
        "send {'to': 'Ada', 'text': 'hi'}",
        '= ok: The user changed the arguments before the call was run: {"to": "Ada", "text": "hello"}\nsent to Ada',
    ]


async def test_an_approval_is_bound_to_the_call_that_was_shown(threads: ThreadManager) -> None:
    thread = await threads.create_thread(messages="Greet Ada.")
    await threads.run_thread(thread, model=ScriptedModel([SEND])).complete()
    seen = call_hash(ToolCall("c2", "send", {"to": "Bob", "text": "hi"}))
    with pytest.raises(ConfigError, match="is not the one that was shown"):
        await threads.approve(thread, "c2", seen=seen)
    with pytest.raises(ConfigError, match="waiting: 'c2'"):
        await threads.approve(thread, "c7")
    await threads.approve(thread, "c2")
    with pytest.raises(ConfigError, match="no call waits"):
        await threads.deny(thread, "c2")


async def test_a_user_who_writes_again_takes_a_waiting_call_back(threads: ThreadManager, desk: Desk) -> None:
    thread = await threads.create_thread(messages="Greet Ada.")
    await threads.run_thread(thread, model=ScriptedModel([SEND])).complete()
    await threads.add_message(thread, "Never mind.")
    await threads.run_thread(thread, model=ScriptedModel(["All right."])).complete()
    assert desk.made == []
    assert said(await threads.get_llm_messages(thread))[2:] == [
        "= cancelled: not run: the user wrote again before this call started",
        "user: Never mind.",
        "assistant: All right.",
    ]


async def test_a_call_beyond_the_budget_is_answered_in_the_store(threads: ThreadManager, desk: Desk) -> None:
    thread = await threads.create_thread(messages=["Note it all."])
    model = ScriptedModel([[ToolCall(f"c{n}", "note", {"text": str(n)}) for n in range(3)]])
    result = await threads.run_thread(thread, model=model, budget=Budget(tool_calls=2))
    kept = [m for m in await threads.get_llm_messages(thread) if isinstance(m, ToolMessage)]
    assert (result.finish, [m.error for m in kept]) == ("call_budget", [None, None, "limit"])
    assert (await threads.run_thread(thread, model=ScriptedModel(["Done."]))).text == "Done."


async def test_an_approved_call_beyond_the_budget_waits_for_another_run(threads: ThreadManager, desk: Desk) -> None:
    thread = await threads.create_thread(messages=["Send both."])
    calls = [ToolCall(f"c{n}", "send", {"to": str(n), "text": ""}) for n in range(2)]
    await threads.run_thread(thread, model=ScriptedModel([calls]))
    for call in calls:
        await threads.approve(thread, call.id)
    result = await threads.run_thread(thread, model=ScriptedModel([]), budget=Budget(tool_calls=1))
    assert (result.finish, desk.made) == ("call_budget", [("send", "0", "")])
    await threads.run_thread(thread, model=ScriptedModel(["Done."]))
    assert desk.made == [("send", "0", ""), ("send", "1", "")]


async def test_s22_a_terminating_tool_ends_the_run(threads: ThreadManager, desk: Desk) -> None:
    thread = await threads.create_thread(messages="Go")
    calls = [NOTE, ToolCall("c2", "ask", {"text": "q?"}), ToolCall("c3", "note", {"text": "b"})]
    run = threads.run_thread(thread, model=ScriptedModel([calls, "never"]))
    assert (await run.complete()).finish == "agent_terminated"
    assert desk.made == [("note", "a"), ("ask", "q?")]
    assert said(await threads.get_llm_messages(thread))[-1].startswith("= skipped: ")
    assert (await threads.resume_thread(thread, model=ScriptedModel([])).complete()).finish == "agent_terminated"


async def test_s23_a_provider_that_breaks_off_leaves_a_valid_thread(threads: ThreadManager, desk: Desk) -> None:
    thread = await threads.create_thread(messages="Go")
    error = ProviderError("overloaded", kind="overloaded", provider="scripted")
    run = threads.run_thread(thread, model=ScriptedModel([["Let me see", NOTE, error]]))
    with pytest.raises(ProviderError):
        await run.complete()
    assert run.result.finish == "error"
    assert said(await threads.get_llm_messages(thread)) == [
        "user: Go",
        "assistant: Let me see",
        "note {'text': 'a'}",
        "= ok: noted a",
    ]
    await threads.resume_thread(thread, model=ScriptedModel(["Noted."])).complete()
    assert said(await threads.get_llm_messages(thread))[-1] == "assistant: Noted."
    assert desk.made == [("note", "a")]


async def test_s23_a_consumer_who_leaves_cancels_the_tools_and_all_is_saved(threads: ThreadManager) -> None:
    thread = await threads.create_thread(messages="Go")
    run = threads.run_thread(thread, model=ScriptedModel([ToolCall("c1", "slow", {"text": "a"})]))
    async for event in run:
        if isinstance(event, ToolStarted):
            break
    await run.aclose()
    assert run.result.finish == "cancelled"
    assert said(await threads.get_llm_messages(thread))[2].startswith("= cancelled: ")
    assert (await threads.run_thread(thread, model=ScriptedModel(["Back."])).complete()).text == "Back."


async def test_a_server_that_cancels_its_requests_and_closes_the_manager_loses_nothing(
    tmp_path: Path, desk: Desk
) -> None:
    """As uvicorn does on SIGTERM: it cancels the tasks, and ends the lifespan without waiting for them."""
    manager = ThreadManager(tmp_path / "chat.db", ToolRegistry(desk))
    thread = await manager.create_thread(messages="Take your time.")
    started = asyncio.Event()

    async def request() -> None:
        slow = ToolCall("c1", "slow", {"text": "a"})
        async with manager.run_thread(thread, model=ScriptedModel([["Let me see.", slow]])) as run:
            async for event in run:
                if isinstance(event, ToolStarted):
                    started.set()

    task = asyncio.create_task(request())
    await started.wait()
    task.cancel()
    await manager.aclose()
    with pytest.raises(asyncio.CancelledError):
        await task

    async with ThreadManager(tmp_path / "chat.db", ToolRegistry(desk)) as later:
        assert said(await later.get_llm_messages(thread))[1:3] == ["assistant: Let me see.", "slow {'text': 'a'}"]
        assert [call.status for call in (await later.get_log(thread)).calls] == ["answered"]


@pytest.mark.parametrize("by", ["method", "token", "task"])
async def test_cancelling_a_run_saves_everything_soon(threads: ThreadManager, by: str) -> None:
    thread = await threads.create_thread(messages="Go")
    token = asyncio.Event()
    model = ScriptedModel([["Hm.", ToolCall("c1", "slow", {"text": "a"})]])
    run = threads.run_thread(thread, model=model, cancel=token)
    task = asyncio.create_task(run.complete())
    while not any(c.status == "started" for c in (await threads.get_log(thread)).calls):  # noqa: ASYNC110
        await asyncio.sleep(0.005)
    clock = asyncio.get_running_loop().time
    since = clock()
    {"method": run.cancel, "token": token.set, "task": task.cancel}[by]()
    await asyncio.wait([task])
    assert clock() - since < 20, "the tool takes 30 s"
    assert task.cancelled() == (by == "task")
    assert run.result.finish == "cancelled"
    (call,) = (await threads.get_log(thread)).calls
    assert call.status == "answered"
    assert said(await threads.get_llm_messages(thread))[1] == "assistant: Hm."
    thread_busy = threads.run_thread(thread, model=ScriptedModel(["Back."]))
    assert (await thread_busy.complete()).text == "Back."


async def test_a_thread_may_change_model_and_format_between_turns(threads: ThreadManager, desk: Desk) -> None:
    thread = await threads.create_thread(messages="Note a.")
    await threads.run_thread(thread, model=ScriptedModel([NOTE, "Noted."])).complete()
    await threads.add_message(thread, "Note b.")
    xml = ScriptedModel([ToolCall("", "note", {"text": "b"}), "Noted, too."], format="invoke")
    await threads.run_thread(thread, model=xml).complete()
    await threads.add_message(thread, "Note c.")
    await threads.run_thread(thread, model=ScriptedModel([ToolCall("c1", "note", {"text": "c"}), "Yes."])).complete()
    assert desk.made == [("note", "a"), ("note", "b"), ("note", "c")]
    calls = [c for m in await threads.get_llm_messages(thread) if isinstance(m, AssistantMessage) for c in m.calls]
    assert [c.format for c in calls] == [None, "invoke", None]
    assert len({c.id for c in calls}) == 3


@pytest.mark.parametrize("run", [False, True], ids=["before the call ran", "after it ran"])
async def test_a_fork_of_a_thread_in_which_a_call_was_edited_can_be_read(
    threads: ThreadManager, desk: Desk, run: bool
) -> None:
    thread = await threads.create_thread(messages="Greet Ada.")
    await threads.run_thread(thread, model=ScriptedModel([SEND])).complete()
    await threads.approve(thread, "c2", arguments={"to": "Bob", "text": "hello"})
    if run:
        await threads.resume_thread(thread, model=ScriptedModel(["Greeted."])).complete()
    copy = await threads.fork_thread(thread)
    said = await threads.get_llm_messages(copy)
    assert [m.error for m in said if isinstance(m, ToolMessage) and m.call_id == "c2"] == [None if run else "cancelled"]
    if run:
        assert said == await threads.get_llm_messages(thread)


async def test_a_fork_goes_its_own_way_and_runs_no_call_of_the_first(threads: ThreadManager, desk: Desk) -> None:
    thread = await threads.create_thread(messages="Greet Ada.", metadata={"user": 7})
    await threads.run_thread(thread, model=ScriptedModel([SEND])).complete()
    copy = await threads.fork_thread(thread)
    assert (await threads.get_thread(copy)).metadata == {"user": 7, "forked_from": thread}
    await threads.run_thread(copy, model=ScriptedModel(["Never mind."])).complete()
    assert said(await threads.get_llm_messages(copy))[2].startswith("= cancelled: not run: the conversation was copied")
    await threads.approve(thread, "c2")
    await threads.resume_thread(thread, model=ScriptedModel(["Sent."])).complete()
    assert desk.made == [("send", "Ada", "hi")]
    start = await threads.fork_thread(thread, until=0)
    assert said(await threads.get_llm_messages(start)) == ["user: Greet Ada."]


async def test_a_copy_taken_while_a_tool_runs_tells_that_it_had_started(threads: ThreadManager) -> None:
    copies: list[str] = []

    async def copy() -> str:
        """Copy the thread."""
        copies.append(await threads.fork_thread("t"))
        return "copied"

    threads.add_tool(copy)
    await threads.create_thread("t", messages="Go.")
    calls = [ToolCall("c1", "copy", {}), ToolCall("c2", "note", {"text": "a"})]
    one_by_one = ProcessorConfig(strategy="sequential", execute="end")
    await threads.run_thread("t", model=ScriptedModel([calls, "Done."]), processor_config=one_by_one).complete()
    first, second = [m for m in await threads.get_llm_messages(copies[0]) if isinstance(m, ToolMessage)]
    assert (first.error, "its effects may have happened" in first.text) == ("interrupted", True)
    assert (second.error, "effects" in second.text) == ("cancelled", False)


async def test_a_result_from_outside_answers_its_call(threads: ThreadManager) -> None:
    history = [user("Go"), AssistantMessage((NOTE, SEND)), ToolMessage("c1", "note", (TextPart("noted"),))]
    thread = await threads.create_thread(messages=history)
    await threads.add_message(thread, ToolMessage("c2", "send", (TextPart("sent by hand"),)))
    assert said(await threads.get_llm_messages(thread))[-2:] == ["= ok: noted", "= ok: sent by hand"]
    with pytest.raises(ConfigError, match="'c2'"):
        await threads.add_message(thread, ToolMessage("c2", "send", (TextPart("again"),)))


async def test_the_events_of_a_run_are_those_of_an_agent(threads: ThreadManager) -> None:
    thread = await threads.create_thread(messages="Note a.")
    events: list[Event] = [e async for e in threads.run_thread(thread, model=ScriptedModel([NOTE, "Noted."]))]
    kinds = [type(e) for e in events if not isinstance(e, Finish)]
    assert [k for k in kinds if k in (CallEnd, ToolStarted, ToolCompleted, Text)] == [
        CallEnd,
        ToolStarted,
        ToolCompleted,
        Text,
    ]


def test_a_denial_without_a_reason() -> None:
    assert Denied().reason == ""


# ---------------------------------------------------------------- structured output


@dataclass
class City:
    name: str
    people: int


UNFIT = """\
the reply does not match the schema:
- /people: expected integer, found nothing: it is required
Write the whole reply again, as one JSON value and nothing else."""
ULM = '{"name": "Ulm", "people": 128000}'


async def test_what_was_wrong_with_a_reply_is_kept(threads: ThreadManager) -> None:
    thread = await threads.create_thread(messages="Note a, then tell me about Ulm.")
    model = ScriptedModel([NOTE, '{"name": "Ulm"}', ULM])
    result = await threads.run_thread(thread, model=model, output_type=City).complete()
    assert (result.output, result.finish) == (City("Ulm", 128_000), "stop")
    assert said(await threads.get_llm_messages(thread)) == [
        "user: Note a, then tell me about Ulm.",
        "note {'text': 'a'}",
        "= ok: noted a",
        'assistant: {"name": "Ulm"}',
        f"user: {UNFIT}",
        f"assistant: {ULM}",
    ]


async def test_a_reply_that_is_there_already_is_read_and_not_asked_for_again(threads: ThreadManager) -> None:
    thread = await threads.create_thread(messages="Ulm?")
    await threads.run_thread(thread, model=ScriptedModel([ULM])).complete()
    with ScriptedModel([]) as model:
        result = await threads.run_thread(thread, model=model, output_type=City).complete()
    assert (result.output, result.finish, result.turns) == (City("Ulm", 128_000), "stop", 0)


async def test_a_reply_that_is_there_and_does_not_fit_is_asked_for_again(threads: ThreadManager) -> None:
    """As after a crash between the reply and the question for a better one."""
    thread = await threads.create_thread(messages="Ulm?")
    await threads.run_thread(thread, model=ScriptedModel(["Ulm!"])).complete()
    with ScriptedModel([ULM]) as model:
        result = await threads.run_thread(thread, model=model, output_type=City).complete()
    assert result.output == City("Ulm", 128_000)


async def test_no_question_is_left_in_a_thread_that_nobody_answers(threads: ThreadManager) -> None:
    thread = await threads.create_thread(messages="Ulm?")
    model = ScriptedModel(["Ulm!", "Ulm!!"])
    result = await threads.run_thread(thread, model=model, output_type=City, output_retries=1).complete()
    assert (result.finish, result.output_error) == (
        "invalid_output",
        "the reply does not match the schema:\n- expected one JSON value, found no JSON in the reply",
    )
    assert said(await threads.get_llm_messages(thread))[-1] == "assistant: Ulm!!"


async def test_a_message_that_arrives_while_the_model_answers_is_answered_by_the_same_run(
    threads: ThreadManager,
) -> None:
    thread = await threads.create_thread(messages="Go")
    said_to: list[list[str]] = []

    async def answer(request: ModelRequest) -> str:
        said_to.append(said(list(request.messages)))
        if len(said_to) == 1:
            await threads.add_message(thread, "And bread!")
        return ["Milk.", "And bread."][len(said_to) - 1]

    result = await threads.run_thread(thread, model=ScriptedModel(answer)).complete()
    assert result.text == "And bread."
    conversation = ["user: Go", "assistant: Milk.", "user: And bread!"]
    assert said_to == [["user: Go"], conversation]
    assert said(await threads.get_llm_messages(thread)) == [*conversation, "assistant: And bread."]
    assert [e.body["message"]["role"] for e in (await threads.get_log(thread)).entries] == [
        "user",
        "user",
        "assistant",
        "assistant",
    ]


async def test_what_is_no_message_is_refused(threads: ThreadManager) -> None:
    with pytest.raises(ConfigError, match="write user"):
        await threads.create_thread(messages=[5])  # type: ignore[list-item]


async def test_a_result_as_a_dict_answers_the_call_in_the_store(threads: ThreadManager) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    thread = await threads.create_thread(messages=["Look.", {"role": "assistant", "tool_calls": [call]}])
    await threads.add_message(thread, {"role": "tool", "tool_call_id": "c1", "content": "A cat."})
    assert await threads.get_llm_messages(thread) == [
        user("Look."),
        AssistantMessage(ToolCall("c1", "look", {}, None, "{}")),
        ToolMessage("c1", "look", "A cat."),
    ]
