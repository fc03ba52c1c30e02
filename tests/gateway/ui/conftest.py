"""Tests that use `tabs` run in the browser's thread, and are skipped without a browser."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from browser import CHROMIUM, in_browser
from page_driver import Tabs
from page_server import PageServer


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test in the browser's thread."""
    if "tabs" not in pyfuncitem.fixturenames:
        return None
    names = pyfuncitem._fixtureinfo.argnames
    given: dict[str, Any] = {name: pyfuncitem.funcargs[name] for name in names}
    in_browser(lambda: pyfuncitem.obj(**given))
    return True


@pytest.fixture(scope="session")
def _one_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageServer]:
    with PageServer(tmp_path_factory.mktemp("page")) as started:
        yield started


@pytest.fixture
def server(_one_server: PageServer) -> Iterator[PageServer]:
    """The page's server, with the agent of `page_agents` and without threads; a test may kill it."""
    yield _one_server
    _one_server.clean()


@pytest.fixture
def tabs(server: PageServer) -> Iterator[Tabs]:
    """Tabs of one browser; the test fails at its end if one of them did what it never should."""
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine (Debian: chromium)")
    opened = in_browser(lambda: Tabs(server.url))
    yield opened
    faults = in_browser(opened.close)
    assert faults == []
