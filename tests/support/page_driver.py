"""The page as a person uses it: says what she says, and reads what she reads. Only in the browser's thread."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from browser import chromium
from playwright.sync_api import BrowserContext, ConsoleMessage, Dialog, Error, Locator, Page, Request, expect

SECONDS: Final = 60.0  # that a state may take to show: a busy machine


def opened(**options: Any) -> BrowserContext:
    """A window with storage of its own: width 1280 and height 900, unless the options differ."""
    context = chromium().new_context(viewport=options.pop("viewport", {"width": 1280, "height": 900}), **options)
    context.set_default_timeout(SECONDS * 1000)
    expect.set_options(timeout=SECONDS * 1000)
    return context


class Tabs:
    """The tabs of one window.

    Args:
        url: of the server.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._window = opened()
        self._all: list[Tab] = []

    def new(self, thread: str | None = None, url: str | None = None) -> Tab:
        """Open a tab, with a thread or for a new one."""
        tab = Tab(self._window, url or self.url)
        self._all.append(tab)
        tab.open(thread)
        return tab

    def close(self) -> list[str]:
        """Close all, and return the faults: violations, script errors, dialogs, requests to others."""
        faults = [fault for tab in self._all for fault in tab.faults()]
        self._window.close()
        return faults


class Tab:
    """One tab with the page.

    Args:
        window: where it is opened.
        url: of the server.
    """

    def __init__(self, window: BrowserContext, url: str) -> None:
        self.page: Page = window.new_page()
        self.url = url
        self.foreign: list[str] = []
        self._faults: list[str] = []
        self.page.on("request", self._note_request)
        self.page.on("dialog", self._note_dialog)
        self.page.on("pageerror", lambda error: self._faults.append(f"script error: {error.stack or error}"))
        self.page.on("console", self._note_message)

    def _note_request(self, request: Request) -> None:
        if not request.url.startswith((self.url, "data:", "blob:", "about:")):
            self.foreign.append(request.url)

    def _note_dialog(self, dialog: Dialog) -> None:
        self._faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note_message(self, message: ConsoleMessage) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:  # the server was killed
            self._faults.append(f"console: {message.text}")

    def faults(self) -> list[str]:
        """What the page did and should not have done."""
        return [*self._faults, *(f"request: {url}" for url in self.foreign)]

    # ------------------------------------------------------------ she does

    def open(self, thread: str | None = None, *, wait: bool = True) -> None:
        """Open a thread's page, or that of a new one; wait until it shows the messages, or can be written to."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.url}/#/{'' if thread is None else f't/{thread}'}")
        if wait:
            self._is_shown()

    def reload(self, *, wait: bool = True) -> None:
        """Load the page again, and wait as `open` does."""
        self.page.reload()
        if wait:
            self._is_shown()

    def _is_shown(self) -> None:
        expect(self.box).to_be_enabled()
        if "#/t/" in self.page.url:
            expect(self.log.locator("article").first).to_be_visible()

    def say(self, text: str) -> None:
        """Send a message, and wait until the page shows that it is answered, or was."""
        self.is_drawn()
        before = self.page.locator("article.user").count()
        self.send(text)
        self.until(lambda: self.page.evaluate(ANSWERED, before), f"a run that answers {text!r}")

    def send(self, text: str) -> None:
        """Send a message, and wait for nothing."""
        self.box.fill(text)
        self.box.press("Enter")

    def press(self, name: str) -> None:
        """Press a button; the first of several with this name."""
        self.page.get_by_role("button", name=name, exact=True).first.click()

    def hurry(self) -> None:
        """Let the page connect again without a pause. Silence still ends a connection only after 40 s."""
        self.page.evaluate(
            "(wait => { window.setTimeout = (work, ms) => wait(work, ms > 400 && ms < 6000 ? 20 : ms); })(setTimeout)"
        )

    # ------------------------------------------------------------ she reads

    @property
    def box(self) -> Locator:
        """Where she writes."""
        return self.page.get_by_role("textbox", name="Message", exact=True)

    @property
    def log(self) -> Locator:
        """The conversation."""
        return self.page.get_by_role("log")

    @property
    def thread(self) -> str:
        """The id of the thread, once it has one."""
        self.page.wait_for_url(re.compile("#/t/"))
        return self.page.url.rpartition("#/t/")[2]

    def sees(self, *texts: str, timeout: float = SECONDS) -> None:
        """Wait until the conversation has these texts."""
        for text in texts:
            expect(self.log).to_contain_text(text, timeout=timeout * 1000)

    def sees_no(self, *texts: str) -> None:
        """Wait until the conversation has none of these texts."""
        for text in texts:
            expect(self.log).not_to_contain_text(text)

    def is_drawn(self) -> None:
        """Wait until the conversation has been drawn with all that has arrived: it is drawn once a frame."""
        self.page.evaluate("new Promise(done => requestAnimationFrame(done))")

    def is_idle(self) -> None:
        """Wait until nothing runs or waits: there is nothing to stop."""
        expect(self.page.get_by_role("button", name="Stop", exact=True)).to_be_hidden()

    def is_at_rest(self) -> None:
        """Wait until nothing runs; calls may wait for her."""
        stop = self.page.get_by_role("button", name="Stop", exact=True)
        waiting = self.page.get_by_role("button", name=re.compile("waiting for you$"))
        self.until(lambda: waiting.is_visible() or not stop.is_visible(), "rest")

    def card(self, name: str, nth: int = 0) -> Card:
        """The nth card of a tool's calls."""
        return Card(self, self.log.get_by_role("group", name=re.compile(f"^Call of {re.escape(name)}:")).nth(nth))

    def cards(self) -> list[tuple[str, str]]:
        """The tools and states of all cards, in order."""
        for fold in self.log.locator("details.fold:not([open]) > summary").all():
            fold.click()
        return [tuple(named.split(": ", 1)) for named in self.log.evaluate(CARDS)]  # type: ignore[misc]

    def has_cards(self, *wanted: tuple[str, str]) -> None:
        """Wait until these are the tools and states of all cards."""
        self.until(lambda: self.cards() == list(wanted), f"the cards {list(wanted)}")

    def until(self, holds: Callable[[], bool], wanted: str) -> None:
        """Wait until this holds; if it does not, say what was wanted and what the page shows."""
        end = time.monotonic() + SECONDS
        while not holds():
            if time.monotonic() > end:
                raise AssertionError(f"expected {wanted}, found {self.cards()}\n{self.page.inner_text('main')}")
            self.page.wait_for_timeout(30)

    def still(self) -> str:
        """Wait until the conversation's text has been the same for half a second, and return it."""
        before, now = "", self.text()
        while now != before:
            self.page.wait_for_timeout(500)
            before, now = now, self.text()
        return now

    def text(self) -> str:
        """The conversation as text, all of it unfolded, without durations and times."""
        self.is_drawn()
        self.cards()
        return re.sub(r"\b\d+(\.\d+)? m?s\b|\b\d\d:\d\d( [AP]M)?\b", "…", self.log.inner_text()).removesuffix("\n↓ new")


class Card:
    """The card of a call.

    Args:
        tab: where it is.
        place: the card.
    """

    def __init__(self, tab: Tab, place: Locator) -> None:
        self.tab = tab
        self.place = place

    def press(self, name: str) -> None:
        """Press one of its buttons."""
        self.place.get_by_role("button", name=name, exact=True).click()

    def approve(self) -> None:
        """Let it run; once more if the focus has just come to the card, and its buttons were still dead."""
        button = self.place.get_by_role("button", name="Approve", exact=True)
        button.click()
        with suppress(AssertionError):
            expect(button).to_be_hidden(timeout=1_000)
        with suppress(Error):  # it is on its way
            if button.is_visible():
                button.click(timeout=1_000)

    def always(self) -> None:
        """Let it run, and all further calls of this tool in this thread."""
        self.place.get_by_role("button", name=re.compile("^Always allow .* in this thread")).click()

    def allow_like_this(self, **patterns: str) -> None:
        """Let it run, and all further calls of this tool in this thread whose arguments fit."""
        self.press("Always allow like this…")
        for name, value in patterns.items():
            self.place.get_by_role("textbox", name=re.compile(f"^{name}\\b")).fill(value)
        self.press("Approve, and always allow these")

    def deny(self, reason: str = "") -> None:
        """Deny it."""
        self.press("Deny…")
        self.place.get_by_role("textbox", name="Reason, which the model reads").fill(reason)
        self.press("Deny")

    def edit(self, **arguments: str) -> None:
        """Let it run with other arguments."""
        self.press("Edit")
        for name, value in arguments.items():
            self.place.get_by_role("textbox", name=re.compile(f"^{name}\\b")).fill(value)
        self.press("Approve with these arguments")

    def happened(self, text: str) -> None:
        """Say what became of it while the server was away."""
        self.press("It happened…")
        self.place.get_by_role("textbox").fill(text)
        self.press("Save")

    def did_not_happen(self) -> None:
        """Say that nothing became of it."""
        self.press("It did not happen")

    def unfold(self) -> None:
        """Show what is inside."""
        head = self.place.get_by_role("button").first
        if head.get_attribute("aria-expanded") == "false":
            head.click()

    def says(self, *texts: str) -> None:
        """Wait until the card has these texts."""
        for text in texts:
            expect(self.place).to_contain_text(text)


ANSWERED: Final = """before => {
    const all = [...document.querySelectorAll("article")];
    const isNew = all.filter(message => message.matches(".user")).length > before;
    return isNew && (!document.getElementById("stop").hidden || all.at(-1).matches(".answer"));
}"""
CARDS: Final = """log => [...log.querySelectorAll('section[aria-label^="Call of "]')]
    .map(card => card.getAttribute("aria-label").slice("Call of ".length))"""
