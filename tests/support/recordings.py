"""The recorded exchanges, where they are at hand: they stay outside the repository."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentkit.testing import Recording

SHARED = Path(os.environ.get("AGENTKIT_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))

ABSENT = "recorded data is not at hand: neither AGENTKIT_SHARED_DATA nor ../shared/data holds it"


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of one file of recordings; none when the data is absent."""
    path = SHARED / name
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def recording(row: Mapping[str, Any]) -> Recording:
    """A row's response, as it went over the wire."""
    response = row["response"]
    kind = response["headers"].get("content-type")
    headers = {"content-type": kind} if kind else {"content-type": "application/json"}
    return Recording(response.get("sse") or response["body"], response["status"], headers)
