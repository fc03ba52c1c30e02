"""The connection of the event stream cut after each event, and inside of each: the same page as without cuts."""

from __future__ import annotations

import pytest
from cutting_proxy import CuttingProxy
from page_driver import Tab, Tabs
from page_server import PageServer

WORDS = ["long", "think", "slow", "orders", "both", "write", "edit", "fail", "picture", "table", "ask"]


def play(tab: Tab, word: str) -> str:
    """A conversation with all calls approved; returns the page's text at the end."""
    tab.say(word)
    tab.thread  # noqa: B018 - waits until there is one
    tab.is_at_rest()
    while (waiting := tab.page.get_by_role("button", name="Approve", exact=True)).count():
        waiting.first.click()
        tab.page.wait_for_timeout(100)
        tab.is_at_rest()
    tab.is_idle()
    return tab.text()


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("extra", [0, 7, 60], ids=["between events", "inside an id", "inside the data"])
@pytest.mark.parametrize("word", WORDS)
def test_cut_at_every_event(word: str, extra: int, server: PageServer, tabs: Tabs) -> None:
    """Each connection delivers one more event with a position, so that each of them is the last one once."""
    whole = play(tabs.new(), word)
    with CuttingProxy(server.port, 1, extra) as proxy:
        tab = tabs.new(url=proxy.url)
        tab.hurry()
        assert play(tab, word).splitlines() == whole.splitlines()
        assert proxy.cuts > 5


def test_cut_after_every_few_events(server: PageServer, tabs: Tabs) -> None:
    whole = play(tabs.new(), "order")
    with CuttingProxy(server.port, 9, 30) as proxy:
        tab = tabs.new(url=proxy.url)
        tab.hurry()
        assert play(tab, "order").splitlines() == whole.splitlines()
        assert proxy.cuts > 1
