"""A page's reading of a run, from the events of either protocol: every rule of the protocol is checked on the way.

Written from the protocols' own words, not from the encoders. AG-UI's models are the judge of each event.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from agentkit.events import (
    CallEnd,
    CallError,
    Event,
    Text,
    Thinking,
    ToolCompleted,
    ToolFailed,
    ToolSkipped,
)

Call = tuple[str, str, Any]
"""Id, name and arguments; the text of a call that cannot be run."""


@dataclass(slots=True)
class PageView:
    """All that a page shows of a run.

    Attributes:
        text: all visible text.
        thinking: all thinking.
        calls: the calls that can be run, in the order in which they ended.
        damaged: the ids of the others.
        results: each answer's text, by the call's id; None for a denial without words.
        partial: the JSON text of the arguments of each call, as it was streamed.
        end: the type of the last event, or the kind of outcome.
        waiting: the ids of the calls that wait for a person.
    """

    text: str = ""
    thinking: str = ""
    calls: list[Call] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    results: dict[str, str | None] = field(default_factory=dict)
    partial: dict[str, str] = field(default_factory=dict)
    end: str = ""
    waiting: list[str] = field(default_factory=list)


def view_of(events: Iterable[Event]) -> PageView:
    """What a page has to show of these events."""
    view = PageView()
    for event in events:
        match event:
            case Text(text):
                view.text += text
            case Thinking(text):
                view.thinking += text
            case CallEnd(_, call):
                view.calls.append((call.id, call.name, dict(call.arguments)))
            case CallError(_, _, _, call):
                view.damaged.append(call.id)
            case ToolCompleted(_, call, result) | ToolFailed(_, call, result) | ToolSkipped(_, call, result):
                assert call.id not in view.results
                view.results[call.id] = result.text
    return view


# ---------------------------------------------------------------- AG-UI


@cache
def _ag_ui() -> Any:
    from ag_ui.core import Event as AnyEvent
    from pydantic import TypeAdapter

    return TypeAdapter(AnyEvent)


def judge(event: Mapping[str, Any]) -> None:
    """Let AG-UI's own models judge an event; they keep unknown fields, which this refuses."""
    from ag_ui.core import BaseEvent
    from pydantic import BaseModel

    def walk(value: Any) -> None:
        if isinstance(value, BaseModel):
            assert not value.model_extra, (value.model_extra, event)
            for name in type(value).model_fields:
                walk(getattr(value, name))
        elif isinstance(value, list):
            for item in value:
                walk(item)

    read: BaseEvent = _ag_ui().validate_python(event)
    walk(read)
    assert None not in event.values(), event
    assert read.model_dump(mode="json", by_alias=True, exclude_unset=True) == json.loads(json.dumps(event))


class AgUiReader:
    """Reads the events of one run, and checks their order: rules of AG-UI's `verifyEvents`, and of this project."""

    def __init__(self) -> None:
        self.view = PageView()
        self._open: dict[str, set[str]] = {
            "text": set(),
            "span": set(),
            "reasoning": set(),
            "call": set(),
            "step": set(),
        }
        self._messages: list[str] = []  # assistant messages, in the order in which they began
        self._names: dict[str, str] = {}
        self._judged = set[str]()
        self._over = False

    def read(self, events: Sequence[Mapping[str, Any]]) -> PageView:
        """Read a whole run."""
        assert events[0]["type"] == "RUN_STARTED"
        for event in events:
            if "delta" not in event or event["type"] not in self._judged:  # deltas have all one shape
                judge(event)
                self._judged.add(event["type"])
            assert not self._over, event
            handler = getattr(self, f"_{event['type'].lower()}", None)
            if handler is not None:
                handler(event)
        assert self._over
        return self.view

    def _start(self, kind: str, id: str) -> None:
        assert id not in self._open[kind], (kind, id)
        self._open[kind].add(id)

    def _end(self, kind: str, id: str) -> None:
        self._open[kind].remove(id)

    def _message(self, id: str) -> None:
        """A message that another one followed is over."""
        if id not in self._messages:
            self._messages.append(id)
        assert self._messages[-1] == id

    def _step_started(self, event: Mapping[str, Any]) -> None:
        assert not self._open["step"]
        self._start("step", event["stepName"])

    def _step_finished(self, event: Mapping[str, Any]) -> None:
        self._end("step", event["stepName"])

    def _text_message_start(self, event: Mapping[str, Any]) -> None:
        assert self._open["step"]
        assert not self._open["span"]
        self._message(event["messageId"])
        self._start("text", event["messageId"])

    def _text_message_content(self, event: Mapping[str, Any]) -> None:
        assert event["delta"]
        assert event["messageId"] in self._open["text"]
        self.view.text += event["delta"]

    def _text_message_end(self, event: Mapping[str, Any]) -> None:
        self._end("text", event["messageId"])

    def _reasoning_start(self, event: Mapping[str, Any]) -> None:
        assert not self._open["text"]
        self._start("span", event["messageId"])

    def _reasoning_message_start(self, event: Mapping[str, Any]) -> None:
        self._start("reasoning", event["messageId"])

    def _reasoning_message_content(self, event: Mapping[str, Any]) -> None:
        assert event["delta"]
        assert event["messageId"] in self._open["reasoning"]
        self.view.thinking += event["delta"]

    def _reasoning_message_end(self, event: Mapping[str, Any]) -> None:
        self._end("reasoning", event["messageId"])

    def _reasoning_end(self, event: Mapping[str, Any]) -> None:
        assert not self._open["reasoning"]
        self._end("span", event["messageId"])

    def _tool_call_start(self, event: Mapping[str, Any]) -> None:
        id = event["toolCallId"]
        assert id not in self._names
        self._message(event["parentMessageId"])
        self._names[id] = event["toolCallName"]
        self.view.partial[id] = ""
        self._start("call", id)

    def _tool_call_args(self, event: Mapping[str, Any]) -> None:
        assert event["delta"]
        assert event["toolCallId"] in self._open["call"]
        self.view.partial[event["toolCallId"]] += event["delta"]

    def _tool_call_end(self, event: Mapping[str, Any]) -> None:
        id, ours = event["toolCallId"], event["metadata"]["agentkit"]
        self._end("call", id)
        if "error" in ours:
            self.view.damaged.append(id)
        else:
            self.view.calls.append((id, self._names[id], ours["arguments"]))

    def _tool_call_result(self, event: Mapping[str, Any]) -> None:
        id, content = event["toolCallId"], event["content"]
        assert id not in self._open["call"]
        assert id not in self.view.results
        text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
        self.view.results[id] = text

    def _run_finished(self, event: Mapping[str, Any]) -> None:
        assert not any(self._open.values()), self._open
        outcome = event["outcome"]
        self._over, self.view.end = True, outcome["type"]
        self.view.waiting = [one["toolCallId"] for one in outcome.get("interrupts", ())]

    def _run_error(self, event: Mapping[str, Any]) -> None:
        assert not any(self._open.values()), self._open
        self._over, self.view.end = True, "error"


# ---------------------------------------------------------------- the AI SDK


class AiSdkReader:
    """Reads the chunks of one message, and checks their order as `processUIMessageStream` of `ai` 6 does."""

    def __init__(self) -> None:
        self.view = PageView()
        self._open: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._ended = set[str]()
        self._step = False

    def read(self, chunks: Sequence[Mapping[str, Any]]) -> PageView:
        """Read a whole message."""
        assert chunks[0]["type"] == "start"
        for chunk in chunks:
            assert not self.view.end, chunk
            getattr(self, "_" + chunk["type"].replace("-", "_"))(chunk)
        assert self.view.end
        return self.view

    def _start(self, chunk: Mapping[str, Any]) -> None:
        assert self.view == PageView()

    def _start_step(self, chunk: Mapping[str, Any]) -> None:
        assert not self._step
        self._step = True

    def _finish_step(self, chunk: Mapping[str, Any]) -> None:
        assert self._step
        assert not self._open
        self._step = False

    def _text_start(self, chunk: Mapping[str, Any]) -> None:
        assert not self._open
        assert self._step
        assert chunk["id"] not in self._ended
        self._open[chunk["id"]] = chunk["type"].partition("-")[0]

    _reasoning_start = _text_start

    def _text_delta(self, chunk: Mapping[str, Any]) -> None:
        assert chunk["delta"]
        assert self._open[chunk["id"]] == "text"
        self.view.text += chunk["delta"]

    def _reasoning_delta(self, chunk: Mapping[str, Any]) -> None:
        assert chunk["delta"]
        assert self._open[chunk["id"]] == "reasoning"
        self.view.thinking += chunk["delta"]

    def _text_end(self, chunk: Mapping[str, Any]) -> None:
        assert self._open.pop(chunk["id"]) == chunk["type"].partition("-")[0]
        self._ended.add(chunk["id"])

    _reasoning_end = _text_end

    def _tool_input_start(self, chunk: Mapping[str, Any]) -> None:
        assert chunk["toolCallId"] not in self._names
        self._names[chunk["toolCallId"]] = chunk["toolName"]
        self.view.partial[chunk["toolCallId"]] = ""

    def _tool_input_delta(self, chunk: Mapping[str, Any]) -> None:
        assert chunk["inputTextDelta"]
        self.view.partial[chunk["toolCallId"]] += chunk["inputTextDelta"]

    def _tool_input_available(self, chunk: Mapping[str, Any]) -> None:
        id = chunk["toolCallId"]
        assert self._names.setdefault(id, chunk["toolName"]) == chunk["toolName"]
        self.view.calls.append((id, chunk["toolName"], chunk["input"]))

    def _tool_input_error(self, chunk: Mapping[str, Any]) -> None:
        assert chunk["toolCallId"] in self._names
        self.view.damaged.append(chunk["toolCallId"])

    def _tool_approval_request(self, chunk: Mapping[str, Any]) -> None:
        assert chunk["toolCallId"] in self._names
        self.view.waiting.append(chunk["toolCallId"])

    def _answer(self, id: str, text: str | None) -> None:
        assert id in self._names
        assert id not in self.view.results
        self.view.results[id] = text

    def _tool_output_available(self, chunk: Mapping[str, Any]) -> None:
        output = chunk["output"]
        self._answer(chunk["toolCallId"], output if isinstance(output, str) else json.dumps(output, ensure_ascii=False))

    def _tool_output_error(self, chunk: Mapping[str, Any]) -> None:
        self._answer(chunk["toolCallId"], chunk["errorText"])

    def _tool_output_denied(self, chunk: Mapping[str, Any]) -> None:
        self._answer(chunk["toolCallId"], None)

    def _file(self, chunk: Mapping[str, Any]) -> None:
        assert chunk["url"].startswith("data:")

    def _finish(self, chunk: Mapping[str, Any]) -> None:
        assert not self._step
        self.view.end = chunk["finishReason"]

    def _abort(self, chunk: Mapping[str, Any]) -> None:
        assert not self._step
        self.view.end = "abort"

    def _error(self, chunk: Mapping[str, Any]) -> None:
        assert not self._step
        self.view.end = "error"
