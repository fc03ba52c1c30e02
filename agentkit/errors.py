"""Every way agentkit fails, grouped by who must act. Knows of the package only how characters are escaped.

The author mends a `SchemaError` (raised at registration) or a `FormatError` (a value that a format cannot carry).
The model mends a call: those failures are data (`CallError` events, error `ToolResult`s) and carry an `ErrorCode`.
The operator mends a `ProviderError` or a `StoreError`.
"""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

from agentkit.foreign.absent import explained
from agentkit.unicode import escaped

ErrorCode = Literal[
    "unknown_tool",
    "invalid_json",
    "invalid_arguments",
    "truncated_call",
    "ambiguous_call",
    "timeout",
    "tool_error",
    "denied",
    "skipped",
    "cancelled",
    "interrupted",
    "limit",
    "internal_error",
]
"""The stable codes of every error that a model reads."""

ERROR_CODES: Final[tuple[ErrorCode, ...]] = get_args(ErrorCode)

ProviderErrorKind = Literal[
    "authentication",
    "permission",
    "not_found",
    "bad_request",
    "too_long",
    "rate_limit",
    "overloaded",
    "server",
    "timeout",
    "connection",
    "stream",
]
"""What went wrong at a provider, whatever it calls that. `too_long`: the conversation does not fit the model."""


@explained
class AgentkitError(Exception):
    """The base of every error that agentkit raises.

    Attributes:
        result: what the run that raised it had done until then, a `RunResult`: calls that were run are in its messages.
            None where it came from no run.
    """

    result: Any = None


class SchemaError(AgentkitError):
    """A tool is defined wrongly; raised at registration, names class, method and parameter, and says how to mend it."""


class FormatError(AgentkitError):
    """A format cannot carry this value, or no format has this name."""


class ConfigError(AgentkitError):
    """A setting, a model string or a tool reference is wrong; the message says what was wanted."""


class OutputError(AgentkitError):
    """A run's output was asked for, and it has none: no reply fitted, or it ended before one could.

    `result` is the `RunResult`: its `finish` and `output_error` say why.
    """


@explained
class ProviderError(AgentkitError):
    """A model provider refused or broke off.

    Args:
        message: what the provider said, led by who said it and the status. What could command the screen that shows it
            becomes an escape; `body` stays as it came.
        kind: the failure in agentkit's words.
        provider: `openai`, `anthropic`, `responses`, or the server's name.
        status: the HTTP status; None when no response came.
        code: the provider's own code or type, such as `model_not_found`.
        retry_after: seconds that the provider asked to wait; None when it named none.
        request_id: the provider's id of the request, for its support.
        body: the provider's error body as parsed, for diagnosis.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ProviderErrorKind,
        provider: str,
        status: int | None = None,
        code: str | None = None,
        retry_after: float | None = None,
        request_id: str | None = None,
        body: object = None,
    ) -> None:
        super().__init__(escaped(message))
        self.kind: ProviderErrorKind = kind
        self.provider = provider
        self.status = status
        self.code = code
        self.retry_after = retry_after
        self.request_id = request_id
        self.body = body

    @property
    def retryable(self) -> bool:
        """Whether the same request may succeed later."""
        return self.kind in ("rate_limit", "overloaded", "server", "timeout", "connection")


class StoreError(AgentkitError):
    """A thread store could not do its work; nothing was changed. The operator mends it."""


class ThreadNotFound(StoreError):
    """There is no thread with this id."""


class ThreadExists(StoreError):
    """There is a thread with this id already."""


class StoreConflict(StoreError):
    """What was to be changed is not, or no longer, as it was expected."""


class ThreadBusy(StoreError):
    """Somebody else runs this thread.

    Args:
        message: who runs it, and until when.
        owner: the holder of the lease, in its own words; empty when the lease was lost and nobody holds it now.
        fence: the number of the holder's lease; 0 when nobody holds one.
    """

    def __init__(self, message: str, *, owner: str = "", fence: int = 0) -> None:
        super().__init__(message)
        self.owner = owner
        self.fence = fence
