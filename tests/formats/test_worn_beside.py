"""Damage at two places beside each other: no value takes in what was written for another parameter or call.

Over every format with raw values: an end that is torn before a call whose parameter is worn, an end that is written
twice inside a value, what is left of a closing before something that opens.
"""

from __future__ import annotations

import random
import re

import pytest
from format_tools import spec
from raw_values import LOOK, PARAMETERS, RAW, TOOLS, between, holes, made, outcomes, pieces, read

from agentkit import formats
from agentkit.formats import CATALOG, Format
from agentkit.formats.format import Braced, Pairs, TagParameters
from agentkit.messages import ToolCall

every_raw_format = pytest.mark.parametrize("format", RAW, ids=lambda f: f.name)
every_format = pytest.mark.parametrize("format", PARAMETERS, ids=lambda f: f.name)
KEYED = spec("keyed", None, (), object={"type": "object"}, flag="boolean")
TWO = spec("two", None, (), more="string", text="string", number="integer")


def joined(format: Format, text: str) -> list[object]:
    """The calls that were made of more than one value."""
    got = made(outcomes(formats.parse(text, format, (*TOOLS, LOOK))))
    return [g for g in got if sum(word in str(g) for word in ("one1", "two2", "three3")) > 1]


@every_raw_format
def test_no_value_goes_on_over_a_torn_end_into_a_call_whose_opening_is_worn(format: Format) -> None:
    """The next call is one of the same tool, or of another one."""
    one, two = pieces(format, "bash", command="VALUE"), pieces(format, "write", path="two2", content="VALUE")
    end = one.tail.strip()
    for other in (one, two):
        start = max(other.head.rindex("<", 0, -len("<parameter=")), 0)
        last = re.search(r"(?:<(?:[^<>]|\n)*>\s*|\w+(?:</[^<>]+>\s*<[^<>]*>)+\s*)\Z", other.head[start:])
        assert last is not None
        head, opening = other.head.removesuffix(last[0]), last[0]
        for cut in range(len(end)):
            for worn in dict.fromkeys(opening.replace(piece, "", 1) for piece in (opening[:2], opening[1:4])):
                for left in (end[:cut], end[cut + 1 :]):
                    text = f"{one.head}one1{one.close}\n{left}\n{head}{worn}three3{other.close}{other.tail}"
                    assert joined(format, text) == [], text


@every_raw_format
def test_no_value_takes_in_a_call_after_an_end_that_is_written_twice_in_it(format: Format) -> None:
    one = pieces(format, "bash", command="VALUE")
    for piece in re.findall(r"<(?:/|[^<>]*(?:end|close))[^<>]*>", one.tail):
        twice = one.call("one1").replace(one.tail, one.tail.replace(piece, piece * 2))
        text = one.call(f"a{twice}\n{one.call('two2')}b")
        assert joined(format, text) == [], text


@every_format
def test_no_value_holds_a_call_with_something_after_its_value_and_what_is_left_of_an_opening(format: Format) -> None:
    one, two = pieces(format, "bash", command="VALUE"), pieces(format, "write", path="two2", content="VALUE")
    last = two.head[two.head.index("two2") + 4 :]
    for left in holes(last):
        if len(left) in (2, len(last) // 2, len(last) - 2):
            torn = f"{two.head.removesuffix(last)}{left}three3{two.close}{two.tail}"
            text = f"{one.head}a{one.head}one1{one.close}[[{one.tail}\n{torn}"
            assert joined(format, text) == [], text


@every_format
@pytest.mark.parametrize("name", ["number", "unknown"])
def test_what_is_left_of_a_closing_before_an_opening_is_part_of_no_value(format: Format, name: str) -> None:
    """Also where the tool does not declare the parameter that opens there."""
    head, close, opening, rest = between(format)
    close = close.strip()
    for left in dict.fromkeys(holes(close)):
        if close.startswith(left) or close.endswith(left):
            text = head.replace("ls -a", "one1") + left + opening.replace("number", name) + rest.replace("912", "two2")
            assert not left or joined(format, text) == [], text


@every_format
def test_no_value_holds_a_parameter_and_more_ends_than_calls(format: Format) -> None:
    """The closing before the parameter is missing, and the end of the call is there twice."""
    head, _, opening, rest = between(format)
    part = next(p for p in format.call if isinstance(p, Pairs | TagParameters))
    assert part.raw
    text = f"{head}\n{opening.strip()}{rest}{rest.removeprefix('912').lstrip()}"
    got = made(outcomes(read(format, text, (*TOOLS, LOOK))))
    assert got in ([], [("look", {"text": "ls -a", "number": 912}, ("missing_close",))]), (text, got)


@pytest.mark.parametrize("name", ["pythonic", "python", "tool_code", "llama4_pythonic", "olmo3", "lfm2"])
@pytest.mark.parametrize("quote", ["'", '"'])
def test_no_python_string_ends_before_the_name_of_an_argument_that_is_there_twice(name: str, quote: str) -> None:
    call = ToolCall("", "write", {"path": "one1", "content": "two2"})
    text = formats.render_calls(name, [call], TOOLS)
    own = "'" if "'one1'" in text else '"'
    text = text.replace(own, quote)
    for written in (f"content={quote}content=", f"content = {quote}content=", f"content={quote} content="):
        torn = text.replace(f"one1{quote}, content=", f"one1, {written}")
        assert torn != text
        assert made(outcomes(read(name, torn))) == [], torn


@every_raw_format
def test_a_value_without_its_closing_ends_with_no_word_of_it(format: Format) -> None:
    one = pieces(format, "bash", command="VALUE")
    for word in re.findall(r">(\w{4,})<", one.close):  # alone it tells of nothing else
        text = f"{one.head}one1{word}\n{one.tail.lstrip()}"
        assert made(outcomes(read(format, text))) == [], text
        text = f"{one.head}the {word}\n{one.tail.lstrip()}"
        assert made(outcomes(read(format, text))) in ([], [("bash", {"command": f"the {word}"}, ("missing_close",))])


@every_raw_format
@pytest.mark.parametrize("between", ["", "\n", " "])
def test_no_value_begins_with_what_opens_it_written_again(format: Format, between: str) -> None:
    """All of it, or only its last tag or token."""
    one = pieces(format, "write", path="two2", content="VALUE")
    last = re.search(r"<[^<>]*>\s*\Z", one.head)
    assert last is not None
    before = one.head[: last.start()]
    opening = before[max(before.rfind("\n"), before.rfind("two2") + 4) :].lstrip("\n") + last[0]
    for again in dict.fromkeys((last[0], last[0].strip(), opening)):
        text = one.call("one1").replace("one1", f"{between}{again}one1")
        got = made(outcomes(read(format, text)))
        assert [call for call in got if call[1] != {"path": "two2", "content": "one1"}] == [], text  # type: ignore[index]


DISGUISES = {
    "entities": ("&lt;", "&gt;"), "numbers": ("&#60;", "&#x3E;"), "twice": ("&amp;lt;", "&amp;gt;"),
    "unended": ("&lt", "&gt"), "unicode": ("\\u003c", "\\u003e"), "square": "[]", "round": "()", "curly": "{}",
    "wide": "\uff1c\uff1e", "single": "\u2039\u203a", "double": "\xab\xbb", "angle": "\u27e8\u27e9",
    "first": ("&lt;", ">"), "last": ("<", "\uff1e"), "escaped": ("<\\", ">"),
}  # fmt: skip
"""Other ways in which the brackets of a tag are written."""


@pytest.mark.share(12)
@every_raw_format
@pytest.mark.parametrize("signs", DISGUISES.values(), ids=DISGUISES)
def test_a_closing_in_disguise_is_part_of_no_value_and_of_one_that_is_closed(
    format: Format, signs: tuple[str, str]
) -> None:
    one = pieces(format, "write", path="two2", content="VALUE")
    closing = one.close.strip()
    if signs[0] == "<\\":
        worn = closing.replace("</", "<\\/")
    else:
        worn = closing.replace("<", "\0").replace(">", signs[1]).replace("\0", signs[0])
    if worn != closing:
        for left in (worn, f"\n{worn}", worn.removesuffix(signs[1])):
            text = f"{one.head}one1{left}\n{one.tail.lstrip()}"
            assert made(outcomes(read(format, text))) == [], text
            if one.head.count(closing):  # the value before it
                torn = one.call("one1").replace(closing, left, 1)
                assert made(outcomes(read(format, torn))) == [], torn
        if not closing.startswith("]") or not {*signs} & {*"<>"}:  # a token of which half is worn is refused anywhere
            want = {"path": "two2", "content": f"one1 {worn}"}
            assert outcomes(read(format, one.call(f"one1 {worn}"))) == [("write", want, ())]


@every_raw_format
@pytest.mark.parametrize("end", ["a[0]", "f(x)", "{y}", "[b]", "(see)", "&lt;b&gt;", "\xabno\xbb", "x -&gt;"])
def test_a_value_without_its_closing_may_end_with_other_brackets(format: Format, end: str) -> None:
    one = pieces(format, "bash", command="VALUE")
    if one.close.startswith("]") and end.endswith("]"):
        return  # it may be what is left of its token
    got = made(outcomes(read(format, one.call(f"one1 {end}", closed=False))))
    plain = made(outcomes(read(format, one.call("one1", closed=False))))
    assert [call[1] for call in got] == [{"command": f"one1 {end}"} for _ in plain]  # type: ignore[index]


@pytest.mark.parametrize("cut", range(1, 6))
def test_what_is_left_of_a_closing_tag_is_no_element(cut: int) -> None:
    """It would hold the elements after it, and be closed with the call."""
    call = ToolCall("", "keyed", {"object": {"k": "one1"}, "flag": True})
    text = formats.render_calls("minimax_m3", [call], (KEYED,))
    assert outcomes(read("minimax_m3", text, (KEYED,))) == [("keyed", {"object": {"k": "one1"}, "flag": True}, ())]
    for left in ("object"[cut:], "object"[:cut], f"o{'object'[cut + 1 :]}"):
        torn = text.replace("</object>", f"<{left}>")
        assert torn != text
        assert made(outcomes(read("minimax_m3", torn, (KEYED,)))) == [], torn


BRACED = [f for f in CATALOG if any(isinstance(p, Braced) for p in f.call)]


@pytest.mark.parametrize("format", BRACED, ids=lambda f: f.name)
@pytest.mark.parametrize("name", ["text", "number"])
def test_no_string_takes_in_the_next_argument_where_both_quotes_between_them_are_worn(
    format: Format, name: str
) -> None:
    """One is missing; of the other, one of its ends is left, or none."""
    quote = next(p.quote for p in format.call if isinstance(p, Braced))
    call = ToolCall("", "two", {"more": "one1", name: "two2" if name == "text" else 912})
    text = formats.render_calls(format, [call], (TWO,))
    start, rest = text.split("one1")
    for left in dict.fromkeys(["", *(quote[:n] for n in range(len(quote))), *(quote[n:] for n in range(len(quote)))]):
        value = "two2" if name == "text" else "912"
        end = rest[rest.index(value) + len(value) :]
        end = end if end.startswith(quote) else quote + end
        for torn in (f"{start}one1,{name}:{left}{value}{end}", f"{start}one1{left},{name}:{value}{end}"):
            if left or name == "number":
                got = made(outcomes(read(format, torn, (TWO,))))
                assert got in ([], [("two", dict(call.arguments), ())]), torn


@every_format
def test_a_value_in_cdata_ends_where_the_same_value_without_it_ends(format: Format) -> None:
    """Whatever is missing of what opens the next one."""
    head, close, opening, rest = between(format)
    left = list(dict.fromkeys(holes(opening)))
    for worn in random.Random(format.name).sample(left, min(len(left), 60)):
        plain, marked = (
            head.replace("ls -a", value) + close + worn + rest.replace("912", "two2")
            for value in ("one1", "<![CDATA[one1]]>")
        )
        got, wanted = (made(outcomes(formats.parse(text, format, (*TOOLS, LOOK)))) for text in (marked, plain))
        assert got == wanted, marked
