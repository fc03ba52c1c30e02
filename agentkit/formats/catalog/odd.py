"""Formats with their own value syntax."""

from __future__ import annotations

from agentkit.formats.format import Braced, Format, Name, ResultShape, Shape

GEMMA4 = Format(
    "gemma4",
    ("<|tool_call>call:", Name(), Braced('<|"|>'), "<tool_call|>"),
    separator="",
    also=(  # small models drop the word, or also the colon, or put white space before them
        Shape(("<|tool_call> call :", Name(), Braced('<|"|>'), "<tool_call|>")),
        Shape(("<|tool_call> :", Name(), Braced('<|"|>'), "<tool_call|>")),
        Shape(("<|tool_call>", Name(), Braced('<|"|>'), "<tool_call|>")),
    ),
    result=ResultShape("<|tool_response>response:{name}\n", "<tool_response|>"),
    thinking=(("<|channel>thought\n", "<channel|>"), ("<think>", "</think>")),
    markup=("<turn|>",),
    families=("Gemma 4",),
)
FUNCTIONGEMMA = Format(
    "functiongemma",
    ("<start_function_call>call:", Name(), Braced("<escape>", typed=False), "<end_function_call>"),
    separator="",
    also=(
        Shape(("<start_function_call> call :", Name(), Braced("<escape>", typed=False), "<end_function_call>")),
        Shape(("<start_function_call>", Name(), Braced("<escape>", typed=False), "<end_function_call>")),
    ),
    markup=("<end_of_turn>",),
    families=("FunctionGemma",),
)

ODD = (GEMMA4, FUNCTIONGEMMA)
