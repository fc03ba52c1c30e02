"""Texts that others wrote, each with the format and the tools it is for.

The peers' vectors, the vendors' templates, recorded outputs and streams: read from where the data lies, never copied.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from recordings import rows

from agentkit import formats
from agentkit.errors import FormatError
from agentkit.events import CallEnd, CallError, Event, InventedResult, Markup, SourceEvent, Text, Thinking, merge
from agentkit.formats import Format, Parser, ToolSpec
from agentkit.formats.format import Json, Name

OURS = {
    "qwen25": "hermes",
    "deepseekv3": "deepseek_v3",
    "deepseekv4": "deepseek_v4",
    "llama3": "llama3_json",
    "minimax-m3": "minimax_m3",
}
"""What the peers call a format, where it is no alias of ours."""

TEMPLATE_DRIVEN = ("hf", "beam")
"""Formats of the peers that are no syntax: the checkpoint's own `response_template` says what the text looks like."""

UNDECLARED = Format("undeclared", ("\x00undeclared\x00", Name(), "\n", Json()))
"""Reads nothing: every row in a format that we have not declared disagrees."""

Calls = list[tuple[str, dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Vector:
    """One input of a peer's own test, with the calls that it expects there.

    `own` tells whether the row holds tools; where it does not, the names that it expects are offered.
    """

    id: str
    format: Format
    tools: tuple[ToolSpec, ...]
    text: str
    expected: Calls
    thinking: bool
    own: bool


@dataclass(frozen=True, slots=True)
class Sample:
    """One text with the format it is read in."""

    id: str
    format: Format
    tools: tuple[ToolSpec, ...]
    text: str
    chunks: tuple[str, ...] = ()


def specs(tools: Sequence[Mapping[str, Any]] | None) -> tuple[ToolSpec, ...]:
    """Tools in the shape of OpenAI's API, nested or flat, as formats see them."""
    flat = [tool.get("function", tool) for tool in tools or ()]
    empty = {"type": "object", "properties": {}}
    return tuple(ToolSpec(t["name"], t.get("description") or "", t.get("parameters") or empty) for t in flat)


def declared(name: str) -> Format | None:
    """The format that a peer calls so; None where we have none."""
    try:
        return formats.get(OURS.get(name, name))
    except FormatError:
        return None


def read(sample: Vector | Sample, *, thinking: bool = False) -> Calls:
    """The calls that we find in a text."""
    events = formats.parse(sample.text, sample.format, sample.tools, thinking=thinking)
    return calls_of(events)


def calls_of(events: Sequence[Event]) -> Calls:
    return [(c.name, dict(c.arguments)) for c in formats.calls(events)]


def equal(got: Calls, wanted: Calls) -> bool:
    """Whether these are the same calls, the types of the values included: 1 is not True, and 1 is not "1"."""
    return len(got) == len(wanted) and all(
        a == b and identical(x, y) for (a, x), (b, y) in zip(got, wanted, strict=True)
    )


def identical(a: Any, b: Any) -> bool:
    """Whether two JSON values are the same: of the same types; the order of an object's keys says nothing."""
    match a, b:
        case dict(), dict():
            return a.keys() == b.keys() and all(identical(a[k], b[k]) for k in a)
        case list(), list():
            return len(a) == len(b) and all(map(identical, a, b))
    return type(a) is type(b) and bool(a == b)


def cut(sample: Sample | Vector, chunks: Sequence[str], formats_: Any = None) -> list[Event]:
    """The merged events of a text that comes in these chunks."""
    parser = Parser(sample.format if formats_ is None else formats_, sample.tools)
    events: list[SourceEvent] = []
    for chunk in chunks:
        events += parser.feed(chunk)
    return merge([*events, *parser.close()])


def source(events: Sequence[Event]) -> str:
    """What the events say the input was."""
    out = ""
    for event in events:
        match event:
            case Text(text) | Thinking(text) | Markup(text) | InventedResult(text):
                out += text
            case CallEnd(_, call) | CallError(_, _, _, call):
                out += call.raw
            case _:
                pass
    return out


# ---------------------------------------------------------------- the peers' vectors


def excluded(row: Mapping[str, Any]) -> str:
    """Why a row shows nothing about reading calls from a complete text; empty where it does."""
    note, test = row.get("note") or "", row["source_test"]
    if row.get("confidence", "asserted") != "asserted":
        return "its test asserts no calls"
    if "tool_choice=none" in note:
        return "calls suppressed by tool_choice=none, which is no matter of the text"
    if "stream cut" in note or "every_cut_point" in test or any("arguments_raw" in c for c in row["expected_calls"]):
        return "a truncation prefix: the expected arguments are no complete JSON"
    if row["format"] in TEMPLATE_DRIVEN:
        return "read with the checkpoint's response_template, which the row does not hold"
    return ""


@cache
def vectors(file: str) -> tuple[tuple[Vector, ...], Mapping[str, int]]:
    """The vectors of one file of the peers that count, and how many do not, by the rule that excludes them."""
    found = rows(file)
    names = [f"{row['format']} {row['source_test'].rpartition('.py::')[2].rpartition('::')[2]}" for row in found]
    total, seen, out = Counter(names), Counter[str](), Counter[str]()
    kept = []
    for name, row in zip(names, found, strict=True):
        seen[name] += 1
        if reason := excluded(row):
            out[reason] += 1
        else:
            kept.append(_vector(name if total[name] == 1 else f"{name} #{seen[name]}", row))
    return tuple(kept), out


def _vector(id: str, row: Mapping[str, Any]) -> Vector:
    format = declared(row["format"]) or UNDECLARED
    text = row.get("text") or "".join(row.get("chunks", ()))
    expected = [(c["name"], _arguments(c)) for c in row["expected_calls"]]
    # without tools the names are unknown: offer those that are expected, so that common openers count
    tools = specs(row["tools"]) or tuple(ToolSpec(name, "", {"type": "object"}) for name, _ in expected)
    return Vector(id, format, tools, text, expected, begun(text, format), bool(row["tools"]))


def _arguments(call: Mapping[str, Any]) -> Any:
    given = call.get("arguments", call.get("arguments_text", ""))
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except ValueError:
        return {"": given}


def begun(text: str, format: Format) -> bool:
    """Whether a text starts inside thinking: it is closed there before it is opened."""
    for start, end in format.thinking:
        at = text.find(end)
        if at >= 0 and end not in format.call and start not in text[:at]:
            return True
    return False


# ---------------------------------------------------------------- templates, outputs, streams

CONVERSATION = "_conversation"

TEMPLATES: Mapping[str, str] = {
    "Apertus-8B-Instruct": "apertus",
    "Apriel-1.6-15b-Thinker-fixed": "apriel",
    "Bielik-11B-v3.0-Instruct": "hermes",
    "ByteDance-Seed-OSS": "seed_oss",
    "GLM-4.6": "glm45",
    "GLM-4.7-Flash": "glm47",
    "GigaChat3-10B-A1.8B": "gigachat3",
    "Kimi-K2-Instruct": "kimi_k2",
    "Kimi-K2-Thinking": "kimi_k2",
    "MiniMax-M2": "minimax_m2",
    "NVIDIA-Nemotron-Nano-v2": "nemotron_nano",
    "Qwen-Qwen3-0.6B": "hermes",
    "diffusion_gemma": "gemma4",
    "glm4moe": "glm45",
    "google-gemma-4-31B-it": "gemma4",
    "google-gemma-4-31B-it-interleaved": "gemma4",
    "gptoss": "harmony",
    "lfm2_2_5": "lfm2",
    "meetkai-functionary-medium-v3.2": "functionary",
    "moonshotai-Kimi-K2": "kimi_k2",
    "qwen2_5": "hermes",
    "qwen3_5_nothink": "qwen3_coder",
    "qwen3_5_think": "qwen3_coder",
    "qwen3_6": "qwen3_coder",
    "qwen3_instruct_2507": "hermes",
    "qwen3_vl": "hermes",
    "tool_chat_template_apertus": "apertus",
    "tool_chat_template_deepseekr1": "deepseek_v3",
    "tool_chat_template_functiongemma": "functiongemma",
    "tool_chat_template_gemma3_pythonic": "pythonic",
    "tool_chat_template_granite_20b_fc": "granite-20b-fc",
    "tool_chat_template_llama3.2_json": "llama3_json",
    "tool_chat_template_llama4_json": "llama4_json",
    "tool_chat_template_llama4_pythonic": "llama4_pythonic",
    "tool_chat_template_mistral_parallel": "mistral",
    "tool_chat_template_toolace": "pythonic",
    "tool_chat_template_xlam_llama": "xlam",
    "tool_chat_template_xlam_qwen": "xlam",
    "unsloth-mistral-Devstral-Small-2507": "devstral",
}
"""The format that each template's model writes, for every template that renders calls at all."""


@dataclass(frozen=True, slots=True)
class Emission:
    """What a model must emit, by its own template, for the calls of the conversation."""

    template: str
    format: str
    tools: tuple[ToolSpec, ...]
    text: str
    expected: Calls

    def __str__(self) -> str:
        return self.template


@cache
def emissions() -> tuple[Emission, ...]:
    """One for each template that renders calls."""
    conversation, *templates = rows("rendered_templates.jsonl") or [{}]
    said = [m.get("tool_calls", ()) for m in conversation.get("messages", ())]
    expected = [(c["function"]["name"], c["function"]["arguments"]) for calls in said for c in calls]
    tools = specs(conversation.get("tools"))
    found = []
    for row in templates:
        if not row.get("tool_calls_rendered"):
            continue
        text = from_whole_marker(row["prompt_with_generation"], row["emission"], row.get("prefix_tail_not_shared", ""))
        name = row["template"].removesuffix(".jinja")
        calls = expected[-row["calls_in_conversation"] :]
        found.append(Emission(name, TEMPLATES.get(name, ""), tools, text, calls))
    return tuple(found)


def from_whole_marker(prompt: str, emission: str, unshared: str) -> str:
    """The emission from where the model begins.

    The data cuts it where the prompt for generation and the rendered history part, which may be inside a marker.
    """
    shared = prompt.removesuffix(unshared)
    start = shared.rfind("<") if unshared and shared.endswith(("<", "<|")) else len(shared)
    return shared[start:] + emission


WRITTEN_IN: Mapping[str, str] = {
    "harmony": "harmony",
    "hermes": "hermes",
    "hermes + <think>": "hermes",
    "nemotron <TOOLCALL>[...]": "nemotron_nano",
    "granite-20b <function_call>": "granite-20b-fc",
    "hermes-pythonic-quotes": "hermes",
    "json list": "xlam",
    "json/python list": "xlam",
    "xlam-json": "xlam",
    "openhands xml <function=><parameter=>": "openhands",
    "swe-agent xml <function=><parameter=>": "openhands",
    "pythonic list": "pythonic",
    "pythonic list with prose": "pythonic",
    "pythonic list (fenced/prose)": "pythonic",
    "pythonic list of strings": "pythonic",
    "pythonic bare": "pythonic",
    "pythonic fenced + babble": "pythonic",
    "raven python statements": "pythonic",
    "qwen3-coder xml (well formed, prose before, leaked as content)": "qwen3_coder",
    "qwen3-coder xml (&& inside)": "qwen3_coder",
    "qwen3-coder xml (opening <tool_call> missing)": "qwen3_coder",
    "cline <use_mcp_tool> (thinking before)": "cline",
    "glm4 name-newline-json": "glm4",
    "codeact <execute>": "codeact",
}
"""The format of ours in which a recorded output or stream is written; those not listed are in none of ours."""


def recorded() -> Iterator[Sample]:
    """Raw outputs and streams, each in its format; outputs that are in none of ours in the first of the catalogue."""
    for row in [*rows("raw_outputs.jsonl"), *rows("raw_streams.jsonl")]:
        format = declared(WRITTEN_IN.get(row["format"], row["format"])) or formats.CATALOG[0]
        chunks = tuple(row.get("chunks", ()))
        yield Sample(row["id"], format, specs(row.get("tools")), row.get("text") or "".join(chunks), chunks)


@cache
def samples() -> tuple[Sample, ...]:
    """Every text at hand: recorded outputs and streams, all vectors (prefixes too), template emissions."""
    found = list(recorded())
    for file in ("vectors_vllm.jsonl", "vectors_sglang.jsonl"):
        for n, row in enumerate(rows(file)):
            text = row.get("text") or "".join(row.get("chunks", ()))
            format = declared(row["format"]) or formats.CATALOG[0]
            found.append(Sample(f"{file}:{n}", format, specs(row["tools"]), text, tuple(row.get("chunks", ()))))
    found += [Sample(e.template, declared(e.format) or formats.CATALOG[0], e.tools, e.text) for e in emissions()]
    return tuple(found)


# ---------------------------------------------------------------- answers to the leaderboard's cases

ANSWERED_IN: Mapping[str, str] = {
    "granite-20b": "granite-20b-fc",
    "granite-20b <function_call>": "granite-20b-fc",
    "xlam-json": "xlam1",
    "glm4 name-newline-json": "glm4",
    "json/pythonic list": "xlam",
}
"""The format of ours in which a model answered, where it has another name; `hermes` where it is in none of ours."""


def answers() -> Iterator[Sample]:
    """What models answered to the leaderboard's cases, and damaged outputs of them, each in its model's format."""
    cases = {case["id"]: case for case in rows("bfcl_cases.jsonl")}
    for row in rows("bfcl_recorded.jsonl"):
        tools = cases[row["bfcl_id"]]["tools"]
        yield _answer(f"{row['model']} {row['bfcl_id']}", row, tools, dots=not row["dots_as_underscores"])
    for row in rows("raw_malformed.jsonl"):
        yield _answer(f"malformed {row['bfcl_id']}", row, row["tools"], dots=False)


def _answer(id: str, row: Mapping[str, Any], tools: Sequence[Mapping[str, Any]], *, dots: bool) -> Sample:
    format = declared(ANSWERED_IN.get(row["format"], row["format"])) or formats.get("hermes")
    offered = specs([{**t, "name": t["name"] if dots else t["name"].replace(".", "_")} for t in tools])
    return Sample(id, format, offered, row["text"])
