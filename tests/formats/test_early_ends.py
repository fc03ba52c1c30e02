"""A string of a Python call that is closed too early, by a quote and a bracket in it, makes no call with half of it.

Over every Python format, in both kinds of quotes, whatever stands in the value behind what closes it. Sound calls run
whatever stands behind them, and their end is told where the next one starts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from format_tools import spec
from raw_values import outcomes, read

from agentkit import formats
from agentkit.events import CallEnd
from agentkit.formats import CATALOG, Format, Parser
from agentkit.formats.format import PythonCall
from agentkit.messages import ToolCall

QUERY = spec("query", None, ("sql",), sql="string", limit="integer", label="string")
DELETE = spec("delete", None, ("path",), path="string")
TOOLS = (QUERY, DELETE)
PYTHON = [f for f in CATALOG if isinstance(f.call[-1], PythonCall)]
every_format = pytest.mark.parametrize("format", PYTHON, ids=lambda f: f.name)
GIVEN: tuple[dict[str, object], ...] = (
    {"sql": "VALUE"},
    {"sql": "VALUE", "limit": 7},
    {"limit": 7, "sql": "VALUE"},
    {"sql": "VALUE", "label": "a b"},
    {"sql": "VALUE", "label": "a (b"},
    {"sql": "VALUE", "label": "", "limit": 7},
)
ENDS = ("?)", "?), ", "?) ", "? ), ", "?)]", "?)] ", "?)\n", "?);", "?)),")
RESTS = (
    "only the old rows",
    "and",
    ", (see below)",
    "b(c",
    "a (b) c",
    "say ?no? to it",
    "say ?no",
    "x = 1",
    "it's",
    "# 1, 2",
    "- 1; é",
    "{a: [b]}",
    ")",
    "",
)
DELETED = ToolCall("", "delete", {"path": "x"})


def queries(format: Format, value: str, quote: str) -> Iterator[str]:
    """Calls with this value, alone, and before and behind another call."""
    for given in GIVEN:
        query = ToolCall("", "query", given)
        for calls in ((query,), (query, DELETED), (DELETED, query)):
            text = formats.render_calls(format, calls, TOOLS)
            yield text.replace("'", quote).replace("VALUE", value.replace("?", quote))


@pytest.mark.share(60)
@every_format
@pytest.mark.parametrize("end", ENDS)
def test_no_call_runs_with_a_value_that_was_cut_at_its_own_quote(format: Format, end: str) -> None:
    if format.section is None and "\n" in end:
        return  # in Python's own lines, a call ends with its line
    for rest in RESTS:
        value = f"DELETE FROM t -- {end}{rest}"
        for quote in ("'", '"'):
            if quote == "'" and "'" in rest:
                continue
            for text in queries(format, value, quote):
                whole = value.replace("?", quote)
                ran = [e.call for e in read(format, text, TOOLS) if isinstance(e, CallEnd)]
                assert all(c.name == "delete" or c.arguments["sql"] == whole for c in ran), text
                assert [c.arguments for c in ran if c.name == "delete"] in ([], [{"path": "x"}]), text


BEHIND = (
    "",
    "\n",
    "\n\nIt's done.",
    "\nIt's (\"done\"), isn't it?",
    " It's done.",
    ' I said "no", limit=7.',
    ' 5" is (5 inches) "long")',
    " see [note(x='1')] and (a 'b')",
    " # said 'x'",
    "\nthe dogs' bone, limit=7)",
)


@pytest.mark.share(6)
@every_format
@pytest.mark.parametrize("behind", BEHIND)
def test_a_sound_call_runs_whatever_stands_behind_it(format: Format, behind: str) -> None:
    if format.section is None and behind[:1] not in ("", "\n"):
        return  # it is a part of its expression
    for given in ({"sql": "a b"}, {"sql": "it's (a)"}, {"sql": 'a ")'}, {"sql": "a", "label": ")]"}):
        query = ToolCall("", "query", dict(given))
        for calls in ((query,), (query, DELETED), (DELETED, query)):
            text = formats.render_calls(format, calls, TOOLS) + behind
            got = outcomes(read(format, text, TOOLS))
            assert got == [(c.name, c.arguments, ()) for c in calls], text


BETWEEN = (
    ", ",
    ",\n",
    ',  # it\'s the "first", limit=1\n',
    ",\n# 'a'\n# (b)\n  ",
    ", unknown(x='a', y=\")\"), ",
    ",\n\n",
    ", and then ",
    ", (the 'x') ",
    ";",
)


@pytest.mark.parametrize("name", ["pythonic", "llama4_pythonic", "lfm2"])
@pytest.mark.parametrize("between", BETWEEN)
def test_a_call_runs_whatever_stands_between_it_and_the_next_one(name: str, between: str) -> None:
    for quote in ("'", '"'):
        text = formats.render_calls(name, [ToolCall("", "query", {"sql": "a"}), DELETED], TOOLS)
        text = text.replace("), ", f"){between}").replace("'a'", f"{quote}a{quote}")
        got = outcomes(read(name, text, TOOLS))
        assert got[0] == ("query", {"sql": "a"}, ()), (text, got)


@every_format
def test_the_end_of_a_call_is_told_where_the_next_one_starts(format: Format) -> None:
    parser = Parser(format, TOOLS)
    text = formats.render_calls(format, [ToolCall("", "query", {"sql": "a"}), DELETED], TOOLS)
    events = parser.feed(text[: text.index("delete(") + 7])
    assert [e.call.arguments for e in events if isinstance(e, CallEnd)] == [{"sql": "a"}]
    assert [e.call.name for e in parser.feed(text[text.index("delete(") + 7 :] + "\n") if isinstance(e, CallEnd)] == [
        "delete"
    ]


COMMENTS = ('# as in "main.py" :)', '# a) the "main" one, b) the other', "# it's 'a' (or 'b')", "# a) b)")
BLANK_LINES = ('f(a="x") # c "q" :)\n\n', 'f(a="x")#g(a=\'y\')n=7)")# "\n[', 'f(a="x"),\n# c "q" :)\n), \n\n\n')


@every_format
@pytest.mark.parametrize("comment", COMMENTS)
def test_a_comment_with_quotes_in_pairs_belongs_to_no_string(format: Format, comment: str) -> None:
    query, other = ToolCall("", "query", {"sql": "a"}), ToolCall("", "delete", {"path": "b"})
    text = formats.render_calls(format, (query, other), TOOLS)
    (between,) = re.findall(r"(?<=\)),? *\n*(?=delete)", text)
    commented = text.replace(f"){between}delete", f"){between.rstrip()} {comment}\ndelete")
    assert [e.call.name for e in read(format, commented, TOOLS) if isinstance(e, CallEnd)] == ["query", "delete"]


@every_format
@pytest.mark.parametrize("text", BLANK_LINES)
def test_a_comment_before_an_empty_line_is_read_the_same_in_any_cutting(format: Format, text: str) -> None:
    tools = [spec(name, None, ("a",), a="string") for name in "fg"]
    section = format.section
    edges = (section.open, section.close) if section is not None else ("", "")
    read(format, text.join(str(getattr(edge, "name", edge)) for edge in edges), tools)
