"""Excerpts of texts, with a note of the omitted part and how to read it. Pure."""

from __future__ import annotations

from agentkit.messages import ImagePart, TextPart, ToolMessage
from agentkit.models.tokens import text_tokens
from agentkit.processor.error_results import cut_out

READ_RESULT = "read_result"
"""The name of the tool that reads a stored result; see `agentkit.threads.results`."""


def shorten_answer(answer: ToolMessage, tokens: int, key: str | None) -> tuple[TextPart]:
    """Return a tool output as its beginning, a note, and its end. Images are omitted.

    Args:
        answer: the whole output.
        tokens: the estimated number of the output's tokens that may stay.
        key: the call's key for `read_result`; None if there is no such tool.
    """
    text = answer.text
    images = sum(isinstance(part, ImagePart) for part in answer.content)
    begin, end = bounds(text, tokens)
    if begin >= end and not images:
        return (TextPart(text),)
    also = f"{images} image{'s' if images > 1 else ''}" if images else ""
    read_by = f'{READ_RESULT}(call_id="{key}", offset={begin})' if key is not None else ""
    return (TextPart(cut_out(text, begin, end, also=also, read_by=read_by).strip()),)


def excerpt(text: str, tokens: int) -> str:
    """Return a text as its beginning and its end, with a note between them."""
    begin, end = bounds(text, tokens)
    return text if begin >= end else cut_out(text, begin, end)


def bounds(text: str, tokens: int) -> tuple[int, int]:
    """Return start and end of the part of a text to omit so that about `tokens` stay, two thirds before it."""
    whole = text_tokens(text)
    if whole <= tokens:
        return len(text), len(text)
    stay = len(text) * tokens // whole
    return stay - stay // 3, len(text) - stay // 3
