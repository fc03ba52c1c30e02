"""The message field: drafts, attachments, the queue, messages that are lost on their way; and the connection."""

from __future__ import annotations

import base64
import json
import re
from typing import Any, Final

import pytest
from page_driver import Tab, Tabs
from page_server import PageServer
from playwright.sync_api import Locator, Page, Route, expect

PNG: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


def banner(page: Page, text: str) -> Locator:
    return page.locator(".banner", has_text=text)


def started(tabs: Tabs, text: str = "hello") -> Tab:
    """A tab with a thread in which one message was answered."""
    tab = tabs.new()
    tab.say(text)
    tab.is_idle()
    return tab


# ---------------------------------------------------------------- the message field


@pytest.mark.soak
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
        {"name": "a.pdf", "mimeType": "application/pdf", "buffer": b"%PDF-1.7"},
        {"name": "a.bin", "mimeType": "application/octet-stream", "buffer": b"\xff\0"},
    ]
    tab.page.locator("#files").set_input_files(files)
    attached = tab.page.get_by_role("list", name="Attachments").get_by_role("listitem")
    expect(attached).to_have_text(["red.png", "notes.md", "other.txt", "a.pdf"])
    expect(tab.page.get_by_text("a.bin: only images")).to_be_visible()
    tab.page.get_by_role("button", name="Remove other.txt").click()
    with tab.page.expect_request(lambda request: request.url.endswith("/messages")) as sent:
        tab.say("hello")
    expect(attached).to_have_count(0)
    body = json.loads(sent.value.post_data or "")
    image, text, document, said = body["content"]
    source = {"type": "data", "value": "JVBERi0xLjc=", "mimeType": "application/pdf"}
    assert document == {"type": "document", "source": source, "metadata": {"name": "a.pdf"}}
    expect(tab.log.get_by_text("a.pdf")).to_be_visible()
    assert image["source"]["mimeType"] == "image/png"
    assert text == {"type": "text", "text": "notes.md:\n````\nsome ```notes```\n````\n"}
    assert said == {"type": "text", "text": "hello"}
    tab.is_idle()


@pytest.mark.soak
def test_an_attached_file_is_folded_and_gives_no_title(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    file: Any = {"name": "notes.md", "mimeType": "text/markdown", "buffer": b"some ```notes```\n"}
    tab.page.locator("#files").set_input_files([file])
    tab.say("hello")
    tab.is_idle()
    expect(tab.page.get_by_label("Thread title")).to_have_value("hello")
    expect(tab.log.locator(".said summary")).to_have_text("notes.md")
    tab.sees_no("````")
    tab.box.press("ArrowUp")
    expect(tab.box).to_have_value("hello")


def test_too_much_is_not_attached(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    tab.page.locator("#files").evaluate(
        """field => {
            const chosen = new DataTransfer();
            for (const name of ["one.txt", "two.txt"]) chosen.items.add(new File(["x".repeat(6e6)], name));
            field.files = chosen.files;
            field.dispatchEvent(new Event("change"));
        }"""
    )
    expect(tab.page.get_by_role("list", name="Attachments").get_by_role("listitem")).to_have_text(["one.txt"])
    expect(tab.page.get_by_text("10 MB at most")).to_be_visible()


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


@pytest.mark.soak
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


@pytest.mark.soak
def test_a_silent_model_is_waited_for(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    server.hold("model", 0)
    tab.say("hello")
    expect(tab.log).to_contain_text(re.compile(r"Waiting for .*… [1-9]\d* s"))
    server.release("model")
    tab.sees("Hello there.")
    tab.sees_no("Waiting for")


@pytest.mark.soak
def test_two_quick_messages_open_one_thread(server: PageServer, tabs: Tabs) -> None:
    tab = tabs.new()
    held: list[Route] = []
    tab.page.route(
        "**/ui/api/threads", lambda route: held.append(route) if route.request.method == "POST" else route.continue_()
    )
    tab.send("one")
    tab.send("two")
    tab.until(lambda: bool(held), "a thread that is being created")
    for route in held:
        route.continue_()
    tab.sees("one", "two", "You said two.")
    expect(tab.page.get_by_role("navigation", name="Threads").get_by_role("listitem")).to_have_count(1)


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
    files = [("a.png", "image/png", PNG), ("b.txt", "text/plain", b"one")]
    tab.page.locator("#files").set_input_files([{"name": n, "mimeType": m, "buffer": b} for n, m, b in files])
    expect(tab.page.get_by_role("button", name="Remove b.txt")).to_be_visible()
    tab.send("very long")
    expect(tab.page.get_by_text("a.png · b.txt · very long")).to_be_visible()
    expect(tab.page.get_by_text("Not sent: This message is too long.")).to_be_visible()
    tab.box.fill("and more")
    tab.press("Edit")
    expect(tab.box).to_have_value("very long\nand more")
    tab.page.unroute("**/messages")
    tab.say("what is in them?")
    tab.sees("You said b.txt:.")  # its first text
    message = tab.page.locator("article.user").last
    expect(message.locator("img")).to_be_visible()
    expect(message).to_contain_text("b.txt")
    expect(message).to_contain_text("what is in them?")


# ---------------------------------------------------------------- connection


@pytest.mark.soak
def test_the_page_connects_again(server: PageServer, tabs: Tabs) -> None:
    tab = started(tabs)
    server.kill()
    expect(banner(tab.page, "Reconnecting")).to_be_visible()
    tab.send("while-away")
    expect(tab.page.get_by_text("Sending…")).to_be_visible()
    server.start()
    expect(banner(tab.page, "Reconnecting")).to_be_hidden()
    tab.sees("You said while-away.")


@pytest.mark.soak
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
    text = ': keep-alive\n\nid: e.1\ndata: {"a": "data: 1"}\n\nid: e.2\ndata: two\n\n: idle\n\ndata: three\n\ndata: x'
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
        {"id": "e.1", "data": '{"a": "data: 1"}'},
        {"id": "e.2", "data": "two"},
        {"id": "", "data": "three"},
    ]


@pytest.mark.soak
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
