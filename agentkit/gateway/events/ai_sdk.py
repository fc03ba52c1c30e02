"""One run as the UI message stream of the AI SDK, for pages made with `useChat` and its like. Pure.

A run is one message of the assistant, each of its responses a step. Source: the chunk types of the npm package `ai` 6,
`ui-message-chunks.ts`, November 2026.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from agentkit.agent import RunFinish, RunResult
from agentkit.events import (
    ApprovalRequired,
    CallEnd,
    CallError,
    ModelSelected,
    SourceEvent,
    Text,
    Thinking,
    ToolEvent,
    ToolStarted,
)
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
from agentkit.messages import ImagePart, ToolCall
from agentkit.tool.result import ToolResult
from agentkit.toolspec import ToolSpec

HEADERS: Final[Mapping[str, str]] = {
    "content-type": "text/event-stream",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
    "x-vercel-ai-ui-message-stream": "v1",
}
"""The headers of a reply: without the last one, a page refuses the stream."""

DONE: Final = b"data: [DONE]\n\n"
"""The end of a reply."""

FINISHES: Final[Mapping[RunFinish, str]] = {
    **dict.fromkeys(("stop", "agent_terminated"), "stop"),
    **dict.fromkeys(("length", "max_turns", "token_budget", "cost_budget", "time_budget", "call_budget"), "length"),
    **dict.fromkeys(("content_filter", "refusal"), "content-filter"),
    **dict.fromkeys(("tool_calls", "approval"), "tool-calls"),
    "error": "error",
}
"""The words for how a run ended; any other end is `other`."""

_NAMES: Final = {Text: "text", Thinking: "reasoning"}


class AiSdkRun(RunEncoder):
    """The events of one run as chunks of a UI message stream.

    Feed it the events of a `RunStream`, between `start` and either `finish` or `fail`.

    Args:
        run_id: the run's id, which also names the message.
        tools: the agent's tools by name. With them, the deltas of arguments never contradict the call.
        continues: whether the run acts on decisions, so that it continues the page's last message.
    """

    def __init__(self, run_id: str, *, tools: Mapping[str, ToolSpec] = NO_TOOLS, continues: bool = False) -> None:
        super().__init__(run_id, tools)
        self._continues = continues
        self._step = False
        self._known = set[str]()  # the ids of the calls that this message has

    def start(self) -> list[PageEvent]:
        """Return the first chunk. A message that is continued keeps its id, which only the page knows."""
        self._put("start", **({} if self._continues else {"messageId": self.run_id}))
        return self._take()

    def finish(self, result: RunResult[Any]) -> list[PageEvent]:
        """Return the last chunks of a run that ended without an error."""
        self._end()
        if result.finish == "cancelled":
            self._put("abort", reason="the run was stopped")
        else:
            usage = {"inputTokens": result.usage.input_tokens, "outputTokens": result.usage.output_tokens}
            ours = {"agentkit": {"finish": result.finish, "usage": usage}}
            self._put("finish", finishReason=FINISHES.get(result.finish, "other"), messageMetadata=ours)
        return self._take()

    def fail(self, error: BaseException) -> list[PageEvent]:
        """Return the last chunks of a run that raised an error; see `run_error`."""
        self._end()
        message, _ = run_error(error)
        self._put("error", errorText=message)
        return self._take()

    def _end(self) -> None:
        self._close()
        if self._step:
            self._put("finish-step")

    # -------------------------------------------------------------- steps and texts

    def _write_turn(self) -> None:
        if self._step:  # only now: a step includes the answers to its calls
            self._put("finish-step")
        self._step = True
        self._put("start-step")

    def _write_span(self, kind: type[Text] | type[Thinking]) -> None:
        self._put(f"{_NAMES[kind]}-start", id=self._id)

    def _write_delta(self, kind: type[Text] | type[Thinking], text: str) -> None:
        self._events.append({"type": f"{_NAMES[kind]}-delta", "id": self._id, "delta": text})

    def _write_span_end(self, kind: type[Text] | type[Thinking]) -> None:
        self._put(f"{_NAMES[kind]}-end", id=self._id)

    @property
    def _id(self) -> str:
        return f"{self.turn}-{self._span}"

    def _write_other(self, event: SourceEvent) -> None:
        if isinstance(event, ModelSelected):
            self._put("data-agentkit-model", data={"model": event.model, "failed": list(event.failed)})

    # -------------------------------------------------------------- calls

    def _write_call(self, id: str, name: str) -> None:
        self._known.add(id)
        self._put("tool-input-start", toolCallId=id, toolName=name)

    def _write_arguments(self, id: str, text: str) -> None:
        self._put("tool-input-delta", toolCallId=id, inputTextDelta=text)

    def _write_call_end(self, event: CallEnd) -> None:
        self._write_input(event.call)

    def _write_input(self, call: ToolCall) -> None:
        self._known.add(call.id)
        self._put("tool-input-available", toolCallId=call.id, toolName=call.name, input=dict(call.arguments))

    def _write_call_error(self, event: CallError) -> None:
        call = event.call
        ids = {"toolCallId": call.id, "toolName": call.name}
        self._put("tool-input-error", **ids, input=call.raw, errorText=event.message)

    def _write_tool(self, event: ToolEvent) -> None:
        if isinstance(event, ToolStarted):
            return
        inside = event.inside if isinstance(event, ApprovalRequired) else ()
        for call in inside or (event.call,):
            if call.id not in self._known:  # an earlier run's, or a sub-agent's: a page stops at an unknown id
                self._write_input(call)
            if isinstance(event, ApprovalRequired):
                self._put("tool-approval-request", approvalId=approval_id(call), toolCallId=call.id)
            else:
                self._write_answer(event)

    def _write_answer(self, event: Answered) -> None:
        id, result = event.call.id, event.result
        parts = page_content(result)
        text = "".join(part.text for part in parts if not isinstance(part, ImagePart))
        match call_status(result.code, text):
            case "done":
                self._put("tool-output-available", toolCallId=id, output=_output(result, text))
                for part in parts:
                    if isinstance(part, ImagePart):
                        self._put("file", url=part.data_url, mediaType=part.media_type)
            case "denied":
                self._put("tool-output-denied", toolCallId=id)
            case _:
                self._put("tool-output-error", toolCallId=id, errorText=text)


def _output(result: ToolResult, text: str) -> Any:
    """Return the result for a page: an object or a list unchanged, any other value as the text that the model reads."""
    if isinstance(result.output, dict | list) and not result.content:
        try:
            return json.loads(text)
        except ValueError:  # it is cut, or cannot be shown
            return text
    return text
