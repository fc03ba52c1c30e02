"""The connection of the event stream cut after each event, and inside of each: the same page as without cuts."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest
from cutting_proxy import CuttingProxy
from page_driver import Tab, Tabs
from page_server import PageServer
from playwright.sync_api import Error

PATIENCE = 60  # seconds

WORDS = {
    "long": "The end.",
    "think": "Thought through.",
    "slow": "It is done.",
    "orders": "All settled.",
    "both": "Both done.",
    "write": "Written.",
    "edit": "Edited.",
    "fail": "It failed.",
    "picture": "A picture.",
    "table": "A table.",
    "ask": "Answered.",
}
"""What she says, and the end of the answer."""


def play(server: PageServer, tab: Tab, word: str) -> str:
    """A conversation with all calls approved; returns the page's text at the end."""
    server.hold("model", 0)
    tab.say(word)
    server.until_held("model")
    server.release("model")
    end = time.monotonic() + PATIENCE
    while not tab.log.get_by_text(WORDS[word]).is_visible():
        approve = tab.page.get_by_role("button", name="Approve", exact=True)
        with suppress(Error):  # it is drawn anew with each connection
            if approve.first.is_visible():
                approve.first.click(timeout=1_000)
        assert time.monotonic() < end, tab.log.inner_text()
        tab.page.wait_for_timeout(100)
    tab.is_idle()
    return tab.still()  # what is stored of the reply comes after it


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("extra", [0, 7, 60], ids=["between events", "inside an id", "inside the data"])
@pytest.mark.parametrize("word", WORDS)
def test_cut_at_every_event(word: str, extra: int, server: PageServer, tabs: Tabs) -> None:
    """Each connection delivers one more event with a position, so that each of them is the last one once."""
    whole = play(server, tabs.new(), word)
    with CuttingProxy(server.port, 1, extra) as proxy:
        tab = tabs.new(url=proxy.url)
        tab.hurry()
        assert play(server, tab, word).splitlines() == whole.splitlines()
        assert proxy.cuts > 0


def test_cut_after_every_few_events(server: PageServer, tabs: Tabs) -> None:
    whole = play(server, tabs.new(), "think")
    with CuttingProxy(server.port, 9, 30) as proxy:
        tab = tabs.new(url=proxy.url)
        tab.hurry()
        assert play(server, tab, "think").splitlines() == whole.splitlines()
        assert proxy.cuts > 0
