"""The pictures of the page, docs/images/ui_*.png: `agentkit ui` in a real browser, with a scripted agent.

python docs/record_ui.py     needs Playwright for Python, and Chromium

The agent is examples/ui_agent.py, and that of `agentkit ui --demo`; the server, the tools and the page are real.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from playwright.sync_api import Page, expect

ROOT: Final = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "support"))

from browser import chromium, in_browser  # noqa: E402
from ui_process import opened as served  # noqa: E402

IMAGES: Final = ROOT / "docs" / "images"
DESKTOP: Final = {"width": 1180, "height": 800}
PHONE: Final = {"width": 390, "height": 760}
HERE: Final = {"PYTHONPATH": f"{ROOT}:{ROOT / 'tools'}:{ROOT / 'examples'}", "LOGNAME": "ada"}


@contextmanager
def opened(url: str, size: dict[str, int], scheme: str) -> Iterator[Page]:
    """The page in a window of this size."""
    context = chromium().new_context(
        viewport=size,  # type: ignore[arg-type]
        color_scheme=scheme,  # type: ignore[arg-type]
        device_scale_factor=2 if size is PHONE else 1,
        has_touch=size is PHONE,
        is_mobile=size is PHONE,
        locale="en-GB",
        timezone_id="Europe/Berlin",
    )
    page = context.new_page()
    page.goto(url)
    page.wait_for_selector("#text:enabled")
    yield page
    context.close()


def say(page: Page, text: str, waiting: int) -> None:
    """Send a message, and wait until some calls wait for approval."""
    page.fill("#text", text)
    page.press("#text", "Enter")
    expect(page.locator(".approval")).to_have_count(waiting, timeout=30_000)


def approve(page: Page) -> None:
    """Approve the first call that waits, once its buttons work."""
    page.locator(".approval .primary:not([aria-disabled=true])").first.click()


def picture(page: Page, name: str) -> None:
    """Write a picture of what the window shows."""
    page.evaluate("document.activeElement.blur()")
    page.wait_for_timeout(1_000)  # until the buttons work, and the code is coloured
    page.screenshot(path=IMAGES / f"{name}.png")


def desk(folder: Path) -> None:
    """A refund that waits, in both colours, and on a phone."""
    with served("--agent", "ui_agent:agent", folder=folder, **HERE) as (server, _):
        with opened(server.url, DESKTOP, "light") as page:
            say(page, "Ada's tea pot arrived broken.", 1)
            page.locator(".call-head").first.click()
            page.get_by_role("button", name="Approve").scroll_into_view_if_needed()
            page.mouse.wheel(0, 1_000)
            picture(page, "ui_light")
            address = page.url
        for scheme in ("light", "dark"):
            with opened(address, PHONE, scheme) as page:
                page.wait_for_selector(".approval")
                picture(page, f"ui_phone_{scheme}")


def demonstration(folder: Path) -> None:
    """An edit that waits, after files that were written; in a text format, with the reply as it was written."""
    with served("--demo", folder=folder, **HERE) as (server, _), opened(server.url, DESKTOP, "dark") as page:
        page.select_option("#format", "xml")
        say(page, "Write a greeting in Python, and its README. Then make it French.", 2)
        for waiting in (1, 0):
            approve(page)
            expect(page.locator(".approval")).to_have_count(waiting)
        expect(page.locator(".approval")).to_have_count(1, timeout=30_000)
        picture(page, "ui_dark")
        page.get_by_role("button", name="As written").last.click()
        picture(page, "ui_written")


def main() -> None:
    """Write all pictures."""
    with TemporaryDirectory() as name:
        for record in (desk, demonstration):
            folder = Path(name, record.__name__)
            folder.mkdir()
            in_browser(partial(record, folder))


if __name__ == "__main__":
    main()
