"""The inputs of vLLM's and SGLang's own parser tests, read by ours: the same calls, the types of the values included.

Where we read something else, the row stands in one of the two tables, with the reason. A row that disagrees and is not
listed fails, and so does one that is listed and agrees.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from corpora import UNDECLARED, Vector, equal, read, vectors
from recordings import ABSENT

FILES = ("vectors_vllm.jsonl", "vectors_sglang.jsonl")

CUT_OFF = "the text ends inside the call: law 5, what is cut off never executes; ours is a truncated_call error"
UNKNOWN = "ours reports the call, and it is answered with unknown_tool; a call that disappears leaves the model waiting"
DAMAGED = "a key without a value: ours is a damaged call, told to the model; the peer calls without that argument"
BARE = "strings of this syntax stand in quote tokens, so a bare 1 is a number; vLLM without a schema reads a string"
GLUED = "a detokeniser's damage (`<functionname=`) that no model writes; ours leaves it text"
COUNTER = "the peer guesses the tool from its arguments; ours takes no call that does not say its name"
INVENTED = "the peer renames to a tool of its benchmark and invents an argument; ours reads what is written"
EXTRA = "the peer's parser validates; ours reads what is written, and validation answers the model with the reason"
MISSING_CLOSE = "the closing tag is missing, and no schema says that `date` is: ours takes it for text in the value"

MARKUP = "the value holds markup of its own kind of call, unbalanced: ours refuses it and says how to write it"

RIGHT: Mapping[str, str] = {
    "glm45 test_long_call_streams_non_streaming_arguments[…": MARKUP,
    "glm45 test_conversions_do_not_grow_with_argument_length": MARKUP,
    "step3p5 test_extract_tool_calls_missing_closing_parameter_tag": MARKUP,
    "lfm2 test_tool_call[nested_python_c_nonstreaming]": "quotes in a string are not escaped: Python does not read it",
    "mistral test_extract_tool_calls_pre_v11_unusual_calls[entry_not_a_call]": (
        "what follows a call in its list is no call: ours refuses it"
    ),
    "llama3 test_invalid_then_valid_json": "after a damaged call nothing of the reply runs",
    "gemma4 test_incomplete_tool_call": CUT_OFF,
    "gemma4 test_matches_converter_at_every_chunking[…nested:{…-1-no_schema]": BARE,
    "gemma4 test_matches_converter_at_every_chunking[…nested:{…-1-schema]": BARE,
    "gemma4 test_number_whole_normalized": "5.0 is written, and 5.0 is read; vLLM makes it the integer 5",
    "gemma4 test_streaming_number_split": BARE,
    "glm45 test_misaligned_last_delta_with_finish[Glm47MoeParser-glm47_moe-think-then-tool-]": CUT_OFF,
    "minicpm5 test_alias_enable_roaming": INVENTED,
    "minicpm5 test_alias_get_details_by_phone": INVENTED,
    "minicpm5 test_collapsed_function_and_param_tags": GLUED,
    "minicpm5 test_collapsed_param_tags_with_tokenizer_space_function": GLUED,
    "minicpm5 test_extra_arguments_do_not_satisfy_required": EXTRA,
    "minicpm5 test_extra_arguments_ignored_when_required_present": EXTRA,
    "minimax_m2 test_invalid_tool_name_is_rejected": UNKNOWN,
    "minimax_m3 test_depth_limit": "deeper than the limit is an error; vLLM drops the argument and makes the call",
    "minimax_m3 test_malformed_element_keeps_preceding_params…": (
        "a damaged argument: ours is a damaged call, told to the model; vLLM drops the argument and makes the call"
    ),
    "minimax_m3 test_truncated_invoke_keeps_completed_params": CUT_OFF,
    "plamo3 test_multiple_calls_keep_indices_ids_and_arguments_separate[direct-True]": CUT_OFF,
    "plamo3 test_multiple_calls_keep_indices_ids_and_arguments_separate[registered-True]": CUT_OFF,
    "qwen3_coder test_incomplete_tool_call": CUT_OFF,
    "kimi_k2 test_bare_counter_id_also_starts_at_index_0": COUNTER,
    "kimi_k2 test_detect_and_parse_bare_counter": COUNTER,
    "inkling test_empty_name_is_allowed_on_the_canonical_path": "no tool has an empty name; ours is a damaged call",
    "inkling test_one_malformed_call_fails_the_whole_batch": "a call before the damaged one has run",
    "glm45 test_invalid_tool_call": UNKNOWN,
    "glm45 test_quoted_string_invalid_python_escape_no_warning": (
        "law 5: a string parameter receives exactly the characters written, the quotes too"
    ),
    "glm47 test_quoted_string_invalid_python_escape_no_warning": (
        "law 5: a string parameter receives exactly the characters written, the quotes too"
    ),
    "gigachat3 test_detect_and_parse_missing_arguments": (
        "a call without arguments is a call (contradiction 4); validation tells the model what is missing"
    ),
    "hunyuan test_mixed_known_and_unknown_tools": UNKNOWN,
    "poolside_v1 test_arg_key_without_value_emits_empty_call": DAMAGED,
    "poolside_v1 test_orphan_key_followed_by_new_key_uses_new_key": DAMAGED,
    "poolside_v1 test_streaming_orphan_key_followed_by_new_key_uses_new_key": DAMAGED,
    "poolside_v1 test_unknown_tool_dropped": UNKNOWN,
}
"""Rows on which we hold our answer to be right and why: pattern of a row's id (`…` for anything) -> reason."""

OPEN: Mapping[str, str] = {
    "deepseek_v32 test_split_parameter_start_is_buffered": MISSING_CLOSE,
}
"""Rows on which the peer reads something that we might read too."""

AGREED, JUDGED = 0.92, 0.99
"""The least share of the rows that agree as they stand, and of those that agree or stand in `RIGHT`.

The second rests on our own judgement of each row in `RIGHT`; only the first is measured.
"""


def matches(pattern: str, id: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("…"))), id, re.DOTALL) is not None


def agrees(vector: Vector) -> bool:
    if vector.format is UNDECLARED:
        return False
    return equal(read(vector, thinking=vector.thinking), vector.expected)


def listed(vector: Vector, table: Iterable[str]) -> bool:
    return any(matches(pattern, vector.id) for pattern in table)


@pytest.mark.parametrize("file", FILES)
def test_calls_of_every_vector(file: str) -> None:
    found, _ = vectors(file)
    if not found:
        pytest.skip(ABSENT)
    reasons = {**RIGHT, **OPEN}
    other = [v for v in found if not agrees(v)]
    assert [f"{v.id}: {v.expected} != {read(v, thinking=v.thinking)}" for v in other if not listed(v, reasons)] == []
    assert [v.id for v in found if v not in other and listed(v, reasons)] == [], "listed, but it agrees"


def test_share_of_all_vectors() -> None:
    found = [v for file in FILES for v in vectors(file)[0]]
    if not found:
        pytest.skip(ABSENT)
    agreed = sum(map(agrees, found))
    right = sum(listed(v, RIGHT) for v in found)
    print(f"{agreed} of {len(found)} agree ({agreed / len(found):.1%}); on {right} we judge ours right;")
    print(f"{len(found) - agreed - right} are open.")
    bare = [v if v.own else replace(v, tools=()) for v in found]
    print(
        f"Rows without tools are offered those they expect; offered none, {sum(map(agrees, bare))} agree. Not counted:"
    )
    for file in FILES:
        for reason, count in vectors(file)[1].items():
            print(f"  {file}: {count} rows: {reason}")
    assert agreed >= AGREED * len(found)
    assert agreed + right >= JUDGED * len(found)
