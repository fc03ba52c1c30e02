"""Equality in JSON Schema: 1 and 1.0 are equal, and objects in any order of their names; true and 1 are not."""

from __future__ import annotations

from typing import Any

import pytest

from agentkit.schemas.validators import checker_of


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, 1.0, True),
        (0, -0.0, True),
        (2**70, float(2**70), True),
        (0.5, 0.25, False),
        (True, 1, False),
        (False, 0.0, False),
        (True, True, True),
        (None, False, False),
        ("1", 1, False),
        ("0x1", 1, False),
        ("a", "a", True),
        ([1, [True]], [1.0, [True]], True),
        ([1, [2]], [[1], 2], False),
        ([1, 2], [12], False),
        ([], {}, False),
        ({"a": 1, "b": {"c": 0}}, {"b": {"c": 0.0}, "a": 1}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": None}, {}, False),
        ({"a": "b"}, ["a", "b"], False),
        ("\ud800", "\ud801", False),
        (float("inf"), float("-inf"), False),
    ],
)
def test_equality(one: Any, other: Any, same: bool) -> None:
    assert checker_of({"enum": [one, "x"]}).is_valid(other) is same
    assert checker_of({"uniqueItems": True}).is_valid([other, "x", one]) is not same


def test_a_thousand_objects_and_values_are_compared_at_once() -> None:
    items: list[Any] = [{"a": n} for n in range(20_000)]
    checker = checker_of({"uniqueItems": True, "items": {"enum": items}})
    assert checker.is_valid(items)
    assert not checker.is_valid([*items, {"a": 7.0}])
    assert [error.validator for error in checker.iter_errors([{"a": -1}])] == ["enum"]


def test_integers_have_any_number_of_digits() -> None:
    big = 10**5000
    assert checker_of({"enum": [big]}).is_valid(big)
    assert not checker_of({"enum": [big]}).is_valid(big + 1)


def test_keywords_for_other_types_say_nothing() -> None:
    assert checker_of({"uniqueItems": True}).is_valid("aa")
    assert checker_of({"uniqueItems": False}).is_valid([1, 1])
    assert checker_of({"enum": [1], "nullable": True}).is_valid(None)
