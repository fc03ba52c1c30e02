"""Recorded replies of Hermes models, read inside vLLM and SGLang by their parser `hermes` and by `agentkit_hermes`.

Each reply goes through the server's own classes, whole and streamed in random pieces. A reply is right if its calls are
an answer that the case allows. Without the servers, which `make peers` installs, it only says so. Reads the recordings
in `../shared/data` (or in `AGENTKIT_SHARED_DATA`).

    .venv-peers/servers/bin/python benchmarks/in_servers.py [number of replies]
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import logging
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from recorded import rows

CUTS = 1  # the seed of the pieces: the same for all parsers
Calls = list[tuple[str, Any]]  # arguments that are no JSON stay a string
Reading = tuple[str, Calls]  # the visible text, and the calls


def pieces(text: str, seed: int) -> Iterator[str]:
    """A text in random pieces of up to 12 characters."""
    rng, at = random.Random(seed), 0
    while at < len(text):
        start, at = at, at + rng.randint(1, 12)
        yield text[start:at]


def arguments(text: str) -> Any:
    """The arguments of a call; the text itself if it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


class Tokenizer:
    """Spells the tokens that a tool parser asks for."""

    def get_vocab(self) -> dict[str, int]:
        """The tokens."""
        return {"<tool_call>": 1, "</tool_call>": 2}


def in_vllm(name: str, text: str, tools: list[dict[str, Any]], seed: int) -> tuple[Reading, Reading]:
    """A reply read by a tool parser of vLLM, whole and streamed."""
    protocol = importlib.import_module("vllm.entrypoints.openai.chat_completion.protocol")
    manager = importlib.import_module("vllm.parser.parser_manager").ParserManager
    made = manager.get_parser(name, enable_auto_tools=True, model_name="recorded")
    request = protocol.ChatCompletionRequest(messages=[{"role": "user", "content": "?"}], tools=tools, stream=True)
    _, content, found = made(Tokenizer(), request.tools).parse(text, request, enable_auto_tools=True)
    whole = content or "", [(call.name, arguments(call.arguments)) for call in found or ()]
    reading, chunks = made(Tokenizer(), request.tools), [*pieces(text, seed)]
    shown, calls = "", dict[int, list[str]]()
    for n, chunk in enumerate(chunks, 1):
        delta = reading.parse_delta(chunk, [9], request, prompt_token_ids=[0], finished=n == len(chunks))
        shown += (delta and delta.content) or ""
        for call in delta.tool_calls if delta else ():
            joined = calls.setdefault(call.index, ["", ""])
            joined[0] += call.function.name or ""
            joined[1] += call.function.arguments or ""
    return whole, (shown, [(name, arguments(text)) for name, text in calls.values()])


def in_sglang(name: str, text: str, tools: list[dict[str, Any]], seed: int) -> tuple[Reading, Reading]:
    """A reply read by a tool parser of SGLang, whole and streamed."""
    made = importlib.import_module("sglang.srt.function_call.function_call_parser").FunctionCallParser
    tool = importlib.import_module("sglang.srt.entrypoints.openai.protocol").Tool
    offered = [tool(**one) for one in tools]
    reading = made(offered, name, tokenizer=Tokenizer())
    content, found = reading.parse_non_stream(text) if reading.has_tool_call(text) else (text, [])
    whole = content, [(call.name, arguments(call.parameters)) for call in found]
    reading, shown, calls = made(offered, name, tokenizer=Tokenizer()), "", dict[int, list[str]]()
    for content, found in [*map(reading.parse_stream_chunk, pieces(text, seed)), reading.parse_stream_end()]:
        shown += content or ""
        for call in found:
            joined = calls.setdefault(call.tool_index, ["", ""])
            joined[0] += call.name or ""
            joined[1] += call.parameters or ""
    return whole, (shown, [(name, arguments(text)) for name, text in calls.values()])


def right(calls: Calls, allowed: list[dict[str, dict[str, list[Any]]]]) -> bool:
    """Whether these are the calls of a case, in any order, each argument with one of the values that it may have."""
    left = [(name.replace(".", "_"), values) for answer in allowed for name, values in answer.items()]
    for name, given in calls:
        fits = [one for one in left if one[0] == name and isinstance(given, dict) and _allowed(given, one[1])]
        if not fits:
            return False
        left.remove(fits[0])
    return not left


def _allowed(given: dict[str, Any], values: dict[str, list[Any]]) -> bool:
    omitted = all(key in given or "" in may for key, may in values.items())
    return omitted and all(value in values.get(key, ()) for key, value in given.items())


def offered(case: dict[str, Any]) -> list[dict[str, Any]]:
    """A case's tools, under the names that the model saw."""
    keys = ("description", "parameters")
    named = [{"name": t["name"].replace(".", "_"), **{key: t[key] for key in keys if key in t}} for t in case["tools"]]
    return [{"type": "function", "function": tool} for tool in named]


def measure(server: str, read: Callable[..., tuple[Reading, Reading]], replies: list[dict[str, Any]]) -> None:
    """Print a server's two rows."""
    cases = {case["id"]: case for case in rows("bfcl_cases.jsonl")}
    for name in ("hermes", "agentkit_hermes"):
        n = Counter[str]()
        for seed, row in enumerate(replies, CUTS):
            case = cases[row["bfcl_id"]]
            (_, whole), (_, streamed) = read(name, row["text"], offered(case), seed)
            n["whole"] += right(whole, case["possible_answer"])
            n["streamed"] += right(streamed, case["possible_answer"])
            n["differ"] += whole != streamed
        of = len(replies)
        print(f"{server:8}{name:18}{n['whole']:6}/{of}{n['streamed']:8}/{of}{n['differ']:8}/{of}", flush=True)


def main(most: int) -> None:
    """Read the replies in each server that is installed."""
    absent = [server for server in ("vllm", "sglang") if importlib.util.find_spec(server) is None]
    if absent:
        print(f"this needs {' and '.join(absent)}: make peers-install-servers")
        return
    logging.disable(logging.CRITICAL)
    importlib.import_module("vllm.plugins").load_general_plugins()
    importlib.import_module("sglang.srt.plugins").load_plugins()
    answered = {case["id"] for case in rows("bfcl_cases.jsonl") if case.get("possible_answer")}
    recorded = [row for row in rows("bfcl_recorded.jsonl") if row["format"] == "hermes" and row["bfcl_id"] in answered]
    replies = random.Random(CUTS).sample(recorded, min(most, len(recorded)))
    print(f"{'server':8}{'tool parser':18}{'right whole':>12}{'streamed':>12}{'differ':>12}")
    measure("vLLM", in_vllm, replies)
    measure("SGLang", in_sglang, replies)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
