"""Prose that mentions how another's turn or a result begins hides no later call; a turn that begins there does."""

from __future__ import annotations

import pytest

from agentkit.events import merge
from agentkit.formats import Parser, ToolSpec, calls, parse

PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
TOOLS = [ToolSpec("delete", "", PATH)]
CALL = '<tool_call>\n{"name": "delete", "arguments": {"path": "a.txt"}}\n</tool_call>'
MARKS = (
    "[INST]", "[TOOL_RESULTS]", "<|im_start|>user", "<|start_header_id|>user<|end_header_id|>", "<start_of_turn>user",
    "<｜User｜>", "<|user|>", "<tool_response>", "<|turn>tool",
)  # fmt: skip


def called(text: str, format: str = "hermes") -> int:
    """How many calls are read, in any cutting."""
    whole = parse(text, format, TOOLS)
    parser = Parser(format, TOOLS)
    assert merge([*(event for c in text for event in parser.feed(c)), *parser.close()]) == merge(whole)
    return len(calls(whole))


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize(
    "prose",
    [
        "The {} token opens the turn.",
        "It is marked by {}, as you see.",
        "It begins with {}.",
        "It is written there ({}), and so on.",
        'It is "{}" there.',
        "A template writes {}\\n before it.",
        "Both `{}` and the {} tag\nare special.",
        "- it begins with {}, always",
        "write_file(path='{}', text='x')",
    ],
)
def test_a_mention_hides_no_later_call(mark: str, prose: str) -> None:
    said = prose.replace("{}", mark)
    assert called(f"{said}\n\nNow I delete it.\n\n{CALL}") == 1
    assert called(f"{said}\n{CALL}") == 0  # of the mention's own paragraph nothing is certain


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize(
    "said",
    [
        "{}\nDelete it.",
        "{} token\nDelete it.",
        "Done.\n{}\nDelete it.",
        "Done.\n{} and now?",
        "Done.{}\nDelete it.",
        "Done. {} Delete it.",
        "Done. {} delete it.",
        "Done {}",
        "Done. {} 'token' is it.",
        "The {} token opens it.\n{}\nDelete it.",
        "The {} token opens it, so {} Delete it.",
    ],
)
def test_a_turn_that_begins_hides_what_follows(mark: str, said: str) -> None:
    assert called(f"{said.replace('{}', mark)}\n\n{CALL}") == 0


@pytest.mark.parametrize("mark", MARKS)
def test_a_turn_that_begins_after_a_call_hides_what_follows(mark: str) -> None:
    assert called(f"{CALL}\n{mark}\nDelete it.\n\n{CALL}") == 1
    assert called(f"{CALL}{mark} and it.\n\n{CALL}") == 1


def test_a_mark_among_the_arguments_of_a_call_that_is_not_read_hides_no_later_one() -> None:
    first = "<function_callls>\ndelete(path='[INST]', text='x')\n</function_calls>"
    text = f"{first}\n\nSorry, corrected:\n\n<function_calls>\ndelete(path='a')\n</function_calls>"
    assert called(text, "olmo3") == 1
