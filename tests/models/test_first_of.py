"""A chain of models through the providers' real SDKs: who is asked, who answers, and who is known to have answered."""

from __future__ import annotations

import asyncio
import json
import socket
import warnings
from collections.abc import Iterator, Sequence
from contextlib import aclosing, contextmanager
from typing import Any, NamedTuple

import pytest
from fake_upstream import FakeUpstream, Step, chunked, fake_upstream, head, until, whole
from keep_alive import KEEP, KeepAlive
from streams import answer, events_of

from agentkit import Agent, Budget, ConfigError, FilePart, Price, ProviderError, ThreadManager, ToolCall, first_of
from agentkit.agent import TurnEnded
from agentkit.events import Finish, ModelSelected, Text, Usage
from agentkit.messages import AssistantMessage, user
from agentkit.models import Model, ModelChain, ModelRequest, TextCalling, model
from agentkit.models.base import continues
from agentkit.testing import Replay, ScriptedModel

pytestmark = pytest.mark.anyio

PREFIXES = ("openai", "responses", "anthropic")
USAGE = {"prompt_tokens": 1_000_000, "completion_tokens": 0}
HI: dict[str, Any] = {
    "openai": {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": USAGE},
    "responses": {
        "status": "completed",
        "output": [{"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}],
    },
    "anthropic": {"type": "message", "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn"},
}
NO = {"error": {"message": "No."}}
QUOTA = {"error": {"message": "You exceeded your current quota.", "code": "insufficient_quota"}}
CREDIT = {
    "error": {"message": "Your credit balance is too low to access the Anthropic API.", "type": "invalid_request_error"}
}
LONG = {"error": {"message": "prompt is too long: 300000 tokens", "type": "invalid_request_error"}}
HEL = b'data: {"choices": [{"index": 0, "delta": {"content": "Hel"}}]}\n\n'


def busy(name: str = "busy", kind: Any = "overloaded") -> ProviderError:
    return ProviderError(f"{name}: busy", kind=kind, provider=name)


class Server(NamedTuple):
    upstream: FakeUpstream
    model: Model

    @property
    def asked(self) -> int:
        return len(self.upstream.requests)


@contextmanager
def server(prefix: str, *answers: Sequence[Step], **settings: Any) -> Iterator[Server]:
    """A model whose server gives these answers."""
    with fake_upstream(*answers) as upstream:
        url = upstream.url + ("" if prefix == "anthropic" else "/v1")
        yield Server(upstream, model(f"{prefix}:{prefix}-m", base_url=url, **{"max_retries": 0, **settings}))


# ---------------------------------------------------------------- who is asked


@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    "failing",
    [
        *(whole(NO, status) for status in (402, 408, 429, 500, 502, 503, 504, 529)),
        whole(LONG, 400),
        whole(QUOTA, 429),
        whole(CREDIT, 400),
        whole(b"<html>Maintenance</html>"),
        [head()],
    ],
    ids=["402", "408", "429", "500", "502", "503", "504", "529", "too long", "quota", "credit", "a page", "broken off"],
)
def test_the_next_one_answers_where_the_first_fails(prefix: str, failing: Sequence[Step]) -> None:
    with server(prefix, failing) as first, server("anthropic", whole(HI["anthropic"])) as second:
        selected, *events = events_of(first_of(first.model, second.model))
    assert isinstance(selected, ModelSelected)
    assert (selected.model, len(selected.failed)) == ("anthropic:anthropic-m", 1)
    assert selected.failed[0].startswith(f"{prefix}:{prefix}-m: 127.0.0.1:")
    assert events == [Text("Hi"), Finish("stop", "end_turn")]
    assert (first.asked, second.asked) == (1, 1)


@pytest.mark.parametrize(
    ("prefix", "refusal", "kind"),
    [("openai", whole(NO, 401), "authentication"), ("anthropic", whole(NO, 400), "bad_request"),
     ("responses", whole(NO, 404), "not_found"), ("openai", whole(NO, 403), "permission")],
)  # fmt: skip
def test_a_wrong_key_or_request_is_raised(prefix: str, refusal: Sequence[Step], kind: str) -> None:
    with server(prefix, refusal) as first, server("openai", whole(HI["openai"])) as second:
        events, error = answer(first_of(first.model, second.model))
    assert error is not None
    assert (events, error.kind, second.asked) == ([], kind, 0)


def test_a_server_that_says_nothing_in_time_and_one_that_does_not_listen() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        nobody = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
    with (
        server("responses", [5.0], timeout=0.2) as silent,
        server("openai", whole(HI["openai"])) as last,
    ):
        refused = model("openai:gone", base_url=nobody, max_retries=0)
        selected, *_ = events_of(first_of(silent.model, refused, last.model))
    assert isinstance(selected, ModelSelected)
    assert [why.partition(": ")[0] for why in selected.failed] == ["responses:responses-m", "openai:gone"]
    assert "timeout" in selected.failed[0]
    assert "refused" in selected.failed[1]


def test_once_a_part_was_passed_on_nobody_else_is_asked() -> None:
    with server("openai", chunked(HEL, cut=True)) as first, server("openai", whole(HI["openai"])) as second:
        events, error = answer(first_of(first.model, second.model))
    assert error is not None
    assert (error.kind, second.asked) == ("connection", 0)
    assert events == [ModelSelected("openai:openai-m"), Text("Hel")]


def test_each_repeats_its_own_requests_first() -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    with (
        server("openai", whole(NO, 503), max_retries=2, sleep=sleep, dice=lambda: 1.0) as first,
        server("openai", whole(HI["openai"])) as second,
    ):
        events_of(first_of(first.model, second.model))
    assert (first.asked, waits, second.asked) == (3, [1.0, 2.0], 1)


def test_if_all_fail_the_last_error_has_the_others() -> None:
    with server("openai", whole(NO, 503)) as first, server("anthropic", whole(NO, 529)) as second:
        events, error = answer(first_of(busy_model(), first.model, second.model))
    assert error is not None
    assert (events, error.kind, error.status) == ([], "overloaded", 529)
    found = str(error).split("; before that, ")
    assert [part.partition(": ")[0] for part in found[1:]] == ["openai:openai-m", "busy"]  # the latest first
    assert "529" in found[0]


def busy_model() -> ScriptedModel:
    return ScriptedModel(lambda _: busy(), name="busy")


def test_one_that_is_limited_is_asked_last_until_its_time_has_passed() -> None:
    now = [0.0]
    with (
        server("openai", whole(NO, 429, retry_after="90"), whole(HI["openai"])) as first,
        server("anthropic", whole(HI["anthropic"])) as second,
    ):
        chain = ModelChain(first.model, second.model, clock=lambda: now[0])
        asked = []
        for now[0] in (0.0, 89.0, 91.0):
            events_of(chain)
            asked.append((first.asked, second.asked))
    assert asked == [(1, 1), (1, 2), (2, 2)]


def test_if_the_others_fail_the_limited_one_is_asked_nevertheless() -> None:
    with server("openai", whole(NO, 429, retry_after="90"), whole(HI["openai"])) as first:
        chain = first_of(first.model, ScriptedModel(["Hello", busy()], name="other"))
        assert Text("Hello") in events_of(chain)
        assert Text("Hi") in events_of(chain)


async def test_many_runs_share_one_chain() -> None:
    failing, good = whole(NO, 503), whole(HI["openai"])
    with server("openai", *[failing, good] * 20) as first, server("anthropic", whole(HI["anthropic"])) as second:
        async with first_of(first.model, second.model) as chain:
            found = await asyncio.gather(*(Agent(chain).run(f"{n}") for n in range(40)))
    assert [result.text for result in found] == ["Hi"] * 40
    assert (first.asked, second.asked) == (40, 20)


SELECTED = ModelSelected("openai:openai-m", ("busy: busy: busy",))


async def test_a_reply_that_is_left_closes_the_answering_connection() -> None:
    with server("openai", [*chunked(HEL, cut=True), 5.0]) as first:
        events = first_of(busy_model(), first.model).stream(ModelRequest([user("Hi")]))
        async with aclosing(events):
            assert [await anext(events), await anext(events)] == [SELECTED, Text("Hel")]
        until(lambda: first.upstream.left)


# ---------------------------------------------------------------- chains of text, of chains, of agents


def test_a_chain_in_a_chain() -> None:
    inner = first_of(ScriptedModel([busy("b")], name="b"), ScriptedModel(["Hi"], name="c"))
    chain = first_of(ScriptedModel([busy("a")], name="a"), inner)
    assert chain.name == "first_of(a, first_of(b, c))"
    assert chain.names == ("a", "b", "c")
    assert events_of(chain)[:2] == [ModelSelected("c", ("a: a: busy", "b: b: busy")), Text("Hi")]


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


SUM = ToolCall("c1", "add", {"a": 1, "b": 2})


def test_members_that_write_calls_as_text() -> None:
    first = ScriptedModel([busy(), "It is 3."], name="a", format="xml")
    second = ScriptedModel([ToolCall("", "add", {"a": 1, "b": 2})], name="b", format="xml")
    result = Agent(first_of(first, second), add).run_sync("1 + 2?")
    assert (result.text, [m.text for m in result.messages[2:3]]) == ("It is 3.", ["3"])
    assert first.requests[1].messages[-2].calls[0].raw == "<add>\n<a>1</a>\n<b>2</b>\n</add>"  # the other one's words


def test_a_chain_of_native_models_writes_calls_as_text() -> None:
    chain = TextCalling(first_of(busy_model(), ScriptedModel(["<add><a>1</a><b>2</b></add>", "3"], name="b")), "xml")
    result = Agent(chain, add).run_sync("1 + 2?")
    assert (result.text, result.messages[1].calls[0].format) == ("3", "xml")


def test_models_that_call_in_different_ways_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"found native calls, xml: create each with the same format="):
        first_of(ScriptedModel([], name="a"), ScriptedModel([], name="b", format="xml"))


async def test_a_sub_agent_may_have_the_same_chain() -> None:
    def turns(request: ModelRequest) -> Any:
        if not request.tools:
            return "Ulm"
        return "It is Ulm." if len(request.messages) > 1 else ToolCall("c1", "find", {"task": "Where?"})

    chain = first_of(busy_model(), ScriptedModel(turns, name="b"))
    selected: list[tuple[str, str]] = []

    def hook(event: Any, run: Any) -> None:
        if isinstance(event, ModelSelected):
            selected.append((run.agent.name, event.model))

    finder = Agent(chain, name="finder").as_tool("find", "Find out.")
    result = await Agent(chain, finder, hooks=[hook]).run("Where?")
    assert result.text == "It is Ulm."
    assert selected == [("agent", "b"), ("finder", "b"), ("agent", "b")]


def test_with_an_output_type() -> None:
    reply = {"choices": [{"message": {"content": '{"name": "Ulm"}'}, "finish_reason": "stop"}]}
    with server("anthropic", whole(NO, 529)) as first, server("openai", whole(reply)) as second:
        result = Agent(first_of(first.model, second.model)).run_sync("Which?", output_type=dict[str, str])
    assert result.output == {"name": "Ulm"}


def test_it_continues_if_all_do() -> None:
    yes, no = ScriptedModel([], continues=True), ScriptedModel([])
    assert [continues(first_of(yes)), continues(first_of(yes, no))] == [True, False]


# ---------------------------------------------------------------- who has answered


async def test_the_thread_has_the_name_of_the_one_that_answered() -> None:
    threads = ThreadManager(":memory:")
    chain = first_of(ScriptedModel([busy(), "Two"], name="a"), ScriptedModel(["One"], name="b"))
    for text in ("1", "2"):
        await threads.say("t", text, chain)
    log = await threads.get_log("t")
    responses = [entry.body["response"]["model"] for entry in log.entries if "response" in entry.body]
    assert responses == ["b", "a"]


PRICES = {"openai:openai-m": Price(2, 0), "anthropic:anthropic-m": Price(3, 0)}
BILLED = {**HI["anthropic"], "usage": {"input_tokens": 1_000_000, "output_tokens": 0}}


def test_a_budget_pays_the_price_of_the_one_that_answers() -> None:
    with server("openai", whole(NO, 503), whole(HI["openai"])) as first, server("anthropic", whole(BILLED)) as second:
        agent = Agent(first_of(first.model, second.model), budget=Budget(cost=10, prices=PRICES))
        costs = [spent(agent), spent(agent)]
    assert costs == [pytest.approx(3, abs=0.001), pytest.approx(2, abs=0.001)]


def spent(agent: Agent[Any, Any]) -> float:
    """The cost of a run."""
    spending: list[Any] = []
    agent = agent.adapt(hooks=[lambda event, run: spending.append(run.plan.spending)])
    agent.run_sync("Hi")
    return float(spending[-1].cost)


def test_a_budget_needs_the_prices_of_all() -> None:
    chain = first_of(ScriptedModel(["Hi"], name="a"), ScriptedModel([], name="b"))
    with pytest.raises(ConfigError, match="no price for 'b'"):
        Agent(chain, budget=Budget(cost=1, prices={"a": Price(1, 1)})).run_sync("Hi")


def test_tokens_that_a_failed_member_reported_count_at_its_price() -> None:
    first = ScriptedModel([[Usage(1_000_000, 0), busy()]], name="a")
    second = ScriptedModel([["Hi", Usage(2_000_000, 10)]], name="b")
    ended: list[Usage] = []

    def hook(event: Any, run: Any) -> None:
        if isinstance(event, TurnEnded):
            ended.append(event.usage)

    budget = Budget(cost=100, prices={"a": Price(5, 0), "b": Price(7, 0)})
    agent = Agent(first_of(first, second), budget=budget, hooks=[hook])
    assert spent(agent) == 19.0
    assert ended == [Usage(3_000_000, 10)]


def sse(*events: dict[str, Any]) -> Sequence[Step]:
    return chunked(*(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events))


def test_tokens_of_requests_that_failed_before_their_reply_count() -> None:
    start = {"type": "message_start", "message": {"usage": {"input_tokens": 1_000_000, "output_tokens": 0}}}
    overloaded = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}

    async def sleep(_: float) -> None: ...

    with (
        server("anthropic", sse(start, overloaded), max_retries=1, sleep=sleep) as first,
        server("openai", whole(HI["openai"])) as second,
    ):
        chain = first_of(first.model, second.model)
        assert [e for e in events_of(chain) if isinstance(e, Usage | ModelSelected)][:3] == [
            ModelSelected("anthropic:anthropic-m"),
            Usage(1_000_000),
            Usage(2_000_000),
        ]
        assert spent(Agent(chain, budget=Budget(cost=10, prices=PRICES))) == 2 * 3 + 2


async def test_the_highest_price_is_reserved() -> None:
    """Two runs at once: the second one waits, since the first may come to be answered by the model with the price."""
    tokens = Budget(cost=1, prices={"a": Price(0, 0), "b": Price(0, 100)})
    at_once: list[int] = []
    running = 0

    async def turn(request: ModelRequest) -> Any:
        nonlocal running
        running += 1
        at_once.append(running)
        await asyncio.sleep(0)
        running -= 1
        return ["Hi", Usage(1, 1)]

    chain = first_of(ScriptedModel(turn, name="a"), ScriptedModel([], name="b"))
    asker = Agent(chain, name="asker").as_tool("ask", "Ask.")
    boss = ScriptedModel([[ToolCall("1", "ask", {"task": "x"}), ToolCall("2", "ask", {"task": "y"})], "ok"], name="a")
    await Agent(boss, asker, budget=tokens, max_tokens=20_000).run("Hi")
    assert at_once == [1, 1]


# ---------------------------------------------------------------- strings and connections


async def test_it_closes_what_it_created(monkeypatch: pytest.MonkeyPatch) -> None:
    good = b'data: {"choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}\n\n'
    body = good + b"data: [DONE]\n\n"
    kept = KeepAlive(KEEP + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
    monkeypatch.setenv("OPENAI_API_KEY", "k-12345678")
    monkeypatch.setenv("OPENAI_BASE_URL", kept.url)
    async with first_of("openai:gpt-5", "responses:gpt-5") as chain:
        assert chain.names == ("openai:gpt-5", "responses:gpt-5")
        assert (await Agent(chain).run("Hi")).text == "Hi"
        assert kept.open == 1
    assert kept.all_closed()
    mine = model("openai:gpt-5")
    async with first_of(mine) as chain:
        await Agent(chain).run("Hi")
    assert kept.open == 1
    await mine.aclose()
    assert kept.all_closed()


def test_without_an_event_loop() -> None:
    with (
        server("openai", whole(NO, 503)) as first,
        server("responses", whole(HI["responses"])) as second,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        assert [Agent(first_of(first.model, second.model)).run_sync("Hi").text for _ in range(2)] == ["Hi", "Hi"]


@pytest.mark.parametrize("models", [(), (["openai:gpt-5"],), (None,), (ScriptedModel([]), Agent(ScriptedModel([])))])
def test_what_is_not_a_model_is_refused(models: Any) -> None:
    with pytest.raises(ConfigError, match=r"first_of\(…\) expects models or model strings"):
        first_of(*models)


def test_a_model_that_is_given_twice_is_refused() -> None:
    one = ScriptedModel([])
    for models in ((one, one), ("openai:gpt-5", "openai:gpt-5")):
        with pytest.raises(ConfigError, match="given twice; it repeats its requests itself, by max_retries"):
            first_of(*models)


def test_a_key_that_is_missing_is_found_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        first_of(ScriptedModel([]), "anthropic:claude-opus-4-8")


VIDEO = FilePart(b"\0\0\0 ftyp", "video/mp4")


def test_a_file_that_one_does_not_take_goes_to_the_next() -> None:
    falls = {"candidates": [{"content": {"parts": [{"text": "A cup."}]}, "finishReason": "STOP"}]}
    neither = first_of(Replay([]).model("openai:m"), Replay([]).model("anthropic:m"))
    chain = first_of(neither, Replay([falls]).model("gemini:m"))
    events, error = answer(chain, [user("What falls?", VIDEO)], stream=False)
    assert error is None
    (selected,) = (event for event in events if isinstance(event, ModelSelected))
    assert selected.model == "gemini:m"
    assert [one.partition("; it takes")[0] for one in selected.failed] == [
        "anthropic:m: takes no video (video/mp4)",
    ]
    assert Text("A cup.") in events


def test_a_file_that_nobody_takes_is_refused() -> None:
    chain = first_of(Replay([]).model("openai:m"), Replay([]).model("anthropic:m"))
    with pytest.raises(ConfigError, match=r"anthropic:m: takes no video .*; before that, openai:m: takes no video"):
        Agent(chain).run_sync(["What falls?", VIDEO])


def test_the_conversation_is_made_valid_for_each() -> None:
    call = ToolCall("c1", "add", {"a": 1, "b": 2})
    with server("openai", whole(NO, 503)) as first, server("anthropic", whole(HI["anthropic"])) as second:
        events_of(first_of(first.model, second.model), [user("1 + 2?"), AssistantMessage((call,)), user("Well?")])
        roles = [[m["role"] for m in s.upstream.bodies[0]["messages"]] for s in (first, second)]
    assert roles == [["user", "assistant", "tool", "user"], ["user", "assistant", "user"]]
