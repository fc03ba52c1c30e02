"""Whether this machine can confine anything: what the tests of Shell and Python need."""

from __future__ import annotations

import asyncio

import pytest

from agentkit.sandbox import SandboxUnavailable, sandbox


def missing() -> str:
    """What is missing for a sandbox here; empty if nothing is."""
    try:
        box = sandbox("auto")
    except SandboxUnavailable as e:
        return str(e)
    asyncio.run(box.close())
    return ""


WHY = missing()
confined = pytest.mark.skipif(bool(WHY), reason=WHY)
"""Marks a test that needs a sandbox."""
