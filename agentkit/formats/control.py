"""Control tokens: the strings that a model family's chat template or tokenizer reads as special, anywhere in a text.

A server that tokenizes its rendered prompt with special tokens treats each of them as real, even inside a tool's result
or description: it ends the turn or begins another one. Data, and the pattern that finds it; knows no format.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

MARK: Final = "\u206f"
"""Cuts text that must not be read. Invisible, part of no token, and deprecated since Unicode 3: no other text has it.

It comes after the first character, as in `<MARK|im_end|>`: a model that copies it and one that leaves it out both
pass on the original. Where data have it all the same, every run of it is shown one longer, and made one shorter again.
"""

PIPED: Final = rf"<[|｜][^\s<>&]{{1,64}}>|<[^\s<>&/|｜{MARK}][^\s<>&|｜]{{0,63}}[|｜]>"
"""Tokens between pipes, regardless of their name: `<|im_end|>`, `<｜User｜>`, `<|turn>`, `<turn|>`, `<|"|>`.

Most current families write all of theirs like this, so new ones are covered before they are listed. `<|>` and `a <| f`
do not match. Source: the chat templates and tokenizer configurations of the families below, and of Qwen, Kimi K2,
GLM 4.5, gpt-oss, Phi 3/4, Llama 3/4, Cohere Command, DeepSeek V3, Apertus, GigaChat, PLaMo, LFM2, Gemma 4.
"""

SERIES: Final[Mapping[tuple[str, str], str]] = {
    ("<reserved_", ">"): "Baichuan 1/2: its turns are `<reserved_106>` and `<reserved_107>`; generation_utils.py",
    ("<SPECIAL_", ">"): "tekken.json of Mistral, and of Apertus and Nemotron, whose turns are some of these",
    ("<unused", ">"): "tokenizer_config.json of google/gemma-3-4b-it",
    ("<extra_id_", ">"): "T5, and the chat templates of Nemotron 4",
    ("[UNUSED_TOKEN_", "]"): "tokenizer_config.json of internlm/internlm2_5-7b-chat: its turns are 141 to 146",
    ("[control_", "]"): "tokenizer_config.json of mistralai/Mistral-7B-Instruct-v0.3",
}
"""Tokens that a family numbers, by the text before and after the number, each with its source."""

FAMILIES: Final[Mapping[str, tuple[str, ...]]] = {
    # tokenizer.model and chat template of meta-llama/Llama-2-7b-chat-hf
    "Llama 2": ("<s>", "</s>", "<unk>", "[INST]", "[/INST]", "<<SYS>>", "<</SYS>>"),
    # tekken.json of mistralai/Mistral-Small-3.2-24B-Instruct-2506, mistral_common/tokens/tokenizers/base.py
    "Mistral": (
        "<s>", "</s>", "<unk>", "<pad>", "[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]",
        "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]",
        "[TOOL_CONTENT]", "[ARGS]", "[CALL_ID]", "[THINK]", "[/THINK]", "[IMG]", "[IMG_BREAK]", "[IMG_END]",
        "[AUDIO]", "[BEGIN_AUDIO]", "[TRANSCRIBE]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[MODEL_SETTINGS]",
        "[/MODEL_SETTINGS]", "[REF]", "[/REF]",
    ),
    # tokenizer_config.json of google/gemma-3-4b-it, google/gemma-3n-E4B-it and google/functiongemma-270m-it
    "Gemma 2/3": (
        "<bos>", "<eos>", "<pad>", "<unk>", "<mask>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>",
        "<end_of_image>", "<image_soft_token>", "<start_of_audio>", "<end_of_audio>", "<audio_soft_token>",
        "<start_function_call>", "<end_function_call>",
        "<start_function_response>", "<end_function_response>", "<start_function_declaration>",
        "<end_function_declaration>", "<escape>",
    ),
    # tokenizer_config.json of THUDM/glm-4-9b-chat
    "GLM 4": ("[gMASK]", "[MASK]", "[sMASK]", "<sop>", "<eop>"),
    # tokenizer_config.json of moonshotai/Kimi-K2-Instruct
    "Kimi": ("[BOS]", "[EOS]", "[PAD]", "[UNK]", "[EOT]", "[start_header_id]", "[end_header_id]"),
    # tokenizer_config.json of CohereForAI/c4ai-command-r7b-12-2024
    "Cohere": (
        "<BOS_TOKEN>", "<EOS_TOKEN>", "<PAD>", "<UNK>", "<CLS>", "<SEP>", "<MASK_TOKEN>", "<EOP_TOKEN>",
    ),
    # tokenizer_config.json of MiniMaxAI/MiniMax-M2 and MiniMaxAI/MiniMax-M3
    "MiniMax": (
        "]~!b[", "]~b]", "[e~[", "]!p~[", "]!d~[", "]<]speech[>[", "]<]image[>[", "]<]video[>[", "]<]frame[>[",
        "]<]start of speech[>[", "]<]end of speech[>[", "]<]start of image[>[", "]<]end of image[>[",
        "]<]start of video[>[", "]<]end of video[>[", "]<]vision pad[>[", "]<]minimax[>[",
    ),
    # chat template and tokenizer_config.json of ByteDance-Seed/Seed-OSS-36B-Instruct
    "Seed-OSS": (
        "<seed:bos>", "<seed:eos>", "<seed:pad>", "<seed:think>", "</seed:think>", "<seed:tool_call>",
        "</seed:tool_call>", "<seed:cot_budget_reflect>", "</seed:cot_budget_reflect>",
    ),
    # chat template and tokenizer_config.json of LGAI-EXAONE/EXAONE-4.0.1-32B
    "EXAONE": ("[|system|]", "[|user|]", "[|assistant|]", "[|tool|]", "[|endofturn|]"),
    # chat template of vivo-ai/BlueLM-7B-Chat; that of Skywork/Skywork-13B-chat
    "BlueLM, Skywork": ("[|Human|]", "[|AI|]", "[USER]", "[BOT]"),
    # chat template and tokenizer.json of inclusionAI/Ling-mini-2.0; processor of inclusionAI/Ming-lite-omni
    "Ling": ("<role>", "</role>", "<imagePatch>", "<gen_image>", "</gen_image>", "<gen_imagePatch>"),
    # chat templates of meituan-longcat/LongCat-Flash-Chat and LongCat-Flash-Lite; model code of LongCat-Next
    "LongCat": (
        "<longcat_s>", "</longcat_s>", "<longcat_system>", "<longcat_user>", "<longcat_assistant>", "<longcat_think>",
        "</longcat_think>", "<longcat_tool_call>", "</longcat_tool_call>", "<longcat_arg_key>", "</longcat_arg_key>",
        "<longcat_arg_value>", "</longcat_arg_value>", "<longcat_observation>", "<longcat_files>",
        "<longcat_img_start>", "<longcat_img_end>", "<longcat_img_pad>", "<longcat_img_newline>",
        "<longcat_img_token_size>", "</longcat_img_token_size>", "<longcat_audio_start>", "<longcat_audio_end>",
        "<longcat_audio_pad>", "<longcat_audiogen_start>", "<longcat_audiogen_end>",
    ),
    # chat templates of baichuan-inc/Baichuan-M1-14B-Instruct and Baichuan-Omni-1d5; `SERIES` has those of 1 and 2
    "Baichuan": (
        "<B_SYS>", "<C_Q>", "<C_A>", "<audio_start_baichuan>", "<audio_end_baichuan>", "<video_start_baichuan>",
        "<video_end_baichuan>", "<audiotext_start_baichuan>",
    ),
    # chat template of Tele-AI/TeleChat2-35B and TeleChat3
    "TeleChat": ("<_system>", "<_user>", "<_bot>", "<_end>"),
    # added tokens of OpenGVLab/InternVL2_5-8B, internlm/Intern-S1 and Qwen/Qwen-VL-Chat
    "InternVL, Qwen-VL": (
        "<IMG_CONTEXT>", "<img>", "</img>", "<imgpad>", "<quad>", "</quad>", "<ref>", "</ref>", "<box>", "</box>",
    ),
    # tokenizer_config.json of Qwen/Qwen3-Omni-30B-A3B-Instruct
    "Qwen-Omni": ("<tts_pad>", "<tts_text_bos>", "<tts_text_eod>", "<tts_text_bos_single>"),
    # tokenizer_config.json of openbmb/MiniCPM-V-2_6 and MiniCPM-o
    "MiniCPM-V": ("</image>", "<slice>", "</slice>", "<image_id>", "</image_id>", "<unit>", "</unit>"),
    # tokenizer_config.json of tiiuae/falcon-7b and tiiuae/Falcon-H1-34B-Instruct
    "Falcon": (
        ">>TITLE<<", ">>ABSTRACT<<", ">>INTRODUCTION<<", ">>SUMMARY<<", ">>COMMENT<<", ">>ANSWER<<", ">>QUESTION<<",
        ">>DOMAIN<<", ">>PREFIX<<", ">>SUFFIX<<", ">>MIDDLE<<",
    ),
    # tokenizer_config.json of bigcode/starcoder2 and ibm-granite/granite-20b-functioncalling
    "StarCoder, Granite 20B": (
        "<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>", "<file_sep>", "<repo_name>", "<reponame>",
        "<filename>", "<gh_stars>", "<commit_before>", "<commit_msg>", "<commit_after>", "<issue_start>",
        "<issue_comment>", "<issue_closed>", "<jupyter_start>", "<jupyter_text>", "<jupyter_code>",
        "<jupyter_output>", "<empty_output>",
    ),
    # processors of LLaVA, Qwen-VL, Idefics 3 and Ultravox: placeholders for a picture or a sound
    "media": ("<image>", "<audio>", "<video>", "<fake_token_around_image>", "<end_of_utterance>"),
    # tokenizers of the BERT and T5 kinds
    "others": ("[CLS]", "[SEP]", "<cls>", "<sep>"),
}  # fmt: skip
"""Other tokens, by family, each with its source. A tag among them (`<img>`) is one only to the letter: no attribute."""

FIRST: Final = "<[]>"
"""The first characters of tokens."""


@cache
def tokens() -> tuple[str, ...]:
    """Return every listed token, the longer ones first."""
    found = {token for family in FAMILIES.values() for token in family}
    return tuple(sorted(found, key=lambda t: (-len(t), t)))


@cache
def pattern() -> str:
    """Return a regular expression for any control token."""
    series = (rf"{re.escape(before)}\d{{1,6}}{re.escape(after)}" for before, after in SERIES)
    return "|".join([PIPED, *series, *map(re.escape, tokens())])


@cache
def _regex() -> re.Pattern[str]:
    return re.compile(pattern())


def token_in(text: str) -> str:
    """Return the first control token in a text; empty if there is none."""
    found = _regex().search(text)
    return found[0] if found else ""


_RUN: Final = re.compile(f"{MARK}({MARK}*)")


def lengthen_marks(text: str) -> str:
    """Return the text with every run of marks in it one longer, so that added marks differ from them."""
    return _RUN.sub(rf"{MARK}\g<0>", text) if MARK in text else text


def restore(value: Any) -> Any:
    """Return a JSON value with the original characters in every string and key that passes on quarantined text.

    For the arguments of calls in text, whose model reads results quarantined; a native model reads them as they are.

    >>> restore({"text": f"ends with <{MARK}|im_end|>"})
    {'text': 'ends with <|im_end|>'}
    """
    return in_strings(value, _shorten_marks)


def _shorten_marks(text: str) -> str:
    return _RUN.sub(r"\1", text) if MARK in text else text


def in_strings(value: Any, change: Callable[[str], str]) -> Any:
    """Return a JSON value with every string and key in it changed."""
    match value:
        case str():
            return change(value)
        case Mapping():
            return {change(key): in_strings(inner, change) for key, inner in value.items()}
        case list():
            return [in_strings(inner, change) for inner in value]
        case _:
            return value
