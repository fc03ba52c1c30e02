"""Values that may hold markup of a damaged call: none of them runs, and what follows the call is read.

Over every format with raw values: what is left of a closing tag, a closing written twice, a parameter that opens again.
"""

from __future__ import annotations

import re

import pytest
from format_tools import ASK, spec
from raw_values import PARAMETERS, RAW, SAVE, TOOLS, between, holes, made, outcomes, pieces, read, saved

from agentkit import FormatError, formats
from agentkit.events import CallEnd, CallError
from agentkit.formats import CATALOG, Format
from agentkit.formats.format import NestedTags, Pairs, TagParameters
from agentkit.formats.valueends import end_of_value
from agentkit.messages import ToolCall

every_format = pytest.mark.parametrize("format", RAW, ids=lambda f: f.name)
TAGS = [f for f in RAW if not any(isinstance(p, NestedTags) for p in f.call)]
every_tag_format = pytest.mark.parametrize("format", TAGS, ids=lambda f: f.name)


@every_format
def test_whatever_is_left_of_a_closing_is_part_of_no_value(format: Format) -> None:
    one = pieces(format, "bash", command="VALUE")
    after, pwd = f"\n{one.call('pwd')}", ("bash", {"command": "pwd"}, ())
    for left in dict.fromkeys(holes(one.close.strip())):
        got = outcomes(formats.parse(f"{one.head}ls{left}\n{one.tail.lstrip()}{after}", format, TOOLS))
        assert made(got) in ([pwd], [("bash", {"command": "ls"}, ("missing_close",)), pwd]), (left, got)


DOUBLED = {
    "before its value": "{close}{between}ls",
    "behind its value": "ls{close}{between}",
    "with nothing in it": "{close}{between}",
    "with a space in it": " {close}{between}",
    "with an empty line in it": "\n\n{close}{between}",
    "three times": "{close}{between}{close}{between}",
}


@every_tag_format
@pytest.mark.parametrize("between", ["", "\n", " "])
@pytest.mark.parametrize("where", DOUBLED)
def test_a_closing_that_is_written_twice_is_part_of_no_value(format: Format, between: str, where: str) -> None:
    one = pieces(format, "bash", command="VALUE")
    value = DOUBLED[where].format(close=one.close.strip(), between=between)
    for reads in (format, formats.auto()):
        got = outcomes(read(reads, f"{one.call(value)}\n{one.call('pwd')}"))
        assert got == ["ambiguous_call", ("bash", {"command": "pwd"}, ())]


@every_format
@pytest.mark.parametrize("value", ["", " ", "\n", "\n\n"])
def test_a_value_with_nothing_in_it_is_closed_once(format: Format, value: str) -> None:
    one = pieces(format, "bash", command="VALUE")
    (got,) = made(outcomes(read(format, one.call(value))))
    assert got in [("bash", {"command": kept}, ()) for kept in (value, value.removeprefix("\n"), "")]


@every_format
def test_a_value_that_begins_or_ends_with_its_own_closing_is_written_so_that_it_is_read(format: Format) -> None:
    close = pieces(format, "bash", command="VALUE").close.strip()
    for value in (f"{close}ls", f"ls{close}", f"ls {close}\n", close, f"{close}\n", f"\n{close}", close + close):
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


# ---------------------------------------------------------------- content

CONTENT = ("dr_tulu", "legacy", "xml")


@pytest.mark.parametrize("name", CONTENT)
def test_what_is_left_of_an_opening_tag_is_part_of_no_content(name: str) -> None:
    opening, closing = saved(name)
    other = saved(name, text="910002")[0]
    tag = other.split()[0]
    left = [f"{piece}{other.removeprefix(tag)}" for piece in holes(tag) if piece[:1] == "<" or not piece]
    left += [other[cut:] for cut in range(len(tag), len(other) - 1)]
    for piece in left:
        got = outcomes(read(name, f"{opening}{piece}b01{closing}\n{opening}b02{closing}", (SAVE,)))
        assert got == ["ambiguous_call", ("save", {"more": "b02"}, ())], piece


@pytest.mark.parametrize("name", CONTENT)
def test_a_call_whose_content_stands_behind_its_end_is_not_run_empty(name: str) -> None:
    opening, closing = saved(name, text="910002")
    text = f"{opening}{closing}b01{closing}\n{opening}b02{closing}"
    assert outcomes(read(name, text, (SAVE,))) == ["ambiguous_call", ("save", {"more": "b02", "text": "910002"}, ())]


@pytest.mark.parametrize("name", CONTENT)
@pytest.mark.parametrize("then", ["", "\nDone.", "\n{}{}", "\n{}b02{}"], ids=["nothing", "text", "another", "a call"])
def test_empty_content_is_empty(name: str, then: str) -> None:
    opening, closing = saved(name)
    events = read(name, f"{opening}{closing}{then.format(opening, closing)}", (SAVE,))
    assert outcomes(events)[0] == ("save", {"more": ""}, ())
    assert "ambiguous_call" not in outcomes(events)


@pytest.mark.parametrize("name", CONTENT)
@pytest.mark.parametrize("behind", ["", "zzz", "\n"])
def test_a_call_of_the_same_tool_in_json_is_not_its_content(name: str, behind: str) -> None:
    opening, closing = saved(name)
    for body in (
        '{"name": "save", "arguments": {"more": "x"}}',
        '[{"type": "function", "function": {"name": "save"}}]',
    ):
        assert outcomes(read(name, f"{opening}{body}{behind}{closing}", (SAVE,))) == ["ambiguous_call"]


@pytest.mark.parametrize("name", CONTENT)
@pytest.mark.parametrize(
    "value", ['{"name": "save", "x": 1}', ' text="a">b', '7">', '{"name": "other"}', 'name = "a"\nb > c', "<p>a</p>"]
)
def test_content_that_looks_like_a_part_of_a_call_is_written_so_that_it_is_read(name: str, value: str) -> None:
    text = formats.render_calls(name, [ToolCall("", "save", {"more": value})], (SAVE,))
    assert outcomes(read(name, text, (SAVE,))) == [("save", {"more": value}, ())]
    assert ("CDATA" in text) == (value not in ('{"name": "other"}', 'name = "a"\nb > c', "<p>a</p>")) or name != "xml"


@pytest.mark.parametrize("name", ["pythonic", "python", "tool_code", "llama4_pythonic", "olmo3", "lfm2"])
@pytest.mark.parametrize("quote", ["'", '"'])
def test_no_string_of_python_runs_over_the_next_call(name: str, quote: str) -> None:
    calls = [ToolCall("", "bash", {"command": c}) for c in ("ls", "pwd", "id")]
    text = formats.render_calls(name, calls, TOOLS)
    own = '"' if '"ls"' in text else "'"
    text = (
        text.replace("), bash", "),\nbash")
        .replace(f"{own}ls{own}", f"{quote}ls")
        .replace(f"{own}pwd{own}", f"pwd{quote}")
    )
    got = outcomes(read(name, text))
    assert [g for g in made(got) if g != ("bash", {"command": "id"}, ())] == [], (text, got)
    assert got[0] == "ambiguous_call", (text, got)


def test_a_python_string_of_several_lines_may_call_a_tool_where_three_quotes_hold_it() -> None:
    (got,) = outcomes(read("python", "bash(command='''ping()\nbash(x)\n''')"))
    assert got == ("bash", {"command": "ping()\nbash(x)\n"}, ())


@pytest.mark.parametrize("format", PARAMETERS, ids=lambda f: f.name)
def test_no_value_without_its_closing_takes_in_the_next_call_whose_value_holds_the_end_of_one(format: Format) -> None:
    one, next_call = pieces(format, "bash", command="VALUE"), pieces(format, "write", path="a", content="VALUE")
    end = end_of_value(format.shapes[0], next(p for p in format.call if isinstance(p, Pairs | TagParameters))).over
    got = outcomes(read(format, f"{one.call('ls', closed=False)}\n{next_call.call(f'x{end}y')}"))
    assert [g for g in made(got) if "ls" in str(g) and "x" in str(g)] == [], got


@pytest.mark.parametrize("name", ["xml", "legacy", "dr_tulu"])
@pytest.mark.parametrize("code", ['print(">")', "grep '>' a.txt", 'cut -d ">" "$f"', 'x = ">"', 'f("<b>", "a")'])
def test_code_with_a_quoted_bracket_is_no_rest_of_an_opening_tag(name: str, code: str) -> None:
    opening, closing = formats.render_calls(name, [ToolCall("", "ask", {"text": "VALUE"})], (ASK,)).split("VALUE")
    assert made(outcomes(read(name, f"{opening}{code}{closing}", (ASK,)))) == [("ask", {"text": code}, ())]


KEYED = spec("keyed", None, ("free",), free={"type": "object"})


@pytest.mark.parametrize("format", [f for f in CATALOG if f.name != "minimax_m3"], ids=lambda f: f.name)
def test_an_object_that_repeats_a_key_is_an_error_that_says_so(format: Format) -> None:
    """Also where values are text: no grammar prevents it. In `minimax_m3`, elements of the same name are a list."""
    text = formats.render_calls(format, [ToolCall("", "keyed", {"free": {"aa": 1, "bb": 2}})], (KEYED,))
    assert outcomes(read(format, text, (KEYED,))) == [("keyed", {"free": {"aa": 1, "bb": 2}}, ())]
    events = read(format, text.replace("bb", "aa"), (KEYED,))
    (error,) = [e for e in events if isinstance(e, CallEnd | CallError)]
    assert isinstance(error, CallError)
    assert re.search("given twice|only once", error.message), error
