"""Small real tokenizers of transformers, built on the spot: byte-level and metaspace BPE, templates of families.

The templates have the shapes of the families' own, written anew and short.
"""

from __future__ import annotations

import json
import os
from functools import cache
from typing import Any

CORPUS = (
    "the tool result of the call is a number and the sum of one and two is three",
    '{"name": "add", "arguments": {"a": 1, "b": 2}}',
    "What is one plus two? It is three. hello world, I think so.",
    "<function=add><parameter=a>1</parameter></function>",
) * 4

CHATML = """\
{%- macro system() %}{% if messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}{% endmacro -%}
{%- if tools or messages[0].role == 'system' %}<|im_start|>system
{{ system() }}{% if tools %}
# Tools
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}{% endif %}<|im_end|>
{% endif -%}
{%- for message in messages %}
{%- if message.role == 'user' %}<|im_start|>user
{{ message.content }}<|im_end|>
{% elif message.role == 'assistant' %}<|im_start|>assistant
{% if loop.last %}<think>

</think>

{% endif %}{{ message.content }}{% for call in message.tool_calls %}
<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% elif message.role == 'tool' %}{% if messages[loop.index0 - 1].role != 'tool' %}<|im_start|>user{% endif %}
<tool_response>
{{ message.content }}
</tool_response>{% if loop.last or messages[loop.index0 + 1].role != 'tool' %}<|im_end|>
{% endif %}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""The shape of Qwen's: results together in one turn of the user, a thought only in the last turn."""

HEADERS = """\
{{- bos_token }}
{%- for message in messages %}
{%- if message.role == 'tool' %}<|start_header_id|>ipython<|end_header_id|>

{{ message.content | tojson }}<|eot_id|>
{%- elif message.tool_calls %}
{%- if message.tool_calls | length != 1 %}{{ raise_exception('This model only supports single tool-calls at once!') }}
{%- endif %}<|start_header_id|>assistant<|end_header_id|>

{% set call = message.tool_calls[0].function %}
{"name": "{{ call.name }}", "parameters": {{ call.arguments | tojson }}}<|eot_id|>
{%- else %}<|start_header_id|>{{ message.role }}<|end_header_id|>

{% if loop.first and tools %}{% for tool in tools %}{{ tool | tojson }}
{% endfor %}{% endif %}{{ message.content | trim }}<|eot_id|>
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>

{% endif %}"""
"""The shape of Llama 3's: a header for each turn, results as JSON, one call at once, everything else trimmed."""

INSTRUCTIONS = """\
{{- bos_token }}
{%- for message in messages %}
{%- if message.role == 'user' %}
{%- if loop.last and tools %}[AVAILABLE_TOOLS]{{ tools | tojson }}[/AVAILABLE_TOOLS]{% endif -%}
[INST] {{ message.content }}[/INST]
{%- elif message.role == 'tool' %}
{%- set id = message.tool_call_id %}
{%- if id | length != 9 %}{{ raise_exception('ids have nine letters') }}{% endif -%}
[TOOL_RESULTS]{"content": {{ message.content | tojson }}, "call_id": "{{ id }}"}[/TOOL_RESULTS]
{%- elif message.tool_calls %}[TOOL_CALLS][
{%- for call in message.tool_calls %}{%- set function = call.function -%}
{"name": "{{ function.name }}", "arguments": {{ function.arguments | tojson }}, "id": "{{ call.id }}"}
{%- if not loop.last %}, {% endif %}
{%- endfor %}]</s>
{%- elif message.role == 'assistant' %} {{ message.content }}</s>
{%- else %}{{ raise_exception('only user, assistant and tool') }}
{%- endif %}
{%- endfor %}"""
"""The shape of Mistral's: ids of nine letters, no beginning of the model's turn, no system message."""

OBSERVED = """\
[gMASK]<sop>{% if tools %}<|system|>
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}{% endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}{% if messages[loop.index0 - 1].role != 'tool' %}<|observation|>{% endif %}
<tool_response>
{{ message.content }}
</tool_response>
{%- else %}<|{{ message.role }}|>
{{ message.content }}{% for call in message.tool_calls %}
<tool_call>{{ call.function.name }}{% for key, value in call.function.arguments.items() %}
<arg_key>{{ key }}</arg_key>
<arg_value>{{ value }}</arg_value>{% endfor %}
</tool_call>{% endfor %}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}"""
"""The shape of GLM's: a turn ends with the role that speaks next, which is what the model writes last."""

BARE = """\
{%- for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""Shows no tools and no calls."""

FORGETFUL = BARE.replace(
    "{{ message.content }}",
    "{% if message.role == 'assistant' %}{{ message.content.split('</think>')[-1] | trim }}"
    "{% else %}{{ message.content }}{% endif %}",
)
"""Drops earlier thinking and trims, as DeepSeek R1's does."""

SPECIAL = {
    "chatml": ("<|im_start|>", "<|im_end|>", "<|endoftext|>"),
    "headers": ("<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>"),
    "instructions": ("<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_CALLS]",
                     "[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
    "observed": ("[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>", "<|endoftext|>"),
    "bare": ("<|im_start|>", "<|im_end|>", "<|endoftext|>"),
    "forgetful": ("<|im_start|>", "<|im_end|>", "<|endoftext|>"),
}  # fmt: skip
ADDED = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>", "<my_own>", "  ")
"""Ordinary tokens that were added, as in Qwen's vocabulary; one that no list knows; and a run of spaces."""

TEMPLATES = {
    "chatml": CHATML, "headers": HEADERS, "instructions": INSTRUCTIONS, "observed": OBSERVED, "bare": BARE,
    "forgetful": FORGETFUL,
}  # fmt: skip
FORMATS = {"chatml": "hermes", "headers": "llama3_json", "instructions": "mistral", "observed": "glm45"}
"""The format in which each template writes calls."""
ENDS = {"chatml": "<|im_end|>", "headers": "<|eot_id|>", "instructions": "</s>", "observed": "<|endoftext|>"}


def _with_bytes() -> Any:
    """As SentencePiece does it: words begin with a space, and a character without a token becomes its bytes."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    made = Tokenizer(models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    trainer = trainers.BpeTrainer(vocab_size=250, special_tokens=["<unk>"], show_progress=False)
    made.train_from_iterator(CORPUS, trainer)
    learnt = json.loads(made.to_str())["model"]
    vocabulary = learnt["vocab"]
    for number in range(256):
        vocabulary[f"<0x{number:02X}>"] = len(vocabulary)
    merges = [tuple(pair) for pair in learnt["merges"]]
    made.model = models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True)
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return made


@cache
def tokenizer(family: str) -> Any:
    """A tokenizer with the template of this shape; `instructions` has SentencePiece's space before the first word."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")  # it says that there is no torch
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    if family == "instructions":
        made = _with_bytes()
    else:
        made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        made.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        made.train_from_iterator(
            CORPUS, trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
        )
    special = SPECIAL[family]
    out = PreTrainedTokenizerFast(
        tokenizer_object=made,
        bos_token=special[0],
        eos_token=ENDS.get(family, "<|im_end|>"),
        pad_token=special[-1],
        additional_special_tokens=list(special),
        clean_up_tokenization_spaces=False,
    )
    out.add_tokens([AddedToken(text, special=False, normalized=False) for text in ADDED])
    out.chat_template = TEMPLATES[family]
    return out
