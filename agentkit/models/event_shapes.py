"""What the events of the three protocols hold: the fields that are read, and those that say nothing of an answer. Pure.

Servers add fields of their own to what is read, and send events that say nothing. But an event of which nothing is
read, and that has text anywhere else, may hold a part of the answer in a shape that no protocol has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class EventShape:
    """What is known of a value.

    Args:
        fields: of an object.
        text: whether it may be a text.
        many: whether it may be a list of such values.
        rest: whether all other fields of an object are known as well.
    """

    fields: Mapping[str, EventShape] = field(default_factory=dict)
    text: bool = False
    many: bool = False
    rest: bool = False


NOTHING: Final = EventShape()
TEXT: Final = EventShape(text=True)
OBJECT: Final = EventShape(rest=True)
ANY: Final = EventShape(text=True, many=True, rest=True)

QUIET: Final[Mapping[str, EventShape]] = dict.fromkeys(
    (
        *("id", "object", "type", "event", "created", "created_at", "model", "role", "status", "name", "provider"),
        *(
            "item_id",
            "event_id",
            "request_id",
            "response_id",
            "trace_id",
            "sequence_number",
            "system_fingerprint",
            "service_tier",
        ),
        *("usage", "x_groq", "timings", "metrics", "meta_info", "metadata", "obfuscation", "warnings"),
        *("p", "provider_specific_fields", "stop_str", "kv_transfer_params"),
        *("prompt_filter_results", "content_filter_results", "content_filter_offsets", "content_filter_result"),
        *("logprobs", "prompt_logprobs", "token_ids", "prompt_token_ids", "annotations", "citations", "search_results"),
        *("finish_reason", "native_finish_reason", "stop_reason", "stop_sequence", "matched_stop", "refusal_reason"),
    ),
    ANY,
)
"""Fields that tell of a response, and hold no part of an answer."""


def has_more(value: object, shape: EventShape, *, listed: bool = False) -> bool:
    """Whether a value, or one that is listed in it, has text where its shape has none."""
    if shape is ANY:
        return False
    if isinstance(value, str):
        return bool(value) and not shape.text
    if isinstance(value, list):
        inner = shape if shape.many and not listed else NOTHING
        return any(has_more(one, inner, listed=True) for one in value)
    if not isinstance(value, Mapping) or shape.rest:
        return False
    return any(has_more(one, shape.fields.get(key) or QUIET.get(key, NOTHING)) for key, one in value.items())


def _of(*texts: str, many: bool = False, text: bool = False, **fields: EventShape) -> EventShape:
    return EventShape({**dict.fromkeys(texts, TEXT), **fields}, text, many)


# ---------------------------------------------------------------- chat completions

_PART = _of("text", many=True, text=True, thinking=_of("text", many=True), references=ANY, reference_ids=ANY)

CHAT_CALL: Final = _of("arguments", function=_of("arguments"), extra_content=ANY, provider_specific_fields=ANY)
"""A piece of a call."""

_DELTA = _of(
    *("text", "refusal", "reasoning", "reasoning_content"),
    many=True,
    text=True,
    content=_PART,
    reasoning_details=ANY,
    tool_calls=EventShape(CHAT_CALL.fields, many=True),
    audio=ANY,
)
CHAT: Final = _of(choices=_of("text", many=True, delta=_DELTA, message=EventShape(_DELTA.fields)))
"""A chunk."""

# ---------------------------------------------------------------- Messages

DELTAS: Final[Mapping[str, str]] = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
    "compaction_delta": "content",
}
"""The field of each kind of delta; it also shows the kind of one whose type was omitted."""

MESSAGES: Final[Mapping[str, EventShape]] = {
    "message_start": EventShape({"message": OBJECT}),
    "content_block_start": EventShape({"content_block": OBJECT}),
    "message_delta": EventShape(
        {"delta": EventShape({"container": ANY, "stop_details": ANY}), "context_management": ANY}
    ),
}
"""Each kind of event but `content_block_delta`."""

# ---------------------------------------------------------------- Responses

_DONE = _of("text", "refusal", "name", part=OBJECT, arguments=ANY, input=ANY)

_PIECES = (
    *("output_text", "refusal", "content_part", "reasoning_text", "reasoning_summary_text", "reasoning_summary_part"),
    *("function_call_arguments", "custom_tool_call_input"),
)
_SERVERS_TOOLS = (
    *("web_search_call", "file_search_call", "code_interpreter_call", "code_interpreter_call_code"),
    *("image_generation_call", "mcp_call", "mcp_call_arguments", "mcp_list_tools", "computer_call", "shell_call"),
    *("shell_call_command", "shell_call_output_content", "apply_patch_call", "apply_patch_call_operation_diff"),
    *("output_text.annotation", "audio", "audio.transcript"),
)
_STATES = ("created", "queued", "in_progress", "completed", "incomplete", "failed", "cancelled")

RESPONSES: Final[Mapping[str, EventShape]] = {
    **{f"response.{base}.delta": _of("delta", logprobs=ANY) for base in _PIECES},
    **{f"response.{base}.{last}": _DONE for base in _PIECES for last in ("added", "done")},
    **{f"response.output_item.{last}": EventShape({"item": OBJECT}) for last in ("added", "done")},
    **{f"response.{state}": EventShape({"response": OBJECT}) for state in _STATES},
}
"""Each kind of event that is read."""


def of_responses(kind: str) -> EventShape:
    """An event of the Responses API; those of the server's own tools tell nothing that their items do not."""
    base = kind.removeprefix("response.").rpartition(".")[0]
    return RESPONSES.get(kind) or (ANY if base in _SERVERS_TOOLS else NOTHING)
