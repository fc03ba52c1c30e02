"""A thread's log as readable lines: turns, calls, results, durations, tokens, approvals. Pure except for local time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from agentkit.checks.visible_text import visible
from agentkit.cli.terminal import arguments, block, cells, duration, first_lines, plain, truncate
from agentkit.events import Usage
from agentkit.messages import (
    AssistantMessage,
    FilePart,
    ImagePart,
    TextPart,
    ThinkingPart,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from agentkit.processor.approval import STARTED_BEFORE
from agentkit.threads import Call, Entry, Log
from agentkit.threads.conversation import decision_in_words
from agentkit.threads.resume import may_have_run
from agentkit.threads.store import Body
from agentkit.tool.codec import call_from_json, from_json
from agentkit.tool.output import label

LINES: Final = 12  # shown of one text, unless all are requested
_QUIET: Final = ("stop", "tool_calls", None)  # finish reasons that are not shown


Style = Callable[..., str]
"""Puts a text in styles of `agentkit.cli.screen`: `style(text, *names)`."""


def state(log: Log) -> str:
    """Return the state of a thread in words.

    A run in progress, in this or another process, looks the same as an interrupted one: only its lease differs.
    """
    statuses = {call.status for call in log.calls}
    last: Body = next((e.body["message"] for e in reversed(log.entries) if e.kind != "compaction"), {})
    if "waiting" in statuses:
        return "waits for approval"
    if statuses & {"planned", "approved", "started"} or any(e.kind == "partial" for e in log.entries):
        return "running or interrupted"
    return "waits for an answer" if last.get("role") in ("user", "tool") else "at rest" if log.entries else "empty"


def words(log: Log, width: int) -> str:
    """The user's first words, in one line."""
    for entry in log.entries:
        if entry.kind == "message" and isinstance(message := from_json(entry.body["message"]), UserMessage):
            return truncate(" ".join(p.text if isinstance(p, TextPart) else label(p) for p in message.content), width)
    return ""


def transcript(log: Log, width: int, style: Style, *, full: bool = False, after: int = -1) -> Iterator[str]:
    """The lines of a thread.

    Args:
        log: the complete log.
        width: the maximum number of columns.
        style: styles text for terminals with colour.
        full: show complete texts instead of their first lines.
        after: omit the entries up to this position.
    """
    calls: dict[int, list[Call]] = defaultdict(list)
    for call in log.calls:
        calls[call.seq].append(call)
    page = _Page(width, style, None if full else LINES)
    turn = 0
    for entry in log.entries:
        if entry.kind == "compaction":
            lines = page.compaction(entry)
        elif entry.body["message"]["role"] == "assistant":
            turn += 1
            lines = page.response(entry, turn, calls[entry.seq])
        else:
            lines = page.user(entry)
        if entry.seq > after:
            yield from lines
            yield ""


def totals(log: Log) -> str:
    """Turns, calls, tokens and time of a thread, in one line."""
    responses = [e.body["response"] for e in log.entries if e.body.get("response", {}).get("usage")]
    usage = Usage()
    for paid in (*responses, *(e.body for e in log.entries if e.kind == "compaction")):
        usage = usage.plus(Usage(*paid.get("usage", ())))
    failed = sum(call.answer is not None and "error" in call.answer for call in log.calls)
    parts = [
        _count(sum(e.body.get("message", {}).get("role") == "assistant" for e in log.entries), "turn"),
        _count(len(log.calls), "call") + (f" ({failed} failed or denied)" if failed else ""),
        _tokens(usage),
        f"{sum(r.get('seconds', 0) for r in responses):.1f} s",
    ]
    return ", ".join(filter(None, parts))


class _Page(NamedTuple):
    width: int
    style: Style
    most: int | None
    """Lines shown of one text; None for all."""

    def user(self, entry: Entry) -> Iterator[str]:
        message = from_json(entry.body["message"])
        yield from self._row(self.style("you", "bold"), 3, moment(entry.created))
        yield from self._text(_readable(message.content), "  ")

    def response(self, entry: Entry, turn: int, calls: Sequence[Call]) -> Iterator[str]:
        message, about = from_json(entry.body["message"]), entry.body.get("response", {})
        assert isinstance(message, AssistantMessage)
        name = f"turn {turn}"
        model = visible(str(about.get("model", "")))
        left = f"{name}  {model}".rstrip()
        yield from self._row(f"{self.style(name, 'bold')}{left[len(name) :]}", cells(left), _spent(entry))
        by_id = {call.id: call for call in calls}
        for part in message.content:
            match part:
                case TextPart(text) if text.strip():
                    yield from self._text(text.strip("\n"), "  ")
                case ThinkingPart(text) if text.strip():
                    yield from (self.style(line, "dim") for line in self._text(f"(thinking) {text.strip()}", "  "))
                case ToolCall(id=id):
                    yield from self._call(part, by_id.get(id))
                case _:
                    continue

    def compaction(self, entry: Entry) -> Iterator[str]:
        before, after = entry.body.get("tokens", (0, 0))
        answers = entry.body.get("answers", {})
        spent = Usage(*entry.body.get("usage", ()))
        parts = [f"{before} → {after} tokens", _count(len(answers), "result") + " shortened" if answers else ""]
        parts.append(f"for {_tokens(spent)}" if any(spent) else "")
        yield from self._row(self.style("compacted", "bold"), 9, "  ".join(filter(None, parts)))
        if summary := entry.body.get("summary"):
            yield from self._text(str(summary), "  ")

    def _call(self, written: ToolCall, call: Call | None) -> Iterator[str]:
        name = visible(written.name) or "unreadable call"
        mark, colour = _status(call)
        yield from self._row(f"  → {self.style(name, 'cyan', 'bold')}", cells(name) + 4, mark, colour)
        shown = written if call is None else call_from_json(call.body)
        yield from self._some(list(arguments(shown.arguments, self.width, "      ")), "      ")
        if call is None:
            return
        if call.status == "waiting":
            yield from block(f"call ID {visible(call.id)}", self.width, "    ? ")
            if may_have_run(call):
                yield from block(STARTED_BEFORE, self.width, "    ? ")
        if decision := visible(decision_in_words(call)):
            mark = "✓" if decision.startswith("approved") else "✗"
            yield from block(decision, self.width, f"    {mark} ")
        if call.answer is not None and isinstance(answer := from_json(call.answer), ToolMessage):
            yield from self._text(_readable(answer.content), "    = ")

    def _row(self, left: str, cells_left: int, right: str, colour: str = "dim") -> Iterator[str]:
        """Two texts at opposite ends of a line; the right one on separate lines if they do not fit."""
        right = visible(right)
        room = self.width - cells_left - cells(right)
        if not right:
            yield left
        elif room >= 2:
            yield f"{left}{' ' * room}{self.style(right, colour)}"
        else:
            yield left if cells_left <= self.width else truncate(plain(left), self.width)
            yield from (self.style(line, colour) for line in block(right, self.width, "    "))

    def _text(self, text: str, indent: str) -> Iterator[str]:
        """An indented text; the marker of the first line is not repeated."""
        lines = list(block(text.rstrip("\n"), self.width, " " * len(indent)))
        if lines and indent.strip():
            lines[0] = f"{indent}{lines[0][len(indent) :]}".rstrip()
        yield from self._some(lines, " " * len(indent))

    def _some(self, lines: list[str], indent: str) -> list[str]:
        return first_lines(lines, len(lines) if self.most is None else self.most, indent=indent)


_WAITS: Final = {
    "planned": "not started",
    "waiting": "? waits for approval",
    "approved": "approved, not run yet",
    "started": "started, no answer yet",
}


def _status(call: Call | None) -> tuple[str, str]:
    """A call's state in a few words, and its colour."""
    if call is None or call.answer is None:
        return ("", "dim") if call is None else (_WAITS[call.status], "red")
    spent = f" {duration(call.ended - call.started)}" if call.started is not None and call.ended is not None else ""
    again = f", attempt {call.attempts}" if call.attempts > 1 else ""
    error = call.answer.get("error")
    return (f"✗ {error}{spent}{again}", "red") if error else (f"✓{spent}{again}", "green")


def _spent(entry: Entry) -> str:
    about: dict[str, Any] = dict(entry.body.get("response", {}))
    if entry.kind == "partial":
        return "not complete"
    finish = about.get("finish")
    parts = [
        "" if finish in _QUIET else str(finish),
        duration(about["seconds"]) if "seconds" in about else "",
        _tokens(Usage(*about["usage"])) if about.get("usage") else "",
    ]
    return "  ".join(filter(None, parts))


def _tokens(usage: Usage) -> str:
    return f"{usage.input_tokens} tokens in, {usage.output_tokens} out" if any(usage) else ""


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"


def _readable(content: Any) -> str:
    return "\n".join(
        p.text.rstrip("\n") if isinstance(p, TextPart) else label(p)
        for p in content
        if isinstance(p, (TextPart, ImagePart, FilePart))
    )


def moment(seconds: float) -> str:
    """A timestamp in the user's local time, to the second."""
    try:
        return datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):  # the clock was wrong
        return "at an invalid time"


def age(seconds: float) -> str:
    """How long ago, as one number in the largest unit that gives at least 1.

    >>> age(45), age(7_300), age(200_000)
    ('45 s', '2 h', '2 d')
    """
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(max(seconds, 0))} s"
