"""Calls in other choices than the first one: some gateways split one answer into several choices. Pure.

GitHub Copilot's chat completions of Claude have the text in one choice and the calls in others. Where one answer was
requested, the others are not alternatives to the first, if that says it calls tools but has no call. Source:
copilot-api#81, nanobot#1555.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentkit.models.finishes import meaning
from agentkit.models.wire import items_of, text_of

Choice = Mapping[str, Any]

_APART = 10_000  # between the indexes of two choices' calls, of which each has its own


def calls_of(choices: Mapping[int, Sequence[Choice]]) -> list[dict[str, Any]]:
    """Return the pieces of the calls in the choices that end with calls, by their places; each has its own indexes."""
    found: list[dict[str, Any]] = []
    for number, parts in sorted(choices.items()):
        deltas = [delta for part in parts for delta in items_of(part.get("delta"))]
        pieces = [piece for delta in deltas for piece in items_of(delta.get("tool_calls"))]
        if any(meaning(text_of(part.get("finish_reason"))) == "tool_calls" for part in parts):
            places = [(piece, place_of(piece)) for piece in pieces]
            found += [{**piece, **({} if at is None else {"index": number * _APART + at})} for piece, at in places]
    return found


def place_of(piece: Mapping[str, Any]) -> int | None:
    """Return the index of a piece of a call; neither -1 nor true is one."""
    place = piece.get("index")
    return place if type(place) is int and place >= 0 else None
