"""`agentkit run --thread`: whatever state a thread is in, the message is stored, and one answer is printed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from command_line import Say, said
from replay_server import ReplayServer

from agentkit.agent import Agent, RunResult
from agentkit.cli.chat_storage import InThread
from agentkit.errors import ProviderError
from agentkit.messages import ToolCall, UserMessage
from agentkit.testing import ScriptedModel
from agentkit.testing.scripted_model import ScriptedTurn
from agentkit.threads import ThreadManager

TOOLS = """\
from pathlib import Path

from agentkit import openapi_schema


class Post:
    @openapi_schema(requires_approval=True)
    def send(self, to: str) -> str:
        Path("sent").touch()
        return f"sent to {to}"
"""
SEND = ToolCall("c1", "send", {"to": "bob"})

State = Callable[[ThreadManager], Awaitable[None]]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "post_of_run_test.py").write_text(TOOLS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    return tmp_path


async def answered(threads: ThreadManager, *turns: ScriptedTurn) -> RunResult:
    threads.add_tool("post_of_run_test:Post")
    return await threads.say("t", "First.", ScriptedModel(turns))


async def missing(threads: ThreadManager) -> None:
    pass


async def at_rest(threads: ThreadManager) -> None:
    await answered(threads, "Yes.")


async def unanswered(threads: ThreadManager) -> None:
    await threads.create_thread("t", messages="First.")


async def failed(threads: ThreadManager) -> None:
    with pytest.raises(ProviderError):
        await answered(threads, ProviderError("down", kind="connection", provider="x"))


async def waiting(threads: ThreadManager) -> None:
    assert (await answered(threads, SEND)).finish == "approval"


async def approved(threads: ThreadManager) -> None:
    await waiting(threads)
    await threads.approve("t", "c1")


async def denied(threads: ThreadManager) -> None:
    await waiting(threads)
    await threads.deny("t", "c1")


async def busy(threads: ThreadManager) -> None:
    await at_rest(threads)
    await threads.store.acquire("t", "the nightly job", 600)


async def busy_and_waiting(threads: ThreadManager) -> None:
    await waiting(threads)
    await threads.store.acquire("t", "the nightly job", 600)


STATES = [missing, at_rest, unanswered, failed, waiting, approved, denied, busy, busy_and_waiting]


def put(state: State) -> None:
    async def write() -> None:
        async with ThreadManager() as threads:
            await state(threads)

    asyncio.run(write())


def users() -> list[str]:
    async def read() -> list[str]:
        async with ThreadManager() as threads:
            return [m.text for m in await threads.get_llm_messages("t") if isinstance(m, UserMessage)]

    return asyncio.run(read())


def run(say: Say, server: ReplayServer, *more: str) -> tuple[int, str, str]:
    tools = ("--tools", "post_of_run_test:Post")
    return say("run", "Stop!", *more, "--thread", "t", "--model", "openai:m", "--base-url", server.url, *tools)


@pytest.mark.parametrize(
    ("json_lines", "down"), [(False, False), (True, False), (True, True)], ids=["text", "json", "json-down"]
)
@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_the_message_is_stored_and_answered_once(
    say: Say, folder: Path, state: State, *, json_lines: bool, down: bool
) -> None:
    put(state)
    with ReplayServer([] if down else [said("Stopped."), said("Not asked.")]) as server:
        status, out, err = run(say, server, *(["--json"] if json_lines else []))
    assert users() == (["Stop!"] if state is missing else ["First.", "Stop!"])
    assert "from elsewhere>" not in err
    assert not (folder / "sent").exists(), "the message withdrew the call"
    held = state in (busy, busy_and_waiting)
    assert status == int(down or held)
    assert len(server.requests) == int(not held)
    if held:
        assert "not answered here: 'the nightly job' is running this thread" in err
        assert "Your message is saved" in err
    if json_lines:
        ends = [line for line in map(json.loads, out.splitlines()) if line["event"] == "run_ended"]
        assert [end["result"]["text"] for end in ends] == ([] if held else [""] if down else ["Stopped."])
    else:
        assert out == ("" if down or held else "Stopped.\n")


def test_those_who_begin_a_thread_at_once_all_say_their_message() -> None:
    async def begin() -> list[str]:
        async with ThreadManager() as threads:
            agent = Agent(ScriptedModel([]))
            chats = [InThread(threads, "t", agent, print) for _ in range(8)]
            await asyncio.gather(*(chat.say(str(number)) for number, chat in enumerate(chats)))
            return [m.text for m in await threads.get_llm_messages("t") if isinstance(m, UserMessage)]

    assert sorted(asyncio.run(begin())) == list("01234567")
