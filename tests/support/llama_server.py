"""A llama-server of this machine: `AGENTKIT_LLAMA_SERVER` names the binary, `AGENTKIT_GGUF` a small model."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pytest

BINARY: Final = os.environ.get("AGENTKIT_LLAMA_SERVER", "")
WEIGHTS: Final = os.environ.get("AGENTKIT_GGUF", "")
_READY: Final = 60.0  # seconds that a model of 100 MB may take to load


@contextmanager
def llama_server() -> Iterator[str]:
    """The URL of a running server; it ends with the context."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--host", "127.0.0.1", "--port", str(port), "--jinja", "-ngl", "0", "-np", "1", "-c", "4096"]
    process = subprocess.Popen(
        [BINARY, "-m", WEIGHTS, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(f"http://127.0.0.1:{port}/health", process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait()


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _READY
    while time.monotonic() < until:
        if process.poll() == -signal.SIGILL:
            pytest.skip("llama-server has instructions that this processor lacks")
        assert process.returncode is None, f"{BINARY} ended with status {process.returncode}"
        try:
            urllib.request.urlopen(url, timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
        else:
            return
    raise AssertionError(f"{BINARY} was not ready in {_READY:.0f} s")
