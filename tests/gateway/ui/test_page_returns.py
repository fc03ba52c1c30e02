"""Reload, and the death of the server, at each state of a thread: the page comes back, and no call happens twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import pytest
from page_driver import Tab, Tabs
from page_server import PageServer

WAITS, RUNS, DONE, UNKNOWN = "waiting for you", "running", "done", "interrupted: outcome unknown"
Act = Callable[[PageServer, Tab], None]
Cards = tuple[tuple[str, str], ...]


class State(NamedTuple):
    """A state of a thread.

    Args:
        begin: brings a tab there.
        cards: the cards there.
        end: brings the thread to its end.
        last: the cards at its end.
        effects: of the tools, at its end.
        lost: the cards after the server's death; None for the same.
        recover: after the server's death, instead of `end`.
    """

    begin: Act
    cards: Cards
    end: Act
    last: Cards
    says: str
    effects: list[dict[str, object]]
    lost: Cards | None = None
    recover: Act | None = None

    def reach(self, server: PageServer, tab: Tab) -> None:
        """Bring a tab there."""
        self.begin(server, tab)
        if waiting := [state for _, state in self.cards].count(WAITS):
            server.until_waiting(waiting)
        tab.has_cards(*self.cards)


def streaming(server: PageServer, tab: Tab) -> None:
    server.hold("model", 30)
    tab.say("long")
    server.until_held("model")
    tab.sees("Word20")


def running(server: PageServer, tab: Tab) -> None:
    server.hold("slow")
    tab.say("slow")
    server.until_held("slow")


def saving(server: PageServer, tab: Tab) -> None:
    server.hold("save")
    tab.say("save")
    server.until_held("save")


def says(word: str) -> Act:
    def say(server: PageServer, tab: Tab) -> None:
        tab.say(word)

    return say


def edited(server: PageServer, tab: Tab) -> None:
    tab.say("orders")
    tab.card("order").edit(amount="7")


def denied(server: PageServer, tab: Tab) -> None:
    tab.say("orders")
    tab.card("order").deny("too dear")


def edited_and_running(server: PageServer, tab: Tab) -> None:
    server.hold("order")
    tab.say("order")
    tab.card("order").edit(amount="7")
    server.until_held("order")


def release(server: PageServer, tab: Tab) -> None:
    for name in ("model", "slow", "save", "order"):
        server.release(name)


def go_on(server: PageServer, tab: Tab) -> None:
    release(server, tab)
    tab.press("Continue")


def say_what_happened(server: PageServer, tab: Tab) -> None:
    release(server, tab)
    name = tab.cards()[0][0]
    tab.card(name).says("It was running when the server stopped")
    tab.card(name).happened("I looked: it did.")
    tab.press("Continue")


def approve(server: PageServer, tab: Tab) -> None:
    tab.card("order").approve()


def decide_all(server: PageServer, tab: Tab) -> None:
    tab.card("order", 0).approve()
    decide_others(server, tab)


def decide_others(server: PageServer, tab: Tab) -> None:
    tab.card("order", 1).approve()
    tab.card("order", 2).deny("no cake")


def order(item: str, amount: int) -> dict[str, object]:
    return {"tool": "order", "item": item, "amount": amount}


STATES: Final = {
    "streaming": State(streaming, (), release, (), "The end.", [], (), go_on),
    "a tool running": State(
        running,
        (("slow", RUNS),),
        release,
        (("slow", DONE),),
        "It is done.",
        [{"tool": "slow", "text": "one"}],
        (("slow", UNKNOWN),),
        say_what_happened,
    ),
    "an idempotent tool running": State(
        saving,
        (("save", RUNS),),
        release,
        (("save", DONE),),
        "It is saved.",
        [{"tool": "save", "text": "one"}],
        (("save", "ready"),),
        go_on,
    ),
    "one waiting": State(
        says("order"), (("order", WAITS),), approve, (("order", DONE),), "That is settled.", [order("tea", 3)]
    ),
    "three waiting": State(
        says("orders"),
        (("order", WAITS),) * 3,
        decide_all,
        (("order", DONE), ("order", DONE), ("order", "denied")),
        "All settled.",
        [order("tea", 1), order("milk", 2)],
    ),
    "one of three edited": State(
        edited,
        (("order", "approved"), ("order", WAITS), ("order", WAITS)),
        decide_others,
        (("order", DONE), ("order", DONE), ("order", "denied")),
        "All settled.",
        [order("tea", 7), order("milk", 2)],
    ),
    "one of three denied": State(
        denied,
        (("order", "denied"), ("order", WAITS), ("order", WAITS)),
        decide_others,
        (("order", "denied"), ("order", DONE), ("order", "denied")),
        "All settled.",
        [order("milk", 2)],
    ),
    "edited and running": State(
        edited_and_running,
        (("order", RUNS),),
        release,
        (("order", DONE),),
        "That is settled.",
        [order("tea", 7)],
        (("order", UNKNOWN),),
        say_what_happened,
    ),
    "waiting inside a sub-agent": State(
        says("ask"),
        (("ask_helper", WAITS),),
        lambda server, tab: tab.card("ask_helper").approve(),
        (("ask_helper", DONE),),
        "Answered.",
        [order("tea", 3)],
    ),
}


def plain(server: PageServer) -> list[dict[str, object]]:
    """The effects without their keys; a repeated one of an idempotent tool counts once."""
    seen = {(effect["tool"], effect["key"]): effect for effect in server.effects}
    assert server.repeated == {}
    return [{name: value for name, value in effect.items() if name != "key"} for effect in seen.values()]


@pytest.mark.parametrize("state", STATES)
@pytest.mark.share(6)
def test_a_reload_changes_nothing(state: str, server: PageServer, tabs: Tabs) -> None:
    it = STATES[state]
    tab = tabs.new()
    it.reach(server, tab)
    before = tab.still()
    tab.reload()
    tab.has_cards(*it.cards)
    assert tab.still().splitlines() == before.splitlines()
    it.end(server, tab)
    tab.sees(it.says)
    tab.has_cards(*it.last)
    tab.is_idle()
    before = tab.still()
    tab.reload()
    tab.sees(it.says)
    tab.has_cards(*it.last)
    assert tab.still().splitlines() == before.splitlines()
    assert plain(server) == it.effects


@pytest.mark.parametrize("reloads", [True, False], ids=["and a reload", "and the page stays"])
@pytest.mark.parametrize("state", STATES)
@pytest.mark.share(14)
def test_after_the_death_of_the_server(state: str, reloads: bool, server: PageServer, tabs: Tabs) -> None:
    it = STATES[state]
    tab = tabs.new()
    it.reach(server, tab)
    server.restart()
    if reloads:
        tab.reload()
    tab.has_cards(*(it.cards if it.lost is None else it.lost))
    (it.recover or it.end)(server, tab)
    tab.sees(it.says)
    tab.has_cards(*it.last)
    tab.is_idle()
    before = tab.still()
    tab.reload()
    tab.sees(it.says)
    assert tab.still().splitlines() == before.splitlines()
    assert plain(server) == it.effects
