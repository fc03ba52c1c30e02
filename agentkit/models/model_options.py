"""The options of `model(…)`: each is declared once, with its type, its default, its bounds and its meaning.

A line of a class is the whole declaration: the signature of `model`, its page and its error messages come from here.
Knows no provider. The bounds are read from the annotations, which are therefore not strings in this file.
"""

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeVar, get_origin

from agentkit.checks import bounds
from agentkit.checks.bounds import Bound, or_none
from agentkit.checks.keys import shown_url
from agentkit.checks.spelling import takes
from agentkit.foreign.elsewhere import at
from agentkit.models import servers
from agentkit.models.secrets import is_secret

if TYPE_CHECKING:
    from agentkit.formats.format import Format

P = ParamSpec("P")
ValueT = TypeVar("ValueT")
MadeT = TypeVar("MadeT")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """The settings for all requests of one model.

    Args:
        base_url: the URL of a compatible server; None for the provider's own, or the one in `OPENAI_BASE_URL`,
            `ANTHROPIC_BASE_URL` or `GOOGLE_GEMINI_BASE_URL`.
        server: the kind of server at `base_url`: `vllm`, `sglang`, `llamacpp`, `ollama` or `lmstudio`. With a `format`
            it is then requested to leave the calls in the text, by the fields that it expects.
        api_key: None uses `OPENAI_API_KEY`, `ANTHROPIC_API_KEY` or `GEMINI_API_KEY`, for Bedrock boto3's credentials.
            With a `base_url` it may be missing.
        timeout: seconds without a byte from the server before the request fails; not a limit on a whole response.
        max_response: the maximum size of one response in bytes, decompressed.
        linger: seconds to wait for the usage of a response that has finished, if the server neither sends it nor ends
            the stream.
        max_retries: further attempts after a temporary failure, before the first event came; with back-off, or after
            the time that the provider names.
        max_tokens: limit on the tokens of one response, if a request sets none. Anthropic requires a number, and gets
            16,384.
        temperature: used if a request sets none.
        cache: whether to mark requests for the provider's prompt cache: tools, system prompt and conversation.
            Anthropic and Bedrock cache nothing without marks, and charge a quarter more for what is written and nine
            tenths less for what is read again. The others cache automatically.
        extra: further fields of the request's body, such as `{"reasoning_effort": "low"}`. They override agentkit's
            own, and None removes a field.
        headers: further HTTP headers.
        http_client: an `httpx2.AsyncClient` to use, for proxies, certificates and tests. Agentkit never closes it; it
            belongs to one event loop. Not for Bedrock: boto3 has settings of these.
        continues: whether the model continues its own last message, exactly where that ends, so that a text call that
            was cut by the token limit can be continued. None: as far as is known (Claude before 4.6, Mistral's API and
            DeepSeek's beta do). True for a server that does, such as vLLM and SGLang, which then receive the field for
            it, or llama.cpp and Ollama.
        sleep: waits between attempts.
        dice: random numbers from 0 to 1, for the jitter of the back-off.

    Raises:
        ConfigError: an option is out of its bounds. Options that may contain a secret have none: they are never shown.
    """

    base_url: Annotated[str | None, or_none(bounds.TEXT, "for the provider's own")] = field(default=None, repr=False)
    server: Annotated[str | None, servers.NAMED] = None
    api_key: str | None = field(default=None, repr=False)
    timeout: Annotated[float, bounds.SECONDS] = 600.0
    max_response: Annotated[int, bounds.whole(1, "bytes")] = 256 * 1024 * 1024  # 128,000 tokens of 1 kB are half of it
    linger: Annotated[float, bounds.number("seconds, 0 or more", above=-1e-9)] = 1.0
    max_retries: Annotated[int, bounds.whole(0)] = 2
    max_tokens: Annotated[int | None, or_none(bounds.whole(1), "for the model's own")] = None
    temperature: Annotated[
        float | None, or_none(bounds.number("a number, 0 or more", above=-1e-9), "for the provider's own")
    ] = None
    cache: Annotated[bool, bounds.YES_OR_NO] = False
    extra: Annotated[
        Mapping[str, Any] | None, or_none(bounds.instance(Mapping, "fields of the request's body by name"))
    ] = field(default=None, repr=False)
    headers: Mapping[str, str] | None = field(default=None, repr=False)
    http_client: Any = field(default=None, repr=False)
    continues: Annotated[bool | None, or_none(bounds.YES_OR_NO, "for what is known about the model")] = None
    sleep: Callable[[float], Awaitable[None]] = field(default=asyncio.sleep, repr=False)
    dice: Callable[[], float] = field(default=random.random, repr=False)

    def __post_init__(self) -> None:
        bounds.refuse("model", {f.name: getattr(self, f.name) for f in fields(self)}, _bounds(self))

    def __repr__(self) -> str:
        """The settings, except keys, and without the credentials in the URL."""
        told = {f.name: getattr(self, f.name) for f in fields(ModelSettings) if f.repr}
        url = {} if self.base_url is None else {"base_url": shown_url(self.base_url)}
        extra = {k: "[key]" if is_secret(k) else v for k, v in (self.extra or {}).items() if v is not None}
        return f"Settings({', '.join(f'{k}={v!r}' for k, v in {**url, **told, 'extra': extra}.items())})"


@takes(others=at("model"), owner="model")
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ModelOptions(ModelSettings):
    """The options of `model(…)`: the settings of the model that it creates, and these.

    Args:
        name: `openai:…` (chat completions), `responses:…`, `anthropic:…`, `gemini:…` or `bedrock:…`, then the
            provider's name of the model.
        format: make it write its calls as text in this format (`xml`, `invoke`, `hermes`, …, or your own `Format`)
            instead of native calls.
        constrained: constrain those calls by a grammar, in the form that `server` expects: `vllm`, `sglang` or
            `llamacpp`. The model can then only write calls of offered tools, with arguments that fit. True lets it
            think first, between the format's tags or in thinking that the server separates; `no_thinking` if it must
            not; `begun_thinking` if the chat template has opened the thinking and the server leaves it in the text.
        stateful: let the provider store the conversation (`responses:…` only): a request then has the id of the last
            stored response and only what is new since. All of it is sent if the provider does not find that response,
            or if the conversation before it was changed.
    """

    name: str = field(kw_only=False)
    format: "str | Format | None" = None  # a string: loading the formats would take longer than all the rest
    constrained: Annotated[servers.Constrained, servers.CONSTRAINED] = False
    stateful: Annotated[bool, bounds.YES_OR_NO] = False


def _bounds(options: ModelSettings) -> dict[str, Bound]:
    """The bounds in the annotations of the fields."""
    hints: dict[str, Any] = {one.name: one.type for one in fields(options)}
    return {name: hint.__metadata__[0] for name, hint in hints.items() if get_origin(hint) is Annotated}


def by(options: Callable[P, ValueT]) -> Callable[[Callable[[ValueT], MadeT]], Callable[P, MadeT]]:
    """Turn a function of one value into one that accepts the fields of that value: the same arguments, the same types.

    The arguments' descriptions are added to its docstring.
    """

    def decorate(function: Callable[[ValueT], MadeT]) -> Callable[P, MadeT]:
        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> MadeT:
            return function(options(*args, **kwargs))

        signature = inspect.signature(options)
        plain = [one.replace(annotation=_plain(one.annotation)) for one in signature.parameters.values()]
        returned = inspect.signature(function).return_annotation
        called.__signature__ = signature.replace(parameters=plain, return_annotation=returned)  # type: ignore[attr-defined]
        called.__doc__ = f"{inspect.getdoc(function)}\n\nArgs:\n{_described(options)}"
        return called

    return decorate


def _plain(hint: Any) -> Any:
    return hint.__origin__ if get_origin(hint) is Annotated else hint


def _described(options: Any) -> str:
    """The `Args` of a class and of its base classes."""
    pages = [inspect.getdoc(cls) or "" for cls in inspect.getmro(options)[:-1]]
    return "\n".join(page.partition("Args:\n")[2].partition("\n\n")[0] for page in pages)
