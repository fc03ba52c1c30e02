"""`/raw`: the last response as the model wrote it, and what became of its calls."""

from __future__ import annotations

from agentkit.cli.last_response import ChatRecord
from agentkit.events import CallEnd, CallStart, Event, Finish, InventedResult, Markup, Text, ToolFailed, Usage
from agentkit.messages import ToolCall
from agentkit.tool.result import ToolResult

SAVE = ToolCall("c1", "save", {"path": "a"}, "xml", '<save path="a">\u202e</save>')
TOLD = "expected <path>, got '<p' at position 7"


def raw(*events: Event) -> list[str]:
    record = ChatRecord()
    for event in events:
        record.add(event)
    return list(record.raw(80, lambda text, *_: text))


def test_a_response_is_shown_as_it_was_written() -> None:
    failed = ToolFailed(0, SAVE, ToolResult(error=TOLD, code="invalid_arguments"), 0.0)
    assert raw(Text("On it.\n"), CallStart(0, "save"), CallEnd(0, SAVE, ("missing_close",)), Markup("\n"), failed) == [
        "On it.",
        '<save path="a">\\u202e</save>',
        "",
        "↻ save was repaired: missing_close",
        "✗ save: invalid_arguments, the arguments do not fit the tool",
        "  the model reads:",
        f"    {TOLD}",
    ]


def test_a_native_call_is_the_providers_json() -> None:
    call = ToolCall("c1", "save", {"path": "a"}, None, '{"path": "a"}')
    assert raw(CallStart(0, "save", "c1"), CallEnd(0, call)) == ["", 'save {"path": "a"}', ""]


def test_an_imitated_result_is_marked() -> None:
    assert raw(Text("Hi"), InventedResult("<tool_result>ok</tool_result>")) == [
        "Hi<tool_result>ok</tool_result>",
        "the model imitated a tool result: it is neither shown nor kept",
    ]


def test_only_the_last_response_counts_and_a_continued_run_adds_none() -> None:
    """After an approval the run continues with the calls that are known."""
    first = (CallStart(0, "save"), CallEnd(0, SAVE), Finish("tool_calls"))
    assert raw(*first, CallEnd(0, SAVE))[0].startswith("<save")
    assert raw(*first, CallEnd(0, SAVE), Text("Done."), Finish("stop")) == ["Done."]


def test_tokens_are_counted_over_all_responses() -> None:
    record = ChatRecord()
    for usage in (Usage(100, 5), Usage(120, 7)):
        record.add(usage)
    assert (record.usage, record.responses, record.context) == (Usage(220, 12), 2, 127)
