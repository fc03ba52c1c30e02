"""A record of a trajectory as a JSON object and back, without loss. Knows no file.

What JSON does not have is kept all the same: a number that is not finite is a string such as `"NaN"` in a field that is
a number; a mapping that contains one is a string of Python's JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from agentkit.errors import StoreError
from agentkit.rollout.records.record import CallRecord, TokenRecord, TrajectoryRecord
from agentkit.tool.codec import UNREADABLE, from_json, to_json
from agentkit.tool.output import plain

VERSION: Final = 1
"""Increased when an older agentkit could not read a newer one's records."""

_STRICT: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_ASCII: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
_LENIENT: Final = json.JSONEncoder()


def record_to_json(record: TrajectoryRecord) -> dict[str, Any]:
    """Return a record as a JSON object. Values that JSON does not have become the text that a model would read."""
    tokens = record.tokens
    return {
        "v": VERSION,
        "id": record.id,
        "sample_id": record.sample_id,
        "repeat": record.repeat,
        "end": record.end,
        "error": record.error,
        "reward": _number(record.reward),
        "final_rewards": {name: _number(reward) for name, reward in record.final_rewards.items()},
        "assistant_turns": record.assistant_turns,
        "seconds": _number(record.seconds),
        "generating": _number(record.generating),
        "unscored": dict(record.unscored),
        "unreleased": dict(record.unreleased),
        "calls": [_call_to_json(call) for call in record.calls],
        "messages": [to_json(message) for message in record.messages],
        "tokens": None if tokens is None else _tokens_to_json(tokens),
        "extra": _object(record.extra),
    }


def record_from_json(body: Mapping[str, Any]) -> TrajectoryRecord:
    """A record from its JSON object.

    Raises:
        StoreError: this version of agentkit cannot read it.
    """
    try:
        if body["v"] > VERSION:
            raise ValueError(f"version {body['v']}, but this agentkit reads only up to {VERSION}")
        end: Any = _text(body["end"])
        return TrajectoryRecord(
            id=_text(body["id"]),
            sample_id=_text(body["sample_id"]),
            repeat=_count(body["repeat"]),
            messages=tuple(from_json(message) for message in body["messages"]),
            end=end,
            error=_text_or_none(body["error"]),
            calls=tuple(_call_from_json(call) for call in body["calls"]),
            final_rewards={name: float(reward) for name, reward in body["final_rewards"].items()},
            reward=float(body["reward"]),
            tokens=None if body["tokens"] is None else _tokens_from_json(body["tokens"]),
            assistant_turns=_count(body["assistant_turns"]),
            seconds=float(body["seconds"]),
            generating=float(body["generating"]),
            unscored=_reasons(body["unscored"]),
            unreleased=_reasons(body["unreleased"]),
            extra=_mapping(body["extra"]),
        )
    except KeyError as e:
        raise StoreError(f"not a record of a trajectory: it has no {e}") from e
    except (*UNREADABLE, AttributeError) as e:
        raise StoreError(f"not a record of a trajectory ({type(e).__name__}: {e})") from e


def _call_to_json(call: CallRecord) -> dict[str, Any]:
    return {
        "turn": call.turn,
        "index": call.index,
        "id": call.id,
        "name": call.name,
        "arguments": _object(call.arguments),
        "result": call.result,
        "error": call.error,
        "reward": None if call.reward is None else _number(call.reward),
        "metrics": _object(call.metrics),
        "queued": _number(call.queued),
        "ran": _number(call.ran),
        "span": None if call.span is None else list(call.span),
    }


def _call_from_json(body: Mapping[str, Any]) -> CallRecord:
    span = body["span"]
    return CallRecord(
        turn=_count(body["turn"]),
        index=_count(body["index"]),
        id=_text(body["id"]),
        name=_text(body["name"]),
        arguments=_mapping(body["arguments"]),
        result=_text(body["result"]),
        error=_text_or_none(body["error"]),
        reward=None if body["reward"] is None else float(body["reward"]),
        metrics=_mapping(body["metrics"]),
        queued=float(body["queued"]),
        ran=float(body["ran"]),
        span=None if span is None else (_count(span[0]), _count(span[1])),
    )


def _tokens_to_json(tokens: TokenRecord) -> dict[str, Any]:
    logprobs = tokens.response_logprobs
    return {
        "prompt_ids": list(tokens.prompt_ids),
        "response_ids": list(tokens.response_ids),
        "response_mask": list(tokens.response_mask),
        "response_logprobs": None if logprobs is None else [_number(p) for p in logprobs],
        "exact": tokens.exact,
    }


def _tokens_from_json(body: Mapping[str, Any]) -> TokenRecord:
    logprobs = body["response_logprobs"]
    return TokenRecord(
        tuple(body["prompt_ids"]),
        tuple(body["response_ids"]),
        tuple(body["response_mask"]),
        None if logprobs is None else tuple(map(float, logprobs)),
        body["exact"] is True,
    )


def _reasons(value: Mapping[str, Any]) -> dict[str, str]:
    return {_text(name): _text(why) for name, why in value.items()}


def _number(value: float) -> float | str:
    """A number; a string that `float` reads if JSON does not have it."""
    value = float(value)
    return value if math.isfinite(value) else {math.inf: "Infinity", -math.inf: "-Infinity"}.get(value, "NaN")


def _object(value: Mapping[str, Any]) -> dict[str, Any] | str:
    """A mapping as JSON reads it back; a string of JSON if it contains a number that is not finite."""
    try:
        text = _LENIENT.encode(dict(value))
    except (TypeError, ValueError, RecursionError):
        text = _LENIENT.encode(plain(value))
    if "NaN" not in text and "Infinity" not in text:
        found: dict[str, Any] = json.loads(text)
        return found
    try:
        return json.loads(_STRICT.encode(json.loads(text)))  # type: ignore[no-any-return]  # the words are in a string
    except ValueError:
        return text


def _mapping(value: Any) -> dict[str, Any]:
    found = json.loads(value) if isinstance(value, str) else value
    if not isinstance(found, dict):
        raise TypeError(f"expected an object, found {found!r:.60}")
    return found


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a string, found {value!r:.60}")
    return value


def _text_or_none(value: Any) -> str | None:
    return None if value is None else _text(value)


def _count(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"expected an integer, found {value!r:.60}")
    return value


def record_line(record: TrajectoryRecord) -> bytes:
    """A record as one line of JSON in UTF-8."""
    body = record_to_json(record)
    try:
        return _STRICT.encode(body).encode() + b"\n"
    except UnicodeEncodeError:  # half of a surrogate pair, which UTF-8 cannot contain and JSON can
        return _ASCII.encode(body).encode() + b"\n"
