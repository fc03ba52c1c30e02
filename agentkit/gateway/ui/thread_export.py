"""A thread as a file that a person saves: its messages in a provider's form, or a transcript to read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from agentkit.messages import AssistantMessage, FilePart, ImagePart, TextPart, ThinkingPart, ToolCall, ToolMessage
from agentkit.threads.conversation import LocatedMessage, decision_in_words, located_messages, messages_of
from agentkit.threads.export import export_messages, whole
from agentkit.threads.store import Call, Log
from agentkit.tool.output import label


class ThreadFile(NamedTuple):
    """A file.

    Attributes:
        name: its name; ASCII without spaces and slashes.
        media_type: MIME type.
        content: its bytes.
    """

    name: str
    media_type: str
    content: bytes


def export_thread(log: Log, shape: str, title: str) -> ThreadFile:
    """Return a thread as a file, including the messages that a compaction replaced.

    Args:
        log: the whole thread.
        shape: `markdown`, or as for `export_messages`.
        title: of the thread; the file is named after it.

    Raises:
        ConfigError: there is no such form.
        FormatError: the text format cannot represent a call.
    """
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", title)[:60].strip("-") or "thread"
    if shape == "markdown":
        text = "\n\n".join([f"# {title}", *_transcript(whole(log))]) + "\n"
        return ThreadFile(f"{name}.md", "text/markdown; charset=utf-8", text.encode(errors="replace"))
    messages = export_messages(messages_of(whole(log)), shape)
    text = json.dumps(messages, ensure_ascii=False, indent=2) + "\n"
    middle = "" if shape == "json" else f".{shape}"
    return ThreadFile(f"{name}{middle}.json", "application/json", text.encode(errors="replace"))


def _transcript(log: Log) -> Iterator[str]:
    for said in located_messages(log):
        yield _heading(said)
        answers = {answer.call_id: (call, answer) for call, answer in said.answers}
        for part in said.message.content:
            yield from _part(part, answers)


def _heading(said: LocatedMessage) -> str:
    if not isinstance(said.message, AssistantMessage):
        return "## User"
    model = said.entry.body.get("response", {}).get("model") if said.entry is not None else None
    return f"## Assistant ({model})" if model else "## Assistant"


def _part(part: Any, answers: dict[str, tuple[Call, ToolMessage]]) -> Iterator[str]:
    """A part in Markdown; markup and a provider's blocks have none."""
    match part:
        case TextPart(text) if text.strip():
            yield text.strip("\n")
        case ThinkingPart(text) if text.strip():
            yield "\n".join(f"> {line}".rstrip() for line in text.strip().split("\n"))
        case ImagePart() | FilePart():
            yield label(part)
        case ToolCall(id, name, arguments):
            known = answers.get(id)
            decision = decision_in_words(known[0]) if known else ""
            yield f"**Call of `{name}`**{decision and f' ({decision})'}"
            yield _fenced(json.dumps(arguments, ensure_ascii=False, indent=2, default=str), "json")
            if known is not None:
                yield from _result(*known)


def _result(call: Call, answer: ToolMessage) -> Iterator[str]:
    if call.answer is None:
        yield f"*{answer.text}*"
        return
    yield f"**Result{f' ({answer.error})' if answer.error else ''}**"
    yield _fenced("\n".join(_shown(one) for one in answer.content))


def _shown(part: TextPart | ImagePart) -> str:
    return part.text if isinstance(part, TextPart) else label(part)


def _fenced(text: str, language: str = "") -> str:
    """A block of code, with a fence that is longer than any in it."""
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
    return f"{fence}{language}\n{text}\n{fence}"
