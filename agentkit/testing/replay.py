"""Plays recorded responses back as bytes through the provider's real SDK: a model without a key or a network.

Only the connection is replaced; requests are built and responses are read exactly as with the real provider.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from agentkit.errors import ConfigError
from agentkit.models.base import ClosableModel

if TYPE_CHECKING:
    import httpx2

Chunks = int | Literal["whole", "lines"] | Callable[[bytes], Iterable[bytes]]
"""How a body is split in transit: into pieces of this many bytes, not at all, after each line, or by a function."""

SSE = "text/event-stream; charset=utf-8"
JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded response.

    Args:
        body: the body as bytes or text; a mapping is written as JSON.
        status: the HTTP status.
        headers: further headers. The default content type depends on the body: JSON if it begins with `{`, else an
            event stream.
        cut: bytes after which the connection breaks; None lets the body end normally.
    """

    body: bytes | str | Mapping[str, Any]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None

    @property
    def content(self) -> bytes:
        """The body's bytes."""
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()


class Replay:
    """Plays recordings back, one per request, in order.

    Args:
        recordings: the responses; bytes, text or a mapping are turned into a `Recording`.
        chunks: how their bodies are split into pieces.

    Example:
        ```python
        tape = Replay([{"choices": [{"message": {"content": "Hi!"}, "finish_reason": "stop"}]}])
        model = tape.model("openai:gpt-5")
        ```
    """

    def __init__(
        self, recordings: Iterable[Recording | bytes | str | Mapping[str, Any]], *, chunks: Chunks = "whole"
    ) -> None:
        if isinstance(recordings, str | bytes | Mapping | Recording):
            raise ConfigError(f"Replay({recordings!r:.60}): expected a list of recordings; write [recording]")
        self._recordings = [r if isinstance(r, Recording) else Recording(r) for r in recordings]
        self._chunks = chunks
        self.requests: list[dict[str, Any]] = []
        """The bodies of the requests so far, as JSON."""
        self.headers: list[Mapping[str, str]] = []
        """Their headers."""

    def model(self, name: str, **settings: Any) -> ClosableModel:
        """A model that receives the recordings, regardless of the server in the environment.

        It repeats no failed request, since each recording answers one request: `max_retries` is 0, unless it is passed.

        Args:
            name: a model string, such as `openai:gpt-5`.
            settings: the same as for `agentkit.model`.

        Raises:
            ConfigError: the provider's SDK does not take an HTTP client (`bedrock:`), or as `agentkit.model` does.
        """
        from agentkit import models
        from agentkit.models.model_strings import PROVIDERS

        provider = PROVIDERS.get(name.partition(":")[0])
        if provider == "BedrockModel":
            raise ConfigError(f"Replay cannot answer {name!r}: boto3 takes no HTTP client; use a ScriptedModel")
        home = getattr(models, provider).vendor.home if provider else None
        given = {"api_key": "replayed", "base_url": home, "http_client": self.client(), "max_retries": 0, **settings}
        return models.model(name, **given)

    def client(self) -> httpx2.AsyncClient:
        """An HTTP client whose only server is this replay."""
        import httpx2

        return httpx2.AsyncClient(transport=httpx2.MockTransport(self._answer))

    def assert_finished(self) -> None:
        """Check that every recording was requested.

        Raises:
            AssertionError: some were not.
        """
        left = len(self._recordings) - len(self.requests)
        if left > 0:
            raise AssertionError(f"{left} of {len(self._recordings)} recordings were never requested")

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        import httpx2

        number = len(self.requests)
        self.requests.append(json.loads(request.content or b"{}"))
        self.headers.append(request.headers)
        if number >= len(self._recordings):
            raise ConfigError(
                f"the replay has {len(self._recordings)} recordings, but this is request {number + 1}: add a recording"
            )
        recording = self._recordings[number]
        kind = JSON if recording.content.lstrip()[:1] == b"{" else SSE
        headers = {"content-type": kind, **{k.lower(): v for k, v in recording.headers.items()}}
        return httpx2.Response(recording.status, headers=headers, stream=_stream(recording, self._chunks))


def _pieces(content: bytes, chunks: Chunks) -> Iterator[bytes]:
    if callable(chunks):
        yield from chunks(content)
    elif chunks == "whole":
        yield content
    elif chunks == "lines":
        yield from content.splitlines(keepends=True)
    else:
        yield from (content[at : at + chunks] for at in range(0, len(content), chunks))


def _stream(recording: Recording, chunks: Chunks) -> httpx2.AsyncByteStream:
    import httpx2

    class Stream(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in _pieces(recording.content[: recording.cut], chunks):
                yield piece
            if recording.cut is not None:
                raise httpx2.RemoteProtocolError("peer closed connection without sending complete message body")

    return Stream()
