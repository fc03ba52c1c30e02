"""The figures of a rollout: exact counts, quantiles to 2 %, both systems' names, and memory that does not grow."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rollout_records import NASTY, add, hostile, record

from agentkit.rollout import CallRecord, Measures, TrajectoryRecord
from agentkit.rollout.records.distribution import Distribution
from agentkit.rollout.records.measures import MAX_METRICS, MAX_TOOLS, OTHERS, UNKNOWN, verl_fields


def search(turn: int, index: int = 0, **changed: object) -> CallRecord:
    return add(turn, index, **{"name": "search", **changed})


FOUR = [
    record("a#0", calls=(search(0, ran=0.2), search(0, 1, ran=0.4), search(1, ran=0.1)), assistant_turns=3, reward=1.0),
    record("a#1", calls=(search(0, error="timeout", ran=1.0, reward=None), add(1)), assistant_turns=3, reward=0.0),
    record("b#0", calls=(search(0, error="unknown_tool", name="serach", ran=0.0, reward=None),), reward=0.0),
    record("b#1", calls=(), assistant_turns=1, end="policy_error", unreleased={"search": "busy"}, reward=-1.0),
]
"""Four trajectories; two of them called `search`, one of them with a failure."""


def measured(*records: TrajectoryRecord, tools: tuple[str, ...] = ()) -> Measures:
    measures = Measures(tools)
    for one in records:
        measures.add(one)
    return measures


# names


def test_names_of_the_document_of_open_instruct() -> None:
    metrics = measured(*FOUR).metrics()
    assert metrics["val/tool_search_call_rate"] == 0.5
    assert metrics["val/tool_search_total_calls"] == 4
    assert metrics["val/tool_search_calls_per_sample"] == 1.0


def test_names_of_open_instruct_today() -> None:
    metrics = measured(*FOUR).metrics()
    assert metrics["tools/search/avg_calls_per_rollout"] == 1.0
    assert metrics["tools/search/failure_rate"] == 0.25
    assert metrics["tools/search/avg_runtime"] == pytest.approx(1.7 / 4)
    assert metrics["tools/aggregate/avg_calls_per_rollout"] == 1.25
    assert metrics["tools/aggregate/failure_rate"] == 0.2
    assert metrics["tools/aggregate/avg_runtime"] == pytest.approx(1.71 / 5)


def test_names_of_verl() -> None:
    metrics = measured(*FOUR).metrics()
    assert [metrics[f"num_turns/{of}"] for of in ("min", "max", "mean")] == [2, 6, pytest.approx((6 + 6 + 4 + 2) / 4)]
    assert [metrics[f"tool_call_counts/{of}"] for of in ("min", "max", "mean")] == [0, 3, 1.5]
    assert metrics["agent_loop/generate_sequences/mean"] == 1.0
    assert metrics["agent_loop/tool_calls/max"] == pytest.approx(1.001 + 0.011)
    assert metrics["agent_loop/slowest/tool_calls"] == pytest.approx(1.001 + 0.011)
    assert (metrics["agent_loop/slowest/prompt_length"], metrics["agent_loop/slowest/response_length"]) == (2, 3)


def test_a_trajectory_under_the_names_of_verl() -> None:
    """Two calls of one turn ran at the same time: the trajectory waited for the slower one."""
    assert verl_fields(FOUR[0]) == {
        "num_turns": 6,
        "metrics": {"generate_sequences": 1.0, "tool_calls": pytest.approx(0.401 + 0.101)},
        "extra_fields": {"turn_scores": [], "tool_rewards": [0.5, 0.5, 0.5]},
    }


def test_names_of_our_own() -> None:
    metrics = measured(*FOUR).metrics()
    assert metrics["rollout/search/failures/timeout"] == metrics["rollout/search/timeouts"] == 1
    assert metrics["rollout/search/ran_p50"] == pytest.approx(0.2, rel=0.02)
    assert metrics["rollout/search/ran_p99"] == pytest.approx(0.4, rel=0.02)  # of four: the third
    assert metrics["rollout/search/queued_p50"] == pytest.approx(0.001)
    assert (metrics["rollout/search/reward_sum"], metrics["rollout/search/reward_mean"]) == (1.5, 0.5)
    assert metrics["rollout/add/final_reward_mean"] == 1.0
    assert (metrics["rollout/unknown_tool_calls"], metrics["rollout/unreleased"]) == (1, 1)
    assert (metrics["rollout/end/answered"], metrics["rollout/end/policy_error"]) == (3, 1)
    assert metrics["rollout/reward/mean"] == pytest.approx(1 / 3)  # of the three that have not failed


def test_a_tool_that_was_never_called_is_listed() -> None:
    metrics = measured(*FOUR, tools=("browse",)).metrics()
    assert metrics["tools/browse/failure_rate"] == metrics["val/tool_browse_call_rate"] == 0.0


def test_without_a_trajectory_there_are_no_metrics() -> None:
    assert Measures(["add"]).metrics() == {}


def test_numbers_that_a_tool_measures_are_averaged() -> None:
    metrics = measured(record(calls=(add(0, metrics={"hits": 3, "query": "x"}), add(1, metrics={"hits": 4})))).metrics()
    assert metrics["rollout/add/metrics/hits"] == 3.5


# text


def test_the_summary() -> None:
    lines = str(measured(*FOUR)).splitlines()
    assert lines[:3] == [
        "4 trajectories: answered 3, policy_error 1",
        "reward: mean 0.3333, min 0, p50 0, max 1",
        "NOT RELEASED: 1 tool instance",
    ]
    assert [" ".join(line.split()) for line in lines[4:]] == [
        "tool search add (unknown tool)",
        "calls 4 1 1",
        "call rate 50.0 % 25.0 % 25.0 %",
        "per sample 1.00 0.25 0.25",
        "failed 1 (25 %) 0 1 (100 %)",
        "timeouts 1 0 0",
        "queue p50 1.0 ms 1.0 ms -",
        "queue p99 1.0 ms 1.0 ms -",
        "run p50 200 ms 10 ms -",
        "run p99 400 ms 10 ms -",
        "reward sum 1.5 0.5 -",
        "reward mean 0.5 0.5 -",
        "final mean - 1 -",
        "failed: timeout 1 0 0",
        "failed: unknown_tool 0 0 1",
    ]


def test_a_figure_that_no_tool_has_is_left_out() -> None:
    assert "final mean" not in str(measured(record(final_rewards={})))


@pytest.mark.parametrize("text", NASTY, ids=range(len(NASTY)))
def test_hostile_names_are_measured(text: str) -> None:
    measures = measured(hostile(text))
    assert measures.tools[text].failed_calls == 1
    assert len(str(measures).splitlines()) == 4 + len(measures.figures())


# memory


def test_names_that_a_model_invents_take_one_row() -> None:
    calls = tuple(add(0, n, name=f"tool_{n}", error="unknown_tool") for n in range(5_000))
    measures = measured(record(calls=calls, final_rewards={}))
    assert list(measures.tools) == [UNKNOWN]
    assert measures.tools[UNKNOWN].calls == 5_000


def test_tools_and_metrics_are_bounded() -> None:
    calls = tuple(add(0, n, name=f"tool_{n}", metrics={f"m{n}": n}) for n in range(MAX_TOOLS + 5))
    measures = measured(record(calls=calls, final_rewards={}))
    assert (len(measures.tools), measures.tools[OTHERS].calls) == (MAX_TOOLS + 1, 5)
    many = measured(record(calls=tuple(add(0, n, metrics={f"m{n}": n}) for n in range(MAX_METRICS + 5))))
    assert len(many.tools["add"].metrics) == MAX_METRICS


def test_a_distribution_does_not_grow() -> None:
    values = Distribution()
    for n in range(200_000):
        values.add(1e-6 * 1.0001**n)
    assert values.count == 200_000
    assert len(list(values.bars())) < 1_400


# distributions

_numbers = st.floats(-1e12, 1e12).filter(lambda x: x == 0 or abs(x) > 1e-6)


@given(st.lists(_numbers, min_size=1, max_size=60), st.floats(0, 1))
def test_a_quantile_is_exact_to_2_percent(numbers: list[float], q: float) -> None:
    values = filled(numbers)
    exact = sorted(numbers)[math.floor(q * (len(numbers) - 1))]
    assert values.quantile(q) == pytest.approx(exact, rel=0.0201)
    assert (values.quantile(0), values.quantile(1)) == (min(numbers), max(numbers))


@given(st.lists(_numbers, max_size=30), st.lists(_numbers, max_size=30))
def test_two_merged_are_as_one(first: list[float], second: list[float]) -> None:
    merged, one = filled(first), filled(first + second)
    merged.merge(filled(second))
    assert (merged.count, merged.lowest, merged.highest) == (one.count, one.lowest, one.highest)
    assert [count for _, count in merged.bars()] == [count for _, count in one.bars()]


def filled(numbers: list[float]) -> Distribution:
    values = Distribution()
    for number in numbers:
        values.add(number)
    return values


def test_few_values_are_kept_exactly() -> None:
    values = filled([0.1] * 1_000 + [0.7] * 3_000)
    assert list(values.bars()) == [(0.1, 1_000), (0.7, 3_000)]
    assert (values.quantile(0.2), values.quantile(0.5)) == (0.1, 0.7)


def test_what_is_not_a_number_is_counted_apart() -> None:
    values = filled([1.0, math.nan, math.inf])
    assert (values.count, values.mean, values.not_finite) == (1, 1.0, 2)


def test_measures_of_two_workers_are_as_those_of_one() -> None:
    merged, one = measured(*FOUR[:2]), measured(*FOUR)
    merged.merge(measured(*FOUR[2:]))
    assert merged.metrics() == pytest.approx(one.metrics())
    assert str(merged) == str(one)
