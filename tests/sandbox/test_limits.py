"""Limits always hold something: None is refused, and so is what is out of bounds."""

from __future__ import annotations

from typing import Any

import pytest

from agentkit.errors import ConfigError
from agentkit.sandbox import SandboxLimits, sandbox


@pytest.mark.parametrize("name", ["cpu", "wall", "memory", "file_size", "processes", "output"])
@pytest.mark.parametrize("value", [None, 0, -1, float("inf"), float("nan"), True, "many"])
def test_wrong_limits_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"SandboxLimits\({name}=.*expected"):
        SandboxLimits(**{name: value})


def test_the_defaults() -> None:
    assert SandboxLimits() == SandboxLimits(10.0, 30.0, 1 << 30, 64 << 20, 64, 256 << 10)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "docker"}, r"sandbox\(kind='docker'\): expected one of auto, bwrap, landlock, none"),
        ({"kind": "bubblewrap"}, "expected one of auto, bwrap"),
        ({"limits": None, "read": "/etc"}, "expected a list of paths that exist"),
        ({"read": ["/does/not/exist"]}, "expected a list of paths that exist"),
        ({"limits": {"cpu": 1}}, "expected SandboxLimits"),
    ],
)
def test_wrong_settings_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        sandbox(**given)
