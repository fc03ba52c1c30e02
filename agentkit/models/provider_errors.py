"""Exceptions of SDKs and connections as a `ProviderError`. Knows the SDKs' exceptions by shape, imports none of them.

No key leaks: known secrets, and anything that looks like one, are redacted in every message, including the causes'.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, Final, NamedTuple, Protocol

from agentkit.checks.unicode import escape_controls
from agentkit.errors import ProviderError, ProviderErrorKind
from agentkit.events import Finish, SourceEvent, Usage
from agentkit.models import error_bodies
from agentkit.models.response_body import Unreadable
from agentkit.models.secrets import without_secrets
from agentkit.models.stream_errors import NO_REASON, ErrorInStream
from agentkit.models.wire import items_of, mapping_of, text_of

KINDS: Final[Mapping[int, ProviderErrorKind]] = {
    401: "authentication",
    402: "billing",
    403: "permission",
    404: "not_found",
    408: "timeout",
    409: "server",  # a lock inside the provider; both SDKs treat it as temporary
    429: "rate_limit",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}
"""The kind of each HTTP status; of the others, 4xx is `bad_request` and 5xx `server`."""

_WORDS: Final[Mapping[ProviderErrorKind, str]] = {
    "billing": "insufficient_quota|billing",
    "permission": "permission_error",
    "authentication": "authentication_error|invalid_api_key",
    # OpenAI; llama.cpp; Anthropic's limit on bytes, 32 MB
    "too_long": "context_length_exceeded|exceed_context_size_error|request_too_large",
    "not_found": "model_not_found|not_found_error",
    "bad_request": "invalid_prompt|invalid_request_error",
    "rate_limit": "rate_?limit|too_?many_?requests|throttl|resource_?exhausted",
    "overloaded": "overload|unavailable|capacity|busy",
    "timeout": "time_?out|timed_?out|deadline",
    "server": "server_?error|server_?exception|internal|upstream|bad_?gateway|api_error",
}
CODES: Final = {kind: re.compile(words, re.IGNORECASE) for kind, words in _WORDS.items()}
"""The kind of each code or type in an error inside a stream, which has no status; the last four are temporary. Source:
openai-agents-python#3969, opencode#25884; Kimi's `engine_overloaded_error`; Bedrock's `ThrottlingException`."""

TOO_LONG: Final = re.compile(
    r"""prompt\ is\ too\ long              # Anthropic, Bedrock
    | exceed\ context\ limit              # Anthropic, if the answer's limit does not fit next to the prompt
    | maximum\ context\ length            # OpenAI, vLLM, DeepSeek, OpenRouter
    | exceeds\ the\ context\ window       # OpenAI responses
    | exceeds\ the\ available\ context    # llama.cpp
    | longer\ than\ the\ (?:model's\ context|maximum\ model)\ length    # SGLang; vLLM
    | input\ token\ count\b.{0,40}\ (?:exceeds|supports)   # Gemini; Vertex AI
    | (?:number\ of\ input\ tokens\ exceeds\ maximum\ length | too\ many\ total\ text\ bytes)   # Nova; Claude
    | prompt\ tokens\b.{0,40}\ exceed\ model\ maximum    # Bedrock, OpenAI's models
    | maximum\ prompt\ length             # xAI
    | reduce\ the\ length\ of\ the\ messages    # Groq
    | input\ is\ too\ long""",
    re.IGNORECASE | re.VERBOSE,
)
"""The words of providers for a conversation that does not fit the model, if no code distinguishes it from other bad
requests. Source: their messages in public bug reports, such as https://github.com/boldsoftware/exe.dev/issues/62,
https://github.com/evalstate/fast-agent/issues/621."""

_ADDRESS_ERRORS = frozenset(("TooManyRedirects", "UnsupportedProtocol", "InvalidURL"))
_NO_CREDIT: Final = "credit balance is too low"  # Anthropic, as a bad request: anthropics/claude-quickstarts#229
_WRONG_KEY: Final = "API_KEY_INVALID"  # Google's reason, with the status 400
_LOGIN_ERRORS = frozenset(("RefreshError", "DefaultCredentialsError", "MutualTLSChannelError"))  # of google.auth
_SHOWN_HEAD = 300  # characters of an interrupted response
_SHOWN = 500  # characters of a body that is not JSON, such as a proxy's page


def kind_of_status(status: int, code: str | None = None) -> ProviderErrorKind:
    """The kind of an HTTP error status, with the provider's code: without credit, OpenAI answers 429."""
    if CODES["billing"].search(code or ""):
        return "billing"
    return KINDS.get(status, "bad_request" if status < 500 else "server")


def kind_of_codes(codes: Iterable[str]) -> ProviderErrorKind:
    """The kind of an error in a stream, by the first known code, type or status; else `stream`. Source: vllm#37011."""
    for code in codes:
        if code.isdecimal() and 400 <= int(code[:4]) < 600:
            return kind_of_status(int(code))
        if kind := next((kind for kind, words in CODES.items() if words.search(code)), None):
            return kind
    return "stream"


class RequestInfo(NamedTuple):
    """A request: the provider, the secrets, the timeout, what may be wrong with the URL, and the caller's exception."""

    provider: str
    secrets: Sequence[str] = ()
    timeout: float = 600.0
    misplaced: str = ""
    handled: BaseException | None = None
    """The exception that the caller was handling when it asked. It did not cause the failure, and stays whole."""


class ReceivedBytes(Protocol):
    """The bytes of a response so far: how many, and the first of them."""

    size: int
    head: bytes


def provider_error(
    error: Exception, asked: RequestInfo, came: ReceivedBytes | None, request_id: str | None
) -> ProviderError:
    """The failure of a request, described by agentkit.

    Args:
        error: an SDK's exception, an `httpx2` one, damaged JSON, an `Unreadable` response, or an `ErrorInStream`.
        asked: the request.
        came: the part of the response that had come; None if none started.
        request_id: the provider's id, if it answered.
    """
    secrets = asked.secrets
    response: Any = getattr(error, "response", None)
    headers = getattr(response, "headers", {})
    for one in _related(error, asked.handled):
        _blot(one, secrets)
    status, body = _answer(error)
    reported = _reported(error, status, body)
    code, delay = _code_and_delay(reported)
    if isinstance(status, int) and status >= 300:
        kind, shown = kind_of_status(status, code), f" {status}"
    elif reported is not None:
        status, kind, shown = None, kind_of_codes(reported.codes), " inside the stream"
    else:
        status, kind, shown = None, _kind_of_connection(error), ""
    said = str(reported) if reported is not None else _cause_text(error, asked.timeout, came)
    if reported is not None and reported.body and said == NO_REASON:
        text = json.dumps(without_secrets(reported.body, secrets), ensure_ascii=False, default=str)
        said += f"; the error begins {text[:_SHOWN]}"
    kind = _kind_by_words(kind, code, said)
    said = error_bodies.redirect_refused(response) or said
    if lack := error_bodies.unread_part(response):
        said += f"; {lack}"
    if reported is None and came is not None and not isinstance(error, json.JSONDecodeError):
        said += f"; {_progress(came, secrets)}"
    url = str(getattr(response, "url", "")).partition("?")[0]
    if status in (404, 405) and f"://{asked.provider}/" in url:  # not the vendor's own server
        said += f"; the request went to {url}"
    if asked.misplaced and (status in (404, 405) or (status is None and kind in ("stream", "bad_request"))):
        said += f" ({asked.misplaced})"
    return ProviderError(
        without_secrets(f"{asked.provider}{shown}{f' ({code})' if code else ''}: {said}", secrets),
        kind=kind,
        provider=asked.provider,
        status=status,
        code=code,
        retry_after=delay if (asked_for := retry_after(headers, time.time())) is None else asked_for,
        request_id=without_secrets(
            getattr(error, "request_id", None) or headers.get("x-request-id") or request_id, secrets
        ),
        body=body,
        advice={"true": True, "false": False}.get(str(headers.get("x-should-retry"))),
    )


def broken_off(asked: RequestInfo, came: ReceivedBytes | None, request_id: str | None) -> ProviderError:
    """A stream that ended properly, but before the response did, like a connection that broke there."""
    said = "the stream ended before the response did: no finish reason and no closing event came"
    said += f"; {_progress(came, asked.secrets)}" if came is not None else ""
    said += f" ({asked.misplaced})" if asked.misplaced else ""
    provider, request_id = asked.provider, without_secrets(request_id, asked.secrets)
    return ProviderError(f"{provider}: {said}", kind="connection", provider=provider, request_id=request_id)


def no_calls(
    provider: str, events: Sequence[SourceEvent], request_id: str | None, *, words: bool = False
) -> ProviderError | None:
    """The failure of a response that says it calls tools but has no call; found in its last events.

    If the response has `words`, that is text or thinking, it stays the answer, and the caller only logs this failure.
    """
    *rest, ending = events
    if not isinstance(ending, Finish) or ending.reason != "tool_calls" or any(not isinstance(e, Usage) for e in rest):
        return None
    said = f"the response says that it calls tools ({ending.raw}), but it has no call{'' if words else ' and no text'}"
    return ProviderError(
        f"{provider}: {said}; the server may have dropped a call that it could not read",
        kind="server",
        provider=provider,
        request_id=request_id,
    )


def _progress(came: ReceivedBytes, secrets: Sequence[str]) -> str:
    """How much had come, and how it begins."""
    if not came.size:
        return "no byte of it had come"
    head = without_secrets(came.head.decode(errors="replace"), secrets)
    shown = head if len(head) <= _SHOWN_HEAD else head[:_SHOWN_HEAD] + "…"
    return f"{came.size:,} bytes had come, which begin {shown!r}"


def _blot(error: BaseException, secrets: Sequence[str]) -> None:
    """Reduce an exception to what JSON can express, without secrets, and escape control characters in its message.

    Its other attributes become None, such as a request with its headers and URL, or a response that repeats them.
    """
    shown = tuple(_readable(arg, secrets) for arg in error.args)
    if shown != error.args:
        error.args = shown
    for name, value in vars(error).items():
        known = isinstance(value, str | int | float | Mapping | list | tuple)
        clean = _readable(value, secrets) if name == "message" else without_secrets(value, secrets)
        vars(error)[name] = clean if known else None


def _readable(value: object, secrets: Sequence[str]) -> object:
    """A part of an exception's message, fit to be shown."""
    value = without_secrets(value, secrets)
    return escape_controls(value) if isinstance(value, str) else value


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that a provider asked to wait: `retry-after-ms`, or `retry-after` in seconds or as a date; or None."""
    for name, in_a_second in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(KeyError, ValueError):
            if isfinite(seconds := float(headers[name]) / in_a_second):
                return max(0.0, seconds)
    with suppress(KeyError, ValueError):
        return max(0.0, parsedate_to_datetime(headers["retry-after"]).timestamp() - now)
    return None


def _related(error: BaseException, handled: BaseException | None) -> Iterable[BaseException]:
    """The exception, and all that it refers to; what the caller was handling is detached from it."""
    found: dict[int, BaseException] = {}
    todo: list[BaseException | None] = [error]
    while todo:
        if (one := todo.pop()) is not None and id(one) not in found:
            found[id(one)] = one
            if one.__context__ is handled:
                one.__context__ = None
            todo += [one.__cause__, one.__context__, *getattr(one, "exceptions", ())]
    return found.values()


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _answer(error: Exception) -> tuple[Any, Any]:
    """The status and the body of an answer, where an SDK's exception has them: Google's has a `code` and `details`."""
    if not _is_googles(error):
        return getattr(error, "status_code", None), getattr(error, "body", None)
    body: Any = getattr(error, "details", None)
    text = isinstance(body, Mapping) and body.keys() == {"message", "status"}  # how it has a body that is not JSON
    return getattr(error, "code", None), body["message"] if text else body


def _is_googles(error: Exception) -> bool:
    return hasattr(error, "details") and not hasattr(error, "status_code")


def _code_and_delay(reported: ErrorInStream | None) -> tuple[str | None, float | None]:
    """The code of a failure, and the seconds that its body asks to wait: Google's have both in `details`."""
    if reported is None:
        return None, None
    said = mapping_of(reported.body)
    details, status = items_of(said.get("details")), text_of(said.get("status"))
    reasons = [text_of(one.get("reason")) for one in details]
    delays = [re.fullmatch(r"(\d+(?:\.\d+)?)s", text_of(one.get("retryDelay"))) for one in details]
    own = None if (reported.code or "").isdecimal() else reported.code
    code = _WRONG_KEY if _WRONG_KEY in reasons else own or status or reported.code
    return code, next((float(delay[1]) for delay in delays if delay), None)


def _kind_by_words(kind: ProviderErrorKind, code: str | None, said: str) -> ProviderErrorKind:
    """The kind of a failure that a status shows wrongly, and an error in a stream not at all."""
    if _NO_CREDIT in said:
        return "billing"
    if code == _WRONG_KEY:
        return "authentication"
    return "too_long" if CODES["too_long"].search(code or "") or TOO_LONG.search(said) else kind


def _reported(error: Exception, status: Any, body: Any) -> ErrorInStream | None:
    """The provider's own report, if it made one."""
    if isinstance(error, ErrorInStream):
        return error
    if isinstance(body, Mapping | list):
        return ErrorInStream.of(body)
    if isinstance(body, str) and body:
        return ErrorInStream(body[:_SHOWN], None, body)
    if isinstance(status, int):
        return ErrorInStream(NO_REASON, None, None)
    return None


def _kind_of_connection(error: Exception) -> ProviderErrorKind:
    names = {type(e).__name__ for e in _chain(error)}
    if isinstance(error, json.JSONDecodeError | UnicodeDecodeError | Unreadable):
        return "stream"
    if names & _ADDRESS_ERRORS:
        return "bad_request"  # repeating the request would lead to the same place
    if names & _LOGIN_ERRORS:
        return "authentication"
    return "timeout" if any("Timeout" in name for name in names) else "connection"


_CLOSED: Final = {"RemoteProtocolError", "ReadError"}


def _cause_text(error: Exception, timeout: float, came: ReceivedBytes | None) -> str:
    """The innermost reason: the SDKs themselves only speak of a connection error."""
    *_, cause = _chain(error)
    if isinstance(error, json.JSONDecodeError):
        return f"the response is not JSON: {error} in {error.doc[:_SHOWN]!r}"
    if isinstance(error, Unreadable):
        return str(error)
    names = {type(e).__name__ for e in _chain(error)}
    if names & {"ConnectTimeout", "ConnectTimeoutError"}:  # httpx2, urllib3
        return "no connection was established in time"
    if names & {"ReadTimeout", "ReadTimeoutError"}:
        where = ", in the middle of the response" if came is not None else ", before the response began"
        return f"nothing came for {timeout:g} s (timeout){where}"
    if isinstance(cause, ConnectionRefusedError):
        return "the connection was refused: no server listens at this address; start it, or correct base_url"
    said = ": ".join(filter(None, (type(cause).__name__, str(cause))))
    if came is not None and names & _CLOSED:
        return f"the model's server closed the connection before the reply was complete: {said}"
    return said
