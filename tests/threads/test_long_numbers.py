"""A number longer than any float, in a text call or a native model's text: a run is none the worse, nor its thread."""

from __future__ import annotations

from math import factorial

import pytest

from agentkit import formats
from agentkit.formats import CATALOG, Format
from agentkit.messages import ToolCall, ToolMessage
from agentkit.testing.scripted_model import ScriptedModel
from agentkit.threads import SQLiteStore, ThreadManager
from agentkit.tool.registry import ToolRegistry

pytestmark = [
    pytest.mark.anyio,
]
BIG = factorial(200)
MADE: list[int] = []


def check(n: int) -> str:
    """Check a number."""
    MADE.append(n)
    return "ok"


REGISTRY = ToolRegistry(check)


async def ran(text: str, format: Format | None) -> list[int]:
    MADE.clear()
    threads = ThreadManager(SQLiteStore(":memory:"), REGISTRY)
    thread = await threads.create_thread(messages="Go.")
    model = ScriptedModel([text, "Done."], format=format, chunk=7)
    assert (await threads.run_thread(thread, model=model).complete()).finish == "stop"
    await threads.aclose()
    return list(MADE)


@pytest.mark.parametrize("format", CATALOG, ids=lambda format: format.name)
async def test_in_a_text_call(format: Format) -> None:
    call = ToolCall("", "check", {"n": BIG})
    assert await ran(formats.render_calls(format, [call], REGISTRY.specs()), format) == [BIG]


@pytest.mark.parametrize("number", [str(BIG), hex(BIG)])
async def test_in_a_native_models_text(number: str) -> None:
    assert await ran(f"The address space ends at\ncheck(n={number})", None) == [BIG]
    assert await ran(f"[check(n={number})]", None) == [BIG]


@pytest.mark.share(6)
@pytest.mark.parametrize("number", ["7" * 4_301, "-" + "7" * 20_000, "7e999"])
@pytest.mark.parametrize("format", CATALOG, ids=lambda format: format.name)
async def test_one_too_long_to_be_read_is_told_as_such(format: Format, number: str) -> None:
    written = formats.render_calls(format, [ToolCall("", "check", {"n": 777})], REGISTRY.specs())
    threads = ThreadManager(SQLiteStore(":memory:"), REGISTRY)
    thread = await threads.create_thread(messages="Go.")
    model = ScriptedModel([written.replace("777", number), "Done."], format=format, chunk=7)
    result = await threads.run_thread(thread, model=model).complete()
    await threads.aclose()
    (answer,) = [message.text for message in result.messages if isinstance(message, ToolMessage)]
    assert "a number of at most 4,300 digits, or below 1.8e308" in answer or "expected integer, found string" in answer
    assert number[:20] in answer or "at position" in answer
