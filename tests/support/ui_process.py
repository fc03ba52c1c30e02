"""`agentkit ui` as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ui_kit import PageClient

STARTS = "the page is at "


@contextmanager
def opened(*options: str, folder: Path, **env: str) -> Iterator[tuple[PageClient, subprocess.Popen[str]]]:
    """A client of the address that `agentkit ui` prints, without its key, and the process.

    Args:
        options: of the command, which listens at a free port.
        folder: where it runs, and makes temporary folders.
        env: further variables.
    """
    command = [sys.executable, "-m", "agentkit", "ui", "--port", "0", *options]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    settings = {"XDG_CONFIG_HOME": str(folder), "TMPDIR": str(folder), "OPENAI_API_KEY": "none", **env}
    running = subprocess.Popen(command, cwd=folder, env={**os.environ, **settings}, **pipes)
    assert running.stderr is not None
    try:
        lines: list[str] = []
        while not (said := running.stderr.readline()).startswith(STARTS):
            assert said, f"ended with {running.wait()}: {''.join(lines)}"
            lines.append(said)
        client = PageClient(said.removeprefix(STARTS).partition("/#")[0].strip().rstrip("/"))
        try:
            yield client, running
        finally:
            client.http.close()
    finally:
        running.kill()
        running.communicate()
