"""Model strings, keys and addresses."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import httpx2
import pytest

from agentkit import Agent, models
from agentkit.errors import ConfigError
from agentkit.models import (
    AnthropicModel,
    BedrockModel,
    GeminiModel,
    OpenAIModel,
    ResponsesModel,
    TextCalling,
    model,
)
from agentkit.models.model_strings import PROVIDERS
from agentkit.models.provider import PLACEHOLDER_KEY, RemoteModel
from agentkit.models.sdk_model import SdkModel
from agentkit.models.vendors import VERTEX

KEYS = {
    "openai": "OPENAI_API_KEY",
    "responses": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "bedrock": "AWS_BEARER_TOKEN_BEDROCK",
}
VARIABLES = (
    *KEYS.values(),
    *("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL"),
    *AnthropicModel.vendor.login_variables,
    *VERTEX.login_variables,
)


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("openai:gpt-5", OpenAIModel),
        ("responses:gpt-5", ResponsesModel),
        ("anthropic:claude-x", AnthropicModel),
        ("gemini:gemini-x", GeminiModel),
        ("bedrock:arn:aws:bedrock:us-east-1:1:inference-profile/x:0", BedrockModel),
    ],
)
def test_model_strings(name: str, kind: type[SdkModel]) -> None:
    made = model(name, api_key="k")
    assert isinstance(made, kind)
    assert (made.name, made.format) == (name, None)


def test_model_name_may_hold_colons() -> None:
    assert model("openai:llama3.1:8b", base_url="http://localhost:11434/v1").name == "openai:llama3.1:8b"


def test_text_calling_by_keyword() -> None:
    made = model("openai:gpt-5", api_key="k", format="xml")
    assert isinstance(made, TextCalling)
    assert (made.name, made.format) == ("openai:gpt-5", "xml")


@pytest.mark.parametrize("name", ["cohere:x", "openai:", "openai", "", ":x"])
def test_unknown_model_strings(name: str) -> None:
    with pytest.raises(ConfigError, match="openai:, responses:, anthropic:, gemini:, bedrock: and the model's name"):
        model(name, api_key="k")


def test_forgotten_prefix() -> None:
    with pytest.raises(ConfigError, match="did you mean 'openai:gpt-5'"):
        model("gpt-5")


@pytest.mark.parametrize(
    ("name", "variable"),
    [(f"{prefix}:m", variable) for prefix, variable in KEYS.items() if prefix != "bedrock"],  # boto3 finds its own
)
def test_missing_key(name: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=f"set the environment variable {variable}, or pass api_key="):
        model(name)
    monkeypatch.setenv(variable, "from-the-environment")
    made = model(name)
    assert isinstance(made, RemoteModel)
    assert made._api_key == "from-the-environment"


def test_the_sdks_own_logins_count_as_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "t")
    assert model("anthropic:m").name == "anthropic:m"


KEY = "hunter2-company-token"


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize(
    "key",
    [KEY[:7] + c + KEY[7:] for c in ("\n", "\r\n", "\0", "\x1f", "\x7f", "é", "\u200b", "…", "\ud800", "\ufeff")]
    + [KEY + c for c in ("\0", "é", "\u200b", "…", "\xa0")]
    + ["\ufeff" + KEY],
)
def test_a_key_that_no_header_can_have_is_refused_unseen(name: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variable = KEYS[name]
    with pytest.raises(ConfigError, match=r"the API key of .* has a character that no HTTP header can have") as e:
        model(f"{name}:m", api_key=key)
    assert not any(part in str(e.value) for part in (KEY[:7], KEY[7:]))
    if "\0" not in key and "\ud800" not in key:  # no variable can have these
        monkeypatch.setenv(variable, key)
        with pytest.raises(ConfigError, match=variable):
            model(f"{name}:m")


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("around", [("", "\n"), ("", "\r\n"), (" ", " "), ("\t", "")])
def test_white_space_around_a_key_is_not_part_of_it(name: str, around: tuple[str, str]) -> None:
    made = model(f"{name}:m", api_key=KEY.join(around))
    assert isinstance(made, RemoteModel | BedrockModel)
    assert (made._api_key, KEY in made._secrets) == (KEY, True)


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_models_name_can_be_encoded(name: str) -> None:
    with pytest.raises(ConfigError, match="has a character that no encoding can represent"):
        model(f"{name}:m\udcff", api_key=KEY)


def test_server_without_keys() -> None:
    made = model("openai:m", base_url="http://localhost:8000/v1")
    assert isinstance(made, RemoteModel)
    assert (made._api_key, made.provider) == (PLACEHOLDER_KEY, "localhost:8000")


def test_address_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://proxy.example/anthropic")
    made = model("anthropic:m")
    assert isinstance(made, RemoteModel)
    assert made.provider == "proxy.example"


@pytest.mark.parametrize("url", ["https://api.openai.com/v1/", "https://eu.api.openai.com/v1"])
def test_the_providers_own_addresses(url: str) -> None:
    made = model("openai:m", api_key="k", base_url=url)
    assert isinstance(made, RemoteModel)
    assert made.provider == "openai"


def test_another_host_with_a_like_name() -> None:
    made = model("openai:m", base_url="https://notapi.openai.com/v1")
    assert isinstance(made, RemoteModel)
    assert made.provider == "notapi.openai.com"


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x/v1", "http://"])
def test_bad_address(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url must be a URL such as"):
        model("openai:m", base_url=url)


UNUSUAL = (*map(chr, range(0x20)), "\x7f", "\x85", "\u200b", "\ud800", "¹", " ", "\\", "[", "%", "..", "@", "9" * 70)


def spoilt(url: str) -> Iterator[str]:
    """The URL with something that hardly any has, in each place; also without its scheme."""
    for wrong in UNUSUAL:
        for at in range(len("http://"), len(url) + 1):
            yield url[:at] + wrong + url[at:]
    yield from (url.removeprefix("http:"), url.removeprefix("http://"), url + "/x" * 40_000, "http://999.1.1.1/")


def test_a_url_is_usable_or_refused_in_the_same_words() -> None:
    """Without showing the password."""
    counts, http_client = Counter[bool](), httpx2.AsyncClient()
    for url in spoilt("http://u:SECRET@h.example:1/v1?key=SECRET"):
        told = None
        try:
            made = model("openai:m", api_key="k", base_url=url, http_client=http_client)
            assert isinstance(made, RemoteModel)
            made._made_client()
        except ConfigError as e:
            told = str(e)
        counts[told is None] += 1
        if told is not None:
            assert told.startswith("openai:m: base_url must be a URL such as http://127.0.0.1:8000/v1, found ")
            assert not re.search("SEC|CRET", told)
    assert min(counts.values()) > 500, "most of them are usable"


def test_a_host_that_cannot_exist_is_refused_before_a_request() -> None:
    with pytest.raises(ConfigError, match="base_url must be a URL such as"):
        Agent(model("openai:m", api_key="k", base_url="http://999.1.1.1/v1")).run_sync("Hi")


def test_what_is_shown_of_a_model() -> None:
    assert repr(model("openai:m", api_key="k")) == "<openai:m>"
    assert repr(model("openai:m", base_url="http://u:secret@h:1/v1")) == "<openai:m at h:1>"


def test_models_are_light_until_they_are_asked() -> None:
    script = (
        "import sys, agentkit.models as m; m.model('openai:x', api_key='k'); m.model('anthropic:x', api_key='k');"
        "from agentkit import testing; testing.ScriptedModel(['hi']); testing.Replay([]);"
        "print([n for n in ('openai', 'anthropic', 'httpx2', 'pydantic', 'lxml') if n in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_each_prefix_is_a_module_with_its_model() -> None:
    """One table: what the package offers by name, and what checkers see, follows from it."""
    for prefix, name in PROVIDERS.items():
        made = model(f"{prefix}:m", api_key="k")
        assert isinstance(made, SdkModel)
        assert (type(made).__name__, type(made).__module__) == (name, f"agentkit.models.{prefix}")
        assert made.prefix == prefix
        assert name in models.__all__


@pytest.mark.parametrize("prefix", PROVIDERS)
def test_no_providers_file_leans_on_another_ones(prefix: str) -> None:
    source = inspect.getsource(importlib.import_module(f"agentkit.models.{prefix}"))
    assert not re.search(rf"agentkit\.models\.(?!{prefix}\b)({'|'.join(PROVIDERS)})\b", source)
