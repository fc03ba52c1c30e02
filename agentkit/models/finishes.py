"""Why a response ended: every provider's, server's and gateway's word for it. One table, for all wires. Knows no wire.

A gateway passes on the words of its servers, so any word may arrive on any wire.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agentkit.events import TAKEN_BACK, Finish, FinishReason

TAKEN_OUT: Final = ("abort", "aborted", "cancelled", "canceled", "user_cancel")
"""The words for a request that its server gave up or was told to: vLLM, SGLang, TensorRT-LLM, Cohere."""

_ENDINGS: Final[Mapping[FinishReason, tuple[str, ...]]] = {
    "stop": (
        *("stop", "end_turn", "stop_sequence", "completed"),  # OpenAI; Anthropic; the Responses API
        *("eos", "eos_token", "complete"),  # Together; text-generation-inference; Cohere
        *("end", "normal", "finished", "done", "stop_token", "stop_str", "stop_word", "stop_words"),  # local servers
    ),
    # OpenAI; Anthropic; Cohere
    "tool_calls": ("tool_calls", "function_call", "tool_use", "tool_call", "function_calls"),
    "length": (
        *("length", "max_tokens", "max_output_tokens", "incomplete"),  # OpenAI; Anthropic, Google; the Responses API
        *("max_length", "max_new_tokens", "max_completion_tokens", "token_limit", "limit"),  # local servers, watsonx
        *("model_length", "model_context_window_exceeded"),  # Mistral; Anthropic, Bedrock, GLM: the context is full
        *("context_length", "context_length_exceeded", "context_window_exceeded", "error_limit"),  # … Cohere
        "continuation",  # Google: the limit of one request
        *("repetition", "repetition_truncation"),  # vLLM; MiMo: the text was cut because it went in circles
    ),
    "content_filter": (
        *("content_filter", "content_filtered", "guardrail_intervened"),  # OpenAI, Azure; Bedrock
        *("sensitive", "blacklist", "error_toxic"),  # GLM; GigaChat; Cohere
        *("safety", "recitation", "blocklist", "prohibited_content", "spii", "model_armor"),  # Google
        *("image_safety", "image_prohibited_content", "image_recitation"),
    ),
    "refusal": ("refusal",),  # Anthropic
    "pause": ("pause_turn", "compaction"),  # Anthropic
    "error": (
        *("error", "failed", "failure", *TAKEN_OUT),  # OpenRouter, vLLM, Mistral, Cohere
        *("timeout", "time_limit"),  # TensorRT-LLM, Cohere; watsonx
        *("network_error", "insufficient_system_resource"),  # GLM; DeepSeek
        *("overloaded", "overloaded_error", "engine_overloaded", "engine_overloaded_error"),  # gateways of them; Kimi
        "malformed_model_output",  # Bedrock
        *("server_error", "internal_error", "internal_server_error", "rate_limit_exceeded", "rejected", "preempt"),
    ),
}
"""Sources: the providers' references; litellm's `map_finish_reason`; vLLM's `FINISH_REASON_STRINGS`; SGLang's
`BaseFinishReason`; `finish_reason` of TensorRT-LLM and LMDeploy; text-generation-inference; Google's `FinishReason`."""

FINISHES: Final[Mapping[str, FinishReason]] = {word: reason for reason, words in _ENDINGS.items() for word in words}
"""The words, in lower case and with underscores. The meaning of any other one is unknown: Google's
`MALFORMED_FUNCTION_CALL` and `OTHER`, which do not say whether the text is complete, or a future word."""


def meaning(raw: str | None, reasons: Mapping[str, FinishReason] = FINISHES) -> FinishReason | None:
    """Return the meaning of a word for the end, or None. Accepts capitals (Google, Cohere) and hyphens (Vercel)."""
    return reasons.get((raw or "").strip().lower().replace("-", "_"))


def retracts(raw: str | None) -> bool:
    """Return whether a provider's word for the end retracts the response; no later word changes that."""
    return meaning(raw) in TAKEN_BACK


def finish(
    raw: str | None,
    *,
    calls: bool,
    refused: bool = False,
    otherwise: FinishReason = "unknown",
    reasons: Mapping[str, FinishReason] = FINISHES,
) -> Finish:
    """The finish of a response.

    A server that says `stop`, or nothing, after calls means calls.

    Args:
        raw: the provider's word.
        calls: whether the response had a call.
        refused: whether it had a refusal.
        otherwise: what any other word of the provider means.
        reasons: the words and their meaning.
    """
    reason = (meaning(raw, reasons) or otherwise) if raw else "unknown"
    if calls and reason in ("stop", "unknown"):
        reason = "tool_calls"
    if refused and reason not in ("content_filter", "error"):
        reason = "refusal"
    return Finish(reason, raw or None)
