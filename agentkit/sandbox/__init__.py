"""Sandboxes for untrusted code: one protocol, several backends, the same probes for each."""

from __future__ import annotations

from agentkit.errors import SandboxError, SandboxUnavailable
from agentkit.sandbox.protocol import RunningCommand, Sandbox
from agentkit.sandbox.quota import LimitName, SandboxLimits, SandboxOutcome, SandboxProgress, StreamOutput
from agentkit.sandbox.sandbox_choice import sandbox
from agentkit.sandbox.snippets import Snippets

__all__ = [
    "LimitName",
    "RunningCommand",
    "Sandbox",
    "SandboxError",
    "SandboxLimits",
    "SandboxOutcome",
    "SandboxProgress",
    "SandboxUnavailable",
    "Snippets",
    "StreamOutput",
    "sandbox",
]
