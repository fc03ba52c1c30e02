"""The connection of the event stream cut after each event, and inside of each: the same page as without cuts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

import pytest
from cutting_proxy import CuttingProxy
from page_driver import Tab, Tabs
from page_server import PageServer
from playwright.sync_api import Error

PATIENCE = 300  # seconds: up to 80 connections
PIECE = 6  # characters

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


WRITTEN = """[...document.querySelectorAll("article.answer")].map(reply =>
    [...reply.querySelectorAll(".markdown, .thought, .call:not([data-status=writing]) .call-name")]
        .map(part => part.textContent).join("\\n"))"""
"""The replies of the model, with those of their calls that are complete."""


def play(server: PageServer, tab: Tab, word: str, replies: Sequence[str] = ()) -> None:
    """A conversation with all calls approved. The model ends none of `replies` before the page has all of it."""
    for at in range(len(replies)):
        server.hold(f"shop-{at}")
    server.hold("model", 0)
    tab.say(word)
    server.until_held("model")
    server.release("model")
    end, ended = time.monotonic() + PATIENCE, 0
    while ended < len(replies) or not tab.log.get_by_text(WORDS[word]).is_visible():
        if ended < len(replies) and tab.page.evaluate(WRITTEN)[ended : ended + 1] == [replies[ended]]:
            server.release(f"shop-{ended}")
            ended += 1
        approve = tab.page.get_by_role("button", name="Approve", exact=True)
        with suppress(Error):  # it is drawn anew with each connection
            if approve.first.is_visible():
                approve.first.click(timeout=1_000)
        assert time.monotonic() < end, tab.log.inner_text()
        tab.page.wait_for_timeout(100)
    tab.is_idle()


def cut(server: PageServer, tabs: Tabs, word: str, events: int, extra: int) -> None:
    """A conversation on a page that is cut, and one on a page that is not: both are the same in the end.

    The model ends a reply when the page has it: the pieces of one that has ended are joined to a single event.
    """
    tab = tabs.new()
    play(server, tab, word)
    whole, replies = tab.still().splitlines(), tab.page.evaluate(WRITTEN)
    with CuttingProxy(server.port, events, extra) as proxy:
        tab = tabs.new(url=proxy.url)
        tab.hurry()
        play(server, tab, word, replies)
        tab.until(lambda: tab.text().splitlines() == whole, f"the page without cuts: {whole}")
        assert tab.still().splitlines() == whole
        assert proxy.cuts >= len("".join(replies)) // PIECE // events


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("extra", [0, 7, 60], ids=["between events", "inside an id", "inside the data"])
@pytest.mark.parametrize("word", WORDS)
def test_cut_at_every_event(word: str, extra: int, server: PageServer, tabs: Tabs) -> None:
    """Each connection delivers one more event with a position, so that each piece of a reply is the last one once."""
    cut(server, tabs, word, 1, extra)


def test_cut_after_every_few_events(server: PageServer, tabs: Tabs) -> None:
    cut(server, tabs, "think", 4, 30)
