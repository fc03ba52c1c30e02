"""Runs as the real clients of pages see them, under Node: `@ag-ui/client`, and the chat of `ai` 6.

`AGENTKIT_PAGE_NPM` names a folder in which `npm install @ag-ui/client@1 ai@6` was run.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from agentkit import Agent, ThreadManager, openapi_schema
from agentkit.agent import Approved, RunStream
from agentkit.errors import ProviderError
from agentkit.events import CallEnd, CallStart, ModelSelected, Thinking
from agentkit.gateway.events import (
    HEADERS,
    PageRequest,
    ag_ui_stream,
    ai_sdk_stream,
    chat_input_of,
    check_decisions,
    input_of,
)
from agentkit.messages import ToolCall
from agentkit.processor import ProcessorConfig
from agentkit.testing import ScriptedModel

FOLDER: Final = os.environ.get("AGENTKIT_PAGE_NPM", "")
PROGRAM: Final = Path(__file__).parents[2] / "support" / "page_clients.mjs"

pytestmark = pytest.mark.skipif(
    not FOLDER or shutil.which("node") is None,
    reason="AGENTKIT_PAGE_NPM does not name a folder with @ag-ui/client and ai, or node is missing",
)


class Tools:
    @openapi_schema()
    def add(self, a: int, b: int) -> dict[str, int]:
        """Add two numbers."""
        return {"sum": a + b}

    @openapi_schema()
    def fail(self) -> str:
        """Fail."""
        raise ValueError("no such file")

    @openapi_schema(requires_approval=True)
    def pay(self, sum: int) -> str:
        """Pay."""
        return f"paid {sum}"


OVERLOADED: Final = ProviderError("the server is overloaded", kind="overloaded", provider="openai")
SCRIPTS: Final[Mapping[str, list[Any]]] = {
    "text": [["Hel", "lo."]],
    "thinking": [[Thinking("Say "), Thinking("hello."), "Hello."]],
    "two_calls": [
        ["Both.", ToolCall("c1", "add", {"a": 1, "b": 2}), ToolCall("c2", "add", {"a": 3, "b": 4})],
        "3 and 7.",
    ],
    "failed": [[ToolCall("c1", "fail"), ToolCall("c2", "nothing")], "Neither."],
    "damaged": [[CallStart(0, "add", "c1"), "…"], "Once more."],
    "approval": [["I pay.", ToolCall("c1", "pay", {"sum": 5}), ToolCall("c2", "pay", {"sum": 6})], "Done."],
    "error": [["Half an", OVERLOADED]],
    "error_later": [[ToolCall("c1", "add", {"a": 1, "b": 2})], ["Half an", OVERLOADED]],
    "chain": [
        [ModelSelected("openai:b", ("openai:a: busy",)), "I pay.", ToolCall("c1", "pay", {"sum": 5})],
        [ModelSelected("openai:a"), "Done."],
    ],
    "whole_call": [["One.", CallEnd(0, ToolCall("c1", "add", {"a": 1, "b": 2}))], "3."],
}


class PageServer:
    """A server of an agent's author: one thread, which answers pages by the public functions alone."""

    def __init__(self, threads: ThreadManager, script: list[Any]) -> None:
        self.threads = threads
        config = ProcessorConfig(attended=True)
        self.agent = Agent(ScriptedModel(script, chunk=3), tools=[Tools()], config=config)

    async def start(self, asked: PageRequest, continues: bool) -> RunStream[Any]:
        threads, thread = self.threads, asked.thread_id
        await threads.create_thread(thread, exist_ok=True)
        check_decisions(asked.decisions, await threads.pending(thread))
        for call, seen, decision in asked.decisions:
            if isinstance(decision, Approved):
                await threads.approve(thread, call, arguments=decision.arguments, seen=seen)
            else:
                await threads.deny(thread, call, decision.reason)
        if continues:
            return threads.run_agent(thread, self.agent)
        ((id, message),) = asked.messages
        return threads.say_stream(thread, message, agent=self.agent, client_id=id)

    async def ag_ui(self, body: dict[str, Any]) -> AsyncIterator[bytes]:
        asked = input_of(body)
        async for piece in ag_ui_stream(await self.start(asked, bool(asked.decisions)), asked.thread_id, asked.run_id):
            yield piece

    async def ai_sdk(self, body: dict[str, Any]) -> AsyncIterator[bytes]:
        asked = chat_input_of(body)
        continues = bool(asked.decisions)
        async for piece in ai_sdk_stream(await self.start(asked, continues), continues=continues):
            yield piece

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer), suppress(asyncio.IncompleteReadError):  # Node opens connections in advance
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
            body = json.loads(await reader.readexactly(length))
            headers = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
            writer.write(f"HTTP/1.1 200 OK\r\n{headers}connection: close\r\n\r\n".encode())
            reply: Callable[[dict[str, Any]], AsyncIterator[bytes]] = self.ag_ui if "/ag-ui" in head else self.ai_sdk
            async for piece in reply(body):
                writer.write(piece)
                await writer.drain()


@asynccontextmanager
async def page_server(script: list[Any]) -> AsyncIterator[str]:
    async with ThreadManager(":memory:") as threads:
        server = await asyncio.start_server(PageServer(threads, script).answer, "127.0.0.1", 0)
        async with server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def seen(protocol: str, scenario: str, decision: Any = None) -> dict[str, Any]:
    """What a client has after a run, and one that acts on its decisions."""

    async def run() -> dict[str, Any]:
        async with page_server(SCRIPTS[scenario]) as url:
            job = {"url": f"{url}/{protocol}", "protocol": protocol, "decision": decision}
            node = await asyncio.create_subprocess_exec("node", str(PROGRAM), FOLDER, stdin=-1, stdout=-1, stderr=-1)
            out, err = await asyncio.wait_for(node.communicate(json.dumps(job).encode() + b"\n"), 60)
        assert not err, err.decode()
        found: dict[str, Any] = json.loads(out)
        return found

    return asyncio.run(run())


def words(found: dict[str, Any]) -> list[Any]:
    """What a client of AG-UI has in its messages: texts, and the names of calls."""
    return [
        (
            message["role"],
            message.get("content", ""),
            *(call["function"]["name"] for call in message.get("toolCalls", ())),
        )
        for message in found["messages"][1:]
    ]


def parts(found: dict[str, Any]) -> list[Any]:
    """What a chat of the AI SDK has in its last message, which is the only one of the assistant."""
    assert [message["role"] for message in found["messages"]] == ["user", "assistant"]
    return [
        part["text"] if "text" in part else (part["type"], part["state"], part.get("output", part.get("errorText")))
        for part in found["messages"][1]["parts"]
        if part["type"] != "step-start"
    ]


# ---------------------------------------------------------------- AG-UI


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        ("text", [("assistant", "Hello.")]),
        ("thinking", [("reasoning", "Say hello."), ("assistant", "Hello.")]),
        (
            "two_calls",
            [
                ("assistant", "Both.", "add", "add"),
                ("tool", '{"sum": 3}'),
                ("tool", '{"sum": 7}'),
                ("assistant", "3 and 7."),
            ],
        ),
        (
            "failed",
            [
                ("assistant", "", "fail", "nothing"),
                ("tool", "there is no tool 'nothing'. The tools are: add, fail, pay"),
                ("tool", "ValueError: no such file"),
                ("assistant", "Neither."),
            ],
        ),
        ("whole_call", [("assistant", "One.", "add"), ("tool", '{"sum": 3}'), ("assistant", "3.")]),
    ],
)
def test_an_ag_ui_client(scenario: str, expected: list[Any]) -> None:
    found = seen("ag-ui", scenario)
    assert words(found) == expected
    assert (found["error"], found["warnings"], found["open"], found["seen"][-1]) == (None, [], 0, "RUN_FINISHED")


def test_arguments_in_an_ag_ui_client() -> None:
    (_, said, *_) = seen("ag-ui", "two_calls")["messages"]
    arguments = [json.loads(call["function"]["arguments"]) for call in said["toolCalls"]]
    assert arguments == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    assert arguments == [call["metadata"]["agentkit"]["arguments"] for call in said["toolCalls"]]


def test_a_damaged_call_in_an_ag_ui_client() -> None:
    found = seen("ag-ui", "damaged")
    assert [message["role"] for message in found["messages"][1:]] == ["assistant", "tool", "assistant"]
    assert found["messages"][1]["toolCalls"][0]["metadata"]["agentkit"]["error"]["code"] == "truncated_call"
    assert found["warnings"] == []


@pytest.mark.parametrize(
    ("decision", "results"),
    [
        ({"approved": True}, ["paid 5", "paid 6"]),
        ({"approved": False, "reason": "too dear"}, ["not run: the user denied this call: too dear"] * 2),
        ({"approved": True, "editedArgs": {"sum": 1}}, ["paid 1", "paid 1"]),
    ],
)
def test_decisions_in_an_ag_ui_client(decision: dict[str, Any], results: list[str]) -> None:
    found = seen("ag-ui", "approval", decision)
    assert [one["toolCallId"] for one in found["interrupts"]] == ["c1", "c2"]
    assert words(found) == [
        ("assistant", "I pay.", "pay", "pay"), *(("tool", result) for result in results), ("assistant", "Done."),
    ]  # fmt: skip
    assert (found["error"], found["warnings"], found["open"]) == (None, [], 0)


@pytest.mark.parametrize("scenario", ["error", "error_later"])
def test_an_error_in_an_ag_ui_client(scenario: str) -> None:
    found = seen("ag-ui", scenario)
    assert words(found)[-1] == ("assistant", "Half an")
    assert (found["seen"][-1], found["warnings"]) == ("RUN_ERROR", [])


# ---------------------------------------------------------------- the AI SDK


@pytest.mark.parametrize(
    ("scenario", "expected"),
    [
        ("text", ["Hello."]),
        ("thinking", ["Say hello.", "Hello."]),
        (
            "two_calls",
            [
                "Both.",
                ("tool-add", "output-available", {"sum": 3}),
                ("tool-add", "output-available", {"sum": 7}),
                "3 and 7.",
            ],
        ),
        (
            "failed",
            [
                ("tool-fail", "output-error", "ValueError: no such file"),
                ("tool-nothing", "output-error", "there is no tool 'nothing'. The tools are: add, fail, pay"),
                "Neither.",
            ],
        ),
        ("whole_call", ["One.", ("tool-add", "output-available", {"sum": 3}), "3."]),
    ],
)
def test_a_chat_of_the_ai_sdk(scenario: str, expected: list[Any]) -> None:
    found = seen("ai-sdk", scenario)
    assert parts(found) == expected
    assert (found["status"], found["error"], found["warnings"], found["finished"]) == ("ready", None, [], "stop")


def test_a_damaged_call_in_a_chat_of_the_ai_sdk() -> None:
    found = seen("ai-sdk", "damaged")
    assert [part if isinstance(part, str) else part[:2] for part in parts(found)] == [
        ("tool-add", "output-error"), "…", "Once more.",
    ]  # fmt: skip
    assert (found["error"], found["warnings"]) == (None, [])


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        ({"approved": True}, [("tool-pay", "output-available", f"paid {n}") for n in (5, 6)]),
        ({"approved": False, "reason": "too dear"}, [("tool-pay", "output-denied", None)] * 2),
    ],
)
def test_decisions_in_a_chat_of_the_ai_sdk(decision: dict[str, Any], expected: list[Any]) -> None:
    found = seen("ai-sdk", "approval", decision)
    assert found["asked"] == 2
    assert parts(found) == ["I pay.", *expected, "Done."]
    assert (found["status"], found["error"], found["warnings"]) == ("ready", None, [])


def test_the_models_that_answer_in_a_chat_of_the_ai_sdk() -> None:
    found = seen("ai-sdk", "chain", {"approved": True})
    said = found["messages"][1]["parts"]
    assert [
        part.get("data") or part.get("text") or part.get("output") for part in said if part["type"] != "step-start"
    ] == [
        {"model": "openai:b", "failed": ["openai:a: busy"]},
        "I pay.",
        "paid 5",
        {"model": "openai:a", "failed": []},
        "Done.",
    ]
    assert (found["asked"], found["status"], found["error"], found["warnings"]) == (1, "ready", None, [])


@pytest.mark.parametrize("scenario", ["error", "error_later"])
def test_an_error_in_a_chat_of_the_ai_sdk(scenario: str) -> None:
    found = seen("ai-sdk", scenario)
    assert parts(found)[-1] == "Half an"
    assert (found["status"], found["error"], found["warnings"]) == ("error", "the server is overloaded", [])
