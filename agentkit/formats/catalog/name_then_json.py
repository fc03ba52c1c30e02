"""Formats in which the tool's name comes before its arguments, which are one JSON object."""

from __future__ import annotations

from agentkit.formats.format import (
    THINK,
    CallId,
    CountedName,
    Format,
    FormatPart,
    Json,
    Name,
    ResultShape,
    Section,
    Shape,
    Skip,
)

_DEEPSEEK_CALLS = Section("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
_V3 = ("<｜tool▁call▁begin｜>function<｜tool▁sep｜>", Name(), "\n```json\n", Json(), "\n```<｜tool▁call▁end｜>")
_V3_BARE = ("<｜tool▁call▁begin｜>function<｜tool▁sep｜>", Name(), "\n", Json(), "\n<｜tool▁call▁end｜>")
_V31 = ("<｜tool▁call▁begin｜>", Name(), "<｜tool▁sep｜>", Json(), "<｜tool▁call▁end｜>")


def _plain(*parts: FormatPart) -> Shape:
    """Return a DeepSeek call in plain characters that look like those of its tokens. Source: GenericAgent#804."""
    plain = tuple(p.replace("｜", "|").replace("▁", "_") if isinstance(p, str) else p for p in parts)
    return Shape(plain, Section("<|tool_calls_begin|>", "<|tool_calls_end|>"))


DEEPSEEK_V3 = Format(
    "deepseek_v3",
    _V3,
    _DEEPSEEK_CALLS,
    also=(Shape(_V3_BARE, _DEEPSEEK_CALLS), Shape(_V31, _DEEPSEEK_CALLS), _plain(*_V3), _plain(*_V3_BARE)),
    markup=("<｜end▁of▁sentence｜>",),
    result=ResultShape(
        "<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜>", "<｜tool▁output▁end｜><｜tool▁outputs▁end｜>"
    ),
    aliases=("deepseekv3",),
    families=("DeepSeek V3-0324", "DeepSeek R1-0528"),
)
DEEPSEEK_V31 = Format(
    "deepseek_v31",
    _V31,
    _DEEPSEEK_CALLS,
    separator="",
    also=(_plain(*_V31),),
    markup=("<｜end▁of▁sentence｜>",),
    result=ResultShape("<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"),
    aliases=("deepseekv31",),
    families=("DeepSeek V3.1",),
)
_KIMI_CALLS = Section("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")
KIMI_K2 = Format(
    "kimi_k2",
    ("<|tool_call_begin|>", CountedName(), "<|tool_call_argument_begin|>", Json(), "<|tool_call_end|>"),
    _KIMI_CALLS,
    separator="",
    also=(Shape(("<|tool_call_begin|>", CountedName(), Json(), "<|tool_call_end|>"), _KIMI_CALLS),),
    thinking=(*THINK, ("◁think▷", "◁/think▷")),  # Kimi-VL and Kimi-Dev think between the latter
    markup=("<|im_end|>",),
    families=("Kimi K2", "Kimi K2.5"),
)
MISTRAL_COMPACT = Format(
    "mistral_compact",
    ("[TOOL_CALLS]", Name(), "[ARGS]", Json()),
    separator="",
    also=(
        Shape(("[TOOL_CALLS]", Name(), "[CALL_ID]", CallId(), "[ARGS]", Json())),
        Shape(("[TOOL_CALLS]", Name(), Json())),
    ),
    ends=("</s>",),
    thinking=(("[THINK]", "[/THINK]"), ("<think>", "</think>")),
    aliases=("devstral", "magistral"),
    families=("Mistral Small 3.2", "Devstral", "Magistral"),
)
_PLAMO_REQUESTS = Section("<|plamo:begin_tool_requests:plamo|>", "<|plamo:end_tool_requests:plamo|>")
_PLAMO_ARGUMENTS = (
    Name(),
    "<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:constrain|>json<|plamo:msg|>",
    Json(),
)
PLAMO3 = Format(
    "plamo3",
    (
        "<|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>",
        *_PLAMO_ARGUMENTS,
        "<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|>",
    ),
    _PLAMO_REQUESTS,
    separator="",
    also=(
        Shape(
            ("<|plamo:begin_tool_name:plamo|>", *_PLAMO_ARGUMENTS, "<|plamo:end_tool_arguments:plamo|>"),
            _PLAMO_REQUESTS,
        ),
    ),
    thinking=(("<|plamo:begin_think:plamo|>", "<|plamo:end_think:plamo|>"),),
    families=("PLaMo 3",),
)
FUNCTION_JSON = Format(
    "function_json",
    ("<function=", Name(), ">", Json(), "</function>"),
    also=(Shape(("<|python_tag|><function=", Name(), ">", Json(), "</function>")),),
    markup=("<|eot_id|>", "<|eom_id|>"),
    families=("Llama 3.1 (custom tools)",),
)
# after a recipient in the role, the channel follows: `<|start|>assistant to=functions.f<|channel|>commentary json`
_HARMONY_SKIP = Skip(" <|constrain|>json", tokens=("<|channel|>", "<|constrain|>"))
_HARMONY_ARGUMENTS = (Name("functions."), _HARMONY_SKIP, "<|message|>", Json(), "<|call|>")
HARMONY = Format(
    "harmony",
    ("<|channel|>commentary to=", *_HARMONY_ARGUMENTS),
    separator="<|start|>assistant",
    also=(
        Shape(("<|start|>assistant<|channel|>commentary to=", *_HARMONY_ARGUMENTS)),
        Shape(("<|start|>assistant to=", *_HARMONY_ARGUMENTS)),
        Shape(("<|channel|>analysis to=", *_HARMONY_ARGUMENTS)),
        # the template ends the prompt with `<|start|>assistant`, and servers strip tokens. Source: vllm#51977
        *(
            Shape((f"{word}to=functions.", Name(), *_HARMONY_ARGUMENTS[1:]))
            for word in ("", "assistant ", "commentary ")
        ),
    ),
    result=ResultShape("<|start|>functions.{name} to=assistant<|channel|>commentary<|message|>", "<|end|>"),
    thinking=(
        ("<|channel|>analysis<|message|>", "<|end|>"),
        ("<|start|>assistant<|channel|>analysis<|message|>", "<|end|>"),
    ),
    answer=(
        ("<|start|>assistant<|channel|>final<|message|>", "<|return|>"),
        ("<|channel|>final<|message|>", "<|return|>"),
    ),
    markup=(
        "<|start|>assistant<|channel|>commentary<|message|>",
        "<|channel|>commentary<|message|>",
        "<|channel|>commentary",
        "<|start|>assistant",
        "<|end|>",
        "<|return|>",
    ),
    aliases=("openai", "gpt-oss"),
    families=("gpt-oss",),
)
# chat template of upstage/Solar-Open-100B, and the tool parser `solar_open` of its vendor's server
# (github.com/UpstageAI/vllm, branch v0.12.0-solar-open), which reads calls with and without the section
_SOLAR_CALL = (
    "<|tool_call:begin|>",
    CallId(),
    "<|tool_call:name|>",
    Name(),
    "<|tool_call:args|>",
    Json(),
    "<|tool_call:end|>",
)
SOLAR_OPEN = Format(
    "solar_open",
    _SOLAR_CALL,
    Section("<|tool_calls|>", "<|calls|>"),
    separator="",
    also=(Shape(_SOLAR_CALL),),
    result=ResultShape(
        "<|tool_response:begin|>{id}<|tool_response:name|>{name}<|tool_response:result|>", "<|tool_response:end|>"
    ),
    thinking=(("<|think|>", "<|end|>"), ("<think>", "</think>")),
    markup=("<|begin|>assistant", "<|content|>", "<|flush|>", "<|end|>"),
    families=("Solar Open",),
)
GLM4 = Format(
    "glm4",
    ("\n", Name(), "\n", Json()),
    separator="",
    families=("GLM 4 9B",),
)

NAMED = (DEEPSEEK_V3, DEEPSEEK_V31, KIMI_K2, MISTRAL_COMPACT, PLAMO3, FUNCTION_JSON, HARMONY, SOLAR_OPEN, GLM4)
