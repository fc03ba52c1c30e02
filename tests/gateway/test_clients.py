"""Clients of others, unmodified, have a conversation with two tools, whatever the upstream writes."""

from collections.abc import Iterator

import pytest
from client_programs import PROGRAMS
from gateway_kit import gateway
from scripted_upstream import EXPECTED, ScriptedUpstream, scripted_upstream, settings

CLIENTS = (
    "openai chat", "openai responses", "anthropic", "openai-agents chat", "openai-agents responses",
    "pydantic-ai chat", "pydantic-ai responses", "pydantic-ai anthropic",
)  # fmt: skip
"""Those in the development environment; `benchmarks/gateway_clients.py` has the others."""

UPSTREAMS = ("auto-native-chat", "auto-hermes-chat", "taught-xml-messages", "auto-kimi_k2-responses")
FORMATS = ("xml", "qwen3_coder", "llama3_json", "mistral", "deepseek_v31", "harmony", "minimax_m2", "pythonic")


@pytest.fixture(scope="module")
def upstream() -> Iterator[ScriptedUpstream]:
    with scripted_upstream() as server:
        yield server


@pytest.fixture(scope="module")
def url(upstream: ScriptedUpstream) -> Iterator[str]:
    with gateway(settings(upstream.url, ("hermes", "kimi_k2", *FORMATS))) as address:
        yield address


@pytest.mark.share(3)  # in which each client and each upstream has its turn
@pytest.mark.parametrize("model", UPSTREAMS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_has_its_conversation(client: str, model: str, url: str, upstream: ScriptedUpstream) -> None:
    for streamed in (True, False):
        assert PROGRAMS[client](url, model, streamed) == EXPECTED
    assert upstream.refused == []


@pytest.mark.parametrize("format", FORMATS)
def test_a_model_writes_its_calls_in_a_format(format: str, url: str) -> None:
    for mode in ("taught", "auto"):
        assert PROGRAMS["openai chat"](url, f"{mode}-{format}-chat", True) == EXPECTED
