"""The chat templates that trl carries, as published with the models; read where trl is installed, none of it is run."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
from small_tokenizers import with_template

from agentkit.rollout.tokens.chat_template import TURN_ENDS

FOUND = importlib.util.find_spec("trl")
FOLDER = Path(FOUND.origin or "").parent / "chat_templates" if FOUND is not None else None
NATIVE = {
    "gemma4": "gemma4", "glm4moe": "glm45", "gptoss": "harmony", "lfm2_2_5": "lfm2", "llama3_1": "llama3_json",
    "llama3_2": "llama3_json", "muse_glimmer": "muse", "nemotron_3_nano": "qwen3_coder", "qwen2_5": "hermes",
    "qwen3": "hermes", "qwen3_5_think": "qwen3_coder", "qwen3_6": "qwen3_coder", "qwen3_instruct_2507": "hermes",
}  # fmt: skip
"""Templates that show tools, and the formats of their calls."""
TAUGHT = ("deepseek_r1_distill", "gemma", "gemma3", "llama3", "phi3", "phi3_5")
SPECIAL = re.compile(
    r"<[|｜][^\s<>|｜'\"]{1,40}[|｜]>|<\|[a-z_]+>|<[a-z_]+\|>|<(?:start|end)_of_turn>|<bos>|</s>|\[/?[A-Z_]{3,20}\]"
)


def published(name: str) -> Any:
    """A tokenizer with the template of this name."""
    if FOLDER is None or not (FOLDER / f"{name}.jinja").exists():
        pytest.skip(f"the package `trl` is not installed, or has no template {name}")
    source = (FOLDER / f"{name}.jinja").read_text(encoding="utf-8")
    end = next((end for end in TURN_ENDS if end in source and end not in ("<|observation|>", "<|user|>")), "</s>")
    return with_template(source, sorted({*SPECIAL.findall(source), end}), end)
