"""A server that answers with texts sampled at random under the grammar that it was sent, as vLLM, SGLang or llama.cpp.

Knows what each of them takes for a grammar on chat completions; what it does not know it ignores, in silence, as they
do. The engine is the server's own (xgrammar), or stands in for it (llguidance for llama.cpp).
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from typing import Any, Final

from engines import Guidance, Mask, XGrammar, generate
from grammar_texts import ends_of, pieces_of
from replay_server import Asked, Recorded, ReplayServer

from agentkit.formats import Format

FREE: Final = "Hello! How can I help you?"
"""What a model says that nothing holds to anything."""


class Refused(Exception):
    """The server does not take this request: its status, and its error."""

    def __init__(self, **error: Any) -> None:
        self.error = error


class SamplingServer(ReplayServer):
    """Answers each request with a random text of its grammar.

    Args:
        kind: `vllm`, `sglang` or `llamacpp`; any other name is a server that knows no grammar.
        format: what the texts are made of, so that they often look like calls, and like calls that are none.
        seed: of the random texts.
    """

    def __init__(self, kind: str, format: Format, seed: str = "") -> None:
        super().__init__([])
        self.texts: list[str] = []
        """What was answered."""
        self._take = _TAKES.get(kind, lambda body: None)
        self._pieces, self._ends = pieces_of(format), ends_of(format)
        self._random = random.Random(f"{kind} {format.name} {seed}")
        self._compiled: dict[str, Mask] = {}

    def _next(self, asked: Asked) -> Recorded:
        self.requests.append(asked)
        try:
            held = self._take(asked.body)
            text = FREE if held is None else self._sampled(*held)
        except Refused as refused:
            return Recorded(json.dumps({"error": refused.error}).encode(), refused.error["code"])
        self.texts.append(text)
        if not asked.body.get("stream"):
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            return Recorded(json.dumps({"choices": [choice]}).encode())
        return Recorded("".join(self._streamed(text)).encode())

    def _sampled(self, engine: Any, grammar: Any) -> str:
        key = json.dumps(grammar)
        if key not in self._compiled:
            self._compiled[key] = engine(grammar)
        return generate(self._compiled[key], self._pieces, self._ends, self._random)

    def _streamed(self, text: str) -> Iterator[str]:
        """The text in pieces of a few characters."""
        at = 0
        while at < len(text):
            size = self._random.randint(1, 12)
            yield _chunk({"content": text[at : at + size]}, None)
            at += size
        yield _chunk({}, "stop")
        yield "data: [DONE]\n\n"


def _chunk(delta: Mapping[str, str], finish: str | None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    event = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(event)}\n\n"


def _tag(text: Any) -> Mask:
    try:
        return XGrammar(text, "structural_tag")
    except RuntimeError as e:
        raise Refused(code=400, message=f"Failed to compile structural_tag grammar: {e}") from e


def _gbnf(text: str) -> Mask:
    try:
        return Guidance(text)
    except (AssertionError, ValueError) as e:
        raise Refused(code=400, type="invalid_request_error", message="Failed to parse grammar") from e


def _vllm(body: Mapping[str, Any]) -> tuple[Any, Any] | None:
    wanted = body.get("response_format")
    if wanted is None:
        return None
    if wanted.get("type") != "structural_tag" or "format" not in wanted:
        message = "Invalid response_format structural_tag specification."
        raise Refused(code=400, type="BadRequestError", param="response_format", message=message)
    return _tag, wanted


def _llamacpp(body: Mapping[str, Any]) -> tuple[Any, Any] | None:
    if "grammar" not in body:
        return None
    if body.get("tools"):
        raise Refused(
            code=400, type="invalid_request_error", message="Cannot use custom grammar constraints with tools."
        )
    return _gbnf, body["grammar"]


_TAKES: Final = {"vllm": _vllm, "sglang": _vllm, "llamacpp": _llamacpp}
