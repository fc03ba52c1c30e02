r"""A backslash in JSON's quotes that begins no escape of JSON stays what it is: `"C:\app"` is a path, not a bell."""

from __future__ import annotations

import pytest
from format_tools import spec

from agentkit import formats
from agentkit.events import CallEnd
from agentkit.formats import CATALOG, Format, Parser
from agentkit.formats.format import PythonCall
from agentkit.messages import ToolCall

TAG = spec("tag", None, ("tags", "about"), tags={"type": "array", "items": {"type": "string"}}, about="object")
CALL = ToolCall("", "tag", {"tags": ["HERE"], "about": {"path": "HERE"}})
ODD = [r"C:\app\data", r"C:\video", r"\x41", r"a\0", r"\N{BULLET}", r"\d+", r"\U0001F600", r"\u12", "ls \\\n -l"]


def parts(format: Format) -> tuple[object, ...]:
    return tuple(part for shape in format.shapes for part in shape.call)


JSON = [f for f in CATALOG if not any(isinstance(part, PythonCall) for part in parts(f))]


@pytest.mark.parametrize("format", JSON, ids=lambda f: f.name)
def test_without_the_repair_no_such_value_is_read(format: Format) -> None:
    text = formats.render_calls(format, [CALL], [TAG]).replace('"HERE"', r'"C:\app"')
    parser = Parser(format, [TAG], repairs=formats.REPAIRS.keys() - {"invalid_escape"})
    for event in [*parser.feed(text), *parser.close()]:
        if isinstance(event, CallEnd):
            assert event.repairs == ()
            tags = event.call.arguments["tags"]
            assert isinstance(tags, str) or tags == ["HERE"]  # text, which the tool's schema refuses


@pytest.mark.parametrize("format", ["qwen3_coder", "glm45", "xml"])
def test_in_a_literal_of_python_an_escape_means_what_it_does_there(format: str) -> None:
    text = formats.render_calls(format, [CALL], [TAG]).replace('["HERE"]', r"['\x41\a', 'C:\\app']")
    (end,) = (e for e in formats.parse(text, format, [TAG]) if isinstance(e, CallEnd))
    assert (end.call.arguments["tags"], end.repairs) == (["A\a", r"C:\app"], ())
