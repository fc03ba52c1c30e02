"""Every way agentkit fails, grouped by who must act. From the package it uses only the escaping of characters.

The author fixes a `SchemaError` (raised at registration) or a `FormatError` (a value that a format cannot carry).
The model corrects a call: those failures are data (`CallError` events, error `ToolResult`s) and carry an `ErrorCode`.
The operator fixes the cause of a `ProviderError` or a `StoreError`.
"""

from __future__ import annotations

from typing import Any, Final, Literal, get_args

from agentkit.checks.unicode import escape_controls
from agentkit.foreign.absent import suggest_attributes

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
    "billing",
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
"""What went wrong at a provider, in agentkit's terms. `too_long`: the conversation exceeds the model's context;
`billing`: the account has no credit left."""


@suggest_attributes
class AgentkitError(Exception):
    """The base of every error that agentkit raises.

    Attributes:
        result: the `RunResult` so far of the run that raised it: its messages include the calls that ran.
            None when the error did not come from a run.
    """

    result: Any = None


class SchemaError(AgentkitError):
    """A tool is defined incorrectly. Raised at registration; names class, method and parameter, and says what to do."""


class FormatError(AgentkitError):
    """A format cannot carry this value, or there is no format with this name."""


class ConfigError(AgentkitError):
    """A setting, a model string or a tool reference is wrong; the message says what was expected."""


class OutputError(AgentkitError):
    """The output of a run was requested, but there is none: no reply matched the type, or the run ended too early.

    `result` is the `RunResult`: its `finish` and `output_error` say why.
    """


@suggest_attributes
class ProviderError(AgentkitError):
    """A model provider refused the request, or the connection broke.

    Args:
        message: the provider's message, preceded by its name and the status. Terminal control characters are escaped;
            `body` is unchanged.
        kind: the failure, in agentkit's own categories.
        provider: `openai`, `anthropic`, `responses`, `gemini`, `bedrock`, or the server's name.
        status: the HTTP status; None when there was no response.
        code: the provider's own code or type, such as `model_not_found`.
        retry_after: seconds to wait, as requested by the provider; None if it requested no delay.
        request_id: the provider's id for the request, for its support team.
        body: the provider's error body as parsed, for diagnosis.
        advice: whether the provider itself says that the request is worth repeating (`x-should-retry`); None if it does
            not say.

    Keys and credentials are redacted in all of it, and in the exceptions that caused it, which keep no request and no
    response.
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
        advice: bool | None = None,
    ) -> None:
        if kind not in (kinds := get_args(ProviderErrorKind)):
            raise ConfigError(f"ProviderError(kind={kind!r}): expected one of {', '.join(kinds)}")
        super().__init__(escape_controls(message))
        self.kind: ProviderErrorKind = kind
        self.provider = provider
        self.status = status
        self.code = code
        self.retry_after = retry_after
        self.request_id = request_id
        self.body = body
        self.advice = advice

    @property
    def retryable(self) -> bool:
        """True if the same request may succeed later."""
        return self.kind in ("rate_limit", "overloaded", "server", "timeout", "connection")


class StoreError(AgentkitError):
    """A thread store failed; nothing was changed. The operator fixes the cause."""


class ThreadNotFound(StoreError):
    """There is no thread with this id."""


class ThreadExists(StoreError):
    """A thread with this id already exists."""


class StoreConflict(StoreError):
    """The stored state differs from the state that the change expected."""


class ThreadBusy(StoreError):
    """Another process or task is running this thread.

    Args:
        message: who is running it, and until when.
        owner: how the lease's holder describes itself; empty when the lease was lost and nobody holds it now.
        fence: the holder's fencing number; 0 when nobody holds a lease.
    """

    def __init__(self, message: str, *, owner: str = "", fence: int = 0) -> None:
        super().__init__(message)
        self.owner = owner
        self.fence = fence


class SandboxError(AgentkitError):
    """A sandbox could not start a command as ordered, or was handed something wrong. Nothing ran."""


class SandboxUnavailable(SandboxError):
    """No sandbox of the requested kind works on this machine; the message says what each kind is missing."""


DISTRIBUTION: Final = "agentkit-calls"
"""The package's name in a registry; `agentkit` on PyPI is an unrelated project. The import name is `agentkit`."""


def show_value(value: Any) -> str:
    """A wrong value for an error message, with its type."""
    return f"{type(value).__name__} {value!r:.100}"


def install_command(extra: str) -> str:
    """Return the shell command that installs an extra, such as `pip install 'agentkit-calls[mcp]'`.

    Args:
        extra: a key of `[project.optional-dependencies]`.
    """
    return f"pip install '{DISTRIBUTION}[{extra}]'"
