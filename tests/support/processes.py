"""Starts `other_process.py`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("other_process.py")


def begin(what: str, store: Any, name: str = "") -> subprocess.Popen[str]:
    """Another process that does something with the same store."""
    where = store.name if isinstance(store.name, str) and store.name.startswith("/") else store.dsn
    command = [sys.executable, str(SCRIPT), what, where, getattr(store, "schema", ""), name]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end(process: subprocess.Popen[str]) -> str:
    """What it printed."""
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return out


def do(what: str, store: Any, name: str = "") -> str:
    """Begin and end."""
    return end(begin(what, store, name))
