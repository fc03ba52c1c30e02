"""Hugging Face's `response_template`: a checkpoint's own read as a Format, and ours written as one.

Where transformers (>= 5.15) is installed, its own parser is asked as well. It pulls in some 100 MB, hence it is no
dependency of the tests: `pip install transformers`.
"""

from __future__ import annotations

import importlib.util
import json
from typing import Any

import pytest
from format_tools import ADD, CREATE_FILE, NOTE, PING, TOOLS, WEB_SEARCH
from hypothesis import example, given
from hypothesis import strategies as st

from agentkit.errors import FormatError
from agentkit.events import Markup, Text, Thinking
from agentkit.formats import CATALOG, Format, calls, get, parse, render_calls
from agentkit.interop.response_template import from_response_template, to_response_template
from agentkit.messages import ToolCall

Template = dict[str, Any]
ANCHOR = "<|im_start|>assistant\n"
NAMED = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
WHOLE = {"type": "function", "function": "{content}"}
TEXT = {"content": "text"}


def template(calls: Template, anchor: str | list[str] = ANCHOR, **fields: Template) -> Template:
    return {"defaults": {"role": "assistant"}, "start_anchor": anchor, "fields": {"tool_calls": calls} | fields}


def field(**keys: Any) -> Template:
    return {"repeats": True, "content": "json", "transform": NAMED} | keys


def parameters(pattern: str, **more: Any) -> Template:
    return {"content": "xml-inline", "content_args": {"tag_pattern": pattern} | more}


QWEN3 = template(
    field(open_pattern=r"\s*<tool_call>", close="</tool_call>", transform=WHOLE),
    reasoning_content={"open": "<think>", "close": "</think>"} | TEXT,
    content={"close_pattern": r"\s*(?:<\|im_end\|>|<\|endoftext\|>)"} | TEXT,
)
QWEN35 = template(
    field(
        open_pattern=r"\s*<tool_call>\s*<function=(?P<name>[^>\n]+)>",
        close_pattern=r"</function>\s*</tool_call>",
        **parameters(r"<parameter=(?P<key>[^>\n]+)>\s*(?P<value>.*?)\s*</parameter>"),
    ),
    reasoning_content={"open": "<think>", "close": "</think>"} | TEXT,
)
UNCLOSED = template(
    field(
        open_pattern=r"<tool_call>\s*<function=(?P<name>\w+)>",
        close="</tool_call>",
        **parameters(
            r"<parameter=(?P<key>\w+)>\s*(?P<value>.*?)\s*</parameter>",
            value_parser={"name": "json", "args": {"allow_non_json": True}},
        ),
    ),
)
GLM = template(
    field(
        open_pattern=r"<tool_call>(?P<name>\S+)\n?",
        close_pattern=r"</tool_call>\s*",
        **parameters(r"<arg_key>(?P<key>[^<]+)</arg_key>\s*\n<arg_value>(?P<value>.*?)</arg_value>"),
    ),
    "<|assistant|>",
    content={"close_pattern": r"<\|user\|>\s*|$"} | TEXT,
)
GEMMA4 = template(
    field(
        open_pattern=r"<\|tool_call>call:(?P<name>\w+)",
        close="<tool_call|>",
        content_args={"unquoted_keys": True, "string_delims": [['<|"|>', '<|"|>']]},
    ),
    ["<|turn>model\n", "<tool_response|>"],
    thinking={"open": "<|channel>thought\n", "close": "<channel|>"} | TEXT,
    content={"close": ["<turn|>", "<|tool_response>", "<eos>"]} | TEXT,
)
COHERE = template(
    {
        "open": "<|START_ACTION|>", "close": "<|END_ACTION|>", "content": "json", "transform_each": True,
        "transform": {"type": "function", "function": {"name": "{tool_name}", "arguments": "{parameters}"}},
    },
    "<|CHATBOT_TOKEN|>",
    thinking={"open": "<|START_THINKING|>", "close": "<|END_THINKING|>"} | TEXT,
    content={"open": "<|START_RESPONSE|>", "close": "<|END_RESPONSE|>"} | TEXT,
)  # fmt: skip
ERNIE = template(
    field(open="<tool_call>", close="</tool_call>", transform=WHOLE),
    "Assistant:",
    thinking={"open_pattern": r"(?:^|<think>\s*)", "close": "</think>"} | TEXT,
    content={"open": "<response>\n", "close_pattern": r"\n?</response>"} | TEXT,
)
GPT_OSS = template(
    field(
        open_pattern=r"<\|channel\|>commentary to=functions\.(?P<name>\w+).*?<\|message\|>",
        close="<|call|>",
    ),
    "<|start|>assistant",
    thinking={"open": "<|channel|>analysis<|message|>", "close": "<|end|>"} | TEXT,
    content={"open": "<|channel|>final<|message|>", "close": "<|end|>"} | TEXT,
)
RECIPIENT_FIRST = template(
    field(
        open_pattern=r"to=functions\.(?P<name>\S+?)<\|channel\|>commentary\s+json<\|message\|>",
        close_pattern=r"<\|call\|>\s*",
    ),
    "<|start|>assistant",
    thinking={"open": "<|channel|>analysis<|message|>", "close_pattern": r"<\|end\|>\s*"} | TEXT,
)
INKLING = template(
    field(
        open_pattern=r"(?:<\|message_model\|>)?[^<]*<\|content_invoke_tool_json\|>",
        close="<|end_message|>",
        transform={"type": "function", "function": {"name": "{content.name}", "arguments": "{content.args}"}},
    ),
    "<|message_model|>",
    thinking={"open_pattern": r"(?:<\|message_model\|>)?[^<]*<\|content_thinking\|>", "close": "<|end_message|>"}
    | TEXT,
)
LLAMA = template(
    field(
        open_pattern=r'\{"name":\s*"(?P<name>[^"]+)",\s*"parameters":\s*',
        close_pattern=r"\}<\|eot_id\|>\s*",
    ),
    "<|start_header_id|>assistant<|end_header_id|>\n\n",
    content={"close_pattern": r"<\|eot_id\|>\s*"} | TEXT,
)
PREFILLED = template(
    field(open="<tool_call>", close="</tool_call>", transform=WHOLE),
    reasoning_content={"open_pattern": r"(?=[\s\S]*?</think>)", "close_pattern": r"</think>\s*"} | TEXT,
) | {"start_anchor_pattern": r"<\|im_start\|>assistant\n<think>(?:\n|</think>)?"}
del PREFILLED["start_anchor"]

FILE = {"file_path": "a.py", "file_contents": "def f(x):\n    return x < 3 and '&'"}
SEARCH = {"query": "007", "summary": True, "num_results": 3}
EMISSIONS: list[tuple[str, Template, str, list[tuple[str, dict[str, Any]]]]] = [
    (
        "qwen3, two calls behind reasoning and text", QWEN3,
        ('<think>\nhm <tool_call>\n</think>\n\nI look.\n<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n'
        '</tool_call>\n<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call><|im_end|>'),
        [("add", {"a": 1, "b": 2}), ("ping", {})],
    ),
    (
        "qwen3.5, code in a value", QWEN35,
        ("<think>\nok\n</think>\n\n<tool_call>\n<function=create_file>\n<parameter=file_path>\na.py\n</parameter>\n"
        f"<parameter=file_contents>\n{FILE['file_contents']}\n</parameter>\n</function>\n</tool_call>"),
        [("create_file", FILE)],
    ),
    (
        "a tag that opens and is not said to close", UNCLOSED,
        ("<tool_call>\n<function=web_search>\n<parameter=query>\nfree text\n</parameter>\n<parameter=summary>\ntrue\n"
        "</parameter>\n<parameter=num_results>\n3\n</parameter>\n</function>\n</tool_call>"),
        [("web_search", {"query": "free text", "summary": True, "num_results": 3})],
    ),
    (
        "glm", GLM,
        ("<tool_call>web_search\n<arg_key>query</arg_key>\n<arg_value>007</arg_value>\n<arg_key>summary</arg_key>\n"
        "<arg_value>true</arg_value>\n<arg_key>num_results</arg_key>\n<arg_value>3</arg_value>\n</tool_call>"),
        [("web_search", SEARCH)],
    ),
    (
        "gemma4", GEMMA4,
        ('<|channel>thought\nhm<channel|><|tool_call>call:web_search{num_results:3,query:<|"|>a "b" {c}'
        '<|"|>}<tool_call|><|tool_call>call:ping{}<tool_call|><turn|>'),
        [("web_search", {"num_results": 3, "query": 'a "b" {c}'}), ("ping", {})],
    ),
    (
        "cohere, an array", COHERE,
        ('<|START_THINKING|>hm<|END_THINKING|><|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "add", '
        '"parameters": {"a": 1, "b": 2}},\n    {"tool_call_id": "1", "tool_name": "ping", "parameters": {}}\n]'
        "<|END_ACTION|>"),
        [("add", {"a": 1, "b": 2}), ("ping", {})],
    ),
    (
        "ernie", ERNIE,
        '<think>hm</think>\n\n<tool_call>\n{"name": "note", "arguments": {"text": "Paris"}}\n</tool_call>\n</s>',
        [("note", {"text": "Paris"})],
    ),
    (
        "gpt-oss, channel first", GPT_OSS,
        ("<|channel|>analysis<|message|>to=functions.add<|end|><|start|>assistant<|channel|>commentary "
        'to=functions.add <|constrain|>json<|message|>{"a": 1, "b": 2}<|call|>'),
        [("add", {"a": 1, "b": 2})],
    ),
    (
        "gpt-oss, recipient first", RECIPIENT_FIRST,
        ("<|channel|>analysis<|message|>hm<|end|><|start|>assistant to=functions.add<|channel|>commentary "
        'json<|message|>{"a": 1, "b": 2}<|call|>'),
        [("add", {"a": 1, "b": 2})],
    ),
    (
        "inkling", INKLING,
        ("<|content_thinking|>hm<|end_message|><|message_model|>model<|content_invoke_tool_json|>"
        '{"name": "add", "args": {"a": 1, "b": 2}}<|end_message|>'),
        [("add", {"a": 1, "b": 2})],
    ),
    (
        "llama, an envelope as a pattern", LLAMA,
        '{"name": "note", "parameters": {"text": "a {b} <c>"}}<|eot_id|>',
        [("note", {"text": "a {b} <c>"})],
    ),
    (
        "reasoning that the prompt opened", PREFILLED,
        'no\n</think>\n\n<tool_call>{"name": "ping", "arguments": {}}</tool_call>',
        [("ping", {})],
    ),
]  # fmt: skip
needs_transformers = pytest.mark.skipif(
    importlib.util.find_spec("transformers") is None, reason="transformers is not installed"
)
every_emission = pytest.mark.parametrize(
    ("source", "text", "wanted"), [row[1:] for row in EMISSIONS], ids=[row[0] for row in EMISSIONS]
)


def read(format: Format, text: str, *, thinking: bool = False) -> list[tuple[str, dict[str, Any]]]:
    return [(c.name, dict(c.arguments)) for c in calls(parse(text, format, TOOLS, thinking=thinking))]


def theirs(source: Template, text: str) -> list[tuple[str, dict[str, Any]]]:
    """What transformers' own parser reads."""
    from transformers.utils.chat_parsing import parse_response  # type: ignore[import-not-found,unused-ignore]

    tools = [{"type": "function", "function": {"name": t.name, "parameters": dict(t.parameters)}} for t in TOOLS]
    message = parse_response(text, source, prefix="", tools=tools)
    return [(c["function"]["name"], c["function"]["arguments"]) for c in message.get("tool_calls", [])]


# ---------------------------------------------------------------- a template read as a Format


@every_emission
def test_an_imported_template_reads_the_calls(source: Template, text: str, wanted: list[Any]) -> None:
    assert read(from_response_template(source), text, thinking=source is PREFILLED) == wanted


@needs_transformers
@every_emission
def test_transformers_reads_the_same_calls(source: Template, text: str, wanted: list[Any]) -> None:
    assert theirs(source, text) == wanted


def test_an_imported_format_tells_reasoning_answers_and_control_tokens() -> None:
    text = "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Hi <|START_ACTION|><|END_RESPONSE|>"
    assert parse(text, from_response_template(COHERE)) == [
        Markup("<|START_THINKING|>"),
        Thinking("hm"),
        Markup("<|END_THINKING|><|START_RESPONSE|>"),
        Text("Hi <|START_ACTION|>"),
        Markup("<|END_RESPONSE|>"),
    ]


def test_a_template_comes_as_an_object_as_json_or_inside_a_tokenizer_config() -> None:
    for given_as in (QWEN3, json.dumps(QWEN3), json.dumps({"eos_token": "<|im_end|>", "response_template": QWEN3})):
        assert from_response_template(given_as, name="mine").name == "mine"


PYTHON_VALUES = {"name": "json", "args": {"string_delims": [["'", "'"]], "allow_non_json": True}}
REFUSED = [
    (template(field(open_pattern=r"\[(?P<name>\w+)\(", close=")", **parameters(r"(?P<key>\w+)=(?P<value>[^,)]*)"))),
     "not a key and a value between literals"),
    (template(field(open_pattern="<c (?P<name>.*?)>", close="</c>",
                    **parameters("<p (?P<key>.*?)>(?P<value>.*?)</p>", value_parser=PYTHON_VALUES))),
     "special strings"),
    (template(field(open_pattern="<c (?P<name>.*?)>", close="</c>",
                    **parameters("<p (?P<key>.*?)>(?P<value>.*?)</p>", merge_duplicates=True))), "becomes a list"),
    (template(field(open_pattern="<c (?P<name>.*?)>", close=["</c>", "</d>"],
                    **parameters("<p (?P<key>.*?)>(?P<value>.*?)</p>"))), "exactly one literal, not 2"),
    (template(field(open_pattern="<c (?P<name>.*?)>", close="</c>",
                    **parameters(r"<p (?P<key>.*?)>(?P<value>.*?)\n?</p>"))), "the newline after a value"),
    (template(field(open_pattern=r"(?P<name>\w+)\(", close=")")), "a call does not open with a literal"),
    (template(field(open="<c>", close="</c>", content="kv-lines", transform=WHOLE)), "the content 'kv-lines'"),
    (template({"open": "<c>", "close": "</c>", "content": "json"}), "no transform that says"),
    (template(field(open_pattern="(?:<c>)+(?P<name>x)", close="</c>")), "repeated or optional part"),
    (template(field(open="<c>", close="</c>", transform=WHOLE), mood={"open": "<m>", "close": "</m>"}), "mood"),
    ({"start_anchor": "x", "fields": {"content": TEXT}}, "declares no calls"),
    ({"version": 2} | QWEN3, "version 2"),
    ({"type": "object", "x-regex": "<think>(.*)"}, "the older kind"),
    ({}, "expected an object with 'fields'"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "reason"), REFUSED, ids=[reason for _, reason in REFUSED])
def test_what_no_part_can_say_is_refused_by_name(source: Template, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        from_response_template(source)


# ---------------------------------------------------------------- a Format written as a template

CANNOT = {
    "xml": "the tool's own", "cline": "the tool's own", "legacy": "the tool's own", "dr_tulu": "first required",
    "minimax_m3": "flat", "apertus": "a JSON key", "xlam1": "a list inside a JSON object", "glm4": "marks the start",
    **dict.fromkeys(("pythonic", "llama4_pythonic", "olmo3", "lfm2", "tool_code", "python"), "written as Python"),
}  # fmt: skip
EXPORTED = [format for format in CATALOG if format.name not in CANNOT]
every_exported = pytest.mark.parametrize("format", EXPORTED, ids=lambda f: f.name)


def test_hermes_as_a_template() -> None:
    exported = to_response_template("hermes", ANCHOR)
    assert exported["start_anchor"] == ANCHOR
    assert exported["fields"]["tool_calls"] == {
        "open_pattern": r"\s*<tool_call>\s*",
        "close_pattern": r"\s*</tool_call>\s*",
        "repeats": True,
        "content": "json",
        "transform": {
            "type": "function",
            "function": {"name": "{content.name}", "arguments": "{content.arguments}"},
        },
    }


@pytest.mark.parametrize("name", CANNOT)
def test_what_a_template_cannot_say_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(FormatError, match=CANNOT[name]):
        to_response_template(name, ANCHOR)


words = st.text(st.sampled_from("abé🙂 07-.,:&<>'\"\\\n\t(){}[]#"), max_size=12)
one_call = st.one_of(
    st.builds(dict, a=st.integers(), b=st.integers()).map(lambda a: ToolCall("", ADD.name, a)),
    st.builds(dict, text=words).map(lambda a: ToolCall("", NOTE.name, a)),
    st.builds(dict, file_path=words, file_contents=words).map(lambda a: ToolCall("", CREATE_FILE.name, a)),
    st.builds(dict, query=words, summary=st.booleans(), num_results=st.integers()).map(
        lambda a: ToolCall("", WEB_SEARCH.name, a)
    ),
    st.just(ToolCall("", PING.name, {})),
)


@pytest.mark.share(4)
@needs_transformers
@every_exported
def test_transformers_reads_what_an_exported_format_writes(format: Format) -> None:
    source = json.loads(json.dumps(to_response_template(format, ANCHOR)))

    @given(calls=st.lists(one_call, min_size=1, max_size=3))
    def law(calls: list[ToolCall]) -> None:
        try:
            text = render_calls(format, calls, TOOLS)
        except FormatError:
            return
        if "<![CDATA[" not in text:  # ours alone
            assert theirs(source, text) == read(format, text) == [(c.name, c.arguments) for c in calls]

    law()


ONE_WAY = {
    **dict.fromkeys(("deepseek_v32", "deepseek_v4", "deepseek_v41"), "not a key and a value between literals"),
    **dict.fromkeys(("k2_horizon", "kimi_k3"), "more than one way"),
    **dict.fromkeys(("llama3_json", "xlam"), "no literal opens a call"),
}


@pytest.mark.parametrize("format", [f for f in EXPORTED if f.name not in ONE_WAY], ids=lambda f: f.name)
def test_an_exported_format_comes_back(format: Format) -> None:
    back = from_response_template(to_response_template(format, ANCHOR))
    text = render_calls(format, [ToolCall("", WEB_SEARCH.name, SEARCH), ToolCall("", PING.name, {})], TOOLS)
    assert read(back, f"Hi. {text}") == [(WEB_SEARCH.name, SEARCH), (PING.name, {})]


SKIPPED = {"kimi_k2": "the call's number", "solar_open": "the call's id"}
"""What a template skips, so that a Format made of it does not know what to write there."""

edges = st.text(st.sampled_from("\n \t\r"), max_size=3)
edged = st.builds("{}{}{}".format, edges, st.sampled_from(["", "x", "x = 1\n\ny"]), edges)


@pytest.mark.share(3)
@pytest.mark.parametrize("format", [f for f in EXPORTED if f.name not in ONE_WAY], ids=lambda f: f.name)
def test_what_came_back_reads_and_writes_the_same_values_to_the_last_newline(format: Format) -> None:
    back = from_response_template(to_response_template(format, ANCHOR), "back")

    @given(value=edged, other=edged)
    @example(value="\nx\n", other="\n")
    def law(value: str, other: str) -> None:
        call = ToolCall("", CREATE_FILE.name, {"file_path": other, "file_contents": value})
        for writes, reads in ((format, back), (back, back), *([] if format.name in SKIPPED else [(back, format)])):
            assert read(reads, render_calls(writes, [call], TOOLS)) == [(call.name, call.arguments)]

    law()


@pytest.mark.parametrize("name", ONE_WAY)
def test_an_exported_pattern_with_conditions_does_not_come_back(name: str) -> None:
    with pytest.raises(FormatError, match=ONE_WAY[name]):
        from_response_template(to_response_template(name, ANCHOR))


def test_the_name_of_a_format_will_do() -> None:
    assert to_response_template("qwen", ANCHOR) == to_response_template(get("hermes"), ANCHOR)
