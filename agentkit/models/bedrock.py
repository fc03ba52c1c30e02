"""Amazon Bedrock's Converse API, by boto3: its settings, credentials, region and profile are boto3's own."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing, closing
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any, Final

from agentkit.errors import ConfigError, ProviderError, ProviderErrorKind, install_command
from agentkit.models import prefill, valid_history
from agentkit.models.base import ModelRequest
from agentkit.models.bedrock_body import FILES, content_of, converse_body
from agentkit.models.boto_calls import BotoCall, watch_connections
from agentkit.models.caching import add_marks
from agentkit.models.converse_wire import ConverseWire, events_of
from agentkit.models.messages_body import messages_body
from agentkit.models.model_options import ModelSettings
from agentkit.models.provider import CONNECT_TIMEOUT
from agentkit.models.response_body import Unreadable
from agentkit.models.sdk_model import Reception, SdkModel
from agentkit.models.wire import Wire, WireEvent, mapping_of, offered_schemas, text_of
from agentkit.schemas import flavours

KINDS: Final[Mapping[str, ProviderErrorKind]] = {
    "accessdeniedexception": "permission",
    **dict.fromkeys(("unrecognizedclientexception", "expiredtokenexception"), "authentication"),
    **dict.fromkeys(("invalidsignatureexception", "missingauthenticationtokenexception"), "authentication"),
    "modelnotreadyexception": "overloaded",
    **dict.fromkeys(("modelerrorexception", "modelstreamerrorexception"), "server"),
    "validationexception": "bad_request",
}
"""The kind of an error by its code, if neither its status nor its words show it. Source: Amazon Bedrock, API reference,
Converse, Errors; AWS, Common error types."""

_CONSTRAINED: Final = re.compile(r"anthropic\.claude-(?:(?:haiku|sonnet|opus)-4-5|opus-4-6)|openai\.gpt-oss")
"""The models that can be constrained to a schema; others refuse the field.
Source: Amazon Bedrock, User Guide, Structured output; langchain-aws issue 883."""

_REGION: Final = re.compile(r"bedrock(?:-runtime)?(?:-fips)?[.:]([a-z]{2}(?:-[a-z]+)+-[0-9]+)[.:]")
"""The region in an ARN of a model, or in a URL of the service."""

_MAKER: Final = re.compile(r"(?:.*/)?(?:(?:global|us|us-gov|eu|apac|jp|au|ca)\.)?([a-z0-9]+)\.")
"""The maker in a model's id, which may begin with a region, or be an ARN. Source: Amazon Bedrock, User Guide, Inference
profiles."""

_SETTINGS: Final = (
    "boto3 reads AWS_PROFILE, AWS_ACCESS_KEY_ID, AWS_BEARER_TOKEN_BEDROCK and AWS_DEFAULT_REGION; api_key= is a key of "
    "Bedrock"
)
_FIELDS: Final = "fields of the model itself go into extra={'additionalModelRequestFields': {…}}"
_HOME: Final = "https://bedrock-runtime.us-east-1.amazonaws.com"  # one of many: the SDK knows that of each region
_ANY: Final = "us-east-1"  # a region for the signature, which another server does not check
MAX_REASON: Final = 500  # characters
MAX_CONNECTIONS: Final = 100  # that are kept open
_KEY: Final = "AWS_BEARER_TOKEN_BEDROCK"
_SECRETS: Final = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


class BedrockModel(SdkModel):
    """A model of Amazon Bedrock: its id, an inference profile's, or an ARN.

    Args:
        model: such as `us.anthropic.claude-sonnet-4-5-20250929-v1:0`.
        settings: apply to all its requests.

    Raises:
        ConfigError: boto3 is not installed, or a setting is not for boto3.
    """

    prefix = "bedrock"
    files = FILES
    wire = ConverseWire

    def __init__(self, model: str, settings: ModelSettings | None = None) -> None:
        super().__init__(model, settings)
        if find_spec("boto3") is None:
            raise ConfigError(f"{self.name} needs boto3: {install_command('bedrock')}")
        if self.settings.http_client is not None:
            raise ConfigError(f"{self.name}: boto3 takes no http_client; it has settings for proxies and certificates")
        self._set_address(self.settings.base_url or _HOME, ".amazonaws.com", ".amazonaws.com.cn")
        self._api_key = self._stripped_key(self.settings.api_key or os.environ.get(_KEY), _KEY)
        self._hide(self._api_key, *map(os.environ.get, _SECRETS))

    @property
    def _maker(self) -> str:
        """Whose blocks these are: other makers' models refuse them. Source: oh-my-pi#9086."""
        found = _MAKER.match(self.model)
        return f"{self.provider}:{found[1] if found else self.model}"

    def _wire(self, body: Mapping[str, Any]) -> Wire:
        return self.wire(self._maker, offered_schemas(body))

    def _asked(self, request: ModelRequest) -> dict[str, Any]:
        output = request.output_schema
        if output is not None and not (_CONSTRAINED.search(self.model) and flavours.anthropic_output(output)):
            request = valid_history.output_in_prompt(request, constrained=False)
        if request.tool_choice == "none":  # which the API does not have
            request = replace(request, tools=(), tool_choice="auto")
        body = messages_body(request, self.model, self._maker, content_of)
        if not self.continues:
            body["messages"] = prefill.complete(body["messages"])
        body |= {"max_tokens": request.max_tokens, "temperature": request.temperature}
        return converse_body(add_marks(body) if self.settings.cache else body)

    def _complete(self, body: dict[str, Any]) -> None:
        thinking = mapping_of(mapping_of(body.get("additionalModelRequestFields")).get("thinking"))
        if thinking.get("type") in ("enabled", "adaptive") and mapping_of(body.get("toolConfig")).get("toolChoice"):
            body["toolConfig"] = {"tools": body["toolConfig"]["tools"]}  # Claude thinks only if it need not call

    def _made_client(self) -> _Client:
        url = self._address.url if self.settings.base_url else None
        headers = {**self._address.headers, **(self.settings.headers or {})}
        return _Client(self.name, url, self._api_key, headers, self.settings.timeout, self._hide)

    async def _wire_events(
        self, client: Any, body: dict[str, Any], wire: Wire, received: Reception
    ) -> AsyncGenerator[WireEvent, None]:
        call = BotoCall(self.settings.max_response, partial(setattr, received, "body"))
        async with aclosing(call.events(partial(client.read, body, received))) as events:
            async for event in events:
                yield event

    def _failures(self) -> tuple[type[Exception], ...]:
        from botocore.eventstream import ParserError
        from botocore.exceptions import BotoCoreError, ClientError
        from botocore.parsers import ResponseParserError
        from urllib3.exceptions import HTTPError

        return BotoCoreError, ClientError, ParserError, ResponseParserError, HTTPError, OSError, Unreadable

    async def _failure(
        self, cause: Exception | None, handled: BaseException | None, received: Reception
    ) -> ProviderError:
        error = await super()._failure(_described(cause), handled, received)
        kind = KINDS.get((error.code or "").lower())
        error.kind = kind if kind is not None and error.kind != "too_long" else error.kind
        return error


class _Client:
    """The client of boto3, made in the thread of the first request: that reads files, and may fetch credentials.

    Args:
        name: the model string.
        url: another server than the service; None for that of the region.
        key: of Bedrock; None signs with credentials.
        headers: further ones.
        timeout: seconds.
        hide: is given the credentials, which must not be shown.
    """

    def __init__(
        self,
        name: str,
        url: str | None,
        key: str | None,
        headers: Mapping[str, str],
        timeout: float,
        hide: Callable[..., None],
    ) -> None:
        self._name, self._url, self._key, self._timeout, self._hide = name, url, key, timeout, hide
        self._headers = {**({"Authorization": f"Bearer {key}"} if key else {}), **headers}
        self._lock = threading.Lock()
        self._credentials: Any = None
        self._client: Any = None

    async def close(self) -> None:
        """Close the connections that are idle; one in use is closed by its own request."""
        if self._client is not None:
            self._client.close()

    def read(self, body: Mapping[str, Any], received: Reception) -> Iterator[WireEvent]:
        """Send a request; yields the events of its response.

        Raises:
            ConfigError: boto3 finds no credentials or no region, or refuses the request.
        """
        from botocore import exceptions

        sent = {key: value for key, value in body.items() if key != "stream"}
        try:
            with self._lock:
                client = self._client = self._client or self._made()
            self._note_credentials()
            response = client.converse_stream(**sent) if body.get("stream") else client.converse(**sent)
        except exceptions.BotoCoreError as e:
            if isinstance(e, exceptions.HTTPClientError | exceptions.ConnectionError):
                raise
            hint = _FIELDS if isinstance(e, exceptions.ParamValidationError) else _SETTINGS
            raise ConfigError(f"{self._name}: {str(e)[:MAX_REASON].rstrip('.')}; {hint}") from None
        received.request_id = response["ResponseMetadata"].get("RequestId")
        if not body.get("stream"):
            yield from events_of(response)
            return
        with closing(response["stream"]) as events:
            yield from events

    def _made(self) -> Any:
        import boto3
        from botocore import UNSIGNED
        from botocore.config import Config
        from botocore.exceptions import NoCredentialsError

        session, url, timeout = boto3.Session(), self._url, self._timeout
        self._credentials = None if self._key else session.get_credentials()
        if not (self._key or self._credentials or url):
            raise NoCredentialsError
        named = _REGION.search(f"{url or ''} {self._name.partition(':')[2]}")
        client = session.client(
            "bedrock-runtime",
            region_name=(named and named[1]) or session.region_name or os.environ.get("AWS_REGION") or (url and _ANY),
            endpoint_url=url,
            config=Config(
                connect_timeout=min(timeout, CONNECT_TIMEOUT),
                read_timeout=timeout,
                retries={"total_max_attempts": 1},
                max_pool_connections=MAX_CONNECTIONS,
                signature_version=None if self._credentials else UNSIGNED,
            ),
        )
        client.meta.events.register("before-sign.bedrock-runtime", self._add_headers)
        watch_connections(client)
        return client

    def _note_credentials(self) -> None:
        """Keep the credentials out of errors and logs; boto3 renews them before they expire."""
        if self._credentials is not None:
            self._hide(*self._credentials.get_frozen_credentials()[:3])

    def _add_headers(self, request: Any, **_: Any) -> None:
        for name, value in self._headers.items():
            request.headers[name] = value


class ServiceError(Exception):
    """An error that the service reports, with the attributes that the other SDKs' errors have."""

    def __init__(self, response: Mapping[str, Any]) -> None:
        said, meta = mapping_of(response.get("Error")), mapping_of(response.get("ResponseMetadata"))
        self.body = {"code": text_of(said.get("Code")), "message": text_of(said.get("Message"))}
        super().__init__(self.body["message"])
        self.status_code = meta.get("HTTPStatusCode")
        self.request_id = meta.get("RequestId")
        self.response = SimpleNamespace(headers=mapping_of(meta.get("HTTPHeaders")))


def _described(cause: Any) -> Any:
    """An exception of boto3 for `provider_error`: what the service said, or the reason that botocore wraps."""
    if response := mapping_of(getattr(cause, "response", None)):
        described = ServiceError(response)
        described.__cause__ = cause
        return described
    inner = getattr(cause, "kwargs", {}).get("error")
    return inner if isinstance(inner, Unreadable) else cause
