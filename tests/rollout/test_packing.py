"""Values as bytes for another process: equal again, and one that cannot be sent or read fails alone."""

from __future__ import annotations

import threading
from dataclasses import fields, is_dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from rollout_records import record, records

from agentkit import ToolResult, messages
from agentkit.messages import ProviderPart, UserMessage
from agentkit.rollout import Sample, ToolKwargs, TrajectoryRecord
from agentkit.rollout.distributed import packing
from agentkit.rollout.distributed.packing import OURS, pack, pack_each, unpack, unpack_each

pytest.importorskip("ray", reason="the extra `rollout` is not installed")

SAMPLE = Sample("s1", (UserMessage("Add."),), {"add": ToolKwargs({"start": 1})}, ("add",), 36, {"index": 7})


class Unreadable:
    """Raises where it is read."""

    def __reduce__(self) -> Any:
        return int, ("no number",)


@given(records)
def test_any_record_is_equal_again(one: TrajectoryRecord) -> None:
    assert unpack(pack(one)) == one


@pytest.mark.parametrize(
    "value",
    [
        SAMPLE,
        ToolResult({"rows": [1, (2, b"3")]}, content=["and", messages.TextPart("more")], metadata={"n": 1}, reward=0.5),
        ToolResult(error="no such file", code="tool_error"),
        messages.AssistantMessage((ProviderPart("openai", {"type": "reasoning"}), messages.ThinkingPart("hm"))),
        [None, True, 2**80, 0.1, float("inf"), "é\ud83d", {1, 2}, frozenset("a"), bytearray(b"x")],
        Decimal("0.1"),  # no value of ours: by cloudpickle
        threading.current_thread,  # a function
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_is_equal_again_and_of_the_same_type(value: Any) -> None:
    again = unpack(pack(value))
    assert again == value
    assert type(again) is type(value)


def test_what_this_process_alone_defines_is_sent_with_its_code() -> None:
    class Local:
        def __init__(self, n: int) -> None:
            self.n = n

    assert unpack(pack(record(extra={"own": Local(3)}))).extra["own"].n == 3


def test_a_mapping_that_cannot_be_changed_arrives_as_a_dict() -> None:
    assert unpack(pack(record(extra=MappingProxyType({"split": "test"})))).extra == {"split": "test"}


def test_no_value_of_ours_goes_the_slow_way() -> None:
    said = {part for part in vars(messages).values() if isinstance(part, type) and is_dataclass(part)}
    assert said <= set(OURS)
    for value in (record(), SAMPLE, ToolResult(3, reward=0.5)):
        blob = packing._quickly(value)  # raises for one that it does not know
        assert unpack(blob) == value


def test_every_field_of_ours_is_packed() -> None:
    for which, cls in enumerate(OURS):
        values = range(len(fields(cls)))
        one = packing._rebuilt(which, *values)
        assert [getattr(one, field.name) for field in fields(cls)] == list(values)
        assert packing._FIELDS_OF[cls](one) == (which, *values)


def test_one_that_cannot_be_sent_does_not_cost_the_others_theirs() -> None:
    blob, unsent = pack_each([(1, "a", None), (2, threading.Lock(), None), (3, [Decimal(1)], "why")])
    assert unsent == [(2, "it cannot be sent to another process: TypeError: cannot pickle '_thread.lock' object")]
    assert unpack_each(blob) == ([(1, "a", None), (3, [Decimal(1)], "why")], [])


def test_one_that_cannot_be_read_does_not_cost_the_others_theirs() -> None:
    blob, unsent = pack_each([(1, "a", None), (2, Unreadable(), None), (3, "b", None)])
    assert unsent == []
    read, unread = unpack_each(blob)
    assert read == [(1, "a", None), (3, "b", None)]
    ((number, why),) = unread
    assert number == 2
    assert why.startswith("it cannot be read in another process: ValueError: invalid literal")


def test_a_value_nested_deeper_than_pickle_goes_fails_alone() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    blob, unsent = pack_each([(1, "a"), (2, deep)])
    assert [number for number, _ in unsent] == [2]
    assert unpack_each(blob) == ([(1, "a")], [])
