"""Finds the faults of a chat completion as a server sent it, although agentkit reads it. Pure.

A client's SDK reads less than agentkit does: two calls at one index become one call with two halves. Sources: the
reports in `tests/data/odd_wires.jsonl`; the accumulators of the openai SDK and of vercel/ai.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentkit.gateway.error_replies import json_of
from agentkit.models.sse import EventReader, EventTooLong
from agentkit.models.wire import items_of, mapping_of

LIMIT: Final = 1024 * 1024
"""Bytes of a reply that are examined. That of a probe has a few thousand."""

NO_STREAM: Final = "a stream was requested, and the whole reply came at once"
NO_DONE: Final = "no [DONE] at the end"
NO_FINISH: Final = "no finish_reason"
NO_USAGE: Final = "no usage"
STOP: Final = "finish_reason 'stop' with calls"
NO_INDEX: Final = "calls without an index"
SHARED: Final = "several calls at one index"
GAPS: Final = "indices that do not count from 0"
UNJOINED: Final = "pieces of arguments that do not join to JSON"
OTHER_CHOICE: Final = "calls in another choice than the first"
NO_ID: Final = "calls without an id"
SAME_ID: Final = "one id for several calls"
REPEATED: Final = "the id in every piece of a call, which SDKs join"
NO_TEXT: Final = "arguments that are not a string"

HARMLESS: Final = frozenset((NO_DONE, NO_USAGE))
"""Faults with which every client gets the right calls."""


def faults_of(body: bytes, *, streamed: bool) -> tuple[str, ...]:
    """Return the faults of a chat completion, each once; none for a body that cannot be read at all.

    >>> faults_of(b'data: {"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]}', streamed=True)
    ('no [DONE] at the end', 'no usage')

    Args:
        body: as it arrived, not compressed.
        streamed: whether a stream was requested.
    """
    if body.lstrip()[:1] == b"{":
        if (whole := json_of(body)) is None:
            return ()
        found = [NO_STREAM] if streamed else []
        return tuple(dict.fromkeys([*found, *_of_chunks([mapping_of(whole)])]))
    data = list(_data(body))
    found = [] if "[DONE]" in data[-1:] else [NO_DONE]
    return tuple(dict.fromkeys([*found, *_of_chunks([mapping_of(json_of(text)) for text in data])]))


def _data(body: bytes) -> Iterator[str]:
    reader = EventReader(LIMIT)
    try:
        for events in (reader.feed(body), reader.close()):
            yield from (event.data for event in events)
    except (EventTooLong, UnicodeDecodeError):
        return


def _of_chunks(chunks: list[Mapping[str, Any]]) -> Iterator[str]:
    every = [mapping_of(choice) for chunk in chunks for choice in items_of(chunk.get("choices"))]
    choices = [choice for choice in every if not choice.get("index")]
    reasons = [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]
    pieces = [mapping_of(piece) for choice in choices for piece in _calls_of(choice)]
    if any(_calls_of(choice) for choice in every if choice.get("index")):
        yield OTHER_CHOICE
    if choices and not reasons:
        yield NO_FINISH
    if pieces and reasons[-1:] == ["stop"]:
        yield STOP
    if not any(chunk.get("usage") for chunk in chunks):
        yield NO_USAGE
    yield from _of_calls(pieces, whole=any("message" in choice for choice in choices))


def _calls_of(choice: Mapping[str, Any]) -> list[Any]:
    return list(items_of(mapping_of(choice.get("delta") or choice.get("message")).get("tool_calls")))


def _of_calls(pieces: list[Mapping[str, Any]], *, whole: bool) -> Iterator[str]:
    """The faults of the pieces of all calls; those of a whole reply need no index."""
    functions = [mapping_of(piece.get("function")) for piece in pieces]
    if any(not isinstance(function.get("arguments") or "", str) for function in functions):
        yield NO_TEXT
    named = [piece for piece, function in zip(pieces, functions, strict=True) if function.get("name")]
    if any(not piece.get("id") for piece in named):
        yield NO_ID
    if whole:
        return
    indices = [piece.get("index") for piece in pieces]
    if None in indices:
        yield NO_INDEX
        return
    begun = [piece["index"] for piece in named]
    if len(set(begun)) < len(begun):
        yield SHARED
    elif set(indices) != set(range(len(set(indices)))):
        yield GAPS
    elif not all(_is_json(text) for text in _joined(pieces)):
        yield UNJOINED
    ids = {piece["id"]: piece["index"] for piece in named if piece.get("id")}
    if len(ids) < len({piece["index"] for piece in named if piece.get("id")}):
        yield SAME_ID
    if any(piece.get("id") and not function.get("name") for piece, function in zip(pieces, functions, strict=True)):
        yield REPEATED


def _joined(pieces: list[Mapping[str, Any]]) -> list[str]:
    """The arguments of each call, as an SDK joins their pieces."""
    texts: dict[Any, str] = {}
    for piece in pieces:
        more = mapping_of(piece.get("function")).get("arguments")
        texts[piece["index"]] = texts.get(piece["index"], "") + (more if isinstance(more, str) else "")
    return list(texts.values())


def _is_json(text: str) -> bool:
    return not text.strip() or isinstance(json_of(text), dict)
