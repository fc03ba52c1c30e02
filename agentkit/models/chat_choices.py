"""Calls in other choices than the first one: some gateways split one answer into several choices. Pure.

GitHub Copilot's chat completions of Claude have the text in one choice and the calls in others. Where one answer was
requested, the others are not alternatives to the first, if that says that it calls tools and has no call.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.models.finishes import meaning
from agentkit.models.wire import objects_of, text_of


@dataclass(slots=True, eq=False)
class _Choice:
    pieces: list[Mapping[str, Any]] = field(default_factory=list)
    finish: str = ""


class OtherChoices:
    """The pieces of calls in the choices after the first one, until that has ended."""

    def __init__(self) -> None:
        self._choices: dict[int, _Choice] = {}

    def add(self, at: int, choice: Mapping[str, Any]) -> None:
        """More of a choice."""
        known = self._choices.setdefault(at, _Choice())
        known.pieces += [
            piece for delta in objects_of(choice.get("delta")) for piece in objects_of(delta.get("tool_calls"))
        ]
        known.finish = text_of(choice.get("finish_reason")) or known.finish

    def calls(self) -> list[dict[str, Any]]:
        """The calls of those that ended with calls, in the order of their choices; each choice has its own places."""
        found: list[dict[str, Any]] = []
        first = 0
        for _, choice in sorted(self._choices.items()):
            if meaning(choice.finish) != "tool_calls":
                continue
            places = [place_of(piece) for piece in choice.pieces]
            placed = zip(choice.pieces, places, strict=True)
            found += [{**piece} if at is None else {**piece, "index": first + at} for piece, at in placed]
            first += max((at + 1 for at in places if at is not None), default=0)
        return found


def place_of(piece: Mapping[str, Any]) -> int | None:
    """The index of a piece of a call; neither -1 nor true is one."""
    place = piece.get("index")
    return place if type(place) is int and place >= 0 else None
