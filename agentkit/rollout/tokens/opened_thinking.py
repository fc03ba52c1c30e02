"""Thinking that the prompt opened, as seen in a response: its end is there without a beginning.

The prompt is not seen here, only the tokenizer's chat template, if it has one. Knows a template and a format's thinking
tags; runs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agentkit import formats
from agentkit.events import Event, Markup, Text, Thinking
from agentkit.formats.format import THINK, Format
from agentkit.messages import ToolCall
from agentkit.toolspec import ToolSpec

PROBE: Final = ToolSpec(
    "probe", "", {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
)
"""A tool that no one has, to see how something is written."""

_SWITCHES: Final[tuple[Mapping[str, bool], ...]] = ({}, {"enable_thinking": True}, {"thinking": True})
"""The variables that make templates think. Source: those of Qwen 3, GLM 4.5 and DeepSeek V3.1."""
_ASKED: Final = ({"role": "user", "content": "."},)
_IN_SENTENCE_BEFORE: Final = re.compile(r"[\w,;][ \t]+\Z").search
_IN_SENTENCE_AFTER: Final = re.compile(r"[ \t]+[^\W\d_A-Z]").match
_QUOTES: Final = ("`", "'", '"', "\u2018", "\u2019", "\u201c", "\u201d", "\u00ab", "\u00bb")


def render_probe(format: Format) -> str:
    """Return a call as the format writes it."""
    return formats.render_calls(format, [ToolCall("functions.probe:0", "probe", {"word": "apple"})], [PROBE])


def opener_of(format: Format | None) -> str | None:
    """How thinking begins in a format, without the white space after it; None if it has none."""
    return THINK[0][0] if format is None else next((tags[0].rstrip() for tags in format.thinking), None)


def closer_of(format: Format) -> str | None:
    """How thinking ends in a format, without the white space after it; None if it has none."""
    return next((tags[1].rstrip() for tags in format.thinking), None)


def can_open(tokenizer: Any, format: Format) -> bool | None:
    """Return True if the tokenizer's chat template can end a prompt by opening thinking; None if it has none."""
    opener, asked = opener_of(format), False
    for switches in _SWITCHES:
        try:
            prompt = tokenizer.apply_chat_template(list(_ASKED), add_generation_prompt=True, tokenize=False, **switches)
        except Exception:  # noqa: BLE001 - the tokenizer's code: it has no template, or one that refuses this
            continue
        asked = True
        if opener is not None and str(prompt).rstrip().endswith(opener):
            return True
    return False if asked else None


def began_inside(events: Sequence[Event], format: Format, can_open: Callable[[], bool | None]) -> bool:
    """Return True if a response began inside thinking, from its events as read without that.

    Args:
        events: the response as read, merged.
        format: in which format.
        can_open: tells whether prompts can open thinking; None if that is not known.
    """
    if (closer := closer_of(format)) is None:
        return False
    thought = next((at for at, event in enumerate(events) if isinstance(event, Thinking)), len(events))
    before = events[:thought]
    if _ends_more(closer, format):  # only as the very first token can it be thinking's end
        first = next((event for event in before if not isinstance(event, Text) or closer in event.text), None)
        begins = isinstance(first, Text) or (isinstance(first, Markup) and first.text.strip() == closer)
        return begins and can_open() is True
    said = (event for event in before if isinstance(event, Text | Markup) and closer in event.text)
    return any(_ends(closer, event) for event in said) and can_open() is not False


def _ends_more(closer: str, format: Format) -> bool:
    """Return True if `closer` ends not only thinking: `<|end|>` ends each of harmony's messages."""
    others = [*format.markup, *(end for _, end in format.answer), render_probe(format)]
    return any(closer in other for other in others)


def _ends(closer: str, event: Text | Markup) -> bool:
    """Return True if the closer occurs in a text unquoted, so that it ends thinking."""
    pieces = event.text.split(closer)
    return any(not _spoken_of(closer.join(pieces[:at]), closer.join(pieces[at:])) for at in range(1, len(pieces)))


def _spoken_of(before: str, after: str) -> bool:
    """Return True if the text between the two is a word of a sentence, quoted as code, or in an HTML comment."""
    line, rest = before.rpartition("\n")[2], after.partition("\n")[0]
    if line.endswith(_QUOTES) and rest.startswith(_QUOTES):
        return True
    if line.count("`") % 2 and "`" in rest:
        return True
    if before.count("```") % 2 and "```" in after:
        return True
    if before.rfind("<!--") > before.rfind("-->") and "-->" in after:
        return True
    if not line.strip():
        return False
    return rest.startswith((".", ",", ";", "?", "!", ")")) or bool(
        _IN_SENTENCE_BEFORE(line) and _IN_SENTENCE_AFTER(rest)
    )
