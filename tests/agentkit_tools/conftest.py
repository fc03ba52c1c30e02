"""What the tests of the file tools share."""

from __future__ import annotations

import pytest

from agentkit_tools.folder import beneath


@pytest.fixture(params=["openat2", "one by one"])
def opener(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """A test of the boundary runs with both ways to open a folder."""
    if request.param == "openat2" and not beneath.works():
        pytest.skip("this system has no openat2")
    monkeypatch.setattr(beneath, "works", lambda: request.param == "openat2")
    return str(request.param)
