"""The loop: one set of instances for each trajectory, every call answered, every instance released."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest
from rollout_kit import Lines, Sum, all_of, failures, hermes, rolled, said, sample
from small_tokenizers import tokenizer

from agentkit import Tool, openapi_schema
from agentkit.errors import ConfigError, SchemaError
from agentkit.messages import AssistantMessage, MarkupPart, TextPart, ToolCall, ToolMessage, UserMessage
from agentkit.rollout import (
    Generation,
    GenerationRequest,
    Rollout,
    RolloutLimits,
    Sample,
    ToolKwargs,
    TrajectoryRecord,
)
from agentkit.rollout import trajectory_run as loop
from agentkit.rollout.policy.policies import ScriptedPolicy
from agentkit.rollout.records.trajectory import NEXT, TrajectoryState

ADD_1_TO_8 = [hermes("add", n=n) for n in range(1, 9)]
SUMS = ["1", "3", "6", "10", "15", "21", "28", "36"]


def test_eight_calls_of_one_trajectory_share_its_instance() -> None:
    assert said(rolled([Sum], *ADD_1_TO_8)) == SUMS


class Counted(Sum):
    """Counts its instances."""

    live = 0
    released = 0

    async def create(self) -> None:
        Counted.live += 1

    def release(self) -> None:
        Counted.live -= 1
        Counted.released += 1


def test_64_trajectories_at_once_share_nothing_and_all_are_released() -> None:
    Counted.live = Counted.released = 0
    rollout = Rollout([Counted], Lines(*ADD_1_TO_8), concurrency=64)
    records = asyncio.run(all_of(rollout, [sample(str(n)) for n in range(64)]))
    assert [said(record) for record in records] == [SUMS] * 64
    assert (Counted.live, Counted.released) == (0, 64)


def test_the_conversation_is_kept_as_messages() -> None:
    record = rolled([Sum], f"First.{hermes('add', n=2)}", "Two.")
    written = hermes("add", n=2)
    assert record.messages == (
        UserMessage("Go."),
        AssistantMessage((TextPart("First."), ToolCall("call_0", "add", {"n": 2}, "hermes", written))),
        ToolMessage("call_0", "add", (TextPart("2"),)),
        AssistantMessage("Two."),
    )
    assert (record.id, record.end, record.assistant_turns) == ("s#0", "answered", 2)


def test_the_policy_sees_the_conversation_and_the_tools() -> None:
    policy = Lines(hermes("add", n=2))
    asyncio.run(Rollout([Sum], policy, sampling={"temperature": 1.0}).run(sample(), 3))
    first, second = policy.requests
    assert (first.trajectory_id, [tool.name for tool in first.tools]) == ("s#3", ["add"])
    assert (first.messages, len(second.messages)) == ((UserMessage("Go."),), 3)
    assert second.sampling == {"temperature": 1.0}


def test_each_call_says_where_it_stood_and_how_long_it_took() -> None:
    record = rolled([Sum], hermes("add", n=1) + hermes("add", n=2), hermes("add", n=3))
    assert [(call.turn, call.index, call.name, call.arguments) for call in record.calls] == [
        (0, 0, "add", {"n": 1}),
        (0, 1, "add", {"n": 2}),
        (1, 0, "add", {"n": 3}),
    ]
    assert all(call.queued > 0 and call.ran > 0 for call in record.calls)


def test_a_call_that_cannot_run_is_answered_and_the_trajectory_goes_on() -> None:
    record = rolled(
        [Sum], hermes("sub", n=1), hermes("add", n="one"), '<tool_call>{"name": "add", ', hermes("add", n=1)
    )
    assert failures(record) == ["unknown_tool", "invalid_arguments", "truncated_call", None]
    assert record.calls[0].result == "there is no tool 'sub'. The tools are: add"
    assert record.end == "answered"


def test_calls_of_one_turn_run_at_once() -> None:
    class Meeting(Tool):
        def __init__(self) -> None:
            self.both = asyncio.Event()

        @openapi_schema
        async def wait(self) -> str:
            """Wait for the other one."""
            await self.both.wait()
            return "met"

        @openapi_schema
        async def come(self) -> str:
            """Come."""
            self.both.set()
            return "here"

    assert said(rolled([Meeting], hermes("wait") + hermes("come"))) == ["met", "here"]


def test_exclusive_calls_of_one_instance_run_one_after_another() -> None:
    class Diary(Tool):
        def __init__(self) -> None:
            self.lines: list[str] = []

        @openapi_schema(exclusive=True)
        async def write(self, line: str) -> str:
            """Write a line."""
            self.lines.append(f"begin {line}")
            await asyncio.sleep(0.001)
            self.lines.append(f"end {line}")
            return ", ".join(self.lines)

    record = rolled([Diary], hermes("write", line="a") + hermes("write", line="b"))
    assert record.calls[1].result == "begin a, end a, begin b, end b"
    assert record.calls[1].queued > record.calls[0].ran


def test_a_tool_that_terminates_ends_the_trajectory_and_skips_what_follows() -> None:
    class Task(Sum):
        @openapi_schema(terminates=True)
        async def complete(self) -> str:
            """End."""
            return "over"

    record = rolled([Task], hermes("add", n=1) + hermes("complete") + hermes("add", n=2), "never written")
    assert (record.end, record.assistant_turns) == ("terminated_by_tool", 1)
    assert [(call.result[:7], call.error) for call in record.calls] == [
        ("1", None),
        ("over", None),
        ("not run", "skipped"),
    ]


def test_a_tool_that_needs_approval_is_answered_not_run() -> None:
    class Files(Tool):
        @openapi_schema(requires_approval=True)
        async def delete(self) -> str:
            """Delete all."""
            raise AssertionError("it ran")

        @openapi_schema(requires_approval="_outside")
        async def read(self, path: str) -> str:
            """Read."""
            return path

        def _outside(self, call: ToolCall, context: object) -> bool:
            return str(call.arguments["path"]).startswith("/")

    record = rolled([Files], hermes("delete") + hermes("read", path="/etc") + hermes("read", path="a"))
    assert failures(record) == ["denied", "denied", None]
    assert record.calls[0].result == "not run: delete needs a person's approval, and nobody is here to give it"


def test_a_sample_selects_the_tools_that_are_shown_and_run() -> None:
    def sub(n: int) -> int:
        """Subtract."""
        return -n

    policy = Lines(hermes("sub", n=1) + hermes("add", n=1))
    record = asyncio.run(Rollout([Sum, sub], policy).run(sample(tool_selection=("sub",))))
    assert [tool.name for tool in policy.requests[0].tools] == ["sub"]
    assert failures(record) == [None, "unknown_tool"]
    assert record.calls[1].result == "there is no tool 'add'. The tools are: sub"


@pytest.mark.parametrize("format", ["hermes", "invoke", "pythonic", "xml"])
def test_the_format_decides_what_is_a_call(format: str) -> None:
    written = {
        "hermes": hermes("add", n=1),
        "invoke": '<invoke name="add"><parameter name="n">1</parameter></invoke>',
        "pythonic": "[add(n=1)]",
        "xml": "<add><n>1</n></add>",
    }
    record = rolled([Sum], written[format], format=format)
    assert said(record) == ["1"]


def test_a_plain_tool_runs_in_a_thread_and_a_function_is_shared() -> None:
    def double(n: int) -> int:
        """Double."""
        return 2 * n

    assert said(rolled([double], hermes("double", n=21))) == ["42"]


def test_markup_is_kept_as_written() -> None:
    record = rolled([Sum], hermes("add", n=1) + "\n" + hermes("add", n=2))
    message = record.messages[1]
    assert MarkupPart("\n") in message.content


# ---------------------------------------------------------------- many


def test_each_sample_is_repeated_and_every_record_has_its_own_id() -> None:
    records = asyncio.run(all_of(Rollout([Sum], Lines()), [sample("a"), sample("b")], repeats=2))
    assert sorted(record.id for record in records) == ["a#0", "a#1", "b#0", "b#1"]


def test_no_more_trajectories_run_at_once_than_allowed() -> None:
    running = most = 0

    class Busy:
        async def generate(self, request: object) -> Generation:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1
            return Generation("done")

    rollout = Rollout([Sum], Busy(), concurrency=3)
    asyncio.run(all_of(rollout, [sample(str(n)) for n in range(10)]))
    assert most == 3


def test_samples_from_an_iterator_are_read_as_they_are_needed() -> None:
    read: list[int] = []

    async def first() -> TrajectoryRecord:
        rollout = Rollout([Sum], Lines(), concurrency=2)
        async with aclosing(rollout.stream(sample(str(n)) for n in range(1000) if not read.append(n))) as records:  # type: ignore[func-returns-value]
            return await anext(records)

    assert asyncio.run(first()).end == "answered"
    assert len(read) == 2


def test_leaving_the_stream_cancels_and_releases_the_others() -> None:
    Counted.live = Counted.released = 0
    ended: list[TrajectoryRecord] = []

    class Slow(Lines):
        async def generate(self, request: GenerationRequest) -> Generation:
            if request.trajectory_id != "2#0":
                await asyncio.Event().wait()
            return await super().generate(request)

    async def leave() -> None:
        rollout = Rollout([Counted], Slow(), ended=ended.append)
        async with aclosing(rollout.stream([sample(str(n)) for n in range(4)])) as records:
            await anext(records)

    asyncio.run(leave())
    assert (Counted.live, Counted.released) == (0, 4)
    assert sorted(record.end for record in ended) == ["answered", "cancelled", "cancelled", "cancelled"]


# ---------------------------------------------------------------- states


def test_the_states_follow_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    go = loop.TrajectoryRun._go

    def watched(self: loop.TrajectoryRun, state: TrajectoryState) -> None:
        go(self, state)
        seen.append(str(state))

    monkeypatch.setattr(loop.TrajectoryRun, "_go", watched)
    rolled([Sum], hermes("add", n=1))
    assert seen == ["generating", "processing_tools", "generating", "scoring", "terminated"]


@pytest.mark.parametrize("state", list(TrajectoryState))
def test_no_state_follows_that_the_table_does_not_name(state: TrajectoryState) -> None:
    run = loop.TrajectoryRun(Rollout([Sum], Lines())._setup, sample(), 0)
    for next_state in TrajectoryState:
        run.state = state
        if next_state in NEXT[state]:
            run._go(next_state)
            assert run.state is next_state
        else:
            with pytest.raises(AssertionError, match="does not follow"):
                run._go(next_state)


# ---------------------------------------------------------------- tokens


def test_with_a_tokenizer_every_token_is_kept_with_its_mask() -> None:
    tokens = tokenizer("chatml")
    policy = ScriptedPolicy([hermes("add", n=1), "One."], tokenizer=tokens, end="<|im_end|>")
    record = asyncio.run(Rollout([Sum], policy, tokenizer=tokens).run(sample()))
    assert record.tokens is not None
    mask, ids = record.tokens.response_mask, record.tokens.response_ids
    written = [id for id, of_model in zip(ids, mask, strict=True) if of_model]
    assert tokens.decode(written) == f"{hermes('add', n=1)}<|im_end|>One.<|im_end|>"
    assert record.calls[0].span == (0, len(tokens.encode(f"{hermes('add', n=1)}<|im_end|>", add_special_tokens=False)))
    assert record.tokens.response_logprobs == tuple(-0.5 if of_model else 0.0 for of_model in mask)


def test_the_policy_is_shown_exactly_the_tokens_of_the_record() -> None:
    tokens = tokenizer("chatml")
    seen: list[tuple[int, ...]] = []

    class Watched(ScriptedPolicy):
        async def generate(self, request: GenerationRequest) -> Generation:
            seen.append(tuple(request.token_ids or ()))
            return await super().generate(request)

    policy = Watched([hermes("add", n=1), hermes("add", n=2), "Three."], tokenizer=tokens, end="<|im_end|>")
    record = asyncio.run(Rollout([Sum], policy, tokenizer=tokens).run(sample()))
    assert record.tokens is not None
    whole = record.tokens.prompt_ids + record.tokens.response_ids
    assert [whole[: len(ids)] for ids in seen] == seen
    assert seen[0] == record.tokens.prompt_ids


@pytest.mark.parametrize("most", [5, 40])
def test_the_response_is_no_longer_than_allowed(most: int) -> None:
    tokens = tokenizer("chatml")
    policy = ScriptedPolicy([hermes("add", n=1)] * 9, tokenizer=tokens, end="<|im_end|>")
    limits = RolloutLimits(max_response_tokens=most)
    record = asyncio.run(Rollout([Sum], policy, tokenizer=tokens, limits=limits).run(sample()))
    assert record.end == "response_length"
    assert record.tokens is not None
    assert len(record.tokens.response_ids) <= most


def test_a_limit_of_tokens_needs_a_tokenizer() -> None:
    with pytest.raises(ConfigError, match="max_response_tokens=…\\) counts tokens: give the rollout a tokenizer"):
        Rollout([Sum], Lines(), limits=RolloutLimits(max_response_tokens=9))


# ---------------------------------------------------------------- what is wrong before anything runs


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            sample(tool_selection=("ad",)),
            "sample 's': tool_selection names 'ad', but the tools are add; did you mean 'add'",
        ),
        (sample(tools_kwargs={"sub": ToolKwargs()}), "tools_kwargs names 'sub', but the tools are add"),
    ],
)
def test_a_sample_that_names_an_unknown_tool_is_refused_before_the_first_generation(
    wrong: object, message: str
) -> None:
    policy = Lines()
    rollout = Rollout([Sum], policy)
    with pytest.raises(ConfigError, match=message):
        asyncio.run(all_of(rollout, [sample("good"), wrong]))  # type: ignore[list-item]
    assert policy.requests == []


@pytest.mark.parametrize("given", [list, iter], ids=["checked at once", "read one by one"])
def test_two_samples_with_one_id_are_refused(given: Callable[[list[Sample]], Any]) -> None:
    with pytest.raises(
        ConfigError, match=r"samples\[2\]: the id 'a' is an earlier sample's; .* stream\(samples, repeats"
    ):
        asyncio.run(all_of(Rollout([Sum], Lines()), given([sample("a"), sample("b"), sample("a")])))


def test_what_cannot_be_a_rollout_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"expected a policy, with `async def generate\(request\)`"):
        Rollout([Sum], "openai:gpt-5")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="aggregate='mean': expected 'sum', 'last' or a function"):
        Rollout([Sum], Lines(), aggregate="mean")  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="'add' is taken"):
        Rollout([Sum, Counted], Lines())
    with pytest.raises(ConfigError, match="RolloutLimits"):
        Rollout([Sum], Lines(), limits={"call_timeout": 1})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"RolloutLimits\(max_assistant_turns=0\): expected an integer \(1 or more\)"):
        RolloutLimits(max_assistant_turns=0)
