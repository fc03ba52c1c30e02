"""The vocabulary of repairs: each code that `CallEnd.repairs` may contain, of text and native calls, with its meaning.

No repair changes the content of a string (except a lone surrogate), and none completes text that was cut off. Each has
its recorded text: an answer to the Berkeley leaderboard by its id, or a test of a server's parser.
Repairs without a recorded text change no value (except, again, a lone surrogate).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

RAW_NEWLINES: Final = "raw_newlines"
TRAILING_COMMA: Final = "trailing_comma"
PYTHON_QUOTES: Final = "python_quotes"
PYTHON_LITERALS: Final = "python_literals"
DOUBLY_ENCODED: Final = "doubly_encoded"
WRAPPED_ARGUMENTS: Final = "wrapped_arguments"
QUOTED_VALUE: Final = "quoted_value"
ARITHMETIC: Final = "arithmetic"
LEADING_ZEROS: Final = "leading_zeros"
ARGUMENTS_KEY: Final = "arguments_key"
NULL_ARGUMENTS: Final = "null_arguments"
REPEATED_ARGUMENTS: Final = "repeated_arguments"
LONE_SURROGATE: Final = "lone_surrogate"

REPAIRS: Final[Mapping[str, str]] = MappingProxyType({
    # changes no value
    RAW_NEWLINES: "A JSON string contained unescaped line breaks or other control characters.",
    # changes no value
    TRAILING_COMMA: "There was a comma after the last value of an object or array.",
    # Hermes 2 Pro Mistral 7B, parallel_multiple_61, and 660 more
    PYTHON_QUOTES: "A string was in single or triple quotes, or in plain quotes in a format that has its own.",
    # Hermes 2 Pro Llama 3 8B, simple_python_239, and 150 more
    PYTHON_LITERALS: "Values were written as in Python, such as `True`, `None`, `0x1F` or `.5`.",
    # vLLM, test_granite4_tool_parser.py::test_tool_call_parser_complex
    DOUBLY_ENCODED: "The arguments were a string that contained their JSON.",
    # vLLM, test_minicpm5xml_tool_parser.py::test_properties_wrapped_arguments
    WRAPPED_ARGUMENTS: "The arguments were the value of a single argument that the tool does not have.",
    # Hermes 2 Pro Llama 3 8B, simple_python_169, and 40 more
    QUOTED_VALUE: "A number, boolean or other value was in quotes although the schema does not allow a string.",
    # Llama 3 70B, parallel_multiple_146; Hermes 2 Theta 70B, irrelevance_211
    ARITHMETIC: "A number was written as a calculation that is clearly intended, such as `5*60`; its result was used.",
    # vLLM, test_lfm2_tool_parser.py::test_tool_call[leading_zero_int]
    LEADING_ZEROS: "A two-digit number began with a zero, as in a date: `07` was read as 7.",
    # Mistral Nemo 2407, simple_java_26, and 100 more
    ARGUMENTS_KEY: (
        "An envelope had its arguments under another key (`args`, `input`, …), or next to the name; only one reading "
        "fits the tool."
    ),
    # changes no value
    NULL_ARGUMENTS: "A native call's arguments were `null`, which was read as no arguments.",
    # changes no value
    REPEATED_ARGUMENTS: (
        "A native call had several argument objects, each empty or contained in the last one; the last one was used."
    ),
    # no encoding has one
    LONE_SURROGATE: (
        r'A lone surrogate (`"\ud800"`), which no encoding can represent, became U+FFFD. '
        "This always happens, regardless of what `Parser(repairs=…)` permits."
    ),
})  # fmt: skip
"""Every code, with a sentence that names the fault and its repair."""
