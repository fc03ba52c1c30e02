"""How an engine's turn ends: only a response that is the policy's own is an outcome; all that it calls is answered."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from small_tokenizers import tokenizer

from agentkit import Tool, formats, openapi_schema
from agentkit.errors import ConfigError, ProviderError
from agentkit.events import CallEnd, Finish, FinishReason, Text
from agentkit.messages import ToolCall, UserMessage
from agentkit.rollout import Generation, Measures, Rollout, RolloutLimits, Sample, ScriptedPolicy, TrajectoryRecord
from agentkit.toolspec import ToolSpec

SPEC = ToolSpec("add", "Add.", {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
SAMPLE = Sample("s", (UserMessage("Go."),))
CALL = '<tool_call>\n{"name": "add", "arguments": {"n": 1}}\n</tool_call>'


class Sum(Tool):
    @openapi_schema
    def add(self, n: int) -> int:
        """Add."""
        return n

    def calc_reward(self) -> float:
        return 1.0


def rolled(*turns: Any, format: str | None = "hermes", **options: Any) -> TrajectoryRecord:
    return asyncio.run(Rollout([Sum], ScriptedPolicy(turns), format=format, **options).run(SAMPLE))


def errors(record: TrajectoryRecord) -> list[str | None]:
    return [call.error for call in record.calls]


@pytest.mark.parametrize("finish", ["cancelled", "error"])
@pytest.mark.parametrize("text", ["The ans", CALL, CALL[:40], CALL + "\nand"])
def test_a_response_that_is_not_the_policys_own_fails(finish: FinishReason, text: str) -> None:
    record = rolled(Generation(text, finish=finish), "4")
    assert record.end == {"cancelled": "cancelled", "error": "policy_error"}[finish]
    assert (record.failed, record.reward, record.final_rewards) == (True, 0.0, {})
    assert set(errors(record)) <= {"cancelled"}
    assert "the policy" in str(record.error)


def test_the_same_of_native_calls() -> None:
    turn = Generation(events=[Text("So "), CallEnd(0, ToolCall("c1", "add", {"n": 1})), Finish("error")])
    record = rolled(turn, format=None)
    assert (record.end, errors(record), record.failed) == ("policy_error", ["cancelled"], True)


def test_a_failed_trajectory_has_no_reward_in_the_figures() -> None:
    measures = Measures()
    for record in (rolled(Generation("x", finish="cancelled")), rolled("4")):
        measures.add(record)
    assert (measures.rewards.count, measures.rewards.mean) == (1, 1.0)


def test_the_context_ends_a_trajectory_before_the_engine_refuses() -> None:
    """The limit counts the prompt, too."""
    tok = tokenizer("chatml")
    free = rolled(CALL, "4", tokenizer=tok)
    assert free.tokens is not None
    prompt, response = len(free.tokens.prompt_ids), len(free.tokens.response_ids)
    limited = {most: rolled(CALL, "4", tokenizer=tok, limits=RolloutLimits(max_context_tokens=most)) for most in
               (prompt + response + 1, prompt + response - 4, prompt)}  # fmt: skip
    assert [(r.end, r.assistant_turns) for r in limited.values()] == [
        ("answered", 2), ("response_length", 1), ("response_length", 0),
    ]  # fmt: skip
    assert all(r.tokens and len(r.tokens.prompt_ids + r.tokens.response_ids) <= n for n, r in limited.items() if n)


def test_it_needs_a_tokenizer() -> None:
    with pytest.raises(ConfigError, match="max_context_tokens=…\\) counts tokens"):
        rolled("4", limits=RolloutLimits(max_context_tokens=9))


def test_an_engine_that_refuses_names_the_limit() -> None:
    record = rolled(ProviderError("4097 tokens", kind="too_long", provider="vllm"))
    assert (record.failed, "max_context_tokens" in str(record.error)) == (True, True)


# ---------------------------------------------------------------- what is unread is answered


@pytest.mark.parametrize("inside", ["", "\n", "null", "[1, 2]", "I will add.", "\nprint(1)\n", "5"])
@pytest.mark.parametrize("before", ["", "Let me see.\n", "Let me see. "])
def test_marks_of_a_call_without_one_are_answered(inside: str, before: str) -> None:
    record = rolled(f"{before}<tool_call>{inside}</tool_call>", "4")
    assert (errors(record), record.end) == (["ambiguous_call"], "answered")
    assert "the name of a tool (add)" in record.calls[0].result
    assert record.messages[1].text.strip() == before.strip()  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "text",
    [
        "You write `<tool_call></tool_call>` for a call.",
        "A call is written between <tool_call> and </tool_call>, as JSON.",
        "```\n<tool_call>\n</tool_call>\n```\nis how a call looks.",
        "<think>\n<tool_call></tool_call>\n</think>\n\nIt is 4.",
    ],
)
def test_those_that_are_spoken_of_are_not(text: str) -> None:
    record = rolled(text)
    assert (record.calls, record.end) == ((), "answered")


def test_a_call_in_another_format_is_answered_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    other = '[TOOL_CALLS]add[ARGS]{"n": 1}'
    with caplog.at_level(logging.WARNING, "agentkit.rollout"):
        record = rolled(other, other, "4")
    assert [(call.name, call.error) for call in record.calls] == [("add", "ambiguous_call")] * 2
    (line,) = caplog.records
    assert line.getMessage().endswith("read in the format hermes; it can be in mistral: Rollout(format='mistral')")
    measures = Measures()
    measures.add(record)
    assert "NO CALL WAS READ: 2 calls" in str(measures)


@pytest.mark.parametrize(
    "made_up",
    ["<information>2</information>", "<output>2</output>", "Observation: 2", "```output\n2\n```", "<tool_response>2"],
)
def test_a_call_after_a_result_that_the_model_made_up_does_not_run(made_up: str) -> None:
    second = CALL.replace("1", "2")
    record = rolled(f"{CALL}\n{made_up}\n{second}", "4")
    assert [(call.arguments, call.error) for call in record.calls] == [({"n": 1}, None)]


def test_a_second_call_after_prose_does() -> None:
    assert errors(rolled(f"{CALL}\nAnd the other:\n{CALL}", "4")) == [None, None]


def test_a_call_in_thinking_that_the_prompt_opened_does_not_run() -> None:
    """Its end in the text says so where there is no tokenizer to ask; with one the prompt does."""
    text = f"so {CALL} perhaps\n</think>\n\n{CALL.replace('1', '2')}"
    record = rolled(text, "4")
    assert [call.arguments for call in record.calls] == [{"n": 2}]


@pytest.mark.parametrize("other", [f for f in formats.names() if f not in ("legacy", "dr_tulu", "glm4")])
def test_a_call_in_any_other_format_is_never_an_answer(other: str) -> None:
    """Not in those whose marks are the tool's name alone, or a tag that the caller declares."""
    written = formats.render_calls(other, [ToolCall("functions.add:0", "add", {"n": 1})], [SPEC])
    for format in ("hermes", "xml"):
        assert len(rolled(written, "4", format=format).calls) == 1
