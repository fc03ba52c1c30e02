"""A body of another style in a format's own opening, with an offered tool's name: a right call, or an error.

Over every format with an opening that only calls have. What names no tool there is text; so is
what is quoted, or only speaks of it.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from corpora import source
from format_tools import spec

from agentkit import formats
from agentkit.events import CallEnd, CallError, Event, merge
from agentkit.formats import CATALOG, Format, Parser
from agentkit.formats.edges import is_fence, weak
from agentkit.formats.format import Envelope, FormatPart, PythonCall, Section, Tag, edge
from agentkit.messages import ToolCall

TOOLS = (spec("move", None, ("src",), src="string", dst="string"), spec("ping", None, ()))
NAMED = '{"name": "move", "arguments": {"src": "AAA", "dst": "BBB"}}'
BODIES = (
    NAMED,
    f"[{NAMED}]",
    f"<tool_call>{NAMED}</tool_call>",
    'move\n{"src": "AAA", "dst": "BBB"}',
    '<tool_name>move</tool_name>\n<parameters>{"src": "AAA"}</parameters>',
    "<move>\n<src>AAA</src>\n<dst>BBB</dst>\n</move>",
    '<move src="AAA" dst="BBB"/>',
    '<move src="AAA" dst="BBB"></move>',
    "<function=move>\n<parameter=src>AAA</parameter>\n<parameter=dst>BBB</parameter>\n</function>",
    '<function=move>{"src": "AAA"}</function>',
    '<function name="move">\n<parameter name="src">AAA</parameter>\n</function>',
    '<invoke name="move">\n<parameter name="src">AAA</parameter>\n</invoke>',
    '<invoke name="move">\n<src>AAA</src>\n</invoke>',
    "<invoke=move>\n<parameter=src>AAA</parameter>\n</invoke>",
    'move(src="AAA", dst="BBB")',
    '[move(src="AAA", dst="BBB")]',
    "move\n<arg_key>src</arg_key>\n<arg_value>AAA</arg_value>",
    "name: move\narguments:\n  src: AAA\n  dst: BBB",
    'move: {"src": "AAA"}',
    'move:\n{"src": "AAA"}',
    "move: src=AAA dst=BBB",
    "move:\n  src: AAA",
    'name = "move"\nsrc = "AAA"',
    'Action: move\nAction Input: {"src": "AAA"}',
)
NAMELESS = (
    "See the manual.",
    "It is a <b>tag</b>: nothing follows.",
    "a < b, or 3 > 2",
    "",
    "```sh\nls -l\n```",
    "```\nwhat you move\n```",
    "`move`",
    "`what it does`: a path = b",
)
MENTIONED = (
    "I wrap it in {0} and {1}.",
    "It is {0} JSON {1}, or {0}JSON{1}.",
    "Write {0}…{1}.",
    "Use this:\n\n{0}\n…\n{1}\n\nOr {0}\n...\n{1}.",
    "{0}...{1}",
    "{0}JSON{1}\n",
)
BESIDE_CODE = (
    "I write {0}\n```json\n{2}\n```\n{1} around it.",
    "So {0} `{2}` {1} is a call.",
    "The tag {0}:\n\n```json\n{2}\n```",
    "{0} and {1} are around this:\n\n```json\n{2}\n```",
)
SAID = (
    "After {0} comes the name, so move it there.",
    "{0} and {1} are tags; move is a tool.",
    "The tags {0}…{1} hold a call of move or ping.",
    "I would write {0}, then the call, then {1}. Then I move on.",
)
JOINED = ("deepseek_v3", "harmony")
"""Here any word after the opening is read as a tool's name, for what follows a name may be far behind it."""
IN_CODE = tuple(f.name for f in CATALOG if any(isinstance(part, Envelope) for shape in f.shapes for part in shape.call))
"""Here the JSON of a call may be in a code fence, wherever its opening is."""
AUTO = tuple(formats.get(format.name) for format in formats.auto())


def written(part: FormatPart) -> str:
    """A literal or tag as it is written; empty for a slot."""
    return edge(part).strip() if isinstance(part, str | Tag) else ""


def openings(format: Format) -> dict[str, str]:
    """Return the edges of this format's calls and sections, without those that are common in prose."""
    found = {}
    for shape in format.shapes:
        section = shape.section or Section(written(shape.call[0]), written(shape.call[-1]))
        found[written(section.open)] = written(section.close)
    return {opens: closes for opens, closes in found.items() if not weak(opens)}


OPENINGS = [
    pytest.param(format, *around, id=f"{format.name}-{n}")
    for format in CATALOG
    for n, around in enumerate(openings(format).items())
]
every_opening = pytest.mark.parametrize(("format", "opens", "closes"), OPENINGS)


def read(given: Any, text: str, sizes: tuple[int, ...] = (1,), **how: Any) -> list[Event]:
    """The events of a text, the same whole and in pieces; nothing of it is lost."""
    whole = formats.parse(text, given, TOOLS, **how)
    for size in sizes:
        parser = Parser(given, TOOLS, **how)
        events = [e for i in range(0, len(text), size) for e in parser.feed(text[i : i + size])]
        assert merge([*events, *parser.close()]) == whole, text
    assert source(whole) == text
    return whole


def answered(events: list[Event]) -> list[CallEnd | CallError]:
    return [e for e in events if isinstance(e, CallEnd | CallError)]


def right(answer: CallEnd | CallError) -> bool:
    """Return True if only the body's call would run: any other name is answered with `unknown_tool`."""
    if isinstance(answer, CallError) or answer.call.name not in {tool.name for tool in TOOLS}:
        return True
    return answer.call.name == "move" and answer.call.arguments in ({"src": "AAA"}, {"src": "AAA", "dst": "BBB"})


@pytest.mark.share(12)
@every_opening
def test_a_call_in_another_style_after_a_formats_own_opening_is_right_or_an_error(
    format: Format, opens: str, closes: str
) -> None:
    for body in BODIES:
        for text in (f"{opens}\n{body}\n{closes}", f"I will move it.\n\n{opens}{body}{closes}\n\nDone."):
            for given in (format, formats.auto()) if format in AUTO else (format,):
                found = answered(read(given, text, (1,) if given is format else (7,)))
                assert found, text
                assert all(map(right, found)), text


@pytest.mark.share(12)
@every_opening
def test_what_names_no_tool_after_it_or_only_shows_it_is_text(format: Format, opens: str, closes: str) -> None:
    """A word after the opening of Python calls, at the text's end, may be the beginning of one: that is an error."""
    python = any(isinstance(shape.call[0], PythonCall) for shape in format.shapes)
    for body in NAMELESS if format.name not in JOINED else ():
        said = f"Write {opens} here. {body}"
        for text in (f"{opens}\n{body}\n{closes}", *([said] if body or not python else [])):
            assert not answered(read(format, text)), text
    for body in BODIES:
        text = f"{opens}\n{body}\n{closes}"
        around = [f"<!-- {text} -->", f"<think>{text}</think>"]
        if "`" not in text and not any(is_fence(shape.opening) for shape in format.shapes):
            around += [f"So:\n\n```\n{text}\n```\n", f"~~~xml\n{text}\n~~~"]
        if "`" not in text and "\n\n" not in text:
            around += [f"Not ``{text}``."]
        for shown in around:
            assert not answered(read(format, shown)), shown


@pytest.mark.share(12)
@every_opening
@pytest.mark.parametrize("said", SAID)
def test_prose_that_mentions_it_and_a_tool_is_text(format: Format, opens: str, closes: str, said: str) -> None:
    if opens.endswith(("=", ":", '"')) or format.name in JOINED:
        return
    assert not answered(read(format, said.format(opens, closes))), said


@pytest.mark.share(12)
@every_opening
@pytest.mark.parametrize("said", MENTIONED)
def test_a_pair_of_tags_with_a_word_or_an_ellipsis_between_them_is_text(
    format: Format, opens: str, closes: str, said: str
) -> None:
    if opens.endswith(("=", ":", '"', "functions.")) or not closes:
        return
    text = said.format(opens, closes)
    for given in (format, formats.auto()):
        assert not answered(read(given, text)), text


@pytest.mark.parametrize("given", ["glm45", formats.auto()], ids=["glm45", "auto"])
@pytest.mark.parametrize(
    "text",
    [
        "So <tool_call>mve\n<arg_key>src</arg_key>\n<arg_value>A</arg_value>\n</tool_call>",
        "So <tool_call>other<arg_key>src</arg_key><arg_value>A</arg_value></tool_call>",
        'So <tool_call>other\n{"src": "A"}\n</tool_call>',
        "So <tool_call>pin\n</tool_call>",
        "So <tool_call>list_files\n</tool_call>",
        "So <tool_call>listFiles</tool_call>",
        "So:\n<tool_call>other\n</tool_call>",
        "<tool_call>other</tool_call>",
        "<tool_call>\nother\n</tool_call>",
    ],
)
def test_a_call_of_no_tool_is_answered_for(given: Any, text: str) -> None:
    assert [e.call.name for e in answered(read(given, text)) if e.call] in (
        ["mve"],
        ["other"],
        ["pin"],
        ["list_files"],
        ["listFiles"],
    )


@every_opening
@pytest.mark.parametrize("said", BESIDE_CODE)
def test_an_opening_in_a_sentence_begins_no_code(format: Format, opens: str, closes: str, said: str) -> None:
    if format.name in JOINED or format.name in IN_CODE or opens.endswith(("=", ":", '"')):
        return
    assert not answered(read(format, said.format(opens, closes, NAMED))), said


@pytest.mark.parametrize("name", ["deepseek_v32", "deepseek_v4", "deepseek_v41"])
def test_a_tag_with_a_token_in_it_is_read_in_any_case(name: str) -> None:
    call = ToolCall("", "move", {"src": "AAA", "dst": "BBB"})
    text = formats.render_calls(name, [call], TOOLS).replace("AAA", "aaa")
    for written_so in (str.upper, str.title):
        other = re.sub(r"(?<=[｜ ])[a-z_]+(?=[\s>])", lambda tag, how=written_so: how(tag[0]), text)
        assert other != text
        for given in (name, formats.auto()):
            found = answered(read(given, other))
            assert [e.call.arguments for e in found if isinstance(e, CallEnd)] == [{"src": "aaa", "dst": "BBB"}], other
