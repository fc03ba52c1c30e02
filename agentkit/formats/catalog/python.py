"""Formats in which a call is written as in Python."""

from __future__ import annotations

from agentkit.formats.format import Envelope, Format, PythonCall, Section, Shape, Tag

_CALL = (PythonCall(),)

PYTHONIC = Format(
    "pythonic",
    _CALL,
    Section("[", "]"),
    separator=", ",
    also=(Shape(_CALL, Section("<|python_tag|>[", "]")), Shape(("\n", *_CALL))),
    markup=("<|eot_id|>", "<|eom_id|>", "<end_of_turn>", "<|python_start|>", "<|python_end|>"),
    families=("Llama 3.2", "ToolACE", "Gemma 3"),
)
LLAMA4_PYTHONIC = Format(
    "llama4_pythonic",
    _CALL,
    Section("<|python_start|>[", "]<|python_end|>"),
    separator=", ",
    also=(Shape(_CALL, Section("[", "]")),),
    markup=("<|eot|>", "<|python_start|>", "<|python_end|>"),
    families=("Llama 4",),
)
OLMO3 = Format(
    "olmo3",
    _CALL,
    Section(Tag("function_calls"), Tag("function_calls", closing=True)),
    families=("OLMo 3",),
)
LFM2 = Format(
    "lfm2",
    _CALL,
    Section("<|tool_call_start|>[", "]<|tool_call_end|>"),
    separator=", ",
    also=(
        Shape((Envelope(),), Section("<|tool_call_start|>[", "]<|tool_call_end|>")),
        Shape(("<|tool_call_start|>", Envelope(), "<|tool_call_end|>")),
    ),
    markup=("<|im_end|>",),
    families=("LFM2", "LFM2.5"),
)
TOOL_CODE = Format(
    "tool_code",
    _CALL,
    Section("```tool_code\n", "\n```"),
    families=("Gemma 2/3 (tool_code)",),
)
PYTHON_LINE = Format(
    "python",
    ("\n", *_CALL),
    separator="",
    families=("any model that writes a bare call on its own line",),
)

PYTHON = (PYTHONIC, LLAMA4_PYTHONIC, OLMO3, LFM2, TOOL_CODE, PYTHON_LINE)
