"""A model server that answers by the state of the conversation: a call, two calls at once, final words.

In each wire, natively or as text in a format: the name of the model says which. It refuses what no model server would
accept: results of unknown calls, and for a model that is taught a format any native tool.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

from client_programs import RESULTS, TOOLS, Seen
from fake_upstream import FakeUpstream, Step, chunked, fake_upstream, whole
from upstream_replies import (
    CHAT_USAGE,
    CHUNK,
    MESSAGE,
    RESPONSE,
    RESPONSES_USAGE,
    WIRES,
    chunk,
    named,
    output_message,
    unnamed,
)

from agentkit import formats
from agentkit.messages import ToolCall
from agentkit.toolspec import ToolSpec

SPECS: Final = [ToolSpec(*tool) for tool in TOOLS]

Calls = Sequence[tuple[str, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply: its text, then its calls; before them the thinking, if it has any."""

    text: str
    calls: Calls = ()
    thinking: str = ""


TURNS: Final = (
    Turn("I look for the city.", [("find_city", {"name": 'Oslo "S", å', "country": "NO"})]),
    Turn(
        "Two units:",
        [("read_weather", {"city": 3143244, "unit": unit}) for unit in ("celsius", "fahrenheit")],
    ),
    Turn("It is 7 °C, which is 45 °F: 7 < 10."),
)
THINKING: Final = "The user asks for the weather. I should use <tool_call>."
EXPECTED: Final = Seen([call for turn in TURNS for call in turn.calls], " ".join(turn.text for turn in TURNS))
"""What any client sees of the whole conversation."""


def turn_of(body: str) -> Turn:
    """The next reply of a conversation, by the results in it."""
    have = [result in body for result in RESULTS.values()]
    assert have in ([False] * 3, [True, False, False], [True] * 3), f"results are missing: {have}"
    return TURNS[sum(have) and (1 if sum(have) == 1 else 2)]


def as_text(turn: Turn, format: str) -> str:
    """A reply with its calls in a text format."""
    calls = [ToolCall(f"call_{at}", name, arguments) for at, (name, arguments) in enumerate(turn.calls)]
    said = f"{turn.text}\n{formats.render_calls(format, calls, SPECS)}" if calls else turn.text
    before, after = next(iter(formats.get(format).thinking), ("<think>", "</think>"))
    return f"{before}\n{turn.thinking}\n{after}\n\n{said}" if turn.thinking else said


def _pieces(text: str, size: int = 5) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def _ids(turn: Turn, salt: int) -> list[str]:
    return [f"call_native_{salt}_{at}" for at in range(len(turn.calls))]


# ---------------------------------------------------------------- native replies


def _chat(turn: Turn, streamed: bool, salt: int) -> Any:
    calls = list(zip(_ids(turn, salt), turn.calls, strict=True))
    finish = "tool_calls" if calls else "stop"
    if not streamed:
        made = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for id, (name, arguments) in calls
        ]
        message = {"role": "assistant", "content": turn.text, **({"tool_calls": made} if made else {})}
        if turn.thinking:
            message["reasoning_content"] = turn.thinking
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return {**CHUNK, "object": "chat.completion", "choices": [choice], "usage": CHAT_USAGE}
    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"reasoning_content": text}) for text in _pieces(turn.thinking)]
    events += [chunk({"content": text}) for text in _pieces(turn.text)]
    for at, (id, (name, arguments)) in enumerate(calls):
        start = {"index": at, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}
        events.append(chunk({"tool_calls": [start]}))
        events += [
            chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
            for piece in _pieces(json.dumps(arguments))
        ]
    return [*events, chunk({}, finish), unnamed({**CHUNK, "choices": [], "usage": CHAT_USAGE}), b"data: [DONE]\n\n"]


def _messages(turn: Turn, streamed: bool, salt: int) -> Any:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": turn.text}]
    if turn.thinking:
        blocks.insert(0, {"type": "thinking", "thinking": turn.thinking, "signature": "c2lnbmVk"})
    blocks += [
        {"type": "tool_use", "id": id, "name": name, "input": arguments}
        for id, (name, arguments) in zip(_ids(turn, salt), turn.calls, strict=True)
    ]
    finish, usage = "tool_use" if turn.calls else "end_turn", {"input_tokens": 10, "output_tokens": 5}
    if not streamed:
        return {**MESSAGE, "content": blocks, "stop_reason": finish, "usage": usage}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None, "usage": usage}}
    ]
    for at, block in enumerate(blocks):
        if block["type"] == "text":
            empty: dict[str, Any] = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
        elif block["type"] == "thinking":
            empty = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        else:
            empty = {**block, "input": {}}
            pieces = _pieces(json.dumps(block["input"]))
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        events.append({"type": "content_block_start", "index": at, "content_block": empty})
        events += [{"type": "content_block_delta", "index": at, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": at})
    ended = {"stop_reason": finish, "stop_sequence": None}
    events += [
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}},
        {"type": "message_stop"},
    ]
    return [named(event) for event in events]


def _responses(turn: Turn, streamed: bool, salt: int) -> Any:
    calls = [
        {"id": f"fc_{id}", "type": "function_call", "status": "completed", "call_id": id, "name": name,
         "arguments": json.dumps(arguments)}
        for id, (name, arguments) in zip(_ids(turn, salt), turn.calls, strict=True)
    ]  # fmt: skip
    output = [output_message(turn.text, "completed"), *calls]
    done = {**RESPONSE, "status": "completed", "output": output, "usage": RESPONSES_USAGE}
    if not streamed:
        return done
    events = _events(WIRES["responses"].stream(_pieces(turn.text)))
    end = {**events.pop(), "response": done}
    for at, call in enumerate(calls, 1):
        here = {"item_id": call["id"], "output_index": at}
        started = {**call, "status": "in_progress", "arguments": ""}
        events.append({"type": "response.output_item.added", "output_index": at, "item": started})
        events += [
            {"type": "response.function_call_arguments.delta", **here, "delta": piece}
            for piece in _pieces(call["arguments"])
        ]
        events.append({"type": "response.function_call_arguments.done", **here, "arguments": call["arguments"]})
        events.append({"type": "response.output_item.done", "output_index": at, "item": call})
    return [named({**event, "sequence_number": at}) for at, event in enumerate([*events, end])]


def _events(pieces: Sequence[bytes]) -> list[dict[str, Any]]:
    return [json.loads(piece.split(b"data: ", 1)[1]) for piece in pieces]


NATIVE: Final = {"chat": _chat, "messages": _messages, "responses": _responses}
_PATHS: Final = {"completions": "chat", "messages": "messages", "responses": "responses"}


class ScriptedUpstream(FakeUpstream):
    """The server. A model is called `native`, a format, or `taught-` and a format.

    Attributes:
        refused: why requests were refused.
    """

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[str] = []

    def answer(self, headers: Mapping[str, str], body: bytes) -> Sequence[Step]:
        wire = _PATHS[headers[":path"].rpartition("/")[2]]
        asked = json.loads(body)
        try:
            return self._answer(wire, asked, json.dumps(asked, ensure_ascii=False))
        except AssertionError as refused:
            self.refused.append(str(refused))
            error = {"type": "invalid_request_error", "message": str(refused)}
            return whole({"type": "error", "error": error}, 400)

    def _answer(self, wire: str, asked: Mapping[str, Any], text: str) -> Sequence[Step]:
        format = asked["model"].removeprefix("thinks-").removeprefix("taught-")
        known, answered = _history(asked)
        assert answered <= known, f"results of unknown calls: {answered - known}"
        assert bool(asked.get("tools")) != ("taught-" in asked["model"]), "tools are offered, or are not"
        turn, streamed = turn_of(text), bool(asked.get("stream"))
        if "thinks-" in asked["model"]:
            turn = replace(turn, thinking=THINKING)
        if format == "native":
            reply = NATIVE[wire](turn, streamed, len(self.requests))
        else:
            said = as_text(turn, format)
            reply = WIRES[wire].stream(_pieces(said)) if streamed else WIRES[wire].whole(said)
        return chunked(*usage_if_asked(asked, reply)) if streamed else whole(reply)


def usage_if_asked(asked: Mapping[str, Any], reply: Sequence[bytes]) -> list[bytes]:
    """A stream of chunks without its usage, if the request did not ask for it."""
    included = (asked.get("stream_options") or {}).get("include_usage")
    return [piece for piece in reply if included or b'"choices":[]' not in piece]


def _history(asked: Mapping[str, Any]) -> tuple[set[str], set[str]]:
    """The ids of the calls of a conversation, and those of the results in it."""
    items = [item for item in (asked.get("messages") or asked.get("input")) if isinstance(item, dict)]
    blocks = [block for item in items if isinstance(item.get("content"), list) for block in item["content"]]
    known = [call["id"] for item in items for call in item.get("tool_calls") or ()]
    known += [item["call_id"] for item in items if item.get("type") == "function_call"]
    known += [block["id"] for block in blocks if block.get("type") == "tool_use"]
    assert len(known) == len(set(known)), f"ids are used again: {known}"
    answered = [item["tool_call_id"] for item in items if item.get("role") == "tool"]
    answered += [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    answered += [block["tool_use_id"] for block in blocks if block.get("type") == "tool_result"]
    return set(known), set(answered)


@contextmanager
def scripted_upstream() -> Iterator[ScriptedUpstream]:
    """The server in a thread, for as long as the block lasts."""
    upstream = ScriptedUpstream()
    with fake_upstream(upstream=upstream):
        yield upstream


def settings(url: str, names: Sequence[str]) -> dict[str, Any]:
    """A gateway's settings for these models, at this server in each wire.

    Args:
        url: the server.
        names: of formats.

    A client's name for a model is `auto-native-WIRE`, `auto-FORMAT-WIRE` or `taught-FORMAT-WIRE`. One of a model that
    thinks first starts with `thinks-`; not with `auto-FORMAT`, where thinking in the text stays text.
    """
    models: dict[str, Any] = {}
    for wire in WIRES:
        for name in names:
            models[f"auto-{name}-{wire}"] = {"upstream": wire, "model": name}
        for thinks in ("", "thinks-"):
            models[f"{thinks}auto-native-{wire}"] = {"upstream": wire, "model": f"{thinks}native"}
            for name in names:
                taught = {"upstream": wire, "model": f"{thinks}taught-{name}", "format": name}
                models[f"{thinks}taught-{name}-{wire}"] = taught
    return {"upstreams": {wire: {"url": url, "wire": wire} for wire in WIRES}, "models": models}
