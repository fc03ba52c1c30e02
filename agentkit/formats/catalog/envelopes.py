"""Formats whose call is one JSON object with the name and the arguments."""

from __future__ import annotations

from agentkit.formats.format import CallId, Envelope, Format, Json, KeyEnvelope, Name, ResultShape, Section, Shape

_ARGUMENTS = Envelope("name", ("arguments", "parameters"))
_PARAMETERS = Envelope("name", ("parameters", "arguments"))
_TOOL_RESPONSE = ResultShape("<tool_response>\n", "\n</tool_response>")

HERMES = Format(
    "hermes",
    ("<tool_call>\n", _ARGUMENTS, "\n</tool_call>"),
    also=(Shape(("<|im_start|>\n", _ARGUMENTS)),),
    result=_TOOL_RESPONSE,
    markup=("<|im_end|>", "<|im_start|>"),
    aliases=("qwen", "qwen25", "qwen3_json", "granite4", "trinity"),
    families=("Hermes 2/3", "Qwen2.5", "QwQ", "Qwen3", "Granite 4", "Bielik 3"),
)
ERNIE45 = Format(
    "ernie45",
    ("<tool_call>\n", _ARGUMENTS, "\n</tool_call>\n"),
    markup=("<response>\n", "\n</response>\n", "<response>", "</response>"),
    families=("ERNIE 4.5",),
)
LONGCAT = Format(
    "longcat",
    ("<longcat_tool_call>", _ARGUMENTS, "</longcat_tool_call>"),
    thinking=(("<longcat_think>", "</longcat_think>"), ("<think>", "</think>")),
    families=("LongCat-Flash",),
)
GRANITE = Format(
    "granite",
    (_ARGUMENTS,),
    Section("<|tool_call|>[", "]"),
    separator=", ",
    also=(Shape((_ARGUMENTS,), Section("<tool_call>[", "]")),),
    families=("Granite 3.0", "Granite 3.1"),
)
GRANITE_20B_FC = Format(
    "granite-20b-fc",
    ("<function_call> ", _ARGUMENTS),
    result=ResultShape("<function_response> ", ""),
    markup=("<|endoftext|>",),
    ends=("</function_call>",),
    aliases=("granite-20b",),
    families=("Granite 20B function calling",),
)
JAMBA = Format(
    "jamba",
    (_ARGUMENTS,),
    Section("<tool_calls>[\n", "\n]</tool_calls>"),
    separator=",\n",
    aliases=("hunyuan_a13b", "apriel"),
    markup=("<answer>", "</answer>"),
    families=("Jamba 1.5", "Hunyuan A13B", "Apriel 1.6"),
)
TOOLCALL = Format(
    "nemotron_nano",
    (_ARGUMENTS,),
    Section("<TOOLCALL>[", "]</TOOLCALL>"),
    separator=", ",
    families=("Nemotron Nano 2",),
)
PHI4_MINI = Format(
    "phi4_mini_json",
    (_ARGUMENTS,),
    Section("\nfunctools[", "]"),
    separator=", ",
    aliases=("phi4_mini",),
    families=("Phi-4-mini",),
)
INTERNLM = Format(
    "internlm",
    ("<|action_start|><|plugin|>\n", _PARAMETERS, "<|action_end|>"),
    also=(
        Shape(("<|action_start|> <|plugin|>", _PARAMETERS, "<|action_end|>")),
        Shape(("<|action_start|>", _PARAMETERS, "<|action_end|>")),
    ),
    aliases=("interns1",),
    families=("InternLM 2.5", "Intern-S1"),
)
COHERE = Format(
    "cohere_command",
    (Envelope("tool_name", ("parameters",)),),
    Section("<|START_ACTION|>[\n", "\n]<|END_ACTION|>"),
    separator=",\n",
    thinking=(("<|START_THINKING|>", "<|END_THINKING|>"),),
    markup=("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>", "<|END_OF_TURN_TOKEN|>"),
    aliases=("cohere_command3", "cohere_command4"),
    families=("Command A", "Command R7B"),
)
INKLING = Format(
    "inkling",
    ("<|content_invoke_tool_json|>", Envelope("name", ("args",)), "<|end_message|>"),
    thinking=(("<|content_thinking|>", "<|end_message|>"),),
    families=("Inkling",),
)
GIGACHAT3 = Format(
    "gigachat3",
    ("<|function_call|>", _ARGUMENTS),
    also=(Shape(("<|message_sep|>\n\nfunction call<|role_sep|>\n", _ARGUMENTS)),),
    markup=("<|message_sep|>",),
    families=("GigaChat 3",),
)
APERTUS = Format(
    "apertus",
    (KeyEnvelope(),),
    Section("<|tools_prefix|>[", "]<|tools_suffix|>"),
    separator=", ",
    thinking=(("<|inner_prefix|>", "<|inner_suffix|>"),),
    aliases=("apertus2509",),
    families=("Apertus",),
)
LLAMA3_JSON = Format(
    "llama3_json",
    (_PARAMETERS,),
    separator="; ",
    also=(
        Shape(("<|python_tag|>", _PARAMETERS)),
        Shape((_PARAMETERS,), Section("[", "]")),
        Shape((_PARAMETERS,), Section('{"tool_calls": [', "]}")),
        Shape((_PARAMETERS,), Section("{", "}")),  # as some templates show it; Qwen2.5-Coder-1.5B copies both braces
    ),
    markup=("<|eot_id|>", "<|eom_id|>", "<|eot|>"),
    aliases=("llama4_json", "llama3"),
    families=("Llama 3.1", "Llama 3.2", "Llama 4"),
)
MISTRAL = Format(
    "mistral",
    (_ARGUMENTS,),
    Section("[TOOL_CALLS] [", "]"),
    separator=", ",
    result=ResultShape('[TOOL_RESULTS] {{"call_id": "{id}"}}\n', "[/TOOL_RESULTS]"),
    also=(
        Shape(("[TOOL_CALLS]", _ARGUMENTS)),
        Shape(("[TOOL_CALLS]", Name(), "[ARGS]", Json())),
        Shape(("[TOOL_CALLS]", Name(), "[CALL_ID]", CallId(), "[ARGS]", Json())),
        Shape(("[TOOL_CALLS]", Name(), Json())),
    ),
    thinking=(("[THINK]", "[/THINK]"), ("<think>", "</think>")),
    ends=("</s>",),
    families=("Mistral", "Mixtral", "Ministral", "Mistral Nemo"),
)
XLAM = Format(
    "xlam",
    (_ARGUMENTS,),
    Section("[", "]"),
    separator=", ",
    also=(
        Shape((_ARGUMENTS,), Section("[TOOL_CALLS] [", "]")),
        Shape((_ARGUMENTS,), Section("<tool_call>[", "]</tool_call>")),
        Shape((_ARGUMENTS,), Section("```json\n[", "]\n```")),
        Shape((_ARGUMENTS,), Section("```\n[", "]\n```")),
        Shape((_ARGUMENTS,), Section('{"tool_calls": [', "]}")),
        Shape((_ARGUMENTS,)),
    ),
    aliases=("json_array",),
    families=("xLAM 2",),
)
XLAM1 = Format(
    "xlam1",
    (_ARGUMENTS,),
    Section('{"tool_calls": [', "]}"),
    separator=", ",
    also=(Shape((_ARGUMENTS,), Section("[", "]")), Shape((_ARGUMENTS,))),
    families=("xLAM 1",),
)
JSON_FENCE = Format(
    "json_fence",
    ("```json\n", _ARGUMENTS, "\n```"),
    also=(Shape((_ARGUMENTS,), Section("```json\n[", "]\n```")),),
    families=("any model that answers with a code block",),
)

ENVELOPES = (
    HERMES,
    ERNIE45,
    LONGCAT,
    GRANITE,
    GRANITE_20B_FC,
    JAMBA,
    TOOLCALL,
    PHI4_MINI,
    INTERNLM,
    COHERE,
    INKLING,
    GIGACHAT3,
    APERTUS,
    LLAMA3_JSON,
    MISTRAL,
    XLAM,
    XLAM1,
    JSON_FENCE,
)
