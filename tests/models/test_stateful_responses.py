"""Conversations that the Responses API stores: what is sent of them through the real SDK, to a server with state."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fake_upstream import fake_upstream
from stateful_server import Item, StatefulServer, call, message, plain

from agentkit import Agent, ConfigError, ProviderError, ThreadManager, first_of, model
from agentkit.events import Finish, Text
from agentkit.messages import AssistantMessage, Message, ProviderPart, TextPart, ToolCall, ToolMessage, user
from agentkit.models import Model, ModelRequest
from agentkit.models.responses import responses_input
from agentkit.testing import ScriptedModel

pytestmark = pytest.mark.anyio


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def calculate(items: list[Item]) -> Item:
    """Call `add` for a question with a +, and say its result; repeat anything else."""
    kind, *rest = plain(items[-1:])[0]
    if kind == "output":
        return message(f"It is {rest[1]}.")
    if "+" in rest[0]:
        a, b = map(int, rest[0].split("+"))
        return call(f"c{len(items)}", "add", a=a, b=b)
    return message(f"You said {rest[0]}.")


@contextmanager
def stateful(reply: Any = calculate) -> Iterator[StatefulServer]:
    server = StatefulServer(reply)
    with fake_upstream(upstream=server):
        yield server


def at(server: StatefulServer, **options: Any) -> Model:
    return model("responses:gpt-x", base_url=f"{server.url}/v1", **{"stateful": True, "max_retries": 0, **options})


def sent(server: StatefulServer) -> list[tuple[str | None, list[tuple[Any, ...]]]]:
    """What each request continued, and what it had."""
    return [(body.get("previous_response_id"), plain(body["input"])) for body in server.bodies]


ONE = [
    (None, [("user", "1+2")]),
    ("resp_1", [("output", "c1", "3")]),
]
"""The requests of a run that calls a tool."""


@pytest.mark.parametrize("stream", [True, False])
async def test_a_request_has_only_what_is_new(stream: bool) -> None:
    with stateful() as server:
        agent = Agent(at(server), add, system="Be brief.", stream=stream)
        result = await agent.run("1+2")
        result = await agent.run([*result.messages, "Thanks"])
    assert result.text == "You said Thanks."
    assert sent(server) == [*ONE, ("resp_2", [("user", "Thanks")])]
    assert [body["instructions"] for body in server.bodies] == ["Be brief."] * 3
    assert [body["store"] for body in server.bodies] == [True] * 3
    assert plain(server.known[-1]) == [
        ("user", "1+2"),
        ("call", "c1", "add", {"a": 1, "b": 2}),
        ("output", "c1", "3"),
        ("assistant", "It is 3."),
        ("user", "Thanks"),
    ]


async def test_without_the_option_nothing_is_stored_and_all_is_sent() -> None:
    with stateful() as server:
        agent = Agent(at(server, stateful=False), add)
        await agent.run("1+2")
    assert [(body["store"], len(body["input"])) for body in server.bodies] == [(False, 1), (False, 3)]


async def test_a_resumed_thread_continues(tmp_path: Path) -> None:
    with stateful() as server:
        for text in ("1+2", "Thanks"):  # as in two processes
            async with ThreadManager(str(tmp_path / "threads.db")) as threads, at(server) as gpt:
                threads.add_tool(add)
                await threads.say("t", text, gpt)
    assert sent(server) == [*ONE, ("resp_2", [("user", "Thanks")])]


async def test_a_fork_continues_where_it_begins() -> None:
    with stateful() as server:
        threads, gpt = ThreadManager(":memory:"), at(server)
        for text in ("A", "B"):
            await threads.say("t", text, gpt)
        await threads.fork_thread("t", until=1, new_id="fork")
        await threads.say("fork", "C", gpt)
        await threads.say("t", "D", gpt)
    assert sent(server)[2:] == [("resp_1", [("user", "C")]), ("resp_2", [("user", "D")])]


def edited(messages: tuple[Message, ...], at: int, text: str) -> list[Message]:
    """A conversation in which one message has another text; a reply keeps the blocks of its provider."""

    def part(one: Any) -> Any:
        return TextPart(text) if isinstance(one, TextPart) else one

    changed = replace(messages[at], content=tuple(map(part, messages[at].content)))  # type: ignore[arg-type]
    return [*messages[:at], changed, *messages[at + 1 :]]


@pytest.mark.parametrize("at_message", [0, 1, 2, 3])
async def test_after_an_edit_all_is_sent_once(at_message: int) -> None:
    with stateful() as server:
        agent = Agent(at(server))
        result = await agent.run("A")
        result = await agent.run([*result.messages, "B"])
        changed = edited(result.messages, at_message, "other")
        result = await agent.run([*changed, "C"])
        await agent.run([*result.messages, "D"])
    said = ["A", "You said A.", "B", "You said B.", "C"]
    said[at_message] = "other"
    assert [(previous, [text for _, text in items]) for previous, items in sent(server)[2:]] == [
        (None, said),
        ("resp_3", ["D"]),
    ]


async def test_an_edited_argument_or_answer_is_noticed() -> None:
    with stateful() as server:
        agent = Agent(at(server), add)
        messages = list((await agent.run("1+2")).messages)
        reply = messages[1]
        assert isinstance(reply, AssistantMessage)
        other = tuple(replace(p, arguments={"a": 5, "b": 2}) if isinstance(p, ToolCall) else p for p in reply.content)
        await agent.run([messages[0], replace(reply, content=other), messages[2], "Well?"])
        await agent.run([*messages[:2], ToolMessage("c1", "add", (TextPart("4"),)), messages[3], "Well?"])
    assert [previous for previous, _ in sent(server)[2:]] == [None, None]


async def test_a_call_whose_id_had_to_change_is_sent_again() -> None:
    """Two servers may use the same id; the conversation then has a different one for the second call."""
    old = [user("A"), AssistantMessage((ToolCall("c3", "add", {}),)), ToolMessage("c3", "add", (TextPart("0"),))]
    with stateful(lambda items: call("c3", "add", a=1, b=2)) as server:
        gpt, asked = at(server), [*old, user("B")]
        *_, end, block, _ = [e async for e in gpt.stream(ModelRequest(asked))]
        reply = AssistantMessage((end.call, ProviderPart(block.provider, block.data)))  # type: ignore[union-attr]
        asked += [reply, ToolMessage("c3", "add", (TextPart("3"),))]
        async for _ in gpt.stream(ModelRequest(asked)):
            pass
    assert [previous for previous, _ in sent(server)] == [None, None]


async def test_a_reply_that_the_model_is_to_continue_is_sent_with_the_conversation() -> None:
    with stateful(lambda items: message("Yes")) as server:
        gpt = at(server, continues=True)
        result = await Agent(gpt).run("A")
        assert (await Agent(gpt).run(result.messages)).text == "Yes"
    assert sent(server)[1] == (None, [("user", "A"), ("assistant", "Yes")])


async def test_another_model_in_between() -> None:
    with stateful() as server:
        gpt, other = at(server), ScriptedModel([ToolCall("x1", "add", {"a": 5, "b": 6}), "11"])
        threads = ThreadManager(":memory:")
        threads.add_tool(add)
        for text, by in (("A", gpt), ("5 + 6?", other), ("B", gpt), ("C", gpt)):
            await threads.say("t", text, by)
    assert sent(server)[1:] == [
        (
            "resp_1",
            [
                ("user", "5 + 6?"),
                ("call", "x1", "add", {"a": 5, "b": 6}),
                ("output", "x1", "11"),
                ("assistant", "11"),
                ("user", "B"),
            ],
        ),
        ("resp_2", [("user", "C")]),
    ]


async def test_no_server_gets_the_id_of_another() -> None:
    with stateful() as one, stateful() as two:
        result = await Agent(at(one)).run("A")
        result = await Agent(at(two)).run([*result.messages, "B"])
        result = await Agent(at(one)).run([*result.messages, "C"])
        await Agent(at(two, stateful=False)).run([*result.messages, "D"])
    assert sent(two) == [
        (None, [("user", "A"), ("assistant", "You said A."), ("user", "B")]),
        (None, [*plain(one.known[-1]), ("assistant", "You said C."), ("user", "D")]),
    ]
    assert sent(one)[1] == ("resp_1", [("user", "B"), ("assistant", "You said B."), ("user", "C")])


@pytest.mark.parametrize("status", [400, 404])
async def test_what_the_server_has_forgotten_is_sent_once(status: int) -> None:
    with stateful() as server:
        server.status = status
        agent = Agent(at(server))
        result = await agent.run("A")
        server.stored.clear()
        result = await agent.run([*result.messages, "B"])
        await agent.run([*result.messages, "C"])
    assert sent(server)[1:] == [
        ("resp_1", [("user", "B")]),
        (None, [("user", "A"), ("assistant", "You said A."), ("user", "B")]),
        ("resp_2", [("user", "C")]),
    ]


async def test_a_request_that_is_refused_in_full_as_well_is_an_error() -> None:
    with stateful() as server:
        agent = Agent(at(server))
        result = await agent.run("A")
        server.answer = lambda *_: [b"HTTP/1.1 400 X\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}"]  # type: ignore[method-assign]
        with pytest.raises(ProviderError, match="400"):
            await agent.run([*result.messages, "B"])
    assert [body.get("previous_response_id") for body in server.bodies] == [None, "resp_1", None]


async def test_a_reply_that_was_cut_is_not_continued() -> None:
    with stateful() as server:
        gpt = at(server)
        async for event in gpt.stream(ModelRequest([user("A")])):
            if isinstance(event, Text):
                break
        result = await Agent(gpt).run([user("A"), AssistantMessage((TextPart("You s"),)), user("B")])
        assert result.text == "You said B."
        server.end = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        result = await Agent(gpt).run("A")
        result = await Agent(gpt).run([*result.messages, "B"])
    assert [previous for previous, _ in sent(server)] == [None] * 4


async def test_calls_written_as_text() -> None:
    def reply(items: list[Item]) -> Item:
        results = sum("result" in str(item) for item in items)
        return message("It is 3." if results else "<add><a>1</a><b>2</b></add>")

    with stateful(reply) as server:
        result = await Agent(at(server, format="xml"), add).run("1 + 2?")
    assert result.text == "It is 3."
    assert [(previous, len(items)) for previous, items in sent(server)] == [(None, 1), ("resp_1", 1)]


async def test_a_call_that_only_we_read_in_its_text_is_sent_with_the_conversation() -> None:
    """The server has no call to which the answer would belong."""

    def reply(items: list[Item]) -> Item:
        if plain(items[-1:])[0][0] == "user" and len(items) == 1:
            return message('<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>')
        return message("It is 3.")

    with stateful(reply) as server:
        result = await Agent(at(server), add).run("1 + 2?")
    assert result.text == "It is 3."
    assert [previous for previous, _ in sent(server)] == [None, None]


async def test_a_program_may_say_itself_what_is_continued() -> None:
    with stateful() as server:
        result = await Agent(at(server)).run("A")
        await Agent(at(server), extra={"previous_response_id": "resp_1"}).run("B")
        await Agent(at(server), extra={"store": False}).run([*result.messages, "C"])
    assert sent(server)[1:] == [("resp_1", [("user", "B")]), ("resp_1", [("user", "C")])]
    assert (server.bodies[2]["store"], list(server.stored)) == (False, ["resp_1", "resp_2"])


async def test_as_a_member_of_a_chain() -> None:
    with stateful() as server:
        busy = ProviderError("busy", kind="overloaded", provider="other")
        agent = Agent(first_of(ScriptedModel([busy, "Hello", busy]), at(server)))
        result = await agent.run("A")
        for text in "BC":
            result = await agent.run([*result.messages, text])
    assert sent(server)[1] == ("resp_1", [("user", "B"), ("assistant", "Hello"), ("user", "C")])


async def test_only_the_provider_gets_its_blocks() -> None:
    with stateful() as server:
        events = [e async for e in at(server).stream(ModelRequest([user("A")]))]
    *_, block, finish = events
    assert isinstance(finish, Finish)
    assert block.data == {"type": "stored_response", "id": "resp_1", "items": 1, "digest": block.data["digest"]}  # type: ignore[union-attr]


def test_other_apis_store_nothing() -> None:
    with pytest.raises(ConfigError, match=r"only for the Responses API: model\('responses:gpt-5'\)"):
        model("openai:gpt-5", stateful=True)


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_happens_the_server_knows_the_same_conversation(seed: int) -> None:
    """Runs, edits, forks, another model, a server that forgets: it knows what it would know if all were sent."""
    dice = random.Random(seed)
    with stateful() as server:
        agent, other = Agent(at(server), add), Agent(ScriptedModel(lambda _: "Hm."), add)
        pasts: list[tuple[Message, ...]] = [()]
        for _ in range(25):
            messages = dice.choice(pasts[-4:])
            if messages and dice.random() < 0.2:
                messages = tuple(edited(messages, dice.randrange(len(messages)), f"edited {dice.randrange(9)}"))
            if dice.random() < 0.15:
                server.stored.pop(dice.choice(list(server.stored)), None) if server.stored else None
            said = dice.choice(["1+2", "3+4", "Hello", "Well?"])
            asked = other if dice.random() < 0.2 else agent
            before = len(server.known)
            result = await asked.run([*messages, said])
            pasts.append(result.messages)
            assert [plain(known) for known in server.known[before:]][-1:] == expected(result.messages, asked is agent)
    full = sum(len(known) for known in server.known)
    assert sum(len(json.loads(body)["input"]) for _, body in server.requests) < full


def expected(messages: tuple[Message, ...], asked: bool) -> list[list[tuple[Any, ...]]]:
    """The conversation before the last reply, as all of it would be sent."""
    return [plain(responses_input(messages[:-1], "nobody"))] if asked else []
