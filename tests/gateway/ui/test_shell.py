"""The page around the conversation: threads, header, message field, dialogs, keys; on a desktop and on a phone."""

from __future__ import annotations

import base64
import json
import os
import re
from pathlib import Path
from typing import Any, Final

import pytest
from page_driver import Tab, Tabs, opened
from page_server import PageServer
from playwright.sync_api import Locator, Page, expect

PNG: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
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
    tab.thread  # noqa: B018 - waits for it
    tab.is_idle()
    tab.sees(text)
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


def test_a_format_is_changed_in_the_middle(server: PageServer, tabs: Tabs) -> None:
    tab = started(tabs)
    format = tab.page.get_by_label("Format of tool calls")
    format.select_option("xml")
    tab.reload()
    expect(format).to_have_value("xml")
    other = tabs.new(tab.thread)
    expect(other.page.get_by_label("Format of tool calls")).to_have_value("xml")
    format.select_option("native")
    expect(other.page.get_by_label("Format of tool calls")).to_have_value("native")


def test_the_choices_for_a_new_thread_are_kept(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    tab.page.get_by_label("Format of tool calls").select_option("xml")
    tab.say("hello")
    tab.sees("Hello there.")
    expect(tab.page.get_by_label("Format of tool calls")).to_have_value("xml")


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
    tab.page.goto(f"{server.url}/#/t/{one}")
    tab.sees("Hello there.")
    tab.sees_no("further")


@pytest.mark.parametrize(("item", "wanted"), [("Export: JSON (agentkit)", ".json"), ("Export: Markdown", ".md")])
def test_a_thread_is_exported(server: PageServer, tabs: Tabs, item: str, wanted: str, tmp_path: Path) -> None:
    tab = started(tabs)
    with tab.page.expect_download() as download:
        menu(tab.page, item)
    saved = tmp_path / "exported"
    download.value.save_as(saved)
    assert "hello" in saved.read_text()
    assert download.value.suggested_filename.endswith(wanted)


def test_an_unknown_thread_says_so(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    tab.open("no-such-thread", wait=False)
    expect(banner(tab.page, "does not exist")).to_be_visible()
    expect(tab.page.locator("#text")).to_be_disabled()


# ---------------------------------------------------------------- the message field


def test_a_draft_stays_with_its_thread(server: PageServer, tabs: Tabs) -> None:
    tab = started(tabs)
    tab.box.fill("half a thought")
    tab.page.get_by_role("link", name="New thread").click()
    expect(tab.box).to_have_value("")
    tab.page.go_back()
    expect(tab.box).to_have_value("half a thought")
    tab.reload()
    expect(tab.box).to_have_value("half a thought")


def test_shift_enter_is_a_line_and_escape_clears(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    low = tab.box.evaluate("field => field.offsetHeight")
    tab.box.fill("one")
    tab.box.press("Shift+Enter")
    tab.box.press_sequentially("two")
    expect(tab.box).to_have_value("one\ntwo")
    assert tab.box.evaluate("field => field.offsetHeight") > low
    tab.box.press("Escape")
    expect(tab.box).to_have_value("")
    assert tab.box.evaluate("field => field.offsetHeight") == low


def test_arrow_up_takes_the_last_message(server: PageServer, tabs: Tabs) -> None:
    tab = started(tabs, "hello again")
    tab.box.press("ArrowUp")
    expect(tab.box).to_have_value("hello again")


def test_files_are_attached_and_removed(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    files: list[Any] = [
        {"name": "red.png", "mimeType": "image/png", "buffer": PNG},
        {"name": "notes.md", "mimeType": "text/markdown", "buffer": b"some ```notes```\n"},
        {"name": "other.txt", "mimeType": "text/plain", "buffer": b"removed"},
        {"name": "a.bin", "mimeType": "application/octet-stream", "buffer": b"\xff\0"},
    ]
    tab.page.locator("#files").set_input_files(files)
    attached = tab.page.get_by_role("list", name="Attachments").get_by_role("listitem")
    expect(attached).to_have_text(["red.png", "notes.md", "other.txt"])
    expect(tab.page.get_by_text("a.bin: only images")).to_be_visible()
    tab.page.get_by_role("button", name="Remove other.txt").click()
    with tab.page.expect_request(lambda request: request.url.endswith("/messages")) as sent:
        tab.say("hello")
    expect(attached).to_have_count(0)
    body = json.loads(sent.value.post_data or "")
    image, text, said = body["content"]
    assert image["source"]["mimeType"] == "image/png"
    assert text == {"type": "text", "text": "notes.md:\n````\nsome ```notes```\n````"}
    assert said == {"type": "text", "text": "hello"}
    tab.is_idle()


def test_too_much_is_not_attached(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    big: Any = {"name": "big.txt", "mimeType": "text/plain", "buffer": b"x" * 6_000_000}
    tab.page.locator("#files").set_input_files([big, big])
    expect(tab.page.get_by_role("list", name="Attachments").get_by_role("listitem")).to_have_count(1)
    expect(tab.page.get_by_text("10 MB together")).to_be_visible()


def test_a_pasted_picture_is_attached(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    tab.box.evaluate(
        """(field, bytes) => {
            const clipboardData = new DataTransfer();
            clipboardData.items.add(new File([new Uint8Array(bytes)], "shot.png", {type: "image/png"}));
            field.dispatchEvent(new ClipboardEvent("paste", {clipboardData, bubbles: true, cancelable: true}));
        }""",
        list(PNG),
    )
    expect(tab.page.get_by_role("list", name="Attachments").get_by_role("listitem")).to_have_text(["shot.png"])


def test_a_message_is_queued_while_a_run_is_live(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    server.hold("slow")
    tab.say("slow")
    server.until_held("slow")
    tab.say("next")
    expect(tab.page.get_by_text("1 queued")).to_be_visible()
    server.release("slow")
    tab.sees("You said next.")
    expect(tab.page.get_by_text("1 queued")).to_be_hidden()


def test_escape_stops_and_the_draft_stays(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    server.hold("model", 3)
    tab.say("long")
    server.until_held("model")
    tab.box.fill("later")
    tab.box.press("Escape")
    tab.is_idle()
    expect(tab.box).to_have_value("later")
    server.release("model")


def test_a_lost_answer_does_not_double_the_message(server: PageServer, tabs: Tabs) -> None:
    tab = started(tabs)
    lost: list[str] = []

    def lose(route: Any) -> None:
        lost.append(json.loads(route.request.post_data)["id"])
        if len(lost) == 1:
            route.fetch()  # the server has it, and its answer is lost
            route.abort()
        else:
            route.continue_()

    tab.page.route("**/messages", lose)
    tab.say("only-once")
    tab.sees("You said only-once.")
    expect(tab.page.get_by_text("Sending…")).to_be_hidden()
    assert len(lost) == 2
    assert lost[0] == lost[1]
    tab.reload()
    tab.sees("You said only-once.")
    assert tab.log.inner_text().count("You said only-once.") == 1


def test_a_refused_message_can_be_edited(server: PageServer, tabs: Tabs) -> None:
    tab = started(tabs)
    refusal = json.dumps({"error": {"message": "This message is too long.", "code": "too_long"}})
    tab.page.route("**/messages", lambda route: route.fulfill(status=413, body=refusal))
    tab.say("very long")
    expect(tab.page.get_by_text("Not sent: This message is too long.")).to_be_visible()
    tab.press("Edit")
    expect(tab.box).to_have_value("very long")


# ---------------------------------------------------------------- connection


def test_the_page_connects_again(server: PageServer, tabs: Tabs) -> None:
    tab = started(tabs)
    server.kill()
    expect(banner(tab.page, "Reconnecting")).to_be_visible()
    tab.say("while-away")
    expect(tab.page.get_by_text("Sending…")).to_be_visible()
    server.start()
    expect(banner(tab.page, "Reconnecting")).to_be_hidden(timeout=15_000)
    tab.sees("You said while-away.")


def test_a_hidden_page_keeps_no_connection(server: PageServer, tabs: Tabs) -> None:
    tab = started(tabs)
    hide = """hidden => {
        Object.defineProperty(document, "hidden", {configurable: true, get: () => hidden});
        document.dispatchEvent(new Event("visibilitychange"));
    }"""
    with tab.page.expect_event("requestfailed", lambda request: request.url.endswith("/events")):
        tab.page.evaluate(hide, True)
    other = tabs.new(tab.thread)
    other.say("elsewhere")
    other.sees("You said elsewhere.")
    tab.sees_no("elsewhere")
    with tab.page.expect_request("**/events") as resumed:
        tab.page.evaluate(hide, False)
    assert resumed.value.headers["last-event-id"]
    tab.sees("You said elsewhere.")


def test_events_are_read_whatever_the_cut(server: PageServer, tabs: Tabs) -> None:
    text = ': keep-alive\n\nid: e.1\ndata: {"a":\ndata: 1}\n\nid: e.2\r\ndata:two\r\n\r\nid: e.3\n\ndata: three\n\ndata: lost'
    read = """async text => {
        const {EventLines} = await import("/ui/api.js");
        const all = new Set();
        for (let size = 1; size <= text.length; size++) {
            const lines = new EventLines(), found = [];
            for (let at = 0; at < text.length; at += size) found.push(...lines.feed(text.slice(at, at + size)));
            all.add(JSON.stringify(found));
        }
        return [...all];
    }"""
    (found,) = tabs.new().page.evaluate(read, text)
    assert json.loads(found) == [
        {"id": "e.1", "data": '{"a":\n1}'},
        {"id": "e.2", "data": "two"},
        {"id": "", "data": "three"},
    ]


def test_a_key_is_asked_for_and_taken_from_the_address(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()

    def guard(route: Any) -> None:
        if route.request.headers.get("authorization") == "Bearer right":
            route.continue_()
        else:
            route.fulfill(status=401, body="{}")

    tab.page.route("**/ui/api/**", guard)
    tab.open(wait=False)
    key = tab.page.get_by_label("Key", exact=True)
    key.fill("wrong")
    key.press("Enter")
    key.fill("right")
    key.press("Enter")
    expect(tab.box).to_be_enabled()
    tab.page.evaluate("sessionStorage.clear()")
    tab.page.goto("about:blank")
    tab.page.goto(f"{server.url}/#key=right")
    expect(tab.box).to_be_enabled()
    assert "right" not in tab.page.url


# ---------------------------------------------------------------- keyboard, phone, colours


def test_everything_by_keyboard(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    page = tab.page
    keys = page.keyboard
    keys.press("Control+k")
    keys.type("new thread")
    keys.press("Enter")
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
    page.wait_for_timeout(700)  # a new card is deaf for a moment
    keys.press("y")
    tab.sees("That is settled.")
    keys.press("/")
    expect(tab.box).to_be_focused()
    server.hold("slow")
    keys.type("slow")
    keys.press("Enter")
    server.until_held("slow")
    keys.press("Escape")
    tab.is_idle()
    assert [effect["tool"] for effect in server.effects] == ["order", "slow"]


def test_keys_are_listed_and_the_focus_returns(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    tab.page.get_by_role("button", name="Keys").focus()
    tab.page.keyboard.press("?")
    dialog = tab.page.get_by_role("dialog", name="Keys")
    expect(dialog).to_contain_text("Find a thread")
    tab.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(tab.page.get_by_role("button", name="Keys")).to_be_focused()


def test_the_threads_can_be_hidden(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    nav = tab.page.get_by_role("navigation", name="Threads")
    tab.page.keyboard.press("Control+b")
    expect(nav).to_be_hidden()
    tab.reload()
    expect(tab.box).to_be_enabled()
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
    assert tab.faults() == []
    window.close()


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
    tab.page.keyboard.press("Control+k")
    expect(tab.page.get_by_role("dialog", name="Command palette")).to_be_visible()
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
