"""Formats whose calls end in a stop string: asked for, given back, part of the call, and of what the model wrote."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from replay_server import ReplayServer
from rollout_kit import Lines, failures, rolled, said, sample
from small_tokenizers import tokenizer

from agentkit import Tool, formats, model, openapi_schema
from agentkit.errors import ConfigError
from agentkit.events import Finish, Text
from agentkit.messages import ToolCall
from agentkit.rollout import Generation, ModelPolicy, Rollout, ServerPolicy
from agentkit.rollout.tokens.stop_strings import stop_strings
from agentkit.testing import ScriptedModel
from agentkit.toolspec import ToolSpec

ONE = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
SEARCH = ToolSpec("search", "", ONE)


class Search(Tool):
    """Two tools that each take one text."""

    @openapi_schema
    def search(self, query: str) -> str:
        """Search.

        Args:
            query: for what.
        """
        return f"about {query}"

    @openapi_schema
    def look(self, at: str) -> str:
        """Look.

        Args:
            at: what.
        """
        return f"at {at}"


STOPS = {"legacy": ["</look>", "</search>"], "dr_tulu": ["</call_tool>"]}
OPEN = {"legacy": "Hm. <search>cats & dogs", "dr_tulu": 'Hm. <call_tool name="search">cats & dogs'}


@pytest.mark.parametrize("format", sorted(formats.CATALOG, key=lambda f: f.name), ids=lambda f: f.name)
def test_only_calls_that_are_one_text_between_tags_end_in_a_stop_string(format: formats.Format) -> None:
    """And a call that is written ends in it, whoever writes it."""
    written = formats.render_calls(format, [ToolCall("c", "search", {"query": "cats"})], [SEARCH])
    stops = stop_strings(format, [SEARCH])
    assert [written.rstrip().endswith(stop) for stop in stops] == [True] * len(stops)
    assert (format.name in STOPS) == bool(stops)


@pytest.mark.parametrize("format", STOPS)
def test_the_policy_is_asked_to_stop_there(format: str) -> None:
    policy = Lines("done")
    assert asyncio.run(Rollout([Search], policy, format).run(sample())).end == "answered"
    assert sorted(policy.requests[0].stop) == STOPS[format]


def test_only_at_the_ends_of_tools_that_are_shown() -> None:
    policy = Lines("done")
    asyncio.run(Rollout([Search], policy, "legacy").run(sample(tool_selection=("look",))))
    assert policy.requests[0].stop == ("</look>",)


@pytest.mark.parametrize(
    ("own", "stop"),
    [([], ()), ("Observation:", ("Observation:",)), (["a", "b"], ("a", "b")), (None, ("</call_tool>",))],
)
def test_stop_strings_of_ones_own_replace_those_of_the_format(own: Any, stop: tuple[str, ...]) -> None:
    policy = Lines("done")
    asyncio.run(Rollout([Search], policy, "dr_tulu", sampling={"stop": own, "top_k": 1}).run(sample()))
    assert policy.requests[0].stop == stop
    assert policy.requests[0].sampling["top_k"] == 1
    with pytest.raises(ConfigError, match="expected a string, or a list of strings"):
        Rollout([Search], policy, sampling={"stop": 7})


@pytest.mark.parametrize("format", STOPS)
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("told", [None, "the string"])
def test_a_call_runs_whether_or_not_its_end_is_left_out(format: str, kept: bool, told: str | None) -> None:
    end = "</search>" if format == "legacy" else "</call_tool>"
    line = Generation(OPEN[format] + (end if kept else ""), stopped_by=told and end)
    record = rolled([Search], line, format=format)
    assert said(record) == ["about cats & dogs"]
    assert (record.end, record.assistant_turns) == ("answered", 2)
    assert record.messages[1].calls[0].raw == (OPEN[format] + end).removeprefix("Hm. ")


@pytest.mark.parametrize("format", STOPS)
@pytest.mark.parametrize("line", [{"finish": "length"}, {"stopped_by": ""}])
def test_a_call_whose_end_the_model_did_not_write_does_not_run(format: str, line: dict[str, Any]) -> None:
    """The limit came first, or the engine says that the model ended its turn."""
    assert failures(rolled([Search], Generation(OPEN[format], **line), format=format)) == ["truncated_call"]


@pytest.mark.parametrize(
    "text",
    [
        "I would use <search> for that.",
        "The tool <search> finds pages and <look> shows one. Which do you want?",
        "There are two tools:\n<search> to find pages.",
        "You may use <search>, <look> or neither.",
        "<search>",
        "Hm. <search>\n",
        "<search>see <look>it",
    ],
)
def test_a_text_that_only_speaks_of_a_tag_runs_nothing(text: str) -> None:
    """The policy does not say at what it stopped: it may have ended its turn, or at another tool's end."""
    record = rolled([Search], text, format="legacy")
    assert set(failures(record)) <= {"truncated_call"}


@pytest.mark.parametrize("before", ["", "Hm. ", "Hm.\n", "Let me search for ", "I look up: "])
@pytest.mark.parametrize("value", ["cats", "\ncats\n", "Are there cats?", "<b>cats</b>", "see <look>it</look>"])
def test_a_call_in_a_sentence_runs(before: str, value: str) -> None:
    record = rolled([Search], f"{before}<search>{value}", format="legacy")
    assert said(record) == [f"about {value.removeprefix(chr(10))}"]


@pytest.mark.parametrize("format", STOPS)
def test_text_without_a_call_stays_as_it_is(format: str) -> None:
    assert rolled([Search], "I would <b>not</b> search", format=format).messages[-1].text == "I would <b>not</b> search"


@pytest.mark.parametrize("format", STOPS)
def test_the_string_is_the_models_in_the_mask(format: str) -> None:
    end = "</search>" if format == "legacy" else "</call_tool>"
    tok = tokenizer("chatml")
    record = rolled([Search], OPEN[format], format=format, tokenizer=tok)
    tokens = record.tokens
    assert tokens is not None
    assert not tokens.exact
    first = record.calls[0].span
    assert first is not None
    assert tok.decode(tokens.response_ids[slice(*first)]) == OPEN[format] + end
    assert set(tokens.response_mask[slice(*first)]) == {1}


def test_token_ids_are_kept_as_they_are() -> None:
    """An engine's ids have the string, whatever its text has; the rest of a token that reaches over it, too."""
    tok = tokenizer("chatml")
    ids = tok.encode("Hm. <search>cats</search>\n")
    line = Generation("Hm. <search>cats", ids, stopped_by="</search>")
    record = rolled([Search], line, Generation(None, tok.encode("done")), format="legacy", tokenizer=tok)
    assert said(record) == ["about cats"]
    assert record.tokens is not None
    assert list(record.tokens.response_ids[: len(ids)]) == ids
    assert record.tokens.exact


# ---------------------------------------------------------------- servers


def completion(**choice: Any) -> bytes:
    whole = {"index": 0, "text": "<search>cats", "finish_reason": "stop", "logprobs": None} | choice
    return json.dumps({"id": "c", "object": "text_completion", "created": 1, "model": "m", "choices": [whole]}).encode()


@pytest.mark.parametrize(
    ("told", "by"),
    [
        ({"stop_reason": "</search>"}, "</search>"),
        ({"matched_stop": "</search>"}, "</search>"),
        ({"stop_reason": None}, ""),
        ({"matched_stop": 151645}, ""),
        ({}, None),
    ],
    ids=["vLLM", "SGLang", "vLLM, end of turn", "SGLang, end of turn", "llama.cpp"],
)
def test_where_servers_say_that_they_stopped(told: dict[str, Any], by: str | None) -> None:
    with ReplayServer([completion(**told), completion(text="It is.", **told)]) as at:
        policy = ServerPolicy("m", at.url, logprobs=False)
        record = asyncio.run(Rollout([Search], policy, "legacy", tokenizer("chatml")).run(sample()))
        asked = at.requests[0].body
    assert (asked["stop"], asked["include_stop_str_in_output"], asked["no_stop_trim"]) == (
        ["</search>", "</look>"],
        True,
        True,
    )
    assert failures(record) == ["truncated_call" if by == "" else None]


def test_a_server_of_chat_completions_keeps_it_if_it_can() -> None:
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    pieces = [{"delta": {"content": "<search>cats"}}, {"delta": {}, "finish_reason": "stop"}]
    stream = b"".join(f"data: {json.dumps(chunk | {'choices': [p | {'index': 0}]})}\n\n".encode() for p in pieces)
    for server, field in (("vllm", "include_stop_str_in_output"), ("sglang", "no_stop_trim"), (None, None)):
        with ReplayServer([stream + b"data: [DONE]\n\n"] * 2) as at:
            policy = ModelPolicy(model("openai:m", base_url=at.url, server=server), "legacy")
            record = asyncio.run(Rollout([Search], policy, "legacy").run(sample()))
            bodies = [request.body for request in at.requests]
        assert bodies[0]["stop"] == ["</search>", "</look>", *(["<tool_result"] if server else [])]
        assert [name for name in ("include_stop_str_in_output", "no_stop_trim") if name in bodies[0]] == [field] * bool(
            field
        )
        assert said(record)[:1] == ["about cats"]


def test_anthropic_says_that_the_model_ended_its_turn() -> None:
    for raw, runs in (("stop_sequence", True), ("end_turn", False)):
        model = ScriptedModel([[Text("<search>cats"), Finish("stop", raw)], [Text("done"), Finish("stop", raw)]])
        record = asyncio.run(Rollout([Search], ModelPolicy(model, "legacy"), "legacy").run(sample()))
        assert failures(record) == [None if runs else "truncated_call"]
