"""Parts of a call in another one, in the wrong order, or behind its end: no value takes them in, no call runs without.

Over every format that has them.
"""

from __future__ import annotations

import re
from itertools import permutations

import pytest
from format_tools import ANYTHING
from raw_values import LOOK, PARAMETERS, SAVE, TOOLS, holes, made, outcomes, pieces, read, saved

from agentkit import formats
from agentkit.formats import CATALOG, Format
from agentkit.formats.format import NestedTags, Pairs, PythonCall, Section, TagParameters, edge
from agentkit.messages import ToolCall

every_format = pytest.mark.parametrize("format", PARAMETERS, ids=lambda f: f.name)
PYTHON = [f for f in CATALOG if any(isinstance(p, PythonCall) for p in f.call)]
every_python = pytest.mark.parametrize("format", PYTHON, ids=lambda f: f.name)
PWD = ("bash", {"command": "pwd"}, ())
CALLED = (*TOOLS, LOOK, SAVE)
TAGGED = [f.name for f in PARAMETERS if any(isinstance(p, TagParameters) for p in f.call)]
OBJECTS = (*TOOLS, ANYTHING)


def around(format: Format) -> tuple[str, str]:
    """What a section of calls begins and ends with, both empty if there is none, or if it may not be told from text."""
    section = format.shapes[0].section
    if not isinstance(section, Section):
        return "", ""
    return edge(section.open).strip(), edge(section.close).strip()


# ---------------------------------------------------------------- values between tags or literals


@every_format
def test_no_value_ends_with_its_closing_in_another_order(format: Format) -> None:
    one = pieces(format, "bash", command="VALUE")
    parts = re.findall(r"<[^<>]*>|[^<>]+", one.close.strip())
    for order in permutations(parts):
        shuffled = "".join(order)
        if shuffled != one.close.strip():
            text = f"{one.head}ls{shuffled}\n{one.tail.lstrip()}"
            assert made(outcomes(read(format, f"{text}\n{one.call('pwd')}"))) in ([PWD], []), shuffled


@every_format
def test_no_value_goes_on_behind_its_section_into_another_one(format: Format) -> None:
    """A value whose own closing stands in the next section: what is between is a whole call, an end and a start."""
    first, last = around(format)
    one = pieces(format, "bash", command="VALUE")
    if not last or not one.head.lstrip().startswith(first):
        return
    inner = one.call("pwd").strip().removeprefix(first)
    crossed = f"{one.head}ls{inner}\nSo.\n{first}{one.close}{one.tail}"
    assert all("So." not in str(got) for got in made(outcomes(read(format, crossed))))


@every_format
def test_a_value_that_is_closed_behind_its_section_makes_the_call_ambiguous(format: Format) -> None:
    _, last = around(format)
    text = formats.render_calls(format, [ToolCall("", "look", {"text": "ls -a", "number": 912})], CALLED)
    one = pieces(format, "bash", command="VALUE")
    if not last or last not in one.tail:
        return
    start = text.index("ls -a") + len("ls -a") + len(one.close)
    got = outcomes(read(format, f"{text[:start]}\n{last}912{one.close}{one.tail}", CALLED))
    assert made(got) == [], got
    ended = outcomes(read(format, f"{text[:start]}\n{last}\nThen {one.close.strip()} is prose.", CALLED))
    assert made(ended) in ([("look", {"text": "ls -a"}, ())], []), ended


@every_format
def test_no_value_with_half_a_call_is_beside_one_that_is_not_closed(format: Format) -> None:
    one = pieces(format, "write", path="PATH", content="VALUE")
    head, rest = one.head.split("PATH")
    half = pieces(format, "bash", command="VALUE").head.strip()
    damaged = f"{head}a{half}b{one.close}c{rest}d\n{one.tail.lstrip()}"
    assert made(outcomes(read(format, damaged))) == []


@every_format
def test_a_call_behind_parameters_that_are_outside_of_any_call_keeps_its_opening(format: Format) -> None:
    calls = [ToolCall("", "bash", {"command": "ls"}), ToolCall("", "bash", {"command": "pwd"})]
    text = formats.render_calls(format, calls, TOOLS)
    one = pieces(format, "bash", command="VALUE")
    part = next(p for p in format.call if isinstance(p, Pairs | TagParameters))
    opening = next((p.strip() for p in format.call if isinstance(p, str) and p.strip()), "<")
    key = one.head[one.head.rindex(part.key.strip() if isinstance(part, Pairs) else f"<{part.name}") :]
    at = text.rindex(opening.split()[0], 0, text.rindex("bash"))
    got = outcomes(read(format, f"{text[:at]}{key}x{one.close}\n{key}\n{text[at:]}"))
    assert made(got) in ([("bash", {"command": "ls"}, ()), PWD], [("bash", {"command": "ls"}, ())]), got
    if isinstance(part, TagParameters):
        assert PWD in got


@pytest.mark.parametrize("format", [f for f in PARAMETERS if f.name in TAGGED], ids=lambda f: f.name)
def test_no_value_holds_an_opening_tag_without_its_end(format: Format) -> None:
    one = pieces(format, "bash", command="VALUE")
    part = next(p for p in format.call if isinstance(p, TagParameters))
    text = formats.render_calls(format, [ToolCall("", "look", {"text": "ls"})], CALLED)
    for start in (f'<{part.name} {part.attribute}="num', f"<{part.name} {part.attribute}=", f"<{part.name} "):
        damaged = text.replace(f"ls{one.close}", f"a{one.close}\n{start}912{one.close}")
        assert damaged != text
        assert made(outcomes(read(format, damaged, CALLED))) == [], start
        again = damaged.replace(">a<", f">{text[text.index(f'<{part.name}') : text.index('ls')]}a<")
        assert made(outcomes(read(format, again, CALLED))) == [], start


@every_format
def test_a_type_is_one_word(format: Format) -> None:
    part = next(p for p in format.call if isinstance(p, Pairs | TagParameters))
    if not isinstance(part, Pairs) or not part.kind or not part.kind[1].startswith('"'):
        return
    one = pieces(format, "bash", command="VALUE")
    for more in ('b"', '"b', 'b",', "b'"):
        damaged = one.call("ls").replace(f"string{part.kind[1].strip()}", f'string"{more}{part.kind[1].strip()}')
        assert damaged != one.call("ls")
        assert made(outcomes(read(format, damaged))) == []


@every_format
def test_no_value_holds_a_whole_call_and_what_is_left_of_another_ones_opening(format: Format) -> None:
    part = next(p for p in format.call if isinstance(p, Pairs | TagParameters))
    if not isinstance(part, Pairs):
        return
    one = pieces(format, "bash", command="VALUE")
    whole, key = one.call("pwd"), one.head[one.head.rindex(part.key.strip()) :]
    for left in (key.replace(part.middle.split()[0], "", 1), key[key.index("command") + len("command") :]):
        if left not in (key, "") and (left.startswith(part.key.strip()) or left.strip().endswith(f"<{one.close[2:]}")):
            damaged = f"{one.head}a{whole}\nbash\n{left}b{one.close}{one.tail}"
            assert made(outcomes(read(format, damaged))) in ([], [PWD]), left
    quoted = f"a{whole}\nbash\nb"
    assert outcomes(read(format, one.call(quoted)))[0] == ("bash", {"command": quoted}, ())


# ---------------------------------------------------------------- nested elements


def test_no_value_has_what_is_left_of_the_token_before_a_tag() -> None:
    one = pieces(formats.get("minimax_m3"), "bash", command="VALUE")
    token = next(p.token for p in formats.get("minimax_m3").call if isinstance(p, NestedTags))
    for left in holes(token):
        if len(left) * 2 > len(token) and (left in token or left[:3] + left[-3:] == token[:3] + token[-3:]):
            for value in (f"ls{left}", f"{left}ls", f"l{left}s"):
                assert made(outcomes(read("minimax_m3", f"{one.call(value)}\n{one.call('pwd')}"))) == [PWD], left
    whole = one.call("pwd")
    assert outcomes(read("minimax_m3", one.call(f"a {whole} b"))) == [("bash", {"command": f"a {whole} b"}, ())]


def test_elements_that_continue_behind_the_end_of_their_call_make_it_an_error() -> None:
    one = pieces(formats.get("minimax_m3"), "write", path="a", content="VALUE")
    token = one.close[: one.close.index("</")]
    end = one.tail.split("\n")[0]
    for more in (f"{token}<mode>x{token}</mode>{end}", f"\n{token}<mode>x{token}</mode>\n{end}", f"{token}</content>"):
        assert made(outcomes(read("minimax_m3", f"{one.head}b{end}{more}\n{one.tail.removeprefix(end)}"))) == [], more
    whole = ("write", {"path": "a", "content": "b"}, ("missing_close",))
    for tail in (one.tail, f"{end}\n{one.call('c')}", f"{end}{end}"):
        assert made(outcomes(read("minimax_m3", f"{one.head}b{tail}")))[0] == whole


def test_no_element_is_named_like_a_part_of_the_token() -> None:
    one = pieces(formats.get("minimax_m3"), "write", path="a", content="VALUE")
    token = one.close[: one.close.index("</")]
    for name in ("]minimax[", "[", "]", "]minimax"):
        damaged = f"{token}<{name}>x{token}</{name}>"
        assert made(outcomes(read("minimax_m3", f"{one.head}b{one.close}{damaged}{one.tail}"))) == [], name


# ---------------------------------------------------------------- an element per tool


@pytest.mark.parametrize("name", ["xml", "legacy", "dr_tulu"])
def test_entities_in_an_attribute_without_quotes_are_decoded(name: str) -> None:
    opening, closing = saved(name, text="a\tb&c")
    bare = opening.replace('"a&#9;b&amp;c"', "a&#9;b&amp;c")
    assert bare != opening
    assert outcomes(read(name, f"{bare}x{closing}", CALLED)) == [("save", {"more": "x", "text": "a\tb&c"}, ())]


@pytest.mark.parametrize("name", ["xml", "legacy"])
def test_content_that_crosses_another_call_is_ambiguous(name: str) -> None:
    opening, closing = saved(name)
    for inside, behind in (
        ("<bash>", "</bash>"),
        ("<bash>", " so\n\n<b>x</b></bash>"),
        ("<bash>\n<command>", "ls</command>\n</bash>"),
        ("</bash>\n<bash>", ""),
        ("</bash> so\n\n<bash>", "\n</bash>"),
        ("<bash ", 'command="ls"/>'),
        ("<", 'bash command="ls"/>'),
        ("<", "bash>ls</bash>"),
    ):
        text = f"{opening}a{inside}{closing}{behind}"
        assert made(outcomes(read(name, text, CALLED))) in ([], [("bash", {"command": "ls"}, ())]), text
        assert outcomes(read(name, text, CALLED))[0] == "ambiguous_call"
    assert made(outcomes(read(name, f'<save text="b"{opening}>a</bash>\nb{closing}', CALLED))) == []
    for value in ("a<bash>ls</bash>", "a<bash>", "a</bash>", "> a <", "a <b", "a<bash>\n</bash >b", "<x></bash>"):
        whole = ("save", {"more": value}, ())
        for behind in ("", "\nSo <bash> is it.", "\n<bash>\n<command>pwd</command>\n</bash>"):
            assert outcomes(read(name, f"{opening}{value}{closing}{behind}", CALLED))[0] == whole, value


@pytest.mark.parametrize("name", ["xml", "legacy"])
def test_content_with_the_end_of_another_call_between_two_halves_of_a_tag_is_ambiguous(name: str) -> None:
    opening, closing = saved(name)
    for value in ("a</command>\n</bash>\n<command>b", "\n</bash>\nb", "</bash></p>b"):
        assert outcomes(read(name, f"{opening}{value}{closing}", CALLED))[0] == "ambiguous_call", value
    for value in ("a</p>\n<p>b", "a</bash>\n<p>b</p>", "a\n</p>\nb"):
        assert outcomes(read(name, f"{opening}{value}{closing}", CALLED)) == [("save", {"more": value}, ())], value


@pytest.mark.parametrize("name", ["xml", "cline"])
def test_a_value_does_not_end_with_a_parameter_of_its_call_that_opens_behind_the_end_of_such_a_value(name: str) -> None:
    for quoted in ("<bash>\n<path>b</path>\n", "</path>"):
        text = f"<write>\n<path>a{quoted}<content>c</path>\n</write>"
        assert made(outcomes(read(name, text))) == []
    for value in ("a <content> b", "<content>c", "<path>b</path> <content>c</content>", "</content>"):
        whole = {"path": value, "content": "d"}
        assert outcomes(read(name, f"<write>\n<path>{value}</path>\n<content>d</content>\n</write>")) == [
            ("write", whole, ())
        ]


@pytest.mark.parametrize("name", ["gemma4", "functiongemma"])
def test_a_string_does_not_end_with_a_parameter_that_is_missing(name: str) -> None:
    text = formats.render_calls(name, [ToolCall("", "look", {"text": "ls", "number": 912})], CALLED)
    token = '<|"|>' if name == "gemma4" else "<escape>"
    damaged = text.replace(token, "")
    damaged = damaged.replace("text:ls", f"text:{token}ls").replace("number:912", f"number:912{token}")
    assert outcomes(read(name, damaged, CALLED)) == ["ambiguous_call"]
    for value in ("ls, number:912", "ls,number: 912", "ls,number:912 and", "ls,numbers:912", "ls,number:x"):
        whole = formats.render_calls(name, [ToolCall("", "look", {"text": value})], CALLED)
        assert outcomes(read(name, whole, CALLED)) == [("look", {"text": value}, ())]


@pytest.mark.parametrize("name", ["xml", "legacy"])
@pytest.mark.parametrize("value", ["a</bash><bash>b", "</p>\n<p>", "a <b ", "><b></i>", "x<save", "</sav\n"])
def test_content_that_seems_to_cross_a_call_is_written_so_that_it_is_read_back(name: str, value: str) -> None:
    call = ToolCall("", "save", {"more": value})
    assert outcomes(read(name, formats.render_calls(name, [call], CALLED), CALLED)) == [("save", {"more": value}, ())]


@pytest.mark.parametrize("name", ["xml", "legacy", "dr_tulu"])
def test_content_is_over_at_a_worn_closing_tag(name: str) -> None:
    opening, closing = saved(name)
    for worn in (closing[:-1], closing[:-2], f"{closing[:3]}{closing[4:]}"):
        for space in ("\n", "\n\n"):
            assert made(outcomes(read(name, f"{opening}a{worn}{space}b{closing}", CALLED))) == [], worn


@pytest.mark.parametrize("name", ["xml", "legacy"])
def test_an_attribute_behind_the_end_of_its_tag_is_no_content(name: str) -> None:
    opening, closing = saved(name)
    assert outcomes(read(name, f'{opening}text="b"a{closing}', CALLED)) == ["ambiguous_call"]
    for value in ('text="b"', 'text="b" a', 'a text="b"c'):
        assert outcomes(read(name, f"{opening}{value}{closing}", CALLED)) == [("save", {"more": value}, ())]


# ---------------------------------------------------------------- Python


@every_python
@pytest.mark.parametrize("more", [", x==1", ", x=1", ", x", ", x==1, y=2", " x==1", ", x="])
def test_arguments_behind_the_end_of_their_call_are_read_the_same_in_any_cutting(format: Format, more: str) -> None:
    calls = [ToolCall("", "bash", {"command": "ls"}), ToolCall("", "bash", {"command": "pwd"})]
    text = formats.render_calls(format, calls, TOOLS)
    at = text.index(")") + 1
    read(format, f"{text[:at]}{more}){text[at:]}")
    read(format, f"{text[:at]}{more}")


@every_python
def test_strings_beside_each_other_are_one_value_only_with_a_space(format: Format) -> None:
    text = formats.render_calls(format, [ToolCall("", "bash", {"command": "VALUE"})], TOOLS)
    assert made(outcomes(read(format, text.replace("'VALUE'", "'a''b'")))) == []
    assert made(outcomes(read(format, text.replace("'VALUE'", '"a""b"')))) == []
    for joined in ("'a' 'b'", "'a'\n'b'", "'a'\"b\"", "'a' 'b' ''"):
        if "\n" not in joined or format.name != "python":
            assert made(outcomes(read(format, text.replace("'VALUE'", joined)))) == [("bash", {"command": "ab"}, ())]


@every_python
@pytest.mark.parametrize("quote", ["'", '"'])
@pytest.mark.parametrize("space", ["", " "])
def test_a_comma_that_has_changed_places_with_a_quote_is_not_added_again(
    format: Format, quote: str, space: str
) -> None:
    text = formats.render_calls(format, [ToolCall("", "look", {"text": "VALUE", "number": 912})], (LOOK,))
    damaged = re.sub(r"(['\"])VALUE\1, ", f"{quote}VALUE,{quote}{space}", text)
    assert damaged != text
    assert made(outcomes(read(format, damaged, (LOOK,)))) == []
    lacking = re.sub(r"(['\"])VALUE\1, ", f"{quote}VALUE{quote} ", text)
    assert outcomes(read(format, lacking, (LOOK,))) == [("look", {"text": "VALUE", "number": 912}, ("missing_comma",))]


@every_python
def test_a_key_is_one_string(format: Format) -> None:
    text = formats.render_calls(format, [ToolCall("", "anything", {"object": {"k": "VALUE", "n": None}})], OBJECTS)
    for damaged in (text.replace("': 'VALUE', '", "' 'VALUE' '"), text.replace("'k'", "'k' 'l'")):
        assert damaged != text
        assert made(outcomes(read(format, damaged, OBJECTS))) == []


@pytest.mark.parametrize("name", ["pythonic", "llama4_pythonic"])
def test_a_list_that_begins_with_an_argument_is_one_of_calls(name: str) -> None:
    got = outcomes(read(name, "[, number=912)look(text='a', bash(command='pwd')]", CALLED))
    assert made(got) == []
    assert got
    assert outcomes(read(name, "[, and more] of it, bash(command='x')", CALLED)) == []


@every_python
@pytest.mark.parametrize("value", ["''a'", "''a',b'", "''a', b'"])
def test_a_string_that_begins_with_two_quotes_is_not_one_with_quotes_inside(format: Format, value: str) -> None:
    text = formats.render_calls(format, [ToolCall("", "bash", {"command": "VALUE"})], TOOLS)
    assert made(outcomes(read(format, text.replace("'VALUE'", value)))) == []
    inner = outcomes(read(format, text.replace("'VALUE'", "'say 'hello' now'")))
    assert inner == [("bash", {"command": "say 'hello' now"}, ("inner_quotes",))]
