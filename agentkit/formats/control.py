"""Control tokens: what a model family's chat template or tokenizer reads as special, anywhere in a text.

A server that tokenizes its rendered prompt with special tokens treats each of them as real, even inside a tool's result
or description: it ends the turn or begins another one. Data, and the pattern that finds it; knows no format.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

PIPED: Final = r"<[|｜][^\s<>&]{1,64}>|<[^\s<>&/|｜][^\s<>&|｜]{0,63}[|｜]>"
"""Tokens between pipes, regardless of their name: `<|im_end|>`, `<｜User｜>`, `<|turn>`, `<turn|>`, `<|"|>`.

Most current families write all of theirs like this, so new ones are covered before they are listed. `<|>` and `a <| f`
do not match. Source: the chat templates and tokenizer configurations of the families below, and of Qwen, Kimi K2,
GLM 4.5, gpt-oss, Phi 3/4, Llama 3/4, Cohere Command, DeepSeek V3, Apertus, GigaChat, PLaMo, LFM2, Gemma 4.
"""

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
    # tokenizer_config.json of google/gemma-3-4b-it and google/functiongemma-270m-it
    "Gemma 2/3": (
        "<bos>", "<eos>", "<pad>", "<unk>", "<mask>", "<start_of_turn>", "<end_of_turn>", "<start_of_image>",
        "<end_of_image>", "<image_soft_token>", "<start_function_call>", "<end_function_call>",
        "<start_function_response>", "<end_function_response>", "<start_function_declaration>",
        "<end_function_declaration>", "<escape>",
    ),
    # tokenizer_config.json of THUDM/glm-4-9b-chat
    "GLM 4": ("[gMASK]", "[MASK]", "[sMASK]", "<sop>", "<eop>"),
    # tokenizer_config.json of moonshotai/Kimi-K2-Instruct
    "Kimi": ("[BOS]", "[EOS]", "[PAD]", "[UNK]", "[EOT]"),
    # tokenizer_config.json of CohereForAI/c4ai-command-r7b-12-2024
    "Cohere": (
        "<BOS_TOKEN>", "<EOS_TOKEN>", "<PAD>", "<UNK>", "<CLS>", "<SEP>", "<MASK_TOKEN>", "<EOP_TOKEN>",
    ),
    # tokenizer_config.json of MiniMaxAI/MiniMax-M2
    "MiniMax": ("]~!b[", "]~b]", "[e~[", "]!p~[", "]!d~["),
    # chat template of ByteDance-Seed/Seed-OSS-36B-Instruct
    "Seed-OSS": (
        "<seed:bos>", "<seed:eos>", "<seed:pad>", "<seed:think>", "</seed:think>", "<seed:tool_call>",
    ),
    # chat template and tokenizer_config.json of nvidia/NVIDIA-Nemotron-Nano-9B-v2
    "Nemotron": ("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<extra_id_0>", "<extra_id_1>"),
    # tokenizer_config.json of bigcode/starcoder2 and ibm-granite/granite-20b-functioncalling
    "StarCoder, Granite 20B": (
        "<fim_prefix>", "<fim_middle>", "<fim_suffix>", "<fim_pad>", "<file_sep>", "<repo_name>", "<reponame>",
        "<filename>", "<gh_stars>", "<commit_before>", "<commit_msg>", "<commit_after>", "<issue_start>",
        "<issue_comment>", "<issue_closed>", "<jupyter_start>", "<jupyter_text>", "<jupyter_code>",
        "<jupyter_output>", "<empty_output>",
    ),
    # tokenizer_config.json of internlm/internlm2_5-7b-chat: unused slots that contain the tokens of its turns
    "InternLM": (
        "[UNUSED_TOKEN_141]", "[UNUSED_TOKEN_142]", "[UNUSED_TOKEN_143]", "[UNUSED_TOKEN_144]",
        "[UNUSED_TOKEN_145]", "[UNUSED_TOKEN_146]",
    ),
    # processors of LLaVA, Qwen-VL, Idefics 3 and Ultravox: placeholders for a picture or a sound
    "media": ("<image>", "<audio>", "<video>", "<fake_token_around_image>", "<end_of_utterance>"),
    # tokenizers of the BERT and T5 kinds
    "others": ("[CLS]", "[SEP]", "<cls>", "<sep>"),
}  # fmt: skip
"""Tokens without pipes, by family, each with its source."""


@cache
def tokens() -> tuple[str, ...]:
    """Every listed token, the longer ones first."""
    found = {token for family in FAMILIES.values() for token in family}
    return tuple(sorted(found, key=lambda t: (-len(t), t)))


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile("|".join([PIPED, *map(re.escape, tokens())]))


def token_in(text: str) -> str:
    """The first control token in a text; empty if there is none."""
    found = _pattern().search(text)
    return found[0] if found else ""
