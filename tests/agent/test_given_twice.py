"""A key with two values in the arguments of a call: whoever wrote them, no value is chosen in silence."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import Agent, openapi_schema
from agentkit.cli.edited_arguments import read_arguments
from agentkit.errors import ConfigError
from agentkit.messages import ToolMessage
from agentkit.models import native_arguments
from agentkit.testing import ScriptedModel


@openapi_schema(requires_approval=True)
def pay(amount: int = 5, to: str = "Ada") -> None: ...


NAMES = st.text(max_size=3).filter(lambda name: name not in ("o", "p"))
KEYS = NAMES.map(lambda name: json.dumps(name, ensure_ascii=False))


@st.composite
def objects(draw: st.DrawFn, inner: str) -> str:
    """JSON text of an object that has this text somewhere in it, or is it."""
    for _ in range(draw(st.integers(0, 3))):
        inner = draw(st.sampled_from([f"[0, {inner}]", f'{{"o": 1, {draw(KEYS)}: {inner}, "p": "}}"}}']))
    return inner if inner.startswith("{") else f'{{"list": {inner}}}'


def told_by_a_person(text: str) -> Any:
    return read_arguments(text)


def sent_by_a_model(text: str) -> Any:
    return native_arguments.read_arguments(text).values


def found_in_a_conversation(text: str) -> Any:
    """What waits for a person at the end of a conversation from elsewhere, or is answered with an error."""
    function = {"name": "pay", "arguments": text}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": function}]}
    result = Agent(ScriptedModel(["I see."]), [pay]).run_sync([{"role": "user", "content": "Pay."}, call])
    if result.pending:
        return result.pending[0].arguments
    (answer,) = (message for message in result.messages if isinstance(message, ToolMessage))
    assert answer.error in ("ambiguous_call", "invalid_json", "invalid_arguments")
    raise ValueError(answer.content[0])


DOORS = [told_by_a_person, sent_by_a_model, found_in_a_conversation]


@pytest.mark.parametrize("read", DOORS)
@given(st.data())
def test_a_key_with_two_values_is_refused_in_words_wherever_it_is(read: Any, data: st.DataObject) -> None:
    key = data.draw(KEYS)
    text = data.draw(objects(f'{{{key}: 7, "z": [], {key}: 800}}'))
    with pytest.raises((ConfigError, ValueError), match="is given twice, with different values"):
        read(text)


@pytest.mark.parametrize("read", DOORS)
@given(st.data())
def test_the_same_value_twice_is_one(read: Any, data: st.DataObject) -> None:
    text = data.draw(objects('{"a": [7], "b": 1, "a": [7]}'))
    assert read(text) == json.loads(text)


@pytest.mark.parametrize("text", ['{"n": 7', '"x"', "[7]", '{"n": NaN}'])
def test_a_call_that_cannot_be_read_does_not_wait_to_run_without_its_arguments(text: str) -> None:
    with pytest.raises((ConfigError, ValueError), match="the arguments"):
        found_in_a_conversation(text)
