"""Behind the token limit: no call runs wrongly or twice, or is lost without an error."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from agentkit import formats
from agentkit.agent import Agent
from agentkit.errors import ProviderError
from agentkit.events import Finish
from agentkit.messages import ToolCall, ToolMessage
from agentkit.processor.continuation import WrittenText
from agentkit.testing.scripted_model import ScriptedModel
from agentkit.tool.registry import ToolRegistry

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


FORMATS = (
    "xml",
    "hermes",
    "qwen3_coder",
    "glm45",
    "invoke",
    "kimi_k2",
    "deepseek_v3",
    "mistral",
    "llama3_json",
    "pythonic",
    "minimax_m2",
    "harmony",
)
RAN: list[tuple[object, ...]] = []


def write(path: str, content: str) -> str:
    """Write a file."""
    RAN.append(("write", path, content))
    return "ok"


def bash(command: str, n: int = 0) -> str:
    """Run a command."""
    RAN.append(("bash", command, n))
    return "ok"


CONTENT = 'def f(x):\n    return x < 1 and "a"\n\n# end of the file\nprint(f(2))\n'
WANTED = [("write", "a.py", CONTENT), ("bash", "ls -l", 5)]
REGISTRY = ToolRegistry(write, bash)
SPECS = REGISTRY.specs()
SAID = "I write it.\n"


def reply(format: str) -> str:
    """Words, and two calls."""
    called = [
        ToolCall("", "write", {"path": "a.py", "content": CONTENT}),
        ToolCall("", "bash", {"command": "ls -l", "n": 5}),
    ]
    return SAID + formats.render_calls(format, called, SPECS)


def starts(format: str, text: str) -> tuple[int, int]:
    """Where the calls begin."""
    first, second = formats.calls(formats.parse(text, format, SPECS))
    at = text.index(first.raw)
    return at, text.index(second.raw, at + len(first.raw))


def ways(format: str, text: str, at: int) -> Iterator[tuple[str, str]]:
    """What a model may write that was cut there."""
    first, second = starts(format, text)
    call = text[second if at >= second else first :]
    yield "goes on", text[at:]
    yield "begins the call again", call
    yield "begins the calls again", text[len(SAID) :]
    yield "begins everything again", text
    yield "begins everything again, in other words", "I shall write it.\n" + text[len(SAID) :]
    yield "says sorry, then the call", "Sorry, again:\n" + call
    yield "says so in Chinese, then the call", "\u597d\u7684\uff0c\u7ee7\u7eed\uff1a\n" + call
    yield "gives up", "I could not finish this."
    yield "says nothing", ""


async def outcome(format: str, text: str, at: int, rest: str, *, continues: bool) -> str:
    """What became of the calls."""
    RAN.clear()
    script = [[text[:at], Finish("length")], [rest], "Done.", "Done.", "Done."]
    model = ScriptedModel(script, format=format, continues=continues)
    result = await Agent(model, REGISTRY, max_turns=4).run("Go.")
    if any(call not in WANTED for call in RAN):
        return f"WRONG {RAN}"
    if len(RAN) != len(set(RAN)):
        return f"TWICE {RAN}"
    begun = [call for call, start in zip(WANTED, starts(format, text), strict=True) if at > start + 1]  # `<` is no call
    if all(call in RAN for call in begun):
        return "exact"
    told = any(isinstance(message, ToolMessage) and message.error for message in result.messages)
    return "told" if told else f"LOST, only {RAN}"


async def seen(format: str, cuts: int | None, *, continues: bool) -> Counter[tuple[str, str]]:
    """The outcomes for some cuts, or for all, and every way to go on."""
    text, found = reply(format), Counter[tuple[str, str]]()
    places = range(starts(format, text)[0] + 1, len(text))
    for at in places if cuts is None else random.Random(f"{format} {cuts}").sample(places, cuts):
        for way, rest in ways(format, text, at):
            came = await outcome(format, text, at, rest, continues=continues)
            found[way, came if came in ("exact", "told") else f"{came} at {at} {text[:at][-30:]!r}"] += 1
    return found


def wrong(found: Counter[tuple[str, str]]) -> list[tuple[str, str]]:
    return [seen for seen in found if seen[1] not in ("exact", "told")]


@pytest.mark.share(12)
@pytest.mark.parametrize("continues", [True, False], ids=["continues", "is asked anew"])
@pytest.mark.parametrize("format", FORMATS)
async def test_no_call_is_wrong_or_run_twice_or_lost(format: str, continues: bool) -> None:
    found = await seen(format, 3, continues=continues)
    assert wrong(found) == []
    assert not continues or any(way == "goes on" and came == "exact" for way, came in found)


@pytest.mark.soak
@pytest.mark.parametrize("continues", [True, False], ids=["continues", "is asked anew"])
@pytest.mark.parametrize("format", FORMATS)
async def test_no_call_is_wrong_or_run_twice_or_lost_wherever_it_is_cut(format: str, continues: bool) -> None:
    found = await seen(format, None, continues=continues)
    assert wrong(found) == []
    goes_on = {came: n for (way, came), n in found.items() if way == "goes on"}
    assert not continues or goes_on["exact"] / sum(goes_on.values()) > 0.85


@pytest.mark.parametrize("format", [format.name for format in formats.CATALOG])
async def test_wherever_a_further_call_was_begun_the_model_is_told(format: str) -> None:
    """Also where what there is of it could as well be the end of the calls."""
    text = reply(format)
    _, second = starts(format, text)
    for at in range(second + 2, second + 14):
        assert await outcome(format, text, at, "Done.", continues=False) in ("exact", "told"), text[second:at]


async def test_only_a_model_that_continues_is_asked_to() -> None:
    text = reply("xml")
    for continues, last in ((True, "AssistantMessage"), (False, "ToolMessage")):
        model = ScriptedModel([[text[:60], Finish("length")], text[60:], "Done."], format="xml", continues=continues)
        await Agent(model, REGISTRY).run("Go.")
        assert type(model.requests[1].messages[-1]).__name__ == last


async def test_a_reply_may_be_cut_again_and_again() -> None:
    text, step = reply("hermes"), 70
    script = [[text[at : at + step], Finish("length")] for at in range(0, len(text), step)]
    script[-1][1] = Finish("stop")
    RAN.clear()
    await Agent(ScriptedModel([*script, "Done."], format="hermes", continues=True), REGISTRY).run("Go.")
    assert RAN == WANTED


async def test_only_the_last_further_reply_says_whether_the_text_was_cut() -> None:
    """One that says nothing at its limit is no cut of what a further one then says to its end."""
    text = reply("hermes")
    script = [[text[:-20], Finish("length")], [Finish("length")], [text[-20:] + " So much for <tool_c", Finish("stop")]]
    RAN.clear()
    result = await Agent(ScriptedModel([*script, "Done."], format="hermes", continues=True), REGISTRY).run("Go.")
    assert WANTED == RAN
    assert [message.error for message in result.messages if isinstance(message, ToolMessage)] == [None, None]


@pytest.mark.parametrize("format", ["xml", "hermes"])
async def test_a_call_made_again_in_the_turn_behind_the_cut_is_answered_and_may_be_made_once_more(format: str) -> None:
    text = reply(format)
    first, second = starts(format, text)
    script = [[text[: second + 30], Finish("length")], text, text[first:second], "Done."]
    RAN.clear()
    result = await Agent(ScriptedModel(script, format=format), REGISTRY).run("Go.")
    assert [name for name, *_ in RAN] == ["write", "bash", "write"]
    answers = [message.error for message in result.messages if isinstance(message, ToolMessage)]
    assert answers == [None, "truncated_call", "ambiguous_call", None, None]


async def test_a_continuation_that_is_refused_ends_the_reply_and_not_the_run() -> None:
    text = reply("xml")
    refused = ProviderError("the conversation must end with a user message", kind="bad_request", provider="x")
    cut = [text[:-20], Finish("length")]
    model = ScriptedModel([cut, refused, cut, "Done."], format="xml", continues=True)
    RAN.clear()
    result = await Agent(model, REGISTRY).run("Go.")
    assert (result.finish, result.text, RAN) == ("stop", "Done.", WANTED[:1])
    assert [type(request.messages[-1]).__name__ for request in model.requests] == [
        "UserMessage",
        "AssistantMessage",  # refused, and so not tried a second time
        "ToolMessage",
        "ToolMessage",
    ]


async def test_a_continuation_that_breaks_off_ends_the_run_as_any_reply_does() -> None:
    broken = ProviderError("the stream broke off", kind="stream", provider="x")
    text = reply("xml")
    model = ScriptedModel([[text[:-30], Finish("length")], [text[-30:-20], broken]], format="xml", continues=True)
    RAN.clear()
    run = Agent(model, REGISTRY).stream("Go.")
    with pytest.raises(ProviderError, match="broke off"):
        await run.complete()
    assert list(RAN) == WANTED[:1]
    errors = [message.error for message in run.result.messages if isinstance(message, ToolMessage)]
    assert errors == [None, "truncated_call"]


@pytest.mark.parametrize(
    ("written", "text", "continues"),
    [
        ("<command>rm -rf ./bui", "ld</command></bash>", True),
        ("<command>It is", " good.\nSo it is.</command></bash>", True),
        ("<command>if a:\n", "    b</command></bash>\n<bash><command>c</command></bash>", True),
        ("<command>ls -", "\n<bash><command>ls -l</command></bash>", False),  # a quote, or the call begun again?
        ("<command>rm -rf ./bui", "ld", False),
    ],
)
def test_what_continues_a_call(written: str, text: str, continues: bool) -> None:
    record = WrittenText("xml")
    record.feed("<bash>" + written)
    record.report(formats.Parser("xml", SPECS).feed("<bash>" + written))
    assert record.continues(text, lambda _: formats.Parser("xml", SPECS), cut=False) is continues


async def test_native_calls_that_a_cut_reply_had_do_not_run_again() -> None:
    paid: list[float] = []

    def pay(amount: float) -> str:
        """Pay."""
        paid.append(amount)
        return "paid"

    again = ToolCall("c2", "pay", {"amount": 12.0})
    cut = [ToolCall("c1", "pay", {"amount": 12}), Finish("length")]
    result = await Agent(ScriptedModel([cut, [again], "done"]), [pay]).run("Pay 12.")
    assert paid == [12]
    assert [m.error for m in result.messages if isinstance(m, ToolMessage)] == [None, "ambiguous_call"]
