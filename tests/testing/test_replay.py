"""Recordings by provider: which SDKs can be answered by a `Replay`."""

from __future__ import annotations

import pytest

from agentkit import Agent
from agentkit.errors import ConfigError
from agentkit.testing import Replay


def test_gemini_is_answered_by_a_recording() -> None:
    said = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP"}]}
    assert Agent(Replay([said]).model("gemini:gemini-3-flash")).run_sync("Hello", stream=False).text == "Hi"


def test_bedrock_is_not_since_boto3_takes_no_http_client() -> None:
    with pytest.raises(ConfigError, match=r"Replay cannot answer 'bedrock:x': boto3 takes no HTTP client"):
        Replay([{}]).model("bedrock:x")
