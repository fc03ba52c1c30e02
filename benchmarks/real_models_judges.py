"""Judges a run of `real_models.py` by what its tools were called with and what was written.

Pure. Uses nothing of agentkit, neither its events nor its parser: other toolkits and older versions are judged
the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from real_models_tasks import ONCE, READERS, Call, Task

INVENTED: Final = re.compile(
    r"""
      </?(?:tool|function|fnr|api|code|execution)[_-]?(?:response|result|output|return)s?\b[^<>]*>  # Hermes, Claude, …
    | </?(?:observation|tool_message|result|results|response|output)(?:\s[^<>]*)?>
    | <\|(?:tool_response|tool_result|tool_output|tool|observation|ipython|function_results?|END_OF_TURN_TOKEN)\|?>
    | <\|?/?(?:im_start|im_end|start_header_id|eot_id|start_of_role|end_of_role|start_of_turn|turn|channel|eom_id)\|?>
    | <\|tool_response:\w+\|>  # Solar
    | <｜(?:tool▁outputs?▁begin|tool▁outputs?▁end|tool▁output|User|Assistant)[^｜]*｜>
    | \[/?(?:TOOL_RESULTS?|TOOL_OUTPUTS?|INST|TOOL_CONTENT|tool_result)\]
    | ```(?:tool_outputs?|tool_response|tool_result)\b
    | ^[ \t>*#-]*(?:tool|function)[ _](?:result|response|output)s?(?:[ ]of[ ]\w+)?\**:
    | ^[ \t>*#-]*observation\**:
    | ^[ \t*]*(?:user|human|assistant|system|tool)\**(?::|[ \t]*$)
    """,
    re.VERBOSE | re.MULTILINE | re.IGNORECASE,
)
"""A result's wrapper, or the beginning of another role's turn. None of the tasks leads to an answer that has one."""

DENIED: Final = re.compile(
    r"\b(?:can(?:no|')t|could ?n[o']t|unable|sorry|failed to|do(?:es)? not have|don't have)\b", re.IGNORECASE
)
"""An answer that says that what was asked was not done."""


CALL: Final = re.compile(r"""["']name["']\s*:\s*["'][^"']*["']\s*,\s*["'](?:arguments|parameters)["']\s*:""")
"""A call of any tool, even if it does not exist: not an answer, whatever its values say."""


def invented(*texts: str) -> str:
    """The first piece of text written as a tool's result or as another role's turn; empty if there is none."""
    found = next((m for text in texts for m in [INVENTED.search(text)] if m), None)
    return found[0].strip() if found else ""


def unread(answer: str, tools: Iterable[str]) -> str:
    """The beginning of a call of an offered tool that an answer contains; empty if there is none.

    A name alone is not a call, and neither is one in prose: `start_timer(25)` counts at the start of a line or of code.
    """
    name = "(?:" + "|".join(map(re.escape, tools)) + ")"
    patterns = (
        rf"""["'](?:\w*name|tool|function|action)["']\s*:\s*["'](?:functions\.)?{name}["']""",
        rf"""["']{name}["']\s*:\s*\{{""",  # {"start_timer": {"minutes": 25}}
        rf"""</?{name}(?:\s[^<>]*)?/?>""",
        rf"""<(?:function|invoke|tool|tool_call|call|parameter)\b[^<>]{{0,40}}[=\s"']{name}\b""",
        rf"""<(?:tool_call|function_call|call|tool|tool_name|name|\|[\w ]+\|)>\s*(?:functions\.)?{name}\b""",
        rf"""^[ \t>*-]*(?:```\w*\n)?[`\[(]*(?:print\()?(?:functions\.|default_api\.)?{name}\((?!\))[^\n]*\)""",
        rf"""(?:```\w*\s|`|\[){name}\((?!\))[^\n]*\)""",
        rf"""(?:call:|to=functions\.){name}\b""",
        rf"""^[ \t]*`?{name}`?:?\s*\{{""",  # start_timer {"minutes": 25}
    )
    found = next((m for p in patterns for m in [re.search(p, answer, re.MULTILINE)] if m), None)
    return found[0].strip() if found else ""


def right(task: Task, log: Sequence[Call], answers: Sequence[str]) -> bool:
    """Whether a run did what was asked, without other effects, and said in its last answer what was needed."""
    if len(answers) < len(task.turns) or not _said(task, answers[-1]):
        return False
    if any(invented(answer) or unread(answer, task.tools) or CALL.search(answer) for answer in answers):
        return False
    done = [(name, arguments) for call in log if call.done for name, arguments in _effects(call)]
    matched = [
        [name == wanted_name and _fits(wanted, arguments) for wanted_name, wanted in task.calls]
        for name, arguments in done
    ]
    if not all(any(row[at] for row in matched) for at in range(len(task.calls))):
        return False
    if not task.calls and log:
        return False
    if any(not any(row) for (name, _), row in zip(done, matched, strict=True) if name not in READERS):
        return False
    once = [name for name, _ in done if name in ONCE]
    return len(once) == sum(name in ONCE for name, _ in task.calls)


def _effects(call: Call) -> Iterator[tuple[str, dict[str, Any]]]:
    """What a call does: three items in one call are the same as one item in each of three."""
    if call.name == "add_to_list" and isinstance(call.arguments["items"], list):
        yield from ((call.name, {"items": item}) for item in call.arguments["items"])
    else:
        yield call.name, call.arguments


def _fits(wanted: Any, found: Any) -> bool:
    """Whether a value is expected: texts without case and outer space, 20 as 20.0, an object with further keys."""
    if callable(wanted):
        return bool(wanted(found))
    if isinstance(wanted, str):
        return isinstance(found, str) and _plain(found) == _plain(wanted)
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(k in found and _fits(v, found[k]) for k, v in wanted.items())
    if isinstance(wanted, list):
        return isinstance(found, list | tuple) and len(found) == len(wanted) and all(map(_fits, wanted, found))
    return bool(found == wanted) and isinstance(found, bool) == isinstance(wanted, bool)


def _plain(text: str) -> str:
    return text.strip().rstrip(".").casefold().removeprefix("the ")


def _said(task: Task, answer: str) -> bool:
    text = re.sub(r"(?<=\d)[,\u202f\u00a0](?=\d{3}\b)", "", answer).casefold()
    if not text.strip():
        return False
    if not task.says:
        return not (task.calls and DENIED.search(answer))
    return all(any(one in text for one in ((said,) if isinstance(said, str) else said)) for said in task.says)
