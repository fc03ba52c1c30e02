"""The first hour: eight jobs, each as short as in the shortest of the well-known toolkits, run against a real server.

The bounds are the lines of the shortest of pydantic-ai 2.68 and openai-agents for the same job, imports counted and
blank lines not; all of them were run.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from replay_server import Asked, ReplayServer


def says(text: str) -> bytes:
    return _whole("stop", content=text)


def calls(name: str, **arguments: Any) -> bytes:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return _whole("tool_calls", tool_calls=[{"id": "call_1", "type": "function", "function": function}])


def _whole(finish: str, **said: Any) -> bytes:
    return json.dumps({"choices": [{"finish_reason": finish, "message": {"role": "assistant", **said}}]}).encode()


def streams(*pieces: str) -> bytes:
    chunks: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return b"".join(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks) + b"data: [DONE]\n\n"


def last_words(asked: Asked) -> list[Any]:
    return [message.get("content") for message in asked.body["messages"]]


class Job(NamedTuple):
    """A program.

    Attributes:
        lines: what the shortest of the others needs.
        program: ours.
        script: what the model behind the server answers.
        prints: what the program prints.
        told: what the last request must end with.
    """

    lines: int
    program: str
    script: list[bytes]
    prints: str
    told: list[Any]


JOBS = {
    "hello": Job(
        2,
        """
from agentkit import Agent

print(Agent("openai:gpt-5").run_sync("Hello!").text)
""",
        [says("Hi.")],
        "Hi.\n",
        ["Hello!"],
    ),
    "tool": Job(
        5,
        '''
from agentkit import Agent


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


print(Agent("openai:gpt-5", [add]).run_sync("What is 1 + 2?").text)
''',
        [calls("add", a=1, b=2), says("It is 3.")],
        "It is 3.\n",
        ["What is 1 + 2?", None, "3"],
    ),
    "structured output": Job(
        6,
        """
from agentkit import Agent
from pydantic import BaseModel


class City(BaseModel):
    name: str
    people: int


print(Agent("openai:gpt-5", output_type=City).run_sync("Where does the Blau end?").output.people)
""",
        [says('{"name": "Ulm", "people": 128000}')],
        "128000\n",
        ["Where does the Blau end?"],
    ),
    "stream text": Job(
        7,
        """
import asyncio
from agentkit import Agent


async def main() -> None:
    async for text in Agent("openai:gpt-5").stream("Tell me a story.").text_stream():
        print(text, end="", flush=True)


asyncio.run(main())
""",
        [streams("Once ", "upon a time.")],
        "Once upon a time.",
        ["Tell me a story."],
    ),
    "approval": Job(
        10,
        '''
from agentkit import Agent, Approved, Denied, openapi_schema


@openapi_schema(requires_approval=True)
def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


agent = Agent("openai:gpt-5", [pay])
asked = agent.run_sync("Pay 5.")
said = {call.id: Approved() if input(f"{call.name} {call.arguments}? ") == "y" else Denied() for call in asked.pending}
print(agent.run_sync(asked.messages, decisions=said).text)
''',
        [calls("pay", amount=5), says("Done.")],
        "pay {'amount': 5}? Done.\n",
        ["Pay 5.", None, "paid 5"],
    ),
    "thread in SQLite, two turns": Job(
        4,
        """
from agentkit import ThreadManager

threads = ThreadManager("chat.db")
print(threads.say_sync("ada", "I am Ada.", "openai:gpt-5").text)
print(threads.say_sync("ada", "Who am I?", "openai:gpt-5").text)
""",
        [says("Hello, Ada."), says("You are Ada.")],
        "Hello, Ada.\nYou are Ada.\n",
        ["I am Ada.", "Hello, Ada.", "Who am I?"],
    ),
    "sub-agent": Job(
        4,
        """
from agentkit import Agent

helper = Agent("openai:gpt-5", system="You know mountains.").as_tool("geographer", "Knows the mountains.")
agent = Agent("openai:gpt-5", [helper])
print(agent.run_sync("How high is Fuji?").text)
""",
        [calls("geographer", task="Fuji?"), says("3,776 m."), says("It is 3,776 m high.")],
        "It is 3,776 m high.\n",
        ["How high is Fuji?", None, "3,776 m."],
    ),
    "server of one's own": Job(
        2,
        """
from agentkit import Agent, model

print(Agent(model("openai:qwen3", base_url="http://127.0.0.1:8000/v1")).run_sync("Hello!").text)
""",
        [says("Hi.")],
        "Hi.\n",
        ["Hello!"],
    ),
}


def answering(printed: io.StringIO) -> Callable[[str], str]:
    """`input`, by a person who says yes."""

    def answer(question: str) -> str:
        printed.write(question)
        return "y"

    return answer


@pytest.mark.parametrize("name", JOBS)
def test_the_job_is_done_in_the_fewest_lines(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = JOBS[name]
    lines = [line for line in job.program.splitlines() if line.strip()]
    assert len(lines) <= job.lines
    assert max(map(len, lines)) <= 120
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    with ReplayServer(job.script) as server, contextlib.redirect_stdout(io.StringIO()) as printed:
        if "127.0.0.1:8000" not in job.program:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        program = job.program.replace("http://127.0.0.1:8000/v1", server.url)
        names = {"__name__": "program", "input": answering(printed)}
        exec(compile(program, name, "exec", dont_inherit=True), names)
        names.clear()
        gc.collect()  # what was left open says so now
    assert printed.getvalue() == job.prints
    assert len(server.requests) == len(job.script)
    assert last_words(server.requests[-1])[-len(job.told) :] == job.told  # a schema in the prompt stands before it
