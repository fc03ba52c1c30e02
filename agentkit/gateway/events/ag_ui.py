"""One run as AG-UI 1.0 events, for any page that speaks the protocol. Pure.

What AG-UI has no word for is in `metadata.agentkit`, or a `CUSTOM` event whose name begins with `agentkit:`; other
clients ignore both. Source: the schema of AG-UI 1.0, https://docs.ag-ui.com, November 2026.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from agentkit.agent import RunResult, call_hash
from agentkit.events import (
    ApprovalRequired,
    CallEnd,
    CallError,
    Finish,
    InventedResult,
    ModelSelected,
    SourceEvent,
    Text,
    Thinking,
    ToolCompleted,
    ToolEvent,
    ToolFailed,
    ToolStarted,
    UnreadCall,
    Usage,
)
from agentkit.formats import REPAIRS
from agentkit.gateway.events.page_request import approval_id
from agentkit.gateway.events.run_encoder import (
    NO_TOOLS,
    Answered,
    PageEvent,
    RunEncoder,
    call_status,
    page_content,
    run_error,
)
from agentkit.gateway.reply_parts import json_string, line
from agentkit.messages import FilePart, ImagePart, TextPart, ToolCall
from agentkit.toolspec import ToolSpec

PROTOCOL: Final = "1.0"
"""The version of AG-UI."""

_NAMES: Final = {Text: "TEXT_MESSAGE", Thinking: "REASONING_MESSAGE"}
_DELTAS: Final = {
    "TEXT_MESSAGE_CONTENT": "messageId",
    "REASONING_MESSAGE_CONTENT": "messageId",
    "TOOL_CALL_ARGS": "toolCallId",
    "text-delta": "id",
    "reasoning-delta": "id",
}
"""The events with a delta of text, including the AI SDK's, and the field of each that says where it belongs."""


class AgUiRun(RunEncoder):
    """The events of one run as AG-UI events: JSON objects with camelCase keys, none with a null value.

    Feed it the events of a `RunStream`, between `start` and either `finish` or `fail`.

    Args:
        thread_id: the conversation's id.
        run_id: the run's id; each response is the message `{run_id}-{n}`, from 1.
        tools: the agent's tools by name. With them, the deltas of arguments never contradict the call, and a person
            who edits arguments gets the schema.
        about: returns what else a page has to know of a call, such as a preview of its effect.
        clock: seconds since 1970, for the start of each tool.
    """

    def __init__(
        self,
        thread_id: str,
        run_id: str,
        *,
        tools: Mapping[str, ToolSpec] = NO_TOOLS,
        about: Callable[[ToolCall], Mapping[str, Any]] = lambda call: {},
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__(run_id, tools)
        self.thread_id = thread_id
        """The id of the conversation."""
        self._about = about
        self._clock = clock
        self._reasons: dict[str, str] = {}  # why calls wait, by their ids

    def start(self, **more: Any) -> list[PageEvent]:
        """Return the run's first event.

        Args:
            more: further fields of it, such as `parentRunId` and `input`.
        """
        self._put("RUN_STARTED", threadId=self.thread_id, runId=self.run_id, protocolVersion=PROTOCOL, **more)
        return self._take()

    def finish(self, result: RunResult[Any]) -> list[PageEvent]:
        """Return the last events of a run that ended without an error; calls that wait are its interrupts."""
        self._close()
        outcome: dict[str, Any] = {"type": "success"}
        if result.finish == "approval":
            outcome = {"type": "interrupt", "interrupts": [self._interrupt(call) for call in result.pending]}
        elif result.finish == "cancelled":
            outcome = {"type": "cancelled"}
        elif result.pending:
            outcome["pendingToolCallIds"] = [call.id for call in result.pending]
        ids = {"threadId": self.thread_id, "runId": self.run_id}
        how = {"outcome": outcome, "usage": [_tokens(result.usage)], "metadata": _ours(finish=result.finish)}
        self._put("RUN_FINISHED", **ids, **how)
        return self._take()

    def fail(self, error: BaseException) -> list[PageEvent]:
        """Return the last events of a run that raised an error; see `run_error`."""
        self._close()
        message, code = run_error(error)
        self._put("RUN_ERROR", message=message, code=code)
        return self._take()

    # -------------------------------------------------------------- turns and texts

    @property
    def message_id(self) -> str:
        """The id of the response that is read."""
        return f"{self.run_id}-{self.turn}"

    def _id(self, kind: type[Text] | type[Thinking]) -> str:
        return self.message_id if kind is Text else f"{self.message_id}-r{self._span}"

    def _write_turn(self) -> None:
        self._put("STEP_STARTED", stepName=f"turn {self.turn}")

    def _write_turn_end(self, finish: Finish | None) -> None:
        more = {} if finish is None else {"metadata": _ours(finish=finish.reason)}
        self._put("STEP_FINISHED", stepName=f"turn {self.turn}", **more)

    def _write_span(self, kind: type[Text] | type[Thinking]) -> None:
        id = self._id(kind)
        if kind is Text:
            self._put("TEXT_MESSAGE_START", messageId=id, role="assistant")
        else:
            self._put("REASONING_START", messageId=id)
            self._put("REASONING_MESSAGE_START", messageId=id, role="reasoning")

    def _write_delta(self, kind: type[Text] | type[Thinking], text: str) -> None:
        self._events.append({"type": f"{_NAMES[kind]}_CONTENT", "messageId": self._id(kind), "delta": text})

    def _write_span_end(self, kind: type[Text] | type[Thinking]) -> None:
        self._put(f"{_NAMES[kind]}_END", messageId=self._id(kind))
        if kind is Thinking:
            self._put("REASONING_END", messageId=self._id(kind))

    def _write_other(self, event: SourceEvent) -> None:
        match event:
            case Usage():
                self._put_own("usage", messageId=self.message_id, usage=usage_of(event))
            case InventedResult(text):
                self._put_own("invented", messageId=self.message_id, text=text)
            case UnreadCall(text, name):
                self._put_own("unread", messageId=self.message_id, text=text, name=name)
            case ModelSelected(model, failed):
                self._put_own("model", messageId=self.message_id, model=model, failed=list(failed))

    def _put_own(self, name: str, /, **value: Any) -> None:
        self._put("CUSTOM", name=f"agentkit:{name}", value=value)

    # -------------------------------------------------------------- calls

    def _write_call(self, id: str, name: str) -> None:
        self._put("TOOL_CALL_START", toolCallId=id, toolCallName=name, parentMessageId=self.message_id)

    def _write_arguments(self, id: str, text: str) -> None:
        self._put("TOOL_CALL_ARGS", toolCallId=id, delta=text)

    def _write_call_end(self, event: CallEnd) -> None:
        call = event.call
        what = {"arguments": dict(call.arguments), **_written(call), "repairs": repairs_of(event.repairs)}
        self._put("TOOL_CALL_END", toolCallId=call.id, metadata=_ours(**what, **self._about(call)))

    def _write_call_error(self, event: CallError) -> None:
        why = {"code": event.code, "message": event.message, "position": event.position}
        self._put("TOOL_CALL_END", toolCallId=event.call.id, metadata=_ours(error=why, **_written(event.call)))

    def _write_tool(self, event: ToolEvent) -> None:
        match event:
            case ToolStarted(_, call):
                self._put_own("started", toolCallId=call.id, at=self._clock())
            case ApprovalRequired():
                for call in event.inside or (event.call,):
                    self._reasons[call.id] = event.reason
                    self._write_approval(call, event)
            case _:
                self._write_answer(event)

    def _write_approval(self, call: ToolCall, event: ApprovalRequired) -> None:
        inside = [] if call is event.call else [event.call.id]
        more = {"reason": event.reason, "inside": inside, **self._about(call)}
        self._put_own("approval", toolCallId=call.id, **waiting_call(call), **more)

    def _write_answer(self, event: Answered) -> None:
        id, result = event.call.id, event.result
        seconds = event.seconds if isinstance(event, ToolCompleted | ToolFailed) else None
        how = _ours(status=call_status(result.code, result.error or ""), code=result.code, seconds=seconds)
        ids = {"messageId": f"{id}-result", "toolCallId": id, "role": "tool"}
        self._put("TOOL_CALL_RESULT", **ids, content=content_of(page_content(result)), metadata=how)

    def _interrupt(self, call: ToolCall) -> PageEvent:
        return interrupt_of(call, self._reasons.get(call.id, ""), self.tools.get(call.name))


def sse(event: Mapping[str, Any], id: str = "") -> bytes:
    r"""An event as a server-sent event.

    Args:
        event: the event.
        id: its `id`, with which a client says where it has to be continued; empty for none.

    >>> sse({"type": "RUN_ERROR", "message": "no"}, "a.1")
    b'id: a.1\ndata: {"type":"RUN_ERROR","message":"no"}\n\n'
    """
    head = f"id: {id}\n" if id else ""
    kind = event["type"]
    if (place := _DELTAS.get(kind)) is not None and len(event) == 3:  # nearly all events: here in a fifth of the time
        fields = f'"type":"{kind}","{place}":{json_string(event[place])},"delta":{json_string(event["delta"])}'
        return f"{head}data: {{{fields}}}\n\n".encode()
    return f"{head}data: {line(event)}\n\n".encode()


def interrupt_of(call: ToolCall, reason: str = "", tool: ToolSpec | None = None) -> PageEvent:
    """Return the interrupt that asks a person about a call.

    Args:
        call: the waiting call.
        reason: why it waits; empty if its tool always asks.
        tool: its tool, whose schema edited arguments must fit; None if it is unknown.
    """
    schema = dict(tool.parameters) if tool is not None else {"type": "object"}
    answer = {"approved": {"type": "boolean"}, "editedArgs": schema, "reason": {"type": "string"}}
    return {
        "id": approval_id(call),
        "reason": "tool_call",
        "toolCallId": call.id,
        "message": f"Run {call.name}?" + (f" {reason}" if reason else ""),
        "responseSchema": {"type": "object", "properties": answer, "required": ["approved"]},
        "metadata": _ours(**waiting_call(call)),
    }


def waiting_call(call: ToolCall) -> PageEvent:
    """Return what a person decides about."""
    return {"hash": call_hash(call), "name": call.name, "arguments": dict(call.arguments)}


def content_of(parts: Iterable[Any], *, joined: bool = True) -> str | list[PageEvent]:
    """Return the content of a message: a string, or AG-UI's parts if there are files, or texts that are not joined."""
    parts = tuple(parts)
    if all(isinstance(part, TextPart) for part in parts) and (joined or len(parts) < 2):
        return "".join(part.text for part in parts)
    return [{"type": "text", "text": part.text} if isinstance(part, TextPart) else _file(part) for part in parts]


def usage_of(usage: Usage) -> dict[str, int]:
    """Return the tokens of one response, as `agentkit:usage` has them."""
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "cachedTokens": usage.cached_tokens,
        "reasoningTokens": usage.reasoning_tokens,
    }


def repairs_of(codes: Iterable[str]) -> list[dict[str, str]]:
    """Return the repairs of a call, each with its explanation."""
    return [{"code": code, "text": REPAIRS.get(code, "")} for code in codes]


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.input_tokens + usage.output_tokens,
        "reasoningTokens": usage.reasoning_tokens,
        "cachedInputTokens": usage.cached_tokens,
        "cacheWriteInputTokens": usage.cache_write_tokens,
    }


def _file(part: ImagePart | FilePart) -> PageEvent:
    kind, name = (part.kind, part.name) if isinstance(part, FilePart) else ("image", "")
    source = {"type": "data", "value": part.base64} if part.url is None else {"type": "url", "value": part.url}
    if part.url is None or kind != "image":
        source["mimeType"] = part.media_type
    return {"type": kind, "source": source, **({"metadata": {"name": name}} if name else {})}


def _written(call: ToolCall) -> dict[str, Any]:
    """How the model wrote a call."""
    return {"format": call.format, "raw": call.raw}


def _ours(**values: Any) -> dict[str, Any]:
    return {"agentkit": values}
