"""Parameters outside of any call, and what is left of delimiters inside values: never executed, never lost.

Over every format that has them.
"""

from __future__ import annotations

import itertools

import pytest
from format_tools import PING, attribute, spec
from raw_values import LOOK, PARAMETERS, RAW, SAVE, TOOLS, between, holes, made, outcomes, pieces, read, saved

from agentkit import formats
from agentkit.events import CallError, Text, merge
from agentkit.formats import CATALOG, Format
from agentkit.formats.format import Braced, Json, NestedTags, Pairs, PythonCall, Tag, TagParameters, TextArgument
from agentkit.messages import ToolCall
from agentkit.toolspec import Element, Node, ToolSpec

every_format = pytest.mark.parametrize("format", PARAMETERS, ids=lambda f: f.name)
BRACED = [f for f in CATALOG if any(isinstance(p, Braced) for p in f.call)]
PYTHON = [f for f in CATALOG if any(isinstance(p, PythonCall) for p in f.call)]
CALLED = (*TOOLS, LOOK)
PWD = ("bash", {"command": "pwd"}, ())


def opening_of(format: Format) -> str:
    """What a call begins with, up to white space."""
    first = next(p for p in format.call if not isinstance(p, str) or p.strip())
    return first.strip().split()[0] if isinstance(first, str) else f"<{first.name}"  # type: ignore[union-attr]


def key_of(format: Format) -> str:
    """What a parameter begins with."""
    part = next(p for p in format.call if isinstance(p, Pairs | TagParameters))
    return part.key.strip() if isinstance(part, Pairs) else f"<{part.name}"


def close_of(format: Format) -> str:
    part = next(p for p in format.call if isinstance(p, Pairs | TagParameters))
    return part.close.strip() if isinstance(part, Pairs) else f"</{part.name}>"


# ---------------------------------------------------------------- outside


@every_format
def test_a_parameter_before_the_opening_of_its_call_is_not_left_out(format: Format) -> None:
    text = formats.render_calls(format, [ToolCall("", "look", {"text": "ls -a", "number": 912})], CALLED)
    key = key_of(format)
    start = text.index(key)
    behind, at = text.index(key, start + 1), text.index(opening_of(format))
    for moved, rest in ((text[start:behind], text[behind:]), (text[start : behind - 1] + "\n", text[behind:])):
        got = outcomes(read(format, f"{text[:at]}{moved}{text[at:start]}{rest}\nDone.", CALLED))
        assert made(got) == [], got
        assert got, text


@every_format
def test_a_call_without_its_opening_is_an_error_behind_another_one(format: Format) -> None:
    calls = [
        ToolCall("", "ping", {}),
        ToolCall("", "bash", {"command": "ls"}),
        ToolCall("", "bash", {"command": "pwd"}),
    ]
    text = formats.render_calls(format, calls, TOOLS)
    opening, key = opening_of(format), key_of(format)
    start = text.index(opening, text.index("ping"))
    damaged = text[:start] + text[text.index(key, start) :]
    got = outcomes(read(format, damaged))
    assert made(got) in ([("ping", {}, ()), PWD], [("ping", {}, ())]), damaged
    assert any(isinstance(g, str) for g in got), damaged


@every_format
@pytest.mark.parametrize("then", [" in prose.", "", "\n\nDone.", " opens one.\n\n"])
def test_a_parameter_that_is_only_mentioned_is_text(format: Format, then: str) -> None:
    one = pieces(format, "bash", command="VALUE")
    start = one.head.rindex(key_of(format))
    for mention in (one.head[start:].replace("VALUE", ""), f"{one.head[start:]}x{one.close}"):
        assert all(isinstance(e, Text) for e in read(format, f"Write {mention}{then}")), mention
        got = outcomes(read(format, f"Write {mention} so.\n\n{one.call('pwd')}"))
        assert got == [PWD], mention


NESTED = [f for f in RAW if any(isinstance(p, NestedTags) for p in f.call)]


@pytest.mark.parametrize("format", NESTED, ids=lambda f: f.name)
def test_an_element_outside_of_a_call_is_an_error_if_its_end_or_a_call_is_there(format: Format) -> None:
    body = next(p for p in format.call if isinstance(p, NestedTags))
    first, call = f"{body.token}<path>a{body.token}</path>", pieces(format, "bash", command="VALUE").call("pwd")
    for mention in (f"{body.token}<path>", f"{body.token}<path", first):
        assert outcomes(read(format, f"Write {mention} so.\n\n{call}")) == [PWD], mention
    assert outcomes(read(format, f"{first}\n{format.call[-1]}\n\n{call}")) == ["invalid_arguments", PWD]
    quoting = f"{body.token}<path>a\n{call}\n{call}{body.token}</path>"
    for then in (" so.", "", f"\n{format.call[-1]}"):
        assert outcomes(read(format, f"{quoting}{then}")) == ["invalid_arguments"], then


MORE = [f for f in RAW if f not in NESTED]


@pytest.mark.parametrize("format", MORE, ids=lambda f: f.name)
@pytest.mark.parametrize("then", ["", "\n", "\n\n"])
def test_a_parameter_behind_the_end_of_its_call_is_not_left_out(format: Format, then: str) -> None:
    """The end of the call is there twice: before its last parameter, and after that."""
    first, rest = formats.render_calls(format, [ToolCall("", "look", {"text": "ls -a"})], CALLED).split("ls -a")
    section = format.shapes[0].section
    edge = section.close if section is not None else ""
    last = f"</{edge.name}>" if isinstance(edge, Tag) else edge.strip()
    whole = formats.render_calls(format, [ToolCall("", "look", {"text": "ls -a", "number": 912})], CALLED)
    close = rest[: next(n for n in range(len(rest), -1, -1) if whole.startswith(f"{first}ls -a{rest[:n]}"))]
    close = close[: close.rindex(">") + 1] if ">" in close else close
    more = whole[len(f"{first}ls -a{close}") : len(whole) - len(rest) + len(close)]
    end = rest[len(close) : rest.rindex(last) if last else len(rest)]
    text = f"{first}ls -a{close}{end}{then}{more.strip()}{rest[len(close) :]}"
    got = outcomes(read(format, f"{text}\nDone.", CALLED))
    assert made(got) == [], text
    assert got, text
    kept = outcomes(read(format, f"{first}ls -a{rest}{then} Write {more.strip()} so.", CALLED))
    assert kept == [("look", {"text": "ls -a"}, ())], kept


@pytest.mark.parametrize("name", ["xml", "cline"])
def test_an_element_behind_a_tag_that_closes_itself_is_not_left_out(name: str) -> None:
    for text in ('<look text="a"/><number>912</number></look>', '<look text="a"/>\n<number>912</number>\n</look>'):
        got = outcomes(read(name, text, CALLED))
        assert made(got) == [], got
        assert got
    for then in ("", "\n<number>", "\n<number>912</number>", "\n<number>912</number> is it.</look>", "</look>", "<b/>"):
        assert made(outcomes(read(name, f'<look text="a"/>{then}', CALLED))) == [("look", {"text": "a"}, ())], then


@pytest.mark.parametrize("name", ["xml", "cline"])
def test_elements_without_the_opening_of_their_call_are_an_error(name: str) -> None:
    for text in ("<text>a</text></look>", "So:\n<text>a</text>\n<number>912</number>\n</look>\n"):
        assert outcomes(read(name, text, CALLED)) == ["invalid_arguments"]
    for text in ("<text>a</text>", "<text>a</text></bash>", "<b>a</b></look>", "`<text>a</text></look>`", "<text>"):
        assert outcomes(read(name, text, CALLED)) == [], text
    call = "<look><text>a</text></look>"
    assert outcomes(read(name, f"<text>\n{call}", CALLED)) == [("look", {"text": "a"}, ())]


# ---------------------------------------------------------------- left of delimiters


@every_format
def test_what_begins_like_the_tag_of_a_call_is_read_the_same_in_any_cutting(format: Format) -> None:
    one = pieces(format, "bash", command="VALUE")
    outside = one.head[one.head.index(key_of(format)) :]
    for more in ("s", "_calls", "_calls x", ""):
        read(format, f"{outside}a{opening_of(format)}{more}>\nb{one.close}{one.tail}")
        read(format, f"{outside}a{one.close}{opening_of(format)}{more}>\nb{one.close}{one.tail}")


@every_format
def test_no_value_ends_with_the_beginning_of_its_closing(format: Format) -> None:
    one, close = pieces(format, "bash", command="VALUE"), close_of(format)
    for size in range(3, len(close)):
        got = outcomes(read(format, f"{one.call(f'ls{close[:size]}')}\n{one.call('pwd')}"))
        assert made(got) == [PWD], close[:size]
        assert got[0] == "ambiguous_call" or got[0] == "invalid_arguments"
    kept = formats.render_calls(format, [ToolCall("", "bash", {"command": f"ls{close[:4]}"})], TOOLS)
    assert outcomes(read(format, kept)) == [("bash", {"command": f"ls{close[:4]}"}, ())]


@every_format
def test_a_closing_with_what_is_left_of_another_one_is_no_content(format: Format) -> None:
    one, close = pieces(format, "bash", command="VALUE"), close_of(format)
    for rest in dict.fromkeys((close[-1:], close[-2:], close[:1], close[:2], close)):
        got = outcomes(read(format, f"{one.call(f'rm -rf build{close}{rest}')}\n{one.call('pwd')}"))
        assert made(got) == [PWD], rest


@every_format
def test_a_misspelt_closing_before_the_value_of_a_missing_parameter_is_refused(format: Format) -> None:
    head, close, _, rest = between(format)
    if not close.startswith("</"):
        return
    for at in range(3, len(close) - 1):
        got = outcomes(read(format, f"{head}{close[:at]}{close[at + 1 :]}\n\n{rest}", CALLED))
        assert made(got) == [], got


@every_format
def test_what_is_left_in_front_of_the_value_of_a_missing_parameter_is_refused(format: Format) -> None:
    """Its name and what follows that are there, but neither its beginning nor the closing before it."""
    head, _, opening, rest = between(format)
    part = next(p for p in format.call if isinstance(p, Pairs | TagParameters))
    if isinstance(part, Pairs) and len(part.middle.strip()) < 3:
        return
    at = opening.index("number") if isinstance(part, Pairs) else opening.index(f"{part.attribute}=")
    got = outcomes(read(format, f"{head}\n{opening[at:]}{rest}", CALLED))
    assert made(got) == [], got


@pytest.mark.parametrize("format", BRACED, ids=lambda f: f.name)
def test_no_string_takes_in_a_parameter_whose_quote_token_is_worn(format: Format) -> None:
    text = formats.render_calls(format, [ToolCall("", "look", {"text": "ls -a", "number": 912})], CALLED)
    quote = next(p.quote for p in format.call if isinstance(p, Braced))
    after = text.index("ls -a") + len("ls -a")
    for start in range(len(quote)):
        for end in range(start + 1, len(quote) + 1):
            left = quote[:start] + quote[end:]
            if len(left) > 2:
                damaged = f"{text[:after]}{left}{text[after + len(quote) :].replace('912', f'{left}912{quote}')}"
                got = outcomes(read(format, damaged, CALLED))
                assert made(got) == [], (damaged, got)
                assert got


@pytest.mark.parametrize("name", ["xml", "legacy", "dr_tulu"])
def test_no_content_ends_with_the_beginning_of_its_closing(name: str) -> None:
    opening, closing = saved(name)
    for size in range(3, len(closing)):
        value = f"GAMMA{closing[:size]}"
        assert outcomes(read(name, f"{opening}{value}{closing}", (SAVE,))) == ["ambiguous_call"], value
        kept = formats.render_calls(name, [ToolCall("", "save", {"more": value})], (SAVE,))
        assert outcomes(read(name, kept, (SAVE,))) == [("save", {"more": value}, ())]


@pytest.mark.parametrize("format", [f for f in CATALOG if isinstance(f.call[-1], Json)], ids=lambda f: f.name)
def test_a_call_of_which_only_json_says_the_end_has_no_more_of_it_behind_that(format: Format) -> None:
    whole = formats.render_calls(format, [ToolCall("", "look", {"text": "ls"})], CALLED)
    at = whole.rindex("}") + 1
    for more in (', "number": 912}', ' "number": 912}', '"number": 912}', '\n "number" : 912'):
        assert made(outcomes(read(format, whole[:at] + more + whole[at:], CALLED))) == [], more
        damaged = whole[: at - 1] + ",}" + more + whole[at:]
        assert made(outcomes(read(format, damaged, CALLED))) == [], damaged
    for more in (' "Done."', ' "a b": so', "\n\nDone: so.", ' "x"'):
        got = outcomes(read(format, whole[:at] + more + whole[at:], CALLED))
        assert got == [("look", {"text": "ls"}, ())], more


def test_content_does_not_take_in_a_call_of_which_the_tag_is_worn() -> None:
    format = next(f for f in CATALOG if any(isinstance(p, TextArgument) for p in f.call))
    one = formats.render_calls(format, [ToolCall("", "bash", {"command": "VALUE"})], TOOLS)
    tag = one[1 : one.index(" ")]
    for start in range(len(tag)):
        for end in range(start + 1, len(tag)):
            worn = one.replace("VALUE", "pwd").replace(f"<{tag}", f"<{tag[:start]}{tag[end:]}")
            assert made(outcomes(read(format, f"{one[: one.index('VALUE')]}ls\n{worn}", CALLED))) == [], worn
    bare = f"{one[: one.index('VALUE')]}ls\n{one[1:].replace('VALUE', 'pwd')}"
    assert made(outcomes(read(format, bare, CALLED))) == []


@pytest.mark.share(6)
@pytest.mark.parametrize("format", RAW, ids=lambda f: f.name)
def test_content_takes_in_no_call_with_other_quotes_behind_a_closing_that_is_worn_or_missing(format: Format) -> None:
    one = pieces(format, "bash", command="VALUE")
    pwd = one.call("pwd")
    for worn in dict.fromkeys(left for left in holes(one.close) if len(left) > 2 or not left):
        for another in dict.fromkeys((pwd, pwd.replace('"', "'"))):
            got = made(outcomes(read(format, f"{one.head}ls{worn}{one.tail}\n{another}")))
            assert not [call for call in got if "pwd" in str(call) and call != PWD], (worn, got)


PLAIN = ToolSpec(
    "bash",
    "Bash.",
    {"type": "object", "properties": {"command": {"type": "string"}}},
    Element("bash", (Node("command", "content"),)),
)
SAVED = spec(
    "save",
    Element("save", (attribute("text"), attribute("title"), Node("more", "content"))),
    ("more",),
    more="string",
    text="string",
    title="string",
)


def opened(name: str) -> tuple[str, str]:
    """A call with two attributes, whose content is `CCC`; and the opening of another call."""
    given = {"text": "AAA", "title": "BBB", "more": "CCC"}
    other = formats.render_calls(name, [ToolCall("", "bash", {"command": "VALUE"})], (PLAIN,))
    return formats.render_calls(name, [ToolCall("", "save", given)], (SAVED,)), other.split("VALUE")[0]


@pytest.mark.parametrize("name", ["xml", "dr_tulu"])
def test_a_call_that_opens_in_an_attribute_of_a_damaged_opening_does_not_run(name: str) -> None:
    whole, opening = opened(name)
    for value in ("AAA", "BBB"):
        for inside in (opening, f"{value}{opening}", f"{value} {opening}{value}"):
            text = whole.replace(value, inside)
            head = text.index("CCC")
            spaces = [at for at, c in enumerate(text[:head]) if c == " "]
            gone = (itertools.combinations(spaces, n) for n in range(1, len(spaces) + 1))
            damaged = ["".join(c for at, c in enumerate(text) if at not in left) for some in gone for left in some]
            for hurt in (*damaged, *(f"{text[:at]}>{text[at + 1 :]}" for at in range(head))):
                got = made(outcomes(read(name, hurt, (PLAIN, SAVED, PING))))
                assert not any(call[0] == "bash" or '">' in str(call) for call in got), hurt  # type: ignore[index]


@pytest.mark.parametrize("name", ["xml", "dr_tulu"])
def test_a_call_that_opens_in_an_opening_that_lacks_a_quote_does_not_run(name: str) -> None:
    whole, opening = opened(name)
    quotes = [at for at, c in enumerate(whole) if c == '"']
    for lacking in (whole[:at] + whole[at + 1 :] for at in quotes):
        for at in range(1, lacking.index("CCC")):
            text = f"{lacking[:at]}{opening}{lacking[at:]}"
            got = made(outcomes(formats.parse(text, name, (PLAIN, SAVED, PING))))
            assert not any(call[0] == "bash" for call in got), text  # type: ignore[index]


@pytest.mark.parametrize("name", ["legacy"])
def test_calls_that_cross_are_not_one(name: str) -> None:
    for space in ("", "\n", " "):
        got = outcomes(read(name, f"<bash>a\n<save>b</bash>{space}</save>\n<bash>pwd</bash>", (*TOOLS, SAVE)))
        assert made(got) == [PWD]


def test_a_token_cut_after_the_end_of_a_call_is_read_the_same_in_any_cutting() -> None:
    text = formats.render_calls("minimax_m3", [ToolCall("", "bash", {"command": "VALUE"})], TOOLS)
    closing = next(p for p in formats.get("minimax_m3").call[::-1] if isinstance(p, str))
    token = closing[: closing.index("</")]
    unclosed = text.replace(f"{token}</command>", "")
    for size in range(1, len(token)):
        read("minimax_m3", unclosed.replace(closing, f"{closing}{token[:size]}"))
        read("minimax_m3", unclosed.replace(closing, f"{closing}{closing}"))


@pytest.mark.parametrize("name", ["pythonic", "python", "tool_code"])
def test_a_string_with_quotes_inside_takes_in_no_other_call_or_argument(name: str) -> None:
    calls = [ToolCall("", "bash", {"command": "ls"}), ToolCall("", "write", {"path": "a", "content": "b"})]
    text = formats.render_calls(name, calls, TOOLS)
    for gone, left in (("write(", "write"), ("write(path=", "")):
        damaged = text.replace(gone, left).replace("'ls')", "'ls'oh")
        assert made(outcomes(read(name, damaged))) == [], damaged


@pytest.mark.share(6)
@pytest.mark.parametrize("format", PYTHON, ids=lambda f: f.name)
def test_no_string_takes_in_a_parameter_behind_a_stray_quote(format: Format) -> None:
    for value in ("ls", "it's", 'say "x" or y', "f'{x}' or \"\""):
        for arguments in ({"text": value, "number": 912}, {"text": value}):
            text = formats.render_calls(format, [ToolCall("", "look", arguments)], CALLED)
            for at in range(len(text) + 1):
                for quote in "\"'":
                    got = made(outcomes(read(format, f"{text[:at]}{quote}{text[at:]}", CALLED)))
                    assert not any("text=" in str(call) or "number=" in str(call) for call in got), (at, got)


@pytest.mark.parametrize("name", ["xml", "cline"])
def test_children_before_the_tag_of_their_tool_make_that_call_ambiguous(name: str) -> None:
    note = {"type": "object", "properties": {"text": {"type": "string"}, "title": {"type": "string"}}}
    offered = (*TOOLS, ToolSpec("note", "Note.", note))
    pwd = formats.render_calls(name, [ToolCall("", "bash", {"command": "pwd"})], TOOLS)
    whole, child = "<note>\n<title>T</title>\n</note>", "<text>ls</text>"
    for before in (child, f"{child}\n", f"{child}\n<title>x</title>\n\n"):
        got = outcomes(read(name, f"Text.\n\n{before}{whole}\n{pwd}", offered))
        assert made(got) == [PWD], before
        assert got[0] == "ambiguous_call"
    for before in (f"Write {child} so.\n", "A <text> is\n", "</text>\n", "<text/>\n", f"{child}\n<b>x</b>\n"):
        got = outcomes(read(name, f"{before}{whole}\n{pwd}", offered))
        assert made(got) == [("note", {"title": "T"}, ()), PWD], before
    assert all(isinstance(e, Text) for e in read(name, f"Write {child}.", offered))
    assert made(outcomes(read(name, f"{child}\n{pwd}", offered))) == [PWD]  # no child of that tool


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("held", ["</invoke>", "</parameter></invoke></function_calls>", "<invoke>"])
def test_what_stands_in_cdata_ends_no_parameter_however_it_comes(held: str, size: int) -> None:
    text = (
        '</function_calls><function_cainvoke name="save">\n'
        f'<parameter name="path"><![CDATA[{held}]]></parameter>\n</invoke>\n</function_calls>'
    )
    parser = formats.Parser("invoke", CALLED)
    events = merge(
        [*(e for at in range(0, len(text), size) for e in parser.feed(text[at : at + size])), *parser.close()]
    )
    assert events == formats.parse(text, "invoke", CALLED)
    assert [e.code for e in events if isinstance(e, CallError)] == ["invalid_arguments"]
