"""One request of a client, in agentkit's vocabulary, and why a request is refused. Pure values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.models.base import ModelRequest


class RequestRefused(Exception):
    """A request cannot be answered; the client reads why, in its own wire.

    Args:
        status: the HTTP status.
        message: what was found, what was expected, where.
        code: a stable word for programs, such as `invalid_request`; see docs/gateway.md.
        param: the field of the request that is wrong; empty if no field is.
        retry_after: seconds after which the client may try again; None if it is unknown.
        body: the upstream's own error body, if it is in the client's wire and may be passed on unchanged.
        of_upstream: whether the status and the code are the upstream's.
    """

    def __init__(
        self,
        status: int,
        message: str,
        code: str,
        *,
        param: str = "",
        retry_after: float | None = None,
        body: Mapping[str, Any] | None = None,
        of_upstream: bool = False,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.param = param
        self.retry_after = retry_after
        self.body = body
        self.of_upstream = of_upstream


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A client's request.

    Args:
        model: the model's name, as the client wrote it.
        request: the conversation, the tools and the settings. `request.extra` has the fields that agentkit does not
            know, to be passed on.
        include_usage: whether a stream ends with the usage.
        parts: content parts that are neither text nor an image, such as files and audio, as they came, by the URL of
            the `ImagePart` that stands for each (`agentkit:part/0`).
    """

    model: str
    request: ModelRequest
    include_usage: bool = True
    parts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
