"""A server of the Responses API that stores conversations, and refuses what OpenAI's refuses."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fake_upstream import FakeUpstream, Step, chunked, whole

Item = dict[str, Any]


def message(text: str) -> Item:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def call(id: str, name: str, **arguments: Any) -> Item:
    return {"type": "function_call", "call_id": id, "name": name, "arguments": json.dumps(arguments)}


class StatefulServer(FakeUpstream):
    """Answers by a function of the conversation as it knows it: what it has stored, and the items of the request.

    Attributes:
        known: that conversation, of each request that it accepted.
        stored: the conversations that it stored, by the ids of the responses with which they end.
        end: how its responses end.
        status: of the answer to a request that continues an unknown response; OpenAI's is 400.
    """

    def __init__(self, reply: Callable[[list[Item]], Item | Sequence[Item]]) -> None:
        super().__init__()
        self.reply = reply
        self.known: list[list[Item]] = []
        self.stored: dict[str, list[Item]] = {}
        self.status = 400
        self.end: dict[str, Any] = {"status": "completed"}
        self._count = 0

    def answer(self, headers: Mapping[str, str], body: bytes) -> Sequence[Step]:
        asked = json.loads(body)
        previous = asked.get("previous_response_id")
        if previous is not None and previous not in self.stored:
            said = f"Previous response with id '{previous}' not found."
            return refusal(said, "previous_response_not_found", self.status)
        items = [*self.stored.get(previous, ()), *asked["input"]]
        if said := wrong(items):
            return refusal(said, None)
        self.known.append(items)
        made = self.reply(items)
        output = [made] if isinstance(made, dict) else list(made)
        self._count += 1
        id = f"resp_{self._count}"
        if asked.get("store", True):
            self.stored[id] = [*items, *output]
        complete = [{"status": "completed", **item} for item in output]
        response: dict[str, Any] = {"id": id, **self.end, "output": complete}
        if not asked.get("stream"):
            return whole(response)
        done = [{"type": "response.output_item.done", "output_index": at, "item": item}
                for at, item in enumerate(complete)]  # fmt: skip
        events = [{"type": "response.created", "response": {"id": id, "status": "in_progress"}}, *done,
                  {"type": f"response.{self.end['status']}", "response": response}]  # fmt: skip
        return chunked(*(b"event: %s\ndata: %s\n\n" % (e["type"].encode(), json.dumps(e).encode()) for e in events))


def refusal(text: str, code: str | None, status: int = 400) -> Sequence[Step]:
    return whole({"error": {"message": text, "type": "invalid_request_error", "code": code}}, status)


def wrong(items: Sequence[Item]) -> str:
    """Why a conversation is refused: each call needs one output after it, and each output its call."""
    waiting: set[str] = set()
    for item in items:
        kind = item.get("type")
        if kind == "function_call":
            waiting.add(item["call_id"])
        elif kind == "function_call_output":
            if item["call_id"] not in waiting:
                return f"No tool call found for function call output with call_id {item['call_id']}."
            waiting.remove(item["call_id"])
    return f"No tool output found for function call {min(waiting)}." if waiting else ""


def plain(items: Sequence[Item]) -> list[tuple[Any, ...]]:
    """A conversation without what only its wire adds."""
    return [_plain(item) for item in items]


def _plain(item: Item) -> tuple[Any, ...]:
    match item.get("type"):
        case "function_call":
            return ("call", item["call_id"], item["name"], json.loads(item["arguments"]))
        case "function_call_output":
            return ("output", item["call_id"], item["output"])
    content = item["content"]
    return (item["role"], content if isinstance(content, str) else "".join(part["text"] for part in content))
