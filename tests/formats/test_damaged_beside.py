"""Of two calls, one is damaged in one place: both are read, or there is an error. Neither is lost in silence.

Every character of their markup is missing, doubled or another one, and so is every word and tag. What is lost all the
same is counted, so that it gets no more: most of it is a call whose own opening is damaged, or its tool's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import pytest
from format_tools import spec

from agentkit import formats
from agentkit.events import CallEnd, CallError
from agentkit.formats import Format
from agentkit.messages import ToolCall

TOOLS = (
    spec("bash", None, ("command",), command="string"),
    spec("ls", None, ("path",), path="string"),
)
VALUES = ("one1", "two2")
CALLS = [ToolCall("", "bash", {"command": VALUES[0]}), ToolCall("", "ls", {"path": VALUES[1]})]
OTHERS = "x\"<>}]):;' \n\u201d"
"""What a character is written as instead."""
_WORDS: Final = re.compile(r"</?[^<>\s]+|\[[A-Z_/]+\]|```\w*|\w+|\s+")
_TAGS: Final = re.compile(r"</?[^<>]*>|\[[A-Z_/]+\]|```\w*\n")
LOST: Final[dict[str, int]] = {
    "legacy": 146, "dr_tulu": 334, "minimax_m3": 2, "hermes": 295, "ernie45": 295, "longcat": 503, "granite": 77,
    "granite-20b-fc": 395, "jamba": 161, "nemotron_nano": 133, "phi4_mini_json": 165, "internlm": 216,
    "cohere_command": 84, "inkling": 241, "gigachat3": 171, "apertus": 83, "llama3_json": 130, "mistral": 175,
    "xlam": 91, "json_fence": 509, "kimi_k2": 2, "mistral_compact": 394, "function_json": 342, "harmony": 732,
    "glm4": 165, "pythonic": 60, "llama4_pythonic": 33, "olmo3": 245, "lfm2": 126, "tool_code": 181, "python": 283,
    "gemma4": 235, "functiongemma": 701,
}  # fmt: skip
"""How many are lost, of 350 to 8,500 of a format; of the formats that are not here, none."""


def damaged(text: str) -> Iterator[str]:
    """The text with every damage of its markup in one place."""
    inside = {n for value in VALUES for n in range(text.index(value), text.index(value) + len(value))}
    for at, c in enumerate(text):
        if at not in inside:
            yield from (f"{text[:at]}{other}{text[at + 1 :]}" for other in ("", c + c, *OTHERS) if other != c)
    for piece in (*_WORDS.finditer(text), *_TAGS.finditer(text)):
        if len(piece[0]) > 1 and inside.isdisjoint(range(*piece.span())):
            yield from (f"{text[: piece.start()]}{other}{text[piece.end() :]}" for other in ("", piece[0] * 2))


def lost(format: Format) -> list[str]:
    """The damaged texts of which fewer than two calls are read, without an error."""
    found = []
    for text in damaged(formats.render_calls(format, CALLS, TOOLS)):
        events = formats.parse(text, format, TOOLS)
        told = any(isinstance(e, CallError) for e in events)
        if not told and sum(isinstance(e, CallEnd) for e in events) < len(CALLS):
            found.append(text)
    return found


@pytest.mark.share(12)
@pytest.mark.parametrize("name", ["json_fence", "xlam", "xlam1", "llama3_json"])
def test_a_damaged_call_in_a_result_is_text(name: str) -> None:
    """Nobody asked for it: what a tool returns is quarantined, also where the model repeats it."""
    for text in damaged(formats.render_calls(name, CALLS, TOOLS)):
        shown = formats.render_result(name, "bash", "c1", text, None, TOOLS)
        events = formats.parse(shown, name, TOOLS, in_code="execute")
        assert not any(isinstance(e, CallEnd | CallError) for e in events), text
