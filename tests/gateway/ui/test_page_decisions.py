"""Decisions, from two tabs, twice, too late; stop at each state; what is always allowed; messages that wait; forks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import pytest
from page_driver import Tab, Tabs
from page_server import PageServer
from playwright.sync_api import Response, expect

WAITS, RUNS, DONE = "waiting for you", "running", "done"
ORDER_MILK: Final = {"call": "order", "arguments": {"item": "milk", "amount": 2}}


def ordered(server: PageServer) -> list[str]:
    assert server.repeated == {}
    return [f"{effect['amount']} {effect['item']}" for effect in server.effects if effect["tool"] == "order"]


def asked(tabs: Tabs, word: str = "order") -> Tab:
    tab = tabs.new()
    tab.say(word)
    tab.card("order").says("Run order?")
    return tab


# ---------------------------------------------------------------- two tabs


def test_what_one_tab_decides_the_other_shows(server: PageServer, tabs: Tabs) -> None:
    first = asked(tabs)
    second = tabs.new(first.thread)
    second.has_cards(("order", WAITS))
    second.card("order").approve()
    for tab in (first, second):
        tab.sees("That is settled.")
        tab.has_cards(("order", DONE))
        tab.is_idle()
    assert first.still() == second.still()
    assert ordered(server) == ["3 tea"]


@pytest.mark.soak
@pytest.mark.parametrize("second_answer", ["approve", "deny", "always"])
def test_both_tabs_answer_at_once(second_answer: str, server: PageServer, tabs: Tabs) -> None:
    """Neither decision leaves before both are made."""
    server.hold("order")
    first = asked(tabs)
    second = tabs.new(first.thread)
    second.has_cards(("order", WAITS))
    held: list[Callable[[], None]] = []
    answers: list[int] = []

    def note(answer: Response) -> None:
        if answer.url.endswith("/decisions"):
            answers.append(answer.status)

    for tab in (first, second):
        tab.page.route("**/decisions", lambda route: held.append(route.continue_))
        tab.page.on("response", note)
    first.card("order").approve()
    {
        "approve": second.card("order").approve,
        "deny": second.card("order").deny,
        "always": second.card("order").always,
    }[second_answer]()
    first.until(lambda: len(held) == 2, "two decisions on their way")
    for leave in held:
        leave()
    first.until(lambda: sorted(answers) == [200, 409], "one decision that is refused")
    server.release("order")
    for tab in (first, second):
        tab.sees("That is settled.")
        tab.is_idle()
    assert first.cards() == second.cards()
    assert len(ordered(server)) == (first.cards() == [("order", DONE)])


@pytest.mark.soak
def test_two_clicks_are_one_decision(server: PageServer, tabs: Tabs) -> None:
    tab = asked(tabs)
    tab.card("order").place.get_by_role("button", name="Approve", exact=True).dblclick()
    tab.sees("That is settled.")
    tab.is_idle()
    assert ordered(server) == ["3 tea"]


@pytest.mark.soak
def test_a_tab_that_missed_the_decision_is_told(server: PageServer, tabs: Tabs) -> None:
    """Its stream is cut off when it answers."""
    first = asked(tabs)
    second = tabs.new(first.thread)
    second.has_cards(("order", WAITS))
    refused: list[None] = []
    second.page.route("**/events*", lambda route: refused.append(route.abort()))
    for hidden in ("true", "false"):  # a tab that is not looked at ends its stream
        second.page.evaluate(f"Object.defineProperty(document, 'hidden', {{ value: {hidden}, configurable: true }})")
        second.page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    second.until(lambda: bool(refused), "a stream that is refused")
    first.card("order").deny("too dear")
    first.sees("That is settled.")
    second.card("order").approve()
    second.sees("It was decided elsewhere, or it changed.", "already denied")
    second.page.unroute("**/events*")
    second.has_cards(("order", "denied"))
    assert ordered(server) == []


@pytest.mark.soak
def test_an_answer_after_she_wrote_again_is_refused(server: PageServer, tabs: Tabs) -> None:
    """The card shows that it no longer waits; an answer that is already on its way is refused."""
    first = asked(tabs)
    second = tabs.new(first.thread)
    second.has_cards(("order", WAITS))
    held: list[Callable[[], None]] = []
    second.page.route("**/decisions", lambda route: held.append(route.continue_))
    second.card("order").approve()
    second.until(lambda: bool(held), "a decision on its way")
    first.say("hello")
    first.sees("Hello there.")
    with second.page.expect_response("**/decisions") as answer:
        held[0]()
    assert answer.value.status == 409
    for tab in (first, second):
        tab.has_cards(("order", "stopped"))
    assert ordered(server) == []


@pytest.mark.soak
def test_denied_in_the_terminal(server: PageServer, tabs: Tabs) -> None:
    tab = asked(tabs)
    (call,) = (line.split()[1] for line in [f"x {tab.card('order').place.get_attribute('data-call')}"])
    server.command("threads", "deny", tab.thread, call, "--reason", "said in the terminal")
    tab.has_cards(("order", "denied"))
    tab.card("order").unfold()
    tab.card("order").says("said in the terminal")
    assert ordered(server) == []


@pytest.mark.soak
def test_a_decision_while_the_reply_is_written_stays(server: PageServer, tabs: Tabs) -> None:
    server.play(
        "slowly",
        [{"call": "order", "arguments": {"item": "tea", "amount": 1}}, "A pause. " * 20, ORDER_MILK],
        ["Both settled."],
    )
    server.hold("model", 12)
    tab = asked(tabs, "slowly")
    server.until_held("model")
    tab.card("order").approve()
    tab.has_cards(("order", "approved"))
    server.release("model")
    tab.has_cards(("order", "approved"), ("order", WAITS))
    expect(tab.page.get_by_role("button", name="1 waiting for you")).to_be_visible()
    tab.card("order").says("approved, waits for 1 more")
    tab.card("order", 1).approve()
    tab.sees("Both settled.")
    assert ordered(server) == ["1 tea", "2 milk"]


def test_always_allowed_is_also_the_other_call_that_waits(server: PageServer, tabs: Tabs) -> None:
    tab = asked(tabs, "orders")
    tab.card("order").always()
    tab.sees("All settled.")
    assert ordered(server) == ["1 tea", "2 milk", "3 cake"]


@pytest.mark.soak
def test_a_message_stops_the_calls_that_wait_and_the_button_says_so(server: PageServer, tabs: Tabs) -> None:
    tab = asked(tabs, "orders")
    tab.box.fill("hello")
    send = "Send, and stop the 3 waiting"
    expect(tab.page.get_by_role("button", name=send)).to_be_visible()
    tab.box.press("Escape")  # it would stop what runs; here it clears the field, and stops nothing
    expect(tab.box).to_have_value("")
    tab.box.fill("hello")
    tab.press(send)
    tab.sees("Hello there.")
    tab.has_cards(*[("order", "stopped")] * 3)


@pytest.mark.soak
def test_a_form_stays_when_the_server_is_started_again(server: PageServer, tabs: Tabs) -> None:
    tab = asked(tabs)
    tab.card("order").press("Edit")
    field = tab.card("order").place.get_by_role("textbox", name=re.compile("^item"))
    field.fill("coffee")
    server.kill()
    server.restart()
    tab.hurry()
    expect(tab.page.locator(".banner")).to_have_count(0)
    expect(field).to_have_value("coffee")
    expect(field).to_be_focused()
    field.press("Control+Enter")
    tab.sees("That is settled.")
    assert ordered(server) == ["3 coffee"]


@pytest.mark.soak
def test_a_form_that_is_too_late_says_so(server: PageServer, tabs: Tabs) -> None:
    first = asked(tabs)
    second = tabs.new(first.thread)
    second.has_cards(("order", WAITS))
    second.card("order").press("Edit")
    first.card("order").approve()
    second.card("order").says("what you wrote here was not used")


@pytest.mark.soak
def test_a_stopped_reply_is_asked_for_again(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    server.hold("model", 30)
    tab.say("long")
    server.until_held("model")
    tab.press("Stop")
    tab.is_idle()
    server.release("model")
    tab.press("Try again")
    tab.sees("The end.")
    expect(tab.page.get_by_role("button", name="Try again")).to_be_hidden()


# ---------------------------------------------------------------- stop

STOPS: Final[dict[str, tuple[str, str, int, tuple[tuple[str, str], ...]]]] = {
    "streaming": ("long", "model", 30, ()),
    "before the first event": ("long", "model", 0, ()),
    "an argument streaming": ("order", "model", 5, (("order", "stopped"),)),
    "a tool running": ("slow", "slow", 0, (("slow", "stopped"),)),
    "one waiting": ("order", "", 1, (("order", "stopped"),)),
    "three waiting": ("orders", "", 3, (("order", "stopped"),) * 3),
    "one waits and one runs": ("both", "slow", 0, (("slow", "stopped"), ("order", "stopped"))),
    "waiting inside": ("ask", "", 1, (("ask_helper", "interrupted: outcome unknown"),)),  # it had started
}
"""By the state: what she says, what is held there and after how many events, or else how many calls wait, and the
cards after the stop."""


@pytest.mark.parametrize("again", [False, True], ids=["then hello", "then a reload"])
@pytest.mark.parametrize("state", STOPS)
@pytest.mark.share(8)
def test_stop_at(state: str, again: bool, server: PageServer, tabs: Tabs) -> None:
    word, held, number, cards = STOPS[state]
    tab = tabs.new()
    if held:
        server.hold(held, number)
    tab.say(word)
    if held:
        server.until_held(held)
    else:
        server.until_waiting(number)
    tab.press("Stop")
    tab.is_idle()
    tab.has_cards(*cards)
    if held:
        server.release(held)
    before = tab.still()
    if again:
        tab.reload()
        tab.has_cards(*cards)
        tab.is_idle()
        assert tab.still().splitlines() == before.splitlines()
    tab.say("hello")
    tab.sees("Hello there.")
    tab.has_cards(*cards)
    tab.is_idle()
    assert ordered(server) == []


# ---------------------------------------------------------------- always


@pytest.mark.soak
def test_always_allowed_until_it_is_revoked(server: PageServer, tabs: Tabs) -> None:
    tab = asked(tabs, "twice")
    tab.card("order").always()
    tab.sees("Both settled.")
    assert ordered(server) == ["1 tea", "2 milk"]
    tab.reload()
    tab.sees("Both settled.")
    tab.page.get_by_role("button", name="order", exact=False).filter(has_text="").last.wait_for()
    allowed = tab.page.locator("#allowed")
    expect(allowed).to_contain_text("order")
    other = tabs.new()
    other.say("order")
    other.has_cards(("order", WAITS))
    allowed.get_by_role("button").first.click()
    expect(allowed).to_be_hidden()
    tab.say("order")
    tab.card("order", 2).says("Run order?")
    assert len(ordered(server)) == 2


def test_a_pattern_is_allowed_and_asks_about_everything_else(server: PageServer, tabs: Tabs) -> None:
    server.play(
        "some",
        [{"call": "order", "arguments": {"item": "tea", "amount": 2.0}}],  # JavaScript knows only 2
        [{"call": "order", "arguments": {"item": "tea, green", "amount": 2}}],
        [{"call": "order", "arguments": {"item": "tea; gin", "amount": 2}}],
        ["No gin."],
    )
    tab = asked(tabs, "some")
    tab.card("order").allow_like_this(item="gin*")
    tab.card("order").says("These patterns do not fit this call itself.")
    tab.card("order").place.get_by_role("textbox", name=re.compile("^item")).fill("tea*")
    tab.card("order").press("Approve, and always allow these")
    tab.has_cards(("order", DONE), ("order", DONE), ("order", WAITS))
    expect(tab.page.locator("#allowed")).to_contain_text('order: item = "tea*", amount = 2')
    tab.card("order", 2).deny()
    tab.sees("No gin.")
    assert ordered(server) == ["2 tea", "2 tea, green"]
    tab.reload()
    tab.page.locator("#allowed").get_by_role("button").click()
    expect(tab.page.locator("#allowed")).to_be_hidden()
    tab.say("some")
    tab.card("order", 3).says("Run order?")
    assert len(ordered(server)) == 2


def test_a_rule_of_the_terminal_is_on_the_page(server: PageServer, tabs: Tabs) -> None:
    tab = asked(tabs)
    tab.card("order").always()
    tab.sees("That is settled.")
    assert "order: any arguments" in server.command("threads", "allowed", tab.thread)
    server.command("threads", "revoke", tab.thread, "1")
    expect(tab.page.locator("#allowed")).to_be_hidden()
    tab.say("order")
    tab.card("order", 1).says("Run order?")


# ---------------------------------------------------------------- more than one thing at a time


@pytest.mark.soak
def test_a_message_while_it_answers_is_queued(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    server.hold("slow")
    tab.say("slow")
    server.until_held("slow")
    tab.say("hello")
    tab.sees("queued")
    tab.reload()
    tab.sees("hello")
    server.release("slow")
    tab.sees("Hello there.")
    tab.is_idle()
    tab.has_cards(("slow", DONE))
    before = tab.still()
    tab.reload()
    tab.sees("Hello there.")
    assert tab.still().splitlines() == before.splitlines()


@pytest.mark.soak
def test_a_fork_past_an_unfinished_reply(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    tab.say("hello")
    tab.sees("Hello there.")
    tab.is_idle()
    server.hold("slow")
    tab.say("slow")
    server.until_held("slow")
    old = tab.thread
    tab.page.get_by_role("button", name="Fork the thread after this message").nth(1).click()
    expect(tab.page).not_to_have_url(f"{server.url}/#/t/{old}")
    tab.sees("Hello there.")
    tab.has_cards()
    tab.say("order")
    tab.card("order").approve()
    tab.sees("That is settled.")
    server.release("slow")
    tab.open(old)
    tab.sees("It is done.")
    tab.has_cards(("slow", DONE))


@pytest.mark.soak
def test_the_cards_of_two_threads_do_not_mix(server: PageServer, tabs: Tabs) -> None:
    first, second = asked(tabs), asked(tabs, "orders")
    moving = tabs.new(first.thread)
    for _ in range(3):
        moving.has_cards(("order", WAITS))
        moving.page.evaluate(f"location.hash = '#/t/{second.thread}'")
        moving.has_cards(*[("order", WAITS)] * 3)
        moving.page.evaluate(f"location.hash = '#/t/{first.thread}'")
    moving.card("order").approve()
    moving.sees("That is settled.")
    second.has_cards(*[("order", WAITS)] * 3)
    for at in range(3):
        second.card("order", at).approve()
    second.sees("All settled.")
    moving.has_cards(("order", DONE))
    assert ordered(server) == ["3 tea", "1 tea", "2 milk", "3 cake"]


@pytest.mark.soak
def test_what_does_not_fit_is_said_at_its_field(server: PageServer, tabs: Tabs) -> None:
    tab = asked(tabs)
    card = tab.card("order")
    card.edit(amount="many")
    card.says("This is not a number.")
    card.place.get_by_role("textbox", name="item").fill("")
    card.place.get_by_role("textbox", name="amount").fill("2.5")
    card.press("Approve with these arguments")
    card.says("These arguments do not fit.")
    card.place.get_by_role("textbox", name="amount").fill("2")
    card.place.get_by_role("textbox", name="item").fill("milk")
    card.press("Approve with these arguments")
    tab.sees("That is settled.")
    assert ordered(server) == ["2 milk"]
    card.unfold()
    card.says("edited", "milk")
