"""Values in which a part of a call stands: whole, or refused; never cut off, and never with what follows the call.

Over every format with raw values: a quoted call that is damaged itself, more than one half, a value written twice.
"""

from __future__ import annotations

import re
from itertools import product

import pytest
from raw_values import LOOK, PARAMETERS, RAW, TOOLS, between, holes, made, outcomes, pieces, read

from agentkit import formats
from agentkit.formats import Format
from agentkit.formats.format import Pairs, TagParameters, ToolElement
from agentkit.formats.valueends import end_of_value
from agentkit.messages import ToolCall

every_format = pytest.mark.parametrize("format", PARAMETERS, ids=lambda f: f.name)
SECTIONS = [f for f in PARAMETERS if f.section is not None and f.section.start.strip()]
PWD = ("bash", {"command": "pwd"}, ())


def opening_of_value(format: Format) -> str:
    """What stands before the value of a call's only parameter."""
    head = pieces(format, "bash", command="VALUE").head
    part = next(p for p in format.call if isinstance(p, Pairs | TagParameters))
    return head[head.rindex(part.key.strip() if isinstance(part, Pairs) else f"<{part.name}") :]


@every_format
def test_a_quoted_call_whose_parameter_is_damaged_ends_no_value(format: Format) -> None:
    one = pieces(format, "bash", command="VALUE")
    opening, inner = opening_of_value(format), one.call("ls")
    damaged = dict.fromkeys(left for left in holes(opening) if len(left) in (1, len(opening) // 2, len(opening) - 2))
    for left in damaged:
        value = f"a{inner.replace(opening, left)}z"
        got = outcomes(formats.parse(f"{one.call(value)}\n{one.call('pwd')}", format, TOOLS))
        assert [g for g in made(got) if g != PWD] in ([], [("bash", {"command": value}, ())]), (left, got)


@every_format
def test_no_value_takes_in_the_next_call_where_its_closing_and_the_end_of_its_call_are_swapped(format: Format) -> None:
    """Half a call is quoted in it, and the next call quotes an end, too."""
    one = pieces(format, "bash", command="VALUE")
    end = end_of_value(format.shapes[0], next(p for p in format.call if isinstance(p, Pairs | TagParameters))).over
    other = formats.render_calls("seed_oss", [ToolCall("", "bash", {"command": "ls"})], TOOLS)
    for between_them, value in product(("\n", "\nSo:\n\n"), (f"c{end}d", f"c{other}d")):
        text = f"{one.head}a{one.head}b{end}\n{one.close.strip()}{between_them}{one.call(value)}"
        got = outcomes(read(format, text))
        assert [g for g in made(got) if g != ("bash", {"command": value}, ())] == [], (text, got)


@every_format
def test_two_halves_of_calls_are_no_content(format: Format) -> None:
    one = pieces(format, "bash", command="VALUE")
    half = f"a{one.head}b{one.close}\n"
    got = outcomes(read(format, f"{one.call(f'{half}{half}c')}\n{one.call('pwd')}"))
    assert [g for g in made(got) if g != PWD] == []
    assert any(isinstance(g, str) for g in got)


@every_format
def test_two_halves_of_calls_of_which_one_ends_without_its_value_are_no_content(format: Format) -> None:
    """The value's own closing is another format's token; the next call's parameter has another character in it."""
    one = pieces(format, "bash", command="VALUE")
    opening = opening_of_value(format)
    closing = "<|another:token|>"
    for at in range(1, len(opening)):
        torn = one.head.replace(opening, f"{opening[:at]}{{{opening[at + 1 :]}")
        text = f"{one.head}a{one.head}b{closing}{one.tail.lstrip()}\n{torn}c{one.close}{one.tail}"
        assert made(outcomes(formats.parse(text, format, TOOLS))) == [], text


@pytest.mark.parametrize("format", SECTIONS, ids=lambda f: f.name)
def test_no_value_takes_in_the_calls_of_a_section_that_opens_in_it_and_does_not_end(format: Format) -> None:
    calls = [ToolCall("", "bash", {"command": command}) for command in ("VALUE", "LAST")]
    text = formats.render_calls(format, calls, TOOLS)
    quoted = pieces(format, "bash", command="VALUE")
    opening = opening_of_value(format)
    at = text.rindex(opening) + len(opening) // 2
    end = end_of_value(format.shapes[0], next(p for p in format.call if isinstance(p, Pairs | TagParameters))).over
    for damaged in (text, f"{text[:at]}{end}{text[at:]}"):
        got = outcomes(read(format, damaged.replace("VALUE", f"a{quoted.head}b")))
        assert [g for g in made(got) if "LAST" in str(g) and g != ("bash", {"command": "LAST"}, ())] == []


@every_format
@pytest.mark.parametrize("between", ["\n", "\n\n", "\n, ", '\nxt">', "\r\n"])
def test_a_value_that_is_written_twice_is_refused(format: Format, between: str) -> None:
    one = pieces(format, "bash", command="VALUE")
    got = outcomes(read(format, f"{one.call(f'ls{one.close.strip()}{between}ls')}\n{one.call('pwd')}"))
    assert [g for g in made(got) if g != PWD] == []
    assert any(isinstance(g, str) for g in got)


@every_format
def test_what_is_left_of_the_opening_of_a_missing_parameter_is_no_content(format: Format) -> None:
    """The closing of the value before it is missing, too."""
    head, _, opening, rest = between(format)
    at = opening.index("number") + len("number")
    tags = re.findall(r"<[^<>]+>|[^<>]+", opening[at:])
    for gone in {tag for tag in tags if tag.strip()}:
        text = f"{head}{opening[:at]}{opening[at:].replace(gone, '', 1)}{rest}"
        got = outcomes(read(format, text, (*TOOLS, LOOK)))
        assert made(got) in ([], [("look", {"text": "ls -a", "number": 912}, ("missing_close",))]), (gone, got)


@pytest.mark.parametrize(
    "format",
    [f for f in RAW if any(isinstance(p, ToolElement) for p in f.call)],
    ids=lambda f: f.name,
)
def test_no_call_runs_that_opens_in_a_value_of_which_the_end_is_ambiguous(format: Format) -> None:
    one = pieces(format, "bash", command="VALUE")
    half, without_its_tag = f"a{one.head}b", one.call("ls").removeprefix("<bash>")
    got = outcomes(read(format, f"{one.call(half)}\n{without_its_tag}\n{one.call('pwd')}"))
    assert [g for g in made(got) if g != PWD] == []


# ---------------------------------------------------------------- content


# ---------------------------------------------------------------- lists of Python calls


@pytest.mark.parametrize("name", ["pythonic", "llama4_pythonic", "olmo3", "lfm2"])
@pytest.mark.parametrize("quote", ["'", '"'])
def test_a_python_string_with_a_quote_written_twice_takes_in_no_next_call(name: str, quote: str) -> None:
    calls = [ToolCall("", "bash", {"command": "VALUE"}), ToolCall("", "bash", {"command": "LAST"})]
    text = formats.render_calls(name, calls, TOOLS)
    own = '"' if '"LAST"' in text else "'"
    text = text.replace(f"{own}VALUE{own}", f"{quote}ls{quote}{quote}").replace(f"{own}LAST{own}", f"pwd{quote}")
    assert made(outcomes(read(name, text))) == [], text


def test_a_comment_between_a_call_and_the_end_of_its_section_ends_nothing() -> None:
    text = "```tool_code\nping()<!-- x -->\n```\nTwo words\n```tool_code\nbash(command='pwd')\n```"
    assert outcomes(read("tool_code", text)) == [("ping", {}, ()), PWD]


# ---------------------------------------------------------------- code spans


SPANS = ("hermes", "xml", "qwen3_coder", "dots", "pythonic")


@pytest.mark.parametrize("name", SPANS)
@pytest.mark.parametrize("then", ["`.\n\nDone.", "` or `x`.", "", "\nand so on", "\n\nDone."])
def test_a_backtick_quotes_a_call_if_another_one_follows_in_its_paragraph_or_the_text_ends(
    name: str, then: str
) -> None:
    call = ToolCall("", "write", {"path": "a", "content": "b"})
    text = formats.render_calls(name, [call], TOOLS).strip()
    got = outcomes(read(name, f"Write `{text}{then}"))
    assert got == ([("write", {"path": "a", "content": "b"}, ())] if then.startswith("\n\n") else [])
    assert outcomes(read(name, f"Press ` or {text}\n\nDone.")) == [("write", {"path": "a", "content": "b"}, ())]


@pytest.mark.parametrize("name", SPANS)
def test_of_a_call_behind_a_lone_backtick_no_quoted_call_is_made(name: str) -> None:
    inner = formats.render_calls(name, [ToolCall("", "bash", {"command": "ls"})], TOOLS).strip()
    text = formats.render_calls(name, [ToolCall("", "write", {"path": "a", "content": inner})], TOOLS).strip()
    assert outcomes(read(name, f"`{text}\n\nDone.")) == [("write", {"path": "a", "content": inner}, ())]


@pytest.mark.parametrize("format", RAW, ids=lambda f: f.name)
def test_a_call_quoted_behind_a_call_whose_end_is_damaged_does_not_run(format: Format) -> None:
    """The call that quotes it begins behind the damage: reading goes on there, not at what it quotes."""
    inner = pieces(format, "bash", command="VALUE")
    value = f"a {inner.call('quoted')} b"
    for first, second in (("bash", "bash"), ("bash", "write"), ("write", "bash")):
        one, two = (
            pieces(format, name, **{"command" if name == "bash" else "content": "VALUE"}) for name in (first, second)
        )
        for at in range(len(one.tail)):
            text = f"{one.head}{value}{one.close}{one.tail[:at]}{one.tail[at + 1 :]}\n{two.call(value)}"
            assert ("bash", {"command": "quoted"}, ()) not in outcomes(formats.parse(text, format, TOOLS)), text
