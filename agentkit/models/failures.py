"""What an SDK or a connection raises, as a `ProviderError`. Knows the SDKs' exceptions by shape, imports none of them.

No key gets out: known secrets, and whatever looks like one, are blotted out of every text, the causes' included.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any, Final

from agentkit.errors import ProviderError, ProviderErrorKind
from agentkit.models.wire import ErrorInStream

KINDS: Final[Mapping[int, ProviderErrorKind]] = {
    401: "authentication",
    402: "permission",  # no credit left
    403: "permission",
    404: "not_found",
    408: "timeout",
    409: "server",  # a lock inside the provider; both SDKs take it for passing
    429: "rate_limit",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}
"""The kind of each HTTP status; of the others, 4xx is `bad_request` and 5xx `server`."""

CODES: Final[Mapping[str, ProviderErrorKind]] = {
    "api_error": "server",
    "authentication_error": "authentication",
    "billing_error": "permission",
    "context_length_exceeded": "too_long",
    "exceed_context_size_error": "too_long",  # llama.cpp
    "invalid_api_key": "authentication",
    "invalid_prompt": "bad_request",
    "invalid_request_error": "bad_request",
    "model_not_found": "not_found",
    "not_found_error": "not_found",
    "overloaded_error": "overloaded",
    "permission_error": "permission",
    "rate_limit_error": "rate_limit",
    "rate_limit_exceeded": "rate_limit",
    "request_too_large": "too_long",  # Anthropic's bound on bytes, 32 MB
    "server_error": "server",
    "timeout_error": "timeout",
}
"""The kind of each code in an error inside a stream, where there is no status. Any other is `stream`."""

TOO_LONG: Final = re.compile(
    r"""prompt\ is\ too\ long              # Anthropic, Bedrock
    | exceed\ context\ limit              # Anthropic, where the answer's bound does not fit beside the prompt
    | maximum\ context\ length            # OpenAI, vLLM, DeepSeek, OpenRouter
    | exceeds\ the\ context\ window       # OpenAI responses
    | exceeds\ the\ available\ context    # llama.cpp
    | longer\ than\ the\ (?:model's\ context|maximum\ model)\ length    # SGLang; vLLM
    | input\ token\ count\b.{0,40}\ exceeds   # Gemini
    | maximum\ prompt\ length             # xAI
    | reduce\ the\ length\ of\ the\ messages    # Groq
    | input\ is\ too\ long""",
    re.IGNORECASE | re.VERBOSE,
)
"""What providers say of a conversation that does not fit the model, where a code does not tell it from other bad
requests. Source: their words in public bug reports, such as https://github.com/boldsoftware/exe.dev/issues/62,
https://github.com/evalstate/fast-agent/issues/621."""

_SHOWN = 500  # characters of a body that is no JSON, such as a proxy's page
_KEYLIKE = re.compile(r"\b(?:sk|pk|rk|gsk|xai|key)[-_][A-Za-z0-9_\-]{8,}|(?i:bearer)\s+[A-Za-z0-9._\-]{8,}")
_BLOT = "[key]"


def kind_of_status(status: int) -> ProviderErrorKind:
    """The kind of an HTTP error status."""
    return KINDS.get(status, "bad_request" if status < 500 else "server")


def kind_of_code(code: str | None) -> ProviderErrorKind:
    """The kind of an error inside a stream; some servers write an HTTP status as its code."""
    if code and code.isdecimal() and 400 <= int(code[:4]) < 600:
        return kind_of_status(int(code))
    return CODES.get(code or "", "stream")


def without_secrets(value: Any, secrets: Sequence[str]) -> Any:
    """Text, or JSON of any depth, with keys blotted out."""
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, _BLOT)
        return _KEYLIKE.sub(_BLOT, value)
    if isinstance(value, Mapping):
        return {k: without_secrets(v, secrets) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(without_secrets(v, secrets) for v in value)
    return value


def provider_error(error: Exception, *, provider: str, secrets: Sequence[str], request_id: str | None) -> ProviderError:
    """The failure of a request, in agentkit's words.

    Args:
        error: an SDK's exception, an `httpx2` one, damaged JSON, or an `ErrorInStream`.
        provider: who failed.
        secrets: the keys that must not be seen.
        request_id: the provider's id of the request, when it answered.
    """
    for cause in _chain(error):
        if any(secret in str(argument) for secret in secrets for argument in cause.args):
            cause.args = tuple(without_secrets(str(a), secrets) for a in cause.args)
    status = getattr(error, "status_code", None)
    headers = getattr(getattr(error, "response", None), "headers", {})
    body = without_secrets(getattr(error, "body", None), secrets)
    reported = _reported(error, body)
    if isinstance(status, int) and status >= 300:
        kind, shown = kind_of_status(status), f" {status}"
    elif reported is not None:
        status, kind, shown = None, kind_of_code(reported.code), " inside the stream"
    else:
        status, kind, shown = None, _kind_of_connection(error), ""
    code = reported.code if reported is not None else None
    said = str(reported) if reported is not None else _cause_text(error)
    if kind == "bad_request" and (CODES.get(code or "") == "too_long" or TOO_LONG.search(said)):
        kind = "too_long"
    return ProviderError(
        without_secrets(f"{provider}{shown}{f' ({code})' if code else ''}: {said}", secrets),
        kind=kind,
        provider=provider,
        status=status,
        code=code,
        retry_after=retry_after(headers, time.time()),
        request_id=getattr(error, "request_id", None) or request_id,
        body=body,
    )


def broken_off(provider: str, request_id: str | None) -> ProviderError:
    """A stream that ended in good order, yet before the response did."""
    said = "the stream ended before the response did: no finish reason and no closing event came"
    return ProviderError(f"{provider}: {said}", kind="stream", provider=provider, request_id=request_id)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a provider asked to wait: `retry-after-ms`, or `retry-after` in seconds or as a date; else None."""
    try:
        return max(0.0, float(headers["retry-after-ms"]) / 1000)
    except (KeyError, ValueError):
        pass
    asked = headers.get("retry-after")
    if asked is None:
        return None
    try:
        return max(0.0, float(asked))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(asked).timestamp() - now)
    except ValueError:
        return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _reported(error: Exception, body: Any) -> ErrorInStream | None:
    """The provider's own report, if it made one."""
    if isinstance(error, ErrorInStream):
        return error
    if isinstance(body, Mapping):
        return ErrorInStream.of(body.get("error", body))
    if isinstance(body, str) and body:
        return ErrorInStream(body[:_SHOWN], None, body)
    if isinstance(getattr(error, "status_code", None), int):
        return ErrorInStream("no reason given", None, None)
    return None


def _kind_of_connection(error: Exception) -> ProviderErrorKind:
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError):
        return "stream"
    return "timeout" if any("Timeout" in type(e).__name__ for e in _chain(error)) else "connection"


def _cause_text(error: Exception) -> str:
    """The innermost reason: the SDKs themselves only speak of a connection error."""
    *_, cause = _chain(error)
    if isinstance(error, json.JSONDecodeError):
        return f"the response is no JSON: {error} in {error.doc[:_SHOWN]!r}"
    text = str(cause)
    return f"{type(cause).__name__}: {text}" if text else type(cause).__name__
