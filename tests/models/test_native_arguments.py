"""The arguments text of a native call: what is read, what is repaired, what is refused and where."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit.formats import REPAIRS
from agentkit.models.native_arguments import LIMITS, ArgumentsError, read_arguments

ALL_OF_TWO = ("repeated_arguments",)


@pytest.mark.parametrize(
    ("text", "arguments", "repairs"),
    [
        ('{"a": 1}', {"a": 1}, ()),
        ("", {}, ()),
        (" \n", {}, ()),
        ("{}", {}, ()),
        ('\ufeff{"a": 1}', {"a": 1}, ()),
        ('{"a": 1, "a": 1}', {"a": 1}, ()),
        ("null", {}, ("null_arguments",)),
        ('{}{"a": 1, "b": 2}', {"a": 1, "b": 2}, ALL_OF_TWO),
        ('{"a": 1}{"a": 1, "b": 2}', {"a": 1, "b": 2}, ALL_OF_TWO),
        ('{"a": 1}{"a": 1}', {"a": 1}, ALL_OF_TWO),
        ('{"a": 1}{}', {"a": 1}, ALL_OF_TWO),
        ('"{\\"a\\": 1}"', {"a": 1}, ("doubly_encoded",)),
        ('{"a": 1}"{\\"a\\": 1}"', {"a": 1}, ("doubly_encoded", *ALL_OF_TWO)),
        ('{"a": "x\ny"}', {"a": "x\ny"}, ("raw_newlines",)),
        ('{"a": "\\ud83d\\ude00 \\ud800"}', {"a": "😀 \ufffd"}, ("lone_surrogate",)),
        ('{"a": "\\ufffd"}', {"a": "\ufffd"}, ()),
        ('{"a": "\ud800b"}', {"a": "\ufffdb"}, ("lone_surrogate",)),
        ('{"s": "{ a(); } { b(); } int v[]={1,2,};"}', {"s": "{ a(); } { b(); } int v[]={1,2,};"}, ()),
        ('{"a": 123456789012345678901234567890}', {"a": 123456789012345678901234567890}, ()),
    ],
)
def test_what_is_read(text: str, arguments: dict[str, Any], repairs: tuple[str, ...]) -> None:
    assert read_arguments(text) == (arguments, repairs)
    assert REPAIRS.keys() >= {*repairs}


@pytest.mark.parametrize(
    ("text", "code", "position"),
    [
        ('{"text": "a', "invalid_json", 9),
        ('{"a": 1} x', "invalid_json", 9),
        ('{"a": 1}}', "invalid_json", 8),
        ("{'a': 1}", "invalid_json", 1),
        ('{"a": NaN}', "invalid_json", 0),
        ('{"NaN": "NaN", "a": -Infinity}', "invalid_json", 0),
        ('{"s": "1e999", "a": 1e999}', "invalid_json", 0),
        ("[1]", "invalid_arguments", 0),
        ("5", "invalid_arguments", 0),
        ("true", "invalid_arguments", 0),
        ('{"a": 1}{"a": 2}', "ambiguous_call", 0),
        ('{"a": 1, "a": 2}', "ambiguous_call", 0),
        ("[" * 100_000, "limit", 0),
        ('{"a":' * 200 + "{}" + "}" * 200, "limit", 0),
        ('{"a": 1' + "0" * 5000 + "}", "invalid_json", 0),
    ],
)
def test_what_is_refused(text: str, code: str, position: int) -> None:
    with pytest.raises(ArgumentsError) as caught:
        read_arguments(text)
    assert (caught.value.code, caught.value.position) == (code, position)


def test_depth_is_bounded_exactly() -> None:
    inside = '{"a":' * (LIMITS.depth - 1) + "{}" + "}" * (LIMITS.depth - 1)
    read_arguments(inside)
    with pytest.raises(ArgumentsError, match="nested deeper than 128"):
        read_arguments(f'{{"a":{inside}}}')


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_any_object_is_read_exactly(arguments: dict[str, Any]) -> None:
    assert read_arguments(json.dumps(arguments)) == (arguments, ())


@given(st.text())
def test_no_text_raises_anything_else(text: str) -> None:
    position = 0
    try:
        read_arguments(text)
    except ArgumentsError as e:
        position = e.position
    assert 0 <= position <= len(text)
