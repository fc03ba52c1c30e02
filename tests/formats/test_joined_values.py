"""Values that damage joined: two between the edges of one, or one that is closed twice. Neither makes a call.

Over every format that may show it: what is nearly an opening, what is left of a closing, another tool's parameter, a
string that runs into the next call, and text joined to the end of a call that ends this call once more.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from format_tools import ASK, spec
from raw_values import BASH, LOOK, PARAMETERS, SAVE, TOOLS, between, holes, made, outcomes, pieces, read, saved

from agentkit import FormatError, formats
from agentkit.events import CallEnd
from agentkit.formats import CATALOG, Element, Format, Node, Parser, ToolSpec
from agentkit.formats.format import Braced, Json, PythonCall
from agentkit.messages import ToolCall

every_format = pytest.mark.parametrize("format", PARAMETERS, ids=lambda f: f.name)
TEXT = spec("look", None, (), text="string")
COUNT = spec("count", None, (), number="integer")
DECLARED = {"the parameter is missing": (*TOOLS, LOOK), "it is another tool's": (*TOOLS, TEXT, COUNT)}
every_tools = pytest.mark.parametrize("tools", DECLARED.values(), ids=DECLARED)


def joined(format: Format, text: str, tools: tuple[ToolSpec, ...]) -> list[object]:
    """What is made of `look` in this text with another `text` than the one that was meant."""
    got = outcomes(formats.parse(text, format, tools))
    return [g for g in made(got) if g[0] == "look" and g[1].get("text") != "ls -a"]  # type: ignore[index]


# ---------------------------------------------------------------- parameters


@pytest.mark.share(12)
@every_format
@every_tools
@pytest.mark.parametrize("name", ["number", "unknown"])
def test_what_is_nearly_an_opening_behind_a_closing_is_part_of_no_value(
    format: Format, tools: tuple[ToolSpec, ...], name: str
) -> None:
    head, close, opening, rest = between(format)
    opening = opening.replace("number", name).replace("integer", "string")
    for at in range(len(opening)):
        for instead in ("x", "}", "<", ">", "=", '"', " ", "\n", ""):
            text = f"{head}{close}{opening[:at]}{instead}{opening[at + 1 :]}{rest}"
            assert joined(format, text, tools) == [], text


@every_format
@every_tools
@pytest.mark.parametrize("between_them", ["\n\n", "\n", "\r\n", " \n"])
def test_the_beginning_of_a_closing_at_the_end_of_a_line_is_part_of_no_value(
    format: Format, tools: tuple[ToolSpec, ...], between_them: str
) -> None:
    """The opening behind it is missing, too."""
    head, close, _, rest = between(format)
    start = len(close) - len(close.lstrip())
    for cut in range(start + 5, len(close)):
        text = f"{head}{close[:cut]}{between_them}{rest}"
        assert joined(format, text, tools) == [], text


@every_format
@every_tools
def test_an_opening_of_which_the_rest_is_missing_is_part_of_no_value(
    format: Format, tools: tuple[ToolSpec, ...]
) -> None:
    """The closing before it is worn, or missing, too."""
    head, close, opening, rest = between(format)
    opening = opening.strip()
    for cut in range(opening.index("number"), len(opening)):
        for left in ("", close.strip()[-3:], close.strip()[:3]):
            text = f"{head}{left}\n{opening[:cut]}{rest}"
            assert joined(format, text, tools) == [], text


@every_format
def test_another_tools_parameter_that_opens_at_the_start_of_a_line_is_part_of_no_value(format: Format) -> None:
    head, _, opening, rest = between(format)
    for space in ("\n", "\n  ", "\r\n\n"):
        text = f"{head}{space}{opening.strip()}{rest}"
        assert outcomes(read(format, text, DECLARED["it is another tool's"])) == ["ambiguous_call"], text


@every_format
def test_markup_that_opens_or_closes_nothing_here_is_content(format: Format) -> None:
    """Another tool's parameter in a line of text, or whole; one of no tool; a closing that goes on in its line."""
    head, close, opening, rest = between(format)
    close, opening = close.strip(), opening.strip()
    for content in (
        f"ls -a {opening}c",
        f"ls -a\n{opening}c{close}\nd",
        f"ls -a\n{opening.replace('number', 'more')}c",
        f"ls {close[:7]} and\nso on",
        f"ls {close[:4]}\nso on",
    ):
        text = head.replace("ls -a", content) + rest.removeprefix("912")
        assert outcomes(read(format, text, DECLARED["it is another tool's"])) == [("look", {"text": content}, ())]


@every_format
@pytest.mark.parametrize("cut", range(3, 9))
def test_a_value_with_the_beginning_of_its_closing_is_written_so_that_it_is_read(format: Format, cut: int) -> None:
    close = pieces(format, "bash", command="VALUE").close.strip()
    for value in (f"ls{close[:cut]}\npwd", f"ls{close[:cut]}<b>", f"\n{close[:cut]}\n\n"):
        try:
            text = formats.render_calls(format, [ToolCall("", "bash", {"command": value})], TOOLS)
        except FormatError:
            continue
        assert outcomes(read(format, text)) == [("bash", {"command": value}, ())]


# ---------------------------------------------------------------- strings between tokens

BRACED = [
    (f, next(p.quote for p in f.call if isinstance(p, Braced)))
    for f in CATALOG
    if any(isinstance(p, Braced) for p in f.call)
]
every_braced = pytest.mark.parametrize(("format", "quote"), BRACED, ids=[f.name for f, _ in BRACED])


@every_braced
def test_no_string_runs_from_one_call_into_the_next(format: Format, quote: str) -> None:
    """The token after the first one's string and that before the second one's are worn: the error is the first call."""
    text = formats.render_calls(format, [ToolCall("", "bash", {"command": c}) for c in ("ls", "pwd")], TOOLS)
    worn = [*holes(quote), *(f"{quote[:n]}x{quote[n + 1 :]}" for n in range(len(quote))), "<parameter=command>"]
    for one in worn:
        for two in ("", one, worn[-1]):
            damaged = text.replace(f"ls{quote}", f"ls{one}").replace(f"{quote}pwd", f"{two}pwd")
            got = outcomes(formats.parse(damaged, format, TOOLS))
            assert made(got) == [], (damaged, got)
            assert len(got) == 2, (damaged, got)


@every_braced
def test_a_whole_call_in_a_string_is_content_and_so_is_half_a_call(format: Format, quote: str) -> None:
    call = formats.render_calls(format, [ToolCall("", "ping", {})], TOOLS)
    half = len(call) - 2
    for value in (call, f"{call}\n{call}", call[:half], call[2:], f"a {call[:half]} b\n{call}"):
        text = formats.render_calls(format, [ToolCall("", "bash", {"command": value})], TOOLS)
        assert outcomes(read(format, text)) == [("bash", {"command": value}, ())]
    with pytest.raises(FormatError, match="the end of a call"):
        formats.render_calls(format, [ToolCall("", "bash", {"command": f"{call[2:]}{call}"})], TOOLS)


@pytest.mark.parametrize("name", ["llama4_pythonic", "olmo3", "lfm2"])
def test_no_python_string_runs_from_one_section_into_the_next(name: str) -> None:
    """Two quotes are missing; a whole section in a string is content."""
    one, two = (formats.render_calls(name, [ToolCall("", "bash", {"command": c})], TOOLS) for c in ("ls", "pwd"))
    for between_them in ("", "\n", "\n\n"):
        first, second = one.replace("ls'", "ls"), two.replace("'pwd", "pwd")
        damaged = first + between_them + second
        got = outcomes(formats.parse(damaged, name, TOOLS))
        assert (made(got), len(got)) == ([], 2), (damaged, got)
    value = f"{one}\n{two}".replace("'", '"')
    text = formats.render_calls(name, [ToolCall("", "bash", {"command": value})], TOOLS)
    assert outcomes(formats.parse(text, name, TOOLS)) == [("bash", {"command": value}, ())]


@every_braced
@pytest.mark.parametrize("place", ["null", "true", "912"])
def test_no_value_without_quotes_has_a_code_fence(format: Format, quote: str, place: str) -> None:
    text = formats.render_calls(format, [ToolCall("", "look", {"number": 912})], (LOOK,)).replace(quote, "")
    for fence in ("```", "```\n", "\n```"):
        for value in (f"{place}{fence}", f"{fence}{place}", f"{{n:{place}{fence}}}", f"[{fence}{place}]"):
            assert outcomes(read(format, text.replace("912", value), (LOOK,))) == ["invalid_json"]


# ---------------------------------------------------------------- closed twice

OPEN_ENDED = [f for f in CATALOG if isinstance(f.call[-1], Json)]
PYTHON = [f for f in CATALOG if isinstance(f.call[-1], PythonCall)]


def closed_twice(format: Format, rest: str) -> Iterator[tuple[str, str]]:
    """A call whose string holds what closes it, and the same call with more of it; up to the rest, and that."""
    closing = '"}' if isinstance(format.call[-1], Json) else "')"
    text = formats.render_calls(format, [ToolCall("", "ask", {"text": "VALUE"})], (ASK,))
    head, tail = text.split("VALUE")
    quote = tail[0]
    for more in ("", "}", "]}") if closing[0] == '"' else ("",):
        yield f"{head}a{quote}{closing[1]}{more}", f"{rest}{quote}{tail[1:]}"


@pytest.mark.parametrize("format", [*OPEN_ENDED, *PYTHON], ids=lambda f: f.name)
@pytest.mark.parametrize("rest", ["b", "b,c", "b.c;", "é"])
def test_a_string_that_was_closed_too_early_makes_no_call(format: Format, rest: str) -> None:
    for head, tail in closed_twice(format, rest):
        for text in (f"{head}{tail}", f"{head}{tail}\n"):
            assert made(outcomes(read(format, text, (ASK,)))) == [], text


@pytest.mark.parametrize("format", OPEN_ENDED, ids=lambda f: f.name)
@pytest.mark.parametrize("rest", ['") and more', "-la b", ") # c", '\' or \\"\\"b', "b" * 700, '\\"b\\\\'])
def test_json_that_ends_early_and_goes_on_in_its_line_makes_no_call(format: Format, rest: str) -> None:
    for head, tail in closed_twice(format, rest):
        for end in (tail, tail.replace('"}', '", "number": 910002}')):
            assert made(outcomes(read(format, f"{head}{end}", (ASK,)))) == [], (head, end)


@pytest.mark.parametrize("name", ["xml", "legacy", "dr_tulu"])
def test_content_that_is_closed_and_closed_again_behind_a_joined_word_makes_no_call(name: str) -> None:
    opening, closing = saved(name)
    pwd = ("save", {"more": "pwd"}, ())
    for word in ("b", "x01e", "é;", "b" * 200):
        text = f"{opening}a{closing}{word}{closing}\n{opening}pwd{closing}"
        assert outcomes(read(name, text, (SAVE,))) == ["ambiguous_call", pwd]


@pytest.mark.parametrize(
    "format", [*OPEN_ENDED, *PYTHON, *map(formats.get, ("xml", "legacy", "dr_tulu"))], ids=lambda f: f.name
)
@pytest.mark.parametrize("behind", [".", "\nSo be it.", "Done.", "Then I look", '\n\nDone "b"}.', " b')"])
def test_text_behind_a_call_is_text_and_the_end_of_the_call_is_told_within_a_word(format: Format, behind: str) -> None:
    tools = (spec("ask", Element("ask", (Node("text", "content"),)), ("text",), text="string"),)
    whole = formats.render_calls(format, [ToolCall("", "ask", {"text": "a b"})], tools)
    if format in PYTHON and format.section is None and behind[:1] != "\n":
        return  # in Python's own lines, what follows a call is a part of its expression
    assert made(outcomes(read(format, f"{whole}{behind}", tools))) == [("ask", {"text": "a b"}, ())]
    parser = Parser(format, tools)
    events = parser.feed(f"{whole}\n") + parser.feed("S")
    assert any(isinstance(e, CallEnd) for e in events)


# ---------------------------------------------------------------- an opening tag

ADD = spec(
    "add", Element("add", (Node("a", "attribute", ("a",)), Node("b", "attribute", ("b",)))), (), a="string", b="string"
)


@pytest.mark.parametrize("behind", ["", "\n", "Two words\n\n", "It is 1, I think: "])
def test_a_quote_that_is_missing_in_an_opening_tag_costs_one_call_whatever_stands_behind_it(behind: str) -> None:
    quoted = "<bash>\n<command>ls</command>\n</bash>"
    opening, closing = saved("xml", text="c")
    for tag in ('<add a="1" b="2/>', '<add b="2/>', '<add a=1 b="2 />'):
        text = f"{tag}{behind}{opening}x{quoted}y{closing}"
        got = outcomes(read("xml", text, (ADD, SAVE, BASH)))
        assert got == ["invalid_arguments", ("save", {"more": f"x{quoted}y", "text": "c"}, ())], text
