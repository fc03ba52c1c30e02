"""Null where a string is allowed, too: it goes round, and so do the words for it, or the writer refuses them."""

from __future__ import annotations

from itertools import product

import pytest

from agentkit.errors import FormatError
from agentkit.events import CallEnd
from agentkit.formats import CATALOG, Format, ToolSpec, parse, render_calls
from agentkit.messages import ToolCall

TEXT = {"anyOf": [{"type": "string"}, {"type": "null"}]}


NO_NULL = {"legacy", "dr_tulu"}
"""Their attributes without a value are null only where that is the default."""
NO_WORD = {"minimax_m3", "functiongemma"}
"""They have no way to mark the word as a string."""
WORDS = ("null", "None", "NULL")


@pytest.mark.share(6)
@pytest.mark.parametrize("required", [("q",), ("q", "text"), ()])
@pytest.mark.parametrize("format", CATALOG, ids=lambda f: f.name)
def test_null_and_the_words_for_it_go_round(format: Format, required: tuple[str, ...]) -> None:
    properties = {"q": {"type": "string"}, "text": TEXT, "also": TEXT}
    tool = ToolSpec("note", "Note.", {"type": "object", "properties": properties, "required": list(required)})
    for text, also in product((None, *WORDS, "", "x"), (None, "a")):
        call = ToolCall("c1", "note", {"q": "1", "text": text, "also": also})
        if (format.name in NO_NULL and None in (text, also)) or (format.name in NO_WORD and text in WORDS):
            with pytest.raises(FormatError):
                render_calls(format, [call], [tool])
            continue
        written = render_calls(format, [call], [tool])
        read = [e.call for e in parse(written, format, [tool], in_code="execute") if isinstance(e, CallEnd)]
        assert [dict(one.arguments) for one in read] == [call.arguments], written
