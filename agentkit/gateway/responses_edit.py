"""OpenAI responses: what an event says, and how calls take the place of text in it. Pure.

A message's text is in the events again when it is done, and in the response at the end: it is replaced there as well.
Calls follow the message that they were found in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from typing import Any, Final

from agentkit.events import Usage
from agentkit.gateway.event_blocks import write_event
from agentkit.gateway.reply_edit import NOTHING, EditedEvent, EventContent, RecoveredCall, TextPiece, divide
from agentkit.models.wire import WireEvent, items_of, mapping_of, openai_usage, text_of

_OTHER: Final = EventContent(kind="other")
_THINKING: Final = EventContent(kind="thinking")
_CALL: Final = EventContent(kind="call")
_CALLS: Final = ("function_call", "custom_tool_call")
_DELTA: Final = "response.output_text.delta"
_ENDS: Final = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")

_Place = tuple[int, int]  # of a text: the index of its item in the output, and its own in the item's content


class ResponsesEdit:
    """One response."""

    def __init__(self) -> None:
        self.finish = ""
        self._counts: Mapping[str, Any] = {}

    @property
    def usage(self) -> Usage | None:
        """Return the tokens that were reported; None if none were."""
        return openai_usage(self._counts, "input", "output") if self._counts else None

    def read(self, event: WireEvent) -> EventContent:
        """Read one event."""
        kind = text_of(event.get("type"))
        if kind == _DELTA:
            return EventContent(text_of(event.get("delta")))
        if kind.startswith("response.output_item."):
            return _item(mapping_of(event.get("item")), done=kind.endswith(".done"))
        if kind in _ENDS:
            return self._end(mapping_of(event.get("response")))
        if kind.startswith("response.reasoning"):
            return _THINKING
        if kind.startswith("response.refusal") or kind == "error":
            return _OTHER
        return NOTHING

    def _end(self, response: Mapping[str, Any]) -> EventContent:
        self._counts = mapping_of(response.get("usage"))
        reason = mapping_of(response.get("incomplete_details")).get("reason")
        self.finish = text_of(reason) or text_of(response.get("status"))
        return EventContent(kind="end", finish=self.finish or "unknown")

    def replace(self, events: Sequence[EditedEvent]) -> bytes:
        """Return what replaces the events that were held back."""
        return b"".join(_Stream(events).write())

    def after(self, raw: bytes, event: WireEvent) -> bytes:
        """Return an event after the end."""
        return raw

    def parts(self, body: Mapping[str, Any]) -> Iterable[EventContent]:
        """Read a whole response."""
        end = self._end(body)
        for item in items_of(body.get("output")):
            if item.get("type") == "message":
                yield from map(_part, items_of(item.get("content")))
            else:
                yield _item(item, done=True)
        yield end

    def edit(self, body: MutableMapping[str, Any], pieces: Sequence[Sequence[TextPiece]]) -> None:
        """Put the calls into the response, in place."""
        output, left = _Output(), iter(pieces)
        for at, item in enumerate(body["output"]):
            if item.get("type") != "message":
                next(left)
                continue
            for place, part in enumerate(item["content"]):
                output.add((at, place), text_of(part.get("text")), next(left))
        output.drop(range(len(body["output"])))
        body["output"] = output.edited(body["output"])


def _item(item: Mapping[str, Any], *, done: bool) -> EventContent:
    match item.get("type"):
        case "message":
            return NOTHING if done else EventContent(kind="opens")
        case "reasoning":
            return _THINKING
        case kind if kind in _CALLS:
            return _CALL
        case _:
            return EventContent(kind="block", block=item) if done else NOTHING


def _part(part: Mapping[str, Any]) -> EventContent:
    return EventContent(text_of(part.get("text"))) if part.get("type") == "output_text" else _OTHER


def _call_item(call: RecoveredCall) -> dict[str, Any]:
    whole = {"type": "function_call", "id": f"fc_{call.id}", "call_id": call.id, "name": call.name}
    return {**whole, "arguments": call.arguments, "status": "completed"}


class _Output:
    """The texts that are replaced, the calls found in them, and the messages of which nothing is left."""

    def __init__(self) -> None:
        self.calls: dict[int, list[RecoveredCall]] = {}
        self.dropped: set[int] = set()
        self._texts: dict[_Place, tuple[str, str]] = {}  # before and after

    def add(self, place: _Place, text: str, pieces: Sequence[TextPiece]) -> None:
        """Add a text, or more of one."""
        before, after = self._texts.get(place, ("", ""))
        said, calls = divide(pieces)
        self._texts[place] = before + text, after + said
        if calls:
            self.calls.setdefault(place[0], []).extend(calls)

    def drop(self, items: Iterable[int]) -> None:
        """Drop those of these messages that have calls and no visible text."""
        said = {at for (at, _), (_, after) in self._texts.items() if after.strip()}
        self.dropped = {at for at in items if at in self.calls and at not in said}

    def text(self, place: _Place, whole: str) -> str:
        """Return what is left of a text, of which the beginning may have been sent."""
        before, after = self._texts.get(place, ("", ""))
        return whole[: len(whole) - len(before)] + after if whole.endswith(before) else whole

    def item(self, at: int, item: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return an item with what is left of its texts."""
        if item.get("type") != "message":
            return item
        parts = enumerate(items_of(item.get("content")))
        return {**item, "content": [self.part((at, place), part) for place, part in parts]}

    def part(self, place: _Place, part: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a part with what is left of its text."""
        return {**part, "text": self.text(place, part["text"])} if isinstance(part.get("text"), str) else part

    def edited(self, items: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the whole output."""
        found: list[Mapping[str, Any]] = []
        for at, item in enumerate(items):
            found += [] if at in self.dropped else [self.item(at, item)]
            found += map(_call_item, self.calls.get(at, ()))
        return found

    def place(self, at: int) -> int:
        """Return the new index of an item; of a dropped one, that of its first call."""
        return at - sum(each < at for each in self.dropped) + sum(len(c) for each, c in self.calls.items() if each < at)


class _Stream:
    """The events in which the held ones are written: in the new places, numbered on."""

    def __init__(self, events: Sequence[EditedEvent]) -> None:
        self._events = events
        self._output = _Output()
        for _, event, text, pieces in events:
            if text and event is not None:
                self._output.add((_index(event), event.get("content_index", 0)), text, pieces)
        added = [event for _, event, _, _ in events if event and event.get("type") == "response.output_item.added"]
        self._output.drop(map(_index, added))
        numbers = (event.get("sequence_number") for _, event, _, _ in events if event is not None)
        self._number = next((number for number in numbers if number is not None), None)
        self._waiting = {at: [*calls] for at, calls in self._output.calls.items()}

    def write(self) -> Iterator[bytes]:
        for raw, event, _, pieces in self._events:
            if event is None:
                yield raw
                continue
            kind = text_of(event.get("type"))
            if kind in _ENDS:
                for at in [*self._waiting]:
                    yield from self._calls(at)
                response = event["response"]
                output = self._output.edited(items_of(response.get("output")))
                yield self._written({**event, "response": {**response, "output": output}})
            elif "output_index" in event:
                yield from self._of_item(kind, event, pieces)
            else:
                yield self._written(event)

    def _of_item(self, kind: str, event: WireEvent, pieces: Sequence[TextPiece]) -> Iterator[bytes]:
        at, output = _index(event), self._output
        place = at, event.get("content_index", 0)
        edited = {**event, "output_index": output.place(at)}
        says = kind == _DELTA
        if says:
            edited |= {"delta": divide(pieces)[0]}
        elif kind == "response.output_text.done":
            edited |= {"text": output.text(place, event["text"])}
        elif kind == "response.content_part.done":
            edited |= {"part": output.part(place, event["part"])}
        elif kind == "response.output_item.done":
            edited |= {"item": output.item(at, event["item"])}
        if at not in output.dropped and not (says and not edited["delta"]):
            yield self._written(edited)
        if kind == "response.output_item.done":
            yield from self._calls(at)

    def _calls(self, at: int) -> Iterator[bytes]:
        """Write the calls that were found in this item."""
        first = self._output.place(at) + (at not in self._output.dropped)
        for index, call in enumerate(self._waiting.pop(at, ()), first):
            item, of = _call_item(call), {"item_id": f"fc_{call.id}", "output_index": index}
            begun = {**item, "arguments": "", "status": "in_progress"}
            done = {"arguments": call.arguments, "name": call.name}
            events: tuple[dict[str, Any], ...] = (
                {"type": "response.output_item.added", "output_index": index, "item": begun},
                {"type": "response.function_call_arguments.delta", **of, "delta": call.arguments},
                {"type": "response.function_call_arguments.done", **of, **done},
                {"type": "response.output_item.done", "output_index": index, "item": item},
            )
            yield from map(self._written, events)

    def _written(self, event: WireEvent) -> bytes:
        if self._number is not None:
            event = {**event, "sequence_number": self._number}
            self._number += 1
        return write_event(event, text_of(event.get("type")))


def _index(event: WireEvent) -> int:
    index = event.get("output_index")
    return index if isinstance(index, int) else 0
