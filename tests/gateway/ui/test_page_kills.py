"""The server killed at random moments of a conversation: nothing happens twice, no card is lost."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from contextlib import suppress
from typing import Final

import pytest
from page_driver import SECONDS, Tab, Tabs
from page_server import PageServer
from playwright.sync_api import Error, expect
from scenario_kit import SOAK

KILLS: Final = int(os.environ.get("AGENTKIT_KILLS", "200" if SOAK else "6"))
MOST: Final = 3  # kills of one conversation
WORDS: Final = {
    "orders": (["order"] * 3, "All settled."),
    "twice": (["order"] * 2, "Both settled."),
    "both": (["slow", "order"], "Both done."),
    "slow": (["slow"], "It is done."),
    "save": (["save"], "It is saved."),
    "order": (["order"], "That is settled."),
    "ask": (["ask_helper"], "Answered."),
}
"""What she says, the tools of all cards, fewer if a kill cut the reply that has them, and the last words."""
AT_END: Final = {"done", "denied"}


def act(server: PageServer, tab: Tab, dice: random.Random) -> str:
    """Do what the page asks for; returns what that was, empty for nothing."""
    names: list[str] = []
    for name, state in tab.cards():
        card = tab.card(name, names.count(name))
        names.append(name)
        if (
            state == "interrupted: outcome unknown"
            and card.place.get_by_role("button", name="It happened…").is_visible()
        ):
            key = str(card.place.get_attribute("data-call"))
            if any(effect["key"].endswith(f"/{key}") and effect["tool"] == name for effect in server.effects):
                card.happened("I looked: it happened.")
            else:
                card.did_not_happen()
            return "outcome"
        if state == "waiting for you":
            if card.place.get_by_role("button", name="Deny", exact=True).is_visible():
                card.press("Deny")  # the form stayed open while the server was dead
                return "deny"
            if dice.random() < 0.7:
                card.approve()
                return "approve"
            card.deny("no")
            return "deny"
    again = tab.page.get_by_role("button", name="Continue", exact=True)
    if again.is_visible():
        again.click()
        return "continue"
    return ""


def converse(server: PageServer, tab: Tab, word: str, kills: int, dice: random.Random, log: Counter[str]) -> None:
    """One conversation with so many kills, each followed by a restart and mostly a reload."""
    server.pace(dice.choice([0, 0.003, 0.01]))
    tab.open()
    tab.send(word)
    for _ in range(kills):
        killer = threading.Timer(dice.random() * dice.choice([0.1, 0.4, 1.5]), server.kill)
        killer.start()
        while killer.is_alive():
            with suppress(Error, AssertionError):
                tab.page.set_default_timeout(700)
                log[act(server, tab, dice)] += 1
            time.sleep(0.02)
        killer.join()
        tab.page.set_default_timeout(SECONDS * 1000)
        server.start()
        if tab.log.is_visible() and dice.random() < 0.7:
            tab.reload()
        log["kill"] += 1
    finish(server, tab, word, dice, log)


def finish(server: PageServer, tab: Tab, word: str, dice: random.Random, log: Counter[str]) -> None:
    """Bring a conversation to its end."""
    if not tab.log.is_visible():  # the server was dead before it had a thread: the message is still in the field
        expect(tab.box).to_have_value(word)
        tab.box.press("Enter")
        expect(tab.log).to_be_visible()
    end = time.monotonic() + 60
    while not (ended(tab, word) and not act(server, tab, dice)):
        if time.monotonic() > end:
            shown = tab.text()
            tab.reload()
            tab.page.wait_for_timeout(1000)
            raise AssertionError(f"{word}: it does not end: {shown}\nAfter a reload: {tab.text()}")
        with suppress(Error):
            tab.page.set_default_timeout(3000)
            log[act(server, tab, dice)] += 1
        tab.page.set_default_timeout(SECONDS * 1000)
        tab.page.wait_for_timeout(100)


def ended(tab: Tab, word: str) -> bool:
    cards = tab.cards()
    tools, last = WORDS[word]
    stop = tab.page.get_by_role("button", name="Stop", exact=True)
    said = tab.log.get_by_text(last).count() > 0 or tab.log.get_by_text("Nothing more.").count() > 0
    return (
        [name for name, _ in cards] == tools[: len(cards)]
        and {state for _, state in cards} <= AT_END | FAILED
        and said
        and not stop.is_visible()
    )


FAILED: Final = {"failed", "stopped", "interrupted: outcome unknown"}
"""What a call that did not happen, was cut off, or of which nobody knows, may end with."""


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_many_kills(server: PageServer, tabs: Tabs) -> None:
    seed = int(os.environ.get("AGENTKIT_SEED", "0"))
    dice, log = random.Random(seed), Counter[str]()
    tab = tabs.new()
    begun = time.monotonic()
    while log["kill"] < KILLS:
        word = dice.choice(list(WORDS))
        log["conversation"] += 1
        converse(server, tab, word, min(dice.randint(1, MOST), KILLS - log["kill"]), dice, log)
        assert server.repeated == {}
        before = tab.cards()
        tab.reload()
        tab.has_cards(*before)
        log.update(state for _, state in before)
        print(f"{log['kill']} kills, {len(server.effects)} effects", flush=True)
    print(f"seed {seed}, {time.monotonic() - begun:.0f} s, {len(server.effects)} effects: {dict(log)}")
