"""A user's format has the properties of every format, or its declaration says what is wrong with it."""

from __future__ import annotations

import os
from typing import Any

import pytest
from corpora import source
from format_tools import ADD, NOTE, PING
from hypothesis import given
from hypothesis import strategies as st

from agentkit.errors import FormatError
from agentkit.events import CallError, Event, Markup, Text, Thinking, merge
from agentkit.formats import Format, Parser, calls, parse, render_calls
from agentkit.formats.format import (
    Braced,
    CallId,
    CountedName,
    Envelope,
    FormatPart,
    Json,
    KeyEnvelope,
    Name,
    NameTag,
    NestedTags,
    Pairs,
    PythonCall,
    Section,
    Skip,
    Tag,
    TagParameters,
)
from agentkit.messages import ToolCall

EXAMPLES = int(os.environ.get("AGENTKIT_EXAMPLES", "0"))
TOOLS = [NOTE, ADD, PING]
LITERALS = [
    "\n", " ", "", "\n\n", "@@", "]]", "<<", "::", "=", ";", ",", "\n@@end", "@@call ", "<k>", "</k>", " -> ", "do ",
    "<call>", "</call>", "<v>\n", "(", ")", "|", "[CALL]", "#", "<|args|>",
]  # fmt: skip
literals = (
    st.sampled_from(LITERALS)
    | st.text(st.sampled_from("@#:;=|<>[]()%ab \n"), max_size=3)
    | st.text(st.sampled_from("{}<acdnpx-"), max_size=2)
)
words = st.sampled_from(["p", "call", "invoke", "parameter", "arg-x"])
bodies: st.SearchStrategy[FormatPart] = st.one_of(
    st.builds(TagParameters, words, st.sampled_from(["n", "name"])),
    st.builds(Pairs, literals, literals, literals, st.sampled_from(["start", "both", "none"])),
    st.just(Json()),
    st.builds(Braced, st.sampled_from(['"', "<|q|>", "'", " ", ""])),
    st.builds(NestedTags, st.sampled_from(["", "]<]", " ", "@"])),
)
whole: st.SearchStrategy[FormatPart] = st.sampled_from([Envelope(), KeyEnvelope(), PythonCall()])
names: st.SearchStrategy[FormatPart] = st.one_of(
    st.builds(Name, st.sampled_from(["", "functions."])),
    st.just(CountedName()),
    st.builds(NameTag, words, st.just("name")),
)
small: st.SearchStrategy[FormatPart] = st.one_of(literals, st.builds(Tag, words, st.booleans()), st.just(CallId()))
usual = st.tuples(literals, names, literals, bodies, literals) | st.tuples(literals, whole, literals)
odd = st.lists(literals | names | bodies | whole | small | st.builds(Skip, literals), max_size=6).map(tuple)
shapes = usual | usual.map(lambda parts: parts[:-1]) | usual.map(lambda p: (*p, "</call>")) | odd
sections = st.none() | st.builds(Section, literals, literals, st.booleans())

ARGUMENTS: list[ToolCall] = [
    ToolCall("", "ping", {}),
    ToolCall("", "add", {"a": 1, "b": -2}),
    ToolCall("", "note", {"text": "x"}),
    ToolCall("", "note", {"text": "two words,\nand = a; line\n"}),
]


def declared(call: tuple[FormatPart, ...], section: Section | None) -> Format | None:
    try:
        return Format("mine", call, section)
    except FormatError:
        return None


def streamed(format: Format, text: str) -> list[Event]:
    parser = Parser(format, TOOLS)
    return merge([*(event for c in text for event in parser.feed(c)), *parser.close()])


def read(format: Format, text: str) -> list[Event]:
    whole = parse(text, format, TOOLS)
    assert streamed(format, text) == whole, text
    assert source(whole) == text
    assert "internal_error" not in [event.code for event in whole if isinstance(event, CallError)]
    return whole


@given(call=shapes, section=sections, made=st.lists(st.sampled_from(ARGUMENTS), min_size=1, max_size=2), data=st.data())
def test_every_declaration_obeys_the_laws_or_is_refused(
    call: tuple[FormatPart, ...], section: Section | None, made: list[ToolCall], data: Any
) -> None:
    format = declared(call, section)
    if format is None:
        return
    begun = "".join("ping" if isinstance(p, Name) else p for p in call if isinstance(p, str | Name))
    for tail in ("", "\n\nDone.", "\n\n"):
        read(format, begun + tail)
    try:
        text = render_calls(format, made, TOOLS)
    except FormatError:
        return
    for tail in ("", "\n\nDone.", "\n\n"):
        read(format, text + tail)
    read(format, text[: data.draw(st.integers(0, len(text)))])
    assert [(c.name, dict(c.arguments)) for c in calls(read(format, text))] == [
        (c.name, dict(c.arguments)) for c in made
    ]


@pytest.mark.parametrize(
    ("call", "section", "why"),
    [
        (("@@", Name(), "::", Pairs("\n", "=", ";"), "@@end"), None, "Pairs(key='\\n') is only white space"),
        (("@@", Name(), "]]", Pairs("<k>", "<v>", "</v>"), "\n"), None, "expected a literal after Pairs"),
        (("@@", Name(), " ", TagParameters("p", "n")), None, "nothing marks the end of Name"),
        (("@@", Name(), "]]"), None, "expected one part for a call's arguments, found none"),
        (("@@", Json()), None, "expected one part for the tool's name before Json"),
        (
            ("@@", Name(), "]]", Pairs("<k>", "<v>", "</v>"), "{end}"),
            None,
            "the literal '{end}' after Pairs begins like JSON, which is read in place of keys and values",
        ),
        (
            ("@@", Name(), "]]", Pairs("<k>", "<v>", "</v>"), "@@end"),
            Section("((", "<k"),
            "Section(close='<k') begins like the key of Pairs",
        ),
        *(
            (
                ("@@", Name(), "]]", TagParameters("call", "n"), end),
                None,
                f"the literal {end!r} after TagParameters begins like a tag <call …> of one more",
            )
            for end in ("<", "<ca", "<call>", "<}", "<<")
        ),
        (("@@", Envelope()), Section("#", "#"), "Section(close='#') begins with what opens the section"),
        (("<Think>@@", Envelope()), None, "'<Think>@@' begins with <Think>, after which everything is thinking"),
        (("@@", Envelope()), Section("<think>", "#"), "'<think>' begins with <think>"),
        (
            ("@@", Envelope(), "<|a|>;"),
            Section("((", "<|a|>"),
            "Section(close='<|a|>') cannot be distinguished from what ends a call",
        ),
    ],
)
def test_a_refusal_says_what_is_wrong(call: tuple[FormatPart, ...], section: Section | None, why: str) -> None:
    with pytest.raises(FormatError) as refused:
        Format("mine", call, section)
    assert str(refused.value).startswith(f"format 'mine' cannot be declared: {why}")


@pytest.mark.parametrize(
    "end", [("</call>",), ("<end>",), ("<calls>",), ("<|end|>",), ("@@end",), ("\n", "</call>"), ("::", ";;"), ()]
)
def test_a_literal_ends_a_call_of_several_parameters(end: tuple[str, ...]) -> None:
    format = Format("mine", ("@@", Name(), "]]", TagParameters("call", "n"), *end))
    text = render_calls(format, [ToolCall("", "add", {"a": 1, "b": 2})] * 2, TOOLS)
    for size in range(len(text) + 1):
        read(format, text[:size])
    assert [c.arguments for c in calls(read(format, text))] == [{"a": 1, "b": 2}] * 2


def test_braces_in_what_is_written_for_skipped_characters() -> None:
    format = Format("mine", ("@@", Name(), ":", Skip("{ {number} }"), "::", Json(), "@@end"))
    assert render_calls(format, [ToolCall("", "ping", {})], TOOLS) == "@@ping:{ 1 }::{}@@end"


@pytest.mark.parametrize("end", [(), ("\n",)])
@pytest.mark.parametrize("text", ["@@do]]\n\nDone.", "@@do]]", '@@do]]<p n="text">x</p>\n\n'])
def test_white_space_after_a_call_that_nothing_ends(end: tuple[str, ...], text: str) -> None:
    assert calls(read(Format("mine", ("@@", Name(), "]]", TagParameters("p", "n"), *end)), text))


@pytest.mark.parametrize("nothing", ["", " ", "\n", "\r\n\t"])
@pytest.mark.parametrize("field", ["ends", "markup", "thinking", "answer"])
def test_what_is_read_outside_of_calls_is_not_only_white_space(field: str, nothing: str) -> None:
    declared: Any = [nothing] if field in ("ends", "markup") else [(nothing, "</t>"), ("<t>", nothing)]
    for literal in declared:
        with pytest.raises(FormatError, match=rf"'mine' cannot be declared: {field} contains .*only white space"):
            Format("mine", ("@@call ", Name(), "::", Json(), "@@"), **{field: (literal,)})


def test_what_opens_a_section_may_contain_what_ends_it() -> None:
    read(Format("mine", ("\t#", Envelope()), Section("<call>", ">", each=True)), "<call>\t#ping")


def test_white_space_where_thinking_ends_is_text_in_any_cutting() -> None:
    format = Format("mine", ("@@", Envelope()), thinking=(("<t>", "</t> "),))
    assert read(format, "<t>a</t> b")[1:] == [Thinking("a"), Markup("</t>"), Text(" b")]


@pytest.mark.parametrize("opening", ["#!", "@@call ", "⟦", "[", "%%% ", "do "])
@pytest.mark.parametrize("between", ["\n\n", " ", "\n", "\n\nNo, I add them first.\n\n", " x "])
@pytest.mark.parametrize("section", [None, Section("((", "))"), Section("<calls>", "</calls>", each=True)])
def test_a_begun_call_never_runs_with_the_arguments_of_the_next_one(
    opening: str, between: str, section: Section | None
) -> None:
    format = Format("mine", (opening, Name("f."), " ", Skip("json"), "::", Json(), ">>"), section)
    text = render_calls(format, [ToolCall("", "add", {"a": 1, "b": 2})], TOOLS)
    begun = text[: text.index("add")] + "ping"
    for written in (begun + between + text, f"{begun} json{between}{text}"):
        assert "ping" not in [c.name for c in calls(read(format, written))], written
    assert [c.name for c in calls(read(format, text))] == ["add"]
