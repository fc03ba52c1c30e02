"""What can be passed to a rollout and cannot be meant: a clear error, or a behaviour that is decided."""

from __future__ import annotations

import asyncio
import math
import time
import warnings
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from rollout_kit import Lines, Sum, all_of, hermes, rolled, said, sample
from small_tokenizers import tokenizer

from agentkit import Tool, openapi_schema
from agentkit.errors import ConfigError, StoreError
from agentkit.rollout import Generation, RecordFile, Rollout, RolloutLimits, Sample, TrajectoryRecord, as_rollout_tool
from agentkit.rollout.distributed import RayRollout


async def samples_later() -> AsyncIterator[Sample]:
    yield sample()


STREAMS: list[tuple[dict[str, Any], str]] = [
    ({"samples": None}, "stream(samples=None): expected a list of samples"),
    ({"samples": sample()}, "expected a list of samples"),
    ({"samples": "run.jsonl"}, "stream(samples='run.jsonl'): expected a list of samples"),
    ({"samples": samples_later()}, "expected a list of samples"),
    ({"samples": ["x"]}, "samples[0]: expected a Sample, found str 'x'"),
    ({"samples": iter([sample(), 7])}, "samples[1]: expected a Sample, found int 7"),
    ({"samples": [sample()], "repeats": 0}, "stream(repeats=0): expected an integer (1 trajectories of each sample or"),
    ({"samples": [sample()], "repeats": "2"}, "stream(repeats='2'): expected an integer"),
    ({"samples": [sample()], "repeats": True}, "stream(repeats=True): expected an integer"),
    (
        {"samples": [sample()], "skip": "s#0"},
        "stream(skip='s#0'): expected a list of trajectories' ids, or",
    ),
    ({"samples": [sample()], "skip": None}, "stream(skip=None): expected a list of trajectories' ids"),
]


@pytest.mark.parametrize(("arguments", "message"), STREAMS, ids=[message[:50] for _, message in STREAMS])
def test_a_stream_of_what_is_none_is_refused(arguments: dict[str, Any], message: str) -> None:
    async def stream() -> list[TrajectoryRecord]:
        return [record async for record in Rollout([Sum], Lines()).stream(**arguments)]

    with pytest.raises(ConfigError) as raised:
        asyncio.run(stream())
    assert message in str(raised.value)


def test_the_same_on_ray_before_a_worker_begins() -> None:
    async def stream() -> None:
        await anext(RayRollout(lambda: Rollout([Sum], Lines())).stream([sample()], repeats=0))

    with pytest.raises(ConfigError, match="repeats=0"):
        asyncio.run(stream())


def test_no_sample_is_no_trajectory() -> None:
    assert asyncio.run(all_of(Rollout([Sum], Lines()), [])) == []


@pytest.mark.parametrize("tools", [None, Sum, Sum(), "module:Sum", {"add": Sum}, 7])
def test_tools_are_a_list(tools: Any) -> None:
    with pytest.raises(ConfigError, match=r"expected a list of tools, such as \[Shop\]"):
        Rollout(tools, Lines())


def test_one_trajectory_is_of_a_sample() -> None:
    with pytest.raises(ConfigError, match=r"run\(sample='s'\): expected a Sample"):
        asyncio.run(Rollout([Sum], Lines()).run("s"))  # type: ignore[arg-type]


# ---------------------------------------------------------------- aggregate


async def mean(record: TrajectoryRecord) -> float:
    return 1.0


def test_nobody_waits_for_an_async_aggregate() -> None:
    with pytest.raises(ConfigError, match="an async function is not supported; write it with def"):
        Rollout([Sum], Lines(), aggregate=mean)  # type: ignore[arg-type]


def test_one_that_cannot_be_told_from_outside_is_on_the_record() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing was left unawaited
        record = rolled([Sum], "done", aggregate=lambda r: mean(r))
    assert "a reward is a finite number, found coroutine" in record.unscored["aggregate"]


# ---------------------------------------------------------------- policies


@pytest.mark.parametrize(
    ("told", "message"),
    [
        (Generation("Hi", finish="stopp"), "finish='stopp'; expected one of stop, "),  # type: ignore[arg-type]
        (Generation("Hi", finish=None), "finish=None; expected one of stop, "),  # type: ignore[arg-type]
    ],
)
def test_a_finish_that_there_is_not_is_an_error_of_the_policy(told: Generation, message: str) -> None:
    record = rolled([Sum], told)
    assert (record.end, message in str(record.error)) == ("policy_error", True)


def test_a_policy_that_returns_its_text_bare() -> None:
    class Bare:
        async def generate(self, request: Any) -> str:
            return "Hi"

    record = asyncio.run(Rollout([Sum], Bare()).run(sample()))  # type: ignore[arg-type]
    assert record.error == "ConfigError: the policy returned str 'Hi'; expected a Generation"


@pytest.mark.parametrize("ids", [[1, 1.5], ["1"], [None]])
def test_token_ids_are_integers(ids: Any) -> None:
    record = rolled([Sum], Generation(token_ids=ids), tokenizer=tokenizer("chatml"))
    assert (record.end, "token ids that are not integers" in str(record.error)) == ("policy_error", True)


@pytest.mark.parametrize(
    ("ids", "logprobs", "message"),
    [
        ([1, 2], [-1.0], "1 log-probabilities for 2 token ids"),
        (None, [-1.0], "1 log-probabilities for 0 token ids"),
        ([1, 2], [-1.0, math.nan], "the log-probability nan for token 1 of 2"),
        ([1], [-math.inf], "the log-probability -inf for token 0 of 1"),
        ([1], [None], "log-probabilities that are not numbers"),
    ],
)
def test_log_probabilities_are_one_finite_number_for_each_token(ids: Any, logprobs: Any, message: str) -> None:
    record = rolled([Sum], Generation("Hi", ids, logprobs))
    assert (record.end, message in str(record.error)) == ("policy_error", True)


# ---------------------------------------------------------------- constructors


class Slow(Tool):
    released = 0

    def __init__(self, seconds: float = 0.06) -> None:
        time.sleep(seconds)

    def release(self) -> None:
        Slow.released += 1

    @openapi_schema
    def look(self) -> str:
        """Look."""
        return "seen"


def test_a_constructor_that_holds_the_event_loop_too_long_ends_its_trajectory() -> None:
    """It cannot be interrupted: it is an error when it has ended, and what it made is released."""
    record = rolled([Slow], hermes("look"), limits=RolloutLimits(call_timeout=0.05))
    assert (record.end, record.calls, Slow.released) == ("tool_error", (), 1)
    assert "its constructor took 0." in str(record.error)
    assert "what takes time belongs in `async def create`" in str(record.error)


def test_one_that_is_quick_does_not() -> None:
    quick = as_rollout_tool(Slow, {"seconds": 0})
    assert said(rolled([quick], hermes("look"), limits=RolloutLimits(call_timeout=5))) == ["seen"]


class Cancelling(Tool):
    def __init__(self) -> None:
        raise asyncio.CancelledError

    @openapi_schema
    def look(self) -> str:
        """Look."""
        return "seen"


def test_a_constructor_that_cancels_is_an_error_of_the_tool() -> None:
    record = rolled([Cancelling], "done")
    assert (record.end, "it raised CancelledError" in str(record.error)) == ("tool_error", True)


def test_a_config_that_the_constructor_cannot_take_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match=r"Slow cannot be called with \['second'\].*did you mean 'seconds'"):
        as_rollout_tool(Slow, {"second": 1})


# ---------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a text\n", "line 1: not a record of a trajectory: it is not JSON"),
        ('{"a": 1}\n', "line 1: not a record of a trajectory: it has no 'v'"),
    ],
)
def test_a_file_of_something_else(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "k.jsonl").write_text(line)
    with pytest.raises(StoreError) as raised:
        RecordFile(tmp_path / "k.jsonl")
    assert message in str(raised.value)
    assert (tmp_path / "k.jsonl").read_text() == line
