"""Values that may hold markup of a damaged call: none of them runs, and what follows the call is read.

Over every format with raw values: what is left of a closing tag, a closing written twice, a parameter that opens again.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from format_tools import spec
from raw_values import PARAMETERS, RAW, TOOLS, between, outcomes, pieces, read

from agentkit import FormatError, formats
from agentkit.formats import Format
from agentkit.formats.format import NestedTags
from agentkit.messages import ToolCall

every_format = pytest.mark.parametrize("format", RAW, ids=lambda f: f.name)
TAGS = [f for f in RAW if not any(isinstance(p, NestedTags) for p in f.call)]
every_tag_format = pytest.mark.parametrize("format", TAGS, ids=lambda f: f.name)


def made(got: list[object]) -> list[object]:
    """What was made, without the errors."""
    return [g for g in got if not isinstance(g, str)]


def holes(text: str) -> Iterator[str]:
    """What is left of a text in which something is missing: nothing, one piece, or two that are joined."""
    for start in range(len(text)):
        for end in range(start + 1, len(text) + 1):
            yield text[:start] + text[end:]


@every_format
def test_whatever_is_left_of_a_closing_is_part_of_no_value(format: Format) -> None:
    one = pieces(format, "bash", command="VALUE")
    after, pwd = f"\n{one.call('pwd')}", ("bash", {"command": "pwd"}, ())
    for left in dict.fromkeys(holes(one.close.strip())):
        got = outcomes(formats.parse(f"{one.head}ls{left}\n{one.tail.lstrip()}{after}", format, TOOLS))
        assert made(got) in ([pwd], [("bash", {"command": "ls"}, ("missing_close",)), pwd]), (left, got)


@every_tag_format
@pytest.mark.parametrize("between_them", ["", "\n"])
@pytest.mark.parametrize("where", ["before its value", "behind its value"])
def test_a_closing_that_is_written_twice_is_part_of_no_value(format: Format, between_them: str, where: str) -> None:
    one = pieces(format, "bash", command="VALUE")
    close = one.close.strip()
    value = f"{close}{between_them}ls" if where == "before its value" else f"ls{close}{between_them}"
    got = outcomes(read(format, f"{one.call(value)}\n{one.call('pwd')}"))
    assert got == ["ambiguous_call", ("bash", {"command": "pwd"}, ())]


@every_format
def test_a_value_that_begins_or_ends_with_its_own_closing_is_written_so_that_it_is_read(format: Format) -> None:
    close = pieces(format, "bash", command="VALUE").close.strip()
    for value in (f"{close}ls", f"ls{close}", f"ls {close}\n"):
        try:
            text = formats.render_calls(format, [ToolCall("", "bash", {"command": value})], TOOLS)
        except FormatError:
            continue
        assert outcomes(read(format, text)) == [("bash", {"command": value}, ())]


LATER = spec("later", None, (), text="string", more="string", last="string")


def passed(format: Format, name: str) -> tuple[str, str]:
    """What stands before the value of a parameter, and behind it."""
    head, close, opening, _ = between(format)
    assert head
    return opening.replace("number", name).replace("integer", "string"), close


@pytest.mark.parametrize("format", PARAMETERS, ids=lambda f: f.name)
@pytest.mark.parametrize("name", ["text", "more"])
def test_a_parameter_that_opens_in_a_later_value_is_part_of_no_value(format: Format, name: str) -> None:
    """One that was passed, or the same one: a call of the same tool may have lost its opening."""
    call = ToolCall("", "later", {"text": "a", "more": "VALUE"})
    text = formats.render_calls(format, [call], (LATER,))
    opening, _ = passed(format, name)
    pwd = pieces(format, "bash", command="VALUE").call("pwd")
    for value in (f"b{opening}ls", f"b\n{opening.strip()}ls", f'b="read">{opening}ls'):
        got = outcomes(read(format, f"{text.replace('VALUE', value)}\n{pwd}", (*TOOLS, LATER)))
        assert made(got)[-1:] == [("bash", {"command": "pwd"}, ())], (value, got)
        assert [g for g in made(got) if g[0] == "later"] == [], (value, got)  # type: ignore[index]


@pytest.mark.parametrize("format", PARAMETERS, ids=lambda f: f.name)
@pytest.mark.parametrize("inside", ["", "\n", " "])
def test_a_parameter_that_is_missing_and_stands_empty_in_a_value_is_no_part_of_it(format: Format, inside: str) -> None:
    call = ToolCall("", "later", {"text": "VALUE"})
    opening, close = passed(format, "more")
    text = formats.render_calls(format, [call], (LATER,)).replace("VALUE", f"b{opening}{inside}{close}d")
    pwd = pieces(format, "bash", command="VALUE").call("pwd")
    got = outcomes(read(format, f"{text}\n{pwd}", (*TOOLS, LATER)))
    assert got == ["ambiguous_call", ("bash", {"command": "pwd"}, ())]
