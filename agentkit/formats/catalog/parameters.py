"""Formats whose arguments are repeated key and value pairs between delimiters."""

from __future__ import annotations

from agentkit.formats.format import (
    Envelope,
    Format,
    Name,
    NameTag,
    NestedTags,
    Pairs,
    Recipient,
    ResultShape,
    Section,
    Shape,
    Skip,
    Tag,
    TagParameters,
)

_TOOL_RESPONSE = ResultShape("<tool_response>\n", "\n</tool_response>")

INVOKE = Format(
    "invoke",
    (NameTag("invoke", "name"), "\n", TagParameters("parameter", "name"), Tag("invoke", closing=True)),
    section=Section(Tag("function_calls"), Tag("function_calls", closing=True)),
    aliases=("function_calls",),
    families=("Claude (in text)",),
)
MINIMAX_M2 = Format(
    "minimax_m2",
    (NameTag("invoke", "name"), "\n", TagParameters("parameter", "name", newlines="none"), Tag("invoke", closing=True)),
    section=Section("<minimax:tool_call>\n", "\n</minimax:tool_call>"),
    aliases=("minimax-m2",),
    families=("MiniMax M2",),
)


def _dsml(name: str, wrapper: str, bar: str, families: tuple[str, ...], *aliases: str) -> Format:
    def shape(edge: str) -> Shape:
        own = f"{edge}DSML{edge}{bar}"
        call = (
            NameTag(f"{own}invoke", "name"),
            "\n",
            TagParameters(f"{own}parameter", "name", kind="string", newlines="none"),
            Tag(f"{own}invoke", closing=True),
        )
        return Shape(call, Section(f"<{own}{wrapper}>\n", f"\n</{own}{wrapper}>"))

    written = shape("｜")
    return Format(
        name,
        written.call,
        section=written.section,
        also=(shape("|"), shape("||")),  # as models write the wide bar; Source: GenericAgent#804, flocks#687
        markup=("<｜end▁of▁sentence｜>",),
        aliases=aliases,
        families=families,
    )


DEEPSEEK_V32 = _dsml("deepseek_v32", "function_calls", "", ("DeepSeek V3.2",), "deepseekv32")
DEEPSEEK_V4 = _dsml("deepseek_v4", "tool_calls", "", ("DeepSeek V4",), "deepseekv4")
DEEPSEEK_V41 = _dsml("deepseek_v41", "calls", " ", ("DeepSeek V4.1",), "deepseekv41")
QWEN3_CODER = Format(
    "qwen3_coder",
    ("<function=", Name(), ">\n", Pairs("<parameter=", ">\n", "\n</parameter>", newlines="both"), "</function>"),
    section=Section("<tool_call>\n", "\n</tool_call>", each=True),
    result=_TOOL_RESPONSE,
    markup=("<|im_end|>",),
    aliases=("qwen3_xml", "step3p5", "step5", "nemotron_v3", "granite_thinking", "nanobeige", "openhands"),
    families=(
        "Qwen3-Coder",
        "Qwen3.5",
        "Qwen3.6",
        "Step 3.5",
        "Nemotron 3",
        "Granite 4.2",
        "OpenHands LM",
        "SWE-agent LM",
    ),
)
MIMO = Format(
    "mimo",
    ("<function=", Name(), ">", Pairs("<parameter=", ">", "</parameter>", newlines="none"), "</function>"),
    section=Section("<tool_call>", "</tool_call>", each=True),
    families=("MiMo",),
)
SEED_OSS = Format(
    "seed_oss",
    ("<function=", Name(), ">\n", Pairs("<parameter=", ">", "</parameter>", newlines="both"), "</function>"),
    section=Section("<seed:tool_call>\n", "\n</seed:tool_call>", each=True),
    thinking=(("<seed:think>", "</seed:think>"),),
    markup=("<seed:eos>",),
    families=("Seed-OSS",),
)
GLM45 = Format(
    "glm45",
    (
        "<tool_call>",
        Name(),
        "\n",
        Pairs("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>", newlines="none"),
        "</tool_call>",
    ),
    aliases=("glm47", "glm", "ling3", "poolside_v1", "spark25"),
    families=("GLM 4.5", "GLM 4.6", "GLM 4.7", "Ling 3", "Poolside"),
)
HY_V3 = Format(
    "hy_v3",
    (
        "<tool_call>",
        Name(),
        "<tool_sep>\n",
        Pairs("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>", newlines="none"),
        "</tool_call>",
    ),
    section=Section("<tool_calls>\n", "\n</tool_calls>"),
    aliases=("hy_v4", "hunyuan"),
    families=("Hunyuan 3", "Hunyuan 4"),
)
MINICPM5 = Format(
    "minicpm5",
    (NameTag("function", "name"), TagParameters("param", "name"), Tag("function", closing=True)),
    families=("MiniCPM5",),
)
DOTS = Format(
    "dots",
    (NameTag("invoke", "name"), "\n", TagParameters("parameter", "name"), Tag("invoke", closing=True)),
    section=Section("<dots_function_call>", "</dots_function_call>"),
    also=(Shape((Envelope(),), Section("<dots_function_call>", "</dots_function_call>")),),
    families=("dots",),
)
STEP3 = Format(
    "step3",
    (
        "<｜tool_call_begin｜>function<｜tool_sep｜>",
        NameTag("steptml:invoke", "name"),
        TagParameters("steptml:parameter", "name"),
        Tag("steptml:invoke", closing=True),
        "<｜tool_call_end｜>",
    ),
    section=Section("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"),
    families=("Step 3",),
)
K2_HORIZON = Format(
    "k2_horizon",
    (
        "<ifm|tool_call>",
        Name(),
        Pairs(
            "<ifm|arg_key>",
            "</ifm|arg_key><ifm|arg_value>",
            "</ifm|arg_value>",
            newlines="none",
            kind=("</ifm|arg_key><ifm|arg_type>", "</ifm|arg_type><ifm|arg_value>"),
        ),
        "</ifm|tool_call>",
    ),
    section=Section("<ifm|tool_calls>", "</ifm|tool_calls>"),
    also=(
        Shape(("<ifm|tool_call>", Envelope(), "</ifm|tool_call>"), Section("<ifm|tool_calls>", "</ifm|tool_calls>")),
    ),
    families=("K2 Horizon",),
)
KIMI_K3 = Format(
    "kimi_k3",
    (
        '<|open|>call tool="',
        Name(attribute=True),
        Skip('" index="{number}'),
        '"<|sep|>',
        Pairs(
            '<|open|>argument key="',
            '"<|sep|>',
            "<|close|>argument<|sep|>",
            newlines="none",
            kind=('" type="', '"<|sep|>'),
        ),
        "<|close|>call<|sep|>",
    ),
    section=Section("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),
    separator="",
    thinking=(("<|open|>think<|sep|>", "<|close|>think<|sep|>"),),
    markup=("<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>"),
    families=("Kimi K3",),
)
_MUSE = (
    NameTag("atem:invoke", "name"),
    "\n",
    TagParameters("atem:parameter", "name"),
    Tag("atem:invoke", closing=True),
)
MUSE = Format(
    "muse",
    _MUSE,
    section=Section("<|message|><atem:function_calls>\n", "\n</atem:function_calls><|eom|>"),
    also=(
        Shape(("<|start|>assistant to=", Recipient(), "<|message|><atem:function_calls>\n", *_MUSE)),
        Shape(("to=", Recipient(), "<|message|><atem:function_calls>\n", *_MUSE)),
        Shape(_MUSE, Section("<atem:function_calls>\n", "\n</atem:function_calls>")),
    ),
    aliases=("musespark1x", "muse_glimmer"),
    thinking=(("to=self<|message|>", "<|eom|>"), ("<|start|>assistant to=self<|message|>", "<|eom|>")),
    answer=(("to=user<|message|>", "<|eom|>"), ("<|start|>assistant to=user<|message|>", "<|eom|>")),
    markup=("<|eom|>",),
    families=("Muse",),
)
_MINIMAX = "]<]minimax[>["
MINIMAX_M3 = Format(
    "minimax_m3",
    (f'{_MINIMAX}<invoke name="', Name(attribute=True), '">', NestedTags(_MINIMAX), f"{_MINIMAX}</invoke>"),
    section=Section(f"{_MINIMAX}<tool_call>\n", f"\n{_MINIMAX}</tool_call>"),
    thinking=(("<mm:think>", "</mm:think>"), ("<think>", "</think>")),
    aliases=("minimax-m3",),
    families=("MiniMax M3",),
)

PARAMETERS = (
    INVOKE,
    MINIMAX_M2,
    DEEPSEEK_V32,
    DEEPSEEK_V4,
    DEEPSEEK_V41,
    QWEN3_CODER,
    MIMO,
    SEED_OSS,
    GLM45,
    HY_V3,
    MINICPM5,
    DOTS,
    STEP3,
    K2_HORIZON,
    KIMI_K3,
    MUSE,
    MINIMAX_M3,
)
