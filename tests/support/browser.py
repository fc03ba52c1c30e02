"""A real Chromium, driven by Playwright: one process for all tests of this process, in one thread.

Playwright's plain calls belong to the thread that began them, and `asyncio.run` is impossible there meanwhile.
"""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Callable
from concurrent.futures import Future
from functools import cache
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from playwright.sync_api import Browser as Chromium
from playwright.sync_api import Page, sync_playwright

T = TypeVar("T")
CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
"""Where Chromium is; None without one."""

_FLAGS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
)


_Job = tuple[Callable[[], Any], Future[Any]]


@cache
def _jobs() -> SimpleQueue[_Job]:
    """The work for the browser's thread, which is started."""
    jobs: SimpleQueue[_Job] = SimpleQueue()
    Thread(target=_work, args=(jobs,), name="browser", daemon=True).start()
    return jobs


def _work(jobs: SimpleQueue[_Job]) -> None:
    while True:
        work, done = jobs.get()
        try:
            done.set_result(work())
        except BaseException as e:  # noqa: BLE001 - raised where the work was asked for
            done.set_exception(e)


@cache
def _started() -> Chromium:
    """Start it; only in the browser's thread."""
    playwright = sync_playwright().start()
    chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_FLAGS))

    def close() -> None:
        chromium.close()
        playwright.stop()

    atexit.register(lambda: in_browser(close))
    return chromium


def in_browser(work: Callable[[], T]) -> T:
    """Do something in the browser's thread, and wait for it."""
    done: Future[T] = Future()
    _jobs().put((work, done))
    return done.result()


def chromium() -> Chromium:
    """Return the browser; only in its thread."""
    return _started()


class Browser:
    """One window of Chromium, for any thread.

    Args:
        width: of the window, in CSS pixels.
        height: likewise.
    """

    def __init__(self, width: int = 1280, height: int = 900) -> None:
        def begin() -> Page:
            size = {"width": width, "height": height}
            return chromium().new_context(viewport=size, is_mobile=width < 600).new_page()  # type: ignore[arg-type]

        self._page = in_browser(begin)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        in_browser(self._page.context.close)

    def open(self, url: str) -> None:
        """Open a page, and wait until it is loaded."""
        in_browser(lambda: self._page.goto(url))

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression in the page; a promise is awaited."""
        return in_browser(lambda: self._page.evaluate(script))

    def until(self, script: str) -> Any:
        """Wait until an expression is true, and return its value.

        Raises:
            TimeoutError: it does not become true in time.
        """
        return in_browser(lambda: self._page.wait_for_function(script).json_value())
