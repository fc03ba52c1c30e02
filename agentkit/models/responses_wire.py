"""One response of OpenAI's Responses API, as a state machine.

The API sends an item several times: in its deltas, in the `done` of a part, in the `done` of the item, and in the
response at the end. Servers omit some of these, and repeat or contradict others. The more complete one decides, in this
order: the item's `done`, the part's `done`, the response at the end, the deltas.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from agentkit.checks.unicode import clean
from agentkit.events import Finish, FinishReason, SourceEvent, Text, Thinking, Usage
from agentkit.formats.pieces import Pieces
from agentkit.models.finishes import finish
from agentkit.models.native import NativeCall, provider_block
from agentkit.models.output_items import OutputItem, OutputItems, Stage
from agentkit.models.stream_errors import ErrorInStream, raise_error
from agentkit.models.wire import Wire, WireEvent, count_of, items_of, json_text_of, mapping_of, openai_usage, text_of

CALLS: Final[Mapping[str, str]] = {"function_call": "arguments", "custom_tool_call": "input"}
"""The kinds of calls that are answered here, and the field of each that has its arguments."""

_PLAIN_FIELDS = frozenset(("type", "id", "call_id", "name", "arguments", "input", "status"))

_KINDS: Final[Mapping[str, str]] = {
    "response.output_text": "message",
    "response.refusal": "message",
    "response.content_part": "message",
    "response.reasoning_text": "reasoning",
    "response.reasoning_summary_text": "reasoning",
    "response.reasoning_summary_part": "reasoning",
    "response.function_call_arguments": "call",
    "response.custom_tool_call_input": "call",
}
"""The kind of item that an event is about, by the event's type without its last word."""

_ENDS: Final = ("response.completed", "response.incomplete")
_FAILED: Final = ("failed", "cancelled")


class ResponsesWire(Wire):
    """One response of the Responses API."""

    def __init__(self, provider: str, schemas: Mapping[str, Mapping[str, Any]] = MappingProxyType({})) -> None:
        super().__init__(provider, schemas)
        self._items = OutputItems()
        self._usage: Usage | None = None
        self._refused = self._cut = False

    def feed(self, event: WireEvent) -> list[SourceEvent]:
        """One event of the stream."""
        raise_error(event)
        kind = _kind(event)
        self._refused = self._refused or _refuses(kind, event)
        if not kind.startswith("response."):
            self._calls.unread(event)
        return self._event(kind, event)

    def _event(self, kind: str, event: WireEvent) -> list[SourceEvent]:
        match kind:
            case "response.output_item.added":
                return self._added(_place(event), mapping_of(event.get("item")))
            case "response.output_item.done":
                return self._ended(_place(event), mapping_of(event.get("item")))
            case "response.completed" | "response.incomplete":
                return self._complete(mapping_of(event.get("response")))
            case "response.failed" | "response.cancelled":
                error = mapping_of(event.get("response")).get("error")
                raise ErrorInStream.of(error or {"message": "no reason given", "code": kind})
        base, _, last = kind.rpartition(".")
        return self._more(event, base, last) if base in _KINDS else []

    def close(self) -> list[SourceEvent]:
        """The last events."""
        events = [event for item in self._items.all if not item.ended for event in self._left(item)]
        ending: Finish | None = None
        if self.done:
            other: FinishReason = "length" if self._cut else "unknown"
            ending = finish(self._finish, calls=self.called, refused=self._refused, otherwise=other)
        return events + self._calls.close(self._usage, ending)

    def _left(self, item: OutputItem) -> list[SourceEvent]:
        """An item whose end did not come, when nothing more will come."""
        if item.kind == "call" and item.call is not None:
            if self.done and not item.call.text:
                return self._calls.set_arguments(item.call, _handed_over(item.first))
        elif item.kind == "message" and not item.text:
            return self._end_other(item, item.first)
        return []

    def _item_of(self, at: int | None, whole: Mapping[str, Any], stage: Stage) -> OutputItem:
        kind = text_of(whole.get("type"))
        call_id = text_of(whole.get("call_id")) if kind in CALLS else ""
        return self._items.item("call" if kind in CALLS else kind, at, text_of(whole.get("id")), call_id, stage)

    def _call_of(self, item: OutputItem) -> NativeCall:
        """Return the item's call, which is started here if need be; its name comes when the item is added."""
        if item.call is None:
            item.call, _ = self._calls.begin("", "")
        return item.call

    def _added(self, at: int | None, whole: Mapping[str, Any], stage: Stage = "start") -> list[SourceEvent]:
        item = self._item_of(at, whole, stage)
        item.first = item.first or whole
        return self._named(item, whole) if item.kind == "call" else []

    def _named(self, item: OutputItem, whole: Mapping[str, Any]) -> list[SourceEvent]:
        call = self._call_of(item)
        call.id = call.id or clean(text_of(whole.get("call_id")) or text_of(whole.get("id")))
        return self._calls.more(call, name=text_of(whole.get("name")))

    # ------------------------------------------------------------ its pieces

    def _more(self, event: WireEvent, base: str, last: str) -> list[SourceEvent]:
        kind = _KINDS[base]
        item = self._items.item(kind, _place(event), text_of(event.get("item_id")), text_of(event.get("call_id")))
        delta = text_of(event.get("delta"))
        if item.ended:
            return []
        if kind == "reasoning":
            if base.endswith("_part"):
                delta = "\n\n" if last == "added" and count_of(event.get("summary_index")) else ""
                base = "response.reasoning_summary_text"
            return self._think(item, delta, base)
        if kind == "message":
            return self._say(item, delta) + (self._end_part(item, event) if last == "done" else [])
        call = self._call_of(item)
        if last == "done":
            call.has_arguments = call.has_arguments or _hands_over(event)
            return self._calls.set_arguments(call, _handed_over(event))
        # a custom tool's input is not JSON, and comes complete
        return self._calls.more(call, delta) if base.endswith("arguments") else []

    def _say(self, item: OutputItem, text: str) -> list[SourceEvent]:
        said = item.say(text)
        return [Text(said)] if said else []

    def _end_part(self, item: OutputItem, event: WireEvent) -> list[SourceEvent]:
        """The text of a complete part that did not come in deltas; a part may end twice."""
        part = mapping_of(event.get("part")) or event
        whole, said = text_of(part.get("text")) or text_of(part.get("refusal")), item.part.text()
        item.part = Pieces()
        if not whole.startswith(said) or item.text.last(len(whole)) == whole:
            return []
        return self._say(item, whole[len(said) :])

    def _think(self, item: OutputItem, text: str, kind: str) -> list[SourceEvent]:
        """Emit thinking. A server sends a summary, the whole reasoning, or both; the kind that came first counts."""
        item.thoughts = item.thoughts or (kind if text else "")
        said = item.say(text) if kind == item.thoughts else ""
        return [Thinking(said)] if said else []

    # ------------------------------------------------------------ its end

    def _ended(self, at: int | None, whole: Mapping[str, Any], stage: Stage = "end") -> list[SourceEvent]:
        """An item is complete. What has not been streamed is emitted now; a whole response arrives only here."""
        if not text_of(whole.get("type")):
            self._calls.unread(whole)
            return []
        item = self._item_of(at, whole, stage)
        if item.ended:
            return []
        return self._end_call(item, whole) if item.kind == "call" else self._end_other(item, whole)

    def _end_other(self, item: OutputItem, whole: Mapping[str, Any]) -> list[SourceEvent]:
        item.ended = True
        if item.kind == "message":
            text, before = _words(whole), item.text.text()
            said = self._say(item, text[len(before) :]) if text.startswith(before) else []
            rest = item.joiner.close()
            said += [Text(rest)] if rest else []
            phase = whole.get("phase")
            return [*said, provider_block(self.provider, {"type": "message", "phase": phase})] if phase else said
        if item.kind == "reasoning":
            text = item.joiner.close() or ("" if item.text else clean(_thoughts(whole)))
            thought: list[SourceEvent] = [Thinking(text)] if text else []
            return [*thought, provider_block(self.provider, dict(whole), thinking=True)]
        return [provider_block(self.provider, dict(whole))]

    def _end_call(self, item: OutputItem, whole: Mapping[str, Any]) -> list[SourceEvent]:
        events, call = self._named(item, whole), self._call_of(item)
        extra = {k: v for k, v in whole.items() if k not in _PLAIN_FIELDS and v and v != {"type": "direct"}}
        if extra or whole["type"] == "custom_tool_call":
            call.extras = {**extra, "type": whole["type"]}  # its namespace, its caller
        events += self._calls.set_arguments(call, _handed_over(whole))
        status = text_of(whole.get("status"))
        if status not in ("", "completed"):  # some servers leave it at `in_progress`: then the response's end decides
            call.end = "" if status == "in_progress" else "incomplete"
            return events
        item.ended = True
        call.has_arguments = call.has_arguments or _hands_over(whole)
        call.end = "complete"
        return events

    def _complete(self, response: Mapping[str, Any]) -> list[SourceEvent]:
        """The response as a whole: complete items that had not come before come now."""
        if self.done:
            return []
        events: list[SourceEvent] = []
        self._cut = cut = response.get("status") == "incomplete"
        output = items_of(response.get("output"))
        self._items.in_whole = {text_of(item.get("call_id")) for item in output}
        for at, whole in enumerate(output):
            complete = not cut or whole.get("status") == "completed" or whole.get("type") not in CALLS
            events += (self._ended if complete else self._added)(at, whole, "response")
        self.done = self.over = True
        if response.get("usage"):
            self._usage = openai_usage(mapping_of(response["usage"]), "input", "output")
        reason = mapping_of(response.get("incomplete_details")).get("reason")
        self._finish = text_of(reason) or text_of(response.get("status")) or "completed"
        return events


def _kind(event: WireEvent) -> str:
    """An event's type; that of a response's end is named by its status, as some gateways name every end alike."""
    kind, status = text_of(event.get("type")), mapping_of(event.get("response")).get("status")
    return f"response.{status}" if kind in _ENDS and status in _FAILED else kind


def _place(event: Mapping[str, Any]) -> int | None:
    """The place of an item in the output; None if an event has none, or something else for it."""
    place = event.get("output_index")
    return place if type(place) is int and place >= 0 else None


def _handed_over(whole: Mapping[str, Any]) -> str:
    """A call's arguments as JSON text, if an item or a `done` has them complete; empty if it has not."""
    if text_of(whole.get("input")) or whole.get("type") == "custom_tool_call":
        given = whole.get("input")
        return json.dumps({"input": "" if given is None else given}, ensure_ascii=False)
    return json_text_of(whole.get("arguments"))


def _hands_over(whole: Mapping[str, Any]) -> bool:
    """Return whether an item or a `done` has a field for the call's arguments, even if it is empty."""
    return "arguments" in whole or "input" in whole


def _refuses(kind: str, event: WireEvent) -> bool:
    """Return whether an event has a refusal: itself, in its part, in its item, or in the response as a whole."""
    items = [mapping_of(event.get("item")), *items_of(mapping_of(event.get("response")).get("output"))]
    parts = [mapping_of(event.get("part"))]
    parts += [part for item in items if item.get("type") == "message" for part in items_of(item.get("content"))]
    return kind.startswith("response.refusal.") or any(part.get("type") == "refusal" for part in parts)


def _words(item: Mapping[str, Any]) -> str:
    return "".join(text_of(p.get("text")) or text_of(p.get("refusal")) for p in items_of(item.get("content")))


def _thoughts(item: Mapping[str, Any]) -> str:
    parts = items_of(item.get("content")) or items_of(item.get("summary"))
    return "\n\n".join(text_of(p.get("text")) for p in parts)


def events_of(body: Mapping[str, Any]) -> Iterator[WireEvent]:
    """A whole response as the events it would have been streamed in."""
    status = body.get("status")
    if status in _FAILED or (body.get("error") and status is None):
        yield {"type": f"response.{status or 'failed'}", "response": body}
        return
    if status in ("completed", "incomplete"):
        yield {"type": f"response.{status}", "response": body}
        return
    for at, item in enumerate(items_of(body.get("output"))):
        last = "added" if item.get("type") in CALLS else "done"  # no call may run if the response is not over
        yield {"type": f"response.output_item.{last}", "output_index": at, "item": item}
