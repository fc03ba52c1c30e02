"""Values that hold what closes another value or the call, where a piece of the call's own markup is missing or moved.

No value is cut at what it holds, and none takes in what was written for another part. Over every format with raw
values.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from damaged_texts import tokens
from format_tools import spec
from raw_values import PARAMETERS, RAW, TOOLS, between, child, made, outcomes, pieces, read

from agentkit import formats
from agentkit.formats import CATALOG, Element, Format
from agentkit.formats.format import Braced, NameTag, Pairs
from agentkit.messages import ToolCall

every_raw = pytest.mark.parametrize("format", RAW, ids=lambda f: f.name)
every_format = pytest.mark.parametrize("format", PARAMETERS, ids=lambda f: f.name)
HEADED = [f for f in PARAMETERS if any(isinstance(p, Pairs) and "</" in p.middle for p in f.call)]
WRITTEN = ("a{}b", "{}b", "a\n{}\nb", "a {} b", '("{}")')
GIVEN = {"path": "PATH", "content": "CONTENT"}
SET = spec("set", Element("set", (child("path"), child("content"))), path="string", content="string")
"""A tool that runs without arguments: of what is lost on the way to it no validation tells."""


def markup(text: str) -> list[str]:
    return [t for t in dict.fromkeys(tokens(text)) if len(t) > 1 and not t.isalnum() and not t.isspace()]


def without_a_closing(text: str) -> Iterator[str]:
    """The text without one of the pieces that close something outside of its values, which are given by their words."""
    pieces = tokens(text)
    for i, piece in enumerate(pieces):
        if piece.startswith("</") or "close" in piece or "end" in piece:
            yield "".join(pieces[:i] + pieces[i + 1 :])


@every_raw
def test_a_value_that_holds_a_closing_is_whole_or_refused_where_any_closing_is_missing(format: Format) -> None:
    text = formats.render_calls(format, [ToolCall("", "set", GIVEN)], (SET,))
    for place in GIVEN.values():
        for value in (how.format(piece) for piece in markup(text) for how in WRITTEN):
            meant = {key: value if word == place else word for key, word in GIVEN.items()}
            if outcomes(formats.parse(text.replace(place, value), format, (SET,))) != [("set", meant, ())]:
                continue  # it could not be written so
            for damaged in without_a_closing(text):
                got = made(outcomes(formats.parse(damaged.replace(place, value), format, (SET,))))
                held = [{key: str(text).strip("\n") for key, text in given.items()} for _, given, _ in got]  # type: ignore[misc]
                assert held in ([], [meant]), (damaged.replace(place, value), got)


@every_format
def test_no_data_has_a_closing_in_a_string_where_another_value_was_not_closed(format: Format) -> None:
    tool = spec("both", None, ("more",), text="string", items={"type": "array"}, more="string")
    given = {"text": "TEXT", "more": "MORE", "items": ["ITEM"]}
    text = formats.render_calls(format, [ToolCall("", "both", given)], (tool,))
    close = between(format)[1].strip()
    at = text.index(close, text.index("TEXT"))
    damaged = (text[:at].rstrip() + text[at + len(close) :]).replace("ITEM", f"\\na\\n{close}\\nb")
    got = made(outcomes(read(format, damaged, (tool,))))
    assert [g for g in got if "MORE" in str(g) and close in str(g)] == [], damaged


FRAMED = [f for f in PARAMETERS if any(isinstance(p, NameTag) for p in f.call) and isinstance(f.call[0], str)]


@pytest.mark.parametrize("format", FRAMED, ids=lambda f: f.name)
def test_no_value_has_what_ends_the_frame_of_one_call_and_then_opens_that_of_another(format: Format) -> None:
    one = pieces(format, "bash", command="VALUE")
    opening, end = str(format.call[0]), str(format.call[-1])
    inner = formats.render_calls(format, [ToolCall("", "ping", {})], TOOLS)
    quoted = inner[inner.index(opening) + len(opening) : inner.index(end) + len(end)]
    for value in (f"a{quoted}\n{opening}", f"a{quoted}{opening}b", f"a{quoted}\n{opening}{quoted.replace(end, '')}b"):
        assert [g for g in made(outcomes(read(format, one.call(value)))) if "ping" in str(g)] == [], value
    value = f"a{opening}{quoted}b"
    assert made(outcomes(read(format, one.call(value)))) == [("bash", {"command": value}, ())]


@pytest.mark.parametrize("format", HEADED, ids=lambda f: f.name)
@pytest.mark.parametrize("key", ["command", "more"])
def test_a_name_and_what_follows_it_are_in_no_value_without_what_opens_a_parameter(format: Format, key: str) -> None:
    one = pieces(format, "bash", command="VALUE")
    part = next(p for p in format.call if isinstance(p, Pairs))
    left = one.head[one.head.rindex(part.key.strip()) + len(part.key.strip()) :].replace("command", key)
    assert made(outcomes(read(format, one.call(f"a\n{left}b")))) == [], left


@pytest.mark.parametrize("name", ["minimax_m3"])
def test_what_is_left_of_a_closing_tag_without_its_token_is_in_no_value(name: str) -> None:
    one = pieces(formats.get(name), "bash", command="VALUE")
    token, tag = one.close[: one.close.index("</")], one.close[one.close.index("</") :]
    for size in range(3, len(tag)):
        for worn in (token[:2] + token[-1:], token[:3], token[-2:], ""):
            text = one.call(f"a{worn}{tag[:size]}", closed=False)
            assert made(outcomes(read(name, text))) == [], text


@pytest.mark.parametrize("format", [f for f in CATALOG if any(isinstance(p, Braced) and p.typed for p in f.call)])
def test_no_key_has_a_quote_token_in_it(format: Format) -> None:
    quote = next(p.quote for p in format.call if isinstance(p, Braced))
    tool = spec("keep", None, (), object={"type": "object"})
    text = formats.render_calls(format, [ToolCall("", "keep", {"object": {"k": "VALUE", "n": None}})], (tool,))
    for damaged in (text.replace(f":{quote}VALUE", f"{quote}VALUE"), text.replace(f"VALUE{quote},", f"VALUE{quote}")):
        for worn in (damaged, damaged.replace(f"VALUE{quote},", f"VALUE{quote}")):
            assert made(outcomes(read(format, worn, (tool,)))) == [], worn
