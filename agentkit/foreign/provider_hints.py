"""Hints for wrong model strings: the models and servers that people name. Tables, and how they are read.

Pure. It suggests no string that would be refused again, and no OpenAI prefix for a model that is not OpenAI's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Final

from agentkit.checks.keys import shown_url
from agentkit.checks.spelling import nearest
from agentkit.foreign.attributes import same

PROVIDERS: Final[Mapping[str, str]] = {
    **same("openai", "gpt chatgpt chat openai-chat openai-chat-completions"),
    **same("responses", "openai-responses openai_responses"),
    **same("anthropic", "claude anthropic-ai"),
    **same("gemini", "google google-genai google_genai google-gla google_vertexai vertex_ai google-vertex"),
    **same("bedrock", "bedrock_converse bedrock-converse amazon-bedrock amazon_bedrock aws"),
}
"""Other names for our prefixes."""

SERVERS: Final[Mapping[str, str]] = {
    **same("https://RESOURCE.openai.azure.com/openai/v1/", "azure azure_openai azure_ai"),
    "ollama": "http://127.0.0.1:11434/v1",
    "groq": "https://api.groq.com/openai/v1",
    **same("https://api.mistral.ai/v1", "mistral mistralai"),
    "deepseek": "https://api.deepseek.com",
    **same("https://api.x.ai/v1", "xai grok"),
    "openrouter": "https://openrouter.ai/api/v1",
    **same("https://api.together.xyz/v1", "together together_ai"),
    "fireworks": "https://api.fireworks.ai/inference/v1",
    "cerebras": "https://api.cerebras.ai/v1",
    **same("http://127.0.0.1:8000/v1", "vllm hosted_vllm sglang"),
    **same("http://127.0.0.1:1234/v1", "lmstudio lm_studio"),
    "llamacpp": "http://127.0.0.1:8080/v1",
}
"""Prefixes of other providers, and the URLs of their OpenAI-compatible APIs. Source: the page of each provider."""

ROUTERS: Final = frozenset(("litellm", "any-llm", "models"))
"""Prefixes that precede another prefix."""

FAMILIES: Final[Mapping[str, str]] = {
    **same("openai", "gpt chatgpt o1 o3 o4 codex"),
    **same("anthropic", "claude sonnet opus haiku"),
    "gemini": "gemini",
    "grok": "xai",
    **same("mistral", "mistral mixtral codestral magistral ministral devstral"),
    "deepseek": "deepseek",
}
"""How a model's name begins, and who has it. The weights of all others are open: any server may have them."""

_FULL: Final[Mapping[str, str]] = {
    "openai": "gpt-5",
    "anthropic": "claude-sonnet-5",
    "gemini": "gemini-3.5-flash",
    "bedrock": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
}
"""A complete name, for incomplete ones."""

_ADDRESS = re.compile(r"https?:|localhost\b|[\d.]+:\d+|[\w.-]+\.[a-z]+(?::\d+)?/", re.IGNORECASE)
_NO_FAMILY: Final = "https://…"
_ON_BEDROCK = re.compile(r"([a-z-]+\.)?(amazon|anthropic|deepseek|meta|mistral|openai|qwen)\.[a-z]", re.IGNORECASE)


def model_hint(name: str, ours: Collection[str], *, shell: bool = False) -> str:
    """Suggest the most likely model string, as the end of a message.

    Args:
        name: the string.
        ours: the existing prefixes.
        shell: whether it was written on the command line, whose words the message then has.
    """
    served = _in_options if shell else _in_python
    said = name.strip()
    if not said:
        return "; write, for example, 'openai:gpt-5'"
    if _ADDRESS.match(said):
        local = re.match(r"localhost|[\d.]+:", said, re.IGNORECASE)
        address = shown_url(said) if "://" in said else f"http{'' if local else 's'}://{shown_url(said)}"
        return f"; pass a server's URL in addition to the model's name: {served('NAME', address)}"
    prefix, id = _split_prefix(said, ours)
    near = nearest(prefix, ours, PROVIDERS) if prefix not in SERVERS else None
    provider = near if prefix else _family(id, ours)
    if not id or (not prefix and nearest(id, ours) == id and id not in FAMILIES):
        return f"; the model's name is missing after {(prefix or id)!r}"
    if provider is not None:
        return _ours(provider, id)
    address = SERVERS.get(prefix) or SERVERS.get(_provider_of(id) or "") or _NO_FAMILY
    words = not prefix and not _provider_of(id) and all(word.strip(".,!").isalpha() for word in id.split())
    hint = f"; pass the agent's own name as a keyword: name={id!r}" if words and " " not in id else ""
    if words and " " in id:
        id, hint = "NAME", "; pass instructions as a keyword: system='…'"
    return f"; for a server that speaks OpenAI's protocol write {served(_name(id), address)}{'' if shell else hint}"


def _in_python(name: str, address: str) -> str:
    return f"agentkit.model({f'openai:{name}'!r}, base_url={address!r}, api_key=…)"


def _in_options(name: str, address: str) -> str:
    return f"--model openai:{name} --base-url {address}"


def _split_prefix(name: str, ours: Collection[str]) -> tuple[str, str]:
    """Prefix and model, even of a string with another separator or several prefixes; no prefix if none is known."""
    parts = re.split("([:/])", name, maxsplit=1)
    if len(parts) < 3:
        return "", name
    prefix, rest = parts[0].strip().lower(), parts[2].strip()
    if prefix in ROUTERS and rest:
        return _split_prefix(rest, ours)
    if prefix in SERVERS or nearest(prefix, ours, PROVIDERS) is not None:
        return prefix, rest
    tagged = any(map(str.isdigit, prefix))  # `llama3.1:8b`, as Ollama names models
    return ("", name) if parts[1] == "/" or tagged or _provider_of(name) else (prefix, rest)


def _provider_of(id: str) -> str | None:
    """The provider of models whose names begin like this."""
    if _ON_BEDROCK.match(id):
        return "bedrock"
    start = re.split(r"[\s:/._-]|(?<=[a-z])(?=\d)", id.lower(), maxsplit=1)[0]
    short = id.lower()[:2]
    return FAMILIES.get(start) or (FAMILIES.get(short) if short in ("o1", "o3", "o4") else None)


def _family(id: str, ours: Collection[str]) -> str | None:
    owner = _provider_of(id)
    return owner if owner in ours else None


def _name(id: str) -> str:
    return "-".join(id.split())


def _ours(provider: str, id: str) -> str:
    name = _name(id).lower() if _provider_of(id) == provider else _name(id)
    if provider == "anthropic":
        name = name.replace(".", "-")
    half = not any(char.isdigit() for char in name) and _provider_of(name) == provider
    if not half:
        return f"; did you mean {f'{provider}:{name}'!r}?"
    return f"; write the model's full name, such as {f'{provider}:{_FULL[provider]}'!r}"
