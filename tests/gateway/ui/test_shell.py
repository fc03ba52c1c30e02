"""The page around the conversation: threads, header, message field, dialogs, keys; on a desktop and on a phone."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from page_driver import Tab, Tabs, opened
from page_server import PageServer
from playwright.sync_api import Locator, Page, expect
from ui_kit import page as page_of

from agentkit import Agent
from agentkit.gateway.ui.page_models import ModelOption
from agentkit.testing import ScriptedModel
from agentkit.threads import ThreadManager

AXE: Final = os.environ.get("AGENTKIT_AXE", "")
"""Where `axe.min.js` of axe-core is; empty for no such test."""


def threads(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Threads").get_by_role("listitem")


def banner(page: Page, text: str) -> Locator:
    return page.locator(".banner", has_text=text)


def menu(page: Page, item: str) -> None:
    page.get_by_role("button", name="Thread menu").click()
    page.get_by_role("button", name=item, exact=True).click()


def started(tabs: Tabs, text: str = "hello") -> Tab:
    """A tab with a thread in which one message was answered."""
    tab = tabs.new()
    tab.say(text)
    tab.is_idle()
    return tab


# ---------------------------------------------------------------- threads


def test_the_first_message_opens_a_thread(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    expect(tab.page.get_by_text("No threads yet.")).to_be_visible()
    tab.say("hello")
    tab.sees("hello", "Hello there.")
    expect(threads(tab.page)).to_have_count(1)
    expect(tab.box).to_have_value("")
    assert tab.thread


@pytest.mark.soak
def test_two_threads_are_apart(server: PageServer, tabs: Tabs) -> None:
    tab = started(tabs, "first")
    one = tab.thread
    tab.page.get_by_role("link", name="New thread").click()
    expect(tab.log).to_be_hidden()
    tab.say("second")
    tab.sees("You said second.")
    tab.sees_no("first")
    assert tab.thread != one
    expect(threads(tab.page)).to_have_count(2)
    tab.page.go_back()
    tab.page.go_back()
    tab.sees("You said first.")
    tab.sees_no("second")


@pytest.mark.soak
def test_a_title_is_changed_and_searched(server: PageServer, tabs: Tabs) -> None:
    tab = started(tabs)
    title = tab.page.get_by_role("textbox", name="Thread title")
    title.fill("Orders of tea")
    title.press("Enter")
    expect(tab.box).to_be_focused()
    expect(threads(tab.page)).to_have_text([re.compile("Orders of tea")])
    tab.reload()
    expect(title).to_have_value("Orders of tea")
    expect(tab.page).to_have_title("agentkit · Orders of tea")
    search = tab.page.get_by_role("searchbox", name="Search threads")
    search.fill("nothing like it")
    expect(tab.page.get_by_text("No thread has these words.")).to_be_visible()
    search.fill("of tea")
    expect(threads(tab.page)).to_have_count(1)
    title.fill("Half")
    title.press("Escape")
    expect(title).to_have_value("Orders of tea")


@pytest.fixture
def many(tmp_path: Path) -> Iterator[str]:
    """The address of a page with an old thread and 200 newer ones."""

    async def create() -> None:
        async with ThreadManager(tmp_path / "many.db") as threads:
            for title in ["needle", *["hay"] * 200]:
                await threads.create_thread(metadata={"ui": {"title": title}})

    asyncio.run(create())
    with page_of(Agent(ScriptedModel([])), tmp_path / "many.db") as client:
        yield client.url


def test_older_threads_are_searched_when_she_asks_for_them(many: str, tabs: Tabs) -> None:
    page = tabs.new(url=many).page
    page.get_by_role("searchbox", name="Search threads").fill("needle")
    expect(page.get_by_text("No newer thread has these words.")).to_be_visible()
    page.get_by_role("button", name="Older threads").click()
    expect(threads(page)).to_have_text(["needle"])
    expect(page.get_by_role("button", name="Older threads")).to_be_hidden()


@pytest.fixture
def choosing(tmp_path: Path) -> Iterator[str]:
    """The address of a page with two models, in any format of calls."""
    models = [ModelOption(name, name.upper(), lambda _: ScriptedModel([["Hello there."]])) for name in ("one", "two")]
    with page_of(Agent(ScriptedModel([["Hello there."]])), tmp_path / "choices.db", models) as client:
        yield client.url


def test_model_and_format_are_changed_in_the_middle(choosing: str, tabs: Tabs) -> None:
    tab = tabs.new(url=choosing)
    tab.say("hello")
    other = tabs.new(tab.thread, choosing)
    for label, choice in (("Model", "two"), ("Format of tool calls", "xml"), ("Format of tool calls", "native")):
        tab.page.get_by_label(label).select_option(choice)
        expect(other.page.get_by_label(label)).to_have_value(choice)
    tab.reload()
    expect(tab.page.get_by_label("Model")).to_have_value("two")


@pytest.mark.soak
def test_the_choices_for_a_new_thread_are_kept(choosing: str, tabs: Tabs) -> None:
    tab = tabs.new(url=choosing)
    tab.page.get_by_label("Model").select_option("one")
    tab.page.get_by_label("Format of tool calls").select_option("hermes")
    expect(tab.page.get_by_label("Format of tool calls")).to_have_value("hermes")
    tab.say("hello")
    tab.sees("Hello there.")
    expect(tab.page.get_by_label("Model")).to_have_value("one")
    expect(tab.page.get_by_label("Format of tool calls")).to_have_value("hermes")


@pytest.mark.soak
def test_a_deleted_thread_is_gone_everywhere(server: PageServer, tabs: Tabs) -> None:
    tab = started(tabs)
    other = tabs.new(tab.thread)
    menu(tab.page, "Delete…")
    tab.press("Cancel")
    expect(threads(tab.page)).to_have_count(1)
    menu(tab.page, "Delete…")
    tab.press("Delete")
    expect(threads(tab.page)).to_have_count(0)
    expect(tab.page.get_by_text("What should be done?")).to_be_visible()
    expect(banner(other.page, "does not exist")).to_be_visible()


def test_a_fork_goes_on_alone(server: PageServer, tabs: Tabs) -> None:
    tab = started(tabs)
    one = tab.thread
    menu(tab.page, "Fork this thread")
    expect(threads(tab.page)).to_have_count(2)
    tab.sees("Hello there.")
    tab.say("further")
    tab.sees("You said further.")
    tab.open(one)
    tab.sees("Hello there.")
    assert "further" not in tab.text()


@pytest.mark.soak
@pytest.mark.parametrize(("item", "wanted"), [("Export: JSON (agentkit)", ".json"), ("Export: Markdown", ".md")])
def test_a_thread_is_exported(server: PageServer, tabs: Tabs, item: str, wanted: str, tmp_path: Path) -> None:
    tab = started(tabs)
    with tab.page.expect_download() as download:
        menu(tab.page, item)
    saved = tmp_path / "exported"
    download.value.save_as(saved)
    assert "hello" in saved.read_text()
    assert download.value.suggested_filename.endswith(wanted)


@pytest.mark.soak
def test_an_unknown_thread_says_so(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    tab.open("no-such-thread", wait=False)
    expect(banner(tab.page, "does not exist")).to_be_visible()
    expect(tab.page.locator("#text")).to_be_disabled()


# ---------------------------------------------------------------- keyboard, phone, colours


def test_everything_by_keyboard(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    page = tab.page
    keys = page.keyboard
    page.get_by_role("button", name="Attach files").focus()
    keys.press("?")  # a bare key: nothing outside the conversation and the list
    keys.press("Control+k")
    expect(page.get_by_role("searchbox")).to_be_focused()
    keys.press("Shift+Tab")
    keys.press("/")
    expect(tab.box).to_be_focused()
    keys.type("order please")
    keys.press("Enter")
    expect(page).to_have_title(re.compile(r"\(1\) agentkit"))
    expect(page.get_by_role("heading", name="Needs you")).to_be_visible()
    for _ in range(40):
        if page.evaluate("document.activeElement.textContent") == "1 waiting for you":
            break
        keys.press("Tab")
    keys.press("Enter")
    approve = tab.card("order").place.get_by_role("button", name="Approve", exact=True)
    expect(approve).to_have_attribute("aria-disabled", "false")  # a new card is deaf for a moment
    keys.press("y")
    tab.sees("That is settled.")
    expect(tab.box).to_be_focused()
    server.hold("slow")
    keys.type("slow")
    keys.press("Enter")
    server.until_held("slow")
    tab.has_cards(("order", "done"), ("slow", "running"))
    keys.press("Escape")
    tab.is_idle()
    assert [effect["tool"] for effect in server.effects] == ["order", "slow"]


@pytest.mark.soak
def test_keys_are_listed_and_the_focus_returns(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    tab.page.get_by_role("button", name="Keys").focus()
    tab.page.keyboard.press("?")
    dialog = tab.page.get_by_role("dialog", name="Keys")
    expect(dialog).to_contain_text("Find a thread")
    tab.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(tab.page.get_by_role("button", name="Keys")).to_be_focused()


@pytest.mark.soak
def test_a_page_that_lacks_a_file_says_so(server: PageServer, tabs: Tabs) -> None:
    """As in a tab of a newer page on an older server."""
    tab = tabs.new()
    tab.page.route("**/ui/keys.js", lambda route: route.fulfill(status=404))
    tab.reload(wait=False)
    expect(banner(tab.page, "could not be loaded completely")).to_be_visible()


@pytest.mark.soak
def test_a_button_under_the_pointer_can_be_read(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    tab.box.fill("hello")
    send = tab.page.get_by_role("button", name="Send")
    colours = (
        "button => { const { color, backgroundColor } = getComputedStyle(button); return [color, backgroundColor]; }"
    )
    text, ground = send.evaluate(colours)
    send.hover()
    assert send.evaluate(colours)[0] == text
    assert send.evaluate(colours)[1] not in (text, ground)


@pytest.fixture
def free(tmp_path: Path) -> Iterator[str]:
    """The address of a page whose only tool asks nobody."""

    def look(word: str) -> str:
        """Look up a word."""
        return word

    with page_of(Agent(ScriptedModel([]), [look]), tmp_path / "free.db") as client:
        yield client.url


@pytest.mark.soak
def test_the_start_says_that_no_tool_asks(free: str, tabs: Tabs) -> None:
    expect(tabs.new(url=free).page.get_by_text("No tool asks you first.")).to_be_visible()
    expect(tabs.new().page.get_by_text("order · asks you first")).to_be_visible()


@pytest.mark.soak
def test_the_threads_can_be_hidden(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    nav = tab.page.get_by_role("navigation", name="Threads")
    tab.page.keyboard.press("Control+b")
    expect(nav).to_be_hidden()
    tab.reload()
    expect(nav).to_be_hidden()
    tab.page.get_by_role("button", name="Show threads").click()
    expect(nav).to_be_visible()


@pytest.mark.parametrize("width", [320, 390])
def test_a_phone_needs_no_horizontal_scrolling(server: PageServer, tabs: Tabs, width: int) -> None:
    server.play(
        "wide", ["A path: " + "abcdefgh/" * 60, {"call": "table", "arguments": {"rows": 2}}], ["`" + "x" * 300 + "`"]
    )
    window = opened(viewport={"width": width, "height": 640}, has_touch=True, is_mobile=True)
    tab = Tab(window, server.url)
    tab.open()
    tab.say("wide")
    tab.sees("xxx")
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.log.evaluate("log => log.scrollWidth <= log.clientWidth")
    box = tab.page.locator("#composer").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 640
    tab.press("Show threads")
    expect(threads(tab.page)).to_have_count(1)
    tab.page.keyboard.press("Escape")
    expect(tab.page.get_by_role("navigation", name="Threads")).to_be_hidden()
    expect(tab.page.get_by_role("button", name="Show threads")).to_be_focused()
    tab.press("Show threads")
    tab.page.get_by_role("link", name="New thread").click()
    expect(tab.page.get_by_role("navigation", name="Threads")).to_be_hidden()
    expect(tab.page.get_by_role("heading", name="What should be done?")).to_be_visible()
    assert tab.faults() == []
    window.close()


@pytest.mark.soak
def test_colours_are_chosen_and_kept(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    ground = "getComputedStyle(document.body).backgroundColor"
    light = tab.page.evaluate(ground)
    tab.page.get_by_role("button", name="Colours: auto").click()
    tab.page.get_by_role("button", name="Colours: light").click()
    assert tab.page.evaluate(ground) != light
    tab.reload()
    expect(tab.page.get_by_role("button", name="Colours: dark")).to_be_visible()
    assert tab.page.evaluate(ground) != light


@pytest.mark.skipif(not AXE, reason="AGENTKIT_AXE does not name axe.min.js")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_no_violation_of_accessibility(server: PageServer, tabs: Tabs, scheme: str, width: int) -> None:
    window = opened(viewport={"width": width, "height": 800}, color_scheme=scheme)
    tab = Tab(window, server.url)
    tab.open()
    assert violations(tab.page) == []
    tab.say("orders")
    expect(tab.page.get_by_role("button", name="3 waiting for you")).to_be_visible()
    assert violations(tab.page) == []
    tab.log.focus()
    tab.page.keyboard.press("?")
    expect(tab.page.get_by_role("dialog", name="Keys")).to_be_visible()
    assert violations(tab.page) == []
    window.close()


def violations(page: Page) -> list[str]:
    """What axe-core finds, run past the page's own policy."""
    session = page.context.new_cdp_session(page)
    session.send("Runtime.evaluate", {"expression": Path(AXE).read_text()})
    script = (
        "axe.run().then(found => found.violations.flatMap(rule => rule.nodes.map(node => rule.id + ' ' + node.target)))"
    )
    answer = session.send("Runtime.evaluate", {"expression": script, "awaitPromise": True, "returnByValue": True})
    found: list[str] = answer["result"]["value"]
    return found
